/* SPDX-License-Identifier: BSD-2-Clause */
/* Help texts of subcommands: the overview, the --help of one, paragraphs of the manual. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/output.h"

static int end(void)
{
	if (fflush(stdout) != 0)
		return tool_error("cannot write to standard output: %s", strerror(errno));
	return 0;
}

/* ---- usage: the words after the name ---- */
/* The option's short form. */
static void print_short(const struct tool_option *o)
{
	if (o->letter)
		printf("-%c", o->letter);
	else
		printf("--%s", o->name);
	if (o->takes)
		printf(" %s", o->takes);
}

static void print_usage(const struct tool_command *c)
{
	if (c->usage) {
		printf(" %s", c->usage);
		return;
	}
	for (const struct tool_option *o = c->options; o && o->name; o++) {
		printf(o->needed ? " " : " [");
		print_short(o);
		if (!o->needed)
			putchar(']');
	}
	for (const struct tool_word *w = c->words; w->name; w++)
		printf(" %s", w->name);
}

/* ---- --help ---- */
/* "-n, --node NODE". Return: its length. */
static int option_name(const struct tool_option *o, char *text, size_t size)
{
	char letter[8] = "";

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	return snprintf(text, size, "%s--%s%s%s", letter, o->name, o->takes ? " " : "",
			o->takes ? o->takes : "");
}

/* The further lines of @text are indented below the first. */
static void print_option(const char *name, const char *text, int width)
{
	printf("  %-*s  ", width, name);
	for (; *text; text++) {
		putchar(*text);
		if (*text == '\n')
			printf("%*s", width + 4, "");
	}
	putchar('\n');
}

static void print_options(const struct tool_option *options, bool help)
{
	char name[64];
	int width = 0;

	for (const struct tool_option *o = options; o && o->name; o++) {
		int len = option_name(o, name, sizeof(name));

		width = len > width ? len : width;
	}
	for (const struct tool_option *o = options; o && o->name; o++) {
		option_name(o, name, sizeof(name));
		print_option(name, o->text, width);
	}
	if (help)
		print_option("--help", "this text", width);
}

int tool_help(const struct tool_command *c)
{
	printf("usage: smartio %s", c->name);
	print_usage(c);
	printf("\n\n%s.\n", c->summary);
	if (c->options)
		putchar('\n');
	print_options(c->options, false);
	if (c->help)
		printf("\n%s", c->help);
	puts("\nCommon options:");
	print_options(tool_common_options, true);
	return end();
}

int tool_help_group(const char *group)
{
	size_t len = strlen(group);

	printf("usage: smartio [--state DIR | --cluster NAME] %s%sCOMMAND...\n\n", group,
	       len ? " " : "");
	for (unsigned i = 0; tool_commands[i]; i++) {
		const char *name = tool_commands[i]->name;

		if (len && (strncmp(name, group, len) != 0 || name[len] != ' '))
			continue;
		printf("  %-20s %s\n", name, tool_commands[i]->summary);
	}
	puts("\n'smartio COMMAND --help' tells more; 'smartio --version' the version.");
	return end();
}

/* ---- the manual ---- */
/* A comment for tests: the command's manual page, and what it prints with --json. */
static void print_comment(const struct tool_command *c)
{
	printf("; page %s\n", c->page ? c->page : "smartio");
	printf("; schemas %s\n", c->schemas ? c->schemas : "");
}

/* Text of scdoc in which no character has a special meaning. */
static void print_plain(const char *text, const char *indent)
{
	for (; *text; text++) {
		if (strchr("\\*_#~`<[", *text))
			putchar('\\');
		putchar(*text);
		if (*text == '\n' && text[1])
			fputs(indent, stdout);
	}
}

static void print_paragraph(const struct tool_command *c)
{
	char name[64];

	print_comment(c);
	printf("*%s*", c->name);
	for (const struct tool_option *o = c->options; o && o->name && !c->usage; o++) {
		fputs(o->needed ? " " : " \\[", stdout);
		option_name(o, name, sizeof(name));
		print_plain(name, "");
		if (!o->needed)
			putchar(']');
	}
	for (const struct tool_word *w = c->words; w->name; w++) {
		putchar(' ');
		print_plain(w->name, "");
	}
	printf("\n\t%s%s", c->summary, c->page ? "; see " : ".\n");
	if (c->page) {
		printf("*%s*(1).\n\n", c->page);
		return;
	}
	if (c->help) {
		putchar('\t');
		print_plain(c->help, "\t");
	}
	putchar('\n');
	for (const struct tool_option *o = c->options; o && o->name; o++) {
		option_name(o, name, sizeof(name));
		printf("\t*%s*: ", name);
		print_plain(o->text, "\t");
		puts(".\n");
	}
}

int tool_help_manual(void)
{
	for (unsigned i = 0; tool_commands[i]; i++)
		print_paragraph(tool_commands[i]);
	return end();
}
