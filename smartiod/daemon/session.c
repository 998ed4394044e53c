/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions: the programs that are connected to this daemon, their handles, and how a session ends.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "smartiod/base/unclaimed.h"
#include "smartiod/borrower/borrow.h"
#include "smartiod/daemon/dispatch.h"
#include "wire/check.h"

#define SMARTIOD_END_ONE 16    /* work to end one of them, against passing it by, */
#define SMARTIOD_END_WORK 4096 /* and how much is done at a time */

/* ---- the end ---- */

static void session_free(struct smartiod *d, struct smartiod_session *s)
{
	smartiod_tree_remove(&d->sessions, &s->by_client);
	smartiod_program_leave(s);
	free((void *)s->who.groups);
	free(s);
}

/*
 * Ends objects of the kinds before @until, kind by kind, a bounded amount of work at a time: others
 * are to be served while a program that had tens of thousands of them ends. Return: true: none is
 * left.
 */
static bool drop_some(struct smartiod *d, struct smartiod_session *s, unsigned until)
{
	struct smartiod_tree_node *n;
	int work = SMARTIOD_END_WORK;

	if (s->end_kind == 0)
		s->end_kind = SMARTIOD_ATTACHMENT;
	while (s->end_kind < until) {
		struct smartiod_object *o;

		n = smartiod_tree_after(&s->objects, s->end_key);
		if (!n) {
			s->end_kind++;
			s->end_key = 0;
			continue;
		}
		if (work <= 0)
			return false;
		s->end_key = n->key;
		o = SMARTIOD_OF(n, struct smartiod_object, by_handle);
		work -= o->kind == s->end_kind ? SMARTIOD_END_ONE : 1;
		if (o->kind == s->end_kind)
			smartiod_room_kind(d, o->kind)->drop(d, o);
	}
	return true;
}

/* @step goes on when others have had their turn. */
static void end_later(struct smartiod *d, struct smartiod_session *s, smartiod_step *step)
{
	s->end.step = step;
	smartiod_op_doze(d, &s->end, 1);
}

/*
 * The port has ended the owner: nothing of the program's is mapped any more, so what it imported
 * can be given back to the exporters.
 */
static void end_rest(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_session *s = SMARTIOD_OF((void *)op, struct smartiod_session, end);

	(void)a;
	if (!drop_some(d, s, SMARTIOD_KINDS_END)) {
		end_later(d, s, end_rest);
		return;
	}
	assert(s->objects.count == 0);
	session_free(d, s);
}

static void owner_closed(struct smartiod *d, struct smartiod_op *op,
			 const struct smartiod_answer *a)
{
	struct smartiod_session *s = SMARTIOD_OF((void *)op, struct smartiod_session, end);

	/* The port may have seen the end of the program before it heard our word. */
	if (a->error && a->error != -ENOENT && a->error != -EPERM)
		smartiod_log(d, SMARTIOD_WARNING, "owner %" PRIu64 " of pid %u: %s", s->owner,
			     s->pid, a->text);
	end_rest(d, op, a);
}

static void end_own(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_session *s = SMARTIOD_OF((void *)op, struct smartiod_session, end);
	struct sio_req_owner_close req = {.h = {.op = SIO_OP_OWNER_CLOSE, .owner = s->owner}};
	uint64_t owner = s->owner;

	if (!drop_some(d, s, SMARTIOD_OWN_END)) {
		end_later(d, s, end_own);
		return;
	}
	if (s->owner && !s->owner_gone) {
		s->end.step = owner_closed;
		smartiod_port_ask(d, &s->end, &req, sizeof(req));
	}
	for (unsigned i = 0; d->rooms[i]; i++)
		if (d->rooms[i]->session_end)
			d->rooms[i]->session_end(d, s);
	if (s->end.wait == SMARTIOD_RUNNING)
		end_rest(d, op, a);
	if (owner)
		smartiod_owner_gone(d, owner);
}

