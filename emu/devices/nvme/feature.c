/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Get and Set Features (NVMe 1.4, sections 5.13 and 5.21): those that an I/O controller of PCIe
 * must have. All but the number of queues can be changed, none can be saved.
 */
#include <endian.h>

#include "emu/devices/nvme/model.h"

#define SET_SAVE (1u << 31)
#define CAN_CHANGE (1u << 2) /* answers to "supported capabilities" */
#define PER_NAMESPACE (1u << 1)

#define ARBITRATION_BURST 0x7u
#define BURST_UNLIMITED 7u
#define RECOVERY_DULBE (1u << 16)
#define POWER_STATE 0x1fu
#define VECTOR_NUMBER 0xffffu
#define COALESCING_DISABLE (1u << 16)
#define EVENTS_KNOWN 0x1fu /* the critical warnings; no notices are advertised */

static void set_burst(struct emu_nvme *m)
{
	uint32_t log2 = m->feature.arbitration & ARBITRATION_BURST;

	m->burst = log2 == BURST_UNLIMITED ? EMU_NVME_FETCH : 1u << log2;
	if (m->burst > EMU_NVME_FETCH)
		m->burst = EMU_NVME_FETCH;
}

static void defaults(struct emu_nvme_features *f)
{
	*f = (struct emu_nvme_features){
		.arbitration = EMU_NVME_BURST_LOG2,
		.temp_over = EMU_NVME_WARN_KELVIN,
		.write_cache = true,
	};
}

void emu_nvme_features_defaults(struct emu_nvme *m)
{
	defaults(&m->feature);
	emu_nvme_interrupts_forget(m);
	set_burst(m);
}

static bool is_known(const struct emu_nvme *m, unsigned id)
{
	return id >= NVME_FEAT_FID_ARBITRATION && id <= NVME_FEAT_FID_ASYNC_EVENT &&
	       id != NVME_FEAT_FID_LBA_RANGE && (id != NVME_FEAT_FID_VOLATILE_WC || m->files);
}

/* Which field of the temperature threshold feature @cdw11 speaks of; NULL: none that exists. */
static uint16_t *threshold(struct emu_nvme_features *f, uint32_t cdw11, bool is_set)
{
	uint32_t sensor = cdw11 >> 16 & 0xf, type = cdw11 >> 20 & 3;

	/* Only the composite temperature; 15 means all sensors, to Set Features. */
	if (type > 1 || (sensor != 0 && !(is_set && sensor == 15)))
		return NULL;
	return type == 0 ? &f->temp_over : &f->temp_under;
}

static unsigned get_value(const struct emu_nvme *m, struct emu_nvme_features *f, unsigned id,
			  uint32_t cdw11, uint32_t *result)
{
	const uint16_t *temp;
	unsigned number;

	switch (id) {
	case NVME_FEAT_FID_ARBITRATION:
		*result = f->arbitration;
		return 0;
	case NVME_FEAT_FID_POWER_MGMT:
		*result = f->power;
		return 0;
	case NVME_FEAT_FID_TEMP_THRESH:
		temp = threshold(f, cdw11, false);
		if (!temp)
			return EMU_NVME_FAIL(INVALID_FIELD);
		*result = *temp;
		return 0;
	case NVME_FEAT_FID_VOLATILE_WC:
		*result = f->write_cache;
		return 0;
	case NVME_FEAT_FID_NUM_QUEUES:
		*result = (m->queue_pairs - 1) << 16 | (m->queue_pairs - 1);
		return 0;
	case NVME_FEAT_FID_IRQ_COALESCE:
		*result = f->coalescing;
		return 0;
	case NVME_FEAT_FID_IRQ_CONFIG:
		number = cdw11 & VECTOR_NUMBER;
		if (number != 0 && number >= m->vectors)
			return EMU_NVME_FAIL(INVALID_FIELD);
		*result = number;
		if (f == &m->feature && number < m->vectors && m->vector[number].no_coalescing)
			*result |= COALESCING_DISABLE;
		return 0;
	case NVME_FEAT_FID_WRITE_ATOMIC:
		*result = f->atomicity;
		return 0;
	default:
		*result = f->events;
		return 0;
	}
}

unsigned emu_nvme_get_features(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint32_t *result)
{
	uint32_t cdw10 = le32toh(sqe->cdw10), nsid = le32toh(sqe->nsid);
	unsigned id = cdw10 & 0xff, select = cdw10 >> 8 & 7;
	bool per_namespace = id == NVME_FEAT_FID_ERR_RECOVERY;
	struct emu_nvme_features fixed;

	if (!is_known(m, id) || select > NVME_GET_FEATURES_SEL_SUPPORTED)
		return EMU_NVME_FAIL(INVALID_FIELD);
	if (select == NVME_GET_FEATURES_SEL_SUPPORTED) {
		*result = CAN_CHANGE | (per_namespace ? PER_NAMESPACE : 0);
		return 0;
	}
	if (per_namespace) {
		if (!emu_nvme_ns(m, nsid))
			return EMU_NVME_FAIL(INVALID_NS);
		if (select == NVME_GET_FEATURES_SEL_CURRENT)
			*result = m->feature.recovery[nsid - 1];
		return 0; /* the default is 0 */
	}
	if (select == NVME_GET_FEATURES_SEL_CURRENT)
		return get_value(m, &m->feature, id, le32toh(sqe->cdw11), result);
	/* Nothing can be saved, so "saved" reads as the default, too. */
	defaults(&fixed);
	return get_value(m, &fixed, id, le32toh(sqe->cdw11), result);
}

