/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that nobody may touch: filled with a pattern, looked at when the input ends.
 * usage: canary MEGABYTES; prints "filled"; exit 1 if a word has changed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t pattern(uint64_t i)
{
	return (i + 1) * 0x9e3779b97f4a7c15ull;
}

int main(int argc, char **argv)
{
	size_t words = argc == 2 ? strtoull(argv[1], NULL, 0) << 17 : 0, bad = 0;
	uint64_t *data = words ? malloc(words * 8) : NULL;
	char c;

	if (!data) {
		fprintf(stderr, "usage: canary MEGABYTES\n");
		return 2;
	}
	for (size_t i = 0; i < words; i++)
		data[i] = pattern(i);
	puts("filled");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	for (size_t i = 0; i < words; i++) {
		if (data[i] == pattern(i))
			continue;
		if (!bad++)
			fprintf(stderr, "canary: word %zu of %zu is %#llx\n", i, words,
				(unsigned long long)data[i]);
	}
	if (bad)
		fprintf(stderr, "canary: %zu words have changed\n", bad);
	return bad ? 1 : 0;
}
