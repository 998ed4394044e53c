/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several submission queues that complete in one completion queue (NVMe 1.4, section 4.1), over the
 * drive model: whose completions are whose, how many fit, in which order they end, and what becomes
 * of them when client, manager or drive do not do as they should.
 */
#include "common.h"
#include "multi.h"
#include "smartio/ext.h"
#include "smartio/nvmeraw.h"

#define BLOCK 512u
#define MS 1000000ull
#define LIMIT_MS 400u
#define MEMBERS 3u
#define ABORTED 0x007u /* Command Abort Requested */
enum { NOTHING, DELAY, DROP };

static struct smartio_nvme_queue_options first_options(uint32_t depth, uint32_t cq_depth)
{
	return (struct smartio_nvme_queue_options){
		.size = sizeof(struct smartio_nvme_queue_options),
		.depth = depth,
		.cq_depth = cq_depth};
}

static struct smartio_nvme_queue_options more_options(struct smartio_nvme_queue *of, uint32_t depth)
{
	return (struct smartio_nvme_queue_options){
		.size = sizeof(struct smartio_nvme_queue_options),
		.depth = depth,
		.completes_in = of};
}

static struct smartio_nvme_queue *open_with(struct smartio_nvme *n,
					    const struct smartio_nvme_queue_options *o)
{
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, o, &q));
	return q;
}

static struct smartio_nvme_queue *first_of(struct smartio_nvme *n, uint32_t depth,
					   uint32_t cq_depth)
{
	const struct smartio_nvme_queue_options o = first_options(depth, cq_depth);

	return open_with(n, &o);
}

static struct smartio_nvme_queue *more(struct smartio_nvme_queue *of, uint32_t depth)
{
	const struct smartio_nvme_queue_options o = more_options(of, depth);

	return open_with(of->n, &o);
}

/* One and two more, of @depth each. */
static void open_three(struct smartio_nvme *n, uint32_t depth, struct smartio_nvme_queue **q)
{
	q[0] = first_of(n, depth, MEMBERS * depth);
	for (unsigned i = 1; i < MEMBERS; i++)
		q[i] = more(q[0], depth);
}

static struct smartio_nvme_counters counted(const struct smartio_nvme_queue *q)
{
	struct smartio_nvme_counters c;

	smartio_nvme_queue_counters(q, &c);
	return c;
}

static uint32_t pairs_taken(void)
{
	return smartio_nvme_manager_queue_pairs(fake.manager, NULL);
}

static void put(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b, uint64_t block)
{
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, block, 1, b, 0,
				      (void *)(uintptr_t)(block + 1)));
}

/* Polls until something comes or the queue ends; the fake's time passes meanwhile. */
static int next(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c)
{
	int rc = 0;

	for (unsigned i = 0; i < 10000000 && rc == 0; i++) {
		rc = smartio_nvme_poll(q, c, 1);
		fake_step();
	}
	return rc;
}

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

/* ---- ends ---- */
/* In each order: who is left goes on, and after the last nothing is left. */
static void they_are_closed_in_any_order_5_5(void **state)
{
	static const unsigned order[][MEMBERS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
						  {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	(void)state;
	for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		struct smartio_nvme *n = client();
		struct smartio_nvme_queue *q[MEMBERS];
		uint8_t data[BLOCK];

		open_three(n, 4, q);
		for (unsigned k = 0; k < MEMBERS; k++) {
			smartio_nvme_queue_close(q[order[i][k]]);
			for (unsigned left = k + 1; left < MEMBERS; left++)
				assert_ok(smartio_nvme_read(q[order[i][left]], data, 0, BLOCK));
		}
		assert_null(n->kept);
		assert_int_equal(pairs_taken(), 0);
		assert_int_equal(fake_holds(), 0);
		smartio_nvme_close(n);
	}
	assert_int_equal(fake_csts(), 1);
}

/* The one with the completion queue is closed: it stays for the others, who can be more yet. */
static void the_completion_queue_lives_until_the_last_ends(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS], *other;
	uint8_t data[BLOCK];

	(void)state;
	open_three(n, 4, q);
	smartio_nvme_queue_close(q[0]);
	assert_int_equal(pairs_taken(), MEMBERS);
	other = queue(n, 4); /* which is no reason to delete it */
	smartio_nvme_queue_close(q[2]);
	assert_int_equal(pairs_taken(), 3);
	for (unsigned i = 0; i < 20; i++)
		assert_ok(smartio_nvme_read(q[1], data, i * BLOCK, BLOCK));
	smartio_nvme_queue_close(q[1]);
	assert_int_equal(pairs_taken(), 1);
	assert_ok(smartio_nvme_read(other, data, 0, BLOCK));
	smartio_nvme_close(n);
}

