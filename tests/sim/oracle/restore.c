/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recovery after a restart of smartiod: what programs claim, and what the daemon accepts. It is
 * intercepted at their connections, so neither a journal nor a daemon's tables are trusted.
 *
 * Honest programs claim, for a borrow, the generation of which they were notified last, and no
 * object before its parent; and when an answer got lost they do not request the removal of a
 * removed object again. Of dishonest ones (work/perjurer.c) the true claims are known: a forged one
 * is not accepted where it makes something another program's, or other than its creator says. And
 * for a program that has claimed everything, nothing is left that it did not claim. A program whose
 * claim is refused has been notified of the loss before, as without a restart.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "edge/daemon_state.h"
#include "sisci_api.h"
#include "oracle/restore.h"
#include "run/run.h"
#include "wire/client.h"
#include "run/listener.h"

#define HANDLES 1024u

/* The generation of a device that a program was told last, by its handle. */
struct told {
	struct notified_key {
		uint64_t pid, handle;
	} key;
	uint32_t generation;
	UT_hash_handle hh;
};

/* That something be taken away; by whom and where it was asked first. */
struct asked {
	struct notified_key key; /* .handle: the request's number */
	uint64_t client;
	UT_hash_handle hh;
};

/* A connection that says what it has. */
struct talk {
	uint64_t client;
	struct sio_msg_restore said; /* without an answer so far */
	bool told[HANDLES];	     /* in this talk */
	bool had[HANDLES];	     /* and was believed */
	bool lost[HANDLES];	     /* an event told so */
	UT_hash_handle hh;
};

/* Handles of what is gone: what depended on them may be reported once more. */
struct gone {
	struct notified_key key;
	UT_hash_handle hh;
};

static struct told *generations;
static struct talk *talks;
static struct gone *refused;
static struct asked *asked;

static struct talk *talk_of(uint64_t client)
{
	struct talk *t;

	HASH_FIND(hh, talks, &client, sizeof(client), t);
	if (!t) {
		t = calloc(1, sizeof(*t));
		assert(t);
		t->client = client;
		HASH_ADD(hh, talks, client, sizeof(t->client), t);
	}
	return t;
}

/* ---- the honest ---- */
/* Handle that @m depends on; 0: none. */
static uint32_t hangs_on(const struct sio_msg_restore *m)
{
	switch (restore_type(m)) {
	case SIO_EVM_DINT_RING:
	case SIO_MSG_DEV_SEG_CREATE:
	case SIO_MSG_DEV_VECTOR:
	case SIO_MSG_DEV_HOLD:
		return sio_from_le32(m->handle);
	case SIO_MSG_SEG_MAP:
		return sio_from_le32(
			((const struct sio_msg_seg_map *)(const void *)m->request)->handle);
	}
	return 0;
}

static bool is_part(uint32_t type)
{
	return type == SIO_EVM_DINT_RING || type == SIO_MSG_DEV_SEG_CREATE ||
	       type == SIO_MSG_DEV_VECTOR || type == SIO_MSG_DEV_HOLD;
}

static bool was_refused(uint64_t pid, uint32_t handle)
{
	struct notified_key k = {pid, handle};
	struct gone *g;

	HASH_FIND(hh, refused, &k, sizeof(k), g);
	return g;
}

static void check_honest(const struct sim_proc *p, struct talk *t, const struct sio_msg_restore *m)
{
	uint32_t on = hangs_on(m);
	struct notified_key k = {p->pid, sio_from_le32(m->handle)};
	struct told *g;

	if (on && on < HANDLES && !t->told[on] && !was_refused(p->pid, on))
		sim_fail("restore",
			 "%s reports what request %u made with handle %u, and not of that", p->name,
			 restore_type(m), on);
	if (restore_type(m) != SIO_MSG_DEV_BORROW)
		return;
	HASH_FIND(hh, generations, &k, sizeof(k), g);
	if (g && g->generation != sio_from_le32(m->number))
		sim_fail("restore", "%s was told generation %u of a device, and says %u", p->name,
			 g->generation, sio_from_le32(m->number));
}

static bool takes_away(uint32_t type)
{
	return type == SIO_MSG_SEG_REMOVE || type == SIO_MSG_SEG_DISCONNECT ||
	       type == SIO_MSG_SEG_UNMAP || type == SIO_MSG_DINT_REMOVE ||
	       type == SIO_MSG_DINT_DISCONNECT || type == SIO_MSG_DEV_RETURN ||
	       type == SIO_MSG_DMA_UNMAP;
}

/* What a request is for is there, as this smartiod believes, if it was asked of another before. */
static void check_twice(const struct sim_proc *p, uint64_t client, const struct sio_msg_handle *m)
{
	struct notified_key k = {p->pid, sio_from_le32(m->h.id)};
	uint32_t handle = sio_from_le32(m->handle);
	struct asked *a;

	if (k.handle == 0 || !takes_away(sio_from_le32(m->h.type)))
		return;
	HASH_FIND(hh, asked, &k, sizeof(k), a);
	if (!a) {
		a = calloc(1, sizeof(*a));
		assert(a);
		a->key = k;
		a->client = client;
		HASH_ADD(hh, asked, key, sizeof(a->key), a);
	}
	if (a->client != client && handle < HANDLES && !talk_of(client)->had[handle])
		sim_fail("restore", "%s asks again for handle %u to be taken away, which is gone",
			 p->name, handle);
}

