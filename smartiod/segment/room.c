/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the segment room: segments, grants, connections, groups. */
#include <stdio.h>

#include "smartiod/base/room.h"
#include "smartiod/segment/connection.h"
#include "smartiod/segment/grant.h"
#include "smartiod/segment/requests.h"
#include "smartiod/segment/restore.h"

static const struct smartiod_request requests[] = {
	SIO_CLIENT_SEGMENT(SMARTIOD_OWNERS){0, false, NULL},
};

static const struct smartiod_message messages[] = {
	SIO_PEER_SEGMENT(SMARTIOD_PEERS){0, NULL},
};

/* ---- late replies ---- */

static void lookup_late(struct smartiod *d, uint32_t node, const void *reply)
{
	const struct sio_prep_seg_lookup *lookup = reply;
	struct sio_peer_seg_release release = {.h.type = sio_to_le32(SIO_PEER_SEG_RELEASE),
					       .uid = lookup->uid,
					       .connection = lookup->connection,
					       .reason = sio_to_le32(SCI_CB_LOST)};

	smartiod_peer_send(d, node, &release, sizeof(release));
}

static void grant_late(struct smartiod *d, uint32_t node, const void *reply)
{
	const struct sio_prep_seg_grant *grant = reply;

	smartiod_grant_release(d, node, sio_from_le64(grant->g.grant));
}

static const struct smartiod_late late[] = {
	{SIO_PEER_SEG_LOOKUP, lookup_late},
	{SIO_PEER_SEG_GRANT, grant_late},
	{0, NULL},
};

/* ---- a client ends ---- */

/*
 * A segment that belongs to the daemon already, and has a maker again who asked for that, does not
 * end with it. Of one whose memory the port was asked to give us the answer tells whether it has
 * ended.
 */
static void segment_drop(struct smartiod *d, struct smartiod_object *o)
{
	struct smartiod_segment *seg = (struct smartiod_segment *)o;

	if (seg->state == SMARTIOD_SEGMENT_GIVING)
		smartiod_object_remove(&seg->o);
	else
		smartiod_segment_end(d, seg, SCI_CB_LOST, seg->owner != 0 || seg->maker_released);
}

static void map_drop(struct smartiod *d, struct smartiod_object *o)
{
	smartiod_map_drop(d, (struct smartiod_map *)o);
}

static void connection_drop(struct smartiod *d, struct smartiod_object *o)
{
	smartiod_connection_close(d, (struct smartiod_connection *)o,
				  o->session->bye ? SCI_CB_DISCONNECT : SCI_CB_LOST);
}

static const struct smartiod_kind_ops kinds[] = {
	{SMARTIOD_ATTACHMENT, smartiod_attachment_drop, true, NULL},
	{SMARTIOD_SEGMENT, segment_drop, false, smartiod_segment_restored},
	{SMARTIOD_MAP, map_drop, true, NULL},
	{SMARTIOD_CONNECTION, connection_drop, false, NULL},
	{0, NULL, false, NULL},
};

/* ---- a client comes back ---- */

static void local_lost(struct smartiod *d, struct smartiod_session *s,
		       const struct sio_msg_restore *m)
{
	smartiod_restore_notify_lost(d, s, SIO_EVM_SEGMENT_LOCAL, m->handle);
}

static void remote_lost(struct smartiod *d, struct smartiod_session *s,
			const struct sio_msg_restore *m)
{
	smartiod_restore_notify_lost(d, s, SIO_EVM_SEGMENT_REMOTE, m->handle);
}

static const struct smartiod_restorable restores[] = {
	{SIO_MSG_SEG_CREATE, SMARTIOD_RESTORE_OWN, smartiod_restore_segment, local_lost},
	{SIO_MSG_SEG_ATTACH, SMARTIOD_RESTORE_ATTACHED, smartiod_restore_attachment, local_lost},
	{SIO_MSG_SEG_CONNECT, SMARTIOD_RESTORE_ALL, smartiod_restore_connection, remote_lost},
	{0, 0, NULL, NULL},
};

/* ---- listings ---- */

