/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of the simulated hosts, and the addresses by which programs and room know it. All of them
 * lie in one range that is never accessible: who dereferences one ends the run and is named.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <execinfo.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/fabric.h"

#define LEAF_PAGES (1u << 12)
#define LEAVES (FABRIC_ARENA / FABRIC_PAGE / LEAF_PAGES)
#define FRAMES 32

/* A range that was mapped at once, or a part of it that was moved. */
struct region {
	struct fabric_mem *mem; /* NULL: ones */
	uint64_t page, offset;	/* of the arena; in the memory */
	uint32_t pages;		/* pages that still belong to this; 0: the entry is free */
	bool write;
};

uint8_t *fabric_arena;
struct fabric_rings fabric_rings[FABRIC_HOSTS];
static struct {
	uint32_t **leaf; /* page -> region + 1 */
	uint64_t next;	 /* the first page that was never given out */
	struct region *region;
	uint32_t n_regions, max_regions, free_hint;
	struct fabric_mem *mems;
	uint64_t n_mems, model;
} S;

/* ---- ends of the run ---- */
static void say(const char *text)
{
	ssize_t n = write(STDERR_FILENO, text, strlen(text));

	(void)n;
}

/* Where in the program; addr2line names lines where it is installed. */
static void say_place(void)
{
	void *frame[FRAMES];

	backtrace_symbols_fd(frame, backtrace(frame, FRAMES), STDERR_FILENO);
	say("(addr2line -fe PROGRAM +OFFSET names the lines)\n");
}

static struct fabric_view find(uintptr_t at, const struct region **ret);

static const char *describe(uintptr_t at)
{
	const struct region *r;
	struct fabric_view v = find(at, &r);

	if (!r)
		return "where nothing is mapped";
	return v.mem ? fabric_where(&v) : "pages that read as ones";
}

static void die(const volatile void *at, const char *what)
{
	char text[512];

	snprintf(text, sizeof(text), "%s: %s: address %p of %s\n", fabric_access->who(), what,
		 (void *)(uintptr_t)at, describe((uintptr_t)at));
	say(text);
	say_place();
	abort();
}

void (*fabric_on_crash)(int sig);

static void on_fault(int sig, siginfo_t *info, void *context)
{
	struct sigaction a = {.sa_handler = fabric_on_crash, .sa_flags = SA_ONSTACK};

	(void)context;
	/* A second fault, or one at an address outside the arena, is an ordinary crash. */
	if (!fabric_on_crash)
		a.sa_handler = SIG_DFL;
	sigaction(sig, &a, NULL);
	if (fabric_is_ours(info->si_addr))
		die(info->si_addr, "a pointer into fabric memory was dereferenced; accessors of "
				   "smartio/io.h are right");
}

/* ---- memory ---- */
static enum fabric_kind kind_of(const char *name)
{
	if (strcmp(name, "bar") == 0 || strcmp(name, "registers") == 0 ||
	    strcmp(name, "mirror") == 0)
		return FABRIC_REGISTER;
	if (strcmp(name, "bar memory") == 0)
		return FABRIC_BAR;
	if (strcmp(name, "dma") == 0)
		return FABRIC_RING;
	if (strcmp(name, "status") == 0)
		return FABRIC_STATUS;
	return FABRIC_RAM;
}

/*
 * Zeroed. What is large, and of which nobody touches most, is pages of the kernel's: they cost
 * nothing here, where a heap fills them (MALLOC_PERTURB_, which meson's tests have) or clears them
 * again. Of a heap a sanitizer sees what lies beside it; only gigabytes would cost too much of its
 * own memory.
 */
#ifndef __has_feature /* clang's word for it */
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define LARGE (64ull << 20)
#else
#define LARGE (128ull << 10)
#endif

static uint8_t *bytes_new(uint64_t size)
{
	uint8_t *bytes;

	if (size < LARGE) {
		bytes = calloc(1, size);
		assert(bytes);
		return bytes;
	}
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert(bytes != MAP_FAILED);
	madvise(bytes, size, MADV_NOHUGEPAGE); /* accesses are few and far between */
	return bytes;
}

static void bytes_free(uint8_t *bytes, uint64_t size)
{
	if (size < LARGE)
		free(bytes);
	else
		munmap(bytes, size);
}

struct fabric_mem *fabric_mem_new(unsigned host, const char *name, uint64_t size, void **ret_at)
{
	struct fabric_mem *m = calloc(1, sizeof(*m));

