/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The replies of the malicious host to daemons whose programs use its objects: the true reply, the
 * true one with a field changed, another one of the right form, an error of any number, none, or
 * one of these late, or a true and a false one. Only a grant that exists can be mapped, so false
 * replies name one of those that the asking host was given, for whatever purpose.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "edge/edge.h"
#include "emu/device/device.h"
#include "fault/liar.h"
#include "fault/stranger.h"
#include "run/run.h"
#include "smartiod/lender/lend.h"
#include "wire/check.h"
#include "wire/peer.h"

#define LATE (8 * SIM_SECOND) /* longer than anybody waits */
#define ALTERED 6u	      /* one true reply in so many is changed */
#define TEXT_ENDS 64u	      /* one error in so many is malformed, and the liar disconnected */
#define LONGEST 2048u
#define GRANT "GLLN????"
#define PIECE "LLNLxb" GRANT
#define PIECES4 PIECE PIECE PIECE PIECE

/* The fields of requests and of replies, by the letters of fault/liar.c. */
static const struct answer {
	uint32_t type;
	const char *asked, *said;
} answers[] = {
	{SIO_PEER_PING, "", ""},
	{SIO_PEER_SEG_LOOKUP, "CUiaf0", "CULi0"},
	{SIO_PEER_SEG_GRANT, "UCLLnxaax0", GRANT},
	{SIO_PEER_DINT_LOOKUP, "Csaab", "CR" GRANT GRANT},
	{SIO_PEER_BORROW, "Nf0s0", "Bfs" /* and what the device is */},
	{SIO_PEER_RETURN, "Bf000", ""},
	{SIO_PEER_RELEASE_EXCLUSIVE, "Bf000", ""},
	{SIO_PEER_DEV_SEG_CREATE, "BLUfix0", "BULfni0"},
	{SIO_PEER_DEV_SEG_LOOKUP, "Bfix0", "BULfni0"},
	{SIO_PEER_BAR_GRANT, "BLLfsxaa0z", "Bfb" PIECES4 PIECES4 PIECES4 PIECES4},
	{SIO_PEER_DMA_MAP, "BUCLLIfna00b", "BMILf0"},
	{SIO_PEER_DMA_UNMAP, "BMf0", ""},
	{SIO_PEER_RESET, "Bf0b0", ""},
	{SIO_PEER_SETTLED, "BNfs", ""},
	{SIO_PEER_HOLD, "BNILf0", "BNfs"},
	{SIO_PEER_UNHOLD, "BNf0", "Nn0"},
	{SIO_PEER_ASSIGN, "BNLLfs", ""},
	{SIO_PEER_NOTIFY, "Bf000", ""},
	{SIO_PEER_VECTOR, "Bfsnas0", "Bfs"},
	{SIO_PEER_UNVECTOR, "Bfsnas0", ""},
};

struct late {
	uint32_t node;
	uint64_t boots; /* of the malicious host, when it was asked */
	size_t len;
	uint8_t msg[LONGEST];
};

static struct liar_standing asker; /* what the last request was about */

static const struct answer *find(uint32_t type)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (answers[i].type == type)
			return &answers[i];
	return NULL;
}

/* Records the fields of a request in @s. */
static void note(const struct answer *a, struct liar_standing *s, const uint8_t *at)
{
	for (const char *w = a->asked; *w; w++) {
		uint64_t v = 0;

		memcpy(&v, at, liar_word_bytes(*w));
		at += liar_word_bytes(*w);
		if (*w == 'f')
			s->fdid = (uint32_t)v;
		else if (*w == 'i')
			s->id = (uint32_t)v;
		else
			s->number[(unsigned)*w] = v;
	}
}

/*
 * Not those of the fault "stranger": the port would map them for the asker, whose stores would then
 * change memory whose every byte the stranger knows.
 */
static bool may_be_named(const struct emu_grant *g, unsigned host)
{
	return g->peer_host == host && !stranger_find(sim_liar(), g->o.id);
}

/* Any grant of the malicious host for @host. NULL: there is none. */
static const struct emu_grant *a_grant(unsigned host)
{
	const struct emu_grant *g, *next, *found = NULL;
	const struct emu_host *h = &sim_cluster->room->host[sim_liar()];
	unsigned n = 0, wanted;

	HASH_ITER (by_token, h->grants, g, next)
		n += may_be_named(g, host);
	if (n == 0)
		return NULL;
	wanted = (unsigned)liar_draw(n);
	HASH_ITER (by_token, h->grants, g, next)
		if (may_be_named(g, host) && wanted-- == 0)
			found = g;
	return found;
}

