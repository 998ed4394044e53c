/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of bytes plays hostile clients and a hostile peer to two daemons: requests with any
 * content, raw packets, deaths, links that come and go, at any moment between two packets; one of
 * the hosts lends a device. When all are gone and the device was reset, nothing may be left. For
 * libFuzzer (built with clang), or replay_corpus.c.
 */
#include "device_calls.h"
#include "fake_device.h"
#include "fuzz.h"
#include "input.h"

#include <stdlib.h>
#include <string.h>

#include "wire/check.h"

#define CLIENTS 3u

struct play {
	struct world *w;
	struct world_client *client[CLIENTS]; /* on nodes 4, 8, 4 */
};

#define NUMBER(NAME, name, number, ...) number,
static const uint32_t all[] = {SIO_CLIENT_REQUESTS(NUMBER)};
#define N_ALL (sizeof(all) / sizeof(all[0]))
static const uint32_t peer_types[] = {SIO_PEER_MESSAGES(NUMBER)};
#define N_PEER_TYPES (sizeof(peer_types) / sizeof(peer_types[0]))
/* Where a message and its reply have a field that is 0; 0: nowhere. */
#define ZERO(NAME, name, number, message, zero, reply, reply_zero)                                 \
	{offsetof(struct message, zero), offsetof(struct reply, reply_zero)},
static const size_t peer_zero[][2] = {SIO_PEER_MESSAGES(ZERO)};
/* The first ones as inputs of the corpus number them; the rest comes from the list. */
static uint32_t requests[N_ALL] = {
	SIO_MSG_ADAPTER,
	SIO_MSG_BYE,
	SIO_MSG_NODE_PROBE,
	SIO_MSG_HOPS,
	SIO_MSG_SEG_CREATE,
	SIO_MSG_SEG_PREPARE,
	SIO_MSG_SEG_AVAILABLE,
	SIO_MSG_SEG_UNAVAILABLE,
	SIO_MSG_SEG_REMOVE,
	SIO_MSG_SEG_CONNECT,
	SIO_MSG_SEG_DISCONNECT,
	SIO_MSG_SEG_MAP,
	SIO_MSG_SEG_UNMAP,
	SIO_MSG_DINT_CREATE,
	SIO_MSG_DINT_REMOVE,
	SIO_MSG_DINT_CONNECT,
	SIO_MSG_DINT_DISCONNECT,
	SIO_MSG_DINT_RING_FREE,
	SIO_MSG_DEV_LIST,
	SIO_MSG_DEV_BORROW,
	SIO_MSG_DEV_RETURN,
	SIO_MSG_DEV_SEG_CREATE,
	SIO_MSG_DEV_SEG_CONNECT,
	SIO_MSG_DMA_MAP,
	SIO_MSG_DMA_UNMAP,
	SIO_MSG_DEV_SETTLED,
	SIO_MSG_DEV_RESET,
	SIO_MSG_LIST,
	SIO_MSG_STATS,
	SIO_MSG_HELLO,
	SIO_MSG_DEV_RELEASE_EXCLUSIVE,
	SIO_MSG_DEV_HOLD,
	SIO_MSG_DEV_UNHOLD,
	SIO_MSG_DEV_ASSIGN,
	SIO_MSG_DEV_VECTOR,
	SIO_MSG_DEV_UNVECTOR,
	SIO_MSG_SHADOW,
	SIO_MSG_SHADOW_DEL,
	SIO_MSG_SEG_WATCH,
	SIO_MSG_SEG_FILL,
	SIO_MSG_SEG_TAKE,
	SIO_MSG_SEG_SHARE,
	SIO_MSG_SEG_ATTACH,
	SIO_MSG_LINK,
	SIO_MSG_GROUP_JOIN,
	SIO_MSG_GROUP_LEAVE,
	SIO_MSG_RELOAD,
	SIO_MSG_RELOAD_LINE,
	SIO_MSG_FILE,
	SIO_MSG_DEV_AWAIT,
	SIO_MSG_DEV_NOTIFY,
};

static void add_rest(void)
{
	unsigned n = 0;

	while (n < N_ALL && requests[n])
		n++;
	for (unsigned i = 0, j; n < N_ALL && i < N_ALL; i++) {
		for (j = 0; j < n && requests[j] != all[i]; j++)
			;
		if (j == n)
			requests[n++] = all[i];
	}
}

