/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hint.h"
#include "base/state.h"

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("/._-+:,@%=", c);
}

const char *tool_hint_word(const char *word, char *text, size_t size)
{
	bool plain = *word != '\0';
	size_t n = 0;

	for (const char *c = word; *c; c++)
		plain &= is_plain(*c);
	if (plain && strlen(word) < size)
		return strcpy(text, word);
	/* A character takes at most four ('\''); the two quotes and the NUL are added to that. */
	if (4 * strlen(word) + 3 > size)
		return strcpy(text, "?");
	text[n++] = '\'';
	for (const char *c = word; *c; c++) {
		if (*c == '\'') {
			memcpy(text + n, "'\\''", 4);
			n += 4;
		} else {
			text[n++] = *c;
		}
	}
	text[n++] = '\'';
	text[n] = '\0';
	return text;
}

const char *tool_cluster_name(const char *dir, char name[TOOL_NAME_TEXT])
{
	char base[PATH_MAX], real[PATH_MAX], there[PATH_MAX];
	const char *slash = strrchr(dir, '/');

	*name = '\0';
	if (!slash || slash[1] == '.' || strlen(slash + 1) >= TOOL_NAME_TEXT ||
	    tool_state_path(slash + 1, there, sizeof(there), NULL) < 0 ||
	    tool_state_base(base, sizeof(base), NULL) < 0 || !realpath(base, real))
		return name;
	if (strncmp(dir, real, strlen(real)) != 0 || dir + strlen(real) != slash)
		return name;
	return strcpy(name, slash + 1);
}

const char *tool_hint(const char *dir, char text[TOOL_HINT_TEXT])
{
	const char *self = program_invocation_name, *env = getenv("SMARTIO_STATE");
	char word[TOOL_HINT_TEXT / 2], name[TOOL_NAME_TEXT];
	size_t n;

	tool_hint_word(strchr(self, '/') ? self : "smartio", text, TOOL_HINT_TEXT / 2);
	n = strlen(text);
	if (!dir || (env && strcmp(env, dir) == 0))
		return text;
	if (*tool_cluster_name(dir, name))
		snprintf(text + n, TOOL_HINT_TEXT - n, " --cluster %s",
			 tool_hint_word(name, word, sizeof(word)));
	else
		snprintf(text + n, TOOL_HINT_TEXT - n, " --state %s",
			 tool_hint_word(dir, word, sizeof(word)));
	return text;
}