static void put_grant(const struct emu_grant *g, uint8_t *at)
{
	struct sio_wire_grant w = {
		.grant = sio_to_le64(g->o.id),
		.bus_addr = sio_to_le64(g->bus_addr),
		.length = sio_to_le64(g->length),
		.generation = sio_to_le64(g->start),
	};

	memcpy(w.token, g->token, sizeof(w.token));
	memcpy(at, &w, sizeof(w));
}

/* Puts grants that exist in most of the places where @words have one. */
static void put_grants(const char *words, uint8_t *msg)
{
	size_t at = sizeof(struct sio_msg);

	for (const char *w = words; *w; w++) {
		const struct emu_grant *g =
			strncmp(w, GRANT, 8) == 0 ? a_grant(liar_now->host) : NULL;

		if (g && liar_draw(4))
			put_grant(g, msg + at);
		at += liar_word_bytes(*w);
	}
}

/* Names a device segment of any other host, of any device. */
static void put_device_segment(struct sio_prep_dev_seg *rep)
{
	const struct smartiod *d = sim_host[liar_draw(sim_liar())].daemon;
	struct smartiod_tree_node *n = NULL;
	uint64_t before = liar_draw(8);

	while (d && (n = smartiod_tree_after(&d->segments, n ? n->key : 0))) {
		const struct smartiod_segment *s = SMARTIOD_OF(n, struct smartiod_segment, by_uid);

		if (!s->device || before-- > 0)
			continue;
		rep->uid = sio_to_le64(n->key);
		rep->bytes = sio_to_le64(s->bytes);
		rep->node = sio_to_le32(d->node);
		return;
	}
}

/* Mostly makes the pieces plausible, so that the borrower uses them. */
static void put_pieces(struct sio_prep_bar_grant *rep)
{
	uint64_t at = 0;
	uint32_t n = 1 + (uint32_t)liar_draw(3);

	if (liar_draw(4) == 0)
		return;
	rep->n_pieces = sio_to_le32(n);
	for (uint32_t i = 0; i < n; i++) {
		struct sio_wire_bar_piece *p = &rep->piece[i];
		uint64_t pages = 1 + liar_draw(2);

		p->offset = sio_to_le64(at);
		p->bytes = sio_to_le64(pages * 4096);
		p->access = sio_to_le32(liar_draw(4) ? 3 : 1);
		at += pages * 4096;
	}
}

static size_t make_reply(const struct answer *a, uint8_t *msg, size_t size)
{
	size_t len = sio_peer_size(a->type | SIO_PEER_REPLY);
	size_t filled = liar_fill(a->said, msg);

	assert(len <= size && filled <= len);
	put_grants(a->said, msg);
	if (a->type == SIO_PEER_BAR_GRANT && sim_has_workload("deceived"))
		put_pieces((struct sio_prep_bar_grant *)msg);
	if (a->type == SIO_PEER_DEV_SEG_LOOKUP && liar_draw(2))
		put_device_segment((struct sio_prep_dev_seg *)msg);
	if (a->type == SIO_PEER_BORROW)
		memset(msg + filled, (int)liar_draw(256), len - filled);
	return len;
}

static size_t make_error(uint8_t *msg)
{
	struct sio_msg_error *e = (struct sio_msg_error *)msg;
	uint32_t number = 1 + (uint32_t)liar_draw(liar_draw(4) ? 133 : 1u << 31);

	e->h.error = sio_to_le32(number);
	e->reason =
		sio_to_le32((uint32_t)liar_draw(SIO_OUT_OF_COUNT + (liar_draw(TEXT_ENDS) == 0)));
	e->reserved = sio_to_le32(0);
	memset(e->text, 'x', sizeof(e->text) - (liar_draw(TEXT_ENDS) > 0));
	return sizeof(*e);
}

static void say_late(void *arg)
{
	struct late *l = arg;

	if (!sim_stopping && liar_lies() && sim_host_alive(sim_liar()) &&
	    sim_host_boots(sim_liar()) == l->boots)
		sim_peer_send(&sim_host[sim_liar()], l->node, l->msg, l->len);
	free(l);
}

