/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of a queue's life (failover.c) in every order of events, beside a drive and a manager
 * that are as simple as can be: whatever comes, nothing is sent again while a pair of before may
 * still be at work, and what may not be done twice is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "failover.h"
#include "smartio/nvme.h"

#define EVENTS 9u /* in a row */

/* What is true of the world, and what the queue has been told. */
struct world {
	enum sio_nvme_life state;
	bool old_at_work; /* a pair that nobody has deleted */
	bool pair;	  /* one that the queue uses */
	bool takes;	  /* commands */
	unsigned flying;  /* commands in flight whose fate is not settled */
};

static unsigned long walked, settled, refused;

/* May this event come now? The actor says no other ones. */
static bool can_come(const struct world *w, enum sio_nvme_life_event e)
{
	switch (e) {
	case SIO_NVME_LOST:
		return true;
	case SIO_NVME_MADE_HOME:
	case SIO_NVME_MADE_AWAY:
	case SIO_NVME_GIVE_UP:
		return w->state == SIO_NVME_DEAD;
	case SIO_NVME_HOME_IS_BACK:
		return w->state == SIO_NVME_AWAY;
	case SIO_NVME_DRAINED:
		return w->state == SIO_NVME_DRAIN && w->flying == 0;
	case SIO_NVME_STAYS:
		return w->state == SIO_NVME_DRAIN && w->flying > 0;
	default:
		return false;
	}
}

static void act(struct world *w, enum sio_nvme_life_event e, enum sio_nvme_life_act act)
{
	switch (act) {
	case SIO_NVME_NOTHING:
		assert_int_equal(w->state, SIO_NVME_OVER);
		break;
	case SIO_NVME_STOP:
		assert_true(w->pair);
		w->takes = false;
		break;
	case SIO_NVME_RESUME:
		assert_true(w->pair);
		w->takes = true;
		break;
	case SIO_NVME_RENEW:
		w->old_at_work |= w->pair;
		w->pair = w->takes = false;
		break;
	case SIO_NVME_SETTLE:
		/* A manager's answer has come: it deletes before it makes. */
		assert_true(e == SIO_NVME_MADE_HOME || e == SIO_NVME_MADE_AWAY);
		assert_false(w->old_at_work);
		w->flying = 0;
		w->takes = w->pair = true;
		settled++;
		break;
	case SIO_NVME_END:
		assert_false(w->pair);
		w->flying = 0;
		break;
	}
}

static void walk(struct world w, unsigned left)
{
	walked++;
	/* Only who has a pair may send, and none is sent beside one that may still be at work. */
	assert_int_equal(w.pair, w.state == SIO_NVME_HOME || w.state == SIO_NVME_AWAY ||
					 w.state == SIO_NVME_DRAIN);
	assert_int_equal(w.takes, w.state == SIO_NVME_HOME || w.state == SIO_NVME_AWAY);
	assert_false(w.pair && w.old_at_work);
	if (left == 0)
		return;
	for (unsigned e = 0; e < SIO_NVME_LIFE_EVENTS; e++) {
		struct world next = w;
		enum sio_nvme_life_act what = SIO_NVME_NOTHING;
		enum sio_nvme_life to = w.state;

		if (!can_come(&w, e)) {
			/* The table refuses it, or a loss is all that it knows of an end. */
			refused += !sio_nvme_life_next(w.state, e, &to, &what);
			continue;
		}
		/* A program sends whenever it may. */
		if (next.takes && left % 2)
			next.flying++;
		if (e == SIO_NVME_MADE_HOME || e == SIO_NVME_MADE_AWAY)
			next.old_at_work = false;
		assert_true(sio_nvme_life_next(w.state, e, &next.state, &what));
		act(&next, e, what);
		walk(next, left - 1);
		/* Draining commands come back one by one. */
		if (w.state == SIO_NVME_DRAIN && w.flying) {
			next = w;
			next.flying--;
			walk(next, left - 1);
		}
	}
}

static void every_order_of_events(void **state)
{
	const struct world w = {.state = SIO_NVME_HOME, .pair = true, .takes = true};

	(void)state;
	walk(w, EVENTS);
	print_message("# %lu walks, %lu times settled, %lu events refused (counted)\n", walked,
		      settled, refused);
	assert_true(walked > 1000 && settled > 100 && refused > 1000);
}

/* Nothing else is in the table. */
static void what_cannot_come_is_refused(void **state)
{
	static const unsigned possible[SIO_NVME_LIVES] = {
		[SIO_NVME_HOME] = 1u << SIO_NVME_LOST,
		[SIO_NVME_AWAY] = 1u << SIO_NVME_LOST | 1u << SIO_NVME_HOME_IS_BACK,
		[SIO_NVME_DRAIN] =
			1u << SIO_NVME_LOST | 1u << SIO_NVME_DRAINED | 1u << SIO_NVME_STAYS,
		[SIO_NVME_DEAD] = 1u << SIO_NVME_LOST | 1u << SIO_NVME_MADE_HOME |
				  1u << SIO_NVME_MADE_AWAY | 1u << SIO_NVME_GIVE_UP,
		[SIO_NVME_OVER] = 1u << SIO_NVME_LOST,
	};

	(void)state;
	for (unsigned s = 0; s < SIO_NVME_LIVES; s++)
		for (unsigned e = 0; e < SIO_NVME_LIFE_EVENTS; e++) {
			enum sio_nvme_life to = s;
			enum sio_nvme_life_act what = SIO_NVME_END;
			bool can = sio_nvme_life_next(s, e, &to, &what);

			assert_int_equal(can, possible[s] >> e & 1);
			if (!can) {
				assert_int_equal(to, s);
				assert_int_equal(what, SIO_NVME_END);
			}
		}
}

static void what_writes_is_not_sent_twice(void **state)
{
	static const struct {
		uint32_t op;
		bool reads;
	} ops[] = {{SMARTIO_NVME_READ, true},	     {SMARTIO_NVME_FLUSH, true},
		   {SMARTIO_NVME_COMPARE, true},     {SMARTIO_NVME_VERIFY, true},
		   {SMARTIO_NVME_WRITE, false},	     {SMARTIO_NVME_WRITE_ZEROES, false},
		   {SMARTIO_NVME_DEALLOCATE, false}, {0x7f, false}};

	(void)state;
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		/* What the drive has not seen it has not done. */
		assert_int_equal(sio_nvme_fate(ops[i].op, false, false), SIO_NVME_AGAIN);
		assert_int_equal(sio_nvme_fate(ops[i].op, true, true), SIO_NVME_AGAIN);
		assert_int_equal(sio_nvme_fate(ops[i].op, true, false),
				 ops[i].reads ? SIO_NVME_AGAIN : SIO_NVME_REPORT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_order_of_events),
		cmocka_unit_test(what_cannot_come_is_refused),
		cmocka_unit_test(what_writes_is_not_sent_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
