/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that programs of one host share: the data path. A lock in the memory that they share
 * orders their entries, doorbells and polls; it is held for a batch of entries or completions, and
 * no call is made under it.
 *
 * A program may be killed at any instruction, also while it holds the lock. So nothing is repaired
 * here: the end of a program ends the pair (serve_share.c), and the others get another one. They
 * must know that no program rings the old one's doorbells any more. The lock says so: it is closed
 * for ever when it is free, or when its holder has ended. A holder that lives is waited for.
 */
#include <endian.h>
#include <errno.h>

#include "client.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define SPINS 2000u /* for a lock that is held for a microsecond, when its holder runs */
#define SPINS_PER_YIELD 100u
#define LOOKS_PER_TIME 64u /* so that few ask for the time */
#define LOOK_NS 1000000ull /* between two looks at what the manager tells */
#define HANDS_ON 100u	   /* yields in which a program that runs has handed completions on */
#define SQ_DELETED 0x08u   /* status: aborted, for its queue was deleted */

/* The place is the holder's. Pairs with the release in unlock(). */
static bool try_lock(struct sio_nvme_share *s, uint32_t *ret_is)
{
	*ret_is = sio_compare_exchange32(&s->head->lock, 0, s->place + 1);
	return *ret_is == 0;
}

static void unlock(struct sio_nvme_share *s)
{
	/* Doorbells arrive before the next holder's: pairs with the acquire in try_lock(). */
	sio_to_fabric_barrier();
	/*
	 * Not if it was shut: whoever was notified that we had ended was notified of our borrow's
	 * end.
	 */
	sio_compare_exchange32(&s->head->lock, s->place + 1, 0);
}

static void look(struct sio_nvme_share *s)
{
	uint8_t message[sizeof(struct sio_nvme_rep)];
	struct sio_nvme_rep rep;
	sci_error_t err;

	do {
		unsigned len = sizeof(message);

		SCIWaitForDataInterrupt(s->notice, message, &len, 0, 0, &err);
		if (err == SCI_ERR_OK && sio_nvme_rep_decode(message, len, &rep) == 0 &&
		    rep.h.op == SIO_NVME_OP_ENDED && !rep.h.error && rep.ended.key == s->key) {
			s->ended = true;
			s->dead |= rep.ended.dead;
		}
	} while (err == SCI_ERR_OK);
}

int sio_nvme_share_shut(struct sio_nvme_share *s)
{
	uint32_t is;

	if (!s->head)
		return 0;
	look(s);
	/* What the last holder did is done: pairs with unlock(), and with the load in ends(). */
	is = sio_compare_exchange32(&s->head->lock, 0, SIO_NVME_SHUT);
	if (is == 0 || is == SIO_NVME_SHUT)
		return 0;
	if (is > SIO_NVME_SHARERS || !(s->dead >> (is - 1) & 1))
		return -EAGAIN;
	return sio_compare_exchange32(&s->head->lock, is, SIO_NVME_SHUT) == is ? 0 : -EAGAIN;
}

static bool is_over(struct sio_nvme_share *s)
{
	return s->ended || sio_read32(&s->head->lock) == SIO_NVME_SHUT;
}

static void end(struct smartio_nvme_queue *q)
{
	if (!q->error)
		q->error = -EPIPE;
	q->free = NULL;
}

/* False: the pair is over, or its lock is held for long: then what was put stays for another ring.
 */
static bool lock(struct smartio_nvme_queue *q)
{
	struct sio_nvme_share *s = q->share;
	uint32_t is;

	for (unsigned i = 1; i <= SPINS; i++) {
		if (s->ended)
			return false;
		if (try_lock(s, &is))
			return true;
		if (is == SIO_NVME_SHUT)
			return false;
		if (i % SPINS_PER_YIELD == 0)
			smartio_yield();
	}
	return false;
}

/* Entries are put where no one else sees them, for others may be putting theirs. */
void sio_nvme_share_ring(struct smartio_nvme_queue *q)
{
	struct sio_nvme_share *s = q->share;
	struct sio_nvme_share_head *h = s->head;
	uint32_t tail, n = 0;

	if (!lock(q)) {
		if (is_over(s))
			end(q);
		return;
	}
	s->rang = true;
	tail = sio_read32(&h->sq_tail) % s->entries;
	while (q->rung != q->sqe) {
		volatile uint8_t *to = s->sq + (size_t)tail * 64;

		for (unsigned i = 0; i < 64; i += 8)
			sio_write64(to + i, *(const volatile uint64_t *)(q->rung + i));
		tail = tail + 1 == s->entries ? 0 : tail + 1;
		q->rung = q->rung + 64 == q->sq_end ? q->sq : q->rung + 64;
		n++;
	}
	sio_write32(&h->sq_tail, tail);
	/*
	 * Entries and lists must be there before the drive learns of them: pairs with the drive's
	 * order, in emu with the barrier in emu_nvme_fetch().
	 */
	sio_to_fabric_barrier();
	sio_write32(s->sq_doorbell, htole32(tail));
	unlock(s);
	q->counters.submitted += n;
	q->counters.doorbells_sq++;
}

