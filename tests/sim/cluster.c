/* SPDX-License-Identifier: BSD-2-Clause */
/* Daemons and machine room of the simulated cluster, and the messages between everybody. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim.h"
#include "topofile/topofile.h"
#include "wire/wire.h"

struct sim_cluster *sim_cluster;
static bool stopping;

/* A packet on its way, with descriptors of its own. */
struct packet {
	struct packet *next;
	unsigned host;
	uint32_t from;
	uint64_t client;
	struct sim_conn *conn;
	size_t len;
	unsigned n_fds;
	int fds[SIO_WIRE_MAX_FDS];
	unsigned char data[] __attribute__((aligned(8)));
};

struct sim_conn {
	uint64_t client;
	unsigned host;
	struct sim_proc *proc;
	bool cut, closed;
	uint64_t up, down; /* channels: keep the order */
	struct packet *first, **last;
	struct sim_conn *next;
};

/* What the tables of daemon and room get as context: which host. */
struct edge {
	unsigned host;
	uint32_t node;
	uint64_t to_port, from_port;
	uint64_t to_peer[SIM_HOSTS];
	uint64_t timer;
	bool link[SIM_HOSTS];
};

static struct edge edges[SIM_HOSTS];
static struct sim_conn *conns;
static uint64_t last_client, room_delay;
static struct {
	unsigned host;
	uint32_t kind;
	unsigned count;
} probe;

static uint64_t latency(void)
{
	return 1000 + sim_random() % 20000;
}

static struct packet *packet_new(const void *data, size_t len, const int *fds, unsigned n_fds)
{
	struct packet *k = calloc(1, sizeof(*k) + len);

	assert(k && n_fds <= SIO_WIRE_MAX_FDS);
	memcpy(k->data, data, len);
	k->len = len;
	k->n_fds = n_fds;
	for (unsigned i = 0; i < n_fds; i++)
		k->fds[i] = sim_fd_dup(fds[i]);
	return k;
}

static void packet_free(struct packet *k)
{
	for (unsigned i = 0; i < k->n_fds; i++)
		sim_fd_close(k->fds[i]);
	free(k);
}

static unsigned host_of(uint32_t node)
{
	for (unsigned i = 0; i < sim_cluster->topology->n_hosts; i++)
		if (sim_cluster->topology->host[i].node == node)
			return i;
	assert(!"no such node");
	return 0;
}

static uint32_t word(const void *data, size_t len, size_t at)
{
	uint32_t v = 0;

	if (len >= at + 4)
		memcpy(&v, (const char *)data + at, 4);
	return v;
}

/* ---- daemon -> port -> daemon ---- */
static void port_deliver(void *arg)
{
	struct packet *k = arg;

	emu_room_request(sim_cluster->room, k->host, k->data, k->len, k->fds, k->n_fds);
	free(k);
}

static void daemon_port(void *ctx, const void *req, size_t len, const int *fds, unsigned n_fds)
{
	struct edge *e = ctx;
	struct packet *k = packet_new(req, len, fds, n_fds);

	k->host = e->host;
	sim_trace("port %u <- op %u", e->node, word(req, len, 4));
	sim_after_ordered(&e->to_port, latency(), port_deliver, k);
}

static void port_answer(void *arg)
{
	struct packet *k = arg;

	if (stopping) {
		packet_free(k);
		return;
	}
	sim_trace("port %u -> op %u error %d", edges[k->host].node, word(k->data, k->len, 4),
		  (int)word(k->data, k->len, 12));
	smartiod_port_event(sim_cluster->daemon[k->host], k->data, k->len, k->fds, k->n_fds);
	free(k);
}

