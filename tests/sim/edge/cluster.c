/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts and machine room of the simulated cluster: start, crash, boot, stop. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap/alloc.h"
#include "edge/edge.h"
#include "fabric/fabric.h"
#include "topofile/topofile.h"

struct sim_cluster *sim_cluster;
struct sim_host sim_host[SIM_HOSTS];
bool sim_stopping, sim_outliving, sim_unchecked;

/* As systemd's RestartSec of a daemon that ended by itself. */
#define START_AGAIN (100 * SIM_MS)

uint64_t sim_latency(void)
{
	return SIM_LATENCY_MIN + sim_below(20000);
}

struct sim_packet *sim_packet_new(const void *data, size_t len, const int *fds, unsigned n_fds)
{
	struct sim_packet *k = malloc(sizeof(*k) + len);

	assert(k && n_fds <= SIO_WIRE_MAX_FDS);
	memset(k, 0, sizeof(*k));
	memcpy(k->data, data, len);
	k->len = len;
	k->n_fds = n_fds;
	for (unsigned i = 0; i < n_fds; i++)
		k->fds[i] = sim_fd_dup(fds[i]);
	return k;
}

void sim_packet_free(struct sim_packet *k)
{
	for (unsigned i = 0; i < k->n_fds; i++)
		sim_fd_close(k->fds[i]);
	free(k);
}

uint32_t sim_word(const void *data, size_t len, size_t at)
{
	uint32_t v = 0;

	if (len >= at + 4)
		memcpy(&v, (const char *)data + at, 4);
	return v;
}

uint32_t sim_node(unsigned host)
{
	return sim_host[host].node;
}

unsigned sim_host_of(uint32_t node)
{
	for (unsigned i = 0; i < sim_hosts(); i++)
		if (sim_host[i].node == node)
			return i;
	assert(!"no such node");
	return 0;
}

bool sim_host_ready(unsigned host)
{
	return sim_host[host].ready;
}

/* ---- clocks ---- */
uint64_t sim_host_clock(unsigned host)
{
	return sim_now() + sim_host[host].clock;
}

uint64_t sim_from_clock(unsigned host, uint64_t when)
{
	return when > sim_host[host].clock ? when - sim_host[host].clock : 0;
}

void sim_clock_jump(unsigned host, uint64_t ns)
{
	struct sim_host *h = &sim_host[host];

	sim_trace("host %u: clock jumps by %llu", h->node, (unsigned long long)ns);
	h->clock += ns;
	if (h->timer != UINT64_MAX) {
		h->timer = h->timer > ns ? h->timer - ns : 0;
		sim_timer_arm(h);
	}
	/* A process that sleeps until a time checks its clock again. */
	SIM_EACH_PROC(p)
	if (p->host == host && !p->dead)
		sim_notify(p);
}

/* ---- a host's life ---- */
static uint64_t round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

/* Moves RAM, windows and BARs, in another order: an address that somebody kept leads to nothing. */
static void new_layout(struct sio_topo_host *t)
{
	const uint64_t g = 1ull << 30;
	uint64_t at = (4 + sim_below(1024)) * g;

	for (unsigned i = 0; i < t->n_devices; i++) {
		at = round_up(at, SIO_TOPO_BAR_SPACE) + sim_below(16) * SIO_TOPO_BAR_SPACE;
		t->device[i].bar_base = at;
		at += SIO_TOPO_BAR_SPACE;
	}
	for (unsigned i = 0; i < t->n_adapters; i++) {
		at = round_up(at, t->adapter[i].window_size);
		at += sim_below(4) * t->adapter[i].window_size;
		t->adapter[i].window_base = at;
		at += t->adapter[i].window_size;
	}
	at = round_up(at, g);
	t->ram_base = at + sim_below(64) * g;
}

unsigned sim_host_boots(unsigned host)
{
	return sim_host[host].boot;
}

