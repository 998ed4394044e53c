/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases of blocks, the client's side. The manager decides which client has which range. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "error.h"
#include "smartio/ext.h"

#define JOIN_AGAIN_MS 1000u /* after a manager that did not answer */

static void tell(struct smartio_nvme_lease_info *info, const struct sio_nvme_wire_lease *w)
{
	_Static_assert(sizeof(info->name) == sizeof(w->name), "a name is as long as on its way");
	info->id = w->id;
	info->lba = w->lba;
	info->blocks = w->blocks;
	info->nsid = w->nsid;
	info->node = w->node;
	memcpy(info->name, w->name, sizeof(info->name));
	memcpy(info->program, w->program, sizeof(info->program));
}

static int ask(struct smartio_nvme *n, struct sio_nvme_req *req, struct sio_nvme_rep *rep)
{
	int rc;

	sio_nvme_lock(n);
	rc = sio_nvme_ask(sio_nvme_way(n), req, rep, NULL);
	sio_nvme_unlock(n);
	return rc;
}

/*
 * The answer to request @sequence did not come. It is taken back at once, so that a lease that a
 * manager gives later is not kept by a client that asks for nothing more; and again ahead of the
 * next request.
 */
static void take_back(struct smartio_nvme *leg, struct sio_nvme_owed **o, uint64_t sequence)
{
	const struct sio_nvme_req req = {.op = SIO_NVME_OP_CANCEL,
					 .cancel = {.sequence = sequence}};

	if (!sio_nvme_leg_open(leg))
		return;
	sio_nvme_say_cancel(leg, sequence);
	sio_nvme_owe(leg, *o, &req);
	*o = NULL;
}

static int check_name(const char *name)
{
	if (*name && strlen(name) < sizeof(((struct sio_nvme_req *)0)->lease.name))
		return 0;
	return sio_nvme_fail(-EINVAL, "a lease's name has 1 to %zu characters",
			     sizeof(((struct sio_nvme_req *)0)->lease.name) - 1);
}

static bool was_asked_for(const struct sio_nvme_req *req, const struct sio_nvme_wire_lease *w)
{
	return w->blocks == req->lease.blocks && w->nsid == req->lease.nsid &&
	       (req->lease.lba == SMARTIO_NVME_ANYWHERE || w->lba == req->lease.lba) &&
	       w->lba + w->blocks >= w->blocks;
}

/* Under the lock: what the manager has given, over @leg. */
static void receive(struct smartio_nvme_lease *l, const struct smartio_nvme *leg,
		    const struct sio_nvme_req *req, const struct sio_nvme_wire_lease *w)
{
	struct smartio_nvme *n = l->n;

	tell(&l->info, w);
	l->key = req->lease.key;
	l->generation = leg->meta.generation;
	l->borrower[leg != n] = req->borrower;
	l->next = n->leases;
	n->leases = l;
}

/* Under the lock. */
static int take(struct smartio_nvme_lease *l, struct sio_nvme_req *req, struct sio_nvme_rep *rep,
		struct sio_nvme_owed **owed)
{
	struct smartio_nvme *n = l->n, *leg = sio_nvme_way(n);
	bool sent = false;
	int rc;

	rep->h.error = 0;
	rc = sio_nvme_ask(leg, req, rep, &sent);
	if (sent && !sio_nvme_was_answered(rc, rep))
		take_back(leg, owed, req->sequence);
	if (rc == 0 && !was_asked_for(req, &rep->lease)) {
		take_back(leg, owed, req->sequence);
		return sio_nvme_fail(-EPROTO,
				     "the manager of %s gave another lease than was asked for",
				     n->d.name);
	}
	if (rc)
		return rc;
	receive(l, leg, req, &rep->lease);
	sio_nvme_leases_join_all(n);
	return 0;
}

