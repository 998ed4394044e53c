/* SPDX-License-Identifier: BSD-2-Clause */
/* The lender's views of BAR pages (barview.c), for whoever hands them out (bargrant.c). */
#ifndef SMARTIOD_BARVIEW_H
#define SMARTIOD_BARVIEW_H

#include "smartiod/device/devclass.h"
#include "smartiod/lender/lend.h"

/* The open view of a run, for @access; NULL. */
struct smartiod_view *smartiod_view_find(struct smartiod_loan *l, uint32_t bar, uint32_t access,
					 uint64_t offset, uint64_t length);
/* Where in its BAR view @id of borrow @borrow begins. False: it is gone. */
bool smartiod_view_starts(struct smartiod *d, uint64_t borrow, uint64_t id, uint64_t *ret);
/* The port has made it: @evt. Nobody uses it yet. NULL: no memory. */
struct smartiod_view *smartiod_view_new(struct smartiod_loan *l, uint32_t bar, uint32_t access,
					const struct smartiod_bar_run *run,
					const struct smartiod_answer *a);
/* One user less. */
void smartiod_view_put(struct smartiod *d, struct smartiod_loan *l, struct smartiod_view *v);
/* Keep books that a view (and grant) is in use by one map, as @what says. */
int smartiod_view_grant_add(struct smartiod_loan *l, const struct smartiod_view_grant *what);
/* That map of @node's is gone. */
void smartiod_view_grant_put(struct smartiod *d, struct smartiod_loan *l, uint32_t node,
			     uint64_t view, uint64_t grant);
/* If the last writable view of the registers is gone others may have them. */
void smartiod_view_drop_registers(struct smartiod_loan *l);

#endif
