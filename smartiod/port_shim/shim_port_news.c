/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events that nobody asked for. The module only says that something has changed; what it was, is
 * the difference between what LIST and DEVICE_LIST told last and tell now. So none can be lost: who
 * looks late sees all of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "smartiod/port_shim/shim_port_news.h"

enum { OWNER_LIVE, OWNER_ENDED };

static struct shim_known *find(const struct shim_known_list *l, uint64_t id)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->known[i].id == id)
			return &l->known[i];
	return NULL;
}

/* Return: 0 or -ENOMEM. */
static int add(struct shim_known_list *l, uint64_t id, uint64_t state)
{
	struct shim_known *more;

	if (l->n == l->room) {
		more = realloc(l->known, (l->room * 2 + 16) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		l->known = more;
		l->room = l->room * 2 + 16;
	}
	l->known[l->n++] = (struct shim_known){.id = id, .state = state, .seen = true};
	return 0;
}

/* Room for another event; NULL: out of memory. */
static struct shim_news_event *push(struct shim_news *n, uint32_t op, uint32_t size)
{
	struct shim_news_event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->u.h = (struct sio_evt){.size = size, .op = op};
	*n->last = e;
	n->last = &e->next;
	return e;
}

int shim_news_owner(struct shim_news *n, uint64_t id, bool live,
		    const struct sio_evt_owner_gone *left)
{
	struct shim_known *k = find(&n->owners, id);
	struct shim_news_event *e;

	if (!k)
		return add(&n->owners, id, live ? OWNER_LIVE : OWNER_ENDED);
	k->seen = true;
	if (live || k->state == OWNER_ENDED)
		return 0;
	e = push(n, SIO_EV_OWNER_GONE, sizeof(e->u.gone));
	if (!e)
		return -ENOMEM;
	k->state = OWNER_ENDED;
	if (left) {
		e->u.gone = *left;
		e->u.h = (struct sio_evt){.size = sizeof(e->u.gone), .op = SIO_EV_OWNER_GONE};
	}
	e->u.h.owner = id;
	return 0;
}

bool shim_news_wants(const struct shim_news *n, uint64_t owner)
{
	const struct shim_known *k = find(&n->owners, owner);

	return k && k->state == OWNER_LIVE;
}

static int tell_device(struct shim_news *n, uint32_t op, const struct shim_known *k)
{
	struct shim_news_event *e = push(n, op, sizeof(e->u.device));

	if (!e)
		return -ENOMEM;
	e->u.device.device = k->id;
	e->u.device.generation = k->state;
	return 0;
}

int shim_news_device(struct shim_news *n, uint64_t id, uint64_t generation)
{
	struct shim_known *k = find(&n->devices, id);
	bool was_there = k && k->there;

	if (!k && add(&n->devices, id, 0) < 0)
		return -ENOMEM;
	k = find(&n->devices, id);
	k->seen = true;
	if (was_there && k->state == generation)
		return 0;
	if (was_there && tell_device(n, SIO_EV_DEVICE_GONE, k) < 0)
		return -ENOMEM;
	k->there = true;
	k->state = generation;
	return n->first_look ? 0 : tell_device(n, SIO_EV_DEVICE_BACK, k);
}

void shim_news_reset(struct shim_news *n, uint64_t id, uint64_t generation)
{
	struct shim_known *k = find(&n->devices, id);

	if (k)
		k->state = generation;
}

void shim_news_begin(struct shim_news *n)
{
	for (size_t i = 0; i < n->owners.n; i++)
		n->owners.known[i].seen = false;
	for (size_t i = 0; i < n->devices.n; i++)
		n->devices.known[i].seen = false;
}

void shim_news_unsure(struct shim_news *n, uint64_t device)
{
	struct shim_known *k = find(&n->devices, device);

	if (k)
		k->seen = true;
}

int shim_news_end(struct shim_news *n)
{
	struct shim_known_list *o = &n->owners;
	struct shim_news_event *e;

	for (size_t i = 0; i < n->devices.n; i++) {
		struct shim_known *k = &n->devices.known[i];

		if (k->seen || !k->there)
			continue;
		if (tell_device(n, SIO_EV_DEVICE_GONE, k) < 0)
			return -ENOMEM;
		k->there = false;
	}
	for (size_t i = 0; i < o->n;) {
		uint64_t id = o->known[i].id;

		if (o->known[i].seen) {
			i++;
			continue;
		}
		if (shim_news_owner(n, id, false, NULL) < 0)
			return -ENOMEM;
		e = push(n, SIO_EV_OWNER_END, sizeof(struct sio_evt_owner_end));
		if (!e)
			return -ENOMEM;
		e->u.h.owner = id;
		memmove(&o->known[i], &o->known[i + 1], (o->n - i - 1) * sizeof(o->known[0]));
		o->n--;
	}
	n->first_look = false;
	return 0;
}

long shim_news_next(struct shim_news *n, void *evt)
{
	struct shim_news_event *e = n->first;
	long size;

	if (!e)
		return -EAGAIN;
	size = e->u.h.size;
	memcpy(evt, &e->u, (size_t)size);
	n->first = e->next;
	if (!n->first)
		n->last = &n->first;
	free(e);
	return size;
}

void shim_news_init(struct shim_news *n)
{
	memset(n, 0, sizeof(*n));
	n->last = &n->first;
	n->first_look = true;
}

void shim_news_done(struct shim_news *n)
{
	char evt[sizeof(struct shim_news_event)];

	while (shim_news_next(n, evt) > 0)
		;
	free(n->owners.known);
	free(n->devices.known);
}
