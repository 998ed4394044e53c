/* SPDX-License-Identifier: BSD-2-Clause */
/* The journal: everything that a session has, one entry each, as the message that restores it. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/types.h"
#include "session/journal.h"
#include "session/journal_fill.h"
#include "sisci_api.h"
#include "smartio/uapi.h"
#include "wire/check.h"

struct sio_journal_entry {
	struct sio_journal_entry *next, **prev;
	struct sio_hash_node by_handle;
	struct sio_hash_node
		by_mapped; /* a map, a member, a range of a queue: by the handle of what it is of */
	uint64_t number;   /* ascending */
	/* Segment: connections to it that the program has been notified of, by adapter. */
	uint32_t heard_of[SIO_MAX_ADAPTERS];
	bool known;   /* to the present smartiod, unless that has refused it */
	bool lost;    /* lost, but its handle stays in use until the program gives it back */
	bool refused; /* by a smartiod, and yet to be restored at the next one */
	bool claims;  /* @m.claim is there: without it most entries are half as long */
	struct sio_msg_restore m; /* last */
};

struct sio_journal {
	struct sio_journal_entry *first, **last;
	/* the entry sent last, or one before it; NULL: start at the first */
	struct sio_journal_entry *sent;
	struct sio_hash by_handle, by_mapped;
	uint64_t last_number;
	uint32_t last_handle;
};

/* Requests that make something, and in which step that is restored (struct sio_msg_restore). */
static const struct {
	uint32_t type;
	unsigned step;
	bool is_object; /* its handle is in the reply; else it is a part of a named object */
} makers[] = {
	{SIO_MSG_SEG_CREATE, 1, true},	    {SIO_MSG_DINT_CREATE, 1, true},
	{SIO_EVM_DINT_RING, 1, false},	    {SIO_MSG_DEV_BORROW, 1, true},
	{SIO_MSG_DEV_SEG_CREATE, 1, false}, {SIO_MSG_SEG_ATTACH, 2, true},
	{SIO_MSG_SEG_CONNECT, 3, true},	    {SIO_MSG_DEV_SEG_CONNECT, 3, true},
	{SIO_MSG_SEG_MAP, 3, true},	    {SIO_MSG_DINT_CONNECT, 3, true},
	{SIO_MSG_DMA_MAP, 3, true},	    {SIO_MSG_DEV_VECTOR, 3, false},
	{SIO_MSG_DEV_HOLD, 3, false},	    {SIO_MSG_SHADOW, 3, false},
	{SIO_MSG_QUEUE_CREATE, 3, true},    {SIO_MSG_QUEUE_ATTACH, 3, false},
	{SIO_MSG_GROUP_JOIN, 3, true},
};

#define N_MAKERS (sizeof(makers) / sizeof(makers[0]))

static unsigned maker(uint32_t type)
{
	unsigned i = 0;

	while (i < N_MAKERS && makers[i].type != type)
		i++;
	return i;
}

/* ---- life ---- */

#define SHORT_MESSAGE offsetof(struct sio_msg_restore, claim)

static size_t entry_size(bool claims)
{
	return offsetof(struct sio_journal_entry, m) +
	       (claims ? sizeof(struct sio_msg_restore) : SHORT_MESSAGE);
}

/* NULL: no memory. */
static struct sio_journal_entry *entry_new(uint32_t type)
{
	bool claims = type == SIO_MSG_SEG_MAP || type == SIO_MSG_DINT_CONNECT ||
		      type == SIO_MSG_SHADOW || type == SIO_MSG_QUEUE_ATTACH ||
		      type == SIO_MSG_GROUP_JOIN;
	struct sio_journal_entry *e = calloc(1, entry_size(claims));

	if (!e)
		return NULL;
	e->claims = claims;
	e->m.type = sio_to_le32(type);
	return e;
}

/* Nothing refers to it yet. */
static struct sio_journal_entry *shortened(struct sio_journal_entry *e)
{
	struct sio_journal_entry *less;

	if (!e->claims || e->m.claim[0].view || sio_from_le32(e->m.type) == SIO_MSG_SHADOW)
		return e;
	e->claims = false;
	less = realloc(e, entry_size(false));
	return less ? less : e;
}

struct sio_journal *sio_journal_new(void)
{
	struct sio_journal *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->last = &j->first;
	sio_hash_init(&j->by_handle);
	sio_hash_init(&j->by_mapped);
	return j;
}

/*
 * The handle of the segment or connection that a map, a member of a group or a range is of; 0: the
 * entry is none of these.
 */
