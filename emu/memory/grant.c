/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The exporter's half of a window: a range of a host's memory gets an address on the bus behind an
 * adapter. With the host's IOMMU on, that address is an I/O virtual one of the adapter's domain,
 * and nothing else of the host can be reached through it. With it off it is the physical address,
 * and nothing stops a peer's device from accessing others.
 */
#include "emu/memory/memory.h"

static int check(struct emu_request *rq, const struct sio_req_grant *m, struct emu_object **ret)
{
	const uint32_t both = SIO_ACCESS_READ | SIO_ACCESS_WRITE;

	if (m->source_kind == SIO_KIND_APERTURE || m->source_kind == SIO_KIND_ALL_RAM ||
	    m->source_kind == SIO_KIND_SHADOW)
		return sio_fail(&rq->err, -EOPNOTSUPP,
				"GRANT: apertures, all RAM and shadows are not served "
				"by the machine room");
	if (m->source_kind != SIO_KIND_MEM && m->source_kind != SIO_KIND_BAR &&
	    m->source_kind != SIO_KIND_IRQ)
		return sio_fail(&rq->err, -EINVAL,
				"GRANT: source kind %u, %d (memory), %d (BAR view) "
				"or %d (interrupt) is right",
				m->source_kind, SIO_KIND_MEM, SIO_KIND_BAR, SIO_KIND_IRQ);
	if (m->access == 0 || m->access & ~both)
		return sio_fail(&rq->err, -EINVAL, "GRANT: access %#x, 1 to %u are right",
				m->access, both);
	*ret = emu_object_find_any(rq, m->source_kind, m->source);
	if (!*ret)
		return rq->err.code;
	if ((*ret)->state != SIO_STATE_LIVE)
		return sio_fail(&rq->err, -EPERM,
				"GRANT: owner %#" PRIx64 " of %s %#" PRIx64 " has ended",
				(*ret)->owner->o.id, emu_object_name(*ret), (*ret)->id);
	if (m->source_kind == SIO_KIND_MEM && ((struct emu_ram *)*ret)->sender)
		return sio_fail(&rq->err, -EINVAL,
				"GRANT: memory %#" PRIx64 " is the way to a multicast group",
				(*ret)->id);
	if (emu_group_access(rq, "GRANT", *ret, SIO_ACCESS_WRITE) < 0)
		return rq->err.code;
	if (m->source_kind == SIO_KIND_IRQ) {
		if (m->offset != 0 || (m->length != 0 && m->length != SIO_MSI_BYTES))
			return sio_fail(&rq->err, -EINVAL,
					"GRANT: range %#" PRIx64 " + %#" PRIx64
					" of an interrupt, 0 + %d is right",
					(uint64_t)m->offset, (uint64_t)m->length, SIO_MSI_BYTES);
		return 0;
	}
	if (emu_bar_check(rq, "GRANT", *ret) < 0)
		return rq->err.code;
	if (m->source_kind == SIO_KIND_BAR && m->access & SIO_ACCESS_WRITE &&
	    !(((struct emu_bar *)*ret)->access & SIO_ACCESS_WRITE))
		return sio_fail(&rq->err, -EACCES, "GRANT: BAR view %#" PRIx64 " is read-only",
				(*ret)->id);
	return emu_range_check(rq, "GRANT", *ret, m->offset, m->length);
}

/* The peer must be there in the topology, not up: a grant may be prepared. */
static int find_peer(struct emu_request *rq, const struct sio_req_grant *m, unsigned *ret,
		     uint64_t *ret_turn)
{
	const struct emu_path *p = NULL;
	const struct sio_topo_host *peer = sio_topology_member(rq->host->room->topo, m->peer_node);

	if (peer)
		*ret = (unsigned)(peer - rq->host->room->topo->host);
	if (peer)
		p = emu_path_find(rq->host, m->adapter, *ret, m->peer_adapter);
	if (!p)
		return sio_fail(&rq->err, -EHOSTUNREACH,
				"GRANT: no path from adapter %u of node %u to "
				"adapter %u of node %u",
				m->adapter, rq->host->topo->node, m->peer_adapter, m->peer_node);
	*ret_turn = p->turn;
	return 0;
}

/* One without a source had been: nothing else is retired. */
static bool translated(const struct emu_grant *g)
{
	return g->o.host->topo->iommu && (!g->source || g->source->kind != SIO_KIND_IRQ);
}

