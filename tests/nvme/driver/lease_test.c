/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases: who gets which blocks, what a queue with one refuses, and when they are free again. */
#include <stdio.h>

#include "client.h"
#include "common.h"
#include "manager.h"
#include "smartio/ext.h"

static struct smartio_nvme_lease *lease(struct smartio_nvme *n, const char *name, uint64_t lba,
					uint64_t blocks)
{
	struct smartio_nvme_lease *l = NULL;

	assert_ok(smartio_nvme_lease_take(n, name, 1, lba, blocks, &l));
	return l;
}

static uint64_t begin_of(const struct smartio_nvme_lease *l)
{
	struct smartio_nvme_lease_info info;

	smartio_nvme_lease_get(l, &info);
	return info.lba;
}

static struct smartio_nvme_queue *leased(struct smartio_nvme *n, const struct smartio_nvme_lease *l)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = 4, .lease = l};
	struct smartio_nvme_queue *q = NULL;

	assert_ok(smartio_nvme_queue_open(n, &o, &q));
	return q;
}

static void ranges_do_not_overlap(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_lease *a = lease(n, "a", 100, 50), *b, *l;

	(void)state;
	assert_int_equal(smartio_nvme_lease_take(other, "b", 1, 149, 10, &l), -EBUSY);
	assert_text("the range is taken: lease a of node 8 (nvme-driver-lea) has blocks 100 + 50");
	assert_int_equal(smartio_nvme_lease_take(other, "b", 1, 0, 101, &l), -EBUSY);
	assert_int_equal(smartio_nvme_lease_take(other, "b", 1, 120, 1, &l), -EBUSY);
	assert_int_equal(smartio_nvme_lease_take(n, "b", 1, 120, 1, &l), -EBUSY);
	assert_int_equal(smartio_nvme_lease_take(other, "a", 1, 500, 1, &l), -EEXIST);
	assert_text("the name is taken: lease a of node 8");
	b = lease(other, "b", 150, 10);
	/* The first gap that is large enough; before all, between, behind all. */
	assert_int_equal(begin_of(lease(other, "c", SMARTIO_NVME_ANYWHERE, 100)), 0);
	assert_int_equal(begin_of(lease(other, "d", SMARTIO_NVME_ANYWHERE, 20)), 160);
	assert_ok(smartio_nvme_lease_give(b));
	assert_int_equal(begin_of(lease(n, "e", SMARTIO_NVME_ANYWHERE, 10)), 150);
	assert_int_equal(
		smartio_nvme_lease_take(n, "f", 1, SMARTIO_NVME_ANYWHERE, FAKE_BLOCKS - 179, &l),
		-ENOSPC);
	assert_int_equal(begin_of(lease(n, "f", SMARTIO_NVME_ANYWHERE, FAKE_BLOCKS - 180)), 180);
	assert_int_equal(smartio_nvme_lease_take(n, "g", 1, FAKE_BLOCKS, 1, &l), -ERANGE);
	assert_int_equal(smartio_nvme_lease_take(n, "g", 1, UINT64_MAX - 1, 5, &l), -ERANGE);
	assert_int_equal(smartio_nvme_lease_take(n, "g", 1, 0, 0, &l), -ERANGE);
	assert_int_equal(smartio_nvme_lease_take(n, "g", 2, 0, 1, &l), -ERANGE);
	assert_int_equal(smartio_nvme_lease_take(n, "", 1, 0, 1, &l), -EINVAL);
	assert_int_equal(smartio_nvme_lease_take(n, "sixteen letters.", 1, 0, 1, &l), -EINVAL);
	assert_ok(smartio_nvme_lease_give(a));
	smartio_nvme_close(n);
	smartio_nvme_close(other);
	assert_int_equal(fake.manager->leases.n, 0);
}

