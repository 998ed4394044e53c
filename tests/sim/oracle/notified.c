/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completeness of notifications of segments. model/notices.c checks that each notification has a
 * cause; this oracle checks that each cause has led to its notification.
 */
#include <stdlib.h>

#include <utlist.h>

#include "edge/cable.h"
#include "run/listener.h"
#include "run/run.h"
#include "model/notices.h"

/* how long actions of a dead program are kept, for late notifications */
#define KEPT (20 * SIM_SECOND)

/* Does the program take notifications as soon as they come? */
static bool hears(const struct sim_party *y)
{
	return !y->died && !y->ends && y->stopped + SIM_NOTIFIED_IN < sim_now() &&
	       sim_host_alive(y->host);
}

static bool steady(unsigned host, unsigned adapter)
{
	return sim_cable_changed(host, adapter) + SIM_NOTIFIED_IN < sim_now();
}

/* All cables of @host in the set @only are in, and have been for a while. */
static bool all_in(unsigned host)
{
	unsigned n = sim_cluster->topology->host[host].n_adapters;

	for (unsigned a = 0; a < n; a++)
		if (sim_cable_is_out(host, a) || !steady(host, a))
			return false;
	return true;
}

static const char *name_of(const struct sim_import *m)
{
	return m->by->name;
}

/* An importer that hears all has heard this by now, if its and the exporter's daemon speak. */
static void check_import_link(struct sim_import *m)
{
	bool in, out;

	if (m->asked || !m->made || m->by->host == m->host)
		return;
	in = steady(m->by->host, m->adapter) && steady(m->host, 0) &&
	     !sim_cable_is_out(m->by->host, m->adapter) && !sim_cable_is_out(m->host, 0) &&
	     !sim_is_cut_off(m->by->host, m->adapter, m->host, 0);
	out = (steady(m->by->host, m->adapter) && sim_cable_is_out(m->by->host, m->adapter)) ||
	      (steady(m->host, 0) && sim_cable_is_out(m->host, 0)) ||
	      (steady(m->by->host, m->adapter) && steady(m->host, 0) &&
	       sim_is_cut_off(m->by->host, m->adapter, m->host, 0));
	if ((in && m->state == SIM_NOT_OPERATIONAL) || (out && m->state == SIM_OPERATIONAL))
		sim_fail("callbacks",
			 "%s: segment %u of node %u is %s, as it was told, but its cables are %s",
			 name_of(m), m->id, sim_node(m->host), sim_link_states[m->state],
			 in ? "in" : "out");
}

static void check_import_over(const struct sim_import *m)
{
	const struct sim_export *x = m->of;

	if (!x || m->asked || !m->made || m->made > x->cut || x->cut >= m->was_quiet)
		return;
	sim_fail("callbacks", "%s: segment %u of node %u was taken away, and nobody told it",
		 name_of(m), m->id, sim_node(m->host));
}

/* Nothing is on the way to it, and all cables and daemons are as they have been. */
static bool quiet(const struct sim_import *m)
{
	return m->by->host == m->host ||
	       (sim_host_alive(m->host) && sim_peer_settled(m->by->host, m->host));
}

static void import_check(struct sim_import *m)
{
	if (m->left || m->leaving || m->overflow || m->state == SIM_LOST || !hears(m->by) ||
	    !quiet(m))
		return;
	if (!m->asked && m->made && m->made < m->was_quiet && m->boots_was_quiet != m->boots)
		sim_fail("callbacks",
			 "%s: node %u has started again, and its segment %u is not lost",
			 name_of(m), sim_node(m->host), m->id);
	check_import_link(m);
	check_import_over(m);
}

static void import_waited(struct sim_import *m, sci_error_t e)
{
	if (e == SCI_ERR_OVERFLOW)
		m->overflow = true;
	else if (e == SCI_ERR_NOT_CONNECTED && m->state != SIM_LOST && !m->asked &&
		 !sim_has_fault("memory"))
		sim_fail("callbacks", "%s: a connection is lost and that was not told",
			 m->by->name);
	else if (e == SCI_ERR_TIMEOUT && sim_all_is_notified()) {
		sim_party_look(m->by);
		import_check(m);
	}
}

