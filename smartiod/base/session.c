/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions: messages to programs, the handles of programs, and the owner that each session has at
 * the port.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "smartiod/base/session.h"

static void send_client(struct smartiod *d, struct smartiod_session *s, uint32_t type, uint32_t id,
			void *msg, size_t len, const int *fds, unsigned n_fds)
{
	struct sio_msg *h = msg;

	h->size = sio_to_le32((uint32_t)len);
	h->type = sio_to_le32(type);
	h->id = sio_to_le32(id);
	d->ops->client_send(d->ctx, s->client, msg, len, fds, n_fds);
}

void smartiod_reply_error(struct smartiod *d, struct smartiod_session *s, const void *request,
			  int error, const struct sio_err *err)
{
	struct sio_msg_error msg = {.h.error = sio_to_le32((uint32_t)-error),
				    .reason = sio_to_le32(sio_err_reason(err, error))};

	snprintf(msg.text, sizeof(msg.text), "%.*s", (int)sizeof(msg.text) - 1, err->text);
	smartiod_reply(d, s, request, &msg, sizeof(msg), NULL, 0);
}

void smartiod_reply(struct smartiod *d, struct smartiod_session *s, const void *request, void *msg,
		    size_t len, const int *fds, unsigned n_fds)
{
	const struct sio_msg *h = request;
	struct sio_err err;

	if (s->ending)
		return;
	for (unsigned i = 0; i < n_fds; i++)
		if (fds[i] < 0) { /* it came while our table of descriptors was full */
			sio_fail(&err, -EMFILE, "%s", smartiod_no_descriptor(d));
			smartiod_reply_error(d, s, request, -EMFILE, &err);
			return;
		}
	send_client(d, s, sio_from_le32(h->type), sio_from_le32(h->id), msg, len, fds, n_fds);
}

void smartiod_reply_ok(struct smartiod *d, struct smartiod_session *s, const void *request)
{
	struct sio_msg msg = {0};

	smartiod_reply(d, s, request, &msg, sizeof(msg), NULL, 0);
}

void smartiod_event(struct smartiod *d, struct smartiod_session *s, uint32_t type, void *msg,
		    size_t len, const int *fds, unsigned n_fds)
{
	if (!s || s->ending)
		return;
	d->count.client_events++;
	if (type != SIO_EVM_FENCE)
		smartiod_fence_tell(&s->fence, d->count.client_events);
	send_client(d, s, type, 0, msg, len, fds, n_fds);
}

/* ---- handles ---- */

int smartiod_object_add(struct smartiod_session *s, struct smartiod_object *o,
			enum smartiod_kind kind, struct sio_err *reterr)
{
	if (s->objects.count >= SMARTIOD_MAX_OBJECTS)
		return sio_fail_exhausted(reterr, -EMFILE, SIO_OUT_OF_HANDLES,
					  "this program holds %u objects; one program can hold %u",
					  s->objects.count, SMARTIOD_MAX_OBJECTS);
	if (!s->forced && s->next_handle >= SMARTIOD_RELEASED_HANDLES - 1)
		return sio_fail_exhausted(reterr, -EMFILE, SIO_OUT_OF_HANDLES,
					  "this program has had all %u handles", s->next_handle);
	if (s->forced && smartiod_tree_find(&s->objects, s->forced))
		return sio_fail(reterr, -EEXIST, "this program has restored handle %u twice",
				s->forced);
	o->kind = kind;
	o->session = s;
	smartiod_tree_add(&s->objects, &o->by_handle, s->forced ? s->forced : ++s->next_handle);
	return 0;
}

void smartiod_object_remove(struct smartiod_object *o)
{
	if (!o->session)
		return;
	smartiod_tree_remove(&o->session->objects, &o->by_handle);
	o->session = NULL;
}

void *smartiod_object_get(struct smartiod_session *s, uint32_t handle, enum smartiod_kind kind,
			  struct sio_err *reterr)
{
	struct smartiod_object *o;

	o = SMARTIOD_OF(smartiod_tree_find(&s->objects, handle), struct smartiod_object, by_handle);
	if (!o || o->kind != kind) {
		sio_fail(reterr, -EBADF,
			 "%u is no handle of that kind of this program: one that a reply brought "
			 "is right, until its end",
			 handle);
		return NULL;
	}
	return o;
}

struct smartiod_session *smartiod_session_find(struct smartiod *d, uint64_t client)
{
	return SMARTIOD_OF(smartiod_tree_find(&d->sessions, client), struct smartiod_session,
			   by_client);
}

struct smartiod_session *smartiod_session_by_owner(struct smartiod *d, uint64_t owner)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->sessions, key))) {
		struct smartiod_session *s = SMARTIOD_OF(n, struct smartiod_session, by_client);

		if (s->owner == owner)
			return s;
		key = n->key;
	}
	return NULL;
}

/* ---- the owner at the port ---- */

void smartiod_hello_reply(struct smartiod *d, struct smartiod_session *s, const void *request,
			  const int *fds, unsigned n_fds)
{
	struct sio_rep_hello rep = {
		.version = sio_to_le32(s->version),
		.node = sio_to_le32(d->node),
		.n_adapters = sio_to_le32(d->host->n_adapters),
		.world = sio_to_le32(d->world),
		.client = sio_to_le64(s->client),
		.owner = sio_to_le64(s->owner),
		.boot_generation = sio_to_le64(d->boot_generation),
	};

	memcpy(rep.boot_id, d->boot_id, sizeof(rep.boot_id));
	snprintf(rep.host, sizeof(rep.host), "%s", d->host->name);
	snprintf(rep.cluster, sizeof(rep.cluster), "%s", d->topology->name);
	s->state = SMARTIOD_OPEN;
	smartiod_reply(d, s, request, &rep, sizeof(rep), fds, n_fds);
}

static void hello_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_session *s = op->session;
	struct sio_msg request = {.type = sio_to_le32(op->type), .id = sio_to_le32(op->id)};

	if (a->error) {
		smartiod_op_error(d, op, a->error, "%s", a->text);
		if (s)
			s->state = SMARTIOD_GREETING;
	} else if (!s) {
		smartiod_port_owner_close(d, ((const struct sio_evt_owner_new *)a->msg)->id);
	} else {
		int fds[2] = {smartiod_take_fd(a, 0), d->status_fd};

		s->owner = ((const struct sio_evt_owner_new *)a->msg)->id;
		smartiod_hello_reply(d, s, &request, fds, 2);
		smartiod_close_fd(d, &fds[0]); /* the library's copy keeps the owner alive */
	}
	smartiod_op_free(d, op);
}

int smartiod_hello_now(struct smartiod *d, struct smartiod_session *s, const void *request,
		       struct sio_err *reterr)
{
	struct sio_req_owner_new req = {.h.op = SIO_OP_OWNER_NEW, .pid = s->pid};
	struct smartiod_op *op;

	if (s->kind != SIO_CLIENT_LIBRARY) {
		smartiod_hello_reply(d, s, request, NULL, 0);
		return 0;
	}
	op = smartiod_op_new(d, s, request, sizeof(*op), hello_step, reterr);
	if (!op)
		return reterr->code;
	s->state = SMARTIOD_GREETED;
	s->secret = smartiod_new_secret(d);
	req.user_cookie = s->secret ? SMARTIOD_COOKIE_SESSION | s->secret : s->client;
	smartiod_port_ask(d, op, &req, sizeof(req));
	return 0;
}
