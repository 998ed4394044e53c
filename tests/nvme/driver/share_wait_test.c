/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that share a queue pair and sleep for its completions: each is woken for its own,
 * whoever takes them from the common queue, and whoever ends or is stopped meanwhile.
 */
#include "client.h"
#include "manager.h"
#include "sharing.h"
#include "smartio/ext.h"

#define QUIET (SMARTIO_NVME_SHARED | SMARTIO_NVME_SURVIVE | SMARTIO_NVME_INTERRUPT)

/* On one pair, which the first of them makes: others have the rest, and poll. */
static struct smartio_nvme *quiet_few(struct program *p, unsigned n)
{
	struct smartio_nvme *rest = few(p, 0);

	for (unsigned i = 0; i < n; i++) {
		p[i] = program_with(SMARTIO_NVME_INTERRUPT);
		assert_int_equal(smartio_nvme_queue_id(p[i].q), PAIRS);
	}
	return rest;
}

static uint64_t interrupts(const struct program *p)
{
	struct smartio_nvme_counters c;

	smartio_nvme_queue_counters(p->q, &c);
	return c.interrupts;
}

static void send(struct program *p)
{
	assert_ok(smartio_nvme_submit(p->q, SMARTIO_NVME_READ, 0, 1, p->b, 0, NULL));
	smartio_nvme_ring(p->q);
}

/* It has a completion, and that is taken. */
static void take(struct program *p)
{
	struct smartio_nvme_completion c;

	assert_int_equal(smartio_nvme_poll(p->q, &c, 1), 1);
	assert_int_equal(c.status, 0);
}

static void close_all(struct program *p, unsigned n, struct smartio_nvme *rest)
{
	for (unsigned i = 0; i < n; i++)
		smartio_nvme_close(p[i].n);
	smartio_nvme_close(rest);
}

/* By one vector, which the first of them has. */
static void each_is_woken_for_its_own(void **state)
{
	struct program p[3];
	struct smartio_nvme *rest = quiet_few(p, 3);

	(void)state;
	assert_int_not_equal(p[0].q->vector, 0);
	assert_int_equal(p[1].q->vector, 0);
	for (unsigned round = 0; round < 3 * (DEPTH + 1); round++) {
		const unsigned first = round % 3, then = (round + 1) % 3;
		uint64_t before[3];

		for (unsigned i = 0; i < 3; i++)
			before[i] = interrupts(&p[i]);
		send(&p[first]);
		assert_int_equal(smartio_nvme_wait(p[first].q, UINT32_MAX), 1);
		assert_int_equal(interrupts(&p[first]), before[first] + 1);
		take(&p[first]);
		/* Who had nothing in flight was woken, too, and sleeps on. */
		assert_int_equal(smartio_nvme_wait(p[then].q, 0), 0);
		/* Of two that come at once who is first hands the other one on. */
		send(&p[first]);
		send(&p[then]);
		assert_int_equal(smartio_nvme_wait(p[then].q, UINT32_MAX), 1);
		assert_int_equal(smartio_nvme_wait(p[first].q, 0), 1);
		take(&p[first]);
		take(&p[then]);
	}
	/* The blocking helpers sleep as well. */
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t before = interrupts(&p[i]);
		uint8_t data[BLOCK];

		assert_ok(smartio_nvme_read(p[i].q, data, 0, BLOCK));
		assert_true(interrupts(&p[i]) > before);
	}
	close_all(p, 3, rest);
}

/* A program that polls may join them, and takes what is theirs. */
static void one_that_polls_hands_on(void **state)
{
	struct program p[2], polls;
	struct smartio_nvme *rest = quiet_few(p, 1);
	struct smartio_nvme_completion c;

	(void)state;
	polls = program();
	assert_int_equal(smartio_nvme_queue_id(polls.q), PAIRS);
	assert_int_equal(smartio_nvme_wait(polls.q, 0), -EINVAL);
	send(&p[0]);
	for (unsigned i = 0; i < 20; i++)
		fake_step();
	assert_int_equal(smartio_nvme_poll(polls.q, &c, 1), 0);
	assert_true(sio_nvme_completion_waits(p[0].q));
	assert_int_equal(smartio_nvme_wait(p[0].q, 0), 1);
	take(&p[0]);
	use(&polls, 0x21);
	smartio_nvme_close(polls.n);
	close_all(p, 1, rest);
}