/* Its commands do not come back: the drive may do them yet, so no queue is made before it ends. */
static void a_busy_one_is_waited_for_by_the_next_queue(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS], *none;
	struct smartio_nvme_buffer *b = buffer(n, 4096);

	(void)state;
	open_three(n, 4, q);
	fake_fault(DROP, SMARTIO_NVME_READ, 1, 0);
	put(q[0], b, 0);
	smartio_nvme_queue_close(q[0]); /* waits, in vain */
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	assert_int_equal(smartio_nvme_queue_open(n, NULL, &none), -EBUSY);
	assert_text("commands of queue pair 1, which is closed, did not come back");
	smartio_nvme_queue_close(q[1]);
	smartio_nvme_queue_close(q[2]);
	assert_int_equal(pairs_taken(), 0);
	assert_ok(smartio_nvme_buffer_free(b));
	none = queue(n, 4);
	smartio_nvme_close(n);
}

/*
 * A queue is deleted with commands in the drive: their completions are dropped, also those that
 * come with the deletion (status 08h), and the number's next queue hears of none.
 */
static void a_deleted_queues_completions_reach_nobody_5_6(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS];
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_completion c;
	uint32_t id;

	(void)state;
	open_three(n, 4, q);
	for (unsigned round = 0; round < 5; round++) {
		fake_fault(DELAY, SMARTIO_NVME_READ, 3, 100000 * MS);
		for (uint64_t i = 0; i < 3; i++)
			put(q[1], b, i);
		id = smartio_nvme_queue_id(q[1]);
		smartio_nvme_queue_close(q[1]); /* for as long as it waits, they do not come */
		fake_fault(NOTHING, 0, 0, 0);
		q[1] = more(q[0], 4);
		assert_int_equal(smartio_nvme_queue_id(q[1]), id);
		assert_int_equal(smartio_nvme_poll(q[0], &c, 1), 0);
		put(q[1], b, 7);
		assert_int_equal(next(q[2], &c), 1);
		assert_int_equal((uintptr_t)c.cookie, 8);
		assert_int_equal(c.status, 0);
	}
	smartio_nvme_close(n);
}

static void a_reset_ends_all(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS], *none;
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_queue_options o;
	struct smartio_nvme_completion c;
	uint8_t data[BLOCK];

	(void)state;
	open_three(n, 4, q);
	fake.stopped = true;
	put(q[2], b, 0);
	smartio_nvme_ring(q[2]);
	fake_reset_device();
	fake.stopped = false;
	for (unsigned i = 0; i < MEMBERS; i++)
		assert_int_equal(smartio_nvme_poll(q[i], &c, 1), -ECONNRESET);
	assert_int_equal(smartio_nvme_submit(q[1], SMARTIO_NVME_READ, 0, 1, b, 0, NULL),
			 -ECONNRESET);
	assert_int_equal(smartio_nvme_read(q[1], data, 0, BLOCK), -ECONNRESET);
	o = more_options(q[0], 2);
	assert_int_equal(smartio_nvme_queue_open(n, &o, &none), -ECONNRESET);
	stop_manager();
	start_manager();
	smartio_nvme_queue_close(q[0]); /* closed before those that completed there */
	none = queue(n, 4);
	assert_ok(smartio_nvme_read(none, data, 0, BLOCK));
	smartio_nvme_close(n);
}

/* The slot where the next completion goes. */
static void complete(const struct smartio_nvme_queue *q, uint32_t cid, uint32_t sq)
{
	volatile uint32_t *e = (volatile uint32_t *)q->multi->cqe;

	e[2] = sq << 16;
	e[3] = cid | (uint32_t)(q->multi->phase >> 48 & 1) << 16;
}

static void completions_that_cannot_be_end_all(void **state)
{
	/* Of the drive's ids: 4 is nobody's, 5 and more are not there. */
	static const struct {
		uint32_t cid, sq;
	} bad[] = {{0, 4}, {0, 5}, {0, 0xffff}, {0, 0}, {1, 2}, {8, 2}, {0xffff, 2}, {0, 1}};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct smartio_nvme *n = client();
		struct smartio_nvme_queue *q[MEMBERS];
		struct smartio_nvme_buffer *b = buffer(n, 4096);
		struct smartio_nvme_completion c;

		open_three(n, 4, q);
		fake.stopped = true;
		put(q[1], b, 0);
		smartio_nvme_ring(q[1]);
		complete(q[0], bad[i].cid, bad[i].sq);
		for (unsigned k = 0; k < MEMBERS; k++) {
			assert_int_equal(smartio_nvme_poll(q[k], &c, 1), -EPROTO);
			assert_int_equal(
				smartio_nvme_submit(q[k], SMARTIO_NVME_READ, 0, 1, b, 0, NULL),
				-EPROTO);
		}
		fake.stopped = false;
		smartio_nvme_close(n);
	}
}