	assert(m && host < FABRIC_HOSTS);
	m->refs = 1;
	m->host = host;
	m->kind = kind_of(name);
	m->name = name;
	m->number = ++S.n_mems;
	m->size = (size + FABRIC_PAGE - 1) & ~(uint64_t)(FABRIC_PAGE - 1);
	m->bytes = bytes_new(m->size);
	m->next = S.mems;
	if (m->next)
		m->next->prev = m;
	S.mems = m;
	fabric_rings[host].open += m->kind == FABRIC_RING;
	*ret_at = fabric_reserve(NULL, m->size);
	fabric_map(*ret_at, m->size, m, 0, true);
	return m;
}

void fabric_mem_seal(struct fabric_mem *m)
{
	m->sealed = true;
}

/* All of it reads as @value; nobody has touched most of gigabytes: new ones cost nothing. */
static void fill(struct fabric_mem *m, uint8_t value)
{
	bytes_free(m->bytes, m->size);
	m->bytes = bytes_new(m->size);
	m->flip = value;
	m->stores++;
	fabric_register_stores += m->kind == FABRIC_REGISTER;
}

void fabric_mem_zero(struct fabric_mem *m)
{
	fill(m, 0);
}

void fabric_mem_ones(struct fabric_mem *m)
{
	fill(m, UINT8_MAX);
}

void fabric_mem_ref(struct fabric_mem *m)
{
	m->refs++;
}

void fabric_mem_unref(struct fabric_mem *m)
{
	if (--m->refs > 0)
		return;
	fabric_status_gone(m);
	if (m->next)
		m->next->prev = m->prev;
	if (m->prev)
		m->prev->next = m->next;
	else
		S.mems = m->next;
	bytes_free(m->bytes, m->size);
	free(m);
}

/* ---- addresses ---- */
static uint32_t *slot_of(uint64_t page)
{
	uint32_t **leaf = &S.leaf[page / LEAF_PAGES];

	if (!*leaf) {
		*leaf = calloc(LEAF_PAGES, sizeof(**leaf));
		assert(*leaf);
	}
	return &(*leaf)[page % LEAF_PAGES];
}

static uint64_t page_of(const volatile void *at)
{
	return ((uintptr_t)at - (uintptr_t)fabric_arena) / FABRIC_PAGE;
}

/* @ret: NULL: it means nothing. */
static struct fabric_view find(uintptr_t at, const struct region **ret)
{
	uint64_t in = at - (uintptr_t)fabric_arena, page = in / FABRIC_PAGE;
	const uint32_t *leaf = S.leaf[page / LEAF_PAGES];
	uint32_t index = leaf ? leaf[page % LEAF_PAGES] : 0;
	const struct region *r = index ? &S.region[index - 1] : NULL;

	*ret = r;
	if (!r || !r->mem)
		return (struct fabric_view){0};
	return (struct fabric_view){r->mem, r->offset + in - r->page * FABRIC_PAGE};
}

struct fabric_view fabric_look(const volatile void *at, size_t len, bool write)
{
	const struct region *r;
	struct fabric_view v = find((uintptr_t)at, &r);

	assert(len > 0 && (uintptr_t)at % FABRIC_PAGE + len <= FABRIC_PAGE);
	if (__builtin_expect(!r, 0))
		die(at, write ? "a store" : "a load");
	if (__builtin_expect(write && !r->write, 0))
		die(at, "a store into a read-only mapping");
	return v;
}

static uint32_t region_new(struct region r)
{
	uint32_t i = S.free_hint;

	while (i < S.n_regions && S.region[i].pages)
		i++;
	if (i == S.n_regions) {
		if (S.n_regions == S.max_regions) {
			S.max_regions = S.max_regions ? 2 * S.max_regions : 64;
			S.region = realloc(S.region, S.max_regions * sizeof(*S.region));
			assert(S.region);
		}
		S.n_regions++;
	}
	S.free_hint = i + 1;
	S.region[i] = r;
	if (r.mem)
		fabric_mem_ref(r.mem);
	return i + 1;
}

static void forget(uint64_t page)
{
	uint32_t *slot = slot_of(page);
	struct region *r;

	if (!*slot)
		return;
	r = &S.region[*slot - 1];
	if (--r->pages == 0) {
		if (*slot - 1 < S.free_hint)
			S.free_hint = *slot - 1;
		if (r->mem)
			fabric_mem_unref(r->mem);
		r->mem = NULL;
	}
	*slot = 0;
}

static void set(uint64_t page, uint64_t n, struct region r)
{
	uint32_t index;

	for (uint64_t i = 0; i < n; i++)
		forget(page + i);
	r.page = page;
	r.pages = (uint32_t)n;
	index = region_new(r);
	for (uint64_t i = 0; i < n; i++)
		*slot_of(page + i) = index;
}

static uint64_t pages_of(size_t len)
{
	return (len + FABRIC_PAGE - 1) / FABRIC_PAGE;
}

