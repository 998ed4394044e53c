/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * EVENTS_AWAIT: whoever has changed something of the hardware waits until the programs of this host
 * have handled the events that they were sent because of that, or learns which have not. Each
 * program's library answers a fence (base/fence.h).
 */
#include <errno.h>

#include <utlist.h>

#include "smartiod/base/op.h"
#include "smartiod/daemon/dispatch.h"

#define MS 1000000ull

struct smartiod_events {
	struct smartiod_op op;
	struct smartiod_events *prev, *next; /* in d->events, while WAIT */
	enum { ASK_PORT, ASK_PEER, WAIT } state;
	uint64_t since;
	uint32_t node, limit_ms;
};

static bool is_late(const struct smartiod_session *s)
{
	return !s->ending && smartiod_fence_late(&s->fence);
}

static struct smartiod_session *next_session(struct smartiod *d, uint64_t *after)
{
	struct smartiod_tree_node *n = smartiod_tree_after(&d->sessions, *after);

	if (!n)
		return NULL;
	*after = n->key;
	return SMARTIOD_OF(n, struct smartiod_session, by_client);
}

static void send_fences(struct smartiod *d, uint64_t since)
{
	struct smartiod_session *s;
	uint64_t at = 0, number;

	while ((s = next_session(d, &at))) {
		struct sio_evm_fence fence;

		if (s->ending || !smartiod_fence_send(&s->fence, since, &number))
			continue;
		fence = (struct sio_evm_fence){.number = sio_to_le64(number)};
		smartiod_event(d, s, SIO_EVM_FENCE, &fence, sizeof(fence), NULL, 0);
	}
}

static bool all_taken(struct smartiod *d)
{
	struct smartiod_session *s;
	uint64_t at = 0;

	while ((s = next_session(d, &at)))
		if (is_late(s))
			return false;
	return true;
}

static bool is_late_program(const struct smartiod_program *p)
{
	const struct smartiod_session *s = p->sessions;

	while (s && !is_late(s))
		s = s->next_of_program;
	return s;
}

static void reply(struct smartiod *d, struct smartiod_events *e)
{
	struct sio_rep_events_await rep = {.events = sio_to_le64(d->count.client_events)};
	const struct smartiod_program *p;
	uint32_t late = 0;

	DL_FOREACH (d->programs, p) {
		if (!is_late_program(p))
			continue;
		if (late < SIO_EVENTS_PIDS)
			rep.pid[late] = sio_to_le32(p->pid);
		late++;
	}
	rep.late = sio_to_le32(late);
	smartiod_op_reply(d, &e->op, &rep, sizeof(rep), NULL, 0);
	smartiod_op_free(d, &e->op);
}

static void wait_for_programs(struct smartiod *d, struct smartiod_events *e)
{
	send_fences(d, e->since);
	if (smartiod_op_orphan(&e->op) || e->limit_ms == 0 || all_taken(d)) {
		reply(d, e);
		return;
	}
	e->state = WAIT;
	DL_APPEND(d->events, e);
	smartiod_op_doze(d, &e->op, e->limit_ms * MS);
}

/* What the other daemon has sent before its answer is handled before it. An error says as much. */
static void ask_peer(struct smartiod *d, struct smartiod_events *e)
{
	struct sio_peer_ping ping = {.h.type = sio_to_le32(SIO_PEER_PING)};

	e->state = ASK_PEER;
	if (!e->node || e->node == d->node ||
	    smartiod_peer_query(d, &e->op, e->node, &ping, sizeof(ping)) < 0)
		wait_for_programs(d, e);
}

static void events_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct smartiod_events *e = (struct smartiod_events *)op;

	(void)a;
	switch (e->state) {
	case ASK_PORT:
		ask_peer(d, e);
		return;
	case ASK_PEER:
		wait_for_programs(d, e);
		return;
	case WAIT:
		DL_DELETE(d->events, e);
		reply(d, e);
		return;
	}
}

int smartiod_events_await(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_msg_events_await *m = msg;
	struct sio_req_adapter req = {.h.op = SIO_OP_ADAPTER};
	uint32_t limit_ms = sio_from_le32(m->limit_ms);
	struct smartiod_events *e;

	if (limit_ms > SIO_EVENTS_LIMIT_MS)
		return sio_fail(reterr, -EINVAL, "limit_ms %u: at most %u is right", limit_ms,
				SIO_EVENTS_LIMIT_MS);
	e = smartiod_op_new(d, s, msg, sizeof(*e), events_step, reterr);
	if (!e)
		return reterr->code;
	e->since = sio_from_le64(m->since);
	e->node = sio_from_le32(m->node);
	e->limit_ms = limit_ms;
	/* Its answer, whatever it says, comes after the events that the port has sent before. */
	smartiod_port_ask(d, &e->op, &req, sizeof(req));
	return 0;
}

int smartiod_events_taken(struct smartiod *d, struct smartiod_session *s, const void *msg,
			  struct sio_err *reterr)
{
	const struct sio_msg_events_taken *m = msg;

	if (smartiod_fence_take(&s->fence, sio_from_le64(m->number)) < 0)
		return sio_fail(reterr, -EINVAL,
				"no fence of that number was sent: the number of one that was is "
				"right");
	smartiod_reply_ok(d, s, msg);
	smartiod_events_check(d);
	return 0;
}

void smartiod_events_check(struct smartiod *d)
{
	if (!d->events || !all_taken(d))
		return;
	while (d->events)
		smartiod_op_resume(d, &d->events->op);
}
