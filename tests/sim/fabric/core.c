/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A processor as the contract of smartio/io.h has it, weaker than x86 in one point: without a
 * barrier a load may have been done early.
 *
 *   own host's memory   stores leave a buffer in order, later loads pass them; copies leave in none
 *   another's memory    write-combined: a few lines, evicted in any order, at any time
 *   registers           uncached: posted, in order among themselves
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"

#define LINES 8u	 /* lines that combine writes */
#define SEEN 256u	 /* lines for which it is known how new the contents were that were seen */
#define EARLY_ONE_IN 8	 /* loads are early, */
#define EARLY_NS 2000u	 /* by at most */
#define BUFFER_NS 120u	 /* the longest time in the store buffer */
#define COMBINE_NS 2500u /* the longest time in a line that combines */
#define SWITCH_ONE_IN 64 /* accesses let others run */
#define SPEND_PS 50000u	 /* so much time of its own, and it lets others run */

/* A line that combines writes. The queue holds a post while the line is in use. */
struct line {
	struct fabric_queue queue; /* first: to get back from it */
	uint64_t mask;		   /* bytes that were written */
};

struct seen {
	uint64_t memory, line, at;
};

struct fabric_core {
	uint64_t model; /* which start it is of */
	unsigned host;
	uint64_t fence;	   /* no load happens earlier than this */
	uint64_t spent_ps; /* on accesses, and not passed on to the clock yet */
	struct fabric_queue buffer;
	struct line line[LINES];
	struct seen seen[SEEN];
};

/* ---- what was seen ---- */
static struct seen *seen_of(struct fabric_core *c, const struct fabric_mem *m, uint64_t offset)
{
	uint64_t line = offset / FABRIC_LINE;
	struct seen *s = &c->seen[(line ^ m->number * 7) % SEEN];

	if (s->memory != m->number || s->line != line) {
		/*
		 * The forgotten line's time holds for all lines from now on: nothing older may be
		 * seen.
		 */
		if (s->at > c->fence)
			c->fence = s->at;
		*s = (struct seen){.memory = m->number, .line = line};
	}
	return s;
}

/* ---- stores ---- */
static void buffer_arrive(struct fabric_queue *q, struct fabric_post *post)
{
	struct seen *s = seen_of(q->core, post->mem, post->offset);

	if (s->at < post->due)
		s->at = post->due;
	fabric_store(post->mem, post->offset, post->data, post->len, post->due);
	if (post->mem->kind == FABRIC_RING)
		fabric_access->polled();
	fabric_post_free(post);
}

/* Bytes [@from, @to) of a line are sent. */
static void line_part(struct fabric_core *c, const struct fabric_post *post, unsigned from,
		      unsigned to, uint64_t at)
{
	struct fabric_post *part =
		fabric_post_new(post->mem, post->offset + from, post->data + from, to - from);

	if (post->mem->host == c->host)
		fabric_queue_add(&c->buffer, part, at, at);
	else
		fabric_path_post(c->host, part, at);
}

/* Where a run of written bytes begins, at @from or behind it; *ret_to: its end. */
static unsigned line_run(uint64_t mask, unsigned from, unsigned *ret_to)
{
	uint64_t left = from < FABRIC_LINE ? mask >> from << from : 0, behind;

	if (!left)
		return *ret_to = FABRIC_LINE;
	from = (unsigned)__builtin_ctzll(left);
	behind = ~(left >> from);
	*ret_to = behind ? from + (unsigned)__builtin_ctzll(behind) : FABRIC_LINE;
	return from;
}

/* A full line is one packet; otherwise each run of written bytes is one, in no particular order. */
static void line_arrive(struct fabric_queue *q, struct fabric_post *post)
{
	struct line *l = (struct line *)q;
	struct fabric_core *c = q->core;
	uint64_t at = post->due;
	unsigned from, to;
	bool backwards = fabric_below(2);
	unsigned start[FABRIC_LINE], end[FABRIC_LINE], n = 0;

	for (from = line_run(l->mask, 0, &to); from < FABRIC_LINE;
	     from = line_run(l->mask, to, &to)) {
		start[n] = from;
		end[n++] = to;
	}
	for (unsigned i = 0; i < n; i++) {
		unsigned k = backwards ? n - 1 - i : i;

		line_part(c, post, start[k], end[k], at);
	}
	l->mask = 0;
	fabric_post_free(post);
}

static void evict_all(struct fabric_core *c, uint64_t now)
{
	unsigned first = (unsigned)fabric_below(LINES);

	for (unsigned i = 0; i < LINES; i++)
		fabric_queue_push(&c->line[(first + i) % LINES].queue, now);
}