static void time_outs_are_each_ones_own_5_1(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *first = first_of(n, 4, 16), *limited, *free;
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_queue_options o = more_options(first, 4);
	struct smartio_nvme_completion c;
	const uint64_t before = fake.now;

	(void)state;
	o.timeout_ms = LIMIT_MS;
	limited = open_with(n, &o);
	free = more(first, 4);
	/* Late: aborted, and only its submitter is told. */
	fake_fault(DELAY, SMARTIO_NVME_READ, 1, 60000 * MS);
	put(limited, b, 0);
	put(free, b, 1);
	assert_int_equal(next(first, &c), 1);
	assert_int_equal((uintptr_t)c.cookie, 2);
	assert_int_equal(next(first, &c), 1);
	assert_int_equal((uintptr_t)c.cookie, 1);
	assert_int_equal(c.status, ABORTED);
	assert_true(fake.now - before <= LIMIT_MS * MS * 3 / 2);
	/* Lost: it ends, and so do those whose completions would be looked for beside it. */
	fake_fault(DROP, SMARTIO_NVME_READ, 1, 0);
	put(limited, b, 0);
	assert_int_equal(next(free, &c), -ETIMEDOUT);
	assert_text("queue pair 3 of nvme0 has ended with queue pair 2");
	assert_int_equal(smartio_nvme_poll(limited, &c, 1), -ETIMEDOUT);
	assert_text("did not come back within 400 ms");
	assert_int_equal(counted(limited).overdue, 1);
	for (unsigned i = 0; i < 3; i++)
		smartio_nvme_queue_close(i == 0 ? first : i == 1 ? limited : free);
	assert_null(n->kept);
	assert_int_equal(pairs_taken(), 0);
	smartio_nvme_close(n);
}

/* A command that is lost is found although completions of others come all the time. */
static void traffic_of_others_hides_no_lost_command(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *first = first_of(n, 4, 8), *limited;
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_queue_options o = more_options(first, 4);
	struct smartio_nvme_completion c;
	const uint64_t before = fake.now;
	int rc = 0;

	(void)state;
	o.timeout_ms = LIMIT_MS;
	limited = open_with(n, &o);
	fake_fault(DROP, SMARTIO_NVME_READ, 1, 0);
	put(limited, b, 0);
	while (rc >= 0 && fake.now - before < 10 * LIMIT_MS * MS) {
		int taken = smartio_nvme_submit(first, SMARTIO_NVME_READ, 1, 1, b, 0, NULL);

		if (taken != -EAGAIN && taken != 0)
			break;
		rc = smartio_nvme_poll(first, &c, 1);
		fake.now += MS / 4;
		fake_step();
	}
	assert_int_equal(smartio_nvme_poll(first, &c, 1), -ETIMEDOUT);
	assert_true(fake.now - before < 3 * LIMIT_MS * MS);
	smartio_nvme_close(n);
}

/* ---- death ---- */
static void a_killed_client_leaves_nothing(void **state)
{
	struct smartio_nvme *n = client(), *other;
	const uint64_t id = fake_last_borrower();
	struct smartio_nvme_queue *q[MEMBERS], *others;
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	uint8_t data[BLOCK];

	(void)state;
	open_three(n, 4, q);
	other = client();
	others = queue(other, 4);
	for (unsigned i = 0; i < 4 * MEMBERS; i++)
		put(q[i % MEMBERS], b, i);
	for (unsigned i = 0; i < MEMBERS; i++)
		smartio_nvme_ring(q[i]);
	fake_kill(id);
	assert_true(fake_quarantined() > 0);
	for (unsigned i = 0; i < 100; i++)
		fake_step();
	assert_int_equal(fake_quarantined(), 0);
	assert_int_equal(fake_csts(), 1);
	assert_int_equal(pairs_taken(), 1);
	assert_int_equal(fake_holds(), 2);
	assert_ok(smartio_nvme_read(others, data, 0, BLOCK));
	smartio_nvme_close(n);
	fake_bury(id);
	/* The numbers are free. */
	for (unsigned i = 0; i < MEMBERS; i++)
		assert_ok(smartio_nvme_read(queue(other, 4), data, 0, BLOCK));
	smartio_nvme_close(other);
}

/* The manager's end, and that of another one later; a stopped one that goes on. */
static void what_nobody_could_delete_is_deleted_later(void **state)
{
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q[MEMBERS];
	uint8_t data[BLOCK];

	(void)state;
	open_three(n, 4, q);
	fake.manager = NULL; /* stopped */
	smartio_nvme_queue_close(q[1]);
	assert_non_null(n->kept);
	assert_ok(smartio_nvme_read(q[2], data, 0, BLOCK));
	smartio_nvme_queue_close(q[0]);
	assert_ok(smartio_nvme_read(q[2], data, 0, BLOCK));
	fake.manager = m; /* has its old requests, which it serves now */
	smartio_nvme_queue_close(q[2]);
	q[0] = queue(n, 4);
	assert_null(n->kept);
	assert_int_equal(pairs_taken(), 1);
	assert_ok(smartio_nvme_read(q[0], data, 0, BLOCK));
	smartio_nvme_close(n);
}

