/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues that outlive their queue pair: a reset, or the loss of one of two paths to the drive.
 * failover.c decides; this file carries it out, in the thread that polls the queue. A submission
 * queue whose state is unknown may still be in use: the drive fetches the entries in it whether or
 * not its client can be reached. So nothing is sent again, and nothing is reported, before a
 * manager has deleted the queue or the drive was reset.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "error.h"
#include "late.h"
#include "smartio/ext.h"

#define LIMIT_MS 30000u
#define FIRST_PAUSE_NS 1000000ull
#define LAST_PAUSE_NS 64000000ull
#define LOOK_NS 50000000ull /* between two looks at the ways */
#define RINGS_PER_LOOK 16u  /* or yields; so that few ask for the time */
/* How long a queue that returns to its own path takes no commands while those in flight end. */
#define DRAIN_NS 250000000ull
/* Until it tries again when they did not end, or no manager answered: each time twice as long. */
#define STAY_NS 1000000000ull
#define LAST_STAY_NS (64 * STAY_NS)

/* Of a queue without a pair: no generation is odd. */
const volatile uint32_t sio_nvme_no_generation = 1;

bool sio_nvme_survives(const struct smartio_nvme_queue *q)
{
	return q->life && q->life->state != SIO_NVME_OVER;
}

bool sio_nvme_is_over(const struct smartio_nvme_queue *q)
{
	const struct sio_nvme_survivor *s = q->life;
	const struct smartio_nvme *leg = q->sq_mem ? q->leg : s->old_leg;
	const uint32_t generation = q->sq_mem ? q->generation : s->old_generation;

	/* Which state it has only its own thread knows, but this one stays. */
	if (__atomic_load_n(&s->state, __ATOMIC_RELAXED) != SIO_NVME_OVER)
		return false;
	return !leg || __atomic_load_n(leg->generation, __ATOMIC_RELAXED) != generation;
}

uint32_t sio_nvme_unrung(const struct smartio_nvme_queue *q)
{
	return q->life && q->life->state == SIO_NVME_DEAD ? (uint32_t)q->life->unrung : 0;
}

int sio_nvme_no_command(struct smartio_nvme_queue *q)
{
	return q->error && !sio_nvme_survives(q) ? sio_nvme_queue_dead(q) : -EAGAIN;
}

/* ---- what is in flight ---- */
int sio_nvme_note(struct smartio_nvme_queue *q, uint32_t op, uint64_t lba, uint64_t nlb,
		  const struct smartio_nvme_piece *piece, uint32_t n_pieces)
{
	struct sio_nvme_survivor *s = q->life;
	const size_t slot = (size_t)(q->free - q->slot);

	if (n_pieces > 1 && !s->pieces) {
		s->pieces = calloc((size_t)q->depth * SMARTIO_NVME_PIECES, sizeof(*s->pieces));
		if (!s->pieces)
			return sio_nvme_no_memory("a list of pieces");
	}
	s->note[slot] = (struct sio_nvme_note){.lba = lba,
					       .nlb = nlb,
					       .number = s->noted++,
					       .op = op,
					       .n_pieces = (uint16_t)n_pieces};
	if (n_pieces == 1)
		s->note[slot].piece = *piece;
	else if (n_pieces)
		memcpy(s->pieces + slot * SMARTIO_NVME_PIECES, piece, n_pieces * sizeof(*piece));
	return 0;
}

/* @slot, which was in flight, once more, with a command id of its own. */
static void send_again(struct smartio_nvme_queue *q, struct sio_nvme_slot *slot)
{
	const size_t i = (size_t)(slot - q->slot);
	const struct sio_nvme_note *note = &q->life->note[i];
	struct smartio_nvme_buffer *b = slot->buffer;
	uint64_t prp1 = 0, prp2 = 0;
	uint32_t op = note->op;

	if (note->n_pieces)
		op |= sio_nvme_name_pieces(q, (uint32_t)i,
					   note->n_pieces == 1
						   ? &note->piece
						   : q->life->pieces + i * SMARTIO_NVME_PIECES,
					   note->n_pieces, &prp1, &prp2);
	slot->cid = htole16((uint16_t)(le16toh(slot->cid) + q->use));
	slot->next = q->free;
	q->free = slot;
	sio_nvme_put(q, op, note->lba, note->nlb, prp1, prp2, b, slot->cookie);
}

