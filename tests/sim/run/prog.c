/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs of the workloads: they start and end on every host; and the time-outs and flags of their
 * calls.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/topology_path.h"
#include "run/run.h"
#include "smartio/ext.h"
#include "edge/trouble.h"

#define CALL_LIMIT_MS 60000u
#define MOST_TRIES 100u

/* A place for a program: one after the other runs in it. */
struct slot {
	unsigned host;
	struct sim_proc *proc;
	uint64_t rng;	/* of the slot: what runs next, and when */
	uint64_t picks; /* of the program */
	const struct sim_workload *workload;
	struct slot *next;
};

bool sim_busy;
struct sim_wild sim_wild;

static struct slot *slots;
static bool stopping;
static unsigned running, total_weight;
static uint64_t chosen_workloads; /* a bit each */

bool sim_stopping_programs(void)
{
	return stopping;
}

static struct slot *my_slot(void)
{
	return sim_self()->arg;
}

uint64_t sim_pick(uint64_t n)
{
	uint64_t r = sim_draw(&my_slot()->picks);

	return n ? r % n : 0;
}

unsigned sim_pick_host(void)
{
	unsigned n = sim_hosts(), h = (unsigned)sim_pick(n);

	/* Others are more interesting, but the own node is a node like any other. */
	if (h == sim_self()->host && sim_pick(4) > 0)
		h = (h + 1) % n;
	return h == sim_liar() ? sim_self()->host : h;
}

unsigned sim_pick_adapter(unsigned host)
{
	const struct sio_topo_host *h = &sim_cluster->topology->host[sim_self()->host];
	unsigned first = (unsigned)sim_pick(h->n_adapters);
	struct sio_path path;

	for (unsigned i = 0; i < h->n_adapters; i++) {
		unsigned a = (first + i) % h->n_adapters;

		if (topology_path(sim_cluster->topology, h->node, a, sim_node(host), &path) == 0)
			return a;
	}
	return first;
}

unsigned sim_adapters_behind(unsigned adapter, unsigned host)
{
	struct sio_path path[SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS];
	unsigned n, adapters = 0;

	if (host == sim_self()->host)
		return 1u << adapter;
	n = sio_topology_paths(sim_cluster->topology, sim_node(sim_self()->host), sim_node(host),
			       path, SIO_MAX_ADAPTERS * SIO_MAX_ADAPTERS);
	for (unsigned i = 0; i < n; i++)
		if (path[i].adapter == adapter)
			adapters |= 1u << path[i].peer_adapter;
	return adapters;
}

/* ---- calls ---- */
void sim_call(const char *name, unsigned limit_ms)
{
	struct sim_coro *c = sim_coro_current();

	sim_span_begin("%s %s", c->proc->name, name);
	sim_result.calls++;
	c->call = name;
	c->call_since = sim_now();
	c->call_limit = (limit_ms ? limit_ms : CALL_LIMIT_MS) * SIM_MS;
}

/* What any call may give when hosts crash, links break and tables are full. */
static bool common(sci_error_t e)
{
	/* Whose smartiod alone is killed and started again just waits. */
	if (sim_only_restarts())
		return e == SCI_ERR_OK || e == SCI_ERR_NOSPC || e == SCI_ERR_HW_NOSPC ||
		       e == SCI_ERR_NO_SUCH_NODEID;
	return e == SCI_ERR_OK || e == SCI_ERR_NO_LINK_ACCESS ||
	       e == SCI_ERR_NO_REMOTE_LINK_ACCESS || e == SCI_ERR_NODE_NOT_RESPONDING ||
	       e == SCI_ERR_NOSPC || e == SCI_ERR_HW_NOSPC || e == SCI_ERR_NO_SUCH_NODEID;
}

sci_error_t sim_called(sci_error_t error, ...)
{
	struct sim_coro *c = sim_coro_current();
	const char *name = c->call;
	bool known = common(error);
	va_list ap;
	sci_error_t e;

	sim_span_end("%s %s: %x", c->proc->name, name, (unsigned)error);
	c->call = NULL;
	va_start(ap, error);
	while (!known && (e = va_arg(ap, sci_error_t)) != SCI_ERR_OK)
		known = e == error;
	va_end(ap);
	if (!known)
		sim_fail("states", "%s: %s gives %s: %s", c->proc->name, name,
			 SCIGetErrorString(error), smartio_last_error());
	return error;
}

bool sim_again(sci_error_t error, unsigned tries)
{
	return error == SCI_ERR_NOSPC && sim_has_fault("scarce") && tries < MOST_TRIES;
}

bool sim_adapters(unsigned host)
{
	(void)host;
	return !sim_outliving;
}

/* ---- coming and going ---- */
static void slot_start(void *arg);

static void slot_free_program(void *arg)
{
	struct slot *s = arg;
	uint64_t pause = sim_draw(&s->rng) % (50 * SIM_MS);

	if (!s->proc->finished)
		sim_result.killed++;
	sim_proc_free(s->proc);
	s->proc = NULL;
	running--;
	if (!stopping)
		sim_after(pause, slot_start, s);
}

static void program_gone(struct sim_proc *p)
{
	sim_after(0, slot_free_program, p->arg);
}

