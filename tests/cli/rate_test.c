/* SPDX-License-Identifier: BSD-2-Clause */
/* Rates of counters: that go on, wrap, begin again, or are not there; frames made of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/output.h"
#include "view/frame.h"
#include "view/rate.h"

#define SECOND INT64_C(1000000000)
#define HALF (UINT64_C(1) << 63)

/* A cluster: host "a" with adapter 0 and device "d"; counters are set by hand. */
struct cluster {
	struct tool_sample s;
	struct tool_counted thing[3];
	struct tool_counter link[7], device[5];
};

static void set(struct tool_counter *c, const char *name, uint64_t value)
{
	strcpy(c->name, name);
	c->value = value;
}

static void make(struct cluster *c, int64_t at, uint64_t bytes, uint64_t entries)
{
	static const enum tool_counters kind[] = {TOOL_COUNTERS_HOST, TOOL_COUNTERS_ADAPTER,
						  TOOL_COUNTERS_DEVICE};
	static const char *const name[] = {"a", "a.0", "d"};

	memset(c, 0, sizeof(*c));
	c->s = (struct tool_sample){.cluster = "c", .n = 3, .thing = c->thing};
	for (unsigned i = 0; i < 3; i++) {
		c->thing[i] = (struct tool_counted){.kind = kind[i],
						    .host = "a",
						    .node = 4,
						    .presence = TOOL_PRESENT,
						    .state = "up",
						    .known = true,
						    .at = at};
		strcpy(c->thing[i].name, name[i]);
	}
	c->thing[1].counter = c->link;
	c->thing[1].n_counters = 4;
	set(&c->link[0], "rd_bytes", bytes);
	set(&c->link[1], "wr_bytes", 2 * bytes);
	set(&c->link[2], "faults", 0);
	set(&c->link[3], "lut_used", entries);
	c->thing[2].id = 0x401;
	c->thing[2].counter = c->device;
	c->thing[2].n_counters = 5;
	set(&c->device[0], "commands_read", bytes);
	set(&c->device[1], "commands_failed", bytes);
	set(&c->device[2], "commands_write", bytes / 2);
	set(&c->device[3], "faults", 0);
	set(&c->device[4], "queue_pairs", entries);
}

static void test_grew(void **state)
{
	const struct {
		uint64_t before, now;
		bool known;
		uint64_t grew;
	} row[] = {{0, 0, true, 0},
		   {5, 7, true, 2},
		   {7, 5, false, 0},
		   {1, 0, false, 0},
		   {UINT64_MAX, 0, true, 1},
		   {UINT64_MAX - 9, 5, true, 15},
		   {0, UINT64_MAX, true, UINT64_MAX},
		   {HALF - 1, 0, false, 0},
		   {HALF, 0, true, HALF},
		   {UINT64_MAX, HALF, false, 0}};
	uint64_t grew;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		grew = 0;
		assert_int_equal(tool_rate_grew(row[i].before, row[i].now, &grew), row[i].known);
		assert_int_equal(grew, row[i].grew);
	}
}

static void test_rate(void **state)
{
	struct cluster a, b;
	struct tool_rate r;

	(void)state;
	make(&a, SECOND, 1000, 9);
	make(&b, SECOND + SECOND / 2, 1600, 3);
	r = tool_rate_of(&a.thing[1], &b.thing[1], "rd_bytes");
	assert_true(r.known && r.grew == 600 && fabs(r.per_second - 1200) < 1e-6);
	/* What is, now, may fall: it is no counter. */
	assert_true(tool_rate_comparable(&a.thing[1], &b.thing[1]));
	assert_false(tool_rate_of(&a.thing[1], &b.thing[1], "msg").known);
	assert_false(tool_rate_of(NULL, &b.thing[1], "rd_bytes").known);
	/* Failed commands are among the others. */
	r = tool_rate_commands(&a.thing[2], &b.thing[2]);
	assert_true(r.known && r.grew == 900);
	assert_false(tool_rate_commands(&a.thing[1], &b.thing[1]).known);
	/* No time, or time that ran backwards. */
	b.thing[1].at = a.thing[1].at;
	assert_false(tool_rate_of(&a.thing[1], &b.thing[1], "rd_bytes").known);
	b.thing[1].at--;
	assert_false(tool_rate_of(&a.thing[1], &b.thing[1], "rd_bytes").known);
}

/* One counter that fell says that all have begun again, though others are larger already. */
static void test_begun_again(void **state)
{
	struct cluster a, b;

	(void)state;
	make(&a, SECOND, 1000, 0);
	make(&b, 2 * SECOND, 1600, 0);
	b.link[1].value = 10;
	assert_false(tool_rate_of(&a.thing[1], &b.thing[1], "rd_bytes").known);
	assert_false(tool_rate_of(&a.thing[1], &b.thing[1], "wr_bytes").known);
	/* A host that was started in between, whose counters passed where they had been. */
	make(&b, 2 * SECOND, 1600, 0);
	b.thing[1].start.generation++;
	assert_false(tool_rate_of(&a.thing[1], &b.thing[1], "rd_bytes").known);
	make(&b, 2 * SECOND, 1600, 0);
	b.thing[1].start.boot_id[15]++;
	assert_false(tool_rate_of(&a.thing[1], &b.thing[1], "rd_bytes").known);
	/* It was down before, or is now. */
	make(&b, 2 * SECOND, 1600, 0);
	a.thing[1].known = false;
	assert_false(tool_rate_of(&a.thing[1], &b.thing[1], "rd_bytes").known);
	a.thing[1].known = true;
	b.thing[1].known = false;
	assert_false(tool_rate_of(&a.thing[1], &b.thing[1], "rd_bytes").known);
	/* It wrapped. */
	make(&a, SECOND, UINT64_MAX - 99, 0);
	make(&b, 2 * SECOND, 100, 0);
	a.link[1].value = 0;
	assert_int_equal(tool_rate_of(&a.thing[1], &b.thing[1], "rd_bytes").grew, 200);
}