static uint32_t mapped(const struct sio_journal_entry *e)
{
	const struct sio_msg_seg_map *map = (const void *)e->m.request;
	const struct sio_msg_group_join *member = (const void *)e->m.request;
	const struct sio_msg_queue_attach *range = (const void *)e->m.request;

	switch (sio_from_le32(e->m.type)) {
	case SIO_MSG_SEG_MAP:
		return sio_from_le32(map->handle);
	case SIO_MSG_GROUP_JOIN:
		return sio_from_le32(member->handle);
	case SIO_MSG_QUEUE_ATTACH:
		return sio_from_le32(range->segment);
	}
	return 0;
}

static struct sio_journal_entry *before(struct sio_journal *j, struct sio_journal_entry *e)
{
	if (e->prev == &j->first)
		return NULL;
	return (void *)((char *)e->prev - offsetof(struct sio_journal_entry, next));
}

static void entry_free(struct sio_journal *j, struct sio_journal_entry *e)
{
	if (j->sent == e)
		j->sent = before(j, e);
	sio_hash_remove(&j->by_handle, &e->by_handle);
	if (mapped(e))
		sio_hash_remove(&j->by_mapped, &e->by_mapped);
	*e->prev = e->next;
	if (e->next)
		e->next->prev = e->prev;
	else
		j->last = e->prev;
	free(e);
}

void sio_journal_free(struct sio_journal *j)
{
	while (j && j->first)
		entry_free(j, j->first);
	if (j) {
		sio_hash_done(&j->by_handle);
		sio_hash_done(&j->by_mapped);
	}
	free(j);
}

int sio_journal_prepare(uint32_t type, struct sio_journal_entry **ret)
{
	*ret = NULL;
	if (maker(type) == N_MAKERS)
		return 0;
	*ret = entry_new(type);
	return *ret ? 0 : -ENOMEM;
}

void sio_journal_drop(struct sio_journal_entry *e)
{
	free(e);
}

static void add(struct sio_journal *j, struct sio_journal_entry *e)
{
	e->number = ++j->last_number;
	e->known = true;
	sio_hash_add(&j->by_handle, &e->by_handle, sio_from_le32(e->m.handle));
	if (mapped(e))
		sio_hash_add(&j->by_mapped, &e->by_mapped, mapped(e));
	e->prev = j->last;
	*j->last = e;
	j->last = &e->next;
}

/* ---- finding ---- */

static bool is_object(const struct sio_journal_entry *e)
{
	return makers[maker(sio_from_le32(e->m.type))].is_object;
}

static struct sio_journal_entry *with_handle(struct sio_hash_node *n)
{
	return SIO_HASH_OF(n, struct sio_journal_entry, by_handle);
}

/* Entries of @handle: the object and its parts. */
static struct sio_journal_entry *first_of(const struct sio_journal *j, sio_le32 handle)
{
	return with_handle(sio_hash_find(&j->by_handle, sio_from_le32(handle)));
}

static struct sio_journal_entry *next_of(const struct sio_journal_entry *e)
{
	return with_handle(sio_hash_next(&e->by_handle));
}

static struct sio_journal_entry *find(const struct sio_journal *j, sio_le32 handle)
{
	struct sio_journal_entry *e = first_of(j, handle);

	while (e && !is_object(e))
		e = next_of(e);
	return e;
}

/*
 * A part of @handle: a ring, pin (DEV_HOLD), vector, shadow or range of a DMA queue, found by its
 * number, or else by its key.
 */
static struct sio_journal_entry *find_part(const struct sio_journal *j, uint32_t type,
					   sio_le32 handle, sio_le32 number, sio_le64 key)
{
	struct sio_journal_entry *e = first_of(j, handle);

	while (e && (sio_from_le32(e->m.type) != type ||
		     (key ? e->m.key != key : e->m.number != number)))
		e = next_of(e);
	return e;
}

/* Removes the object and its parts. */
static void remove_handle(struct sio_journal *j, sio_le32 handle)
{
	struct sio_journal_entry *e;

	while ((e = first_of(j, handle)))
		entry_free(j, e);
}

/* What DMA queues reach of @handle, which is given back. */
static void remove_ranges(struct sio_journal *j, sio_le32 handle)
{
	struct sio_hash_node *n = sio_hash_find(&j->by_mapped, sio_from_le32(handle)), *next;

	for (; n; n = next) {
		struct sio_journal_entry *e = SIO_HASH_OF(n, struct sio_journal_entry, by_mapped);

		next = sio_hash_next(n);
		if (sio_from_le32(e->m.type) == SIO_MSG_QUEUE_ATTACH)
			entry_free(j, e);
	}
}