static int place(struct emu_request *rq, struct emu_grant *g)
{
	struct emu_adapter *a = &rq->host->adapter[g->adapter];
	uint64_t physical = emu_source_physical(g->source, g->offset);
	int rc = 0;

	g->bus_addr = physical;
	if (translated(g)) {
		rc = sio_range_alloc(&a->iova, g->length, EMU_PAGE, SIO_RANGE_ANYWHERE,
				     &g->bus_addr, &rq->err);
		if (rc < 0)
			return rc == -ENOSPC ? emu_no_iova(rq) : rc;
		rc = sio_iommu_map(&a->iommu, (struct sio_dev_addr){g->bus_addr}, g->length,
				   g->source, physical, g->access, &rq->err);
		if (rc < 0)
			goto free_iova;
	}
	rc = emu_check_grant(g, physical);
	if (rc < 0)
		goto unmap;
	return 0;

unmap:
	if (translated(g))
		sio_iommu_unmap(&a->iommu, (struct sio_dev_addr){g->bus_addr});
free_iova:
	if (translated(g))
		sio_range_free(&a->iova, g->bus_addr);
	return rc;
}

static void unmap(struct emu_grant *g)
{
	if (translated(g) && !g->cut)
		sio_iommu_unmap(&g->o.host->adapter[g->adapter].iommu,
				(struct sio_dev_addr){g->bus_addr});
}

static void unplace(struct emu_grant *g)
{
	unmap(g);
	if (translated(g))
		sio_range_free(&g->o.host->adapter[g->adapter].iova, g->bus_addr);
}

/* Where MAP and messages find it. */
static int remember(struct emu_grant *g)
{
	struct emu_host *h = g->o.host;

	if (h->room->host[g->peer_host].machine && emu_inward_add(g) < 0)
		return -ENOMEM;
	HASH_ADD(by_token, h->grants, token_start, sizeof(g->token_start), g);
	if (!g->by_token.tbl)
		goto remove;
	if (g->source->kind != SIO_KIND_IRQ)
		return 0;
	g->granted = (struct emu_granted_irq){
		.irq = g->source->id, .adapter = g->adapter, .peer_host = g->peer_host};
	HASH_ADD(by_irq, h->irq_grants, granted, sizeof(g->granted), g);
	if (g->by_irq.tbl)
		return 0;
	HASH_DELETE(by_token, h->grants, g);

remove:
	emu_inward_remove(g);
	return -ENOMEM;
}

bool emu_irq_granted(const struct emu_irq *q, unsigned adapter, unsigned peer)
{
	struct emu_granted_irq key = {.irq = q->o.id, .adapter = adapter, .peer_host = peer};
	const struct emu_grant *g;

	HASH_FIND(by_irq, q->o.host->irq_grants, &key, sizeof(key), g);
	return g != NULL;
}

/* What nobody can guess, and for an interrupt its message. */
static void make_token(struct emu_room *r, struct emu_grant *g)
{
	for (unsigned i = 0; i < SIO_TOKEN; i += 8) {
		uint64_t word = r->ops->random(r->ctx);

		memcpy(g->token + i, &word, sizeof(word));
	}
	memcpy(&g->token_start, g->token, sizeof(g->token_start));
	if (g->source->kind == SIO_KIND_IRQ) {
		uint32_t message = emu_irq_message((const struct emu_irq *)g->source);

		memcpy(g->token + SIO_TOKEN_MESSAGE, &message, sizeof(message));
	}
}

int emu_op_grant(struct emu_request *rq, const void *msg)
{
	const struct sio_req_grant *m = msg;
	struct emu_room *r = rq->host->room;
	struct emu_object *source = NULL;
	struct sio_evt_grant evt;
	struct emu_adapter *a = NULL;
	struct emu_grant *g = NULL;
	unsigned peer = 0;
	uint64_t turn = 0;
	int rc;

	rc = emu_adapter_use(rq, m->adapter, &a);
	if (rc == 0)
		rc = find_peer(rq, m, &peer, &turn);
	if (rc == 0)
		rc = check(rq, m, &source);
	if (rc < 0)
		return rc;
	g = emu_object_new(rq, SIO_KIND_GRANT, sizeof(*g), 0);
	if (!g)
		return rq->err.code;
	g->source = source;
	g->adapter = a->index;
	g->peer_host = peer;
	g->peer_adapter = m->peer_adapter;
	g->access = m->access;
	g->start = SIO_LINK_START(rq->host->boot_generation, turn);
	g->offset = m->offset;
	g->length = source->kind == SIO_KIND_IRQ ? SIO_MSI_BYTES : m->length;
	make_token(r, g);
	rc = place(rq, g);
	if (rc < 0) {
		emu_object_drop(&g->o);
		return rc;
	}
	if (remember(g) < 0) {
		unplace(g);
		emu_check_forget(rq->host, SIO_KIND_GRANT, g->o.id);
		emu_object_drop(&g->o);
		return sio_no_memory(&rq->err, "another grant");
	}
	emu_object_ref(source);
	if (source->kind == SIO_KIND_BAR)
		((struct emu_bar *)source)->n_grants++;
	memset(&evt, 0, sizeof(evt));
	evt.id = g->o.id;
	evt.bus_addr = g->bus_addr;
	evt.length = g->length;
	evt.generation = g->start;
	memcpy(evt.token, g->token, sizeof(evt.token));
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
	return 0;
}

