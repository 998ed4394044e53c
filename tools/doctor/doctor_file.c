/* SPDX-License-Identifier: BSD-2-Clause */
/* The cluster's file: do all daemons use the same one? */
#include <stdio.h>
#include <string.h>

#include "base/clusterfile.h"
#include "doctor/doctor_facts.h"

#define LINES 6 /* that one finding shows */
#define LINE 72 /* characters that are shown of a line */

struct lines {
	const char *mine, *other; /* names of the hosts */
	unsigned n;
	char text[LINES * (LINE + SIO_NAME_LEN + 24)];
};

static void add_line(void *ctx, bool mine, unsigned line, const char *text)
{
	struct lines *l = ctx;
	size_t at = strlen(l->text);

	if (l->n++ >= LINES)
		return;
	text += strspn(text, " ");
	snprintf(l->text + at, sizeof(l->text) - at, "%s%s line %u: %.*s", at ? "; " : "",
		 mine ? l->mine : l->other, line, LINE, text);
}

static bool can_be_asked(const struct doctor_host *x)
{
	return x->h.up || x->h.state == TOOL_HOST_AWAY;
}

/* Asks the daemon of @first, which is connected to all others, for the differences. */
static void compare(struct doctor *d, const struct doctor_state *s, const struct doctor_cluster *c,
		    struct doctor_host *first, const struct doctor_host *x)
{
	const struct doctor_words w = {.cluster = c,
				       .mend = c->local
						       ? "sudo {smartio} cluster reload # with the "
							 "same /etc/smartio/cluster.yaml on each"
						       : NULL};
	struct lines l = {.mine = first->h.topo->name, .other = x->h.topo->name};
	char more[32] = "";
	unsigned n;

	if (tool_file_compare(&first->h.client, x->h.topo->node, add_line, &l, &n, NULL) < 0 ||
	    n == 0)
		return;
	if (n > LINES)
		snprintf(more, sizeof(more), "; and %u lines more", n - LINES);
	doctor_found(d, s, &w, "%s has another file in force than %s: %s%s", l.other, l.mine,
		     l.text, more);
}

void doctor_find_files(struct doctor *d, const struct doctor_state *s)
{
	DOCTOR_EACH_CLUSTER (d, c) {
		struct doctor_host *first = NULL;

		DOCTOR_EACH_HOST (c, x) {
			if (!first && x->h.up)
				first = x;
			else if (first && can_be_asked(x))
				compare(d, s, c, first, x);
		}
	}
}
