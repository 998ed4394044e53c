/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where doctor reads what a machine says of itself: files of /proc, /sys, /etc below a root, which
 * is another machine's tree with --root, and a made one in tests.
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

/* The path is absolute, and formatted. */
#define DOCTOR_PATH(n) __attribute__((format(printf, (n), (n) + 1)))

bool doctor_exists(const struct doctor_source *s, const char *fmt, ...) DOCTOR_PATH(2);
/* First line of a file, without its end. False: it cannot be read, and @ret is "". */
bool doctor_line(const struct doctor_source *s, char ret[DOCTOR_LINE], const char *fmt, ...)
	DOCTOR_PATH(3);
/* What follows @key in the line that begins with it, without blanks around it. */
bool doctor_field(const struct doctor_source *s, const char *key, char ret[DOCTOR_LINE],
		  const char *fmt, ...) DOCTOR_PATH(4);
/* Last part of where a link leads. */
bool doctor_link(const struct doctor_source *s, char ret[DOCTOR_LINE], const char *fmt, ...)
	DOCTOR_PATH(3);
/*
 * Names in a directory, sorted, none that begins with a dot; doctor_names_free().
 * Return: how many; -1: it cannot be read.
 */
ssize_t doctor_names(const struct doctor_source *s, char ***ret, const char *fmt, ...)
	DOCTOR_PATH(3);
void doctor_names_free(char **names, ssize_t n);
/* A soft limit of a process, "Max open files". UINT64_MAX: none. False: it cannot be read. */
bool doctor_limit(const struct doctor_source *s, pid_t pid, const char *name, uint64_t *ret);
/* Has the processor this flag, by /proc/cpuinfo? */
bool doctor_cpu_flag(const struct doctor_source *s, const char *flag);
/* One of the words of @text, separated by blanks? */
bool doctor_has_word(const char *text, const char *word);

#endif
