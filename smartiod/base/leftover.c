/* SPDX-License-Identifier: BSD-2-Clause */
/* What the port has since before this daemon was started, until somebody says that it is his. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/leftover.h"

int smartiod_leftover_add(struct smartiod *d, const struct sio_list_entry *e)
{
	struct smartiod_leftover *l;

	if (e->state != SIO_STATE_LIVE)
		return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->kind = e->kind;
	l->owner = e->owner;
	l->address = e->address;
	l->length = e->length;
	l->device = e->device;
	l->cookie = e->cookie;
	l->fd[0] = l->fd[1] = -1;
	smartiod_tree_add(&d->recovery.leftovers, &l->by_id, e->id);
	return 0;
}

struct smartiod_leftover *smartiod_leftover_after(struct smartiod *d, uint64_t after)
{
	return SMARTIOD_OF(smartiod_tree_after(&d->recovery.leftovers, after),
			   struct smartiod_leftover, by_id);
}

struct smartiod_leftover *smartiod_leftover_get(struct smartiod *d, uint32_t kind, uint64_t owner,
						uint64_t id, struct sio_err *reterr)
{
	struct smartiod_leftover *l = SMARTIOD_OF(smartiod_tree_find(&d->recovery.leftovers, id),
						  struct smartiod_leftover, by_id);

	if (l && l->kind == kind && l->owner == owner)
		return l;
	sio_fail(reterr, -ENOENT,
		 "the port has nothing with number %" PRIu64 " of that kind for owner %" PRIu64, id,
		 owner);
	return NULL;
}

int smartiod_leftover_take_fd(struct smartiod_leftover *l, unsigned index)
{
	int fd = l->fd[index];

	l->fd[index] = -1;
	return fd;
}

void smartiod_leftover_done(struct smartiod *d, struct smartiod_leftover *l)
{
	smartiod_close_fd(d, &l->fd[0]);
	smartiod_close_fd(d, &l->fd[1]);
	smartiod_tree_remove(&d->recovery.leftovers, &l->by_id);
	free(l);
}

void smartiod_leftovers_free_all(struct smartiod *d)
{
	struct smartiod_leftover *l;

	while ((l = smartiod_leftover_after(d, 0)))
		smartiod_leftover_done(d, l);
}
