/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks the tables of states, and keeps what their functions find. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_facts.h"
#include "hint.h"
#include "output.h"
#include "start.h"

static const struct doctor_area *const areas[] = {
	&doctor_cluster_area, &doctor_resources_area, &doctor_module_area,
	&doctor_machine_area, &doctor_measure_area,
};

static void add(struct doctor *d, const struct doctor_state *s, enum doctor_verdict v,
		const char *evidence, char *mend)
{
	d->finding = tool_grow(d->finding, d->n_findings + 1, sizeof(*d->finding));
	d->finding[d->n_findings++] = (struct doctor_finding){
		.area = d->area,
		.state = s,
		.verdict = v,
		.evidence = tool_strdup(evidence),
		.mend = mend ? mend : tool_strdup(""),
	};
}

/* Fill the place that @c begins with. Return: how long the place is; 0: there is none. */
static size_t fill_place(const char *c, const struct doctor_words *w, FILE *f)
{
	const char *dir = w->cluster ? w->cluster->dir : NULL;
	char text[TOOL_HINT_TEXT];
	const struct {
		const char *place, *text;
	} words[] = {
		{"{smartio}", NULL},
		{"{smartio-nvme}", NULL},
		{"{1}", w->one},
		{"{2}", w->two},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i].place);

		if (strncmp(c, words[i].place, len) != 0)
			continue;
		if (words[i].text)
			fputs(tool_hint_word(words[i].text, text, sizeof(text)), f);
		else
			fputs(i == 0 ? tool_hint(dir, text)
				     : tool_hint_program("smartio-nvme", text),
			      f);
		return len;
	}
	return 0;
}

/* The row's command with its places filled. */
static char *fill_mend(const char *mend, const struct doctor_words *w)
{
	static const struct doctor_words none;
	char *text = NULL;
	size_t size, len;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return tool_strdup("");
	for (const char *c = mend; *c; c += len ? len : 1) {
		len = fill_place(c, w ? w : &none, f);
		if (len == 0)
			putc(*c, f);
	}
	fclose(f);
	return text;
}

void doctor_found(struct doctor *d, const struct doctor_state *s, const struct doctor_words *w,
		  const char *fmt, ...)
{
	char evidence[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(evidence, sizeof(evidence), fmt, ap);
	va_end(ap);
	add(d, s, s->level, evidence, fill_mend(w && w->mend ? w->mend : s->mend, w));
}

void doctor_says(struct doctor *d, const struct doctor_state *s, enum doctor_verdict verdict,
		 const char *fmt, ...)
{
	char evidence[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(evidence, sizeof(evidence), fmt, ap);
	va_end(ap);
	add(d, s, verdict, evidence, NULL);
}

/* Why a state cannot be here at all; NULL: it can. */
static const char *not_here(const struct doctor *d, enum doctor_need need)
{
	switch (need) {
	case DOCTOR_ANYWHERE:
		break;
	case DOCTOR_CLUSTER:
		return d->n_clusters ? NULL : "no cluster runs";
	case DOCTOR_HARDWARE:
		return doctor_wants_hardware(d) ? NULL : "of real devices; nothing here uses any";
	case DOCTOR_MEASURE:
		return d->measure ? NULL : "of measurements: with --measure";
	case DOCTOR_TRY:
		return *d->source.root ? "another machine's tree" : NULL;
	}
	return NULL;
}

void doctor_examine(struct doctor *d)
{
	const char *why;

	doctor_collect(d);
	for (size_t a = 0; a < sizeof(areas) / sizeof(areas[0]); a++) {
		d->area = areas[a];
		for (size_t i = 0; i < areas[a]->n; i++) {
			const struct doctor_state *s = &areas[a]->state[i];
			size_t before = d->n_findings;

			why = not_here(d, s->need);
			if (why)
				doctor_says(d, s, DOCTOR_NOT_HERE, "%s", why);
			else
				s->find(d, s);
			if (d->n_findings == before)
				doctor_says(d, s, DOCTOR_FINE, "no");
		}
	}
}

void doctor_done(struct doctor *d)
{
	for (size_t i = 0; i < d->n_findings; i++) {
		free(d->finding[i].evidence);
		free(d->finding[i].mend);
	}
	free(d->finding);
	doctor_collect_done(d);
}
