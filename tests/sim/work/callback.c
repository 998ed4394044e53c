/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that use callbacks of segments, of connections (made asynchronously, too), of interrupts
 * and of data interrupts, or wait for the events of segments. oracle/notified.c judges the
 * notifications of segments; here it is checked that nothing calls back after its removal. The
 * workload "listen" keeps its segments and connections for longer, so that links come back while
 * they exist.
 */
#include <stdlib.h>

#include "work/life.h"
#include "run/listener.h"
#include "run/run.h"
#include "smartio/ext.h"
#include "model/notices.h"

#define IDS 4 /* of segments: from 40 on; of "listen": from 44 on */
#define OTHERS 3

struct other {
	sci_remote_segment_t segment;
	bool callback; /* else the program waits for its events */
	bool slow;     /* its callback takes time */
	struct sim_import *told;
};

struct state {
	sci_desc_t sd;
	sci_local_segment_t own;
	struct sim_export *told;
	bool own_gone;
	bool listens;
	bool waits; /* for events of its segment, which has no callback */
	struct other *other[OTHERS];
	sci_local_interrupt_t interrupt;
	sci_local_data_interrupt_t data;
	bool interrupt_gone, data_gone;
	struct sim_proc *proc;
};

/* ---- notifications ---- */
/* A callback that takes time: a removal of its object waits until it returns. */
static void take_time(void)
{
	if (sim_pick(2))
		sim_sleep(sim_pick(2 * SIM_MS));
}

