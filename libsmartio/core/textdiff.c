/* SPDX-License-Identifier: BSD-2-Clause */
/* The longest common sequence of lines, by a table of its lengths. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/textdiff.h"

struct line {
	const char *at;
	size_t len;
};

struct text {
	struct line *line;
	size_t n, from, to; /* those that may differ: from, up to before to */
};

static size_t count_lines(const char *at, size_t len)
{
	size_t n = len > 0 && at[len - 1] != '\n';

	for (size_t i = 0; i < len; i++)
		n += at[i] == '\n';
	return n;
}

static int split(const char *at, size_t len, struct text *ret)
{
	*ret = (struct text){.n = count_lines(at, len)};
	ret->to = ret->n;
	ret->line = calloc(ret->n + 1, sizeof(*ret->line));
	if (!ret->line)
		return -ENOMEM;
	for (size_t i = 0; i < ret->n; i++) {
		const char *end = memchr(at, '\n', len);
		size_t size = end ? (size_t)(end - at) : len;

		ret->line[i] = (struct line){at, size};
		at += size + (end != NULL);
		len -= size + (end != NULL);
	}
	return 0;
}

static bool same(const struct text *a, size_t i, const struct text *b, size_t k)
{
	return a->line[i].len == b->line[k].len &&
	       memcmp(a->line[i].at, b->line[k].at, a->line[i].len) == 0;
}

/* What both begin and end with. */
static void trim(struct text *a, struct text *b)
{
	while (a->from < a->to && b->from < b->to && same(a, a->from, b, b->from)) {
		a->from++;
		b->from++;
	}
	while (a->from < a->to && b->from < b->to && same(a, a->to - 1, b, b->to - 1)) {
		a->to--;
		b->to--;
	}
}

/* @table: [i * width + k]: how many lines the rest of a from i on, and of b from k on, share. */
static void fill(const struct text *a, const struct text *b, uint16_t *table, size_t width)
{
	for (size_t i = a->to - a->from; i-- > 0;)
		for (size_t k = b->to - b->from; k-- > 0;) {
			uint16_t down = table[(i + 1) * width + k],
				 right = table[i * width + k + 1];

			if (same(a, a->from + i, b, b->from + k))
				table[i * width + k] =
					(uint16_t)(table[(i + 1) * width + k + 1] + 1);
			else
				table[i * width + k] = down > right ? down : right;
		}
}

static void report_line(const struct text *t, size_t i, bool mine, sio_textdiff_report *tell,
			void *ctx)
{
	tell(ctx, mine, (unsigned)i + 1, t->line[i].at, t->line[i].len);
}

/* Without a table no two lines are the same. Return: lines told. */
static int walk(const struct text *a, const struct text *b, const uint16_t *table, size_t width,
		sio_textdiff_report *tell, void *ctx)
{
	size_t i = a->from, k = b->from;
	int n = 0;

	while (i < a->to || k < b->to) {
		size_t at = (i - a->from) * width + (k - b->from);

		if (table && i < a->to && k < b->to && same(a, i, b, k)) {
			i++;
			k++;
			continue;
		}
		n++;
		if (i < a->to && (k == b->to || !table || table[at + width] >= table[at + 1]))
			report_line(a, i++, true, tell, ctx);
		else
			report_line(b, k++, false, tell, ctx);
	}
	return n;
}

int sio_textdiff(const char *mine, size_t mine_len, const char *other, size_t other_len,
		 sio_textdiff_report *tell, void *ctx)
{
	struct text a = {.line = NULL}, b = {.line = NULL};
	uint16_t *table = NULL;
	size_t width;
	int rc = split(mine, mine_len, &a);

	if (rc == 0)
		rc = split(other, other_len, &b);
	if (rc < 0)
		goto out;
	trim(&a, &b);
	width = b.to - b.from + 1;
	if (a.to - a.from <= SIO_TEXTDIFF_LINES && width <= SIO_TEXTDIFF_LINES) {
		table = calloc((a.to - a.from + 1) * width, sizeof(*table));
		rc = table ? 0 : -ENOMEM;
		if (table)
			fill(&a, &b, table, width);
	}
	if (rc == 0)
		rc = walk(&a, &b, table, width, tell, ctx);
out:
	free(table);
	free(a.line);
	free(b.line);
	return rc;
}
