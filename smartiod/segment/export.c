/* SPDX-License-Identifier: BSD-2-Clause */
/* The exporter's side of segments: requests of importers' daemons. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/segment/grant.h"
#include "smartiod/segment/requests.h"
#include "smartiod/segment/segment.h"

/* May @node have what it asks for? A device's segment goes with the device. */
static int may_have(struct smartiod *d, uint32_t node, const struct smartiod_segment *seg,
		    struct sio_err *reterr)
{
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_SEGMENTS, d->node, seg->id);

	return seg->device ? smartiod_allow_device(d, seg->device, node, reterr)
			   : smartiod_allow_node(d, &thing, node, reterr);
}

int smartiod_peer_seg_lookup(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			     struct sio_err *reterr)
{
	const struct sio_peer_seg_lookup *m = msg;
	uint32_t adapter = sio_from_le32(m->adapter);
	uint64_t connection = sio_from_le64(m->connection);
	const struct smartiod_wanted wanted = {.uid = sio_from_le64(m->uid),
					       .id = sio_from_le32(m->segment_id),
					       .device = sio_from_le32(m->fdid)};
	struct smartiod_segment *seg;
	struct sio_prep_seg_lookup rep = {.connection = m->connection};
	struct sio_path path;
	int rc = smartiod_path(d, from->node, adapter, &path, reterr);

	if (rc < 0)
		return rc;
	seg = smartiod_segment_lookup(d, &wanted, adapter, reterr);
	if (!seg)
		return reterr->code;
	rc = may_have(d, from->node, seg, reterr);
	if (rc < 0)
		return rc;
	if (smartiod_segment_has_ref(seg, from->node, connection))
		return sio_fail(reterr, -EEXIST, "this connection exists");
	rc = smartiod_segment_ref(seg, from->node, adapter, connection, reterr);
	if (rc < 0)
		return rc;
	rep.uid = sio_to_le64(seg->uid);
	rep.bytes = sio_to_le64(seg->bytes);
	rep.segment_id = sio_to_le32(seg->id);
	smartiod_peer_reply(d, from->node, SIO_PEER_SEG_LOOKUP, sio_from_le32(m->h.id), &rep,
			    sizeof(rep));
	smartiod_segment_connected(d, seg, from->node, adapter);
	return 0;
}

int smartiod_peer_seg_release(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			      struct sio_err *reterr)
{
	const struct sio_peer_seg_release *m = msg;
	struct smartiod_segment *seg = smartiod_segment_by_uid(d, sio_from_le64(m->uid));
	uint32_t reason = sio_from_le32(m->reason);

	if (reason != SCI_CB_DISCONNECT && reason != SCI_CB_LOST)
		return sio_fail(reterr, -EPROTO, "a release for reason %u", reason);
	if (seg)
		smartiod_segment_unref(d, seg, from->node, sio_from_le64(m->connection), reason);
	return 0;
}

struct grant_op {
	struct smartiod_op op;
	struct smartiod_grant grant; /* as it will be kept; its segment is pinned */
};

/* Why a grant that the port made cannot be given out; 0: it can. */
static int grant_check(struct smartiod *d, const struct grant_op *g, struct sio_err *reterr)
{
	if (smartiod_op_orphan(&g->op))
		return -ECANCELED;
	if (g->grant.segment->state == SMARTIOD_SEGMENT_ENDED)
		return sio_fail(reterr, -ENOENT, "segment %#x was removed meanwhile",
				g->grant.segment->id);
	if (!smartiod_path_up(d, g->op.asker, g->grant.adapter, g->grant.peer_adapter))
		return sio_fail(reterr, -ENETDOWN, "the link of adapter %u is down",
				g->grant.adapter);
	return 0;
}

static void grant_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct grant_op *g = (struct grant_op *)op;
	const struct sio_evt_grant *evt = a->msg;
	struct sio_err err = {.text = ""};
	int rc = smartiod_gone(a->error);

	if (rc) {
		smartiod_op_error(d, op, rc, "%s", a->text);
	} else {
		g->grant.bus_addr = evt->bus_addr;
		rc = grant_check(d, g, &err);
		if (rc == 0)
			rc = smartiod_grant_keep(d, evt->id, &g->grant, &err);
		if (rc < 0) {
			smartiod_port_ungrant(d, evt->id);
			smartiod_op_fail(d, op, &err);
		} else {
			struct sio_prep_seg_grant rep = {0};

			smartiod_wire_grant(evt, &rep.g);
			smartiod_op_reply(d, op, &rep, sizeof(rep), NULL, 0);
		}
	}
	smartiod_segment_unpin(d, g->grant.segment);
	smartiod_op_free(d, op);
}

