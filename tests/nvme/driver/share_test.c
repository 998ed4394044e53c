/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More programs than queue pairs: who shares which, what each of them does while others leave, are
 * killed with the lock, or are stopped with it, and managers that are killed meanwhile.
 */
#include "client.h"
#include "manager.h"
#include "sharing.h"
#include "smartio/ext.h"
#include "smartio/io.h"

static void a_pair_each_while_there_are_some(void **state)
{
	struct smartio_nvme_pair told[16];
	struct program p[10];
	unsigned on[PAIRS + 1] = {0};

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		p[i] = program();
	for (unsigned i = 0; i < PAIRS; i++)
		assert_int_equal(smartio_nvme_queue_id(p[i].q), i + 1);
	for (unsigned i = 0; i < 10; i++)
		on[smartio_nvme_queue_id(p[i].q)]++;
	for (unsigned i = 1; i <= PAIRS; i++)
		assert_in_range(on[i], 2, 3);
	use_all(p, 10);
	/* All of them are told of. */
	assert_int_equal(smartio_nvme_get_pairs(p[0].n, told, 16), 10);
	for (unsigned i = 0; i < 10; i++)
		assert_in_range(told[i].id, 1, PAIRS);
	assert_string_equal(told[9].program, told[0].program);
	for (unsigned i = 0; i < 10; i++)
		smartio_nvme_close(p[i].n);
	assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), 0);
}

static void there_is_room_for_eight(void **state)
{
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q, *other[PAIRS - 1];
	struct program p[SIO_NVME_SHARERS], late;

	(void)state;
	for (unsigned i = 0; i < PAIRS - 1; i++)
		other[i] = queue(n, DEPTH);
	for (unsigned i = 0; i < SIO_NVME_SHARERS; i++) {
		p[i] = program();
		assert_int_equal(smartio_nvme_queue_id(p[i].q), PAIRS);
	}
	use_all(p, SIO_NVME_SHARERS);
	assert_int_equal(try_queue(n, SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE, DEPTH, &q),
			 -ENOSPC);
	/*
	 * Whoever did not ask for it shares with nobody; nor is a place there for a larger depth.
	 */
	smartio_nvme_close(p[5].n);
	assert_int_equal(try_queue(n, 0, DEPTH, &q), -ENOSPC);
	assert_int_equal(try_queue(n, SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE, 2 * DEPTH, &q),
			 -ENOSPC);
	late = program();
	use(&late, 0x77);
	p[5] = late;
	use_all(p, SIO_NVME_SHARERS);
	/* The one that made the pair goes: the others have another. */
	smartio_nvme_close(p[0].n);
	use_all(p + 1, SIO_NVME_SHARERS - 1);
	for (unsigned i = 1; i < SIO_NVME_SHARERS; i++) {
		struct smartio_nvme_counters c;

		smartio_nvme_queue_counters(p[i].q, &c);
		assert_int_equal(c.renewals, 1);
		assert_int_equal(smartio_nvme_queue_id(p[i].q), PAIRS);
	}
	for (unsigned i = 1; i < SIO_NVME_SHARERS; i++)
		smartio_nvme_close(p[i].n);
	(void)other;
	smartio_nvme_close(n);
}

/* Who dies: the one that made the pair, or another; with the lock of the pair, or without. */
static void the_others_go_on(void **state)
{
	(void)state;
	for (unsigned variant = 0; variant < 6; variant++) {
		const unsigned dead = variant % 2, lock = variant / 2;
		struct program p[3];
		struct smartio_nvme *rest = few(p, 3);
		struct sio_nvme_share_head *head = p[dead].q->share->head;
		uint8_t *data;

		use_all(p, 3);
		/* With commands in flight of each. */
		fake.stopped = true;
		for (unsigned i = 0; i < 3; i++) {
			data = smartio_nvme_buffer_data(p[i].b);
			memset(data, 0x60 + (int)i, BLOCK);
			assert_ok(smartio_nvme_submit(p[i].q, SMARTIO_NVME_WRITE, 2000 + i, 1,
						      p[i].b, 0, NULL));
			if (lock < 2 || i != dead)
				smartio_nvme_ring(p[i].q);
		}
		if (lock)
			head->lock = dead + 1;
		if (lock == 2) /* it had begun to put its entry */
			memset((void *)(uintptr_t)(p[dead].q->share->sq + 64 * head->sq_tail), 0xff,
			       20);
		fake.stopped = false;
		end(&p[dead]);
		for (unsigned i = 0; i < 3; i++) {
			if (i == dead)
				continue;
			assert_int_equal(one(p[i].q).status, 0);
			assert_int_equal(fake_media()[(2000 + i) * BLOCK], 0x60 + i);
			use(&p[i], 0x20 + i);
		}
		assert_int_equal(smartio_nvme_manager_queue_pairs(fake.manager, NULL), PAIRS);
		for (unsigned i = 0; i < 3; i++)
			if (i != dead)
				smartio_nvme_close(p[i].n);
		smartio_nvme_close(rest);
		assert_int_equal(fake.faults, 0);
		assert_int_equal(fake_quarantined(), 0);
	}
}

