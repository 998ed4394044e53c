/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recovery: which programs are expected to connect again to a restarted daemon, how far each has
 * come, and when the daemon begins to serve others.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "smartiod/base/room.h"
#include "smartiod/restart/restore.h"
#include "wire/check.h"

_Static_assert(SMARTIOD_RESTORE_ALL == SIO_RESTORE_STEPS, "the last step");

/* ---- who is expected ---- */

int smartiod_recovery_expect(struct smartiod *d, uint64_t owner, uint64_t cookie)
{
	struct smartiod_expected *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->owner = owner;
	a->secret = cookie & SMARTIOD_COOKIE_SESSION ? cookie & ~SMARTIOD_COOKIE_SESSION : 0;
	a->next = d->recovery.expected;
	d->recovery.expected = a;
	return 0;
}

static struct smartiod_expected **find(struct smartiod *d, uint64_t owner)
{
	struct smartiod_expected **at = &d->recovery.expected;

	while (*at && (*at)->owner != owner)
		at = &(*at)->next;
	return at;
}

static void forget(struct smartiod *d, uint64_t owner)
{
	struct smartiod_expected **at = find(d, owner), *a = *at;

	if (!a)
		return;
	*at = a->next;
	free(a);
}

bool smartiod_recovery_expects(struct smartiod *d, uint64_t owner)
{
	return owner && *find(d, owner);
}

/* Have all that are expected said RESTORE_STEP @step? Nobody waits for who is late. */
static bool all_at(struct smartiod *d, unsigned step)
{
	for (const struct smartiod_expected *a = d->recovery.expected; a; a = a->next) {
		const struct smartiod_session *s =
			a->back ? smartiod_session_by_owner(d, a->owner) : NULL;

		if (a->late && !a->back)
			continue;
		if (!s || s->step < step)
			return false;
	}
	return true;
}

/* ---- the steps ---- */

/* All is said: libraries hear what they missed, and what nobody claimed goes. */
static void finish(struct smartiod *d, struct smartiod_session *s)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&s->objects, key))) {
		struct smartiod_object *o = SMARTIOD_OF(n, struct smartiod_object, by_handle);
		const struct smartiod_kind_ops *ops = smartiod_room_kind(d, o->kind);

		key = n->key;
		if (ops && ops->restored)
			ops->restored(d, o);
	}
	smartiod_unclaimed_give_back(d, s->owner);
}

static void restored(struct smartiod *d, struct smartiod_session *s)
{
	smartiod_restore_finish_devices(d, s);
	finish(d, s);
	forget(d, s->owner);
	s->state = SMARTIOD_OPEN;
	s->lenders_by = d->ops->now(d->ctx) + SMARTIOD_LENDERS_NS;
}

static void step_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_session *s = op->session;

	if (!s || (a->error && a->error != -ETIMEDOUT)) { /* it has ended */
		smartiod_op_free(d, op);
		return;
	}
	if (s->step == SMARTIOD_RESTORE_ALL && s->state != SMARTIOD_OPEN)
		restored(d, s);
	/* Before that its devices are not known well enough for any request. */
	if (!a->error && s->state == SMARTIOD_OPEN && smartiod_borrows_wait(d, s) &&
	    d->ops->now(d->ctx) < s->lenders_by) {
		smartiod_op_doze(d, op, s->lenders_by - d->ops->now(d->ctx));
		return;
	}
	s->step_op = NULL;
	smartiod_op_ok(d, op);
	smartiod_op_free(d, op);
}

static void resume_sessions(struct smartiod *d, unsigned step)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->sessions, key))) {
		struct smartiod_session *s = SMARTIOD_OF(n, struct smartiod_session, by_client);

		key = n->key;
		if (s->step_op && s->step == step)
			smartiod_op_resume(d, s->step_op);
	}
}

static void resume_all(struct smartiod *d)
{
	for (unsigned step = SMARTIOD_RESTORE_OWN; step <= SMARTIOD_RESTORE_ALL; step++)
		resume_sessions(d, step);
}

static void later_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct sio_msg request = {.type = sio_to_le32(op->type), .id = sio_to_le32(op->id)};
	struct sio_err err = {.text = ""};

	if (!a->error && smartiod_hello_now(d, op->session, &request, &err) < 0) {
		op->session->state = SMARTIOD_GREETING;
		smartiod_op_fail(d, op, &err);
	}
	smartiod_op_free(d, op);
}

