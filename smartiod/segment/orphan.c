/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Orphaned grants: memory that a lost host may still write to. When the connection of the daemons
 * ends, the importer cannot be asked any more. It may be alive and have unmapped everything at
 * once; or its daemon may be dead while its programs, their DMA engines and its devices go on, and
 * so do their windows. When only the last path to a host goes down, the same is true of devices
 * that this host borrows from it.
 *
 * Such a grant is orphaned. It stays at the port, and only the importer ends it: by GRANT_RELEASE,
 * or by a new start. The memory stays reserved with it. Where an IOMMU of this host blocks what
 * still arrives, only the address stays reserved; otherwise it would lead to what is granted to
 * another host next. The program that owns the memory is not affected by an orphaned grant.
 *
 * Each time that the two daemons connect again, the exporter asks for every orphaned grant whether
 * the importer still has it (GRANT_QUERY). The importer releases one that it does not know at once,
 * the others when they are unmapped or settled. So it need not remember releases that it could not
 * send.
 */
#include <inttypes.h>

#include "smartiod/base/room.h"
#include "smartiod/segment/grant.h"
#include "smartiod/segment/requests.h"
#include "smartiod/segment/segment.h"

static bool is_translated(const struct smartiod *d, const struct smartiod_grant *g)
{
	return d->adapter[g->adapter].iommu && !g->irq;
}

/*
 * Its address is orphaned: the port takes it back, and whoever waits for its end is notified of
 * that.
 */
static void orphan_address(struct smartiod *d, struct smartiod_grant *g)
{
	struct sio_req_ungrant req = {
		.h = {.op = SIO_OP_UNGRANT, .flags = SIO_UNGRANT_KEEP_ADDRESS},
		.id = g->by_id.key,
	};
	struct smartiod_peer *p = smartiod_peer_find(d, g->node);
	struct smartiod_grant was = *g;

	if (p)
		p->n_rings -= g->ring_memory;
	g->orphaned = true;
	g->ring_memory = false;
	g->segment = NULL;
	g->ring = NULL;
	g->target = 0;
	smartiod_port_send(d, &req, sizeof(req));
	if (was.segment)
		smartiod_segment_grant_put(d, was.segment, &was);
	if (was.ring)
		was.ops->gone(d, was.ring, req.id);
}

/*
 * The memory is orphaned, which the peer may reach as long as it is where it was. False: registers
 * of devices and interrupts are no memory that could become somebody else's.
 */
static bool orphan_memory(struct smartiod *d, struct smartiod_grant *g)
{
	g->orphaned = true;
	if (g->ring)
		return g->orphaned = g->ops->orphaned(d, g->ring, g->by_id.key);
	if (!g->segment)
		return g->orphaned = false;
	g->segment->n_orphaned++;
	g->segment->n_own_grants -= g->own_borrow;
	smartiod_segment_check(d, g->segment); /* kept, it may end with this */
	return true;
}

/* Does that keep memory? */
static bool set_orphaned(struct smartiod *d, struct smartiod_grant *g)
{
	if (!is_translated(d, g))
		return orphan_memory(d, g);
	orphan_address(d, g);
	return false;
}

void smartiod_grant_cut(struct smartiod *d, uint64_t id)
{
	struct smartiod_grant *g =
		SMARTIOD_OF(smartiod_tree_find(&d->grants, id), struct smartiod_grant, by_id);

	if (g && !g->orphaned && is_translated(d, g))
		orphan_address(d, g);
	else if (g && !g->orphaned)
		smartiod_grant_end(d, id);
}

/* Of before our start: its importer may have pages of a BAR for a device, which it cuts. */
static void notify_cut(struct smartiod *d, const struct smartiod_grant *g)
{
	struct sio_peer_bar_cut msg = {
		.h.type = sio_to_le32(SIO_PEER_BAR_CUT),
		.grant = sio_to_le64(g->by_id.key),
		.held = sio_to_le32(is_translated(d, g)),
	};

	if (!g->irq && g->node != d->node)
		smartiod_notify(d, g->node, &msg, sizeof(msg));
}

