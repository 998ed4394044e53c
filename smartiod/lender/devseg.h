/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal to lender/: the directory of a device's segments, of devseg.c and devseg_again.c. */
#ifndef SMARTIOD_DEVSEG_H
#define SMARTIOD_DEVSEG_H

#include "smartiod/lender/lend.h"

/* What ALLOC has beside the memory, so that the next daemon knows what it is for. */
#define SMARTIOD_COOKIE_DEV_SEG (1ULL << 63)
#define SMARTIOD_COOKIE_PRIVATE (1ULL << 32)

static inline uint64_t smartiod_dev_seg_cookie(const struct smartiod_dev_seg *s)
{
	return SMARTIOD_COOKIE_DEV_SEG | (s->private_to ? SMARTIOD_COOKIE_PRIVATE : 0) | s->id;
}

/* @private_to: a borrow; 0: shared. NULL: there is none. */
struct smartiod_dev_seg *smartiod_dev_seg_find(const struct smartiod_device *dev,
					       uint64_t private_to, uint32_t id);
/* How many a borrow has made: one program cannot fill the lender's memory with entries. */
unsigned smartiod_dev_seg_count(const struct smartiod_loan *l);
/* Is it kept for the program of @l, or for any? */
bool smartiod_dev_seg_is_for(const struct smartiod_dev_seg *s, const struct smartiod_loan *l);
int smartiod_dev_seg_check_type(uint32_t memtype, struct sio_err *reterr);
void smartiod_dev_seg_charge(struct smartiod *d, const struct smartiod_loan *l,
			     struct smartiod_segment *seg);
/* Take it out of the directory; its memory, if it is here, goes when nobody uses it. */
void smartiod_dev_seg_drop(struct smartiod *d, struct smartiod_device *dev,
			   struct smartiod_dev_seg *s, bool owner_gone);
/* Has every daemon that is expected reported what it has? */
bool smartiod_all_have_reported(const struct smartiod *d);
/* Has everybody said who is connected to it? To a private one only its maker can be. */
bool smartiod_dev_seg_is_known(struct smartiod *d, const struct smartiod_dev_seg *s);
/* @node made device segment @uid, which is no more. */
void smartiod_dev_seg_notify_gone(struct smartiod *d, const struct smartiod_device *dev,
				  uint32_t node, uint64_t uid);

#endif
