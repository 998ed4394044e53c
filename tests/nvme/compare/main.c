/* SPDX-License-Identifier: BSD-2-Clause */
/* Run sequences on a drive and print what it answered, a line for each answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "error.h"
#include "script.h"
#include "smartio/nvme.h"

static bool run_sequence(const char *name, char *steps)
{
	char *save = NULL;
	unsigned n = 0;
	int rc = bench_begin();

	if (rc) {
		printf("%s 0 the drive does not start: %d %s\n", name, rc, smartio_nvme_error());
		bench_end();
		return true;
	}
	for (char *step = strtok_r(steps, ";", &save); step; step = strtok_r(NULL, ";", &save)) {
		n++;
		if (!step_run(name, n, step + strspn(step, " \t"))) {
			fprintf(stderr, "%s: step %u is wrong: '%s'\n", name, n, step);
			return false;
		}
	}
	bench_end();
	return true;
}

/* "name: step; step"; a line that begins with blanks goes on with the one before. */
static bool run_file(FILE *f)
{
	char line[1024], all[8192] = "", *colon;
	bool more;

	do {
		more = fgets(line, sizeof(line), f);
		line[strcspn(line, "#\n")] = '\0';
		if (more && (line[0] == ' ' || line[0] == '\t') &&
		    strlen(all) + strlen(line) < sizeof(all)) {
			strcat(all, line);
			continue;
		}
		colon = strchr(all, ':');
		if (colon) {
			*colon = '\0';
			if (!run_sequence(all, colon + 1))
				return false;
		} else if (all[strspn(all, " \t")]) {
			fprintf(stderr, "'%s': a line is 'name: step; step'\n", all);
			return false;
		}
		strcpy(all, more ? line : "");
	} while (more);
	return true;
}

int main(int argc, char **argv)
{
	FILE *f;
	bool good;

	if (argc == 3 || argc == 4)
		bench.drive = drive_open(argv[1], argv[3]);
	else
		fprintf(stderr, "usage: nvme_sequences %s\n", drive_usage);
	if (!bench.drive)
		return 2;
	f = fopen(argv[2], "r");
	if (!f) {
		perror(argv[2]);
		return 2;
	}
	good = run_file(f);
	fclose(f);
	bench.drive->close(bench.drive);
	return good ? 0 : 2;
}
