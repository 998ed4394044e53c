/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Look-up tables of adapters against what was asked of them (see oracle/tables.c): an array of
 * whom each entry leads to and how many mappings cover it, by which each answer is judged.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "core/lut.h"
#include "run/run.h"

#define TRIED 2u /* one change in so many is followed by a trial change that is undone */

struct entry {
	struct sio_lut_target target;
	unsigned n;
};

struct mirror {
	const struct sio_lut *lut;
	struct entry *entry;
	unsigned n_entries, used;
	uint64_t size; /* of an entry */
	UT_hash_handle hh;
};

static struct mirror *mirrors;
static uint64_t rng = 1;

static struct mirror *mirror_of(const struct sio_lut *lut)
{
	struct mirror *m;

	HASH_FIND_PTR(mirrors, &lut, m);
	assert(m);
	return m;
}

static void drop(const struct sio_lut *lut)
{
	struct mirror *m;

	HASH_FIND_PTR(mirrors, &lut, m);
	if (!m)
		return;
	HASH_DEL(mirrors, m);
	free(m->entry);
	free(m);
}

int __real_sio_lut_init(struct sio_lut *lut, const char *name, uint64_t window, unsigned n_entries,
			struct sio_err *reterr);
int __wrap_sio_lut_init(struct sio_lut *lut, const char *name, uint64_t window, unsigned n_entries,
			struct sio_err *reterr);
int __wrap_sio_lut_init(struct sio_lut *lut, const char *name, uint64_t window, unsigned n_entries,
			struct sio_err *reterr)
{
	int rc = __real_sio_lut_init(lut, name, window, n_entries, reterr);
	struct mirror *m;

	drop(lut);
	if (rc < 0)
		return rc;
	m = calloc(1, sizeof(*m));
	assert(m);
	m->lut = lut;
	m->n_entries = n_entries;
	m->size = window / n_entries;
	m->entry = calloc(n_entries, sizeof(*m->entry));
	assert(m->entry);
	HASH_ADD_PTR(mirrors, lut, m);
	return 0;
}

void __real_sio_lut_done(struct sio_lut *lut);
void __wrap_sio_lut_done(struct sio_lut *lut);
void __wrap_sio_lut_done(struct sio_lut *lut)
{
	drop(lut);
	__real_sio_lut_done(lut);
}

static bool same(const struct sio_lut_target *a, const struct sio_lut_target *b)
{
	return a->bus.node == b->bus.node && a->bus.addr == b->bus.addr &&
	       a->adapter == b->adapter && a->generation == b->generation;
}

int __real_sio_lut_translate(const struct sio_lut *lut, struct sio_window_at at,
			     struct sio_lut_target *ret_target, uint64_t *ret_length);
int __wrap_sio_lut_translate(const struct sio_lut *lut, struct sio_window_at at,
			     struct sio_lut_target *ret_target, uint64_t *ret_length);
int __wrap_sio_lut_translate(const struct sio_lut *lut, struct sio_window_at at,
			     struct sio_lut_target *ret_target, uint64_t *ret_length)
{
	const struct mirror *m = mirror_of(lut);
	uint64_t i = at.offset / m->size;
	struct sio_lut_target want = {0};
	bool there = i < m->n_entries && m->entry[i].n > 0;
	int rc = __real_sio_lut_translate(lut, at, ret_target, ret_length);

	if (there) {
		want = m->entry[i].target;
		want.bus.addr += at.offset % m->size;
	}
	if (rc != (there ? 0 : -ENOENT) || (there && !same(ret_target, &want)))
		sim_fail("tables", "%s: offset %#llx: %d, leads to %#llx of node %u", lut->name,
			 (unsigned long long)at.offset, rc,
			 rc ? 0 : (unsigned long long)ret_target->bus.addr,
			 rc ? 0 : ret_target->bus.node);
	return rc;
}

/* At the edges of what was mapped, anywhere, and behind the last entry. */
static void ask(const struct sio_lut *lut, uint64_t offset, uint64_t len)
{
	const struct mirror *m = mirror_of(lut);
	const uint64_t at[] = {offset,
			       offset + (len - 1),
			       offset + len,
			       offset - (offset > 0),
			       m->n_entries * m->size,
			       m->n_entries * m->size - 1,
			       sim_draw(&rng) % (m->n_entries * m->size)};
	struct sio_lut_target target;

	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		(void)__wrap_sio_lut_translate(lut, (struct sio_window_at){at[i]}, &target, NULL);
	if (lut->n_used != m->used)
		sim_fail("tables", "%s: %u entries are in use, not %u", lut->name, lut->n_used,
			 m->used);
}

/*
 * How many new entries @count entries from @first on would take; UINT32_MAX: they lead elsewhere.
 */
static unsigned cost(const struct mirror *m, unsigned first, uint64_t count,
		     struct sio_lut_target page)
{
	unsigned free_ones = 0;

	for (uint64_t i = first; i < first + count; i++, page.bus.addr += m->size) {
		if (m->entry[i].n && !same(&m->entry[i].target, &page))
			return UINT32_MAX;
		free_ones += m->entry[i].n == 0;
	}
	return free_ones;
}