static void room_send(void *ctx, unsigned host, const void *evt, size_t len, const int *fds,
		      unsigned n_fds)
{
	struct packet *k;

	(void)ctx;
	if (probe.kind && word(evt, len, 4) == SIO_OP_LIST) {
		const struct sio_evt_list *l = evt;

		assert(l->h.size == sizeof(*l) && !l->more);
		probe.count = l->count;
		return;
	}
	if (word(evt, len, 4) == SIO_EV_FAULT)
		sim_cluster->faults++;
	k = packet_new(evt, len, fds, n_fds);
	k->host = host;
	sim_after_ordered(&edges[host].from_port, latency(), port_answer, k);
}

unsigned sim_port_count(unsigned host, uint32_t kind)
{
	struct sio_req_list req = {.h = {.size = sizeof(req), .op = SIO_OP_LIST}, .kind = kind};

	probe.host = host;
	probe.kind = kind;
	probe.count = ~0u;
	emu_room_request(sim_cluster->room, host, &req, sizeof(req), NULL, 0);
	probe.kind = 0;
	return probe.count;
}

/* ---- daemon <-> client ---- */
static struct sim_conn *conn_of(uint64_t client)
{
	for (struct sim_conn *c = conns; c; c = c->next)
		if (c->client == client)
			return c;
	return NULL;
}

static void client_new(void *arg)
{
	struct sim_conn *c = arg;

	sim_trace("client %llu at %u", (unsigned long long)c->client, edges[c->host].node);
	smartiod_client_new(sim_cluster->daemon[c->host], c->client, c->proc->pid);
}

int sim_conn_open(struct sim_proc *p)
{
	struct sim_conn *c;
	int fd;

	if (!sim_cluster->ready[p->host])
		return -ECONNREFUSED;
	c = calloc(1, sizeof(*c));
	assert(c);
	c->client = ++last_client;
	c->host = p->host;
	c->proc = p;
	c->last = &c->first;
	c->next = conns;
	conns = c;
	fd = sim_fd_new(SIM_CONN);
	sim_fd(fd)->conn = c;
	sim_proc_hold(p, fd);
	sim_after_ordered(&c->up, latency(), client_new, c);
	return fd;
}

static void client_deliver(void *arg)
{
	struct packet *k = arg;
	struct sim_conn *c = k->conn;

	if (c->cut || stopping) {
		packet_free(k);
		return;
	}
	sim_trace("daemon %u <- client %llu type %u", edges[c->host].node,
		  (unsigned long long)c->client, word(k->data, k->len, 4));
	smartiod_client_message(sim_cluster->daemon[c->host], c->client, k->data, k->len, k->fds,
				k->n_fds);
	free(k);
}

ssize_t sim_conn_send(struct sim_proc *p, struct sim_conn *c, const void *buf, size_t len,
		      const int *fds, unsigned n_fds)
{
	struct packet *k;

	(void)p;
	if (c->cut)
		return -EPIPE;
	k = packet_new(buf, len, fds, n_fds);
	k->conn = c;
	sim_after_ordered(&c->up, latency(), client_deliver, k);
	return (ssize_t)len;
}

static void client_receive(void *arg)
{
	struct packet *k = arg;
	struct sim_conn *c = k->conn;

	if (c->closed || stopping) {
		packet_free(k);
		return;
	}
	sim_trace("client %llu <- type %u error %u", (unsigned long long)c->client,
		  word(k->data, k->len, 4), word(k->data, k->len, 12));
	*c->last = k;
	c->last = &k->next;
	sim_notify(c->proc);
}

static void daemon_client_send(void *ctx, uint64_t client, const void *msg, size_t len,
			       const int *fds, unsigned n_fds)
{
	struct sim_conn *c = conn_of(client);
	struct packet *k;

	(void)ctx;
	assert(c && !c->cut);
	if (c->closed)
		return;
	k = packet_new(msg, len, fds, n_fds);
	k->conn = c;
	sim_after_ordered(&c->down, latency(), client_receive, k);
}

static void client_cut(void *arg)
{
	struct sim_conn *c = arg;

	c->cut = true;
	if (!c->closed)
		sim_notify(c->proc);
}

