/* SPDX-License-Identifier: BSD-2-Clause */
/* Managers that stand by: when they serve, who is told of them, what becomes of clients. */
#include "common.h"
#include "manager.h"
#include "smartio/ext.h"

static struct smartio_nvme_manager *standby(void)
{
	struct smartio_nvme_manager_options o = {.size = sizeof(o), .flags = SMARTIO_NVME_STANDBY};
	struct smartio_nvme_manager *m = NULL;

	assert_ok(smartio_nvme_manager_open("nvme0", &o, &m));
	return m;
}

static struct smartio_nvme_manager_status status_of(const struct smartio_nvme_manager *m)
{
	struct smartio_nvme_manager_status s;

	smartio_nvme_manager_get_status(m, &s);
	return s;
}

/* As if killed: its handles are freed, which the dead do not do. */
static void kill_manager(struct smartio_nvme_manager *m, uint64_t id)
{
	fake_kill(id);
	fake.manager = NULL;
	smartio_nvme_manager_close(m);
	fake_bury(id);
}

static void without_a_manager_it_is_one(void **state)
{
	struct smartio_nvme *n;

	(void)state;
	fake.manager = standby();
	assert_int_equal(status_of(fake.manager).serves, 1);
	assert_int_equal(status_of(fake.manager).takeovers, 0);
	n = client();
	assert_int_equal(smartio_nvme_get_standbys(n, NULL, 0), 0);
	smartio_nvme_close(n);
}

static void it_waits_for_the_end_of_the_manager(void **state)
{
	struct smartio_nvme_manager *first = fake.manager, *second;
	uint64_t id = fake_last_borrower();
	struct smartio_nvme_standby list[4];
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;
	uint8_t data[512];

	(void)state;
	second = standby();
	assert_int_equal(status_of(second).serves, 0);
	assert_int_equal(status_of(second).other_node, FAKE_NODE);
	assert_int_equal(smartio_nvme_manager_serve(second, 100), 0);
	smartio_nvme_manager_stop(second);
	assert_int_equal(smartio_nvme_manager_serve(second, UINT32_MAX), 0);
	n = client();
	assert_int_equal(smartio_nvme_get_standbys(n, list, 4), 1);
	assert_int_equal(list[0].node, FAKE_NODE);
	q = queue(n, 4);
	kill_manager(first, id);
	assert_ok(smartio_nvme_read(q, data, 0, 512));
	assert_int_equal(smartio_nvme_manager_serve(second, UINT32_MAX), 1);
	assert_int_equal(status_of(second).serves, 1);
	assert_int_equal(status_of(second).takeovers, 1);
	fake.manager = second;
	assert_int_equal(smartio_nvme_get_standbys(n, list, 4), 0);
	smartio_nvme_queue_close(q);
	q = queue(n, 4);
	assert_ok(smartio_nvme_read(q, data, 0, 512));
	smartio_nvme_close(n);
}

/* Whoever waits for a successor looks at its segment, which may be before that has it itself. */
static void a_client_looks_before_its_maker(void **state)
{
	struct smartio_nvme_manager *first = fake.manager, *second;
	uint64_t id = fake_last_borrower();

	(void)state;
	second = standby();
	kill_manager(first, id);
	fake.looked_at = 1;
	assert_int_equal(smartio_nvme_manager_serve(second, UINT32_MAX), 1);
	assert_int_equal(fake.looked_at, 0);
	assert_int_equal(status_of(second).takeovers, 1);
	assert_int_equal(status_of(second).kept, 1);
	fake.manager = second;
}

/* Both of them are behind the link that goes; the manager takes longer to come back. */
static void one_that_loses_the_same_path_lets_it_come_back(void **state)
{
	struct smartio_nvme_manager *first = fake.manager, *second;
	const uint64_t id = fake_last_borrower();
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;
	uint8_t data[512];

	(void)state;
	second = standby();
	fake_lose(fake_last_borrower());
	n = client();
	q = queue(n, 4);
	fake.manager = NULL;
	fake.reserved = true;
	fake_lose(id);
	assert_int_equal(smartio_nvme_manager_serve(second, 100), 0);
	assert_int_equal(status_of(second).returns, 1);
	assert_int_equal(status_of(second).serves, 0);
	fake.manager = first;
	for (unsigned i = 0; i < 100; i++)
		fake_step();
	assert_int_equal(status_of(first).returns, 1);
	assert_int_equal(status_of(first).returns_kept, 1);
	assert_int_equal(smartio_nvme_manager_serve(second, 1000), 0);
	assert_int_equal(status_of(second).serves, 0);
	assert_ok(smartio_nvme_read(q, data, 0, sizeof(data)));
	smartio_nvme_manager_close(second);
	smartio_nvme_close(n);
}

