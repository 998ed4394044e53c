/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forged release: a daemon reports to another one the end of objects that a third host has there,
 * with the right numbers. The receiver must ignore it.
 */
#include "edge/daemon_state.h"
#include "edge/edge.h"
#include "run/run.h"
#include "smartiod/lender/lend.h"
#include "smartiod/segment/connection.h"
#include "wire/peer.h"

/* The node id of the host that an object belongs to; @n: its node in the tree. */
typedef uint32_t owner_fn(struct smartiod_tree_node *n);

static uint32_t grant_owner(struct smartiod_tree_node *n)
{
	return SMARTIOD_OF(n, struct smartiod_grant, by_id)->node;
}

static uint32_t connection_owner(struct smartiod_tree_node *n)
{
	return SMARTIOD_OF(n, struct smartiod_connection, by_id)->node;
}

static uint32_t loan_owner(struct smartiod_tree_node *n)
{
	return SMARTIOD_OF(n, struct smartiod_loan, by_id)->node;
}

/* The number of an object that does not belong to @node; 0: there is none. */
static uint64_t of_others(const struct smartiod_tree *t, owner_fn *owner, uint32_t node,
			  uint64_t drawn)
{
	struct smartiod_tree_node *n;
	uint64_t count = 0;

	for (unsigned round = 0; round < 2; round++) {
		for (n = smartiod_tree_after(t, 0); n; n = smartiod_tree_after(t, n->key))
			if (owner(n) != node && (round == 0 ? ++count == 0 : drawn-- == 0))
				return n->key;
		if (count == 0)
			return 0;
		drawn %= count;
	}
	return 0;
}

static void say(struct smartiod *d, uint32_t node, struct sio_msg *msg, size_t len, uint32_t type)
{
	msg->size = sio_to_le32((uint32_t)len);
	msg->type = sio_to_le32(type);
	sim_trace("daemon %u <- daemon %u type %u, a lie", d->node, node, type);
	sim_did.forge++;
	smartiod_peer_message(d, node, msg, len);
}

static void lie(struct smartiod *d, uint32_t node, unsigned kind, uint64_t drawn)
{
	struct sio_peer_seg_event event = {.loss = sio_to_le32(SIO_LOSS_LOST),
					   .reason = sio_to_le32(SCI_CB_LOST)};
	struct sio_peer_borrower ret = {.h.id = sio_to_le32(0x7fffffff)};
	struct sio_peer_grant_release release = {.grant = sio_to_le64(0)};
	uint64_t number;

	if (kind == 0) {
		number = of_others(&d->grants, grant_owner, node, drawn);
		release.grant = sio_to_le64(number);
		if (number)
			say(d, node, &release.h, sizeof(release), SIO_PEER_GRANT_RELEASE);
	} else if (kind == 1) {
		number = of_others(&d->connections, connection_owner, node, drawn);
		event.connection = sio_to_le64(number);
		if (number)
			say(d, node, &event.h, sizeof(event), SIO_PEER_SEG_EVENT);
	} else {
		number = of_others(&d->loans, loan_owner, node, drawn);
		ret.borrower = sio_to_le64(number);
		if (number)
			say(d, node, &ret.h, sizeof(ret), SIO_PEER_RETURN);
	}
}

/* Each daemon receives one such report, of an object and from a host that are drawn. */
static void forge_begin(struct sim_fault_event *e)
{
	for (unsigned i = 0; i < sim_hosts(); i++) {
		struct smartiod *d = sim_host[i].daemon;
		uint32_t node = sim_node((unsigned)(sim_draw(&e->rng) % sim_hosts()));
		unsigned kind = (unsigned)(sim_draw(&e->rng) % 3);
		uint64_t drawn = sim_draw(&e->rng) >> 1;
		const struct smartiod_peer *p = d ? smartiod_peer_find(d, node) : NULL;

		if (p && p->state == SMARTIOD_PEER_READY)
			lie(d, node, kind, drawn);
	}
}

const struct sim_fault sim_fault_forge = {
	.name = "forge", .did = &sim_did.forge, .most = 300, .begin = forge_begin};
