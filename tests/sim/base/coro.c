/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Coroutines: the threads of simulated programs. A switch is a dozen instructions; glibc's
 * swapcontext() would make two system calls.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "fabric/fabric.h"
#include "base/sim.h"

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_BYTES (512u << 10)
#define GUARD_BYTES 4096u

struct stack {
	struct stack *next; /* of the free ones; lies in the stack itself */
};

struct sim_coro *sim_coro_running;
static struct {
	void *sp; /* of the loop, while a coroutine runs */
	struct stack *stacks;
	void *fake_stack;
	const void *main_stack;
	size_t main_stack_size;
} C;

#if defined(__x86_64__)
/* Saves what a call must keep on the stack, swaps stacks, and takes the same from the other one. */
void sim_switch(void **save, void *to);
__asm__(".text\n"
	".globl sim_switch\n"
	".type sim_switch,@function\n"
	"sim_switch:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size sim_switch, .-sim_switch\n");

static void prepare(struct sim_coro *c, void (*entry)(void))
{
	uintptr_t top = ((uintptr_t)c->stack + STACK_BYTES) & ~(uintptr_t)15;
	void **sp = (void **)top;

	*--sp = NULL; /* a frame below the first: the stack is aligned as after a call */
	*--sp = (void *)(uintptr_t)entry;
	for (unsigned i = 0; i < 6; i++)
		*--sp = NULL;
	c->sp = sp;
}

static void swap(void **save, void **to)
{
	sim_switch(save, *to);
}
#else
#include <ucontext.h>

static ucontext_t *context(void **slot)
{
	if (!*slot) {
		*slot = calloc(1, sizeof(ucontext_t));
		assert(*slot);
		getcontext(*slot);
	}
	return *slot;
}

static void prepare(struct sim_coro *c, void (*entry)(void))
{
	ucontext_t *u = context(&c->sp);

	u->uc_stack.ss_sp = c->stack;
	u->uc_stack.ss_size = STACK_BYTES;
	u->uc_link = NULL;
	makecontext(u, entry, 0);
}

static void swap(void **save, void **to)
{
	swapcontext(context(save), context(to));
}
#endif

static void *stack_new(void)
{
	struct stack *s = C.stacks;
	char *at;

	if (s) {
		C.stacks = s->next;
		return s;
	}
	at = mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	assert(at != MAP_FAILED && mprotect(at, GUARD_BYTES, PROT_NONE) == 0);
	return at + GUARD_BYTES;
}

static void stack_free(void *at)
{
	struct stack *s = at;

#ifdef SANITIZED
	/* Frames that never returned left the stack poisoned. */
	ASAN_UNPOISON_MEMORY_REGION(at, STACK_BYTES);
#endif
	s->next = C.stacks;
	C.stacks = s;
}

static void to_coro(struct sim_coro *c)
{
	sim_coro_running = c;
#ifdef SANITIZED
	__sanitizer_start_switch_fiber(&C.fake_stack, c->stack, STACK_BYTES);
#endif
	swap(&C.sp, &c->sp);
#ifdef SANITIZED
	__sanitizer_finish_switch_fiber(C.fake_stack, NULL, NULL);
#endif
	sim_coro_running = NULL;
}

static void to_main(struct sim_coro *c)
{
#ifdef SANITIZED
	__sanitizer_start_switch_fiber(c->finished ? NULL : &c->fake_stack, C.main_stack,
				       C.main_stack_size);
#endif
	swap(&c->sp, &C.sp);
#ifdef SANITIZED
	__sanitizer_finish_switch_fiber(c->fake_stack, &C.main_stack, &C.main_stack_size);
#endif
}

static void coro_entry(void)
{
	struct sim_coro *c = sim_coro_running;

#ifdef SANITIZED
	__sanitizer_finish_switch_fiber(NULL, &C.main_stack, &C.main_stack_size);
#endif
	c->fn(c->arg);
	sim_coro_exit();
}

/* The record is freed when no event in the queue refers to it any more. */
static void coro_put(struct sim_coro *c)
{
	if (--c->refs > 0)
		return;
#if !defined(__x86_64__)
	free(c->sp);
#endif
	free(c);
}

static bool is_stopped(const struct sim_coro *c)
{
	/* The program of a finished coroutine may not exist any more. */
	return !c->finished && !c->proc->dead && c->proc->stopped > sim_now();
}

static void coro_wake(void *arg)
{
	struct sim_wake *w = arg;
	struct sim_coro *c = w->coro;

	if (w == c->wake && is_stopped(c)) {
		sim_after(c->proc->stopped - sim_now(), coro_wake, w);
		return;
	}
	if (w == c->wake && !c->finished && !c->proc->dead) {
		c->wake = NULL;
		c->blocked = c->queued = false;
		to_coro(c);
		sim_proc_reap();
	}
	if (w == c->wake)
		c->wake = NULL;
	free(w);
	coro_put(c);
}

/* Only the wake-up that was scheduled last counts; earlier ones find that they are stale. */
static void schedule(struct sim_coro *c, uint64_t when)
{
	struct sim_wake *w = malloc(sizeof(*w));

	assert(w);
	w->coro = c;
	c->wake = w;
	c->refs++;
	sim_after(when > sim_now() ? when - sim_now() : 0, coro_wake, w);
}

struct sim_coro *sim_coro_new(struct sim_proc *p, sim_fn fn, void *arg)
{
	struct sim_coro *c = calloc(1, sizeof(*c));

	assert(c);
	c->stack = stack_new();
	c->proc = p;
	c->fn = fn;
	c->arg = arg;
	c->refs = 1;
	c->next = p->coros;
	p->coros = c;
	prepare(c, coro_entry);
	c->queued = true;
	schedule(c, sim_now() + 100);
	return c;
}

void sim_coro_block(uint64_t when)
{
	struct sim_coro *c = sim_coro_running;

	c->blocked = true;
	c->wake = NULL;
	if (when != UINT64_MAX)
		schedule(c, when);
	to_main(c);
}

void sim_coro_pause(uint64_t delay)
{
	struct sim_coro *c = sim_coro_running;

	c->queued = true;
	schedule(c, sim_now() + delay);
	to_main(c);
}

void sim_coro_exit(void)
{
	struct sim_coro *c = sim_coro_running;

	c->finished = true;
	if (!c->proc->dead)
		sim_notify(c->proc);
	to_main(c);
	abort();
}

void sim_coros_free(struct sim_proc *p)
{
	while (p->coros) {
		struct sim_coro *c = p->coros;

		assert(c != sim_coro_running);
		p->coros = c->next;
		c->finished = true;
		stack_free(c->stack);
		c->stack = NULL;
		fabric_core_free(c->core);
		c->core = NULL;
		coro_put(c);
	}
}

void sim_coro_notify(struct sim_coro *c)
{
	if (!c->blocked || c->finished || c->queued || c->proc->dead)
		return;
	c->queued = true;
	schedule(c, sim_now() + 200 + sim_below(800));
}

void sim_notify(struct sim_proc *p)
{
	for (struct sim_coro *c = p->coros; c; c = c->next)
		sim_coro_notify(c);
}

void sim_sync(void)
{
	struct sim_coro *c = sim_coro_current();

	/* A coroutine without an access so far has nothing to order. */
	if (c->core)
		fabric_core_sync(c->core);
}