static sci_callback_action_t own_event(void *arg, sci_local_segment_t segment,
				       sci_segment_cb_reason_t reason, unsigned int node,
				       unsigned int adapter, sci_error_t error)
{
	struct state *s = arg;

	(void)error;
	if (adapter != 0)
		sim_fail("callbacks", "%s: notified of adapter %u, where it shows nothing",
			 s->proc->name, adapter);
	if (s->own_gone || segment != s->own)
		sim_fail("callbacks", "%s: a removed segment's callback runs, reason %d",
			 s->proc->name, reason);
	sim_export_notified(s->told, reason, node);
	if (s->listens && !s->waits) {
		take_time();
		if (segment != s->own)
			sim_fail("callbacks", "%s: a callback goes on, whose segment is removed",
				 s->proc->name);
	}
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t other_event(void *arg, sci_remote_segment_t segment,
					 sci_segment_cb_reason_t reason, sci_error_t status)
{
	const struct other *o = arg;

	(void)segment;
	(void)status;
	sim_import_notified(o->told, reason);
	if (o->slow) {
		take_time();
		if (o->told->left)
			sim_fail("callbacks", "%s: a callback goes on, whose handle was given back",
				 sim_self()->name);
	}
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_interrupt(void *arg, sci_local_interrupt_t interrupt,
					  sci_error_t status)
{
	struct state *s = arg;

	(void)interrupt;
	(void)status;
	if (s->interrupt_gone)
		sim_fail("callbacks", "%s: a removed interrupt's callback runs", s->proc->name);
	return SCI_CALLBACK_CONTINUE;
}

static sci_callback_action_t on_data(void *arg, sci_local_data_interrupt_t interrupt, void *data,
				     unsigned int length, sci_error_t status)
{
	struct state *s = arg;

	(void)interrupt;
	(void)data;
	(void)length;
	(void)status;
	if (s->data_gone)
		sim_fail("callbacks", "%s: a removed data interrupt's callback runs",
			 s->proc->name);
	return SCI_CALLBACK_CONTINUE;
}

/* ---- own ---- */
static unsigned pick_id(const struct state *s)
{
	return (s->listens ? 44 : 40) + (unsigned)sim_pick(IDS);
}

static void create(struct state *s)
{
	unsigned id;
	sci_error_t e;

	if (s->own)
		return;
	s->own_gone = false;
	id = pick_id(s);
	s->waits = s->listens && sim_pick(2);
	SIM_CALL(SCICreateSegment,
		 (s->sd, &s->own, id, 4096, own_event, s, s->waits ? 0 : SCI_FLAG_USE_CALLBACK, &e),
		 &e, SCI_ERR_SEGMENTID_USED);
	if (e != SCI_ERR_OK) {
		s->own = NULL;
		return;
	}
	s->told = sim_export_new(id, !s->waits);
	SIM_CALL(SCIPrepareSegment, (s->own, 0, 0, &e), &e);
	if (e == SCI_ERR_OK)
		SIM_CALL(SCISetSegmentAvailable, (s->own, 0, 0, &e), &e);
}

static void remove_own(struct state *s)
{
	unsigned flags;
	sci_error_t e;

	if (!s->own)
		return;
	flags = sim_pick(2) ? SCI_FLAG_FORCE_REMOVE : 0;
	sim_export_asks(s->told);
	SIM_END(SCIRemoveSegment, (s->own, flags, &e), &e);
	if (e == SCI_ERR_NOSPC) /* the daemon had no memory to keep it for importers */
		return;
	sim_export_removed(s->told, flags, e);
	s->own = NULL;
	s->own_gone = true;
}

static void hide(struct state *s)
{
	sci_error_t e;

	if (!s->own)
		return;
	sim_export_asks(s->told);
	SIM_END(SCISetSegmentUnavailable,
		(s->own, 0, sim_pick(2) ? SCI_FLAG_FORCE_DISCONNECT : SCI_FLAG_NOTIFY, &e), &e,
		SCI_ERR_ILLEGAL_OPERATION);
	if (e == SCI_ERR_OK)
		sim_export_asked(s->told);
	SIM_CALL(SCISetSegmentAvailable, (s->own, 0, 0, &e), &e, SCI_ERR_SEGMENT_NOT_PREPARED);
}

static void wait_own(struct state *s)
{
	unsigned timeout = (unsigned)sim_pick(20), node = 0, adapter = 0;
	sci_segment_cb_reason_t reason;
	sci_error_t e;

	if (!s->own || !s->waits)
		return;
	sim_call("SCIWaitForLocalSegmentEvent", timeout + 1000);
	reason = SCIWaitForLocalSegmentEvent(s->own, &node, &adapter, timeout, 0, &e);
	sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_NOT_CONNECTED, SCI_ERR_OVERFLOW, SCI_ERR_OK);
	if (e == SCI_ERR_OK)
		own_event(s, s->own, reason, node, adapter, e);
	else
		sim_note_export_waited(s->told, e);
}

static void interrupts(struct state *s)
{
	unsigned number = 1 + (unsigned)sim_pick(4);
	sci_error_t e;

	if (s->interrupt) {
		SIM_END(SCIRemoveInterrupt, (s->interrupt, 0, &e), &e, SCI_ERR_BUSY);
		s->interrupt_gone = e != SCI_ERR_BUSY;
		if (s->interrupt_gone)
			s->interrupt = NULL;
		return;
	}
	s->interrupt_gone = false;
	SIM_CALL(SCICreateInterrupt,
		 (s->sd, &s->interrupt, 0, &number, on_interrupt, s,
		  SCI_FLAG_FIXED_INTNO | SCI_FLAG_USE_CALLBACK, &e),
		 &e, SCI_ERR_INTNO_USED);
	if (e != SCI_ERR_OK)
		s->interrupt = NULL;
}

static void data_interrupts(struct state *s)
{
	unsigned number = 1 + (unsigned)sim_pick(4);
	sci_error_t e;

	if (s->data) {
		SIM_CALL(SCIRemoveDataInterrupt, (s->data, 0, &e), &e);
		s->data = NULL;
		s->data_gone = true;
		return;
	}
	s->data_gone = false;
	SIM_CALL(SCICreateDataInterrupt,
		 (s->sd, &s->data, 0, &number, on_data, s,
		  SCI_FLAG_FIXED_INTNO | SCI_FLAG_USE_CALLBACK, &e),
		 &e, SCI_ERR_INTNO_USED);
	if (e != SCI_ERR_OK)
		s->data = NULL;
}

/* ---- others' ---- */
static void connect_other(struct state *s, struct other **at)
{
	struct other *o;
	unsigned host = sim_pick_host(), flags, id = pick_id(s);
	unsigned adapter = sim_pick_adapter(host);
	bool later = sim_pick(2);
	sci_error_t e;

	if (*at)
		return;
	/* Not freed while the program lives, so that a callback that is too late finds it. */
	o = calloc(1, sizeof(*o));
	if (!o)
		abort();
	o->callback = sim_pick(2);
	o->slow = s->listens;
	o->told = sim_import_new(host, id, adapter, later, o->callback);
	flags = (o->callback ? SCI_FLAG_USE_CALLBACK : 0) |
		(later ? SCI_FLAG_ASYNCHRONOUS_CONNECT : 0);
	SIM_CALL(SCIConnectSegment,
		 (s->sd, &o->segment, sim_node(host), id, adapter, other_event, o,
		  SCI_INFINITE_TIMEOUT, flags, &e),
		 &e, SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_CONNECTION_REFUSED);
	sim_import_begun(o->told, e);
	if (e == SCI_ERR_OK)
		*at = o;
}

static void wait_other(struct other *o)
{
	unsigned timeout = (unsigned)sim_pick(20);
	sci_segment_cb_reason_t reason;
	sci_error_t e, status;

	if (!o || o->callback)
		return;
	sim_call("SCIWaitForRemoteSegmentEvent", timeout + 1000);
	reason = SCIWaitForRemoteSegmentEvent(o->segment, &status, timeout, 0, &e);
	sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED, SCI_ERR_NOT_CONNECTED, SCI_ERR_OVERFLOW,
		   SCI_ERR_OK);
	if (e == SCI_ERR_OK)
		sim_import_notified(o->told, reason);
	else
		sim_note_import_waited(o->told, e);
}

