/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several submission queues that complete in one completion queue (NVMe 1.4, section 4.1), over the
 * drive model: whose completions are whose, how many fit, and what is refused. How they end:
 * multi_end_test.c.
 */
#include "submitters.h"

/* ---- I/O ---- */
/* What is in flight of one block of one queue. */
struct block {
	bool busy, writes;
	uint8_t stamp;
};
#define DEPTH 5u
#define BLOCKS 5u

static uint8_t *data_of(struct smartio_nvme_buffer *b, unsigned q, unsigned i)
{
	return (uint8_t *)smartio_nvme_buffer_data(b) + ((size_t)q * BLOCKS + i) * BLOCK;
}

static void start_block(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b, unsigned who,
			unsigned i, struct block *k)
{
	uint8_t *data = data_of(b, who, i);
	const size_t offset = (size_t)(data - (uint8_t *)smartio_nvme_buffer_data(b));

	k->busy = true;
	k->writes = smartio_random() & 1;
	if (k->writes)
		k->stamp = (uint8_t)smartio_random();
	memset(data, k->writes ? k->stamp : (uint8_t)~k->stamp, BLOCK);
	assert_ok(smartio_nvme_submit(q, k->writes ? SMARTIO_NVME_WRITE : SMARTIO_NVME_READ,
				      who * BLOCKS + i, 1, b, offset, k));
}

static void check_block(const struct block *k, const uint8_t *data)
{
	for (unsigned i = 0; i < BLOCK; i++)
		assert_int_equal(data[i], k->stamp);
}

/* Every command completes once, for the queue that it was of, with its data: through many wraps. */
static void each_completion_says_whose_it_is_4_1(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS];
	struct smartio_nvme_buffer *b = buffer(n, (size_t)MEMBERS * BLOCKS * BLOCK);
	struct block block[MEMBERS][BLOCKS] = {0};
	struct smartio_nvme_completion c[7];
	uint64_t done = 0, of[MEMBERS] = {0};

	(void)state;
	open_three(n, DEPTH, q);
	assert_int_equal(pairs_taken(), MEMBERS);
	while (done < 4000) {
		const unsigned who = smartio_random() % MEMBERS, i = smartio_random() % BLOCKS;
		int got;

		if (!block[who][i].busy)
			start_block(q[who], b, who, i, &block[who][i]);
		/* Whichever of them is polled, it is for all. */
		got = smartio_nvme_poll(q[smartio_random() % MEMBERS], c, smartio_random() % 8);
		assert_true(got >= 0);
		for (int k = 0; k < got; k++) {
			struct block *of_it = c[k].cookie;
			const size_t index = (size_t)(of_it - &block[0][0]);

			assert_int_equal(c[k].status, 0);
			assert_int_equal(c[k].queue, smartio_nvme_queue_id(q[index / BLOCKS]));
			assert_true(of_it->busy);
			of_it->busy = false;
			check_block(of_it, data_of(b, (unsigned)(index / BLOCKS), index % BLOCKS));
			of[index / BLOCKS]++;
			done++;
		}
		fake_step();
	}
	for (unsigned i = 0; i < MEMBERS; i++) {
		assert_true(of[i] > 1000);
		assert_int_equal(counted(q[i]).completed, of[i]);
	}
	/* One doorbell for what one poll took, and that of the pair which has the queue. */
	assert_true(counted(q[0]).doorbells_cq <= done);
	assert_int_equal(counted(q[1]).doorbells_cq + counted(q[2]).doorbells_cq, 0);
	smartio_nvme_close(n);
	assert_int_equal(pairs_taken(), 0);
}

static void a_poll_is_for_all_and_rings_one_doorbell(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS], *alone = queue(n, 8);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_completion c[16];
	uint64_t before;

	(void)state;
	open_three(n, 4, q);
	for (unsigned i = 0; i < 4 * MEMBERS; i++)
		put(q[i % MEMBERS], b, i);
	assert_int_equal(smartio_nvme_submit(q[1], SMARTIO_NVME_READ, 0, 1, b, 0, NULL), -EAGAIN);
	/* The other two are rung by this one's poll. */
	assert_int_equal(smartio_nvme_poll(q[1], c, 16), 0);
	for (unsigned i = 0; i < 10; i++)
		fake_step();
	before = counted(q[0]).doorbells_cq;
	assert_int_equal(smartio_nvme_poll(q[2], c, 16), 4 * MEMBERS);
	assert_int_equal(counted(q[0]).doorbells_cq, before + 1);
	assert_int_equal(smartio_nvme_poll(q[0], c, 16), 0);
	/* Of a queue with its own completion queue it says nothing. */
	put(alone, b, 0);
	assert_int_equal(one(alone).queue, 0);
	smartio_nvme_close(n);
}

