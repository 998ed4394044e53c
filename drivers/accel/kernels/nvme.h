/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A consumer of an NVMe drive: it builds commands, rings the drive's doorbells and polls
 * completions by itself; no processor takes part. The queue pair is its own, made by the drive's
 * driver. Source: NVM Express Base Specification 1.4, sections 4.1 to 4.6.
 */
#ifndef SMARTIO_ACCEL_NVME_H
#define SMARTIO_ACCEL_NVME_H

#include <stddef.h>

#include "kernel.h"
#include "smartio/acceldev.h"

#define ACCEL_NVME_BATCH 16u /* commands, and completions, of one part */
#define ACCEL_NVME_PAGE 4096u

#define ACCEL_NVME_JOB(a, t, field)                                                                \
	accel_load64(a, (t)->argument[0] + offsetof(struct sio_accel_nvme_job, field))

/* Indices of the task's state; its @at counts the completions. */
enum { ACCEL_NVME_SENT, ACCEL_NVME_TAIL, ACCEL_NVME_HEAD, ACCEL_NVME_ROUND, ACCEL_NVME_BEGUN };

/* Loads the job, once for each part: other users of the memory may write there meanwhile. */
ACCEL_FUNCTION void accel_nvme_load(struct accel *a, const struct sio_accel_task *t,
				    struct sio_accel_nvme_job *j)
{
	j->sq = ACCEL_NVME_JOB(a, t, sq);
	j->cq = ACCEL_NVME_JOB(a, t, cq);
	j->sq_doorbell = ACCEL_NVME_JOB(a, t, sq_doorbell);
	j->cq_doorbell = ACCEL_NVME_JOB(a, t, cq_doorbell);
	j->entries = ACCEL_NVME_JOB(a, t, entries);
	j->depth = ACCEL_NVME_JOB(a, t, depth);
	j->tail = ACCEL_NVME_JOB(a, t, tail);
	j->head = ACCEL_NVME_JOB(a, t, head);
	j->round = ACCEL_NVME_JOB(a, t, round);
	j->opcode = ACCEL_NVME_JOB(a, t, opcode);
	j->namespace_id = ACCEL_NVME_JOB(a, t, namespace_id);
	j->lba = ACCEL_NVME_JOB(a, t, lba);
	j->blocks = ACCEL_NVME_JOB(a, t, blocks);
	j->bytes = ACCEL_NVME_JOB(a, t, bytes);
	j->data = ACCEL_NVME_JOB(a, t, data);
	j->commands = ACCEL_NVME_JOB(a, t, commands);
}

ACCEL_FUNCTION int accel_nvme_valid(const struct sio_accel_nvme_job *j)
{
	return j->entries >= 2 && j->entries <= 65536 && j->depth > 0 && j->depth < j->entries &&
	       j->depth < 0x8000 && j->tail < j->entries && j->head < j->entries &&
	       j->bytes >= 512 &&
	       (j->bytes <= ACCEL_NVME_PAGE || j->bytes == 2 * ACCEL_NVME_PAGE) &&
	       (j->bytes & (j->bytes - 1)) == 0 && j->data % ACCEL_NVME_PAGE == 0 &&
	       j->commands > 0;
}

ACCEL_FUNCTION void accel_nvme_begin(struct sio_accel_task *t, const struct sio_accel_nvme_job *j)
{
	t->state[ACCEL_NVME_TAIL] = j->tail;
	t->state[ACCEL_NVME_HEAD] = j->head;
	t->state[ACCEL_NVME_ROUND] = j->round;
	t->state[ACCEL_NVME_BEGUN] = 1;
}

/* Clears the state for the next job. */
ACCEL_FUNCTION void accel_nvme_end(struct accel *a, const struct sio_accel_task *t)
{
	const uint64_t job = t->argument[0];

	accel_store64(a, job + offsetof(struct sio_accel_nvme_job, tail),
		      t->state[ACCEL_NVME_TAIL]);
	accel_store64(a, job + offsetof(struct sio_accel_nvme_job, head),
		      t->state[ACCEL_NVME_HEAD]);
	accel_store64(a, job + offsetof(struct sio_accel_nvme_job, round),
		      t->state[ACCEL_NVME_ROUND]);
}

