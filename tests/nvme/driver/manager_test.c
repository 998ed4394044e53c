/* SPDX-License-Identifier: BSD-2-Clause */
/* Manager and clients: who may, who ends, what comes back. */
#include <stdio.h>

#include "client.h"
#include "common.h"
#include "manager.h"

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
	assert_text("no manager serves nvme0: start one with: smartio-nvme manager nvme0");
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
	assert_text("the drive has 4 I/O queue pairs, all in use");
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
		{{.size = sizeof(bad[0].o), .sq_placement = 3}, "placement 3"},
		{{.size = sizeof(bad[0].o), .cq_placement = 4}, "placement 4"},
		{{.size = sizeof(bad[0].o), .namespace_id = 2}, "no namespace 2"},
		{{.size = sizeof(bad[0].o), .flags = 2}, "flags 0x2"},
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

static void killed_client_leaves_nothing(void **state)
{
	struct smartio_nvme *n = client(), *other;
	uint64_t id = fake_last_borrower();
	struct smartio_nvme_queue *q = queue(n, 16), *q2 = queue(n, 4), *oq;
	struct smartio_nvme_buffer *b = buffer(n, 65536);
	uint8_t out[4096], in[4096];

	(void)state;
	(void)q2;
	other = client();
	oq = queue(other, 4);
	for (unsigned i = 0; i < 16; i++)
		assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, i * 8, 8, b, i * 4096, NULL));
	smartio_nvme_ring(q);
	fake_kill(id);
	assert_true(fake_quarantined() > 0);
	memset(out, 0x5a, sizeof(out));
	assert_ok(smartio_nvme_write(oq, out, 8192, sizeof(out)));
	assert_ok(smartio_nvme_read(oq, in, 8192, sizeof(in)));
	assert_memory_equal(in, out, sizeof(in));
	for (unsigned i = 0; i < 100; i++)
		fake_step();
	assert_int_equal(fake_quarantined(), 0);
	assert_int_equal(fake_csts(), 1);
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 1);
	assert_int_equal(fake.faults, 0);
	smartio_nvme_close(n);
	fake_bury(id);
	smartio_nvme_close(other);
}

/* The lender cannot take the manager's word at once: it is told again, of each of the dead. */
static void what_could_not_be_settled_is_settled_later(void **state)
{
	struct smartio_nvme *n[2];
	uint64_t id[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		n[i] = client();
		id[i] = fake_last_borrower();
		(void)queue(n[i], 4);
	}
	fake.unsettled = 3;
	fake_kill(id[0]);
	fake_kill(id[1]);
	fake_step();
	assert_true(fake_quarantined() > 0);
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		fake.now += 1000000000;
		fake_step();
	}
	assert_int_equal(fake.unsettled, 0);
	assert_int_equal(fake_quarantined(), 0);
	assert_int_equal(fake.served, 0);
	for (unsigned i = 0; i < 2; i++) {
		smartio_nvme_close(n[i]);
		fake_bury(id[i]);
	}
}

/* A lender that has no memory for long: of everybody, in time, and nobody else notices. */
static void what_many_had_is_settled_later(void **state)
{
	struct smartio_nvme *n[40], *other = client();
	struct smartio_nvme_queue *q = queue(other, 4);
	uint8_t data[512];
	uint64_t id[40];

	(void)state;
	fake.unsettled = 7;
	for (unsigned i = 0; i < 40; i++) {
		n[i] = client();
		id[i] = fake_last_borrower();
		(void)buffer(n[i], 4096);
		fake_kill(id[i]);
		fake_step();
		assert_int_equal(fake.unsettled, 6); /* not asked for each: it may not answer */
	}
	assert_true(fake_quarantined() >= 40);
	assert_ok(smartio_nvme_read(q, data, 0, 512));
	for (unsigned i = 6; i-- > 0;) {
		fake.now += 1000000000;
		fake_step();
		assert_int_equal(fake.unsettled, i);
	}
	assert_true(fake_quarantined() >= 40);
	fake.now += 1000000000;
	fake_step();
	assert_int_equal(fake_quarantined(), 0);
	assert_int_equal(fake.served, 0);
	for (unsigned i = 0; i < 40; i++) {
		smartio_nvme_close(n[i]);
		fake_bury(id[i]);
	}
	smartio_nvme_close(other);
}

