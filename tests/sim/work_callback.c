/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that live by callbacks: of their segments, of connections made asynchronously, of
 * interrupts, data interrupts and DMA queues; and by waiting for events of segments. What is told
 * follows the tables of states: an importer hears OPERATIONAL only after NOT_OPERATIONAL or first
 * of all, nothing after LOST, and nothing at all once the handle was given back.
 */
#include <stdlib.h>

#include "life.h"
#include "run.h"
#include "smartio/ext.h"
#include "tables.h"

#define IDS 4 /* 40 to 43 */
#define OTHERS 3

enum { NONE, CONNECTING, OPERATIONAL, NOT_OPERATIONAL, LOST };

struct other {
	sci_remote_segment_t segment;
	int state;  /* as it was told */
	bool asked; /* told DISCONNECT: by force, it is over with that */
	bool gone;
	bool callback; /* else its events are waited for */
	struct sim_proc *proc;
};

struct state {
	sci_desc_t sd;
	sci_local_segment_t own;
	int connections; /* as told */
	bool own_gone;
	struct other *other[OTHERS];
	sci_local_interrupt_t interrupt;
	sci_local_data_interrupt_t data;
	bool interrupt_gone, data_gone;
	struct sim_proc *proc;
};

/* ---- what is told ---- */
/* Without memory for it an event is lost. */
static bool all_is_told(void)
{
	return !sim_has_fault("memory");
}

static sci_callback_action_t own_event(void *arg, sci_local_segment_t segment,
				       sci_segment_cb_reason_t reason, unsigned int node,
				       unsigned int adapter, sci_error_t error)
{
	struct state *s = arg;

	(void)segment;
	(void)adapter;
	(void)error;
	if (s->own_gone)
		sim_fail("callbacks", "%s: a removed segment's callback runs, reason %d",
			 s->proc->name, reason);
	if (reason == SCI_CB_CONNECT)
		s->connections++;
	/* Of the host's other programs there may be some from before: not of this segment. */
	if ((reason == SCI_CB_DISCONNECT || reason == SCI_CB_LOST) && --s->connections < 0 &&
	    all_is_told())
		sim_fail("callbacks", "%s: node %u left a segment that nobody was connected to",
			 s->proc->name, node);
	return SCI_CALLBACK_CONTINUE;
}

static void told(struct other *o, sci_segment_cb_reason_t reason)
{
	static const char *const state[] = {"new", "connecting", "operational", "not operational",
					    "lost"};
	bool right;

	switch (reason) {
	case SCI_CB_OPERATIONAL:
		right = o->state == CONNECTING || o->state == NOT_OPERATIONAL;
		break;
	case SCI_CB_NOT_OPERATIONAL:
		right = o->state == OPERATIONAL;
		break;
	case SCI_CB_DISCONNECT:
		right = o->state == OPERATIONAL || o->state == NOT_OPERATIONAL;
		break;
	case SCI_CB_LOST:
		right = o->state != LOST;
		break;
	default:
		right = false;
	}
	if ((!right && all_is_told()) || o->gone)
		sim_fail("callbacks", "%s: a connection that was %s%s is told reason %d",
			 o->proc->name, state[o->state], o->gone ? " and given back" : "", reason);
	if (reason == SCI_CB_DISCONNECT)
		o->asked = true;
	else
		o->state = reason == SCI_CB_OPERATIONAL	      ? OPERATIONAL
			   : reason == SCI_CB_NOT_OPERATIONAL ? NOT_OPERATIONAL
							      : LOST;
}