static void daemon_client_close(void *ctx, uint64_t client)
{
	struct sim_conn *c = conn_of(client);

	(void)ctx;
	assert(c);
	sim_trace("client %llu cut off", (unsigned long long)client);
	sim_after_ordered(&c->down, latency(), client_cut, c);
}

ssize_t sim_conn_recv(struct sim_proc *p, struct sim_conn *c, void *buf, size_t len, int *fds,
		      unsigned max_fds, unsigned *ret_fds)
{
	struct packet *k = c->first;
	ssize_t n;

	if (!k)
		return c->cut ? 0 : -EAGAIN;
	assert(k->len <= len && k->n_fds <= max_fds);
	c->first = k->next;
	if (!c->first)
		c->last = &c->first;
	memcpy(buf, k->data, k->len);
	for (unsigned i = 0; i < k->n_fds; i++) {
		fds[i] = k->fds[i];
		sim_proc_hold(p, fds[i]);
	}
	if (ret_fds)
		*ret_fds = k->n_fds;
	n = (ssize_t)k->len;
	free(k);
	return n;
}

bool sim_conn_readable(const struct sim_conn *c)
{
	return c->first || c->cut;
}

static void client_gone(void *arg)
{
	struct sim_conn *c = arg;

	if (c->cut || stopping)
		return;
	c->cut = true;
	sim_trace("client %llu gone", (unsigned long long)c->client);
	smartiod_client_gone(sim_cluster->daemon[c->host], c->client);
}

void sim_conn_close(struct sim_conn *c)
{
	struct packet *k;

	c->closed = true;
	while ((k = c->first)) {
		c->first = k->next;
		packet_free(k);
	}
	if (!stopping)
		sim_after_ordered(&c->up, latency(), client_gone, c);
}

/* ---- daemon <-> daemon ---- */
static void peer_up(void *arg)
{
	struct packet *k = arg;

	edges[k->host].link[host_of(k->from)] = true;
	sim_trace("daemon %u: peer %u up", edges[k->host].node, k->from);
	smartiod_peer_up(sim_cluster->daemon[k->host], k->from);
	free(k);
}

static void daemon_peer_connect(void *ctx, uint32_t node)
{
	struct edge *e = ctx;
	struct edge *o = &edges[host_of(node)];
	struct packet *k = packet_new("", 0, NULL, 0);

	k->host = e->host;
	k->from = node;
	sim_after_ordered(&o->to_peer[e->host], latency(), peer_up, k);
	k = packet_new("", 0, NULL, 0);
	k->host = o->host;
	k->from = e->node;
	sim_after_ordered(&e->to_peer[o->host], latency(), peer_up, k);
}

static void peer_deliver(void *arg)
{
	struct packet *k = arg;

	if (stopping || !edges[k->host].link[host_of(k->from)]) {
		free(k);
		return;
	}
	sim_trace("daemon %u <- daemon %u type %u error %u", edges[k->host].node, k->from,
		  word(k->data, k->len, 4), word(k->data, k->len, 12));
	smartiod_peer_message(sim_cluster->daemon[k->host], k->from, k->data, k->len);
	free(k);
}

static void daemon_peer_send(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct edge *e = ctx;
	struct packet *k = packet_new(msg, len, NULL, 0);

	k->host = host_of(node);
	k->from = e->node;
	sim_after_ordered(&e->to_peer[k->host], latency(), peer_deliver, k);
}

static void daemon_peer_close(void *ctx, uint32_t node)
{
	struct edge *e = ctx;

	sim_trace("daemon %u cuts peer %u", e->node, node);
	e->link[host_of(node)] = false;
}

/* ---- the rest of both tables ---- */
static void any_close(void *ctx, int fd)
{
	(void)ctx;
	sim_fd_close(fd);
}

