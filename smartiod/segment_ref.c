/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is connected to a segment: references of importers, and what both sides are told of them. */
#include <errno.h>
#include <stdlib.h>

#include "smartiod/device.h"
#include "smartiod/internal.h"

/* References went: a device segment ends with its last one. */
static void refs_check(struct smartiod *d, struct smartiod_segment *seg)
{
	seg->pins++;
	if (seg->device && !seg->removed && seg->n_refs == 0)
		smartiod_device_segment_idle(d, seg);
	smartiod_segment_unpin(d, seg);
}

static void local_event(struct smartiod *d, struct smartiod_segment *seg, uint32_t reason,
			uint32_t node, uint32_t adapter)
{
	struct sio_evm_segment evm = {
		.handle = sio_to_le32(smartiod_handle(&seg->o)),
		.reason = sio_to_le32(reason),
		.node = sio_to_le32(node),
		.adapter = sio_to_le32(adapter),
	};

	/* Who is just coming back hears at the end how many there are (restore_base.c). */
	if (!seg->let_go && seg->o.session && seg->o.session->state != SMARTIOD_RESTORING)
		smartiod_event(d, seg->o.session, SIO_EVM_SEGMENT_LOCAL, &evm, sizeof(evm), NULL,
			       0);
	for (const struct smartiod_attachment *a = seg->attachments; a; a = a->next) {
		evm.handle = sio_to_le32(smartiod_handle(&a->o));
		if (a->o.session->state != SMARTIOD_RESTORING)
			smartiod_event(d, a->o.session, SIO_EVM_SEGMENT_LOCAL, &evm, sizeof(evm),
				       NULL, 0);
	}
}

/* Tell whoever has this connection. @lost: the reference is dropped by the caller. */
static void tell_importer(struct smartiod *d, const struct smartiod_ref *r, uint32_t reason,
			  bool lost)
{
	struct sio_peer_seg_event msg = {
		.h.type = sio_to_le32(SIO_PEER_SEG_EVENT),
		.connection = sio_to_le64(r->connection),
		.reason = sio_to_le32(reason),
		.lost = sio_to_le32(lost),
	};

	if (r->node == d->node)
		smartiod_connection_event(d, d->node, r->connection, reason, lost);
	else
		smartiod_peer_tell(d, r->node, &msg, sizeof(msg));
}

int smartiod_segment_ref(struct smartiod_segment *seg, uint32_t node, uint32_t adapter,
			 uint64_t connection, struct sio_err *reterr)
{
	struct smartiod_ref *r;

	if (seg->n_refs >= SMARTIOD_MAX_OBJECTS)
		return sio_fail_exhausted(reterr, -ECONNREFUSED, SIO_OUT_OF_CONNECTIONS,
					  "segment %#x has %u connections already", seg->id,
					  seg->n_refs);
	r = calloc(1, sizeof(*r));
	if (!r)
		return sio_fail(reterr, -ENOMEM, "the exporter's daemon is out of memory");
	r->node = node;
	r->adapter = adapter;
	r->connection = connection;
	r->next = seg->refs;
	seg->refs = r;
	seg->n_refs++;
	return 0;
}

void smartiod_segment_connected(struct smartiod *d, struct smartiod_segment *seg, uint32_t node,
				uint32_t adapter)
{
	local_event(d, seg, SCI_CB_CONNECT, node, adapter);
}

static void ref_free(struct smartiod_segment *seg, struct smartiod_ref **link)
{
	struct smartiod_ref *r = *link;

	*link = r->next;
	seg->n_refs--;
	free(r);
}

static struct smartiod_ref **ref_find(struct smartiod_segment *seg, uint32_t node,
				      uint64_t connection)
{
	struct smartiod_ref **link = &seg->refs;

	while (*link && ((*link)->node != node || (*link)->connection != connection))
		link = &(*link)->next;
	return link;
}

void smartiod_segment_unref(struct smartiod *d, struct smartiod_segment *seg, uint32_t node,
			    uint64_t connection, uint32_t reason)
{
	struct smartiod_ref **link = ref_find(seg, node, connection);

	if (!*link)
		return;
	if (reason && !(*link)->known_gone)
		local_event(d, seg, reason, node, (*link)->adapter);
	ref_free(seg, link);
	refs_check(d, seg);
}

bool smartiod_segment_has_ref(const struct smartiod_segment *seg, uint32_t node,
			      uint64_t connection)
{
	const struct smartiod_ref *r = seg->refs;

	while (r && (r->node != node || r->connection != connection))
		r = r->next;
	return r;
}

void smartiod_segment_cut(struct smartiod *d, struct smartiod_segment *seg, uint32_t adapter,
			  uint32_t reason)
{
	struct smartiod_ref *r, *rest = NULL;

	while ((r = seg->refs)) {
		seg->refs = r->next;
		if (adapter == SIO_ADAPTER_ANY || r->adapter == adapter) {
			seg->n_refs--;
			tell_importer(d, r, reason, true);
			free(r);
		} else {
			r->next = rest;
			rest = r;
		}
	}
	seg->refs = rest;
}

void smartiod_segment_ask_to_leave(struct smartiod *d, struct smartiod_segment *seg,
				   uint32_t adapter)
{
	for (const struct smartiod_ref *r = seg->refs; r; r = r->next)
		if (r->adapter == adapter)
			tell_importer(d, r, SCI_CB_DISCONNECT, false);
}

void smartiod_segment_node_down(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->segments, key))) {
		struct smartiod_segment *seg = SMARTIOD_OF(n, struct smartiod_segment, by_uid);
		struct smartiod_ref **link = &seg->refs;
		unsigned before = seg->n_refs;

		key = n->key;
		while (*link) {
			if ((*link)->node == node) {
				local_event(d, seg, SCI_CB_LOST, node, (*link)->adapter);
				ref_free(seg, link);
			} else {
				link = &(*link)->next;
			}
		}
		if (seg->n_refs != before)
			refs_check(d, seg);
	}
}

/*
 * One of the ways to a node went down, or up again. A reference knows our adapter alone, so it is
 * down when no path of the node through that adapter is up.
 */
void smartiod_segment_path(struct smartiod *d, uint32_t node, uint32_t adapter)
{
	struct smartiod_tree_node *n;
	struct sio_path path;
	struct sio_err err;
	bool down = smartiod_path(d, node, adapter, &path, &err) < 0;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->segments, key))) {
		struct smartiod_segment *seg = SMARTIOD_OF(n, struct smartiod_segment, by_uid);

		key = n->key;
		for (struct smartiod_ref *r = seg->refs; r; r = r->next) {
			if (r->node != node || r->adapter != adapter || r->down == down)
				continue;
			r->down = down;
			local_event(d, seg, down ? SCI_CB_NOT_OPERATIONAL : SCI_CB_OPERATIONAL,
				    node, adapter);
		}
	}
}
