/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbells are words of a plain page that every borrower can write to. The data path reads the
 * doorbells of the queues that it serves; stores to any other word are found here, a slice of the
 * page at a time.
 */
#include <inttypes.h>

#include "emu/devices/nvme/model.h"
#include "smartio/io.h"

#define SLICE 16u /* words: a cache line */

void emu_nvme_doorbell_zero(struct emu_nvme *m, unsigned word)
{
	if (m->doorbells)
		sio_write32(m->doorbells + word, 0);
}

void emu_nvme_doorbells_zero(struct emu_nvme *m)
{
	for (unsigned i = 0; i < m->doorbell_words; i++)
		emu_nvme_doorbell_zero(m, i);
}

void emu_nvme_doorbell_invalid(struct emu_nvme *m, unsigned word, uint32_t value, unsigned info)
{
	uint64_t count = ++m->stats.invalid_doorbells;

	/*
	 * A program that can write doorbells can write wrong ones forever: logs the 1st, 2nd, 4th,
	 * ...
	 */
	if ((count & (count - 1)) == 0)
		emu_nvme_log(m,
			     "invalid doorbell no. %" PRIu64 ": %" PRIu32 " written to the %s of "
			     "%s queue %u, %s",
			     count, value, word % 2 ? "head" : "tail",
			     word % 2 ? "completion" : "submission", word / 2,
			     info == NVME_AER_ERROR_INVALID_DB_REG ? "which does not exist"
								   : "which cannot take it");
	emu_nvme_error(m, word / 2 <= m->queue_pairs ? word / 2 : 0xffff, NULL, 0);
	emu_nvme_event_raise(m, NVME_AER_ERROR, info);
}

void emu_nvme_doorbells_scan(struct emu_nvme *m)
{
	for (unsigned i = 0; i < SLICE; i++) {
		unsigned word = m->doorbell_next++, id = word / 2;
		bool is_cq = word % 2, exists = false;
		uint32_t value;

		if (m->doorbell_next == m->doorbell_words)
			m->doorbell_next = 0;
		if (id <= m->queue_pairs)
			exists = is_cq ? m->cq[id].size != 0 : m->sq[id].size != 0;
		if (exists) {
			if (is_cq)
				emu_nvme_cq_poll(m, &m->cq[id]);
			continue;
		}
		value = sio_read32(m->doorbells + word);
		if (value == 0)
			continue;
		emu_nvme_doorbell_zero(m, word);
		emu_nvme_doorbell_invalid(m, word, value, NVME_AER_ERROR_INVALID_DB_REG);
	}
}

unsigned emu_nvme_doorbells_slices(const struct emu_nvme *m)
{
	return (m->doorbell_words + SLICE - 1) / SLICE;
}

void emu_nvme_doorbells_skip(struct emu_nvme *m, uint64_t n)
{
	m->doorbell_next = (unsigned)((m->doorbell_next + n * SLICE) % m->doorbell_words);
}