static bool is_reported(const struct sio_nvme_survivor *s, const struct sio_nvme_slot *slot)
{
	for (const struct sio_nvme_slot *t = s->told; t; t = t->next)
		if (t == slot)
			return true;
	return false;
}

static void take_commands(struct smartio_nvme_queue *q)
{
	q->free = NULL;
	for (uint32_t i = q->depth; i-- > 0;) {
		if (q->slot[i].buffer)
			continue;
		q->slot[i].next = q->free;
		q->free = &q->slot[i];
	}
	q->error = 0;
}

/* The pair before is gone, and another is there. Not under the lock: rings may take it. */
static void settle(struct smartio_nvme_queue *q)
{
	struct sio_nvme_survivor *s = q->life;
	const bool alone = q->options.flags & SMARTIO_NVME_ALONE;
	uint64_t told = 0;

	q->free = NULL;
	for (uint32_t i = 0; i < q->depth; i++) {
		struct sio_nvme_slot *slot = &q->slot[i];
		const bool rung = s->note[i].number + s->unrung < s->noted;

		if (!slot->buffer)
			continue;
		if (sio_nvme_was_overdue(slot))
			s->note[i].late++;
		if (is_reported(s, slot)) {
			told++;
		} else if (s->note[i].late < SIO_NVME_TRIES &&
			   sio_nvme_fate(s->note[i].op, rung, alone) == SIO_NVME_AGAIN) {
			q->counters.resent++;
			send_again(q, slot);
		} else {
			slot->next = s->told;
			s->told = slot;
			q->counters.unsure++;
			told++;
		}
	}
	/* In flight are those that were put just now, and those that are to be reported. */
	q->counters.submitted = q->counters.completed + told;
	take_commands(q);
	smartio_nvme_ring(q);
	if (!s->told || q->error)
		return;
	q->error = -EAGAIN;
	q->free = NULL;
}

static int tell(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c, unsigned max)
{
	struct sio_nvme_survivor *s = q->life;
	unsigned n = 0;

	for (; s->told && n < max; n++) {
		struct sio_nvme_slot *slot = s->told;

		s->told = slot->next;
		c[n] = (struct smartio_nvme_completion){.cookie = slot->cookie,
							.status = SMARTIO_NVME_UNSURE};
		slot->cid = htole16((uint16_t)(le16toh(slot->cid) + q->use));
		__atomic_store_n(&slot->buffer, NULL, __ATOMIC_RELAXED);
	}
	q->counters.completed += n;
	if (!s->told && q->error == -EAGAIN)
		take_commands(q);
	return (int)n;
}

/* ---- pairs ---- */
/* The last pair's things, back in the queue: to be freed, or closed with it. */
static void take_back(struct smartio_nvme_queue *q)
{
	struct sio_nvme_survivor *s = q->life;

	q->leg = s->old_leg;
	q->sq_mem = s->old_sq;
	q->cq_mem = s->old_cq;
	q->share = s->old_share;
	q->doorbells = s->old_doorbells;
	q->interrupt = s->old_interrupt;
	q->vector = s->old_vector;
	q->generation = s->old_generation;
	s->old_leg = NULL;
}

static void free_old(struct smartio_nvme_queue *q)
{
	struct sio_nvme_survivor *s = q->life;
	struct smartio_nvme_queue old = {.n = q->n};

	if (!s->old_leg)
		return;
	old.leg = s->old_leg;
	old.sq_mem = s->old_sq;
	old.cq_mem = s->old_cq;
	old.share = s->old_share;
	old.doorbells = s->old_doorbells;
	old.interrupt = s->old_interrupt;
	old.vector = s->old_vector;
	sio_nvme_pair_close(&old);
	s->old_leg = NULL;
}

/*
 * Under the lock: a drive has as few vectors as pairs, and the one that the next pair needs may be
 * the last one's. Nobody listens to that any more.
 */
static void drop_interrupt(struct smartio_nvme_queue *q)
{
	struct sio_nvme_survivor *s = q->life;
	struct smartio_nvme_queue old = {.n = q->n,
					 .leg = s->old_leg,
					 .interrupt = s->old_interrupt,
					 .vector = s->old_vector};

	if (!s->old_leg)
		return;
	sio_nvme_interrupt_close(&old);
	s->old_interrupt = NULL;
	s->old_vector = 0;
}

