/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts of the tests' world, and what their daemons may do. The ports are in port.c. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port.h"
#include "world_queue.h"

/* ---- the daemons' operations ---- */

static unsigned host_of(const struct world *w, uint32_t node)
{
	for (unsigned i = 0; i < w->n_hosts; i++)
		if (w->host[i].node == node)
			return i;
	assert(!"a node of the world");
	return 0;
}

static void op_port(void *ctx, const void *req, size_t len, const int *fds, unsigned n_fds)
{
	struct world_host *h = ctx;

	for (unsigned i = 0; i < n_fds; i++)
		assert(fds[i] >= 0 && h->w->fd_open[fds[i]]);
	h->w->port_fds = n_fds;
	world_port_request(h->w, h->index, req, len);
}

static struct world_client *client_of(struct world *w, unsigned host, uint64_t number)
{
	for (unsigned i = 0; i < w->n_clients; i++)
		if (w->client[i].host == host && w->client[i].number == number)
			return &w->client[i];
	assert(!"a client of the world");
	return NULL;
}

static void op_client_send(void *ctx, uint64_t client, const void *msg, size_t len, const int *fds,
			   unsigned n_fds)
{
	struct world_host *h = ctx;
	struct world_client *c = client_of(h->w, h->index, client);
	struct world_message *m = world_calloc(1, sizeof(*m));
	const struct sio_msg *hdr = msg;

	assert(m && c->connected && len >= sizeof(*hdr) && len <= sizeof(m->data));
	assert(sio_from_le32(hdr->size) == len && n_fds <= 4);
	for (unsigned i = 0; i < n_fds; i++)
		assert(fds[i] >= 0 && h->w->fd_open[fds[i]]);
	m->type = sio_from_le32(hdr->type);
	m->id = sio_from_le32(hdr->id);
	m->error = sio_from_le32(hdr->error);
	m->len = len;
	m->n_fds = n_fds;
	memcpy(m->data, msg, len);
	assert(c->n_messages < WORLD_MESSAGES);
	c->message[c->n_messages++] = m;
	if (h->w->on_message)
		h->w->on_message(h->w, c, m);
	if (m->type == SIO_MSG_HELLO && !m->error)
		c->owner = sio_from_le64(((struct sio_rep_hello *)m->data)->owner);
}

static void op_client_close(void *ctx, uint64_t client)
{
	struct world_host *h = ctx;
	struct world_client *c = client_of(h->w, h->index, client);

	assert(c->connected);
	c->connected = false;
	c->cut = true;
}

static void op_peer_connect(void *ctx, uint32_t node)
{
	struct world_host *h = ctx;
	struct world *w = h->w;
	unsigned other = host_of(w, node);

	assert(node < h->node);
	if (!w->host[other].daemon || !w->host[other].ready) {
		world_push(w, TO_PEER_DOWN, h->index, other, NULL, 0);
		return;
	}
	/* The other end has what it had, until it hears of this one. */
	w->epoch[h->index][other] = ++w->next_epoch;
	w->open[h->index][other] = true;
	world_push(w, TO_PEER_UP, h->index, other, NULL, 0)->epoch = w->next_epoch;
	world_push(w, TO_PEER_UP, other, h->index, NULL, 0)->epoch = w->next_epoch;
}

static void op_peer_send(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct world_host *h = ctx;
	struct world *w = h->w;
	unsigned other = host_of(w, node);

	assert(len >= sizeof(struct sio_msg) && len <= SIO_WIRE_MAX);
	if (sio_from_le32(((const struct sio_msg *)msg)->type) == SIO_PEER_DEVICES)
		w->announced[h->index][other]++;
	if (w->open[h->index][other] && !w->drop_peer_messages)
		world_push(w, TO_PEER_MESSAGE, other, h->index, msg, len)->epoch =
			w->epoch[h->index][other];
}

static void op_peer_close(void *ctx, uint32_t node)
{
	struct world_host *h = ctx;
	struct world *w = h->w;
	unsigned other = host_of(w, node);

	if (!w->open[h->index][other])
		return;
	w->open[h->index][other] = w->told[h->index][other] = false;
	world_push(w, TO_PEER_DOWN, other, h->index, NULL, 0)->epoch = w->epoch[h->index][other];
}

static void op_close(void *ctx, int fd)
{
	struct world_host *h = ctx;

	assert(fd >= 0 && fd < WORLD_FDS && h->w->fd_open[fd]);
	h->w->fd_open[fd] = false;
}

static uint64_t op_now(void *ctx)
{
	return ((struct world_host *)ctx)->w->now;
}

