/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: programs connected to this daemon, their handles, their end. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "smartiod/device/device.h"
#include "smartiod/interrupt/dint.h"
#include "smartiod/base/internal.h"
#include "smartiod/dma/queue.h"
#include "smartiod/restart/restore.h"
#include "wire/check.h"

static const struct {
	uint32_t type;
	bool owns; /* makes or has objects: not for tools */
	smartiod_client_fn *fn;
} handlers[] = {
	{SIO_MSG_HELLO, false, smartiod_hello},
	{SIO_MSG_ADAPTER, false, smartiod_adapter_query},
	{SIO_MSG_NODE_PROBE, false, smartiod_node_probe},
	{SIO_MSG_RESTORE, true, smartiod_restore},
	{SIO_MSG_RESTORE_STEP, true, smartiod_restore_step},
	{SIO_MSG_BYE, false, smartiod_bye},
	{SIO_MSG_LINK, false, smartiod_link_query},
	{SIO_MSG_SEG_CREATE, true, smartiod_seg_create},
	{SIO_MSG_SEG_PREPARE, true, smartiod_seg_prepare},
	{SIO_MSG_SEG_AVAILABLE, true, smartiod_seg_available},
	{SIO_MSG_SEG_UNAVAILABLE, true, smartiod_seg_unavailable},
	{SIO_MSG_SEG_REMOVE, true, smartiod_seg_remove},
	{SIO_MSG_SEG_CONNECT, true, smartiod_seg_connect},
	{SIO_MSG_SEG_DISCONNECT, true, smartiod_seg_disconnect},
	{SIO_MSG_SEG_MAP, true, smartiod_seg_map},
	{SIO_MSG_SEG_UNMAP, true, smartiod_seg_unmap},
	{SIO_MSG_SEG_WATCH, true, smartiod_seg_watch},
	{SIO_MSG_SEG_FILL, true, smartiod_seg_fill},
	{SIO_MSG_SEG_SHARE, true, smartiod_seg_share},
	{SIO_MSG_SEG_ATTACH, true, smartiod_seg_attach},
	{SIO_MSG_DINT_CREATE, true, smartiod_dint_create},
	{SIO_MSG_DINT_REMOVE, true, smartiod_dint_remove},
	{SIO_MSG_DINT_CONNECT, true, smartiod_dint_connect},
	{SIO_MSG_DINT_DISCONNECT, true, smartiod_dint_disconnect},
	{SIO_MSG_DINT_RING_FREE, true, smartiod_dint_ring_free},
	{SIO_MSG_DEV_LIST, false, smartiod_dev_list},
	{SIO_MSG_DEV_BORROW, true, smartiod_dev_borrow},
	{SIO_MSG_DEV_RETURN, true, smartiod_dev_return},
	{SIO_MSG_DEV_RELEASE_EXCLUSIVE, true, smartiod_dev_release_exclusive},
	{SIO_MSG_DEV_SEG_CREATE, true, smartiod_dev_seg_create},
	{SIO_MSG_DEV_SEG_CONNECT, true, smartiod_dev_seg_connect},
	{SIO_MSG_DMA_MAP, true, smartiod_dma_map},
	{SIO_MSG_DMA_UNMAP, true, smartiod_dma_unmap},
	{SIO_MSG_DEV_SETTLED, true, smartiod_dev_settled},
	{SIO_MSG_DEV_RESET, true, smartiod_dev_reset},
	{SIO_MSG_DEV_HOLD, true, smartiod_dev_hold},
	{SIO_MSG_DEV_UNHOLD, true, smartiod_dev_unhold},
	{SIO_MSG_DEV_VECTOR, true, smartiod_dev_vector},
	{SIO_MSG_DEV_UNVECTOR, true, smartiod_dev_unvector},
	{SIO_MSG_DEV_ADMIN_RESET, false, smartiod_dev_admin_reset},
	{SIO_MSG_QUEUE_CREATE, true, smartiod_queue_create},
	{SIO_MSG_QUEUE_REMOVE, true, smartiod_queue_remove},
	{SIO_MSG_QUEUE_ATTACH, true, smartiod_queue_attach},
	{SIO_MSG_QUEUE_DETACH, true, smartiod_queue_detach},
	{SIO_MSG_LIST, false, smartiod_list},
	{SIO_MSG_STATS, false, smartiod_stats},
};