static void remove_holds(struct sio_journal *j, sio_le32 device)
{
	struct sio_journal_entry *e, *next;

	for (e = first_of(j, device); e; e = next) {
		next = next_of(e);
		if (sio_from_le32(e->m.type) == SIO_MSG_DEV_HOLD)
			entry_free(j, e);
	}
}

/* ---- what was made ---- */

static void made(struct sio_journal *j, struct sio_journal_entry *e, const struct sio_msg *req,
		 const struct sio_msg *rep)
{
	size_t len = sio_client_request_size(sio_from_le32(e->m.type));

	if (len <= sizeof(e->m.request)) /* else it is restored without */
		memcpy(e->m.request, req, len);
	if (is_object(e)) {
		sio_journal_fill_object(&e->m, req, rep);
		if (sio_from_le32(e->m.handle) > j->last_handle)
			j->last_handle = sio_from_le32(e->m.handle);
	} else {
		sio_journal_fill_part(&e->m, req, rep);
	}
	add(j, shortened(e));
}

/* ---- what was changed ---- */

static void set_bit(sio_le32 *to, uint32_t bit, bool on)
{
	*to = sio_to_le32(on ? sio_from_le32(*to) | bit : sio_from_le32(*to) & ~bit);
}

/* PREPARE, AVAILABLE, UNAVAILABLE. */
static void segment_step(struct sio_journal *j, uint32_t type, const struct sio_msg_seg_adapter *r)
{
	struct sio_journal_entry *e = find(j, r->handle);
	uint32_t adapter = sio_from_le32(r->adapter);

	if (!e || adapter >= SIO_MAX_ADAPTERS)
		return;
	if (type == SIO_MSG_SEG_PREPARE) {
		set_bit(&e->m.prepared, 1u << adapter, true);
		return;
	}
	set_bit(&e->m.available, 1u << adapter, type == SIO_MSG_SEG_AVAILABLE);
	if (type == SIO_MSG_SEG_AVAILABLE)
		set_bit(&e->m.exported, 1u << adapter, true);
	else if (sio_from_le32(r->flags) & SCI_FLAG_FORCE_DISCONNECT)
		e->heard_of[adapter] = 0; /* ended by its own request, so there will be no event */
}

static void set_flag(struct sio_journal *j, sio_le32 handle, uint32_t flag)
{
	struct sio_journal_entry *e = find(j, handle);

	if (e)
		set_bit(&e->m.flags, flag, true);
}

static void changed(struct sio_journal *j, const struct sio_msg *req, const struct sio_msg *rep)
{
	const struct sio_msg_handle *h = (const void *)req;
	struct sio_journal_entry *e;

	switch (sio_from_le32(req->type)) {
	case SIO_MSG_SEG_PREPARE:
	case SIO_MSG_SEG_AVAILABLE:
	case SIO_MSG_SEG_UNAVAILABLE:
		segment_step(j, sio_from_le32(req->type), (const void *)req);
		return;
	case SIO_MSG_SEG_SHARE:
		set_flag(j, h->handle, SIO_RESTORE_SHARED);
		return;
	case SIO_MSG_SEG_FILL:
	case SIO_MSG_SEG_TAKE: /* its handle and memory are at the same places as in SEG_FILL */
		e = find(j, h->handle);
		if (e) {
			set_bit(&e->m.flags, SIO_RESTORE_FILLED, true);
			e->m.memory = h->flags;
			/* Its reply has the layout of SEG_CREATE's. */
			sio_journal_fill_object(&e->m, req, rep);
		}
		return;
	case SIO_MSG_DEV_RELEASE_EXCLUSIVE:
		set_flag(j, h->handle, SIO_RESTORE_RELEASED);
		return;
	case SIO_MSG_DEV_RESET: /* a reset ends every pin */
		remove_holds(j, h->handle);
		return;
	case SIO_MSG_DEV_SETTLED:
		if (sio_from_le64(((const struct sio_msg_dev_settled *)req)->borrower) ==
		    SIO_BORROWER_ALL)
			remove_holds(j, ((const struct sio_msg_dev_settled *)req)->device);
		return;
	}
}

/* ---- what was taken away ---- */

