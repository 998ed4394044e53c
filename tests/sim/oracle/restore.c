/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs say to a smartiod that was started again, and what it believes; heard at their
 * connections, so neither a journal nor a daemon's books are taken for true.
 *
 * Honest ones say of a borrow the generation that they were told last, and of nothing that hangs on
 * something else before they have told of that; and what is gone they do not ask to be taken away
 * once more, when the answer got lost. Of perjurers (work/perjurer.c) it is known what
 * they would have said: what they say instead is not believed where it makes something another's,
 * or other than its makers say. And of a program that has said all, nothing is left that it did not
 * tell of. Who is told that something of his is not there any more hears before of its loss, as he
 * would have without a restart.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "edge/daemon_state.h"
#include "sisci_api.h"
#include "run/tables.h"
#include "wire/client.h"
#include "run/listener.h"

#define HANDLES 1024u
#define BORROW_HANDLES 256u /* of those that are looked at */

/* What a program told of honestly, or would have; and what it was believed instead. */
struct known {
	struct known_key {
		uint64_t pid, type, key;
	} key;
	struct sio_msg_restore truth, believed;
	uint64_t client;	     /* of the talk in which it was believed */
	uint64_t as[BORROW_HANDLES]; /* a borrow: the first talk in which it got this handle */
	UT_hash_handle hh;
};

/* The generation of a device that a program was told last, by its handle. */
struct told {
	struct told_key {
		uint64_t pid, handle;
	} key;
	uint32_t generation;
	UT_hash_handle hh;
};

/* That something be taken away; by whom and where it was asked first. */
struct asked {
	struct told_key key; /* .handle: the request's number */
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

/* Handles of what is gone: what hung on them may be told of once more. */
struct gone {
	struct told_key key;
	UT_hash_handle hh;
};

static struct known *all;
static struct told *generations;
static struct talk *talks;
static struct gone *refused;
static struct asked *asked;

static uint32_t type_of(const struct sio_msg_restore *m)
{
	return sio_from_le32(m->type);
}

static struct known *find(uint64_t pid, uint32_t type, uint64_t key)
{
	struct known_key k = {pid, type, key};
	struct known *found;

	HASH_FIND(hh, all, &k, sizeof(k), found);
	return found;
}

static struct known *note(uint64_t pid, const struct sio_msg_restore *m)
{
	struct known *k = find(pid, type_of(m), sio_from_le64(m->key));

