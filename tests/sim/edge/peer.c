/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections between daemons, as smartiod/live/peer.c makes them: the end that connects is
 * notified at once, the other end when its first packet comes; a second connection of a daemon is
 * refused until the first is closed. A connection can break for both ends, each of which learns it
 * later.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "edge/edge.h"

/* Ends 0 (who connected) and 1. */
struct sim_wire {
	struct sim_wire *next;
	struct sim_host *host[2];
	uint64_t life[2];
	bool told[2];	     /* that daemon was notified that the connection is up */
	bool broken;	     /* nothing passes any more */
	bool closed;	     /* one end has closed it */
	uint64_t channel[2]; /* to that end */
	unsigned flying;     /* packets in flight */
};

static struct sim_wire *wires;
#define LONGEST_NOTIFICATION (20 * SIM_MS) /* of a link to programs on both sides */
static uint64_t breaks[SIM_HOSTS][SIM_HOSTS], gone[SIM_HOSTS][SIM_HOSTS];
static uint64_t lost_last[SIM_HOSTS][SIM_HOSTS]; /* when either was counted last; 0: never */
uint64_t sim_peer_delay;
void (*sim_peer_says)(unsigned host, void *data, size_t len);
bool (*sim_peer_hears)(unsigned host, uint32_t node, const void *data, size_t len);

static uint64_t latency(void)
{
	uint64_t extra = sim_peer_delay ? sim_below(sim_peer_delay) : 0;

	sim_did.delay += extra > 0;
	return extra + sim_latency();
}

static unsigned end_of(const struct sim_wire *w, const struct sim_host *h)
{
	return w->host[1] == h;
}

/* The daemon that had this end is still the one that runs. */
static bool same_life(const struct sim_wire *w, unsigned end)
{
	return w->host[end]->daemon && w->host[end]->life == w->life[end];
}

static struct sim_wire **slot(const struct sim_wire *w, unsigned end)
{
	return &w->host[end]->peer[w->host[!end]->index];
}

static void end_down(struct sim_wire *w, unsigned end)
{
	struct sim_host *h = w->host[end];

	*slot(w, end) = NULL;
	w->broken = true;
	sim_trace("daemon %u: peer %u down", h->node, w->host[!end]->node);
	smartiod_peer_down(h->daemon, w->host[!end]->node);
}

static void hung_up(struct sim_wire *w, unsigned end)
{
	if (!sim_stopping && same_life(w, end) && *slot(w, end) == w)
		end_down(w, end);
}

static void hung_up_0(void *arg)
{
	hung_up(arg, 0);
}

static void hung_up_1(void *arg)
{
	hung_up(arg, 1);
}

/* Notifies that end that the connection is over, after what was sent to it before. */
static void hang_up(struct sim_wire *w, unsigned end)
{
	sim_after_ordered(&w->channel[end], latency(), end ? hung_up_1 : hung_up_0, w);
}

static void end_up(struct sim_wire *w, unsigned end)
{
	w->told[end] = true;
	sim_trace("daemon %u: peer %u up", w->host[end]->node, w->host[!end]->node);
	smartiod_peer_up(w->host[end]->daemon, w->host[!end]->node);
}

/* The end that connects: up at once, or refused because no daemon listens. */
static void connected(void *arg)
{
	struct sim_wire *w = arg;

	if (sim_stopping || !same_life(w, 0) || *slot(w, 0) != w)
		return;
	if (w->broken)
		end_down(w, 0);
	else
		end_up(w, 0);
}

static void first_packet(void *arg)
{
	struct sim_wire *w = arg, *old;

	if (sim_stopping || w->broken || !same_life(w, 1))
		return;
	old = *slot(w, 1);
	if (old && !old->broken && !old->closed) {
		w->broken = true;
		hang_up(w, 0);
		return;
	}
	*slot(w, 1) = w;
	if (old && old->told[end_of(old, w->host[1])])
		smartiod_peer_down(w->host[1]->daemon, w->host[0]->node);
	/* Its reaction may have been to close the connection. */
	if (*slot(w, 1) == w && !w->broken)
		end_up(w, 1);
}

void sim_peer_connect(void *ctx, uint32_t node)
{
	struct sim_host *h = ctx, *o = &sim_host[sim_host_of(node)];
	struct sim_wire *w;

	if (h->peer[o->index])
		return;
	w = calloc(1, sizeof(*w));
	assert(w);
	w->next = wires;
	wires = w;
	w->host[0] = h;
	w->host[1] = o;
	w->life[0] = h->life;
	w->life[1] = o->life;
	w->broken = !o->daemon;
	h->peer[o->index] = w;
	sim_after_ordered(&w->channel[0], latency(), connected, w);
	sim_after_ordered(&w->channel[1], latency(), first_packet, w);
}