static struct line *line_for(struct fabric_core *c, struct fabric_mem *m, uint64_t offset,
			     uint64_t now)
{
	struct line *l, *unused = NULL;
	struct fabric_post *post;

	for (unsigned i = 0; i < LINES; i++) {
		l = &c->line[i];
		post = l->queue.first;
		if (post && post->mem == m && post->offset == offset)
			return l;
		if (!post)
			unused = l;
	}
	l = unused;
	if (!l) {
		l = &c->line[fabric_below(LINES)];
		fabric_queue_push(&l->queue, now);
	}
	post = fabric_post_new(m, offset, NULL, 0);
	memset(post->data, 0, FABRIC_LINE);
	l->queue.last_sent = l->queue.last_due = 0;
	fabric_queue_add(&l->queue, post, now, now + fabric_below(COMBINE_NS));
	return l;
}

static void store_combined(struct fabric_core *c, const struct fabric_view *v, const void *buf,
			   size_t len, uint64_t now)
{
	unsigned at = (unsigned)(v->offset % FABRIC_LINE);
	struct line *l = line_for(c, v->mem, v->offset - at, now);
	uint64_t bits = len == FABRIC_LINE ? UINT64_MAX : ((1ull << len) - 1) << at;

	memcpy(l->queue.first->data + at, buf, len);
	l->mask |= bits;
	if (l->mask == UINT64_MAX && fabric_below(2))
		fabric_queue_push(&l->queue, now);
}

/* An access takes time, now and then more of it. */
static void spend(struct fabric_core *c, uint32_t ps)
{
	uint64_t ns;

	c->spent_ps += ps;
	if (!fabric_params.steady && fabric_below(SWITCH_ONE_IN) == 0)
		c->spent_ps += fabric_below(200000);
	if (c->spent_ps < SPEND_PS)
		return;
	ns = c->spent_ps / 1000;
	c->spent_ps %= 1000;
	fabric_access->wait(ns);
}

static bool is_own_memory(const struct fabric_core *c, const struct fabric_mem *m)
{
	return m->host == c->host && !fabric_is_device(m);
}

static bool overlaps(const struct fabric_post *post, const struct fabric_view *v, size_t len)
{
	return post->mem == v->mem && post->offset < v->offset + len &&
	       v->offset < post->offset + (post->len ? post->len : FABRIC_LINE);
}

/* Sends what is combining there: a processor's own accesses to one place keep their order. */
static void evict_there(struct fabric_core *c, const struct fabric_view *v, size_t len,
			uint64_t now)
{
	for (unsigned i = 0; i < LINES; i++)
		if (c->line[i].queue.first && overlaps(c->line[i].queue.first, v, len))
			fabric_queue_push(&c->line[i].queue, now);
}

void fabric_core_store(struct fabric_core *c, const struct fabric_view *v, const void *buf,
		       size_t len, bool streaming)
{
	uint64_t now = fabric_access->now(), sent = now;
	struct fabric_post *post;

	fabric_settle(now);
	if (!v->mem)
		return;
	if (v->mem->kind == FABRIC_REGISTER) {
		/* It leaves the processor behind what is in its buffer. */
		if (c->buffer.first && c->buffer.last_due > sent)
			sent = c->buffer.last_due;
		post = fabric_post_new(v->mem, v->offset, buf, len);
		fabric_path_post(c->host, post, sent);
	} else if (is_own_memory(c, v->mem) && !streaming) {
		evict_there(c, v, len, now);
		post = fabric_post_new(v->mem, v->offset, buf, len);
		fabric_queue_add(&c->buffer, post, now,
				 now + 1 + (fabric_params.steady ? 0 : fabric_below(BUFFER_NS)));
		if (v->mem->kind == FABRIC_RING)
			fabric_access->settle(post->due);
	} else {
		store_combined(c, v, buf, len, now);
	}
	spend(c, fabric_params.cpu_store_ps);
}

/* ---- loads ---- */
/* A processor sees its own stores: they are done at the latest when it loads from there. */
static void own_stores(struct fabric_core *c, const struct fabric_view *v, size_t len, uint64_t now)
{
	const struct fabric_post *post;
	unsigned behind = 0, n = 0;

	evict_there(c, v, len, now);
	for (post = c->buffer.first; post; post = post->next) {
		n++;
		if (overlaps(post, v, len))
			behind = n;
	}
	for (; behind > 0; behind--)
		fabric_queue_take(&c->buffer);
}

