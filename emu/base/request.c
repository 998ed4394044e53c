/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every request of a host's daemon comes through here and is checked the same way, in this order:
 * header, operation, size, reserved fields, flags, descriptors, served at all, owner. Only then
 * does its handler see it.
 */
#include <stdio.h>

#include "emu/engine/engine.h"

/* What an operation wants its h.owner to be. */
enum owner_rule {
	OWNER_ASKS,    /* the daemon (0), or who asks, ended or not */
	OWNER_HOLDS,   /* the daemon (0) or a live owner: the new resource hangs on it */
	OWNER_SUBJECT, /* the operation is about it: the handler looks */
};

struct operation {
	const char *name;
	uint32_t size;
	uint32_t flags;	   /* allowed */
	uint32_t reserved; /* offset of a further reserved 32-bit field; 0: none */
	enum owner_rule rule;
	unsigned fds;	      /* that may come along */
	emu_handler *handler; /* NULL: not served */
};

#define OP(what, type, allowed, rsvd, owner_rule, fn)                                              \
	{                                                                                          \
		.name = (what), .size = sizeof(type), .flags = (allowed), .reserved = (rsvd),      \
		.rule = (owner_rule), .handler = (fn)                                              \
	}
#define OP_FDS(what, type, n_fds, owner_rule, fn)                                                  \
	{                                                                                          \
		.name = (what), .size = sizeof(type), .rule = (owner_rule), .fds = (n_fds),        \
		.handler = (fn)                                                                    \
	}
#define RSVD(type) offsetof(type, reserved2)

