/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual time, the event queue, and coroutines on ucontext. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "sim.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_BYTES (512u << 10)

struct event {
	uint64_t when, tie, number;
	sim_fn fn;
	void *arg;
};

struct sim_coro {
	ucontext_t context;
	void *stack;
	struct sim_proc *proc;
	sim_fn fn;
	void *arg;
	bool blocked, finished, queued, freed;
	uint64_t wake_number; /* a wake-up event with another number is out of date */
	void *fake_stack;
};

static struct {
	uint64_t now, rng, number, hash;
	struct event *heap;
	size_t n, room;
	ucontext_t main;
	struct sim_coro *current;
	FILE *trace;
	void *fake_stack;
	const void *main_stack;
	size_t main_stack_size;
} S;

void sim_start(uint64_t seed)
{
	FILE *trace = S.trace;

	memset(&S, 0, sizeof(S));
	S.trace = trace;
	S.rng = seed ^ 0x9e3779b97f4a7c15ull;
	S.hash = 0xcbf29ce484222325ull;
	S.now = 1000000;
}

void sim_end(void)
{
	free(S.heap);
	S.heap = NULL;
	S.n = S.room = 0;
}

uint64_t sim_now(void)
{
	return S.now;
}

void sim_advance(uint64_t ns)
{
	S.now += ns;
}

/* splitmix64 */
uint64_t sim_random(void)
{
	uint64_t z = (S.rng += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static bool before(const struct event *a, const struct event *b)
{
	if (a->when != b->when)
		return a->when < b->when;
	if (a->tie != b->tie)
		return a->tie < b->tie;
	return a->number < b->number;
}

static void push(struct event e)
{
	size_t i;

	if (S.n == S.room) {
		S.room = S.room ? S.room * 2 : 256;
		S.heap = realloc(S.heap, S.room * sizeof(*S.heap));
		assert(S.heap);
	}
	for (i = S.n++; i > 0 && before(&e, &S.heap[(i - 1) / 2]); i = (i - 1) / 2)
		S.heap[i] = S.heap[(i - 1) / 2];
	S.heap[i] = e;
}

static struct event pop(void)
{
	struct event top = S.heap[0], last = S.heap[--S.n];
	size_t i = 0;

	for (;;) {
		size_t c = 2 * i + 1;

		if (c >= S.n)
			break;
		if (c + 1 < S.n && before(&S.heap[c + 1], &S.heap[c]))
			c++;
		if (!before(&S.heap[c], &last))
			break;
		S.heap[i] = S.heap[c];
		i = c;
	}
	S.heap[i] = last;
	return top;
}

static void push_at(uint64_t when, uint64_t tie, sim_fn fn, void *arg)
{
	push((struct event){when, tie, ++S.number, fn, arg});
}

void sim_after(uint64_t delay, sim_fn fn, void *arg)
{
	uint64_t tie = sim_random();

	push_at(S.now + delay, tie, fn, arg);
}

void sim_after_ordered(uint64_t *channel, uint64_t delay, sim_fn fn, void *arg)
{
	uint64_t when = S.now + delay;

	/* Strictly later than the one before: no tie decides. */
	if (when <= *channel)
		when = *channel + 1;
	*channel = when;
	push_at(when, 0, fn, arg);
}

bool sim_run(bool (*done)(void *arg), void *arg, uint64_t limit)
{
	uint64_t end = S.now + limit;

	assert(!S.current);
	while (S.n > 0 && !done(arg)) {
		struct event e = pop();

		if (e.when > end) {
			push(e);
			return false;
		}
		if (e.when > S.now)
			S.now = e.when;
		e.fn(e.arg);
	}
	return done(arg);
}

void sim_trace(const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	n = snprintf(line, sizeof(line), "%" PRIu64 " ", S.now);
	va_start(ap, fmt);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof(line))
		n = sizeof(line) - 1;
	for (int i = 0; i < n; i++)
		S.hash = (S.hash ^ (unsigned char)line[i]) * 0x100000001b3ull;
	if (S.trace)
		fprintf(S.trace, "%s\n", line);
}

uint64_t sim_trace_hash(void)
{
	return S.hash;
}

void sim_trace_file(const char *path)
{
	S.trace = fopen(path, "w");
	assert(S.trace);
}

/* ---- coroutines ---- */
static void to_coro(struct sim_coro *c)
{
	S.current = c;
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(&S.fake_stack, c->stack, STACK_BYTES);
#endif
	swapcontext(&S.main, &c->context);
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(S.fake_stack, NULL, NULL);
#endif
	S.current = NULL;
}

static void to_main(struct sim_coro *c)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(c->finished ? NULL : &c->fake_stack, S.main_stack,
				       S.main_stack_size);
#endif
	swapcontext(&c->context, &S.main);
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(c->fake_stack, &S.main_stack, &S.main_stack_size);
#endif
}

