/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues in another host's memory than the data of their commands. */
#ifndef NVME_USER_FAR_H
#define NVME_USER_FAR_H

#include <stdbool.h>
#include <stdint.h>

struct sio_nvme_doorbells;
struct smartio_nvme_queue;

/*
 * Reads a doorbell, which the drive answers behind all that it wrote. Return: whether it has
 * answered, and its path has carried all since the pair was made, so that the data of completions
 * that were read before are here. False: the path to the drive is lost, which reads as ones, or it
 * was and is back, or the queue is gone; those completions do not count.
 */
bool sio_nvme_far_pushed(const struct smartio_nvme_queue *q);
/*
 * Before the first command of a new pair, whose doorbells were taken. Can they be used for that?
 * What a drive answers is the vendor's (NVMe 1.4, section 3.1), and ones would be no answer.
 * -ENETDOWN.
 */
int sio_nvme_far_begin(struct smartio_nvme_queue *q);
/* Ends that. One that was not begun is fine. */
void sio_nvme_far_end(struct smartio_nvme_queue *q);
/*
 * Behind the deletion of a submission queue: when it returns, none of what the drive wrote for its
 * commands is on its way any more. @b: the doorbells of that pair; NULL: it was never used.
 */
void sio_nvme_far_settle(const struct sio_nvme_doorbells *b);

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
