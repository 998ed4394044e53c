/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of a daemon that was started again on a host that went on without it, as smartio.ko
 * serves them: which owner the descriptor of a program belongs to, and descriptors of objects once
 * more. They are served where the edge can identify owners' descriptors (struct emu_ops: identify);
 * the live edge ends a host with its daemon.
 */
#include "emu/machine/requests.h"

int emu_op_identify(struct emu_request *rq, const void *msg)
{
	struct emu_room *r = rq->host->room;
	struct sio_evt_identify evt;
	const struct emu_owner *w;
	uint64_t id = 0;
	int rc;

	(void)msg;
	if (rq->fd < 0)
		return sio_fail(
			&rq->err, -EBADF,
			"IDENTIFY: no descriptor came along: one that the port gave is right");
	rc = r->ops->identify(r->ctx, rq->fd, rq->host->index, &id);
	if (rc < 0)
		return sio_fail(&rq->err, rc, "IDENTIFY: the descriptor is no owner's of %s",
				rq->host->topo->name);
	memset(&evt, 0, sizeof(evt));
	evt.id = id;
	evt.kind = SIO_KIND_OWNER;
	w = emu_owner_find(rq->host, id);
	if (w && !w->ended) {
		evt.state = SIO_STATE_LIVE;
		evt.owner = w->parent ? w->parent->o.id : 0;
		evt.user_cookie = w->user_cookie;
	}
	emu_answer(rq, &evt, sizeof(evt), NULL, 0);
	return 0;
}

int emu_op_reopen(struct emu_request *rq, const void *msg)
{
	const struct sio_req_reopen *m = msg;
	struct sio_evt_reopen evt;
	const struct emu_object *o;
	uint64_t start;
	int fds[2];

	if (m->kind != SIO_KIND_MEM && m->kind != SIO_KIND_BAR && m->kind != SIO_KIND_IRQ)
		return sio_fail(&rq->err, -EINVAL,
				"REOPEN: kind %u; memory, BAR views and interrupts have "
				"descriptors",
				m->kind);
	o = emu_object_find(rq, m->kind, m->id);
	if (!o || emu_bar_check(rq, "REOPEN", o) < 0)
		return rq->err.code;
	memset(&evt, 0, sizeof(evt));
	fds[0] = fds[1] = emu_kind_of(o)->file(o, &start);
	evt.offset = start;
	if (m->kind != SIO_KIND_IRQ)
		evt.length = emu_kind_of(o)->length(o);
	emu_answer(rq, &evt, sizeof(evt), fds, m->kind == SIO_KIND_IRQ ? 2 : 1);
	return 0;
}