int smartio_nvme_lease_take(struct smartio_nvme *n, const char *name, uint32_t nsid, uint64_t lba,
			    uint64_t blocks, struct smartio_nvme_lease **ret)
{
	struct sio_nvme_req req = {.op = SIO_NVME_OP_LEASE,
				   .lease = {.lba = lba,
					     .blocks = blocks,
					     .key = smartio_random(),
					     .nsid = nsid,
					     .formats = n->formats}};
	struct smartio_nvme_lease *l;
	struct sio_nvme_owed *owed;
	struct sio_nvme_rep *rep;
	int rc = check_name(name);

	if (rc)
		return rc;
	strncpy(req.lease.name, name, sizeof(req.lease.name) - 1);
	strncpy(req.lease.program, program_invocation_short_name, sizeof(req.lease.program) - 1);
	l = calloc(1, sizeof(*l));
	owed = malloc(sizeof(*owed));
	rep = malloc(sizeof(*rep));
	if (l && owed && rep) {
		l->n = n;
		sio_nvme_lock(n);
		rc = take(l, &req, rep, &owed);
		sio_nvme_unlock(n);
	} else {
		rc = sio_nvme_no_memory("a lease");
	}
	free(owed);
	free(rep);
	if (rc == 0)
		*ret = l;
	else
		free(l);
	return rc;
}

/* ---- of two borrows ---- */
bool sio_nvme_lease_has(const struct smartio_nvme_lease *l, const struct smartio_nvme *leg)
{
	return leg->d.handle && l->generation == leg->meta.generation &&
	       l->borrower[leg != l->n] == smartio_borrower_id(leg->d.handle);
}

static int ended(const struct smartio_nvme_lease *l, const struct smartio_nvme *leg)
{
	if (l->generation == leg->meta.generation)
		return sio_nvme_fail(-ESTALE, "lease %s of %s was lost with the path to it",
				     l->info.name, l->n->d.name);
	return sio_nvme_fail(-ESTALE, "the manager that gave lease %s of %s has ended",
			     l->info.name, l->n->d.name);
}

static int join(struct smartio_nvme_lease *l, struct smartio_nvme *leg)
{
	struct sio_nvme_req req = {.op = SIO_NVME_OP_JOIN,
				   .join = {.id = l->info.id, .key = l->key}};
	struct sio_nvme_rep rep;
	int rc;

	if (l->over)
		return ended(l, leg);
	if (sio_nvme_lease_has(l, leg))
		return 0;
	rc = sio_nvme_ask(leg, &req, &rep, NULL);
	/* A reset ends it: another manager's word is not of this lease. */
	l->over = rc == -ESTALE || (rc == 0 && l->generation != leg->meta.generation);
	if (l->over)
		return ended(l, leg);
	if (rc == 0)
		l->borrower[leg != l->n] = req.borrower;
	return rc;
}

int sio_nvme_lease_join(const struct smartio_nvme_lease *l, struct smartio_nvme *leg)
{
	struct smartio_nvme_lease *own = l->n->leases;

	while (own != l)
		own = own->next;
	return join(own, leg);
}

bool sio_nvme_leases_lack(const struct smartio_nvme *n)
{
	if (!n->second || !sio_nvme_leg_open(n) || !sio_nvme_leg_open(n->second))
		return false;
	for (const struct smartio_nvme_lease *l = n->leases; l; l = l->next)
		if (!l->over && (!sio_nvme_lease_has(l, n) || !sio_nvme_lease_has(l, n->second)))
			return smartio_now_ns() >= n->join_at;
	return false;
}

/*
 * Return: whether all that are not over are had over @leg. One that is refused does not keep the
 * others from it; a manager that does not answer takes a moment, and is asked for no more of them.
 */
static bool join_over(struct smartio_nvme *n, struct smartio_nvme *leg)
{
	const unsigned patience_ms = leg->patience_ms;
	bool all = true, answered = true;

	if (!sio_nvme_leg_open(leg))
		return true;
	leg->patience_ms = SIO_NVME_MOMENT_MS;
	for (struct smartio_nvme_lease *l = n->leases; l && answered; l = l->next) {
		const int rc = l->over ? 0 : join(l, leg);

		answered = rc == 0 || rc == -ESTALE || rc == -EBUSY;
		all = all && (rc == 0 || rc == -ESTALE);
	}
	leg->patience_ms = patience_ms;
	return all;
}

void sio_nvme_leases_join_all(struct smartio_nvme *n)
{
	bool all;

	if (!n->second)
		return;
	all = join_over(n, n);
	if (!join_over(n, n->second) || !all)
		n->join_at = sio_nvme_deadline(JOIN_AGAIN_MS);
}

