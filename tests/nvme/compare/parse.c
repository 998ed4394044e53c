/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "script.h"

bool step_parse(struct step *s, const char *text)
{
	char *save = NULL;

	memset(s, 0, sizeof(*s));
	if (strlen(text) >= sizeof(s->text))
		return false;
	strcpy(s->text, text);
	for (char *w = strtok_r(s->text, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
		if (s->n == STEP_WORDS)
			return false;
		s->word[s->n++] = w;
	}
	return s->n > 0;
}

bool step_value(const char *text, uint64_t *ret)
{
	uint64_t base = 0;
	char *end;

	if (text[0] == 'p' && isdigit((unsigned char)text[1])) {
		base = strtoull(text + 1, &end, 10);
		if (base >= PAGES)
			return false;
		*ret = bench_page((unsigned)base);
		if (*end == '\0')
			return true;
		if (*end != '+')
			return false;
		base = *ret;
		text = end + 1;
	}
	if (!isdigit((unsigned char)text[0]))
		return false;
	*ret = base + strtoull(text, &end, 0);
	return *end == '\0';
}

bool step_key(const struct step *s, const char *key, uint64_t otherwise, uint64_t *ret)
{
	size_t len = strlen(key);

	*ret = otherwise;
	for (unsigned i = 1; i < s->n; i++)
		if (!strncmp(s->word[i], key, len) && s->word[i][len] == '=')
			return step_value(s->word[i] + len + 1, ret);
	return true;
}