/* It may ring any moment: nobody gets the pair's number until it cannot. */
static void one_that_is_stopped_with_the_lock_is_awaited(void **state)
{
	struct smartio_nvme_completion c;
	struct smartio_nvme_queue *q;
	struct program p[3];
	struct smartio_nvme *rest = few(p, 3);
	struct sio_nvme_share_head *head = p[1].q->share->head;

	(void)state;
	use_all(p, 3);
	head->lock = 2;
	end(&p[0]);
	for (unsigned i = 0; i < 3000; i++) {
		assert_int_equal(smartio_nvme_poll(p[2].q, &c, 1), 0);
		fake_step();
	}
	assert_int_equal(try_queue(rest, 0, DEPTH, &q), -ENOSPC);
	assert_int_equal(head->lock, 2);
	/* It goes on. */
	head->lock = 0;
	use(&p[1], 0x31);
	use(&p[2], 0x32);
	/* Or is killed: with the lock, then, of another pair. */
	head = p[1].q->share->head;
	assert_ptr_equal(p[2].q->share->head, head);
	head->lock = 1 + p[1].q->share->place;
	end(&p[1]);
	use(&p[2], 0x33);
	smartio_nvme_close(p[2].n);
	smartio_nvme_close(rest);
}

static void what_was_in_flight_without_alone_is_told(void **state)
{
	struct program p[2], q;
	struct smartio_nvme *rest = few(p, 1);

	(void)state;
	q.n = client();
	q.borrower = fake_last_borrower();
	assert_ok(try_queue(q.n, SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE, DEPTH, &q.q));
	q.b = buffer(q.n, 2 * BLOCK);
	use(&q, 5);
	fake.stopped = true;
	assert_ok(smartio_nvme_submit(q.q, SMARTIO_NVME_WRITE, 7, 1, q.b, 0, NULL));
	assert_ok(smartio_nvme_submit(q.q, SMARTIO_NVME_READ, 7, 1, q.b, BLOCK, NULL));
	smartio_nvme_ring(q.q);
	/* And one that was not rung, which nobody has done. */
	assert_ok(smartio_nvme_submit(q.q, SMARTIO_NVME_WRITE, 8, 1, q.b, 0, NULL));
	fake.stopped = false;
	end(&p[0]);
	for (unsigned i = 0, unsure = 0; i < 3; i++) {
		unsure += one(q.q).status == SMARTIO_NVME_UNSURE;
		assert_int_equal(unsure <= 1, 1);
		if (i == 2)
			assert_int_equal(unsure, 1);
	}
	smartio_nvme_close(q.n);
	smartio_nvme_close(rest);
}

/* ---- who runs between two stores of another ---- */
static struct program leaver, successor;
static volatile void *its_entry;

/* Its last completion has come: it is taken, the program leaves, and another has its place. */
static void leave_and_follow(volatile void *addr)
{
	struct smartio_nvme_completion c;
	uint32_t place;

	if (addr != its_entry)
		return;
	fake.stored = NULL;
	place = leaver.q->share->place;
	assert_int_equal(smartio_nvme_poll(leaver.q, &c, 1), 1);
	assert_int_equal(c.status, 0);
	smartio_nvme_close(leaver.n);
	successor = program();
	assert_int_equal(successor.q->share->place, place);
}

