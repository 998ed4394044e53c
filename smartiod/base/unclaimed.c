/* SPDX-License-Identifier: BSD-2-Clause */
/* Unclaimed resources: what the port has kept since before this daemon was started. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/unclaimed.h"

int smartiod_unclaimed_add(struct smartiod *d, const struct sio_list_entry *e)
{
	struct smartiod_unclaimed *l;

	if (e->state != SIO_STATE_LIVE)
		return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->kind = e->kind;
	l->node = e->node;
	l->owner = e->owner;
	l->address = e->address;
	l->length = e->length;
	l->device = e->device;
	l->cookie = e->cookie;
	l->grant = e->grant;
	l->fd[0] = l->fd[1] = -1;
	smartiod_tree_add(&d->recovery.unclaimed, &l->by_id, e->id);
	return 0;
}

struct smartiod_unclaimed *smartiod_unclaimed_after(struct smartiod *d, uint64_t after)
{
	return SMARTIOD_OF(smartiod_tree_after(&d->recovery.unclaimed, after),
			   struct smartiod_unclaimed, by_id);
}

struct smartiod_unclaimed *smartiod_unclaimed_get(struct smartiod *d, uint32_t kind, uint64_t owner,
						  uint64_t id, struct sio_err *reterr)
{
	struct smartiod_unclaimed *l = SMARTIOD_OF(smartiod_tree_find(&d->recovery.unclaimed, id),
						   struct smartiod_unclaimed, by_id);

	if (l && l->kind == kind && l->owner == owner)
		return l;
	sio_fail(reterr, -ENOENT,
		 "the port has nothing with number %" PRIu64 " of that kind for owner %" PRIu64, id,
		 owner);
	return NULL;
}

bool smartiod_unclaimed_in_group(const struct smartiod_unclaimed *l, uint32_t what, uint32_t group)
{
	return l->kind == SIO_KIND_MEM && group < SMARTIOD_GROUPS &&
	       (uint32_t)l->device == (what | group);
}

struct smartiod_unclaimed *smartiod_unclaimed_shadow(struct smartiod *d, uint64_t owner)
{
	struct smartiod_unclaimed *l = smartiod_unclaimed_after(d, 0);

	while (l && (l->kind != SIO_KIND_SHADOW || l->owner != owner))
		l = smartiod_unclaimed_after(d, l->by_id.key);
	return l;
}

int smartiod_unclaimed_check(const struct smartiod_unclaimed *l, struct sio_err *reterr)
{
	if (l->fd[0] >= 0 && (l->kind != SIO_KIND_IRQ || l->fd[1] >= 0))
		return 0;
	return sio_fail(reterr, -EMFILE, "its descriptors could not be opened again");
}

int smartiod_unclaimed_take_fd(struct smartiod_unclaimed *l, unsigned index)
{
	int fd = l->fd[index];

	l->fd[index] = -1;
	return fd;
}

void smartiod_unclaimed_done(struct smartiod *d, struct smartiod_unclaimed *l)
{
	smartiod_close_fd(d, &l->fd[0]);
	smartiod_close_fd(d, &l->fd[1]);
	smartiod_tree_remove(&d->recovery.unclaimed, &l->by_id);
	free(l);
}

void smartiod_unclaimed_free_all(struct smartiod *d)
{
	struct smartiod_unclaimed *l;

	while ((l = smartiod_unclaimed_after(d, 0)))
		smartiod_unclaimed_done(d, l);
}
