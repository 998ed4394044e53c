/* SPDX-License-Identifier: BSD-2-Clause */
/* What a client believes of a manager: its replies, and the segment by which it is found. */
#include <signal.h>
#include <stdalign.h>
#include <sys/mman.h>

#include "client.h"
#include "common.h"
#include "manager.h"
#include "smartio/ext.h"

static void stale_and_foreign_replies_are_dropped(void **state)
{
	struct smartio_nvme *n = client();
	struct sio_nvme_rep rep = {.h = {.magic = SIO_NVME_REP_MAGIC,
					 .version = SIO_NVME_VERSION,
					 .op = SIO_NVME_OP_CREATE,
					 .instance = n->meta.instance,
					 .sequence = n->sequence}};
	alignas(8) uint8_t room[sizeof(rep) + 1];
	uint8_t *message = room + 1; /* encoded for any place */
	struct smartio_nvme_queue *q;
	uint8_t data[512];

	(void)state;
	rep.create.qid = 3;
	sio_nvme_rep_encode(&rep, message);
	assert_true(fake_inject(n->reply_number, message, 48));
	assert_true(fake_inject(n->reply_number, message, 47));
	assert_true(fake_inject(n->reply_number, "x", 1));
	rep.h.sequence = n->sequence + 1;
	rep.h.instance++;
	sio_nvme_rep_encode(&rep, message);
	assert_true(fake_inject(n->reply_number, message, 48));
	q = queue(n, 4);
	assert_int_equal(smartio_nvme_queue_id(q), 1);
	assert_ok(smartio_nvme_read(q, data, 0, 512));
	smartio_nvme_close(n);
}

/* A program that ended had the same interrupt, and asks the same: its answer comes late. */
static void replies_to_who_was_there_before_are_dropped(void **state)
{
	struct smartio_nvme *n = client();
	struct sio_nvme_rep rep = {.h = {.magic = SIO_NVME_REP_MAGIC,
					 .version = SIO_NVME_VERSION,
					 .op = SIO_NVME_OP_CREATE,
					 .instance = n->meta.instance,
					 .sequence = n->sequence + 1},
				   .create.qid = 3};
	uint8_t message[sizeof(rep)];

	(void)state;
	smartio_nvme_close(n);
	n = client();
	sio_nvme_rep_encode(&rep, message);
	assert_true(fake_inject(n->reply_number, message, 48));
	assert_int_equal(smartio_nvme_queue_id(queue(n, 4)), 1);
	smartio_nvme_close(n);
}

/*
 * Errors by which the driver tells itself "nothing yet" and "another question": from a manager they
 * are an end.
 */
static void no_error_of_a_manager_is_no_answer(void **state)
{
	static const uint32_t errors[] = {EAGAIN, EALREADY, 4096, EBUSY};
	struct smartio_nvme_manager *m = fake.manager;
	struct smartio_nvme *n = client();
	uint8_t message[sizeof(struct sio_nvme_rep)], page[4096];

	(void)state;
	fake.manager = NULL;
	for (unsigned i = 0; i < 4; i++) {
		struct sio_nvme_rep rep = {.h = {.magic = SIO_NVME_REP_MAGIC,
						 .version = SIO_NVME_VERSION,
						 .op = SIO_NVME_OP_IDENTIFY,
						 .instance = n->meta.instance,
						 .sequence = n->sequence + 1,
						 .error = errors[i]}};

		sio_nvme_rep_encode(&rep, message);
		assert_true(fake_inject(n->reply_number, message,
					sio_nvme_rep_size(rep.h.op, rep.h.error)));
		assert_int_equal(smartio_nvme_identify(n, 1, 0, page), i < 3 ? -EPROTO : -EBUSY);
	}
	fake.manager = m;
	smartio_nvme_close(n);
}

/*
 * Nor is a queue pair that it gives, of another number or kind than was asked for. Which one the
 * drive has then nobody knows: what was asked for is taken back before its memory is used again.
 */
static void another_pair_than_was_asked_for_is_refused(void **state)
{
	static const struct sio_nvme_rep_pair wrong[] = {
		{.qid = 0}, {.qid = 5}, {.qid = 1, .share = 1}, {.qid = 1, .cmb = 1}};
	struct smartio_nvme_manager *m = fake.manager;
	uint8_t message[sizeof(struct sio_nvme_rep)];
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q;

	(void)state;
	assert_int_equal(n->n_pairs, 4);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct sio_nvme_rep rep = {.h = {.magic = SIO_NVME_REP_MAGIC,
						 .version = SIO_NVME_VERSION,
						 .op = SIO_NVME_OP_CREATE,
						 .instance = n->meta.instance,
						 .sequence = n->sequence + 1},
					   .create = wrong[i]};

		sio_nvme_rep_encode(&rep, message);
		assert_true(fake_inject(n->reply_number, message, sio_nvme_rep_size(rep.h.op, 0)));
		fake.manager = NULL;
		assert_int_equal(smartio_nvme_queue_open(n, NULL, &q), -EPROTO);
		assert_text("gave queue pair");
		fake.manager = m;
		assert_ok(smartio_nvme_queue_open(n, NULL, &q));
		assert_int_equal(fake_counter("queue_pairs"), 1);
		smartio_nvme_queue_close(q);
	}
	smartio_nvme_close(n);
}

