/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/lut.h"
#include "smartio/uapi.h"

#define NODES (SIO_MAX_NODE + 1)

int sio_lut_init(struct sio_lut *lut, const char *name, uint64_t window, unsigned n_entries,
		 struct sio_err *reterr)
{
	uint64_t entry_size = n_entries ? window / n_entries : 0;
	struct sio_lut_entry *entry;

	if (entry_size == 0 || window % n_entries || (entry_size & (entry_size - 1)))
		return sio_fail(reterr, -EINVAL,
				"%s: a window of %#" PRIx64 " bytes in %u entries; a power of 2 "
				"of bytes per entry is right",
				name, window, n_entries);
	entry = calloc(n_entries, sizeof(*entry));
	if (!entry)
		return sio_fail(reterr, -ENOMEM, "%s: no memory for %u entries: " SIO_MORE_MEMORY,
				name, n_entries);
	*lut = (struct sio_lut){.entry_size = entry_size, .n_entries = n_entries, .entry = entry};
	snprintf(lut->name, sizeof(lut->name), "%s", name);
	return 0;
}

void sio_lut_done(struct sio_lut *lut)
{
	free(lut->entry);
	lut->entry = NULL;
	lut->n_entries = lut->n_used = 0;
}

static bool same(const struct sio_lut_target *a, const struct sio_lut_target *b)
{
	return a->bus.node == b->bus.node && a->bus.addr == b->bus.addr &&
	       a->adapter == b->adapter && a->generation == b->generation;
}

/* The page that holds @target. */
static struct sio_lut_target page_of(const struct sio_lut *lut, const struct sio_lut_target *target)
{
	struct sio_lut_target page = *target;

	page.bus.addr &= ~(lut->entry_size - 1);
	return page;
}

/* Do the entries in use from @first to before @end translate as a run does that has @page at @run?
 */
static bool run_matches(const struct sio_lut *lut, unsigned run, unsigned first, unsigned end,
			struct sio_lut_target page)
{
	page.bus.addr += (first - run) * lut->entry_size;
	for (unsigned i = first; i < end; i++, page.bus.addr += lut->entry_size) {
		if (lut->entry[i].refs > 0 && !same(&lut->entry[i].target, &page))
			return false;
	}
	return true;
}

static bool in_use(const struct sio_lut *lut, unsigned i)
{
	return lut->entry[i].refs > 0;
}

/*
 * Find the run of @count entries for @page on that takes fewest new ones; UINT_MAX: there is none.
 * A window of @count entries is slid along the table; what it cannot win is not looked at, and its
 * first entry in use, which mostly is another's, decides most of the rest.
 */
static unsigned best_run(const struct sio_lut *lut, unsigned count, struct sio_lut_target page,
			 unsigned *ret_first)
{
	unsigned best_cost = UINT_MAX, used = 0, first_used = 0;

	for (unsigned end = 1; end <= lut->n_entries; end++) {
		unsigned i = end - count;

		used += in_use(lut, end - 1);
		if (end < count)
			continue;
		while (first_used < end && (first_used < i || !in_use(lut, first_used)))
			first_used++;
		if (count - used < best_cost && run_matches(lut, i, first_used, end, page)) {
			best_cost = count - used;
			*ret_first = i;
		}
		used -= in_use(lut, i);
	}
	return best_cost;
}

/* "node 8: 500, node 12: 12": where the entries lead that are in use. */
static void count_nodes(const struct sio_lut *lut, char *text, size_t size)
{
	unsigned count[NODES] = {0};
	size_t len = 0;

	for (unsigned i = 0; i < lut->n_entries; i++)
		if (lut->entry[i].refs)
			count[lut->entry[i].target.bus.node % NODES]++;
	text[0] = '\0';
	for (unsigned node = 0; node < NODES && len < size; node++)
		if (count[node])
			len += (size_t)snprintf(text + len, size - len, "%snode %u: %u",
						len ? ", " : "", node, count[node]);
}

static int full(const struct sio_lut *lut, unsigned node, uint64_t count, struct sio_err *reterr)
{
	char nodes[80];

	count_nodes(lut, nodes, sizeof(nodes));
	return sio_fail_exhausted(reterr, -ENOSPC,
				  count > lut->n_entries - lut->n_used && count <= lut->n_entries
					  ? SIO_OUT_OF_LUT_ENTRIES
					  : SIO_OUT_OF_WINDOW,
				  "%s: %u of %u entries in use (%s); node %u needs %" PRIu64
				  " in a row",
				  lut->name, lut->n_used, lut->n_entries, nodes, node, count);
}

