/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients and managers that die, or say nothing: what is told, kept, and given back. */
#include "client.h"
#include "common.h"
#include "smartio/nvmeraw.h"

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
	struct smartio_nvme_queue *q = NULL;
	uint8_t page[4096];
	uint64_t start;

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
	/* The queue that was asked for first was made, and taken back at once. */
	assert_int_equal(fake_counter("queue_pairs"), 0);
	assert_ok(smartio_nvme_queue_open(n, NULL, &q));
	smartio_nvme_close(n);
	assert_int_equal(fake_quarantined(), 0);
}

/*
 * The manager is away when it is to be taken back, too: the next queue has that done, and uses the
 * memory.
 */
static void pair_of_an_unanswered_request_is_taken_back_later(void **state)
{
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = NULL, *four[4];

	(void)state;
	fake.manager = NULL;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(smartio_nvme_queue_open(n, NULL, &q), -ETIMEDOUT);
	assert_int_equal(n->kept->unanswered + 1, n->sequence); /* by the last one */
	fake.manager = m;
	for (unsigned i = 0; i < 4; i++)
		assert_ok(smartio_nvme_queue_open(n, NULL, &four[i]));
	assert_null(n->kept);
	assert_int_equal(fake_counter("queue_pairs"), 4);
	smartio_nvme_close(n);
}

/* As a lease is whose answer did not come. */
static void lease_of_an_unanswered_request_is_taken_back(void **state)
{
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme *n = client();
	struct smartio_nvme_lease *l = NULL;

	(void)state;
	fake.manager = NULL;
	assert_int_equal(smartio_nvme_lease_take(n, "mine", 1, 0, 8, &l), -ETIMEDOUT);
	assert_text("has not answered for 5 s");
	fake.manager = m;
	assert_ok(smartio_nvme_lease_take(n, "mine", 1, 4, 8, &l));
	smartio_nvme_close(n);
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

/* Its commands are somebody else's: any buffer may be where the drive still writes. */
static void buffers_stay_with_a_kept_queue_that_was_handed_over(void **state)
{
	struct smartio_nvme_manager *dead = fake.manager;
	uint64_t id = fake_last_borrower();
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 8);
	struct smartio_nvme_buffer *b = buffer(n, 4096);
	struct smartio_nvme_raw raw = {.size = sizeof(raw)};

	(void)state;
	assert_ok(smartio_nvme_queue_hand_over(q, &raw));
	fake.manager = NULL;
	fake_kill(id);
	smartio_nvme_manager_close(dead);
	smartio_nvme_queue_close(q);
	assert_int_equal(smartio_nvme_buffer_free(b), -EBUSY);
	start_manager(); /* it resets the drive */
	assert_ok(smartio_nvme_buffer_free(b));
	smartio_nvme_close(n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(killed_client_leaves_nothing),
		TEST(what_could_not_be_settled_is_settled_later),
		TEST(what_many_had_is_settled_later),
		TEST(request_of_a_dead_borrower_is_not_executed),
		TEST(manager_dies_and_another_comes),
		TEST(manager_that_waits_for_another_tells_its_own),
		TEST(stopped_manager_is_reported),
		TEST(pair_of_an_unanswered_request_is_taken_back_later),
		TEST(lease_of_an_unanswered_request_is_taken_back),
		TEST(manager_that_waits_for_a_smartiod_is_waited_for),
		TEST(queues_are_kept_when_nobody_can_delete_them),
		TEST(buffers_stay_with_a_kept_queue_that_was_handed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
