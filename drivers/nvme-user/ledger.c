/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "ledger.h"

int sio_nvme_ledger_init(struct sio_nvme_ledger *l, uint32_t pairs)
{
	memset(l, 0, sizeof(*l));
	l->pair = calloc((size_t)pairs + 1, sizeof(*l->pair));
	l->ended = calloc(SIO_NVME_ENDED, sizeof(*l->ended));
	if (!l->pair || !l->ended) {
		sio_nvme_ledger_done(l);
		return sio_nvme_no_memory("%u queue pairs", pairs);
	}
	l->pairs = pairs;
	return 0;
}

void sio_nvme_ledger_done(struct sio_nvme_ledger *l)
{
	free(l->pair);
	free(l->ended);
	memset(l, 0, sizeof(*l));
}

uint32_t sio_nvme_ledger_free_id(const struct sio_nvme_ledger *l)
{
	for (uint32_t i = 1; i <= l->pairs; i++)
		if (l->pair[i].borrower == 0)
			return i;
	return 0;
}

void sio_nvme_ledger_take(struct sio_nvme_ledger *l, uint32_t qid, const struct sio_nvme_pair *pair)
{
	l->pair[qid] = *pair;
	l->used++;
}

void sio_nvme_ledger_release(struct sio_nvme_ledger *l, uint32_t qid)
{
	memset(&l->pair[qid], 0, sizeof(l->pair[qid]));
	l->used--;
}

/*
 * Has it the pair, or a place of it, by the request @sequence? NULL: by any. No number of a request
 * stands for that: who may be a liar chooses it.
 */
static bool has_part(const struct sio_nvme_pair *pair, uint64_t borrower, const uint64_t *sequence)
{
	if (!borrower || !pair->borrower)
		return false;
	if (!pair->share)
		return pair->borrower == borrower && (!sequence || pair->sequence == *sequence);
	for (unsigned i = 0; i < SIO_NVME_SHARERS; i++)
		if (pair->sharer[i].borrower == borrower && !(pair->dead >> i & 1) &&
		    (!sequence || pair->sharer[i].sequence == *sequence))
			return true;
	return false;
}

uint32_t sio_nvme_ledger_given(const struct sio_nvme_ledger *l, uint64_t borrower,
			       uint64_t sequence)
{
	for (uint32_t i = 1; i <= l->pairs; i++)
		if (l->pair[i].state == SIO_NVME_PAIR_TAKEN &&
		    has_part(&l->pair[i], borrower, &sequence))
			return i;
	return 0;
}

uint32_t sio_nvme_ledger_asked(const struct sio_nvme_ledger *l, uint64_t borrower,
			       uint64_t sequence)
{
	for (uint32_t i = 1; i <= l->pairs; i++)
		if (has_part(&l->pair[i], borrower, &sequence))
			return i;
	return 0;
}

uint32_t sio_nvme_ledger_place(const struct sio_nvme_pair *pair, uint64_t borrower,
			       uint64_t sequence)
{
	for (uint32_t i = 0; pair->share && i < SIO_NVME_SHARERS; i++)
		if (pair->sharer[i].borrower == borrower && pair->sharer[i].sequence == sequence)
			return i;
	return 0;
}

uint32_t sio_nvme_ledger_sharers(const struct sio_nvme_pair *pair)
{
	uint32_t n = 0;

	for (unsigned i = 0; pair->share && i < SIO_NVME_SHARERS; i++)
		n += pair->sharer[i].borrower && !(pair->dead >> i & 1);
	return n;
}

uint32_t sio_nvme_ledger_of_node(const struct sio_nvme_ledger *l, uint32_t node)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i <= l->pairs; i++)
		n += l->pair[i].borrower && l->pair[i].node == node;
	return n;
}

