/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of bytes plays libraries on a real host whose smartiod is killed at any moment, with a
 * liar among them: what it says to the next smartiod are its own words and those of others, changed
 * at random. Nobody else may lose a segment or an interrupt of his own over that, and when all are
 * gone nothing may be left. Beside it a journal takes replies and events with any content. For
 * libFuzzer (built with clang), or replay_corpus.c.
 */
#include "device_calls.h"
#include "fake_device.h"
#include "fuzz.h"
#include "input.h"
#include "library.h"

#include <stdlib.h>
#include <string.h>

#include "session/journal.h"
#include "smartiod/restart/restore.h"
#include "wire/check.h"

#define HONEST 3u
#define OWN 16u /* of the liar: what it truly had */
#define STEPS_MAX 4096u

struct play {
	struct world *w;
	struct world_client *honest[HONEST], *liar;
	struct sio_msg_restore own[OWN];
	unsigned n_own, restart_in;
	bool liar_speaks; /* its journal is gone: what it says comes from the input */
	unsigned liar_step;
	struct sio_journal *journal;
};

static const uint32_t requests[] = {
	SIO_MSG_SEG_CREATE,
	SIO_MSG_SEG_PREPARE,
	SIO_MSG_SEG_AVAILABLE,
	SIO_MSG_SEG_REMOVE,
	SIO_MSG_SEG_CONNECT,
	SIO_MSG_SEG_DISCONNECT,
	SIO_MSG_SEG_MAP,
	SIO_MSG_SEG_UNMAP,
	SIO_MSG_SEG_FILL,
	SIO_MSG_SEG_TAKE,
	SIO_MSG_SEG_SHARE,
	SIO_MSG_SEG_ATTACH,
	SIO_MSG_DINT_CREATE,
	SIO_MSG_DINT_REMOVE,
	SIO_MSG_DINT_CONNECT,
	SIO_MSG_DINT_DISCONNECT,
	SIO_MSG_DINT_RING_FREE,
	SIO_MSG_DEV_BORROW,
	SIO_MSG_DEV_RETURN,
	SIO_MSG_DEV_SEG_CREATE,
	SIO_MSG_DEV_SEG_CONNECT,
	SIO_MSG_DMA_MAP,
	SIO_MSG_DMA_UNMAP,
	SIO_MSG_DEV_SETTLED,
	SIO_MSG_DEV_RESET,
	SIO_MSG_DEV_HOLD,
	SIO_MSG_DEV_UNHOLD,
	SIO_MSG_DEV_VECTOR,
	SIO_MSG_DEV_UNVECTOR,
	SIO_MSG_SEG_UNAVAILABLE,
	SIO_MSG_DEV_RELEASE_EXCLUSIVE,
};

#define N_REQUESTS (sizeof(requests) / sizeof(requests[0]))

static size_t fill_request(struct input *in, void *msg, uint32_t type)
{
	size_t size = sio_client_request_size(type);

	take(in, (uint8_t *)msg + sizeof(struct sio_msg), size - sizeof(struct sio_msg));
	memset(msg, 0, sizeof(struct sio_msg));
	return size;
}

/* One at a time of each program, as the library of the test has it. */
static void request(struct play *p, struct input *in)
{
	_Alignas(8) unsigned char msg[SIO_WIRE_MAX];
	unsigned who = take8(in) % (HONEST + 1);
	struct world_client *c = who < HONEST ? p->honest[who] : p->liar;
	uint32_t type = requests[take8(in) % N_REQUESTS];
	size_t size = fill_request(in, msg, type);

	/* Out of turn the liar would be cut off at once. */
	if (who == HONEST && p->liar_speaks && p->liar_step < SIO_RESTORE_STEPS)
		return;
	if (c->connected && !library_busy(c))
		world_send(p->w, c, type, msg, size);
}

