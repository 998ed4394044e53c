/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of two ways to do the same is faster, where that hangs on what others do and can change:
 * the way in use and the other are timed now and then, in a trial. Between two trials there is a
 * pause, as long as keeps what trials cost beyond the way in use to a SIO_CHOICE_SHARE of the time.
 *
 * Owns no clock: who uses it tells how long a call took, in ticks of any kind. One thread at a time
 * is in a trial; sio_choice_pausing() alone may be called by many.
 */
#ifndef CORE_CHOICE_H
#define CORE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#define SIO_CHOICE_SHARE 256u /* at most one part in so many of the time goes to trials */

/* How a trial is made; the same for all calls of one choice. */
struct sio_choice_trial {
	unsigned timed; /* calls of each way that are compared, the slowest left out; at least 2 */
	unsigned warm;	/* calls of the other way before that, until it is as if it were in use */
};

/* All zeros: way 0 is in use, and the first trial begins after a few calls. */
struct sio_choice {
	uint32_t left; /* calls until the next trial. Relaxed: one that is not counted is no harm */
	uint8_t way;  /* in use: 0 or 1. Relaxed, as it is read by those who are not in the trial */
	uint8_t busy; /* somebody is in the trial */
	uint8_t begun;		     /* a first pause was set */
	uint8_t decided;	     /* a trial has ended. Relaxed, as way */
	uint32_t call;		     /* of the trial */
	uint32_t open;		     /* spans that began with this call */
	uint64_t sum[2], slowest[2]; /* of the timed calls */
	uint64_t warming;	     /* of the other way's calls that are not compared */
} __attribute__((aligned(64)));	     /* who uses one does not slow down who uses the next */

static inline unsigned sio_choice_way(const struct sio_choice *c)
{
	return __atomic_load_n(&c->way, __ATOMIC_RELAXED);
}

static inline bool sio_choice_decided(const struct sio_choice *c)
{
	return __atomic_load_n(&c->decided, __ATOMIC_RELAXED);
}

/*
 * Take sio_choice_way(), untimed; false: try to be in the trial. @calls: to be counted: a thread
 * that counts many at once, and tells 0 in between, does not take the line from the others each
 * time.
 */
static inline bool sio_choice_pausing(struct sio_choice *c, uint32_t calls)
{
	uint32_t left = __atomic_load_n(&c->left, __ATOMIC_RELAXED);

	if (__builtin_expect(left == 0, 0))
		return false;
	if (calls)
		__atomic_store_n(&c->left, left > calls ? left - calls : 0, __ATOMIC_RELAXED);
	return true;
}

/* Be in the trial; false: somebody is, or it is not time yet, so take sio_choice_way(). */
bool sio_choice_enter(struct sio_choice *c, const struct sio_choice_trial *t);
void sio_choice_leave(struct sio_choice *c);

/* In the trial: the way of this call, to be timed. */
unsigned sio_choice_next(const struct sio_choice *c, const struct sio_choice_trial *t);
/* In the trial: it took @ticks. */
void sio_choice_took(struct sio_choice *c, const struct sio_choice_trial *t, uint64_t ticks);

/*
 * A call of a trial whose way matters to who waits for what it made: it is timed from its begin to
 * the begin of its caller's next call that is timed so, whatever choice that has. Where that is
 * many times as long as the call itself, it is something else that the caller does: SIO_CHOICE_SPAN
 * times count. And where many begin and none ends, as where each thread makes one call, the call's
 * own time counts. One for each thread; all zeros: none.
 */
struct sio_choice_span {
	struct sio_choice *c; /* NULL: none */
	uint64_t began, own;  /* ticks; of the call itself */
	uint32_t units;	      /* of work: what is compared is ticks for each of them; not 0 */
	uint32_t call;
};

#define SIO_CHOICE_SPAN 4u /* times a call's own time that counts, at most */

#define SIO_CHOICE_OPEN 16u /* spans of one call that begin, at most, until its own time counts */
#define SIO_CHOICE_TICKS (1ull << 36) /* that a call takes, at most: clocks were seen to jump */

/* In the trial: a call that began at @began has just returned, at @now. */
void sio_choice_span_begin(struct sio_choice_span *s, struct sio_choice *c,
			   const struct sio_choice_trial *t, uint64_t began, uint64_t now,
			   uint32_t units);
/* Not in the trial: the next call begins. */
void sio_choice_span_end(struct sio_choice_span *s, const struct sio_choice_trial *t, uint64_t now);

#endif