/* clang-format off */
static const struct operation operations[SIO_OP_COUNT] = {
	[SIO_OP_INFO] = OP("INFO", struct sio_req_info, 0, 0, OWNER_ASKS, emu_op_info),
	[SIO_OP_OWNER_NEW] = OP("OWNER_NEW", struct sio_req_owner_new, SIO_OWNER_CHILD,
				RSVD(struct sio_req_owner_new), OWNER_SUBJECT, emu_op_owner_new),
	[SIO_OP_OWNER_CLOSE] = OP("OWNER_CLOSE", struct sio_req_owner_close, 0, 0, OWNER_SUBJECT,
				  emu_op_owner_close),
	[SIO_OP_LIST] = OP("LIST", struct sio_req_list, 0, RSVD(struct sio_req_list), OWNER_ASKS,
			   emu_op_list),
	[SIO_OP_ADAPTER] = OP("ADAPTER", struct sio_req_adapter, 0, RSVD(struct sio_req_adapter),
			      OWNER_ASKS, emu_op_adapter),
	[SIO_OP_ALLOC] = OP("ALLOC", struct sio_req_alloc, 0, 0, OWNER_HOLDS, emu_op_alloc),
	[SIO_OP_FREE] = OP("FREE", struct sio_req_free, 0, 0, OWNER_ASKS, emu_op_free),
	[SIO_OP_GIVE] = OP("GIVE", struct sio_req_give, 0, 0, OWNER_ASKS, emu_op_give),
	[SIO_OP_IMPORT] = OP("IMPORT", struct sio_req_import, SIO_IMPORT_POOL, 0, OWNER_HOLDS, NULL),
	[SIO_OP_GRANT] = OP("GRANT", struct sio_req_grant, 0, RSVD(struct sio_req_grant),
			    OWNER_HOLDS, emu_op_grant),
	[SIO_OP_UNGRANT] = OP("UNGRANT", struct sio_req_ungrant, SIO_UNGRANT_KEEP_ADDRESS, 0,
			      OWNER_ASKS, emu_op_ungrant),
	[SIO_OP_MAP] = OP("MAP", struct sio_req_map, 0, 0, OWNER_HOLDS, emu_op_map),
	[SIO_OP_UNMAP] = OP("UNMAP", struct sio_req_unmap, 0, 0, OWNER_ASKS, emu_op_unmap),
	[SIO_OP_REQUESTER_ADD] = OP("REQUESTER_ADD", struct sio_req_requester_add, 0,
				    RSVD(struct sio_req_requester_add), OWNER_HOLDS,
				    emu_op_requester_add),
	[SIO_OP_REQUESTER_DEL] = OP("REQUESTER_DEL", struct sio_req_requester_del, 0, 0, OWNER_ASKS,
				    emu_op_requester_del),
	[SIO_OP_DEVICE_LIST] = OP("DEVICE_LIST", struct sio_req_device_list, 0, 0, OWNER_ASKS,
				  emu_op_device_list),
	[SIO_OP_DEVICE_OPEN] = OP("DEVICE_OPEN", struct sio_req_device_open, SIO_DEVICE_FORCE, 0,
				  OWNER_HOLDS, emu_op_device_open),
	[SIO_OP_DEVICE_CLOSE] = OP("DEVICE_CLOSE", struct sio_req_device_close, 0, 0, OWNER_ASKS,
				   emu_op_device_close),
	[SIO_OP_RESET] = OP("RESET", struct sio_req_reset, 0, RSVD(struct sio_req_reset),
			    OWNER_ASKS, emu_op_reset),
	[SIO_OP_CONFIG] = OP("CONFIG", struct sio_req_config, SIO_CONFIG_WRITE,
			     RSVD(struct sio_req_config), OWNER_ASKS, NULL),
	[SIO_OP_BAR] = OP("BAR", struct sio_req_bar, 0, RSVD(struct sio_req_bar), OWNER_HOLDS,
			  emu_op_bar),
	[SIO_OP_BAR_CLOSE] = OP("BAR_CLOSE", struct sio_req_bar_close, 0, 0, OWNER_ASKS,
				emu_op_bar_close),
	[SIO_OP_WATCH] = OP_FDS("WATCH", struct sio_req_watch, 1, OWNER_HOLDS, emu_op_watch),
	[SIO_OP_UNWATCH] = OP("UNWATCH", struct sio_req_unwatch, 0, 0, OWNER_ASKS, emu_op_unwatch),
	[SIO_OP_DMAMAP] = OP("DMAMAP", struct sio_req_dmamap, SIO_DMAMAP_STRICT, 0, OWNER_HOLDS,
			     emu_op_dmamap),
	[SIO_OP_DMAUNMAP] = OP("DMAUNMAP", struct sio_req_dmaunmap, 0, 0, OWNER_ASKS,
			       emu_op_dmaunmap),
	[SIO_OP_IOVA_RESERVE] = OP("IOVA_RESERVE", struct sio_req_iova_reserve, 0, 0, OWNER_HOLDS,
				   NULL),
	[SIO_OP_IOVA_RELEASE] = OP("IOVA_RELEASE", struct sio_req_iova_release, 0, 0, OWNER_ASKS,
				   NULL),
	[SIO_OP_IRQ_NEW] = OP("IRQ_NEW", struct sio_req_irq_new, 0, 0, OWNER_HOLDS, emu_op_irq_new),
	[SIO_OP_IRQ_FREE] = OP("IRQ_FREE", struct sio_req_irq_free, 0, 0, OWNER_ASKS,
			       emu_op_irq_free),
	[SIO_OP_VECTOR] = OP("VECTOR", struct sio_req_vector, 0, RSVD(struct sio_req_vector),
			     OWNER_HOLDS, emu_op_vector),
	[SIO_OP_SETTLE] = OP("SETTLE", struct sio_req_settle, 0,
			     RSVD(struct sio_req_settle), OWNER_SUBJECT, emu_op_settle),
	[SIO_OP_STATUS] = OP("STATUS", struct sio_req_status, 0, 0, OWNER_ASKS, emu_op_status),
	[SIO_OP_MCAST] = OP("MCAST", struct sio_req_mcast, 0, RSVD(struct sio_req_mcast),
			    OWNER_HOLDS, emu_op_mcast),
	[SIO_OP_DMA] = OP("DMA", struct sio_req_dma, 0, RSVD(struct sio_req_dma), OWNER_HOLDS,
			  emu_op_dma),
	[SIO_OP_DMA_FREE] = OP("DMA_FREE", struct sio_req_dma_free, 0, 0, OWNER_ASKS,
			       emu_op_dma_free),
	[SIO_OP_DMA_ATTACH] = OP("DMA_ATTACH", struct sio_req_dma_attach, 0, 0, OWNER_HOLDS,
				 emu_op_dma_attach),
	[SIO_OP_DMA_DETACH] = OP("DMA_DETACH", struct sio_req_dma_detach, 0, 0, OWNER_ASKS,
				 emu_op_dma_detach),
	[SIO_OP_STATS] = OP("STATS", struct sio_req_stats, 0, RSVD(struct sio_req_stats),
			    OWNER_ASKS, emu_op_stats),
	[SIO_OP_IDENTIFY] = OP_FDS("IDENTIFY", struct sio_req_identify, 1, OWNER_ASKS,
				   emu_op_identify),
	[SIO_OP_REOPEN] = OP("REOPEN", struct sio_req_reopen, 0, RSVD(struct sio_req_reopen),
			     OWNER_ASKS, emu_op_reopen),
	[SIO_OP_SHADOW] = OP("SHADOW", struct sio_req_shadow, 0, 0, OWNER_HOLDS, NULL),
};
/* clang-format on */