static sci_callback_action_t other_event(void *arg, sci_remote_segment_t segment,
					 sci_segment_cb_reason_t reason, sci_error_t status)
{
	(void)segment;
	(void)status;
	told(arg, reason);
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
static void create(struct state *s)
{
	sci_error_t e;

	if (s->own)
		return;
	s->connections = 0;
	s->own_gone = false;
	SIM_CALL(SCICreateSegment,
		 (s->sd, &s->own, 40 + (unsigned)sim_pick(IDS), 4096, own_event, s,
		  SCI_FLAG_USE_CALLBACK, &e),
		 &e, SCI_ERR_SEGMENTID_USED);
	if (e != SCI_ERR_OK) {
		s->own = NULL;
		return;
	}
	SIM_CALL(SCIPrepareSegment, (s->own, 0, 0, &e), &e);
	if (e == SCI_ERR_OK)
		SIM_CALL(SCISetSegmentAvailable, (s->own, 0, 0, &e), &e);
}

static void remove_own(struct state *s)
{
	sci_error_t e;

	if (!s->own)
		return;
	SIM_CALL(SCIRemoveSegment, (s->own, sim_pick(2) ? SCI_FLAG_FORCE_REMOVE : 0, &e), &e,
		 SCI_ERR_BUSY);
	/* Or its daemon had no memory to wait for those who are connected. */
	if (e == SCI_ERR_BUSY || e == SCI_ERR_NOSPC)
		return;
	s->own = NULL;
	s->own_gone = true;
}

static void hide(struct state *s)
{
	sci_error_t e;

	if (!s->own)
		return;
	SIM_CALL(SCISetSegmentUnavailable,
		 (s->own, 0, sim_pick(2) ? SCI_FLAG_FORCE_DISCONNECT : SCI_FLAG_NOTIFY, &e), &e,
		 SCI_ERR_ILLEGAL_OPERATION);
	SIM_CALL(SCISetSegmentAvailable, (s->own, 0, 0, &e), &e, SCI_ERR_SEGMENT_NOT_PREPARED);
}

static void interrupts(struct state *s)
{
	unsigned number = 1 + (unsigned)sim_pick(4);
	sci_error_t e;

	if (s->interrupt) {
		SIM_CALL(SCIRemoveInterrupt, (s->interrupt, 0, &e), &e, SCI_ERR_BUSY);
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
	unsigned host = sim_pick_host(), flags, id = 40 + (unsigned)sim_pick(IDS);
	unsigned adapter = sim_pick_adapter(host);
	bool later = sim_pick(2);
	sci_error_t e;

	if (*at)
		return;
	/* A callback that comes too late is to find it: never freed while the program lives. */
	o = calloc(1, sizeof(*o));
	if (!o)
		abort();
	o->proc = s->proc;
	o->callback = sim_pick(2);
	o->state = later ? CONNECTING : OPERATIONAL;
	flags = (o->callback ? SCI_FLAG_USE_CALLBACK : 0) |
		(later ? SCI_FLAG_ASYNCHRONOUS_CONNECT : 0);
	SIM_CALL(SCIConnectSegment,
		 (s->sd, &o->segment, sim_node(host), id, adapter, other_event, o,
		  SCI_INFINITE_TIMEOUT, flags, &e),
		 &e, SCI_ERR_NO_SUCH_SEGMENT, SCI_ERR_CONNECTION_REFUSED);
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
		told(o, reason);
	else if (e == SCI_ERR_NOT_CONNECTED && o->state != LOST && !o->asked && all_is_told())
		sim_fail("callbacks", "%s: a connection is lost and that was not told",
			 o->proc->name);
}

static void disconnect(struct other **at)
{
	struct other *o = *at;
	sci_error_t e;

	if (!o)
		return;
	SIM_CALL(SCIDisconnectSegment, (o->segment, 0, &e), &e);
	o->gone = true;
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

static void callback_main(struct sim_proc *p)
{
	struct state *s = calloc(1, sizeof(*s)); /* callbacks outlive this frame */
	static const struct sim_life life = {.acts = 200, .act = act};

	if (!s)
		abort();
	s->proc = p;
	sim_live_and_exit(p, &life, s, &s->sd);
}

const struct sim_workload sim_work_callback = {
	.name = "callback", .weight = 2, .main = callback_main};
