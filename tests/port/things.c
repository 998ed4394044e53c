/* SPDX-License-Identifier: BSD-2-Clause */
/* What rows ask about: made before each row, ended after it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "port.h"

#define PAGE 4096
#define NOBODY 0x7ffffffffff0ULL

bool port_served(const struct port_world *w, uint32_t op)
{
	return op >= SIO_OP_COUNT || w->served >> op & 1;
}

int port_failed(struct port_world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->why[0])
		return 1;
	va_start(ap, fmt);
	vsnprintf(w->why, sizeof(w->why), fmt, ap);
	va_end(ap);
	return 1;
}

/* Owners' descriptors are kept, everything else only looked at. */
static void take_fds(struct port_world *w, uint32_t op, const int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (op == SIO_OP_OWNER_NEW && w->n_owner_fds < 4)
			w->owner_fd[w->n_owner_fds++] = fds[i];
		else
			close(fds[i]);
}

int port_await(struct port_world *w, unsigned host, uint64_t cookie, union port_packet *answer,
	       unsigned *ret_fds)
{
	int fds[SIO_PORT_MAX_FDS];

	for (;;) {
		long n = w->t->event(w->ctx, host, answer, sizeof(*answer), fds, ret_fds);

		if (n < (long)sizeof(struct sio_evt))
			return port_failed(w, "no answer (%ld)", n);
		take_fds(w, answer->evt.op, fds, *ret_fds);
		if (answer->evt.size != n)
			return port_failed(w, "event of %ld bytes says %u", n, answer->evt.size);
		if (answer->evt.cookie == cookie)
			return 0;
		if (answer->evt.cookie != 0 || answer->evt.op < SIO_EV_LINK)
			return port_failed(w, "an answer to something else (op %u)",
					   answer->evt.op);
		w->unasked++;
	}
}

int port_ask(struct port_world *w, unsigned host, union port_packet *req, size_t len,
	     union port_packet *answer, unsigned *ret_fds)
{
	unsigned fds = 0;

	req->req.cookie = ++w->cookie;
	w->t->send(w->ctx, host, req, len, NULL, 0);
	if (port_await(w, host, req->req.cookie, answer, &fds))
		return 1;
	return port_check_answer(w, &req->req, answer, fds, ret_fds);
}

int port_check_answer(struct port_world *w, const struct sio_req *req,
		      const union port_packet *answer, unsigned fds, unsigned *ret_fds)
{
	if (answer->evt.op != req->op || answer->evt.owner != req->owner)
		return port_failed(w, "op %u: answered as op %u", req->op, answer->evt.op);
	if (answer->evt.error > 0)
		return port_failed(w, "op %u: error %d", req->op, answer->evt.error);
	if (answer->evt.error &&
	    (answer->evt.size != sizeof(answer->error) || answer->error.text[0] == '\0' ||
	     !memchr(answer->error.text, '\0', SIO_PORT_TEXT) || fds))
		return port_failed(w, "op %u: a refusal without text, or with descriptors",
				   req->op);
	if (ret_fds)
		*ret_fds = fds;
	return answer->evt.error;
}

/* A good request of @op with @owner; its answer must be a success. */
static int must(struct port_world *w, unsigned host, uint32_t op, uint64_t owner,
		union port_packet *req, union port_packet *answer)
{
	int rc;

	req->req.owner = owner;
	rc = port_ask(w, host, req, req->req.size, answer, NULL);
	if (rc < 0)
		return port_failed(w, "op %u, for a row: error %d, %s", op, -rc,
				   answer->error.text);
	return rc;
}

/* The id is the first field behind the header in every answer that has one. T_COUNT: no name. */
static int make(struct port_world *w, uint32_t op, uint64_t owner, union port_packet *req,
		enum port_thing thing)
{
	union port_packet answer;

	if (!port_served(w, op)) {
		if (thing != T_COUNT)
			w->thing[thing] = NOBODY;
		return 0;
	}
	if (must(w, 0, op, owner, req, &answer))
		return 1;
	if (thing != T_COUNT)
		w->thing[thing] = answer.words[sizeof(struct sio_evt) / 8];
	return 0;
}

static int make_good(struct port_world *w, uint32_t op, uint64_t owner, enum port_thing thing)
{
	union port_packet req;

	port_good(w, op, &req);
	return make(w, op, owner, &req, thing);
}

/* Grant @source of kind @kind to host 1. */
static int make_grant(struct port_world *w, uint64_t owner, uint32_t kind, uint64_t source,
		      enum port_thing thing)
{
	union port_packet req;
	struct sio_req_grant *g = (void *)&req;

