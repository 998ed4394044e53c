/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz target without libFuzzer: each file of the folders (or each file) named, as it is,
 * cut short at every so many bytes, and with bytes changed, from a printed seed.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../core/prng.h"
#include "fuzz.h"

#define LARGEST (1u << 20)

static unsigned rounds, n_files;
static unsigned long n_inputs;

/* From memory of just this size, so that a sanitizer sees each byte read past the end. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	n_inputs++;
}

/* A byte set, a bit flipped, a piece taken out, doubled or put elsewhere. Return: new size. */
static size_t mutate(uint8_t *data, size_t size, size_t room)
{
	static const uint8_t special[] = "\n\t :-?,[]{}#&*!|>'\"%@0123456789KMGT.\\\0\xff";
	size_t at = prng_below(size), len = 1 + prng_below(size - at), to;

	len = len > 64 ? 64 : len;
	switch (prng_below(5)) {
	case 0:
		data[at] = special[prng_below(sizeof(special) - 1)];
		return size;
	case 1:
		data[at] ^= (uint8_t)(1u << prng_below(8));
		return size;
	case 2:
		memmove(data + at, data + at + len, size - at - len);
		return size - len;
	case 3:
		if (size + len > room)
			return size;
		memmove(data + at + len, data + at, size - at);
		return size + len;
	default:
		to = prng_below(size - len + 1);
		memmove(data + to, data + at, len);
		return size;
	}
}

static void run_file(const char *path)
{
	static uint8_t seed[LARGEST], data[LARGEST + 4096];
	FILE *file = fopen(path, "rb");
	size_t size;

	if (!file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	size = fread(seed, 1, sizeof(seed), file);
	fclose(file);
	n_files++;
	run(seed, size);
	for (size_t cut = 0; cut < size; cut += 1 + size / 64)
		run(seed, cut);
	for (unsigned i = 0; i < rounds && size > 0; i++) {
		size_t now = size;

		memcpy(data, seed, size);
		for (uint64_t n = 1 + prng_below(4); n > 0 && now > 0; n--)
			now = mutate(data, now, sizeof(data));
		run(data, now);
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void run_folder(const char *path)
{
	char *names[1024], file[4096];
	DIR *dir = opendir(path);
	size_t n = 0;

	if (!dir) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	for (struct dirent *e; (e = readdir(dir)) && n < 1024;) {
		if (e->d_name[0] != '.')
			names[n++] = strdup(e->d_name);
	}
	closedir(dir);
	/* The order of a folder is nobody's; the seed's numbers must not depend on it. */
	qsort(names, n, sizeof(names[0]), by_name);
	for (size_t i = 0; i < n; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, names[i]);
		run_file(file);
		free(names[i]);
	}
}

int main(int argc, char **argv)
{
	rounds = prng_start(7, 60);
	for (int i = 1; i < argc; i++) {
		struct stat st;

		if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
			run_folder(argv[i]);
		else
			run_file(argv[i]);
	}
	if (n_files == 0) {
		fprintf(stderr, "usage: %s FOLDER|FILE...\nno files\n", argv[0]);
		return 2;
	}
	printf("%u files, %lu inputs\n", n_files, n_inputs);
	return 0;
}