static void resume_others(struct smartiod *d)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->ops_all, key))) {
		struct smartiod_op *op = SMARTIOD_OF(n, struct smartiod_op, by_id);

		key = n->key;
		if (op->step == later_step)
			smartiod_op_resume(d, op);
	}
}

/* What they have of other hosts those are about to be told that they have not. */
static void lose_late(struct smartiod *d)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	while ((n = smartiod_tree_after(&d->sessions, key))) {
		struct smartiod_session *s = SMARTIOD_OF(n, struct smartiod_session, by_client);

		key = n->key;
		if (s->state == SMARTIOD_RESTORING && s->step < SMARTIOD_RESTORE_ALL)
			smartiod_borrows_late(d, s);
	}
}

static void over(struct smartiod *d)
{
	d->recovery.grace = NULL;
	lose_late(d);
	for (const struct smartiod_expected *a = d->recovery.expected; a; a = a->next)
		if (!a->back)
			smartiod_log(d, SMARTIOD_WARNING,
				     "the program of owner %" PRIu64
				     ", of before we were started, is not back: what others had "
				     "of it is lost",
				     a->owner);
	resume_all(d);
	smartiod_unclaimed_give_back(d, 0); /* what nobody shares any more */
	smartiod_unclaimed_windows_end(d);
	resume_others(d);
	smartiod_rooms_ready(d);
}

/*
 * One who is expected came further: where processors are short all others may still be on their
 * way.
 */
static void further(struct smartiod *d)
{
	uint64_t end = d->ops->now(d->ctx) + SMARTIOD_GRACE_NS;

	if (d->recovery.grace)
		d->recovery.grace->deadline = end < d->recovery.latest ? end : d->recovery.latest;
}

/* Somebody said a step, or is not expected any more. */
static void check(struct smartiod *d)
{
	struct smartiod_op *grace = d->recovery.grace;

	further(d);
	if (!grace) { /* who comes late waits for nobody */
		resume_all(d);
		return;
	}
	for (unsigned step = SMARTIOD_RESTORE_OWN; step < SMARTIOD_RESTORE_ALL; step++)
		if (all_at(d, step))
			resume_sessions(d, step);
	if (all_at(d, SMARTIOD_RESTORE_ALL))
		smartiod_op_resume(d, grace);
}

/* Nobody waits any more for those that are not back. Return: somebody has waited for them alone. */
static bool give_up_absent(struct smartiod *d)
{
	struct smartiod_tree_node *n;
	uint64_t key = 0;

	for (struct smartiod_expected *a = d->recovery.expected; a; a = a->next)
		a->late |= !a->back;
	while ((n = smartiod_tree_after(&d->sessions, key))) {
		const struct smartiod_session *s =
			SMARTIOD_OF(n, struct smartiod_session, by_client);

		key = n->key;
		if (s->step_op && s->step < SMARTIOD_RESTORE_ALL && all_at(d, s->step))
			return true;
	}
	return false;
}

/*
 * Who waited for others that do not come back goes on, and has time for that: otherwise what it has
 * of other hosts would be lost.
 */
static void grace_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	uint64_t now = d->ops->now(d->ctx);
	uint64_t left = d->recovery.latest > now ? d->recovery.latest - now : 0;

	(void)a;
	if (left && give_up_absent(d)) {
		smartiod_op_doze(d, op, left < SMARTIOD_GRACE_NS ? left : SMARTIOD_GRACE_NS);
		check(d);
		return;
	}
	smartiod_op_free(d, op);
	over(d);
}

void smartiod_recovery_start(struct smartiod *d)
{
	struct sio_err err;
	struct smartiod_op *op;

	if (!d->recovery.expected) /* ready() */
		return;
	op = smartiod_op_new(d, NULL, NULL, sizeof(*op), grace_step, &err);
	if (!op) {
		smartiod_fatal(d, "%s", err.text);
		return;
	}
	d->recovery.grace = op;
	d->recovery.latest = d->ops->now(d->ctx) + SMARTIOD_GRACE_MAX_NS;
	smartiod_op_doze(d, op, SMARTIOD_GRACE_NS);
}

void smartiod_recovery_gone(struct smartiod *d, uint64_t owner)
{
	if (owner == 0 || (!d->recovery.expected && !smartiod_unclaimed_after(d, 0)))
		return;
	smartiod_unclaimed_owner_gone(d, owner);
	forget(d, owner);
	if (d->ready)
		check(d);
}

