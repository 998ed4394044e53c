/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "view/metric.h"
#include "view/rate.h"

bool tool_rate_grew(uint64_t before, uint64_t now, uint64_t *ret)
{
	if (now < before && (before < UINT64_C(1) << 63 || now >= UINT64_C(1) << 63))
		return false;
	*ret = now - before;
	return true;
}

static bool is_same(const struct tool_counted *a, const struct tool_counted *b)
{
	return a->kind == b->kind && a->node == b->node && a->id == b->id;
}

const struct tool_counted *tool_rate_same(const struct tool_sample *s, const struct tool_counted *t)
{
	for (unsigned i = 0; s && i < s->n; i++)
		if (is_same(&s->thing[i], t))
			return &s->thing[i];
	return NULL;
}

static bool rises(const struct tool_counted *t, const char *counter)
{
	const struct tool_metric *m = tool_metric_find(t->kind, counter);

	return m && m->type == TOOL_METRIC_COUNTER;
}

bool tool_rate_comparable(const struct tool_counted *before, const struct tool_counted *now)
{
	uint64_t value, grew;

	if (!before || !before->known || !now->known || now->at <= before->at)
		return false;
	if (now->start.generation != before->start.generation ||
	    memcmp(now->start.boot_id, before->start.boot_id, sizeof(now->start.boot_id)) != 0)
		return false;
	for (unsigned i = 0; i < now->n_counters; i++) {
		const struct tool_counter *c = &now->counter[i];

		if (rises(now, c->name) && tool_counted_value(before, c->name, &value) &&
		    !tool_rate_grew(value, c->value, &grew))
			return false;
	}
	return true;
}

struct tool_rate tool_rate_of(const struct tool_counted *before, const struct tool_counted *now,
			      const char *counter)
{
	struct tool_rate rate = {0};
	uint64_t old, new;

	if (!tool_rate_comparable(before, now) || !tool_counted_value(before, counter, &old) ||
	    !tool_counted_value(now, counter, &new) || !tool_rate_grew(old, new, &rate.grew))
		return rate;
	rate.known = true;
	rate.per_second = (double)rate.grew * 1e9 / (double)(now->at - before->at);
	return rate;
}

struct tool_rate tool_rate_sum(struct tool_rate a, struct tool_rate b)
{
	if (!a.known || !b.known)
		return (struct tool_rate){0};
	return (struct tool_rate){true, a.per_second + b.per_second, a.grew + b.grew};
}

struct tool_rate tool_rate_commands(const struct tool_counted *before,
				    const struct tool_counted *now)
{
	static const char *const also[] = {"descriptors", "transfers", "kernels"};
	struct tool_rate sum = {0}, one;

	for (unsigned i = 0; i < now->n_counters; i++) {
		const char *name = now->counter[i].name;
		bool counts = strncmp(name, "commands_", 9) == 0 &&
			      /* commands that failed are counted among the others, too */
			      strcmp(name, "commands_failed") != 0;

		for (unsigned k = 0; k < sizeof(also) / sizeof(also[0]); k++)
			counts |= strcmp(name, also[k]) == 0;
		if (!counts)
			continue;
		one = tool_rate_of(before, now, name);
		sum = sum.known ? tool_rate_sum(sum, one) : one;
		if (!one.known)
			return one;
	}
	return sum;
}