static unsigned set_num_queues(struct emu_nvme *m, uint32_t cdw11, uint32_t *result)
{
	if ((cdw11 & 0xffff) == 0xffff || cdw11 >> 16 == 0xffff)
		return EMU_NVME_FAIL(INVALID_FIELD);
	if (m->queues_were_made)
		return EMU_NVME_FAIL(CMD_SEQ_ERROR);
	/* More may be given than was asked for: always all. */
	*result = (m->queue_pairs - 1) << 16 | (m->queue_pairs - 1);
	return 0;
}

static unsigned set_threshold(struct emu_nvme *m, uint32_t cdw11)
{
	uint16_t *temp = threshold(&m->feature, cdw11, true);

	if (!temp)
		return EMU_NVME_FAIL(INVALID_FIELD);
	*temp = (uint16_t)cdw11;
	emu_nvme_event_temperature(m);
	return 0;
}

static unsigned set_value(struct emu_nvme *m, unsigned id, uint32_t cdw11, uint32_t *result)
{
	struct emu_nvme_features *f = &m->feature;
	unsigned number;

	switch (id) {
	case NVME_FEAT_FID_ARBITRATION:
		f->arbitration = cdw11 & ~0xf8u; /* 7:3 reserved */
		set_burst(m);
		return 0;
	case NVME_FEAT_FID_POWER_MGMT:
		if (cdw11 & POWER_STATE) /* there is state 0 only */
			return EMU_NVME_FAIL(INVALID_FIELD);
		f->power = cdw11 & 0xe0u; /* workload hint */
		return 0;
	case NVME_FEAT_FID_TEMP_THRESH:
		return set_threshold(m, cdw11);
	case NVME_FEAT_FID_NUM_QUEUES:
		return set_num_queues(m, cdw11, result);
	case NVME_FEAT_FID_IRQ_COALESCE:
		f->coalescing = cdw11 & 0xffff;
		return 0;
	case NVME_FEAT_FID_IRQ_CONFIG:
		number = cdw11 & VECTOR_NUMBER;
		if (number != 0 && number >= m->vectors)
			return EMU_NVME_FAIL(INVALID_FIELD);
		if (number < m->vectors)
			m->vector[number].no_coalescing = cdw11 & COALESCING_DISABLE;
		return 0;
	case NVME_FEAT_FID_WRITE_ATOMIC:
		f->atomicity = cdw11 & 1;
		return 0;
	default:
		if (cdw11 & ~EVENTS_KNOWN)
			return EMU_NVME_FAIL(INVALID_FIELD);
		f->events = cdw11;
		emu_nvme_event_temperature(m);
		return 0;
	}
}

/* Error Recovery (section 5.21.1.5), of one namespace or of all. */
static unsigned set_recovery(struct emu_nvme *m, uint32_t nsid, uint32_t cdw11)
{
	if (!emu_nvme_ns(m, nsid) && nsid != NVME_NSID_ALL)
		return EMU_NVME_FAIL(INVALID_NS);
	if (cdw11 & RECOVERY_DULBE) /* no deallocated blocks */
		return EMU_NVME_FAIL(INVALID_FIELD);
	for (uint32_t i = 0; i < m->n_ns; i++)
		if (nsid == NVME_NSID_ALL || i == nsid - 1)
			m->feature.recovery[i] = cdw11 & 0xffff;
	return 0;
}

/* What is in the cache when it is disabled is written first (section 5.21.1.6). */
static unsigned set_write_cache(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	m->feature.write_cache = le32toh(sqe->cdw11) & 1;
	return m->feature.write_cache ? 0 : emu_nvme_files_empty(m, sqe);
}

unsigned emu_nvme_set_features(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint32_t *result)
{
	uint32_t cdw10 = le32toh(sqe->cdw10), nsid = le32toh(sqe->nsid);
	unsigned id = cdw10 & 0xff;

	if (!is_known(m, id))
		return EMU_NVME_FAIL(INVALID_FIELD);
	if (cdw10 & SET_SAVE)
		return EMU_NVME_FAIL_SPECIFIC(FEATURE_NOT_SAVEABLE);
	if (id == NVME_FEAT_FID_ERR_RECOVERY)
		return set_recovery(m, nsid, le32toh(sqe->cdw11));
	if (nsid != 0 && nsid != NVME_NSID_ALL) {
		return emu_nvme_ns(m, nsid) ? EMU_NVME_FAIL_SPECIFIC(FEATURE_NOT_PER_NS)
					    : EMU_NVME_FAIL(INVALID_NS);
	}
	if (id == NVME_FEAT_FID_VOLATILE_WC)
		return set_write_cache(m, sqe);
	return set_value(m, id, le32toh(sqe->cdw11), result);
}
