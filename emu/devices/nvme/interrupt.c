/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupts (NVMe 1.4, section 7.5) as MSI-X has them: a message each time that entries were
 * posted, unless the host asked to have those of I/O queues aggregated (features 08h and 09h).
 * Masking is in the interrupt table, which is the room's; the registers INTMS and INTMC are for
 * pins and MSI.
 */
#include "emu/devices/nvme/model.h"

#define TIME_UNIT_NS 100000u

static uint32_t threshold(const struct emu_nvme *m)
{
	return (m->feature.coalescing & 0xff) + 1;
}

static uint64_t time_ns(const struct emu_nvme *m)
{
	return (uint64_t)(m->feature.coalescing >> 8 & 0xff) * TIME_UNIT_NS;
}

static void raise(struct emu_nvme *m, unsigned number)
{
	struct emu_nvme_vector *v = &m->vector[number];

	m->n_aggregating -= v->aggregated > 0;
	v->aggregated = 0;
	m->stats.interrupts++;
	m->dev->interrupt(m->dev, number);
}

void emu_nvme_interrupt(struct emu_nvme *m, struct emu_nvme_cq *cq, bool urgent)
{
	struct emu_nvme_vector *v = &m->vector[cq->vector];
	uint32_t posted = cq->untold;

	cq->untold = 0;
	/*
	 * The admin queue's interrupts are never delayed, nor are any without an aggregation time.
	 */
	if (urgent || cq->id == 0 || v->no_coalescing || time_ns(m) == 0 ||
	    v->aggregated + posted >= threshold(m)) {
		raise(m, cq->vector);
		return;
	}
	if (v->aggregated == 0) {
		v->since = m->dev->now(m->dev);
		m->n_aggregating++;
	}
	v->aggregated += posted;
}

void emu_nvme_interrupts_due(struct emu_nvme *m)
{
	uint64_t now = m->dev->now(m->dev), time = time_ns(m);

	for (uint32_t i = 0; i < m->vectors && m->n_aggregating > 0; i++)
		if (m->vector[i].aggregated > 0 && now - m->vector[i].since >= time)
			raise(m, i);
}

void emu_nvme_interrupts_forget(struct emu_nvme *m)
{
	for (uint32_t i = 0; i < m->vectors; i++)
		m->vector[i] = (struct emu_nvme_vector){.aggregated = 0};
	m->n_aggregating = 0;
}