static bool segment_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	const struct smartiod_segment *seg;
	bool ended;

	seg = SMARTIOD_OF(smartiod_tree_after(&d->segments, after), struct smartiod_segment,
			  by_uid);
	if (!seg)
		return false;
	ended = seg->state == SMARTIOD_SEGMENT_ENDED;
	ret->key = sio_to_le64(seg->uid);
	ret->owner = sio_to_le64(seg->owner);
	ret->bytes = sio_to_le64(seg->bytes);
	ret->address = sio_to_le64(seg->phys);
	ret->id = sio_to_le32(seg->id);
	ret->node = sio_to_le32(d->node);
	ret->refs = sio_to_le32(seg->n_refs + seg->n_grants + seg->dma);
	ret->flags = sio_to_le32((ended ? SIO_ROW_QUARANTINED : SIO_ROW_LIVE) |
				 (seg->available ? SIO_ROW_AVAILABLE : 0));
	ret->memory = sio_to_le32(seg->empty ? SIO_MEMORY_NONE : seg->memory);
	/* Of who made it; when that has released it, of one who attached to it. */
	ret->pid = sio_to_le32(seg->maker_released && seg->attachments
				       ? seg->attachments->o.session->pid
				       : seg->pid);
	if (seg->device)
		snprintf(ret->name, sizeof(ret->name), "device segment");
	else if (seg->state == SMARTIOD_SEGMENT_KEPT)
		snprintf(ret->name, sizeof(ret->name), "removed");
	return true;
}

static bool connection_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	static const char *const route[] = {"local", "remote", "bar", "group"};
	const struct smartiod_connection *c;

	c = SMARTIOD_OF(smartiod_tree_after(&d->connections, after), struct smartiod_connection,
			by_id);
	if (!c)
		return false;
	ret->key = sio_to_le64(c->id);
	ret->owner = sio_to_le64(c->o.session ? c->o.session->owner : 0);
	ret->bytes = sio_to_le64(c->bytes);
	ret->address = sio_to_le64(c->map_bus_addr);
	ret->id = sio_to_le32(c->segment_id);
	ret->node = sio_to_le32(c->node);
	ret->refs = sio_to_le32(c->n_maps + c->dma);
	ret->flags = sio_to_le32(smartiod_connection_over(c) ? 0 : SIO_ROW_LIVE);
	ret->pid = sio_to_le32(c->pid);
	snprintf(ret->name, sizeof(ret->name), "%s", route[c->route]);
	return true;
}

static const struct smartiod_rows rows[] = {
	{SIO_LIST_SEGMENTS, segment_row},
	{SIO_LIST_CONNECTIONS, connection_row},
	{0, NULL},
};

/* ---- other hosts ---- */

static void imports_lost(struct smartiod *d, uint32_t node, enum smartiod_loss why)
{
	if (why == SMARTIOD_NODE_DOWN)
		smartiod_connection_node_down(d, node);
}

static void exports_end(struct smartiod *d, uint32_t node, enum smartiod_loss why)
{
	if (why == SMARTIOD_LINK_DOWN) {
		smartiod_grant_link_lost(d, node);
		return;
	}
	smartiod_segment_node_down(d, node);
	smartiod_grant_node_down(d, node);
	smartiod_segments_notify(d);
}

static void resumed(struct smartiod *d, uint32_t node)
{
	smartiod_windows_resumed(d, node);
	smartiod_segment_resumed(d, node);
	smartiod_segments_notify(d);
}

static void path(struct smartiod *d, const struct smartiod_path_change *p)
{
	smartiod_connection_path(d, p->node, p->adapter, p->peer_adapter, p->up);
	smartiod_segment_path(d, p->node, p->adapter);
	if (p->up)
		return;
	smartiod_grant_path_down(d, p->node, p->adapter, p->peer_adapter);
	if (!p->last)
		smartiod_grant_path_lost(d, p->node, p->adapter, p->peer_adapter);
}

/* Where all that was granted is reported again, nothing need be asked. */
static void peer_ready(struct smartiod *d, uint32_t node)
{
	if (!smartiod_outlives(d, smartiod_peer_find(d, node)))
		smartiod_orphans_query(d, node);
}

static void free_all(struct smartiod *d)
{
	smartiod_connection_free_all(d);
	smartiod_grant_free_all(d);
	smartiod_segment_free_all(d);
}

static void forbidden(struct smartiod *d, const struct smartiod_forbid *f)
{
	smartiod_segments_forbidden(d, f);
	smartiod_connections_forbidden(d, f);
}

static void parting(struct smartiod *d, uint32_t node, bool gone)
{
	if (!gone)
		return; /* the link may come back */
	smartiod_segments_parting(d, node);
	smartiod_connections_parting(d, node);
}

const struct smartiod_room smartiod_room_segment = {
	.forbidden = forbidden,
	.parting = parting,
	.name = "segment",
	.requests = requests,
	.messages = messages,
	.late = late,
	.kinds = kinds,
	.restores = restores,
	.rows = rows,
	.free_all = free_all,
	.peer_ready = peer_ready,
	.resume = smartiod_segment_resume,
	.irq_ends = smartiod_grants_cut,
	.resumed = resumed,
	.new_start = smartiod_orphans_new_start,
	.imports_lost = imports_lost,
	.exports_end = exports_end,
	.path = path,
	.adapter_gone = smartiod_segments_adapter_gone,
	.has_grant = smartiod_window_has,
	.grant_again = smartiod_window_grant_again,
};
