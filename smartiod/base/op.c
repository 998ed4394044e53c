/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations: requests being made, and what they wait for. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smartiod/base/peer.h"
#include "smartiod/base/session.h"
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
		sio_fail_exhausted(reterr, -EMFILE, SIO_OUT_OF_REQUESTS,
				   "%u requests of this program are waiting for answers",
				   session->n_ops);
		return NULL;
	}
	op = calloc(1, size);
	if (!op) {
		sio_fail(reterr, -ENOMEM, "the daemon is out of memory: " SIO_MORE_MEMORY);
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
	struct sio_msg_error msg = {.h.error = sio_to_le32((uint32_t)-error),
				    .reason = sio_to_le32(smartiod_op_reason(op, error))};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg.text, sizeof(msg.text), fmt, ap);
	va_end(ap);
	smartiod_op_reply(d, op, &msg, sizeof(msg), NULL, 0);
}

void smartiod_op_fail(struct smartiod *d, struct smartiod_op *op, const struct sio_err *err)
{
	smartiod_op_note(op, err->code, err->reason);
	smartiod_op_error(d, op, err->code, "%s", err->text);
}

void smartiod_op_note(struct smartiod_op *op, int error, uint32_t reason)
{
	op->failed = error;
	op->reason = reason;
}

uint32_t smartiod_op_reason(const struct smartiod_op *op, int error)
{
	return error == op->failed ? op->reason : sio_reason_of(error);
}

void smartiod_op_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	if (a->error)
		smartiod_op_note(op, a->error, a->reason);
	op->step(d, op, a);
}

/* The next number that no wait has; 32 bits, for it goes into messages. */
static uint32_t new_cookie(struct smartiod *d)
{
	do {
		d->next_cookie++;
	} while (d->next_cookie == 0 || smartiod_tree_find(&d->waiting, d->next_cookie));
	return d->next_cookie;
}

void smartiod_op_wait(struct smartiod *d, struct smartiod_op *op, enum smartiod_wait wait)
{
	assert(op->wait == SMARTIOD_RUNNING);
	op->wait = wait;
	smartiod_tree_add(&d->waiting, &op->by_cookie, new_cookie(d));
}

void smartiod_op_wake(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	if (op->wait != SMARTIOD_PARKED)
		smartiod_tree_remove(&d->waiting, &op->by_cookie);
	op->wait = SMARTIOD_RUNNING;
	op->peer = 0;
	op->query = false;
	op->deadline = UINT64_MAX;
	free(op->queued);
	op->queued = NULL;
	smartiod_op_step(d, op, a);
}

static void wake_error(struct smartiod *d, struct smartiod_op *op, int error, const char *text)
{
	struct smartiod_answer a = {.error = error, .reason = sio_reason_of(error), .text = text};

	smartiod_op_wake(d, op, &a);
}

/* ---- peers ---- */

static void peer_send_now(struct smartiod *d, struct smartiod_op *op, const struct smartiod_peer *p,
			  void *msg, size_t len)
{
	op->heard = p->heard;
	op->deadline = d->ops->now(d->ctx) + SMARTIOD_PEER_TIMEOUT_NS;
	smartiod_arm(d, op->deadline);
	d->count.peer_sent++;
	d->ops->peer_send(d->ctx, p->node, msg, len);
}

static int ask(struct smartiod *d, struct smartiod_op *op, const struct smartiod_peer *p, void *msg,
	       size_t len)
{
	uint32_t node = p->node;
	struct sio_msg *h = msg;

	op->unsent = p->state != SMARTIOD_PEER_READY;
	if (op->unsent || smartiod_outlives(d, p)) {
		op->queued = malloc(len);
		if (!op->queued)
			return -ENOMEM;
		op->queued_len = len;
	}
	smartiod_op_wait(d, op, SMARTIOD_WAIT_PEER);
	op->peer = node;
	op->peer_type = sio_from_le32(h->type);
	h->size = sio_to_le32((uint32_t)len);
	h->id = sio_to_le32((uint32_t)op->by_cookie.key);
	h->error = 0;
	if (op->queued)
		memcpy(op->queued, msg, len);
	if (!op->unsent) {
		peer_send_now(d, op, p, msg, len);
		return 0;
	}
	op->deadline = d->ops->now(d->ctx) + SMARTIOD_CONNECT_WAIT_NS;
	if (p->bond == SMARTIOD_BOND_EXPECTED && p->until > op->deadline)
		op->deadline = p->until;
	smartiod_arm(d, op->deadline);
	return 0;
}

int smartiod_peer_ask(struct smartiod *d, struct smartiod_op *op, uint32_t node, void *msg,
		      size_t len)
{
	struct smartiod_peer *p = smartiod_peer_find(d, node);

	if (!p)
		return -EHOSTUNREACH;
	return smartiod_peer_link_up(p) ? ask(d, op, p, msg, len) : -ENETDOWN;
}