	port_good(w, SIO_OP_GRANT, &req);
	g->source_kind = kind;
	g->source = source;
	g->length = kind == SIO_KIND_IRQ ? 0 : PAGE;
	return make(w, SIO_OP_GRANT, owner, &req, thing);
}

static int make_dmamap(struct port_world *w, uint64_t owner, uint32_t kind, uint64_t target,
		       enum port_thing thing)
{
	union port_packet req;
	struct sio_req_dmamap *d = (void *)&req;

	port_good(w, SIO_OP_DMAMAP, &req);
	d->target_kind = kind;
	d->target = target;
	return make(w, SIO_OP_DMAMAP, owner, &req, thing);
}

static int make_peer_grant(struct port_world *w)
{
	union port_packet req, answer;
	struct sio_req_grant *g = (void *)&req;
	const struct sio_evt_grant *evt = (const void *)&answer;
	unsigned host = w->loop ? 0 : 1;

	port_good(w, SIO_OP_ALLOC, &req);
	if (must(w, host, SIO_OP_ALLOC, 0, &req, &answer))
		return 1;
	w->peer_mem = answer.words[sizeof(struct sio_evt) / 8];
	port_good(w, SIO_OP_GRANT, &req);
	g->source = w->peer_mem;
	g->adapter = w->loop ? 1 : 0;
	g->peer_node = (uint32_t)w->thing[T_NODE0];
	if (must(w, host, SIO_OP_GRANT, 0, &req, &answer))
		return 1;
	w->peer_grant = evt->id;
	w->thing[T_PEER_BUS] = evt->bus_addr;
	w->thing[T_PEER_GENERATION] = evt->generation;
	memcpy(w->token, evt->token, sizeof(w->token));
	return 0;
}

/* An owner that ended and left a grant and a DMA mapping. */
static int make_ended(struct port_world *w)
{
	union port_packet req, answer;
	uint64_t ended, keep = w->thing[T_MEM];
	int rc;

	rc = make_good(w, SIO_OP_OWNER_NEW, 0, T_ENDED_OWNER);
	ended = w->thing[T_ENDED_OWNER];
	rc = rc ? rc : make_good(w, SIO_OP_ALLOC, ended, T_MEM);
	w->extra_mem = w->thing[T_MEM];
	w->thing[T_MEM] = keep;
	rc = rc ? rc : make_grant(w, ended, SIO_KIND_MEM, w->extra_mem, T_GRANT_ENDED);
	rc = rc ? rc : make_dmamap(w, ended, SIO_KIND_MEM, w->extra_mem, T_DMAMAP_ENDED);
	if (rc)
		return rc;
	/* Whether by the last descriptor, which we never kept, or by this word, it ends. */
	port_good(w, SIO_OP_OWNER_CLOSE, &req);
	req.req.owner = ended;
	rc = port_ask(w, 0, &req, req.req.size, &answer, NULL);
	return rc == 1;
}

static int make_mirror(struct port_world *w, uint64_t owner)
{
	union port_packet req;
	struct sio_req_bar *b = (void *)&req;

	port_good(w, SIO_OP_BAR, &req);
	b->offset = 0;
	b->access = SIO_ACCESS_READ;
	return make(w, SIO_OP_BAR, owner, &req, T_MIRROR);
}

/* Vector 1 hits the busy interrupt. */
static int make_vector(struct port_world *w, uint64_t owner)
{
	union port_packet req;
	struct sio_req_vector *v = (void *)&req;

	port_good(w, SIO_OP_VECTOR, &req);
	v->irq = w->thing[T_IRQ_BUSY];
	v->vector = 1;
	return make(w, SIO_OP_VECTOR, owner, &req, T_COUNT);
}

