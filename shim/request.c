// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every request comes through here and is checked the same way, in this order: operation, size,
 * reserved fields, flags, served at all, descriptors, owner. Only then does its handler see it.
 */
#include <linux/file.h>

#include "smartio.h"

/* What an operation wants its h.owner to be. */
enum owner_rule {
	ASKS,	 /* the daemon (0), or who asks, ended or not */
	HOLDS,	 /* the daemon (0) or a live owner: the new resource hangs on it */
	SUBJECT, /* the operation is about it: the handler looks */
};

struct operation {
	const char *name;
	u32 size, room; /* of the request and of its answer */
	u32 flags;	/* allowed */
	u32 reserved;	/* offset of a further reserved 32-bit field; 0: none */
	u32 device;	/* offset of the device's id, if a reset of it must be over; 0: none */
	enum owner_rule rule;
	unsigned int files;   /* that may come along */
	sio_handler *prepare; /* without sio.lock: what takes long */
	sio_handler *handler; /* NULL: not served */
};

/* An operation on something that only an NTB adapter could have. */
static int no_adapter(struct sio_request *rq, const void *msg)
{
	return sio_fail(rq, -ENODEV, "no adapter here: this host has none");
}

static int no_object(struct sio_request *rq, const void *msg)
{
	const struct sio_req_free *m = msg;

	return sio_fail(rq, -ENOENT, "nothing of that kind has id %#llx: no adapter is here",
			m->id);
}

