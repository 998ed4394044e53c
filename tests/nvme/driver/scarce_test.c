/* SPDX-License-Identifier: BSD-2-Clause */
/* A lease is given back while the client's host has no memory: over both ways, or not at all. */
#include <stdlib.h>

#include "client.h"
#include "common.h"
#include "manager.h"
#include "smartio/ext.h"
#include "surviving.h"

static unsigned fail_at; /* the n-th allocation from now on; 0: none */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return fail_at && --fail_at == 0 ? NULL : __real_malloc(size);
}

/* What is kept is had over both ways still: nobody else is given it when either is lost. */
static void a_lease_that_is_kept_is_kept_whole(void **state)
{
	struct smartio_nvme *n = two_ways(), *other = client();
	struct smartio_nvme_lease *l, *theirs;
	unsigned at = 0;
	int rc;

	(void)state;
	assert_ok(smartio_nvme_lease_take(n, "mine", 1, 0, 100, &l));
	for (;;) {
		fail_at = ++at;
		rc = smartio_nvme_lease_give(l);
		if (fail_at) /* as many were not asked for */
			break;
		assert_int_equal(rc, -ENOMEM);
		assert_text("no memory for a lease to be given back");
		assert_int_equal(fake.manager->leases.n, 1);
		for (unsigned i = 0; i < 2; i++) {
			const uint64_t *borrower = fake.manager->leases.list[0].borrower;

			assert_true(borrower[i] == way(n) || borrower[i] == way(n->second));
		}
	}
	fail_at = 0;
	assert_ok(rc);
	assert_true(at > 1);
	assert_ok(smartio_nvme_lease_take(other, "theirs", 1, 50, 100, &theirs));
	smartio_nvme_close(n);
	smartio_nvme_close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_lease_that_is_kept_is_kept_whole, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
