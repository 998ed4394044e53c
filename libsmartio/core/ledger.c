/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/ledger.h"

void sio_ledger_init(struct sio_ledger *l, const char *name)
{
	*l = (struct sio_ledger){.holder = 0};
	snprintf(l->name, sizeof(l->name), "%s", name);
}

void sio_ledger_done(struct sio_ledger *l)
{
	while (l->borrows) {
		struct sio_borrow *b = l->borrows;

		l->borrows = b->next;
		free(b);
	}
	l->holder = 0;
}

static struct sio_borrow *find(const struct sio_ledger *l, uint64_t id)
{
	struct sio_borrow *b = l->borrows;

	while (b && b->id < id)
		b = b->next;
	return b && b->id == id ? b : NULL;
}

static struct sio_borrow *find_live(const struct sio_ledger *l, uint64_t id)
{
	struct sio_borrow *b = find(l, id);

	return b && b->state == SIO_BORROW_LIVE ? b : NULL;
}

/* The live entry that borrowed exclusively. */
static const struct sio_borrow *find_first(const struct sio_ledger *l)
{
	for (const struct sio_borrow *b = l->borrows; b; b = b->next)
		if (b->state == SIO_BORROW_LIVE && b->first)
			return b;
	return NULL;
}

uint64_t sio_ledger_first(const struct sio_ledger *l)
{
	const struct sio_borrow *b = find_first(l);

	return b ? b->id : 0;
}

/* A live entry beside @id of which we do not know what it has. */
static const struct sio_borrow *find_adopted(const struct sio_ledger *l, uint64_t id)
{
	for (const struct sio_borrow *b = l->borrows; b; b = b->next)
		if (b->state == SIO_BORROW_LIVE && b->adopted && b->id != id)
			return b;
	return NULL;
}

static int may_be_its(const struct sio_ledger *l, const struct sio_borrow *b,
		      struct sio_err *reterr)
{
	return sio_fail(reterr, -EACCES,
			"%s: the registers may be node %" PRIu32 "'s (borrow %" PRIu64
			", made before smartiod was started again)",
			l->name, b->node, b->id);
}

const struct sio_borrow *sio_ledger_find(const struct sio_ledger *l, uint64_t id)
{
	return find(l, id);
}

const struct sio_borrow *sio_ledger_after(const struct sio_ledger *l, uint64_t after)
{
	const struct sio_borrow *b = l->borrows;

	while (b && b->id <= after)
		b = b->next;
	return b;
}

struct sio_ledger_count sio_ledger_count(const struct sio_ledger *l)
{
	struct sio_ledger_count c = {.live = 0};

	for (const struct sio_borrow *b = l->borrows; b; b = b->next) {
		c.live += b->state == SIO_BORROW_LIVE;
		c.quarantined += b->state != SIO_BORROW_LIVE;
		c.exclusive |= b->state == SIO_BORROW_LIVE && b->exclusive;
	}
	return c;
}

static int no_such(const struct sio_ledger *l, uint64_t id, struct sio_err *reterr)
{
	return sio_fail(reterr, -ENOENT, "%s: no live borrow %" PRIu64, l->name, id);
}