/* The entry that @req takes away; NULL: there is none. *ret_takes: @req is such a request. */
static struct sio_journal_entry *taken(const struct sio_journal *j, const struct sio_msg *req,
				       bool *ret_takes)
{
	const struct sio_msg_handle *h = (const void *)req;
	const struct sio_msg_dint_ring_free *ring = (const void *)req;
	const struct sio_msg_dev_unhold *hold = (const void *)req;
	const struct sio_msg_dev_vector *vector = (const void *)req;
	const struct sio_msg_queue_detach *range = (const void *)req;

	*ret_takes = true;
	switch (sio_from_le32(req->type)) {
	case SIO_MSG_SEG_REMOVE:
	case SIO_MSG_SEG_DISCONNECT:
	case SIO_MSG_SEG_UNMAP:
	case SIO_MSG_GROUP_LEAVE:
	case SIO_MSG_DINT_REMOVE:
	case SIO_MSG_DINT_DISCONNECT:
	case SIO_MSG_DEV_RETURN:
	case SIO_MSG_DMA_UNMAP:
	case SIO_MSG_QUEUE_REMOVE:
		return find(j, h->handle);
	case SIO_MSG_QUEUE_DETACH:
		return find_part(j, SIO_MSG_QUEUE_ATTACH, range->queue, sio_to_le32(0),
				 range->range);
	case SIO_MSG_DINT_RING_FREE:
		return find_part(j, SIO_EVM_DINT_RING, ring->handle, ring->ring, sio_to_le64(0));
	case SIO_MSG_DEV_UNHOLD:
		return find_part(j, SIO_MSG_DEV_HOLD, hold->device, sio_to_le32(0), hold->hold);
	case SIO_MSG_DEV_UNVECTOR:
		return find_part(j, SIO_MSG_DEV_VECTOR, vector->device, vector->vector,
				 sio_to_le64(0));
	case SIO_MSG_SHADOW_DEL: /* there is one at most, and it has no number */
		return find_part(j, SIO_MSG_SHADOW, h->handle, sio_to_le32(0), sio_to_le64(0));
	}
	*ret_takes = false;
	return NULL;
}

bool sio_journal_has(const struct sio_journal *j, const struct sio_msg *req)
{
	bool takes;
	const struct sio_journal_entry *e = taken(j, req, &takes);

	return e && !e->refused;
}

bool sio_journal_takes_own(const struct sio_journal *j, const struct sio_msg *req)
{
	uint32_t type = sio_from_le32(req->type);
	bool takes, has = taken(j, req, &takes);

	return has || (takes && type != SIO_MSG_DEV_UNHOLD && type != SIO_MSG_DEV_UNVECTOR);
}

void sio_journal_done(struct sio_journal *j, struct sio_journal_entry *e, const struct sio_msg *req,
		      const struct sio_msg *rep)
{
	struct sio_journal_entry *gone;
	bool takes;

	if (e) {
		made(j, e, req, rep);
		return;
	}
	gone = taken(j, req, &takes);
	if (gone && is_object(gone)) {
		remove_ranges(j, gone->m.handle);
		remove_handle(j, gone->m.handle);
	} else if (gone)
		entry_free(j, gone);
	else if (!takes)
		changed(j, req, rep);
}

/* ---- events ---- */

static void lose_one(struct sio_journal *j, struct sio_journal_entry *e)
{
	if (e->known && is_object(e))
		e->lost = true;
	else
		entry_free(j, e);
}

/*
 * @handle is lost, with its parts and the maps of it. An entry that the present smartiod knows
 * keeps its handle until the program gives it back.
 */
static void lose(struct sio_journal *j, sio_le32 handle)
{
	struct sio_hash_node *n, *next_map;
	struct sio_journal_entry *e, *next;

	for (e = first_of(j, handle); e; e = next) {
		next = next_of(e);
		lose_one(j, e);
	}
	for (n = sio_hash_find(&j->by_mapped, sio_from_le32(handle)); n; n = next_map) {
		next_map = sio_hash_next(n);
		lose_one(j, SIO_HASH_OF(n, struct sio_journal_entry, by_mapped));
	}
}

static void local_event(struct sio_journal *j, const struct sio_evm_segment *evm)
{
	struct sio_journal_entry *e = find(j, evm->handle);
	uint32_t adapter = sio_from_le32(evm->adapter), n = sio_from_le32(evm->count);

	if (sio_from_le32(evm->loss) == SIO_LOSS_LOST) {
		lose(j, evm->handle);
		return;
	}
	if (!e || adapter >= SIO_MAX_ADAPTERS)
		return;
	n = n ? n : 1;
	switch (sio_from_le32(evm->reason)) {
	case SCI_CB_CONNECT:
		e->heard_of[adapter] += n;
		return;
	case SCI_CB_DISCONNECT:
	case SCI_CB_LOST:
		e->heard_of[adapter] -= n < e->heard_of[adapter] ? n : e->heard_of[adapter];
		return;
	}
}