static void op_timer(void *ctx, uint64_t when)
{
	((struct world_host *)ctx)->timer_at = when;
}

static void op_later(void *ctx)
{
	struct world_host *h = ctx;

	assert(!h->later);
	h->later = true;
}

static uint64_t op_random(void *ctx)
{
	/* Apart from the orders of packets, which a seed of 0 leaves as they are. */
	return ++((struct world_host *)ctx)->w->randoms * 0x9e3779b97f4a7c15ULL;
}

static void send_path(struct world *w, unsigned host, unsigned peer, unsigned adapter, bool up)
{
	struct sio_evt_link evt = {
		.adapter = adapter,
		.peer_adapter = adapter,
		.peer_node = w->host[peer].node,
		.state = up ? SIO_LINK_UP : SIO_LINK_DOWN,
		.generation = up ? w->host[peer].boot_generation : 0,
		.turn = w->turn,
	};

	world_port_event(w, host, SIO_EV_LINK, 0, &evt, sizeof(evt));
}

void world_cable(struct world *w, unsigned host, unsigned adapter, bool up)
{
	struct sio_evt_link evt = {
		.adapter = adapter,
		.peer_adapter = adapter,
		.peer_node = w->host[host].node,
		.state = up ? SIO_LINK_UP : SIO_LINK_DOWN,
		.generation = up ? w->host[host].boot_generation : 0,
	};

	world_port_event(w, host, SIO_EV_LINK, 0, &evt, sizeof(evt));
}

static void send_link(struct world *w, unsigned host, unsigned peer, bool up)
{
	for (unsigned i = 0; i < w->n_adapters; i++)
		send_path(w, host, peer, i, up && !(w->down[host][peer] >> i & 1));
}

static int op_irq_watch(void *ctx, int fd, uint64_t irq)
{
	struct world_host *h = ctx;
	struct world *w = h->w;

	assert(fd >= 0 && w->fd_open[fd]);
	if (w->n_watches == WORLD_WATCHES)
		return -ENOSPC;
	w->watch[w->n_watches++] = (struct world_watch){h->index, irq};
	return 0;
}

static void op_irq_unwatch(void *ctx, uint64_t irq)
{
	struct world_host *h = ctx;
	struct world *w = h->w;
	unsigned i = 0;

	while (i < w->n_watches && (w->watch[i].host != h->index || w->watch[i].irq != irq))
		i++;
	assert(i < w->n_watches);
	w->watch[i] = w->watch[--w->n_watches];
}

/* Its daemon's shared interrupts: nobody watches them any more. */
static void forget_watches(struct world *w, unsigned host)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->n_watches; i++)
		if (w->watch[i].host != host)
			w->watch[n++] = w->watch[i];
	w->n_watches = n;
}

static void op_irq_signal(void *ctx, int fd, uint64_t count)
{
	struct world_host *h = ctx;

	assert(fd >= 0 && h->w->fd_open[fd]);
	h->w->signals++;
	h->w->signalled += count;
}

static void op_ready(void *ctx)
{
	struct world_host *h = ctx;

	assert(!h->ready);
	h->ready = true;
}

static void op_fatal(void *ctx, const char *text)
{
	struct world_host *h = ctx;

	h->fatal = true;
	snprintf(h->fatal_text, sizeof(h->fatal_text), "%s", text);
}

