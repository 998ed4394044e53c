/* SPDX-License-Identifier: BSD-2-Clause */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"
#include "error.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define MAGIC 0x4b4e4953u

/*
 * A record is read when the borrow of the manager that wrote it has ended: then the next manager
 * reads what arrived, and the writer's order says what can be missing. So the barriers here pair
 * with that end, not with one of the reader. Hosts may differ: little-endian.
 */
struct head {
	uint32_t magic, version;
	uint64_t word; /* of the admin queue; controller.h */
	uint64_t maker, ioaddr, last_lease;
	uint32_t generation, pairs, entries, segment;
};
SIO_NVME_SIZE(struct head, 56);
struct pair {
	uint32_t state, node; /* state: written last */
	uint64_t borrower, key, sequence, sq_hold, cq_hold;
	char program[16];
	uint32_t share, depth, most, dead, over;
	uint16_t cmb, cmb_pages;
	uint32_t cq_of, raises;
};
SIO_NVME_SIZE(struct pair, 96);
struct sharer {
	uint64_t borrower; /* written last; 0: none */
	uint64_t sequence;
	uint32_t notice, reserved;
};
SIO_NVME_SIZE(struct sharer, 24);
struct lease {
	uint64_t id;				   /* written last; 0: none */
	uint64_t borrower[SIO_NVME_LEASE_BORROWS]; /* each changes alone; 0: none */
	uint64_t sequence, key, lba, blocks;
	uint32_t nsid, node;
	char name[SIO_NVME_PROGRAM], program[SIO_NVME_PROGRAM];
};
SIO_NVME_SIZE(struct lease, 112);

static size_t leases_at(uint32_t pairs)
{
	return SIO_NVME_PAGE + ((size_t)pairs + 1) * sizeof(struct pair);
}

static size_t sharers_at(uint32_t pairs)
{
	return leases_at(pairs) + SIO_NVME_LEASES * sizeof(struct lease);
}

static size_t size_of(uint32_t pairs)
{
	return sharers_at(pairs) + ((size_t)pairs + 1) * SIO_NVME_SHARERS * sizeof(struct sharer);
}

static volatile uint8_t *sharer_at(const struct sio_nvme_record *b, uint32_t qid, unsigned place)
{
	return b->at.at + sharers_at(b->pairs) +
	       ((size_t)qid * SIO_NVME_SHARERS + place) * sizeof(struct sharer);
}

static volatile uint8_t *pair_at(const struct sio_nvme_record *b, uint32_t qid)
{
	return b->at.at + SIO_NVME_PAGE + qid * sizeof(struct pair);
}

static volatile uint8_t *lease_at(const struct sio_nvme_record *b, unsigned place)
{
	return b->at.at + leases_at(b->pairs) + place * sizeof(struct lease);
}

int sio_nvme_record_make(struct sio_nvme_record *b, struct sio_nvme_device *d, uint32_t pairs)
{
	memset(b, 0, sizeof(*b));
	b->pairs = pairs;
	return sio_nvme_shared_replace(d, SIO_NVME_RECORD_SEGMENT, size_of(pairs),
				       SMARTIO_FLAG_LASTING, &b->at);
}

void sio_nvme_record_begin(struct sio_nvme_record *b, const struct sio_nvme_record_head *head)
{
	const struct head h = {.version = htole32(SIO_NVME_VERSION),
			       .maker = htole64(head->maker),
			       .ioaddr = htole64(head->ioaddr),
			       .generation = htole32(head->generation),
			       .pairs = htole32(head->pairs),
			       .entries = htole32(head->entries),
			       .segment = htole32(head->segment)};
	const size_t behind = offsetof(struct head, maker);

	b->maker = head->maker;
	sio_copy_to(b->at.at + behind, (const char *)&h + behind, sizeof(h) - behind);
	sio_write32(b->at.at + 4, h.version);
	/*
	 * A reader that sees the magic number sees the rest; pairs with the end, before
	 * read_head().
	 */
	sio_to_fabric_barrier();
	sio_write32(b->at.at, htole32(MAGIC));
	sio_to_fabric_barrier();
}