/**
 * sio_lut_map() - make a range of another node reachable through the window
 * @lut: table of the local adapter
 * @target: node, adapter and boot generation, and bus address as that node sees it
 * @len: bytes, at least 1
 * @ret: set on success: where in the window @target is
 * @reterr: set on failure: text for the log; may be NULL
 *
 * Entries with the same target are shared and counted. The run that takes fewest new ones wins,
 * then the lowest. Failure changes nothing. Undo with sio_lut_unmap(), same @len.
 *
 * Return: 0; -EINVAL: range empty or wrapping; -ENOSPC: no run of entries left.
 */
int sio_lut_map(struct sio_lut *lut, const struct sio_lut_target *target, uint64_t len,
		struct sio_window_at *ret, struct sio_err *reterr)
{
	struct sio_lut_target page = page_of(lut, target);
	unsigned best = 0, best_cost = UINT_MAX;
	uint64_t last, count;

	if (len == 0 || __builtin_add_overflow(target->bus.addr, len - 1, &last))
		return sio_fail(reterr, -EINVAL,
				"%s: range %#" PRIx64 " + %#" PRIx64
				" of node %u is empty or wraps",
				lut->name, target->bus.addr, len, target->bus.node);

	count = (last - page.bus.addr) / lut->entry_size + 1;
	if (count <= lut->n_entries)
		best_cost = best_run(lut, (unsigned)count, page, &best);
	if (best_cost == UINT_MAX)
		return full(lut, target->bus.node, count, reterr);

	ret->offset = best * lut->entry_size + (target->bus.addr - page.bus.addr);
	lut->n_used += best_cost;
	for (; count > 0; count--, best++, page.bus.addr += lut->entry_size) {
		lut->entry[best].target = page;
		lut->entry[best].refs++;
	}
	return 0;
}

/**
 * sio_lut_unmap() - undo one sio_lut_map()
 * @lut: table of the local adapter
 * @at: as it was returned
 * @len: as it was given
 * @reterr: set on failure; may be NULL
 *
 * An entry is free again when each mapping that covers it is undone. Failure changes nothing.
 *
 * Return: 0; -EINVAL: empty or outside the window; -ENOENT: one of the entries is free.
 */
int sio_lut_unmap(struct sio_lut *lut, struct sio_window_at at, uint64_t len,
		  struct sio_err *reterr)
{
	uint64_t window = lut->entry_size * lut->n_entries;
	uint64_t first, last;

	if (len == 0 || __builtin_add_overflow(at.offset, len - 1, &last) || last >= window)
		return sio_fail(reterr, -EINVAL,
				"%s: %#" PRIx64 " + %#" PRIx64
				" is empty or outside the window of %#" PRIx64 " bytes",
				lut->name, at.offset, len, window);
	first = at.offset / lut->entry_size;
	last /= lut->entry_size;
	for (uint64_t i = first; i <= last; i++) {
		if (lut->entry[i].refs == 0)
			return sio_fail(reterr, -ENOENT,
					"%s: look-up entry %" PRIu64 " is not in use", lut->name,
					i);
	}
	for (uint64_t i = first; i <= last; i++) {
		if (--lut->entry[i].refs == 0)
			lut->n_used--;
	}
	return 0;
}

/**
 * sio_lut_translate() - where an access to the window goes
 * @lut: table of the local adapter
 * @at: what is accessed
 * @ret_target: set on success: the byte at @at, as the peer addresses it
 * @ret_length: set on success: bytes from there to the end of the entry, at least 1; may be NULL
 *
 * Return: 0; -ENOENT: outside the window, or the entry is free.
 */
int sio_lut_translate(const struct sio_lut *lut, struct sio_window_at at,
		      struct sio_lut_target *ret_target, uint64_t *ret_length)
{
	uint64_t i = at.offset / lut->entry_size, in = at.offset & (lut->entry_size - 1);

	if (i >= lut->n_entries || lut->entry[i].refs == 0)
		return -ENOENT;
	*ret_target = lut->entry[i].target;
	ret_target->bus.addr += in;
	if (ret_length)
		*ret_length = lut->entry_size - in;
	return 0;
}

unsigned sio_lut_longest_run(const struct sio_lut *lut)
{
	unsigned longest = 0, run = 0;

	for (unsigned i = 0; i < lut->n_entries; i++) {
		run = lut->entry[i].refs ? 0 : run + 1;
		longest = run > longest ? run : longest;
	}
	return longest;
}
