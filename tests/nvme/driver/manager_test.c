/* SPDX-License-Identifier: BSD-2-Clause */
/* Manager and clients: who may, what they are told, what comes back. */
#include "common.h"
#include "smartio/uapi.h"

static void manager_brings_the_drive_up_and_down(void **state)
{
	uint32_t all;

	(void)state;
	assert_int_equal(fake_csts(), 0);
	start_manager();
	assert_int_equal(fake_csts(), 1);
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, &all), 0);
	assert_int_equal(all, 4);
	stop_manager();
	assert_int_equal(fake_csts() & 3, 0);
	assert_int_equal(fake.objects, 0);
	start_manager();
}

static void second_manager_is_refused(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_manager *m;

	(void)state;
	assert_int_equal(smartio_nvme_manager_open("nvme0", NULL, &m), -EBUSY);
	assert_text("another manager (node 8) serves nvme0");
	assert_int_equal(fake_csts(), 1);
	smartio_nvme_close(n);
}

static void client_needs_device_and_manager(void **state)
{
	struct smartio_nvme *n;

	(void)state;
	assert_int_equal(smartio_nvme_open("nvme0", &n), -ENOTCONN);
	assert_text("no manager serves nvme0");
	assert_int_equal(smartio_nvme_open("nvme9", &n), -ENODEV);
	assert_text("nvme9");
	assert_int_equal(smartio_nvme_open("gpu0", &n), -ENOTSUP);
	assert_text("gpu0 is not an NVMe drive");
	assert_int_equal(smartio_nvme_open("", &n), -EINVAL);
	assert_int_equal(fake.objects, 0);
	start_manager();
}

static void client_learns_what_the_drive_is(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_namespace ns;
	struct smartio_nvme_info info;

	(void)state;
	smartio_nvme_get_info(n, &info);
	assert_string_equal(info.serial, "FAKE1");
	assert_int_equal(info.queue_pairs, 4);
	assert_int_equal(info.max_queue_entries, 256);
	assert_int_equal(info.version, 0x10400);
	assert_int_equal(info.manager_node, FAKE_NODE);
	assert_int_equal(info.namespaces, 1);
	assert_ok(smartio_nvme_get_namespace(n, 0, &ns));
	assert_int_equal(ns.id, 1);
	assert_int_equal(ns.block_size, 512);
	assert_int_equal(ns.blocks, FAKE_BLOCKS);
	assert_int_equal(smartio_nvme_get_namespace(n, 1, &ns), -ENOENT);
	smartio_nvme_close(n);
}

/* The adapter that leads to the drive leads to the manager only by chance. */
static void a_manager_is_reached_by_whatever_adapter_leads_there(void **state)
{
	struct smartio_nvme *n = client();
	uint8_t *data = malloc(4096);

	(void)state;
	fake.way = FAKE_ADAPTERS - 1;
	assert_ok(smartio_nvme_identify(n, 1, 0, data));
	fake.way = FAKE_ADAPTERS; /* the reply finds no way, and the request was sent before */
	assert_int_equal(smartio_nvme_identify(n, 1, 0, data), -ETIMEDOUT);
	assert_int_not_equal(smartio_nvme_identify(n, 1, 0, data), 0);
	assert_text("cannot reach its manager on node 8");
	fake.way = 0;
	assert_ok(smartio_nvme_identify(n, 1, 0, data));
	fake.way = FAKE_ADAPTERS - 1; /* a link goes down: the ring behind it is not lost */
	fake.severed = true;
	assert_ok(smartio_nvme_identify(n, 1, 0, data));
	fake.severed = false;
	free(data);
	smartio_nvme_close(n);
}

static void identify_goes_through_the_manager(void **state)
{
	struct smartio_nvme *n = client();
	uint8_t *data = malloc(4096);

	(void)state;
	assert_ok(smartio_nvme_identify(n, 1, 0, data));
	assert_memory_equal(data + 4, "FAKE1", 5);
	assert_int_equal(smartio_nvme_identify(n, 0xee, 0, data), -EIO);
	assert_text("Identify with CNS 238");
	free(data);
	smartio_nvme_close(n);
}

static void queue_pairs_run_out_and_come_back(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_queue *q[5];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		q[i] = queue(i % 2 ? n : other, 8);
	assert_int_equal(smartio_nvme_queue_open(n, NULL, &q[4]), -ENOSPC);
	assert_text("no queue pairs left: the 4 of nvme0 are held by node 8: 4 (nvme-driver-man)");
	assert_int_equal(smartio_nvme_exhausted(), SIO_OUT_OF_QUEUE_PAIRS);
	smartio_nvme_queue_close(q[2]);
	q[2] = queue(n, 8);
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 4);
	smartio_nvme_close(n);
	smartio_nvme_close(other);
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 0);
	assert_int_equal(smartio_nvme_manager_given(fake.manager), 5);
}

