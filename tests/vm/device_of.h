/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VFIO's descriptor of a device, out of process PID that has it open. libsmartio maps what it is
 * passed and closes it, so programs that try what such a descriptor can do take smartio-vfio's.
 */
#ifndef TESTS_VM_DEVICE_OF_H
#define TESTS_VM_DEVICE_OF_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

/* The lowest number above @after that one has in process @pid; -1: none. */
static inline int device_number(pid_t pid, int after)
{
	char folder[64], path[320], to[256];
	struct dirent *e;
	int found = -1;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
	dir = opendir(folder);
	while (dir && (e = readdir(dir))) {
		int number = atoi(e->d_name);
		ssize_t n;

		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		n = readlink(path, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = '\0';
		/* By its group, or by its own node. */
		if ((strstr(to, "[vfio-device]") || strncmp(to, "/dev/vfio/devices/", 18) == 0) &&
		    number > after && (found < 0 || number < found))
			found = number;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* A copy of it; -1: process @pid has none. */
static inline int device_of(pid_t pid)
{
	int pidfd = pid > 0 ? pidfd_open(pid, 0) : -1;
	int number = pidfd < 0 ? -1 : device_number(pid, -1);
	int device = number < 0 ? -1 : pidfd_getfd(pidfd, number, 0);

	if (pidfd >= 0)
		close(pidfd);
	return device;
}

#endif
