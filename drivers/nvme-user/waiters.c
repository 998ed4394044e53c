/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "waiters.h"

bool sio_nvme_waiters_add(struct sio_nvme_waiters *w, const struct sio_nvme_waiter *waiter)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->list[i].node == waiter->node && w->list[i].interrupt == waiter->interrupt &&
		    w->list[i].borrower == waiter->borrower)
			return true;
	if (w->n == SIO_NVME_WAITERS)
		return false;
	w->list[w->n++] = *waiter;
	return true;
}

static void take_out(struct sio_nvme_waiters *w, uint32_t i)
{
	w->n--;
	memmove(&w->list[i], &w->list[i + 1], (w->n - i) * sizeof(w->list[0]));
}

void sio_nvme_waiters_end(struct sio_nvme_waiters *w, uint64_t borrower)
{
	for (uint32_t i = 0; i < w->n;) {
		if (w->list[i].borrower == borrower)
			take_out(w, i);
		else
			i++;
	}
}

bool sio_nvme_waiters_next(struct sio_nvme_waiters *w, struct sio_nvme_waiter *ret)
{
	if (w->n == 0)
		return false;
	*ret = w->list[0];
	take_out(w, 0);
	return true;
}
