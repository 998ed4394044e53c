/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client that lies to the drive: it changes the address of a command that waits in its submission
 * queue, which lies in its own memory, to one that was never mapped for the device. Then it sees
 * whether its queue still works.
 * usage: wild DEVICE ADDRESS read|write
 * Prints the status of the command, "good" after a command that lies about nothing.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"

#define LBA 0x1234 /* nobody else uses it */

/* As the drive reads it: NVMe 1.4, section 4.2. */
struct command {
	uint8_t opcode, flags;
	uint16_t id;
	uint32_t namespace_id;
	uint64_t reserved, metadata, prp1, prp2, lba;
	uint32_t rest[4];
};
_Static_assert(sizeof(struct command) == 64, "a submission queue entry");

/*
 * Give every command of this kind in [from, to) the address. Return: how many there were. The
 * library's own thread may unmap what we look at, so we look by a system call, which fails then.
 */
static unsigned change_range(int mem, uintptr_t from, uintptr_t to, uint8_t opcode,
			     uint64_t address)
{
	struct command c;
	unsigned n = 0;

	for (uintptr_t at = from; at + sizeof(c) <= to; at += sizeof(c)) {
		if (pread(mem, &c, sizeof(c), (off_t)at) != sizeof(c))
			break;
		if (c.opcode != opcode || c.namespace_id != 1 || c.lba != LBA || !c.prp1)
			continue;
		((volatile struct command *)at)->prp1 = address;
		n++;
	}
	return n;
}

/* In whatever memory of the port we have mapped. */
static unsigned change(uint8_t opcode, uint64_t address)
{
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned n = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		uintptr_t from, to;
		char rights[5];

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) == 3 &&
		    strcmp(rights, "rw-s") == 0 && strstr(line, "smartio memory"))
			n += change_range(mem, from, to, opcode, address);
	}
	if (maps)
		fclose(maps);
	if (mem >= 0)
		close(mem);
	return n;
}

static int wait_for(struct smartio_nvme_queue *q, struct smartio_nvme_completion *c)
{
	int n;

	do
		n = smartio_nvme_poll(q, c, 1);
	while (n == 0);
	return n < 0 ? n : 0;
}

static int lie(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b, uint8_t opcode,
	       uint64_t address)
{
	struct smartio_nvme_completion c;
	unsigned n;
	int rc;

	rc = smartio_nvme_submit(q, opcode, LBA, 1, b, 0, NULL);
	if (rc < 0)
		return rc;
	n = change(opcode, address);
	if (n != 1) {
		fprintf(stderr, "wild: found %u commands in our memory, not 1\n", n);
		return -1;
	}
	smartio_nvme_ring(q);
	rc = wait_for(q, &c);
	if (rc == 0)
		printf("status %#x: %s\n", c.status, smartio_nvme_status_string(c.status));
	return rc;
}

static int be_good(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b)
{
	struct smartio_nvme_completion c;
	int rc = smartio_nvme_submit(q, SMARTIO_NVME_READ, LBA, 1, b, 0, NULL);

	if (rc == 0)
		rc = wait_for(q, &c);
	if (rc == 0 && c.status != 0)
		rc = -1;
	if (rc == 0)
		puts("good");
	return rc;
}

int main(int argc, char **argv)
{
	struct smartio_nvme_buffer *b = NULL;
	struct smartio_nvme_queue *q = NULL;
	struct smartio_nvme *n = NULL;
	uint64_t address;
	sci_error_t err;
	int rc;

	if (argc != 4) {
		fprintf(stderr, "usage: wild DEVICE ADDRESS read|write\n");
		return 2;
	}
	address = strtoull(argv[2], NULL, 0);
	SCIInitialize(0, &err);
	if (err != SCI_ERR_OK) {
		fprintf(stderr, "wild: %s\n", smartio_last_error());
		return 1;
	}
	rc = smartio_nvme_open(argv[1], &n);
	if (rc == 0)
		rc = smartio_nvme_buffer_alloc(n, 4096, &b);
	if (rc == 0)
		rc = smartio_nvme_queue_open(n, NULL, &q);
	if (rc == 0)
		rc = lie(q, b,
			 strcmp(argv[3], "read") == 0 ? SMARTIO_NVME_READ : SMARTIO_NVME_WRITE,
			 address);
	if (rc == 0)
		rc = be_good(q, b);
	if (rc)
		fprintf(stderr, "wild: %s\n", smartio_nvme_error());
	smartio_nvme_queue_close(q);
	smartio_nvme_buffer_free(b);
	smartio_nvme_close(n);
	SCITerminate();
	return rc ? 1 : 0;
}
