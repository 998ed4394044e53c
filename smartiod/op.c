/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations: requests in the making, and what they wait for. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smartiod/internal.h"
#include "wire/check.h"

static void op_init(struct smartiod *d, struct smartiod_op *op, smartiod_step *step)
{
	op->step = step;
	op->wait = SMARTIOD_RUNNING;
	op->deadline = UINT64_MAX;
	for (unsigned i = 0; i < SMARTIOD_OP_FDS; i++)
		op->fd[i] = -1;
	smartiod_tree_add(&d->ops_all, &op->by_id, smartiod_uid(d));
}

void *smartiod_op_new(struct smartiod *d, struct smartiod_session *session, const void *request,
		      size_t size, smartiod_step *step, struct sio_err *reterr)
{
	const struct sio_msg *h = request;
	struct smartiod_op *op;

	if (session && session->n_ops >= SMARTIOD_MAX_PENDING) {
		sio_fail(reterr, -EMFILE, "%u requests of this program are waiting for answers",
			 session->n_ops);
		return NULL;
	}
	op = calloc(1, size);
	if (!op) {
		sio_fail(reterr, -ENOMEM, "the daemon is out of memory");
		return NULL;
	}
	op_init(d, op, step);
	op->session = session;
	if (session)
		session->n_ops++;
	if (h) {
		op->type = sio_from_le32(h->type);
		op->id = sio_from_le32(h->id);
	}
	return op;
}

void *smartiod_op_new_peer(struct smartiod *d, uint32_t node, const void *request, size_t size,
			   smartiod_step *step, struct sio_err *reterr)
{
	struct smartiod_op *op = smartiod_op_new(d, NULL, request, size, step, reterr);

	if (op)
		op->asker = node;
	return op;
}

void smartiod_op_free(struct smartiod *d, struct smartiod_op *op)
{
	if (op->session)
		op->session->n_ops--;
	for (unsigned i = 0; i < SMARTIOD_OP_FDS; i++)
		smartiod_close_fd(d, &op->fd[i]);
	free(op->queued);
	smartiod_tree_remove(&d->ops_all, &op->by_id);
	free(op);
}

void smartiod_op_reply(struct smartiod *d, struct smartiod_op *op, void *msg, size_t len,
		       const int *fds, unsigned n_fds)
{
	struct sio_msg request = {.type = sio_to_le32(op->type), .id = sio_to_le32(op->id)};

	if (op->session)
		smartiod_reply(d, op->session, &request, msg, len, fds, n_fds);
	else if (op->asker)
		smartiod_peer_reply(d, op->asker, op->type, op->id, msg, len);
}

void smartiod_op_ok(struct smartiod *d, struct smartiod_op *op)
{
	struct sio_msg msg = {0};

	smartiod_op_reply(d, op, &msg, sizeof(msg), NULL, 0);
}

void smartiod_op_error(struct smartiod *d, struct smartiod_op *op, int error, const char *fmt, ...)
{
	struct sio_msg_error msg = {.h.error = sio_to_le32((uint32_t)-error)};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg.text, sizeof(msg.text), fmt, ap);
	va_end(ap);
	smartiod_op_reply(d, op, &msg, sizeof(msg), NULL, 0);
}

/* The next number that no wait has; 32 bits, for it goes into messages. */
static uint32_t new_cookie(struct smartiod *d)
{
	do {
		d->next_cookie++;
	} while (d->next_cookie == 0 || smartiod_tree_find(&d->waiting, d->next_cookie));
	return d->next_cookie;
}

static void wait_for(struct smartiod *d, struct smartiod_op *op, enum smartiod_wait wait)
{
	assert(op->wait == SMARTIOD_RUNNING);
	op->wait = wait;
	smartiod_tree_add(&d->waiting, &op->by_cookie, new_cookie(d));
}

static void wake(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	if (op->wait != SMARTIOD_PARKED)
		smartiod_tree_remove(&d->waiting, &op->by_cookie);
	op->wait = SMARTIOD_RUNNING;
	op->peer = 0;
	op->deadline = UINT64_MAX;
	free(op->queued);
	op->queued = NULL;
	op->step(d, op, a);
}

