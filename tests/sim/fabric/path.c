/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posted writes on their way. A path leads from a requester (a host's processors and DMA engines,
 * or one device) to a host; what is on one path keeps its order, paths overtake each other. What is
 * due is done when somebody looks, in order of time: there is no event per store.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/hops.h"
#include "fabric/fabric.h"
#include "fabric/way.h"
#include "smartio/uapi.h"

#define LATE_ONE_IN 32	 /* a write in so many is held up */
#define LATE_NS 3000u	 /* by at most */
#define JITTER_ONE_OF 4u /* else by a part of its time */
#define FNV_PRIME 0x100000001b3ull

struct fabric_params fabric_params;
struct fabric_sum fabric_sum;
uint64_t fabric_register_stores;

static struct {
	const struct sio_topology *topology;
	unsigned n_hosts, n_requesters;
	struct fabric_queue *path;  /* by requester, then host */
	struct fabric_way *way;	    /* the same, then place; adapters: UINT32_MAX: not known yet */
	unsigned n_places;	    /* of a host: its memory, then devices by their `in` */
	unsigned *home;		    /* host of a requester */
	unsigned *in;		    /* where in it: of processors SIO_HOPS_MEMORY */
	struct fabric_mem **status; /* of each host; holds no reference, so it may be freed */
	uint8_t *joined;	    /* by host, then host: 0 not known, 1 no, 2 yes */
	struct fabric_queue **heap;
	size_t n_heap, max_heap;
	uint64_t n_queues;
	struct fabric_post *spare;
} S;
uint64_t fabric_rng, fabric_next_due;

/* ---- the heap of queues, by the time of what is first in each ---- */
static bool before(const struct fabric_queue *a, const struct fabric_queue *b)
{
	if (a->first->due != b->first->due)
		return a->first->due < b->first->due;
	return a->number < b->number;
}

static void put(size_t i, struct fabric_queue *q)
{
	S.heap[i] = q;
	q->heap = i + 1;
}

static void sift(size_t i, struct fabric_queue *q)
{
	size_t c;

	for (; i > 0 && before(q, S.heap[(i - 1) / 2]); i = (i - 1) / 2)
		put(i, S.heap[(i - 1) / 2]);
	for (; (c = 2 * i + 1) < S.n_heap; i = c) {
		if (c + 1 < S.n_heap && before(S.heap[c + 1], S.heap[c]))
			c++;
		if (!before(S.heap[c], q))
			break;
		put(i, S.heap[c]);
	}
	put(i, q);
}

/* The first entry of @q has changed, or @q is empty now. */
static void reorder(struct fabric_queue *q)
{
	if (!q->first && q->heap) {
		size_t i = q->heap - 1;
		struct fabric_queue *last = S.heap[--S.n_heap];

		q->heap = 0;
		if (last != q)
			sift(i, last);
	} else if (q->first && !q->heap) {
		if (S.n_heap == S.max_heap) {
			S.max_heap = S.max_heap ? 2 * S.max_heap : 64;
			S.heap = realloc(S.heap, S.max_heap * sizeof(*S.heap));
			assert(S.heap);
		}
		sift(S.n_heap++, q);
	} else if (q->first) {
		sift(q->heap - 1, q);
	}
	fabric_next_due = S.n_heap ? S.heap[0]->first->due : UINT64_MAX;
}

/* ---- queues ---- */
void fabric_queue_init(struct fabric_queue *q,
		       void (*arrive)(struct fabric_queue *q, struct fabric_post *post))
{
	memset(q, 0, sizeof(*q));
	q->last = &q->first;
	q->number = ++S.n_queues;
	q->arrive = arrive;
}

struct fabric_post *fabric_post_new(struct fabric_mem *m, uint64_t offset, const void *data,
				    size_t len)
{
	struct fabric_post *post = S.spare;

	assert(len <= FABRIC_PIECE);
	if (post)
		S.spare = post->next;
	else
		post = malloc(sizeof(*post));
	assert(post);
	memset(post, 0, offsetof(struct fabric_post, data));
	post->mem = m;
	post->offset = offset;
	post->len = (uint32_t)len;
	post->fd = -1;
	if (m)
		fabric_mem_ref(m);
	if (len)
		memcpy(post->data, data, len);
	return post;
}