int sio_ledger_borrow(struct sio_ledger *l, uint64_t id, uint32_t node, uint64_t session,
		      bool exclusive, struct sio_err *reterr)
{
	struct sio_borrow *b, **at = &l->borrows;

	if (id == 0 || id == SIO_LEDGER_ALL || id <= l->last_id)
		return sio_fail(reterr, -EINVAL,
				"%s: borrow id %" PRIu64 " is not greater than %" PRIu64, l->name,
				id, l->last_id);
	for (b = l->borrows; b; b = b->next) {
		if (b->state != SIO_BORROW_LIVE)
			continue;
		if (b->exclusive)
			return sio_fail(reterr, -EACCES,
					"%s is held exclusively by node %" PRIu32
					" (borrow %" PRIu64 ")",
					l->name, b->node, b->id);
		if (exclusive)
			return sio_fail(reterr, -EACCES,
					"%s cannot be had exclusively: node %" PRIu32
					" uses it (borrow %" PRIu64 ")",
					l->name, b->node, b->id);
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		return sio_fail(reterr, -ENOMEM, "%s: no memory for a borrow: " SIO_MORE_MEMORY,
				l->name);
	*b = (struct sio_borrow){.id = id,
				 .node = node,
				 .session = session,
				 .exclusive = exclusive,
				 .first = exclusive};
	while (*at)
		at = &(*at)->next;
	*at = b;
	l->last_id = id;
	return 0;
}

int sio_ledger_adopt(struct sio_ledger *l, uint64_t id, uint32_t node, bool exclusive,
		     struct sio_err *reterr)
{
	struct sio_borrow *b, **at = &l->borrows;

	while (*at && (*at)->id < id)
		at = &(*at)->next;
	if (id == 0 || id == SIO_LEDGER_ALL || (*at && (*at)->id == id))
		return sio_fail(reterr, -EINVAL,
				"%s: %" PRIu64 " cannot be the id of one more borrow", l->name, id);
	b = calloc(1, sizeof(*b));
	if (!b)
		return sio_fail(reterr, -ENOMEM, "%s: no memory for a borrow: " SIO_MORE_MEMORY,
				l->name);
	*b = (struct sio_borrow){.id = id,
				 .node = node,
				 .exclusive = exclusive,
				 .first = exclusive,
				 .adopted = true,
				 .next = *at};
	*at = b;
	for (b = l->borrows; b->next; b = b->next)
		b->exclusive = false; /* else there would be no later one */
	if (id > l->last_id)
		l->last_id = id;
	return 0;
}

void sio_ledger_restore(struct sio_ledger *l, uint64_t id, uint64_t session, bool released)
{
	struct sio_borrow *b = find_live(l, id);

	if (!b)
		return;
	b->adopted = false;
	b->session = session;
	sio_ledger_heard(l, id, released);
	if (released)
		b->exclusive = false;
}

void sio_ledger_heard(struct sio_ledger *l, uint64_t id, bool released)
{
	struct sio_borrow *b = find_live(l, id);

	if (b)
		b->opened = b->first && !b->exclusive && !released;
}

void sio_ledger_known(struct sio_ledger *l, uint64_t id, bool known)
{
	struct sio_borrow *b = find_live(l, id);

	if (b)
		b->adopted = !known;
}

bool sio_ledger_hold_again(struct sio_ledger *l, uint64_t id)
{
	const struct sio_borrow *first = find_first(l);

	if (!find_live(l, id) || (l->holder && l->holder != id) || (first && first->id != id))
		return false;
	l->holder = id;
	return true;
}

int sio_ledger_release_exclusive(struct sio_ledger *l, uint64_t id, struct sio_err *reterr)
{
	struct sio_borrow *b = find_live(l, id);

	if (!b)
		return no_such(l, id, reterr);
	if (!b->exclusive && !b->opened)
		return sio_fail(reterr, -EPERM,
				"%s: borrow %" PRIu64
				" is not exclusive: one made with SCI_FLAG_EXCLUSIVE is right",
				l->name, id);
	b->exclusive = b->opened = false;
	return 0;
}

int sio_ledger_end(struct sio_ledger *l, uint64_t id)
{
	struct sio_borrow *b = find_live(l, id);

	if (!b)
		return -ENOENT;
	b->state = SIO_BORROW_ENDED;
	if (l->holder == id)
		l->holder = 0;
	return 0;
}

static void drop(struct sio_ledger *l, struct sio_borrow *b)
{
	struct sio_borrow **at = &l->borrows;

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	free(b);
}

void sio_ledger_closed(struct sio_ledger *l, uint64_t id, bool quarantined)
{
	struct sio_borrow *b = find(l, id);

	if (!b || b->state == SIO_BORROW_LIVE)
		return;
	if (quarantined)
		b->state = SIO_BORROW_QUARANTINED;
	else
		drop(l, b);
}

int sio_ledger_may_hold(const struct sio_ledger *l, uint64_t id, struct sio_err *reterr)
{
	const struct sio_borrow *owner;

	if (!find_live(l, id))
		return no_such(l, id, reterr);
	owner = find_first(l);
	if (!owner)
		owner = find(l, l->holder);
	if (owner && owner->id != id)
		return sio_fail(reterr, -EACCES,
				"%s: the registers are node %" PRIu32 "'s (borrow %" PRIu64 ")",
				l->name, owner->node, owner->id);
	owner = find_adopted(l, id);
	return owner ? may_be_its(l, owner, reterr) : 0;
}

int sio_ledger_take_registers(struct sio_ledger *l, uint64_t id, bool *ret_new,
			      struct sio_err *reterr)
{
	int r = sio_ledger_may_hold(l, id, reterr);

	if (r < 0)
		return r;
	*ret_new = l->holder != id;
	l->holder = id;
	return 0;
}

void sio_ledger_drop_registers(struct sio_ledger *l, uint64_t id)
{
	if (l->holder == id)
		l->holder = 0;
}

int sio_ledger_may_settle(const struct sio_ledger *l, uint64_t id, struct sio_err *reterr)
{
	if (!find_live(l, id))
		return no_such(l, id, reterr);
	if (l->holder != id)
		return sio_fail(reterr, -EACCES,
				"%s: borrow %" PRIu64
				" does not own the registers; only their owner settles borrowers",
				l->name, id);
	return 0;
}

int sio_ledger_may_reset(const struct sio_ledger *l, uint64_t id, struct sio_err *reterr)
{
	const struct sio_borrow *b = find_live(l, id);

	if (!b)
		return no_such(l, id, reterr);
	if (b->exclusive || l->holder == id)
		return 0;
	if (l->holder)
		return sio_fail(reterr, -EACCES,
				"%s: borrow %" PRIu64 " owns the registers; only it may reset",
				l->name, l->holder);
	b = find_adopted(l, id);
	return b ? may_be_its(l, b, reterr) : 0;
}

unsigned sio_ledger_settle(struct sio_ledger *l, uint64_t borrower)
{
	struct sio_borrow *b, *next;
	unsigned n = 0;

	for (b = l->borrows; b; b = next) {
		next = b->next;
		if (b->state != SIO_BORROW_QUARANTINED)
			continue;
		if (borrower != SIO_LEDGER_ALL && b->id != borrower)
			continue;
		drop(l, b);
		n++;
	}
	return n;
}