/* ---- sending ---- */

static void send_client(struct smartiod *d, struct smartiod_session *s, uint32_t type, uint32_t id,
			void *msg, size_t len, const int *fds, unsigned n_fds)
{
	struct sio_msg *h = msg;

	h->size = sio_to_le32((uint32_t)len);
	h->type = sio_to_le32(type);
	h->id = sio_to_le32(id);
	d->ops->client_send(d->ctx, s->client, msg, len, fds, n_fds);
}

static void reply_error(struct smartiod *d, struct smartiod_session *s, const void *request,
			int error, const struct sio_err *err);

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
			reply_error(d, s, request, -EMFILE, &err);
			return;
		}
	send_client(d, s, sio_from_le32(h->type), sio_from_le32(h->id), msg, len, fds, n_fds);
}

void smartiod_reply_ok(struct smartiod *d, struct smartiod_session *s, const void *request)
{
	struct sio_msg msg = {0};

	smartiod_reply(d, s, request, &msg, sizeof(msg), NULL, 0);
}

static void reply_error(struct smartiod *d, struct smartiod_session *s, const void *request,
			int error, const struct sio_err *err)
{
	struct sio_msg_error msg = {.h.error = sio_to_le32((uint32_t)-error),
				    .reason = sio_to_le32(sio_err_reason(err, error))};

	snprintf(msg.text, sizeof(msg.text), "%.*s", (int)sizeof(msg.text) - 1, err->text);
	smartiod_reply(d, s, request, &msg, sizeof(msg), NULL, 0);
}

void smartiod_event(struct smartiod *d, struct smartiod_session *s, uint32_t type, void *msg,
		    size_t len, const int *fds, unsigned n_fds)
{
	if (!s || s->ending)
		return;
	d->count.client_events++;
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
	if (!s->forced && s->next_handle >= SMARTIOD_LET_GO_HANDLES - 1)
		return sio_fail_exhausted(reterr, -EMFILE, SIO_OUT_OF_HANDLES,
					  "this program has had all %u handles", s->next_handle);
	if (s->forced && smartiod_tree_find(&s->objects, s->forced))
		return sio_fail(reterr, -EEXIST, "this program has said twice what %u is",
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
		sio_fail(reterr, -EBADF, "%u is no handle of that kind of this program", handle);
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

/* ---- the end ---- */

/*
 * One that hangs on the daemon already, and has a maker again who asked for that, does not end with
 * him. Of one whose memory the port was asked to give us the answer tells whether it has ended.
 */
static void drop_segment(struct smartiod *d, struct smartiod_segment *seg)
{
	if (seg->state == SMARTIOD_SEGMENT_GIVING)
		smartiod_object_remove(&seg->o);
	else
		smartiod_segment_end(d, seg, SCI_CB_LOST, seg->owner != 0 || seg->let_go);
}

static void drop_object(struct smartiod *d, struct smartiod_object *o)
{
	switch (o->kind) {
	case SMARTIOD_MAP:
		smartiod_map_drop(d, (struct smartiod_map *)o);
		return;
	case SMARTIOD_CONNECTION:
		smartiod_connection_close(d, (struct smartiod_connection *)o,
					  o->session->bye ? SCI_CB_DISCONNECT : SCI_CB_LOST);
		return;
	case SMARTIOD_DINT_LINK:
		smartiod_dint_link_close(d, (struct smartiod_dint_link *)o);
		return;
	case SMARTIOD_SEGMENT:
		drop_segment(d, (struct smartiod_segment *)o);
		return;
	case SMARTIOD_ATTACHMENT:
		smartiod_attachment_drop(d, o);
		return;
	case SMARTIOD_DINT:
		smartiod_dint_end(d, (struct smartiod_dint *)o, true);
		return;
	case SMARTIOD_QUEUE:
		smartiod_queue_drop(d, o);
		return;
	case SMARTIOD_BORROW:
	case SMARTIOD_DMA_MAP:
		smartiod_object_remove(o);
		return;
	}
}

/* What a program has goes kind by kind: first what is its own, and when its owner at the port has
 * ended what it has of others. */
static const enum smartiod_kind ends[] = {
	SMARTIOD_ATTACHMENT, SMARTIOD_SEGMENT,	  SMARTIOD_DINT,      SMARTIOD_MAP,
	SMARTIOD_QUEUE,	     SMARTIOD_CONNECTION, SMARTIOD_DINT_LINK,
};
#define ENDS_OF_ITS_OWN 3
#define ENDS (sizeof(ends) / sizeof(ends[0]))

/*
 * Ends objects up to the kind number @until, a bounded amount of work at a time: others are to be
 * served while a program that had tens of thousands of them ends. Return: true: none is left.
 */
static bool drop_some(struct smartiod *d, struct smartiod_session *s, unsigned until)
{
	struct smartiod_tree_node *n;
	int work = SMARTIOD_END_WORK;

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
		work -= o->kind == ends[s->end_kind] ? SMARTIOD_END_ONE : 1;
		if (o->kind == ends[s->end_kind])
			drop_object(d, o);
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
	if (!drop_some(d, s, ENDS)) {
		end_later(d, s, end_rest);
		return;
	}
	assert(s->objects.count == 0);
	smartiod_tree_remove(&d->sessions, &s->by_client);
	free(s);
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

	if (!drop_some(d, s, ENDS_OF_ITS_OWN)) {
		end_later(d, s, end_own);
		return;
	}
	if (s->owner && !s->owner_gone) {
		s->end.step = owner_closed;
		smartiod_port_ask(d, &s->end, &req, sizeof(req));
	}
	smartiod_device_session_end(d, s);
	if (s->end.wait == SMARTIOD_RUNNING)
		end_rest(d, op, a);
	smartiod_recovery_gone(d, owner);
}

static void session_end(struct smartiod *d, struct smartiod_session *s)
{
	s->ending = true;
	s->step_op = NULL; /* it ends with the others */
	smartiod_op_orphan_session(d, s);
	end_own(d, &s->end, NULL);
}

void smartiod_session_cut(struct smartiod *d, struct smartiod_session *s, const char *fmt, ...)
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

		while ((o = smartiod_tree_after(&s->objects, 0))) {
			struct smartiod_object *object =
				SMARTIOD_OF(o, struct smartiod_object, by_handle);

			smartiod_object_remove(object);
			if (object->kind == SMARTIOD_MAP || object->kind == SMARTIOD_ATTACHMENT)
				free(object);
		}
		smartiod_tree_remove(&d->sessions, &s->by_client);
		free(s);
	}
}

