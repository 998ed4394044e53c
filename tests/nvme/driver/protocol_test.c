/* SPDX-License-Identifier: BSD-2-Clause */
/* What strangers may send to the manager; what messages look like; the ledger of pairs. */
#include <inttypes.h>
#include <stdio.h>

#include "client.h"
#include "common.h"
#include "manager.h"
#include "smartio/ext.h"

static struct sio_nvme_req request(struct smartio_nvme *n, uint32_t op)
{
	return (struct sio_nvme_req){.magic = SIO_NVME_REQ_MAGIC,
				     .version = SIO_NVME_VERSION,
				     .op = op,
				     .reply_node = FAKE_NODE,
				     .instance = n->meta.instance,
				     .sequence = 1ull << 40,
				     .borrower = smartio_borrower_id(n->d.handle),
				     .reply_interrupt = n->reply_number};
}

/* Send it as it is; the reply, decoded. */
static struct sio_nvme_rep tell(struct smartio_nvme *n, const struct sio_nvme_req *req)
{
	static uint8_t message[8192];
	struct sio_nvme_rep rep = {.h.error = 0};
	unsigned len = sizeof(message);
	sci_error_t err;

	sio_nvme_req_encode(req, message);
	assert_true(fake_inject(n->meta.interrupt, message, sizeof(*req)));
	fake_step();
	SCIWaitForDataInterrupt(n->reply, message, &len, 0, 0, &err);
	assert_int_equal(err, SCI_ERR_OK);
	assert_int_equal(sio_nvme_rep_decode(message, len, &rep), 0);
	assert_true(rep.h.sequence == req->sequence);
	return rep;
}

static void wrong_requests_are_answered(void **state)
{
	struct smartio_nvme *n = client();
	struct sio_nvme_req good = request(n, SIO_NVME_OP_CREATE), r;

	(void)state;
	good.create.sq = 0x10000;
	good.create.cq = 0x20000;
	good.create.sq_entries = good.create.cq_entries = 8;

	r = good, r.version = SIO_NVME_VERSION + 1;
	assert_int_equal(tell(n, &r).h.error, EPROTONOSUPPORT);
	r = good, r.instance++;
	assert_int_equal(tell(n, &r).h.error, ENOTCONN);
	r = good, r.op = 77;
	assert_int_equal(tell(n, &r).h.error, EOPNOTSUPP);
	r = good, r.create.sq = 0;
	assert_int_equal(tell(n, &r).h.error, EINVAL);
	r = good, r.create.cq += 8;
	assert_int_equal(tell(n, &r).h.error, EINVAL);
	r = good, r.create.sq_entries = 1;
	assert_int_equal(tell(n, &r).h.error, EINVAL);
	r = good, r.create.cq_entries = 257;
	assert_int_equal(tell(n, &r).h.error, EINVAL);
	r = good, r.create.cmb = 2;
	assert_int_equal(tell(n, &r).h.error, EINVAL);
	r = good, r.create.cmb = r.create.share = r.create.share_depth = 1;
	r.create.share_most = 2;
	assert_int_equal(tell(n, &r).h.error, EINVAL);
	r = request(n, SIO_NVME_OP_IDENTIFY), r.identify.cns = 256;
	assert_int_equal(tell(n, &r).h.error, EINVAL);
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 0);
	smartio_nvme_close(n);
}

static void queue_pair_belongs_to_its_maker(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	struct sio_nvme_req r = request(other, SIO_NVME_OP_DELETE);
	uint8_t data[512];

	(void)state;
	r.del.qid = q->id;
	r.del.key = q->key;
	assert_int_equal(tell(other, &r).h.error, EACCES);
	/* As if it were the maker, but without the key. */
	r.borrower = smartio_borrower_id(n->d.handle);
	r.del.key = q->key + 1;
	assert_int_equal(tell(other, &r).h.error, EACCES);
	r.del.key = q->key;
	r.del.qid = 0;
	assert_int_equal(tell(other, &r).h.error, EACCES);
	r.del.qid = 0xffffffff;
	assert_int_equal(tell(other, &r).h.error, EACCES);
	assert_ok(smartio_nvme_read(q, data, 0, 512));
	smartio_nvme_close(n);
	smartio_nvme_close(other);
}

