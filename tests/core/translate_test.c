/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole way of a device's access: device address -> its IOMMU -> the lender's physical map ->
 * aperture -> look-up table -> the peer's IOMMU -> the peer's physical map -> memory. Compared with
 * a list of what was mapped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "core/addrmap.h"
#include "core/iommu.h"
#include "core/lut.h"
#include "core/range.h"
#include "prng.h"

#define PAGE ((uint64_t)SIO_PAGE_SIZE)
#define HOSTS 3
#define CHUNKS 4 /* of RAM per host */
#define CHUNK_PAGES 6
#define ENTRIES 24
#define MAPPINGS 24
#define BOTH (SIO_IOMMU_READ | SIO_IOMMU_WRITE)

enum { KIND_RAM = 1, KIND_APERTURE };

struct host {
	uint32_t node;
	bool iommu;
	struct sio_addrmap physical;
	struct sio_range ram, iova;
	struct sio_iommu domain; /* host 0: of the device; else of the adapter */
	uint64_t chunk[CHUNKS];
	char memory[CHUNKS]; /* stands for the chunk: only its address is used */
};

/* One mapping for the device, as the list has it, and what undoing it takes. */
struct mapping {
	uint64_t device_addr, len;
	void *object;
	uint64_t offset;
	uint32_t access;
	struct host *peer; /* NULL: the lender's own memory */
	uint64_t peer_bus;
	struct sio_window_at at;
};

struct world {
	struct host host[HOSTS];
	struct sio_lut lut;
	uint64_t aperture;
	struct mapping list[MAPPINGS];
	unsigned n;
};

struct hit {
	void *object;
	uint64_t offset, length;
};

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Into a host: through its IOMMU, if it has one, to a region of its physical map. */
static int enter(const struct host *h, uint64_t addr, uint32_t access, struct hit *ret,
		 uint32_t *ret_kind)
{
	struct sio_iommu_hit physical = {.offset = addr, .length = UINT64_MAX};
	const struct sio_region *r;
	int rc = 0;

	if (h->iommu)
		rc = sio_iommu_translate(&h->domain, (struct sio_dev_addr){addr}, access,
					 &physical);
	if (rc < 0)
		return rc;
	r = sio_addrmap_find(&h->physical, physical.offset);
	if (!r)
		return -EFAULT;
	*ret_kind = r->kind;
	ret->object = r->object;
	ret->offset = r->offset + (physical.offset - r->base);
	ret->length = min(physical.length, sio_region_last(r) - physical.offset + 1);
	return 0;
}

static int translate(const struct world *w, uint64_t addr, uint32_t access, struct hit *ret)
{
	struct sio_lut_target target;
	uint64_t length, first;
	uint32_t kind;
	int rc = enter(&w->host[0], addr, access, ret, &kind);

	if (rc < 0 || kind == KIND_RAM)
		return rc;
	first = ret->length;
	rc = sio_lut_translate(&w->lut, (struct sio_window_at){ret->offset}, &target, &length);
	if (rc < 0)
		return rc;
	rc = enter(&w->host[target.bus.node / 4 - 1], target.bus.addr, access, ret, &kind);
	if (rc < 0)
		return rc;
	assert_int_equal(kind, KIND_RAM);
	ret->length = min(ret->length, min(first, length));
	return 0;
}

/* The list's word. False: a fault. */
static bool listed(const struct world *w, uint64_t addr, uint32_t access, struct hit *ret)
{
	const struct host *lender = &w->host[0];

	for (unsigned i = 0; i < w->n; i++) {
		const struct mapping *m = &w->list[i];

		if (addr - m->device_addr < m->len && (m->access & access) == access) {
			*ret = (struct hit){m->object, m->offset + (addr - m->device_addr), 1};
			return true;
		}
	}
	for (unsigned i = 0; !lender->iommu && i < CHUNKS; i++) {
		if (addr - lender->chunk[i] < CHUNK_PAGES * PAGE) {
			*ret = (struct hit){(void *)&lender->memory[i], addr - lender->chunk[i], 1};
			return true;
		}
	}
	return false;
}

static void make_host(struct host *h, unsigned index, bool iommu)
{
	uint64_t base = (index + 1) * 0x100000000u;
	struct sio_region r = {.size = CHUNK_PAGES * PAGE, .kind = KIND_RAM};

	*h = (struct host){.node = 4 * (index + 1), .iommu = iommu};
	sio_addrmap_init(&h->physical, "physical");
	sio_iommu_init(&h->domain, "domain");
	assert_int_equal(sio_range_init(&h->ram, "ram", base, 64 * PAGE, NULL), 0);
	assert_int_equal(sio_range_init(&h->iova, "iova", PAGE, 256 * PAGE, NULL), 0);
	for (unsigned i = 0; i < CHUNKS; i++) {
		/* Holes between some of them. */
		assert_int_equal(sio_range_alloc(&h->ram, r.size, PAGE << (i % 4),
						 SIO_RANGE_ANYWHERE, &h->chunk[i], NULL),
				 0);
		r.base = h->chunk[i];
		r.object = &h->memory[i];
		assert_int_equal(sio_addrmap_add(&h->physical, &r, NULL), 0);
	}
}

static void make_world(struct world *w, unsigned iommus)
{
	struct sio_region aperture = {.size = ENTRIES * PAGE, .kind = KIND_APERTURE};

	for (unsigned i = 0; i < HOSTS; i++)
		make_host(&w->host[i], i, iommus >> i & 1);
	assert_int_equal(sio_lut_init(&w->lut, "adapter", ENTRIES * PAGE, ENTRIES, NULL), 0);
	w->aperture = aperture.base = 0x9000000000;
	assert_int_equal(sio_addrmap_add(&w->host[0].physical, &aperture, NULL), 0);
	w->n = 0;
}