/* ---- events of the edge ---- */

void smartiod_client_new(struct smartiod *d, uint64_t client, uint32_t pid)
{
	struct smartiod_session *s = NULL;

	if (d->ready && !d->failed)
		s = calloc(1, sizeof(*s));
	if (!s) {
		smartiod_log(d, SMARTIOD_WARNING, "pid %u is turned away: %s", pid,
			     d->ready ? "out of memory" : "not ready");
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
	struct sio_err err = {.text = ""};
	unsigned i = 0;
	int rc;

	while (handlers[i].type != type)
		i++; /* the check knows no other type */
	if (handlers[i].owns && s->kind != SIO_CLIENT_LIBRARY)
		rc = sio_fail(&err, -EPERM, "a tool's connection owns nothing");
	else
		rc = handlers[i].fn(d, s, msg, &err);
	if (rc < 0)
		reply_error(d, s, msg, rc, &err);
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
		smartiod_session_cut(d, s, "%s", err.text);
	else if (n_fds > (h.type == SIO_MSG_SEG_WATCH || h.type == SIO_MSG_HELLO))
		smartiod_session_cut(d, s, "request %u came with %u descriptors", h.type, n_fds);
	else if ((s->state == SMARTIOD_GREETING) != (h.type == SIO_MSG_HELLO) ||
		 s->state == SMARTIOD_GREETED)
		smartiod_session_cut(d, s, "request %u %s HELLO was answered", h.type,
				     s->state >= SMARTIOD_RESTORING ? "after" : "before");
	else if ((s->state == SMARTIOD_RESTORING) != restores(h.type))
		smartiod_session_cut(d, s, "request %u %s it has said what it had", h.type,
				     restores(h.type) ? "after" : "before");
	else if (rc < 0)
		reply_error(d, s, msg, rc, &err);
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