/* Nor for ever: what does not come back is followed, with a reset. */
static void one_that_does_not_come_back_is_followed(void **state)
{
	struct smartio_nvme_manager *first = fake.manager, *second;
	const uint64_t id = fake_last_borrower();

	(void)state;
	second = standby();
	fake_lose(fake_last_borrower());
	fake.manager = NULL;
	fake.reserved = true;
	fake_lose(id);
	assert_int_equal(smartio_nvme_manager_serve(second, 2000), 1);
	assert_int_equal(status_of(second).serves, 1);
	assert_int_equal(status_of(second).kept, 0);
	smartio_nvme_manager_close(first);
	fake.manager = second;
}

/* Of the other one's end it may be told once more when it serves: that is no word to stop. */
static void what_it_is_told_late_does_not_end_it(void **state)
{
	struct smartio_nvme_manager *first = fake.manager, *second;
	uint64_t id = fake_last_borrower(), begin;

	(void)state;
	second = standby();
	kill_manager(first, id);
	assert_int_equal(smartio_nvme_manager_serve(second, UINT32_MAX), 1);
	while (smartio_nvme_manager_serve(second, 0) > 0)
		;
	smartio_wake(second->d.handle);
	begin = smartio_now_ns();
	assert_int_equal(smartio_nvme_manager_serve(second, 100), 0);
	assert_true(smartio_now_ns() - begin >= 100000000);
	smartio_nvme_manager_stop(second);
	assert_int_equal(smartio_nvme_manager_serve(second, UINT32_MAX), 0);
	fake.manager = second;
}

/* It ends in order: the drive is shut down, and comes up again with the standby. */
static void a_manager_that_leaves_is_followed(void **state)
{
	struct smartio_nvme_manager *second = standby();

	(void)state;
	stop_manager();
	assert_int_equal(fake_csts() & 1, 0);
	assert_int_equal(smartio_nvme_manager_serve(second, UINT32_MAX), 1);
	assert_int_equal(fake_csts(), 1);
	fake.manager = second;
}

static void one_of_several_takes_over(void **state)
{
	struct smartio_nvme_manager_options o = {.size = sizeof(o), .flags = SMARTIO_NVME_STANDBY};
	struct smartio_nvme_manager *m[4], *more, *first = fake.manager;
	uint64_t id = fake_last_borrower();

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		m[i] = standby();
	assert_int_equal(smartio_nvme_manager_open("nvme0", &o, &more), -EBUSY);
	assert_text("nvme0 has 4 standby managers; no more are possible");
	kill_manager(first, id);
	assert_int_equal(smartio_nvme_manager_serve(m[2], UINT32_MAX), 1);
	fake.manager = m[2];
	for (unsigned i = 0; i < 4; i++)
		if (i != 2) {
			assert_int_equal(smartio_nvme_manager_serve(m[i], 10), 0);
			assert_int_equal(status_of(m[i]).serves, 0);
		}
	/* The next one comes to its turn, too. */
	stop_manager();
	assert_int_equal(smartio_nvme_manager_serve(m[0], UINT32_MAX), 1);
	fake.manager = m[0];
	assert_int_equal(smartio_nvme_manager_serve(m[1], 10), 0);
	smartio_nvme_manager_close(m[1]);
	smartio_nvme_manager_close(m[3]);
}

/* The n-th call of the API fails, for every n: an error or not, and nothing is left. */
static void every_failure_is_survived(void **state)
{
	bool done = false;

	(void)state;
	for (unsigned long k = 1; !done; k++) {
		struct smartio_nvme_manager_options o = {.size = sizeof(o),
							 .flags = SMARTIO_NVME_STANDBY};
		struct smartio_nvme_manager *m = NULL, *first;
		uint64_t id;

		fake_start(NULL);
		start_manager();
		id = fake_last_borrower();
		first = fake.manager;
		fake.calls = 0;
		fake.fail_at = k;
		if (smartio_nvme_manager_open("nvme0", &o, &m) == 0) {
			fake.fail_at += 1000; /* nothing of the first one's end */
			kill_manager(first, id);
			fake.fail_at -= 1000;
			done = fake.calls < k && smartio_nvme_manager_serve(m, 100) == 1 &&
			       fake.calls < k;
			smartio_nvme_manager_close(m);
		} else {
			stop_manager();
		}
		assert_int_equal(fake.objects, 0);
		assert_int_equal(fake.faults, 0);
		fake_stop();
	}
	fake_start(NULL);
	start_manager();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define BARE(name) cmocka_unit_test_setup_teardown(name, setup_drive, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BARE(without_a_manager_it_is_one),
		TEST(it_waits_for_the_end_of_the_manager),
		TEST(a_client_looks_before_its_maker),
		TEST(one_that_loses_the_same_path_lets_it_come_back),
		TEST(one_that_does_not_come_back_is_followed),
		TEST(what_it_is_told_late_does_not_end_it),
		TEST(a_manager_that_leaves_is_followed),
		TEST(one_of_several_takes_over),
		cmocka_unit_test_teardown(every_failure_is_survived, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
