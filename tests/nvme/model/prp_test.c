/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PRP entries and lists: random layouts against a copy made the obvious way, which knows only
 * which byte of the transfer lies where.
 */
#include "rig.h"

#include <endian.h>
#include <string.h>

#include "../../lib/random.h"

#define PAGE 4096u
#define MAX_BLOCKS 2048u /* 1 MiB */
#define POOL 600u	 /* pages that hold data */
#define LISTS 2u	 /* pages that hold lists */

struct layout {
	uint64_t page[MAX_BLOCKS * 512 / PAGE + 2]; /* address of each page of the transfer */
	unsigned n;
	uint64_t prp1, prp2;
};

static uint64_t pool, lists;

static void shuffle(uint64_t *seed, uint64_t *page, unsigned n)
{
	static uint16_t order[POOL];

	for (unsigned i = 0; i < POOL; i++)
		order[i] = (uint16_t)i;
	for (unsigned i = 0; i < n; i++) {
		unsigned j = i + random_below(seed, POOL - i);
		uint16_t t = order[i];

		order[i] = order[j];
		order[j] = t;
		page[i] = pool + (uint64_t)order[i] * PAGE;
	}
}

/* Write the addresses of pages 1... to lists that start at random places of random pages. */
static void write_lists(struct rig *r, uint64_t *seed, struct layout *l)
{
	unsigned list = 0, slot = random_below(seed, 4) ? random_below(seed, 512) : 511;

	l->prp2 = lists + slot * 8;
	for (unsigned i = 1; i < l->n; i++) {
		if (slot == 511 && i + 1 < l->n) {
			uint64_t next;

			list++;
			assert_true(list < LISTS);
			next = lists + list * PAGE;
			slot = 0;
			*(uint64_t *)rig_at(r, lists + (list - 1) * PAGE + 511 * 8) = htole64(next);
		}
		*(uint64_t *)rig_at(r, lists + list * PAGE + slot * 8) = htole64(l->page[i]);
		slot++;
	}
}

static void make_layout(struct rig *r, uint64_t *seed, uint32_t bytes, struct layout *l)
{
	uint32_t offset = random_below(seed, 2) ? random_below(seed, PAGE / 4) * 4 : 0;

	l->n = (offset + bytes + PAGE - 1) / PAGE;
	shuffle(seed, l->page, l->n);
	l->page[0] += offset;
	l->prp1 = l->page[0];
	l->prp2 = l->n > 1 ? l->page[1] : random_next(seed);
	if (l->n > 2)
		write_lists(r, seed, l);
}

/* Where byte @at of the transfer lies. */
static uint64_t place(const struct layout *l, uint32_t at)
{
	uint32_t first = PAGE - l->page[0] % PAGE;

	if (at < first)
		return l->page[0] + at;
	return l->page[1 + (at - first) / PAGE] + (at - first) % PAGE;
}

static void gather(struct rig *r, const struct layout *l, uint8_t *out, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i += 4)
		memcpy(out + i, rig_at(r, place(l, i)), 4);
}

static uint32_t random_blocks(uint64_t *seed)
{
	switch (random_below(seed, 4)) {
	case 0:
		return 1 + random_below(seed, 24);
	case 1:
		return MAX_BLOCKS - random_below(seed, 16);
	default:
		return 1 + random_below(seed, 400);
	}
}

static void layouts_equal_a_plain_copy_4_3(void **state)
{
	static uint8_t shadow[RIG_BLOCKS * 512], got[MAX_BLOCKS * 512];
	struct rig *r = *state;
	uint64_t seed = 0x5eed;
	struct layout l;

	pool = rig_alloc(r, POOL * PAGE);
	lists = rig_alloc(r, LISTS * PAGE);
	rig_pair(r, 1, 8);
	for (unsigned round = 0; round < 400; round++) {
		uint32_t blocks = random_blocks(&seed), bytes = blocks * 512;
		uint64_t lba = random_below(&seed, RIG_BLOCKS - blocks + 1);
		bool is_write = random_below(&seed, 2);
		uint8_t op = is_write ? nvme_cmd_write : nvme_cmd_read;

		make_layout(r, &seed, bytes, &l);
		if (is_write) {
			for (uint32_t i = 0; i < bytes; i += 4) {
				uint32_t word = (uint32_t)random_next(&seed);

				memcpy(rig_at(r, place(&l, i)), &word, 4);
			}
			gather(r, &l, shadow + lba * 512, bytes);
		}
		assert_int_equal(rig_do(r, 1, rig_rw(op, lba, blocks, l.prp1, l.prp2), NULL), 0);
		if (!is_write) {
			gather(r, &l, got, bytes);
			assert_memory_equal(got, shadow + lba * 512, bytes);
		}
	}
}

/* A read touches the pages that are named, and nothing beside them. */
static void nothing_beside_the_pages_is_written_4_3(void **state)
{
	struct rig *r = *state;
	uint64_t seed = 77;
	struct layout l;

	pool = rig_alloc(r, POOL * PAGE);
	lists = rig_alloc(r, LISTS * PAGE);
	rig_pair(r, 1, 8);
	for (unsigned round = 0; round < 20; round++) {
		uint32_t blocks = 1 + random_below(&seed, 200), bytes = blocks * 512;
		unsigned touched = 0;

		memset(rig_at(r, pool), 0xa5, POOL * PAGE);
		make_layout(r, &seed, bytes, &l);
		assert_int_equal(
			rig_do(r, 1, rig_rw(nvme_cmd_read, 0, blocks, l.prp1, l.prp2), NULL), 0);
		/* The media are zero. */
		for (const uint8_t *p = rig_at(r, pool), *end = p + POOL * PAGE; p < end; p++)
			touched += *p != 0xa5;
		assert_int_equal(touched, bytes);
	}
}

