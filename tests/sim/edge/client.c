/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs and their host's daemon: one connection each, packets in order both ways. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "edge/edge.h"

#include <uthash.h>

struct sim_conn {
	uint64_t client;
	struct sim_host *host;
	uint64_t life;
	struct sim_proc *proc; /* NULL: closed */
	struct sim_object *object;
	bool cut;	   /* the program sees the end, or the daemon does: nothing is delivered */
	bool over;	   /* the daemon has forgotten the connection */
	uint64_t up, down; /* channels: keep the order */
	struct sim_packet *first, **last;
	struct sim_packet *sent, **sent_last; /* in flight to the daemon */
	UT_hash_handle hh;
	struct sim_conn *next_all;
};

static struct sim_conn *conns; /* those that a daemon may name */
static struct sim_conn *all_conns;
static uint64_t last_client;
const struct sim_ears *sim_ears;

static bool same_life(const struct sim_conn *c)
{
	return c->host->daemon && c->host->life == c->life;
}

static struct sim_conn *conn_of(uint64_t client)
{
	struct sim_conn *c;

	HASH_FIND(hh, conns, &client, sizeof(client), c);
	return c;
}

static void forget(struct sim_conn *c)
{
	if (!c->over)
		HASH_DEL(conns, c);
	c->over = true;
}

static void client_new(void *arg)
{
	struct sim_conn *c = arg;

	if (c->over || !same_life(c))
		return;
	sim_trace("daemon %u: client %llu connects", c->host->node, (unsigned long long)c->client);
	smartiod_client_new(c->host->daemon, c->client, c->proc ? c->proc->pid : 1, 0, NULL);
}

int sim_conn_open(struct sim_proc *p)
{
	struct sim_host *h = &sim_host[p->host];
	struct sim_conn *c;
	int fd;

	if (!h->ready)
		return -ECONNREFUSED;
	c = calloc(1, sizeof(*c));
	assert(c);
	c->client = ++last_client;
	c->host = h;
	c->life = h->life;
	c->proc = p;
	c->last = &c->first;
	c->sent_last = &c->sent;
	HASH_ADD(hh, conns, client, sizeof(c->client), c);
	c->next_all = all_conns;
	all_conns = c;
	fd = sim_fd_new(SIM_CONN);
	c->object = sim_fd(fd);
	c->object->conn = c;
	sim_proc_hold(p, fd);
	sim_after_ordered(&c->up, sim_latency(), client_new, c);
	return fd;
}

/* The packet that was sent first is in flight no more. */
static void client_sent(struct sim_conn *c, struct sim_packet *k)
{
	assert(k == c->sent);
	c->sent = k->next;
	if (!c->sent)
		c->sent_last = &c->sent;
	k->conn = NULL;
}

static void client_hears(struct sim_conn *c, struct sim_packet *k)
{
	sim_trace("daemon %u <- client %llu type %u", c->host->node, (unsigned long long)c->client,
		  sim_word(k->data, k->len, 4));
	smartiod_client_message(c->host->daemon, c->client, k->data, k->len, k->fds, k->n_fds);
}

static void client_deliver(void *arg)
{
	struct sim_packet *k = arg;
	struct sim_conn *c = k->conn;

	if (!c) { /* it was received earlier */
		free(k);
		return;
	}
	client_sent(c, k);
	if (c->over || sim_stopping || !same_life(c)) {
		sim_packet_free(k);
		return;
	}
	client_hears(c, k);
	free(k);
}

void sim_client_take(void *ctx, uint64_t client)
{
	struct sim_conn *c = conn_of(client);

	(void)ctx;
	while (c && !c->over && c->sent) {
		struct sim_packet *k = c->sent;

		client_sent(c, k);
		client_hears(c, k);
	}
}

