/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies to a map. Lines that stay in this processor's cache are best written there; lines that
 * another processor reads in between are best sent past it: either may be many times faster than
 * the other (docs/sisci-performance.md), and nobody but the clock knows who reads. So it is tried
 * now and then, apart for each place and size.
 */
#include "sisci/copy.h"
#include "smartio/io.h"

#define WARM_BYTES (256u << 10) /* as much is copied before a way is compared: a ring went round */
#define MOST_WARM 64u
#define WHOLE_UNIT (64u << 10) /* bytes; of which a copy has some dozens */

__thread uint8_t sio_copy_count;
struct sio_choice sio_copy_choices[SIO_COPY_PLACES][SIO_COPY_SIZES];

/* Who has no ticks may have no plain memory behind a map, either: io.h. */
static void plainly(volatile void *to, const void *from, size_t size)
{
	if (size < SIO_COPY_LARGE && sio_has_ticks()) {
		sio_copy_middle((uint8_t *)(uintptr_t)to, from, size);
		return;
	}
	if (size < SIO_COPY_LARGE)
		sio_copy_to(to, from, size);
	else
		sio_copy_large(to, from, size);
	sio_to_fabric_barrier();
}

static void by_way(unsigned way, volatile void *to, const void *from, size_t size)
{
	if (way == 0) {
		plainly(to, from, size);
	} else {
		sio_copy_stream(to, from, size);
		sio_to_fabric_barrier();
	}
}

/* @size: the least that shares the choice. */
static struct sio_choice_trial trial_of(size_t size)
{
	size_t warm = WARM_BYTES / size;

	if (size >= SIO_COPY_PIECE) /* one tells more, and is dear */
		return (struct sio_choice_trial){.timed = 3, .warm = 1};
	return (struct sio_choice_trial){.timed = 8,
					 .warm = warm < MOST_WARM ? (unsigned)warm : MOST_WARM};
}

/*
 * Copies of different sizes share a choice: they are compared by what the least of these would
 * take.
 */
static void in_trial(struct sio_choice *c, const struct sio_choice_trial *t, size_t least,
		     volatile void *to, const void *from, size_t size)
{
	uint64_t begin, ticks;

	sio_full_barrier(); /* only what this copy's own stores take */
	begin = sio_ticks();
	by_way(sio_choice_next(c, t), to, from, size);
	sio_full_barrier();
	ticks = sio_ticks() - begin;
	sio_choice_took(c, t, ticks < SIO_CHOICE_TICKS ? ticks * least / size : SIO_CHOICE_TICKS);
}

void sio_copy_out_chosen(struct sio_choice *c, bool due, volatile void *to, const void *from,
			 size_t size)
{
	size_t least = (size_t)SIO_COPY_CHOSEN << sio_copy_kind(size);
	struct sio_choice_trial t = trial_of(least);

	if (!due || !sio_has_ticks() || !sio_choice_enter(c, &t)) {
		by_way(sio_choice_way(c), to, from, size);
		return;
	}
	in_trial(c, &t, least, to, from, size);
	sio_choice_leave(c);
}

/*
 * Copies of some MiB: whose time counts is also the reader's, who finds the bytes in this
 * processor's cache, or in memory. So they are timed to the begin of the thread's next one, each as
 * a whole. Longer ones fit into no cache.
 */
static const struct sio_choice_trial whole_trial = {.timed = 3, .warm = 1};
static struct sio_choice whole_choices[SIO_COPY_PLACES][SIO_COPY_WHOLE_SIZES];
static __thread struct sio_choice_span whole_span
	__attribute__((tls_model("initial-exec"))); /* as sio_copy_count */

static struct sio_choice *whole_choice(const volatile void *to, size_t size)
{
	return &whole_choices[sio_copy_place(to)][sio_copy_log2(size / SIO_COPY_WHOLE)];
}

static void whole_in_trial(struct sio_choice *c, volatile void *to, const void *from, size_t size)
{
	uint64_t began;

	sio_full_barrier();
	began = sio_ticks();
	by_way(sio_choice_next(c, &whole_trial), to, from, size);
	sio_full_barrier();
	sio_choice_span_begin(&whole_span, c, &whole_trial, began, sio_ticks(),
			      (uint32_t)(size / WHOLE_UNIT));
}

/* Return: it is done; false: nobody knows yet how. */
static bool copy_whole(volatile void *to, const void *from, size_t size)
{
	struct sio_choice *c = whole_choice(to, size);

	sio_choice_span_end(&whole_span, &whole_trial, whole_span.c ? sio_ticks() : 0);
	if (!sio_choice_pausing(c, 1) && sio_choice_enter(c, &whole_trial)) {
		whole_in_trial(c, to, from, size);
		sio_choice_leave(c);
		return true;
	}
	if (!sio_choice_decided(c))
		return false;
	by_way(sio_choice_way(c), to, from, size);
	return true;
}

/*
 * A long copy goes in pieces that share the choice of its start: the first ones of the first copy
 * tell how the rest is best written.
 */
void sio_copy_out(volatile void *to, const void *from, size_t size)
{
	volatile uint8_t *at = to;
	const uint8_t *rest = from;
	struct sio_choice *c;

	if (size < SIO_COPY_CHOSEN || !sio_has_ticks()) {
		plainly(to, from, size);
		return;
	}
	if (size >= SIO_COPY_WHOLE && size < SIO_COPY_WHOLE << SIO_COPY_WHOLE_SIZES &&
	    copy_whole(to, from, size))
		return;
	c = sio_copy_choice(to, size);
	while (size > 0) {
		size_t piece = size < 2 * SIO_COPY_PIECE ? size : SIO_COPY_PIECE;

		sio_copy_out_chosen(c, !sio_choice_pausing(c, sio_copy_counted(piece)), at, rest,
				    piece);
		at += piece;
		rest += piece;
		size -= piece;
	}
}
