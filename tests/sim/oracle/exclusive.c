/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An exclusive borrow is the only one: when a program is notified that it has a device, no other
 * program has it, unless both share it. A program has it no more if it died, if its host and the
 * lender's have lost each other, or a path to each other, since, if the device was pulled out since
 * it was requested, or if the program has ended its session since (smartiod did not answer in time,
 * as when the clock jumps, or did not take the program back); nor if the notification is so late
 * that one of these came between request and answer: a program that is stopped reads its answer
 * long after it was sent.
 */
#include <stdlib.h>

#include <utlist.h>

#include "run/run.h"
#include "run/listener.h"

struct borrow {
	uint32_t pid;
	uint32_t fdid;
	unsigned host, lender;
	uint64_t breaks; /* of the connection between the two hosts' daemons, so far */
	uint64_t gone;	 /* losses of paths between them */
	uint64_t since;	 /* when the device was requested */
	uint64_t given_up;
	bool exclusive;
	struct borrow *prev, *next;
};

static struct borrow *borrows;

static void start(void)
{
	borrows = NULL;
}

static bool pulled_since(uint32_t fdid, uint64_t asked)
{
	uint64_t pulled = sim_drive_pulled(fdid);

	return pulled != 0 && pulled >= asked;
}

static bool valid(const struct borrow *b)
{
	const struct sim_proc *p = sim_living(b->pid);

	return p && p->given_up == b->given_up &&
	       sim_peer_breaks(b->host, b->lender) == b->breaks &&
	       sim_paths_gone(b->host, b->lender) == b->gone && !pulled_since(b->fdid, b->since);
}

/* It was lost before its borrower, which reads the answer now, knew that it had it. */
static bool lost_meanwhile(uint32_t fdid, unsigned lender, uint64_t since)
{
	const struct sim_proc *p = sim_self();

	return pulled_since(fdid, since) ||
	       (p->stopped_last >= since && sim_peer_lost_last(p->host, lender) >= since);
}

static void borrowed(uint32_t fdid, bool exclusive, uint64_t since)
{
	unsigned lender = sim_host_of(sio_topology_fdid_node(fdid));
	bool late = lost_meanwhile(fdid, lender, since);
	struct borrow *b, *next, *mine;

	DL_FOREACH_SAFE (borrows, b, next) {
		if (!valid(b)) {
			DL_DELETE(borrows, b);
			free(b);
			continue;
		}
		if (b->fdid == fdid && (b->exclusive || exclusive) && !late)
			sim_fail("exclusive", "%s has device %#x%s, and so has %s%s",
				 sim_self()->name, fdid, exclusive ? " exclusively" : "",
				 sim_living(b->pid)->name, b->exclusive ? " exclusively" : "");
	}
	if (late)
		return;
	mine = calloc(1, sizeof(*mine));
	if (!mine)
		abort();
	mine->pid = sim_self()->pid;
	mine->host = sim_self()->host;
	mine->lender = lender;
	mine->breaks = sim_peer_breaks(mine->host, mine->lender);
	mine->gone = sim_paths_gone(mine->host, mine->lender);
	mine->fdid = fdid;
	mine->exclusive = exclusive;
	mine->since = since;
	mine->given_up = sim_self()->given_up;
	DL_APPEND(borrows, mine);
}

static struct borrow *mine_of(uint32_t fdid)
{
	struct borrow *b;

	DL_FOREACH (borrows, b)
		if (b->pid == sim_self()->pid && b->fdid == fdid)
			return b;
	return NULL;
}

static void shares(uint32_t fdid)
{
	struct borrow *b = mine_of(fdid);

	if (b)
		b->exclusive = false;
}

static void returned(uint32_t fdid)
{
	struct borrow *b = mine_of(fdid);

	if (!b)
		return;
	DL_DELETE(borrows, b);
	free(b);
}

static const struct sim_listener listener = {
	.borrowed = borrowed, .shares = shares, .returned = returned};

const struct sim_oracle sim_oracle_exclusive = {
	.name = "exclusive", .start = start, .listener = &listener};
