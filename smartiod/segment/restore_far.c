/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Restart: connections to segments of other hosts, and their windows, as a library restores them
 * after smartiod was started again. Their exporters go on meanwhile, and so do the windows at the
 * port. What a connection is, its seal proves; what its window leads to, the exporter says when the
 * two daemons have met: it reports each grant with its address (RESUME_GRANT), by which the window
 * finds its own. A window without one is over.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/base/unclaimed.h"
#include "smartiod/segment/connection.h"
#include "smartiod/segment/grant.h"
#include "smartiod/segment/restore.h"

/* ---- connections ---- */

int smartiod_restore_peer(struct smartiod *d, uint32_t node, struct sio_err *reterr)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, node);

	if (!p || p->removed || p->bond == SMARTIOD_BOND_APART)
		return sio_fail(reterr, -ENOENT,
				"node %u is lost, and with it what the program had there", node);
	if (!smartiod_recovering(d))
		return sio_fail(reterr, -ENOENT,
				"the program came too late: node %u has been told that it has "
				"nothing",
				node);
	return 0;
}

/* It was notified of the path's state as it was before the restart. */
static void take_path(struct smartiod *d, struct smartiod_connection *c, bool was_down)
{
	bool up = smartiod_path_up(d, c->node, c->adapter, c->peer_adapter);

	if (!up)
		smartiod_connection_enter(d, c, SMARTIOD_CONNECTION_PATH_DOWN);
	if (up == was_down)
		smartiod_connection_event(d, c->node, c->id,
					  up ? SCI_CB_OPERATIONAL : SCI_CB_NOT_OPERATIONAL,
					  SIO_LOSS_NONE);
}

static bool leads_elsewhere(struct smartiod *d, const struct smartiod_connection *c,
			    struct sio_err *reterr)
{
	if (!smartiod_path_up(d, c->node, c->adapter, c->peer_adapter) ||
	    !smartiod_connection_stale(d, c))
		return false;
	sio_fail(reterr, -ENOENT, "node %u has started again, or its path has other addresses",
		 c->node);
	return true;
}

static struct smartiod_connection *connection_of(struct smartiod *d, struct smartiod_session *s,
						 uint32_t node, const struct sio_msg_restore *m,
						 struct sio_err *reterr)
{
	uint32_t path = sio_from_le32(m->path);
	struct smartiod_connection *c;

	c = smartiod_connection_again(d, s, SMARTIOD_REMOTE, sio_from_le64(m->extra), reterr);
	if (!c)
		return NULL;
	c->node = node;
	c->uid = sio_from_le64(m->key);
	c->segment_id = sio_from_le32(m->number);
	c->adapter = path >> 16;
	c->peer_adapter = path & 0xffff;
	c->bytes = sio_from_le64(m->bytes);
	c->peer_boot = sio_from_le64(m->peer_boot);
	return c;
}

struct smartiod_connection *smartiod_restore_far(struct smartiod *d, struct smartiod_session *s,
						 uint32_t node,
						 const struct smartiod_wanted *wanted,
						 const struct sio_msg_restore *m,
						 struct sio_err *reterr)
{
	struct smartiod_connection *c;

	if (smartiod_restore_peer(d, node, reterr) < 0)
		return NULL;
	c = connection_of(d, s, node, m, reterr);
	if (!c)
		return NULL;
	if (wanted)
		smartiod_connection_via(c, wanted);
	if (smartiod_seal_compare(s, m, smartiod_connection_seal(s, c), reterr) < 0 ||
	    leads_elsewhere(d, c, reterr)) {
		smartiod_connection_enter(d, c, SMARTIOD_CONNECTION_LOSE);
		smartiod_connection_close(d, c, SCI_CB_LOST);
		return NULL;
	}
	take_path(d, c, sio_from_le32(m->flags) & SIO_RESTORE_DOWN);
	return c;
}

/* ---- windows ---- */

static void take_window(struct smartiod *d, struct smartiod_connection *c,
			struct smartiod_unclaimed *l)
{
	c->window = SMARTIOD_MAPPED;
	c->map = l->by_id.key;
	c->map_offset = l->fd_offset;
	c->map_bus_addr = l->address;
	c->there = l->cookie;
	c->there_grant = l->grant;
	c->map_fd = smartiod_unclaimed_take_fd(l, 0);
	smartiod_unclaimed_done(d, l);
}

