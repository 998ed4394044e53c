/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's lock. Whoever had it when the process forked is no thread of the child: what that
 * calls against the rules finds the lock free, and the library refuses it.
 */
#include "client.h"

void sio_nvme_lock(struct smartio_nvme *n)
{
	unsigned tries = 0;

	/* pairs with sio_nvme_unlock() */
	while (__atomic_exchange_n(&n->lock, 1, __ATOMIC_ACQUIRE) && !sio_nvme_is_childs(n))
		sio_nvme_pause(&tries);
}

bool sio_nvme_trylock(struct smartio_nvme *n)
{
	/* pairs with sio_nvme_unlock() */
	return !__atomic_exchange_n(&n->lock, 1, __ATOMIC_ACQUIRE);
}

void sio_nvme_unlock(struct smartio_nvme *n)
{
	__atomic_store_n(&n->lock, 0, __ATOMIC_RELEASE); /* pairs with sio_nvme_lock() */
}
