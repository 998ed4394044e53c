/* SPDX-License-Identifier: BSD-2-Clause */
/* Totals of what faults did in many seeds, from the counters of each run (run/plan.c). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/run.h"

#define MOST 64
#define TEXT 8192

struct tally {
	uint64_t did, planned;
	unsigned seeds, hit; /* that have it; in which it did something */
};

static struct tally tally[2][MOST]; /* of new seeds, and of fixed ones */

static unsigned find(const char *name, size_t len)
{
	unsigned i = 0;

	while (sim_faults[i] &&
	       (strlen(sim_faults[i]->name) != len || strncmp(sim_faults[i]->name, name, len) != 0))
		i++;
	return i;
}

/* "cut 12/20, doze 5": behind the name what it did, and how many events were planned. */
static void add(bool fixed, char *list)
{
	for (char *save = NULL, *word = strtok_r(list, ",\n", &save); word;
	     word = strtok_r(NULL, ",\n", &save)) {
		unsigned long long did = 0, planned = 0;
		struct tally *t;
		unsigned i;

		word += strspn(word, " ");
		i = find(word, strcspn(word, " "));
		if (!sim_faults[i] || i >= MOST)
			continue;
		t = &tally[fixed][i];
		sscanf(word + strcspn(word, " "), "%llu/%llu", &did, &planned);
		t->did += did;
		t->planned += planned;
		t->seeds++;
		t->hit += did > 0;
	}
}

void sim_tally_add(bool fixed, int fd)
{
	static char text[TEXT];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	char *line;

	text[n > 0 ? n : 0] = '\0';
	line = strstr(text, SIM_COUNTED);
	if (!line)
		return;
	line += strlen(SIM_COUNTED);
	line[strcspn(line, "\n")] = '\0';
	add(fixed, line);
}

void sim_tally_print(void)
{
	const char *before =
		"faults, counted (what they did/events, in seeds of those that have it): ";

	for (unsigned i = 0; sim_faults[i] && i < MOST; i++) {
		const struct tally *a = &tally[0][i], *b = &tally[1][i];

		if (a->seeds + b->seeds == 0)
			continue;
		printf("%s%s %" PRIu64, before, sim_faults[i]->name, a->did + b->did);
		if (a->planned + b->planned > 0)
			printf("/%" PRIu64, a->planned + b->planned);
		printf(" in %u of %u", a->hit + b->hit, a->seeds + b->seeds);
		before = ", ";
	}
	if (*before == ',')
		printf("\n");
}

unsigned sim_tally_missing(void)
{
	unsigned n = 0;

	for (unsigned i = 0; sim_faults[i] && i < MOST; i++) {
		if (tally[1][i].did > 0)
			continue;
		fprintf(stderr, "smartio-sim: the fault %s did nothing in the fixed seeds\n",
			sim_faults[i]->name);
		n++;
	}
	return n;
}
