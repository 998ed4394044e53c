/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "leases.h"

static const struct sio_nvme_wire_lease *overlapping(const struct sio_nvme_leases *s,
						     const struct sio_nvme_wire_lease *want)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct sio_nvme_wire_lease *l = &s->list[i].l;

		if (l->nsid == want->nsid && want->lba < l->lba + l->blocks &&
		    l->lba < want->lba + want->blocks)
			return l;
	}
	return NULL;
}

/* Behind each lease that is in the way the next place is tried: so it ends. */
static int find_gap(const struct sio_nvme_leases *s, uint64_t blocks,
		    struct sio_nvme_wire_lease *want)
{
	const struct sio_nvme_wire_lease *other;

	want->lba = 0;
	while (want->blocks <= blocks - want->lba) {
		other = overlapping(s, want);
		if (!other)
			return 0;
		want->lba = other->lba + other->blocks;
	}
	return -ENOSPC;
}

/* Where the lease has @borrower; 0: a free place. NULL: nowhere. */
static uint64_t *place_of(struct sio_nvme_held *h, uint64_t borrower)
{
	for (unsigned i = 0; i < SIO_NVME_LEASE_BORROWS; i++)
		if (h->borrower[i] == borrower)
			return &h->borrower[i];
	return NULL;
}

static struct sio_nvme_held *by_request(struct sio_nvme_leases *s, uint64_t borrower,
					uint64_t sequence)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->list[i].sequence == sequence && place_of(&s->list[i], borrower))
			return &s->list[i];
	return NULL;
}

static struct sio_nvme_held *by_id(struct sio_nvme_leases *s, uint64_t id, uint64_t key)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->list[i].l.id == id && s->list[i].key == key)
			return &s->list[i];
	return NULL;
}

int sio_nvme_leases_take(struct sio_nvme_leases *s, uint64_t borrower, uint64_t sequence,
			 uint64_t key, uint64_t blocks, struct sio_nvme_wire_lease *want,
			 const struct sio_nvme_wire_lease **ret_other)
{
	const struct sio_nvme_held *given = by_request(s, borrower, sequence);
	int rc = 0;

	*ret_other = NULL;
	if (given) {
		*want = given->l;
		return 0;
	}
	if (want->blocks == 0 || want->blocks > blocks)
		return -ERANGE;
	for (uint32_t i = 0; i < s->n; i++) {
		if (strcmp(s->list[i].l.name, want->name) == 0) {
			*ret_other = &s->list[i].l;
			return -EEXIST;
		}
	}
	if (s->n == SIO_NVME_LEASES)
		return -ENOSPC;
	if (want->lba == SIO_NVME_ANYWHERE)
		rc = find_gap(s, blocks, want);
	else if (want->lba > blocks - want->blocks)
		return -ERANGE;
	else
		*ret_other = overlapping(s, want);
	if (rc || *ret_other)
		return rc ? rc : -EBUSY;
	want->id = ++s->last_id;
	s->changes++;
	s->list[s->n++] = (struct sio_nvme_held){
		.borrower = {borrower}, .sequence = sequence, .key = key, .l = *want};
	return 0;
}

static void take_out(struct sio_nvme_leases *s, struct sio_nvme_held *h)
{
	s->n--;
	memmove(h, h + 1, (size_t)(&s->list[s->n] - h) * sizeof(*h));
}

/* Return: whether nobody has it any more: it is taken out. */
static bool part(struct sio_nvme_leases *s, struct sio_nvme_held *h, uint64_t *place)
{
	*place = 0;
	s->changes++;
	for (unsigned i = 0; i < SIO_NVME_LEASE_BORROWS; i++)
		if (h->borrower[i])
			return false;
	take_out(s, h);
	return true;
}

int sio_nvme_leases_join(struct sio_nvme_leases *s, uint64_t borrower, uint64_t id, uint64_t key)
{
	struct sio_nvme_held *h = by_id(s, id, key);
	uint64_t *place;

	if (!h)
		return -ESTALE;
	if (place_of(h, borrower))
		return 0;
	place = place_of(h, 0);
	if (!place)
		return -EBUSY;
	*place = borrower;
	s->changes++;
	return 0;
}

int sio_nvme_leases_give(struct sio_nvme_leases *s, uint64_t borrower, uint64_t id, uint64_t key)
{
	struct sio_nvme_held *h = by_id(s, id, key);
	uint64_t *place = h ? place_of(h, borrower) : NULL;

	if (!place)
		return -EACCES;
	part(s, h, place);
	return 0;
}

void sio_nvme_leases_cancel(struct sio_nvme_leases *s, uint64_t borrower, uint64_t sequence)
{
	struct sio_nvme_held *h = by_request(s, borrower, sequence);

	if (h)
		part(s, h, place_of(h, borrower));
}

void sio_nvme_leases_end(struct sio_nvme_leases *s, uint64_t borrower)
{
	for (uint32_t i = 0; i < s->n;) {
		uint64_t *place = place_of(&s->list[i], borrower);

		if (!place || !part(s, &s->list[i], place))
			i++;
	}
}

uint64_t sio_nvme_leases_next(const struct sio_nvme_leases *s, uint64_t after)
{
	uint64_t next = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		for (unsigned k = 0; k < SIO_NVME_LEASE_BORROWS; k++) {
			const uint64_t b = s->list[i].borrower[k];

			if (b > after && (!next || b < next))
				next = b;
		}
	}
	return next;
}