static void one_interrupt_is_for_all_7_5(void **state)
{
	struct smartio_nvme_queue_options o = first_options(4, 12);
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS];
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_completion c;
	uint8_t data[BLOCK];

	(void)state;
	o.flags = SMARTIO_NVME_INTERRUPT;
	q[0] = open_with(n, &o);
	q[1] = more(q[0], 4);
	q[2] = more(q[0], 4);
	assert_int_equal(smartio_nvme_wait(q[2], 100), 0);
	for (unsigned i = 0; i < 30; i++) {
		put(q[i % MEMBERS], b, i);
		/* Whichever is waited for. */
		assert_int_equal(smartio_nvme_wait(q[i / MEMBERS % MEMBERS], UINT32_MAX), 1);
		assert_int_equal(smartio_nvme_poll(q[1], &c, 1), 1);
		assert_int_equal((uintptr_t)c.cookie, i + 1);
		assert_int_equal(c.queue, smartio_nvme_queue_id(q[i % MEMBERS]));
	}
	assert_int_equal(fake.raised, 30);
	assert_ok(smartio_nvme_read(q[2], data, 0, BLOCK)); /* sleeps, too */
	assert_int_equal(fake.raised, 31);
	/* The one that has the interrupt is closed: it is there as long as somebody needs it. */
	smartio_nvme_queue_close(q[0]);
	put(q[1], b, 7);
	assert_int_equal(smartio_nvme_wait(q[2], UINT32_MAX), 1);
	assert_int_equal(smartio_nvme_poll(q[2], &c, 1), 1);
	assert_int_equal(fake.raised, 32);
	smartio_nvme_close(n);
}

static void without_an_interrupt_nobody_can_wait(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS];

	(void)state;
	open_three(n, 4, q);
	assert_int_equal(smartio_nvme_wait(q[1], 0), -EINVAL);
	assert_text("queue pair 1 was opened without an interrupt");
	smartio_nvme_close(n);
}

static void count_call(struct smartio_nvme_call *call, uint32_t status);
struct counted_call {
	struct smartio_nvme_call call;
	unsigned done, lost;
};

static void count_call(struct smartio_nvme_call *call, uint32_t status)
{
	struct counted_call *c = (struct counted_call *)call;

	c->done += status == 0;
	c->lost += status == SMARTIO_NVME_LOST;
}

static void calls_are_of_all_and_are_lost_once(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS];
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct counted_call call[6];
	uint8_t data[BLOCK];
	unsigned got = 0;

	(void)state;
	open_three(n, 4, q);
	for (unsigned i = 0; i < 6; i++) {
		call[i] = (struct counted_call){.call.done = count_call};
		assert_ok(smartio_nvme_submit(q[i % 2], SMARTIO_NVME_READ, 0, 1, b, 0, &call[i]));
	}
	/* A helper takes them from the queue, but it is not who is told. */
	assert_ok(smartio_nvme_read(q[2], data, 0, BLOCK));
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(call[i].done, 0);
	fake.stopped = true;
	assert_ok(smartio_nvme_submit(q[2], SMARTIO_NVME_READ, 0, 1, b, 0, &call[0]));
	smartio_nvme_ring(q[2]);
	fake_reset_device();
	while (got < 6) {
		int rc = smartio_nvme_poll_calls(q[1], 4);

		assert_true(rc > 0);
		got += (unsigned)rc;
	}
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(call[i].done, 1);
	/* Of the others, once. */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(smartio_nvme_poll_calls(q[i], 4), -ECONNRESET);
	assert_int_equal(call[0].lost, 1);
	fake.stopped = false;
	smartio_nvme_close(n);
	stop_manager();
	start_manager();
}

