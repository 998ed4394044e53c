/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests of the stranger to ports: owners, memory, grants, windows, vectors; and requests
 * that must be refused.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "fault/stranger.h"

#define PAGE 4096u
#define MOST_OWNERS 6u
#define MOST 10u /* of each other kind, on all hosts together */

static unsigned count(uint32_t kind)
{
	const struct thing *t;
	unsigned n = 0;

	DL_FOREACH (stranger.things, t)
		n += t->kind == kind;
	return n;
}

/* ---- owners ---- */
static void new_owner(unsigned host)
{
	struct sio_req_owner_new req = {.user_cookie = 0x73747261};
	const struct thing *parent = stranger_any(SIO_KIND_OWNER, stranger_is_on, &host);
	bool child = parent && stranger_draw(2);
	struct errors want = {0};
	struct thing *w;

	if (count(SIO_KIND_OWNER) >= MOST_OWNERS)
		return;
	if (child) {
		req.h.flags = SIO_OWNER_CHILD;
		req.h.owner = parent->id;
		errors_add(&want, parent->ended, -EPERM);
	}
	if (stranger_ask(host, &req, sizeof(req), SIO_OP_OWNER_NEW, want.e) != 0)
		return;
	w = stranger_new(SIO_KIND_OWNER, host, stranger.answer.owner.id, child ? parent->id : 0);
	if (!child)
		w->fd = sim_fd_dup(stranger.fds[0]);
}

static void end_owner(unsigned host)
{
	struct thing *w = stranger_any(SIO_KIND_OWNER, stranger_is_on, &host);
	struct sio_req_owner_close req = {0};
	struct errors want = {0};

	if (!w)
		return;
	req.h.owner = w->id;
	errors_add(&want, w->ended, -EPERM);
	if (stranger_ask(host, &req, sizeof(req), SIO_OP_OWNER_CLOSE, want.e) == 0)
		stranger_owner_ends(w);
}

/* ---- memory ---- */
static void new_memory(unsigned host)
{
	struct sio_req_alloc req = {.h.owner = stranger_owner(host), .highest = SIO_PORT_ANY};
	struct thing *m;

	if (!req.h.owner || count(SIO_KIND_MEM) >= MOST)
		return;
	req.size = stranger_draw(2) ? PAGE * (1 + stranger_draw(4)) : 1 + stranger_draw(3 * PAGE);
	if (stranger_ask(host, &req, sizeof(req), SIO_OP_ALLOC, NULL) != 0)
		return;
	m = stranger_new(SIO_KIND_MEM, host, stranger.answer.alloc.id, req.h.owner);
	m->length = stranger.answer.alloc.size;
	m->bus = stranger.answer.alloc.address;
	m->fd = sim_fd_dup(stranger.fds[0]);
	m->bytes = calloc(1, m->length);
	assert(m->bytes);
	if (m->length != (req.size + PAGE - 1) / PAGE * PAGE)
		sim_fail("stranger", "%llu bytes asked for, got %llu", (unsigned long long)req.size,
			 (unsigned long long)m->length);
}

static void end_memory(unsigned host)
{
	struct thing *m = stranger_any(SIO_KIND_MEM, stranger_is_on, &host);
	struct errors want = {0};
	bool foreign;
	uint64_t who;

	if (!m)
		return;
	who = stranger_asker(m, &foreign);
	errors_add(&want, foreign, -EPERM);
	errors_add(&want, m->refs > 0, -EBUSY);
	if (stranger_end(host, SIO_OP_FREE, m->id, who, want.e) == 0)
		stranger_gone(m);
}

/* ---- grants ---- */
static void range(const struct thing *m, uint64_t *ret_offset, uint64_t *ret_length)
{
	uint64_t pages = m->length / PAGE;

	*ret_offset = PAGE * stranger_draw(pages);
	*ret_length = PAGE * (1 + stranger_draw(pages));
	if (stranger_draw(8) == 0)
		*ret_length += 1 + stranger_draw(PAGE);
	if (stranger_draw(16) == 0)
		*ret_length = UINT64_MAX - *ret_offset + 1;
}

static bool bad_range(const struct thing *m, uint64_t offset, uint64_t length)
{
	return offset % PAGE || length % PAGE || length == 0 || offset > m->length ||
	       length > m->length - offset;
}