/* Under the lock: the queue has no pair any more; whether the drive has it nobody knows. */
static void set_aside(struct smartio_nvme_queue *q)
{
	struct sio_nvme_survivor *s = q->life;

	s->old_leg = q->leg;
	s->old_sq = q->sq_mem;
	s->old_cq = q->cq_mem;
	s->old_share = q->share;
	s->old_doorbells = q->doorbells;
	s->old_interrupt = q->interrupt;
	s->old_vector = q->vector;
	s->old_generation = q->generation;
	q->old_id = q->id;
	q->old_key = q->key;
	q->old_sequence = q->sequence;
	sio_nvme_far_end(q);
	q->sq_mem = q->cq_mem = NULL;
	q->share = NULL;
	q->doorbells = NULL;
	q->interrupt = NULL;
	q->vector = 0;
	q->generation_word = &sio_nvme_no_generation;
	q->rung = q->sqe = q->sq;
	/* After a reset it is gone, and its memory is as good as new: pairs with happened(). */
	if (__atomic_load_n(s->old_leg->generation, __ATOMIC_ACQUIRE) != s->old_generation &&
	    sio_nvme_leg_open(s->old_leg))
		free_old(q);
}

/* What the drive may have although nobody said so. Without memory for it the mappings stay. */
static void keep_unsure(struct smartio_nvme_queue *q)
{
	struct smartio_nvme_queue *kept = aligned_alloc(64, (sizeof(*kept) + 63) & ~(size_t)63);

	if (kept) {
		memset(kept, 0, sizeof(*kept));
		kept->n = q->n;
		kept->leg = q->leg;
		kept->sq_mem = q->sq_mem;
		kept->cq_mem = q->cq_mem;
		kept->share = q->share;
		kept->doorbells = q->doorbells;
		kept->interrupt = q->interrupt;
		kept->vector = q->vector;
		kept->generation = q->generation;
		kept->generation_word = q->leg->generation;
		kept->unanswered = q->unanswered;
		kept->id = q->id;
		kept->key = q->key; /* of this pair, unless that request was not answered */
		kept->sequence = q->sequence;
		sio_nvme_keep(kept);
	}
	sio_nvme_far_end(q);
	q->unanswered = 0;
	q->share = NULL;
	q->sq_mem = q->cq_mem = NULL;
	q->doorbells = NULL;
	q->interrupt = NULL;
	q->vector = 0;
}

/* For whoever reads it without the lock: sio_nvme_leg(). */
static void go_over(struct smartio_nvme_queue *q, struct smartio_nvme *leg)
{
	__atomic_store_n(&q->leg, leg, __ATOMIC_RELAXED);
	q->over_second = leg != q->n;
}

/* Under the lock: over @leg, after the last pair is deleted. */
static int make(struct smartio_nvme_queue *q, struct smartio_nvme *leg)
{
	struct smartio_nvme *before = q->leg;
	bool unsure = false;
	int rc;

	go_over(q, leg);
	q->generation = __atomic_load_n(leg->generation, __ATOMIC_RELAXED);
	/* After a reset another one serves. */
	leg->trusts = leg->meta.generation == q->generation;
	rc = sio_nvme_pair_open(q, &unsure);
	leg->trusts = false;
	/* pairs with device_lost() and happened() */
	if (rc == 0 && q->error == -ECONNRESET &&
	    __atomic_load_n(leg->generation, __ATOMIC_ACQUIRE) != q->generation)
		rc = sio_nvme_fail(-ECONNRESET, "%s was reset once more", leg->d.name);
	if (rc == 0) {
		q->generation_word = leg->generation;
		return 0;
	}
	if (unsure)
		keep_unsure(q);
	else
		sio_nvme_pair_close(q);
	go_over(q, before);
	return rc;
}

static bool is_hopeless(int rc)
{
	return rc == -ESTALE || rc == -EINVAL || rc == -ENOTSUP || rc == -EPROTO;
}

/* Between two pairs. Under the lock. */
static void leave_pair(struct smartio_nvme_queue *q)
{
	struct sio_nvme_survivor *s = q->life;

	s->unrung = 0;
	s->unrung =
		sio_nvme_in_flight(q) - (uint32_t)(q->counters.submitted - q->counters.completed);
	s->look_at = 0;
	s->pause_ns = FIRST_PAUSE_NS;
	s->deadline = smartio_now_ns() + s->limit_ns;
	free_old(q); /* of before that, if nobody came to it */
	set_aside(q);
}