/* Each has something, of its own and of the others. */
static void begin(struct play *p)
{
	struct sio_msg_seg_attach attach = {.segment_id = sio_to_le32(5)};
	struct world_client *first = p->honest[0];
	uint32_t handle, number, data, vector;
	struct call_borrow b;
	uint64_t address;

	call_seg_export(p->w, first, 5, 8192, &handle);
	call_handle(p->w, first, SIO_MSG_SEG_SHARE, handle, 0);
	call_dint_create(p->w, first, 3, SCI_FLAG_FIXED_INTNO, &handle, &data);
	for (unsigned i = 1; i <= HONEST; i++) {
		struct world_client *c = i < HONEST ? p->honest[i] : p->liar;

		call_seg_create(p->w, c, 10 + i, 4096, SCI_FLAG_EMPTY, &handle, NULL);
		call_seg_export(p->w, c, 20 + i, 4096, &handle);
		call_borrow(p->w, c, sio_topology_fdid(4, 1), 0, &b);
		call_dma_map_at(p->w, c, b.handle, handle, 0, 0, 4096, &number, &address);
		call_dint_create(p->w, c, 7,
				 SCI_FLAG_SHARED_INT | SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN,
				 &handle, &number);
		call_plain_connect(p->w, c, 4, number, &handle);
		vector = SIO_VECTOR_ANY;
		call_vector(p->w, c, b.handle, &vector, handle);
		call_dint_connect(p->w, c, 4, data, &handle);
		call_seg_connect(p->w, c, 4, 5, &handle);
		call_seg_map(p->w, c, handle, 0, 8192, &number);
		world_call(p->w, c, SIO_MSG_SEG_ATTACH, &attach, sizeof(attach));
	}
}

/* ---- the liar ---- */

static void liar_hello(struct play *p, uint64_t shown)
{
	struct sio_msg_hello m = {.version = sio_to_le32(SIO_CLIENT_VERSION),
				  .kind = sio_to_le32(SIO_CLIENT_LIBRARY)};

	if (!p->liar_speaks || !p->w->host[0].ready)
		return;
	if (!p->liar->connected) {
		p->liar_step = 0;
		world_reconnect(p->w, p->liar);
	}
	p->w->shown = shown;
	world_send_with(p->w, p->liar, SIO_MSG_HELLO, &m, sizeof(m), 1);
}

static void liar_begins(struct play *p)
{
	uint64_t at = 0;

	if (p->liar_speaks || library_busy(p->liar))
		return;
	p->n_own = 0;
	for (unsigned step = 1; step <= SIO_RESTORE_STEPS; step++, at = 0)
		while (p->n_own < OWN && library_next(p->liar, step, &at, &p->own[p->n_own]))
			p->n_own++;
	library_gone(p->liar);
	p->liar_speaks = true;
	world_restart(p->w, 0);
	world_run(p->w);
	liar_hello(p, p->liar->owner);
	world_run(p->w);
}

static bool entry_of_others(struct play *p, struct input *in, struct sio_msg_restore *m)
{
	struct world_client *c = p->honest[take8(in) % HONEST];
	unsigned n = take8(in) % 16, step = 1 + n % SIO_RESTORE_STEPS;
	uint64_t at = 0;
	bool any = false;

	for (n /= SIO_RESTORE_STEPS; library_next(c, step, &at, m); n--) {
		any = true;
		if (n == 0)
			break;
	}
	return any;
}

static void liar_says(struct play *p, struct input *in)
{
	struct sio_msg_restore m;
	uint8_t *bytes = (uint8_t *)&m, how = take8(in);
	struct sio_msg *inner = (struct sio_msg *)m.request;

	memset(&m, 0, sizeof(m));
	if (how % 3 == 0 && p->n_own)
		m = p->own[take8(in) % p->n_own];
	else if (how % 3 != 1 || !entry_of_others(p, in, &m))
		take(in, bytes + sizeof(m.h), sizeof(m) - sizeof(m.h));
	for (unsigned n = how / 3 % 4; n > 0; n--)
		bytes[sizeof(m.h) + take8(in) % (sizeof(m) - sizeof(m.h))] ^= take8(in);
	memset(&m.h, 0, sizeof(m.h));
	if (how & 128) { /* at least well formed */
		inner->type = m.type;
		inner->size =
			sio_to_le32((uint32_t)sio_client_request_size(sio_from_le32(m.type) % 256));
	}
	if (p->liar_speaks && p->liar->connected)
		world_send(p->w, p->liar, SIO_MSG_RESTORE, &m, sizeof(m));
}

static void liar_step(struct play *p, struct input *in)
{
	uint8_t wrong = take8(in);
	unsigned step = wrong % 8 ? p->liar_step + 1 : wrong / 8;
	struct sio_msg_restore_step m = {.step = sio_to_le32(step)};

	p->liar_step += wrong % 8 > 0;
	if (p->liar_speaks && p->liar->connected)
		world_send(p->w, p->liar, SIO_MSG_RESTORE_STEP, &m, sizeof(m));
}