/* Writes command number @n to the tail of the submission queue. */
ACCEL_FUNCTION void accel_nvme_put(struct accel *a, const struct sio_accel_task *t,
				   const struct sio_accel_nvme_job *j, uint64_t n)
{
	const uint64_t at = j->sq + t->state[ACCEL_NVME_TAIL] * 64, data = j->data + n * j->bytes;

	accel_store64(a, at, j->opcode | (n & 0x7fff) << 16 | j->namespace_id << 32);
	accel_store64(a, at + 8, 0);
	accel_store64(a, at + 16, 0);
	accel_store64(a, at + 24, data);
	accel_store64(a, at + 32, j->bytes > ACCEL_NVME_PAGE ? data + ACCEL_NVME_PAGE : 0);
	accel_store64(a, at + 40, j->lba + n * j->blocks);
	accel_store64(a, at + 48, j->blocks - 1);
	accel_store64(a, at + 56, 0);
}

/* Sends as many commands as fit. Return: their number. */
ACCEL_FUNCTION unsigned accel_nvme_send(struct accel *a, struct sio_accel_task *t,
					const struct sio_accel_nvme_job *j)
{
	unsigned n = 0;

	while (n < ACCEL_NVME_BATCH && t->state[ACCEL_NVME_SENT] < j->commands &&
	       t->state[ACCEL_NVME_SENT] - t->at < j->depth) {
		accel_nvme_put(a, t, j, t->state[ACCEL_NVME_SENT]++);
		t->state[ACCEL_NVME_TAIL] = (t->state[ACCEL_NVME_TAIL] + 1) % j->entries;
		n++;
	}
	if (n == 0)
		return 0;
	accel_fence(a);
	accel_store32(a, j->sq_doorbell, (uint32_t)t->state[ACCEL_NVME_TAIL]);
	return n;
}

/*
 * Takes the completions that have arrived. Return: their number. A status that is not success
 * becomes the task's result.
 */
ACCEL_FUNCTION unsigned accel_nvme_take(struct accel *a, struct sio_accel_task *t,
					const struct sio_accel_nvme_job *j)
{
	unsigned n = 0;

	while (n < ACCEL_NVME_BATCH && t->at < t->state[ACCEL_NVME_SENT]) {
		const uint32_t last = accel_load32(a, j->cq + t->state[ACCEL_NVME_HEAD] * 16 + 12);

		if ((last >> 16 & 1) == (t->state[ACCEL_NVME_ROUND] & 1))
			break; /* of the round before */
		if (last >> 17 & 0x7ff)
			t->result = last >> 17 & 0x7ff;
		t->state[ACCEL_NVME_HEAD] = (t->state[ACCEL_NVME_HEAD] + 1) % j->entries;
		t->state[ACCEL_NVME_ROUND] += t->state[ACCEL_NVME_HEAD] == 0;
		t->at++;
		n++;
	}
	if (n)
		accel_store32(a, j->cq_doorbell, (uint32_t)t->state[ACCEL_NVME_HEAD]);
	return n;
}

/*
 * Argument 0: the address of a struct sio_accel_nvme_job. Result: the number of commands, or, of a
 * job that gave up, the status of the drive. It gives up only when nothing is in flight any more.
 */
ACCEL_FUNCTION enum sio_accel_progress accel_kernel_nvme(struct accel *a, struct sio_accel_task *t)
{
	struct sio_accel_nvme_job j;
	unsigned sent = 0, taken;

	if (t->argument[0] & 7)
		return SIO_ACCEL_KERNEL_REFUSES;
	accel_nvme_load(a, t, &j);
	if (!accel_nvme_valid(&j))
		return SIO_ACCEL_KERNEL_REFUSES;
	if (!t->state[ACCEL_NVME_BEGUN])
		accel_nvme_begin(t, &j);
	if (t->result == 0)
		sent = accel_nvme_send(a, t, &j);
	taken = accel_nvme_take(a, t, &j);
	if (t->result && t->at == t->state[ACCEL_NVME_SENT]) {
		accel_nvme_end(a, t);
		return SIO_ACCEL_KERNEL_FAILS;
	}
	if (!t->result && t->at == j.commands) {
		accel_nvme_end(a, t);
		t->result = t->at;
		return SIO_ACCEL_KERNEL_DONE;
	}
	return sent || taken ? SIO_ACCEL_KERNEL_MORE : SIO_ACCEL_KERNEL_WAITS;
}

#endif
