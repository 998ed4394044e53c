/* SPDX-License-Identifier: BSD-2-Clause */
/* The model of the drives' blocks (model/blocks.h). */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/blocks.h"
#include "run/run.h"

#define POISON UINT64_C(0xdead0bad0000ffff)
#define ONES UINT64_MAX
#define NEVER UINT64_MAX
#define KEPT 64 /* writes of a block that are remembered */
/* Longer reads are not judged, so that older writes may be forgotten. */
#define LONGEST_READ (100 * SIM_MS)

struct write {
	uint64_t stamp;	      /* 0: zeros, as on a new drive */
	uint64_t sent, acked; /* NEVER: not acknowledged */
	/* when the queue of a write without acknowledgement was gone; NEVER */
	uint64_t over;
	bool zeros; /* of a Format: what is found has no stamp */
};

struct block {
	struct write *write;
	unsigned n;
	bool forgotten; /* too many writes are without acknowledgement: any stamp may be found */
};

struct blocks_drive {
	unsigned host, epoch;
	bool distrusted;
	struct {
		uint64_t since, done;
	} format; /* the last one that is known to be done; 0: none */
	struct block block[BLOCKS_USED];
};

static struct blocks_drive *drives[SIM_HOSTS][SIM_DRIVES];
static uint64_t last_stamp;

struct blocks_drive *blocks_drive(unsigned host, unsigned device)
{
	/* All functions of a drive have its blocks. */
	const unsigned physical = sim_cluster->topology->host[host].device[device].physical;
	struct blocks_drive **d = &drives[host][physical ? physical - 1 : device];

	assert(host < SIM_HOSTS && device < SIM_DRIVES);
	if (!*d) {
		*d = calloc(1, sizeof(**d));
		assert(*d);
		(*d)->host = host;
		(*d)->epoch = sim_host_boots(host);
	}
	return *d;
}

void blocks_distrust(struct blocks_drive *d)
{
	d->distrusted = true;
}

bool blocks_distrusted(const struct blocks_drive *d)
{
	return d->distrusted;
}

unsigned blocks_epoch(struct blocks_drive *d)
{
	if (d->epoch == sim_host_boots(d->host))
		return d->epoch;
	d->epoch = sim_host_boots(d->host);
	for (unsigned i = 0; i < BLOCKS_USED; i++) {
		d->block[i].n = 0;
		d->block[i].forgotten = false;
	}
	return d->epoch;
}

/* The block's history, which begins with zeros. */
static struct block *block_of(struct blocks_drive *d, uint32_t number)
{
	struct block *b = &d->block[number];

	assert(number < BLOCKS_USED);
	if (!b->write) {
		b->write = calloc(KEPT, sizeof(*b->write));
		assert(b->write);
	}
	if (b->n == 0)
		b->write[b->n++] = (struct write){0};
	return b;
}

/*
 * Whether nobody who begins to read at @since can see @w any more: one that came after it is there.
 */
static bool is_over(const struct block *b, const struct write *w, uint64_t since)
{
	/* One that is acknowledged behind a fence was done before that. */
	const uint64_t done = w->acked < w->over ? w->acked : w->over;

	for (unsigned i = 0; done != NEVER && i < b->n; i++)
		if (b->write[i].acked != NEVER && b->write[i].sent > done &&
		    b->write[i].acked < since)
			return true;
	return false;
}

static void forget_old(struct block *b)
{
	uint64_t since = sim_now() > LONGEST_READ ? sim_now() - LONGEST_READ : 0;

	for (unsigned i = 0; i < b->n;) {
		if (is_over(b, &b->write[i], since))
			b->write[i] = b->write[--b->n];
		else
			i++;
	}
}

static void add(struct blocks_drive *d, uint32_t number, uint64_t stamp, bool zeros)
{
	struct block *b = block_of(d, number);

	if (b->n == KEPT)
		forget_old(b);
	if (b->n == KEPT)
		b->forgotten = true;
	else
		b->write[b->n++] = (struct write){.stamp = stamp,
						  .sent = sim_now(),
						  .acked = NEVER,
						  .over = NEVER,
						  .zeros = zeros};
}

uint64_t blocks_write(struct blocks_drive *d, uint32_t number)
{
	blocks_epoch(d);
	add(d, number, ++last_stamp, false);
	return last_stamp;
}

uint64_t blocks_format(struct blocks_drive *d)
{
	blocks_epoch(d);
	++last_stamp;
	for (uint32_t i = 0; i < BLOCKS_USED; i++)
		add(d, i, last_stamp, true);
	return last_stamp;
}

/* NULL: the write was forgotten. */
static struct write *find_write(struct blocks_drive *d, unsigned epoch, uint32_t number,
				uint64_t stamp)
{
	struct block *b;

	if (blocks_epoch(d) != epoch)
		return NULL;
	b = block_of(d, number);
	for (unsigned i = 0; i < b->n; i++)
		if (b->write[i].stamp == stamp)
			return &b->write[i];
	return NULL;
}