/* Nothing here shares an interrupt yet; asking for one is refused. */
static int daemon_irq_watch(void *ctx, int fd, uint64_t irq)
{
	(void)ctx;
	(void)fd;
	(void)irq;
	return -EOPNOTSUPP;
}

static uint64_t any_now(void *ctx)
{
	(void)ctx;
	return sim_now();
}

static uint64_t any_random(void *ctx)
{
	(void)ctx;
	return sim_random();
}

static void timer_fires(void *arg)
{
	struct edge *e = arg;

	if (stopping || sim_now() < e->timer)
		return;
	e->timer = UINT64_MAX;
	smartiod_timer(sim_cluster->daemon[e->host]);
}

static void daemon_timer(void *ctx, uint64_t when)
{
	struct edge *e = ctx;

	if (when == e->timer)
		return;
	e->timer = when;
	if (when != UINT64_MAX)
		sim_after(when > sim_now() ? when - sim_now() : 0, timer_fires, e);
}

static void daemon_ready(void *ctx)
{
	struct edge *e = ctx;

	sim_trace("daemon %u ready", e->node);
	sim_cluster->ready[e->host] = true;
}

static void daemon_fatal(void *ctx, const char *text)
{
	struct edge *e = ctx;

	fprintf(stderr, "daemon %u cannot go on: %s\n", e->node, text);
	abort();
}

static void daemon_log(void *ctx, int level, const char *text)
{
	struct edge *e = ctx;

	sim_trace("daemon %u log %d: %s", e->node, level, text);
}

static const struct smartiod_ops daemon_ops = {
	.port = daemon_port,
	.client_send = daemon_client_send,
	.client_close = daemon_client_close,
	.peer_connect = daemon_peer_connect,
	.peer_send = daemon_peer_send,
	.peer_close = daemon_peer_close,
	.close = any_close,
	.irq_watch = daemon_irq_watch,
	.now = any_now,
	.timer = daemon_timer,
	.random = any_random,
	.ready = daemon_ready,
	.fatal = daemon_fatal,
	.log = daemon_log,
};

static int room_mem_new(void *ctx, const char *name, uint64_t size, struct emu_mem *ret)
{
	int memfd = memfd_create(name, MFD_CLOEXEC), fd;

	(void)ctx;
	assert(memfd >= 0 && ftruncate(memfd, (off_t)size) == 0);
	fd = sim_fd_new(SIM_MEM);
	sim_fd(fd)->memfd = memfd;
	ret->fd = fd;
	ret->size = size;
	ret->data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	assert(ret->data != MAP_FAILED);
	return 0;
}

static int room_mem_seal(void *ctx, struct emu_mem *m)
{
	(void)ctx;
	sim_fd(m->fd)->sealed = true;
	return 0;
}

static void room_mem_free(void *ctx, struct emu_mem *m)
{
	(void)ctx;
	munmap(m->data, m->size);
	sim_fd_close(m->fd);
}

static int room_owner_new(void *ctx, unsigned host, uint64_t owner, int *ret_fd)
{
	(void)ctx;
	*ret_fd = sim_fd_new(SIM_OWNER);
	sim_fd(*ret_fd)->host = host;
	sim_fd(*ret_fd)->id = owner;
	return 0;
}

static void room_owner_free(void *ctx, unsigned host, uint64_t owner)
{
	(void)ctx;
	(void)host;
	(void)owner;
}

struct hup {
	unsigned host;
	uint64_t owner;
};

static void owner_hup(void *arg)
{
	struct hup *h = arg;

	if (!stopping) {
		sim_trace("owner of host %u closed", edges[h->host].node);
		emu_room_owner_hup(sim_cluster->room, h->host, h->owner);
	}
	free(h);
}

void sim_owner_closed(unsigned host, uint64_t owner)
{
	struct hup *h = malloc(sizeof(*h));

	assert(h);
	h->host = host;
	h->owner = owner;
	sim_after(latency(), owner_hup, h);
}

