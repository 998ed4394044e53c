/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands with flags, without data, with scattered data; several at once; completion by call. */
#include <endian.h>
#include <stdio.h>

#include "client.h"
#include "common.h"

#define PAGE 4096u
#define BLOCK 512u

/* A dword of the entry that was submitted @back entries ago (1: the last one). */
static uint32_t entry(const struct smartio_nvme_queue *q, unsigned back, unsigned dword)
{
	size_t bytes = (size_t)(q->sq_end - q->sq), at = (size_t)(q->sqe - q->sq);

	return le32toh(
		((const volatile uint32_t *)(q->sq + (at + bytes - back * 64) % bytes))[dword]);
}

static void flags_reach_the_drive(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 16);
	struct smartio_nvme_buffer *b = buffer(n, PAGE);
	const struct smartio_nvme_piece piece = {.buffer = b, .bytes = 2 * BLOCK};
	const struct {
		uint32_t op, flags, dword12;
	} t[] = {
		{SMARTIO_NVME_READ, 0, 1},
		{SMARTIO_NVME_READ, SMARTIO_NVME_FUA, 1u << 30 | 1},
		{SMARTIO_NVME_WRITE, SMARTIO_NVME_FUA, 1u << 30 | 1},
		{SMARTIO_NVME_WRITE, SMARTIO_NVME_LIMITED_RETRY, 1u << 31 | 1},
		{SMARTIO_NVME_COMPARE, SMARTIO_NVME_FUA, 1u << 30 | 1},
		{SMARTIO_NVME_WRITE_ZEROES, SMARTIO_NVME_MAY_DEALLOCATE, 1u << 25 | 1},
		{SMARTIO_NVME_VERIFY, SMARTIO_NVME_FUA | SMARTIO_NVME_LIMITED_RETRY, 3u << 30 | 1},
	};

	(void)state;
	memset(smartio_nvme_buffer_data(b), 0, PAGE);
	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		bool data = t[i].op != SMARTIO_NVME_WRITE_ZEROES && t[i].op != SMARTIO_NVME_VERIFY;
		const struct smartio_nvme_command c = {.op = t[i].op,
						       .flags = t[i].flags,
						       .lba = 0x10 + i,
						       .blocks = 2,
						       .n_pieces = data,
						       .piece = &piece};

		assert_int_equal(smartio_nvme_submit_commands(q, &c, 1), 1);
		assert_int_equal(entry(q, 1, 0) & 0xff, t[i].op);
		assert_int_equal(entry(q, 1, 10), 0x10 + i);
		assert_int_equal(entry(q, 1, 12), t[i].dword12);
		assert_int_equal(one(q).status, 0);
	}
	smartio_nvme_close(n);
}

static void helpers_change_what_they_say(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	static uint8_t data[64 * BLOCK];
	uint8_t *media = fake_media();

	(void)state;
	memset(media, 0xee, FAKE_BLOCKS * BLOCK);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 >> 3);
	assert_ok(smartio_nvme_write_flags(q, data, 8 * BLOCK, sizeof(data), SMARTIO_NVME_FUA));
	assert_memory_equal(media + 8 * BLOCK, data, sizeof(data));
	assert_ok(smartio_nvme_compare(q, data, 8 * BLOCK, sizeof(data)));
	media[8 * BLOCK + 100] ^= 1;
	assert_int_equal(smartio_nvme_compare(q, data, 8 * BLOCK, sizeof(data)), -EILSEQ);
	assert_text("compare at 4096 of nvme0: compare failure");
	assert_ok(smartio_nvme_verify(q, 0, FAKE_BLOCKS * BLOCK));
	assert_ok(
		smartio_nvme_write_zeroes(q, 10 * BLOCK, 20 * BLOCK, SMARTIO_NVME_MAY_DEALLOCATE));
	memset(data + 2 * BLOCK, 0, 20 * BLOCK);
	data[100] ^= 1;
	assert_memory_equal(media + 8 * BLOCK, data, sizeof(data));
	assert_ok(smartio_nvme_deallocate(q, 40 * BLOCK, 5 * BLOCK));
	memset(data + 32 * BLOCK, 0, 5 * BLOCK);
	assert_memory_equal(media + 8 * BLOCK, data, sizeof(data));
	assert_int_equal(media[8 * BLOCK - 1], 0xee);
	assert_int_equal(media[72 * BLOCK], 0xee);
	assert_int_equal(smartio_nvme_deallocate(q, 0, (FAKE_BLOCKS + 1ull) * BLOCK), -ERANGE);
	assert_int_equal(smartio_nvme_write_zeroes(q, 1, BLOCK, 0), -EINVAL);
	assert_int_equal(smartio_nvme_verify(q, 0, 100), -EINVAL);
	assert_int_equal(smartio_nvme_write_zeroes(q, 0, BLOCK, 8), -EINVAL);
	assert_text("write zeroes does not allow the flags 0x8");
	smartio_nvme_close(n);
}