static void peer_deliver(void *arg)
{
	struct sim_packet *k = arg;
	struct sim_wire *w = k->wire;
	unsigned end = end_of(w, k->host);

	w->flying--;
	if (sim_stopping || w->broken || !same_life(w, end) || *slot(w, end) != w ||
	    !w->told[end]) {
		sim_packet_free(k);
		return;
	}
	if (sim_peer_hears &&
	    sim_peer_hears(k->host->index, w->host[!end]->node, k->data, k->len)) {
		sim_packet_free(k);
		return;
	}
	sim_trace("daemon %u <- daemon %u type %u error %u", k->host->node, w->host[!end]->node,
		  sim_word(k->data, k->len, 4), sim_word(k->data, k->len, 12));
	smartiod_peer_message(k->host->daemon, w->host[!end]->node, k->data, k->len);
	free(k);
}

void sim_peer_send(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct sim_host *h = ctx;
	struct sim_wire *w = h->peer[sim_host_of(node)];
	struct sim_packet *k;
	unsigned to;

	if (!w || !w->told[end_of(w, h)])
		return;
	to = !end_of(w, h);
	k = sim_packet_new(msg, len, NULL, 0);
	k->host = w->host[to];
	k->wire = w;
	if (sim_peer_says)
		sim_peer_says(h->index, k->data, k->len);
	w->flying++;
	sim_after_ordered(&w->channel[to], latency(), peer_deliver, k);
}

bool sim_peer_settled(unsigned a, unsigned b)
{
	const struct sim_wire *w = sim_host[a].peer[b];

	return w && w == sim_host[b].peer[a] && w->told[0] && w->told[1] && !w->broken &&
	       !w->closed && w->flying == 0;
}

static void count(uint64_t what[SIM_HOSTS][SIM_HOSTS], unsigned a, unsigned b)
{
	what[a][b]++;
	lost_last[a][b] = lost_last[b][a] = sim_now();
}

static void count_break(const struct sim_wire *w)
{
	count(breaks, w->host[0]->index, w->host[1]->index);
}

static void count_unlinked(void *arg)
{
	uintptr_t pair = (uintptr_t)arg;

	count(breaks, pair / SIM_HOSTS, pair % SIM_HOSTS);
}

/* Once more when all have heard of it: a borrow that was granted before may be reported later. */
void sim_peer_unlinked(unsigned a, unsigned b)
{
	void *pair = (void *)(uintptr_t)(a * SIM_HOSTS + b);

	count_unlinked(pair);
	sim_after(LONGEST_NOTIFICATION, count_unlinked, pair);
}

static void count_gone(void *arg)
{
	uintptr_t pair = (uintptr_t)arg;

	count(gone, pair / SIM_HOSTS, pair % SIM_HOSTS);
}

void sim_path_gone(unsigned a, unsigned b)
{
	void *pair = (void *)(uintptr_t)(a * SIM_HOSTS + b);

	count_gone(pair);
	sim_after(LONGEST_NOTIFICATION, count_gone, pair);
}

uint64_t sim_paths_gone(unsigned a, unsigned b)
{
	return gone[a][b] + gone[b][a];
}

uint64_t sim_peer_breaks(unsigned a, unsigned b)
{
	return a == b ? sim_host[a].boot : breaks[a][b] + breaks[b][a];
}

uint64_t sim_peer_lost_last(unsigned a, unsigned b)
{
	return lost_last[a][b];
}

/* Told by this end: the other one learns it, this one knows. What is under way still arrives. */
static void close_end(struct sim_wire *w, unsigned end)
{
	*slot(w, end) = NULL;
	count_break(w);
	w->closed = true;
	if (!w->broken)
		hang_up(w, !end);
}

void sim_peer_close(void *ctx, uint32_t node)
{
	struct sim_host *h = ctx;
	struct sim_wire *w = h->peer[sim_host_of(node)];

	if (!w)
		return;
	sim_trace("daemon %u cuts peer %u", h->node, node);
	close_end(w, end_of(w, h));
}

void sim_peers_drop(struct sim_host *h)
{
	for (unsigned i = 0; i < sim_hosts(); i++)
		if (h->peer[i])
			close_end(h->peer[i], end_of(h->peer[i], h));
}

void sim_peer_cut(unsigned a, unsigned b)
{
	struct sim_wire *w = sim_host[a].peer[b] ? sim_host[a].peer[b] : sim_host[b].peer[a];

	if (!w || w->broken)
		return;
	sim_trace("room: connection of daemons %u and %u breaks", w->host[0]->node,
		  w->host[1]->node);
	sim_did.cut++;
	w->broken = true;
	count_break(w);
	hang_up(w, 0);
	hang_up(w, 1);
}

void sim_peers_free(void)
{
	while (wires) {
		struct sim_wire *w = wires;

		wires = w->next;
		free(w);
	}
	memset(breaks, 0, sizeof(breaks));
	memset(lost_last, 0, sizeof(lost_last));
	sim_peer_delay = 0;
}
