/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the hardware's tables say, against plain lists of what was asked of them: address maps and
 * IOMMU domains, ranges, and the counts of packets (look-up tables: oracle/lut.c). Each change is
 * held against the list, and then the table is asked about addresses at the edges of what it holds,
 * which no device may ever come to: all of them must be answered as the list says.
 *
 * The calls are seen between room and core (--wrap). Chance here is of no seed: it decides nothing.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "core/iommu.h"
#include "core/pcie.h"
#include "core/range.h"
#include "run/run.h"

/* One change in so many is followed by questions, one count of packets in so many looked at. */
#define ASKED 4u
#define COUNTED 16u
#define LONGEST 65536u /* bytes of an access whose packets are counted one by one */

struct table {
	const struct sio_addrmap *map;
	struct sio_region *region; /* in no order */
	size_t n, max;
	UT_hash_handle hh;
};

static struct table *tables;
static uint64_t rng = 1;

static uint64_t draw(uint64_t n)
{
	return sim_draw(&rng) % n;
}

static struct table *table_of(const struct sio_addrmap *m)
{
	struct table *t;

	HASH_FIND_PTR(tables, &m, t);
	if (!t) {
		t = calloc(1, sizeof(*t));
		assert(t);
		t->map = m;
		HASH_ADD_PTR(tables, map, t);
	}
	return t;
}

static void empty(const struct sio_addrmap *m)
{
	struct table *t = table_of(m);

	free(t->region);
	HASH_DEL(tables, t);
	free(t);
}

/* ---- what the list says ---- */
static uint64_t last_of(const struct sio_region *r)
{
	return r->base + (r->size - 1);
}

static const struct sio_region *holder(const struct table *t, uint64_t addr)
{
	for (size_t i = 0; i < t->n; i++)
		if (addr >= t->region[i].base && addr <= last_of(&t->region[i]))
			return &t->region[i];
	return NULL;
}

/* The lowest that has an address from @first to @last. */
static const struct sio_region *between(const struct table *t, uint64_t first, uint64_t last)
{
	const struct sio_region *found = NULL;

	for (size_t i = 0; i < t->n; i++) {
		const struct sio_region *r = &t->region[i];

		if (r->base <= last && last_of(r) >= first && (!found || r->base < found->base))
			found = r;
	}
	return found;
}

/* ---- address maps ---- */
static void same_region(const struct sio_addrmap *m, const char *what, uint64_t addr, uint64_t size,
			const struct sio_region *told, const struct sio_region *want)
{
	if (!told == !want &&
	    (!told || (told->base == want->base && told->size == want->size &&
		       told->object == want->object && told->kind == want->kind &&
		       told->access == want->access && told->offset == want->offset)))
		return;
	sim_fail("tables", "%s: %s %#llx + %#llx is the region at %#llx, not %#llx", m->name, what,
		 (unsigned long long)addr, (unsigned long long)size,
		 told ? (unsigned long long)told->base : 0,
		 want ? (unsigned long long)want->base : 0);
}

/* An address at an edge of something, or anywhere near. */
static uint64_t an_address(const struct table *t)
{
	const struct sio_region *r = &t->region[draw(t->n)];
	uint64_t kind = draw(6), in = draw(r->size);

	switch (kind) {
	case 0:
		return r->base - (r->base > 0);
	case 1:
		return r->base;
	case 2:
		return last_of(r);
	case 3:
		return last_of(r) + (last_of(r) < UINT64_MAX);
	case 4:
		return r->base - (r->base > in ? in : 0);
	default:
		return r->base + in;
	}
}

static void ask(const struct sio_addrmap *m)
{
	const struct table *t = table_of(m);
	const struct sio_region *next;
	uint64_t addr, size;

	if (t->n != m->n)
		sim_fail("tables", "%s: %zu regions, not %zu", m->name, m->n, t->n);
	if (t->n == 0)
		return;
	addr = an_address(t);
	same_region(m, "at", addr, 1, sio_addrmap_find(m, addr), holder(t, addr));
	/* What reaches just to the next one's first byte, or just not. */
	next = between(t, addr, UINT64_MAX);
	size = next && next->base > addr ? next->base - addr + draw(2) : 1 + draw(0x3000);
	if (size - 1 > UINT64_MAX - addr)
		size = UINT64_MAX - addr;
	if (size > 0)
		same_region(m, "in", addr, size, sio_addrmap_overlap(m, addr, size),
			    between(t, addr, addr + (size - 1)));
}

void __real_sio_addrmap_init(struct sio_addrmap *m, const char *name);
void __wrap_sio_addrmap_init(struct sio_addrmap *m, const char *name);
void __wrap_sio_addrmap_init(struct sio_addrmap *m, const char *name)
{
	empty(m);
	__real_sio_addrmap_init(m, name);
}

