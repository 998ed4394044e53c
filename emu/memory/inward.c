/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host's grants to machines, by their bus addresses: each access of a machine looks one up. They
 * may overlap, so beside each stands the greatest end of those up to it: where that lies before an
 * address, no earlier one holds it.
 */
#include "emu/memory/memory.h"

/* How many begin at or before @address. */
static size_t count_up_to(const struct emu_inward *in, uint64_t address)
{
	size_t low = 0, high = in->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (in->at[mid].grant->bus_addr <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void measure(struct emu_inward *in, size_t from)
{
	for (size_t i = from; i < in->n; i++) {
		const struct emu_grant *g = in->at[i].grant;
		uint64_t end = g->bus_addr + g->length;

		in->at[i].end = i > 0 && in->at[i - 1].end > end ? in->at[i - 1].end : end;
	}
}

int emu_inward_add(struct emu_grant *g)
{
	struct emu_inward *in = &g->o.host->inward;
	size_t place, size = in->size ? 2 * in->size : 64;
	struct emu_inward_row *more;

	if (in->n == in->size) {
		more = realloc(in->at, size * sizeof(*more));
		if (!more)
			return -ENOMEM;
		in->at = more;
		in->size = size;
	}
	place = count_up_to(in, g->bus_addr);
	memmove(&in->at[place + 1], &in->at[place], (in->n - place) * sizeof(*in->at));
	in->at[place].grant = g;
	in->n++;
	measure(in, place);
	return 0;
}

void emu_inward_remove(struct emu_grant *g)
{
	struct emu_inward *in = &g->o.host->inward;
	size_t place;

	if (!g->o.host->room->host[g->peer_host].machine)
		return;
	place = count_up_to(in, g->bus_addr);
	while (place > 0 && in->at[place - 1].grant != g)
		place--;
	if (place-- == 0)
		return;
	in->n--;
	memmove(&in->at[place], &in->at[place + 1], (in->n - place) * sizeof(*in->at));
	measure(in, place);
}

struct emu_grant *emu_inward_next(const struct emu_inward *in, uint64_t address, uint64_t len,
				  size_t *at)
{
	size_t i = *at == SIZE_MAX ? count_up_to(in, address) : *at;

	for (; i > 0 && in->at[i - 1].end > address; i--) {
		struct emu_grant *g = in->at[i - 1].grant;
		uint64_t inside = address - g->bus_addr;

		if (len > g->length || inside > g->length - len)
			continue;
		*at = i - 1;
		return g;
	}
	return NULL;
}

void emu_inward_done(struct emu_inward *in)
{
	free(in->at);
	*in = (struct emu_inward){0};
}