/* It does not return now. */
static void stay(struct sio_nvme_survivor *s)
{
	s->stay_ns = s->stay_ns ? 2 * s->stay_ns : STAY_NS;
	if (s->stay_ns > LAST_STAY_NS)
		s->stay_ns = LAST_STAY_NS;
	s->home_at = smartio_now_ns() + s->stay_ns;
}

/*
 * Something happened: what failover.c says is done. What it does not know is an error of ours. The
 * lock is held where a pair is left.
 */
static void step(struct smartio_nvme_queue *q, enum sio_nvme_life_event event)
{
	enum sio_nvme_life_act act = SIO_NVME_END;

	if (!sio_nvme_life_next(q->life->state, event, &q->life->state, &act))
		q->life->state = SIO_NVME_OVER;
	switch (act) {
	case SIO_NVME_NOTHING:
		break;
	case SIO_NVME_STOP:
		q->life->deadline = smartio_now_ns() + DRAIN_NS;
		q->free = NULL;
		q->error = -EAGAIN;
		break;
	case SIO_NVME_RESUME:
		stay(q->life);
		take_commands(q);
		break;
	case SIO_NVME_RENEW:
		if (q->sq_mem)
			leave_pair(q);
		q->free = NULL;
		q->error = -ECONNRESET;
		break;
	case SIO_NVME_SETTLE:
		settle(q);
		break;
	case SIO_NVME_END:
		q->free = NULL;
		q->error = -ECONNRESET;
		break;
	}
}

/*
 * Over its own way first; not over one that is lost: whose every way is lost cannot know whether
 * the drive was off meanwhile, and has lost what was not flushed. Nor if another thread has made
 * one of them anew before this queue was polled. 1: there is no way.
 */
static int make_any(struct smartio_nvme_queue *q)
{
	struct smartio_nvme *home = q->life->home;
	struct smartio_nvme *legs[] = {home, home == q->n ? q->n->second : q->n};
	int rc = 1;

	if (q->life->absences != q->n->absences)
		return 1;
	for (unsigned i = 0; i < 2; i++) {
		if (!legs[i] || !sio_nvme_leg_open(legs[i]))
			continue;
		rc = make(q, legs[i]);
		if (rc == 0 || is_hopeless(rc))
			break;
	}
	return rc;
}

/* Generations are even: rings of a queue with two ways take the long way, past sio_nvme_look(). */
static void look_at_rings(struct smartio_nvme_queue *q)
{
	if (q->n->second)
		q->plain |= 1;
	q->life->look_at = smartio_now_ns() + LOOK_NS;
}

/* Once another pair is there it can wait until nobody else has the lock. */
static void drop_old(struct smartio_nvme_queue *q)
{
	if (!q->life->old_leg || !sio_nvme_trylock(q->n))
		return;
	free_old(q);
	sio_nvme_unlock(q->n);
}

static void made(struct smartio_nvme_queue *q)
{
	q->old_id = 0;
	q->old_key = 0;
	q->counters.renewals++;
	q->life->home_at = q->life->stay_ns = 0;
	look_at_rings(q);
	step(q, sio_nvme_leg(q) == q->life->home ? SIO_NVME_MADE_HOME : SIO_NVME_MADE_AWAY);
	drop_old(q);
}

static int give_up(struct smartio_nvme_queue *q, int rc)
{
	step(q, SIO_NVME_GIVE_UP);
	if (is_hopeless(rc))
		q->error = rc;
	return rc > 0 ? sio_nvme_queue_dead(q) : rc;
}

static int renew(struct smartio_nvme_queue *q)
{
	struct sio_nvme_survivor *s = q->life;
	uint64_t now = smartio_now_ns();
	int rc;

	if (now < s->look_at) {
		smartio_yield();
		return 0;
	}
	/* Who has it may wait for a host that does not answer. */
	if (!sio_nvme_trylock(q->n)) {
		if (now >= s->deadline)
			return give_up(q, 1);
		smartio_yield();
		return 0;
	}
	/* What is made may set it. */
	q->error = 0;
	rc = make_any(q);
	if (rc)
		drop_interrupt(q);
	sio_nvme_unlock(q->n);
	if (rc == 0) {
		made(q);
		return 0;
	}
	q->error = -ECONNRESET;
	if (rc > 0 || is_hopeless(rc) || now >= s->deadline)
		return give_up(q, rc);
	s->look_at = now + s->pause_ns;
	if (s->pause_ns < LAST_PAUSE_NS)
		s->pause_ns *= 2;
	return 0;
}

