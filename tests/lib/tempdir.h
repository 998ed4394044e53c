/* SPDX-License-Identifier: BSD-2-Clause */
/* A new directory for a test, where the user wants temporary files. */
#ifndef TESTS_LIB_TEMPDIR_H
#define TESTS_LIB_TEMPDIR_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In $TMPDIR, or /tmp; its path begins with @prefix. Return: 0; -1 and a message. */
static inline int test_tempdir(const char *prefix, char *path, size_t size)
{
	const char *tmp = getenv("TMPDIR");
	int len = snprintf(path, size, "%s/%s-XXXXXX", tmp && *tmp ? tmp : "/tmp", prefix);

	if (len < 0 || (size_t)len >= size) {
		fprintf(stderr, "TMPDIR %s: the path is too long for a test\n", tmp);
		return -1;
	}
	if (!mkdtemp(path)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	return 0;
}

#endif
