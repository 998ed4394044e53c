/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A good request of each operation, about the things of the row; and the rows. What holds for every
 * operation (size, reserved, flags, owner) is in port_test.c.
 */
#include <errno.h>
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
		a->user_cookie = PORT_COOKIE;
		break;
	default:
		good_window(w, op, req);
		good_device(w, op, req);
	}
	return port_size(op);
}

/* ---- the rows ---- */

#define FIELD(type, member)                                                                        \
	offsetof(struct sio_req_##type, member), sizeof(((struct sio_req_##type *)0)->member)
/* One field of a good request set to a number, or to something's number. */
#define SET(op, type, member, number, err, text)                                                   \
	{                                                                                          \
#op "." #member " = " #number, SIO_OP_##op, FIELD(type, member),                   \
			(uint64_t)(number), T_NUMBER, err, text                                    \
	}
/* The same, of what runs out. */
#define OUT(op, type, member, number, why, text)                                                   \
	{                                                                                          \
#op "." #member " = " #number, SIO_OP_##op, FIELD(type, member),                   \
			(uint64_t)(number), T_NUMBER, -ENOSPC, text, SIO_OUT_OF_##why              \
	}
#define REF(op, type, member, thing, err, text)                                                    \
	{                                                                                          \
#op "." #member " = " #thing, SIO_OP_##op, FIELD(type, member), 0, thing, err,     \
			text                                                                       \
	}
#define GOOD(op)                                                                                   \
	{                                                                                          \
#op, SIO_OP_##op, 0, 0, 0, T_NUMBER, 0, NULL                                       \
	}
#define REFUSED(op, err, text)                                                                     \
	{                                                                                          \
#op, SIO_OP_##op, 0, 0, 0, T_NUMBER, err, text                                     \
	}
#define NO_SUCH 0x7fffffffffffULL
/* An operation that ends something by its id. */
#define ENDS(op, type, wrong_kind)                                                                 \
	GOOD(op), SET(op, type, id, 0, -ENOENT, NULL),                                             \
		SET(op, type, id, NO_SUCH, -ENOENT, "0x7fffffffffff"),                             \
		REF(op, type, id, wrong_kind, -ENOENT, NULL),                                      \
		REF(op, type, h.owner, T_OWNER, 0, NULL),                                          \
		REF(op, type, h.owner, T_OTHER_OWNER, -EPERM, "belongs to owner")

/* clang-format off */
const struct port_row port_rows[] = {
	GOOD(INFO),
	SET(INFO, info, version_max, 0, -EPROTO, "speaks 15"),
	SET(INFO, info, version_max, 15, 0, NULL),
	SET(INFO, info, version_min, 16, -EPROTO, "versions 16 to 15"),

	GOOD(OWNER_NEW),
	REF(OWNER_NEW, owner_new, h.owner, T_OWNER, -EINVAL, "all but a child"),
	SET(OWNER_NEW, owner_new, h.flags, SIO_OWNER_CHILD, 0, NULL),
	SET(OWNER_NEW, owner_new, user_cookie, ~0ULL, 0, NULL),
	SET(OWNER_NEW, owner_new, pid, 1, 0, NULL),

	GOOD(OWNER_CLOSE),
	SET(OWNER_CLOSE, owner_close, h.owner, 0, -EINVAL, "the daemon itself"),
	SET(OWNER_CLOSE, owner_close, h.owner, NO_SUCH, -ENOENT, "0x7fffffffffff"),
	REF(OWNER_CLOSE, owner_close, h.owner, T_ENDED_OWNER, -EPERM, "has ended"),
	REF(OWNER_CLOSE, owner_close, h.owner, T_MEM, -ENOENT, NULL),

	GOOD(LIST),
	SET(LIST, list, kind, 0, -EINVAL, "1 to 10 and 14 to 18"),
	SET(LIST, list, kind, SIO_KIND_OWNER, 0, NULL),
	SET(LIST, list, kind, SIO_KIND_IRQ, 0, NULL),
	SET(LIST, list, kind, SIO_KIND_WATCH, 0, NULL),
	SET(LIST, list, kind, SIO_KIND_DMA, 0, NULL),
	SET(LIST, list, kind, SIO_KIND_DMA_RANGE, 0, NULL),
	SET(LIST, list, kind, SIO_KIND_VECTOR, 0, NULL),
	SET(LIST, list, kind, SIO_KIND_SHADOW, 0, NULL),
	SET(LIST, list, kind, SIO_KIND_SHADOW + 1, -EINVAL, NULL),
	SET(LIST, list, kind, SIO_KIND_APERTURE, -EINVAL, "kind 11"),
	SET(LIST, list, kind, ~0U, -EINVAL, NULL),
	SET(LIST, list, after, ~0ULL, 0, NULL),

	GOOD(ADAPTER),
	SET(ADAPTER, adapter, index, 2, -ENODEV, "no adapter 2"),
	SET(ADAPTER, adapter, index, ~0U, -ENODEV, NULL),

	GOOD(ALLOC),
	SET(ALLOC, alloc, size, 0, -EINVAL, "size 0"),
	SET(ALLOC, alloc, size, 1, 0, NULL),
	OUT(ALLOC, alloc, size, 17 << 20, RAM, "17825792 bytes wanted"),
	OUT(ALLOC, alloc, size, 16 << 20, RAM, "are free"), /* others have a part */
	OUT(ALLOC, alloc, size, ~0ULL, RAM, NULL),
	SET(ALLOC, alloc, align, 3, -EINVAL, "0 or a power of 2"),
	SET(ALLOC, alloc, align, 1 << 20, 0, NULL),
	OUT(ALLOC, alloc, align, 1ULL << 63, RAM, NULL),
	OUT(ALLOC, alloc, highest, 0, RAM, NULL),
	SET(ALLOC, alloc, near_device, NO_SUCH, -ENODEV, NULL),
	REF(ALLOC, alloc, near_device, T_DEVICE, 0, NULL),
	SET(ALLOC, alloc, kind, SIO_ALLOC_CONTIGUOUS, 0, NULL),
	SET(ALLOC, alloc, kind, SIO_ALLOC_HUGE, 0, NULL),
	SET(ALLOC, alloc, kind, 4, -EINVAL, "0 to 3"),
	SET(ALLOC, alloc, h.flags, SIO_ALLOC_PART, 0, NULL),
	SET(ALLOC, alloc, h.flags, 2, -EINVAL, "flags 0x2"),
	SET(ALLOC, alloc, access, 3, 0, NULL),
	SET(ALLOC, alloc, access, 4, -EINVAL, NULL),
	REF(ALLOC, alloc, h.owner, T_OWNER, 0, NULL),
	REF(ALLOC, alloc, h.owner, T_ENDED_OWNER, -EPERM, "has ended"),
	SET(ALLOC, alloc, h.owner, NO_SUCH, -ENOENT, "no owner"),

	ENDS(FREE, free, T_GRANT),
	REF(FREE, free, id, T_MEM_BUSY, -EBUSY, "are left"),

	ENDS(GIVE, give, T_GRANT),
	REF(GIVE, give, id, T_MEM_BUSY, 0, NULL),
	REF(GIVE, give, h.owner, T_ENDED_OWNER, -EPERM, NULL),

	GOOD(GRANT),
	SET(GRANT, grant, source_kind, 0, -EINVAL, "source kind 0"),
	SET(GRANT, grant, source_kind, SIO_KIND_MAP, -EINVAL, NULL),
	SET(GRANT, grant, source_kind, SIO_KIND_APERTURE, -EOPNOTSUPP, NULL),
	SET(GRANT, grant, source_kind, SIO_KIND_ALL_RAM, -EOPNOTSUPP, NULL),
	SET(GRANT, grant, source_kind, SIO_KIND_SHADOW, -EOPNOTSUPP, NULL),
	SET(GRANT, grant, source_kind, SIO_KIND_IRQ, -ENOENT, NULL), /* the id is a memory's */
	SET(GRANT, grant, access, 0, -EINVAL, "access 0"),
	SET(GRANT, grant, access, 1, 0, NULL),
	SET(GRANT, grant, access, 4, -EINVAL, "access 0x4"),
	SET(GRANT, grant, source, 0, -ENOENT, NULL),
	REF(GRANT, grant, source, T_MEM_BUSY, 0, NULL),
	REF(GRANT, grant, source, T_BAR, -ENOENT, NULL),
	SET(GRANT, grant, offset, 1, -EINVAL, "whole pages"),
	SET(GRANT, grant, offset, 4096, -EINVAL, "ends behind"),
	SET(GRANT, grant, offset, ~0xfffULL, -EINVAL, NULL),
	SET(GRANT, grant, length, 0, -EINVAL, NULL),
	SET(GRANT, grant, length, 8192, -EINVAL, "ends behind memory"),
	SET(GRANT, grant, length, ~0xfffULL, -EINVAL, NULL),
	SET(GRANT, grant, adapter, 2, -ENODEV, NULL),
	SET(GRANT, grant, peer_node, 0, -EHOSTUNREACH, NULL),
	REF(GRANT, grant, peer_node, T_NODE0, -EHOSTUNREACH, "no path"),
	SET(GRANT, grant, peer_node, ~0U, -EHOSTUNREACH, NULL),
	SET(GRANT, grant, peer_adapter, 1, -EHOSTUNREACH, NULL),
	REF(GRANT, grant, h.owner, T_ENDED_OWNER, -EPERM, NULL),

	ENDS(UNGRANT, ungrant, T_MEM),
	REF(UNGRANT, ungrant, id, T_GRANT_ENDED, 0, NULL),
	SET(UNGRANT, ungrant, h.flags, SIO_UNGRANT_KEEP_ADDRESS, 0, NULL),
	SET(UNGRANT, ungrant, h.flags, 2, -EINVAL, "flags 0x2"),

	GOOD(MAP),
	SET(MAP, map, adapter, 2, -ENODEV, NULL),
	SET(MAP, map, peer_node, 0, -EHOSTUNREACH, NULL),
	REF(MAP, map, peer_node, T_NODE0, -EHOSTUNREACH, NULL),
	SET(MAP, map, peer_adapter, 1, -EHOSTUNREACH, NULL),
	SET(MAP, map, h.flags, SIO_MAP_DOORBELLS, 0, NULL),
	SET(MAP, map, h.flags, SIO_MAP_BAR, 0, NULL),
	SET(MAP, map, h.flags, 4, -EINVAL, "flags 0x4"),
	SET(MAP, map, caching, SIO_CACHE_WRITE_COMBINED, 0, NULL),
	SET(MAP, map, caching, 3, -EINVAL, "caching 3"),
	SET(MAP, map, bus_addr, 0, -EACCES, "granted us nothing"),
	SET(MAP, map, bus_addr, ~0xfffULL, -EACCES, NULL),
	SET(MAP, map, length, 0, -EINVAL, "length 0"),
	SET(MAP, map, length, 1, -EINVAL, "whole pages"),
	SET(MAP, map, length, 8192, -EACCES, NULL),
	SET(MAP, map, length, ~0ULL, -EACCES, NULL),
	SET(MAP, map, generation, 0, -ESTALE, "start 0"),
	{"MAP.generation = the next", SIO_OP_MAP, FIELD(map, generation), 1, T_PEER_GENERATION,
	 -ESTALE, NULL},
	{"MAP.token[0]", SIO_OP_MAP, offsetof(struct sio_req_map, token), 8, 0x1234, T_NUMBER,
	 -EACCES, "token"},
	{"MAP.token[24]", SIO_OP_MAP, offsetof(struct sio_req_map, token) + 24, 8, 0x1234, T_NUMBER,
	 -EACCES, "token"},
	REF(MAP, map, h.owner, T_OWNER, 0, NULL),
	REF(MAP, map, h.owner, T_ENDED_OWNER, -EPERM, NULL),

	ENDS(UNMAP, unmap, T_MEM),
	REF(UNMAP, unmap, id, T_MAP_BUSY, -EBUSY, "go through map"),

	GOOD(REQUESTER_ADD),
	SET(REQUESTER_ADD, requester_add, adapter, 2, -ENODEV, NULL),
	SET(REQUESTER_ADD, requester_add, direction, 0, -EINVAL, "direction 0"),
	SET(REQUESTER_ADD, requester_add, direction, SIO_REQUESTER_IN, -EOPNOTSUPP, NULL),
	SET(REQUESTER_ADD, requester_add, direction, 3, -EINVAL, NULL),
	SET(REQUESTER_ADD, requester_add, device, NO_SUCH, -ENODEV, NULL),
	SET(REQUESTER_ADD, requester_add, device, 0, 0, NULL), /* bdf 0:0.0 */
	SET(REQUESTER_ADD, requester_add, bdf, 0x100, -EINVAL, "not both"),

	ENDS(REQUESTER_DEL, requester_del, T_MEM),
	REF(REQUESTER_DEL, requester_del, id, T_REQUESTER_BUSY, -EBUSY, "DMA mappings"),

	GOOD(DEVICE_LIST),
	REF(DEVICE_LIST, device_list, after, T_DEVICE, -ENOENT, NULL),
	SET(DEVICE_LIST, device_list, after, ~0ULL, -ENOENT, NULL),

	GOOD(DEVICE_OPEN),
	SET(DEVICE_OPEN, device_open, h.flags, 0, -EBUSY, "is open"),
	SET(DEVICE_OPEN, device_open, device, NO_SUCH, -ENODEV, NULL),
	REFUSED(DEVICE_CLOSE, -EBUSY, "are left"),
	SET(DEVICE_CLOSE, device_close, device, NO_SUCH, -ENOENT, NULL),

	GOOD(RESET),
	SET(RESET, reset, device, 0, -ENODEV, NULL),
	SET(RESET, reset, kind, 0, -EINVAL, NULL),
	SET(RESET, reset, kind, SIO_RESET_BUS, -EOPNOTSUPP, NULL),
	SET(RESET, reset, kind, SIO_RESET_DONE, 0, NULL),
	SET(RESET, reset, kind, 4, -EINVAL, "kind 4"),
	SET(RESET, reset, h.flags, SIO_RESET_KEEP_DOORBELLS, 0, NULL),

	GOOD(BAR),
	SET(BAR, bar, device, 0, -ENODEV, NULL),
	SET(BAR, bar, bar, 1, -EINVAL, "no BAR 1"),
	SET(BAR, bar, bar, 6, -EINVAL, NULL),
	SET(BAR, bar, access, 0, -EINVAL, NULL),
	SET(BAR, bar, access, SIO_ACCESS_READ, 0, NULL),
	SET(BAR, bar, access, SIO_ACCESS_WRITE, -EINVAL, NULL),
	SET(BAR, bar, access, 7, -EINVAL, NULL),
	SET(BAR, bar, caching, 3, -EINVAL, NULL),
	SET(BAR, bar, offset, 0, 0, NULL), /* registers: nobody has them */
	SET(BAR, bar, offset, 1, -EINVAL, "whole pages"),
	SET(BAR, bar, offset, 1 << 30, -EINVAL, "ends behind BAR 0"),
	SET(BAR, bar, offset, ~0xfffULL, -EINVAL, NULL),
	SET(BAR, bar, length, 0, -EINVAL, NULL),
	SET(BAR, bar, length, 1 << 30, -EINVAL, NULL),
	SET(BAR, bar, length, ~0xfffULL, -EINVAL, NULL),
	ENDS(BAR_CLOSE, bar_close, T_MEM),

	GOOD(WATCH),
	SET(WATCH, watch, kind, SIO_WATCH_EVENT, 0, NULL),
	SET(WATCH, watch, kind, 0, -EINVAL, "kind 0"),
	SET(WATCH, watch, kind, 4, -EINVAL, "kind 4"),
	SET(WATCH, watch, kind, SIO_WATCH_FAULT, -EINVAL, "a userfaultfd is right"),
	SET(WATCH, watch, target_kind, 0, -EINVAL, "target kind 0"),
	SET(WATCH, watch, target_kind, SIO_KIND_MEM, -EINVAL, NULL),
	SET(WATCH, watch, target_kind, SIO_KIND_MAP, -ENOENT, NULL),
	SET(WATCH, watch, target, 0, -ENOENT, NULL),
	SET(WATCH, watch, target, NO_SUCH, -ENOENT, "0x7fffffffffff"),
	REF(WATCH, watch, target, T_GRANT, -ENOENT, NULL),
	REF(WATCH, watch, target, T_MIRROR, -EACCES, "does not write"),
	SET(WATCH, watch, offset, 1, -EINVAL, "whole pages"),
	SET(WATCH, watch, offset, 4096, -EINVAL, "ends behind"),
	SET(WATCH, watch, offset, ~0xfffULL, -EINVAL, NULL),
	SET(WATCH, watch, length, 0, -EINVAL, NULL),
	SET(WATCH, watch, length, 8192, -EINVAL, "ends behind BAR view"),
	SET(WATCH, watch, length, ~0xfffULL, -EINVAL, NULL),
	SET(WATCH, watch, address, 4096, -EINVAL, "address 0x1000"),
	REF(WATCH, watch, h.owner, T_OWNER, 0, NULL),
	REF(WATCH, watch, h.owner, T_ENDED_OWNER, -EPERM, "has ended"),
	SET(WATCH, watch, h.owner, NO_SUCH, -ENOENT, "no owner"),
	ENDS(UNWATCH, unwatch, T_MEM),

	GOOD(DMAMAP),
	SET(DMAMAP, dmamap, h.flags, SIO_DMAMAP_STRICT, 0, NULL),
	SET(DMAMAP, dmamap, device, 0, -ENODEV, NULL),
	SET(DMAMAP, dmamap, target_kind, 0, -EINVAL, "target kind 0"),
	SET(DMAMAP, dmamap, target_kind, SIO_KIND_APERTURE, -EOPNOTSUPP, NULL),
	SET(DMAMAP, dmamap, target_kind, SIO_KIND_MAP, -ENOENT, NULL),
	SET(DMAMAP, dmamap, access, 0, -EINVAL, NULL),
	SET(DMAMAP, dmamap, access, 4, -EINVAL, NULL),
	SET(DMAMAP, dmamap, target, NO_SUCH, -ENOENT, NULL),
	REF(DMAMAP, dmamap, target, T_GRANT, -ENOENT, NULL),
	SET(DMAMAP, dmamap, offset, 8, -EINVAL, "whole pages"),
	SET(DMAMAP, dmamap, offset, 4096, -EINVAL, NULL),
	SET(DMAMAP, dmamap, length, 0, -EINVAL, NULL),
	SET(DMAMAP, dmamap, length, 8192, -EINVAL, "ends behind"),
	SET(DMAMAP, dmamap, length, ~0xfffULL, -EINVAL, NULL),
	SET(DMAMAP, dmamap, iova, 0x700000000ULL, 0, NULL),
	SET(DMAMAP, dmamap, iova, 0x700000001ULL, -EINVAL, "whole page"),
	SET(DMAMAP, dmamap, iova, 0, 0, NULL),
	SET(DMAMAP, dmamap, iova, 1ULL << 52, -EINVAL, "can send"),
	OUT(DMAMAP, dmamap, highest, 0, IOVA, NULL),
	REF(DMAMAP, dmamap, h.owner, T_OWNER, 0, NULL),
	REF(DMAMAP, dmamap, h.owner, T_OTHER_OWNER, 0, NULL),
	REF(DMAMAP, dmamap, h.owner, T_ENDED_OWNER, -EPERM, NULL),

	ENDS(DMAUNMAP, dmaunmap, T_MEM),
	REF(DMAUNMAP, dmaunmap, id, T_DMAMAP_ENDED, -EPERM, "in quarantine"),
	SET(DMAUNMAP, dmaunmap, h.flags, SIO_DMAUNMAP_KEEP_ADDRESS, 0, NULL),
	SET(DMAUNMAP, dmaunmap, h.flags, SIO_DMAUNMAP_SETTLED, -EINVAL, "flags 0x1"),

	GOOD(DMA),
	SET(DMA, dma, adapter, 1, -ENODEV, "no adapter 1"),
	REF(DMA, dma, h.owner, T_OWNER, 0, NULL),
	REF(DMA, dma, h.owner, T_ENDED_OWNER, -EPERM, "has ended"),
	SET(DMA, dma, h.owner, NO_SUCH, -ENOENT, "no owner"),
	ENDS(DMA_FREE, dma_free, T_MEM),
	GOOD(DMA_ATTACH),
	SET(DMA_ATTACH, dma_attach, channel, 0, -ENOENT, NULL),
	REF(DMA_ATTACH, dma_attach, channel, T_MEM, -ENOENT, NULL),
	SET(DMA_ATTACH, dma_attach, target_kind, 0, -EINVAL, "target kind 0"),
	SET(DMA_ATTACH, dma_attach, target_kind, SIO_KIND_BAR, -ENOENT, "BAR view"),
	SET(DMA_ATTACH, dma_attach, target_kind, SIO_KIND_MAP, -ENOENT, NULL),
	SET(DMA_ATTACH, dma_attach, target, NO_SUCH, -ENOENT, "0x7fffffffffff"),
	REF(DMA_ATTACH, dma_attach, target, T_MEM_BUSY, 0, NULL),
	REF(DMA_ATTACH, dma_attach, target, T_GRANT, -ENOENT, NULL),
	SET(DMA_ATTACH, dma_attach, access, 0, -EINVAL, "access 0"),
	SET(DMA_ATTACH, dma_attach, access, 1, 0, NULL),
	SET(DMA_ATTACH, dma_attach, access, 4, -EINVAL, NULL),
	SET(DMA_ATTACH, dma_attach, offset, 1, -EINVAL, "whole pages"),
	SET(DMA_ATTACH, dma_attach, offset, 4096, -EINVAL, "ends behind"),
	SET(DMA_ATTACH, dma_attach, length, 0, -EINVAL, NULL),
	SET(DMA_ATTACH, dma_attach, length, 8192, -EINVAL, "ends behind memory"),
	SET(DMA_ATTACH, dma_attach, length, ~0xfffULL, -EINVAL, NULL),
	REF(DMA_ATTACH, dma_attach, h.owner, T_OWNER, 0, NULL),
	REF(DMA_ATTACH, dma_attach, h.owner, T_OTHER_OWNER, -EPERM, "belongs to owner"),
	REF(DMA_ATTACH, dma_attach, h.owner, T_ENDED_OWNER, -EPERM, "has ended"),
	ENDS(DMA_DETACH, dma_detach, T_MEM),

	GOOD(MCAST),
	SET(MCAST, mcast, adapter, 1, -ENODEV, NULL),
	SET(MCAST, mcast, group, 8, -EINVAL, "group 8, 0 to 7"),
	SET(MCAST, mcast, group, 7, 0, NULL),
	SET(MCAST, mcast, what, 0, -EINVAL, "what 0"),
	SET(MCAST, mcast, what, 5, -EINVAL, "1 to 4"),
	SET(MCAST, mcast, what, SIO_MCAST_CONNECT, -EINVAL, "length"),
	SET(MCAST, mcast, what, SIO_MCAST_PUBLISH, -EINVAL, "a member is right"),
	SET(MCAST, mcast, target, 1, -EINVAL, "target 0x1"),
	SET(MCAST, mcast, length, 0, -EINVAL, "at least 1"),
	SET(MCAST, mcast, length, 1, 0, NULL),
	SET(MCAST, mcast, mode, 3, -EINVAL, "0 to 2"),
	SET(MCAST, mcast, mode, SIO_MCAST_FUSED, 0, NULL),
	SET(MCAST, mcast, mode, SIO_MCAST_EXACT, -EOPNOTSUPP, "groups here have 1"),
	SET(MCAST, mcast, source, 1, -EINVAL, "without a source_kind"),
	SET(MCAST, mcast, offset, 1, -EINVAL, "without a source_kind"),
	SET(MCAST, mcast, source_kind, SIO_KIND_MEM, -EINVAL, "memory is made"),
	SET(MCAST, mcast, source_kind, SIO_KIND_BAR, -EOPNOTSUPP, "exact groups"),
	OUT(MCAST, mcast, length, 17 << 20, RAM, "in all"),
	OUT(MCAST, mcast, length, ~0ULL, RAM, NULL),
	REF(MCAST, mcast, h.owner, T_OWNER, 0, NULL),
	REF(MCAST, mcast, h.owner, T_ENDED_OWNER, -EPERM, "has ended"),

	GOOD(IRQ_NEW),
	REF(IRQ_NEW, irq_new, h.owner, T_OWNER, 0, NULL),
	SET(IRQ_NEW, irq_new, h.flags, SIO_IRQ_EVENTFD, -EINVAL, "no eventfd"),
	ENDS(IRQ_FREE, irq_free, T_MEM),
	REF(IRQ_FREE, irq_free, id, T_IRQ_BUSY, -EBUSY, "grants"),

	GOOD(VECTOR),
	SET(VECTOR, vector, h.owner, 0, 0, NULL),
	SET(VECTOR, vector, h.owner, NO_SUCH, -ENOENT, "no owner"),
	REF(VECTOR, vector, h.owner, T_OTHER_OWNER, 0, NULL),
	REF(VECTOR, vector, h.owner, T_ENDED_OWNER, -EPERM, "has ended"),
	SET(VECTOR, vector, device, 0, -ENODEV, NULL),
	SET(VECTOR, vector, irq, 0, 0, NULL), /* there is nothing to take away */
	SET(VECTOR, vector, irq, NO_SUCH, -ENOENT, "0x7fffffffffff"),
	REF(VECTOR, vector, irq, T_IRQ_BUSY, 0, NULL),
	REF(VECTOR, vector, irq, T_MEM, -ENOENT, NULL),
	REF(VECTOR, vector, irq, T_MAP, -ENOENT, NULL), /* of memory */
	SET(VECTOR, vector, address, 4, -EINVAL, "not both"),
	SET(VECTOR, vector, data, 1, -EINVAL, "not both"),
	SET(VECTOR, vector, vector, 1, 0, NULL), /* its owner's: another target */
	SET(VECTOR, vector, vector, ~0U, -EINVAL, "vectors"),
	SET(VECTOR, vector, mask, 1, 0, NULL),
	SET(VECTOR, vector, mask, 2, -EINVAL, "mask 2"),

	GOOD(SETTLE),
	SET(SETTLE, settle, device, NO_SUCH, -ENODEV, NULL),
	SET(SETTLE, settle, h.owner, 0, -EINVAL, "name an owner"),
	SET(SETTLE, settle, h.owner, NO_SUCH, -ENOENT, NULL),
	REF(SETTLE, settle, h.owner, T_OWNER, -EPERM, "is alive"),
	SET(SETTLE, settle, reason, 77, 0, NULL),

	GOOD(STATUS),

	GOOD(STATS),
	SET(STATS, stats, id, 1, -EINVAL, NULL),
	SET(STATS, stats, kind, SIO_KIND_ADAPTER, 0, NULL),
	SET(STATS, stats, kind, SIO_KIND_DEVICE, -ENODEV, NULL), /* id 0 */
	SET(STATS, stats, kind, SIO_KIND_DMA, 0, NULL),
	SET(STATS, stats, kind, SIO_KIND_MEM, -EINVAL, "kind 2"),
	SET(STATS, stats, kind, ~0U, -EINVAL, NULL),

	SET(IMPORT, import, kind, SIO_IMPORT_DMABUF, -EOPNOTSUPP, "memfds alone"),
	REFUSED(CONFIG, -ENODEV, NULL), /* id 0 */
	REFUSED(IOVA_RESERVE, -EOPNOTSUPP, NULL),
	REFUSED(IOVA_RELEASE, -EOPNOTSUPP, NULL),
	REFUSED(SHADOW, -EOPNOTSUPP, NULL),
	REFUSED(SHADOW_DEL, -EOPNOTSUPP, NULL),
	REFUSED(SHADOW_ANSWER, -EOPNOTSUPP, NULL),
	REFUSED(SHADOW_PEER, -EOPNOTSUPP, NULL),
	REFUSED(APERTURE, -EOPNOTSUPP, NULL),
	REFUSED(RESTORE, -EOPNOTSUPP, NULL),
	REFUSED(HOLD, -EOPNOTSUPP, NULL),
	REFUSED(IDENTIFY, -EOPNOTSUPP, NULL),
	REFUSED(REOPEN, -EOPNOTSUPP, NULL),
	SET(CONFIG, config, h.flags, SIO_CONFIG_WRITE, -ENODEV, NULL),
};
/* clang-format on */
const unsigned port_n_rows = sizeof(port_rows) / sizeof(port_rows[0]);
