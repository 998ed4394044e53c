/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Get Log Page (NVMe 1.4, section 5.14): error information, SMART / health, firmware slots, what
 * commands there are and what they do.
 */
#include <endian.h>
#include <string.h>

#include "emu/devices/nvme/model.h"

#define RETAIN_EVENT (1u << 15)
#define NO_COMMAND 0xffffu
#define NO_LOCATION 0xffffu
#define EFFECTS_ALONE_ON_NAMESPACE (1u << 16) /* CSE */
#define NS_PER_HOUR 3600000000000u
#define BYTES_PER_UNIT 512000u /* SMART's data unit */

_Static_assert(sizeof(struct nvme_error_log_page) == 64, "NVMe 1.4, figure 193");
_Static_assert(EMU_NVME_ERRORS * sizeof(struct nvme_error_log_page) <= EMU_NVME_PAGE, "scratch");
_Static_assert(sizeof(struct nvme_smart_log) == 512, "NVMe 1.4, figure 194");
_Static_assert(sizeof(struct nvme_firmware_slot) == 512, "NVMe 1.4, figure 195");
_Static_assert(sizeof(struct nvme_cmd_effects_log) == EMU_NVME_PAGE, "NVMe 1.4, figure 200");

void emu_nvme_error(struct emu_nvme *m, unsigned sq_id, const struct emu_nvme_sqe *sqe,
		    unsigned status)
{
	struct nvme_error_log_page *e = &m->error[m->n_errors++ % EMU_NVME_ERRORS];

	memset(e, 0, sizeof(*e));
	e->error_count = htole64(m->n_errors);
	e->sqid = htole16((uint16_t)sq_id);
	e->parm_error_location = htole16(NO_LOCATION);
	if (!sqe) {
		e->cmdid = htole16(NO_COMMAND);
		return;
	}
	m->stats.failed++;
	e->cmdid = sqe->cid;
	e->status_field = htole16((uint16_t)(status << 1));
	e->nsid = sqe->nsid;
	if (sq_id != 0)
		e->lba = htole64((uint64_t)le32toh(sqe->cdw11) << 32 | le32toh(sqe->cdw10));
}

uint8_t emu_nvme_critical_warning(const struct emu_nvme *m)
{
	bool is_beyond =
		EMU_NVME_KELVIN >= m->feature.temp_over || EMU_NVME_KELVIN <= m->feature.temp_under;

	return is_beyond ? NVME_SMART_CRIT_TEMPERATURE : 0;
}

/* Newest first; entries that were never used stay zero. */
static size_t error_page(struct emu_nvme *m)
{
	struct nvme_error_log_page *out = (void *)m->page;
	uint64_t n = m->n_errors < EMU_NVME_ERRORS ? m->n_errors : EMU_NVME_ERRORS;

	for (uint64_t i = 0; i < n; i++)
		out[i] = m->error[(m->n_errors - 1 - i) % EMU_NVME_ERRORS];
	return EMU_NVME_ERRORS * sizeof(*out);
}

static void put(uint8_t *field, uint64_t value)
{
	value = htole64(value);
	memcpy(field, &value, sizeof(value));
}

/* Rounded up. */
static uint64_t data_units(uint64_t bytes)
{
	return (bytes + BYTES_PER_UNIT - 1) / BYTES_PER_UNIT;
}

static size_t smart_page(struct emu_nvme *m)
{
	struct nvme_smart_log *s = (void *)m->page;
	uint64_t hours = (m->dev->now(m->dev) - m->born) / NS_PER_HOUR;

	s->critical_warning = emu_nvme_critical_warning(m);
	s->temperature[0] = EMU_NVME_KELVIN & 0xff;
	s->temperature[1] = EMU_NVME_KELVIN >> 8;
	s->avail_spare = 100;
	s->spare_thresh = 10;
	put(s->data_units_read, data_units(m->stats.read_bytes + m->stats.compared_bytes));
	put(s->data_units_written, data_units(m->stats.written_bytes));
	put(s->host_reads, m->stats.reads + m->stats.compares);
	put(s->host_writes, m->stats.writes);
	put(s->power_cycles, m->stats.power_cycles);
	put(s->power_on_hours, hours);
	put(s->unsafe_shutdowns, m->stats.unsafe_shutdowns);
	put(s->media_errors, m->stats.media_errors);
	put(s->num_err_log_entries, m->n_errors);
	return sizeof(*s);
}

