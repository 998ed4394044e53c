/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program can do to its device's mappings by the descriptor that it is passed by VFIO and
 * iommufd. libsmartio maps and closes it: so it is taken from process PID, which is smartio-vfio.
 * The device is cut off from all memory, and attached again to an address space, or page table, of
 * its iommufd: each that a number below 16 names. Says which it took. With "leave" the device
 * stays cut off.
 *
 * usage: cutoff PID [leave]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/iommufd_abi.h"
#include "device_of.h"

#define VFIO_DEVICE_DETACH _IO(VFIO_TYPE, VFIO_BASE + 20)

int main(int argc, char **argv)
{
	struct sio_vfio_attach attach = {.size = sizeof(attach)};
	uint32_t detach[2] = {sizeof(detach), 0};
	pid_t pid = argc >= 2 ? atoi(argv[1]) : 0;
	int device = device_of(pid), taken = 0;

	if (device < 0) {
		fprintf(stderr, "cutoff: process %d has no device of VFIO's and iommufd\n", pid);
		return 1;
	}
	if (argc == 3 && strcmp(argv[2], "leave") == 0)
		return ioctl(device, VFIO_DEVICE_DETACH, detach) < 0;
	for (uint32_t table = 1; table < 16; table++) {
		if (ioctl(device, VFIO_DEVICE_DETACH, detach) < 0) {
			perror("cutoff: detach");
			return 1;
		}
		attach.table = table;
		if (ioctl(device, SIO_VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach) == 0)
			taken = (int)table;
		printf("%u: %s\n", table, taken == (int)table ? "attached" : strerror(errno));
	}
	/* As it was, or as good. */
	attach.table = (uint32_t)taken;
	if (taken == 0 || (ioctl(device, VFIO_DEVICE_DETACH, detach) == 0 &&
			   ioctl(device, SIO_VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach) == 0))
		return taken == 0;
	perror("cutoff: attach");
	return 1;
}