/* Who names the maker, but not the request: neither is the pair taken back, nor its key told. */
static void queue_pair_belongs_to_its_request(void **state)
{
	const uint64_t guesses[] = {0, UINT64_MAX, (uint64_t)INT64_MAX};
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	uint8_t data[512];

	(void)state;
	for (unsigned i = 0; i < sizeof(guesses) / sizeof(guesses[0]); i++) {
		struct sio_nvme_req r = request(other, SIO_NVME_OP_CANCEL);
		struct sio_nvme_rep rep;

		r.borrower = smartio_borrower_id(n->d.handle);
		r.cancel.sequence = guesses[i];
		assert_int_equal(tell(other, &r).h.error, 0);
		assert_int_equal(fake_counter("queue_pairs"), 1);
		r = request(other, SIO_NVME_OP_CREATE);
		r.borrower = smartio_borrower_id(n->d.handle);
		r.sequence = guesses[i];
		rep = tell(other, &r);
		assert_int_equal(rep.h.error, EINVAL);
		assert_int_equal(fake_counter("queue_pairs"), 1);
	}
	assert_ok(smartio_nvme_read(q, data, 0, 512));
	smartio_nvme_close(n);
	smartio_nvme_close(other);
}

/* Who names it, and even whose it is, but not its key: it is neither joined nor given back. */
static void lease_belongs_to_who_knows_its_key(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_lease *l;
	struct sio_nvme_req r;

	(void)state;
	assert_ok(smartio_nvme_lease_take(n, "mine", 1, 0, 100, &l));
	r = request(other, SIO_NVME_OP_JOIN);
	r.join.id = l->info.id;
	r.join.key = l->key + 1;
	assert_int_equal(tell(other, &r).h.error, ESTALE);
	r = request(other, SIO_NVME_OP_UNLEASE);
	r.borrower = smartio_borrower_id(n->d.handle);
	r.unlease.id = l->info.id;
	assert_int_equal(tell(other, &r).h.error, EACCES);
	assert_int_equal(fake.manager->leases.n, 1);
	assert_ok(smartio_nvme_lease_give(l));
	assert_int_equal(fake.manager->leases.n, 0);
	smartio_nvme_close(n);
	smartio_nvme_close(other);
}

/*
 * A completion queue is used by its own borrower alone, who knows the pair's key; and it is not
 * deleted while it is used, by whatever request.
 */