void smartiod_recovery_free(struct smartiod *d)
{
	smartiod_unclaimed_free_all(d);
	while (d->recovery.expected)
		forget(d, d->recovery.expected->owner);
}

/* ---- HELLO ---- */

int smartiod_hello_later(struct smartiod *d, struct smartiod_session *s, const void *msg,
			 struct sio_err *reterr)
{
	struct smartiod_op *op = smartiod_op_new(d, s, msg, sizeof(*op), later_step, reterr);

	if (!op)
		return reterr->code;
	s->state = SMARTIOD_GREETED;
	smartiod_op_park(op);
	return 0;
}

static int take_owner(struct smartiod *d, struct smartiod_session *s,
		      const struct sio_evt_identify *evt, struct sio_err *reterr)
{
	struct smartiod_expected *a = *find(d, evt->id);

	if (evt->kind != SIO_KIND_OWNER || evt->state != SIO_STATE_LIVE || !a)
		return sio_fail(reterr, -ENOENT,
				"the descriptor is not that of a living owner of before smartiod "
				"was started: a program without one says HELLO alone");
	if (a->back)
		return sio_fail(reterr, -EBUSY,
				"another connection has owner %" PRIu64
				": a program comes back by one connection",
				(uint64_t)evt->id);
	a->back = true;
	s->owner = evt->id;
	s->secret = a->secret;
	further(d);
	return 0;
}

static void again_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct sio_msg request = {.type = sio_to_le32(op->type), .id = sio_to_le32(op->id)};
	struct smartiod_session *s = op->session;
	struct sio_err err = {.text = ""};

	if (s) {
		s->state = SMARTIOD_GREETING;
		if (a->error)
			smartiod_op_error(d, op, a->error, "%s", a->text);
		else if (take_owner(d, s, a->msg, &err) < 0)
			smartiod_op_fail(d, op, &err);
		else
			smartiod_hello_reply(d, s, &request, NULL, 0);
		if (s->owner)
			s->state = SMARTIOD_RESTORING;
	}
	smartiod_op_free(d, op);
}

int smartiod_hello_again(struct smartiod *d, struct smartiod_session *s, const void *msg,
			 struct sio_err *reterr)
{
	struct sio_req_identify req = {.h.op = SIO_OP_IDENTIFY};
	struct smartiod_op *op;

	if (s->kind != SIO_CLIENT_LIBRARY)
		return sio_fail(
			reterr, -EINVAL,
			"client kind %u has no owner to come back with, only a library (%u)",
			s->kind, SIO_CLIENT_LIBRARY);
	if (!smartiod_is_real(d))
		return sio_fail(
			reterr, -EOPNOTSUPP,
			"on this host nothing outlives its smartiod: HELLO without a descriptor "
			"is right");
	op = smartiod_op_new(d, s, msg, sizeof(*op), again_step, reterr);
	if (!op)
		return reterr->code;
	op->fd[0] = s->request_fd;
	s->request_fd = -1;
	s->state = SMARTIOD_GREETED;
	smartiod_port_ask_fd(d, op, &req, sizeof(req), op->fd[0]);
	return 0;
}

/* ---- requests ---- */

/* It is not given to anything new. -EINVAL: it cannot have been given to anything. */
static int keep_handle(struct smartiod_session *s, uint32_t handle, struct sio_err *reterr)
{
	if (handle >= SMARTIOD_RELEASED_HANDLES)
		return sio_fail(reterr, -EINVAL,
				"no program was told handle %#x; all are below %#x", handle,
				SMARTIOD_RELEASED_HANDLES);
	if (handle > s->next_handle)
		s->next_handle = handle;
	return 0;
}

int smartiod_restore_step(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_msg_restore_step *m = msg;
	unsigned step = sio_from_le32(m->step);
	struct smartiod_op *op;

	if (s->step_op || step != s->step + 1 || step > SMARTIOD_RESTORE_ALL)
		return sio_fail(reterr, -EINVAL,
				"step %u after step %u; %u is right, and %u the last", step,
				s->step, s->step + 1, SMARTIOD_RESTORE_ALL);
	if (keep_handle(s, sio_from_le32(m->last_handle), reterr) < 0)
		return reterr->code;
	op = smartiod_op_new(d, s, msg, sizeof(*op), step_step, reterr);
	if (!op)
		return reterr->code;
	s->step = step;
	s->step_op = op;
	smartiod_op_park(op);
	check(d);
	return 0;
}