static void lists_are_fetched_no_further_than_needed_4_3(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 8 * PAGE), list = rig_alloc(r, PAGE);
	uint64_t *entry = rig_at(r, list);

	rig_pair(r, 1, 8);
	for (unsigned i = 0; i < 7; i++)
		entry[i] = htole64(data + (6 - i) * PAGE);
	r->n_calls = 0;
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 64, data + 7 * PAGE, list), NULL),
			 0);
	assert_int_equal(r->n_calls, 1 + 1 + 8 + 1);
	assert_int_equal(r->call[1].addr, list);
	assert_int_equal(r->call[1].len, 7 * 8);
	assert_false(r->call[1].is_write);
}

/* Two runs of pages, the first begun by the command itself; what is moved stays the same. */
static void pages_that_follow_one_another_move_as_one_4_3(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 9 * PAGE), list = rig_alloc(r, PAGE);
	uint64_t *entry = rig_at(r, list);
	uint8_t *mem = rig_at(r, data);

	rig_pair(r, 1, 8);
	for (unsigned i = 0; i < 7; i++)
		entry[i] = htole64(data + (i + (i < 3 ? 1 : 2)) * PAGE);
	for (unsigned i = 0; i < 9 * PAGE; i++)
		mem[i] = (uint8_t)(i / PAGE * 16 + i % 13);
	r->n_calls = 0;
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_write, 0, 64, data, list), NULL), 0);
	assert_int_equal(r->n_calls, 1 + 1 + 2 + 1);
	assert_int_equal(r->call[2].addr, data);
	assert_int_equal(r->call[2].len, 4 * PAGE);
	assert_int_equal(r->call[3].addr, data + 5 * PAGE);
	assert_int_equal(r->call[3].len, 4 * PAGE);

	memset(mem, 0, 9 * PAGE);
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 64, data, list), NULL), 0);
	for (unsigned i = 0; i < 9 * PAGE; i++)
		assert_int_equal(mem[i], i / PAGE == 4 ? 0 : (uint8_t)(i / PAGE * 16 + i % 13));

	/* Two pages, named by the command alone. */
	r->n_calls = 0;
	assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 16, data, data + PAGE), NULL), 0);
	assert_int_equal(r->n_calls, 1 + 1 + 1);
	assert_int_equal(r->call[1].len, 2 * PAGE);
}

static void offsets_that_are_not_allowed_4_3(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 8 * PAGE), list = rig_alloc(r, 2 * PAGE);
	uint64_t *entry = rig_at(r, list);

	rig_pair(r, 1, 8);
	memset(rig_at(r, data), 0xa5, 8 * PAGE);
	for (unsigned i = 0; i < 7; i++)
		entry[i] = htole64(data + (i + 1) * PAGE);
	for (unsigned k = 0; k < 2; k++) {
		uint8_t op = k ? nvme_cmd_write : nvme_cmd_read;
		const unsigned bad = RIG_SC(PRP_INVALID_OFFSET);

		for (unsigned i = 1; i < 4; i++)
			assert_int_equal(rig_do(r, 1, rig_rw(op, 0, 1, data + i, 0), NULL), bad);
		assert_int_equal(rig_do(r, 1, rig_rw(op, 0, 16, data, data + PAGE + 4), NULL), bad);
		assert_int_equal(rig_do(r, 1, rig_rw(op, 0, 64, data, list + 4), NULL), bad);
		for (unsigned i = 0; i < 7; i++) {
			entry[i] = htole64(data + (i + 1) * PAGE + 512);
			assert_int_equal(rig_do(r, 1, rig_rw(op, 0, 64, data, list), NULL), bad);
			entry[i] = htole64(data + (i + 1) * PAGE);
		}
		/* A link to the next list: only the first one may begin inside a page. */
		entry[511] = htole64(list + PAGE + 8);
		assert_int_equal(rig_do(r, 1, rig_rw(op, 0, 64, data, list + 511 * 8), NULL), bad);
	}
	for (const uint8_t *p = rig_at(r, data), *end = p + 8 * PAGE; p < end; p++)
		assert_int_equal(*p, 0xa5); /* none of them moved anything */
}

static void a_list_that_leads_to_itself_ends_4_3(void **state)
{
	struct rig *r = *state;
	uint64_t list = rig_alloc(r, PAGE);
	uint64_t *entry = rig_at(r, list);

	rig_pair(r, 1, 8);
	entry[511] = htole64(list + 511 * 8);
	r->n_calls = 0;
	assert_int_equal(
		rig_do(r, 1, rig_rw(nvme_cmd_write, 0, 64, RIG_BASE, list + 511 * 8), NULL),
		RIG_SC(PRP_INVALID_OFFSET));
	assert_true(r->n_calls < 10);
	for (unsigned i = 0; i < 512; i++)
		entry[i] = htole64(list);
	r->n_calls = 0;
	assert_int_equal(
		rig_do(r, 1, rig_rw(nvme_cmd_write, 0, 2048, RIG_BASE, list + 511 * 8), NULL), 0);
	assert_int_equal(r->n_calls, 1 + 2 + 256 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(layouts_equal_a_plain_copy_4_3),
		rig_test(nothing_beside_the_pages_is_written_4_3),
		rig_test(lists_are_fetched_no_further_than_needed_4_3),
		rig_test(pages_that_follow_one_another_move_as_one_4_3),
		rig_test(offsets_that_are_not_allowed_4_3),
		rig_test(a_list_that_leads_to_itself_ends_4_3),
	};

	return cmocka_run_group_tests_name("nvme model: PRP", tests, NULL, NULL);
}
