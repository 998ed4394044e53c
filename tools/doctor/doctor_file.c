/* SPDX-License-Identifier: BSD-2-Clause */
/* The cluster's file: do all daemons use the same one? */
#include <stdio.h>
#include <stdlib.h>
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

/* On a real host, whose daemon knows which others are up. */
static void compare_others(struct doctor *d, const struct doctor_state *s,
			   const struct doctor_cluster *c, struct doctor_host *own)
{
	struct sio_wire_row *row;
	size_t n;

	if (tool_client_list(&own->h.client, SIO_LIST_NODES, &row, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		const struct doctor_host x = {
			.h.topo = sio_topology_host(c->topology, sio_from_le32(row[i].node))};

		if (x.h.topo && x.h.topo != own->h.topo && sio_from_le32(row[i].flags) & SIO_ROW_UP)
			compare(d, s, c, own, &x);
	}
	free(row);
}

void doctor_find_files(struct doctor *d, const struct doctor_state *s)
{
	DOCTOR_EACH_CLUSTER (d, c) {
		struct doctor_host *first = NULL;

		DOCTOR_EACH_HOST (c, x) {
			if (!first && x->h.up)
				first = x;
			else if (first && x->h.up)
				compare(d, s, c, first, x);
		}
		if (first && c->local)
			compare_others(d, s, c, first);
	}
}
