/* SPDX-License-Identifier: BSD-2-Clause */
/* A manager ends while its drive does not answer: what the drive uses stays mapped for it. */
#include "client.h"
#include "common.h"

static int clean(void **state)
{
	(void)state;
	assert_int_equal(fake.faults, 0);
	fake_stop();
	return 0;
}

static void drive_that_hangs_is_reset_by_its_lender(void **state)
{
	(void)state;
	fake.stopped = true;
	stop_manager();
	assert_int_equal(fake.faults, 0);
	assert_int_equal(fake.objects, 0);
	fake.stopped = false;
	fake_step();
	assert_int_equal(fake_csts(), 0);
	start_manager();
	stop_manager();
	assert_int_equal(fake.objects, 0);
}

static void drive_that_nobody_can_stop_keeps_its_memory(void **state)
{
	uint64_t borrower = fake_last_borrower();

	(void)state;
	fake.stopped = fake.unresettable = true;
	stop_manager();
	assert_int_equal(fake.faults, 0);
	assert_true(fake.objects > 0);
	fake.stopped = fake.unresettable = false;
	/* The program ends: what it had is in quarantine until the next manager has reset it. */
	fake_kill(borrower);
	assert_int_equal(fake_quarantined(), 1);
	start_manager();
	assert_int_equal(fake_quarantined(), 0);
	stop_manager();
}

static void drive_that_keeps_its_memory_is_not_kept_from_others(void **state)
{
	struct smartio_nvme_manager *m;

	stop_manager();
	fake.hangs = fake.unresettable = true;
	assert_int_equal(smartio_nvme_manager_open("nvme0", NULL, &m), -ETIMEDOUT);
	assert_int_equal(fake.faults, 0);
	assert_true(fake.objects > 0);
	fake.hangs = fake.stopped = fake.unresettable = false;
	(void)state;
	start_manager();
	stop_manager();
}

/* Whatever it still has is in quarantine with its lender: nothing need be kept here. */
static void drive_that_is_lost_is_its_lenders(void **state)
{
	(void)state;
	fake.stopped = fake.unresettable = fake.goes = true;
	stop_manager();
	assert_int_equal(fake.objects, 0);
}

/*
 * A queue is closed while a call fails, each in turn: what could not be deleted then is when its
 * client is closed.
 */
static void a_queue_that_could_not_be_deleted_is_when_its_client_ends(void **state)
{
	unsigned kept = 0;
	bool all = false;

	(void)state;
	for (unsigned long k = 1; !all; k++) {
		struct smartio_nvme *n = client();
		struct smartio_nvme_queue *q = queue(n, 4);

		assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 1);
		fake.fail_at = fake.calls + k;
		smartio_nvme_queue_close(q);
		all = fake.calls < fake.fail_at;
		fake.fail_at = 0;
		kept += n->kept != NULL;
		if (fake.served) { /* it was the manager's */
			smartio_nvme_close(n);
			stop_manager();
			fake.served = 0;
			start_manager();
			continue;
		}
		smartio_nvme_close(n);
		assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 0);
		assert_int_equal(fake_holds(), 0);
	}
	assert_true(kept > 0);
	stop_manager();
	assert_int_equal(fake_quarantined(), 0);
	assert_int_equal(fake.objects, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(drive_that_hangs_is_reset_by_its_lender),
		TEST(drive_that_nobody_can_stop_keeps_its_memory),
		TEST(drive_that_keeps_its_memory_is_not_kept_from_others),
		TEST(drive_that_is_lost_is_its_lenders),
		TEST(a_queue_that_could_not_be_deleted_is_when_its_client_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
