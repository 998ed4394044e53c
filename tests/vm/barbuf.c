/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this kernel's VFIO makes of a page of a BAR as a descriptor of its own: a dma-buf. The
 * device's descriptor is taken from process PID, which is smartio-vfio.
 *
 * usage: barbuf PID
 *
 * Says "exported: " and "mapped: ", each with "yes" or an error's text.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device_of.h"

#define PAGE 4096u
/* As in linux/vfio.h of newer kernels: what is asked for, behind struct vfio_device_feature. */
#define FEATURE_DMA_BUF 11
struct ask {
	uint32_t argsz, feature;
	uint32_t region, open_flags, flags, n_ranges;
	uint64_t offset, length;
};

int main(int argc, char **argv)
{
	struct ask ask = {.argsz = sizeof(ask),
			  .feature = VFIO_DEVICE_FEATURE_GET | FEATURE_DMA_BUF,
			  .open_flags = O_RDWR | O_CLOEXEC,
			  .n_ranges = 1,
			  .length = PAGE};
	pid_t pid = argc == 2 ? atoi(argv[1]) : 0;
	int device = device_of(pid), buf;
	void *at;

	if (device < 0) {
		fprintf(stderr, "barbuf: process %d has no device of VFIO's\n", pid);
		return 1;
	}
	buf = ioctl(device, VFIO_DEVICE_FEATURE, &ask);
	printf("exported: %s\n", buf < 0 ? strerror(errno) : "yes");
	if (buf < 0)
		return 0;
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	printf("mapped: %s\n", at == MAP_FAILED ? strerror(errno) : "yes");
	return 0;
}