static void said(struct sim_proc *p, uint64_t client, void *msg, size_t len)
{
	struct sio_msg_restore *m = msg;
	struct talk *t;

	if (!p->perjurer && len >= sizeof(struct sio_msg_handle))
		check_twice(p, client, msg);
	if (len != sizeof(*m) || sio_from_le32(m->h.type) != SIO_MSG_RESTORE)
		return;
	t = talk_of(client);
	if (m->key || p->perjurer)
		restore_note_claim(p->pid, m);
	sim_note_restore(p, m);
	if (!p->perjurer)
		check_honest(p, t, m);
	t->said = *m;
	if (!is_part(restore_type(m)) && sio_from_le32(m->handle) < HANDLES)
		t->told[sio_from_le32(m->handle)] = true;
}

/* ---- what is answered ---- */
/* The handle that an event says is lost; 0: none. */
static uint32_t lost_by(const struct sio_msg *msg)
{
	const struct sio_evm_segment *seg = (const void *)msg;
	const struct sio_evm_dint_ring *dint = (const void *)msg;
	const struct sio_evm_device *device = (const void *)msg;

	switch (sio_from_le32(msg->type)) {
	case SIO_EVM_SEGMENT_LOCAL:
	case SIO_EVM_SEGMENT_REMOTE:
		return sio_from_le32(seg->loss) == SIO_LOSS_LOST ? sio_from_le32(seg->handle) : 0;
	case SIO_EVM_DINT_LOST:
		return sio_from_le32(dint->handle);
	case SIO_EVM_DEVICE:
		return sio_from_le32(device->event) == SIO_DEVICE_EV_LOST
			       ? sio_from_le32(device->handle)
			       : 0;
	}
	return 0;
}

/* What is not missed until it is used: its end is no event. */
static bool ends_silently(uint32_t type)
{
	return is_part(type) || type == SIO_MSG_DMA_MAP || type == SIO_MSG_SEG_MAP;
}

static void check_notified(const struct sim_proc *p, const struct talk *t)
{
	uint32_t handle = sio_from_le32(t->said.handle);

	if (handle < HANDLES && !t->lost[handle] && !ends_silently(restore_type(&t->said)))
		sim_fail(
			"restore",
			"%s is refused what request %u made, handle %u, and not notified of the loss",
			p->name, restore_type(&t->said), handle);
}

static void answered(struct sim_proc *p, uint64_t client, const struct sio_msg *rep)
{
	uint32_t lost = lost_by(rep);
	struct talk *t;
	struct gone *g;

	if (lost && lost < HANDLES)
		talk_of(client)->lost[lost] = true;
	if (sio_from_le32(rep->type) != SIO_MSG_RESTORE)
		return;
	t = talk_of(client);
	/* It is not refused, and is sent again. */
	if (sio_from_le32(rep->error) == ENOMEM && !p->perjurer)
		return;
	if (rep->error && !p->perjurer)
		check_notified(p, t);
	if (!rep->error) {
		restore_check_accepted(p, t->client, &t->said);
		if (!is_part(restore_type(&t->said)) && sio_from_le32(t->said.handle) < HANDLES)
			t->had[sio_from_le32(t->said.handle)] = true;
	} else if (!is_part(restore_type(&t->said)) &&
		   !was_refused(p->pid, sio_from_le32(t->said.handle))) {
		g = calloc(1, sizeof(*g));
		assert(g);
		g->key = (struct notified_key){p->pid, sio_from_le32(t->said.handle)};
		HASH_ADD(hh, refused, key, sizeof(g->key), g);
	}
}

/* ---- what programs are told ---- */
static void generation(const struct sim_proc *p, sio_le32 handle, sio_le32 number)
{
	struct notified_key k = {p->pid, sio_from_le32(handle)};
	struct told *g;

	HASH_FIND(hh, generations, &k, sizeof(k), g);
	if (!g) {
		g = calloc(1, sizeof(*g));
		assert(g);
		g->key = k;
		HASH_ADD(hh, generations, key, sizeof(g->key), g);
	}
	g->generation = sio_from_le32(number);
}

static void heard(struct sim_proc *p, const void *msg, size_t len)
{
	const struct sio_rep_dev_borrow *borrow = msg;
	const struct sio_evm_device *evm = msg;
	uint32_t type = len >= sizeof(struct sio_msg) ? sio_from_le32(evm->h.type) : 0;

	if (type == SIO_MSG_DEV_BORROW && len == sizeof(*borrow) && !borrow->h.error)
		generation(p, borrow->handle, borrow->generation);
	if (type == SIO_EVM_DEVICE && len == sizeof(*evm) &&
	    sio_from_le32(evm->event) == SIO_DEVICE_EV_RESET)
		generation(p, evm->handle, evm->generation);
}

/* ---- what is left ---- */
static void check(void)
{
	const char *what;
	uint64_t owner;

	for (unsigned h = 0; sim_outliving && h < sim_hosts(); h++)
		if (tables_quiet(h) && (what = tables_unclaimed(h, &owner)))
			sim_fail("restore",
				 "node %u: %s of owner %" PRIu64
				 ", who said all that it has, stays unclaimed",
				 sim_node(h), what, owner);
}

static void start(void)
{
	static const struct sim_ears ears = {said, answered, heard};

	sim_ears = sim_outliving ? &ears : NULL;
}

const struct sim_oracle sim_oracle_restore = {
	.name = "restore", .every = SIM_MS, .start = start, .check = check};