/* What was asked for must be well formed in itself. */
static int check_request(const struct sio_msg_restore *m, uint32_t type, struct sio_err *reterr)
{
	size_t size = type < SIO_EVM_SEGMENT_LOCAL ? sio_client_request_size(type) : 0;
	struct sio_wire_header h;
	int rc;

	/* An event; or it is longer than there is room for, and nothing of it is needed. */
	if (type == SIO_EVM_DINT_RING || type == SIO_MSG_SHADOW)
		return 0;
	if (size == 0 || size > sizeof(m->request))
		return sio_fail(reterr, -EINVAL,
				"what request %" PRIu32
				" made is not restored: only those that made something lasting are",
				type);
	rc = sio_client_check_request(m->request, size, &h, reterr);
	if (rc < 0)
		return -EINVAL; /* not of this message itself */
	if (h.type != type)
		rc = sio_fail(reterr, -EINVAL,
			      "request %" PRIu32 " is given as one of type %" PRIu32
			      ": the same is right",
			      h.type, type);
	return rc;
}

int smartiod_restore(struct smartiod *d, struct smartiod_session *s, const void *msg,
		     struct sio_err *reterr)
{
	const struct sio_msg_restore *m = msg;
	uint32_t type = sio_from_le32(m->type), handle = sio_from_le32(m->handle);
	const struct smartiod_restorable *r = smartiod_room_restorable(d, type);
	int rc = check_request(m, type, reterr);

	if (rc < 0)
		return rc;
	if (!r)
		return sio_fail(reterr, -EINVAL,
				"what request %" PRIu32
				" made is not restored: only those that made something lasting are",
				type);
	if (s->step_op || r->step != s->step + 1)
		return sio_fail(reterr, -EINVAL,
				"what request %" PRIu32
				" made is restored in step %u, not in step %u",
				type, r->step, s->step + 1);
	rc = keep_handle(s, handle, reterr);
	if (rc < 0)
		return rc;
	s->forced = handle;
	rc = r->fn(d, s, m, reterr);
	s->forced = 0;
	/* There may be some in a moment, and what is lost does not come back. */
	if (rc == -ENOMEM && !(sio_from_le32(m->flags) & SIO_RESTORE_LAST))
		return rc;
	if (rc < 0) {
		smartiod_log(d, SMARTIOD_INFO,
			     "pid %u: what request %" PRIu32
			     " made is lost (the program has to make it anew): %s",
			     s->pid, type, reterr->text);
		if (r->lost)
			r->lost(d, s, m);
		return sio_fail(reterr, -ENOENT, "it is gone: the program has to make it anew");
	}
	further(d);
	smartiod_reply_ok(d, s, msg);
	return 0;
}

/* ---- the room ---- */

static const struct smartiod_request requests[] = {
	SIO_CLIENT_RESTART(SMARTIOD_OWNERS){0, false, NULL},
};

/* It is known by now which hosts are expected, for which memory is kept. */
static void ready(struct smartiod *d)
{
	if (!smartiod_recovering(d))
		smartiod_unclaimed_give_back(d, 0);
}

static uint64_t next_owner(struct smartiod *d, uint64_t after)
{
	uint64_t least = UINT64_MAX;
	struct smartiod_unclaimed *l;

	for (const struct smartiod_expected *a = d->recovery.expected; a; a = a->next)
		if (a->owner > after && a->owner < least)
			least = a->owner;
	for (l = smartiod_unclaimed_after(d, 0); l; l = smartiod_unclaimed_after(d, l->by_id.key))
		if (l->owner > after && l->owner < least)
			least = l->owner;
	return least;
}

/* Lenders have been met, or are lost. */
static void lenders_known(struct smartiod *d)
{
	if (d->ready && !smartiod_recovering(d))
		resume_sessions(d, SMARTIOD_RESTORE_ALL);
}

static void answered(struct smartiod *d, uint32_t node)
{
	smartiod_unclaimed_resumed(d, node);
	lenders_known(d);
}

static void exports_end(struct smartiod *d, uint32_t node, enum smartiod_loss why)
{
	(void)node;
	(void)why;
	lenders_known(d);
}

const struct smartiod_room smartiod_room_restart = {
	.name = "restart",
	.requests = requests,
	.restores = smartiod_restores,
	.start = smartiod_adopt_start,
	.ready = ready,
	.free_all = smartiod_recovery_free,
	.answered = answered,
	.exports_end = exports_end,
	.owner_gone = smartiod_recovery_gone,
	.next_owner = next_owner,
};