static void wake_error(struct smartiod *d, struct smartiod_op *op, int error, const char *text)
{
	struct smartiod_answer a = {.error = error, .text = text};

	wake(d, op, &a);
}

/* ---- the port ---- */

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
	wait_for(d, op, SMARTIOD_WAIT_PORT);
	port_send(d, req, len, op->by_cookie.key, fd);
}

void smartiod_port_ask(struct smartiod *d, struct smartiod_op *op, void *req, size_t len)
{
	smartiod_port_ask_fd(d, op, req, len, -1);
}

void smartiod_port_tell(struct smartiod *d, void *req, size_t len)
{
	port_send(d, req, len, 0, -1);
}

void smartiod_port_free(struct smartiod *d, uint64_t mem)
{
	struct sio_req_free req = {.h.op = SIO_OP_FREE, .id = mem};

	if (mem)
		smartiod_port_tell(d, &req, sizeof(req));
}

void smartiod_port_ungrant(struct smartiod *d, uint64_t grant)
{
	struct sio_req_ungrant req = {.h.op = SIO_OP_UNGRANT, .id = grant};

	if (grant)
		smartiod_port_tell(d, &req, sizeof(req));
}

void smartiod_port_unmap(struct smartiod *d, uint64_t map)
{
	struct sio_req_unmap req = {.h.op = SIO_OP_UNMAP, .id = map};

	if (map)
		smartiod_port_tell(d, &req, sizeof(req));
}

void smartiod_port_owner_close(struct smartiod *d, uint64_t owner)
{
	struct sio_req_owner_close req = {.h = {.op = SIO_OP_OWNER_CLOSE, .owner = owner}};

	if (owner)
		smartiod_port_tell(d, &req, sizeof(req));
}

/* Size of a successful answer; 0: this daemon never asks for it. */
static size_t answer_size(uint32_t op)
{
	static const uint16_t size[SIO_OP_COUNT] = {
		[SIO_OP_INFO] = sizeof(struct sio_evt_info),
		[SIO_OP_OWNER_NEW] = sizeof(struct sio_evt_owner_new),
		[SIO_OP_OWNER_CLOSE] = sizeof(struct sio_evt_ok),
		[SIO_OP_LIST] = sizeof(struct sio_evt_list),
		[SIO_OP_ADAPTER] = sizeof(struct sio_evt_adapter),
		[SIO_OP_ALLOC] = sizeof(struct sio_evt_alloc),
		[SIO_OP_FREE] = sizeof(struct sio_evt_ok),
		[SIO_OP_GIVE] = sizeof(struct sio_evt_ok),
		[SIO_OP_IMPORT] = sizeof(struct sio_evt_import),
		[SIO_OP_GRANT] = sizeof(struct sio_evt_grant),
		[SIO_OP_UNGRANT] = sizeof(struct sio_evt_ok),
		[SIO_OP_MAP] = sizeof(struct sio_evt_map),
		[SIO_OP_UNMAP] = sizeof(struct sio_evt_ok),
		[SIO_OP_REQUESTER_ADD] = sizeof(struct sio_evt_requester_add),
		[SIO_OP_REQUESTER_DEL] = sizeof(struct sio_evt_ok),
		[SIO_OP_DEVICE_LIST] = sizeof(struct sio_evt_device),
		[SIO_OP_DEVICE_OPEN] = sizeof(struct sio_evt_device),
		[SIO_OP_DEVICE_CLOSE] = sizeof(struct sio_evt_ok),
		[SIO_OP_RESET] = sizeof(struct sio_evt_reset),
		[SIO_OP_CONFIG] = sizeof(struct sio_evt_config),
		[SIO_OP_BAR] = sizeof(struct sio_evt_bar),
		[SIO_OP_BAR_CLOSE] = sizeof(struct sio_evt_ok),
		[SIO_OP_DMAMAP] = sizeof(struct sio_evt_dmamap),
		[SIO_OP_DMAUNMAP] = sizeof(struct sio_evt_ok),
		[SIO_OP_IRQ_NEW] = sizeof(struct sio_evt_irq_new),
		[SIO_OP_IRQ_FREE] = sizeof(struct sio_evt_ok),
		[SIO_OP_SETTLE] = sizeof(struct sio_evt_settle),
		[SIO_OP_STATUS] = sizeof(struct sio_evt_status),
		[SIO_OP_STATS] = sizeof(struct sio_evt_stats),
		[SIO_OP_WATCH] = sizeof(struct sio_evt_watch),
		[SIO_OP_UNWATCH] = sizeof(struct sio_evt_ok),
		[SIO_OP_VECTOR] = sizeof(struct sio_evt_ok),
		[SIO_OP_IDENTIFY] = sizeof(struct sio_evt_identify),
		[SIO_OP_REOPEN] = sizeof(struct sio_evt_reopen),
		[SIO_OP_DMA] = sizeof(struct sio_evt_dma),
		[SIO_OP_MCAST] = sizeof(struct sio_evt_mcast),
		[SIO_OP_DMA_FREE] = sizeof(struct sio_evt_ok),
		[SIO_OP_DMA_ATTACH] = sizeof(struct sio_evt_dma_attach),
		[SIO_OP_DMA_DETACH] = sizeof(struct sio_evt_ok),
	};

	return op < SIO_OP_COUNT ? size[op] : 0;
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
		return !(flags & SIO_IMPORT_POOL);
	case SIO_OP_REOPEN:
	case SIO_OP_ALLOC:
	case SIO_OP_MAP:
	case SIO_OP_BAR:
	case SIO_OP_STATUS:
		return 1;
	}
	return 0;
}