ssize_t sim_conn_send(struct sim_conn *c, const void *buf, size_t len, const int *fds,
		      unsigned n_fds)
{
	struct sim_packet *k;

	if (c->cut)
		return -EPIPE;
	k = sim_packet_new(buf, len, fds, n_fds);
	k->conn = c;
	*c->sent_last = k;
	c->sent_last = &k->next;
	if (sim_ears)
		sim_ears->said(c->proc, c->client, k->data, len);
	sim_after_ordered(&c->up, sim_latency(), client_deliver, k);
	return (ssize_t)len;
}

static void client_receive(void *arg)
{
	struct sim_packet *k = arg;
	struct sim_conn *c = k->conn;

	if (!c->proc || sim_stopping) {
		sim_packet_free(k);
		return;
	}
	sim_trace("%s: client %llu <- type %u error %u", c->proc->name,
		  (unsigned long long)c->client, sim_word(k->data, k->len, 4),
		  sim_word(k->data, k->len, 12));
	*c->last = k;
	c->last = &k->next;
	sim_object_ready(c->object);
}

void sim_client_send(void *ctx, uint64_t client, const void *msg, size_t len, const int *fds,
		     unsigned n_fds)
{
	struct sim_conn *c = conn_of(client);
	struct sim_packet *k;

	(void)ctx;
	if (!c || !c->proc)
		return;
	if (sim_ears)
		sim_ears->answered(c->proc, client, msg);
	k = sim_packet_new(msg, len, fds, n_fds);
	k->conn = c;
	sim_after_ordered(&c->down, sim_latency(), client_receive, k);
}

static void client_cut(void *arg)
{
	struct sim_conn *c = arg;

	c->cut = true;
	if (c->proc)
		sim_object_ready(c->object);
}

void sim_client_close(void *ctx, uint64_t client)
{
	struct sim_conn *c = conn_of(client);

	(void)ctx;
	if (!c)
		return;
	sim_trace("daemon %u cuts client %llu off", c->host->node, (unsigned long long)client);
	forget(c);
	sim_after_ordered(&c->down, sim_latency(), client_cut, c);
}

void sim_clients_drop(struct sim_host *h)
{
	struct sim_conn *c, *next;

	HASH_ITER (hh, conns, c, next) {
		if (c->host != h)
			continue;
		forget(c);
		sim_after_ordered(&c->down, sim_latency(), client_cut, c);
	}
}

ssize_t sim_conn_recv(struct sim_proc *p, struct sim_conn *c, void *buf, size_t len, int *fds,
		      unsigned max_fds, unsigned *ret_fds)
{
	struct sim_packet *k = c->first;
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
	if (sim_ears)
		sim_ears->heard(p, buf, k->len);
	n = (ssize_t)k->len;
	free(k);
	return n;
}

bool sim_client_lives(unsigned host, uint64_t client)
{
	const struct sim_conn *c = conn_of(client);

	return c && c->host == &sim_host[host] && same_life(c);
}

bool sim_conn_readable(const struct sim_conn *c)
{
	return c->first || c->cut;
}

/* What was sent before that may still wait. */
bool sim_conn_ended(const struct sim_conn *c)
{
	return c->cut;
}

static void client_gone(void *arg)
{
	struct sim_conn *c = arg;

	if (c->over || sim_stopping)
		return;
	forget(c);
	if (!same_life(c))
		return;
	sim_trace("daemon %u: client %llu is gone", c->host->node, (unsigned long long)c->client);
	smartiod_client_gone(c->host->daemon, c->client);
}

void sim_conn_close(struct sim_conn *c)
{
	struct sim_packet *k;

	if (c->proc && !c->cut)
		c->proc->given_up++;
	c->proc = NULL;
	c->object = NULL;
	while ((k = c->first)) {
		c->first = k->next;
		sim_packet_free(k);
	}
	if (!sim_stopping)
		sim_after_ordered(&c->up, sim_latency(), client_gone, c);
}

void sim_clients_free(void)
{
	HASH_CLEAR(hh, conns);
	while (all_conns) {
		struct sim_conn *c = all_conns;

		all_conns = c->next_all;
		free(c);
	}
	last_client = 0;
}