#define BIT(op) (1ull << SIO_OP_##op)

/* What is for daemons that are started again; smartio.ko, whose daemons are, has no adapters. */
static const uint64_t of_again = BIT(IDENTIFY) | BIT(REOPEN);
static const uint64_t of_adapters = BIT(ADAPTER) | BIT(GRANT) | BIT(UNGRANT) | BIT(MAP) |
				    BIT(UNMAP) | BIT(REQUESTER_ADD) | BIT(REQUESTER_DEL) |
				    BIT(MCAST) | BIT(DMA) | BIT(DMA_FREE) | BIT(DMA_ATTACH) |
				    BIT(DMA_DETACH) | BIT(WATCH) | BIT(UNWATCH);

static bool serves(const struct emu_room *r, unsigned op)
{
	uint64_t absent = emu_outlives(r) ? of_adapters : of_again;

	return operations[op].handler && !(absent >> op & 1);
}

uint64_t emu_served(const struct emu_room *r)
{
	uint64_t served = 0;

	for (unsigned i = 0; i < SIO_OP_COUNT; i++)
		if (serves(r, i))
			served |= 1ull << i;
	return served;
}

static void answer(struct emu_host *h, const struct sio_req *req, struct sio_evt *evt, size_t size,
		   int error, uint32_t reason, const int *fds, unsigned n_fds)
{
	struct emu_room *r = h->room;

	evt->size = (uint32_t)size;
	evt->op = req->op;
	evt->reason = reason;
	evt->error = error;
	evt->cookie = req->cookie;
	evt->owner = req->owner;
	r->ops->send(r->ctx, h->index, evt, size, fds, n_fds);
}

void emu_answer(struct emu_request *rq, void *evt, size_t size, const int *fds, unsigned n_fds)
{
	answer(rq->host, rq->h, evt, size, 0, SIO_OUT_OF_NOTHING, fds, n_fds);
}

void emu_answer_ok(struct emu_request *rq)
{
	struct sio_evt_ok evt;

	memset(&evt, 0, sizeof(evt));
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
}

static void refuse(struct emu_host *h, const struct sio_req *req, int error, uint32_t reason,
		   const char *text)
{
	struct sio_evt_error evt;

	memset(&evt, 0, sizeof(evt));
	snprintf(evt.text, sizeof(evt.text), "%.*s", (int)sizeof(evt.text) - 1, text);
	h->requests_refused++;
	answer(h, req, &evt.h, sizeof(evt), error, reason, NULL, 0);
}

