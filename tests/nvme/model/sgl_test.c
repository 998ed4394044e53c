/* SPDX-License-Identifier: BSD-2-Clause */
/* Scatter gather lists (NVMe 1.4, section 4.4): random ones against a copy, and wrong ones. */
#include "rig.h"

#include <endian.h>
#include <string.h>

#include "../../lib/random.h"

#define BLOCK 512u
enum { DATA = 0x00, BUCKET = 0x10, SEGMENT = 0x20, LAST = 0x30, KEYED = 0x40, VENDOR = 0xf0 };

struct sgl {
	uint64_t addr;
	uint32_t len;
	uint8_t reserved[3], type;
};

static struct sgl sgl(uint64_t addr, size_t len, unsigned type)
{
	return (struct sgl){
		.addr = htole64(addr), .len = htole32((uint32_t)len), .type = (uint8_t)type};
}

static struct emu_nvme_sqe command(uint8_t opcode, uint64_t lba, uint32_t blocks, struct sgl first)
{
	struct emu_nvme_sqe c = rig_rw(opcode, lba, blocks, 0, 0);

	c.flags = 0x40;
	memcpy(&c.prp1, &first, sizeof(first));
	return c;
}

static int setup(void **state)
{
	rig_setup(state);
	rig_pair(*state, 1, 64);
	return 0;
}

static void fill(struct rig *r, uint64_t addr, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)rig_at(r, addr))[i] = (uint8_t)(i * 131 + i / 251 + seed);
}

/* One descriptor, in the command itself: at any byte. */
static void a_block_is_in_the_command_4_4(void **state)
{
	struct rig *r = *state;
	uint64_t from = rig_alloc(r, 65536) + 3, to = rig_alloc(r, 65536) + 1;

	fill(r, from, 16384, 1);
	assert_int_equal(rig_do(r, 1, command(nvme_cmd_write, 7, 32, sgl(from, 16384, DATA)), NULL),
			 0);
	assert_int_equal(rig_do(r, 1, command(nvme_cmd_read, 7, 32, sgl(to, 16384, DATA)), NULL),
			 0);
	assert_memory_equal(rig_at(r, from), rig_at(r, to), 16384);
	assert_int_equal(
		rig_do(r, 1, command(nvme_cmd_compare, 7, 32, sgl(from, 16384, DATA)), NULL), 0);
	((uint8_t *)rig_at(r, from))[16383]++;
	assert_int_equal(
		rig_do(r, 1, command(nvme_cmd_compare, 7, 32, sgl(from, 16384, DATA)), NULL),
		(unsigned)NVME_SCT_MEDIA << NVME_SCT_SHIFT | NVME_SC_COMPARE_FAILED);
}

/*
 * A list for @len bytes, which lie in pieces of the random lengths, one behind the other from
 * @data on; and in segments of random lengths.
 */
static struct sgl scatter(struct rig *r, uint64_t *rng, uint64_t data, size_t len)
{
	struct sgl first, *link = &first;
	uint64_t segments = rig_alloc(r, 65536);
	unsigned n_segments = 0;

	while (len > 0) {
		uint32_t n = 1 + (uint32_t)(random_next(rng) % 6), i;
		struct sgl *at = rig_at(r, segments);

		*link = sgl(segments, 0, LAST);
		if (link != &first || n_segments)
			first.type = SEGMENT;
		for (i = 0; i < n && len > 0; i++) {
			size_t part = random_next(rng) % 5 ? 1 + random_next(rng) % 3000 : 0;

			if (part > len || n_segments > 20)
				part = len;
			at[i] = sgl(data, part, DATA);
			data += part;
			len -= part;
		}
		link->len = htole32((i + (len > 0)) * (uint32_t)sizeof(*at));
		if (link != &first)
			link->type = len ? SEGMENT : LAST;
		else
			link->type = len ? SEGMENT : LAST;
		link = &at[i];
		segments += (i + 1) * sizeof(*at);
		n_segments++;
	}
	return first;
}

static void random_lists_move_what_they_name_4_4(void **state)
{
	struct rig *r = *state;
	uint64_t from = rig_alloc(r, 1 << 20), to = rig_alloc(r, 1 << 20), rng = 99;

	for (unsigned round = 0; round < 20; round++) {
		uint32_t blocks = 1 + (uint32_t)(random_next(&rng) % 120);
		size_t len = (size_t)blocks * BLOCK;
		uint64_t a = from + random_next(&rng) % 4096, b = to + random_next(&rng) % 4096;

		fill(r, a, len, round);
		memset(rig_at(r, to), 0xee, 1 << 20);
		assert_int_equal(
			rig_do(r, 1,
			       command(nvme_cmd_write, round * 3, blocks, scatter(r, &rng, a, len)),
			       NULL),
			0);
		assert_int_equal(
			rig_do(r, 1,
			       command(nvme_cmd_read, round * 3, blocks, scatter(r, &rng, b, len)),
			       NULL),
			0);
		assert_memory_equal(rig_at(r, a), rig_at(r, b), len);
		assert_int_equal(((uint8_t *)rig_at(r, b))[len], 0xee);
	}
}

static void ranges_come_by_a_list_too_6_7(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 4096);
	struct nvme_dsm_range range = {.nlb = htole32(1), .slba = htole64(9)};
	struct emu_nvme_sqe c = command(nvme_cmd_dsm, 0, 1, sgl(data + 5, sizeof(range), DATA));

	c.cdw10 = 0;
	c.cdw11 = htole32(1 << 2);
	c.cdw12 = 0;
	memcpy(rig_at(r, data + 5), &range, sizeof(range));
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	assert_int_equal(rig_counter(r, "commands_deallocate"), 1);
}

