/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stamped blocks, and what is known of each: which write was acknowledged last, and which were
 * sent since. The test keeps it for its programs, which may be killed at any instruction.
 */
#ifndef TESTS_NVME_DRIVER_INTEGRITY_H
#define TESTS_NVME_DRIVER_INTEGRITY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 512u
#define PART 4096u /* blocks that each writer has */

/* What a block holds, over and over. The writes of a writer are numbered from 1. */
struct stamp {
	uint64_t block;
	uint32_t writer, number;
};

/* A write that is not acknowledged was done or was not, each block by itself. */
struct known {
	uint32_t acked, sent;
};

static inline void stamp_block(uint8_t *to, uint64_t block, uint32_t writer, uint32_t number)
{
	const struct stamp s = {.block = block, .writer = writer, .number = number};

	for (unsigned i = 0; i < BLOCK; i += sizeof(s))
		memcpy(to + i, &s, sizeof(s));
}

static inline uint32_t load_number(const uint32_t *number)
{
	return __atomic_load_n(number, __ATOMIC_SEQ_CST);
}

static inline void store_number(uint32_t *number, uint32_t value)
{
	__atomic_store_n(number, value, __ATOMIC_SEQ_CST);
}

/*
 * A block that was read: all of it is of one write of @writer to that block, whose number is
 * @from to @to; 0: it was never written, and is empty.
 * Return: the number; -1: it is not so, and stderr says what is there.
 */
static inline int64_t check_block(const uint8_t *data, uint64_t block, uint32_t writer,
				  uint32_t from, uint32_t to)
{
	uint8_t want[BLOCK] = {0};
	struct stamp s;

	memcpy(&s, data, sizeof(s));
	if (s.number)
		stamp_block(want, block, writer, s.number);
	if (memcmp(data, want, BLOCK) == 0 && s.number >= from && s.number <= to)
		return s.number;
	fprintf(stderr,
		"block %llu of writer %u, writes %u to %u: found block %llu of writer %u, write %u%s\n",
		(unsigned long long)block, writer, from, to, (unsigned long long)s.block, s.writer,
		s.number, memcmp(data, want, BLOCK) ? ", or not all of it" : "");
	return -1;
}

/* Of a write that is about to be submitted. */
static inline void note_sent(struct known *k, uint32_t blocks, uint32_t number)
{
	for (uint32_t i = 0; i < blocks; i++)
		store_number(&k[i].sent, number);
}

static inline void note_acked(struct known *k, uint32_t blocks, uint32_t number)
{
	for (uint32_t i = 0; i < blocks; i++)
		store_number(&k[i].acked, number);
}

/*
 * The writer itself has read it while no write of it was in flight: whatever is there stays.
 * Return: how many blocks are wrong.
 */
static inline unsigned settle_blocks(const uint8_t *data, uint64_t block, uint32_t writer,
				     struct known *k, uint32_t blocks)
{
	unsigned wrong = 0;

	for (uint32_t i = 0; i < blocks; i++) {
		int64_t found = check_block(data + (size_t)i * BLOCK, block + i, writer,
					    load_number(&k[i].acked), load_number(&k[i].sent));

		if (found < 0) {
			wrong++;
			continue;
		}
		store_number(&k[i].acked, (uint32_t)found);
		store_number(&k[i].sent, (uint32_t)found);
	}
	return wrong;
}

#endif
