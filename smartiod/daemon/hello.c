/* SPDX-License-Identifier: BSD-2-Clause */
/* The first word of a program, and the last. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "smartiod/base/internal.h"
#include "smartiod/restart/restore.h"

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

bool smartiod_refused_lately(struct smartiod *d)
{
	return d->refused.at &&
	       d->ops->now(d->ctx) - d->refused.at < SIO_REFUSED_RECENT_S * 1000000000ull;
}

int smartiod_hello(struct smartiod *d, struct smartiod_session *s, const void *msg,
		   struct sio_err *reterr)
{
	const struct sio_msg_hello *m = msg;
	uint32_t least = sio_from_le32(m->version_min), most = sio_from_le32(m->version_max);

	if (least > most || least > SIO_CLIENT_VERSION || most < SIO_CLIENT_VERSION_MIN) {
		d->refused = (struct smartiod_refused){
			.at = d->ops->now(d->ctx), .pid = s->pid, .version = most};
		return sio_fail(reterr, -EPROTO,
				"the program speaks versions %u to %u, smartiod %u to %u", least,
				most, SIO_CLIENT_VERSION_MIN, SIO_CLIENT_VERSION);
	}
	s->version = most < SIO_CLIENT_VERSION ? most : SIO_CLIENT_VERSION;
	s->kind = sio_from_le32(m->kind);
	if (s->kind < SIO_CLIENT_LIBRARY || s->kind > SIO_CLIENT_KEEPER)
		return sio_fail(reterr, -EINVAL, "client kind %u is not known", s->kind);
	if (s->request_fd >= 0)
		return smartiod_hello_again(d, s, msg, reterr);
	if (smartiod_recovering(d))
		return smartiod_hello_later(d, s, msg, reterr);
	return smartiod_hello_now(d, s, msg, reterr);
}

int smartiod_bye(struct smartiod *d, struct smartiod_session *s, const void *msg,
		 struct sio_err *reterr)
{
	(void)reterr;
	s->bye = true;
	smartiod_reply_ok(d, s, msg);
	return 0;
}