/* Nobody wakes whoever sleeps in a pair whose maker polls: it looks by itself. */
static void a_pair_without_a_vector_is_the_last_choice(void **state)
{
	struct program p[2], polls[2];
	struct smartio_nvme *rest = client();

	(void)state;
	for (unsigned i = 2; i < PAIRS; i++)
		queue(rest, DEPTH);
	polls[0] = program();
	p[0] = program_with(SMARTIO_NVME_INTERRUPT);
	/* Two are in the other pair then, which polls. */
	polls[1] = program();
	p[1] = program_with(SMARTIO_NVME_INTERRUPT);
	assert_int_equal(smartio_nvme_queue_id(p[1].q), smartio_nvme_queue_id(p[0].q));
	smartio_nvme_close(p[0].n);
	smartio_nvme_close(p[1].n);
	queue(rest, DEPTH);
	for (unsigned i = 0; i < 2; i++) {
		p[i] = program_with(SMARTIO_NVME_INTERRUPT);
		assert_int_equal(smartio_nvme_queue_id(p[i].q), smartio_nvme_queue_id(polls[0].q));
		assert_int_equal(p[i].q->vector, 0);
		send(&p[i]);
		assert_int_equal(smartio_nvme_wait(p[i].q, UINT32_MAX), 1);
		assert_int_equal(interrupts(&p[i]), 0);
		take(&p[i]);
		use(&polls[i], 0x61 + i);
	}
	close_all(p, 2, rest);
	for (unsigned i = 0; i < 2; i++)
		smartio_nvme_close(polls[i].n);
}

static void vectors_run_out(void **state)
{
	const uint32_t own = SMARTIO_NVME_INTERRUPT;
	struct smartio_nvme *n = client(), *late = client();
	struct smartio_nvme_queue *q[3], *none;
	struct program p[2];

	(void)state;
	/* The drive has three. */
	for (unsigned i = 0; i < 3; i++)
		assert_ok(try_queue(n, own, DEPTH, &q[i]));
	assert_int_equal(try_queue(late, QUIET, DEPTH, &none), -EBUSY);
	assert_text("all interrupt vectors of nvme0 are taken, and no program of node 8 shares");
	/* One that is shared wakes any number, also when the drive has none left. */
	smartio_nvme_queue_close(q[2]);
	p[0] = program_with(own);
	p[1] = program_with(own);
	assert_int_equal(p[0].q->vector, 3);
	assert_int_equal(smartio_nvme_queue_id(p[1].q), smartio_nvme_queue_id(p[0].q));
	for (unsigned i = 0; i < 2; i++) {
		send(&p[i]);
		assert_int_equal(smartio_nvme_wait(p[i].q, UINT32_MAX), 1);
		take(&p[i]);
	}
	smartio_nvme_close(late);
	close_all(p, 2, n);
}

/* A wait ends for the loss of the pair, too, and a poll gets another. */
static void take_at_last(struct program *p)
{
	struct smartio_nvme_completion done;
	int n = 0;

	for (unsigned tries = 0; tries < 1000 && n == 0; tries++) {
		assert_int_equal(smartio_nvme_wait(p->q, UINT32_MAX), 1);
		n = smartio_nvme_poll(p->q, &done, 1);
	}
	assert_int_equal(n, 1);
	assert_int_equal(done.status, 0);
}

/* Which one ends: the one that has the vector, or another; in order, or killed. */
static void the_others_sleep_on(void **state)
{
	(void)state;
	for (unsigned variant = 0; variant < 4; variant++) {
		const unsigned goes = variant % 2;
		const bool dies = variant / 2;
		struct program p[3];
		struct smartio_nvme *rest = quiet_few(p, 3);
		struct smartio_nvme_counters c;

		/* With a command in flight of each. */
		fake.stopped = true;
		for (unsigned i = 0; i < 3 && dies; i++)
			send(&p[i]);
		fake.stopped = false;
		if (dies)
			end(&p[goes]);
		else
			smartio_nvme_close(p[goes].n);
		for (unsigned i = 0; i < 3; i++) {
			if (i == goes)
				continue;
			if (!dies)
				send(&p[i]);
			take_at_last(&p[i]);
			smartio_nvme_queue_counters(p[i].q, &c);
			assert_true(dies || c.renewals == (goes == 0));
		}
		for (unsigned i = 0; i < 3; i++) {
			if (i == goes)
				continue;
			send(&p[i]);
			take_at_last(&p[i]);
			smartio_nvme_close(p[i].n);
		}
		smartio_nvme_close(rest);
		assert_int_equal(fake.faults, 0);
	}
}

