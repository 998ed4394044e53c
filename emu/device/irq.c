/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts of a host: an event descriptor, and the address that a message to it would have. */
#include "emu/base/internal.h"

int emu_op_irq_new(struct emu_request *rq, const void *msg)
{
	struct emu_room *r = rq->host->room;
	struct sio_evt_irq_new evt;
	struct emu_irq *q = NULL;
	int fds[2], rc;

	(void)msg;
	q = emu_object_new(rq, SIO_KIND_IRQ, sizeof(*q), 0);
	if (!q)
		return rq->err.code;
	rc = r->ops->event_new(r->ctx, &q->fd);
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

void emu_irq_release(struct emu_irq *q)
{
	struct emu_room *r = q->o.host->room;

	r->ops->close(r->ctx, q->fd);
}