static void completion_queue_belongs_to_its_maker(void **state)
{
	const struct smartio_nvme_queue_options plain = {
		.size = sizeof(plain), .depth = 4, .cq_depth = 8};
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_buffer *b = buffer(n, 4096), *ob = buffer(other, 4096);
	struct smartio_nvme_queue_options more = {.size = sizeof(more), .depth = 4};
	struct smartio_nvme_queue *q, *user;
	struct sio_nvme_req good = request(n, SIO_NVME_OP_CREATE), r;
	struct sio_nvme_rep rep;
	uint8_t data[512];

	(void)state;
	assert_ok(smartio_nvme_queue_open(n, &plain, &q));
	more.completes_in = q;
	assert_ok(smartio_nvme_queue_open(n, &more, &user));
	good.create.sq = b->ioaddr;
	good.create.sq_entries = 8;
	good.create.cq_of = q->id;
	good.create.cq_key = q->key;

	r = good, r.create.cq_key++;
	rep = tell(n, &r);
	assert_int_equal(rep.h.error, EACCES);
	assert_non_null(strstr(rep.text, "completion queue is asked for, is not this client's"));
	r = good, r.borrower = smartio_borrower_id(other->d.handle), r.create.sq = ob->ioaddr;
	assert_int_equal(tell(n, &r).h.error, EACCES);
	r = good, r.create.cq_of = UINT32_MAX;
	assert_int_equal(tell(n, &r).h.error, EACCES);
	r = good, r.create.cq_of = user->id, r.create.cq_key = user->key;
	rep = tell(n, &r);
	assert_int_equal(rep.h.error, EINVAL);
	assert_non_null(strstr(rep.text, "the completion queue of queue pair 2 cannot be used"));
	r = good, r.create.cq_entries = 8;
	assert_int_equal(tell(n, &r).h.error, EINVAL);
	r = good, r.create.cq = b->ioaddr;
	assert_int_equal(tell(n, &r).h.error, EINVAL);
	r = good, r.vector = 1;
	assert_int_equal(tell(n, &r).h.error, EINVAL);
	r = good, r.create.sq_entries = 1;
	assert_int_equal(tell(n, &r).h.error, EINVAL);
	r = good, r.create.share = 7, r.create.share_depth = 1, r.create.share_most = 2;
	assert_int_equal(tell(n, &r).h.error, EINVAL);
	/* What is to be replaced is not what is to be used, nor what others use. */
	r = good, r.create.old_qid = q->id, r.create.old_key = q->key;
	assert_int_equal(tell(n, &r).h.error, EINVAL);
	r.create.cq_of = 0, r.create.cq = b->ioaddr, r.create.cq_entries = 8;
	rep = tell(n, &r);
	assert_int_equal(rep.h.error, EBUSY);
	assert_non_null(strstr(rep.text, "complete in its completion queue: 2"));
	r = request(n, SIO_NVME_OP_DELETE), r.del.qid = q->id, r.del.key = q->key;
	rep = tell(n, &r);
	assert_int_equal(rep.h.error, EBUSY);
	assert_non_null(strstr(rep.text, "queue pair 1 cannot be deleted while these"));
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 2);
	assert_ok(smartio_nvme_read(q, data, 0, 512));
	assert_ok(smartio_nvme_read(user, data, 0, 512));
	assert_int_equal(tell(n, &good).h.error, 0);
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 3);
	r = request(n, SIO_NVME_OP_DELETE), r.del.qid = user->id, r.del.key = user->key;
	assert_int_equal(tell(n, &r).h.error, 0);
	r.del.qid = q->id, r.del.key = q->key;
	rep = tell(n, &r);
	assert_non_null(strstr(rep.text, "complete in its completion queue: 3"));
	fake_kill(smartio_borrower_id(n->d.handle));
	for (unsigned i = 0; i < 20; i++)
		fake_step();
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 0);
	assert_int_equal(fake_csts(), 1);
	{
		const uint64_t id = smartio_borrower_id(n->d.handle);

		smartio_nvme_close(n);
		fake_bury(id);
	}
	smartio_nvme_close(other);
}

/* Pages 0 and 1 of a buffer as the queues of @borrower. */
static struct sio_nvme_req create(struct smartio_nvme *n, uint64_t borrower, uint64_t sq,
				  uint64_t cq)
{
	struct sio_nvme_req r = request(n, SIO_NVME_OP_CREATE);

	r.borrower = borrower;
	r.create.sq = sq;
	r.create.cq = cq;
	r.create.sq_entries = r.create.cq_entries = 64;
	return r;
}