static void request_of_a_dead_borrower_is_not_executed(void **state)
{
	struct smartio_nvme *n = client();
	uint64_t id = fake_last_borrower();
	struct sio_nvme_meta *meta = &n->meta;
	struct sio_nvme_req req = {
		.magic = SIO_NVME_REQ_MAGIC,
		.version = SIO_NVME_VERSION,
		.op = SIO_NVME_OP_CREATE,
		.reply_node = FAKE_NODE,
		.instance = meta->instance,
		.borrower = id,
		.reply_interrupt = n->reply_number,
		.create = {.sq = 0x1000, .cq = 0x2000, .sq_entries = 4, .cq_entries = 4}};
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	uint8_t message[sizeof(struct sio_nvme_rep)];
	unsigned length = sizeof(message);
	sci_error_t error;

	(void)state;
	(void)b;
	sio_nvme_req_encode(&req, message);
	/* It waits in the ring when the death is told. */
	assert_true(fake_inject(meta->interrupt, message, sizeof(req)));
	fake_kill(id);
	fake_step();
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 0);
	assert_true(fake_inject(meta->interrupt, message, sizeof(req)));
	fake_step();
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 0);
	assert_int_equal(fake_quarantined(), 0);
	/* Nor answered: the interrupt may be another client's by now. */
	SCIWaitForDataInterrupt(n->reply, message, &length, 0, 0, &error);
	assert_int_equal(error, SCI_ERR_TIMEOUT);
	smartio_nvme_close(n);
}

static void manager_dies_and_another_comes(void **state)
{
	struct smartio_nvme_manager *dead = fake.manager;
	uint64_t id = fake_last_borrower();
	struct smartio_nvme *n = client(), *late;
	struct smartio_nvme_queue *q = queue(n, 8), *q2 = queue(n, 8), *q3;
	uint8_t data[512];

	(void)state;
	assert_ok(smartio_nvme_write(q, memset(data, 7, 512), 0, 512));
	fake.manager = NULL;
	fake_kill(id);
	smartio_nvme_manager_close(dead);
	/* I/O goes on; new clients are told; a queue that is closed now stays with the drive. */
	assert_ok(smartio_nvme_read(q, data, 0, 512));
	assert_int_equal(smartio_nvme_open("nvme0", &late), -ENOTCONN);
	assert_int_equal(smartio_nvme_queue_open(n, NULL, &q3), -ENOTCONN);
	smartio_nvme_queue_close(q2);
	assert_non_null(n->kept);

	start_manager();
	assert_int_equal(smartio_nvme_read(q, data, 0, 512), -ECONNRESET);
	assert_text("was reset or lost");
	smartio_nvme_queue_close(q);
	q3 = queue(n, 8);
	assert_null(n->kept);
	assert_ok(smartio_nvme_read(q3, data, 0, 512));
	assert_int_equal(data[5], 7);
	smartio_nvme_close(n);
	/* Only what the dead manager had mapped itself; the new one's reset settled it. */
	assert_int_equal(fake_quarantined(), 0);
}

/*
 * What the one before told of the drive is not what its successor tells: that asks the drive
 * itself.
 */
static void manager_that_waits_for_another_tells_its_own(void **state)
{
	struct smartio_nvme_manager *before = fake.manager;
	struct smartio_nvme_info info;
	struct smartio_nvme *n;

	(void)state;
	fake.manager = NULL;
	fake.dies = fake_last_borrower();
	fake.dies_at =
		3; /* its registers were asked for, what it tells was read, and it is waited for */
	start_manager();
	assert_int_equal(fake.dies_at, 0);
	smartio_nvme_manager_close(before);
	n = client();
	smartio_nvme_get_info(n, &info);
	assert_int_equal(info.namespaces, 1);
	smartio_nvme_close(n);
}

/* It lives, but does nothing: said soon, and nothing is lost when it goes on. */
static void stopped_manager_is_reported(void **state)
{
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme *n = client();
	uint64_t start, mine = fake_last_borrower();
	struct smartio_nvme_queue *q = NULL;
	uint8_t page[4096];

	(void)state;
	fake.manager = NULL;
	start = fake.now;
	assert_int_equal(smartio_nvme_queue_open(n, NULL, &q), -ETIMEDOUT);
	assert_text("has not answered for 5 s");
	assert_text("on node 8");
	assert_in_range(fake.now - start, 5000000000u, 5500000000u);
	assert_int_equal(smartio_nvme_identify(n, 1, 0, page), -ETIMEDOUT);
	fake.manager = m;
	assert_ok(smartio_nvme_identify(n, 1, 0, page));
	assert_ok(smartio_nvme_queue_open(n, NULL, &q));
	smartio_nvme_close(n);
	/* The queue that was asked for first may have been made: its memory stayed. */
	fake_kill(mine);
	fake_step();
	assert_int_equal(fake_quarantined(), 0);
	fake_bury(mine);
}