static void bad_options_are_refused(void **state)
{
	static const struct {
		struct smartio_nvme_queue_options o;
		const char *text;
	} bad[] = {
		{{.size = 1}, "size is 1"},
		{{.size = sizeof(bad[0].o), .depth = 256}, "depth 256"},
		{{.size = sizeof(bad[0].o), .max_transfer = 1 << 30}, "largest transfer"},
		{{.size = sizeof(bad[0].o), .max_transfer = 511}, "largest transfer"},
		{{.size = sizeof(bad[0].o), .sq_placement = 4}, "placement 4"},
		{{.size = sizeof(bad[0].o), .cq_placement = 3}, "placement 3"},
		{{.size = sizeof(bad[0].o), .cq_placement = 4}, "placement 4"},
		{{.size = sizeof(bad[0].o),
		  .sq_placement = SMARTIO_NVME_PLACE_CMB,
		  .flags = SMARTIO_NVME_SURVIVE},
		 "a queue in the drive's own memory cannot survive a reset"},
		{{.size = sizeof(bad[0].o),
		  .sq_placement = SMARTIO_NVME_PLACE_CMB,
		  .flags = SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE},
		 "a placement cannot be chosen"},
		{{.size = sizeof(bad[0].o), .namespace_id = 2}, "no namespace 2"},
		{{.size = sizeof(bad[0].o), .flags = 32}, "flags 0x20"},
		{{.size = sizeof(bad[0].o), .flags = SMARTIO_NVME_ALONE}, "survive"},
		{{.size = sizeof(bad[0].o), .survive_ms = 1}, "survive"},
	};
	struct {
		struct smartio_nvme_queue_options o;
		uint64_t later;
	} newer = {.o.size = sizeof(newer)};
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(smartio_nvme_queue_open(n, &bad[i].o, &q), -EINVAL);
		assert_text(bad[i].text);
	}
	assert_ok(smartio_nvme_queue_open(n, &newer.o, &q));
	newer.later = 1;
	assert_int_equal(smartio_nvme_queue_open(n, &newer.o, &q), -EINVAL);
	smartio_nvme_close(n);
}

static void serve_stops_when_told(void **state)
{
	(void)state;
	fake_step();
	smartio_nvme_manager_stop(fake.manager);
	assert_int_equal(smartio_nvme_manager_serve(fake.manager, UINT32_MAX), 0);
	assert_int_equal(smartio_nvme_manager_serve(fake.manager, 5), 0);
}

/* The n-th call of the API fails, for every n: an error, nothing left, and the next time it works.
 */
static void every_failure_is_survived(void **state)
{
	struct smartio_nvme_manager *m;
	struct smartio_nvme_queue *q;
	struct smartio_nvme *n;
	uint8_t data[512];
	bool done = false;

	(void)state;
	for (unsigned long k = 1; !done; k++) {
		fake_start(NULL);
		fake.fail_at = k;
		done = smartio_nvme_manager_open("nvme0", NULL, &m) == 0;
		if (done)
			smartio_nvme_manager_close(m);
		assert_int_equal(fake.objects, 0);
		assert_int_equal(fake.faults, 0);
		assert_int_equal(fake_csts() & 1, 0);
		fake_stop();
	}
	for (unsigned long k = 1; k < 80; k++) {
		fake_start(NULL);
		start_manager();
		fake.calls = 0;
		fake.fail_at = k;
		if (smartio_nvme_open("nvme0", &n) == 0) {
			if (smartio_nvme_queue_open(n, NULL, &q) == 0)
				smartio_nvme_read(q, data, 0, 512);
			smartio_nvme_close(n);
		}
		fake.fail_at = 0;
		if (!fake.served) {
			/* A reply that was lost leaves memory that the drive may use. */
			for (unsigned i = 0; i < 10; i++)
				fake_step();
			n = client();
			q = queue(n, 4);
			assert_ok(smartio_nvme_read(q, data, 0, 512));
			smartio_nvme_close(n);
		}
		stop_manager();
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
		BARE(manager_brings_the_drive_up_and_down),
		TEST(second_manager_is_refused),
		BARE(client_needs_device_and_manager),
		TEST(client_learns_what_the_drive_is),
		TEST(a_manager_is_reached_by_whatever_adapter_leads_there),
		TEST(identify_goes_through_the_manager),
		TEST(queue_pairs_run_out_and_come_back),
		TEST(bad_options_are_refused),
		TEST(serve_stops_when_told),
		cmocka_unit_test_teardown(every_failure_is_survived, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