void fabric_post_free(struct fabric_post *post)
{
	if (post->mem)
		fabric_mem_unref(post->mem);
	post->next = S.spare;
	S.spare = post;
}

void fabric_queue_add(struct fabric_queue *q, struct fabric_post *post, uint64_t sent, uint64_t due)
{
	post->sent = sent > q->last_sent ? sent : q->last_sent;
	if (due < post->sent)
		due = post->sent;
	post->due = due > q->last_due ? due : q->last_due;
	q->last_sent = post->sent;
	q->last_due = post->due;
	post->next = NULL;
	*q->last = post;
	q->last = &post->next;
	if (q->first == post)
		reorder(q);
}

static void arrive_first(struct fabric_queue *q)
{
	struct fabric_post *post = q->first;

	q->first = post->next;
	if (!q->first)
		q->last = &q->first;
	reorder(q);
	q->arrive(q, post);
}

void fabric_arrive(uint64_t now)
{
	while (fabric_next_due <= now)
		arrive_first(S.heap[0]);
}

void fabric_queue_take(struct fabric_queue *q)
{
	uint64_t now = fabric_access->now();

	/*
	 * What was due earlier has arrived earlier, so the past of memory stays in order of time.
	 */
	fabric_settle(now);
	if (!q->first)
		return;
	q->first->due = now;
	arrive_first(q);
}

void fabric_queue_push(struct fabric_queue *q, uint64_t when)
{
	while (q->first && q->first->sent <= when)
		fabric_queue_take(q);
}

/* What will be sent before @when arrives at @when at the latest. */
static void hasten(struct fabric_queue *q, uint64_t when)
{
	bool sooner = q->first && q->first->sent <= when && q->first->due > when;

	for (struct fabric_post *p = q->first; p && p->sent <= when; p = p->next)
		if (p->due > when)
			p->due = when;
	if (sooner)
		reorder(q);
}

void fabric_queue_cut(struct fabric_queue *q, uint64_t when)
{
	struct fabric_post **at = &q->first, *post;

	while (*at && (*at)->sent <= when)
		at = &(*at)->next;
	post = *at;
	*at = NULL;
	q->last = at;
	while (post) {
		struct fabric_post *next = post->next;

		if (post->fd >= 0)
			fabric_access->forget(post->fd);
		fabric_post_free(post);
		post = next;
	}
	q->last_sent = q->last_due = 0;
	for (post = q->first; post; post = post->next) {
		q->last_sent = post->sent;
		q->last_due = post->due;
	}
	reorder(q);
}

/* ---- the way ---- */
/* @m NULL: an interrupt, which ends at the host's memory controller. */
static const struct fabric_way *way_of(unsigned requester, unsigned host,
				       const struct fabric_mem *m)
{
	bool device = m && fabric_is_device(m);
	size_t place = device ? 1 + m->in : 0;
	struct fabric_way *w = &S.way[((size_t)requester * S.n_hosts + host) * S.n_places + place];

	if (w->adapters == UINT32_MAX)
		fabric_find_way(S.topology,
				&(struct fabric_end){S.home[requester], S.in[requester]},
				&(struct fabric_end){host, device ? m->in : SIO_HOPS_MEMORY}, w);
	return w;
}

/* ---- paths ---- */
static bool status_says(unsigned from, unsigned to)
{
	const struct sio_status_page *page;

	/* A host that is off has none. */
	if (!S.status[from])
		return false;
	page = (const void *)S.status[from]->bytes;
	for (unsigned i = 0; i < page->count; i++)
		if (page->path[i].peer_node == S.topology->host[to].node &&
		    page->path[i].state == SIO_LINK_UP)
			return true;
	return false;
}

bool fabric_is_joined(unsigned from, unsigned to)
{
	uint8_t *known;

	if (from == to || !S.topology)
		return true;
	known = &S.joined[from * S.n_hosts + to];
	if (*known == 0)
		*known = status_says(from, to) ? 2 : 1;
	return *known == 2;
}