	if (!k) {
		k = calloc(1, sizeof(*k));
		assert(k);
		k->key = (struct known_key){pid, type_of(m), sio_from_le64(m->key)};
		HASH_ADD(hh, all, key, sizeof(k->key), k);
	}
	k->truth = *m;
	return k;
}

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
/* Handle that @m hangs on; 0: none. */
static uint32_t hangs_on(const struct sio_msg_restore *m)
{
	switch (type_of(m)) {
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
	struct told_key k = {pid, handle};
	struct gone *g;

	HASH_FIND(hh, refused, &k, sizeof(k), g);
	return g;
}

static void check_honest(const struct sim_proc *p, struct talk *t, const struct sio_msg_restore *m)
{
	uint32_t on = hangs_on(m);
	struct told_key k = {p->pid, sio_from_le32(m->handle)};
	struct told *g;

	if (on && on < HANDLES && !t->told[on] && !was_refused(p->pid, on))
		sim_fail("restore",
			 "%s tells of what request %u made with handle %u, and not of that",
			 p->name, type_of(m), on);
	if (type_of(m) != SIO_MSG_DEV_BORROW)
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
	struct told_key k = {p->pid, sio_from_le32(m->h.id)};
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
		note(p->pid, m);
	sim_note_restore(p, m);
	if (!p->perjurer)
		check_honest(p, t, m);
	t->said = *m;
	if (!is_part(type_of(m)) && sio_from_le32(m->handle) < HANDLES)
		t->told[sio_from_le32(m->handle)] = true;
}

/* ---- what is believed ---- */
static const struct known *of_anybody(uint32_t type, uint64_t key)
{
	const struct known *k;

	for (k = all; k; k = k->hh.next)
		if (k->key.type == type && k->key.key == key)
			return k;
	return NULL;
}

/* The device of a handle of a borrow; 0: it is not known. */
static uint32_t fdid_of(uint64_t pid, sio_le32 handle)
{
	const struct known *k;

	for (k = all; k; k = k->hh.next)
		if (k->key.pid == pid && k->key.type == SIO_MSG_DEV_BORROW &&
		    k->truth.handle == handle)
			return sio_from_le32(
				((const struct sio_msg_dev_borrow *)(const void *)k->truth.request)
					->fdid);
	return 0;
}

/* The borrow that a handle is of, truly, or as was believed in @client's talk; 0: none. */
static uint64_t borrow_of(uint64_t pid, uint64_t client, sio_le32 handle)
{
	const struct known *k;

	for (k = all; k; k = k->hh.next)
		if (k->key.pid == pid && k->key.type == SIO_MSG_DEV_BORROW &&
		    (client ? k->client == client && k->believed.handle == handle
			    : k->truth.handle == handle))
			return k->key.key;
	return 0;
}

/*
 * Before @client's talk already @borrow had the place of another one of its program's: what was
 * mapped for that handle then is @borrow's.
 */
static bool stood_for(uint64_t pid, uint64_t borrow, sio_le32 handle, uint64_t client)
{
	const struct known *b = find(pid, SIO_MSG_DEV_BORROW, borrow);
	uint32_t h = sio_from_le32(handle);

	return b && h < BORROW_HANDLES && b->as[h] && b->as[h] != client;
}

static const char *wrong_map(const struct known *k, uint64_t client,
			     const struct sio_msg_restore *m)
{
	const struct sio_msg_dma_map *r = (const void *)m->request,
				     *t = (const void *)k->truth.request;

	uint64_t borrow = borrow_of(k->key.pid, client, r->device);

	if (borrow != borrow_of(k->key.pid, 0, t->device) &&
	    !stood_for(k->key.pid, borrow, t->device, client))
		return "for another borrow";
	if (r->segment != t->segment || r->remote != t->remote)
		return "of other memory";
	return NULL;
}

static const char *wrong_hold(uint64_t pid, const struct sio_msg_restore *m)
{
	const struct sio_msg_dev_hold *r = (const void *)m->request;
	const struct known *map = of_anybody(SIO_MSG_DMA_MAP, sio_from_le64(m->key));
	uint32_t here = fdid_of(pid, r->device), there;

	if (!map || !here)
		return NULL;
	there = fdid_of(map->key.pid,
			((const struct sio_msg_dma_map *)(const void *)map->truth.request)->device);
	return there && there != here ? "of another device" : NULL;
}

/* As its maker says, who was believed in the same life of the daemon. */
static const struct known *maker_says(unsigned host, uint32_t type, uint64_t key)
{
	const struct known *k;

	for (k = all; k; k = k->hh.next)
		if (k->key.type == type && sio_from_le64(k->believed.key) == key && k->client &&
		    sim_client_lives(host, k->client))
			return k;
	return NULL;
}

static const char *wrong_device_segment(unsigned host, uint64_t pid, uint64_t client,
					const struct sio_msg_restore *m)
{
	const struct known *maker = maker_says(host, SIO_MSG_DEV_SEG_CREATE, sio_from_le64(m->key));
	const struct sio_msg_dev_seg_connect *r = (const void *)m->request;
	const struct sio_msg_dev_seg_create *made =
		maker ? (const void *)maker->believed.request : NULL;

	/* Of a BAR, the key says nothing. */
	return made && sio_from_le32(r->memtype) != SCI_MEMTYPE_BAR &&
			       sio_from_le32(made->memtype) == SCI_MEMTYPE_PRIVATE &&
			       borrow_of(pid, client, r->device) !=
				       borrow_of(maker->key.pid, maker->client, made->device)
		       ? "private to another borrow"
		       : NULL;
}

static const char *wrong_connection(unsigned host, const struct sio_msg_restore *m)
{
	const struct sio_msg_seg_connect *r = (const void *)m->request;
	const struct known *s = maker_says(host, SIO_MSG_SEG_CREATE, sio_from_le64(m->key));

	return s && !((sio_from_le32(s->believed.exported) |
		       sio_from_le32(s->believed.available)) >>
			      sio_from_le32(r->adapter) &
		      1)
		       ? "to what was never available"
		       : NULL;
}

static const char *wrong_attachment(unsigned host, const struct sio_msg_restore *m)
{
	const struct known *s = maker_says(host, SIO_MSG_SEG_CREATE, sio_from_le64(m->key));

	return s && !(sio_from_le32(s->believed.flags) & SIO_RESTORE_SHARED)
		       ? "to what is not shared"
		       : NULL;
}

/* What cannot be had, though a perjurer said so. NULL: nothing is wrong. */
static const char *wrong(const struct sim_proc *p, uint64_t client, const struct sio_msg_restore *m)
{
	const struct known *k = find(p->pid, type_of(m), sio_from_le64(m->key));

	switch (type_of(m)) {
	case SIO_MSG_DEV_HOLD:
		return wrong_hold(p->pid, m);
	case SIO_MSG_SEG_CREATE:
	case SIO_MSG_DEV_BORROW:
		return k ? NULL : "of another";
	case SIO_MSG_DMA_MAP:
		return k ? wrong_map(k, client, m) : "of another";
	case SIO_MSG_DEV_SEG_CONNECT:
		return wrong_device_segment(p->host, p->pid, client, m);
	case SIO_MSG_SEG_CONNECT:
		return wrong_connection(p->host, m);
	case SIO_MSG_SEG_ATTACH:
		return wrong_attachment(p->host, m);
	}
	return NULL;
}

static void believed(const struct sim_proc *p, const struct talk *t)
{
	const struct sio_msg_restore *m = &t->said;
	const char *why = p->perjurer ? wrong(p, t->client, m) : NULL;
	struct known *k = find(p->pid, type_of(m), sio_from_le64(m->key));

	if (why)
		sim_fail("restore", "%s is believed what request %u made, key %" PRIu64 ": %s",
			 p->name, type_of(m), (uint64_t)sio_from_le64(m->key), why);
	/* An honest part without a key is nobody's to compare with. */
	if (!k)
		return;
	k->believed = *m;
	k->client = t->client;
	if (type_of(m) == SIO_MSG_DEV_BORROW && sio_from_le32(m->handle) < BORROW_HANDLES &&
	    !k->as[sio_from_le32(m->handle)])
		k->as[sio_from_le32(m->handle)] = t->client;
}

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

/* What nobody would miss until he uses it: its end is no event. */
static bool ends_silently(uint32_t type)
{
	return is_part(type) || type == SIO_MSG_DMA_MAP || type == SIO_MSG_SEG_MAP;
}

static void check_told(const struct sim_proc *p, const struct talk *t)
{
	uint32_t handle = sio_from_le32(t->said.handle);

	if (handle < HANDLES && !t->lost[handle] && !ends_silently(type_of(&t->said)))
		sim_fail("restore",
			 "%s is refused what request %u made, handle %u, and not told of the loss",
			 p->name, type_of(&t->said), handle);
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
	if (rep->error && !p->perjurer)
		check_told(p, t);
	if (!rep->error) {
		believed(p, t);
		if (!is_part(type_of(&t->said)) && sio_from_le32(t->said.handle) < HANDLES)
			t->had[sio_from_le32(t->said.handle)] = true;
	} else if (!is_part(type_of(&t->said)) &&
		   !was_refused(p->pid, sio_from_le32(t->said.handle))) {
		g = calloc(1, sizeof(*g));
		assert(g);
		g->key = (struct told_key){p->pid, sio_from_le32(t->said.handle)};
		HASH_ADD(hh, refused, key, sizeof(g->key), g);
	}
}

/* ---- what programs are told ---- */
static void generation(const struct sim_proc *p, sio_le32 handle, sio_le32 number)
{
	struct told_key k = {p->pid, sio_from_le32(handle)};
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
		if (books_quiet(h) && (what = books_unclaimed(h, &owner)))
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
