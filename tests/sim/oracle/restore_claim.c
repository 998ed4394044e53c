/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each program had of the smartiod that was restarted, by what honest ones claim and what
 * dishonest ones (work/perjurer.c) would have claimed. A forged claim must not be accepted where it
 * makes something another program's, or other than its creator says.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <uthash.h>

#include "oracle/restore.h"
#include "run/run.h"

#define BORROW_HANDLES 256u /* of those that are looked at */

/* What a program reported honestly, or would have; and what it was believed instead. */
struct known {
	struct known_key {
		uint64_t pid, type, key;
	} key;
	struct sio_msg_restore truth, believed;
	uint64_t client;	     /* of the talk in which it was believed */
	uint64_t as[BORROW_HANDLES]; /* a borrow: the first talk in which it got this handle */
	UT_hash_handle hh;
};

static struct known *all;

static struct known *find(uint64_t pid, uint32_t type, uint64_t key)
{
	struct known_key k = {pid, type, key};
	struct known *found;

	HASH_FIND(hh, all, &k, sizeof(k), found);
	return found;
}

void restore_note_claim(uint64_t pid, const struct sio_msg_restore *m)
{
	struct known *k = find(pid, restore_type(m), sio_from_le64(m->key));

	if (!k) {
		k = calloc(1, sizeof(*k));
		assert(k);
		k->key = (struct known_key){pid, restore_type(m), sio_from_le64(m->key)};
		HASH_ADD(hh, all, key, sizeof(k->key), k);
	}
	k->truth = *m;
}

/* ---- what must not be accepted ---- */
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
	const struct known *k = find(p->pid, restore_type(m), sio_from_le64(m->key));

	switch (restore_type(m)) {
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

void restore_check_accepted(const struct sim_proc *p, uint64_t client,
			    const struct sio_msg_restore *m)
{
	const char *why = p->perjurer ? wrong(p, client, m) : NULL;
	struct known *k = find(p->pid, restore_type(m), sio_from_le64(m->key));

	if (why)
		sim_fail("restore", "%s is believed what request %u made, key %" PRIu64 ": %s",
			 p->name, restore_type(m), (uint64_t)sio_from_le64(m->key), why);
	/* An honest part without a key is nobody's to compare with. */
	if (!k)
		return;
	k->believed = *m;
	k->client = client;
	if (restore_type(m) == SIO_MSG_DEV_BORROW && sio_from_le32(m->handle) < BORROW_HANDLES &&
	    !k->as[sio_from_le32(m->handle)])
		k->as[sio_from_le32(m->handle)] = client;
}