void fabric_store(struct fabric_mem *m, uint64_t offset, const void *data, size_t len, uint64_t at)
{
	assert(offset + len <= m->size);
	for (size_t done = 0, n; done < len; done += n) {
		n = FABRIC_LINE - (offset + done) % FABRIC_LINE;
		if (n > len - done)
			n = len - done;
		fabric_past_add(m, offset + done, n, at);
		fabric_mem_put(m, offset + done, (const uint8_t *)data + done, n);
	}
	fabric_sum.stores++;
	m->stores++;
	if (m->kind == FABRIC_REGISTER)
		fabric_register_stores++;
	else if (m->kind == FABRIC_RING)
		fabric_rings[m->host].stores++;
	fabric_sum.hash = (fabric_sum.hash ^ m->number << 32 ^ offset) * FNV_PRIME;
	fabric_sum.hash = (fabric_sum.hash ^ at ^ len << 48) * FNV_PRIME;
	if (m->kind == FABRIC_STATUS && m->host < S.n_hosts) {
		S.status[m->host] = m;
		memset(S.joined + m->host * S.n_hosts, 0, S.n_hosts);
	}
}

void fabric_status_gone(const struct fabric_mem *m)
{
	if (m->host < S.n_hosts && S.status[m->host] == m) {
		S.status[m->host] = NULL;
		memset(S.joined + m->host * S.n_hosts, 0, S.n_hosts);
	}
}

void (*fabric_on_freed)(const struct fabric_post *post);

static void path_arrive(struct fabric_queue *q, struct fabric_post *post)
{
	bool there = fabric_is_joined(S.home[post->from], post->host);

	(void)q;
	if (post->fd >= 0 && there) {
		fabric_sum.interrupts++;
		fabric_access->signal(post->fd);
	} else if (post->fd >= 0) {
		fabric_access->forget(post->fd);
	} else if (there) {
		if (post->mem->freed && post->from >= S.n_hosts && fabric_on_freed)
			fabric_on_freed(post);
		fabric_store(post->mem, post->offset, post->data, post->len, post->due);
		if (post->mem->kind == FABRIC_REGISTER)
			fabric_access->polled();
	}
	fabric_post_free(post);
}

struct fabric_queue *fabric_path(unsigned requester, unsigned host)
{
	assert(requester < S.n_requesters && host < S.n_hosts);
	return &S.path[requester * S.n_hosts + host];
}

static uint64_t add_path(unsigned requester, unsigned host, struct fabric_post *post, uint64_t sent)
{
	struct fabric_queue *q = fabric_path(requester, host);
	struct fabric_way w = *way_of(requester, host, post->mem);
	uint64_t ns, busy, due;

	w.to_register = post->mem && fabric_is_device(post->mem);
	ns = fabric_write_ns(&fabric_params, &w, post->offset, post->len ? post->len : 4);
	busy = fabric_write_busy_ns(&fabric_params, &w, post->offset, post->len ? post->len : 4);
	due = sent + ns;
	if (!fabric_params.steady) {
		due += fabric_below(ns / JITTER_ONE_OF + 1);
		if (fabric_below(LATE_ONE_IN) == 0)
			due += fabric_below(LATE_NS);
	}
	/* Packets pass the slowest link one after the other. */
	if (q->first && due < q->last_due + busy)
		due = q->last_due + busy;
	post->from = requester;
	post->host = host;
	fabric_queue_add(q, post, sent, due);
	return post->due;
}

uint64_t fabric_path_post(unsigned requester, struct fabric_post *post, uint64_t sent)
{
	uint64_t due = add_path(requester, post->mem->host, post, sent);

	if (post->mem->kind == FABRIC_REGISTER)
		fabric_access->settle(due);
	return due;
}

void fabric_path_signal(unsigned requester, unsigned host, int fd, uint64_t sent)
{
	struct fabric_post *post = fabric_post_new(NULL, 0, NULL, 0);

	post->fd = fabric_access->dup(fd);
	fabric_access->settle(add_path(requester, host, post, sent));
}

void fabric_path_read(unsigned requester, unsigned host, uint64_t when)
{
	struct fabric_queue *q = fabric_path(requester, host);
	uint64_t now = fabric_access->now();

	/* A device's clock may be ahead: nobody may see what it sends before that time. */
	fabric_queue_push(q, when < now ? when : now);
	hasten(q, when);
}