static void wrong_ones_move_nothing_4_4(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 8192), list = rig_alloc(r, 8192), next = list + 4096;
	struct sgl *at = rig_at(r, list), *then = rig_at(r, next);
	const struct {
		struct sgl first, list[2], then;
		unsigned status;
	} bad[] = {
		/* In the command. */
		{.first = sgl(data, 511, DATA), .status = RIG_SC(SGL_INVALID_DATA)},
		{.first = sgl(data, 513, DATA), .status = RIG_SC(SGL_INVALID_DATA)},
		{.first = sgl(data, 0, DATA), .status = RIG_SC(SGL_INVALID_DATA)},
		{.first = sgl(UINT64_MAX - 100, 512, DATA), .status = RIG_SC(SGL_INVALID_DATA)},
		{.first = sgl(data, 512, DATA | 1), .status = RIG_SC(SGL_INVALID_TYPE)},
		{.first = sgl(data, 512, BUCKET), .status = RIG_SC(SGL_INVALID_TYPE)},
		{.first = sgl(data, 512, KEYED), .status = RIG_SC(SGL_INVALID_TYPE)},
		{.first = sgl(data, 512, VENDOR), .status = RIG_SC(SGL_INVALID_TYPE)},
		/* The segment. */
		{.first = sgl(list, 0, LAST), .status = RIG_SC(SGL_INVALID_LAST)},
		{.first = sgl(list, 24, LAST), .status = RIG_SC(SGL_INVALID_LAST)},
		{.first = sgl(list, 8, SEGMENT), .status = RIG_SC(SGL_INVALID_LAST)},
		{.first = sgl(UINT64_MAX - 8, 16, LAST), .status = RIG_SC(SGL_INVALID_DATA)},
		{.first = sgl(0x1000, 16, LAST), .status = RIG_SC(DATA_XFER_ERROR)},
		/* What is in it. */
		{.first = sgl(list, 32, LAST),
		 .list = {sgl(data, 256, DATA), sgl(data, 255, DATA)},
		 .status = RIG_SC(SGL_INVALID_DATA)},
		{.first = sgl(list, 32, LAST),
		 .list = {sgl(data, 512, DATA), sgl(data, 1, DATA)},
		 .status = RIG_SC(SGL_INVALID_DATA)},
		{.first = sgl(list, 32, LAST),
		 .list = {sgl(data, 256, DATA), sgl(data, 256, KEYED)},
		 .status = RIG_SC(SGL_INVALID_TYPE)},
		{.first = sgl(list, 32, SEGMENT),
		 .list = {sgl(next, 16, LAST), sgl(data, 512, DATA)},
		 .then = sgl(data, 512, DATA),
		 .status = RIG_SC(SGL_INVALID_COUNT)},
		/* Behind the last one. */
		{.first = sgl(list, 32, LAST),
		 .list = {sgl(data, 256, DATA), sgl(next, 16, LAST)},
		 .then = sgl(data, 256, DATA),
		 .status = RIG_SC(SGL_INVALID_LAST)},
		/* Without end. */
		{.first = sgl(list, 32, SEGMENT),
		 .list = {sgl(data, 0, DATA), sgl(list, 32, SEGMENT)},
		 .status = RIG_SC(SGL_INVALID_COUNT)},
	};

	fill(r, data, 512, 3);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t check = rig_alloc(r, 4096);

		memcpy(at, bad[i].list, sizeof(bad[i].list));
		*then = bad[i].then;
		assert_int_equal(rig_do(r, 1, command(nvme_cmd_write, 0, 1, bad[i].first), NULL),
				 bad[i].status);
		assert_int_equal(rig_do(r, 1, rig_rw(nvme_cmd_read, 0, 1, check, 0), NULL), 0);
		for (unsigned k = 0; k < 512; k++)
			assert_int_equal(((uint8_t *)rig_at(r, check))[k], 0);
	}
}

static void other_fields_are_as_ever_4_2(void **state)
{
	struct rig *r = *state;
	uint64_t data = rig_alloc(r, 4096);
	struct emu_nvme_sqe c = command(nvme_cmd_read, 0, 1, sgl(data, 512, DATA));

	c.flags = 0x80; /* metadata by a list, of which there is none */
	assert_int_equal(rig_do(r, 1, c, NULL), 0);
	c.flags = 0xc0;
	assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(INVALID_FIELD));
	c.flags = 0x41;
	assert_int_equal(rig_do(r, 1, c, NULL), RIG_SC(INVALID_FIELD));
	/* Not of the admin queue. */
	c = (struct emu_nvme_sqe){.opcode = nvme_admin_identify,
				  .flags = 0x40,
				  .cdw10 = htole32(NVME_IDENTIFY_CNS_CTRL),
				  .prp1 = htole64(data)};
	assert_int_equal(rig_do(r, 0, c, NULL), RIG_SC(INVALID_FIELD));
}

int main(void)
{
#define test(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		test(a_block_is_in_the_command_4_4), test(random_lists_move_what_they_name_4_4),
		test(ranges_come_by_a_list_too_6_7), test(wrong_ones_move_nothing_4_4),
		test(other_fields_are_as_ever_4_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