static void queue_memory_is_its_borrowers(void **state)
{
	struct smartio_nvme *n = client(), *other = client();
	struct smartio_nvme_buffer *b = buffer(n, 8192), *ob = buffer(other, 8192);
	uint64_t me = smartio_borrower_id(n->d.handle), it = smartio_borrower_id(other->d.handle);
	const struct {
		uint64_t borrower, sq, cq, wrong;
		uint32_t sq_entries;
	} refused[] = {
		/* Somebody else's number, or nobody's, and the own memory. */
		{it, b->ioaddr, b->ioaddr + 4096, b->ioaddr, 64},
		{me + 1000, b->ioaddr, b->ioaddr + 4096, b->ioaddr, 64},
		{UINT64_MAX, b->ioaddr, b->ioaddr + 4096, b->ioaddr, 64},
		/* The own number, and what is not one's own. */
		{me, ob->ioaddr, ob->ioaddr + 4096, ob->ioaddr, 64},
		{me, b->ioaddr, ob->ioaddr, ob->ioaddr, 64},
		{me, b->ioaddr, 0x123456000, 0x123456000, 64},
		{me, 0xfffffffffffff000, b->ioaddr, 0xfffffffffffff000, 64},
		/* It begins in one's own and ends behind it. */
		{me, b->ioaddr + 4096, b->ioaddr, b->ioaddr + 4096, 65},
	};
	struct smartio_nvme_manager *m = fake.manager;
	struct sio_nvme_req admin;
	char text[96];

	(void)state;
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct sio_nvme_req r =
			create(n, refused[i].borrower, refused[i].sq, refused[i].cq);
		struct sio_nvme_rep rep;

		r.create.sq_entries = refused[i].sq_entries;
		rep = tell(n, &r);
		assert_int_equal(rep.h.error, EFAULT);
		snprintf(text, sizeof(text),
			 "queue memory at %#" PRIx64 " is not mapped for borrower "
			 "%" PRIu64,
			 refused[i].wrong, refused[i].borrower);
		assert_string_equal(rep.text, text);
		assert_int_equal(fake_holds(), 0);
	}
	/* The manager's: mapped by it, and no client's. */
	admin = create(n, smartio_borrower_id(m->d.handle), m->ctrl.sq.ioaddr, m->ctrl.cq.ioaddr);
	admin.create.sq_entries = admin.create.cq_entries = 2;
	assert_int_equal(tell(n, &admin).h.error, EACCES);
	assert_int_equal(fake_holds(), 0);
	assert_int_equal(smartio_nvme_manager_queue_pairs(m, NULL), 0);
	smartio_nvme_close(n);
	smartio_nvme_close(other);
}

static void live_queue_memory_stays_mapped(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_buffer *b = buffer(n, 8192);
	struct sio_nvme_req r =
		create(n, smartio_borrower_id(n->d.handle), b->ioaddr, b->ioaddr + 4096);
	struct sio_nvme_rep rep = tell(n, &r);
	volatile uint32_t *doorbell;
	sci_error_t err;

	(void)state;
	assert_int_equal(rep.h.error, 0);
	assert_int_equal(fake_holds(), 2);
	SCIUnmapLocalSegmentForDevice(b->mem.local, n->d.adapter, n->d.handle, 0, &err);
	assert_int_equal(err, SCI_ERR_BUSY);
	/* Whoever rings it now: the drive finds an entry there, if a senseless one. */
	doorbell = (volatile uint32_t *)(n->doorbells->at +
					 2 * rep.create.qid * n->meta.doorbell_stride);
	*doorbell = 1;
	fake_step();
	assert_int_equal(fake_csts(), 1);
	r = request(n, SIO_NVME_OP_DELETE);
	r.del.qid = rep.create.qid;
	r.del.key = rep.create.key;
	assert_int_equal(tell(n, &r).h.error, 0);
	assert_int_equal(fake_holds(), 0);
	assert_ok(smartio_nvme_buffer_free(b));
	smartio_nvme_close(n);
}

