/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues in another host's memory than the data of their commands. The two go different
 * ways, and neither waits for the other, so a completion may be seen before its data have arrived.
 * What the drive answers comes behind all that it wrote: a doorbell is read before a completion
 * counts. If the path to the drive is lost between the two, nothing answers: then the completion
 * does not count, and its command remains in flight until the queue pair is known to be gone. A
 * path that was lost and is back answers, although data may have been dropped: that it was lost is
 * in the port's status page, by which a sequence of the doorbells' map judges.
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

/*
 * The status page says that a path is down before anything on it is dropped: pairs with publish()
 * of emu and set_state() of smartio.ko.
 */
static bool has_carried_all(const struct smartio_nvme_queue *q)
{
	const unsigned looks = SCI_FLAG_NO_FLUSH | SCI_FLAG_NO_STORE_BARRIER;
	sci_error_t err;

	return SCICheckSequence(q->carried, looks, &err) == SCI_SEQ_OK;
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
	return __atomic_load_n(q->generation_word, __ATOMIC_ACQUIRE) == q->generation &&
	       has_carried_all(q);
}

void sio_nvme_far_end(struct smartio_nvme_queue *q)
{
	sci_error_t err;

	if (q->carried)
		SCIRemoveSequence(q->carried, 0, &err);
	q->carried = NULL;
}

int sio_nvme_far_begin(struct smartio_nvme_queue *q)
{
	sci_error_t err;

	sio_nvme_far_end(q);
	SCICreateMapSequence(q->doorbells->map, &q->carried, 0, &err);
	if (err != SCI_ERR_OK) {
		q->carried = NULL;
		return sio_nvme_fail_sci(err, "%s: no sequence of its doorbells", q->n->d.name);
	}
	if (SCIStartSequence(q->carried, 0, &err) == SCI_SEQ_OK && answers(q))
		return 0;
	return sio_nvme_fail(
		-ENETDOWN,
		"the doorbells of %s read as ones: the path to it is lost, or this drive "
		"cannot have completion queues in another host's memory than the data, "
		"or of several submission queues",
		q->n->d.name);
}

/*
 * What was written before the answer arrives before it. That holds for ones, too: where a link is
 * down, its end answers, and what it held was dropped.
 */
void sio_nvme_far_settle(const struct sio_nvme_doorbells *b)
{
	if (!b)
		return;
	sio_read32((const volatile uint32_t *)b->at);
	/* Pairs with the order of the drive's writes, in emu with emu_dma_write(). */
	sio_from_fabric_barrier();
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
