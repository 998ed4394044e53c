/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "view/sample.h"

bool tool_counted_value(const struct tool_counted *t, const char *name, uint64_t *ret)
{
	for (unsigned i = 0; i < t->n_counters; i++) {
		if (strcmp(t->counter[i].name, name) != 0)
			continue;
		*ret = t->counter[i].value;
		return true;
	}
	return false;
}

void tool_sample_free(struct tool_sample *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->n; i++) {
		free(s->thing[i].counter);
		free(s->thing[i].by);
	}
	free(s->thing);
	free(s->trunk);
	free(s);
}
