/* SPDX-License-Identifier: BSD-2-Clause */
/* Views of BAR pages (barview.c), for the code that grants them (bargrant.c). */
#ifndef SMARTIOD_BARVIEW_H
#define SMARTIOD_BARVIEW_H

#include "smartiod/device/devclass.h"
#include "smartiod/lender/lend.h"

/* The open view of a run of pages, for @access; NULL. */
struct smartiod_view *smartiod_view_find(struct smartiod_loan *l, uint32_t bar, uint32_t access,
					 uint64_t offset, uint64_t length);
/* Where in its BAR view @id of borrow @borrow begins. False: the view has ended. */
bool smartiod_view_starts(struct smartiod *d, uint64_t borrow, uint64_t id, uint64_t *ret);
/* Which BAR view @id of @l's is of, be it of before this daemon's start. False: it has ended. */
bool smartiod_view_bar(struct smartiod *d, const struct smartiod_loan *l, uint64_t id,
		       uint32_t *ret);
/* Records a view that the port has made: @evt. Nobody uses it yet. NULL: no memory. */
struct smartiod_view *smartiod_view_new(struct smartiod_loan *l, uint32_t bar, uint32_t access,
					const struct smartiod_bar_run *run,
					const struct smartiod_answer *a);
/* Releases one reference to the view. */
void smartiod_view_put(struct smartiod *d, struct smartiod_loan *l, struct smartiod_view *v);
/* Records that a view (and a grant of it) is in use by one mapping, as @what says. */
int smartiod_view_grant_add(struct smartiod_loan *l, const struct smartiod_view_grant *what);
/* A mapping of @node that uses the view has ended. */
void smartiod_view_grant_put(struct smartiod *d, struct smartiod_loan *l, uint32_t node,
			     uint64_t view, uint64_t grant);
/*
 * The same, without a request to the port about what was made of the view. *ret: the view, still
 * referenced. false: there is no such mapping.
 */
bool smartiod_view_grant_take(struct smartiod_loan *l, uint32_t node, uint64_t view, uint64_t grant,
			      struct smartiod_view_grant *ret_grant, struct smartiod_view **ret);
/*
 * Called when a view ends: if it was the last writable view of the registers, another borrow may
 * own them.
 */
void smartiod_view_drop_registers(struct smartiod_loan *l);

/*
 * overlay.c: restores a member of a group of before this daemon was started: @what, whose view is
 * of @bar. What is not what it claims to be is < 0, and ends with what nobody claims.
 */
int smartiod_member_again(struct smartiod *d, struct smartiod_loan *l, uint32_t bar,
			  const struct smartiod_view_grant *what, bool reset,
			  struct sio_err *reterr);

#endif