/* The workload of that name, if this seed has it; NULL. */
static const struct sim_workload *chosen_of(const char *name)
{
	for (unsigned i = 0; sim_workloads[i]; i++)
		if (chosen_workloads >> i & 1 && strcmp(sim_workloads[i]->name, name) == 0)
			return sim_workloads[i];
	return NULL;
}

/* What is offered there. */
static const struct sim_workload *at_liar(unsigned weight)
{
	const struct sim_workload *guest = chosen_of("guest"), *deceived = chosen_of("deceived");

	if (deceived && deceived->fits(sim_liar()) && (weight % 2 || !guest))
		return deceived;
	return guest;
}

static const struct sim_workload *choose(struct slot *s)
{
	unsigned weight = (unsigned)(sim_draw(&s->rng) % total_weight);

	if (s->host == sim_liar())
		return at_liar(weight);
	for (unsigned i = 0; sim_workloads[i]; i++) {
		const struct sim_workload *w = sim_workloads[i];

		if (!(chosen_workloads >> i & 1))
			continue;
		if (weight < w->weight)
			return !w->fits || w->fits(s->host) ? w : NULL;
		weight -= w->weight;
	}
	return NULL;
}

static void slot_start(void *arg)
{
	struct slot *s = arg;
	char name[32];

	if (stopping)
		return;
	s->workload = choose(s);
	if (!s->workload || !sim_host_ready(s->host)) {
		sim_after(10 * SIM_MS, slot_start, s);
		return;
	}
	s->picks = sim_draw(&s->rng);
	running++;
	sim_result.programs++;
	snprintf(name, sizeof(name), "%.14s@%u#%llu", s->workload->name, sim_node(s->host),
		 (unsigned long long)sim_result.programs);
	s->proc = sim_proc_new(name, s->host, s->workload->main, s);
	s->proc->gone = program_gone;
}

/* Those that cannot be beside another one that is chosen. */
static void leave_out(void)
{
	for (unsigned i = 0; sim_workloads[i]; i++) {
		const struct sim_workload *w = sim_workloads[i];
		const char *list = chosen_workloads >> i & 1 && w->beside ? w->beside() : NULL;

		for (unsigned k = 0; list && sim_workloads[k]; k++)
			if (!sim_list_has(list, sim_workloads[k]->name))
				chosen_workloads &= ~(1ull << k);
	}
}

/* Of drives that do wrong others see nothing. */
static uint64_t for_drives(uint64_t usable)
{
	uint64_t added = 0;

	for (unsigned i = 0; sim_busy && trouble_wanted && sim_workloads[i]; i++)
		if (sim_list_has("manager,nvme", sim_workloads[i]->name))
			added |= usable & 1ull << i;
	sim_did.busy = (added & ~chosen_workloads) != 0;
	return added;
}

/* At least one workload; each with even chances. */
static void choose_workloads(uint64_t *rng, unsigned hosts)
{
	uint64_t drawn = sim_draw(rng), usable = 0;
	/* "all" but some: a draw from those, as without a list. */
	bool named = sim_options.workload && !strstr(sim_options.workload, "all");

	for (unsigned i = 0; sim_workloads[i]; i++) {
		const struct sim_workload *w = sim_workloads[i];

		assert(i < 64);
		if (sim_list_has(sim_options.workload, w->name) && (named || !w->named) &&
		    (!w->seen || w->seen(hosts)))
			usable |= 1ull << i;
	}
	chosen_workloads = named || !(usable & drawn) ? usable : usable & drawn;
	if (!named)
		chosen_workloads |= for_drives(usable);
	leave_out();
	total_weight = 0;
	for (unsigned i = 0; sim_workloads[i]; i++)
		if (chosen_workloads >> i & 1)
			total_weight += sim_workloads[i]->weight;
}

static uint64_t stream(void)
{
	return sim_options.seed ^ 0x70726f6772616d73ull;
}

void sim_programs_choose(unsigned hosts)
{
	uint64_t rng = stream();

	choose_workloads(&rng, hosts);
}

bool sim_has_workload(const char *name)
{
	return chosen_of(name);
}

bool sim_has_pullers(void)
{
	return sim_has_workload("mover") || sim_has_workload("sharer") ||
	       sim_has_workload("leaser") || sim_has_workload("crew");
}

/* On the host that lies run those alone that have what others are to use. */
static bool has_programs(unsigned host)
{
	return host != sim_liar() || sim_has_workload("guest") || sim_has_workload("deceived");
}

void sim_programs_start(void)
{
	uint64_t rng = stream();
	unsigned most = sim_hosts() > 12 ? 1 : sim_hosts() > 5 ? 2 : sim_hosts() > 1 ? 4 : 8;

	stopping = false;
	running = 0;
	choose_workloads(&rng, sim_hosts());
	if (total_weight == 0) /* --workload none */
		return;
	for (unsigned i = 0; i < sim_hosts(); i++) {
		unsigned n = 1 + (unsigned)(sim_draw(&rng) % most);

		for (; n > 0 && has_programs(i); n--) {
			struct slot *s = calloc(1, sizeof(*s));

			assert(s);
			s->host = i;
			s->rng = sim_draw(&rng);
			s->next = slots;
			slots = s;
			sim_after(sim_draw(&s->rng) % (20 * SIM_MS), slot_start, s);
		}
	}
}

void sim_programs_stop(void)
{
	stopping = true;
}

bool sim_programs_ended(void *arg)
{
	(void)arg;
	return running == 0;
}