/* At each entry of its completion queue, the last as well, where the phase changes. */
static void a_place_changes_hands_within_a_completion(void **state)
{
	struct smartio_nvme_completion none;
	struct smartio_nvme_counters c;
	struct program p[2];
	struct smartio_nvme *rest = few(p, 2);

	(void)state;
	for (unsigned i = 0; i < 3 * (DEPTH + 1); i++) {
		leaver = p[1];
		assert_ok(
			smartio_nvme_submit(leaver.q, SMARTIO_NVME_READ, 0, 1, leaver.b, 0, NULL));
		smartio_nvme_ring(leaver.q);
		fake_step();
		its_entry = leaver.q->cqe + 8;
		fake.stored = leave_and_follow;
		assert_int_equal(smartio_nvme_poll(p[0].q, &none, 1), 0);
		assert_null(fake.stored);
		p[1] = successor;
		/* What its predecessor had is not taken for its own. */
		assert_int_equal(smartio_nvme_poll(p[1].q, &none, 1), 0);
		use(&p[1], 0x50 + i);
		use(&p[0], 0x51 + i);
		smartio_nvme_queue_counters(p[1].q, &c);
		assert_int_equal(c.renewals, 0);
	}
	smartio_nvme_close(p[1].n);
	smartio_nvme_close(p[0].n);
	smartio_nvme_close(rest);
}

/* Of a poll that asks for none: they are for the next one. */
static void a_poll_for_nothing_returns(void **state)
{
	struct smartio_nvme_completion c;
	struct program p[2];
	struct smartio_nvme *rest = few(p, 2);

	(void)state;
	assert_ok(smartio_nvme_submit(p[1].q, SMARTIO_NVME_READ, 0, 1, p[1].b, 0, NULL));
	smartio_nvme_ring(p[1].q);
	fake_step();
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(smartio_nvme_poll(p[1].q, &c, 0), 0);
	assert_int_equal(smartio_nvme_poll(p[1].q, &c, 1), 1);
	assert_int_equal(c.status, 0);
	smartio_nvme_close(p[1].n);
	smartio_nvme_close(p[0].n);
	smartio_nvme_close(rest);
}

/* As drives do when a submission queue is deleted with commands in it. */
static void post_aborted(const struct program *p, const struct smartio_nvme_queue *of)
{
	const struct sio_nvme_share *s = p->q->share;
	const struct sio_nvme_share_head *h = s->head;
	const uint64_t cid = le16toh(of->slot[0].cid), qid = p->q->id;

	sio_write64(s->cq + (size_t)h->cq_head * 16, 0);
	sio_write64(
		s->cq + (size_t)h->cq_head * 16 + 8,
		htole64(8ull << 49 | (uint64_t)(h->cq_phase & 1) << 48 | cid << 32 | qid << 16));
}

/*
 * Whoever dies takes the submission queue with it, and the drive says so before the manager does.
 */
static void what_a_deletion_aborts_is_not_told(void **state)
{
	struct smartio_nvme_completion c;
	struct program p[3];
	struct smartio_nvme *rest = few(p, 3);

	(void)state;
	use_all(p, 3);
	fake.stopped = true;
	for (unsigned i = 0; i < 3; i++) {
		memset(smartio_nvme_buffer_data(p[i].b), 0x60 + (int)i, BLOCK);
		/* In slot 0, which is first in the list of free ones again. */
		assert_ok(smartio_nvme_submit(p[i].q, SMARTIO_NVME_WRITE, 2000 + i, 1, p[i].b, 0,
					      NULL));
		assert_non_null(p[i].q->slot[0].buffer);
		smartio_nvme_ring(p[i].q);
	}
	post_aborted(&p[0], p[2].q);
	/* Another one finds it, and who sent the command. */
	for (unsigned i = 1; i < 3; i++)
		assert_int_equal(smartio_nvme_poll(p[i].q, &c, 1), 0);
	assert_int_equal(p[0].q->share->head->own[2].next,
			 ((size_t)(p[2].q->cqe - p[2].q->cq)) / 16);
	fake.stopped = false;
	end(&p[0]);
	for (unsigned i = 1; i < 3; i++) {
		assert_int_equal(one(p[i].q).status, 0);
		assert_int_equal(fake_media()[(2000 + i) * BLOCK], 0x60 + i);
		use(&p[i], 0x20 + i);
	}
	smartio_nvme_close(p[1].n);
	smartio_nvme_close(p[2].n);
	smartio_nvme_close(rest);
}

