/* SPDX-License-Identifier: BSD-2-Clause */
/* What is given back counts back exactly: accounts against a plain list of who has what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "core/policy.h"
#include "prng.h"
#include "smartio/uapi.h"
#include "smartiod/policy/account.h"

#define ACCOUNTS 4
#define CHARGES 64

static struct {
	int account; /* -1: nobody's */
	enum sio_quota quota;
	uint64_t amount;
} book[CHARGES];

static void assert_equal(const struct smartiod_account *a)
{
	for (int i = 0; i < ACCOUNTS; i++)
		for (unsigned q = 0; q < SIO_QUOTAS; q++) {
			uint64_t sum = 0;

			for (unsigned c = 0; c < CHARGES; c++)
				if (book[c].account == i && book[c].quota == q)
					sum += book[c].amount;
			assert_int_equal(a[i].used[q], sum);
		}
}

static void use_is_the_sum_of_what_is_there(void **state)
{
	static struct smartiod_charge charge[CHARGES];
	struct smartiod_account a[ACCOUNTS] = {{.charges = NULL}};
	struct sio_limit limits[SIO_QUOTAS];
	unsigned rounds = prng_start(7, 100000);

	(void)state;
	for (unsigned c = 0; c < CHARGES; c++)
		book[c].account = -1;
	for (unsigned q = 0; q < SIO_QUOTAS; q++)
		limits[q] = (struct sio_limit){q != 2, 100 + q};
	for (unsigned round = 0; round < rounds; round++) {
		unsigned c = prng_below(CHARGES), i = prng_below(ACCOUNTS);
		enum sio_quota q = prng_below(SIO_QUOTAS);
		uint64_t amount = prng_below(30);
		struct sio_err err;
		int rc;

		if (prng_below(200) == 0) {
			smartiod_account_end(&a[i]);
			for (unsigned k = 0; k < CHARGES; k++)
				if (book[k].account == (int)i)
					book[k].account = -1;
		} else if (book[c].account >= 0 || prng_below(10) == 0) {
			smartiod_charge_drop(&charge[c]); /* nobody's: nothing happens */
			book[c].account = -1;
		} else {
			rc = smartiod_account_check(&a[i], limits, q, amount, "x", "node", &err);
			assert_int_equal(rc, limits[q].set && a[i].used[q] + amount > limits[q].most
						     ? -ENOSPC
						     : 0);
			if (rc == 0) {
				smartiod_account_add(&a[i], &charge[c], q, amount);
				book[c].account = (int)i;
				book[c].quota = q;
				book[c].amount = amount;
			}
		}
		assert_equal(a);
	}
	for (unsigned i = 0; i < ACCOUNTS; i++)
		smartiod_account_end(&a[i]);
	for (unsigned c = 0; c < CHARGES; c++)
		assert_null(charge[c].account);
}

static void a_refusal_says_how_much_is_used(void **state)
{
	struct smartiod_account a = {.used = {0, 3, 48u << 20, 0}};
	struct sio_limit limits[SIO_QUOTAS] = {
		[SIO_QUOTA_WINDOWS] = {true, 3}, [SIO_QUOTA_DMA] = {true, 64u << 20}};
	struct sio_err err;

	(void)state;
	assert_int_equal(smartiod_account_check(&a, limits, SIO_QUOTA_DMA, 16u << 20, "", "", &err),
			 0);
	assert_int_equal(smartiod_account_check(&a, limits, SIO_QUOTA_DMA, 17u << 20,
						"node 8 (client)", "node", &err),
			 -ENOSPC);
	assert_int_equal(err.reason, SIO_OUT_OF_QUOTA);
	assert_string_equal(err.text, "node 8 (client) may have 64M (quotas.node.dma of the "
				      "cluster's file): it has 48M, and 17M more are wanted");
	assert_int_equal(smartiod_account_check(&a, limits, SIO_QUOTA_WINDOWS, 1, "program 12",
						"program", &err),
			 -ENOSPC);
	assert_string_equal(err.text, "program 12 may have 3 (quotas.program.windows of the "
				      "cluster's file): it has 3, and 1 more are wanted");
	assert_int_equal(
		smartiod_account_check(&a, limits, SIO_QUOTA_DMA, UINT64_MAX, "", "", &err),
		-ENOSPC);
	assert_int_equal(
		smartiod_account_check(&a, limits, SIO_QUOTA_BORROWS, UINT64_MAX, "", "", &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(use_is_the_sum_of_what_is_there),
		cmocka_unit_test(a_refusal_says_how_much_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