static void daemon_start(struct sim_host *h)
{
	struct sio_err err = {0};
	int rc;

	sim_alloc_fail_in = 0;
	h->timer = UINT64_MAX;
	h->later = false;
	rc = smartiod_new(sim_cluster->topology, h->node, &sim_daemon_ops, h, &h->daemon, &err);
	assert(rc == 0);
	smartiod_start(h->daemon);
}

/*
 * SIGKILL: messages that it sent to the port and that were not read are lost, as are those in
 * flight to it.
 */
static void daemon_end(struct sim_host *h)
{
	struct smartiod *daemon = h->daemon;

	h->daemon = NULL;
	h->ready = false;
	h->timer = UINT64_MAX;
	h->later = false;
	sim_irqs_drop(h);
	sim_peers_drop(h);
	sim_clients_drop(h);
	smartiod_free(daemon);
}

void sim_host_boot(unsigned host)
{
	struct sim_host *h = &sim_host[host];
	int rc;

	assert(!h->daemon && !h->powered);
	h->life++;
	/*
	 * Most machines find the same layout again: then what others kept of it leads to something
	 * else.
	 */
	if (h->boot++ > 0 && sim_chance(1, 2))
		new_layout(&sim_cluster->topology->host[host]);
	h->clock = sim_below(1000 * SIM_SECOND);
	sim_room_host = host;
	sim_alloc_fail_in = 0;
	rc = emu_room_host_up(sim_cluster->room, host);
	assert(rc == 0);
	h->powered = true;
	sim_trace("host %u boots", h->node);
	daemon_start(h);
}

/* The machine room finds the port's socket closed, as when the power is off. */
static void power_off(void *arg)
{
	struct sim_host *h = arg;

	if (sim_stopping)
		return;
	sim_trace("host %u: power off", h->node);
	emu_room_host_down(sim_cluster->room, h->index);
	h->powered = false;
	h->dying--;
	sim_room_kick();
}

bool sim_programs_outlive_hosts;

static void kill_programs(void *arg)
{
	struct sim_host *h = arg;

	SIM_EACH_PROC(p)
	{
		if (sim_programs_outlive_hosts || p->host != h->index || p->dead)
			continue;
		sim_trace("%s dies with its host", p->name);
		sim_proc_kill(p);
	}
	h->dying--;
}

void sim_host_crash(unsigned host)
{
	struct sim_host *h = &sim_host[host];

	assert(!sim_coro_current());
	if (!sim_host_alive(host))
		return;
	sim_trace("host %u crashes", h->node);
	h->dying = 2;
	daemon_end(h);
	sim_after_ordered(&h->to_port, sim_latency(), power_off, h);
	sim_after(sim_below(2 * SIM_MS), kill_programs, h);
}

void sim_daemon_kill(unsigned host)
{
	struct sim_host *h = &sim_host[host];

	assert(!sim_coro_current() && sim_outliving);
	if (!h->daemon)
		return;
	sim_trace("daemon %u is killed", h->node);
	daemon_end(h);
}

void sim_daemon_start(unsigned host)
{
	struct sim_host *h = &sim_host[host];

	if (h->daemon || !sim_host_alive(host))
		return;
	sim_trace("daemon %u is started again", h->node);
	h->life++;
	daemon_start(h);
}

static void start_again(void *arg)
{
	if (!sim_stopping)
		sim_daemon_start((unsigned)(uintptr_t)arg);
}

void sim_daemon_lost(unsigned host)
{
	if (!sim_outliving) {
		sim_host_crash(host);
		return;
	}
	sim_daemon_kill(host);
	sim_after(START_AGAIN, start_again, (void *)(uintptr_t)host);
}

bool sim_host_alive(unsigned host)
{
	const struct sim_host *h = &sim_host[host];

	return h->daemon || (sim_outliving && h->powered && !h->dying);
}

bool sim_host_off(unsigned host)
{
	const struct sim_host *h = &sim_host[host];

	return !h->daemon && !h->powered && !h->dying;
}

/* ---- drives ---- */
static uint64_t pulled[SIM_HOSTS][SIM_DRIVES]; /* when each was last; 0: never */