/* The peer does not map it any more, and its target may end. */
static void release_target(struct emu_grant *g)
{
	struct emu_host *h = g->o.host;

	if (!g->source)
		return;
	HASH_DELETE(by_token, h->grants, g);
	emu_inward_remove(g);
	if (g->source->kind == SIO_KIND_IRQ)
		HASH_DELETE(by_irq, h->irq_grants, g);
	if (g->source->kind == SIO_KIND_BAR)
		((struct emu_bar *)g->source)->n_grants--;
	emu_object_unref(g->source);
	g->source = NULL;
}

static void release(struct emu_object *o)
{
	struct emu_grant *g = (struct emu_grant *)o;
	struct emu_host *h = o->host;

	h->freed.grants++;
	unplace(g);
	emu_invalidate(h->room);
	release_target(g);
	emu_check_forget(h, o->kind, o->id);
}

/* The peer may, until UNGRANT. */
static bool in_use(const struct emu_object *o)
{
	(void)o;
	return true;
}

static void row(const struct emu_object *o, struct sio_list_entry *e)
{
	const struct emu_grant *g = (const struct emu_grant *)o;

	e->cookie = g->source ? g->source->id : 0;
	e->address = g->bus_addr;
	e->length = g->length;
	e->device = SIO_LIST_PATH(g->adapter, g->peer_adapter);
	e->node = o->host->room->host[g->peer_host].topo->node;
}

const struct emu_kind emu_kind_grant = {
	.name = "grant", .rank = EMU_RANK_GRANT, .release = release, .in_use = in_use, .row = row};

/*
 * Windows of the peer still lead to its address, so nothing else gets that before the peer's word.
 */
void emu_grant_cut(struct emu_grant *g)
{
	if (g->cut)
		return;
	unmap(g);
	emu_check_forget(g->o.host, g->o.kind, g->o.id);
	g->cut = true;
}

/* The address alone stays, and is the daemon's, whoever's what it led to was. */
static void retire(struct emu_grant *g)
{
	struct emu_host *h = g->o.host;

	emu_grant_cut(g);
	emu_invalidate(h->room);
	release_target(g);
	emu_object_give(&g->o, &h->daemon);
	g->o.state = SIO_STATE_QUARANTINED;
}

int emu_op_ungrant(struct emu_request *rq, const void *msg)
{
	const struct sio_req_ungrant *m = msg;
	struct emu_grant *g = emu_object_find(rq, SIO_KIND_GRANT, m->id);
	bool keep = m->h.flags & SIO_UNGRANT_KEEP_ADDRESS;

	if (!g)
		return rq->err.code;
	if (keep && !translated(g))
		return sio_fail(&rq->err, -EOPNOTSUPP,
				"UNGRANT: the address of grant %#" PRIx64
				" is that of the %s itself: it cannot be kept without it",
				g->o.id, emu_object_name(g->source));
	emu_answer_ok(rq);
	if (keep)
		retire(g);
	else
		emu_object_free(&g->o);
	return 0;
}

/* Takes as long for a wrong byte at the end as for one at the start. */
static bool same_token(const uint8_t *a, const uint8_t *b)
{
	volatile uint8_t difference = 0;

	for (unsigned i = 0; i < SIO_TOKEN; i++)
		difference |= a[i] ^ b[i];
	return difference == 0;
}

static bool covers(const struct emu_grant *g, uint64_t addr, uint64_t length)
{
	return addr >= g->bus_addr && length <= g->length &&
	       addr - g->bus_addr <= g->length - length;
}

struct emu_grant *emu_grant_find(struct emu_host *exporter, const struct sio_req_map *m,
				 unsigned importer, unsigned adapter)
{
	struct emu_grant *g;
	uint64_t start;

	memcpy(&start, m->token, sizeof(start));
	HASH_FIND(by_token, exporter->grants, &start, sizeof(start), g);
	if (g && g->peer_host == importer && g->peer_adapter == adapter &&
	    g->adapter == m->peer_adapter && g->start == m->generation &&
	    covers(g, m->bus_addr, m->length) && same_token(g->token, m->token))
		return g;
	return NULL;
}