/* Refused by the drive after the lender agreed: nothing stays held. */
static void what_the_drive_refuses_is_not_held(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_buffer *b = buffer(n, 8192);
	struct sio_nvme_req r =
		create(n, smartio_borrower_id(n->d.handle), b->ioaddr, b->ioaddr + 4096);
	struct smartio_nvme_manager *m = fake.manager;
	struct sio_nvme_rep rep = tell(n, &r);
	struct sio_nvme_pair keep = m->ledger.pair[rep.create.qid];

	(void)state;
	assert_int_equal(rep.h.error, 0);
	/* The manager's ledger says that the id is free; the drive knows better. */
	m->ledger.pair[rep.create.qid].borrower = 0;
	assert_int_equal(tell(n, &r).h.error, EIO);
	m->ledger.pair[rep.create.qid] = keep;
	m->ledger.used++;
	assert_int_equal(fake_holds(), 2);
	r = request(n, SIO_NVME_OP_DELETE);
	r.del.qid = rep.create.qid;
	r.del.key = rep.create.key;
	assert_int_equal(tell(n, &r).h.error, 0);
	assert_int_equal(fake_holds(), 0);
	smartio_nvme_close(n);
}

/* Clients that lie about who they are, and die: the drive goes on, and every pair can be had. */
static void liars_that_die_leave_nothing(void **state)
{
	struct smartio_nvme *bystander = client(), *n;
	struct smartio_nvme_queue *q = queue(bystander, 4), *all[3];
	uint8_t data[512];

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		struct smartio_nvme_buffer *b;
		struct sio_nvme_req r;
		uint64_t id;

		n = client();
		id = smartio_borrower_id(n->d.handle);
		b = buffer(n, 8192);
		r = create(n, i & 1 ? id : id + 77, b->ioaddr, b->ioaddr + 4096);
		assert_int_equal(tell(n, &r).h.error, i & 1 ? 0 : EFAULT);
		fake_kill(id);
		for (unsigned qid = 1; qid <= 4; qid++)
			if (qid != q->id)
				*(volatile uint32_t *)(n->doorbells->at +
						       2 * qid * n->meta.doorbell_stride) =
					1 + i % 2;
		for (unsigned k = 0; k < 10; k++)
			fake_step();
		smartio_nvme_close(n);
		fake_bury(id);
		assert_int_equal(fake_csts(), 1);
		assert_int_equal(fake_quarantined(), 0);
		assert_int_equal(fake_holds(), 2);
	}
	for (unsigned i = 0; i < 3; i++)
		all[i] = queue(bystander, 4);
	for (unsigned i = 0; i < 3; i++)
		assert_ok(smartio_nvme_read(all[i], data, 0, sizeof(data)));
	assert_ok(smartio_nvme_read(q, data, 0, sizeof(data)));
	smartio_nvme_close(bystander);
}

static void garbage_does_not_stop_the_manager(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q = queue(n, 4);
	uint8_t message[256], data[512];

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		/* Creates without memory would be the drive's business; let them be refused. */
		struct sio_nvme_req req =
			request(n, i % 2 ? SIO_NVME_OP_DELETE : SIO_NVME_OP_IDENTIFY);
		size_t len = sizeof(req);
		sci_error_t err;
		unsigned got;

		sio_nvme_req_encode(&req, message);
		if (i % 5 == 0)
			len = smartio_random() % sizeof(message);
		for (unsigned k = smartio_random() % 6; k > 0; k--)
			message[smartio_random() % sizeof(req)] = (uint8_t)smartio_random();
		if (message[8] == SIO_NVME_OP_CREATE)
			message[8] = 0;
		fake_inject(n->meta.interrupt, message, len);
		fake_step();
		do {
			got = sizeof(n->message);
			SCIWaitForDataInterrupt(n->reply, n->message, &got, 0, 0, &err);
		} while (err == SCI_ERR_OK);
	}
	assert_int_equal(fake.served, 0);
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 1);
	assert_ok(smartio_nvme_read(q, data, 0, 512));
	smartio_nvme_close(n);
}

