/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps a drive of VFIO's, and no other device, until it is killed: by a copy of the descriptor
 * that process PID has, which is smartio-vfio. Says "kept".
 *
 * usage: keepone PID
 */
#include <linux/vfio.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "device_of.h"

#define CLASS_AT 9 /* in the configuration space: interface, subclass, class */

static int is_drive(int device)
{
	struct vfio_region_info config = {.argsz = sizeof(config),
					  .index = VFIO_PCI_CONFIG_REGION_INDEX};
	uint8_t class[3];

	return ioctl(device, VFIO_DEVICE_GET_REGION_INFO, &config) == 0 &&
	       pread(device, class, sizeof(class), (off_t)config.offset + CLASS_AT) ==
		       sizeof(class) &&
	       class[0] == 2 && class[1] == 8 && class[2] == 1;
}

int main(int argc, char **argv)
{
	pid_t pid = argc == 2 ? atoi(argv[1]) : 0;
	int pidfd = pid > 0 ? pidfd_open(pid, 0) : -1, number = -1, device;

	while (pidfd >= 0 && (number = device_number(pid, number)) >= 0) {
		device = pidfd_getfd(pidfd, number, 0);
		if (device >= 0 && is_drive(device)) {
			puts("kept");
			fflush(stdout);
			for (;;)
				pause();
		}
		if (device >= 0)
			close(device);
	}
	fprintf(stderr, "keepone: process %d has no drive of VFIO's\n", pid);
	return 1;
}