static void disconnect(struct other **at)
{
	struct other *o = *at;
	sci_error_t e;

	if (!o)
		return;
	sim_import_leaves(o->told);
	SIM_END(SCIDisconnectSegment, (o->segment, 0, &e), &e);
	sim_import_left(o->told);
	*at = NULL;
}

/* ---- the program ---- */
static void act(void *state)
{
	struct state *s = state;
	struct other **o = &s->other[sim_pick(OTHERS)];

	switch (sim_pick(12)) {
	case 0:
	case 1:
		create(s);
		break;
	case 2:
		if (sim_pick(3) == 0)
			remove_own(s);
		break;
	case 3:
		if (sim_pick(3) == 0)
			hide(s);
		break;
	case 4:
		interrupts(s);
		break;
	case 5:
		data_interrupts(s);
		break;
	case 6:
	case 7:
	case 8:
		connect_other(s, o);
		break;
	case 9:
		disconnect(o);
		break;
	default:
		wait_other(*o);
	}
}

static void listen(void *state)
{
	struct state *s = state;
	struct other **o = &s->other[sim_pick(OTHERS)];

	switch (sim_pick(12)) {
	case 0:
	case 1:
		create(s);
		break;
	case 2:
		if (sim_pick(6) == 0)
			remove_own(s);
		break;
	case 3:
		if (sim_pick(6) == 0)
			disconnect(o);
		break;
	case 4:
	case 5:
	case 6:
		connect_other(s, o);
		break;
	case 7:
	case 8:
	case 9:
		wait_own(s);
		break;
	default:
		wait_other(*o);
	}
}

static void run(struct sim_proc *p, const struct sim_life *life, bool listens)
{
	struct state *s = calloc(1, sizeof(*s)); /* callbacks outlive this frame */

	if (!s)
		abort();
	s->proc = p;
	s->listens = listens;
	if (!sim_live(life, s, &s->sd) || sim_pick(8) == 0)
		return;
	sim_notified_ends();
	sim_terminate(p);
	sim_notified_ended();
}

static void callback_main(struct sim_proc *p)
{
	static const struct sim_life life = {.acts = 200, .act = act};

	run(p, &life, false);
}

static void listen_main(struct sim_proc *p)
{
	static const struct sim_life life = {.acts = 300, .act = listen};

	run(p, &life, true);
}

static bool listen_seen(unsigned hosts)
{
	(void)hosts;
	return !sim_outliving;
}

const struct sim_workload sim_work_callback = {
	.name = "callback", .weight = 2, .main = callback_main};
const struct sim_workload sim_work_listen = {
	.name = "listen", .weight = 2, .seen = listen_seen, .main = listen_main};