/* Its entries and completions wait with it; it is looked after without a pause no more. */
static void one_that_is_stopped_with_the_lock_is_slept_for(void **state)
{
	struct program p[2];
	struct smartio_nvme *rest = quiet_few(p, 2);
	uint64_t since;

	(void)state;
	send(&p[1]);
	for (unsigned i = 0; i < 20; i++)
		fake_step();
	p[0].q->share->head->lock = 1;
	since = fake.now;
	assert_int_equal(smartio_nvme_wait(p[1].q, 200), 0);
	assert_true(fake.now - since >= 200000000ull);
	p[0].q->share->head->lock = 0;
	assert_int_equal(smartio_nvme_wait(p[1].q, 0), 1);
	take(&p[1]);
	/* An entry that found the lock held is rung by the wait. */
	p[0].q->share->head->lock = 1;
	send(&p[1]);
	assert_ptr_not_equal(p[1].q->sqe, p[1].q->rung);
	assert_int_equal(smartio_nvme_wait(p[1].q, 20), 0);
	p[0].q->share->head->lock = 0;
	assert_int_equal(smartio_nvme_wait(p[1].q, UINT32_MAX), 1);
	take(&p[1]);
	close_all(p, 2, rest);
}

/* Every n-th call of an open fails, of who makes the pair and of who joins it. */
static void nothing_is_left_of_one_that_fails(void **state)
{
	(void)state;
	for (unsigned before = 0; before < 2; before++) {
		bool failed = true;

		for (unsigned long k = 1; failed; k++) {
			struct program p[1], late;
			struct smartio_nvme *rest = quiet_few(p, before);
			struct smartio_nvme_queue *q = NULL;

			late.n = client();
			late.borrower = fake_last_borrower();
			fake.fail_at = fake.calls + k;
			failed = try_queue(late.n, QUIET, DEPTH, &q) != 0;
			failed |= fake.calls >= fake.fail_at;
			fake.fail_at = 0;
			assert_int_equal(fake.served, 0);
			/* A reply that did not come: its memory stays until it ends. */
			if (late.n->kept)
				end(&late);
			else
				smartio_nvme_close(late.n);
			if (before)
				use(&p[0], 0x42);
			close_all(p, before, rest);
			assert_true(k < 200);
		}
	}
}

/* Who follows a dead manager knows which pairs raise a vector. */
static void a_successor_knows_which_can_be_joined(void **state)
{
	struct sio_nvme_pair *pair;
	struct program p[1], late;
	struct smartio_nvme *rest = quiet_few(p, 1);

	(void)state;
	pair = &fake.manager->ledger.pair[PAIRS];
	assert_true(pair->raises);
	memset(pair, 0xff, sizeof(*pair));
	sio_nvme_record_read_pair(&fake.manager->record, PAIRS, pair);
	assert_true(pair->raises);
	late = program_with(SMARTIO_NVME_INTERRUPT);
	assert_int_equal(smartio_nvme_queue_id(late.q), PAIRS);
	sio_nvme_record_read_pair(&fake.manager->record, 1, &fake.manager->ledger.pair[1]);
	assert_false(fake.manager->ledger.pair[1].raises);
	smartio_nvme_close(late.n);
	close_all(p, 1, rest);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(each_is_woken_for_its_own),
		TEST(one_that_polls_hands_on),
		TEST(a_pair_without_a_vector_is_the_last_choice),
		TEST(vectors_run_out),
		TEST(the_others_sleep_on),
		TEST(one_that_is_stopped_with_the_lock_is_slept_for),
		TEST(nothing_is_left_of_one_that_fails),
		TEST(a_successor_knows_which_can_be_joined),
	};

	return cmocka_run_group_tests_name("nvme driver: shared pairs and interrupts", tests, NULL,
					   NULL);
}
