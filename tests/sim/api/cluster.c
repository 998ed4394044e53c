/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/lib/cluster.h in the simulator: hosts, programs and steps in virtual time. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../lib/cluster.h"
#include "../../lib/program.h"
#include "api/api.h"
#include "edge/cable.h"
#include "fabric/fabric.h"
#include "smartio/uapi.h"
#include "run/run.h"

extern const struct sim_oracle sim_oracle_hardware;

#define LIMIT (60 * SIM_SECOND)
#define STEP_LEAST 10000u /* ns: longer than posted writes are on their way */
#define STEP_MORE 20000u
#define EXIT_NS 50000u /* longer than a packet takes */

struct cluster {
	char topology[8192];
};

uint64_t api_seed, api_hash, api_events, api_virtual_ns;
static int steps[STEPS];
static unsigned open_steps;

/* ---- up and down ---- */
static bool all_ready(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < sim_hosts(); i++)
		if (!sim_host_ready(i))
			return false;
	return true;
}

/* The seed decides what a test's topology leaves open. */
static void draw_topology(struct cluster *c, const char *text)
{
	const char *rest = strchr(text, '\n') + 1;
	unsigned payload = 128u << sim_below(3), request = 128u << sim_below(4);
	unsigned boundary = 64u << sim_below(2);
	int n = snprintf(c->topology, sizeof(c->topology),
			 "%.*spayload: %u\nread_request: %u\ncompletion_boundary: %u\n%s",
			 (int)(rest - text), text, payload, request, boundary, rest);

	assert(n > 0 && (size_t)n < sizeof(c->topology));
}

static int probe_all(struct cluster *c)
{
	for (unsigned i = 0; i < sim_hosts(); i++) {
		struct program_probe p = {sim_node(i), sim_hosts()};

		if (cluster_wait(cluster_fork(c, sim_node(i), program_probe, &p)))
			return -1;
	}
	return 0;
}

struct cluster *cluster_up(const char *topology)
{
	struct cluster *c = calloc(1, sizeof(*c));

	assert(c);
	sim_start(api_seed);
	draw_topology(c, topology);
	sim_programs_outlive_hosts = true;
	sim_cluster_start(c->topology);
	if (!sim_run(all_ready, NULL, LIMIT) || probe_all(c) < 0) {
		fprintf(stderr, "the cluster does not come up\n");
		return NULL;
	}
	steps_reset();
	api_sleep(SIM_SECOND); /* until everything of the last program has been released */
	sim_oracle_hardware.start();
	return c;
}

static bool all_back(void *arg)
{
	(void)arg;
	return sim_oracle_hardware.back();
}

int cluster_audit(struct cluster *c)
{
	char text[512] = "";

	(void)c;
	if (sim_run(all_back, NULL, LIMIT))
		return 0;
	sim_oracle_hardware.explain(text, sizeof(text));
	fprintf(stderr, "the cluster does not hold what it held when it came up: %s\n", text);
	return -1;
}

int cluster_down(struct cluster *c)
{
	int rc;

	for (unsigned i = 0; i < sim_hosts(); i++)
		if (!sim_host_alive(i))
			cluster_restart(c, sim_node(i), 0);
	rc = cluster_audit(c);
	api_hash ^= sim_trace_hash();
	api_events += sim_events();
	api_virtual_ns += sim_now();
	api_programs_free();
	sim_cluster_stop();
	sim_end();
	free(c);
	return rc;
}

static unsigned host_named(const char *what)
{
	const struct sio_topology *t = sim_cluster->topology;

	for (unsigned i = 0; i < t->n_hosts; i++)
		if (!strncmp(t->host[i].name, what, strcspn(what, ":")))
			return i;
	assert(!"a host's name");
	return 0;
}

/* A request takes time: a program that asks in a loop gets its answer in the end. */
long cluster_count(const struct cluster *c, const char *what)
{
	static const struct {
		const char *name;
		uint32_t kind;
	} kinds[] = {{": port memory", SIO_KIND_MEM}, {": port vectors", SIO_KIND_VECTOR}};

	(void)c;
	api_sleep(SIM_MS);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(strchr(what, ':'), kinds[i].name))
			return sim_port_count(host_named(what), kinds[i].kind);
	return -1;
}

/* ---- faults ---- */
void cluster_crash(struct cluster *c, unsigned node)
{
	(void)c;
	sim_host_crash(sim_host_of(node));
}

static bool off(void *host)
{
	return sim_host_off(*(unsigned *)host);
}

static bool ready(void *host)
{
	return sim_host_ready(*(unsigned *)host);
}

int cluster_restart(struct cluster *c, unsigned node, unsigned from)
{
	struct program_probe p = {node, sim_hosts()};
	unsigned host = sim_host_of(node);

	(void)from;
	if (!sim_run(off, &host, LIMIT))
		return -1;
	sim_host_boot(host);
	if (!sim_run(ready, &host, LIMIT))
		return -1;
	return cluster_wait(cluster_fork(c, node, program_probe, &p)) ? -1 : 0;
}