static void ranges_are_deallocated_together(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	struct smartio_nvme_buffer *b = buffer(n, PAGE);
	struct smartio_nvme_range *r = smartio_nvme_buffer_data(b);
	const struct smartio_nvme_piece piece = {
		.buffer = b, .offset = 64, .bytes = 3 * sizeof(*r)};
	struct smartio_nvme_command c = {
		.op = SMARTIO_NVME_DEALLOCATE, .blocks = 3, .n_pieces = 1, .piece = &piece};
	uint8_t *media = fake_media();

	(void)state;
	memset(media, 0xee, FAKE_BLOCKS * BLOCK);
	for (unsigned i = 0; i < 3; i++)
		r[4 + i] =
			(struct smartio_nvme_range){.blocks = htole32(i), .lba = htole64(10 * i)};
	assert_int_equal(smartio_nvme_submit_commands(q, &c, 1), 1);
	assert_int_equal(one(q).status, 0);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(media[i * BLOCK], i == 10 || i == 20 || i == 21 ? 0 : 0xee);
	r[6].lba = htole64(FAKE_BLOCKS - 1);
	assert_int_equal(smartio_nvme_submit_commands(q, &c, 1), -ERANGE);
	c.blocks = 257;
	assert_int_equal(smartio_nvme_submit_commands(q, &c, 1), -EINVAL);
	smartio_nvme_close(n);
}

/* In pieces of any number of pages, from whatever buffers, against one copy in a row. */
static void scattered_data_arrives_in_order(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	struct smartio_nvme_buffer *b[3] = {buffer(n, 32 * PAGE), buffer(n, 32 * PAGE),
					    buffer(n, 32 * PAGE)};
	uint8_t *flat = malloc(64 * PAGE);

	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		struct smartio_nvme_piece piece[6];
		struct smartio_nvme_command c = {
			.op = round & 1 ? SMARTIO_NVME_READ : SMARTIO_NVME_WRITE, .piece = piece};
		unsigned pieces = 1 + (unsigned)rand() % 6;
		size_t total = 0, at = 0;

		for (unsigned i = 0; i < pieces; i++) {
			struct smartio_nvme_piece *p = &piece[i];
			unsigned pages = 1 + (unsigned)rand() % 4;

			p->buffer = b[rand() % 3];
			p->offset = (4 * i + (unsigned)rand() % 2) * PAGE;
			p->bytes = pages * PAGE;
			if (i == 0 && pieces > 1) { /* from anywhere on */
				size_t skip = (unsigned)rand() % 7 * BLOCK;

				p->offset += skip;
				p->bytes -= skip;
			}
			if (i + 1 == pieces) /* to anywhere */
				p->bytes -= (unsigned)rand() % 7 * BLOCK;
			total += p->bytes;
		}
		c.n_pieces = pieces;
		c.blocks = (uint32_t)(total / BLOCK);
		c.lba = (unsigned)rand() % (FAKE_BLOCKS - c.blocks);
		for (unsigned i = 0; i < 3; i++)
			for (size_t k = 0; k < 32 * PAGE; k++)
				((uint8_t *)smartio_nvme_buffer_data(b[i]))[k] = (uint8_t)rand();
		assert_int_equal(smartio_nvme_submit_commands(q, &c, 1), 1);
		for (unsigned i = 0; i < pieces; i++)
			assert_int_equal(smartio_nvme_buffer_free(piece[i].buffer), -EBUSY);
		assert_int_equal(one(q).status, 0);
		for (unsigned i = 0; i < pieces; at += piece[i].bytes, i++)
			memcpy(flat + at,
			       (uint8_t *)smartio_nvme_buffer_data(piece[i].buffer) +
				       piece[i].offset,
			       piece[i].bytes);
		/* Read pieces may lie over each other; then the last page wins on both sides. */
		if (c.op == SMARTIO_NVME_WRITE)
			assert_memory_equal(fake_media() + c.lba * BLOCK, flat, total);
	}
	for (unsigned i = 0; i < 3; i++)
		assert_ok(smartio_nvme_buffer_free(b[i]));
	free(flat);
	smartio_nvme_close(n);
}