static void test_same(void **state)
{
	struct cluster a, b;

	(void)state;
	make(&a, SECOND, 0, 0);
	make(&b, SECOND, 0, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_ptr_equal(tool_rate_same(&a.s, &b.thing[i]), &a.thing[i]);
	b.thing[2].id++;
	assert_null(tool_rate_same(&a.s, &b.thing[2]));
	b.thing[1].node++;
	assert_null(tool_rate_same(&a.s, &b.thing[1]));
	assert_null(tool_rate_same(NULL, &b.thing[0]));
}

static const struct tool_frame_line *line_of(const struct tool_frame *f, const char *begin)
{
	for (unsigned i = 0; i < f->n; i++)
		if (strncmp(f->line[i].text, begin, strlen(begin)) == 0)
			return &f->line[i];
	fail_msg("no line begins with '%s'", begin);
	return NULL;
}

static void test_frame(void **state)
{
	struct tool_borrower by[] = {{"b", 2}, {"c", 1}};
	const struct tool_frame_line *l;
	struct tool_frame *f;
	struct cluster a, b;

	(void)state;
	make(&a, SECOND, 0, 9);
	make(&b, 2 * SECOND, 4096, 3);
	b.thing[2].by = by;
	b.thing[2].n_by = 2;
	f = tool_frame_new(&a.s, &b.s, TOOL_SORT_NAME);
	assert_int_equal(f->line[0].style, TOOL_LINE_TITLE);
	assert_string_equal(f->line[0].text,
			    "c: hosts 1/1 up, links 1/1 up, devices 1/1 in, faults 0 (+0)");
	/* A host does what its links do. */
	assert_non_null(strstr(line_of(f, "a  ")->text, "1/1 up        4K           8K"));
	l = line_of(f, "d ");
	assert_int_equal(l->style, TOOL_LINE_BUSY);
	assert_non_null(strstr(l->text, "b x2, c"));
	assert_non_null(strstr(l->text, " 6144 "));
	tool_frame_free(f);
	/* Nothing is known of the time before the first look, and nothing of what is down. */
	f = tool_frame_new(NULL, &b.s, TOOL_SORT_NAME);
	assert_non_null(strstr(line_of(f, "a.0")->text, "  -  "));
	tool_frame_free(f);
	b.thing[1].presence = TOOL_ABSENT;
	b.device[3].value = 3;
	f = tool_frame_new(&a.s, &b.s, TOOL_SORT_NAME);
	assert_int_equal(line_of(f, "a.0")->style, TOOL_LINE_WRONG);
	assert_int_equal(line_of(f, "d ")->style, TOOL_LINE_WRONG);
	assert_non_null(strstr(line_of(f, "d ")->text, "3 (+3)"));
	tool_frame_free(f);
	tool_frame_free(NULL);
}

/* Links of three hosts, in the order that each way of sorting wants. */
static void test_sort(void **state)
{
	static const struct {
		enum tool_frame_sort sort;
		const char *order;
	} row[] = {{TOOL_SORT_NAME, "xyz"},
		   {TOOL_SORT_READ, "yxz"},
		   {TOOL_SORT_WRITE, "xyz"}, /* the same: they stay as they are */
		   {TOOL_SORT_FAULTS, "zyx"}};
	static const uint64_t reads[] = {5, 9, 1}, faults[] = {0, 1, 7};
	struct tool_counted before[3], now[3];
	struct tool_counter old[3][2], new[3][2];
	struct tool_sample a = {.n = 3, .thing = before}, b = {.n = 3, .thing = now};
	struct tool_frame *f;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		before[i] = (struct tool_counted){.kind = TOOL_COUNTERS_ADAPTER,
						  .node = i,
						  .state = "up",
						  .known = true,
						  .at = 1,
						  .n_counters = 2,
						  .counter = old[i]};
		before[i].name[0] = (char)('x' + i);
		now[i] = before[i];
		now[i].at = 2;
		now[i].counter = new[i];
		set(&old[i][0], "rd_bytes", 100);
		set(&new[i][0], "rd_bytes", 100 + reads[i]);
		set(&old[i][1], "faults", faults[i]);
		set(&new[i][1], "faults", faults[i]);
	}
	for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
		f = tool_frame_new(&a, &b, row[k].sort);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(f->line[f->n - 3 + i].text[0], row[k].order[i]);
		tool_frame_free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grew),	    cmocka_unit_test(test_rate),
		cmocka_unit_test(test_begun_again), cmocka_unit_test(test_same),
		cmocka_unit_test(test_frame),	    cmocka_unit_test(test_sort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