static int read_head(struct sio_nvme_record *b, const char *name, struct sio_nvme_record_head *ret)
{
	struct head h;

	sio_copy_from(&h, b->at.at, sizeof(h));
	*ret = (struct sio_nvme_record_head){.maker = le64toh(h.maker),
					     .ioaddr = le64toh(h.ioaddr),
					     .generation = le32toh(h.generation),
					     .pairs = le32toh(h.pairs),
					     .entries = le32toh(h.entries),
					     .segment = le32toh(h.segment)};
	if (le32toh(h.magic) != MAGIC || le32toh(h.version) != SIO_NVME_VERSION)
		return sio_nvme_fail(-ESTALE, "%s: its manager left no record of this version",
				     name);
	if (ret->pairs == 0 || ret->pairs > 65535 || ret->entries < 2 || ret->entries > 4096 ||
	    ret->maker == 0 || ret->ioaddr % SIO_NVME_PAGE)
		return sio_nvme_fail(-ESTALE, "%s: the record of its manager is invalid", name);
	b->maker = ret->maker;
	b->pairs = ret->pairs;
	return 0;
}

int sio_nvme_record_find(struct sio_nvme_record *b, struct sio_nvme_device *d,
			 struct sio_nvme_record_head *ret)
{
	int rc;

	memset(b, 0, sizeof(*b));
	rc = sio_nvme_shared_open(d, SIO_NVME_RECORD_SEGMENT, sizeof(struct head), false, &b->at);
	if (rc)
		return rc;
	rc = read_head(b, d->name, ret);
	sio_nvme_shared_close(&b->at);
	if (rc == 0)
		rc = sio_nvme_shared_open(d, SIO_NVME_RECORD_SEGMENT, size_of(b->pairs), true,
					  &b->at);
	return rc == -EPROTO ? -ESTALE : rc;
}

void sio_nvme_record_close(struct sio_nvme_record *b)
{
	sio_nvme_shared_close(&b->at);
	memset(b, 0, sizeof(*b));
}

volatile uint8_t *sio_nvme_record_word(const struct sio_nvme_record *b)
{
	return b->at.at + offsetof(struct head, word);
}

bool sio_nvme_record_has_arrived(struct sio_nvme_record *b)
{
	volatile uint8_t *last = b->last;

	b->last = NULL;
	if (!last)
		return true;
	/*
	 * A program reads what it has stored to pages whose path is lost; so something is read that
	 * was there before, too. The lower half of a lease's words comes first: they are
	 * little-endian.
	 */
	return le32toh(sio_read32(last)) == b->last_value && le32toh(sio_read32(b->at.at)) == MAGIC;
}

/* ---- pairs ---- */
static void write_sharers(struct sio_nvme_record *b, uint32_t qid, const struct sio_nvme_pair *pair)
{
	for (unsigned i = 0; i < SIO_NVME_SHARERS; i++) {
		const struct sio_nvme_sharer *from = &pair->sharer[i];
		const struct sharer s = {.sequence = htole64(from->sequence),
					 .notice = htole32(from->notice)};
		volatile uint8_t *at = sharer_at(b, qid, i);

		if (from->borrower)
			sio_copy_to(at + 8, (const char *)&s + 8, sizeof(s) - 8);
		/*
		 * A reader that finds a name finds all the rest; pairs with the end, before
		 * read_sharers().
		 */
		sio_to_fabric_barrier();
		sio_write64(at, htole64(from->borrower));
	}
}

static void read_sharers(const struct sio_nvme_record *b, uint32_t qid, struct sio_nvme_pair *ret)
{
	for (unsigned i = 0; i < SIO_NVME_SHARERS; i++) {
		struct sharer s;

		sio_copy_from(&s, sharer_at(b, qid, i), sizeof(s));
		ret->sharer[i] = (struct sio_nvme_sharer){.borrower = le64toh(s.borrower),
							  .sequence = le64toh(s.sequence),
							  .notice = le32toh(s.notice)};
	}
}