static size_t firmware_page(struct emu_nvme *m)
{
	struct nvme_firmware_slot *f = (void *)m->page;

	f->afi = 1;
	memcpy(f->frs[0], EMU_NVME_FIRMWARE, sizeof(f->frs[0]));
	return sizeof(*f);
}

/* Section 5.14.1.5. */
static size_t effects_page(struct emu_nvme *m)
{
	static const uint8_t admin[] = {
		nvme_admin_delete_sq,	nvme_admin_create_sq,	 nvme_admin_get_log_page,
		nvme_admin_delete_cq,	nvme_admin_create_cq,	 nvme_admin_identify,
		nvme_admin_abort_cmd,	nvme_admin_set_features, nvme_admin_get_features,
		nvme_admin_async_event, nvme_admin_dbbuf,
	};
	static const uint8_t reads[] = {nvme_cmd_flush, nvme_cmd_read, nvme_cmd_compare,
					nvme_cmd_verify};
	static const uint8_t writes[] = {nvme_cmd_write, nvme_cmd_write_zeroes, nvme_cmd_dsm};
	const uint32_t changes = NVME_CMD_EFFECTS_CSUPP | NVME_CMD_EFFECTS_LBCC;
	struct nvme_cmd_effects_log *e = (void *)m->page;

	for (unsigned i = 0; i < sizeof(admin); i++)
		e->acs[admin[i]] = htole32(NVME_CMD_EFFECTS_CSUPP);
	if (emu_nvme_is_primary(m))
		e->acs[nvme_admin_virtual_mgmt] = htole32(NVME_CMD_EFFECTS_CSUPP);
	/* Capabilities of the namespace change with its block size; nothing else may run meanwhile.
	 */
	e->acs[nvme_admin_format_nvm] =
		htole32(changes | NVME_CMD_EFFECTS_NCC | EFFECTS_ALONE_ON_NAMESPACE);
	for (unsigned i = 0; i < sizeof(reads); i++)
		e->iocs[reads[i]] = htole32(NVME_CMD_EFFECTS_CSUPP);
	for (unsigned i = 0; i < sizeof(writes); i++)
		e->iocs[writes[i]] = htole32(changes);
	return sizeof(*e);
}

/* Fill the scratch page. Return: bytes; 0: there is no such log page. */
static size_t fill(struct emu_nvme *m, unsigned id)
{
	memset(m->page, 0, sizeof(m->page));
	switch (id) {
	case NVME_LOG_LID_ERROR:
		return error_page(m);
	case NVME_LOG_LID_SMART:
		return smart_page(m);
	case NVME_LOG_LID_FW_SLOT:
		return firmware_page(m);
	case NVME_LOG_LID_CMD_EFFECTS:
		return effects_page(m);
	default:
		return 0;
	}
}

unsigned emu_nvme_get_log_page(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint32_t cdw10 = le32toh(sqe->cdw10), nsid = le32toh(sqe->nsid);
	uint64_t dwords = ((uint64_t)(le32toh(sqe->cdw11) & 0xffff) << 16 | cdw10 >> 16) + 1;
	uint64_t offset = (uint64_t)le32toh(sqe->cdw13) << 32 | le32toh(sqe->cdw12);
	uint64_t len = dwords * 4;
	unsigned id = cdw10 & 0xff, status;
	size_t size = fill(m, id);

	if (size == 0)
		return EMU_NVME_FAIL_SPECIFIC(INVALID_LOG_PAGE);
	if (nsid != 0 && nsid != NVME_NSID_ALL) /* none is kept per namespace */
		return EMU_NVME_FAIL(INVALID_FIELD);
	if (offset % 4 || offset > size || len > EMU_NVME_PAGE << EMU_NVME_MDTS)
		return EMU_NVME_FAIL(INVALID_FIELD);
	/* What lies past the end is undefined: it is not sent. */
	if (len > size - offset)
		len = size - offset;
	status = len ? emu_nvme_prp_to_host(m, sqe, m->page + offset, (size_t)len) : 0;
	if (status)
		return status;
	if (!(cdw10 & RETAIN_EVENT)) {
		if (id == NVME_LOG_LID_ERROR)
			emu_nvme_event_unmask(m, NVME_AER_ERROR);
		else if (id == NVME_LOG_LID_SMART)
			emu_nvme_event_unmask(m, NVME_AER_SMART);
	}
	return 0;
}
