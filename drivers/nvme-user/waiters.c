/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "waiters.h"

bool sio_nvme_waiters_add(struct sio_nvme_waiters *w, const struct sio_nvme_waiter *waiter)
{
	uint32_t own = 0;

	for (uint32_t i = 0; i < w->n; i++) {
		if (w->list[i].borrower != waiter->borrower)
			continue;
		own++;
		if (w->list[i].node == waiter->node && w->list[i].interrupt == waiter->interrupt)
			return true;
	}
	if (w->n == SIO_NVME_WAITERS || own >= SIO_NVME_WAITERS_EACH)
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

void sio_nvme_waiters_asks(struct sio_nvme_waiters *w, uint64_t borrower, uint32_t interrupt)
{
	for (uint32_t i = 0; i < w->n; i++) {
		if (w->list[i].borrower == borrower && w->list[i].interrupt == interrupt) {
			take_out(w, i);
			return;
		}
	}
}

void sio_nvme_waiters_look(struct sio_nvme_waiters *w, const struct sio_nvme_ledger *l,
			   uint64_t now)
{
	for (uint32_t i = 0; i < w->n;) {
		if (w->list[i].until && now >= w->list[i].until) {
			take_out(w, i);
			continue;
		}
		w->list[i].pairs = sio_nvme_ledger_of_node(l, w->list[i].node);
		i++;
	}
}

uint32_t sio_nvme_waiters_before(const struct sio_nvme_waiters *w, uint32_t node, uint32_t pairs,
				 bool even)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n; i++)
		n += w->list[i].node != node &&
		     (w->list[i].pairs < pairs || (even && w->list[i].pairs == pairs));
	return n;
}

int sio_nvme_waiters_turn(struct sio_nvme_waiters *w, const struct sio_nvme_ledger *l, bool places,
			  uint64_t until)
{
	const uint32_t free = l->pairs - l->used;

	for (uint32_t i = 0; i < w->n; i++) {
		struct sio_nvme_waiter *one = &w->list[i];

		if (one->until ||
		    (free <= sio_nvme_waiters_before(w, one->node, one->pairs, false) &&
		     !(places && one->pairs)))
			continue;
		one->until = until;
		return (int)i;
	}
	return -1;
}

void sio_nvme_waiters_drop(struct sio_nvme_waiters *w, int i)
{
	take_out(w, (uint32_t)i);
}