static int make_plain(struct port_world *w)
{
	uint64_t owner;
	int rc = make_good(w, SIO_OP_OWNER_NEW, 0, T_OWNER);

	owner = w->thing[T_OWNER];
	rc = rc ? rc : make_good(w, SIO_OP_OWNER_NEW, 0, T_OTHER_OWNER);
	rc = rc ? rc : make_good(w, SIO_OP_ALLOC, owner, T_MEM);
	rc = rc ? rc : make_good(w, SIO_OP_ALLOC, owner, T_MEM_BUSY);
	rc = rc ? rc : make_grant(w, owner, SIO_KIND_MEM, w->thing[T_MEM_BUSY], T_GRANT);
	rc = rc ? rc : make_dmamap(w, owner, SIO_KIND_MEM, w->thing[T_MEM_BUSY], T_DMAMAP);
	rc = rc ? rc : make_good(w, SIO_OP_BAR, owner, T_BAR);
	rc = rc ? rc : make_good(w, SIO_OP_WATCH, owner, T_WATCH);
	rc = rc ? rc : make_good(w, SIO_OP_DMA, owner, T_CHANNEL);
	rc = rc ? rc : make_good(w, SIO_OP_DMA_ATTACH, owner, T_RANGE);
	rc = rc ? rc : make_mirror(w, owner);
	rc = rc ? rc : make_good(w, SIO_OP_IRQ_NEW, owner, T_IRQ);
	rc = rc ? rc : make_good(w, SIO_OP_IRQ_NEW, owner, T_IRQ_BUSY);
	rc = rc ? rc : make_vector(w, owner);
	return rc ? rc : make_grant(w, owner, SIO_KIND_IRQ, w->thing[T_IRQ_BUSY], T_COUNT);
}

/* What goes through a window: the requester entry and the second map are in use. */
static int make_windows(struct port_world *w)
{
	uint64_t owner = w->thing[T_OWNER];
	union port_packet req;
	struct sio_req_requester_add *r = (void *)&req;
	int rc = make_good(w, SIO_OP_MAP, owner, T_MAP);

	w->thing[T_REQUESTER] = NOBODY;
	rc = rc ? rc : make_good(w, SIO_OP_MAP, owner, T_MAP_BUSY);
	rc = rc ? rc : make_good(w, SIO_OP_REQUESTER_ADD, owner, T_REQUESTER_BUSY);
	if (rc || !port_served(w, SIO_OP_MAP))
		return rc;
	rc = make_dmamap(w, owner, SIO_KIND_MAP, w->thing[T_MAP_BUSY], T_COUNT);
	if (rc)
		return rc;
	port_good(w, SIO_OP_REQUESTER_ADD, &req);
	r->device = 0;
	r->bdf = 0x4200;
	return make(w, SIO_OP_REQUESTER_ADD, owner, &req, T_REQUESTER);
}

static int list(struct port_world *w, unsigned host, uint32_t kind, union port_packet *answer)
{
	union port_packet req;

	port_good(w, SIO_OP_LIST, &req);
	((struct sio_req_list *)(void *)&req)->kind = kind;
	return must(w, host, SIO_OP_LIST, 0, &req, answer);
}

/* What memory is for comes back, to a daemon that is started again. */
static int check_cookie(struct port_world *w)
{
	union port_packet answer;
	const struct sio_evt_list *l = (const void *)&answer;

	if (list(w, 0, SIO_KIND_MEM, &answer))
		return 1;
	for (uint32_t i = 0; i < l->count; i++)
		if (l->entry[i].id == w->thing[T_MEM] && l->entry[i].cookie != PORT_COOKIE)
			return port_failed(w, "the cookie of memory is %#llx in LIST",
					   (unsigned long long)l->entry[i].cookie);
	return 0;
}

int port_things_make(struct port_world *w)
{
	int rc = w->t->one_host && !w->loop ? 0 : make_peer_grant(w);

	rc = rc ? rc : make_plain(w);
	rc = rc ? rc : make_windows(w);
	rc = rc ? rc : make_ended(w);
	return rc ? rc : check_cookie(w);
}

static bool no_list(uint32_t kind)
{
	return kind > SIO_KIND_IRQ && kind < SIO_KIND_WATCH;
}

/* End all of one kind by @op, which has the id as its only field. */
static int end_all(struct port_world *w, unsigned host, uint32_t kind, uint32_t op)
{
	union port_packet answer, req, end;
	const struct sio_evt_list *l = (const void *)&answer;

	if (list(w, host, kind, &answer))
		return 1;
	for (uint32_t i = 0; i < l->count; i++) {
		port_good(w, SIO_OP_FREE, &req);
		((struct sio_req_free *)(void *)&req)->id = l->entry[i].id;
		req.req.op = op;
		if (must(w, host, op, 0, &req, &end))
			return 1;
	}
	return 0;
}

static int end_vectors(struct port_world *w)
{
	union port_packet answer, req, end;
	const struct sio_evt_list *l = (const void *)&answer;
	struct sio_req_vector *v = (void *)&req;

	if (list(w, 0, SIO_KIND_VECTOR, &answer))
		return 1;
	for (uint32_t i = 0; i < l->count; i++) {
		port_good(w, SIO_OP_VECTOR, &req);
		v->irq = 0;
		v->vector = (uint32_t)l->entry[i].length;
		if (must(w, 0, SIO_OP_VECTOR, 0, &req, &end))
			return 1;
	}
	return 0;
}

