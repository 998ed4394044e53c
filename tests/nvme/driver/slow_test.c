/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin commands that may take minutes: the manager serves others meanwhile, but for what must not
 * be beside them; who asked may give up, end, or lose the manager, and the command goes on.
 */
#include <nvme/types.h>

#include "client.h"
#include "common.h"
#include "manager.h"

#define MS 1000000ull
#define DELAY 1u /* enum emu_dev_fault_kind, whose headers are not the driver's */
#define DROP 2u
#define LONGER 20000u /* ms: more than a manager waits for a command */

static struct smartio_nvme *other; /* whose turn comes while another's command is under way */
static uint64_t asker;
static unsigned called;

static void later(unsigned ms, void (*event)(void))
{
	fake.event_at = fake.now + ms * MS;
	fake.event = event;
}

/* Of the next command with this opcode. */
static void takes(uint8_t opcode, unsigned ms)
{
	fake_admin_fault(DELAY, opcode, ms * MS);
}

static int smart(struct smartio_nvme *n, uint32_t timeout_ms, struct nvme_smart_log *log)
{
	const struct smartio_nvme_admin c = {.size = sizeof(c),
					     .opcode = nvme_admin_get_log_page,
					     .nsid = NVME_NSID_ALL,
					     .cdw10 = (uint32_t)(sizeof(*log) / 4 - 1) << 16 |
						      NVME_LOG_LID_SMART,
					     .data = log,
					     .bytes = sizeof(*log),
					     .timeout_ms = timeout_ms};

	return smartio_nvme_admin(n, &c, NULL, NULL);
}

static int format(struct smartio_nvme *n)
{
	return smartio_nvme_format(n, 1, 1, SMARTIO_NVME_CONFIRMED);
}

static void settle(unsigned steps)
{
	while (steps--)
		fake_step();
}

/* ---- what others may meanwhile ---- */

static void ask_beside_a_format(void)
{
	struct smartio_nvme_lease *lease;
	struct smartio_nvme_queue *q;
	struct nvme_smart_log log;

	called++;
	assert_ok(smart(other, 0, &log));
	assert_int_equal(log.avail_spare, 100);
	assert_int_equal(smart(other, LONGER, &log), -EBUSY);
	assert_text("nvme0 carries out admin command 0x80 of node 8: one that may take longer");
	assert_int_equal(smartio_nvme_queue_open(other, NULL, &q), -EBUSY);
	assert_text("0x80 of node 8: clients can have queue pairs and leases when it is done");
	assert_int_equal(smartio_nvme_lease_take(other, "one", 1, 0, 8, &lease), -EBUSY);
	assert_text("clients can have queue pairs and leases when it is done");
}

/* A Format of @n takes 60 s: another client's @event comes after the first. */
static void format_beside(struct smartio_nvme *n, void (*event)(void))
{
	other = client();
	called = 0;
	takes(nvme_admin_format_nvm, 60000);
	later(1000, event);
	assert_ok(format(n));
	assert_int_equal(called, 1);
}

static void others_are_served_beside_a_format(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_namespace ns;
	static uint8_t data[4096];

	(void)state;
	format_beside(n, ask_beside_a_format);
	assert_ok(smartio_nvme_get_namespace(n, 0, &ns));
	assert_int_equal(ns.block_size, 4096);
	assert_ok(smartio_nvme_write(queue(n, 4), data, 0, sizeof(data)));
	smartio_nvme_close(other);
	smartio_nvme_close(n);
}

static int raw(struct smartio_nvme *n, uint8_t opcode, uint32_t timeout_ms)
{
	const struct smartio_nvme_admin c = {.size = sizeof(c),
					     .opcode = opcode,
					     .flags = SMARTIO_NVME_CONFIRMED,
					     .nsid = 1,
					     .timeout_ms = timeout_ms};

	return smartio_nvme_admin(n, &c, NULL, NULL);
}

/* It would stand behind the first in the drive, and the manager with it. */
static void format_in_a_second(void)
{
	called++;
	assert_int_equal(raw(other, nvme_admin_format_nvm, 1000), -EBUSY);
	assert_text("nvme0 carries out admin command 0x80 of node 8");
}

