/* SPDX-License-Identifier: BSD-2-Clause */
/* A client that comes before its manager: how long it waits, for what, and what ends the wait. */
#include "common.h"
#include "protocol.h"
#include "smartio/ext.h"

#define MS 1000000ull

static uint64_t came; /* when the manager was ready */
static sci_desc_t sd;
static sci_smartio_device_t device;

static void manager_comes(void)
{
	start_manager();
	came = fake.now;
}

static void others_return_it(void)
{
	sci_error_t err;

	SCIReturnDevice(device, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	SCIClose(sd, 0, &err);
	start_manager();
	came = fake.now;
}

static void in_ms(uint64_t ms, void (*event)(void))
{
	fake.event_at = fake.now + ms * MS;
	fake.event = event;
}

static void borrow_exclusively(void)
{
	unsigned fdid;
	sci_error_t err;

	SCIOpen(&sd, 0, &err);
	smartio_find_device("nvme0", &fdid, &err);
	SCIBorrowDevice(sd, &device, fdid, SCI_FLAG_EXCLUSIVE, &err);
	assert_int_equal(err, SCI_ERR_OK);
	fake.borrow_calls = 0;
}

static void none_comes(void **state)
{
	uint64_t start = fake.now;
	struct smartio_nvme *n;

	(void)state;
	assert_int_equal(smartio_nvme_open("nvme0", &n), -ENOTCONN);
	assert_int_equal(smartio_nvme_open_wait("nvme0", 0, &n), -ENOTCONN);
	assert_true(fake.now - start < MS);
	start = fake.now;
	fake.lookups = 0;
	assert_int_equal(smartio_nvme_open_wait("nvme0", 5000, &n), -ENOTCONN);
	/*
	 * For a manager at the beginning and the end, and once for standbys and one that will be
	 * back: it does not poll.
	 */
	assert_int_equal(fake.lookups, 2 + 1 + SIO_NVME_STANDBYS + 1 + 1);
	assert_text("no manager serves nvme0");
	assert_in_range(fake.now - start, 5000 * MS, 5100 * MS);
	assert_int_equal(fake.objects, 0);
	start_manager();
}

static void what_will_not_come_is_not_waited_for(void **state)
{
	uint64_t start = fake.now;
	struct smartio_nvme *n;

	(void)state;
	assert_int_equal(smartio_nvme_open_wait("nvme9", UINT32_MAX, &n), -ENODEV);
	assert_int_equal(smartio_nvme_open_wait("gpu0", UINT32_MAX, &n), -ENOTSUP);
	assert_true(fake.now - start < MS);
	start_manager();
}

static void one_comes(void **state)
{
	static const uint32_t timeouts[] = {5000, UINT32_MAX, 3010};

	for (unsigned i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
		struct smartio_nvme *n = NULL;

		(void)state;
		in_ms(3000, manager_comes);
		fake.borrow_calls = 0;
		assert_ok(smartio_nvme_open_wait("nvme0", timeouts[i], &n));
		/* Its notice was the event: nothing was slept through. */
		assert_in_range(fake.now - came, 0, 2 * MS);
		/*
		 * The client's, and the manager's: the first one is for the drive alone, the last
		 * for its second path.
		 */
		assert_int_equal(fake.borrow_calls, 4);
		smartio_nvme_queue_close(queue(n, 4));
		smartio_nvme_close(n);
		stop_manager();
		assert_int_equal(fake.objects, 0);
	}
	start_manager();
}

static void it_comes_too_late(void **state)
{
	struct smartio_nvme *n;

	(void)state;
	in_ms(3000, manager_comes);
	assert_int_equal(smartio_nvme_open_wait("nvme0", 2900, &n), -ENOTCONN);
	assert_int_equal(fake.objects, 0);
	fake.event = NULL;
	start_manager();
}

static void a_drive_that_is_held_exclusively_comes_free(void **state)
{
	struct smartio_nvme *n = NULL;
	uint64_t start;

	(void)state;
	borrow_exclusively();
	assert_int_equal(smartio_nvme_open("nvme0", &n), -EBUSY);
	assert_int_equal(fake.borrow_calls, 1);
	start = fake.now;
	assert_int_equal(smartio_nvme_open_wait("nvme0", 1000, &n), -EBUSY);
	assert_text("cannot borrow it");
	assert_in_range(fake.now - start, 1000 * MS, 1100 * MS);
	/* It asks at its beginning and at its end; meanwhile it is told. */
	assert_int_equal(fake.borrow_calls, 3);
	assert_int_equal(fake.await_calls, 1);
	fake.borrow_calls = 0;
	in_ms(2000, others_return_it);
	assert_ok(smartio_nvme_open_wait("nvme0", 5000, &n));
	assert_in_range(fake.now - came, 0, 2 * MS);
	/* Two of the client's, and the manager's two. */
	assert_int_equal(fake.borrow_calls, 4);
	smartio_nvme_close(n);
}

static void the_drive_goes_meanwhile(void)
{
	fake.lost = fake_last_borrower();
}

static void a_drive_that_is_lost_ends_the_wait(void **state)
{
	struct smartio_nvme *n = NULL;
	uint64_t start = fake.now;

	(void)state;
	in_ms(100, the_drive_goes_meanwhile);
	assert_int_equal(smartio_nvme_open_wait("nvme0", UINT32_MAX, &n), -ENODEV);
	assert_true(fake.now - start < 1000 * MS);
	fake.lost = 0;
	start_manager();
}

int main(void)
{
#define BARE(name) cmocka_unit_test_setup_teardown(name, setup_drive, teardown)
	const struct CMUnitTest tests[] = {
		BARE(none_comes),
		BARE(what_will_not_come_is_not_waited_for),
		BARE(one_comes),
		BARE(it_comes_too_late),
		BARE(a_drive_that_is_held_exclusively_comes_free),
		BARE(a_drive_that_is_lost_ends_the_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
