/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every request of a host's daemon is checked here in the same way, in this order: header,
 * operation, size, reserved fields, flags, descriptors, whether it is served at all, owner. Only
 * then is its handler called.
 */
#include "core/port.h"
#include "emu/base/state.h"

static bool serves(const struct emu_room *r, unsigned op)
{
	const struct emu_operation *o = &r->operations[op];

	return o->handler && o->world != (emu_outlives(r) ? EMU_WITH_ADAPTERS : EMU_WITH_RESTART);
}

uint64_t emu_served(const struct emu_room *r)
{
	uint64_t served = 0;

	for (unsigned i = 0; i < SIO_OP_COUNT; i++)
		if (serves(r, i))
			served |= 1ull << i;
	return served;
}

/* What needs no knowledge of the host's state. */
static int check_form(const struct emu_room *r, const struct sio_req *h, size_t len, unsigned n_fds,
		      struct sio_err *err)
{
	const struct sio_port_form *form = sio_port_form(h->op);
	uint32_t zero;

	if (!form)
		return sio_fail(err, -EOPNOTSUPP, "operation %u: known are %u to %u", h->op,
				SIO_OP_INFO, SIO_OP_COUNT - 1);
	if (h->size != form->size || len != form->size)
		return sio_fail(err, -EINVAL, "%s: size %u in a packet of %zu bytes, %u is right",
				form->name, h->size, len, form->size);
	if (h->reserved != 0)
		return sio_fail(err, -EINVAL, "%s: h.reserved is %#x, 0 is right", form->name,
				h->reserved);
	memcpy(&zero, (const char *)h + form->zero, sizeof(zero));
	if (zero != 0)
		return sio_fail(err, -EINVAL, "%s: reserved2 is %#x, 0 is right", form->name, zero);
	if (h->flags & ~form->flags)
		return sio_fail(err, -EINVAL, "%s: flags %#x, allowed are %#x", form->name,
				h->flags, form->flags);
	if (!serves(r, h->op))
		return sio_fail(err, -EOPNOTSUPP, "%s: not served by the machine room", form->name);
	if (n_fds > form->fds)
		return sio_fail(err, -EINVAL, "%s: %u descriptors came along, %u %s right",
				form->name, n_fds, form->fds, form->fds == 1 ? "at most is" : "is");
	return 0;
}

static int check_owner(struct emu_request *rq, enum emu_owner_rule rule)
{
	const char *name = sio_port_form(rq->h->op)->name;
	uint64_t id = rq->h->owner;

	rq->owner = emu_owner_find(rq->host, id);
	if (rule == EMU_OWNER_SUBJECT)
		return 0;
	if (!rq->owner)
		return sio_fail(&rq->err, -ENOENT, "%s: no owner %#" PRIx64, name, id);
	if (rule == EMU_OWNER_HOLDS && rq->owner->ended)
		return sio_fail(&rq->err, -EPERM,
				"%s: owner %#" PRIx64
				" has ended: one of a living program is right",
				name, id);
	return 0;
}

static void drop_fd(struct emu_request *rq)
{
	struct emu_room *r = rq->host->room;

	if (rq->fd >= 0)
		r->ops->close(r->ctx, rq->fd);
	rq->fd = -1;
}

void emu_request_serve(struct emu_host *h, const void *req, size_t len, int *fds, unsigned n_fds)
{
	union {
		struct sio_req h;
		uint64_t words[SIO_PORT_MAX_PACKET / 8];
	} copy;
	struct emu_room *r = h->room;
	struct emu_request rq = {.host = h, .h = &copy.h, .fd = n_fds ? fds[0] : -1};
	const struct emu_operation *op;
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
		emu_refuse(h, &copy.h, -EINVAL, SIO_OUT_OF_NOTHING,
			   "packet shorter than its header");
		return;
	}
	memcpy(&copy, req, len < sizeof(copy) ? len : sizeof(copy));
	rc = check_form(r, &copy.h, len, n_fds, &rq.err);
	if (rc == 0) {
		op = &r->operations[copy.h.op];
		rc = check_owner(&rq, op->owner);
		if (rc == 0)
			rc = op->handler(&rq, &copy);
	}
	drop_fd(&rq);
	if (rc < 0)
		emu_refuse(h, &copy.h, rc, sio_err_reason(&rq.err, rc),
			   rq.err.text[0] ? rq.err.text : "out of memory: " SIO_MORE_MEMORY);
	emu_objects_fall(h);
	emu_owners_bury(h);
}