/* The manager does not end with its patience, whatever a client says of the time it needs. */
static void a_format_may_take_longer_than_its_client_says(void **state)
{
	struct smartio_nvme *n = client();
	struct nvme_smart_log log;

	(void)state;
	other = client();
	called = 0;
	takes(nvme_admin_format_nvm, 30000);
	later(500, format_in_a_second);
	assert_int_equal(raw(n, nvme_admin_format_nvm, 1000), -ETIMEDOUT);
	assert_text("has not completed admin command 0x80 within its time limit");
	assert_int_equal(called, 1);
	assert_ok(smart(n, 0, &log));
	fake.now += 30000 * MS;
	settle(100);
	assert_int_equal(fake.served, 0);
	assert_int_equal(fake_counter("formats"), 1);
	smartio_nvme_close(other);
	smartio_nvme_close(n);
	n = client();
	(void)queue(n, 4);
	smartio_nvme_close(n);
}

/* Who says nothing of it gives the drive 10 s, in which the manager is nobody else's. */
static void who_says_nothing_waits_for_ten_seconds(void **state)
{
	struct smartio_nvme *n = client();
	struct nvme_smart_log log;

	(void)state;
	takes(nvme_admin_get_log_page, 8000);
	assert_ok(smart(n, 0, &log));
	takes(nvme_admin_format_nvm, 8000);
	assert_ok(raw(n, nvme_admin_format_nvm, 0));
	smartio_nvme_close(n);
}

static void ask_for_a_queue(void)
{
	struct smartio_nvme_queue *q;

	called++;
	assert_int_equal(smartio_nvme_queue_open(other, NULL, &q), -EBUSY);
	assert_text("0xc0 of node 8: clients can have queue pairs and leases when it is done");
}

/* What they do to others nobody knows. */
static void nobody_gets_a_queue_beside_a_vendors_command(void **state)
{
	const struct smartio_nvme_manager_options o = {.size = sizeof(o),
						       .flags = SMARTIO_NVME_ALLOW_VENDOR};
	static const uint32_t timeout_ms[] = {0, LONGER};
	struct smartio_nvme *n;

	(void)state;
	stop_manager();
	assert_ok(smartio_nvme_manager_open("nvme0", &o, &fake.manager));
	n = client();
	other = client();
	called = 0;
	for (unsigned i = 0; i < 2; i++) {
		takes(0xc0, 2000);
		later(1000, ask_for_a_queue);
		assert_int_equal(raw(n, 0xc0, timeout_ms[i]), -EIO);
		assert_text("invalid command opcode");
		assert_int_equal(called, i + 1);
	}
	smartio_nvme_close(other);
	smartio_nvme_close(n);
}

static void ask_a_drive_that_does_one_after_the_other(void)
{
	struct nvme_smart_log log;

	called++;
	takes(nvme_admin_get_log_page,
	      50000); /* until the other one is done, and longer than 10 s */
	assert_ok(smart(other, 0, &log));
	assert_int_equal(log.avail_spare, 100);
}

/* A drive may carry admin commands out in turns: what waits behind a slow one is not late. */
static void a_drive_that_does_one_after_the_other_is_not_lost(void **state)
{
	struct smartio_nvme *n = client();

	(void)state;
	format_beside(n, ask_a_drive_that_does_one_after_the_other);
	assert_int_equal(fake.served, 0);
	smartio_nvme_close(other);
	smartio_nvme_close(n);
}

static void have_a_queue(void)
{
	static uint8_t out[512], in[512];

	called++;
	memset(out, 0x5a, sizeof(out));
	assert_ok(smartio_nvme_write(queue(other, 4), out, 0, sizeof(out)));
	assert_ok(smartio_nvme_read(queue(other, 4), in, 0, sizeof(in)));
	assert_memory_equal(in, out, sizeof(in));
}

/* Of the drive's health, which takes it 15 s: @event comes @ms after its begin. */
static void read_the_log_beside(unsigned ms, void (*event)(void))
{
	struct smartio_nvme *n = client();
	struct nvme_smart_log log;

	other = client();
	called = 0;
	takes(nvme_admin_get_log_page, 15000);
	later(ms, event);
	assert_ok(smart(n, LONGER, &log));
	assert_int_equal(called, 1);
	assert_int_equal(log.avail_spare, 100);
	smartio_nvme_close(other);
	smartio_nvme_close(n);
}