static void op_log(void *ctx, const char *file, int level, const char *fmt, va_list ap)
{
	struct world_host *h = ctx;

	(void)file;
	if (level > h->w->log_level)
		return;
	fprintf(stderr, "[%llu] node %u: ", (unsigned long long)h->w->steps, h->node);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

static int op_file_read(void *ctx, uint32_t uid, bool next, struct sio_topology **ret,
			struct sio_err *reterr)
{
	struct world_host *h = ctx;

	if (!h->w->file_read)
		return sio_fail(reterr, -EOPNOTSUPP, "no file");
	*ret = h->w->file_read(h->w, uid, next, reterr);
	return *ret ? 0 : reterr->code;
}

static void op_file_keep(void *ctx, const struct sio_topology *t)
{
	(void)t;
	((struct world_host *)ctx)->w->file_kept++;
}

static const char *op_file_text(void *ctx, size_t *ret_len)
{
	const struct world_host *h = ctx;
	const char *text = h->w->file_text[h->index];

	*ret_len = text ? strlen(text) : 0;
	return text;
}

static const struct smartiod_ops ops = {
	.file_read = op_file_read,
	.file_keep = op_file_keep,
	.file_text = op_file_text,
	.port = op_port,
	.client_send = op_client_send,
	.client_close = op_client_close,
	.peer_connect = op_peer_connect,
	.peer_send = op_peer_send,
	.peer_close = op_peer_close,
	.close = op_close,
	.irq_watch = op_irq_watch,
	.irq_unwatch = op_irq_unwatch,
	.irq_signal = op_irq_signal,
	.now = op_now,
	.timer = op_timer,
	.later = op_later,
	.random = op_random,
	.ready = op_ready,
	.fatal = op_fatal,
	.log = op_log,
};

/* ---- hosts ---- */

static struct sio_topology *make_topology(unsigned n_hosts)
{
	struct sio_topology *t = world_calloc(1, sizeof(*t));

	assert(t);
	t->n_hosts = n_hosts;
	t->n_switches = 1;
	t->host = world_calloc(n_hosts, sizeof(*t->host));
	t->sw = world_calloc(SIO_MAX_ADAPTERS, sizeof(*t->sw));
	assert(t->host && t->sw);
	snprintf(t->name, sizeof(t->name), "test");
	snprintf(t->sw[0].name, sizeof(t->sw[0].name), "switch");
	for (unsigned i = 0; i < n_hosts; i++) {
		struct sio_topo_host *h = &t->host[i];

		snprintf(h->name, sizeof(h->name), "host%u", i);
		h->node = 4 * (i + 1);
		h->ram_size = 256u << 20;
		h->n_adapters = 1;
		h->adapter[0].attach = SIO_ATTACH_SWITCH;
		h->adapter[0].window_size = 1ull << 30;
		h->adapter[0].lut_entries = 256;
		h->adapter[0].requesters = 32;
	}
	return t;
}

struct world *world_new(unsigned n_hosts, uint64_t seed)
{
	struct world *w = world_calloc(1, sizeof(*w));

	assert(w && n_hosts <= WORLD_HOSTS);
	w->topology = make_topology(n_hosts);
	w->n_hosts = n_hosts;
	w->n_adapters = 1;
	w->random = seed * 0x9e3779b97f4a7c15ULL;
	w->log_level = getenv("WORLD_LOG") ? atoi(getenv("WORLD_LOG")) : -1;
	for (unsigned i = 0; i < n_hosts; i++) {
		w->host[i].w = w;
		w->host[i].index = i;
		w->host[i].node = w->topology->host[i].node;
		w->host[i].timer_at = UINT64_MAX;
	}
	return w;
}

void world_adapters(struct world *w, unsigned n)
{
	assert(n <= SIO_MAX_ADAPTERS);
	w->n_adapters = n;
	w->topology->n_switches = n;
	for (unsigned i = 0; i < w->n_hosts; i++) {
		struct sio_topo_host *h = &w->topology->host[i];

		h->n_adapters = n;
		for (unsigned j = 1; j < n; j++) {
			h->adapter[j] = h->adapter[0];
			h->adapter[j].attach_index = j;
		}
	}
}

/* A daemon on a port that is there. */
static void start_daemon(struct world *w, unsigned host)
{
	struct world_host *h = &w->host[host];
	struct sio_err err;

	h->starts++;
	h->timer_at = UINT64_MAX;
	h->later = false;
	h->ready = false;
	h->fatal = false;
	assert(smartiod_new(w->topology, h->node, &ops, h, &h->daemon, &err) == 0);
	smartiod_start(h->daemon);
}

void world_boot(struct world *w, unsigned host)
{
	w->host[host].boot_generation++;
	start_daemon(w, host);
	for (unsigned i = 0; i < w->n_hosts; i++) {
		if (i == host || !w->host[i].daemon)
			continue;
		w->link[i][host] = w->link[host][i] = true;
		w->down[i][host] = w->down[host][i] = 0;
		send_link(w, i, host, true);
		send_link(w, host, i, true);
	}
}

/*
 * Two daemons lose each other. There may be two connections: one that its caller made anew, and the
 * one of before, which the other end still has. Both ends lose both.
 */
static void hang_up(struct world *w, unsigned a, unsigned b)
{
	const uint64_t epoch[] = {w->open[a][b] ? w->epoch[a][b] : 0,
				  w->open[b][a] ? w->epoch[b][a] : 0};

	for (unsigned i = 0; i < 2; i++) {
		if (epoch[i] == 0 || (i == 1 && epoch[1] == epoch[0]))
			continue;
		world_push(w, TO_PEER_DOWN, a, b, NULL, 0)->epoch = epoch[i];
		world_push(w, TO_PEER_DOWN, b, a, NULL, 0)->epoch = epoch[i];
	}
	w->open[a][b] = w->open[b][a] = false;
}

static void hang_up_all(struct world *w, unsigned host)
{
	for (unsigned i = 0; i < w->n_hosts; i++)
		if (i != host)
			hang_up(w, host, i);
}

static void end_daemon(struct world *w, unsigned host)
{
	struct world_host *h = &w->host[host];

	for (unsigned i = 0; i < w->n_clients; i++)
		if (w->client[i].host == host)
			w->client[i].connected = false;
	smartiod_free(h->daemon);
	h->daemon = NULL;
	h->ready = false;
	memset(w->told[host], 0, sizeof(w->told[host]));
}

void world_crash(struct world *w, unsigned host)
{
	end_daemon(w, host);
	for (struct world_res *r = w->res, *next; r; r = next) {
		next = r->next;
		if (r->host == host)
			world_res_free(w, r);
	}
	hang_up_all(w, host);
	for (unsigned i = 0; i < w->n_hosts; i++) {
		if (i == host || !w->link[host][i])
			continue;
		w->link[i][host] = w->link[host][i] = false;
		if (w->host[i].daemon)
			send_link(w, i, host, false);
	}
}

/* Answers that nobody reads: the descriptors in them are closed. */
static void lose_answers(struct world *w, unsigned host)
{
	for (struct world_packet *p = w->head; p; p = p->next) {
		const struct sio_evt *evt = (const void *)p->data;

		if (p->kind != TO_PORT_EVENT || p->host != host)
			continue;
		p->boot = 0;
		if (evt->op == SIO_OP_OWNER_NEW && p->n_fds > 0)
			world_owner_end(w, host, ((const struct sio_evt_owner_new *)evt)->id,
					false);
	}
}

void world_stop(struct world *w, unsigned host)
{
	assert(w->real);
	end_daemon(w, host);
	lose_answers(w, host);
	forget_watches(w, host);
	hang_up_all(w, host);
}

void world_restart(struct world *w, unsigned host)
{
	if (w->host[host].daemon)
		world_stop(w, host);
	start_daemon(w, host);
	for (unsigned i = 0; i < w->n_hosts; i++)
		if (w->link[host][i])
			send_link(w, host, i, true);
}

void world_real(struct world *w)
{
	w->real = true;
	for (unsigned i = 0; i < w->n_hosts; i++) {
		w->topology->host[i].real = true;
		w->topology->host[i].n_devices = 0;
	}
}

void world_link(struct world *w, unsigned a, unsigned b, bool up)
{
	if (w->link[a][b] == up || !w->host[a].daemon || !w->host[b].daemon)
		return;
	w->link[a][b] = w->link[b][a] = up;
	w->down[a][b] = w->down[b][a] = 0;
	send_link(w, a, b, up);
	send_link(w, b, a, up);
}

void world_cut(struct world *w, unsigned a, unsigned b)
{
	w->lossy = true;
	hang_up(w, a, b);
}

void world_hear(struct world *w, unsigned host, unsigned peer, unsigned adapter, bool up)
{
	w->lossy = true;
	send_path(w, host, peer, adapter, up);
}

void world_path(struct world *w, unsigned a, unsigned b, unsigned adapter, bool up)
{
	unsigned down = up ? w->down[a][b] & ~(1u << adapter) : w->down[a][b] | 1u << adapter;

	w->lossy = true;
	w->down[a][b] = w->down[b][a] = down;
	if (w->host[a].daemon)
		send_path(w, a, b, adapter, up);
	if (w->host[b].daemon)
		send_path(w, b, a, adapter, up);
}

void world_start(struct world *w)
{
	for (unsigned i = 0; i < w->n_hosts; i++)
		world_boot(w, i);
	world_pass(w, 100000000);
	for (unsigned i = 0; i < w->n_hosts; i++)
		assert(w->host[i].ready);
}

uint64_t world_stride(void)
{
	const char *stride = getenv("WORLD_STRIDE");

	return stride ? strtoull(stride, NULL, 10) : 1;
}

void world_free(struct world *w)
{
	struct world_packet *p;

	for (unsigned i = 0; i < w->n_hosts; i++)
		smartiod_free(w->host[i].daemon);
	while ((p = w->head)) {
		w->head = p->next;
		free(p);
	}
	while (w->res)
		world_res_free(w, w->res);
	for (unsigned i = 0; i < w->n_clients; i++)
		world_forget(&w->client[i]);
	free(w->topology->host);
	free(w->topology->sw);
	free(w->topology);
	free(w);
}