/* Neither a helper nor the close of another takes away what was submitted here. */
static void helpers_and_closes_leave_others_completions(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS];
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_completion c[8];
	uint8_t out[4 * BLOCK], in[4 * BLOCK];
	int got = 0;

	(void)state;
	open_three(n, 4, q);
	memset(out, 0x4b, sizeof(out));
	for (uint64_t i = 0; i < 3; i++)
		put(q[0], b, i);
	put(q[2], b, 100);
	assert_ok(smartio_nvme_write(q[1], out, 64 * BLOCK, sizeof(out)));
	assert_ok(smartio_nvme_read(q[1], in, 64 * BLOCK, sizeof(in)));
	assert_memory_equal(in, out, sizeof(in));
	/* What is not polled is in flight still: neither helper nor depth take it for done. */
	assert_int_equal(smartio_nvme_read(q[0], in, 0, BLOCK), -EBUSY);
	assert_text("3 commands of the caller are in flight");
	put(q[0], b, 3);
	assert_int_equal(smartio_nvme_submit(q[0], SMARTIO_NVME_READ, 0, 1, b, 0, NULL), -EAGAIN);
	smartio_nvme_queue_close(q[2]); /* with its own command, of which nobody hears */
	for (unsigned i = 0; i < 100 && got < 4; i++) {
		int rc = smartio_nvme_poll(q[1], c + got, 1);

		assert_true(rc >= 0);
		got += rc;
		fake_step();
	}
	assert_int_equal(got, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal((uintptr_t)c[i].cookie, i + 1); /* oldest first */
		assert_int_equal(c[i].queue, smartio_nvme_queue_id(q[0]));
		assert_int_equal(c[i].status, 0);
	}
	assert_int_equal(smartio_nvme_poll(q[0], c, 8), 0);
	assert_int_equal(smartio_nvme_buffer_free(b), 0);
	smartio_nvme_close(n);
}

/* ---- how many ---- */
static void the_completion_queue_has_room_for_all(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue_options o;
	struct smartio_nvme_queue *q[4], *none;

	(void)state;
	q[0] = first_of(n, 8, 20);
	q[1] = more(q[0], 8);
	o = more_options(q[0], 5);
	assert_int_equal(smartio_nvme_queue_open(n, &o, &none), -ENOSPC);
	assert_text("depth 5: the completion queue of queue pair 1 has room for 4 commands more");
	assert_int_equal(smartio_nvme_exhausted(), 0);
	q[2] = more(q[0], 0);
	assert_int_equal(smartio_nvme_queue_depth(q[2]), 4);
	o.depth = 0;
	assert_int_equal(smartio_nvme_queue_open(n, &o, &none), -ENOSPC);
	assert_text("room for 0 commands more");
	smartio_nvme_queue_close(q[1]);
	q[1] = more(q[0], 6);
	q[3] = more(q[0], 2);
	smartio_nvme_close(n);
	/* Without a depth it is what fits. */
	n = client();
	q[0] = first_of(n, 0, 7);
	assert_int_equal(smartio_nvme_queue_depth(q[0]), 7);
	q[1] = first_of(n, 0, 100);
	assert_int_equal(smartio_nvme_queue_depth(q[1]), 32);
	q[2] = more(q[1], 0);
	assert_int_equal(smartio_nvme_queue_depth(q[2]), 32);
	smartio_nvme_close(n);
}

static void each_takes_one_of_the_drives_pairs(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[4], *none;
	struct smartio_nvme_queue_options o;
	struct smartio_nvme_pair pair[8];

	(void)state;
	q[0] = queue(n, 4);
	q[1] = first_of(n, 4, 16);
	q[2] = more(q[1], 4);
	q[3] = more(q[1], 4);
	o = more_options(q[1], 4);
	assert_int_equal(smartio_nvme_queue_open(n, &o, &none), -ENOSPC);
	assert_text("no queue pairs left");
	assert_int_equal(smartio_nvme_get_pairs(n, pair, 8), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(pair[i].id, i + 1);
		assert_int_equal(pair[i].cq_of, i < 2 ? 0 : 2);
	}
	smartio_nvme_close(n);
}

