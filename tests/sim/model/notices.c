/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs did with segments, and what they are notified of; each reason that is told has its
 * cause.
 */
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "edge/cable.h"
#include "model/notices.h"

#define IDS 64

const char *const sim_link_states[] = {"connecting", "operational", "not operational", "lost"};

struct sim_party *sim_parties;
struct sim_export *sim_exports;
struct sim_import *sim_imports;
static struct sim_export *current[SIM_HOSTS][IDS];

void sim_notified_start(void)
{
	sim_parties = NULL;
	sim_exports = NULL;
	sim_imports = NULL;
	memset(current, 0, sizeof(current));
}

static void *new_zeroed(size_t bytes)
{
	void *at = calloc(1, bytes);

	if (!at)
		abort();
	return at;
}

static struct sim_party *me(void)
{
	const struct sim_proc *p = sim_self();
	struct sim_party *y;

	LL_FOREACH (sim_parties, y)
		if (y->pid == p->pid)
			return y;
	y = new_zeroed(sizeof(*y));
	y->pid = p->pid;
	y->host = p->host;
	y->boots = sim_host_boots(p->host);
	memcpy(y->name, p->name, sizeof(y->name));
	LL_PREPEND(sim_parties, y);
	return y;
}

void sim_party_look(struct sim_party *y)
{
	const struct sim_proc *p = y->died ? NULL : sim_living(y->pid);

	if (p) {
		y->stopped = p->stopped_last;
		y->silent = p->unsent >= SIM_SEND_TRIES;
	} else if (!y->died) {
		y->died = sim_now();
	}
}

/* Without memory an event is lost; after a restart smartiod reports only the outcome. */
bool sim_all_is_notified(void)
{
	return !sim_has_fault("memory") && !sim_has_fault("restart") && !sim_has_fault("absent") &&
	       !sim_has_fault("unheard");
}

/* ---- what the cables say ---- */
static unsigned adapters(unsigned host)
{
	return sim_cluster->topology->host[host].n_adapters;
}

static bool pulled_since(unsigned host, uint64_t since)
{
	for (unsigned a = 0; a < adapters(host); a++)
		if (sim_cable_is_out(host, a) ||
		    sim_cable_pulled(host, a) + SIM_NOTIFIED_IN >= since)
			return sim_cable_pulled(host, a) > 0;
	return false;
}

/* ---- those who make segments ---- */
struct sim_export *sim_export_new(unsigned id, bool callback)
{
	struct sim_export *x = new_zeroed(sizeof(*x));

	x->by = me();
	x->id = id;
	x->callback = callback;
	x->since = sim_now();
	DL_APPEND(sim_exports, x);
	current[x->by->host][id] = x;
	return x;
}

void sim_export_asks(struct sim_export *x)
{
	x->asks++;
}

void sim_export_asked(struct sim_export *x)
{
	x->cut = sim_now();
}

bool sim_import_lives(const struct sim_import *m)
{
	return m->made && !m->leaving && !m->asked && !m->by->died && !m->by->ends &&
	       m->state != SIM_LOST && sim_peer_breaks(m->by->host, m->host) == m->breaks &&
	       sim_host_boots(m->by->host) == m->by->boots && sim_host_alive(m->by->host);
}

void sim_export_removed(struct sim_export *x, bool force, sci_error_t e)
{
	x->gone = true;
	x->kept = !force && e == SCI_ERR_OK;
	if (e == SCI_ERR_OK)
		sim_export_asked(x);
}

/* Can a program of @host have been connected, and have ended in that way? */
static bool may_have_left(const struct sim_export *x, unsigned host, bool clean)
{
	struct sim_import *m;

	if (host == sim_liar())
		return true;
	DL_FOREACH (sim_imports, m) {
		if (m->by->host != host || m->host != x->by->host || m->id != x->id ||
		    (m->of && m->of != x))
			continue;
		sim_party_look(m->by);
		if (clean ? m->leaving || m->by->ends
			  : (!m->made && !m->refused) || (m->by->died && !m->by->ended) ||
				    (m->by->ends && m->by->silent) ||
				    sim_peer_breaks(host, m->host) != m->breaks)
			return true;
	}
	return false;
}

static void check_left(const struct sim_export *x, sci_segment_cb_reason_t reason, unsigned node)
{
	bool clean = reason == SCI_CB_DISCONNECT;

	if (!may_have_left(x, sim_host_of(node), clean))
		sim_fail("callbacks", "%s: node %u left segment %u by reason %d, %s", x->by->name,
			 node, x->id, reason,
			 clean ? "and nobody there disconnected"
			       : "and all there who left disconnected");
}

static void check_link(const struct sim_party *y, unsigned peer, uint64_t since, uint64_t breaks)
{
	if (!pulled_since(y->host, since) && !pulled_since(peer, since) &&
	    !sim_hosts_cut_off(y->host, peer) && sim_peer_breaks(y->host, peer) == breaks &&
	    sim_host_alive(y->host) && sim_host_alive(peer) && sim_host_boots(y->host) == y->boots)
		sim_fail("callbacks", "%s: told that its link to node %u is down, which it is not",
			 y->name, sim_node(peer));
}

