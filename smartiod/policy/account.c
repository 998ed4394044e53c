/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "smartio/uapi.h"
#include "smartiod/policy/account.h"

/* "64M"; what is no round number is in bytes. */
static const char *amount_text(enum sio_quota quota, uint64_t amount, char out[24])
{
	static const char unit[] = " KMGT";
	unsigned u = 0;

	while (sio_quota_is_bytes(quota) && amount && amount % 1024 == 0 && u < 4) {
		amount /= 1024;
		u++;
	}
	snprintf(out, 24, "%" PRIu64 "%.*s", amount, u != 0, &unit[u]);
	return out;
}

int smartiod_account_check(const struct smartiod_account *a, const struct sio_limit *limits,
			   enum sio_quota quota, uint64_t amount, const char *who, const char *of,
			   struct sio_err *reterr)
{
	const struct sio_limit *l = &limits[quota];
	char most[24], used[24], more[24];
	uint64_t sum;

	if (!l->set || (!__builtin_add_overflow(a->used[quota], amount, &sum) && sum <= l->most))
		return 0;
	return sio_fail_exhausted(reterr, -ENOSPC, SIO_OUT_OF_QUOTA,
				  "%s may have %s (quotas.%s.%s of the cluster's file): it has %s, "
				  "and %s more are wanted",
				  who, amount_text(quota, l->most, most), of, sio_quota_name(quota),
				  amount_text(quota, a->used[quota], used),
				  amount_text(quota, amount, more));
}

void smartiod_account_add(struct smartiod_account *a, struct smartiod_charge *c,
			  enum sio_quota quota, uint64_t amount)
{
	*c = (struct smartiod_charge){.account = a,
				      .next = a->charges,
				      .prev = &a->charges,
				      .quota = quota,
				      .amount = amount};
	if (c->next)
		c->next->prev = &c->next;
	a->charges = c;
	a->used[quota] += amount;
}

void smartiod_charge_drop(struct smartiod_charge *c)
{
	if (!c->account)
		return;
	c->account->used[c->quota] -= c->amount;
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	*c = (struct smartiod_charge){.account = NULL};
}

void smartiod_account_end(struct smartiod_account *a)
{
	while (a->charges)
		smartiod_charge_drop(a->charges);
}
