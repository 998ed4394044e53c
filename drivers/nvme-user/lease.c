/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases of blocks, the client's side. The manager decides which client has which range. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "error.h"
#include "smartio/ext.h"

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

int smartio_nvme_lease_take(struct smartio_nvme *n, const char *name, uint32_t nsid, uint64_t lba,
			    uint64_t blocks, struct smartio_nvme_lease **ret)
{
	struct sio_nvme_req req = {
		.op = SIO_NVME_OP_LEASE,
		.lease = {.lba = lba,
			  .blocks = blocks,
			  .key = smartio_random(),
			  .nsid = nsid,
			  .formats = n->formats}};
	struct smartio_nvme_lease *l;
	struct sio_nvme_owed *owed;
	struct smartio_nvme *leg;
	struct sio_nvme_rep *rep;
	bool sent = false;
	int rc;

	if (!*name || strlen(name) >= sizeof(req.lease.name))
		return sio_nvme_fail(-EINVAL, "a lease's name has 1 to %zu characters",
				     sizeof(req.lease.name) - 1);
	l = calloc(1, sizeof(*l));
	owed = malloc(sizeof(*owed));
	rep = malloc(sizeof(*rep));
	strncpy(req.lease.name, name, sizeof(req.lease.name) - 1);
	strncpy(req.lease.program, program_invocation_short_name, sizeof(req.lease.program) - 1);
	sio_nvme_lock(n);
	leg = sio_nvme_way(n);
	if (rep)
		rep->h.error = 0;
	rc = l && owed && rep ? sio_nvme_ask(leg, &req, rep, &sent) : sio_nvme_no_memory("a lease");
	if (sent && !sio_nvme_was_answered(rc, rep))
		take_back(leg, &owed, req.sequence);
	if (l) {
		l->leg = leg;
		l->generation = leg->meta.generation;
	}
	sio_nvme_unlock(n);
	free(owed);
	if (rc == 0 && (rep->lease.blocks != blocks || rep->lease.nsid != nsid ||
			(lba != SMARTIO_NVME_ANYWHERE && rep->lease.lba != lba) ||
			rep->lease.lba + blocks < blocks))
		rc = sio_nvme_fail(-EPROTO,
				   "the manager of %s gave another lease than was asked for",
				   n->d.name);
	if (rc) {
		free(l);
		free(rep);
		return rc;
	}
	l->n = n;
	l->key = req.lease.key;
	tell(&l->info, &rep->lease);
	free(rep);
	l->borrower = req.borrower;
	sio_nvme_lock(n);
	l->next = n->leases;
	n->leases = l;
	sio_nvme_unlock(n);
	*ret = l;
	return 0;
}

bool sio_nvme_lease_ended(const struct smartio_nvme_lease *l)
{
	return l->generation != l->leg->meta.generation ||
	       l->borrower != smartio_borrower_id(l->leg->d.handle);
}

/* Under the lock. */
static bool is_used(const struct smartio_nvme_lease *l)
{
	const struct smartio_nvme_queue *lists[] = {l->n->queues, l->n->kept};

	for (unsigned i = 0; i < 2; i++)
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

/* Asks its manager to end it, now, or if it does not answer ahead of the next request. */
static int give_over(const struct smartio_nvme_lease *l, struct smartio_nvme *leg)
{
	struct sio_nvme_req req = {.op = SIO_NVME_OP_UNLEASE,
				   .unlease = {.id = l->info.id, .key = l->key}};
	struct sio_nvme_owed *owed = malloc(sizeof(*owed));
	struct sio_nvme_rep *rep = malloc(sizeof(*rep));
	int rc = 0;

	if (!owed || !rep) {
		rc = sio_nvme_no_memory("a reply");
		goto free_both;
	}
	rep->h.error = 0;
	if (!sio_nvme_was_answered(sio_nvme_ask(leg, &req, rep, NULL), rep) &&
	    sio_nvme_leg_open(leg)) {
		sio_nvme_owe(leg, owed, &req);
		owed = NULL;
	}
free_both:
	free(owed);
	free(rep);
	return rc;
}

int smartio_nvme_lease_give(struct smartio_nvme_lease *l)
{
	struct smartio_nvme *n;
	int rc = 0;

	if (!l)
		return 0;
	n = l->n;
	sio_nvme_lock(n);
	if (is_used(l)) {
		rc = sio_nvme_fail(-EBUSY, "a queue pair uses lease %s", l->info.name);
	} else {
		/* Of a lost borrow it is free already; of before a reset nobody knows its key. */
		if (sio_nvme_leg_open(l->leg) && !sio_nvme_lease_ended(l))
			rc = give_over(l, l->leg);
		if (rc == 0) {
			unlink_lease(l);
			free(l);
		}
	}
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
