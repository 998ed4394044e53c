/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "smartiod/live/process.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define BEFORE_START 19 /* fields of /proc/PID/stat between the name and the start */

/*
 * Did the process that connected @fd end? Linux 6.5 and later say, some by an error: they give no
 * descriptor of one that has been waited for.
 */
static bool has_ended(int fd)
{
	struct pollfd p = {.events = POLLIN};
	socklen_t len = sizeof(p.fd);
	bool ended;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &p.fd, &len) < 0)
		return errno != ENOPROTOOPT;
	ended = poll(&p, 1, 0) != 0;
	close(p.fd);
	return ended;
}

/* The name is in brackets and may have any character, these and spaces too. */
static uint64_t start_in(const char *stat)
{
	const char *at = strrchr(stat, ')');
	uint64_t ticks;

	if (!at)
		return 0;
	at += strspn(at, ") ");
	for (unsigned i = 0; i < BEFORE_START; i++) {
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	return sscanf(at, "%" SCNu64, &ticks) == 1 ? ticks + 1 : 0; /* some start at 0 */
}

uint64_t live_process_start(int fd, pid_t pid)
{
	char path[32], stat[1024];
	ssize_t n;
	int file;

	if (pid <= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 0;
	n = read(file, stat, sizeof(stat) - 1);
	close(file);
	if (n <= 0 || has_ended(fd)) /* then that number may be another's by now */
		return 0;
	stat[n] = '\0';
	return start_in(stat);
}
