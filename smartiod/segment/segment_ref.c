/* SPDX-License-Identifier: BSD-2-Clause */
/* References of importers to a segment, and the notifications of both sides about them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/segment/grant.h"
#include "smartiod/segment/segment.h"

/* References went: a device segment ends with its last one. */
static void refs_check(struct smartiod *d, struct smartiod_segment *seg)
{
	seg->pins++;
	if (seg->device && seg->state == SMARTIOD_SEGMENT_OWNED && seg->n_refs == 0)
		smartiod_segment_idle(d, seg);
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

	if (seg->untold && reason == SCI_CB_CONNECT) {
		seg->told++;
	} else if (seg->untold && (reason == SCI_CB_LOST || reason == SCI_CB_DISCONNECT)) {
		if (seg->told == 0)
			return; /* nobody has heard that it came */
		seg->told--;
	}
	/* Whoever is just coming back hears at the end how many there are (restore.c). */
	if (!seg->maker_released && seg->o.session && seg->o.session->state != SMARTIOD_RESTORING)
		smartiod_event(d, seg->o.session, SIO_EVM_SEGMENT_LOCAL, &evm, sizeof(evm), NULL,
			       0);
	for (const struct smartiod_attachment *a = seg->attachments; a; a = a->next) {
		evm.handle = sio_to_le32(smartiod_handle(&a->o));
		if (a->o.session->state != SMARTIOD_RESTORING)
			smartiod_event(d, a->o.session, SIO_EVM_SEGMENT_LOCAL, &evm, sizeof(evm),
				       NULL, 0);
	}
}

/* Tell whoever has this connection. SIO_LOSS_LOST: the reference is dropped by the caller. */
static void notify_importer(struct smartiod *d, const struct smartiod_ref *r, uint32_t reason,
			    enum sio_segment_loss loss)
{
	struct sio_peer_seg_event msg = {
		.h.type = sio_to_le32(SIO_PEER_SEG_EVENT),
		.connection = sio_to_le64(r->connection),
		.reason = sio_to_le32(reason),
		.loss = sio_to_le32(loss),
	};

	smartiod_notify(d, r->node, &msg, sizeof(msg));
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
		return sio_fail(reterr, -ENOMEM,
				"the exporter's daemon is out of memory: " SIO_MORE_MEMORY);
	r->node = node;
	r->adapter = adapter;
	r->connection = connection;
	r->next = seg->refs;
	r->prev = &seg->refs;
	if (r->next)
		r->next->prev = &r->next;
	seg->refs = r;
	sio_hash_add(&seg->refs_by_connection, &r->by_connection, connection);
	seg->n_refs++;
	return 0;
}

void smartiod_segment_connected(struct smartiod *d, struct smartiod_segment *seg, uint32_t node,
				uint32_t adapter)
{
	local_event(d, seg, SCI_CB_CONNECT, node, adapter);
}

static void ref_free(struct smartiod_segment *seg, struct smartiod_ref *r)
{
	*r->prev = r->next;
	if (r->next)
		r->next->prev = r->prev;
	sio_hash_remove(&seg->refs_by_connection, &r->by_connection);
	seg->n_refs--;
	free(r);
}

void smartiod_segment_refs_free(struct smartiod_segment *seg)
{
	while (seg->refs)
		ref_free(seg, seg->refs);
	sio_hash_done(&seg->refs_by_connection);
}

/* Two nodes may have given the same number. */
static struct smartiod_ref *ref_find(const struct smartiod_segment *seg, uint32_t node,
				     uint64_t connection)
{
	struct sio_hash_node *n = sio_hash_find(&seg->refs_by_connection, connection);

	while (n && SIO_HASH_OF(n, struct smartiod_ref, by_connection)->node != node)
		n = sio_hash_next(n);
	return SIO_HASH_OF(n, struct smartiod_ref, by_connection);
}

void smartiod_segment_unref(struct smartiod *d, struct smartiod_segment *seg, uint32_t node,
			    uint64_t connection, uint32_t reason)
{
	struct smartiod_ref *r = ref_find(seg, node, connection);

	if (!r)
		return;
	if (reason && !r->known_gone)
		local_event(d, seg, reason, node, r->adapter);
	ref_free(seg, r);
	refs_check(d, seg);
}

bool smartiod_segment_has_ref(const struct smartiod_segment *seg, uint32_t node,
			      uint64_t connection)
{
	return ref_find(seg, node, connection);
}

void smartiod_segment_cut(struct smartiod *d, struct smartiod_segment *seg, uint32_t adapter,
			  uint32_t reason)
{
	struct smartiod_ref *r, *next;

	for (r = seg->refs; r; r = next) {
		struct smartiod_ref gone = *r;

		next = r->next;
		if (adapter != SIO_ADAPTER_ANY && r->adapter != adapter)
			continue;
		ref_free(seg, r);
		notify_importer(d, &gone, reason, SIO_LOSS_LOST);
	}
}

void smartiod_segment_ask_to_leave(struct smartiod *d, struct smartiod_segment *seg,
				   uint32_t adapter)
{
	for (const struct smartiod_ref *r = seg->refs; r; r = r->next)
		if (r->adapter == adapter)
			notify_importer(d, r, SCI_CB_DISCONNECT, SIO_LOSS_NONE);
}