static void what_harms_nobody_is_beside_all(void **state)
{
	(void)state;
	read_the_log_beside(1000, have_a_queue);
}

/* ---- who asked is not there any more ---- */

static void who_gives_up_leaves_it_to_the_drive(void **state)
{
	struct smartio_nvme *n = client();
	struct nvme_smart_log log;
	uint8_t data[512];

	(void)state;
	takes(nvme_admin_get_log_page, 14000);
	assert_int_equal(smart(n, 11000, &log), -ETIMEDOUT);
	assert_text("has not completed admin command 0x02 within its time limit");
	assert_int_equal(smart(n, LONGER, &log), -EBUSY);
	assert_ok(smartio_nvme_read(queue(n, 4), data, 0, sizeof(data)));
	fake.now += 4000 * MS;
	settle(10);
	memset(&log, 0, sizeof(log));
	assert_ok(smart(n, LONGER, &log));
	assert_int_equal(log.avail_spare, 100);
	assert_int_equal(fake.served, 0);
	smartio_nvme_close(n);
}

static void die(void)
{
	called++;
	fake_kill(asker);
}

static void who_dies_leaves_it_to_the_drive(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_namespace ns;

	(void)state;
	asker = fake_last_borrower();
	called = 0;
	takes(nvme_admin_format_nvm, 12000);
	later(1000, die);
	assert_true(format(n) < 0);
	assert_int_equal(called, 1);
	smartio_nvme_close(n);
	fake_bury(asker);
	fake.now += 12000 * MS;
	settle(100);
	n = client();
	assert_ok(smartio_nvme_get_namespace(n, 0, &ns));
	assert_int_equal(ns.block_size, 4096);
	(void)queue(n, 4);
	smartio_nvme_close(n);
}

static void a_drive_that_never_completes_it_is_lost(void **state)
{
	struct smartio_nvme *n = client();
	struct nvme_smart_log log;

	(void)state;
	fake_admin_fault(DROP, nvme_admin_get_log_page, 0);
	assert_int_equal(smart(n, 600000, &log), -ETIMEDOUT);
	assert_int_equal(fake.served, 0);
	fake.now += 11000 * MS;
	settle(10);
	assert_int_equal(fake.served, -EIO);
	smartio_nvme_close(n);
}

static void a_short_admin_queue_has_no_room_for_one(void **state)
{
	const struct smartio_nvme_manager_options o = {.size = sizeof(o), .admin_entries = 3};
	struct smartio_nvme *n;
	struct nvme_smart_log log;

	(void)state;
	stop_manager();
	assert_ok(smartio_nvme_manager_open("nvme0", &o, &fake.manager));
	n = client();
	assert_int_equal(smart(n, LONGER, &log), -EOPNOTSUPP);
	assert_text("an admin queue of 3 entries: commands that may take longer than 10 s need 4");
	assert_ok(smart(n, 0, &log));
	smartio_nvme_close(n);
}

/* As if 65,000 commands had gone by: their ids begin anew. */
static void ask_with_all_ids(void)
{
	struct sio_nvme_ctrl *c = &fake.manager->ctrl;
	const uint16_t slow = c->slow.cid;
	uint8_t *data = malloc(4096);

	called++;
	c->cid = (uint16_t)(slow - 3);
	for (unsigned i = 0; i < 6; i++) {
		assert_ok(smartio_nvme_identify(other, 1, 0, data));
		assert_int_not_equal(c->cid, slow);
	}
	assert_int_equal(c->cid, (uint16_t)(slow + 4));
	free(data);
}

static void its_id_is_given_to_no_other(void **state)
{
	(void)state;
	read_the_log_beside(1, ask_with_all_ids);
}

/* ---- the manager dies ---- */

static struct smartio_nvme_manager *stand_by(void)
{
	const struct smartio_nvme_manager_options o = {.size = sizeof(o),
						       .flags = SMARTIO_NVME_STANDBY};
	struct smartio_nvme_manager *m = NULL;

