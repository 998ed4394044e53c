/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests for queue pairs whose answers do not come: the manager is busy or stopped, and does
 * later what it was asked for. Whoever asked takes that back, so that no pair, and no place in one,
 * is nobody's.
 */
#include "manager.h"
#include "multi.h"
#include "smartio/ext.h"
#include "surviving.h"

static struct smartio_nvme_manager *away;

static void manager_goes(void)
{
	away = fake.manager;
	fake.manager = NULL;
}

static void manager_is_back(void)
{
	fake.manager = away;
	fake_step();
}

static uint64_t places_taken(void)
{
	const struct sio_nvme_ledger *l = &fake.manager->ledger;
	uint64_t n = 0;

	for (uint32_t i = 1; i <= l->pairs; i++)
		n += sio_nvme_ledger_sharers(&l->pair[i]);
	return n;
}

/* The completion queue could not be deleted before the one that nobody knows of. */
static void one_that_completes_in_another_is_taken_back(void **state)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = 4, .cq_depth = 12};
	struct smartio_nvme_queue *first = NULL, *q[2] = {NULL, NULL};
	struct smartio_nvme *n = client();
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);

	(void)state;
	fill_media();
	for (unsigned round = 0; round < 2; round++) {
		o = (struct smartio_nvme_queue_options){
			.size = sizeof(o), .depth = 4, .cq_depth = 12};
		assert_ok(smartio_nvme_queue_open(n, &o, &first));
		o = (struct smartio_nvme_queue_options){
			.size = sizeof(o), .depth = 4, .completes_in = first};
		manager_goes();
		assert_int_equal(smartio_nvme_queue_open(n, &o, &q[0]), -ETIMEDOUT);
		if (round == 0) {
			manager_is_back();
			assert_int_equal(fake_counter("queue_pairs"), 1);
			assert_ok(smartio_nvme_queue_open(n, &o, &q[0]));
			put(q[0], b, false, 3);
			one(first);
			assert_read(b, 3);
			smartio_nvme_queue_close(q[0]);
		} else {
			fake.manager = away; /* both requests are still in its ring */
		}
		smartio_nvme_queue_close(first);
		assert_int_equal(fake_counter("queue_pairs"), 0);
		assert_null(n->kept);
	}
	smartio_nvme_close(n);
}

static int open_shared(struct smartio_nvme *n, struct smartio_nvme_queue **ret)
{
	const struct smartio_nvme_queue_options o = {
		.size = sizeof(o), .depth = 4, .flags = SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE};

	return smartio_nvme_queue_open(n, &o, ret);
}

/* Of the fifth that shares four pairs, as of the first, whose pair nobody else can join. */
static void so_is_a_place_in_a_shared_pair(void **state)
{
	struct smartio_nvme *n[6];
	struct smartio_nvme_queue *q[6];

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		n[i] = client();
	for (unsigned i = 0; i < 6; i++) {
		manager_goes();
		assert_int_equal(open_shared(n[i], &q[i]), -ETIMEDOUT);
		manager_is_back();
		assert_int_equal(places_taken(), i);
		assert_int_equal(fake_counter("queue_pairs"), i < 4 ? i : 4);
		assert_ok(open_shared(n[i], &q[i]));
		assert_int_equal(places_taken(), i + 1);
	}
	for (unsigned i = 0; i < 6; i++) {
		struct smartio_nvme_buffer *b = buffer(n[i], DEPTH * BLOCK);

		fill_media();
		put(q[i], b, false, i);
		one(q[i]);
		assert_read(b, i);
	}
	for (unsigned i = 0; i < 6; i++)
		smartio_nvme_close(n[i]);
	assert_int_equal(fake_counter("queue_pairs"), 0);
}