static void answer(const struct answer *a, uint32_t node, const struct sio_msg *asked, bool error,
		   uint64_t delay)
{
	struct late *l = calloc(1, sizeof(*l));
	struct sio_msg *h;

	assert(l);
	h = (struct sio_msg *)l->msg;
	l->node = node;
	l->boots = sim_host_boots(sim_liar());
	l->len = error ? make_error(l->msg) : make_reply(a, l->msg, sizeof(l->msg));
	h->size = sio_to_le32((uint32_t)l->len);
	h->type = sio_to_le32(a->type | SIO_PEER_REPLY);
	h->id = asked->id;
	sim_trace("daemon %u answers daemon %u, type %u error %u: a lie", sim_node(sim_liar()),
		  node, a->type, sio_from_le32(h->error));
	sim_wild.answers++;
	sim_after(delay, say_late, l);
}

bool liar_answers(uint32_t node, const void *msg, size_t len)
{
	const struct sio_msg *h = msg;
	const struct answer *a = find(sio_from_le32(h->type));
	bool error;

	if (!a || !h->id || len != sio_peer_size(a->type))
		return false;
	asker = (struct liar_standing){.host = sim_host_of(node)};
	note(a, &asker, (const uint8_t *)(h + 1));
	liar_now = &asker;
	/* This request is rare, so every second one is answered falsely. */
	if (a->type == SIO_PEER_DEV_SEG_LOOKUP && liar_draw(2)) {
		answer(a, node, h, false, 0);
		return true;
	}
	/* Without true replies to most of these no client could use a drive. */
	if (a->type == SIO_PEER_BAR_GRANT && sim_has_workload("deceived") && liar_draw(4) == 0) {
		answer(a, node, h, false, 0);
		return true;
	}
	switch (liar_draw(16)) {
	case 0: /* it does not answer */
		return true;
	case 1:
		answer(a, node, h, true, 0);
		return true;
	case 2:
		error = liar_draw(2);
		answer(a, node, h, error, liar_draw(LATE));
		return true;
	case 3: /* and the true daemon replies, too */
		error = liar_draw(4) == 0;
		answer(a, node, h, error, liar_draw(SIM_MS));
		return false;
	case 4:
	case 5:
	case 6:
		answer(a, node, h, false, 0);
		return true;
	default:
		return false;
	}
}

/* Changes what one piece of the registers is, or where it lies; the rest stays true. */
static void alter_piece(struct sio_prep_bar_grant *rep)
{
	const struct emu_grant *g = a_grant(liar_now->host);
	uint32_t n = sio_from_le32(rep->n_pieces);
	struct sio_wire_bar_piece *p = &rep->piece[n ? liar_draw(n) % SIO_MAP_PIECES : 0];
	uint64_t bytes = sio_from_le64(p->bytes);

	switch (liar_draw(6)) {
	case 0:
	case 1:
		if (g)
			put_grant(g, (uint8_t *)&p->g);
		break;
	case 2:
		p->bytes = sio_to_le64(liar_draw(2) ? 2 * bytes : bytes / 2);
		break;
	case 3:
		p->offset = sio_to_le64(sio_from_le64(p->offset) + 4096);
		break;
	case 4:
		p->access = sio_to_le32(sio_from_le32(p->access) ^ 2);
		break;
	default:
		rep->n_pieces = sio_to_le32(n ^ 1);
	}
	sim_wild.answers++;
}

void liar_alters(uint8_t *msg, size_t len)
{
	const struct sio_msg *h = (const struct sio_msg *)msg;
	uint32_t type = sio_from_le32(h->type);
	const struct answer *a = find(SIO_PEER_TYPE(type));
	size_t at = sizeof(*h);
	uint8_t other[LONGEST];
	const char *w;

	if (!(type & SIO_PEER_REPLY) || !a || h->error || !*a->said || len != sio_peer_size(type))
		return;
	liar_now = &asker;
	if (a->type == SIO_PEER_BAR_GRANT && sim_has_workload("deceived") && liar_draw(2)) {
		alter_piece((struct sio_prep_bar_grant *)msg);
		return;
	}
	if (liar_draw(ALTERED))
		return;
	liar_fill(a->said, other);
	w = a->said + liar_draw(strlen(a->said));
	for (const char *before = a->said; before < w; before++)
		at += liar_word_bytes(*before);
	memcpy(msg + at, other + at, liar_word_bytes(*w));
	sim_wild.answers++;
}