void sim_export_notified(struct sim_export *x, sci_segment_cb_reason_t reason, unsigned node)
{
	unsigned host = sim_host_of(node);

	if (reason == SCI_CB_CONNECT) {
		x->connections++;
		x->connects++;
	} else if (reason == SCI_CB_NOT_OPERATIONAL) {
		x->down[host] = sim_now();
	} else if (reason == SCI_CB_OPERATIONAL) {
		x->up[host] = sim_now();
	} else {
		x->connections--;
	}
	if (sim_has_fault("memory") || x->overflow)
		return;
	/* Of the host's other programs there may be some from before: not of this segment. */
	if (x->connections < 0)
		sim_fail("callbacks", "%s: node %u left a segment that nobody was connected to",
			 x->by->name, node);
	if (sim_all_is_notified() && (reason == SCI_CB_DISCONNECT || reason == SCI_CB_LOST))
		check_left(x, reason, node);
}

/* ---- those who connect ---- */
struct sim_import *sim_import_new(unsigned host, unsigned id, unsigned adapter, bool later,
				  bool callback)
{
	struct sim_import *m = new_zeroed(sizeof(*m));

	m->by = me();
	m->host = host;
	m->id = id;
	m->adapter = adapter;
	m->callback = callback;
	m->state = later ? SIM_CONNECTING : SIM_OPERATIONAL;
	m->then = current[host][id];
	m->asks = m->then ? m->then->asks : 0;
	m->since = sim_now();
	m->breaks = sim_peer_breaks(m->by->host, host);
	DL_APPEND(sim_imports, m);
	return m;
}

/* It is: to what was there before and after, if anything was all the time. */
static void made(struct sim_import *m)
{
	m->made = sim_now();
	m->boots = sim_host_boots(m->host);
	if (m->then && m->then == current[m->host][m->id]) {
		m->of = m->then;
		m->of->made++;
	}
}

void sim_import_begun(struct sim_import *m, sci_error_t e)
{
	if (e != SCI_ERR_OK) {
		m->refused = e == SCI_ERR_NO_SUCH_SEGMENT || e == SCI_ERR_CONNECTION_REFUSED;
		m->leaving = m->left = true;
	} else if (m->state != SIM_CONNECTING && !m->made) {
		made(m);
	}
}

/* Is this reason possible after the state that was reported last? */
static bool follows(const struct sim_import *m, sci_segment_cb_reason_t reason)
{
	switch (reason) {
	case SCI_CB_OPERATIONAL:
		return m->state == SIM_CONNECTING || m->state == SIM_NOT_OPERATIONAL;
	case SCI_CB_NOT_OPERATIONAL:
		return m->state == SIM_OPERATIONAL;
	case SCI_CB_DISCONNECT:
		return m->state == SIM_OPERATIONAL || m->state == SIM_NOT_OPERATIONAL;
	case SCI_CB_LOST:
		return m->state != SIM_LOST;
	default:
		return false;
	}
}

/* Can the exporter, or the path to it, be gone for good? */
static bool may_be_lost(struct sim_import *m)
{
	if (m->state == SIM_CONNECTING || !m->of || m->by->ends || !sim_host_alive(m->by->host) ||
	    sim_host_boots(m->by->host) != m->by->boots ||
	    sim_peer_breaks(m->by->host, m->host) != m->breaks)
		return true;
	sim_party_look(m->by);
	sim_party_look(m->of->by);
	/* What was removed before outlives its maker, unless the port had no memory to take it. */
	if (m->of->kept && !sim_has_fault("port") && !sim_has_fault("lack"))
		return false;
	return m->of->by->died || m->of->by->ends;
}

static bool may_be_asked(const struct sim_import *m)
{
	return !m->of || m->of->asks != m->asks || m->of->by->ends;
}

static void check_cause(struct sim_import *m, sci_segment_cb_reason_t reason)
{
	if (reason == SCI_CB_LOST && !may_be_lost(m))
		sim_fail("callbacks", "%s: segment %u of node %u is lost, and is there",
			 m->by->name, m->id, sim_node(m->host));
	if (reason == SCI_CB_DISCONNECT && !may_be_asked(m))
		sim_fail("callbacks", "%s: asked to leave segment %u of node %u by nobody",
			 m->by->name, m->id, sim_node(m->host));
	if (reason == SCI_CB_NOT_OPERATIONAL)
		check_link(m->by, m->host, m->since, m->breaks);
}

void sim_import_notified(struct sim_import *m, sci_segment_cb_reason_t reason)
{
	if ((!follows(m, reason) && !m->overflow && !sim_has_fault("memory")) || m->left)
		sim_fail("callbacks", "%s: a connection that was %s%s is told reason %d",
			 m->by->name, sim_link_states[m->state], m->left ? " and given back" : "",
			 reason);
	if (sim_all_is_notified())
		check_cause(m, reason);
	if (m->state == SIM_CONNECTING && reason == SCI_CB_OPERATIONAL)
		made(m);
	if (reason == SCI_CB_DISCONNECT)
		m->asked = true;
	else
		m->state = reason == SCI_CB_OPERATIONAL	      ? SIM_OPERATIONAL
			   : reason == SCI_CB_NOT_OPERATIONAL ? SIM_NOT_OPERATIONAL
							      : SIM_LOST;
}

void sim_import_leaves(struct sim_import *m)
{
	m->leaving = true;
}

void sim_import_left(struct sim_import *m)
{
	m->left = true;
}

void sim_notified_ends(void)
{
	me()->ends = true;
}

void sim_notified_ended(void)
{
	sim_party_look(me());
	me()->ended = !me()->silent;
}