/* Doorbells of one queue that go over two adapters may pass each other. */
static void who_uses_another_adapter_does_not_join(void **state)
{
	const struct smartio_nvme_open_options o = {.size = sizeof(o),
						    .flags = SMARTIO_NVME_MULTIPATH};
	const uint32_t flags = SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE;
	struct program p[2], away = {0};
	struct smartio_nvme *rest = few(p, 1), *both = NULL;
	struct smartio_nvme_queue *here;

	(void)state;
	assert_ok(smartio_nvme_open_with("nvme0", &o, &both));
	p[1].n = away.n = both;
	p[1].b = away.b = buffer(both, 2 * BLOCK);
	p[1].borrower = 70;
	away.borrower = 71;
	/* One way after the other. */
	assert_ok(try_queue(both, flags, DEPTH, &here));
	assert_ptr_equal(here->leg, both);
	p[1].q = here;
	assert_int_equal(smartio_nvme_queue_id(here), PAIRS);
	/* Over the second there is none to join. */
	assert_ok(try_queue(both, flags, DEPTH, &away.q));
	assert_ptr_equal(away.q->leg, both);
	assert_int_equal(smartio_nvme_queue_id(away.q), PAIRS);
	use_all(p, 2);
	use(&away, 0x70);
	/* One of its own it may have, and another one that goes that way joins it. */
	smartio_nvme_close(rest);
	rest = client();
	for (unsigned i = 2; i < PAIRS; i++)
		queue(rest, DEPTH);
	both->homes = 1;
	assert_ok(try_queue(both, flags, DEPTH, &away.q));
	assert_ptr_equal(away.q->leg, both->second);
	assert_int_not_equal(smartio_nvme_queue_id(away.q), PAIRS);
	use(&away, 0x71);
	both->homes = 1;
	assert_ok(try_queue(both, flags, DEPTH, &here));
	assert_int_equal(smartio_nvme_queue_id(here), smartio_nvme_queue_id(away.q));
	use_all(p, 2);
	use(&away, 0x72);
	smartio_nvme_close(both);
	smartio_nvme_close(p[0].n);
	smartio_nvme_close(rest);
}

/* Whoever shut it may have ended before it told the manager. */
static void a_pair_that_is_shut_is_not_joined(void **state)
{
	struct program p[3];
	struct smartio_nvme *rest = few(p, 2);

	(void)state;
	use_all(p, 2);
	p[0].q->share->head->lock = SIO_NVME_SHUT;
	p[2] = program();
	assert_int_equal(smartio_nvme_queue_id(p[2].q), PAIRS);
	use(&p[2], 0x21);
	use_all(p, 3);
	for (unsigned i = 0; i < 3; i++)
		smartio_nvme_close(p[i].n);
	smartio_nvme_close(rest);
}

/* Memory that is gone was that of a pair that has ended; another error is told. */
static void memory_that_cannot_be_attached_is_told(void **state)
{
	const struct {
		sci_error_t error;
		int rc;
	} cases[] = {
		{SCI_ERR_NO_SUCH_SEGMENT, 0}, {SCI_ERR_NOSPC, -ENOMEM}, {SCI_ERR_ACCESS, -EACCES}};
	struct program p[1];
	struct smartio_nvme *rest = few(p, 1);

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct smartio_nvme *n = client();
		struct smartio_nvme_queue *q;

		fake.attach_at = 2; /* the first is to memory of its own */
		fake.attach_error = cases[i].error;
		assert_int_equal(
			try_queue(n, SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE, DEPTH, &q),
			cases[i].rc);
		assert_int_equal(fake.attach_at, 0);
		if (cases[i].rc)
			assert_text("cannot attach to a shared queue pair's memory");
		use(&p[0], 0x51 + i);
		smartio_nvme_close(n);
	}
	smartio_nvme_close(p[0].n);
	smartio_nvme_close(rest);
}

/* As a client does that had no answer. */
static void delete_once_more(const struct smartio_nvme_queue *q, const struct sio_nvme_share *share)
{
	struct smartio_nvme_queue old = *q;
	struct sio_nvme_share its = *share;

	old.share = &its;
	its.head = NULL; /* it is not mapped any more */
	assert_ok(sio_nvme_ask_delete(&old));
}

/* When another queue of the same borrow has its place by now. */
static void a_deletion_that_is_repeated_deletes_no_other(void **state)
{
	struct smartio_nvme_counters c;
	struct smartio_nvme_queue old;
	struct sio_nvme_share share;
	struct program p[3];
	struct smartio_nvme *rest = few(p, 3);

	(void)state;
	old = *p[1].q;
	share = *p[1].q->share;
	smartio_nvme_queue_close(p[1].q);
	assert_ok(try_queue(p[1].n, SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE, DEPTH, &p[1].q));
	assert_int_equal(p[1].q->share->place, share.place);
	assert_true(p[1].q->key == old.key);
	delete_once_more(&old, &share);
	assert_true(fake.manager->ledger.pair[PAIRS].sharer[share.place].borrower == p[1].borrower);
	/* One that would end the pair, as well. */
	old = *p[0].q;
	share = *p[0].q->share;
	old.sequence--;
	delete_once_more(&old, &share);
	use_all(p, 3);
	for (unsigned i = 0; i < 3; i++) {
		smartio_nvme_queue_counters(p[i].q, &c);
		assert_int_equal(c.renewals, 0);
		smartio_nvme_close(p[i].n);
	}
	smartio_nvme_close(rest);
}