void blocks_written(struct blocks_drive *d, unsigned epoch, uint32_t number, uint64_t stamp)
{
	struct write *w = find_write(d, epoch, number, stamp);

	if (w)
		w->acked = sim_now();
}

void blocks_unsure(struct blocks_drive *d, unsigned epoch, uint32_t number, uint64_t stamp)
{
	struct write *w = find_write(d, epoch, number, stamp);

	if (w && w->over == NEVER)
		w->over = sim_now();
}

void blocks_fenced(struct blocks_drive *d, unsigned epoch, uint32_t number)
{
	struct block *b;

	if (blocks_epoch(d) != epoch)
		return;
	b = block_of(d, number);
	for (unsigned i = 0; i < b->n; i++)
		if (b->write[i].acked == NEVER && b->write[i].over == NEVER)
			b->write[i].over = sim_now();
}

void blocks_unsent(struct blocks_drive *d, unsigned epoch, uint32_t number, uint64_t stamp)
{
	struct write *w = find_write(d, epoch, number, stamp);
	struct block *b = &d->block[number];

	if (w)
		*w = b->write[--b->n];
}

void blocks_formatted(struct blocks_drive *d, unsigned epoch, uint64_t stamp, uint64_t since,
		      bool done)
{
	for (uint32_t i = 0; i < BLOCKS_USED; i++) {
		if (done)
			blocks_written(d, epoch, i, stamp);
		else
			blocks_unsent(d, epoch, i, stamp);
	}
	if (!done)
		return;
	d->format.since = since;
	d->format.done = sim_now();
}

bool blocks_were_formatted(const struct blocks_drive *d, uint64_t since, uint64_t until)
{
	return d->format.done && d->format.since > since && d->format.done < until;
}

/* ---- contents ---- */
static uint64_t word(uint64_t stamp, uint32_t block, uint32_t i)
{
	uint64_t z = (stamp << 20 | block) + i * UINT64_C(0x9e3779b97f4a7c15);

	/* The first word holds the stamp itself, and the block's number. */
	return stamp == 0 ? 0 : i == 0 ? stamp << 20 | block : z ^ z >> 31;
}

void blocks_fill(void *data, uint32_t len, uint64_t stamp, uint32_t block)
{
	uint64_t *words = data;

	for (uint32_t i = 0; i < len / 8; i++)
		words[i] = word(stamp, block, i);
}

void blocks_poison(void *data, uint32_t len)
{
	uint64_t *words = data;

	for (uint32_t i = 0; i < len / 8; i++)
		words[i] = POISON;
}

/* The stamp of all words that arrived. False: the words are of several blocks or writes. */
static bool find_stamp(const uint64_t *words, uint32_t n, uint32_t block, bool lossy,
		       uint64_t *ret_stamp, bool *ret_any)
{
	uint32_t first = 0;

	*ret_any = false;
	while (lossy && first < n && (words[first] == POISON || words[first] == ONES))
		first++;
	if (first == n)
		return true;
	*ret_any = true;
	/*
	 * Of one that came in part the first word may be missing: any stamp that fits the others.
	 */
	if (first > 0 && words[first] != 0) {
		*ret_any = false;
		return true;
	}
	*ret_stamp = words[first] >> 20;
	for (uint32_t i = first; i < n; i++) {
		if (lossy && (words[i] == POISON || words[i] == ONES))
			continue;
		if (words[i] != word(*ret_stamp, block, i))
			return false;
	}
	return true;
}

void blocks_judge(struct blocks_drive *d, unsigned epoch, uint32_t number, const void *data,
		  uint32_t len, uint64_t since, bool lossy, const char *who)
{
	const uint64_t *words = data;
	struct block *b;
	uint64_t stamp = 0;
	bool any, was = false;

	if (blocks_epoch(d) != epoch || d->distrusted)
		return;
	b = block_of(d, number);
	if (!find_stamp(words, len / 8, number, lossy, &stamp, &any))
		sim_fail("blocks",
			 "%s: block %" PRIu32 " of node %u's drive is mixed: begins with %#" PRIx64,
			 who, number, sim_node(d->host), words[0]);
	if (!any || b->forgotten || sim_now() - since > LONGEST_READ)
		return;
	for (unsigned i = 0; i < b->n; i++) {
		/* There may be several Formats. */
		if ((b->write[i].zeros ? 0 : b->write[i].stamp) != stamp)
			continue;
		if (!is_over(b, &b->write[i], since))
			return;
		was = true;
	}
	if (was)
		sim_fail("blocks",
			 "%s: block %" PRIu32 " of node %u's drive is stale: write %" PRIu64
			 " was followed by another before the read began",
			 who, number, sim_node(d->host), stamp);
	sim_fail("blocks",
		 "%s: block %" PRIu32 " of node %u's drive holds write %" PRIu64
		 ", which cannot be there",
		 who, number, sim_node(d->host), stamp);
}