void smartiod_grants_cut(struct smartiod *d, uint64_t target)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->grants, key))) {
		struct smartiod_grant *g = SMARTIOD_OF(n, struct smartiod_grant, by_id);

		key = n->key;
		if (g->target != target)
			continue;
		notify_cut(d, g);
		if (is_translated(d, g))
			orphan_address(d, g);
		else
			smartiod_grant_end(d, key);
	}
}

/* The next one to @node after *key, of a kind; NULL. */
static struct smartiod_grant *next_grant(struct smartiod *d, uint32_t node, bool orphaned,
					 uint64_t *key)
{
	struct smartiod_tree_node *n;

	while ((n = smartiod_tree_after(&d->grants, *key))) {
		struct smartiod_grant *g = SMARTIOD_OF(n, struct smartiod_grant, by_id);

		*key = n->key;
		if (g->node == node && g->orphaned == orphaned)
			return g;
	}
	return NULL;
}

/* What is lost of all that a node has of us. */
struct lost {
	uint32_t node;
	bool own_borrows; /* only what devices have that this host borrows of it */
	bool one_path;	  /* only what goes over this one */
	uint32_t adapter, peer_adapter;
};

static bool is_lost(const struct smartiod_grant *g, const struct lost *what)
{
	if (what->own_borrows && !g->own_borrow)
		return false;
	return !what->one_path ||
	       (g->adapter == what->adapter && g->peer_adapter == what->peer_adapter);
}

/*
 * Orphans all memory first, and then ends the other grants: with a ring's trigger its memory would
 * end, too.
 */
static void lose(struct smartiod *d, const struct lost *what)
{
	struct smartiod_grant *g;
	uint64_t key = 0;
	unsigned n = 0;

	while ((g = next_grant(d, what->node, false, &key)))
		if (is_lost(g, what))
			n += set_orphaned(d, g);
	key = 0;
	while ((g = next_grant(d, what->node, false, &key)))
		if (is_lost(g, what))
			smartiod_grant_end(d, key);
	if (n)
		smartiod_log(d, SMARTIOD_INFO,
			     "%u ranges of memory are in quarantine: node %" PRIu32
			     ", which was lost, may still write to them",
			     n, what->node);
}

void smartiod_grant_node_down(struct smartiod *d, uint32_t node)
{
	lose(d, &(struct lost){.node = node});
}

void smartiod_grant_orphan(struct smartiod *d, uint64_t id)
{
	struct smartiod_grant *g =
		SMARTIOD_OF(smartiod_tree_find(&d->grants, id), struct smartiod_grant, by_id);

	if (g && !g->orphaned)
		set_orphaned(d, g);
}

void smartiod_grant_link_lost(struct smartiod *d, uint32_t node)
{
	lose(d, &(struct lost){.node = node, .own_borrows = true});
}

void smartiod_grant_path_lost(struct smartiod *d, uint32_t node, uint32_t adapter,
			      uint32_t peer_adapter)
{
	lose(d, &(struct lost){.node = node,
			       .own_borrows = true,
			       .one_path = true,
			       .adapter = adapter,
			       .peer_adapter = peer_adapter});
}

bool smartiod_grant_orphaned(struct smartiod *d, uint64_t id)
{
	const struct smartiod_grant *g =
		SMARTIOD_OF(smartiod_tree_find(&d->grants, id), struct smartiod_grant, by_id);

	return g && g->orphaned;
}

void smartiod_orphans_query(struct smartiod *d, uint32_t node)
{
	uint64_t key = 0;

	while (next_grant(d, node, true, &key)) {
		struct sio_peer_grant_query msg = {.h.type = sio_to_le32(SIO_PEER_GRANT_QUERY),
						   .grant = sio_to_le64(key)};

		smartiod_peer_send(d, node, &msg, sizeof(msg));
	}
}

int smartiod_peer_grant_query(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			      struct sio_err *reterr)
{
	const struct sio_peer_grant_query *m = msg;
	uint64_t grant = sio_from_le64(m->grant);

	(void)reterr;
	if (!smartiod_has_grant(d, from->node, grant))
		smartiod_grant_release(d, from->node, grant);
	return 0;
}

void smartiod_orphans_new_start(struct smartiod *d, uint32_t node)
{
	uint64_t key = 0;

	while (next_grant(d, node, true, &key))
		smartiod_grant_end(d, key);
}
