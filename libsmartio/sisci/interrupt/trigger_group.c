/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data interrupts to all nodes that have a number (SCI_FLAG_BROADCAST): a connection to each, under
 * one handle. No daemon and no fabric copies messages: the sender writes each ring.
 */
#include <errno.h>
#include <stdlib.h>

#include "sisci/interrupt/trigger.h"

/* Nodes that are not there, or not now, or have no such number: the others count. */
static bool is_absence(int rc)
{
	return rc == -ENOENT || rc == -EHOSTUNREACH || rc == -ENETDOWN || rc == -ETIMEDOUT ||
	       rc == -ECONNRESET;
}

static int add_member(struct sio_remote_dint *group, unsigned node, unsigned adapter,
		      struct sio_err *err)
{
	struct sio_remote_dint *d = NULL, **member;
	int rc = sio_remote_dint_new(group->o.lib, &group->o, node, group->number, &d, err);

	if (rc)
		return rc;
	rc = sio_remote_dint_connect(d, adapter, SCI_FLAG_BROADCAST, err);
	if (rc) {
		sio_object_end(&d->o);
		return is_absence(rc) ? 0 : rc;
	}
	member = realloc(group->member, (group->n_members + 1) * sizeof(struct sio_remote_dint *));
	if (!member) {
		sio_object_leave(&d->o, SIO_MSG_DINT_DISCONNECT, NULL);
		sio_object_end(&d->o);
		return sio_no_memory(err, "member %u of a group of interrupts",
				     group->n_members + 1);
	}
	group->member = member;
	group->member[group->n_members++] = d;
	return 0;
}

static int add_members(struct sio_remote_dint *group, unsigned adapter, struct sio_err *err)
{
	struct sio_msg_list req = {.kind = sio_to_le32(SIO_LIST_NODES)};
	struct sio_rep_list rep;
	uint32_t n;
	int rc;

	do {
		rc = sio_ask(group->o.lib, SIO_MSG_LIST, &req, sizeof(req), &rep, sizeof(rep), err);
		if (rc)
			return rc;
		n = sio_from_le32(rep.count);
		if (n > SIO_LIST_ROWS)
			return sio_fail(err, -EPROTO, "smartiod listed %u nodes at once", n);
		for (uint32_t i = 0; !rc && i < n; i++)
			rc = add_member(group, sio_from_le32(rep.row[i].node), adapter, err);
		if (n)
			req.after = rep.row[n - 1].key;
	} while (!rc && n && sio_from_le32(rep.more));
	if (!rc && group->n_members == 0)
		rc = sio_fail(err, -ENOENT, "no node has a data interrupt %u for all",
			      group->number);
	return rc;
}

void sio_remote_dint_group_drop(struct sio_remote_dint *d)
{
	for (unsigned i = 0; i < d->n_members; i++) {
		struct sio_object *o = &d->member[i]->o;

		if (o->life == SIO_ENDED)
			continue;
		sio_object_leave(o, SIO_MSG_DINT_DISCONNECT, NULL);
		sio_handle_ref(o->lib->handles, o->handle); /* ours goes with the group */
		sio_object_end(o);
	}
}

int sio_remote_dint_group(struct sio_library *lib, sci_desc_t sd, sci_remote_data_interrupt_t *ret,
			  unsigned adapter, unsigned number, struct sio_err *err)
{
	struct sio_object *desc = sio_object_get(lib, sd, SIO_DESC, err);
	struct sio_remote_dint *group = NULL;
	int rc;

	if (!desc)
		return err->code;
	rc = sio_remote_dint_new(lib, desc, DIS_BROADCAST_NODEID_GROUP_ALL, number, &group, err);
	sio_object_put(desc);
	if (rc)
		return rc;
	rc = add_members(group, adapter, err);
	if (rc) {
		sio_remote_dint_group_drop(group);
		sio_object_end(&group->o);
		return rc;
	}
	*ret = sio_object_handle(&group->o);
	sio_object_put(&group->o);
	return 0;
}

/* Neither lost, nor behind a link that is down now. */
static bool reachable(const struct sio_remote_dint *m, struct sio_err *err)
{
	return !sio_object_is_lost(&m->o) && sio_status_check(m->o.lib, m->path, m->node, err) == 0;
}

/* The lock is held: is there room everywhere? Of those that can be reached. */
static int check_room(struct sio_remote_dint *d, uint32_t len, unsigned *ret_live,
		      struct sio_err *err)
{
	*ret_live = 0;
	for (unsigned i = 0; i < d->n_members; i++) {
		struct sio_remote_dint *m = d->member[i];
		int rc;

		if (!reachable(m, err))
			continue;
		rc = sio_ring_room(&m->ring, len);
		if (rc == -ENOSPC || rc == -EMSGSIZE)
			return rc;
		*ret_live += rc == 0;
	}
	return 0;
}

int sio_remote_dint_group_send(struct sio_remote_dint *d, const void *data, uint32_t len,
			       struct sio_err *err)
{
	struct sio_world *w = d->o.lib->world;
	unsigned live = 0;
	int rc;

	w->lock(w, d->lock);
	rc = check_room(d, len, &live, err);
	for (unsigned i = 0; !rc && i < d->n_members; i++) {
		struct sio_remote_dint *m = d->member[i];

		/* Nobody but us fills it: what had room has it. */
		if (reachable(m, err) && sio_ring_push(&m->ring, data, len) == 0)
			w->event_write(w, m->trigger);
	}
	w->unlock(w, d->lock);
	if (rc == -ENOSPC)
		return sio_refuse(err, SCI_ERR_NOSPC,
				  "a queue to a data interrupt %u is full: nobody got the message",
				  d->number);
	if (rc == -EMSGSIZE)
		return sio_fail(err, -ERANGE, "a message of %u bytes; at most %u are right", len,
				SIO_RING_MESSAGE);
	for (unsigned i = 0; !live && i < d->n_members; i++)
		if (!sio_object_is_lost(&d->member[i]->o))
			return sio_fail(err, -ENETDOWN, "no link to any data interrupt %u is up",
					d->number);
	return live ? 0 : sio_object_fail_lost(&d->o, err);
}