/* Under the lock. */
static bool is_used(const struct smartio_nvme_lease *l)
{
	const struct smartio_nvme_queue *lists[] = {l->n->queues, l->n->kept, l->n->opening};

	for (unsigned i = 0; i < 3; i++)
		for (const struct smartio_nvme_queue *q = lists[i]; q; q = q->next)
			if (q->lease == l)
				return true;
	return false;
}

static void unlink_lease(struct smartio_nvme_lease *l)
{
	struct smartio_nvme_lease **at = &l->n->leases;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
}

/*
 * What is had of it over @leg, and may be had though nobody said so, ends: now, or if the manager
 * does not answer ahead of the next request. @owed: of malloc(), taken if it is used.
 */
static void give_over(const struct smartio_nvme_lease *l, struct smartio_nvme *leg,
		      struct sio_nvme_owed **owed)
{
	struct sio_nvme_req req = {.op = SIO_NVME_OP_UNLEASE,
				   .unlease = {.id = l->info.id, .key = l->key}};
	struct sio_nvme_rep rep;

	if (!sio_nvme_leg_open(leg))
		return;
	rep.h.error = 0;
	if (sio_nvme_was_answered(sio_nvme_ask(leg, &req, &rep, NULL), &rep) ||
	    !sio_nvme_leg_open(leg))
		return;
	sio_nvme_owe(leg, *owed, &req);
	*owed = NULL;
}

/*
 * Over both ways or not at all: a lease that is kept has all that this client knows of. What lost
 * borrows have of it ends when their queues are deleted.
 */
static int give(struct smartio_nvme_lease *l)
{
	struct smartio_nvme *legs[] = {l->n, l->n->second};
	struct sio_nvme_owed *owed[] = {malloc(sizeof(**owed)), malloc(sizeof(**owed))};
	const bool can = owed[0] && owed[1];

	for (unsigned i = 0; i < 2; i++) {
		if (can && legs[i])
			give_over(l, legs[i], &owed[i]);
		free(owed[i]);
	}
	if (!can)
		return sio_nvme_no_memory("a lease to be given back");
	unlink_lease(l);
	free(l);
	return 0;
}

int smartio_nvme_lease_give(struct smartio_nvme_lease *l)
{
	struct smartio_nvme *n;
	int rc;

	if (!l || sio_nvme_is_childs(l->n))
		return 0;
	n = l->n;
	sio_nvme_lock(n);
	if (is_used(l))
		rc = sio_nvme_fail(-EBUSY, "a queue pair uses lease %s", l->info.name);
	else
		rc = give(l);
	sio_nvme_unlock(n);
	return rc;
}

void sio_nvme_leases_close(struct smartio_nvme *n)
{
	struct smartio_nvme_lease *l;

	/* Those of queues that nobody could delete end with the borrow. */
	while ((l = n->leases)) {
		if (smartio_nvme_lease_give(l) == 0)
			continue;
		sio_nvme_lock(n);
		unlink_lease(l);
		for (struct smartio_nvme_queue *q = n->kept; q; q = q->next)
			if (q->lease == l)
				q->lease = NULL;
		sio_nvme_unlock(n);
		free(l);
	}
}

void smartio_nvme_lease_get(const struct smartio_nvme_lease *l,
			    struct smartio_nvme_lease_info *info)
{
	*info = l->info;
}

int smartio_nvme_get_leases(struct smartio_nvme *n, struct smartio_nvme_lease_info *list,
			    unsigned max)
{
	struct sio_nvme_req req = {.op = SIO_NVME_OP_LEASES};
	struct sio_nvme_rep *rep = malloc(sizeof(*rep));
	unsigned reported = 0, got = SIO_NVME_LEASES_A_REPLY;
	int rc = 0;

	if (!rep)
		return sio_nvme_no_memory("a reply");
	while (got == SIO_NVME_LEASES_A_REPLY && reported < max && rc == 0) {
		rc = ask(n, &req, rep);
		/* In the order of their ids, or this would never end. */
		for (got = 0; rc == 0 && got < SIO_NVME_LEASES_A_REPLY && reported < max; got++) {
			if (rep->leases[got].id <= req.leases.after)
				break;
			req.leases.after = rep->leases[got].id;
			tell(&list[reported++], &rep->leases[got]);
		}
	}
	free(rep);
	return rc ? rc : (int)reported;
}
