/* SPDX-License-Identifier: BSD-2-Clause */
/* A good request of each operation, about the things of the row. */
#include <string.h>

#include "port.h"

#define PAGE 4096

#define SIZE(NAME, name, ...) [SIO_OP_##NAME] = sizeof(struct sio_req_##name),
static const uint32_t sizes[SIO_OP_COUNT] = {SIO_PORT_REQUESTS(SIZE)};

uint32_t port_size(uint32_t op)
{
	return op < SIO_OP_COUNT ? sizes[op] : 0;
}

static void good_window(const struct port_world *w, uint32_t op, union port_packet *p)
{
	struct sio_req_grant *g = (void *)p;
	struct sio_req_map *m = (void *)p;
	struct sio_req_requester_add *r = (void *)p;

	switch (op) {
	case SIO_OP_GRANT:
		g->source_kind = SIO_KIND_MEM;
		g->access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
		g->source = w->thing[T_MEM];
		g->length = PAGE;
		g->peer_node = (uint32_t)w->thing[T_NODE1];
		break;
	case SIO_OP_MAP:
		m->peer_node = (uint32_t)w->thing[T_NODE1];
		m->bus_addr = w->thing[T_PEER_BUS];
		m->length = PAGE;
		m->generation = w->thing[T_PEER_GENERATION];
		memcpy(m->token, w->token, sizeof(m->token));
		break;
	case SIO_OP_REQUESTER_ADD:
		r->direction = SIO_REQUESTER_OUT;
		r->device = w->thing[T_DEVICE];
		break;
	default:
		break;
	}
}

static void good_device(const struct port_world *w, uint32_t op, union port_packet *p)
{
	struct sio_req_reset *r = (void *)p;
	struct sio_req_bar *b = (void *)p;
	struct sio_req_dmamap *d = (void *)p;
	struct sio_req_settle *s = (void *)p;
	struct sio_req_watch *watch = (void *)p;
	struct sio_req_dma_attach *attach = (void *)p;
	struct sio_req_vector *v = (void *)p;

	switch (op) {
	case SIO_OP_MCAST:
		((struct sio_req_mcast *)p)->what = SIO_MCAST_JOIN;
		((struct sio_req_mcast *)p)->length = PAGE;
		break;
	case SIO_OP_DMA_ATTACH:
		attach->channel = w->thing[T_CHANNEL];
		attach->target = w->thing[T_MEM];
		attach->length = PAGE;
		attach->target_kind = SIO_KIND_MEM;
		attach->access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
		break;
	case SIO_OP_DEVICE_OPEN:
		p->req.flags = SIO_DEVICE_FORCE;
		((struct sio_req_device_open *)p)->device = w->thing[T_DEVICE];
		break;
	case SIO_OP_DEVICE_CLOSE:
		((struct sio_req_device_close *)p)->device = w->thing[T_DEVICE];
		break;
	case SIO_OP_RESET:
		r->device = w->thing[T_DEVICE];
		r->kind = SIO_RESET_FUNCTION;
		break;
	case SIO_OP_BAR: /* page 1 of an NVMe controller: doorbells */
		b->device = w->thing[T_DEVICE];
		b->access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
		b->offset = PAGE;
		b->length = PAGE;
		break;
	case SIO_OP_WATCH:
		watch->target_kind = SIO_KIND_BAR;
		watch->kind = SIO_WATCH_TIMER;
		watch->target = w->thing[T_BAR];
		watch->length = PAGE;
		break;
	case SIO_OP_DMAMAP:
		d->device = w->thing[T_DEVICE];
		d->target_kind = SIO_KIND_MEM;
		d->access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
		d->target = w->thing[T_MEM];
		d->length = PAGE;
		d->iova = SIO_PORT_ANY;
		d->highest = SIO_PORT_ANY;
		break;
	case SIO_OP_VECTOR:
		p->req.owner = w->thing[T_OWNER];
		v->device = w->thing[T_DEVICE];
		v->irq = w->thing[T_IRQ];
		break;
	case SIO_OP_SETTLE:
		p->req.owner = w->thing[T_ENDED_OWNER];
		s->device = w->thing[T_DEVICE];
		break;
	default:
		break;
	}
}

/* Which thing an operation with nothing but an id is about. */
static enum port_thing ends(uint32_t op)
{
	switch (op) {
	case SIO_OP_FREE:
	case SIO_OP_GIVE:
		return T_MEM;
	case SIO_OP_UNGRANT:
		return T_GRANT;
	case SIO_OP_UNMAP:
		return T_MAP;
	case SIO_OP_REQUESTER_DEL:
		return T_REQUESTER;
	case SIO_OP_BAR_CLOSE:
		return T_BAR;
	case SIO_OP_DMAUNMAP:
		return T_DMAMAP;
	case SIO_OP_IRQ_FREE:
		return T_IRQ;
	case SIO_OP_UNWATCH:
		return T_WATCH;
	case SIO_OP_DMA_FREE:
		return T_CHANNEL;
	case SIO_OP_DMA_DETACH:
		return T_RANGE;
	default:
		return T_NUMBER;
	}
}

size_t port_good(const struct port_world *w, uint32_t op, union port_packet *req)
{
	struct sio_req_info *info = (void *)req;
	struct sio_req_alloc *a = (void *)req;

	memset(req, 0, sizeof(*req));
	req->req.op = op;
	req->req.size = port_size(op);
	if (ends(op) != T_NUMBER)
		((struct sio_req_free *)req)->id = w->thing[ends(op)];
	switch (op) {
	case SIO_OP_INFO:
		info->version_min = info->version_max = SIO_PORT_VERSION;
		break;
	case SIO_OP_OWNER_CLOSE:
		req->req.owner = w->thing[T_OWNER];
		break;
	case SIO_OP_LIST:
		((struct sio_req_list *)req)->kind = SIO_KIND_MEM;
		break;
	case SIO_OP_ALLOC:
		a->size = PAGE;
		a->highest = SIO_PORT_ANY;
		break;
	default:
		good_window(w, op, req);
		good_device(w, op, req);
	}
	return port_size(op);
}
