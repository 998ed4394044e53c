/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A manager's second borrow of the drive, over its other path: when it is made and ends, and that
 * requests wait for a manager that has one, and for no other.
 */
#include "client.h"
#include "common.h"
#include "manager.h"

#define MS 1000000ull

static bool has_second(void)
{
	struct smartio_nvme_manager_status s;

	smartio_nvme_manager_get_status(fake.manager, &s);
	return s.second_path;
}

/* Another second: it looks for what it lacks. */
static void let_look(void)
{
	fake.now += 1000 * MS;
	for (unsigned i = 0; i < 20; i++)
		fake_step();
}

static uint64_t first_borrow(void)
{
	return smartio_borrower_id(fake.manager->d.handle);
}

static int identify(struct smartio_nvme *n)
{
	static uint8_t data[4096];

	return smartio_nvme_identify(n, 1, 0, data);
}

static int read_log(struct smartio_nvme *n)
{
	static uint8_t data[512];

	return smartio_nvme_get_log(n, 2, 0xffffffff, 0, data, sizeof(data));
}

static void it_is_borrowed_over_the_other_path(void **state)
{
	const struct sio_nvme_hold *h = &fake.manager->hold;

	(void)state;
	assert_false(has_second());
	let_look();
	assert_true(has_second());
	assert_int_not_equal(h->d.adapter, fake.manager->d.adapter);
	assert_int_not_equal(smartio_borrower_id(h->d.handle), first_borrow());
	/* There is one, however often it looks. */
	fake.borrow_calls = 0;
	let_look();
	assert_int_equal(fake.borrow_calls, 0);
}

static void it_is_made_again_when_its_path_is_back(void **state)
{
	const uint64_t first = first_borrow();

	(void)state;
	fake.down = 1u << 1;
	let_look();
	assert_false(has_second());
	fake.down = 0;
	let_look();
	assert_true(has_second());
	fake_lose(smartio_borrower_id(fake.manager->hold.d.handle));
	assert_false(has_second());
	let_look();
	assert_true(has_second());
	/* Its first borrow has had nothing to do with that. */
	assert_int_equal(first_borrow(), first);
	assert_int_equal(fake.served, 0);
}

/* As by a quota, which does not change soon: it is asked for less and less often. */
static void one_that_is_refused_is_asked_for_less_often(void **state)
{
	struct sio_nvme_hold *h = &fake.manager->hold;
	const struct sio_nvme_device *d = &fake.manager->d;

	(void)state;
	fake.fail_at = fake.calls + 1;
	sio_nvme_hold_look(h, d);
	fake.fail_at = 0;
	assert_false(sio_nvme_hold_is_made(h, d));
	fake.now += 1000 * MS;
	sio_nvme_hold_look(h, d);
	assert_false(sio_nvme_hold_is_made(h, d));
	fake.now += 1000 * MS;
	sio_nvme_hold_look(h, d);
	assert_true(sio_nvme_hold_is_made(h, d));
}

static void requests_wait_until_the_manager_is_back(void **state)
{
	struct smartio_nvme *n = client(), *late = NULL;
	struct smartio_nvme_manager_status s;

	(void)state;
	let_look();
	fake_lose(first_borrow());
	assert_ok(identify(n));
	fake_lose(first_borrow());
	/* Not sent yet, so it can be asked of the one that comes. */
	sio_nvme_manager_withdraw(fake.manager);
	assert_ok(read_log(n));
	fake_lose(first_borrow());
	assert_ok(smartio_nvme_open("nvme0", &late));
	smartio_nvme_close(late);
	smartio_nvme_manager_get_status(fake.manager, &s);
	/* Once it was found before it had noticed. */
	assert_in_range(s.returns, 2, 3);
	assert_int_equal(s.returns_kept, s.returns);
	assert_true(has_second());
	/* What its first borrows had is seen to. */
	let_look();
	smartio_nvme_close(n);
}

static void a_manager_that_does_not_come_is_not_waited_for_long(void **state)
{
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme *n = client();
	uint64_t start;

	(void)state;
	let_look();
	fake_lose(first_borrow());
	sio_nvme_manager_withdraw(m);
	fake.manager = NULL; /* it is stopped */
	start = fake.now;
	assert_int_equal(identify(n), -ENOTCONN);
	assert_text("no manager serves nvme0");
	assert_in_range(fake.now - start, 2900 * MS, 3300 * MS);
	fake.manager = m;
	for (unsigned i = 0; i < 20; i++)
		fake_step();
	assert_ok(identify(n));
	smartio_nvme_close(n);
}

static void nor_is_one_without_a_second_path(void **state)
{
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme *n;
	uint64_t start;

	(void)state;
	fake.down = 1u << 1;
	let_look();
	n = client();
	fake_lose(first_borrow());
	sio_nvme_manager_withdraw(m);
	fake.manager = NULL;
	start = fake.now;
	assert_int_equal(identify(n), -ENOTCONN);
	assert_true(fake.now - start < 100 * MS);
	fake.manager = m;
	for (unsigned i = 0; i < 20; i++)
		fake_step();
	assert_ok(identify(n));
	smartio_nvme_close(n);
}

/* It ends before the first one, so that with that the last borrow of the drive is over. */
static void it_ends_with_the_manager(void **state)
{
	uint64_t second;

	(void)state;
	let_look();
	second = smartio_borrower_id(fake.manager->hold.d.handle);
	assert_true(second > first_borrow());
	stop_manager();
	assert_int_equal(fake.objects, 0);
	start_manager();
}

/* The drive has failed: nobody serves it, and its lender may reset it. */
static void a_manager_that_has_failed_has_none(void **state)
{
	struct smartio_nvme_manager *m = fake.manager;

	(void)state;
	let_look();
	assert_non_null(m->hold.d.handle);
	fake.manager = NULL;
	fake_reset_device();
	assert_int_equal(smartio_nvme_manager_serve(m, 100), -EIO);
	assert_null(m->hold.d.handle);
	assert_null(m->hold.mark.segment);
	fake.manager = m;
	stop_manager();
	start_manager();
}

int main(void)
{
#define WITH(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH(it_is_borrowed_over_the_other_path),
		WITH(it_is_made_again_when_its_path_is_back),
		WITH(one_that_is_refused_is_asked_for_less_often),
		WITH(requests_wait_until_the_manager_is_back),
		WITH(a_manager_that_does_not_come_is_not_waited_for_long),
		WITH(nor_is_one_without_a_second_path),
		WITH(it_ends_with_the_manager),
		WITH(a_manager_that_has_failed_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