#define OP(what, type, answer, fn, ...)                                                            \
	{                                                                                          \
		.name = #what, .size = sizeof(struct sio_req_##type),                              \
		.room = sizeof(struct sio_evt_##answer), .handler = (fn), __VA_ARGS__              \
	}
#define RSVD(type) .reserved = offsetof(struct sio_req_##type, reserved2)
#define DEVICE(type) .device = offsetof(struct sio_req_##type, device)

/* clang-format off */
static const struct operation operations[SIO_OP_COUNT] = {
	[SIO_OP_INFO] = OP(INFO, info, info, sio_op_info),
	[SIO_OP_OWNER_NEW] = OP(OWNER_NEW, owner_new, owner_new, sio_op_owner_new, RSVD(owner_new),
				.flags = SIO_OWNER_CHILD, .rule = SUBJECT),
	[SIO_OP_OWNER_CLOSE] = OP(OWNER_CLOSE, owner_close, ok, sio_op_owner_close,
				  .rule = SUBJECT),
	[SIO_OP_LIST] = OP(LIST, list, list, sio_op_list, RSVD(list)),
	[SIO_OP_ADAPTER] = OP(ADAPTER, adapter, adapter, no_adapter, RSVD(adapter)),
	[SIO_OP_ALLOC] = OP(ALLOC, alloc, alloc, sio_op_alloc, .rule = HOLDS,
			    .prepare = sio_prepare_alloc),
	[SIO_OP_FREE] = OP(FREE, free, ok, sio_op_end),
	[SIO_OP_IMPORT] = OP(IMPORT, import, import, sio_op_import, .flags = SIO_IMPORT_POOL,
			     .rule = HOLDS, .files = 1, .prepare = sio_prepare_import),
	[SIO_OP_GRANT] = OP(GRANT, grant, grant, no_adapter, RSVD(grant), .rule = HOLDS),
	[SIO_OP_UNGRANT] = OP(UNGRANT, ungrant, ok, no_object),
	[SIO_OP_MAP] = OP(MAP, map, map, no_adapter, .rule = HOLDS),
	[SIO_OP_UNMAP] = OP(UNMAP, unmap, ok, no_object),
	[SIO_OP_REQUESTER_ADD] = OP(REQUESTER_ADD, requester_add, requester_add, no_adapter,
				    RSVD(requester_add), .rule = HOLDS),
	[SIO_OP_REQUESTER_DEL] = OP(REQUESTER_DEL, requester_del, ok, no_object),
	[SIO_OP_DEVICE_LIST] = OP(DEVICE_LIST, device_list, device, sio_op_device_list),
	[SIO_OP_DEVICE_OPEN] = OP(DEVICE_OPEN, device_open, device, sio_op_device_open,
				  DEVICE(device_open), .flags = SIO_DEVICE_FORCE, .rule = HOLDS),
	[SIO_OP_DEVICE_CLOSE] = OP(DEVICE_CLOSE, device_close, ok, sio_op_end,
				   DEVICE(device_close)),
	[SIO_OP_RESET] = OP(RESET, reset, reset, sio_op_reset, RSVD(reset), DEVICE(reset)),
	[SIO_OP_CONFIG] = OP(CONFIG, config, config, sio_op_config, RSVD(config), DEVICE(config),
			     .flags = SIO_CONFIG_WRITE),
	[SIO_OP_BAR] = OP(BAR, bar, bar, sio_op_bar, RSVD(bar), DEVICE(bar), .rule = HOLDS),
	[SIO_OP_BAR_CLOSE] = OP(BAR_CLOSE, bar_close, ok, sio_op_end),
	[SIO_OP_WATCH] = OP(WATCH, watch, watch, NULL, .rule = HOLDS, .files = 1),
	[SIO_OP_DMAMAP] = OP(DMAMAP, dmamap, dmamap, sio_op_dmamap, DEVICE(dmamap),
			     .flags = SIO_DMAMAP_STRICT, .rule = HOLDS),
	[SIO_OP_DMAUNMAP] = OP(DMAUNMAP, dmaunmap, ok, sio_op_end),
	[SIO_OP_IOVA_RESERVE] = OP(IOVA_RESERVE, iova_reserve, iova_reserve, NULL),
	[SIO_OP_IOVA_RELEASE] = OP(IOVA_RELEASE, iova_release, ok, NULL),
	[SIO_OP_IRQ_NEW] = OP(IRQ_NEW, irq_new, irq_new, sio_op_irq_new, .rule = HOLDS),
	[SIO_OP_IRQ_FREE] = OP(IRQ_FREE, irq_free, ok, sio_op_end),
	[SIO_OP_VECTOR] = OP(VECTOR, vector, ok, sio_op_vector, RSVD(vector), DEVICE(vector),
			     .rule = HOLDS),
	[SIO_OP_SETTLE] = OP(SETTLE, settle, settle, sio_op_settle, RSVD(settle), DEVICE(settle),
			     .flags = SIO_SETTLE_ALL, .rule = SUBJECT),
	[SIO_OP_STATUS] = OP(STATUS, status, status, sio_op_status),
	[SIO_OP_MCAST] = OP(MCAST, mcast, mcast, NULL, RSVD(mcast)),
	[SIO_OP_DMA] = OP(DMA, dma, dma, NULL, RSVD(dma)),
	[SIO_OP_DMA_FREE] = OP(DMA_FREE, dma_free, ok, NULL),
	[SIO_OP_DMA_ATTACH] = OP(DMA_ATTACH, dma_attach, dma_attach, NULL),
	[SIO_OP_DMA_DETACH] = OP(DMA_DETACH, dma_detach, ok, NULL),
	[SIO_OP_STATS] = OP(STATS, stats, stats, sio_op_stats, RSVD(stats)),
	[SIO_OP_SHADOW] = OP(SHADOW, shadow, shadow, NULL),
	[SIO_OP_UNWATCH] = OP(UNWATCH, unwatch, ok, NULL),
	[SIO_OP_IDENTIFY] = OP(IDENTIFY, identify, identify, sio_op_identify, .files = 1),
	[SIO_OP_REOPEN] = OP(REOPEN, reopen, reopen, sio_op_reopen, RSVD(reopen)),
};
/* clang-format on */

u64 sio_served(void)
{
	u64 served = 0;

	for (unsigned int i = 0; i < SIO_OP_COUNT; i++)
		if (operations[i].handler && operations[i].handler != no_adapter &&
		    operations[i].handler != no_object)
			served |= BIT_ULL(i);
	return served;
}

u32 sio_answer_room(u32 op)
{
	return op < SIO_OP_COUNT ? operations[op].room : 0;
}

int sio_fail(struct sio_request *rq, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(rq->text, sizeof(rq->text), fmt, ap);
	va_end(ap);
	rq->error = error;
	return error;
}

int sio_check_range(struct sio_request *rq, const char *of, u64 offset, u64 length, u64 size)
{
	u64 end;

	if (!length || !PAGE_ALIGNED(offset | length))
		return sio_fail(rq, -EINVAL, "range %#llx + %#llx is not of whole pages", offset,
				length);
	if (check_add_overflow(offset, length, &end) || end > size)
		return sio_fail(rq, -EINVAL, "range %#llx + %#llx ends behind %s of %#llx bytes",
				offset, length, of, size);
	return 0;
}

void *sio_answer(struct sio_request *rq, u32 size)
{
	struct sio_event *e = rq->answer;

	if (WARN_ON(size > e->room))
		size = e->room;
	e->u.h.size = size;
	return &e->u;
}

int sio_answer_file(struct sio_request *rq, struct file *f)
{
	struct sio_event *e = rq->answer;

	if (IS_ERR(f))
		return sio_fail(rq, PTR_ERR(f), "no descriptor for the answer");
	e->file[e->n_files++] = f;
	return 0;
}

void sio_answer_send(struct sio_request *rq)
{
	struct sio_event *e = rq->answer;

	e->u.h.op = rq->u.h.op;
	e->u.h.cookie = rq->u.h.cookie;
	e->u.h.owner = rq->u.h.owner;
	if (!e->u.h.size)
		e->u.h.size = sizeof(struct sio_evt_ok);
	rq->answer = NULL;
	sio_send_answer(e, rq->session);
}

static void refuse(struct sio_request *rq, int error)
{
	struct sio_event *e = rq->answer;

	sio.refused++;
	while (e->n_files > 0)
		fput(e->file[--e->n_files]);
	memset(&e->u.error, 0, sizeof(e->u.error));
	e->u.h.size = sizeof(e->u.error);
	e->u.h.error = error;
	scnprintf(e->u.error.text, sizeof(e->u.error.text), "%s: %s",
		  rq->u.h.op < SIO_OP_COUNT ? operations[rq->u.h.op].name : "request",
		  rq->text[0] ? rq->text : "out of memory");
	sio_answer_send(rq);
}

static void free_request(struct sio_request *rq)
{
	sio_mem_free(rq->mem);
	if (rq->file)
		fput(rq->file);
	kfree(rq);
}

void sio_finish(struct sio_request *rq, int rc)
{
	if (rc < 0)
		refuse(rq, rc);
	else if (rq->answer)
		sio_answer_send(rq);
	sio_fall();
	sio_owners_bury();
	free_request(rq);
}

/* What needs no knowledge of the host's state. */
static int check_form(struct sio_request *rq)
{
	const struct sio_req *h = &rq->u.h;
	const struct operation *op;
	u32 reserved = 0;

	if (h->op >= SIO_OP_COUNT || !operations[h->op].name)
		return sio_fail(rq, -EOPNOTSUPP, "operation %u: known are %u to %u", h->op,
				SIO_OP_INFO, SIO_OP_COUNT - 1);
	op = &operations[h->op];
	if (h->size != op->size || rq->len != op->size)
		return sio_fail(rq, -EINVAL, "size %u in a packet of %u bytes, %u is right",
				h->size, rq->len, op->size);
	if (op->reserved)
		memcpy(&reserved, (const char *)h + op->reserved, sizeof(reserved));
	if (h->reserved || reserved)
		return sio_fail(rq, -EINVAL, "h.reserved is %#x, reserved2 is %#x, 0 is right",
				h->reserved, reserved);
	if (h->flags & ~op->flags)
		return sio_fail(rq, -EINVAL, "flags %#x, allowed are %#x", h->flags, op->flags);
	if (!op->handler)
		return sio_fail(rq, -EOPNOTSUPP, "not served by smartio.ko");
	if (rq->n_files > op->files)
		return sio_fail(rq, -EINVAL, "%u descriptors came along, at most %u are right",
				rq->n_files, op->files);
	return 0;
}

static int check_owner(struct sio_request *rq, const struct operation *op)
{
	u64 id = rq->u.h.owner;

	rq->owner = sio_owner_find(id);
	if (op->rule == SUBJECT)
		return 0;
	if (!rq->owner)
		return sio_fail(rq, -ENOENT, "no owner %#llx", id);
	if (op->rule == HOLDS && rq->owner->ended)
		return sio_fail(rq, -EPERM, "owner %#llx has ended", id);
	return 0;
}

void sio_run(struct sio_request *rq)
{
	const struct operation *op = &operations[rq->u.h.op];
	int rc = check_owner(rq, op);

	if (!rc)
		rc = op->handler(rq, &rq->u);
	if (rc != SIO_LATER)
		sio_finish(rq, rc);
}

/* The device under reset that the request must wait for. */
static struct sio_dev *in_the_way(const struct sio_request *rq, const struct operation *op)
{
	struct sio_dev *d;

	if (!op->device)
		return NULL;
	d = sio_dev_find(*(const u64 *)((const char *)&rq->u + op->device));
	return d && d->reset ? d : NULL;
}

void sio_request(struct sio_request *rq)
{
	int rc = check_form(rq);
	const struct operation *op;
	struct sio_dev *d;

	if (!rc) {
		op = &operations[rq->u.h.op];
		if (op->prepare)
			rc = op->prepare(rq, &rq->u);
	}
	mutex_lock(&sio.lock);
	sio.requests++;
	if (rc) {
		sio_finish(rq, rc);
	} else {
		d = in_the_way(rq, op);
		if (d)
			list_add_tail(&rq->node, &d->behind);
		else
			sio_run(rq);
	}
	mutex_unlock(&sio.lock);
}