static void told_answer(struct smartiod *d, const struct sio_evt *evt, size_t len)
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
				    .text = "",
				    .msg = evt,
				    .len = len,
				    .fds = fds,
				    .n_fds = n_fds};
	const struct sio_evt_error *e = (const struct sio_evt_error *)evt;
	char text[SIO_PORT_TEXT];
	struct smartiod_op *op;

	if (evt->cookie == 0) {
		told_answer(d, evt, len);
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
	wake(d, op, &a);
}

/* ---- peers ---- */

static void peer_send_now(struct smartiod *d, struct smartiod_op *op, uint32_t node, void *msg,
			  size_t len)
{
	op->deadline = d->ops->now(d->ctx) + SMARTIOD_PEER_TIMEOUT_NS;
	smartiod_arm(d, op->deadline);
	d->count.peer_sent++;
	d->ops->peer_send(d->ctx, node, msg, len);
}

int smartiod_peer_ask(struct smartiod *d, struct smartiod_op *op, uint32_t node, void *msg,
		      size_t len)
{
	struct smartiod_peer *p = smartiod_peer_find(d, node);
	struct sio_msg *h = msg;

	if (!p)
		return -EHOSTUNREACH;
	if (!smartiod_peer_link_up(p))
		return -ENETDOWN;
	if (p->state != SMARTIOD_PEER_READY) {
		op->queued = malloc(len);
		if (!op->queued)
			return -ENOMEM;
		op->queued_len = len;
	}
	wait_for(d, op, SMARTIOD_WAIT_PEER);
	op->peer = node;
	op->peer_type = sio_from_le32(h->type);
	h->size = sio_to_le32((uint32_t)len);
	h->id = sio_to_le32((uint32_t)op->by_cookie.key);
	h->error = 0;
	if (!op->queued) {
		peer_send_now(d, op, node, msg, len);
		return 0;
	}
	memcpy(op->queued, msg, len);
	op->deadline = d->ops->now(d->ctx) + SMARTIOD_CONNECT_WAIT_NS;
	smartiod_arm(d, op->deadline);
	return 0;
}

void smartiod_peer_tell(struct smartiod *d, uint32_t node, void *msg, size_t len)
{
	struct smartiod_peer *p = smartiod_peer_find(d, node);
	struct sio_msg *h = msg;

	if (!p || p->state != SMARTIOD_PEER_READY)
		return;
	h->size = sio_to_le32((uint32_t)len);
	h->id = 0;
	h->error = 0;
	d->count.peer_sent++;
	d->ops->peer_send(d->ctx, node, msg, len);
}

