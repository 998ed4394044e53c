/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where doctor reads facts of a machine: files of /proc, /sys, /etc below a root, which is another
 * machine's tree with --root, and an artificial one in tests.
 */
#ifndef TOOLS_DOCTOR_SOURCE_H
#define TOOLS_DOCTOR_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DOCTOR_LINE 1024

struct doctor_source {
	const char *root; /* "": this machine's own */
};

/* The path is absolute, and given as a format. */
#define DOCTOR_PATH(n) __attribute__((format(printf, (n), (n) + 1)))

bool doctor_exists(const struct doctor_source *s, const char *fmt, ...) DOCTOR_PATH(2);
/* Reads the first line of a file, without its newline. False: it cannot be read, and @ret is "". */
bool doctor_line(const struct doctor_source *s, char ret[DOCTOR_LINE], const char *fmt, ...)
	DOCTOR_PATH(3);
/* Reads the text behind @key in the line that begins with it, without blanks around it. */
bool doctor_field(const struct doctor_source *s, const char *key, char ret[DOCTOR_LINE],
		  const char *fmt, ...) DOCTOR_PATH(4);
/* Reads the last part of a link's target. */
bool doctor_link(const struct doctor_source *s, char ret[DOCTOR_LINE], const char *fmt, ...)
	DOCTOR_PATH(3);
/*
 * Lists the names in a directory, sorted, none that begins with a dot; doctor_names_free().
 * Return: how many; -1: it cannot be read.
 */
ssize_t doctor_names(const struct doctor_source *s, char ***ret, const char *fmt, ...)
	DOCTOR_PATH(3);
void doctor_names_free(char **names, ssize_t n);
/* Reads a soft limit of a process, "Max open files". UINT64_MAX: none. False: it cannot be read. */
bool doctor_limit(const struct doctor_source *s, pid_t pid, const char *name, uint64_t *ret);
/* Does /proc/cpuinfo list this flag for the processor? */
bool doctor_cpu_flag(const struct doctor_source *s, const char *flag);
/* Is @word one of the words of @text, separated by blanks? */
bool doctor_has_word(const char *text, const char *word);

#endif