static unsigned cheapest(const struct mirror *m, uint64_t count, struct sio_lut_target page,
			 unsigned *ret_first)
{
	unsigned best = UINT32_MAX;

	for (unsigned i = 0; count <= m->n_entries && i <= m->n_entries - count; i++) {
		unsigned c = cost(m, i, count, page);

		if (c < best) {
			best = c;
			*ret_first = i;
		}
	}
	return best;
}

int __real_sio_lut_map(struct sio_lut *lut, const struct sio_lut_target *target, uint64_t len,
		       struct sio_window_at *ret, struct sio_err *reterr);
int __real_sio_lut_unmap(struct sio_lut *lut, struct sio_window_at at, uint64_t len,
			 struct sio_err *reterr);

/* How many entries hold @in + @len bytes, counted one by one. */
static uint64_t entries(const struct mirror *m, uint64_t in, uint64_t len)
{
	uint64_t count = 0;

	while (count * m->size < in + len)
		count++;
	return count;
}

/* What no host asks for, ranges that end at any byte, is tried and taken back. */
static void try_bytes(struct sio_lut *lut, const struct sio_lut_target *near)
{
	const struct mirror *m = mirror_of(lut);
	uint64_t in = sim_draw(&rng) % m->size, end = 1 + sim_draw(&rng) % 2, len;
	struct sio_window_at at = {0};
	struct sio_lut_target page = *near, target, last;
	unsigned first = 0, best;
	int rc;

	page.bus.addr -= page.bus.addr % m->size;
	if (page.bus.addr > UINT64_MAX - 4 * m->size)
		return;
	/* A byte before the end of an entry, there, or a byte behind it. */
	len = end * m->size + sim_draw(&rng) % 3 - 1 - in;
	target = page;
	target.bus.addr += in;
	if (len == 0)
		return;
	best = cheapest(m, entries(m, in, len), page, &first);
	rc = __real_sio_lut_map(lut, &target, len, &at, NULL);
	if (rc != (best == UINT32_MAX ? -ENOSPC : 0) ||
	    (rc == 0 &&
	     (at.offset != first * m->size + in || lut->n_used != m->used + best ||
	      __real_sio_lut_translate(lut, (struct sio_window_at){at.offset + (len - 1)}, &last,
				       NULL) < 0)))
		sim_fail("tables", "%s: %#llx + %#llx of node %u is tried: %d", lut->name,
			 (unsigned long long)target.bus.addr, (unsigned long long)len,
			 target.bus.node, rc);
	if (rc == 0)
		__real_sio_lut_unmap(lut, at, len, NULL);
}

int __wrap_sio_lut_map(struct sio_lut *lut, const struct sio_lut_target *target, uint64_t len,
		       struct sio_window_at *ret, struct sio_err *reterr);
int __wrap_sio_lut_map(struct sio_lut *lut, const struct sio_lut_target *target, uint64_t len,
		       struct sio_window_at *ret, struct sio_err *reterr)
{
	struct mirror *m = mirror_of(lut);
	int rc = __real_sio_lut_map(lut, target, len, ret, reterr), want = 0;
	uint64_t in = target->bus.addr % m->size, count = 0;
	struct sio_lut_target page = *target;
	unsigned first = 0, best = 0;

	page.bus.addr -= in;
	if (len == 0 || target->bus.addr > UINT64_MAX - (len - 1)) {
		want = -EINVAL;
	} else {
		count = entries(m, in, len);
		best = cheapest(m, count, page, &first);
		want = best == UINT32_MAX ? -ENOSPC : 0;
	}
	if (rc != want || (rc == 0 && ret->offset != first * m->size + in))
		sim_fail("tables", "%s: %#llx + %#llx of node %u is mapped: %d, not %d, at %#llx",
			 lut->name, (unsigned long long)target->bus.addr, (unsigned long long)len,
			 target->bus.node, rc, want, rc ? 0 : (unsigned long long)ret->offset);
	sim_did.tables += rc == -ENOSPC && sim_few_entries;
	if (rc < 0)
		return rc;
	m->used += best;
	for (uint64_t i = first; i < first + count; i++, page.bus.addr += m->size) {
		m->entry[i].target = page;
		m->entry[i].n++;
	}
	ask(lut, ret->offset, len);
	if (sim_draw(&rng) % TRIED == 0)
		try_bytes(lut, target);
	return 0;
}

int __wrap_sio_lut_unmap(struct sio_lut *lut, struct sio_window_at at, uint64_t len,
			 struct sio_err *reterr);
int __wrap_sio_lut_unmap(struct sio_lut *lut, struct sio_window_at at, uint64_t len,
			 struct sio_err *reterr)
{
	struct mirror *m = mirror_of(lut);
	int rc = __real_sio_lut_unmap(lut, at, len, reterr);

	/* The room unmaps only what it has mapped, so this must not fail. */
	if (rc < 0)
		sim_fail("tables", "%s: %#llx + %#llx is unmapped: %d", lut->name,
			 (unsigned long long)at.offset, (unsigned long long)len, rc);
	for (uint64_t i = at.offset / m->size; i <= (at.offset + (len - 1)) / m->size; i++)
		m->used -= --m->entry[i].n == 0;
	ask(lut, at.offset, len);
	return rc;
}