void fabric_path_answer(unsigned from, unsigned to, uint64_t when)
{
	for (unsigned r = S.n_hosts; r < S.n_requesters; r++)
		if (S.home[r] == from)
			fabric_queue_push(fabric_path(r, to), when);
}

void fabric_path_all(unsigned host, uint64_t when)
{
	for (unsigned r = 0; r < S.n_requesters; r++)
		fabric_queue_push(fabric_path(r, host), when);
}

void fabric_paths_cut(unsigned requester, uint64_t when)
{
	for (unsigned i = 0; i < S.n_hosts; i++)
		fabric_queue_cut(fabric_path(requester, i), when);
}

void fabric_paths_hasten(unsigned requester, uint64_t when)
{
	for (unsigned i = 0; i < S.n_hosts; i++)
		hasten(fabric_path(requester, i), when);
}

uint64_t fabric_read_time(unsigned requester, const struct fabric_mem *m, size_t len)
{
	struct fabric_way w = *way_of(requester, m->host, m);

	w.to_register = fabric_is_device(m);
	return fabric_read_ns(&fabric_params, &w, 0, len);
}

/* ---- start and end ---- */
unsigned fabric_device_requester(const struct sio_topo_device *d)
{
	unsigned n = S.n_hosts;

	for (unsigned i = 0; i < S.n_hosts; i++) {
		const struct sio_topo_host *h = &S.topology->host[i];

		if (d >= h->device && d < h->device + h->n_devices)
			return n + (unsigned)(d - h->device);
		n += h->n_devices;
	}
	assert(!"a device of this topology");
	return 0;
}

/* @t NULL: a test's, of 3 hosts with a device each, joined by nothing that takes time. */
void fabric_paths_start(const struct sio_topology *t)
{
	unsigned n_hosts = t ? t->n_hosts : 3, n = n_hosts;

	for (unsigned i = 0; i < n_hosts; i++)
		n += t ? t->host[i].n_devices : 1;
	memset(&S, 0, sizeof(S));
	S.topology = t;
	S.n_hosts = n_hosts;
	S.n_requesters = n;
	fabric_rng = fabric_sum.hash;
	fabric_next_due = UINT64_MAX;
	S.path = calloc((size_t)n * n_hosts, sizeof(*S.path));
	S.n_places = 2;
	for (unsigned i = 0; t && i < n_hosts; i++)
		if (S.n_places < 2 + t->host[i].n_chassis)
			S.n_places = 2 + t->host[i].n_chassis;
	S.way = calloc((size_t)n * n_hosts * S.n_places, sizeof(*S.way));
	S.home = calloc(n, sizeof(*S.home));
	S.in = calloc(n, sizeof(*S.in));
	S.status = calloc(n_hosts, sizeof(*S.status));
	S.joined = calloc(n_hosts, n_hosts);
	assert(S.path && S.way && S.home && S.in && S.status && S.joined);
	for (unsigned i = 0; i < n * n_hosts; i++)
		fabric_queue_init(&S.path[i], path_arrive);
	for (size_t i = 0; i < (size_t)n * n_hosts * S.n_places; i++)
		S.way[i].adapters = UINT32_MAX;
	n = n_hosts;
	for (unsigned i = 0; i < n_hosts; i++) {
		S.home[i] = i;
		S.in[i] = SIO_HOPS_MEMORY;
		for (unsigned k = 0; k < (t ? t->host[i].n_devices : 1); k++) {
			S.home[n] = i;
			S.in[n++] = t ? t->host[i].device[k].in : 0;
		}
	}
}

void fabric_paths_end(void)
{
	struct fabric_post *post;

	for (unsigned i = 0; i < S.n_requesters * S.n_hosts; i++) {
		while ((post = S.path[i].first)) {
			S.path[i].first = post->next;
			if (post->fd >= 0)
				fabric_access->forget(post->fd);
			fabric_post_free(post);
		}
	}
	while ((post = S.spare)) {
		S.spare = post->next;
		free(post);
	}
	free(S.heap);
	free(S.path);
	free(S.way);
	free(S.home);
	free(S.in);
	free(S.status);
	free(S.joined);
	memset(&S, 0, sizeof(S));
}
