/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "smartiod/base/fence.h"

void smartiod_fence_tell(struct smartiod_fence *f, uint64_t number)
{
	f->told = number;
}

bool smartiod_fence_send(struct smartiod_fence *f, uint64_t since, uint64_t *ret_number)
{
	if (f->told <= since || f->told == f->sent)
		return false;
	f->sent = f->told;
	*ret_number = f->sent;
	return true;
}

int smartiod_fence_take(struct smartiod_fence *f, uint64_t number)
{
	if (number > f->sent)
		return -EINVAL;
	if (number > f->taken)
		f->taken = number;
	return 0;
}

bool smartiod_fence_late(const struct smartiod_fence *f)
{
	return f->taken < f->sent;
}