static int room_event_new(void *ctx, int *ret_fd)
{
	(void)ctx;
	*ret_fd = sim_fd_new(SIM_EVENT);
	return 0;
}

static int room_event_signal(void *ctx, int fd)
{
	(void)ctx;
	sim_fd(fd)->count++;
	sim_notify(NULL);
	return 0;
}

static int room_dup(void *ctx, int fd)
{
	(void)ctx;
	return sim_fd_dup(fd);
}

/* Devices of the simulator are stepped by its clock: they never sleep. */
static int room_watch_new(void *ctx, unsigned host, uint64_t watch, uint32_t kind, int fd,
			  uint64_t address, uint64_t length)
{
	(void)ctx;
	(void)host;
	(void)watch;
	(void)kind;
	(void)fd;
	(void)address;
	(void)length;
	return -EOPNOTSUPP;
}

static void room_watch_free(void *ctx, unsigned host, uint64_t watch)
{
	(void)ctx;
	(void)host;
	(void)watch;
	assert(!"there are none");
}

static void room_log(void *ctx, const char *text)
{
	(void)ctx;
	sim_trace("room: %s", text);
	if (strstr(text, "fatal"))
		sim_cluster->fatal++;
}

static const struct emu_ops room_ops = {
	.mem_new = room_mem_new,
	.mem_seal = room_mem_seal,
	.mem_free = room_mem_free,
	.owner_new = room_owner_new,
	.owner_free = room_owner_free,
	.event_new = room_event_new,
	.event_signal = room_event_signal,
	.dup = room_dup,
	.close = any_close,
	.watch_new = room_watch_new,
	.watch_free = room_watch_free,
	.send = room_send,
	.now = any_now,
	.random = any_random,
	.log = room_log,
};

/* The devices look at their doorbells: often while they find work, seldom when not. */
static void room_step(void *arg)
{
	unsigned work;

	(void)arg;
	if (stopping)
		return;
	work = emu_room_step(sim_cluster->room, 4);
	if (work)
		sim_trace("devices did %u", work);
	room_delay = work ? 200 : room_delay < 20000 ? room_delay * 2 : 20000;
	sim_after(room_delay, room_step, NULL);
}

void sim_cluster_start(const char *text)
{
	struct sio_err err = {0};
	int rc;

	stopping = false;
	last_client = 0;
	room_delay = 200;
	sim_cluster = calloc(1, sizeof(*sim_cluster));
	assert(sim_cluster);
	rc = sio_topofile_parse("sim", text, strlen(text), &sim_cluster->topology, &err);
	if (rc < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	rc = emu_room_new(sim_cluster->topology, &room_ops, NULL, &sim_cluster->room, &err);
	if (rc < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	memset(edges, 0, sizeof(edges));
	for (unsigned i = 0; i < sim_cluster->topology->n_hosts; i++) {
		edges[i].host = i;
		edges[i].node = sim_cluster->topology->host[i].node;
		edges[i].timer = UINT64_MAX;
		rc = smartiod_new(sim_cluster->topology, edges[i].node, &daemon_ops, &edges[i],
				  &sim_cluster->daemon[i], &err);
		assert(rc == 0);
	}
	for (unsigned i = 0; i < sim_cluster->topology->n_hosts; i++) {
		rc = emu_room_host_up(sim_cluster->room, i);
		assert(rc == 0);
		smartiod_start(sim_cluster->daemon[i]);
	}
	sim_after(room_delay, room_step, NULL);
}

void sim_cluster_stop(void)
{
	stopping = true;
	for (unsigned i = 0; i < sim_cluster->topology->n_hosts; i++)
		smartiod_free(sim_cluster->daemon[i]);
	emu_room_free(sim_cluster->room);
	sio_topology_free(sim_cluster->topology);
	while (conns) {
		struct sim_conn *c = conns;

		conns = c->next;
		free(c);
	}
	free(sim_cluster);
	sim_cluster = NULL;
}