static void scattered_reads_fill_each_piece(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	struct smartio_nvme_buffer *a = buffer(n, 4 * PAGE), *b = buffer(n, 4 * PAGE);
	const struct smartio_nvme_piece piece[] = {
		{a, 3 * PAGE + 1024, PAGE - 1024}, {b, PAGE, 2 * PAGE}, {a, 0, BLOCK}};
	const struct smartio_nvme_command c = {.op = SMARTIO_NVME_READ,
					       .lba = 100,
					       .blocks = (3 * PAGE - 1024 + BLOCK) / BLOCK,
					       .n_pieces = 3,
					       .piece = piece};
	const uint8_t *media = fake_media() + 100 * BLOCK;

	(void)state;
	for (size_t i = 0; i < 4 * PAGE; i++)
		fake_media()[100 * BLOCK + i] = (uint8_t)(i * 31 >> 5);
	assert_int_equal(smartio_nvme_submit_commands(q, &c, 1), 1);
	assert_int_equal(one(q).status, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_memory_equal((uint8_t *)smartio_nvme_buffer_data(piece[i].buffer) +
					    piece[i].offset,
				    media, piece[i].bytes);
		media += piece[i].bytes;
	}
	smartio_nvme_close(n);
}

/* A drive that takes scatter gather lists: pieces of any dwords, by any way that sends them. */
static void lists_name_any_dwords_4_4(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = 4, .flags = SMARTIO_NVME_SURVIVE, .timeout_ms = 20};
	struct smartio_nvme_queue *q = NULL;
	struct smartio_nvme_buffer *b = buffer(n, 64 * PAGE);
	uint8_t *at = smartio_nvme_buffer_data(b), *flat = malloc(64 * PAGE);
	struct smartio_nvme_piece piece[SMARTIO_NVME_PIECES];
	struct smartio_nvme_info info;

	(void)state;
	smartio_nvme_get_info(n, &info);
	assert_int_equal(info.sgls, 1);
	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	for (unsigned round = 0; round < 200; round++) {
		struct smartio_nvme_command c = {
			.op = round & 1 ? SMARTIO_NVME_READ : SMARTIO_NVME_WRITE, .piece = piece};
		uint32_t blocks = 1 + (uint32_t)rand() % 60;
		size_t left = blocks * BLOCK, done = 0;

		for (size_t i = 0; i < 64 * PAGE; i++)
			at[i] = (uint8_t)rand();
		while (left > 0) { /* one in each page, so that none lie over each other */
			struct smartio_nvme_piece *p = &piece[c.n_pieces];
			size_t part = 4 * (1 + (size_t)rand() % 500);

			if (part > left || c.n_pieces == SMARTIO_NVME_PIECES - 1)
				part = left < PAGE ? left : PAGE;
			*p = (struct smartio_nvme_piece){.buffer = b,
							 .offset = c.n_pieces * PAGE +
								   4 * ((size_t)rand() % 500),
							 .bytes = part};
			if (c.n_pieces == SMARTIO_NVME_PIECES - 1)
				p->offset = c.n_pieces * PAGE;
			left -= part;
			c.n_pieces++;
			if (c.n_pieces == SMARTIO_NVME_PIECES)
				break;
		}
		c.blocks = (uint32_t)((blocks * BLOCK - left) / BLOCK);
		if (left % BLOCK) /* not whole blocks: leave it to another round */
			continue;
		c.lba = (unsigned)rand() % (FAKE_BLOCKS - c.blocks);
		if (round % 10 == 1) /* lost once: sent again with another pair */
			fake_fault(2, SMARTIO_NVME_READ, 1, 0);
		assert_int_equal(smartio_nvme_submit_commands(q, &c, 1), 1);
		assert_int_equal(one(q).status, 0);
		for (unsigned i = 0; i < c.n_pieces; done += piece[i].bytes, i++)
			memcpy(flat + done, at + piece[i].offset, piece[i].bytes);
		assert_memory_equal(fake_media() + c.lba * BLOCK, flat, done);
	}
	free(flat);
	smartio_nvme_close(n);
}