static unsigned hosts(const struct port_world *w)
{
	return w->t->one_host ? 1 : 2;
}

static int nothing_left(struct port_world *w, unsigned host)
{
	union port_packet answer;
	const struct sio_evt_list *l = (const void *)&answer;

	for (uint32_t kind = SIO_KIND_OWNER; kind <= SIO_KIND_VECTOR; kind++) {
		if (kind == SIO_KIND_DEVICE || kind == SIO_KIND_IOVA || no_list(kind))
			continue;
		if (list(w, host, kind, &answer))
			return 1;
		if (l->count)
			return port_failed(w, "host %u: %u objects of kind %u are left", host,
					   l->count, kind);
	}
	return 0;
}

int port_things_end(struct port_world *w)
{
	static const struct {
		uint32_t kind, op;
	} order[] = {
		{SIO_KIND_DMAMAP, SIO_OP_DMAUNMAP}, {SIO_KIND_GRANT, SIO_OP_UNGRANT},
		{SIO_KIND_MAP, SIO_OP_UNMAP},	    {SIO_KIND_REQUESTER, SIO_OP_REQUESTER_DEL},
		{SIO_KIND_DMA, SIO_OP_DMA_FREE},    {SIO_KIND_BAR, SIO_OP_BAR_CLOSE},
		{SIO_KIND_IRQ, SIO_OP_IRQ_FREE},    {SIO_KIND_MEM, SIO_OP_FREE},
	};
	union port_packet answer, req;
	const struct sio_evt_list *l = (const void *)&answer;
	uint64_t owner[SIO_LIST_MAX];
	uint32_t n;

	if (list(w, 0, SIO_KIND_OWNER, &answer))
		return 1;
	n = l->count;
	for (uint32_t i = 0; i < n; i++)
		owner[i] = l->entry[i].id;
	for (uint32_t i = 0; i < n; i++) {
		port_good(w, SIO_OP_OWNER_CLOSE, &req);
		req.req.owner = owner[i];
		if (port_ask(w, 0, &req, req.req.size, &answer, NULL) == 1)
			return 1; /* -EPERM: it has ended before */
	}
	port_good(w, SIO_OP_RESET, &req);
	((struct sio_req_reset *)(void *)&req)->kind = SIO_RESET_DONE;
	if (must(w, 0, SIO_OP_RESET, 0, &req, &answer))
		return 1;
	if (end_vectors(w))
		return 1;
	for (unsigned host = 0; host < hosts(w); host++)
		for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++)
			if (end_all(w, host, order[i].kind, order[i].op))
				return 1;
	while (w->n_owner_fds)
		close(w->owner_fd[--w->n_owner_fds]);
	for (unsigned host = 0; host < hosts(w); host++)
		if (nothing_left(w, host))
			return 1;
	return 0;
}

static void mix(uint64_t *sum, uint64_t value)
{
	*sum = (*sum ^ value) * 0x100000001b3ull;
}

int port_digest(struct port_world *w, uint64_t *ret)
{
	union port_packet answer, req;
	const struct sio_evt_list *l = (const void *)&answer;
	const struct sio_evt_adapter *a = (const void *)&answer;
	uint64_t sum = 0xcbf29ce484222325ull;

	for (unsigned host = 0; host < hosts(w); host++) {
		for (uint32_t kind = SIO_KIND_OWNER; kind <= SIO_KIND_VECTOR; kind++) {
			if (no_list(kind))
				continue;
			if (list(w, host, kind, &answer))
				return 1;
			mix(&sum, l->count);
			for (uint32_t i = 0; i < l->count; i++) {
				mix(&sum, l->entry[i].id);
				mix(&sum, l->entry[i].owner);
				mix(&sum, l->entry[i].state);
				/* Of a watch they count what it did. */
				mix(&sum, kind == SIO_KIND_WATCH ? 0 : l->entry[i].refs);
			}
		}
		if (!port_served(w, SIO_OP_ADAPTER))
			continue;
		port_good(w, SIO_OP_ADAPTER, &req);
		if (must(w, host, SIO_OP_ADAPTER, 0, &req, &answer))
			return 1;
		mix(&sum, a->entries_free);
		mix(&sum, a->requesters_free);
	}
	*ret = sum;
	return 0;
}
