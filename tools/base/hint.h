/* SPDX-License-Identifier: BSD-2-Clause */
/* Suggested commands: they work as they are printed, pasted into the user's shell. */
#ifndef TOOLS_HINT_H
#define TOOLS_HINT_H

#include <stddef.h>

#define TOOL_NAME_TEXT 64
#define TOOL_HINT_TEXT 1024

/*
 * The words before a subcommand: this command as it was called, and the option that names the
 * cluster in @dir: "smartio --cluster demo", "build/plain/tools/smartio --state '/tmp/a b'". No
 * such option where $SMARTIO_STATE names it, or @dir is NULL. Return: @text.
 */
const char *tool_hint(const char *dir, char text[TOOL_HINT_TEXT]);
/* Quotes a word for a shell, if necessary. Return: @text; "?" if it does not fit. */
const char *tool_hint_word(const char *word, char *text, size_t size);
/*
 * The name that the cluster in @dir was brought up under, by --name or by its file. "": the
 * directory lies outside of the base directory, so only the directory names it. Return: @name.
 */
const char *tool_cluster_name(const char *dir, char name[TOOL_NAME_TEXT]);

#endif