void __real_sio_addrmap_done(struct sio_addrmap *m);
void __wrap_sio_addrmap_done(struct sio_addrmap *m);
void __wrap_sio_addrmap_done(struct sio_addrmap *m)
{
	empty(m);
	__real_sio_addrmap_done(m);
}

static int may_add(const struct table *t, const struct sio_region *r)
{
	if (r->size == 0 || r->size - 1 > UINT64_MAX - r->base)
		return -EINVAL;
	return between(t, r->base, last_of(r)) ? -EEXIST : 0;
}

int __real_sio_addrmap_add(struct sio_addrmap *m, const struct sio_region *region,
			   struct sio_err *reterr);
int __wrap_sio_addrmap_add(struct sio_addrmap *m, const struct sio_region *region,
			   struct sio_err *reterr);
int __wrap_sio_addrmap_add(struct sio_addrmap *m, const struct sio_region *region,
			   struct sio_err *reterr)
{
	struct table *t = table_of(m);
	int rc = __real_sio_addrmap_add(m, region, reterr), want = may_add(t, region);

	if (rc != want && rc != -ENOMEM)
		sim_fail("tables", "%s: %#llx + %#llx is added: %d, not %d", m->name,
			 (unsigned long long)region->base, (unsigned long long)region->size, rc,
			 want);
	if (rc < 0)
		return rc;
	if (t->n == t->max) {
		t->max = t->max ? 2 * t->max : 8;
		t->region = realloc(t->region, t->max * sizeof(*t->region));
		assert(t->region);
	}
	t->region[t->n++] = *region;
	if (draw(ASKED) == 0)
		ask(m);
	return rc;
}

int __real_sio_addrmap_remove(struct sio_addrmap *m, uint64_t base);
int __wrap_sio_addrmap_remove(struct sio_addrmap *m, uint64_t base);
int __wrap_sio_addrmap_remove(struct sio_addrmap *m, uint64_t base)
{
	struct table *t = table_of(m);
	int rc = __real_sio_addrmap_remove(m, base);
	size_t i = 0;

	while (i < t->n && t->region[i].base != base)
		i++;
	if (rc != (i < t->n ? 0 : -ENOENT))
		sim_fail("tables", "%s: %#llx is removed: %d", m->name, (unsigned long long)base,
			 rc);
	if (i < t->n)
		t->region[i] = t->region[--t->n];
	if (draw(ASKED) == 0)
		ask(m);
	return rc;
}

/* ---- IOMMU domains ---- */
static void ask_domain(const struct sio_iommu *d)
{
	const struct table *t = table_of(&d->map);
	const struct sio_region *r;
	struct sio_iommu_hit hit;
	uint32_t access;
	uint64_t addr;
	int rc, want;

	addr = an_address(t);
	access = 1 + (uint32_t)draw(3);
	r = holder(t, addr);
	want = !r ? -ENOENT : (r->access & access) == access ? 0 : -EACCES;
	rc = sio_iommu_translate(d, (struct sio_dev_addr){addr}, access, &hit);
	if (rc != want)
		sim_fail("tables", "domain of %s: %#llx for %u: %d, not %d", d->map.name,
			 (unsigned long long)addr, access, rc, want);
	if (rc == 0 && (hit.object != r->object || hit.offset != r->offset + (addr - r->base) ||
			hit.length != r->size - (addr - r->base) || hit.access != r->access))
		sim_fail("tables", "domain of %s: %#llx leads to %#llx + %#llx", d->map.name,
			 (unsigned long long)addr, (unsigned long long)hit.offset,
			 (unsigned long long)hit.length);
}

int __real_sio_iommu_map(struct sio_iommu *d, struct sio_dev_addr iova, uint64_t len, void *object,
			 uint64_t offset, uint32_t access, struct sio_err *reterr);
int __wrap_sio_iommu_map(struct sio_iommu *d, struct sio_dev_addr iova, uint64_t len, void *object,
			 uint64_t offset, uint32_t access, struct sio_err *reterr);
int __wrap_sio_iommu_map(struct sio_iommu *d, struct sio_dev_addr iova, uint64_t len, void *object,
			 uint64_t offset, uint32_t access, struct sio_err *reterr)
{
	int rc = __real_sio_iommu_map(d, iova, len, object, offset, access, reterr);

	for (unsigned i = 0; rc == 0 && i < 2; i++)
		ask_domain(d);
	return rc;
}

/* ---- ranges ---- */
/* The lowest place; false: there is none. */
static bool place(const struct sio_range *r, uint64_t len, uint64_t align, uint64_t highest,
		  uint64_t *ret)
{
	const struct table *t = table_of(&r->taken);
	uint64_t end = r->base + (r->size - 1);
	bool found = false;

	if (end > highest)
		end = highest;
	/* It begins at the start, or behind something. */
	for (size_t i = 0; i <= t->n; i++) {
		uint64_t at = i == t->n ? r->base : last_of(&t->region[i]) + 1;

		if (at < r->base || at > UINT64_MAX - (align - 1))
			continue;
		at = (at + align - 1) / align * align;
		if (at > end || end - at < len - 1 || (found && at >= *ret) ||
		    between(t, at, at + (len - 1)))
			continue;
		*ret = at;
		found = true;
	}
	return found;
}

