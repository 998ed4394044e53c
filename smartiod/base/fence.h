/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of the events that a program was sent it has handled. Events are numbered in the order in
 * which the daemon sends them, to whomever. A fence is one more event, which the program's library
 * answers when it has handled all those before it. Pure logic.
 */
#ifndef SMARTIOD_FENCE_H
#define SMARTIOD_FENCE_H

#include <stdbool.h>
#include <stdint.h>

struct smartiod_fence {
	uint64_t told;	/* the last event that the program was sent; 0: none */
	uint64_t sent;	/* the last event that stands before a fence; 0: there was no fence */
	uint64_t taken; /* the last event that it is known to have handled, and all before it */
};

/* It is sent event @number, which is no fence. */
void smartiod_fence_tell(struct smartiod_fence *f, uint64_t number);
/*
 * Is it to be sent a fence, so that it is known whether it has handled what it was sent after event
 * @since? Then it counts as sent: *ret_number is what it says.
 */
bool smartiod_fence_send(struct smartiod_fence *f, uint64_t since, uint64_t *ret_number);
/* It has handled fence @number. -EINVAL: it was sent no such one. */
int smartiod_fence_take(struct smartiod_fence *f, uint64_t number);
/* Has it not answered a fence yet? */
bool smartiod_fence_late(const struct smartiod_fence *f);

#endif