void smartiod_op_peer_ready(struct smartiod *d, uint32_t node)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->waiting, key))) {
		struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_cookie);

		key = n->key;
		if (op->wait != SMARTIOD_WAIT_PEER || op->peer != node || !op->queued)
			continue;
		peer_send_now(d, op, node, op->queued, op->queued_len);
		free(op->queued);
		op->queued = NULL;
	}
}

void smartiod_op_peer_reply(struct smartiod *d, uint32_t node, const struct sio_msg *msg,
			    size_t len)
{
	uint32_t type = SIO_PEER_TYPE(sio_from_le32(msg->type));
	struct smartiod_answer a = {.text = "", .msg = msg, .len = len};
	struct smartiod_op *op;

	op = SMARTIOD_OF(smartiod_tree_find(&d->waiting, sio_from_le32(msg->id)),
			 struct smartiod_op, by_cookie);
	if (!op || op->wait != SMARTIOD_WAIT_PEER || op->peer != node || op->peer_type != type ||
	    op->queued) {
		if (!msg->error)
			smartiod_peer_late(d, node, msg);
		return;
	}
	if (msg->error) {
		uint32_t error = sio_from_le32(msg->error);

		a.error = error < 4096 ? -(int)error : -EPROTO;
		a.text = ((const struct sio_msg_error *)msg)->text;
		a.msg = NULL;
	}
	wake(d, op, &a);
}

/* ---- ends ---- */

void smartiod_op_park(struct smartiod_op *op)
{
	assert(op->wait == SMARTIOD_RUNNING);
	op->wait = SMARTIOD_PARKED;
}

void smartiod_op_doze(struct smartiod *d, struct smartiod_op *op, uint64_t ns)
{
	wait_for(d, op, SMARTIOD_DOZING);
	op->deadline = d->ops->now(d->ctx) + ns;
	smartiod_arm(d, op->deadline);
}

static bool parked(const struct smartiod_op *op)
{
	return op->wait == SMARTIOD_PARKED || op->wait == SMARTIOD_DOZING;
}

void smartiod_op_resume(struct smartiod *d, struct smartiod_op *op)
{
	assert(parked(op));
	wake_error(d, op, 0, "");
}

void smartiod_op_orphan_session(struct smartiod *d, struct smartiod_session *s)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->ops_all, key))) {
		struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_id);

		key = n->key;
		if (op->session != s)
			continue;
		op->session = NULL;
		if (parked(op))
			wake_error(d, op, -ECANCELED, "the client is gone");
	}
	s->n_ops = 0;
}

void smartiod_op_peer_fail(struct smartiod *d, uint32_t node, int error, const char *text)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->ops_all, key))) {
		struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_id);

		key = n->key;
		if (op->wait == SMARTIOD_WAIT_PEER && op->peer == node)
			wake_error(d, op, error, text);
	}
}

void smartiod_op_peer_down(struct smartiod *d, uint32_t node, int error)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->ops_all, key))) {
		struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_id);

		key = n->key;
		if (op->asker == node) {
			op->asker = 0;
			if (parked(op))
				wake_error(d, op, -ECANCELED, "the peer is gone");
		}
	}
	smartiod_op_peer_fail(d, node, error, "the other host is down");
}

uint64_t smartiod_op_expire(struct smartiod *d, uint64_t now)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0, next = UINT64_MAX;

	while ((n = smartiod_tree_after(&d->waiting, key))) {
		struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_cookie);

		key = n->key;
		if (op->wait == SMARTIOD_WAIT_PORT)
			continue;
		if (op->deadline <= now)
			wake_error(d, op, -ETIMEDOUT,
				   op->wait == SMARTIOD_DOZING
					   ? "the time is over"
					   : "the other host's smartiod does not answer");
		else if (op->deadline < next)
			next = op->deadline;
	}
	return next;
}

int smartiod_take_fd(const struct smartiod_answer *a, unsigned index)
{
	int fd = -1;

	if (index < a->n_fds) {
		fd = a->fds[index];
		a->fds[index] = -1;
	}
	return fd;
}