static bool pulled_since(unsigned host, unsigned peer, uint64_t since)
{
	for (unsigned a = 0; a < SIO_MAX_ADAPTERS; a++)
		if (sim_cable_pulled(host, a) > since || sim_cable_pulled(peer, a) > since)
			return true;
	return false;
}

/* Somebody is connected whose way was told to be down, and is not; or the other way round. */
static void check_export_link(const struct sim_import *m)
{
	const struct sim_export *x = m->of;
	unsigned peer = m->by->host;
	bool down;

	if (!x || x->gone || m->asks != x->asks || peer == m->host || !hears(x->by) ||
	    !sim_import_lives(m) || !quiet(m) || m->made + SIM_NOTIFIED_IN > sim_now())
		return;
	down = x->down[peer] > x->up[peer];
	/* Who waits, or was stopped, may have heard late of one who has left. */
	if (down && x->callback && x->down[peer] > m->made &&
	    x->by->stopped + SIM_NOTIFIED_IN < m->made &&
	    pulled_since(x->by->host, peer, m->made) && all_in(m->host) && all_in(peer) &&
	    !sim_hosts_cut_somewhere(m->host, peer))
		sim_fail("callbacks", "%s: not told that the link to node %u is up again",
			 x->by->name, sim_node(peer));
	if (!down && steady(m->host, 0) &&
	    (sim_cable_is_out(m->host, 0) ||
	     (sim_hosts_cut_off(m->host, peer) && steady(peer, 0))) &&
	    sim_cable_changed(m->host, 0) > m->made)
		sim_fail("callbacks", "%s: not told that the link to node %u is down", x->by->name,
			 sim_node(peer));
}

static void check_connects(const struct sim_export *x)
{
	if (x->connects < x->made_before)
		sim_fail("callbacks", "%s: %u connected to segment %u, and it was notified of %u",
			 x->by->name, x->made_before, x->id, x->connects);
}

static void check_export(struct sim_export *x)
{
	if (x->by->died && !x->gone) {
		x->gone = true;
		x->cut = sim_now();
	}
	if (x->gone || !hears(x->by))
		return;
	if (x->callback)
		check_connects(x);
	x->made_before = x->made;
}

static void export_waited(struct sim_export *x, sci_error_t e)
{
	struct sim_import *m;

	x->overflow |= e == SCI_ERR_OVERFLOW;
	if (e != SCI_ERR_TIMEOUT || x->overflow || !sim_all_is_notified())
		return;
	check_connects(x);
	DL_FOREACH (sim_imports, m)
		if (m->of == x)
			check_export_link(m);
}

/* What was in flight at one check has arrived at the next. */
static void note_quiet(struct sim_import *m)
{
	m->was_quiet = m->quiet;
	m->boots_was_quiet = m->boots_quiet;
	if (m->by->died || !quiet(m))
		return;
	m->quiet = sim_now();
	m->boots_quiet = sim_host_boots(m->host);
}

static void forget(void)
{
	struct sim_import *m, *next;

	DL_FOREACH_SAFE (sim_imports, m, next)
		if (m->by->died && m->by->died + KEPT < sim_now()) {
			DL_DELETE(sim_imports, m);
			free(m);
		}
}

static void check(void)
{
	struct sim_export *x;
	struct sim_import *m;
	struct sim_party *y;

	forget();
	if (!sim_all_is_notified())
		return;
	LL_FOREACH (sim_parties, y)
		sim_party_look(y);
	DL_FOREACH (sim_exports, x)
		check_export(x);
	DL_FOREACH (sim_imports, m) {
		note_quiet(m);
		if (m->callback)
			import_check(m);
		if (m->of && m->of->callback)
			check_export_link(m);
	}
}

static const struct sim_listener listener = {.export_waited = export_waited,
					     .import_waited = import_waited};

const struct sim_oracle sim_oracle_notified = {.name = "notified",
					       .every = 100 * SIM_MS,
					       .start = sim_notified_start,
					       .check = check,
					       .listener = &listener};
