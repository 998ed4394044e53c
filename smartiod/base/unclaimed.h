/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unclaimed resources: what the port has kept since before this daemon was started and no program
 * has claimed yet (restart/).
 */
#ifndef SMARTIOD_UNCLAIMED_H
#define SMARTIOD_UNCLAIMED_H

#include "smartiod/base/state.h"

/* Something that the port has since before we were started. */
struct smartiod_unclaimed {
	struct smartiod_tree_node by_id; /* in recovery->unclaimed; key: the port's id */
	/* SIO_KIND_MEM, _BAR, _IRQ, _MAP, _SHADOW, _DMA, _DMA_RANGE; of a map its peer */
	uint32_t kind, node;
	/* A shadow that the port is ending, and then its owner's windows, or all that it has. */
	bool ending, then_all;
	uint64_t owner, address, length, device, cookie, grant;
	int fd[2];
	uint64_t fd_offset; /* of what is in fd[0] */
};

int smartiod_unclaimed_add(struct smartiod *d, const struct sio_list_entry *e);
/* The one of this kind, owner and number; NULL with *reterr ENOENT. */
struct smartiod_unclaimed *smartiod_unclaimed_get(struct smartiod *d, uint32_t kind, uint64_t owner,
						  uint64_t id, struct sio_err *reterr);
/* Is it memory of that multicast group? @what: SIO_LIST_MEMBER, _SENDER. */
bool smartiod_unclaimed_in_group(const struct smartiod_unclaimed *l, uint32_t what, uint32_t group);
/* The shadow of this owner; NULL. */
struct smartiod_unclaimed *smartiod_unclaimed_shadow(struct smartiod *d, uint64_t owner);
/* -EMFILE with *reterr: the port could not open its descriptors again. */
int smartiod_unclaimed_check(const struct smartiod_unclaimed *l, struct sio_err *reterr);
/* The first with an id greater than @after; NULL. */
struct smartiod_unclaimed *smartiod_unclaimed_after(struct smartiod *d, uint64_t after);
/* It is somebody's now: forget it. Descriptors that were not taken are closed. */
void smartiod_unclaimed_done(struct smartiod *d, struct smartiod_unclaimed *l);
/* Take a descriptor of it; -1: there is none. */
int smartiod_unclaimed_take_fd(struct smartiod_unclaimed *l, unsigned index);
void smartiod_unclaimed_free_all(struct smartiod *d);

/* Are others than those of before not served yet? */
static inline bool smartiod_recovering(const struct smartiod *d)
{
	return d->recovery.grace != NULL;
}

#endif
