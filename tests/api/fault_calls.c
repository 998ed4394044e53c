/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario in a program of its own, for fault_calls_test.py, which makes one system call of it
 * fail.
 *
 * usage: fault-calls SCENARIO [KIND [link]], or library: no object at all; serve: what the scenario
 * "far" looks for. KIND: what will fail, the connection, messages for want of memory ("unsent"), a
 * system call, or the link to the other host; without it nothing may. The scenario's own calls
 * stand between two calls of getppid(). Then the same once more: strace counts again for each
 * thread, so that something may fail then, too. Prints "begun" and "done".
 */
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"

#define SLACK 2 /* descriptors that stay: the file of ones, and one for waking */

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* @scenario NULL: the library's own beginning and end. */
static void use(void (*scenario)(sci_desc_t sd))
{
	sci_desc_t sd = NULL;
	sci_error_t error;

	if (!scenario)
		getppid();
	SCIInitialize(0, &error);
	if (worked_as(FAULT_BEGINS, error)) {
		SCIOpen(&sd, 0, &error);
		if (worked(error)) {
			if (scenario) {
				getppid();
				scenario(sd);
				getppid();
			}
			SCIClose(sd, 0, &error);
			CHECK(error == (fault_left ? SCI_ERR_BUSY : SCI_ERR_OK));
		}
		SCITerminate();
	}
	if (!scenario)
		getppid();
}

static void run(void (*scenario)(sci_desc_t sd))
{
	unsigned before = open_descriptors();

	puts("begun");
	fflush(stdout);
	for (unsigned i = 0; i < 2; i++) {
		use(scenario);
		CHECK(open_descriptors() <= before + SLACK);
	}
	puts("done");
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "serve")) {
		fault_far_begin();
		puts("serving");
		fflush(stdout);
		while (getchar() != EOF)
			;
		return 0;
	}
	if (argc == 4 && !strcmp(argv[3], "link")) {
		fault_flaps = true;
		argc--;
	}
	if (argc == 3) {
		fault_failed = !strcmp(argv[2], "request")  ? FAULT_REQUEST
			       : !strcmp(argv[2], "unsent") ? FAULT_UNSENT
			       : !strcmp(argv[2], "link")   ? FAULT_LINK
							    : FAULT_SYSTEM;
		argc--;
	}
	if (argc == 2 && !strcmp(argv[1], "library")) {
		run(NULL);
		return 0;
	}
	for (unsigned i = 0; argc == 2 && fault_scenarios[i].name; i++) {
		if (!strcmp(fault_scenarios[i].name, argv[1])) {
			run(fault_scenarios[i].use);
			return 0;
		}
	}
	puts("library");
	for (unsigned i = 0; fault_scenarios[i].name; i++)
		puts(fault_scenarios[i].name);
	return 2;
}