int smartiod_peer_query(struct smartiod *d, struct smartiod_op *op, uint32_t node, void *msg,
			size_t len)
{
	struct smartiod_peer *p = smartiod_peer_find(d, node);

	if (!p)
		return -EHOSTUNREACH;
	if (p->state == SMARTIOD_PEER_READY && p->silent_since)
		return -ETIMEDOUT;
	if (p->state != SMARTIOD_PEER_READY && p->bond == SMARTIOD_BOND_EXPECTED)
		return -ENOTCONN;
	if (p->state != SMARTIOD_PEER_READY && !smartiod_peer_link_up(p))
		return -ENETDOWN;
	op->query = true;
	return ask(d, op, p, msg, len);
}

/* If the daemon of @node is there. */
static void send_to(struct smartiod *d, uint32_t node, struct sio_msg *msg, size_t len)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, node);

	if (!p || p->state != SMARTIOD_PEER_READY)
		return;
	msg->size = sio_to_le32((uint32_t)len);
	d->count.peer_sent++;
	d->ops->peer_send(d->ctx, node, msg, len);
}

void smartiod_peer_send(struct smartiod *d, uint32_t node, void *msg, size_t len)
{
	struct sio_msg *h = msg;

	h->id = 0;
	h->error = 0;
	send_to(d, node, h, len);
}

void smartiod_peer_reply(struct smartiod *d, uint32_t node, uint32_t type, uint32_t id, void *msg,
			 size_t len)
{
	struct sio_msg *h = msg;

	h->type = sio_to_le32(type | SIO_PEER_REPLY);
	h->id = sio_to_le32(id);
	send_to(d, node, h, len);
}

void smartiod_peer_reply_error(struct smartiod *d, uint32_t node, uint32_t type, uint32_t id,
			       int error, const struct sio_err *err)
{
	struct sio_msg_error msg = {.h.error = sio_to_le32((uint32_t)-error),
				    .reason = sio_to_le32(sio_err_reason(err, error))};

	snprintf(msg.text, sizeof(msg.text), "%.*s", (int)sizeof(msg.text) - 1, err->text);
	smartiod_peer_reply(d, node, type, id, &msg, sizeof(msg));
}

void smartiod_op_peer_ready(struct smartiod *d, uint32_t node)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, node);
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->waiting, key))) {
		struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_cookie);

		key = n->key;
		if (op->wait != SMARTIOD_WAIT_PEER || op->peer != node || !op->unsent)
			continue;
		op->unsent = false;
		peer_send_now(d, op, p, op->queued, op->queued_len);
		if (smartiod_outlives(d, p))
			continue;
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
	    op->unsent) {
		if (!msg->error)
			smartiod_peer_late(d, node, msg);
		return;
	}
	if (msg->error) {
		uint32_t error = sio_from_le32(msg->error);

		a.error = error < SIO_WIRE_ERRORS ? -(int)error : -EPROTO;
		a.reason = sio_from_le32(((const struct sio_msg_error *)msg)->reason);
		a.text = ((const struct sio_msg_error *)msg)->text;
		a.msg = NULL;
	}
	smartiod_op_wake(d, op, &a);
}

/* ---- ends ---- */

void smartiod_op_park(struct smartiod_op *op)
{
	assert(op->wait == SMARTIOD_RUNNING);
	op->wait = SMARTIOD_PARKED;
}

void smartiod_op_doze(struct smartiod *d, struct smartiod_op *op, uint64_t ns)
{
	smartiod_op_wait(d, op, SMARTIOD_DOZING);
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

static void orphan_peer(struct smartiod *d, uint32_t node)
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
}

void smartiod_op_peer_down(struct smartiod *d, uint32_t node, int error)
{
	orphan_peer(d, node);
	smartiod_op_peer_fail(d, node, error, "the other host is down");
}

void smartiod_op_peer_away(struct smartiod *d, uint32_t node)
{
	const struct smartiod_peer *p = smartiod_peer_find(d, node);
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	orphan_peer(d, node);
	while ((n = smartiod_tree_after(&d->waiting, key))) {
		struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_cookie);

		key = n->key;
		if (op->wait != SMARTIOD_WAIT_PEER || op->peer != node)
			continue;
		if (op->query) {
			wake_error(d, op, -ENOTCONN,
				   "the connection to the other host's smartiod has ended");
			continue;
		}
		op->unsent = true;
		op->deadline = p->until;
	}
}

static uint64_t at_least(uint64_t least, uint64_t n)
{
	return n > least ? n : least;
}

static void overdue(struct smartiod *d, struct smartiod_op *op)
{
	struct smartiod_peer *p = op->query && !op->unsent ? smartiod_peer_find(d, op->peer) : NULL;

	if (p && !p->silent_since && p->heard == op->heard)
		p->silent_since = at_least(1, op->deadline - SMARTIOD_PEER_TIMEOUT_NS);
	wake_error(d, op, -ETIMEDOUT,
		   op->wait == SMARTIOD_DOZING ? "the time for the answer is over"
					       : "the other host's smartiod does not answer");
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
			overdue(d, op);
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