/* The drive was in time; a program that is stopped with the lock hides that from the others. */
static void what_lies_in_the_common_queue_is_not_overdue(void **state)
{
	const struct smartio_nvme_queue_options o = {.size = sizeof(o),
						     .depth = DEPTH,
						     .flags = SMARTIO_NVME_SHARED |
							      SMARTIO_NVME_SURVIVE,
						     .timeout_ms = 100};
	struct smartio_nvme_completion none;
	struct smartio_nvme_counters c;
	struct program p[1], late = {.n = client()};
	struct smartio_nvme *rest = few(p, 1);
	uint64_t since;

	(void)state;
	assert_ok(smartio_nvme_queue_open(late.n, &o, &late.q));
	late.b = buffer(late.n, BLOCK);
	assert_ok(smartio_nvme_submit(late.q, SMARTIO_NVME_READ, 0, 1, late.b, 0, NULL));
	smartio_nvme_ring(late.q);
	fake_step();
	p[0].q->share->head->lock = 1 + p[0].q->share->place;
	since = fake.now;
	while (fake.now - since < 10 * 100000000ull) {
		assert_int_equal(smartio_nvme_poll(late.q, &none, 1), 0);
		fake_step();
	}
	smartio_nvme_queue_counters(late.q, &c);
	assert_int_equal(c.aborts, 1);
	assert_int_equal(c.overdue, 0);
	p[0].q->share->head->lock = 0;
	assert_int_equal(one(late.q).status, 0);
	smartio_nvme_close(late.n);
	smartio_nvme_close(p[0].n);
	smartio_nvme_close(rest);
}

static void options_are_checked(void **state)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .flags = SMARTIO_NVME_SHARED};
	struct smartio_nvme *n = client();
	struct smartio_nvme_queue *q;

	(void)state;
	assert_int_equal(smartio_nvme_queue_open(n, &o, &q), -EINVAL);
	assert_text("shared is for queues that survive");
	o.flags |= SMARTIO_NVME_SURVIVE;
	o.cq_placement = SMARTIO_NVME_PLACE_DEVICE;
	assert_int_equal(smartio_nvme_queue_open(n, &o, &q), -EINVAL);
	assert_text("a placement cannot be chosen");
	o.cq_placement = 0;
	o.depth = n->meta.max_entries / 2;
	assert_int_equal(smartio_nvme_queue_open(n, &o, &q), -EINVAL);
	assert_text("commands in flight");
	smartio_nvme_close(n);
}

/* Every n-th call of a second program's open fails: it has the queue, or nothing of it is left. */
static void nothing_is_left_of_one_that_fails(void **state)
{
	bool failed = true;

	(void)state;
	for (unsigned long k = 1; failed; k++) {
		struct smartio_nvme_queue *q = NULL;
		struct program p[1];
		struct smartio_nvme *rest = few(p, 1);
		struct program late = {.n = client(), .borrower = fake_last_borrower()};

		fake.fail_at = fake.calls + k;
		failed = try_queue(late.n, SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE, DEPTH, &q);
		failed |= fake.calls >= fake.fail_at;
		fake.fail_at = 0;
		assert_int_equal(fake.served, 0);
		use(&p[0], 0x41);
		/* A reply that did not come: its memory stays until it ends. */
		if (late.n->kept)
			end(&late);
		else
			smartio_nvme_close(late.n);
		use(&p[0], 0x42);
		smartio_nvme_close(p[0].n);
		smartio_nvme_close(rest);
		assert_true(k < 200);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_pair_each_while_there_are_some, setup, teardown),
		cmocka_unit_test_setup_teardown(there_is_room_for_eight, setup, teardown),
		cmocka_unit_test_setup_teardown(the_others_go_on, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_is_stopped_with_the_lock_is_awaited, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_was_in_flight_without_alone_is_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_place_changes_hands_within_a_completion, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_poll_for_nothing_returns, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_deletion_aborts_is_not_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(who_uses_another_adapter_does_not_join, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_pair_that_is_shut_is_not_joined, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_that_cannot_be_attached_is_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_deletion_that_is_repeated_deletes_no_other, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_lies_in_the_common_queue_is_not_overdue, setup,
						teardown),
		cmocka_unit_test_setup_teardown(options_are_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_left_of_one_that_fails, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