void sio_nvme_record_pair(struct sio_nvme_record *b, uint32_t qid, const struct sio_nvme_pair *pair)
{
	volatile uint8_t *at = pair_at(b, qid);
	struct pair p = {.node = htole32(pair->node),
			 .borrower = htole64(pair->borrower),
			 .key = htole64(pair->key),
			 .sequence = htole64(pair->sequence),
			 .sq_hold = htole64(pair->sq_hold),
			 .cq_hold = htole64(pair->cq_hold),
			 .share = htole32(pair->share),
			 .depth = htole32(pair->depth),
			 .most = htole32(pair->most),
			 .dead = htole32(pair->dead),
			 .over = htole32(pair->over),
			 .cmb = htole16(pair->cmb),
			 .cmb_pages = htole16(pair->cmb_pages),
			 .cq_of = htole32(pair->cq_of),
			 .raises = htole32(pair->raises)};

	if (!b->at.at)
		return;
	if (pair->state != SIO_NVME_PAIR_FREE && pair->share)
		write_sharers(b, qid, pair);
	memcpy(p.program, pair->program, sizeof(p.program));
	if (pair->state != SIO_NVME_PAIR_FREE)
		sio_copy_to(at + 4, (char *)&p + 4, sizeof(p) - 4);
	/*
	 * The state says which of the other fields are valid; pairs with the end before
	 * sio_nvme_record_read_pair().
	 */
	sio_to_fabric_barrier();
	sio_write32(at, htole32(pair->state));
	sio_to_fabric_barrier();
	b->last = at;
	b->last_value = pair->state;
}

void sio_nvme_record_read_pair(const struct sio_nvme_record *b, uint32_t qid,
			       struct sio_nvme_pair *ret)
{
	struct pair p;
	uint32_t state;

	sio_copy_from(&p, pair_at(b, qid), sizeof(p));
	state = le32toh(p.state);
	memset(ret, 0, sizeof(*ret));
	/* What nobody has written: as if it were being made, which undoes it. */
	ret->state = state <= SIO_NVME_PAIR_ENDED ? state : SIO_NVME_PAIR_TAKING;
	if (state == SIO_NVME_PAIR_FREE)
		return;
	ret->borrower = le64toh(p.borrower);
	ret->key = le64toh(p.key);
	ret->sequence = le64toh(p.sequence);
	ret->sq_hold = le64toh(p.sq_hold);
	ret->cq_hold = le64toh(p.cq_hold);
	ret->node = le32toh(p.node);
	ret->share = le32toh(p.share);
	ret->depth = le32toh(p.depth);
	ret->most = le32toh(p.most);
	ret->dead = le32toh(p.dead);
	ret->over = le32toh(p.over);
	ret->cmb = le16toh(p.cmb);
	ret->cmb_pages = le16toh(p.cmb_pages);
	ret->cq_of = le32toh(p.cq_of);
	ret->raises = p.raises != 0;
	if (ret->share)
		read_sharers(b, qid, ret);
	memcpy(ret->program, p.program, sizeof(ret->program));
	ret->program[sizeof(ret->program) - 1] = '\0';
}

/* ---- leases ---- */
static const struct sio_nvme_held *find(const struct sio_nvme_leases *s, uint64_t id)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->list[i].l.id == id)
			return &s->list[i];
	return NULL;
}

static bool stands(const struct sio_nvme_record *b, uint64_t id, unsigned *ret_free)
{
	for (unsigned i = 0; i < SIO_NVME_LEASES; i++) {
		if (b->lease[i].id == id)
			return true;
		if (b->lease[i].id == 0)
			*ret_free = i;
	}
	return false;
}

static void write_last(struct sio_nvme_record *b, volatile uint8_t *at, uint64_t value)
{
	sio_write64(at, htole64(value));
	b->last = at;
	b->last_value = (uint32_t)value;
}