/* Draws a path for @req: mostly one that exists, to a host where the stranger has an owner. */
static void a_way(unsigned host, struct sio_req_grant *req, unsigned *ret_peer)
{
	const struct emu_host *h = &sim_cluster->room->host[host];
	const struct emu_path *p = NULL;

	for (unsigned i = 0; h->n_paths && i < 8 && (!p || !stranger_owner(p->peer_host)); i++)
		p = &h->path[stranger_draw(h->n_paths)];
	*ret_peer = (unsigned)stranger_draw(sim_hosts());
	req->adapter = (uint32_t)stranger_draw(SIO_MAX_ADAPTERS);
	req->peer_adapter = (uint32_t)stranger_draw(2);
	if (p && stranger_draw(8)) {
		*ret_peer = p->peer_host;
		req->adapter = p->adapter;
		req->peer_adapter = p->peer_adapter;
	}
	req->peer_node = sim_node(*ret_peer);
}

static void new_grant(unsigned host)
{
	struct thing *m = stranger_any(SIO_KIND_MEM, stranger_is_on, &host), *g;
	struct sio_req_grant req = {.h.owner = stranger_owner(host), .source_kind = SIO_KIND_MEM};
	struct errors want = {0};
	unsigned peer;

	if (!m || !req.h.owner || count(SIO_KIND_GRANT) >= MOST)
		return;
	req.source = m->id;
	req.access = stranger_draw(8) ? 1 + (uint32_t)stranger_draw(3) : (uint32_t)stranger_draw(8);
	a_way(host, &req, &peer);
	range(m, (uint64_t *)&req.offset, (uint64_t *)&req.length);
	errors_add(&want, m->ended, -EPERM);
	errors_add(&want, m->sender || req.access == 0 || req.access > 3, -EINVAL);
	errors_add(&want, bad_range(m, req.offset, req.length), -EINVAL);
	errors_add(&want, req.adapter >= sim_cluster->topology->host[host].n_adapters, -ENODEV);
	errors_add(
		&want,
		!emu_path_find(&sim_cluster->room->host[host], req.adapter, peer, req.peer_adapter),
		-EHOSTUNREACH);
	if (stranger_ask(host, &req, sizeof(req), SIO_OP_GRANT, want.e) != 0)
		return;
	g = stranger_new(SIO_KIND_GRANT, host, stranger.answer.grant.id, req.h.owner);
	g->source = m;
	m->refs++;
	g->offset = req.offset;
	g->length = req.length;
	g->access = req.access;
	g->adapter = req.adapter;
	g->peer = peer;
	g->peer_adapter = req.peer_adapter;
	g->bus = stranger.answer.grant.bus_addr;
	g->generation = stranger.answer.grant.generation;
	memcpy(g->token, stranger.answer.grant.token, sizeof(g->token));
}

/* ---- windows ---- */

/* Makes a request for a window differ from its grant; most values of @kind: not, or in a part. */
static void spoil(struct sio_req_map *req, uint64_t kind)
{
	const struct thing *other = stranger_any(SIO_KIND_GRANT, NULL, NULL);
	unsigned at = (unsigned)stranger_draw(SIO_TOKEN);
	uint64_t n = 1 + stranger_draw(255);

	switch (kind) {
	case 0:
	case 1:
		req->token[at] ^= (uint8_t)n;
		break;
	case 2: /* an earlier generation, or a later one */
		req->generation += n % 2 ? -1ull : 1ull;
		break;
	case 3:
		req->length += n % 2 ? PAGE : 1;
		break;
	case 4:
		req->bus_addr -= PAGE;
		break;
	case 5:
		req->length -= n;
		break;
	case 6:
		req->length = 0;
		break;
	case 7:
		req->caching = SIO_CACHE_WRITE_COMBINED + 1;
		break;
	case 8:
		memcpy(req->token, other->token, SIO_TOKEN);
		break;
	default:
		if (req->length > PAGE) { /* a part of the grant, which is allowed */
			req->length -= PAGE;
			req->bus_addr += n % 2 ? PAGE : 0;
		}
	}
}

/* Is what @req asks for granted to @host over this path? */
static bool is_granted(unsigned host, const struct sio_req_map *req, unsigned exporter)
{
	const struct thing *g;

	DL_FOREACH (stranger.things, g)
		if (g->kind == SIO_KIND_GRANT && g->host == exporter && g->peer == host &&
		    g->adapter == req->peer_adapter && g->peer_adapter == req->adapter &&
		    req->bus_addr >= g->bus && req->bus_addr - g->bus <= g->length &&
		    req->length <= g->length - (req->bus_addr - g->bus) &&
		    g->generation == req->generation &&
		    memcmp(g->token, req->token, SIO_TOKEN) == 0)
			return true;
	return false;
}

