/* SPDX-License-Identifier: BSD-2-Clause */
/* Time and queue of the tests' world. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "port.h"
#include "world_queue.h"

__attribute__((weak)) void *world_calloc(size_t n, size_t size)
{
	return calloc(n, size);
}

struct world_packet *world_push(struct world *w, enum packet_kind kind, unsigned host,
				unsigned from, const void *data, size_t len)
{
	struct world_packet *p = world_calloc(1, sizeof(*p) + len);

	assert(p);
	p->kind = kind;
	p->host = host;
	p->from = from;
	p->boot = w->host[host].starts;
	p->len = len;
	if (len)
		memcpy(p->data, data, len);
	if (w->tail)
		w->tail->next = p;
	else
		w->head = p;
	w->tail = p;
	return p;
}

static uint64_t next_random(struct world *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

/* Answers of a port come in any order; what one daemon says to another stays in order. */
static bool same_channel(const struct world_packet *a, const struct world_packet *b)
{
	return a->host == b->host && (a->kind == TO_PORT_EVENT) == (b->kind == TO_PORT_EVENT) &&
	       a->from == b->from;
}

static bool is_late(const struct world *w, const struct world_packet *p)
{
	return w->late && p->kind == TO_PORT_EVENT &&
	       ((const struct sio_evt *)p->data)->op == w->late;
}

static struct world_packet *pop(struct world *w)
{
	struct world_packet **pick = NULL, *p;
	unsigned n = 0;

	for (struct world_packet **at = &w->head; *at; at = &(*at)->next) {
		struct world_packet *q = w->head;

		while (q != *at && (is_late(w, q) || !same_channel(q, *at)))
			q = q->next;
		if (q != *at || is_late(w, q))
			continue;
		if (!pick || (w->random && next_random(w) % (n + 1) == 0))
			pick = at;
		n++;
		if (!w->random)
			break;
	}
	if (!pick)
		return NULL;
	p = *pick;
	*pick = p->next;
	w->tail = NULL;
	for (struct world_packet *q = w->head; q; q = q->next)
		w->tail = q;
	return p;
}

static void peer_down(struct world *w, struct world_host *h, unsigned from)
{
	w->open[h->index][from] = w->told[h->index][from] = false;
	smartiod_peer_down(h->daemon, w->host[from].node);
}

/* Who has been called hears of the connection now; one that it still had is gone with that. */
static void peer_up(struct world *w, struct world_host *h, const struct world_packet *p)
{
	bool *open = &w->open[p->host][p->from];

	if (p->epoch > w->epoch[p->host][p->from]) {
		if (w->told[p->host][p->from])
			peer_down(w, h, p->from);
		w->epoch[p->host][p->from] = p->epoch;
		*open = true;
	}
	if (p->epoch == w->epoch[p->host][p->from] && *open) {
		w->told[p->host][p->from] = true;
		smartiod_peer_up(h->daemon, w->host[p->from].node);
	}
}

static void deliver(struct world *w, struct world_packet *p)
{
	struct world_host *h = &w->host[p->host];
	bool current = h->daemon && p->boot == h->starts;
	uint32_t node = w->host[p->from].node;

	if (!current || h->fatal) {
		for (unsigned i = 0; i < p->n_fds; i++)
			w->fd_open[p->fds[i]] = false;
		return;
	}
	switch (p->kind) {
	case TO_PORT_EVENT:
		if (w->no_fds_for && ((const struct sio_evt *)p->data)->op == w->no_fds_for)
			for (unsigned i = 0; i < p->n_fds; i++) {
				w->fd_open[p->fds[i]] = false;
				p->fds[i] = -1; /* the place stays, as in port_emu.c */
			}
		smartiod_port_event(h->daemon, p->data, p->len, p->fds, p->n_fds);
		for (unsigned i = 0; i < p->n_fds; i++)
			assert(p->fds[i] == -1); /* taken or closed */
		return;
	case TO_PEER_UP:
		peer_up(w, h, p);
		return;
	case TO_PEER_DOWN:
		if (p->epoch == 0 || p->epoch == w->epoch[p->host][p->from])
			peer_down(w, h, p->from);
		return;
	case TO_PEER_MESSAGE:
		if (p->epoch == w->epoch[p->host][p->from] && w->open[p->host][p->from])
			smartiod_peer_message(h->daemon, node, p->data, p->len);
		return;
	}
}

static struct world_host *who_waits_for_later(struct world *w)
{
	for (unsigned i = 0; i < w->n_hosts; i++)
		if (w->host[i].daemon && w->host[i].later && !w->host[i].fatal)
			return &w->host[i];
	return NULL;
}

/* When nothing else is to be done; by a seed also before. */
static bool later_comes(struct world *w, struct world_host *h)
{
	return h && (!w->head || (w->random && next_random(w) % 8 == 0));
}

bool world_step(struct world *w)
{
	struct world_host *waits;
	struct world_packet *p;

	if (w->before_step)
		w->before_step(w, w->before_arg);
	waits = who_waits_for_later(w);
	p = later_comes(w, waits) ? NULL : pop(w);
	if (!p && !waits)
		return false;
	w->steps++;
	if (!p) {
		waits->later = false;
		smartiod_later(waits->daemon);
		return true;
	}
	deliver(w, p);
	free(p);
	return true;
}

void world_run(struct world *w)
{
	while (world_step(w))
		;
}

void world_tick(struct world *w, uint64_t ns)
{
	w->now += ns;
	for (unsigned i = 0; i < w->n_hosts; i++) {
		struct world_host *h = &w->host[i];

		if (!h->daemon || h->timer_at > w->now)
			continue;
		h->timer_at = UINT64_MAX;
		smartiod_timer(h->daemon);
	}
}

void world_pass(struct world *w, uint64_t ns)
{
	uint64_t end = w->now + ns;

	for (;;) {
		struct world_host *next = NULL;

		world_run(w);
		for (unsigned i = 0; i < w->n_hosts; i++)
			if (w->host[i].daemon && w->host[i].timer_at <= end &&
			    (!next || w->host[i].timer_at < next->timer_at))
				next = &w->host[i];
		if (!next)
			break;
		if (next->timer_at > w->now)
			w->now = next->timer_at;
		next->timer_at = UINT64_MAX;
		smartiod_timer(next->daemon);
	}
	w->now = end;
}

void world_port_push(struct world *w, unsigned host, const void *evt, size_t len, const int *fds,
		     unsigned n_fds)
{
	struct world_packet *p;

	if (w->deaf & 1u << host && ((const struct sio_evt *)evt)->op >= SIO_EV_LINK)
		return;
	p = world_push(w, TO_PORT_EVENT, host, host, evt, len);
	p->n_fds = n_fds;
	for (unsigned i = 0; i < n_fds; i++)
		p->fds[i] = fds[i];
}