int cluster_link(const struct cluster *c, unsigned node, unsigned adapter, bool up)
{
	(void)c;
	if (up)
		sim_cable_in(sim_host_of(node), adapter);
	else
		sim_cable_out(sim_host_of(node), adapter);
	return 0;
}

static unsigned find_switch(const char *name)
{
	const struct sio_topology *t = sim_cluster->topology;
	unsigned i = 0;

	while (i < t->n_switches && strcmp(t->sw[i].name, name) != 0)
		i++;
	return i;
}

int cluster_switch(const struct cluster *c, const char *name, bool up)
{
	unsigned index = find_switch(name);

	(void)c;
	if (index == sim_cluster->topology->n_switches)
		return -1;
	if (up)
		sim_switch_in(index);
	else
		sim_switch_out(index);
	return 0;
}

int cluster_trunk(const struct cluster *c, const char *a, const char *b, bool up)
{
	const struct sio_topology *t = sim_cluster->topology;
	unsigned x = find_switch(a), y = find_switch(b);

	(void)c;
	for (unsigned i = 0; i < t->n_trunks; i++) {
		const unsigned *sw = t->trunk[i].sw;

		if ((sw[0] != x || sw[1] != y) && (sw[0] != y || sw[1] != x))
			continue;
		if (up)
			sim_trunk_in(i);
		else
			sim_trunk_out(i);
		return 0;
	}
	return -1;
}

/* ---- the kind of cluster ---- */
bool cluster_is_machine(void)
{
	return false;
}

unsigned cluster_node(unsigned node)
{
	return node;
}

const char *cluster_device(void)
{
	return "nvme0";
}

void cluster_needs(const char *what)
{
	(void)what;
}

bool cluster_is_vfio(void)
{
	return false;
}

void cluster_needs_module(const char *what)
{
	(void)what;
}

void cluster_needs_kernel(const char *what)
{
	print_message("[  NEEDS   ] %s\n", what);
	skip();
}

/* ---- programs ---- */
pid_t cluster_fork(struct cluster *c, unsigned node, int (*fn)(void *arg), void *arg)
{
	(void)c;
	fabric_guard(); /* cmocka has installed its own signal handlers */
	return api_program_new(sim_host_of(node), fn, arg);
}

static bool over(void *arg)
{
	return ((struct api_program *)arg)->proc->reaped;
}

int cluster_wait(pid_t pid)
{
	struct api_program *a = api_program(pid);

	fabric_guard();
	if (!sim_run(over, a, LIMIT)) {
		fprintf(stderr, "%s does not end\n", a->proc->name);
		api_kill(pid, SIGKILL);
	}
	/*
	 * The other ends of its descriptors see them closed before the parent sees the exit, as
	 * with a kernel.
	 */
	api_sleep(EXIT_NS);
	return a->signal ? 128 + a->signal : a->proc->result;
}

/* ---- steps ---- */
struct notification {
	int fd;
};

static void step_arrives(void *arg)
{
	struct notification *n = arg;

	sim_event_add(n->fd, 1);
	sim_fd_close(n->fd);
	free(n);
}

void steps_reset(void)
{
	for (unsigned i = 0; i < STEPS; i++) {
		if (open_steps == STEPS)
			sim_fd_close(steps[i]);
		steps[i] = sim_fd_new(SIM_EVENT);
	}
	open_steps = STEPS;
}

/* On a channel of its own: earlier stores have arrived when the other program is notified. */
void step_done(unsigned step)
{
	struct notification *n = malloc(sizeof(*n));

	assert(n);
	if (sim_self()) {
		sim_step(&sim_self()->world);
		sim_sync();
	}
	n->fd = sim_fd_dup(steps[step]);
	sim_after(STEP_LEAST + sim_below(STEP_MORE), step_arrives, n);
}

struct waiting {
	const unsigned *step;
	unsigned n;
};

static bool any_step(void *arg)
{
	const struct waiting *w = arg;

	for (unsigned i = 0; i < w->n; i++)
		if (sim_fd(steps[w->step[i]])->count)
			return true;
	return false;
}

unsigned step_await_any(const unsigned *step, unsigned n)
{
	struct waiting w = {step, n};

	for (unsigned i = 0; sim_self() && i < n; i++)
		sim_wait_add(steps[step[i]]);
	fabric_guard();
	if (!api_wait_until(any_step, &w)) {
		fprintf(stderr, "step %u does not come\n", step[0]);
		api_exit(1);
	}
	if (sim_self())
		sim_wait_clear(sim_coro_current());
	for (unsigned i = 0; i < n; i++) {
		struct sim_object *o = sim_fd(steps[step[i]]);

		if (o->count) {
			o->count--;
			return step[i];
		}
	}
	abort();
}

void step_await(unsigned step)
{
	step_await_any(&step, 1);
}

/* Only for tests that a simulated cluster skips. */
pid_t cluster_daemon(const struct cluster *c, unsigned node)
{
	(void)c;
	(void)node;
	abort();
}