/* A bus address for @len bytes at @physical of @h; with an IOMMU one in its domain. */
static uint64_t grant(struct host *h, uint64_t physical, uint64_t len, uint32_t access)
{
	uint64_t iova;

	if (!h->iommu)
		return physical;
	assert_int_equal(sio_range_alloc(&h->iova, len, PAGE, SIO_RANGE_ANYWHERE, &iova, NULL), 0);
	assert_int_equal(sio_iommu_map(&h->domain, (struct sio_dev_addr){iova}, len, h, physical,
				       access, NULL),
			 0);
	return iova;
}

static void ungrant(struct host *h, uint64_t bus)
{
	if (!h->iommu)
		return;
	assert_int_equal(sio_iommu_unmap(&h->domain, (struct sio_dev_addr){bus}), 0);
	assert_int_equal(sio_range_free(&h->iova, bus), 0);
}

static void add_mapping(struct world *w)
{
	unsigned host = (unsigned)prng_below(HOSTS), chunk = (unsigned)prng_below(CHUNKS);
	unsigned page = (unsigned)prng_below(CHUNK_PAGES);
	uint32_t granted = 1 + (uint32_t)prng_below(3), wanted = 1 + (uint32_t)prng_below(3);
	struct host *lender = &w->host[0], *h = &w->host[host];
	struct mapping m = {.len = (1 + prng_below(CHUNK_PAGES - page)) * PAGE,
			    .object = &h->memory[chunk],
			    .offset = page * PAGE,
			    .access = lender->iommu ? wanted : BOTH};
	uint64_t physical = h->chunk[chunk] + m.offset;

	if (w->n == MAPPINGS)
		return;
	if (host != 0) {
		struct sio_lut_target target = {.bus = {.node = h->node}};

		m.peer = h;
		m.peer_bus = target.bus.addr = grant(h, physical, m.len, granted);
		if (sio_lut_map(&w->lut, &target, m.len, &m.at, NULL) < 0) {
			ungrant(h, m.peer_bus);
			return;
		}
		physical = w->aperture + m.at.offset;
		if (h->iommu)
			m.access &= granted;
	}
	m.device_addr = grant(lender, physical, m.len, wanted);
	w->list[w->n++] = m;
}

static void remove_mapping(struct world *w, unsigned i)
{
	struct mapping m = w->list[i];

	ungrant(&w->host[0], m.device_addr);
	if (m.peer) {
		assert_int_equal(sio_lut_unmap(&w->lut, m.at, m.len, NULL), 0);
		ungrant(m.peer, m.peer_bus);
	}
	w->list[i] = w->list[--w->n];
}

/* An address of interest: in or beside a mapping, or one of another domain. */
static uint64_t some_address(const struct world *w)
{
	const struct host *h = &w->host[prng_below(HOSTS)];

	if (w->n > 0 && prng_chance(70)) {
		const struct mapping *m = &w->list[prng_below(w->n)];

		return m->device_addr - PAGE + prng_below(m->len + 2 * PAGE);
	}
	if (prng_chance(50))
		return h->chunk[prng_below(CHUNKS)] - PAGE + prng_below(8 * PAGE);
	return prng_chance(50) ? w->aperture + prng_below(ENTRIES * PAGE) : prng_below(300 * PAGE);
}

/* One access, piece by piece, each checked at both ends. */
static void compare(const struct world *w, unsigned *hits, unsigned *faults)
{
	uint64_t addr = some_address(w), left = 1 + prng_below(3 * PAGE);
	uint32_t access = 1 + (uint32_t)prng_below(3);

	while (left > 0) {
		struct hit hit, first, last;
		int rc = translate(w, addr, access, &hit);
		uint64_t len;

		assert_int_equal(rc == 0, listed(w, addr, access, &first));
		if (rc < 0) {
			++*faults;
			return;
		}
		++*hits;
		len = min(left, hit.length);
		assert_true(listed(w, addr + len - 1, access, &last));
		assert_ptr_equal(hit.object, first.object);
		assert_ptr_equal(hit.object, last.object);
		assert_int_equal(hit.offset, first.offset);
		assert_int_equal(hit.offset + len - 1, last.offset);
		addr += len;
		left -= len;
	}
}

static void drop_world(struct world *w)
{
	while (w->n > 0)
		remove_mapping(w, w->n - 1);
	assert_int_equal(w->lut.n_used, 0);
	sio_lut_done(&w->lut);
	for (unsigned i = 0; i < HOSTS; i++) {
		assert_int_equal(w->host[i].domain.map.n, 0);
		assert_int_equal(w->host[i].iova.used, 0);
		sio_iommu_done(&w->host[i].domain);
		sio_addrmap_done(&w->host[i].physical);
		sio_range_done(&w->host[i].ram);
		sio_range_done(&w->host[i].iova);
	}
}

static void agrees_with_a_list_of_mappings(void **state)
{
	unsigned rounds = prng_start(6, 4000);

	(void)state;
	/* Each way to have the three IOMMUs on or off. */
	for (unsigned iommus = 0; iommus < 1u << HOSTS; iommus++) {
		unsigned hits = 0, faults = 0;
		struct world w;

		make_world(&w, iommus);
		for (unsigned i = 0; i < rounds; i++) {
			if (prng_chance(30))
				add_mapping(&w);
			else if (w.n > 0 && prng_chance(30))
				remove_mapping(&w, (unsigned)prng_below(w.n));
			compare(&w, &hits, &faults);
		}
		assert_true(hits > rounds / 8);
		assert_true(faults > rounds / 8);
		drop_world(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_list_of_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
