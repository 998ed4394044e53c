/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues in another host's memory than the data of their commands. The two go different
 * ways, and neither waits for the other, so a completion may be seen before its data have arrived.
 * What the drive answers comes behind all that it wrote: a doorbell is read before a completion
 * counts. If the path to the drive is lost between the two, nothing answers: then the completion
 * does not count, and its command remains in flight until the queue pair is known to be gone.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "client.h"
#include "error.h"
#include "smartio/io.h"

#define AT_ONCE 16u /* completions for which a doorbell is read once */

/*
 * The doorbell of the admin submission queue: no client stores to it. What is read of a view that
 * was taken away are ones, or else what this program has stored there since.
 */
static bool answers(const struct smartio_nvme_queue *q)
{
	return sio_read32((volatile uint32_t *)q->doorbells->at) != UINT32_MAX;
}

bool sio_nvme_far_pushed(const struct smartio_nvme_queue *q)
{
	if (!answers(q))
		return false;
	/*
	 * Not a word that stands where the drive's was. Of a loss we were told before the view
	 * changed: pairs with device_lost().
	 */
	sio_from_fabric_barrier();
	return __atomic_load_n(q->generation_word, __ATOMIC_ACQUIRE) == q->generation;
}

int sio_nvme_far_check(const struct smartio_nvme_queue *q)
{
	if (answers(q))
		return 0;
	return sio_nvme_fail(
		-ENETDOWN,
		"the doorbells of %s read as ones: the path to it is lost, or this drive "
		"cannot have completion queues in another host's memory than the data, "
		"or of several submission queues",
		q->n->d.name);
}

int sio_nvme_far_use(struct smartio_nvme_queue *q)
{
	const size_t bytes = (size_t)q->entries * 16;

	if (!q->near)
		q->near = malloc(bytes);
	if (!q->near)
		return sio_nvme_no_memory("completions of %u commands", q->depth);
	for (size_t i = 0; i < bytes / 8; i++)
		q->near[i] = 0;
	q->cq = q->cqe = (volatile uint8_t *)q->near;
	q->cq_end = q->cq + bytes;
	return 0;
}

static volatile uint8_t *far_entry(const struct smartio_nvme_queue *q, volatile uint8_t *near)
{
	return q->cq_mem->at + (near - q->cq);
}

bool sio_nvme_far_waits(const struct smartio_nvme_queue *q)
{
	const uint64_t second = le64toh(sio_read64(far_entry(q, q->cqe) + 8));

	return !((second ^ q->expected) & SIO_NVME_CQE_PHASE);
}

/* Return: how many have arrived at the lender, from the next one on; not beyond the queue's end. */
static unsigned look(const struct smartio_nvme_queue *q, uint64_t second[AT_ONCE])
{
	volatile uint8_t *at = q->cqe;
	unsigned n = 0;

	for (; n < AT_ONCE && at != q->cq_end; n++, at += 16) {
		second[n] = le64toh(sio_read64(far_entry(q, at) + 8));
		if ((second[n] ^ q->expected) & SIO_NVME_CQE_PHASE)
			break;
	}
	return n;
}

int sio_nvme_far_take(struct smartio_nvme_queue *q)
{
	volatile uint8_t *at = q->cqe;
	uint64_t second[AT_ONCE];
	unsigned n = q->error ? 0 : look(q, second);

	if (n == 0)
		return 0;
	if (!sio_nvme_far_pushed(q))
		return -ENETDOWN;
	for (unsigned i = 0; i < n; i++, at += 16)
		sio_write64(at + 8, htole64(second[i]));
	return 1;
}
