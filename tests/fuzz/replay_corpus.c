/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a fuzz target over the folders named, each file as it is. */
#include <dirent.h>
#include <stdio.h>

#include "fuzz.h"

static int replay(const char *path)
{
	uint8_t data[65536];
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f) {
		perror(path);
		return -1;
	}
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, n);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned n = 0;

	for (int i = 1; i < argc; i++) {
		struct dirent *e;
		DIR *d = opendir(argv[i]);

		if (!d) {
			perror(argv[i]);
			return 1;
		}
		while ((e = readdir(d))) {
			char path[4096];

			if (e->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			if (replay(path) < 0)
				return 1;
			n++;
		}
		closedir(d);
	}
	printf("%u inputs\n", n);
	return n > 0 ? 0 : 1;
}