static void write_lease(struct sio_nvme_record *b, unsigned place, const struct sio_nvme_held *held)
{
	volatile uint8_t *at = lease_at(b, place);
	struct lease l = {.sequence = htole64(held->sequence),
			  .key = htole64(held->key),
			  .lba = htole64(held->l.lba),
			  .blocks = htole64(held->l.blocks),
			  .nsid = htole32(held->l.nsid),
			  .node = htole32(held->l.node)};

	for (unsigned i = 0; i < SIO_NVME_LEASE_BORROWS; i++)
		l.borrower[i] = htole64(held->borrower[i]);
	memcpy(l.name, held->l.name, sizeof(l.name));
	memcpy(l.program, held->l.program, sizeof(l.program));
	sio_write64(b->at.at + offsetof(struct head, last_lease), htole64(held->l.id));
	sio_copy_to(at + 8, (char *)&l + 8, sizeof(l) - 8);
	sio_to_fabric_barrier(); /* pairs with the end, before sio_nvme_record_read_leases() */
	write_last(b, at, held->l.id);
	b->lease[place].id = held->l.id;
	memcpy(b->lease[place].borrower, held->borrower, sizeof(held->borrower));
}

/* Of one that stands there: who joined it or has ended. */
static void write_borrowers(struct sio_nvme_record *b, unsigned place,
			    const struct sio_nvme_held *held)
{
	volatile uint8_t *at = lease_at(b, place) + offsetof(struct lease, borrower);

	for (unsigned i = 0; i < SIO_NVME_LEASE_BORROWS; i++) {
		if (b->lease[place].borrower[i] == held->borrower[i])
			continue;
		write_last(b, at + 8 * i, held->borrower[i]);
		b->lease[place].borrower[i] = held->borrower[i];
	}
}

void sio_nvme_record_leases(struct sio_nvme_record *b, const struct sio_nvme_leases *s)
{
	const struct sio_nvme_held *held;
	unsigned place = 0;

	if (!b->at.at || b->lease_changes == s->changes)
		return;
	b->lease_changes = s->changes;
	for (unsigned i = 0; i < SIO_NVME_LEASES; i++) {
		if (b->lease[i].id == 0)
			continue;
		held = find(s, b->lease[i].id);
		if (held) {
			write_borrowers(b, i, held);
			continue;
		}
		write_last(b, lease_at(b, i), 0);
		b->lease[i].id = 0;
	}
	for (uint32_t i = 0; i < s->n; i++)
		if (!stands(b, s->list[i].l.id, &place))
			write_lease(b, place, &s->list[i]);
	sio_to_fabric_barrier(); /* before the reply to the client; pairs with the end, as above */
}

static int by_id(const void *one, const void *other)
{
	const struct sio_nvme_held *a = one, *b = other;

	return a->l.id < b->l.id ? -1 : a->l.id > b->l.id;
}

void sio_nvme_record_read_leases(struct sio_nvme_record *b, struct sio_nvme_leases *ret)
{
	struct lease l;

	ret->n = 0;
	ret->changes = b->lease_changes + 1; /* what is written in part is completed */
	ret->last_id = le64toh(sio_read64(b->at.at + offsetof(struct head, last_lease)));
	for (unsigned i = 0; i < SIO_NVME_LEASES; i++) {
		struct sio_nvme_held *h = &ret->list[ret->n];

		sio_copy_from(&l, lease_at(b, i), sizeof(l));
		b->lease[i].id = le64toh(l.id);
		if (!l.id)
			continue;
		memset(h, 0, sizeof(*h));
		for (unsigned k = 0; k < SIO_NVME_LEASE_BORROWS; k++)
			b->lease[i].borrower[k] = h->borrower[k] = le64toh(l.borrower[k]);
		h->sequence = le64toh(l.sequence);
		h->key = le64toh(l.key);
		h->l.id = le64toh(l.id);
		h->l.lba = le64toh(l.lba);
		h->l.blocks = le64toh(l.blocks);
		h->l.nsid = le32toh(l.nsid);
		h->l.node = le32toh(l.node);
		memcpy(h->l.name, l.name, sizeof(l.name) - 1);
		memcpy(h->l.program, l.program, sizeof(l.program) - 1);
		ret->n++;
	}
	qsort(ret->list, ret->n, sizeof(ret->list[0]), by_id);
}