void smartiod_segment_notify_removed(struct smartiod *d, struct smartiod_segment *seg)
{
	for (struct smartiod_ref *r = seg->refs; r; r = r->next) {
		const struct smartiod_peer *p = smartiod_peer_find(d, r->node);

		r->unheard = p && p->state != SMARTIOD_PEER_READY;
		notify_importer(d, r, SCI_CB_DISCONNECT, SIO_LOSS_REMOVED);
	}
}

void smartiod_segment_ref_resume(struct smartiod *d, struct smartiod_segment *seg, uint32_t node,
				 uint32_t adapter, uint64_t connection, bool may)
{
	const struct smartiod_ref none = {.node = node, .connection = connection};
	struct smartiod_ref *r = seg ? ref_find(seg, node, connection) : NULL;
	struct sio_err err;
	bool is_new = !r && may && smartiod_segment_usable(seg, false) &&
		      smartiod_segment_ref(seg, node, adapter, connection, &err) == 0;

	if (is_new)
		r = seg->refs; /* the newest is first */
	if (!r) {
		notify_importer(d, &none, SCI_CB_LOST, SIO_LOSS_LOST);
		return;
	}
	r->meeting = smartiod_peer_find(d, node)->meeting;
	if (is_new && !seg->untold)
		smartiod_segment_connected(d, seg, node, adapter);
	if (r->unheard || (is_new && seg->state == SMARTIOD_SEGMENT_KEPT))
		notify_importer(d, r, SCI_CB_DISCONNECT, SIO_LOSS_REMOVED);
	r->unheard = false;
}

/* Those of @node that were not reported at meeting @but; UINT32_MAX: all. */
static void drop_refs(struct smartiod *d, uint32_t node, uint32_t but)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->segments, key))) {
		struct smartiod_segment *seg = SMARTIOD_OF(n, struct smartiod_segment, by_uid);
		struct smartiod_ref *r = seg->refs, *next;
		unsigned before = seg->n_refs;

		key = n->key;
		for (; r; r = next) {
			next = r->next;
			if (r->node != node || r->meeting == but)
				continue;
			local_event(d, seg, SCI_CB_LOST, node, r->adapter);
			ref_free(seg, r);
		}
		if (seg->n_refs != before)
			refs_check(d, seg);
	}
}

/* Notify of one importer alone, of however many connections. */
static bool is_first_of(const struct smartiod_segment *seg, const struct smartiod_ref *r)
{
	const struct smartiod_ref *at = seg->refs;

	while (at != r && at->node != r->node)
		at = at->next;
	return at == r;
}

static bool node_may_not(struct smartiod *d, const struct smartiod_forbid *f,
			 const struct smartiod_segment *seg, uint32_t node, struct sio_err *why)
{
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_SEGMENTS, d->node, seg->id);

	/* A device's segments are lost with the borrow. */
	return !seg->device && smartiod_forbids_node(d, f->topology, &thing, node, why);
}

static void refs_forbidden(struct smartiod *d, const struct smartiod_forbid *f,
			   struct smartiod_segment *seg)
{
	struct smartiod_ref *r;
	struct sio_err why;

	for (r = seg->refs; r; r = r->next)
		if (is_first_of(seg, r) && node_may_not(d, f, seg, r->node, &why))
			smartiod_report(d, f->enforce ? SIO_RELOAD_ENDS : SIO_RELOAD_STAYS,
					"connection: %s", why.text);
	if (!f->act)
		return;
	for (struct smartiod_ref *next = seg->refs; (r = next);) {
		struct smartiod_ref gone = *r;

		next = r->next;
		if (!node_may_not(d, f, seg, r->node, &why))
			continue;
		local_event(d, seg, SCI_CB_LOST, r->node, r->adapter);
		ref_free(seg, r);
		notify_importer(d, &gone, SCI_CB_LOST, SIO_LOSS_LOST);
	}
	refs_check(d, seg);
}

/* Its maker may make no such segment any more. */
static void maker_forbidden(struct smartiod *d, const struct smartiod_forbid *f,
			    const struct smartiod_segment *seg)
{
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_SEGMENTS, d->node, seg->id);
	struct sio_err why;

	if ((seg->named || seg->broadcast) && seg->o.session &&
	    smartiod_forbids_program(&f->topology->policy, seg->o.session, &thing, &why))
		smartiod_report(d, SIO_RELOAD_STAYS, "segment of process %u: %s", seg->pid,
				why.text);
}

void smartiod_segments_forbidden(struct smartiod *d, const struct smartiod_forbid *f)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->segments, key))) {
		struct smartiod_segment *seg = SMARTIOD_OF(n, struct smartiod_segment, by_uid);

		key = n->key;
		maker_forbidden(d, f, seg);
		refs_forbidden(d, f, seg);
	}
}

void smartiod_segments_parting(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->segments, key))) {
		const struct smartiod_segment *seg =
			SMARTIOD_OF(n, struct smartiod_segment, by_uid);
		const struct smartiod_ref *r = seg->refs;

		key = n->key;
		while (r && r->node != node)
			r = r->next;
		if (r && !seg->device)
			smartiod_report(d, SIO_RELOAD_ENDS,
					"connection of node %" PRIu32 ": segment %#" PRIx32, node,
					seg->id);
	}
}

void smartiod_segment_node_down(struct smartiod *d, uint32_t node)
{
	drop_refs(d, node, UINT32_MAX);
}

void smartiod_segment_resumed(struct smartiod *d, uint32_t node)
{
	drop_refs(d, node, smartiod_peer_find(d, node)->meeting);
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