/* Each pair that it was promised, and did not get: at last it has one. */
static void so_is_the_next_pair_of_a_queue_that_survives(void **state)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o),
					       .depth = 4,
					       .flags = SMARTIO_NVME_SURVIVE,
					       .cq_placement = SMARTIO_NVME_PLACE_DEVICE};
	struct smartio_nvme *n = client();
	struct smartio_nvme_buffer *b = buffer(n, DEPTH * BLOCK);
	struct smartio_nvme_queue *q = NULL;
	struct smartio_nvme_completion c;

	(void)state;
	fake.far = true;
	fill_media();
	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	put(q, b, false, 1);
	smartio_nvme_ring(q);
	for (unsigned i = 0; i < 10; i++)
		fake_step();
	fake.losses++;
	manager_goes();
	for (unsigned i = 0; !n->kept || !n->kept->next; i++) {
		assert_in_range(i, 0, 1000);
		assert_int_equal(smartio_nvme_poll(q, &c, 1), 0);
	}
	manager_is_back();
	assert_int_equal(fake_counter("queue_pairs"), 0);
	one(q);
	assert_read(b, 1);
	assert_int_equal(fake_counter("queue_pairs"), 1);
	/* The memory for the others is used again. */
	smartio_nvme_queue_close(queue(n, 4));
	assert_null(n->kept);
	smartio_nvme_close(n);
}

/* As soon as it can be, and once more ahead of the next request, of whatever. */
static void so_is_a_lease(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_lease *l, *mine;

	(void)state;
	manager_goes();
	assert_int_equal(smartio_nvme_lease_take(n, "late", 1, 0, 100, &l), -ETIMEDOUT);
	assert_non_null(n->owed);
	manager_is_back();
	assert_int_equal(fake.manager->leases.n, 0);
	smartio_nvme_queue_close(queue(n, 4));
	assert_null(n->owed);
	/* One that is given back, too, and no other that has its number. */
	assert_ok(smartio_nvme_lease_take(n, "late", 1, 0, 100, &l));
	manager_goes();
	assert_ok(smartio_nvme_lease_give(l));
	assert_non_null(n->owed);
	manager_is_back();
	assert_int_equal(fake.manager->leases.n, 0);
	another_manager();
	assert_ok(smartio_nvme_lease_take(n, "mine", 1, 50, 100, &mine));
	assert_null(n->owed);
	assert_int_equal(fake.manager->leases.n, 1);
	assert_int_equal(smartio_nvme_lease_take(other, "theirs", 1, 0, 100, &l), -EBUSY);
	assert_ok(smartio_nvme_lease_give(mine));
	/* What is still to be said ends with the borrow. */
	assert_ok(smartio_nvme_lease_take(n, "last", 1, 0, 100, &l));
	manager_goes();
	smartio_nvme_close(n);
	manager_is_back();
	assert_int_equal(fake.manager->leases.n, 0);
	smartio_nvme_close(other);
}

/* Another's request, and one that was never sent, are not. */
static void nothing_else_is(void **state)
{
	struct smartio_nvme *n[2] = {client(), client()};
	struct smartio_nvme_queue *q = queue(n[0], 4);

	(void)state;
	sio_nvme_say_cancel(n[1], q->sequence);
	sio_nvme_say_cancel(n[0], q->sequence + 1);
	fake_step();
	assert_int_equal(fake_counter("queue_pairs"), 1);
	sio_nvme_say_cancel(n[0], q->sequence);
	fake_step();
	assert_int_equal(fake_counter("queue_pairs"), 0);
	/* Which the queue does not know: it is kept until the next one is opened. */
	smartio_nvme_queue_close(q);
	smartio_nvme_queue_close(queue(n[0], 4));
	smartio_nvme_close(n[0]);
	smartio_nvme_close(n[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_that_completes_in_another_is_taken_back),
		TEST(so_is_a_place_in_a_shared_pair),
		TEST(so_is_the_next_pair_of_a_queue_that_survives),
		TEST(so_is_a_lease),
		TEST(nothing_else_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