/* A closed queue's number may be another's of the same completion queue before it is forgotten. */
static void a_number_comes_back_to_the_same_completion_queue(void **state)
{
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *first = first_of(n, 4, 16), *gone = more(first, 4), *again;
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	const uint32_t id = smartio_nvme_queue_id(gone);
	uint8_t data[BLOCK];

	(void)state;
	put(gone, b, 3);
	smartio_nvme_ring(gone);
	fake.manager = NULL;
	smartio_nvme_queue_close(gone);
	assert_non_null(n->kept);
	fake.manager = m;
	again = more(first, 4); /* deletes that one before */
	assert_int_equal(smartio_nvme_queue_id(again), id);
	for (unsigned i = 0; i < 20; i++) {
		assert_ok(smartio_nvme_read(again, data, i * BLOCK, BLOCK));
		assert_ok(smartio_nvme_read(first, data, i * BLOCK, BLOCK));
	}
	smartio_nvme_queue_close(first);
	assert_ok(smartio_nvme_read(again, data, 0, BLOCK));
	smartio_nvme_queue_close(again);
	assert_null(n->kept);
	assert_int_equal(pairs_taken(), 0);
	smartio_nvme_close(n);
}

static void what_is_kept_at_the_end_goes_to_the_next_manager(void **state)
{
	struct smartio_nvme_manager *dead = fake.manager;
	const uint64_t id = fake_last_borrower();
	struct smartio_nvme *n = client();
	const uint64_t mine = fake_last_borrower();
	struct smartio_nvme_queue *q[MEMBERS];
	struct smartio_nvme_buffer *b = buffer(n, 4096);

	(void)state;
	open_three(n, 4, q);
	fake.manager = NULL;
	fake_kill(id);
	smartio_nvme_manager_close(dead);
	fake.stopped = true;
	for (unsigned i = 0; i < MEMBERS; i++) {
		put(q[i], b, i);
		smartio_nvme_ring(q[i]);
	}
	smartio_nvme_queue_close(q[0]);
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	smartio_nvme_close(n);
	fake_kill(mine);
	fake.stopped = false;
	fake_step();
	assert_int_equal(fake.faults, 0);
	assert_true(fake_quarantined() > 0);
	start_manager();
	assert_int_equal(fake_quarantined(), 0);
	fake_bury(mine);
}

/* Each call that can fail does, once: nothing is lost, and nobody else notices. */
static void whatever_fails_leaves_nothing(void **state)
{
	bool all = false;

	(void)state;
	for (unsigned long k = 1; !all; k++) {
		const unsigned objects = fake.objects;
		struct smartio_nvme *n = client();
		const uint64_t mine = fake_last_borrower();
		struct smartio_nvme_queue *first = first_of(n, 4, 8), *q = NULL;
		const struct smartio_nvme_queue_options o = more_options(first, 4);
		uint8_t data[BLOCK];

		fake.fail_at = fake.calls + k;
		all = smartio_nvme_queue_open(n, &o, &q) == 0 && fake.calls < fake.fail_at;
		fake.fail_at = 0;
		if (fake.served) { /* it was the manager's */
			stop_manager();
			fake.served = 0;
			start_manager();
			smartio_nvme_close(n);
		} else {
			assert_ok(smartio_nvme_read(first, data, 0, BLOCK));
			smartio_nvme_close(n);
		}
		/* It does not know whether its request was served: its end settles that. */
		if (fake.objects != objects) {
			fake_kill(mine);
			for (unsigned i = 0; i < 20; i++)
				fake_step();
			fake_bury(mine);
		}
		assert_int_equal(pairs_taken(), 0);
		assert_int_equal(fake_quarantined(), 0);
		assert_true(k < 200);
	}
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
		TEST(they_are_closed_in_any_order_5_5),
		TEST(the_completion_queue_lives_until_the_last_ends),
		TEST(a_busy_one_is_waited_for_by_the_next_queue),
		TEST(a_deleted_queues_completions_reach_nobody_5_6),
		TEST(a_reset_ends_all),
		TEST(completions_that_cannot_be_end_all),
		TEST(time_outs_are_each_ones_own_5_1),
		TEST(traffic_of_others_hides_no_lost_command),
		TEST(a_killed_client_leaves_nothing),
		TEST(what_nobody_could_delete_is_deleted_later),
		TEST(a_number_comes_back_to_the_same_completion_queue),
		TEST(what_is_kept_at_the_end_goes_to_the_next_manager),
		TEST(whatever_fails_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
