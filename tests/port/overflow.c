/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thousands of owners end, and the port of a peer starts again, while nobody reads events: some are
 * dropped, which is told; requests are answered, LIST says what is true, links are told again, and
 * what happens next is told as before.
 */
#include <errno.h>

#include "port.h"

#define OWNERS 2000

/* Events of host 0, in the order they came. */
struct heard {
	unsigned ends, overflows, links;
	uint32_t link[8]; /* states of the path to the peer, behind the overflow */
	uint64_t cookie;  /* of OWNER_CLOSE */
	bool answered;
	int error;
};

static uint64_t new_child(struct port_world *w, uint64_t parent)
{
	union port_packet req, answer;

	port_good(w, SIO_OP_OWNER_NEW, &req);
	req.req.owner = parent;
	req.req.flags = SIO_OWNER_CHILD;
	if (port_ask(w, 0, &req, req.req.size, &answer, NULL))
		return 0;
	return answer.words[sizeof(struct sio_evt) / 8];
}

static void send_close(struct port_world *w, struct heard *h, uint64_t owner)
{
	union port_packet req;

	port_good(w, SIO_OP_OWNER_CLOSE, &req);
	req.req.owner = owner;
	req.req.cookie = h->cookie = ++w->cookie;
	if (w->t->send(w->ctx, 0, &req, req.req.size, NULL, 0))
		port_failed(w, "OWNER_CLOSE cannot be sent");
}

/* Whoever asks through another host's port twice knows that the first request has been served. */
static void ask_peer(struct port_world *w)
{
	union port_packet req, answer;

	port_good(w, SIO_OP_INFO, &req);
	for (unsigned i = 0; i < 2; i++)
		if (port_ask(w, 1, &req, req.req.size, &answer, NULL))
			port_failed(w, "host 1 does not answer");
}

static void take(struct port_world *w, struct heard *h, const union port_packet *evt)
{
	const struct sio_evt_link *link = (const void *)evt;

	switch (evt->evt.op) {
	case SIO_OP_OWNER_CLOSE:
		h->answered = evt->evt.cookie == h->cookie;
		h->error = evt->evt.error;
		return;
	case SIO_EV_OWNER_GONE:
	case SIO_EV_OWNER_END:
		h->ends++;
		return;
	case SIO_EV_OVERFLOW:
		h->overflows++;
		if (((const struct sio_evt_overflow *)(const void *)evt)->faults)
			port_failed(w, "faults were dropped, where there are none");
		return;
	case SIO_EV_LINK:
		if (h->overflows && link->peer_node == w->thing[T_NODE1] && h->links < 8)
			h->link[h->links++] = link->state;
		return;
	}
}

/* All events until the answer to OWNER_CLOSE and @what have come. */
static bool hear(struct port_world *w, struct heard *h, bool (*what)(const struct heard *h))
{
	int fds[SIO_PORT_MAX_FDS];
	union port_packet evt;
	unsigned n;

	while (!h->answered || !what(h)) {
		if (w->t->event(w->ctx, 0, &evt, sizeof(evt), fds, &n) <= 0) {
			port_failed(w, "after %u ends and %u overflows: no event", h->ends,
				    h->overflows);
			return false;
		}
		take(w, h, &evt);
	}
	return true;
}

static bool overflow(const struct heard *h)
{
	return h->overflows;
}

static bool both_links(const struct heard *h)
{
	return h->links >= 2;
}

static bool both_ends(const struct heard *h)
{
	return h->ends >= 2;
}

static void check_list(struct port_world *w)
{
	union port_packet req, answer;

	port_good(w, SIO_OP_LIST, &req);
	((struct sio_req_list *)(void *)&req)->kind = SIO_KIND_OWNER;
	if (port_ask(w, 0, &req, req.req.size, &answer, NULL) == 0 &&
	    ((const struct sio_evt_list *)(const void *)&answer)->count)
		port_failed(w, "LIST still has owners");
}

static void end_all(struct port_world *w, uint64_t parent)
{
	struct heard h = {.ends = 0};

	send_close(w, &h, parent);
	if (!w->t->one_host) {
		ask_peer(w);
		if (w->t->reopen(w->ctx, 1) < 0)
			port_failed(w, "cannot connect again");
		ask_peer(w);
	}
	if (!hear(w, &h, overflow) || (!w->t->one_host && !hear(w, &h, both_links)))
		return;
	if (h.error)
		port_failed(w, "OWNER_CLOSE is answered with %d", h.error);
	if (h.ends >= 2 * OWNERS)
		port_failed(w, "all %u ends were told", h.ends);
	if (h.overflows != 1)
		port_failed(w, "%u overflows", h.overflows);
	if (!w->t->one_host && (h.link[0] != SIO_LINK_DOWN || h.link[1] != SIO_LINK_UP))
		port_failed(w, "the link is told as %u, then %u", h.link[0], h.link[1]);
}

void port_overflow(struct port_world *w)
{
	struct heard h = {.ends = 0};
	uint64_t parent = new_child(w, 0);

	for (unsigned i = 0; i < OWNERS; i++)
		if (!new_child(w, parent))
			break;
	end_all(w, parent);
	check_list(w);
	send_close(w, &h, new_child(w, 0));
	hear(w, &h, both_ends);
	if (h.overflows || h.error)
		port_failed(w, "one owner ends: %u overflows, answered %d", h.overflows, h.error);
	port_report(w, "events that nobody reads");
}