/* Sends @req, and checks the answer by the paths and grants that there are. Return: its error. */
static int ask_map(unsigned host, struct sio_req_map *req, unsigned exporter)
{
	const struct emu_host *h = &sim_cluster->room->host[host];
	const struct emu_path *p =
		req->adapter < h->topo->n_adapters
			? emu_path_find(&sim_cluster->room->host[host], req->adapter, exporter,
					req->peer_adapter)
			: NULL;
	struct errors want = {0};

	errors_add(&want, req->adapter >= h->topo->n_adapters, -ENODEV);
	errors_add(&want, !p, -EHOSTUNREACH);
	errors_add(&want, p && p->state != SIO_LINK_UP, -ENETDOWN);
	errors_add(&want, p && req->generation != emu_path_start(h, p), -ESTALE);
	errors_add(&want, req->caching > SIO_CACHE_WRITE_COMBINED, -EINVAL);
	errors_add(&want, req->length == 0 || req->length % PAGE || req->bus_addr % PAGE, -EINVAL);
	errors_add(&want, !is_granted(host, req, exporter), -EACCES);
	return stranger_ask(host, req, sizeof(*req), SIO_OP_MAP, want.e);
}

static void new_map(void)
{
	const struct thing *g = stranger_any(SIO_KIND_GRANT, NULL, NULL);
	struct sio_req_map req = {0};
	struct thing *m;
	unsigned host;

	if (!g || count(SIO_KIND_MAP) >= MOST)
		return;
	host = stranger_draw(16) ? g->peer : (unsigned)stranger_draw(sim_hosts());
	if (!sim_cluster->room->host[host].up)
		return;
	req.h.owner = stranger_owner(host);
	if (!req.h.owner)
		return;
	req.adapter = g->peer_adapter;
	req.peer_node = sim_node(g->host);
	req.peer_adapter = g->adapter;
	req.bus_addr = g->bus;
	req.length = g->length;
	req.generation = g->generation;
	memcpy(req.token, g->token, SIO_TOKEN);
	spoil(&req, stranger_draw(20));
	if (ask_map(host, &req, g->host) != 0)
		return;
	m = stranger_new(SIO_KIND_MAP, host, stranger.answer.map.id, req.h.owner);
	m->adapter = req.adapter;
	m->peer = g->host;
	m->peer_adapter = req.peer_adapter;
	m->bus = req.bus_addr;
	m->length = req.length;
	m->generation = req.generation;
	m->access = g->access;
}

/* The generation that a grant for this path would have now. */
static uint64_t start_now(const struct sio_req_map *req, const struct old_grant *o)
{
	struct emu_host *h = &sim_cluster->room->host[o->peer];

	return emu_path_start(h, emu_path_find(h, req->adapter, o->host, req->peer_adapter));
}

/* Requests a window to a grant that was taken back, or that an earlier start of its host made. */
static void map_old(void)
{
	const struct old_grant *o;
	struct sio_req_map req = {0};

	if (stranger.n_old == 0)
		return;
	o = &stranger.old[stranger_draw(stranger.n_old < 16 ? stranger.n_old : 16)];
	if (!sim_cluster->room->host[o->peer].up)
		return;
	req.h.owner = stranger_owner(o->peer);
	if (!req.h.owner)
		return;
	req.adapter = o->peer_adapter;
	req.peer_node = sim_node(o->host);
	req.peer_adapter = o->adapter;
	req.bus_addr = o->bus;
	req.length = o->length;
	req.generation = stranger_draw(2) ? o->generation : start_now(&req, o);
	memcpy(req.token, o->token, SIO_TOKEN);
	(void)ask_map(o->peer, &req, o->host);
}

/* ---- devices, which others use, too: what is made is ended at once ---- */
static struct emu_device *a_device(unsigned host)
{
	const struct emu_host *h = &sim_cluster->room->host[host];
	struct emu_device *d;

	if (h->n_devices == 0)
		return NULL;
	d = h->device[stranger_draw(h->n_devices)];
	return d->opened && !emu_device_is_out(d) ? d : NULL;
}