uint32_t sio_nvme_ledger_joinable(const struct sio_nvme_ledger *l, uint32_t node, uint32_t over,
				  uint32_t depth, bool raises, uint32_t *ret_place)
{
	uint32_t best = 0, least = UINT32_MAX;

	for (uint32_t i = 1; i <= l->pairs; i++) {
		const struct sio_nvme_pair *pair = &l->pair[i];
		const uint32_t n = sio_nvme_ledger_sharers(pair);
		const uint32_t cost = n + (raises && !pair->raises ? SIO_NVME_SHARERS : 0);

		if (pair->state != SIO_NVME_PAIR_TAKEN || !pair->share || pair->node != node ||
		    pair->over != over || pair->depth < depth || n >= pair->most || cost >= least)
			continue;
		best = i;
		least = cost;
	}
	*ret_place = 0;
	while (best && l->pair[best].sharer[*ret_place].borrower)
		++*ret_place;
	return best;
}

void sio_nvme_ledger_sharer_ended(struct sio_nvme_pair *pair, uint64_t borrower)
{
	for (unsigned i = 0; i < SIO_NVME_SHARERS; i++)
		if (pair->sharer[i].borrower == borrower)
			pair->dead |= 1u << i;
}

bool sio_nvme_ledger_owns(const struct sio_nvme_ledger *l, uint32_t qid, uint64_t borrower,
			  uint64_t key)
{
	return qid >= 1 && qid <= l->pairs && l->pair[qid].key == key &&
	       has_part(&l->pair[qid], borrower, NULL);
}

bool sio_nvme_ledger_has(const struct sio_nvme_ledger *l, uint32_t qid, uint64_t key)
{
	return qid >= 1 && qid <= l->pairs && l->pair[qid].borrower && l->pair[qid].key == key;
}

uint32_t sio_nvme_ledger_next(const struct sio_nvme_ledger *l, uint64_t borrower, uint32_t qid)
{
	while (++qid <= l->pairs)
		if (has_part(&l->pair[qid], borrower, NULL))
			return qid;
	return 0;
}

uint32_t sio_nvme_ledger_user(const struct sio_nvme_ledger *l, uint32_t qid, uint32_t after)
{
	while (++after <= l->pairs)
		if (l->pair[after].borrower && l->pair[after].cq_of == qid)
			return after;
	return 0;
}

static int by_holder(const void *one, const void *other)
{
	const struct sio_nvme_pair *a = one, *b = other;

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	return strcmp(a->program, b->program);
}

/* Sorts the pairs that have an owner by owner. Return: how many. */
static uint32_t sort_pairs(const struct sio_nvme_ledger *l, struct sio_nvme_pair *ret)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i <= l->pairs; i++)
		if (l->pair[i].borrower)
			ret[n++] = l->pair[i];
	qsort(ret, n, sizeof(*ret), by_holder);
	return n;
}

void sio_nvme_ledger_holders(const struct sio_nvme_ledger *l, char *text, size_t size)
{
	struct sio_nvme_pair *sorted = calloc(l->pairs, sizeof(*sorted));
	uint32_t n = sorted ? sort_pairs(l, sorted) : 0, end;
	size_t len = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < n && len < size; i = end) {
		const struct sio_nvme_pair *p = &sorted[i];
		const char *name = p->program;

		for (end = i + 1; end < n && by_holder(p, &sorted[end]) == 0; end++)
			;
		len += (size_t)snprintf(text + len, size - len, "%snode %u: %u%s%s%s",
					i ? ", " : "", p->node, end - i, *name ? " (" : "", name,
					*name ? ")" : "");
	}
	free(sorted);
}

void sio_nvme_ledger_end(struct sio_nvme_ledger *l, uint64_t borrower)
{
	if (sio_nvme_ledger_ended(l, borrower))
		return;
	l->ended[l->next_ended] = borrower;
	l->next_ended = (l->next_ended + 1) % SIO_NVME_ENDED;
	if (l->n_ended < SIO_NVME_ENDED)
		l->n_ended++;
}

bool sio_nvme_ledger_ended(const struct sio_nvme_ledger *l, uint64_t borrower)
{
	for (uint32_t i = 0; i < l->n_ended; i++)
		if (l->ended[i] == borrower)
			return true;
	return false;
}
