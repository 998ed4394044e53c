/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that are handed over to a device, which drives them by itself. */
#include <errno.h>

#include "client.h"
#include "error.h"
#include "smartio/nvmeraw.h"

#define DOORBELLS 0x1000u

int smartio_nvme_queue_hand_over(struct smartio_nvme_queue *q, struct smartio_nvme_raw *ret)
{
	if (ret->size != sizeof(*ret))
		return sio_nvme_fail(-EINVAL, "a size of %zu bytes, %zu is right", ret->size,
				     sizeof(*ret));
	if (q->error || sio_nvme_queue_stale(q))
		return sio_nvme_queue_dead(q);
	if (q->life)
		return sio_nvme_fail(
			-EINVAL,
			"queue pair %u belongs to a queue that survives it; only one of "
			"another queue can be handed over",
			q->id);
	if (q->multi)
		return sio_nvme_fail(
			-EINVAL,
			"queue pair %u has a completion queue for several submission queues; only "
			"one with a completion queue of its own can be handed over",
			q->id);
	if (q->cmb || q->pushes)
		return sio_nvme_fail(
			-EINVAL,
			"queue pair %u has its submission queue in %s memory; only one with its "
			"queues in memory of hosts can be handed over",
			q->id, q->cmb ? "the drive's own" : "another device's");
	if (q->counters.submitted || sio_nvme_in_flight(q))
		return sio_nvme_fail(
			-EBUSY,
			"commands were submitted to queue pair %u; only a new one can be handed "
			"over",
			q->id);
	*ret = (struct smartio_nvme_raw){.size = sizeof(*ret),
					 .sq = q->sq_mem->remote,
					 .cq = q->cq_mem->remote,
					 .bar = q->n->bar,
					 .sq_doorbell = DOORBELLS + 2 * q->id * q->n->stride,
					 .cq_doorbell = DOORBELLS + (2 * q->id + 1) * q->n->stride,
					 .id = q->id,
					 .entries = q->entries,
					 .namespace_id = q->nsid,
					 .block_size = (uint32_t)q->block_size,
					 .first = q->first,
					 .blocks = q->blocks,
					 .max_transfer = q->max_transfer,
					 .generation = q->generation,
					 .device = q->leg->d.handle,
					 .interrupt = q->interrupt};
	/* As of a queue that is dead, nothing is submitted or polled any more. */
	q->error = -EBUSY;
	q->handed_over = true;
	q->free = NULL;
	return 0;
}

uint64_t smartio_nvme_buffer_address(const struct smartio_nvme_buffer *b)
{
	return b->ioaddr;
}
