/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "core/iommu.h"
#include "prng.h"

#define IOVA(address)                                                                              \
	(struct sio_dev_addr)                                                                      \
	{                                                                                          \
		address                                                                            \
	}
#define PAGES 64
#define PAGE ((uint64_t)SIO_PAGE_SIZE)

/* The obvious domain: per page what lies there. */
struct naive {
	uint64_t origin;
	struct {
		void *object;
		uint64_t offset, left; /* of the page; pages to the mapping's end, this one too */
		uint32_t access;
		bool begins;
	} page[PAGES];
};

static char objects[8];

static void try_map(struct sio_iommu *d, struct naive *n)
{
	unsigned at = (unsigned)prng_below(PAGES), len = 1 + (unsigned)prng_below(10);
	uint32_t access = (uint32_t)prng_below(4);
	uint64_t offset = prng_below(1000) * PAGE;
	void *object = &objects[prng_below(8)];
	int rc, want = 0;

	if (at + len > PAGES)
		return;
	for (unsigned i = at; i < at + len; i++)
		want = n->page[i].object ? -EEXIST : want;
	want = access ? want : -EINVAL;
	rc = sio_iommu_map(d, IOVA(n->origin + at * PAGE), len * PAGE, object, offset, access,
			   NULL);
	assert_int_equal(rc, want);
	for (unsigned i = 0; rc == 0 && i < len; i++) {
		n->page[at + i].object = object;
		n->page[at + i].offset = offset + i * PAGE;
		n->page[at + i].left = len - i;
		n->page[at + i].access = access;
		n->page[at + i].begins = i == 0;
	}
}

static void try_unmap(struct sio_iommu *d, struct naive *n)
{
	unsigned at = (unsigned)prng_below(PAGES);
	bool begins = n->page[at].begins;

	assert_int_equal(sio_iommu_unmap(d, IOVA(n->origin + at * PAGE)), begins ? 0 : -ENOENT);
	if (begins)
		memset(&n->page[at], 0, n->page[at].left * sizeof(n->page[0]));
}

static void compare(const struct sio_iommu *d, const struct naive *n)
{
	unsigned at = (unsigned)prng_below(PAGES), in = (unsigned)prng_below(PAGE);
	uint32_t access = 1 + (uint32_t)prng_below(3);
	struct sio_iommu_hit hit = {0};
	int rc = sio_iommu_translate(d, IOVA(n->origin + at * PAGE + in), access, &hit);

	if (!n->page[at].object) {
		assert_int_equal(rc, -ENOENT);
		return;
	}
	if ((n->page[at].access & access) != access) {
		assert_int_equal(rc, -EACCES);
		assert_null(hit.object);
		return;
	}
	assert_int_equal(rc, 0);
	assert_ptr_equal(hit.object, n->page[at].object);
	assert_int_equal(hit.offset, n->page[at].offset + in);
	assert_int_equal(hit.length, n->page[at].left * PAGE - in);
	assert_int_equal(hit.access, n->page[at].access);
}

static void agrees_with_a_list_of_pages(void **state)
{
	static const uint64_t origins[] = {0, 0xfee00000, 0 - PAGES * PAGE};
	unsigned rounds = prng_start(3, 6000);

	(void)state;
	for (size_t o = 0; o < 3; o++) {
		struct naive n = {.origin = origins[o]};
		struct sio_iommu d;

		sio_iommu_init(&d, "nvme0");
		for (unsigned i = 0; i < rounds; i++) {
			if (prng_chance(30))
				try_map(&d, &n);
			else if (prng_chance(30))
				try_unmap(&d, &n);
			compare(&d, &n);
		}
		sio_iommu_done(&d);
	}
}

static void refuses_what_no_page_table_can_say(void **state)
{
	struct sio_err err = {0};
	struct sio_iommu d;

	(void)state;
	sio_iommu_init(&d, "nvme0");
	assert_int_equal(sio_iommu_map(&d, IOVA(0x1001), PAGE, objects, 0, 3, &err), -EINVAL);
	assert_string_equal(err.text, "nvme0: 0x1001 + 0x1000 at offset 0; multiples of 4096 are "
				      "right");
	assert_int_equal(sio_iommu_map(&d, IOVA(0x1000), 1, objects, 0, 3, &err), -EINVAL);
	assert_int_equal(sio_iommu_map(&d, IOVA(0x1000), PAGE, objects, 8, 3, &err), -EINVAL);
	assert_int_equal(sio_iommu_map(&d, IOVA(0x1000), 0, objects, 0, 3, &err), -EINVAL);
	assert_int_equal(sio_iommu_map(&d, IOVA(0x1000), PAGE, objects, 0, 0, &err), -EINVAL);
	assert_int_equal(sio_iommu_map(&d, IOVA(0x1000), PAGE, objects, 0, 4, &err), -EINVAL);
	assert_int_equal(sio_iommu_map(&d, IOVA(0 - PAGE), 2 * PAGE, objects, 0, 3, &err), -EINVAL);
	assert_int_equal(sio_iommu_map(&d, IOVA(0), 2 * PAGE, objects, 0 - PAGE, 3, &err), -EINVAL);
	assert_int_equal(d.map.n, 0);
	sio_iommu_done(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_list_of_pages),
		cmocka_unit_test(refuses_what_no_page_table_can_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
