/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "waits.h"

#define PATH 300

/* The file's first line, or what the kernel says of a thread that has just ended. */
static const char *first_line(const char *dir, const char *name, char *text, size_t size)
{
	char path[2 * PATH];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (!f || !fgets(text, (int)size, f))
		snprintf(text, size, "?");
	if (f)
		fclose(f);
	text[strcspn(text, "\n")] = 0;
	return text;
}

/* Of /proc/PID/stat: the state, behind the name in parentheses. */
static char state_of(const char *dir)
{
	char text[512];
	const char *p = strrchr(first_line(dir, "stat", text, sizeof(text)), ')');

	return p && p[1] ? p[2] : '?';
}

static void print_threads(const char *pid)
{
	char dir[PATH], thread[2 * PATH], name[64], at[128], call[256];
	struct dirent *e;
	DIR *d;

	snprintf(dir, sizeof(dir), "/proc/%s/task", pid);
	d = opendir(dir);
	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(thread, sizeof(thread), "%s/%s", dir, e->d_name);
		fprintf(stderr, "process %s thread %s %s: state %c in %s, system call %s\n", pid,
			e->d_name, first_line(thread, "comm", name, sizeof(name)), state_of(thread),
			first_line(thread, "wchan", at, sizeof(at)),
			first_line(thread, "syscall", call, sizeof(call)));
	}
	if (d)
		closedir(d);
}

void waits_print(void)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (atoi(e->d_name) > 0 && getsid(atoi(e->d_name)) == getsid(0))
			print_threads(e->d_name);
	if (d)
		closedir(d);
}