/* Every way that blocks can be named, before, behind and across the ends. */
static void a_queue_stays_within_its_lease(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_lease *l = lease(n, "mine", 100, 50);
	struct smartio_nvme_queue *q = leased(n, l);
	struct smartio_nvme_buffer *b = buffer(n, 64 * 512);
	static const struct {
		uint64_t lba;
		uint32_t blocks;
		bool good;
	} t[] = {{100, 1, true},  {149, 1, true}, {100, 50, true}, {120, 8, true},
		 {99, 1, false},  {99, 2, false}, {150, 1, false}, {149, 2, false},
		 {0, 50, false},  {0, 1, false},  {98, 60, false}, {UINT64_MAX, 1, false},
		 {1000, 1, false}};
	static uint8_t data[64 * 512];

	(void)state;
	memset(fake_media(), 0xee, FAKE_BLOCKS * 512);
	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		const struct smartio_nvme_command c = {
			.op = SMARTIO_NVME_VERIFY, .lba = t[i].lba, .blocks = t[i].blocks};
		int rc = smartio_nvme_submit(q, SMARTIO_NVME_WRITE, t[i].lba, t[i].blocks, b, 0,
					     NULL);

		assert_int_equal(rc, t[i].good ? 0 : -ERANGE);
		if (rc == 0)
			assert_int_equal(one(q).status, 0);
		rc = smartio_nvme_submit_commands(q, &c, 1);
		assert_int_equal(rc, t[i].good ? 1 : -ERANGE);
		if (rc == 1)
			assert_int_equal(one(q).status, 0);
		if (t[i].lba == UINT64_MAX)
			continue;
		rc = smartio_nvme_write(q, data, t[i].lba * 512, t[i].blocks * 512);
		assert_int_equal(rc, t[i].good ? 0 : -ERANGE);
		rc = smartio_nvme_write_zeroes(q, t[i].lba * 512, t[i].blocks * 512, 0);
		assert_int_equal(rc, t[i].good ? 0 : -ERANGE);
		rc = smartio_nvme_deallocate(q, t[i].lba * 512, t[i].blocks * 512);
		assert_int_equal(rc, t[i].good ? 0 : -ERANGE);
	}
	assert_int_equal(smartio_nvme_submit(q, SMARTIO_NVME_READ, 99, 1, b, 0, NULL), -ERANGE);
	assert_text("blocks 99 + 1: the queue's lease mine has 100 + 50");
	assert_ok(smartio_nvme_flush(q));
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(fake_media()[i * 512] == 0xee, i < 100 || i >= 150);
	assert_int_equal(smartio_nvme_lease_give(l), -EBUSY);
	smartio_nvme_queue_close(q);
	assert_ok(smartio_nvme_lease_give(l));
	smartio_nvme_close(n);
}

static void the_dead_leave_their_leases(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	uint64_t borrower = smartio_borrower_id(n->d.handle);
	struct smartio_nvme_lease *l = lease(n, "dead", 0, 100), *mine;

	(void)state;
	leased(n, l);
	fake_kill(borrower);
	for (unsigned i = 0; i < 10; i++)
		fake_step();
	mine = lease(other, "living", 50, 100);
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 0);
	smartio_nvme_close(n);
	fake_bury(borrower);
	assert_ok(smartio_nvme_lease_give(mine));
	smartio_nvme_close(other);
}

/* The next manager counts from one again. */
static void an_old_lease_ends_no_new_one(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_lease *old = lease(n, "old", 0, 100), *l;
	struct smartio_nvme_lease_info a, b;

	(void)state;
	stop_manager();
	start_manager();
	l = lease(n, "new", 0, 100);
	smartio_nvme_lease_get(old, &a);
	smartio_nvme_lease_get(l, &b);
	assert_int_equal(a.id, b.id);
	assert_ok(smartio_nvme_lease_give(old));
	assert_int_equal(fake.manager->leases.n, 1);
	assert_ok(smartio_nvme_lease_give(l));
	assert_int_equal(fake.manager->leases.n, 0);
	smartio_nvme_close(n);
}

static void a_lease_ends_with_its_manager(void **state)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o)};
	struct smartio_nvme_queue_options with = o;
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q;

	(void)state;
	with.lease = lease(n, "old", 0, 100);
	stop_manager();
	start_manager();
	assert_int_equal(smartio_nvme_queue_open(n, &with, &q), -ESTALE);
	assert_text("the manager that gave lease old of nvme0 has ended");
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 0);
	lease(n, "old", 0, 100);
	smartio_nvme_close(n);
}

static void leases_are_listed(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_lease_info info[100];
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 70; i++) {
		snprintf(name, sizeof(name), "lease %u", i);
		lease(i % 2 ? n : other, name, 10 * i, 5);
	}
	assert_int_equal(smartio_nvme_get_leases(n, info, 100), 70);
	for (unsigned i = 0; i < 70; i++) {
		snprintf(name, sizeof(name), "lease %u", i);
		assert_string_equal(info[i].name, name);
		assert_int_equal(info[i].lba, 10 * i);
		assert_int_equal(info[i].blocks, 5);
		assert_string_equal(info[i].program, "nvme-driver-lea");
	}
	assert_int_equal(smartio_nvme_get_leases(n, info, 66), 66);
	assert_int_equal(smartio_nvme_format(n, 1, 0, SMARTIO_NVME_CONFIRMED), -EBUSY);
	assert_text("node 8 (nvme-driver-lea) has the lease lease 0 of nvme0");
	smartio_nvme_close(n);
	smartio_nvme_close(other);
}