static void what_cannot_be_is_refused(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_queue *first = first_of(n, 4, 16), *plain = queue(n, 4), *user;
	const uint32_t survive = SMARTIO_NVME_SURVIVE, shared = SMARTIO_NVME_SHARED;
	const size_t size = sizeof(struct smartio_nvme_queue_options);
	struct smartio_nvme_raw raw = {.size = sizeof(raw)};
	struct smartio_nvme_queue *none;

	(void)state;
	user = more(first, 4);
	{
		const struct {
			struct smartio_nvme_queue_options o;
			struct smartio_nvme *n;
			const char *text;
		} bad[] = {
			{{.size = size, .cq_depth = 4, .completes_in = first},
			 n,
			 "cq_depth is for"},
			{{.size = size, .cq_depth = 64, .flags = survive}, n, "survives"},
			{{.size = size, .completes_in = first, .flags = survive}, n, "survives"},
			{{.size = size, .completes_in = first, .flags = survive | shared},
			 n,
			 "opened without these flags (0xa)"},
			{{.size = size, .completes_in = first, .flags = SMARTIO_NVME_INTERRUPT},
			 n,
			 "those of queue pair 1, which has it"},
			{{.size = size, .completes_in = first, .cq_placement = 2},
			 n,
			 "those of queue pair 1, which has it"},
			{{.size = size, .depth = 8, .cq_depth = 7}, n, "for 8 to 255 commands"},
			{{.size = size, .depth = 8, .cq_depth = 256}, n, "for 8 to 255 commands"},
			{{.size = size, .completes_in = plain}, n, "open it with cq_depth"},
			{{.size = size, .completes_in = user}, n, "open it with cq_depth"},
			{{.size = size, .completes_in = first},
			 other,
			 "another smartio_nvme_open()"},
		};

		for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			assert_int_equal(smartio_nvme_queue_open(bad[i].n, &bad[i].o, &none),
					 -EINVAL);
			assert_text(bad[i].text);
		}
	}
	assert_int_equal(smartio_nvme_queue_hand_over(first, &raw), -EINVAL);
	assert_text("completion queue for several");
	assert_int_equal(smartio_nvme_queue_hand_over(user, &raw), -EINVAL);
	assert_int_equal(pairs_taken(), 3);
	smartio_nvme_close(other);
	smartio_nvme_close(n);
}

/* Each has what it asks for of all else: namespace, lease, placement, device of its queue. */
static void each_has_its_own_blocks(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *first = first_of(n, 4, 16), *leased, *far;
	struct smartio_nvme_lease *lease;
	struct smartio_nvme_queue_options o = more_options(first, 4);
	uint8_t data[BLOCK];

	(void)state;
	assert_ok(smartio_nvme_lease_take(n, "mine", 1, 100, 10, &lease));
	o.lease = lease;
	leased = open_with(n, &o);
	o = more_options(first, 4);
	o.sq_placement = SMARTIO_NVME_PLACE_DEVICE;
	far = open_with(n, &o);
	memset(data, 0x29, sizeof(data));
	assert_ok(smartio_nvme_write(leased, data, 100 * BLOCK, BLOCK));
	assert_int_equal(smartio_nvme_write(leased, data, 99 * BLOCK, BLOCK), -ERANGE);
	assert_int_equal(smartio_nvme_lease_give(lease), -EBUSY);
	memset(data, 0, sizeof(data));
	assert_ok(smartio_nvme_read(far, data, 100 * BLOCK, BLOCK));
	assert_int_equal(data[17], 0x29);
	smartio_nvme_queue_close(leased);
	assert_ok(smartio_nvme_lease_give(lease));
	smartio_nvme_close(n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_completion_says_whose_it_is_4_1),
		TEST(a_poll_is_for_all_and_rings_one_doorbell),
		TEST(one_interrupt_is_for_all_7_5),
		TEST(without_an_interrupt_nobody_can_wait),
		TEST(calls_are_of_all_and_are_lost_once),
		TEST(helpers_and_closes_leave_others_completions),
		TEST(the_completion_queue_has_room_for_all),
		TEST(each_takes_one_of_the_drives_pairs),
		TEST(what_cannot_be_is_refused),
		TEST(each_has_its_own_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
