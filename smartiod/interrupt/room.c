/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the interrupt room: interrupts with and without data, and their senders. */
#include <stdio.h>

#include "smartiod/base/room.h"
#include "smartiod/interrupt/dint.h"

static const struct smartiod_request requests[] = {
	SIO_CLIENT_INTERRUPT(SMARTIOD_OWNERS){0, false, NULL},
};

static const struct smartiod_message messages[] = {
	SIO_PEER_INTERRUPT(SMARTIOD_PEERS){0, NULL},
};

static void lookup_late(struct smartiod *d, uint32_t node, const void *reply)
{
	const struct sio_prep_dint_lookup *rep = reply;

	smartiod_dint_release(d, node, sio_from_le64(rep->ring), sio_from_le64(rep->link));
}

static const struct smartiod_late late[] = {
	{SIO_PEER_DINT_LOOKUP, lookup_late},
	{0, NULL},
};

static void dint_drop(struct smartiod *d, struct smartiod_object *o)
{
	smartiod_dint_end(d, (struct smartiod_dint *)o, true);
}

static void link_drop(struct smartiod *d, struct smartiod_object *o)
{
	smartiod_dint_link_close(d, (struct smartiod_dint_link *)o);
}

static const struct smartiod_kind_ops kinds[] = {
	{SMARTIOD_DINT, dint_drop, false, smartiod_dint_restored},
	{SMARTIOD_DINT_LINK, link_drop, false, NULL},
	{0, NULL, false, NULL},
};

/* ---- a client comes back ---- */

static void notify_lost(struct smartiod *d, struct smartiod_session *s, uint32_t type,
			const struct sio_msg_restore *m)
{
	struct sio_evm_dint_ring evm = {
		.handle = m->handle, .ring = m->number, .node = sio_to_le32(d->node)};

	smartiod_event(d, s, type, &evm, sizeof(evm), NULL, 0);
}

static void dint_lost(struct smartiod *d, struct smartiod_session *s,
		      const struct sio_msg_restore *m)
{
	notify_lost(d, s, SIO_EVM_DINT_LOST, m);
}

static void ring_lost(struct smartiod *d, struct smartiod_session *s,
		      const struct sio_msg_restore *m)
{
	notify_lost(d, s, SIO_EVM_DINT_RING_END, m);
}

static const struct smartiod_restorable restores[] = {
	{SIO_MSG_DINT_CREATE, SMARTIOD_RESTORE_OWN, smartiod_restore_dint, dint_lost},
	{SIO_EVM_DINT_RING, SMARTIOD_RESTORE_OWN, smartiod_restore_ring, ring_lost},
	{SIO_MSG_DINT_CONNECT, SMARTIOD_RESTORE_ALL, smartiod_restore_dint_link, dint_lost},
	{0, 0, NULL, NULL},
};

/* ---- listings, losses ---- */

static bool dint_row(struct smartiod *d, uint64_t after, struct sio_wire_row *ret)
{
	const struct smartiod_dint *i;
	char at[24];

	i = SMARTIOD_OF(smartiod_tree_after(&d->dints, after), struct smartiod_dint, by_uid);
	if (!i)
		return false;
	ret->key = sio_to_le64(i->uid);
	ret->owner = sio_to_le64(i->owner);
	ret->id = sio_to_le32(i->number);
	ret->node = sio_to_le32(d->node);
	ret->refs = sio_to_le32(i->plain ? 0 : i->n_rings);
	ret->flags = sio_to_le32(i->removed ? SIO_ROW_QUARANTINED : SIO_ROW_LIVE);
	ret->pid = sio_to_le32(i->pid);
	snprintf(ret->name, sizeof(ret->name), "%s%s%s", smartiod_dint_adapter(i, at, sizeof(at)),
		 i->plain ? ", plain" : "", i->is_hub ? ", shared" : "");
	return true;
}

static const struct smartiod_rows rows[] = {
	{SIO_LIST_DINTS, dint_row},
	{0, NULL},
};

static void imports_lost(struct smartiod *d, uint32_t node, enum smartiod_loss why)
{
	if (why == SMARTIOD_NODE_DOWN)
		smartiod_dint_link_node_down(d, node);
}

static void parting(struct smartiod *d, uint32_t node, bool gone)
{
	if (!gone)
		return; /* the link may come back */
	smartiod_rings_parting(d, node);
	smartiod_dint_links_parting(d, node);
}

const struct smartiod_room smartiod_room_interrupt = {
	.name = "interrupt",
	.forbidden = smartiod_rings_forbidden,
	.parting = parting,
	.requests = requests,
	.messages = messages,
	.late = late,
	.kinds = kinds,
	.restores = restores,
	.rows = rows,
	.free_all = smartiod_dint_free_all,
	.resume = smartiod_interrupt_resume,
	.resumed = smartiod_dint_links_resumed,
	.grant_again = smartiod_dint_link_grant_again,
	.answered = smartiod_interrupt_answered,
	.imports_lost = imports_lost,
	.has_grant = smartiod_dint_link_has,
};