static void lists_have_their_limits_4_4(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = 4, .max_transfer = 32768};
	struct smartio_nvme_queue *q = NULL;
	struct smartio_nvme_buffer *b = buffer(n, 8 * PAGE);
	struct smartio_nvme_piece piece[5];
	struct smartio_nvme_command c = {.op = SMARTIO_NVME_READ, .piece = piece, .n_pieces = 4};

	(void)state;
	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	for (unsigned i = 0; i < 5; i++)
		piece[i] = (struct smartio_nvme_piece){b, i * PAGE + 8, BLOCK};
	c.blocks = 4;
	assert_int_equal(smartio_nvme_submit_commands(q, &c, 1), 1);
	assert_int_equal(entry(q, 1, 0) >> 14 & 3, 1); /* PSDT */
	assert_int_equal(one(q).status, 0);
	c.n_pieces = c.blocks = 5;
	assert_int_equal(smartio_nvme_submit_commands(q, &c, 1), -EINVAL);
	assert_text("at most 4 pieces");
	c.n_pieces = c.blocks = 2;
	piece[1].offset += 2;
	assert_int_equal(smartio_nvme_submit_commands(q, &c, 1), -EINVAL);
	assert_text("multiples of 4");
	/* What PRP entries can name they name. */
	piece[1] = (struct smartio_nvme_piece){b, PAGE, BLOCK};
	piece[0] = (struct smartio_nvme_piece){b, PAGE - BLOCK, BLOCK};
	assert_int_equal(smartio_nvme_submit_commands(q, &c, 1), 1);
	assert_int_equal(entry(q, 1, 0) >> 14 & 3, 0);
	assert_int_equal(one(q).status, 0);
	smartio_nvme_close(n);
}

static void wrong_commands_are_refused(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	struct smartio_nvme_buffer *b = buffer(n, 4 * PAGE), *strange = buffer(other, PAGE);
	const struct smartio_nvme_piece one_block = {b, 0, BLOCK}, theirs = {strange, 0, BLOCK},
					odd = {b, 2, BLOCK}, past = {b, 4 * PAGE - 4, BLOCK},
					none = {NULL, 0, BLOCK}, empty = {b, 0, 0};
	const struct smartio_nvme_piece gap[] = {{b, 0, BLOCK}, {b, PAGE, BLOCK}},
					late[] = {{b, 0, PAGE}, {b, PAGE + BLOCK, PAGE - BLOCK}};
	const struct {
		struct smartio_nvme_command c;
		int error;
		const char *text;
	} t[] = {
		{{.op = 4}, -EINVAL, "operation 0x4"},
		{{.op = SMARTIO_NVME_READ, .piece = &one_block, .n_pieces = 1},
		 -EINVAL,
		 "0 blocks"},
		{{.op = SMARTIO_NVME_READ, .blocks = 1}, -EINVAL, "in 0 pieces"},
		{{.op = SMARTIO_NVME_READ, .blocks = 1, .piece = &one_block, .n_pieces = 65},
		 -EINVAL,
		 "in 65 pieces"},
		{{.op = SMARTIO_NVME_READ, .blocks = 2, .piece = &one_block, .n_pieces = 1},
		 -EINVAL,
		 "the pieces have 512 bytes, the command 1024"},
		{{.op = SMARTIO_NVME_READ, .blocks = 1, .piece = &theirs, .n_pieces = 1},
		 -EINVAL,
		 "another smartio_nvme_open()"},
		{{.op = SMARTIO_NVME_READ, .blocks = 1, .piece = &none, .n_pieces = 1},
		 -EINVAL,
		 "no buffer"},
		{{.op = SMARTIO_NVME_READ, .blocks = 1, .piece = &empty, .n_pieces = 1},
		 -EINVAL,
		 "0 bytes"},
		{{.op = SMARTIO_NVME_READ, .blocks = 1, .piece = &odd, .n_pieces = 1},
		 -EINVAL,
		 "not a multiple of 4"},
		{{.op = SMARTIO_NVME_READ, .blocks = 1, .piece = &past, .n_pieces = 1},
		 -ERANGE,
		 "beyond a buffer of 16384"},
		{{.op = SMARTIO_NVME_READ, .blocks = 2, .piece = gap, .n_pieces = 2},
		 -EINVAL,
		 "not the end of a page"},
		{{.op = SMARTIO_NVME_READ, .blocks = 15, .piece = late, .n_pieces = 2},
		 -EINVAL,
		 "not a multiple of 4096"},
		{{.op = SMARTIO_NVME_VERIFY, .blocks = 1, .piece = &one_block, .n_pieces = 1},
		 -EINVAL,
		 "verify takes no data"},
		{{.op = SMARTIO_NVME_VERIFY, .blocks = 65537}, -ERANGE, "65537 blocks"},
		{{.op = SMARTIO_NVME_VERIFY, .lba = FAKE_BLOCKS, .blocks = 1}, -ERANGE, "ends at"},
		{{.op = SMARTIO_NVME_VERIFY, .lba = UINT64_MAX, .blocks = 2}, -ERANGE, "ends at"},
		{{.op = SMARTIO_NVME_FLUSH, .blocks = 1}, -EINVAL, "neither blocks nor data"},
		{{.op = SMARTIO_NVME_FLUSH, .flags = SMARTIO_NVME_FUA}, -EINVAL, "the flags 0x1"},
		{{.op = SMARTIO_NVME_FLUSH, .reserved = {0, 1}}, -EINVAL, "reserved"},
	};

	(void)state;
	n->sgls = 0; /* as of a drive that has PRP lists alone */
	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		assert_int_equal(smartio_nvme_submit_commands(q, &t[i].c, 1), t[i].error);
		assert_text(t[i].text);
	}
	assert_int_equal(sio_nvme_in_flight(q), 0);
	smartio_nvme_close(n);
	smartio_nvme_close(other);
}

