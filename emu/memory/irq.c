/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts of a host: an event descriptor, and the address to which messages for it are sent. */
#include "emu/memory/memory.h"

int emu_op_irq_new(struct emu_request *rq, const void *msg)
{
	const struct sio_req_irq_new *m = msg;
	struct emu_room *r = rq->host->room;
	struct sio_evt_irq_new evt;
	struct emu_irq *q = NULL;
	int fds[2], rc = 0;

	if (m->h.flags & SIO_IRQ_EVENTFD &&
	    (rq->fd < 0 || !r->ops->event_check || !r->ops->event_check(r->ctx, rq->fd)))
		return sio_fail(&rq->err, -EINVAL, "IRQ_NEW: no eventfd came along");
	q = emu_object_new(rq, SIO_KIND_IRQ, sizeof(*q), 0);
	if (!q)
		return rq->err.code;
	if (m->h.flags & SIO_IRQ_EVENTFD) {
		q->fd = rq->fd;
		rq->fd = -1;
	} else {
		rc = r->ops->event_new(r->ctx, &q->fd);
	}
	if (rc < 0) {
		emu_object_drop(&q->o);
		return sio_fail(&rq->err, rc, "IRQ_NEW: no event descriptor");
	}
	/* One message address per interrupt, 16 bytes apart, as vectors of a remapping unit are. */
	q->address = EMU_MSI_BASE + (q->o.id * 16) % EMU_MSI_SIZE;
	memset(&evt, 0, sizeof(evt));
	evt.id = q->o.id;
	fds[0] = q->fd;
	fds[1] = q->fd;
	emu_answer(rq, &evt, sizeof(evt), fds, 2);
	return 0;
}

int emu_op_irq_free(struct emu_request *rq, const void *msg)
{
	const struct sio_req_irq_free *m = msg;
	struct emu_irq *q = emu_object_find(rq, SIO_KIND_IRQ, m->id);

	if (!q)
		return rq->err.code;
	if (q->o.refs)
		return sio_fail(&rq->err, -EBUSY,
				"IRQ_FREE: %u grants and vectors of interrupt %#" PRIx64
				" are left",
				q->o.refs, q->o.id);
	emu_object_free(&q->o);
	emu_answer_ok(rq);
	return 0;
}

static void release(struct emu_object *o)
{
	struct emu_room *r = o->host->room;

	r->ops->close(r->ctx, ((const struct emu_irq *)o)->fd);
}

static uint64_t physical(const struct emu_object *o, uint64_t offset)
{
	return ((const struct emu_irq *)o)->address + offset;
}

static uint64_t length(const struct emu_object *o)
{
	(void)o;
	return SIO_MSI_BYTES;
}

static int file(const struct emu_object *o, uint64_t *ret_offset)
{
	*ret_offset = 0;
	return ((const struct emu_irq *)o)->fd;
}

static void row(const struct emu_object *o, struct sio_list_entry *e)
{
	e->address = physical(o, 0);
}

const struct emu_kind emu_kind_irq = {.name = "interrupt",
				      .rank = EMU_RANK_IRQ,
				      .descriptors = 1,
				      .release = release,
				      .row = row,
				      .physical = physical,
				      .length = length,
				      .file = file};