static void metadata_is_checked(void **state)
{
	struct sio_nvme_meta *shared = fake_shared(), good = *shared;
	struct smartio_nvme *n;
	struct sio_nvme_meta m;

	(void)state;
	shared->version = 99;
	assert_int_equal(smartio_nvme_open("nvme0", &n), -EPROTONOSUPPORT);
	assert_text("speaks version 99");
	*shared = good;
	shared->magic = 0xffffffff;
	assert_int_equal(smartio_nvme_open("nvme0", &n), -ENOTCONN);
	*shared = good;
	shared->namespaces = 1025;
	assert_int_equal(smartio_nvme_open("nvme0", &n), -EPROTO);
	*shared = good;
	shared->queue_pairs = 60000; /* doorbells beyond the BAR */
	assert_int_equal(smartio_nvme_open("nvme0", &n), -EPROTO);
	*shared = good;
	shared->interrupt += 100;
	assert_ok(smartio_nvme_open("nvme0", &n));
	assert_int_equal(smartio_nvme_identify(n, 1, 0, &m), -ENOTCONN);
	smartio_nvme_close(n);
	*shared = good;
	for (unsigned i = 0; i < 2000; i++) {
		m = good;
		/* Not the magic number: each wrong one is waited for. */
		for (unsigned k = 1 + smartio_random() % 4; k > 0; k--)
			((uint8_t *)&m)[4 + smartio_random() % 120] = (uint8_t)smartio_random();
		*shared = m;
		if (smartio_nvme_open("nvme0", &n) == 0)
			smartio_nvme_close(n);
	}
	*shared = good;
}

/* Its host goes while its namespaces are read: all is ones from then on. */
static uint8_t *told; /* pages of it cannot be read, until somebody does */

static void goes(int sig)
{
	(void)sig;
	mprotect(told, sizeof(struct sio_nvme_meta), PROT_READ | PROT_WRITE);
	memset(told, 0xff, sizeof(struct sio_nvme_meta));
}

static void a_manager_that_goes_while_it_is_read_is_not_believed(void **state)
{
	const size_t page = offsetof(struct sio_nvme_meta, ns);
	const struct sigaction act = {.sa_handler = goes};
	struct sio_nvme_meta *shared = fake_shared(), good = *shared;
	struct smartio_nvme *n = client();
	struct sigaction old;
	uint8_t data[512];

	(void)state;
	assert_int_equal(page, 4096);
	told = (uint8_t *)shared;
	assert_int_equal((uintptr_t)told % page, 0);
	assert_int_equal(sigaction(SIGSEGV, &act, &old), 0);
	assert_int_equal(mprotect(told + page, page, PROT_NONE), 0);
	assert_int_equal(smartio_nvme_identify(n, 1, 0, data), -ENOTCONN);
	assert_int_equal(sigaction(SIGSEGV, &old, NULL), 0);
	assert_int_equal(shared->magic, 0xffffffff);
	*shared = good;
	smartio_nvme_close(n);
}

/* Another manager, which the client never saw, with other doorbells than those that are mapped. */
static void doorbells_stay_where_they_are_mapped(void **state)
{
	struct sio_nvme_meta *shared = fake_shared();
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q;
	uint8_t data[512];

	(void)state;
	shared->doorbell_stride = 4u << 15;
	q = queue(n, 4);
	assert_int_equal(n->meta.doorbell_stride, 4u << 15);
	assert_ptr_equal(q->sq_doorbell, n->doorbells->at + 2 * (size_t)q->id * 4);
	assert_ptr_equal(q->cq_doorbell, n->doorbells->at + (2 * (size_t)q->id + 1) * 4);
	assert_ok(smartio_nvme_read(q, data, 0, 512));
	smartio_nvme_close(n);
}

/* Asked, and not only silent: it takes away the word by which it is found. The time is the same. */
static void a_manager_that_hides_is_not_waited_for_twice(void **state)
{
	struct smartio_nvme_manager *m = fake.manager;
	struct sio_nvme_meta *shared = fake_shared();
	struct smartio_nvme *n = client();
	uint64_t start;
	uint8_t page[4096];

	(void)state;
	assert_ok(smartio_nvme_identify(n, 1, 0, page));
	fake.manager = NULL;
	fake.hidden_at = 2; /* the first look is before it is asked */
	start = fake.now;
	assert_int_equal(smartio_nvme_identify(n, 1, 0, page), -ETIMEDOUT);
	assert_in_range(fake.now - start, 5000000000u, 5500000000u);
	assert_int_equal(shared->magic, 0);
	shared->magic = SIO_NVME_META_MAGIC;
	fake.manager = m;
	assert_ok(smartio_nvme_identify(n, 1, 0, page));
	smartio_nvme_close(n);
}

/* Who has lost the drive hears that, and not what the manager then finds wrong with its request. */
static void a_lost_drive_is_no_wrong_request(void **state)
{
	struct smartio_nvme *n = client();
	uint8_t page[4096];

	(void)state;
	assert_int_equal(smartio_nvme_identify(n, 0x77, 0, page), -EIO);
	assert_text("refused Identify");
	fake.lost = smartio_borrower_id(n->d.handle);
	assert_int_equal(smartio_nvme_identify(n, 0x77, 0, page), -ENODEV);
	assert_text("is gone");
	fake.lost = 0;
	smartio_nvme_close(n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stale_and_foreign_replies_are_dropped),
		TEST(replies_to_who_was_there_before_are_dropped),
		TEST(no_error_of_a_manager_is_no_answer),
		TEST(another_pair_than_was_asked_for_is_refused),
		TEST(metadata_is_checked),
		TEST(a_manager_that_goes_while_it_is_read_is_not_believed),
		TEST(doorbells_stay_where_they_are_mapped),
		TEST(a_lost_drive_is_no_wrong_request),
		TEST(a_manager_that_hides_is_not_waited_for_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