static void messages_survive_the_trip(void **state)
{
	struct sio_nvme_req req, back;
	uint8_t message[sizeof(req)];

	(void)state;
	for (uint32_t op = SIO_NVME_OP_CREATE; op <= SIO_NVME_OP_JOIN; op++) {
		memset(&req, 0x11 * (int)op, sizeof(req));
		req.magic = SIO_NVME_REQ_MAGIC;
		req.version = SIO_NVME_VERSION;
		req.op = op;
		if (op == SIO_NVME_OP_CREATE)
			req.create.program[SIO_NVME_PROGRAM - 1] = '\0';
		if (op == SIO_NVME_OP_LEASE)
			req.lease.name[SIO_NVME_PROGRAM - 1] =
				req.lease.program[SIO_NVME_PROGRAM - 1] = '\0';
		if (op == SIO_NVME_OP_ADMIN)
			req.admin.flags = 0;
		req.vector = op == SIO_NVME_OP_CREATE ? 7 : 0;
		sio_nvme_req_encode(&req, message);
		assert_int_equal(sio_nvme_req_decode(message, sizeof(req), &back), 0);
		assert_memory_equal(&req, &back, sizeof(req));
		assert_int_equal(message[0], 'S');
		for (size_t len = 0; len < sizeof(req); len++)
			assert_int_equal(sio_nvme_req_decode(message, len, &back), -EPROTO);
		req.vector = 7;
		sio_nvme_req_encode(&req, message);
		assert_int_equal(sio_nvme_req_decode(message, sizeof(req), &back),
				 op == SIO_NVME_OP_CREATE ? 0 : -EPROTONOSUPPORT);
	}
}

static void ledger_remembers_the_last_that_ended(void **state)
{
	static const struct sio_nvme_pair pair[3] = {
		{.borrower = 50, .key = 7}, {.borrower = 51, .key = 7}, {.borrower = 50, .key = 8}};
	struct sio_nvme_ledger l;

	(void)state;
	assert_ok(sio_nvme_ledger_init(&l, 3));
	for (uint64_t b = 1; b <= SIO_NVME_ENDED + 10; b++)
		sio_nvme_ledger_end(&l, b);
	assert_false(sio_nvme_ledger_ended(&l, 10));
	assert_true(sio_nvme_ledger_ended(&l, 11));
	assert_true(sio_nvme_ledger_ended(&l, SIO_NVME_ENDED + 10));
	assert_false(sio_nvme_ledger_ended(&l, SIO_NVME_ENDED + 11));
	assert_int_equal(sio_nvme_ledger_free_id(&l), 1);
	for (uint32_t i = 0; i < 3; i++)
		sio_nvme_ledger_take(&l, i + 1, &pair[i]);
	assert_int_equal(sio_nvme_ledger_free_id(&l), 0);
	assert_int_equal(sio_nvme_ledger_next(&l, 50, 0), 1);
	assert_int_equal(sio_nvme_ledger_next(&l, 50, 1), 3);
	assert_int_equal(sio_nvme_ledger_next(&l, 50, 3), 0);
	sio_nvme_ledger_release(&l, 2);
	assert_int_equal(sio_nvme_ledger_free_id(&l), 2);
	assert_false(sio_nvme_ledger_owns(&l, 2, 51, 7));
	assert_true(sio_nvme_ledger_owns(&l, 3, 50, 8));
	assert_false(sio_nvme_ledger_owns(&l, 4, 50, 8));
	sio_nvme_ledger_done(&l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wrong_requests_are_answered),
		TEST(queue_pair_belongs_to_its_maker),
		TEST(queue_pair_belongs_to_its_request),
		TEST(lease_belongs_to_who_knows_its_key),
		TEST(completion_queue_belongs_to_its_maker),
		TEST(queue_memory_is_its_borrowers),
		TEST(live_queue_memory_stays_mapped),
		TEST(what_the_drive_refuses_is_not_held),
		TEST(liars_that_die_leave_nothing),
		TEST(garbage_does_not_stop_the_manager),
		cmocka_unit_test(messages_survive_the_trip),
		cmocka_unit_test(ledger_remembers_the_last_that_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
