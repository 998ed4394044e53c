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

/* Names of the task's state; at: completions. */
enum { ACCEL_NVME_SENT, ACCEL_NVME_TAIL, ACCEL_NVME_HEAD, ACCEL_NVME_ROUND, ACCEL_NVME_BEGUN };

ACCEL_FUNCTION int accel_nvme_valid(struct accel *a, const struct accel_task *t)
{
	const uint64_t bytes = ACCEL_NVME_JOB(a, t, bytes);
	const uint64_t entries = ACCEL_NVME_JOB(a, t, entries);
	const uint64_t depth = ACCEL_NVME_JOB(a, t, depth);

	return entries >= 2 && entries <= 65536 && depth > 0 && depth < entries && depth < 0x8000 &&
	       ACCEL_NVME_JOB(a, t, tail) < entries && ACCEL_NVME_JOB(a, t, head) < entries &&
	       bytes >= 512 && (bytes <= ACCEL_NVME_PAGE || bytes == 2 * ACCEL_NVME_PAGE) &&
	       (bytes & (bytes - 1)) == 0 && ACCEL_NVME_JOB(a, t, data) % ACCEL_NVME_PAGE == 0 &&
	       ACCEL_NVME_JOB(a, t, commands) > 0;
}

ACCEL_FUNCTION void accel_nvme_begin(struct accel *a, struct accel_task *t)
{
	t->state[ACCEL_NVME_TAIL] = ACCEL_NVME_JOB(a, t, tail);
	t->state[ACCEL_NVME_HEAD] = ACCEL_NVME_JOB(a, t, head);
	t->state[ACCEL_NVME_ROUND] = ACCEL_NVME_JOB(a, t, round);
	t->state[ACCEL_NVME_BEGUN] = 1;
}

/* For the next job. */
ACCEL_FUNCTION void accel_nvme_end(struct accel *a, const struct accel_task *t)
{
	const uint64_t job = t->argument[0];

	accel_store64(a, job + offsetof(struct sio_accel_nvme_job, tail),
		      t->state[ACCEL_NVME_TAIL]);
	accel_store64(a, job + offsetof(struct sio_accel_nvme_job, head),
		      t->state[ACCEL_NVME_HEAD]);
	accel_store64(a, job + offsetof(struct sio_accel_nvme_job, round),
		      t->state[ACCEL_NVME_ROUND]);
}

/* Command number @n, at the tail. */
ACCEL_FUNCTION void accel_nvme_put(struct accel *a, const struct accel_task *t, uint64_t n)
{
	const uint64_t at = ACCEL_NVME_JOB(a, t, sq) + t->state[ACCEL_NVME_TAIL] * 64;
	const uint64_t bytes = ACCEL_NVME_JOB(a, t, bytes);
	const uint64_t blocks = ACCEL_NVME_JOB(a, t, blocks);
	const uint64_t data = ACCEL_NVME_JOB(a, t, data) + n * bytes;

	accel_store64(a, at,
		      ACCEL_NVME_JOB(a, t, opcode) | (n & 0x7fff) << 16 |
			      ACCEL_NVME_JOB(a, t, namespace_id) << 32);
	accel_store64(a, at + 8, 0);
	accel_store64(a, at + 16, 0);
	accel_store64(a, at + 24, data);
	accel_store64(a, at + 32, bytes > ACCEL_NVME_PAGE ? data + ACCEL_NVME_PAGE : 0);
	accel_store64(a, at + 40, ACCEL_NVME_JOB(a, t, lba) + n * blocks);
	accel_store64(a, at + 48, blocks - 1);
	accel_store64(a, at + 56, 0);
}

/* Return: how many were sent. */
ACCEL_FUNCTION unsigned accel_nvme_send(struct accel *a, struct accel_task *t)
{
	const uint64_t commands = ACCEL_NVME_JOB(a, t, commands);
	const uint64_t depth = ACCEL_NVME_JOB(a, t, depth);
	const uint64_t entries = ACCEL_NVME_JOB(a, t, entries);
	unsigned n = 0;

	while (n < ACCEL_NVME_BATCH && t->state[ACCEL_NVME_SENT] < commands &&
	       t->state[ACCEL_NVME_SENT] - t->at < depth) {
		accel_nvme_put(a, t, t->state[ACCEL_NVME_SENT]++);
		t->state[ACCEL_NVME_TAIL] = (t->state[ACCEL_NVME_TAIL] + 1) % entries;
		n++;
	}
	if (n == 0)
		return 0;
	accel_fence(a);
	accel_store32(a, ACCEL_NVME_JOB(a, t, sq_doorbell), (uint32_t)t->state[ACCEL_NVME_TAIL]);
	return n;
}

/* Return: how many were taken. One that is no success stands in the task's result. */
ACCEL_FUNCTION unsigned accel_nvme_take(struct accel *a, struct accel_task *t)
{
	const uint64_t cq = ACCEL_NVME_JOB(a, t, cq), entries = ACCEL_NVME_JOB(a, t, entries);
	unsigned n = 0;

	while (n < ACCEL_NVME_BATCH && t->at < t->state[ACCEL_NVME_SENT]) {
		const uint32_t last = accel_load32(a, cq + t->state[ACCEL_NVME_HEAD] * 16 + 12);

		if ((last >> 16 & 1) == (t->state[ACCEL_NVME_ROUND] & 1))
			break; /* of the round before */
		if (last >> 17 & 0x7ff)
			t->result = last >> 17 & 0x7ff;
		t->state[ACCEL_NVME_HEAD] = (t->state[ACCEL_NVME_HEAD] + 1) % entries;
		t->state[ACCEL_NVME_ROUND] += t->state[ACCEL_NVME_HEAD] == 0;
		t->at++;
		n++;
	}
	if (n)
		accel_store32(a, ACCEL_NVME_JOB(a, t, cq_doorbell),
			      (uint32_t)t->state[ACCEL_NVME_HEAD]);
	return n;
}

/*
 * 0: where a struct sio_accel_nvme_job lies. Result: commands; of one that gave up: the status of
 * the drive. It gives up when nothing is in flight any more.
 */
ACCEL_FUNCTION enum accel_progress accel_kernel_nvme(struct accel *a, struct accel_task *t)
{
	unsigned sent = 0, taken;

	if (t->argument[0] & 7 || !accel_nvme_valid(a, t))
		return ACCEL_REFUSES;
	if (!t->state[ACCEL_NVME_BEGUN])
		accel_nvme_begin(a, t);
	if (t->result == 0)
		sent = accel_nvme_send(a, t);
	taken = accel_nvme_take(a, t);
	if (t->result && t->at == t->state[ACCEL_NVME_SENT]) {
		accel_nvme_end(a, t);
		return ACCEL_FAILS;
	}
	if (!t->result && t->at == ACCEL_NVME_JOB(a, t, commands)) {
		accel_nvme_end(a, t);
		t->result = t->at;
		return ACCEL_DONE;
	}
	return sent || taken ? ACCEL_MORE : ACCEL_WAITS;
}

#endif