	assert_ok(smartio_nvme_manager_open("nvme0", &o, &m));
	return m;
}

/* It dies with the answer to somebody else, who asks the next one. */
static void kill_the_manager(void)
{
	struct smartio_nvme_pair pair[4];

	called++;
	fake.killed_at = 1;
	assert_int_equal(smartio_nvme_get_pairs(other, pair, 4), 0);
}

/* Nobody formats twice, and nobody gets a queue before the drive is done. */
static void a_successor_waits_for_it_and_serves_others(void **state)
{
	const uint64_t first = fake_last_borrower();
	struct smartio_nvme_namespace ns;
	struct smartio_nvme_queue *q;
	struct nvme_smart_log log;
	struct smartio_nvme *n;

	(void)state;
	fake.standby = stand_by();
	fake.killed_id = first;
	n = client();
	other = client();
	called = 0;
	takes(nvme_admin_format_nvm, 30000);
	later(1000, kill_the_manager);
	assert_int_equal(format(n), -ENOTCONN);
	assert_int_equal(called, 1);
	assert_null(fake.standby);
	assert_ok(smart(n, 0, &log));
	assert_int_equal(smartio_nvme_queue_open(n, NULL, &q), -EBUSY);
	assert_text("carries out an admin command of its previous manager");
	fake.now += 30000 * MS;
	settle(100);
	smartio_nvme_close(other);
	smartio_nvme_close(n);
	n = client();
	assert_ok(smartio_nvme_get_namespace(n, 0, &ns));
	assert_int_equal(ns.block_size, 4096);
	assert_int_equal(fake_counter("formats"), 1);
	(void)queue(n, 4);
	smartio_nvme_close(n);
}

/*
 * Before each of its stores: the command was given once at most, and its place comes free. One that
 * changes nothing and is short is asked for again.
 */
static void at_every_store(uint32_t timeout_ms)
{
	unsigned long k = 1;
	bool killed = true;

	for (; killed; k++) {
		struct smartio_nvme_manager *standby;
		struct nvme_smart_log log;
		struct smartio_nvme *n;
		uint64_t first;
		uint8_t data[512];
		int rc;

		fake_start(NULL);
		start_manager();
		first = fake_last_borrower();
		standby = stand_by();
		n = client();
		fake.standby = standby;
		fake.killed_id = first;
		fake.killed_at = k;
		takes(nvme_admin_get_log_page, 2);
		rc = smart(n, timeout_ms, &log);
		killed = fake.manager == standby;
		fake.killed_at = 0;
		if (rc && timeout_ms > SIO_NVME_ADMIN_MS)
			assert_int_equal(rc, -ENOTCONN);
		else
			assert_ok(rc);
		if (rc == 0)
			assert_int_equal(log.avail_spare, 100);
		fake.now += 100 * MS;
		settle(100);
		assert_ok(smart(n, LONGER, &log));
		assert_int_equal(log.avail_spare, 100);
		assert_ok(smartio_nvme_read(queue(n, 4), data, 0, sizeof(data)));
		smartio_nvme_close(n);
		if (!killed)
			smartio_nvme_manager_close(standby);
		stop_manager();
		assert_int_equal(fake.faults, 0);
		assert_int_equal(fake.objects, 0);
		fake_stop();
	}
	assert_true(k > 15);
}

static void at_every_store_of_a_manager(void **state)
{
	(void)state;
	at_every_store(LONGER);
	at_every_store(0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(others_are_served_beside_a_format),
		TEST(a_format_may_take_longer_than_its_client_says),
		TEST(who_says_nothing_waits_for_ten_seconds),
		TEST(nobody_gets_a_queue_beside_a_vendors_command),
		TEST(a_drive_that_does_one_after_the_other_is_not_lost),
		TEST(what_harms_nobody_is_beside_all),
		TEST(who_gives_up_leaves_it_to_the_drive),
		TEST(who_dies_leaves_it_to_the_drive),
		TEST(a_drive_that_never_completes_it_is_lost),
		TEST(a_short_admin_queue_has_no_room_for_one),
		TEST(its_id_is_given_to_no_other),
		TEST(a_successor_waits_for_it_and_serves_others),
		cmocka_unit_test(at_every_store_of_a_manager),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
