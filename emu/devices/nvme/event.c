/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous events (NVMe 1.4, section 5.2) and Abort (section 5.1): the commands that wait
 * inside the model, and so can be aborted, are requests for an event, those that a fault delays,
 * and those on files.
 */
#include <endian.h>

#include "emu/devices/nvme/model.h"

#define ABORT_NOTHING 1u /* result: the command was not aborted */

static const uint8_t log_page[] = {
	[NVME_AER_ERROR] = NVME_LOG_LID_ERROR,
	[NVME_AER_SMART] = NVME_LOG_LID_SMART,
};

#define TYPES (sizeof(log_page) / sizeof(log_page[0]))

void emu_nvme_event_raise(struct emu_nvme *m, unsigned type, unsigned info)
{
	m->event[type].pending |= (uint8_t)(1u << info);
}

void emu_nvme_event_unmask(struct emu_nvme *m, unsigned type)
{
	m->event[type].masked = false;
}

void emu_nvme_event_temperature(struct emu_nvme *m)
{
	bool hot = emu_nvme_critical_warning(m) & NVME_SMART_CRIT_TEMPERATURE;

	if (hot && !m->hot && (m->feature.events & NVME_SMART_CRIT_TEMPERATURE))
		emu_nvme_event_raise(m, NVME_AER_SMART, NVME_AER_SMART_TEMPERATURE_THRESHOLD);
	m->hot = hot;
}

static bool can_report(const struct emu_nvme_event *e)
{
	return e->pending && !e->masked;
}

bool emu_nvme_event_ready(const struct emu_nvme *m)
{
	if (m->n_aer == 0)
		return false;
	for (unsigned type = 0; type < TYPES; type++)
		if (can_report(&m->event[type]))
			return true;
	return false;
}

/* Requests are used in the order in which they came. */
static uint16_t take_request(struct emu_nvme *m, unsigned index)
{
	uint16_t cid = m->aer[index];

	m->n_aer--;
	for (unsigned i = index; i < m->n_aer; i++)
		m->aer[i] = m->aer[i + 1];
	return cid;
}

void emu_nvme_event_report(struct emu_nvme *m)
{
	for (unsigned type = 0; type < TYPES; type++) {
		struct emu_nvme_event *e = &m->event[type];
		unsigned info;

		if (!can_report(e))
			continue;
		info = (unsigned)__builtin_ctz(e->pending);
		e->pending &= (uint8_t)(e->pending - 1);
		e->masked = true;
		emu_nvme_post(m, &m->sq[0], htole16(take_request(m, 0)), 0,
			      (uint32_t)log_page[type] << 16 | info << 8 | type);
		return;
	}
}

unsigned emu_nvme_async_event_request(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	if (m->n_aer == EMU_NVME_AERS)
		return EMU_NVME_FAIL_SPECIFIC(ASYNC_LIMIT);
	m->aer[m->n_aer++] = le16toh(sqe->cid);
	return EMU_NVME_HELD;
}

unsigned emu_nvme_abort(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint32_t *result)
{
	uint32_t cdw10 = le32toh(sqe->cdw10);
	unsigned id = cdw10 & 0xffff;
	__le16 cid = htole16((uint16_t)(cdw10 >> 16));

	if (id > m->queue_pairs || !m->sq[id].size)
		return EMU_NVME_FAIL(INVALID_FIELD);
	*result = ABORT_NOTHING;
	if (emu_nvme_held_abort(m, &m->sq[id], cid, NVME_SC_ABORT_REQ) ||
	    emu_nvme_jobs_abort(m, &m->sq[id], cid))
		*result = 0;
	for (unsigned i = 0; id == 0 && i < m->n_aer; i++) {
		if (m->aer[i] != cdw10 >> 16)
			continue;
		m->done[m->n_done++] = (struct emu_nvme_done){.cid = take_request(m, i),
							      .status = NVME_SC_ABORT_REQ};
		*result = 0;
		break;
	}
	return 0;
}