/* What needs no knowledge of the host's state. */
static int check_form(const struct emu_room *r, const struct sio_req *h, size_t len, unsigned n_fds,
		      const struct operation **ret_op, struct sio_err *err)
{
	const struct operation *op;
	uint32_t reserved;

	if (h->op >= SIO_OP_COUNT || !operations[h->op].name)
		return sio_fail(err, -EOPNOTSUPP, "operation %u: known are %u to %u", h->op,
				SIO_OP_INFO, SIO_OP_COUNT - 1);
	op = &operations[h->op];
	if (h->size != op->size || len != op->size)
		return sio_fail(err, -EINVAL, "%s: size %u in a packet of %zu bytes, %u is right",
				op->name, h->size, len, op->size);
	if (h->reserved != 0)
		return sio_fail(err, -EINVAL, "%s: h.reserved is %#x, 0 is right", op->name,
				h->reserved);
	if (op->reserved) {
		memcpy(&reserved, (const char *)h + op->reserved, sizeof(reserved));
		if (reserved != 0)
			return sio_fail(err, -EINVAL, "%s: reserved2 is %#x, 0 is right", op->name,
					reserved);
	}
	if (h->flags & ~op->flags)
		return sio_fail(err, -EINVAL, "%s: flags %#x, allowed are %#x", op->name, h->flags,
				op->flags);
	if (!serves(r, h->op))
		return sio_fail(err, -EOPNOTSUPP, "%s: not served by the machine room", op->name);
	if (n_fds > op->fds)
		return sio_fail(err, -EINVAL, "%s: %u descriptors came along, %u %s right",
				op->name, n_fds, op->fds, op->fds == 1 ? "at most is" : "is");
	*ret_op = op;
	return 0;
}

static int check_owner(struct emu_request *rq, const struct operation *op)
{
	uint64_t id = rq->h->owner;

	rq->owner = emu_owner_find(rq->host, id);
	if (op->rule == OWNER_SUBJECT)
		return 0;
	if (!rq->owner)
		return sio_fail(&rq->err, -ENOENT, "%s: no owner %#" PRIx64, op->name, id);
	if (op->rule == OWNER_HOLDS && rq->owner->ended)
		return sio_fail(&rq->err, -EPERM, "%s: owner %#" PRIx64 " has ended", op->name, id);
	return 0;
}

static void drop_fd(struct emu_request *rq)
{
	struct emu_room *r = rq->host->room;

	if (rq->fd >= 0)
		r->ops->close(r->ctx, rq->fd);
	rq->fd = -1;
}

static void serve(struct emu_room *r, unsigned host, const void *req, size_t len, int *fds,
		  unsigned n_fds)
{
	union {
		struct sio_req h;
		uint64_t words[SIO_PORT_MAX_PACKET / 8];
	} copy;
	struct emu_host *h = &r->host[host];
	struct emu_request rq = {.host = h, .h = &copy.h, .fd = n_fds ? fds[0] : -1};
	const struct operation *op = NULL;
	int rc;

	for (unsigned i = 1; i < n_fds; i++)
		r->ops->close(r->ctx, fds[i]);
	if (!h->up) {
		drop_fd(&rq);
		return;
	}
	h->requests++;
	if (len < sizeof(copy.h)) {
		emu_log(r, "%s: packet of %zu bytes, a header has %zu", h->topo->name, len,
			sizeof(copy.h));
		memset(&copy.h, 0, sizeof(copy.h));
		drop_fd(&rq);
		refuse(h, &copy.h, -EINVAL, SIO_OUT_OF_NOTHING, "packet shorter than its header");
		return;
	}
	memcpy(&copy, req, len < sizeof(copy) ? len : sizeof(copy));
	rc = check_form(r, &copy.h, len, n_fds, &op, &rq.err);
	if (rc == 0)
		rc = check_owner(&rq, op);
	if (rc == 0)
		rc = op->handler(&rq, &copy);
	drop_fd(&rq);
	if (rc < 0)
		refuse(h, &copy.h, rc, sio_err_reason(&rq.err, rc),
		       rq.err.text[0] ? rq.err.text : "out of memory");
	emu_objects_fall(h);
	emu_owners_bury(h);
}

void emu_room_request(struct emu_room *r, unsigned host, const void *req, size_t len, int *fds,
		      unsigned n_fds)
{
	emu_engines_stop(r);
	serve(r, host, req, len, fds, n_fds);
	emu_engines_go(r);
}