void *fabric_reserve(const struct sim_proc *p, size_t len)
{
	void *at = fabric_arena + S.next * FABRIC_PAGE;

	(void)p;
	/* A page between two ranges that is never mapped. */
	S.next += pages_of(len) + 1;
	assert(S.next * FABRIC_PAGE < FABRIC_ARENA);
	return at;
}

void fabric_map(void *at, size_t len, struct fabric_mem *m, uint64_t offset, bool write)
{
	assert(fabric_is_ours(at) && offset % FABRIC_PAGE == 0);
	assert(pages_of(len) > 0 && offset + pages_of(len) * FABRIC_PAGE <= m->size);
	assert(!write || !m->sealed);
	set(page_of(at), pages_of(len),
	    (struct region){.mem = m, .offset = offset, .write = write});
}

void fabric_map_ones(void *at, size_t len)
{
	set(page_of(at), pages_of(len), (struct region){.write = true});
}

void fabric_move(void *from, void *to, size_t len)
{
	uint64_t n = pages_of(len), a = page_of(from), b = page_of(to);

	for (uint64_t i = 0; i < n; i++) {
		uint32_t index = *slot_of(a + i);
		struct region r;

		if (!index) {
			forget(b + i);
			continue;
		}
		r = S.region[index - 1];
		r.offset += (a + i - r.page) * FABRIC_PAGE;
		set(b + i, 1, r);
		forget(a + i);
	}
}

void fabric_unmap(void *at, size_t len)
{
	for (uint64_t i = 0, first = page_of(at); i < pages_of(len); i++)
		forget(first + i);
}

void fabric_mem_close(void *at)
{
	const struct region *r;
	struct fabric_view v = find((uintptr_t)at, &r);

	assert(r && v.mem && v.offset == 0);
	fabric_settle(fabric_access->now()); /* what is due has arrived before */
	v.mem->freed = true;
	fabric_rings[v.mem->host].open -= v.mem->kind == FABRIC_RING;
	fabric_unmap(at, v.mem->size);
}

const struct fabric_mem *fabric_mem_at(const void *at)
{
	const struct region *r;
	struct fabric_view v = find((uintptr_t)at, &r);

	return r ? v.mem : NULL;
}

const char *fabric_where(const struct fabric_view *v)
{
	static char text[96];

	snprintf(text, sizeof(text), "memory %" PRIu64 " (%s) of host %u + %#" PRIx64,
		 v->mem->number, v->mem->name, v->mem->host, v->offset);
	return text;
}

/* ---- start and end ---- */
void fabric_guard(void)
{
	struct sigaction a = {.sa_sigaction = on_fault,
			      .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	void *warm[1];

	/* The first call loads a library, which a signal handler must not do. */
	backtrace(warm, 1);
	sigaction(SIGSEGV, &a, NULL);
	sigaction(SIGBUS, &a, NULL);
}

static void arena_new(void)
{
	fabric_arena = mmap(NULL, FABRIC_ARENA, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert(fabric_arena != MAP_FAILED);
	S.leaf = mmap(NULL, LEAVES * sizeof(*S.leaf), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert(S.leaf != MAP_FAILED);
	fabric_guard();
}

void fabric_start(const struct sio_topology *t, const struct fabric_params *p, uint64_t seed)
{
	if (!fabric_arena)
		arena_new();
	S.model++;
	S.next = 1;
	S.n_mems = 0;
	S.free_hint = 0;
	if (p)
		fabric_params = *p;
	else
		fabric_params_default(&fabric_params);
	if (t) {
		fabric_params.limits.max_payload = t->max_payload;
		fabric_params.limits.max_read_request = t->max_read_request;
		fabric_params.limits.read_completion_boundary = t->read_completion_boundary;
	}
	assert(!fabric_params_wrong(&fabric_params));
	memset(&fabric_sum, 0, sizeof(fabric_sum));
	memset(fabric_rings, 0, sizeof(fabric_rings));
	fabric_sum.hash = seed;
	fabric_past_start();
	fabric_paths_start(t);
	fabric_act(FABRIC_NOBODY);
}

uint64_t fabric_model(void)
{
	return S.model;
}

void fabric_end(void)
{
	S.model++;
	fabric_paths_end();
	for (uint64_t page = 0; page < S.next; page++)
		forget(page);
	for (uint64_t i = 0; i <= S.next / LEAF_PAGES; i++) {
		free(S.leaf[i]);
		S.leaf[i] = NULL;
	}
	while (S.mems) {
		S.mems->refs = 1;
		fabric_mem_unref(S.mems);
	}
	free(S.region);
	S.region = NULL;
	S.n_regions = S.max_regions = 0;
}
