/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resynchronisation of segments and grants between two daemons (wire/peer.h, RESUME_*), after one
 * of them was restarted or messages were lost. The exporter names each grant, and the importer
 * answers whether it has it. The importer names each connection; connections that it does not name
 * are released.
 *
 * A daemon that was restarted knows from its port which grants other hosts have. They keep the
 * memory that they are of, as orphaned grants do, until their importer has confirmed that it still
 * has them.
 */
#include "smartiod/base/allow.h"
#include "smartiod/base/room.h"
#include "smartiod/segment/connection.h"
#include "smartiod/segment/grant.h"
#include "smartiod/segment/requests.h"
#include "smartiod/segment/segment.h"

static struct smartiod_grant *next_grant(struct smartiod *d, uint64_t *key)
{
	struct smartiod_tree_node *n = smartiod_tree_after(&d->grants, *key);

	if (n)
		*key = n->key;
	return SMARTIOD_OF(n, struct smartiod_grant, by_id);
}

/* ---- of before our start ---- */

void smartiod_grants_attach(struct smartiod *d, struct smartiod_segment *seg)
{
	struct smartiod_grant *g;
	uint64_t key = 0;

	while ((g = next_grant(d, &key))) {
		if (!g->target || g->target != seg->mem || g->segment)
			continue;
		g->segment = seg;
		seg->n_grants++;
		seg->n_orphaned += g->orphaned;
		if (!g->exported.account)
			smartiod_charge_node(d, g->node, &g->exported, SIO_QUOTA_EXPORTED,
					     g->bytes);
	}
}

bool smartiod_segment_granted(struct smartiod *d, const struct smartiod_segment *seg, uint32_t node)
{
	const struct smartiod_grant *g;
	uint64_t key = 0;

	while ((g = next_grant(d, &key)))
		if (g->segment == seg && g->node == node)
			return true;
	return false;
}

bool smartiod_grant_resume(struct smartiod *d, uint64_t id, uint32_t node, uint64_t target)
{
	struct smartiod_grant *g =
		SMARTIOD_OF(smartiod_tree_find(&d->grants, id), struct smartiod_grant, by_id);

	if (!g || !target || g->node != node || g->target != target)
		return false;
	if (g->orphaned && g->segment)
		g->segment->n_orphaned--;
	g->orphaned = false;
	return true;
}

/* One of @target; by its number, if @id is one. */
static struct smartiod_grant *of_before(struct smartiod *d, uint64_t id, uint64_t target)
{
	struct smartiod_grant *g =
		SMARTIOD_OF(smartiod_tree_find(&d->grants, id), struct smartiod_grant, by_id);
	uint64_t key = 0;

	if (id)
		return g && g->target == target && !g->ring ? g : NULL;
	while ((g = next_grant(d, &key)) && (g->target != target || g->ring))
		;
	return g;
}

const struct smartiod_grant *smartiod_grant_ring_again(struct smartiod *d, uint64_t id,
						       uint64_t target, struct smartiod_ring *ring,
						       const struct smartiod_grant_ops *ops,
						       bool ended)
{
	struct smartiod_grant *g = of_before(d, id, target);
	struct smartiod_peer *p = g ? smartiod_peer_find(d, g->node) : NULL;

	if (!g)
		return NULL;
	g->ring = ring;
	g->ops = ops;
	g->target = 0;
	g->orphaned = ended;
	g->ring_memory = !g->irq && !ended;
	if (p)
		p->n_rings += g->ring_memory;
	return g;
}

uint64_t smartiod_grant_irq(struct smartiod *d, uint64_t id, uint32_t node)
{
	const struct smartiod_grant *g =
		SMARTIOD_OF(smartiod_tree_find(&d->grants, id), struct smartiod_grant, by_id);

	return id && g && g->irq && g->node == node ? g->target : 0;
}

void smartiod_grants_of_irqs_end(struct smartiod *d, uint32_t node)
{
	struct smartiod_grant *g;
	uint64_t key = 0;

	while ((g = next_grant(d, &key)))
		if (g->irq && g->target && g->node == node)
			smartiod_grant_end(d, key);
}

/* ---- what we granted ---- */

/* The importer was lost, and an IOMMU keeps it from what was there (orphan.c). */
static bool is_empty(const struct smartiod_grant *g)
{
	return g->orphaned && !g->segment && !g->ring && !g->mem && !g->target;
}

static void send_grants(struct smartiod *d, uint32_t node)
{
	const struct smartiod_grant *g;
	uint64_t key = 0;

	while ((g = next_grant(d, &key))) {
		struct sio_peer_resume_grant msg = {
			.h.type = sio_to_le32(SIO_PEER_RESUME_GRANT),
			.grant = sio_to_le64(key),
			.bus_addr = sio_to_le64(g->bus_addr),
			.adapter = sio_to_le32(g->adapter),
			.peer_adapter = sio_to_le32(g->peer_adapter),
			.empty = sio_to_le32(is_empty(g)),
		};

		if (g->node != node)
			continue;
		for (unsigned i = 0; d->rooms[i] && !g->segment && !g->ring; i++)
			if (d->rooms[i]->fill_grant)
				d->rooms[i]->fill_grant(d, g->target, &msg);
		smartiod_peer_send(d, node, &msg, sizeof(msg));
	}
}

