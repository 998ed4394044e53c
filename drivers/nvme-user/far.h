/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues in another host's memory than the data of their commands. */
#ifndef NVME_USER_FAR_H
#define NVME_USER_FAR_H

#include <stdbool.h>
#include <stdint.h>

struct smartio_nvme_queue;

/*
 * Reads a doorbell, which the drive answers behind all that it wrote. Return: whether it has
 * answered, so that the data of completions that were read before are here. False: the path to the
 * drive is lost, which reads as ones, or the queue is gone; those completions do not count.
 */
bool sio_nvme_far_pushed(const struct smartio_nvme_queue *q);
/*
 * Can the drive's doorbells be used for that? What a drive answers is the vendor's (NVMe 1.4,
 * section 3.1), and ones would be no answer. -ENETDOWN.
 */
int sio_nvme_far_check(const struct smartio_nvme_queue *q);

/*
 * The queue's completions arrive in q->cq_mem. A poll finds them in memory of this process, in the
 * same places, when their data are here. -ENOMEM.
 */
int sio_nvme_far_use(struct smartio_nvme_queue *q);
/*
 * Moves what has arrived there. Return: 1: a poll finds some; 0; -ENETDOWN: what has arrived does
 * not count, for the path is lost.
 */
int sio_nvme_far_take(struct smartio_nvme_queue *q);
/* Has the next completion arrived in q->cq_mem? A check only. */
bool sio_nvme_far_waits(const struct smartio_nvme_queue *q);

#endif
