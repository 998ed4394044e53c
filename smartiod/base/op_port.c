/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to the port, and the checks that an answer of the port must pass. */
#include <stdio.h>

#include "core/port.h"
#include "smartiod/base/op.h"

static void port_send(struct smartiod *d, void *req, size_t len, uint64_t cookie, int fd)
{
	struct sio_req *h = req;

	h->size = (uint32_t)len;
	h->cookie = cookie;
	d->count.port_requests++;
	d->ops->port(d->ctx, req, len, &fd, fd >= 0);
}

void smartiod_port_ask_fd(struct smartiod *d, struct smartiod_op *op, void *req, size_t len, int fd)
{
	op->port_op = ((struct sio_req *)req)->op;
	op->port_flags = ((struct sio_req *)req)->flags;
	smartiod_op_wait(d, op, SMARTIOD_WAIT_PORT);
	port_send(d, req, len, op->by_cookie.key, fd);
}

void smartiod_port_ask(struct smartiod *d, struct smartiod_op *op, void *req, size_t len)
{
	smartiod_port_ask_fd(d, op, req, len, -1);
}

void smartiod_port_send(struct smartiod *d, void *req, size_t len)
{
	port_send(d, req, len, 0, -1);
}

void smartiod_port_free(struct smartiod *d, uint64_t mem)
{
	struct sio_req_free req = {.h.op = SIO_OP_FREE, .id = mem};

	if (mem)
		smartiod_port_send(d, &req, sizeof(req));
}

void smartiod_port_ungrant(struct smartiod *d, uint64_t grant)
{
	struct sio_req_ungrant req = {.h.op = SIO_OP_UNGRANT, .id = grant};

	if (grant)
		smartiod_port_send(d, &req, sizeof(req));
}

void smartiod_port_unmap(struct smartiod *d, uint64_t map)
{
	struct sio_req_unmap req = {.h.op = SIO_OP_UNMAP, .id = map};

	if (map)
		smartiod_port_send(d, &req, sizeof(req));
}

void smartiod_port_owner_close(struct smartiod *d, uint64_t owner)
{
	struct sio_req_owner_close req = {.h = {.op = SIO_OP_OWNER_CLOSE, .owner = owner}};

	if (owner)
		smartiod_port_send(d, &req, sizeof(req));
}

/* Size of a successful answer; 0: there is no such operation. */
static size_t answer_size(uint32_t op)
{
	const struct sio_port_form *form = sio_port_form(op);

	return form ? form->answer : 0;
}

/* Descriptors that a successful answer brings. */
static unsigned answer_fds(uint32_t op, uint32_t flags)
{
	switch (op) {
	case SIO_OP_DMA:
		return 3;
	case SIO_OP_IRQ_NEW:
		return 2;
	case SIO_OP_OWNER_NEW:
		return !(flags & SIO_OWNER_CHILD);
	case SIO_OP_IMPORT:
		return !(flags & (SIO_IMPORT_POOL | SIO_IMPORT_ALL_RAM));
	case SIO_OP_REOPEN:
	case SIO_OP_ALLOC:
	case SIO_OP_MAP:
	case SIO_OP_BAR:
	case SIO_OP_STATUS:
		return 1;
	}
	return 0;
}

static void answer_of_send(struct smartiod *d, const struct sio_evt *evt, size_t len)
{
	const struct sio_evt_error *e = (const struct sio_evt_error *)evt;

	if (evt->error && len == sizeof(*e))
		smartiod_log(d, SMARTIOD_DEBUG, "port request %u failed: %.*s", evt->op,
			     (int)sizeof(e->text), e->text);
}

void smartiod_op_port_answer(struct smartiod *d, const struct sio_evt *evt, size_t len, int *fds,
			     unsigned n_fds)
{
	struct smartiod_answer a = {.error = evt->error,
				    .reason = evt->reason,
				    .text = "",
				    .msg = evt,
				    .len = len,
				    .fds = fds,
				    .n_fds = n_fds};
	const struct sio_evt_error *e = (const struct sio_evt_error *)evt;
	char text[SIO_PORT_TEXT];
	struct smartiod_op *op;

	if (evt->cookie == 0) {
		answer_of_send(d, evt, len);
		return;
	}
	op = SMARTIOD_OF(smartiod_tree_find(&d->waiting, evt->cookie), struct smartiod_op,
			 by_cookie);
	if (!op || op->wait != SMARTIOD_WAIT_PORT || op->port_op != evt->op ||
	    len != (evt->error ? sizeof(*e) : answer_size(evt->op)) || evt->error > 0) {
		smartiod_fatal(d, "the port answered request %u in %zu bytes, which nobody asked",
			       evt->op, len);
		return;
	}
	if (!evt->error && n_fds < answer_fds(evt->op, op->port_flags)) {
		smartiod_fatal(d, "the port answered request %u with %u descriptors, not %u",
			       evt->op, n_fds, answer_fds(evt->op, op->port_flags));
		return;
	}
	if (evt->error) {
		snprintf(text, sizeof(text), "%.*s", (int)sizeof(e->text) - 1, e->text);
		a.text = text;
		a.msg = NULL;
	}
	smartiod_op_wake(d, op, &a);
}