/* Of a path the next smartiod says only what its library does not know. */
static void remote_event(struct sio_journal *j, const struct sio_evm_segment *evm)
{
	struct sio_journal_entry *e = find(j, evm->handle);
	uint32_t reason = sio_from_le32(evm->reason);

	if (sio_from_le32(evm->loss) == SIO_LOSS_LOST)
		lose(j, evm->handle);
	else if (e && (reason == SCI_CB_NOT_OPERATIONAL || reason == SCI_CB_OPERATIONAL))
		set_bit(&e->m.flags, SIO_RESTORE_DOWN, reason == SCI_CB_NOT_OPERATIONAL);
}

static void ring_event(struct sio_journal *j, const struct sio_evm_dint_ring *evm)
{
	struct sio_journal_entry *e;

	if (sio_from_le32(evm->h.type) == SIO_EVM_DINT_RING_END) {
		e = find_part(j, SIO_EVM_DINT_RING, evm->handle, evm->ring, sio_to_le64(0));
		if (e)
			set_bit(&e->m.flags, SIO_RESTORE_ENDED, true);
		return;
	}
	/* Without memory the ring is not restored, and the sender loses its connection. */
	if (sio_journal_prepare(SIO_EVM_DINT_RING, &e) < 0)
		return;
	e->m.handle = evm->handle;
	e->m.number = evm->ring;
	e->m.key = evm->key;
	add(j, e);
}

static void device_event(struct sio_journal *j, const struct sio_evm_device *evm)
{
	struct sio_journal_entry *e = find(j, evm->handle);

	switch (sio_from_le32(evm->event)) {
	case SIO_DEVICE_EV_RESET:
		if (e)
			e->m.number = evm->generation;
		remove_holds(j, evm->handle);
		return;
	case SIO_DEVICE_EV_LOST:
		lose(j, evm->handle);
		return;
	}
}

void sio_journal_event(struct sio_journal *j, const struct sio_msg *msg)
{
	const struct sio_evm_segment *segment = (const void *)msg;

	switch (sio_from_le32(msg->type)) {
	case SIO_EVM_SEGMENT_LOCAL:
		local_event(j, segment);
		return;
	case SIO_EVM_SEGMENT_REMOTE:
		remote_event(j, segment);
		return;
	case SIO_EVM_DINT_RING:
	case SIO_EVM_DINT_RING_END:
		ring_event(j, (const void *)msg);
		return;
	case SIO_EVM_DINT_LOST:
		lose(j, ((const struct sio_evm_dint_ring *)msg)->handle);
		return;
	case SIO_EVM_DEVICE:
		device_event(j, (const void *)msg);
		return;
	}
}

/* ---- restoring ---- */

void sio_journal_begin(struct sio_journal *j)
{
	struct sio_journal_entry *e, *next;

	for (e = j->first; e; e = next) {
		next = e->next;
		e->known = false;
		if (e->lost)
			entry_free(j, e);
	}
}

bool sio_journal_next(struct sio_journal *j, unsigned step, uint64_t *at,
		      struct sio_msg_restore *ret)
{
	struct sio_journal_entry *e = j->sent && j->sent->number <= *at ? j->sent : j->first;
	uint32_t heard_of = 0;

	while (e && (e->number <= *at || e->lost ||
		     makers[maker(sio_from_le32(e->m.type))].step != step))
		e = e->next;
	j->sent = e;
	if (!e)
		return false;
	e->known = true;
	e->refused = false;
	for (unsigned i = 0; i < SIO_MAX_ADAPTERS; i++)
		heard_of += e->heard_of[i];
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &e->m, e->claims ? sizeof(*ret) : SHORT_MESSAGE);
	ret->told = sio_to_le32(heard_of);
	*at = e->number;
	return true;
}

uint32_t sio_journal_last_handle(const struct sio_journal *j)
{
	return j->last_handle;
}

/*
 * A refused mapping for a device was lost for the program, but the device may still send there: a
 * queue may lie behind it. smartiod leaves it in place, and each later one does so too if it hears
 * of it; what no program names it takes away.
 */
void sio_journal_gone(struct sio_journal *j, uint64_t number)
{
	struct sio_journal_entry *e = j->sent && j->sent->number <= number ? j->sent : j->first;

	while (e && e->number != number)
		e = e->next;
	if (e && sio_from_le32(e->m.type) == SIO_MSG_DMA_MAP)
		e->refused = true;
	else if (e)
		entry_free(j, e);
}
