/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio-sim-api: one program of the API's tests with one seed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

#define X(name) int api_main_##name(void);
SIM_API_TESTS
#undef X

static const struct {
	const char *name;
	int (*main)(void);
} tests[] = {
#define X(name) {#name, api_main_##name},
	SIM_API_TESTS
#undef X
};

static int list(void)
{
	for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		puts(tests[i].name);
	return 0;
}

int main(int argc, char **argv)
{
	int rc;

	if (argc == 2 && !strcmp(argv[1], "--list"))
		return list();
	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: smartio-sim-api TEST SEED [TRACE] | --list\n");
		return 2;
	}
	api_seed = strtoull(argv[2], NULL, 0);
	if (argc == 4 && sim_trace_file(argv[3]) < 0) {
		fprintf(stderr, "%s: cannot be written\n", argv[3]);
		return 2;
	}
	for (unsigned i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (strcmp(tests[i].name, argv[1]) != 0)
			continue;
		rc = tests[i].main();
		sim_trace_end();
		printf("%s seed %" PRIu64 " hash %016" PRIx64 ": %" PRIu64
		       " events, %.3f s virtual\n",
		       argv[1], api_seed, api_hash, api_events, (double)api_virtual_ns / 1e9);
		return rc ? 1 : 0;
	}
	fprintf(stderr, "%s: no such test\n", argv[1]);
	return 2;
}