static void a_batch_costs_one_doorbell(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 3);
	struct smartio_nvme_command c[5];
	struct smartio_nvme_counters before, after;

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		c[i] = (struct smartio_nvme_command){.op = SMARTIO_NVME_FLUSH};
	smartio_nvme_queue_counters(q, &before);
	assert_int_equal(smartio_nvme_submit_commands(q, c, 5), 3);
	assert_int_equal(smartio_nvme_submit_commands(q, c, 5), -EAGAIN);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(one(q).status, 0);
	smartio_nvme_queue_counters(q, &after);
	assert_int_equal(after.doorbells_sq - before.doorbells_sq, 1);
	/* The second one of two is wrong: the first one goes. */
	c[1].blocks = 1;
	assert_int_equal(smartio_nvme_submit_commands(q, c, 2), 1);
	assert_int_equal(one(q).status, 0);
	assert_int_equal(smartio_nvme_submit_commands(q, c + 1, 1), -EINVAL);
	smartio_nvme_close(n);
}

/* ---- by call ---- */
static struct chain {
	struct smartio_nvme_call call;
	struct smartio_nvme_queue *q;
	unsigned again, done;
	uint32_t status;
} chains[3];

static void chain_next(struct smartio_nvme_call *call, uint32_t status)
{
	struct chain *c = (struct chain *)call;
	const struct smartio_nvme_command flush = {.op = SMARTIO_NVME_FLUSH, .cookie = call};

	c->done++;
	c->status = status;
	if (status == 0 && c->again-- > 0)
		assert_int_equal(smartio_nvme_submit_commands(c->q, &flush, 1), 1);
}

static void start_chains(struct smartio_nvme_queue *q)
{
	for (unsigned i = 0; i < 3; i++) {
		chains[i] = (struct chain){.call.done = chain_next, .q = q, .again = 10 * i};
		assert_ok(
			smartio_nvme_submit(q, SMARTIO_NVME_FLUSH, 0, 0, NULL, 0, &chains[i].call));
	}
}

static void completions_call(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 3);
	unsigned done = 0;

	(void)state;
	start_chains(q);
	for (unsigned i = 0; i < 10000 && done < 33; i++) {
		int rc = smartio_nvme_poll_calls(q, 32);

		assert_ok(rc);
		done += (unsigned)rc;
		fake_step();
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(chains[i].done, 10 * i + 1);
	smartio_nvme_close(n);
}

static void a_lost_queue_calls_once(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 3);

	(void)state;
	start_chains(q);
	fake_reset_device();
	assert_int_equal(smartio_nvme_poll_calls(q, 32), -ECONNRESET);
	assert_int_equal(smartio_nvme_poll_calls(q, 32), -ECONNRESET);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(chains[i].done, 1);
		assert_int_equal(chains[i].status, SMARTIO_NVME_LOST);
	}
	smartio_nvme_close(n);
	stop_manager();
	start_manager();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(flags_reach_the_drive),	       TEST(helpers_change_what_they_say),
		TEST(ranges_are_deallocated_together), TEST(scattered_data_arrives_in_order),
		TEST(scattered_reads_fill_each_piece), TEST(wrong_commands_are_refused),
		TEST(a_batch_costs_one_doorbell),      TEST(completions_call),
		TEST(a_lost_queue_calls_once),	       TEST(lists_name_any_dwords_4_4),
		TEST(lists_have_their_limits_4_4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