static void request(struct play *p, struct input *in)
{
	static _Alignas(8) unsigned char msg[SIO_WIRE_MAX];
	struct world_client *c = p->client[take8(in) % CLIENTS];
	uint32_t type = requests[take8(in) % N_ALL];
	size_t size = sio_client_request_size(type);

	take(in, msg + sizeof(struct sio_msg), size - sizeof(struct sio_msg));
	memset(msg, 0, sizeof(struct sio_msg));
	world_send(p->w, c, type, msg, size);
}

static void raw_packet(struct play *p, struct input *in)
{
	_Alignas(8) unsigned char msg[64];
	struct world_client *c = p->client[take8(in) % CLIENTS];
	size_t len = take8(in) % (sizeof(msg) + 1);

	take(in, msg, len);
	world_send_raw(p->w, c, msg, len);
}

#define NUMBERS 96u /* of peer messages, those that nobody knows among them */

/* Such a field cuts the peer off, unless it is 0: most times it is, so that others are met. */
static void clear_reserved(unsigned char *msg, uint32_t type, bool reply)
{
	for (size_t i = 0; i < N_PEER_TYPES; i++)
		if (peer_types[i] == type && peer_zero[i][reply])
			memset(msg + peer_zero[i][reply], 0, sizeof(sio_le32));
}

/* As if node 8 had said it. */
static void peer_packet(struct play *p, struct input *in)
{
	static _Alignas(8) unsigned char msg[SIO_WIRE_MAX];
	unsigned pick = take8(in);
	uint32_t type = pick < NUMBERS ? SIO_PEER_HELLO + pick
				       : peer_types[(pick - NUMBERS) % N_PEER_TYPES];
	unsigned how = take8(in);
	uint32_t reply = how % 2 ? SIO_PEER_REPLY : 0;
	size_t size = sio_peer_size(type | reply);
	struct sio_msg *h = (struct sio_msg *)msg;

	if (size == 0)
		size = sizeof(*h);
	take(in, msg, size);
	if (how / 2 % 4 < 3)
		clear_reserved(msg, type, reply);
	h->size = sio_to_le32((uint32_t)size);
	h->type = sio_to_le32(type | reply);
	if (!reply)
		h->error = sio_to_le32(0);
	if (sio_peer_is_notification(type))
		h->id = sio_to_le32(0);
	smartiod_peer_message(p->w->host[0].daemon, 8, msg, size);
}

static void replace_client(struct play *p, struct input *in)
{
	unsigned i = take8(in) % CLIENTS;

	world_kill(p->w, p->client[i]);
	if (p->w->n_clients < WORLD_CLIENTS - 1) /* one is for the reset */
		p->client[i] = world_client(p->w, i % 2, SIO_CLIENT_LIBRARY);
}

static void act(struct play *p, struct input *in)
{
	switch (take8(in) % 12) {
	default:
		request(p, in);
		return;
	case 6:
		for (unsigned n = take8(in) % 8; n > 0; n--)
			world_step(p->w);
		return;
	case 7:
		world_run(p->w);
		return;
	case 8:
		replace_client(p, in);
		return;
	case 9:
		world_link(p->w, 0, 1, !p->w->link[0][1]);
		return;
	case 10:
		raw_packet(p, in);
		return;
	case 11:
		peer_packet(p, in);
		return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct play p = {.w = world_new(2, take8(&in) % 4)};
	struct fake_device device;

	add_rest();
	fake_device_add(p.w, &device);
	world_start(p.w);
	for (unsigned i = 0; i < CLIENTS; i++)
		p.client[i] = world_client(p.w, i % 2, SIO_CLIENT_LIBRARY);
	while (in.left > 0) {
		act(&p, &in);
		for (unsigned i = 0; i < CLIENTS; i++)
			world_forget(p.client[i]);
	}
	world_link(p.w, 0, 1, true);
	for (unsigned i = 0; i < CLIENTS; i++)
		world_kill(p.w, p.client[i]);
	world_run(p.w);
	call_last_reset(p.w, sio_topology_fdid(4, 1));
	world_pass(p.w, 6000000000ULL);
	assert_nothing_left(p.w);
	world_free(p.w);
	return 0;
}