/* May the asker have this range? */
static int grant_allowed(struct smartiod *d, const struct smartiod_from *from,
			 const struct sio_peer_seg_grant *m, struct smartiod_segment *seg,
			 struct sio_err *reterr)
{
	uint64_t offset = sio_from_le64(m->offset), bytes = sio_from_le64(m->bytes), end;
	uint64_t connection = sio_from_le64(m->ref_connection);
	uint32_t ref_node = sio_from_le32(m->ref_node), access = sio_from_le32(m->access);
	uint32_t purpose = sio_from_le32(m->purpose);
	bool own = connection == 0 && ref_node == d->node && purpose == SIO_GRANT_DEVICE;

	if (!seg || !smartiod_segment_usable(seg, own))
		return sio_fail(reterr, -ENOENT, "%s has no such segment any more", d->host->name);
	if (purpose != SIO_GRANT_DEVICE && (purpose != SIO_GRANT_CPU || ref_node != from->node))
		return sio_fail(reterr, -EACCES, "a grant to node %u for a program of node %u",
				from->node, ref_node);
	if (own && !smartiod_maps_for(d, from->node, seg->uid, offset, bytes))
		return sio_fail(reterr, -EACCES,
				"no program of %s maps this of segment %#x for a device of node %u",
				d->host->name, seg->id, from->node);
	if (!own && !smartiod_segment_has_ref(seg, ref_node, connection))
		return sio_fail(reterr, -ENOTCONN, "node %u is not connected to segment %#x",
				ref_node, seg->id);
	if (bytes == 0 || __builtin_add_overflow(offset, bytes, &end) || end > seg->bytes)
		return sio_fail(reterr, -ERANGE,
				"%" PRIu64 " bytes at %" PRIu64 " of a segment of %" PRIu64, bytes,
				offset, seg->bytes);
	/* Of a lender that has its borrower's connection mapped: its devices reach it as well. */
	if (!own && from->node != ref_node && may_have(d, from->node, seg, reterr) < 0)
		return reterr->code;
	if (access == 0 || access & ~(SIO_ACCESS_READ | SIO_ACCESS_WRITE))
		return sio_fail(reterr, -EINVAL,
				"access %#x; 1 (read), 2 (write) or 3 (both) is right", access);
	if (!smartiod_path_up(d, from->node, sio_from_le32(m->adapter),
			      sio_from_le32(m->peer_adapter)))
		return sio_fail(reterr, -ENETDOWN, "no link from adapter %u of %s to adapter %u",
				sio_from_le32(m->adapter), d->host->name,
				sio_from_le32(m->peer_adapter));
	return 0;
}

int smartiod_peer_seg_grant(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			    struct sio_err *reterr)
{
	const struct sio_peer_seg_grant *m = msg;
	struct smartiod_segment *seg = smartiod_segment_by_uid(d, sio_from_le64(m->uid));
	int rc = grant_allowed(d, from, m, seg, reterr);
	struct sio_req_grant req;
	struct grant_op *g;

	if (rc < 0)
		return rc;
	g = smartiod_op_new_peer(d, from->node, msg, sizeof(*g), grant_step, reterr);
	if (!g)
		return reterr->code;
	g->grant = (struct smartiod_grant){
		.node = from->node,
		.adapter = sio_from_le32(m->adapter),
		.peer_adapter = sio_from_le32(m->peer_adapter),
		.purpose = sio_from_le32(m->purpose),
		.segment = seg,
		.bytes = sio_from_le64(m->bytes),
	};
	g->grant.own_borrow =
		g->grant.purpose == SIO_GRANT_DEVICE && sio_from_le32(m->ref_node) == d->node;
	smartiod_segment_pin(seg);
	req = (struct sio_req_grant){
		.h = {.op = SIO_OP_GRANT, .owner = seg->owner},
		.source_kind = SIO_KIND_MEM,
		.access = sio_from_le32(m->access),
		.source = seg->mem,
		.offset = sio_from_le64(m->offset),
		.length = sio_from_le64(m->bytes),
		.adapter = g->grant.adapter,
		.peer_node = from->node,
		.peer_adapter = g->grant.peer_adapter,
	};
	smartiod_port_ask(d, &g->op, &req, sizeof(req));
	return 0;
}