static void coro_entry(void)
{
	struct sim_coro *c = S.current;

#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(NULL, &S.main_stack, &S.main_stack_size);
#endif
	c->fn(c->arg);
	sim_coro_exit();
}

struct wake {
	struct sim_coro *coro;
	uint64_t number;
};

static void coro_wake(void *arg)
{
	struct wake *w = arg;
	struct sim_coro *c = w->coro;
	bool stale = c->wake_number != w->number;

	free(w);
	if (stale || c->finished || c->proc->dead)
		return;
	c->wake_number++;
	c->blocked = c->queued = false;
	to_coro(c);
}

static void schedule(struct sim_coro *c, uint64_t when)
{
	struct wake *w = malloc(sizeof(*w));
	uint64_t tie = sim_random();

	assert(w);
	w->coro = c;
	w->number = c->wake_number;
	push_at(when, tie, coro_wake, w);
}

struct sim_coro *sim_coro_new(struct sim_proc *p, sim_fn fn, void *arg)
{
	struct sim_coro *c = calloc(1, sizeof(*c));

	assert(c);
	c->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	assert(c->stack != MAP_FAILED);
	c->proc = p;
	c->fn = fn;
	c->arg = arg;
	getcontext(&c->context);
	c->context.uc_stack.ss_sp = c->stack;
	c->context.uc_stack.ss_size = STACK_BYTES;
	c->context.uc_link = NULL;
	makecontext(&c->context, coro_entry, 0);
	assert(p->n_coros < sizeof(p->coros) / sizeof(p->coros[0]));
	p->coros[p->n_coros++] = c;
	c->queued = true;
	schedule(c, S.now + 100);
	return c;
}

struct sim_coro *sim_coro_current(void)
{
	return S.current;
}

struct sim_proc *sim_coro_proc(struct sim_coro *c)
{
	return c->proc;
}

bool sim_coro_finished(const struct sim_coro *c)
{
	return c->finished;
}

void sim_coro_block(uint64_t deadline)
{
	struct sim_coro *c = S.current;

	c->blocked = true;
	c->wake_number++;
	if (deadline != SIO_FOREVER)
		schedule(c, deadline > S.now ? deadline : S.now);
	to_main(c);
}

void sim_coro_pause(uint64_t delay)
{
	struct sim_coro *c = S.current;

	c->wake_number++;
	c->queued = true;
	schedule(c, S.now + delay);
	to_main(c);
}

void sim_coro_exit(void)
{
	struct sim_coro *c = S.current;

	c->finished = true;
	sim_notify(c->proc);
	to_main(c);
	abort();
}

void sim_coros_free(struct sim_proc *p)
{
	for (unsigned i = 0; i < p->n_coros; i++) {
		assert(p->coros[i] != S.current);
		p->coros[i]->finished = true;
		munmap(p->coros[i]->stack, STACK_BYTES);
		/* The record stays: a wake-up may still be on its way to it. */
		p->coros[i]->stack = NULL;
	}
}

void sim_notify(struct sim_proc *p)
{
	extern struct sim_proc *sim_procs[SIM_PROCS];

	if (!p) {
		for (unsigned i = 0; i < SIM_PROCS; i++)
			if (sim_procs[i])
				sim_notify(sim_procs[i]);
		return;
	}
	for (unsigned i = 0; i < p->n_coros; i++) {
		struct sim_coro *c = p->coros[i];

		if (!c->blocked || c->finished || c->queued || p->dead)
			continue;
		/* Any time-out already queued for it is out of date from here on. */
		c->wake_number++;
		c->queued = true;
		schedule(c, S.now + 200 + sim_random() % 800);
	}
}