/* Something of before our start may have a window there, for a device of ours. */
static bool is_mapped_again(struct smartiod *d, uint32_t node,
			    const struct sio_peer_resume_grant *m)
{
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->grant_again && d->rooms[i]->grant_again(d, node, m))
			return true;
	return false;
}

int smartiod_peer_resume_grant(struct smartiod *d, const struct smartiod_from *from,
			       const void *msg, struct sio_err *reterr)
{
	const struct sio_peer_resume_grant *m = msg;
	uint64_t grant = sio_from_le64(m->grant);
	struct sio_peer_resume_held held = {.h.type = sio_to_le32(SIO_PEER_RESUME_HELD),
					    .grant = m->grant,
					    .purpose = sio_to_le32(SIO_GRANT_CPU)};

	(void)reterr;
	if (!is_mapped_again(d, from->node, m) && !smartiod_has_grant(d, from->node, grant)) {
		smartiod_grant_release(d, from->node, grant);
		return 0;
	}
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->fill_held)
			d->rooms[i]->fill_held(d, from->node, &held);
	smartiod_peer_send(d, from->node, &held, sizeof(held));
	return 0;
}

/* Of a BAR's pages: whose these are is perhaps not known yet. */
static void hold_again(struct smartiod *d, const struct smartiod_grant *g)
{
	uint64_t id = g->by_id.key;
	uint32_t node = g->node;

	for (unsigned i = 0; d->rooms[i] && g->purpose == SIO_GRANT_DEVICE; i++)
		if (d->rooms[i]->held_again)
			d->rooms[i]->held_again(d, node, id);
}

int smartiod_peer_resume_held(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			      struct sio_err *reterr)
{
	const struct sio_peer_resume_held *m = msg;
	uint64_t id = sio_from_le64(m->grant);
	struct smartiod_grant *g =
		SMARTIOD_OF(smartiod_tree_find(&d->grants, id), struct smartiod_grant, by_id);

	(void)reterr;
	if (!g || !g->target || !g->orphaned || g->node != from->node)
		return 0;
	g->purpose = sio_from_le32(m->purpose);
	if (!g->segment) {
		hold_again(d, g);
		return 0;
	}
	if (!smartiod_grant_resume(d, id, from->node, g->target))
		return 0;
	g->own_borrow = sio_from_le32(m->own) == 1;
	g->segment->n_own_grants += g->own_borrow;
	return 0;
}

/* ---- connections ---- */

static void send_connection(struct smartiod *d, const struct smartiod_connection *c)
{
	struct sio_peer_resume_seg msg = {
		.h.type = sio_to_le32(SIO_PEER_RESUME_SEG),
		.connection = sio_to_le64(c->id),
		.uid = sio_to_le64(c->uid),
		.adapter = sio_to_le32(c->peer_adapter),
	};
	struct sio_peer_resume_dev_seg dev = {
		.h.type = sio_to_le32(SIO_PEER_RESUME_DEV_SEG),
		.borrower = sio_to_le64(c->via),
		.uid = sio_to_le64(c->uid),
		.connection = sio_to_le64(c->id),
		.fdid = sio_to_le32(c->fdid),
		.adapter = sio_to_le32(c->peer_adapter),
	};

	if (c->via && c->lender == c->node)
		smartiod_peer_send(d, c->node, &dev, sizeof(dev));
	else
		smartiod_peer_send(d, c->node, &msg, sizeof(msg));
}

void smartiod_segment_resume(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->connections, key))) {
		const struct smartiod_connection *c =
			SMARTIOD_OF(n, struct smartiod_connection, by_id);

		key = n->key;
		if (c->route == SMARTIOD_REMOTE && c->node == node &&
		    !smartiod_connection_connecting(c) && !smartiod_connection_over(c))
			send_connection(d, c);
	}
	send_grants(d, node);
}

/*
 * One that we do not know is as a new one: who knows a segment's number may not have it. A device's
 * segment in our memory goes with the device, which is its lender's. To one that was removed nobody
 * can have connected since; if nothing says which number that had, the rules did when it was
 * granted.
 */
static bool may_have(struct smartiod *d, const struct smartiod_segment *seg, uint32_t node)
{
	const struct sio_policy_thing thing =
		smartiod_thing(d, SIO_POLICY_SEGMENTS, d->node, seg->id);
	struct sio_err err;

	if (seg->state == SMARTIOD_SEGMENT_KEPT && !smartiod_peer_find(d, node)->expected)
		return false;
	if (seg->numberless)
		return smartiod_segment_granted(d, seg, node);
	if (seg->device)
		return sio_topology_fdid_node(seg->device) != d->node &&
		       smartiod_allow_device(d, seg->device, node, &err) == 0;
	return smartiod_allow_node(d, &thing, node, &err) == 0;
}

int smartiod_peer_resume_seg(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			     struct sio_err *reterr)
{
	const struct sio_peer_resume_seg *m = msg;
	struct smartiod_segment *seg = smartiod_segment_by_uid(d, sio_from_le64(m->uid));
	uint32_t adapter = sio_from_le32(m->adapter);
	uint64_t connection = sio_from_le64(m->connection);
	bool may = seg && adapter < d->host->n_adapters &&
		   (seg->device || seg->exported & 1u << adapter) &&
		   (smartiod_segment_has_ref(seg, from->node, connection) ||
		    may_have(d, seg, from->node));

	(void)reterr;
	smartiod_segment_ref_resume(d, seg, from->node, adapter, connection, may);
	return 0;
}
