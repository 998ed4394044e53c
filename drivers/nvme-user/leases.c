/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
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

int sio_nvme_leases_take(struct sio_nvme_leases *s, uint64_t borrower, uint64_t sequence,
			 uint64_t key, uint64_t blocks, struct sio_nvme_wire_lease *want,
			 const struct sio_nvme_wire_lease **ret_other)
{
	int rc = 0;

	*ret_other = NULL;
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->list[i].borrower == borrower && s->list[i].sequence == sequence) {
			*want = s->list[i].l;
			return 0;
		}
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
	s->list[s->n].borrower = borrower;
	s->list[s->n].sequence = sequence;
	s->list[s->n].key = key;
	s->list[s->n++].l = *want;
	return 0;
}

static void take_out(struct sio_nvme_leases *s, uint32_t i)
{
	s->n--;
	memmove(&s->list[i], &s->list[i + 1], (s->n - i) * sizeof(s->list[0]));
}

int sio_nvme_leases_give(struct sio_nvme_leases *s, uint64_t borrower, uint64_t id, uint64_t key)
{
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->list[i].l.id == id && s->list[i].key == key &&
		    s->list[i].borrower == borrower) {
			take_out(s, i);
			return 0;
		}
	}
	return -EACCES;
}

void sio_nvme_leases_cancel(struct sio_nvme_leases *s, uint64_t borrower, uint64_t sequence)
{
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->list[i].borrower == borrower && s->list[i].sequence == sequence) {
			take_out(s, i);
			return;
		}
	}
}

void sio_nvme_leases_end(struct sio_nvme_leases *s, uint64_t borrower)
{
	for (uint32_t i = 0; i < s->n;) {
		if (s->list[i].borrower == borrower)
			take_out(s, i);
		else
			i++;
	}
}
