// SPDX-License-Identifier: BSD-2-Clause
/*
 * mark begin|end|now: in a machine that insns.c looks at, what is counted begins and ends here. All
 * print the monotonic clock, in ns.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "mark.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define MARK(number) __asm__ volatile(".byte 0x0f, 0x1f, 0x80\n.long " TEXT(number))

int main(int argc, char **argv)
{
	const char *word = argc == 2 ? argv[1] : "";
	struct timespec t;

	if (strcmp(word, "begin") == 0) {
		MARK(MARK_BEGIN);
	} else if (strcmp(word, "end") == 0) {
		MARK(MARK_END);
	} else if (strcmp(word, "now") != 0) {
		fprintf(stderr, "usage: mark begin|end|now\n");
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &t);
	printf("%" PRId64 "\n", (int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
	return 0;
}
