/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects what the functions of states find, with the command that corrects it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor_facts.h"
#include "base/hint.h"
#include "base/output.h"
#include "cluster/start.h"

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

/* Fills in the placeholder that @c begins with. Return: its length; 0: there is none. */
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

/* The command of the table's row with its placeholders filled in. */
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