/* Into the queue of whose command it ends; one that nobody can have had is for us to find wrong. */
static void hand_on(struct sio_nvme_share *s, uint64_t first, uint64_t second)
{
	struct sio_nvme_share_head *h = s->head;
	uint32_t place = (uint32_t)(second >> 32 & 0xffff) >> s->shift & (SIO_NVME_SHARERS - 1);
	volatile uint8_t *to;
	uint32_t next, phase;

	if (place >= s->most)
		place = s->place;
	next = sio_read32(&h->own[place].next) % (s->depth + 1);
	phase = sio_read32(&h->own[place].phase);
	to = s->own + ((ptrdiff_t)place - (ptrdiff_t)s->place) * (ptrdiff_t)s->own_bytes +
	     (size_t)next * 16;
	second &= ~SIO_NVME_CQE_PHASE;
	if (phase & 1)
		second |= SIO_NVME_CQE_PHASE;
	/* Before the entry: its reader may leave then, and who has the place next begins here. */
	if (++next == s->depth + 1) {
		next = 0;
		sio_write32(&h->own[place].phase, phase ^ 1);
	}
	sio_write32(&h->own[place].next, next);
	sio_write64(to, htole64(first));
	/* Whoever sees the phase sees the rest, and the data: pairs with the barrier in took(). */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	sio_write64(to + 8, htole64(second));
}

/* Under the lock. */
static void take_all(struct smartio_nvme_queue *q)
{
	struct sio_nvme_share *s = q->share;
	struct sio_nvme_share_head *h = s->head;
	uint32_t at = sio_read32(&h->cq_head) % s->entries, phase = sio_read32(&h->cq_phase) & 1,
		 n = 0;

	for (; n < s->entries; n++) {
		uint64_t second = le64toh(sio_read64(s->cq + (size_t)at * 16 + 8));

		if (!(second & SIO_NVME_CQE_PHASE) != !phase)
			break;
		/*
		 * The manager has deleted the queue before it told so. What its deletion aborts
		 * says nothing of the commands of those who live: it stays, for all to find.
		 */
		if ((second >> 49 & 0x7ff) == SQ_DELETED) {
			s->ended = true;
			break;
		}
		/* The rest of it, and the data, are as new: pairs with the drive's order. */
		sio_from_fabric_barrier();
		hand_on(s, le64toh(sio_read64(s->cq + (size_t)at * 16)), second);
		if (++at == s->entries) {
			at = 0;
			phase ^= 1;
		}
	}
	if (n == 0)
		return;
	/*
	 * Whoever sees that they are gone sees them where they went: pairs with the loads in
	 * sio_nvme_share_waits(). And they were read before the drive may write there again.
	 */
	sio_write32_release(&h->cq_head, at);
	sio_write32_release(&h->cq_phase, phase);
	sio_to_fabric_barrier();
	sio_write32(s->cq_doorbell, htole32(at));
	q->counters.doorbells_cq++;
}

bool sio_nvme_share_waits(const struct smartio_nvme_queue *q)
{
	const struct sio_nvme_share *s = q->share;
	const struct sio_nvme_share_head *h = s->head;
	/* pairs with the releases in take_all() */
	const uint32_t at = sio_read32_acquire(&h->cq_head) % s->entries;
	const uint64_t second = le64toh(sio_read64(s->cq + (size_t)at * 16 + 8));

	return !(second & SIO_NVME_CQE_PHASE) == !(sio_read32_acquire(&h->cq_phase) & 1);
}

static bool take(struct smartio_nvme_queue *q, bool now)
{
	struct sio_nvme_share *s = q->share;
	uint32_t is;

	if (q->error || __atomic_load_n(q->generation_word, __ATOMIC_RELAXED) != q->generation)
		return false;
	/* Whoever has the lock may be taking them. */
	if (sio_nvme_share_waits(q) && !s->ended && try_lock(s, &is)) {
		take_all(q);
		unlock(s);
	}
	if (sio_nvme_completion_waits(q))
		return true;
	if (now || (++s->looks % LOOKS_PER_TIME == 0 && smartio_now_ns() >= s->look_at)) {
		look(s);
		s->look_at = smartio_now_ns() + LOOK_NS;
	}
	if (is_over(s))
		end(q);
	return false;
}

bool sio_nvme_share_take(struct smartio_nvme_queue *q)
{
	return take(q, false);
}

bool sio_nvme_share_is_silent(const struct smartio_nvme_queue *q)
{
	return !sio_read32(&q->share->head->interrupt) || sio_nvme_share_waits(q) ||
	       q->sqe != q->rung;
}

bool sio_nvme_share_await(struct smartio_nvme_queue *q)
{
	bool mine = take(q, true);

	/* Who has the lock is at it, if it runs: all were woken by the same completion. */
	for (unsigned i = 0; i < HANDS_ON && !mine && !q->error && sio_nvme_share_waits(q); i++) {
		smartio_yield();
		mine = take(q, false);
	}
	return mine;
}