int __real_sio_range_alloc(struct sio_range *r, uint64_t len, uint64_t align, uint64_t highest,
			   uint64_t *ret_addr, struct sio_err *reterr);
int __wrap_sio_range_alloc(struct sio_range *r, uint64_t len, uint64_t align, uint64_t highest,
			   uint64_t *ret_addr, struct sio_err *reterr);
int __wrap_sio_range_alloc(struct sio_range *r, uint64_t len, uint64_t align, uint64_t highest,
			   uint64_t *ret_addr, struct sio_err *reterr)
{
	bool asked = len && align && !(align & (align - 1)) && draw(ASKED) == 0, there = false;
	uint64_t want = 0;
	int rc;

	if (asked)
		there = place(r, len, align, highest, &want);
	rc = __real_sio_range_alloc(r, len, align, highest, ret_addr, reterr);
	if (asked && rc != -ENOMEM && (rc != (there ? 0 : -ENOSPC) || (there && *ret_addr != want)))
		sim_fail("tables", "range of %s: %#llx bytes at a multiple of %#llx: %d, %#llx",
			 r->taken.name, (unsigned long long)len, (unsigned long long)align, rc,
			 rc ? 0 : (unsigned long long)*ret_addr);
	return rc;
}

/* ---- packets, one by one ---- */
static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t behind_page(uint64_t at)
{
	return at / 4096 * 4096 + 4096;
}

static uint64_t writes(const struct sio_pcie *p, uint64_t at, uint64_t end)
{
	uint64_t n = 0;

	for (at &= ~3ull; at < end; n++)
		at = least(least(at + p->max_payload, behind_page(at)), end);
	return n;
}

static uint64_t completions(const struct sio_pcie *p, uint64_t at, uint64_t end)
{
	uint64_t n = 0;

	for (; at < end; n++)
		at = end - at <= p->max_payload
			     ? end
			     : (at + p->max_payload) / p->read_completion_boundary *
				       p->read_completion_boundary;
	return n;
}

static uint64_t reads(const struct sio_pcie *p, uint64_t at, uint64_t end, uint64_t *ret)
{
	uint64_t n = 0, to;

	for (*ret = 0, at &= ~3ull; at < end; n++, at = to) {
		to = least(least(at + p->max_read_request, behind_page(at)), end);
		*ret += completions(p, at, to);
	}
	return n;
}

/* Of those within a page, one in so many. */
static bool counted(uint64_t addr, uint64_t len)
{
	static unsigned calls;

	if (len == 0 || len > LONGEST || addr > UINT64_MAX - 2 * LONGEST)
		return false;
	return addr / 4096 != (addr + len - 1) / 4096 || calls++ % COUNTED == 0;
}

void __real_sio_pcie_write(const struct sio_pcie *p, uint64_t addr, uint64_t len,
			   struct sio_pcie_count *count);
void __wrap_sio_pcie_write(const struct sio_pcie *p, uint64_t addr, uint64_t len,
			   struct sio_pcie_count *count);
void __wrap_sio_pcie_write(const struct sio_pcie *p, uint64_t addr, uint64_t len,
			   struct sio_pcie_count *count)
{
	uint64_t before = count->write_tlps;

	__real_sio_pcie_write(p, addr, len, count);
	if (counted(addr, len) && count->write_tlps - before != writes(p, addr, addr + len))
		sim_fail("tables", "%llu bytes written at %#llx are %llu packets",
			 (unsigned long long)len, (unsigned long long)addr,
			 (unsigned long long)(count->write_tlps - before));
}

void __real_sio_pcie_read(const struct sio_pcie *p, uint64_t addr, uint64_t len,
			  struct sio_pcie_count *count);
void __wrap_sio_pcie_read(const struct sio_pcie *p, uint64_t addr, uint64_t len,
			  struct sio_pcie_count *count);
void __wrap_sio_pcie_read(const struct sio_pcie *p, uint64_t addr, uint64_t len,
			  struct sio_pcie_count *count)
{
	uint64_t requests = count->read_requests, answers = count->completions, want;

	__real_sio_pcie_read(p, addr, len, count);
	if (!counted(addr, len))
		return;
	if (count->read_requests - requests != reads(p, addr, addr + len, &want) ||
	    count->completions - answers != want)
		sim_fail("tables", "%llu bytes read at %#llx are %llu requests, %llu completions",
			 (unsigned long long)len, (unsigned long long)addr,
			 (unsigned long long)(count->read_requests - requests),
			 (unsigned long long)(count->completions - answers));
}

/* It is there from the first power-on: nothing has to be begun. */
const struct sim_oracle sim_oracle_tables = {.name = "tables"};