uint64_t sim_drive_pulled(uint32_t fdid)
{
	const struct sio_topo_host *host;
	const struct sio_topo_device *d = sio_topology_device(sim_cluster->topology, fdid, &host);

	assert(d);
	return pulled[sim_host_of(host->node)][d - host->device];
}

/* The functions of a drive go together. */
static void note_pulled(unsigned host, unsigned physical)
{
	const struct sio_topo_host *h = &sim_cluster->topology->host[host];

	for (unsigned i = 0; i < h->n_devices; i++)
		if (h->device[i].physical == physical + 1)
			pulled[host][i] = sim_now();
}

void sim_functions_gone(uint32_t physical)
{
	const struct sio_topo_host *host;
	const struct sio_topo_device *d =
		sio_topology_device(sim_cluster->topology, physical, &host);

	assert(d);
	note_pulled(sim_host_of(host->node), (unsigned)(d - host->device));
}

bool sim_drive_move(unsigned host, unsigned device, bool in)
{
	int rc;

	assert(device < SIM_DRIVES);
	sim_room_host = host;
	sim_alloc_fail_in = 0;
	rc = emu_room_device(sim_cluster->room, host, device, in);
	assert(rc == 0 || rc == -EALREADY);
	if (rc < 0)
		return false;
	sim_trace("node %u: drive %u is %s", sim_node(host), device,
		  in ? "put back" : "pulled out");
	if (!in) {
		pulled[host][device] = sim_now();
		note_pulled(host, device);
	}
	sim_room_kick();
	return true;
}

/* ---- the cluster's ---- */
static void give_up(int rc, const struct sio_err *err)
{
	if (rc == 0)
		return;
	fprintf(stderr, "%s\n", err->text);
	abort();
}

static const struct sim_edge edge = {
	.clock = sim_host_clock,
	.from_clock = sim_from_clock,
	.conn_open = sim_conn_open,
	.conn_send = sim_conn_send,
	.conn_recv = sim_conn_recv,
	.conn_readable = sim_conn_readable,
	.conn_ended = sim_conn_ended,
	.conn_close = sim_conn_close,
	.owner_closed = sim_owner_closed,
	.irq_ready = sim_irq_ready,
	.irq_gone = sim_irq_gone,
};

void sim_cluster_start(const char *text)
{
	struct fabric_params params;
	struct sio_err err = {0};

	sim_stopping = false;
	sim_edge = &edge;
	fabric_access = &sim_access;
	memset(pulled, 0, sizeof(pulled));
	sim_windows_start();
	sim_cluster = calloc(1, sizeof(*sim_cluster));
	assert(sim_cluster);
	give_up(sio_topofile_parse("sim", text, strlen(text), &sim_cluster->topology, &err), &err);
	assert(sim_cluster->topology->n_hosts <= SIM_HOSTS);
	sim_access_params(&params);
	fabric_start(sim_cluster->topology, &params, sim_random());
	give_up(emu_room_new(sim_cluster->topology,
			     sim_outliving ? sim_room_outliving() : &sim_room_ops, NULL,
			     &sim_cluster->room, &err),
		&err);
	if (sim_unchecked)
		emu_room_check_every(sim_cluster->room, 1u << 31);
	memset(sim_host, 0, sizeof(sim_host));
	for (unsigned i = 0; i < sim_hosts(); i++) {
		sim_host[i].index = i;
		sim_host[i].node = sim_cluster->topology->host[i].node;
	}
	for (unsigned i = 0; i < sim_hosts(); i++)
		sim_host_boot(i);
	sim_room_start();
}

void sim_cluster_stop(void)
{
	sim_stopping = true;
	for (unsigned i = 0; i < sim_hosts(); i++)
		smartiod_free(sim_host[i].daemon);
	emu_room_free(sim_cluster->room);
	fabric_end();
	sio_topology_free(sim_cluster->topology);
	sim_clients_free();
	sim_peers_free();
	free(sim_cluster);
	sim_cluster = NULL;
}