/* It is killed, and another one begins. */
static void liar_ends(struct play *p)
{
	if (p->w->n_clients == WORLD_CLIENTS - 1) /* one is for the reset */
		return;
	if (!p->liar_speaks)
		library_gone(p->liar);
	p->restart_in = 0; /* no owner is lost on its way to who begins */
	world_kill(p->w, p->liar);
	world_run(p->w);
	world_pass(p->w, SMARTIOD_GRACE_NS);
	p->liar = world_client(p->w, 0, SIO_CLIENT_LIBRARY);
	p->liar_speaks = false;
	p->n_own = 0;
}

/* ---- a journal by itself ---- */

static void journal_word(struct play *p, struct input *in)
{
	static const uint32_t events[] = {SIO_EVM_SEGMENT_LOCAL, SIO_EVM_SEGMENT_REMOTE,
					  SIO_EVM_DINT_RING,	 SIO_EVM_DINT_RING_END,
					  SIO_EVM_DINT_LOST,	 SIO_EVM_DEVICE};
	_Alignas(8) unsigned char req[SIO_WIRE_MAX], rep[SIO_WIRE_MAX];
	struct sio_journal_entry *e = NULL;
	struct sio_msg_restore m;
	uint8_t what = take8(in);
	uint32_t type = what < 192 ? requests[what % N_REQUESTS] : events[what % 6];
	uint64_t at = 0, before;

	memset(req, 0, sizeof(req));
	memset(rep, 0, sizeof(rep));
	((struct sio_msg *)req)->type = sio_to_le32(type);
	take(in, req + sizeof(struct sio_msg), 32);
	take(in, rep + sizeof(struct sio_msg), 32);
	if (what >= 192) {
		sio_journal_event(p->journal, (struct sio_msg *)req);
	} else {
		if (sio_journal_prepare(type, &e) < 0)
			abort();
		sio_journal_done(p->journal, e, (struct sio_msg *)req, (struct sio_msg *)rep);
	}
	for (unsigned step = 1; step <= SIO_RESTORE_STEPS; step++, at = 0)
		for (before = 0; sio_journal_next(p->journal, step, &at, &m); before = at)
			if (at <= before || !sio_from_le32(m.type))
				abort();
}

/* ---- the play ---- */

static void before_step(struct world *w, void *arg)
{
	struct play *p = arg;

	if (p->restart_in && --p->restart_in == 0)
		world_restart(w, 0);
	library_pump(w, NULL);
}

static void act(struct play *p, struct input *in)
{
	switch (take8(in) % 16) {
	default:
		request(p, in);
		return;
	case 5:
		p->restart_in = 1 + take8(in);
		return;
	case 6:
		for (unsigned n = take8(in) % 8; n > 0; n--)
			world_step(p->w);
		return;
	case 7:
	case 8:
		world_run(p->w);
		return;
	case 9:
		journal_word(p, in);
		return;
	case 10:
		liar_begins(p);
		return;
	case 11:
		/* Descriptors cannot be forged; it may hold one of something else. */
		liar_hello(p, take8(in) % 8 == 7 ? 7 : p->liar->owner);
		return;
	case 12:
	case 13:
		liar_says(p, in);
		return;
	case 14:
		liar_step(p, in);
		return;
	case 15:
		liar_ends(p);
		return;
	}
}

/* All are killed; what they left goes with a reset. */
static void end(struct play *p)
{
	struct world *w = p->w;

	p->restart_in = 0;
	world_run(w);
	world_pass(w, SMARTIOD_GRACE_NS);
	if (!w->host[0].ready || library_lost_own())
		abort();
	library_end(w);
	world_pass(w, SMARTIOD_GRACE_NS);
	call_last_reset(w, sio_topology_fdid(4, 1));
	world_pass(w, 6000000000ULL);
	assert_nothing_left(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct play p = {.w = world_new(1, take8(&in) % 4), .journal = sio_journal_new()};
	struct fake_device device;

	p.w->real = true;
	fake_device_add(p.w, &device);
	world_start(p.w);
	library_begin(p.w);
	p.w->before_arg = &p;
	p.w->before_step = before_step;
	for (unsigned i = 0; i < HONEST; i++)
		p.honest[i] = world_client(p.w, 0, SIO_CLIENT_LIBRARY);
	p.liar = world_client(p.w, 0, SIO_CLIENT_LIBRARY);
	begin(&p);
	for (unsigned n = 0; in.left > 0 && n < STEPS_MAX; n++) {
		act(&p, &in);
		for (unsigned i = 0; i < p.w->n_clients; i++)
			if (p.w->client[i].n_messages > WORLD_MESSAGES / 2)
				world_forget(&p.w->client[i]);
	}
	end(&p);
	sio_journal_free(p.journal);
	world_free(p.w);
	return 0;
}
