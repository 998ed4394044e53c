/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From device to device. An NVMe drive reads blocks straight into the BAR of a memory device, which
 * may be with any host, and this program looks at them there. It also wrote them: the drive read
 * them from that BAR. No byte of the data passes the RAM of a host. The drive needs a manager.
 *
 * usage: peer_to_peer DRIVE MEMORY-DEVICE BLOCKS
 */
#include <inttypes.h>
#include <stdint.h>

#include "example.h"
#include "example_nvme.h"
#include "smartio/memdev.h"

#define BYTES 65536
#define PATIENCE_MS 10000

static uint64_t pattern(uint64_t block, unsigned word)
{
	return block * 0x9e3779b97f4a7c15u + word;
}

/* Block @n is written from the first half of the buffer, and read back into the second. */
static uint64_t round_trip(struct smartio_nvme_queue *q, struct smartio_nvme_buffer *b,
			   uint32_t block_size, uint64_t n)
{
	volatile uint64_t *first = smartio_nvme_buffer_data(b);
	volatile uint64_t *second = first + BYTES / 2 / 8;
	uint64_t sum = 0;

	for (unsigned i = 0; i < block_size / 8; i++) {
		first[i] = pattern(n, i);
		second[i] = 0;
	}
	SCIFlush(NULL, 0); /* what was stored is in the BAR before the drive is asked to read it */
	command(q, SMARTIO_NVME_WRITE, n, 1, b, 0);
	command(q, SMARTIO_NVME_READ, n, 1, b, BYTES / 2);
	for (unsigned i = 0; i < block_size / 8; i++) {
		if (second[i] != pattern(n, i)) {
			fprintf(stderr, "block %" PRIu64 ", word %u: %#" PRIx64 "\n", n, i,
				second[i]);
			exit(1);
		}
		sum += second[i];
	}
	return sum;
}

int main(int argc, char **argv)
{
	struct smartio_nvme_namespace ns;
	struct smartio_nvme_buffer *b;
	struct smartio_nvme_queue *q;
	struct smartio_nvme *drive;
	uint64_t blocks, sum = 0;
	sci_desc_t sd = begin();

	if (argc != 4) {
		fprintf(stderr, "usage: peer_to_peer DRIVE MEMORY-DEVICE BLOCKS\n");
		return 2;
	}
	blocks = strtoull(argv[3], NULL, 0);
	must_nvme(smartio_nvme_open_wait(argv[1], PATIENCE_MS, &drive), argv[1]);
	must_nvme(smartio_nvme_get_namespace(drive, 0, &ns), "namespace");
	must_nvme(smartio_nvme_queue_open(drive, NULL, &q), "queue");
	must_nvme(smartio_nvme_buffer_on_device(drive, argv[2], SIO_MEMDEV_BAR_RAM, 0, BYTES, &b),
		  argv[2]);
	for (uint64_t n = 0; n < blocks; n++)
		sum += round_trip(q, b, ns.block_size, n);
	printf("%" PRIu64 " blocks, sum %" PRIu64 "\n", blocks, sum);
	smartio_nvme_queue_close(q);
	must_nvme(smartio_nvme_buffer_free(b), "buffer");
	smartio_nvme_close(drive);
	end(sd);
	return 0;
}