static void load_own(struct fabric_core *c, const struct fabric_view *v, void *buf, size_t len)
{
	uint64_t now, when, oldest;
	struct seen *s;

	fabric_mem_ref(v->mem); /* others run meanwhile, and may unmap and free it */
	spend(c, fabric_params.cpu_load_ps);
	now = fabric_access->now();
	fabric_settle(now);
	own_stores(c, v, len, now);
	s = seen_of(c, v->mem, v->offset);
	oldest = now > EARLY_NS ? now - EARLY_NS : 0;
	if (oldest < c->fence)
		oldest = c->fence;
	if (oldest < s->at)
		oldest = s->at;
	when = now;
	if (oldest < now && !fabric_params.steady && fabric_below(EARLY_ONE_IN) == 0)
		when = oldest + fabric_below(now - oldest + 1);
	fabric_past_read(v->mem, v->offset, buf, len, when);
	s->at = when;
	fabric_mem_unref(v->mem);
}

/* A load from another host takes a round trip, behind everything that this host has sent there. */
static void load_far(struct fabric_core *c, const struct fabric_view *v, void *buf, size_t len)
{
	struct fabric_mem *m = v->mem;
	const struct fabric_queue *q = fabric_path(c->host, m->host);
	uint64_t now = fabric_access->now(), back;

	fabric_mem_ref(m);
	fabric_settle(now);
	evict_all(c, now);
	back = now + fabric_read_time(c->host, m, len);
	if (q->first && q->last_due > back)
		back = q->last_due;
	fabric_access->wait(back - now);
	now = fabric_access->now();
	fabric_settle(now);
	fabric_path_read(c->host, m->host, back);
	if (fabric_is_device(m))
		fabric_path_answer(m->host, c->host, now);
	if (fabric_is_joined(c->host, m->host))
		fabric_mem_get(m, v->offset, buf, len);
	else
		memset(buf, 0xff, len);
	fabric_mem_unref(m);
}

void fabric_core_load(struct fabric_core *c, const struct fabric_view *v, void *buf, size_t len)
{
	if (!v->mem)
		memset(buf, 0xff, len);
	else if (is_own_memory(c, v->mem))
		load_own(c, v, buf, len);
	else
		load_far(c, v, buf, len);
}

/* ---- order ---- */
void fabric_core_barrier(struct fabric_core *c, int which)
{
	uint64_t now = fabric_access->now();

	fabric_settle(now);
	if (which == FABRIC_TO || which == FABRIC_FULL)
		evict_all(c, now);
	if (which == FABRIC_FULL)
		fabric_queue_push(&c->buffer, UINT64_MAX);
	if (which == FABRIC_FROM || which == FABRIC_FULL)
		c->fence = now;
}

void fabric_core_sync(struct fabric_core *c)
{
	fabric_settle(fabric_access->now());
	fabric_queue_push(&c->buffer, UINT64_MAX);
	c->fence = fabric_access->now();
}

void fabric_core_exchange(struct fabric_core *c, const struct fabric_view *v, uint32_t expected,
			  uint32_t desired, uint32_t *ret_is)
{
	const uint64_t now = fabric_access->now();

	assert(is_own_memory(c, v->mem));
	fabric_core_sync(c);
	evict_there(c, v, sizeof(desired), now);
	fabric_queue_push(&c->buffer, UINT64_MAX);
	fabric_mem_get(v->mem, v->offset, ret_is, sizeof(*ret_is));
	if (*ret_is == expected)
		fabric_store(v->mem, v->offset, &desired, sizeof(desired), now);
	seen_of(c, v->mem, v->offset)->at = now;
	spend(c, fabric_params.cpu_load_ps);
}

void fabric_core_signal(struct fabric_core *c, unsigned host, int fd)
{
	fabric_core_sync(c);
	fabric_path_signal(c->host, host, fd, fabric_access->now());
}

/* ---- life ---- */
struct fabric_core *fabric_core_new(unsigned host)
{
	struct fabric_core *c = calloc(1, sizeof(*c));

	assert(c);
	c->host = host;
	c->model = fabric_model();
	c->fence = fabric_access->now();
	fabric_queue_init(&c->buffer, buffer_arrive);
	c->buffer.core = c;
	for (unsigned i = 0; i < LINES; i++) {
		fabric_queue_init(&c->line[i].queue, line_arrive);
		c->line[i].queue.core = c;
	}
	return c;
}

void fabric_core_free(struct fabric_core *c)
{
	if (!c)
		return;
	if (c->model == fabric_model())
		fabric_core_barrier(c, FABRIC_FULL);
	free(c);
}