/* ---- the two ways ---- */
static int end_remains(struct smartio_nvme *n, void *of)
{
	(void)of;
	sio_nvme_remains_end(n);
	return 0;
}

static int join_leases(struct smartio_nvme *n, void *of)
{
	(void)of;
	sio_nvme_leases_join_all(n);
	return 0;
}

static int make_path(struct smartio_nvme *n, void *leg)
{
	int rc = sio_nvme_leg_step(n, leg);

	/* As early as can be: until then the leases are lost with the other path. */
	return rc ? rc : join_leases(n, NULL);
}

/*
 * Has the queue's own path all that its next pair needs? Without a manager that answers there it
 * would have no pair for long, while the one that it has is as good.
 */
static int prepare(struct smartio_nvme *n, void *of)
{
	struct smartio_nvme_queue *q = of;
	struct smartio_nvme *home = q->life->home;
	enum sio_nvme_home ready = SIO_NVME_HOME_UNKNOWN;
	int rc = sio_nvme_leg_open(home) ? sio_nvme_pair_prepare(q, home, true) : -ENODEV;
	bool there;

	sio_nvme_unlock(n);
	there = rc == 0 && sio_nvme_lender_answers(home);
	sio_nvme_lock(n);
	if (!n->aside.task) /* the queue was closed meanwhile */
		return 0;
	if (rc == 0)
		ready = there && sio_nvme_manager_answers(home) ? SIO_NVME_HOME_READY
								: SIO_NVME_HOME_NOT_READY;
	/* pairs with look_home() */
	__atomic_store_n(&q->life->ready, ready, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Under the lock, where both ways are open: may it go home now? Else that is asked, if it is time.
 */
static bool look_home(struct smartio_nvme_queue *q, uint64_t now, bool *ret_work)
{
	struct sio_nvme_survivor *s = q->life;
	/* pairs with prepare() */
	enum sio_nvme_home ready =
		__atomic_exchange_n(&s->ready, SIO_NVME_HOME_UNKNOWN, __ATOMIC_ACQUIRE);

	if (s->state != SIO_NVME_AWAY || now < s->home_at)
		return false;
	if (ready == SIO_NVME_HOME_READY)
		return true;
	if (ready == SIO_NVME_HOME_NOT_READY)
		stay(s);
	else
		*ret_work = sio_nvme_aside_claim(q->n, prepare, q);
	return false;
}

/*
 * Only a way that is ready when the other goes is of use, so a queue looks after both while it is
 * used. What there is to do is done aside. Return: it goes home.
 */
static bool look_at_ways(struct smartio_nvme_queue *q, uint64_t now)
{
	struct smartio_nvme *n = q->n, *other = sio_nvme_leg(q) == n ? n->second : n;
	bool home = false, work = false;

	/* Who has it may wait for a host that does not answer. */
	if (!sio_nvme_trylock(n))
		return false;
	if (q->life->old_leg)
		free_old(q);
	if (sio_nvme_remains_idle(n))
		work = sio_nvme_aside_claim(n, end_remains, n);
	else if (sio_nvme_leases_lack(n))
		work = sio_nvme_aside_claim(n, join_leases, n);
	else if (other && sio_nvme_leg_open(other))
		home = look_home(q, now, &work);
	else if (other)
		work = sio_nvme_aside_claim(n, make_path, other);
	sio_nvme_unlock(n);
	if (work)
		sio_nvme_aside_start(n);
	return home;
}

/* Where its own way is back, with all that the next pair needs, it goes home. */
void sio_nvme_look(struct smartio_nvme_queue *q)
{
	struct sio_nvme_survivor *s = q->life;
	uint64_t now;

	if (!s || !s->told) /* whose list it would break */
		sio_nvme_limit_look(q, false);
	if (!s || (!q->n->second && !s->old_leg) ||
	    (s->state != SIO_NVME_AWAY && s->state != SIO_NVME_HOME) || q->error ||
	    ++s->looks % RINGS_PER_LOOK)
		return;
	now = smartio_now_ns();
	if (now < s->look_at)
		return;
	s->look_at = now + LOOK_NS;
	if (look_at_ways(q, now))
		step(q, SIO_NVME_HOME_IS_BACK);
}

/*
 * @event, by which it leaves its pair. Return: false: not now. Who has the lock may wait for a host
 * that does not answer, and the polls of this queue do not.
 */
static bool leaves(struct smartio_nvme_queue *q, enum sio_nvme_life_event event)
{
	if (!sio_nvme_trylock(q->n)) {
		smartio_yield();
		return false;
	}
	step(q, event);
	sio_nvme_unlock(q->n);
	return true;
}

/* What is in flight ends; nothing is added; but not for long, also if another has the lock. */
static int drain(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c, unsigned max)
{
	int n;

	q->error = 0;
	n = smartio_nvme_poll(q, c, max);
	q->free = NULL;
	if (q->error)
		return n;
	q->error = -EAGAIN;
	if (sio_nvme_in_flight(q) == 0 && leaves(q, SIO_NVME_DRAINED))
		return n;
	if (n == 0 && smartio_now_ns() >= q->life->deadline)
		step(q, SIO_NVME_STAYS);
	return n;
}

int sio_nvme_survive(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c, unsigned max)
{
	struct sio_nvme_survivor *s = q->life;

	if (q->error != -EAGAIN && s->state != SIO_NVME_DEAD && !leaves(q, SIO_NVME_LOST))
		return 0;
	if (s->told)
		return tell(q, c, max);
	return s->state == SIO_NVME_DRAIN ? drain(q, c, max) : renew(q);
}

int sio_nvme_await_life(struct smartio_nvme_queue *q)
{
	struct smartio_nvme_completion none;
	int rc = 0;

	/* The loop ends in any case, since there is a deadline. */
	while (rc == 0 && !q->free)
		rc = q->life ? smartio_nvme_poll(q, &none, 1) : sio_nvme_queue_dead(q);
	return rc < 0 ? rc : 0;
}

/* ---- begin and end ---- */
int sio_nvme_survivor_make(struct smartio_nvme_queue *q)
{
	const uint32_t ms = q->options.survive_ms ? q->options.survive_ms : LIMIT_MS;
	struct sio_nvme_survivor *s = calloc(1, sizeof(*s));

	if (!s)
		return sio_nvme_no_memory("a queue that survives");
	q->life = s;
	s->limit_ns = ms * 1000000ull;
	s->note = calloc(q->depth, sizeof(*s->note));
	return s->note ? 0 : sio_nvme_no_memory("records of %u commands", q->depth);
}

void sio_nvme_survivor_begin(struct smartio_nvme_queue *q)
{
	struct smartio_nvme *n = q->n;

	q->options.wait_ms = 0; /* who waits for a pair once more polls */
	q->life->home = q->leg;
	q->life->absences = n->absences;
	q->life->state = SIO_NVME_HOME;
	look_at_rings(q);
	if (n->second && sio_nvme_leg_open(n) && sio_nvme_leg_open(n->second))
		sio_nvme_pair_prepare(q, q->leg == n ? n->second : n, false);
}

void sio_nvme_survivor_end(struct smartio_nvme_queue *q)
{
	struct sio_nvme_survivor *s = q->life;

	struct smartio_nvme_completion none[16];

	if (!s)
		return;
	/* No program polls any more; these commands are not waited for. */
	while (s->told)
		tell(q, none, 16);
	sio_nvme_lock(q->n);
	sio_nvme_aside_forget(q);
	if (q->sq_mem)
		free_old(q);
	if (s->old_leg) {
		take_back(q);
		q->id = q->old_id;
		q->key = q->old_key;
		q->sequence = q->old_sequence;
		q->generation_word = q->leg->generation;
		/* Neither reset nor lost, the drive still has it: the close has it deleted. */
		if (sio_nvme_leg_open(q->leg) && *q->generation_word == q->generation)
			q->error = -EPROTO;
	}
	sio_nvme_unlock(q->n);
	s->state = SIO_NVME_OVER;
	if (q->error == -EAGAIN)
		q->error = 0;
}

void sio_nvme_survivor_free(struct smartio_nvme_queue *q)
{
	if (!q->life)
		return;
	free(q->life->pieces);
	free(q->life->note);
	free(q->life);
	q->life = NULL;
}