static void session_end(struct smartiod *d, struct smartiod_session *s)
{
	const struct smartiod_unclaimed *unclaimed =
		s->owner ? smartiod_unclaimed_shadow(d, s->owner) : NULL;
	struct sio_req_shadow_del req;

	s->ending = true;
	s->step_op = NULL; /* it ends with the others */
	smartiod_op_orphan_session(d, s);
	smartiod_events_check(d);
	if (!s->shadow && unclaimed) /* it has not come so far as to claim it */
		s->shadow = unclaimed->by_id.key;
	if (!s->shadow) {
		end_own(d, &s->end, NULL);
		return;
	}
	/* A driver of this host is bound to it, and needs the rest until it has gone. */
	s->end.step = end_own;
	smartiod_shadow_fill_del(s, &req);
	smartiod_port_ask(d, &s->end, &req, sizeof(req));
}

static void session_cut(struct smartiod *d, struct smartiod_session *s, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void session_cut(struct smartiod *d, struct smartiod_session *s, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	smartiod_log(d, SMARTIOD_WARNING, "client %" PRIu64 " (pid %u) is cut off: %s", s->client,
		     s->pid, text);
	d->ops->client_close(d->ctx, s->client);
	session_end(d, s);
}

void smartiod_session_owner_gone(struct smartiod *d, struct smartiod_session *s)
{
	if (s->ending)
		return; /* the answer to OWNER_CLOSE comes */
	s->owner_gone = true;
	if (d->ops->client_take)
		d->ops->client_take(d->ctx, s->client);
	smartiod_log(d, SMARTIOD_DEBUG, "owner %" PRIu64 " of pid %u is gone", s->owner, s->pid);
	d->ops->client_close(d->ctx, s->client);
	session_end(d, s);
}

void smartiod_session_free_all(struct smartiod *d)
{
	struct smartiod_tree_node *n;

	while ((n = smartiod_tree_after(&d->sessions, 0))) {
		struct smartiod_session *s = SMARTIOD_OF(n, struct smartiod_session, by_client);
		struct smartiod_tree_node *o;

		smartiod_account_end(
			&s->program->account); /* before what it was charged with goes */
		while ((o = smartiod_tree_after(&s->objects, 0))) {
			struct smartiod_object *object =
				SMARTIOD_OF(o, struct smartiod_object, by_handle);

			const struct smartiod_kind_ops *ops = smartiod_room_kind(d, object->kind);

			smartiod_object_remove(object);
			if (ops && ops->only_here)
				free(object);
		}
		session_free(d, s);
	}
}

/* ---- events of the edge ---- */

/* The groups are copied. Return: 0; -ENOMEM. */
static int know(struct smartiod_session *s, const struct sio_policy_person_of *who)
{
	uint32_t *groups;

	if (!who)
		return 0;
	s->who = *who;
	groups = calloc(who->n_groups + 1, sizeof(*groups));
	s->who.groups = groups;
	if (!groups)
		return -ENOMEM;
	for (unsigned i = 0; i < who->n_groups; i++)
		groups[i] = who->groups[i];
	return 0;
}

/* NULL: no memory. */
static struct smartiod_session *session_new(struct smartiod *d, uint32_t pid, uint64_t started,
					    const struct sio_policy_person_of *who)
{
	struct smartiod_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	if (know(s, who) == 0 && smartiod_program_join(d, s, pid, started) == 0)
		return s;
	free((void *)s->who.groups);
	free(s);
	return NULL;
}

void smartiod_client_new(struct smartiod *d, uint64_t client, uint32_t pid, uint64_t started,
			 const struct sio_policy_person_of *who)
{
	struct smartiod_session *s = NULL;

	if (d->ready && !d->failed)
		s = session_new(d, pid, started, who);
	if (!s) {
		smartiod_log(d, SMARTIOD_WARNING, "pid %u is turned away: %s", pid,
			     d->ready ? "out of memory: " SIO_MORE_MEMORY : "not ready");
		d->ops->client_close(d->ctx, client);
		return;
	}
	s->client = client;
	s->pid = pid;
	s->request_fd = -1;
	smartiod_tree_add(&d->sessions, &s->by_client, client);
}

static void serve(struct smartiod *d, struct smartiod_session *s, uint32_t type, const void *msg)
{
	/* The check knows no other type. */
	const struct smartiod_request *r = smartiod_room_request(d, type);
	struct sio_err err = {.text = ""};
	int rc;

	if (r->owns && s->kind != SIO_CLIENT_LIBRARY)
		rc = sio_fail(&err, -EPERM,
			      "a tool's connection owns nothing: one of a library is right");
	else
		rc = r->fn(d, s, msg, &err);
	if (rc < 0)
		smartiod_reply_error(d, s, msg, rc, &err);
}

static void close_all(struct smartiod *d, int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		smartiod_close_fd(d, &fds[i]);
}

/* The handler may keep the one descriptor that there may be. */
static void serve_with(struct smartiod *d, struct smartiod_session *s, uint32_t type,
		       const void *msg, int *fds, unsigned n_fds)
{
	s->request_fd = n_fds ? fds[0] : -1;
	serve(d, s, type, msg);
	if (n_fds)
		fds[0] = s->request_fd;
	s->request_fd = -1;
}

/* Whether a request may bring one. */
static unsigned brings_descriptor(uint32_t type)
{
	return type == SIO_MSG_HELLO || type == SIO_MSG_SEG_WATCH || type == SIO_MSG_SEG_CREATE ||
	       type == SIO_MSG_SEG_TAKE || type == SIO_MSG_DINT_CREATE;
}

static bool restores(uint32_t type)
{
	return type == SIO_MSG_RESTORE || type == SIO_MSG_RESTORE_STEP;
}

void smartiod_client_message(struct smartiod *d, uint64_t client, const void *msg, size_t len,
			     int *fds, unsigned n_fds)
{
	struct smartiod_session *s = smartiod_session_find(d, client);
	struct sio_wire_header h;
	struct sio_err err;
	int rc;

	if (!s || s->ending || d->failed) {
		close_all(d, fds, n_fds);
		return;
	}
	d->count.client_messages++;
	rc = sio_client_check_request(msg, len, &h, &err);
	if (s->owner_gone)
		s->bye |= rc == 0 && h.type == SIO_MSG_BYE;
	else if (rc == -EPROTO)
		session_cut(d, s, "%s", err.text);
	else if (n_fds > brings_descriptor(h.type))
		session_cut(d, s, "request %u came with %u descriptors", h.type, n_fds);
	else if ((s->state == SMARTIOD_GREETING) != (h.type == SIO_MSG_HELLO) ||
		 s->state == SMARTIOD_GREETED)
		session_cut(d, s, "request %u %s HELLO was answered", h.type,
			    s->state >= SMARTIOD_RESTORING ? "after" : "before");
	else if ((s->state == SMARTIOD_RESTORING) != restores(h.type))
		session_cut(d, s, "request %u %s it has said what it had", h.type,
			    restores(h.type) ? "after" : "before");
	else if (rc < 0)
		smartiod_reply_error(d, s, msg, rc, &err);
	else
		serve_with(d, s, h.type, msg, fds, n_fds);
	close_all(d, fds, n_fds);
}

void smartiod_client_gone(struct smartiod *d, uint64_t client)
{
	struct smartiod_session *s = smartiod_session_find(d, client);

	if (s && !s->ending && !d->failed)
		session_end(d, s);
}

/* ---- a listing ---- */

bool smartiod_client_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	static const char *const kind[] = {"greeting", "library", "tool", "keeper"};
	const struct smartiod_session *s;

	s = SMARTIOD_OF(smartiod_tree_after(&d->sessions, after), struct smartiod_session,
			by_client);
	if (!s)
		return false;
	ret->key = sio_to_le64(s->client);
	ret->owner = sio_to_le64(s->owner);
	ret->id = sio_to_le32(s->kind);
	ret->node = sio_to_le32(d->node);
	ret->bytes = sio_to_le64(s->version);
	ret->refs = sio_to_le32(s->objects.count);
	ret->flags = sio_to_le32(s->ending ? 0 : SIO_ROW_LIVE);
	ret->pid = sio_to_le32(s->pid);
	snprintf(ret->name, sizeof(ret->name), "%s",
		 kind[s->kind <= SIO_CLIENT_KEEPER ? s->kind : 0]);
	return true;
}
