/* SPDX-License-Identifier: BSD-2-Clause */
/* What differs between two texts: put into one it gives the other, and no fewer lines would do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/textdiff.h"
#include "prng.h"

#define LINES 9

struct told {
	unsigned n, mine[64], others[64], n_mine, n_others;
	char text[64][16]; /* of others */
};

static void tell(void *ctx, bool mine, unsigned line, const char *text, size_t len)
{
	struct told *t = ctx;

	t->n++;
	if (mine) {
		t->mine[t->n_mine++] = line;
	} else {
		snprintf(t->text[t->n_others], sizeof(t->text[0]), "%.*s", (int)len, text);
		t->others[t->n_others++] = line;
	}
}

/* By trying all: @pick is which of a's lines stay. */
static unsigned fewest(const char *a, unsigned n_a, const char *b, unsigned n_b)
{
	unsigned best = 0;

	for (unsigned pick = 0; pick < 1u << n_a; pick++) {
		unsigned at = 0, kept = 0;

		for (unsigned i = 0; i < n_a; i++) {
			if (!(pick >> i & 1))
				continue;
			while (at < n_b && b[at] != a[i])
				at++;
			if (at == n_b)
				break;
			at++;
			kept++;
		}
		if (kept == (unsigned)__builtin_popcount(pick) && kept > best)
			best = kept;
	}
	return n_a + n_b - 2 * best;
}

static void make_text(const char *lines, unsigned n, char out[64])
{
	*out = '\0';
	for (unsigned i = 0; i < n; i++)
		sprintf(out + strlen(out), "%c\n", lines[i]);
}

/* a without what is mine, with what is the other's in its places. */
static void apply(const char *a, unsigned n_a, const struct told *t, char out[64])
{
	unsigned mine = 0, others = 0, line = 1, i = 0;

	*out = '\0';
	while (i < n_a || others < t->n_others) {
		if (others < t->n_others && t->others[others] == line) {
			sprintf(out + strlen(out), "%s\n", t->text[others++]);
			line++;
		} else if (mine < t->n_mine && t->mine[mine] == i + 1) {
			mine++;
			i++;
		} else {
			assert_true(i < n_a);
			sprintf(out + strlen(out), "%c\n", a[i++]);
			line++;
		}
	}
}

static void it_is_right_and_short(void **state)
{
	unsigned rounds = prng_start(1, 3000);

	(void)state;
	for (unsigned round = 0; round < rounds; round++) {
		char a[LINES], b[LINES], text_a[64], text_b[64], got[64];
		unsigned n_a = (unsigned)(prng() % LINES), n_b = (unsigned)(prng() % LINES);
		struct told t = {.n = 0};
		int n;

		for (unsigned i = 0; i < n_a; i++)
			a[i] = (char)('a' + prng() % 4);
		for (unsigned i = 0; i < n_b; i++)
			b[i] = (char)('a' + prng() % 4);
		make_text(a, n_a, text_a);
		make_text(b, n_b, text_b);
		n = sio_textdiff(text_a, strlen(text_a), text_b, strlen(text_b), tell, &t);
		assert_int_equal(n, t.n);
		apply(a, n_a, &t, got);
		assert_string_equal(got, text_b);
		assert_int_equal(t.n, fewest(a, n_a, b, n_b));
	}
}

static void a_last_line_need_not_end(void **state)
{
	struct told t = {.n = 0};

	(void)state;
	assert_int_equal(sio_textdiff("a\nb", 3, "a\nb\n", 4, tell, &t), 0);
	assert_int_equal(sio_textdiff("", 0, "x", 1, tell, &t), 1);
	assert_string_equal(t.text[0], "x");
	assert_int_equal(t.others[0], 1);
}

static void count(void *ctx, bool mine, unsigned line, const char *text, size_t len)
{
	(void)line;
	(void)text;
	(void)len;
	((unsigned *)ctx)[mine]++;
}

/* Of too many, all between the first and the last. */
static void much_is_told_as_a_whole(void **state)
{
	static char a[8 * (SIO_TEXTDIFF_LINES + 9)], b[sizeof(a)];
	unsigned n[2] = {0, 0}, lines = SIO_TEXTDIFF_LINES + 2;

	(void)state;
	for (unsigned i = 0; i < lines; i++) {
		sprintf(a + strlen(a), "%u\n", i);
		sprintf(b + strlen(b), "%u\n", i == 0 || i == lines - 1 ? 9999 : i);
	}
	assert_int_equal(sio_textdiff(a, strlen(a), b, strlen(b), count, n), 2 * lines);
	assert_int_equal(n[0], lines);
	assert_int_equal(n[1], lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_right_and_short),
		cmocka_unit_test(a_last_line_need_not_end),
		cmocka_unit_test(much_is_told_as_a_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
