/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of the tests' world: what they send, what came to them. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <stdlib.h>

#include "world.h"

struct world_client *world_client(struct world *w, unsigned host, uint32_t kind)
{
	return world_client_of(w, host, kind, NULL);
}

static void greet(struct world *w, struct world_client *c, uint32_t kind)
{
	struct sio_msg_hello m = {
		.version = sio_to_le32(SIO_CLIENT_VERSION),
		.kind = sio_to_le32(kind),
	};

	smartiod_client_new(w->host[c->host].daemon, c->number, c->pid, c->started, c->who);
	if (kind)
		world_call(w, c, SIO_MSG_HELLO, &m, sizeof(m));
}

static struct world_client *add(struct world *w, unsigned host,
				const struct sio_policy_person_of *who)
{
	struct world_client *c = &w->client[w->n_clients];

	assert(w->n_clients < WORLD_CLIENTS);
	c->host = host;
	c->who = who;
	c->number = ++w->n_clients;
	c->pid = 1000 + (uint32_t)c->number;
	c->started = c->number;
	c->connected = w->host[host].daemon != NULL;
	return c;
}

struct world_client *world_client_of(struct world *w, unsigned host, uint32_t kind,
				     const struct sio_policy_person_of *who)
{
	struct world_client *c = add(w, host, who);

	if (c->connected)
		greet(w, c, kind);
	return c;
}

struct world_client *world_client_again(struct world *w, struct world_client *of)
{
	struct world_client *c = add(w, of->host, of->who);

	c->pid = of->pid;
	c->started = of->started;
	greet(w, c, SIO_CLIENT_LIBRARY);
	return c;
}

void world_reconnect(struct world *w, struct world_client *c)
{
	static uint64_t number = 1000000;

	assert(!c->connected && w->host[c->host].ready);
	c->number = ++number;
	c->connected = true;
	smartiod_client_new(w->host[c->host].daemon, c->number, 1000, c->started, c->who);
}

void world_kill(struct world *w, struct world_client *c)
{
	struct smartiod *d = w->host[c->host].daemon;

	if (!c->connected) {
		/* Its daemon went before it. */
		if (w->real && c->owner && world_res_find(w, c->host, SIO_KIND_OWNER, c->owner))
			world_owner_end(w, c->host, c->owner, true);
		return;
	}
	if (w->style != WORLD_HANG_UP && c->owner &&
	    world_res_find(w, c->host, SIO_KIND_OWNER, c->owner)) {
		world_owner_end(w, c->host, c->owner, true);
		if (w->style == WORLD_OWNER_FIRST)
			return; /* the daemon cuts the client off */
	}
	c->connected = false;
	smartiod_client_gone(d, c->number);
}

void world_forget(struct world_client *c)
{
	while (c->n_messages > 0)
		free(c->message[--c->n_messages]);
}

void world_send_raw(struct world *w, struct world_client *c, const void *msg, size_t len)
{
	if (c->connected && w->host[c->host].daemon)
		smartiod_client_message(w->host[c->host].daemon, c->number, msg, len, NULL, 0);
}

uint32_t world_send_with(struct world *w, struct world_client *c, uint32_t type, void *msg,
			 size_t len, unsigned n_fds)
{
	struct sio_msg *h = msg;
	int fds[4];

	assert(n_fds <= 4);
	h->size = sio_to_le32((uint32_t)len);
	h->type = sio_to_le32(type);
	h->id = sio_to_le32(++c->next_id);
	if (!c->connected || !w->host[c->host].daemon)
		return c->next_id;
	for (unsigned i = 0; i < n_fds; i++)
		fds[i] = world_fd(w);
	smartiod_client_message(w->host[c->host].daemon, c->number, msg, len, fds, n_fds);
	for (unsigned i = 0; i < n_fds; i++)
		assert(fds[i] == -1); /* taken or closed */
	return c->next_id;
}

uint32_t world_send(struct world *w, struct world_client *c, uint32_t type, void *msg, size_t len)
{
	struct sio_msg *h = msg;

	h->size = sio_to_le32((uint32_t)len);
	h->type = sio_to_le32(type);
	h->id = sio_to_le32(++c->next_id);
	if (w->on_request)
		w->on_request(w, c, msg, len);
	world_send_raw(w, c, msg, len);
	return sio_from_le32(h->id);
}

const struct world_message *world_reply(struct world_client *c, uint32_t id)
{
	for (unsigned i = 0; i < c->n_messages; i++)
		if (c->message[i]->id == id)
			return c->message[i];
	return NULL;
}

const struct world_message *world_call(struct world *w, struct world_client *c, uint32_t type,
				       void *msg, size_t len)
{
	uint32_t id = world_send(w, c, type, msg, len);

	world_run(w);
	return world_reply(c, id);
}

const void *world_event(struct world_client *c, uint32_t type, unsigned nth)
{
	for (unsigned i = 0; i < c->n_messages; i++)
		if (c->message[i]->id == 0 && c->message[i]->type == type && nth-- == 0)
			return c->message[i]->data;
	return NULL;
}

unsigned world_open_fds(const struct world *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WORLD_FDS; i++)
		n += w->fd_open[i];
	return n;
}

int world_fd(struct world *w)
{
	for (int i = 3; i < WORLD_FDS; i++) {
		if (!w->fd_open[i]) {
			w->fd_open[i] = true;
			return i;
		}
	}
	assert(!"descriptors run away");
	return -1;
}