/* Calls wait for the next smartiod, the manager's, too: that does not count as its silence. */
static void manager_that_waits_for_a_smartiod_is_waited_for(void **state)
{
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme *n = client();
	uint8_t page[4096];

	(void)state;
	fake.manager = NULL;
	fake.back = m;
	fake.away_ns = 20000000000u;
	fake.away_at = 3; /* it was asked, and then looked for once */
	assert_ok(smartio_nvme_identify(n, 1, 0, page));
	assert_int_equal(fake.away_at, 0);
	smartio_nvme_close(n);
}

static void queues_are_kept_when_nobody_can_delete_them(void **state)
{
	struct smartio_nvme_manager *dead = fake.manager;
	uint64_t id = fake_last_borrower();
	struct smartio_nvme *n = client();
	uint64_t mine = fake_last_borrower();
	struct smartio_nvme_queue *q = queue(n, 8);
	struct smartio_nvme_buffer *b = buffer(n, 4096);

	(void)state;
	fake.manager = NULL;
	fake_kill(id);
	smartio_nvme_manager_close(dead);
	fake.stopped = true;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 8, b, 0, NULL));
	smartio_nvme_ring(q);
	smartio_nvme_queue_close(q);
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	smartio_nvme_close(n);
	/* The process ends: what it had goes to quarantine, and the drive may still write there. */
	fake_kill(mine);
	fake.stopped = false;
	fake_step();
	assert_int_equal(fake.faults, 0);
	assert_true(fake_quarantined() > 0);
	start_manager();
	assert_int_equal(fake_quarantined(), 0);
	/* Mapped to the end, as it must. */
	fake_bury(mine);
}

static void reset_by_others_ends_manager_and_queues(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 8);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_completion c;

	(void)state;
	fake.stopped = true;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 8, b, 0, NULL));
	smartio_nvme_ring(q);
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	fake_reset_device();
	fake.stopped = false;
	assert_int_equal(smartio_nvme_poll(q, &c, 1), -ECONNRESET);
	assert_int_equal(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 8, b, 0, NULL), -ECONNRESET);
	assert_ok(smartio_nvme_buffer_free(b));
	fake_step();
	assert_int_equal(fake.served, -EIO);
	smartio_nvme_close(n);
}

static void stale_queue_does_not_ring(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 8);
	struct smartio_nvme_buffer *b = buffer(n, 4096);

	(void)state;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 8, b, 0, NULL));
	fake_reset_device();
	*q->sq_doorbell = 0;
	smartio_nvme_ring(q);
	assert_int_equal(*q->sq_doorbell, 0);
	smartio_nvme_close(n);
}

/* What was completed before a reset is not acknowledged to the drive that there is now. */
static void stale_completions_are_not_acknowledged(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 8);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_completion c[4];

	(void)state;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 8, b, 0, NULL));
	smartio_nvme_ring(q);
	fake_step();
	fake_reset_device();
	*q->cq_doorbell = 77;
	smartio_nvme_poll(q, c, 4);
	assert_int_equal(*q->cq_doorbell, 77);
	smartio_nvme_close(n);
}

/* A queue with commands that never end: it is closed all the same, and its memory is kept. */
static void closing_ends_without_an_answer(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 8);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	uint64_t began = fake.now;

	(void)state;
	fake.stopped = true;
	assert_ok(smartio_nvme_submit(q, SMARTIO_NVME_READ, 0, 8, b, 0, NULL));
	smartio_nvme_ring(q);
	smartio_nvme_queue_close(q);
	assert_true(fake.now - began < 120000000000u);
	fake_reset_device();
	fake.stopped = false;
	smartio_nvme_close(n);
}

static void generation_told_late_is_waited_for(void **state)
{
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	uint8_t data[512];

	(void)state;
	n = client();
	q = queue(n, 4);
	stop_manager();
	fake.late_generation = true;
	start_manager();
	smartio_nvme_queue_close(q);
	q = queue(n, 4);
	assert_ok(smartio_nvme_read(q, data, 0, 512));
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
		TEST(killed_client_leaves_nothing),
		TEST(what_could_not_be_settled_is_settled_later),
		TEST(what_many_had_is_settled_later),
		TEST(request_of_a_dead_borrower_is_not_executed),
		TEST(manager_dies_and_another_comes),
		TEST(manager_that_waits_for_another_tells_its_own),
		TEST(stopped_manager_is_reported),
		TEST(manager_that_waits_for_a_smartiod_is_waited_for),
		TEST(queues_are_kept_when_nobody_can_delete_them),
		TEST(reset_by_others_ends_manager_and_queues),
		TEST(stale_queue_does_not_ring),
		TEST(stale_completions_are_not_acknowledged),
		TEST(closing_ends_without_an_answer),
		TEST(generation_told_late_is_waited_for),
		TEST(serve_stops_when_told),
		cmocka_unit_test_teardown(every_failure_is_survived, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
