/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the virtual functions of an NVMe drive into controllers that work, by its physical one,
 * which nvme.ko has (NVMe 2.0, 5.28 and 8.26).
 *
 * usage: secondary /dev/nvmeN release
 *        secondary /dev/nvmeN online QUEUES VECTORS
 * The drive's own controller gives up what is flexible; each function is given so many.
 */
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define IDENTIFY 0x06
#define SECONDARY_LIST 0x15
#define MANAGE 0x1c

enum { PRIMARY_FLEXIBLE = 1, SECONDARY_ASSIGN = 8, SECONDARY_ONLINE = 9 };
enum { QUEUES, VECTORS };

struct list {
	uint8_t count, reserved[31];
	struct {
		uint16_t controller, primary;
		uint8_t state, reserved[3];
		uint16_t function, queues, vectors;
		uint8_t reserved2[18];
	} entry[127];
} __attribute__((packed));

_Static_assert(sizeof(struct list) == 4096, "as NVMe 2.0, figure 294");

static int manage(int fd, uint32_t controller, uint32_t what, uint32_t action, uint32_t n)
{
	struct nvme_passthru_cmd c = {
		.opcode = MANAGE, .cdw10 = controller << 16 | what << 8 | action, .cdw11 = n};
	int r = ioctl(fd, NVME_IOCTL_ADMIN_CMD, &c);

	if (r)
		fprintf(stderr, "secondary: controller %u, resource %u, action %u: %#x\n",
			controller, what, action, r);
	return r;
}

static int online(int fd, uint32_t queues, uint32_t vectors)
{
	static struct list list;
	struct nvme_passthru_cmd c = {.opcode = IDENTIFY,
				      .addr = (uintptr_t)&list,
				      .data_len = sizeof(list),
				      .cdw10 = SECONDARY_LIST};

	if (ioctl(fd, NVME_IOCTL_ADMIN_CMD, &c))
		return perror("secondary: the list of its secondary controllers"), 1;
	for (unsigned i = 0; i < list.count; i++) {
		uint32_t id = list.entry[i].controller;

		if (manage(fd, id, QUEUES, SECONDARY_ASSIGN, queues) ||
		    manage(fd, id, VECTORS, SECONDARY_ASSIGN, vectors) ||
		    manage(fd, id, 0, SECONDARY_ONLINE, 0))
			return 1;
		printf("controller %u of function %u is online\n", id, list.entry[i].function);
	}
	return list.count == 0;
}

static int release(int fd)
{
	/* Of use with its next reset. */
	if (manage(fd, 0, QUEUES, PRIMARY_FLEXIBLE, 0) ||
	    manage(fd, 0, VECTORS, PRIMARY_FLEXIBLE, 0))
		return 1;
	return ioctl(fd, NVME_IOCTL_RESET) < 0 ? perror("secondary: reset"), 1 : 0;
}

int main(int argc, char **argv)
{
	int fd = argc > 2 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0) {
		fputs("usage: secondary /dev/nvmeN release|online QUEUES VECTORS\n", stderr);
		return 2;
	}
	if (strcmp(argv[2], "release") == 0)
		return release(fd);
	return argc == 5 ? online(fd, (uint32_t)atoi(argv[3]), (uint32_t)atoi(argv[4])) : 2;
}
