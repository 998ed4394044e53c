/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbell Buffer Config (NVMe 1.4, sections 5.7 and 7.13), for hosts to which each store to a
 * register is expensive. They store tails and heads of I/O queues in a buffer of their own memory,
 * and store to the register only when they pass the value that the controller has put into a second
 * buffer. While there is work the model polls the first buffer; before it sleeps it asks to be
 * woken by the next change. The queues are still served by the doorbells of the page: the values of
 * the buffer are copied there, and checked like any other.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "emu/devices/nvme/model.h"
#include "smartio/io.h"

#define CHUNK 256u /* words read at once */
#define WORD 4u	   /* bytes of one, as in the page of doorbells: CAP.DSTRD is 0 */

void emu_nvme_shadow_forget(struct emu_nvme *m)
{
	free(m->shadow.armed);
	m->shadow = (struct emu_nvme_shadow){0};
}

unsigned emu_nvme_doorbell_buffer(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint64_t values = le64toh(sqe->prp1), events = le64toh(sqe->prp2);
	uint32_t *armed;

	if (values % EMU_NVME_PAGE || events % EMU_NVME_PAGE)
		return EMU_NVME_FAIL(INVALID_FIELD);
	armed = malloc(m->doorbell_words * sizeof(*armed));
	if (!armed)
		return NVME_SC_INTERNAL;
	memset(armed, 0xff, m->doorbell_words * sizeof(*armed)); /* no value of a doorbell */
	free(m->shadow.armed);
	m->shadow = (struct emu_nvme_shadow){
		.used = true, .values = values, .events = events, .armed = armed};
	return 0;
}

static bool exists(const struct emu_nvme *m, unsigned word)
{
	unsigned id = word / 2;

	if (id == 0 || id > m->queue_pairs)
		return false;
	return word % 2 ? m->cq[id].size != 0 : m->sq[id].size != 0;
}

/* Words of the doorbells up to the last queue that there is. */
static unsigned words(const struct emu_nvme *m)
{
	unsigned id = m->queue_pairs;

	while (id > 0 && !m->cq[id].size && !m->sq[id].size)
		id--;
	return 2 * (id + 1);
}

void emu_nvme_shadow_anew(struct emu_nvme *m, unsigned word)
{
	if (m->shadow.armed)
		m->shadow.armed[word] = UINT32_MAX;
}

void emu_nvme_shadow_poll(struct emu_nvme *m)
{
	unsigned end = words(m);
	uint32_t value[CHUNK];

	for (unsigned at = 2; at < end; at += CHUNK) {
		unsigned n = end - at < CHUNK ? end - at : CHUNK;

		if (emu_nvme_read(m, m->shadow.values + (uint64_t)at * WORD, value, n * WORD))
			return; /* the page's own doorbells serve */
		for (unsigned i = 0; i < n; i++)
			if (exists(m, at + i))
				sio_write32(m->doorbells + at + i, le32toh(value[i]));
	}
}

/* Does a change of it matter? A head is only where entries cannot be posted. */
static bool waits(struct emu_nvme *m, unsigned word)
{
	struct emu_nvme_cq *cq = &m->cq[word / 2];

	if (word % 2 == 0)
		return true;
	emu_nvme_cq_poll(m, cq);
	return (cq->tail + 1) % cq->size == cq->head;
}

bool emu_nvme_shadow_arm(struct emu_nvme *m)
{
	unsigned end = words(m);
	bool changed = false;

	for (unsigned word = 2; word < end; word++) {
		uint32_t seen;
		__le32 event;

		if (!exists(m, word) || !waits(m, word))
			continue;
		seen = word % 2 ? m->cq[word / 2].doorbell_seen : m->sq[word / 2].doorbell_seen;
		if (m->shadow.armed[word] == seen)
			continue;
		m->shadow.armed[word] = seen;
		event = htole32(seen);
		emu_nvme_write(m, m->shadow.events + (uint64_t)word * WORD, &event, sizeof(event));
		changed = true;
	}
	/* The read pushes the writes ahead of it: a host that saw none of them is seen now. */
	if (changed)
		emu_nvme_shadow_poll(m);
	return changed;
}