/* A window that is mapped for a device cannot be unmapped. */
static void hold_map(unsigned host)
{
	const struct thing *m = stranger_any(SIO_KIND_MAP, stranger_is_on, &host);
	struct emu_device *d = a_device(host);
	struct sio_req_requester_add add = {.h.owner = stranger_owner(host)};
	struct sio_req_dmamap req = {.h.owner = add.h.owner};
	uint64_t requester, dmamap;

	if (!m || !d || !add.h.owner)
		return;
	add.device = req.device = d->topo->fdid;
	add.adapter = m->adapter;
	add.direction = SIO_REQUESTER_OUT;
	if (stranger_ask(host, &add, sizeof(add), SIO_OP_REQUESTER_ADD, NULL) != 0)
		return;
	requester = stranger.answer.requester.id;
	req.target_kind = SIO_KIND_MAP;
	req.target = m->id;
	req.access = 3;
	req.length = m->length;
	req.iova = req.highest = SIO_PORT_ANY;
	if (stranger_ask(host, &req, sizeof(req), SIO_OP_DMAMAP, NULL) == 0) {
		dmamap = stranger.answer.dmamap.id;
		stranger_end(host, SIO_OP_UNMAP, m->id, m->owner, (int[]){-EBUSY, 0});
		stranger_end(host, SIO_OP_DMAUNMAP, dmamap, req.h.owner, NULL);
		stranger_end(host, SIO_OP_DMAUNMAP, dmamap, req.h.owner, (int[]){-ENOENT, 0});
	}
	stranger_end(host, SIO_OP_REQUESTER_DEL, requester, add.h.owner, NULL);
}

static struct sio_req_vector vector(uint64_t owner, const struct emu_device *d, unsigned n,
				    uint64_t irq)
{
	return (struct sio_req_vector){.h.owner = owner,
				       .device = d->topo->fdid,
				       .vector = n,
				       .irq = irq,
				       .mask = irq != 0};
}

/* A vector that is in use is refused to all but its owner. */
static void take_vector(unsigned host)
{
	struct emu_device *d = a_device(host);
	uint64_t own = stranger_owner(host), other = stranger_owner(host), irq;
	struct sio_req_irq_new make = {.h.owner = own};
	struct sio_req_vector req;
	unsigned n;

	if (!d || !own || d->config.msix_count == 0)
		return;
	n = (unsigned)stranger_draw(d->config.msix_count);
	if (stranger_ask(host, &make, sizeof(make), SIO_OP_IRQ_NEW, NULL) != 0)
		return;
	irq = stranger.answer.irq.id;
	if (d->vector[n]) {
		req = vector(own, d, n, irq);
		stranger_ask(host, &req, sizeof(req), SIO_OP_VECTOR, (int[]){-EBUSY, 0});
		req = vector(own, d, n, 0);
		stranger_ask(host, &req, sizeof(req), SIO_OP_VECTOR, (int[]){-EBUSY, 0});
	} else {
		req = vector(own, d, n, irq);
		if (stranger_ask(host, &req, sizeof(req), SIO_OP_VECTOR, NULL) == 0) {
			stranger_end(host, SIO_OP_IRQ_FREE, irq, own, (int[]){-EBUSY, 0});
			req = vector(other, d, n, 0);
			if (other != own)
				stranger_ask(host, &req, sizeof(req), SIO_OP_VECTOR,
					     (int[]){-EBUSY, 0});
			req = vector(own, d, n, 0);
			stranger_ask(host, &req, sizeof(req), SIO_OP_VECTOR, NULL);
		}
	}
	stranger_end(host, SIO_OP_IRQ_FREE, irq, own, NULL);
}

void stranger_act(unsigned host)
{
	switch (stranger_draw(40)) {
	case 0:
	case 1:
	case 2:
		new_owner(host);
		break;
	case 3:
		if (stranger_draw(4) == 0)
			end_owner(host);
		break;
	case 4:
	case 5:
	case 6:
		new_memory(host);
		break;
	case 7:
		end_memory(host);
		break;
	case 8:
	case 9:
	case 10:
		new_grant(host);
		break;
	case 11:
		stranger_end_any(host, SIO_KIND_GRANT, SIO_OP_UNGRANT);
		break;
	case 12:
	case 13:
	case 14:
	case 15:
		new_map();
		break;
	case 16:
		map_old();
		break;
	case 17:
		if (stranger_draw(2))
			stranger_end_any(host, SIO_KIND_MAP, SIO_OP_UNMAP);
		break;
	case 18:
		hold_map(host);
		break;
	case 19:
		take_vector(host);
		break;
	case 20:
	case 21:
	case 22:
	case 23:
		stranger_act_group(host);
		break;
	default:
		stranger_act_dma(host);
	}
}