int smartiod_window_again(struct smartiod *d, struct smartiod_session *s,
			  struct smartiod_connection *c, const struct sio_msg_restore *m,
			  struct sio_err *reterr)
{
	uint64_t map = sio_from_le64(m->key);
	uint64_t seal = smartiod_window_seal(s, sio_from_le32(m->handle), c, map);
	struct smartiod_unclaimed *l;

	if (smartiod_seal_compare(s, m, seal, reterr) < 0)
		return reterr->code;
	if (c->window == SMARTIOD_MAPPED && c->map == map)
		return 0;
	l = smartiod_unclaimed_get(d, SIO_KIND_MAP, s->owner, map, reterr);
	if (!l)
		return reterr->code;
	if (c->window != SMARTIOD_UNMAPPED || l->node != c->node || l->length < c->bytes ||
	    l->device != SIO_LIST_PATH(c->adapter, c->peer_adapter))
		return sio_fail(reterr, -EINVAL,
				"map %" PRIu64 " is no window to segment %#x of node %u", map,
				c->segment_id, c->node);
	if (smartiod_unclaimed_check(l, reterr) < 0)
		return reterr->code;
	take_window(d, c, l);
	return 0;
}

/* The connection is nobody's, and lives until the port has unmapped its window. */
void smartiod_window_unclaimed(struct smartiod *d, const struct smartiod_unclaimed *l)
{
	struct smartiod_connection *c =
		smartiod_connection_nobodys(d, SMARTIOD_REMOTE, smartiod_uid(d));

	if (!c) {
		smartiod_port_unmap(d, l->by_id.key);
		return;
	}
	c->node = l->node;
	c->adapter = l->device >> 32;
	c->peer_adapter = (uint32_t)l->device;
	c->there = l->cookie;
	c->there_grant = l->grant;
	smartiod_connection_enter(d, c, SMARTIOD_CONNECTION_CLOSE);
	smartiod_window_unmap(d, c, l->by_id.key, 0);
}

/* ---- what the exporter says of its grants ---- */

static bool leads_there(const struct smartiod_connection *c, uint32_t node, uint64_t there,
			uint64_t grant, const struct sio_peer_resume_grant *q)
{
	return c->route == SMARTIOD_REMOTE && c->node == node && grant == sio_from_le64(q->grant) &&
	       there == sio_from_le64(q->bus_addr) &&
	       c->adapter == sio_from_le32(q->peer_adapter) &&
	       c->peer_adapter == sio_from_le32(q->adapter);
}

static struct smartiod_connection *ungranted(struct smartiod *d, uint32_t node, uint64_t *key)
{
	struct smartiod_tree_node *n;

	while ((n = smartiod_tree_after(&d->connections, *key))) {
		struct smartiod_connection *c = SMARTIOD_OF(n, struct smartiod_connection, by_id);

		*key = n->key;
		if (c->node == node && c->window == SMARTIOD_MAPPED && !c->grant)
			return c;
	}
	return NULL;
}

bool smartiod_window_grant_again(struct smartiod *d, uint32_t node,
				 const struct sio_peer_resume_grant *q)
{
	uint64_t start = smartiod_peer_find(d, node)->generation, key = 0;
	struct smartiod_connection *c;

	while ((c = ungranted(d, node, &key)))
		if (leads_there(c, node, c->there, c->there_grant, q)) {
			c->grant = sio_from_le64(q->grant);
			c->start = start;
			if (sio_from_le32(q->empty))
				smartiod_connection_lost(d, c, SCI_CB_LOST);
			return true;
		}
	for (c = d->unmapping; c; c = c->next_unmapping)
		if (!c->old_grant && leads_there(c, node, c->old_there, c->old_there_grant, q)) {
			c->old_grant = sio_from_le64(q->grant);
			c->old_start = start;
			return true;
		}
	return false;
}

void smartiod_windows_resumed(struct smartiod *d, uint32_t node)
{
	struct smartiod_connection *c;
	uint64_t key = 0;

	while ((c = ungranted(d, node, &key)))
		if (!smartiod_connection_over(c))
			smartiod_connection_lost(d, c, SCI_CB_LOST);
}