/* Their end is not said to the manager: of those that have a lease and no queue, once more. */
static void die_unheard(uint64_t id)
{
	fake.unheard = true;
	fake_kill(id);
	fake.unheard = false;
	for (unsigned i = 0; i < 20; i++)
		fake_step();
}

/*
 * The daemon of the manager's host was away when a client died that had leases and nothing else.
 * Whoever wants the blocks, or the names, or the drive for itself, gets them; those of the living,
 * and of one whose queue is still there, stay.
 */
static void the_dead_keep_none_unheard(void **state)
{
	struct smartio_nvme *n = client(), *other = client(), *third, *fourth;
	uint64_t id[] = {smartio_borrower_id(n->d.handle), 0, 0};
	struct smartio_nvme_queue_options o = {.size = sizeof(o)};
	struct smartio_nvme_lease_info info[8];
	struct smartio_nvme_lease *l;
	struct smartio_nvme_queue *q;

	(void)state;
	lease(n, "one", 0, 10);
	lease(n, "two", 10, 10);
	lease(n, "three", 20, 10);
	lease(n, "most", 30, FAKE_BLOCKS - 40);
	die_unheard(id[0]);
	assert_int_equal(smartio_nvme_get_leases(other, info, 8), 4);
	third = client();
	id[1] = smartio_borrower_id(third->d.handle);
	lease(third, "theirs", 5, 20);
	assert_int_equal(smartio_nvme_lease_take(other, "mine", 1, 24, 10, &l), -EBUSY);
	assert_text("lease theirs of node 8");
	assert_int_equal(smartio_nvme_get_leases(other, info, 8), 1);
	o.lease = lease(other, "mine", 25, 10);
	assert_ok(smartio_nvme_queue_open(other, &o, &q));
	die_unheard(id[1]);
	fourth = client();
	id[2] = smartio_borrower_id(fourth->d.handle);
	lease(fourth, "theirs", 100, 10);
	lease(fourth, "most", 200, FAKE_BLOCKS - 200);
	die_unheard(id[2]);
	lease(other, "anywhere", SMARTIO_NVME_ANYWHERE, FAKE_BLOCKS - 40);
	assert_int_equal(smartio_nvme_lease_take(other, "one", 1, 25, 1, &l), -EBUSY);
	assert_text("lease mine of node 8");
	smartio_nvme_close(n);
	smartio_nvme_close(third);
	smartio_nvme_close(fourth);
	for (unsigned i = 0; i < 3; i++)
		fake_bury(id[i]);
	smartio_nvme_close(other);
}

/* Nor do they keep others from a format. */
static void the_dead_keep_nobody_from_a_format(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	const uint64_t id = smartio_borrower_id(n->d.handle);

	(void)state;
	lease(n, "one", 0, 10);
	assert_int_equal(smartio_nvme_format(other, 1, 0, SMARTIO_NVME_CONFIRMED), -EBUSY);
	die_unheard(id);
	assert_ok(smartio_nvme_format(other, 1, 0, SMARTIO_NVME_CONFIRMED));
	smartio_nvme_close(n);
	fake_bury(id);
	smartio_nvme_close(other);
}

/* The manager takes the request for an earlier one: what it gave ends. */
static void another_lease_is_taken_back(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_lease *l;

	(void)state;
	lease(n, "a", 100, 50);
	assert_int_equal(fake.manager->leases.n, 1);
	n->sequence--;
	assert_int_equal(smartio_nvme_lease_take(n, "b", 1, 200, 10, &l), -EPROTO);
	assert_text("gave another lease than was asked for");
	for (unsigned i = 0; i < 20; i++)
		fake_step();
	assert_int_equal(fake.manager->leases.n, 0);
	smartio_nvme_close(n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(another_lease_is_taken_back),	  TEST(ranges_do_not_overlap),
		TEST(a_queue_stays_within_its_lease),	  TEST(the_dead_leave_their_leases),
		TEST(a_lease_ends_with_its_manager),	  TEST(leases_are_listed),
		TEST(an_old_lease_ends_no_new_one),	  TEST(the_dead_keep_none_unheard),
		TEST(the_dead_keep_nobody_from_a_format),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
