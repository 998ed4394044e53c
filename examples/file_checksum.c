/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file on a drive, processed by an accelerator. The drive reads it, piece by piece, straight into
 * the accelerator's memory, the accelerator sums each piece up there, and the drive takes the table
 * of sums from there to the blocks behind the file. No byte of the file passes the RAM of a host
 * until, in the end, this program reads file and table itself and compares. Drive, accelerator and
 * program may be in three hosts. The drive needs a manager.
 *
 * The accelerator begins when the drive has completed a read, whose completion lies in this host:
 * on the emulated cluster the data is there then. PCIe does not promise that where data and
 * completion go different ways.
 *
 * usage: file_checksum DRIVE ACCELERATOR BYTES
 */
#include <inttypes.h>
#include <stdint.h>

#include "example.h"
#include "example_accel.h"
#include "example_nvme.h"

#define PIECE 65536u
#define TABLE 4096u
#define MOST_PIECES (TABLE / sizeof(uint64_t))
#define PATIENCE_MS 10000u

static uint64_t run(struct smartio_accel_queue *unit, uint32_t operation, uint64_t where,
		    uint64_t bytes, uint64_t word)
{
	const uint64_t argument[6] = {smartio_accel_local(where), bytes, word};
	uint64_t result;

	must_accel(smartio_accel_do(unit, operation, argument, PATIENCE_MS, &result), "unit");
	return result;
}

/* The accelerator sums up what lies at the beginning of its memory, and notes that as sum @n. */
static void sum_up(struct smartio_accel_queue *unit, uint64_t bytes, unsigned n)
{
	const uint64_t sum = run(unit, SIO_ACCEL_CHECKSUM, 0, bytes, 0);
	const uint64_t at = PIECE + n * sizeof(sum);

	/* Its words are of 32 bits. */
	run(unit, SIO_ACCEL_FILL, at, sizeof(uint32_t), sum & UINT32_MAX);
	run(unit, SIO_ACCEL_FILL, at + sizeof(uint32_t), sizeof(uint32_t), sum >> 32);
}

/* What CHECKSUM does, by this processor. */
static uint64_t checksum(const uint32_t *word, size_t bytes)
{
	uint64_t sum = 0;

	for (size_t n = 0; n < bytes / sizeof(*word); n++)
		sum += (uint64_t)word[n] * (2 * n + 1);
	return sum;
}

/* Return: the sum of all sums, each of which is right. */
static uint64_t compare(struct smartio_nvme_queue *q, uint64_t bytes)
{
	static uint64_t table[MOST_PIECES];
	static uint32_t piece[PIECE / sizeof(uint32_t)];
	uint64_t total = 0;

	must_nvme(smartio_nvme_read(q, table, bytes, TABLE), "table");
	for (uint64_t at = 0; at < bytes; at += PIECE) {
		const size_t n = bytes - at < PIECE ? bytes - at : PIECE;

		must_nvme(smartio_nvme_read(q, piece, at, n), "file");
		if (checksum(piece, n) != table[at / PIECE]) {
			fprintf(stderr,
				"%zu bytes at %" PRIu64 ": %#" PRIx64 ", not %#" PRIx64 "\n", n, at,
				table[at / PIECE], checksum(piece, n));
			exit(1);
		}
		total += table[at / PIECE];
	}
	return total;
}

int main(int argc, char **argv)
{
	struct smartio_nvme_namespace ns;
	struct smartio_accel_queue *unit;
	struct smartio_nvme_buffer *b;
	struct smartio_nvme_queue *q;
	struct smartio_nvme *drive;
	struct smartio_accel *a;
	uint64_t bytes;
	sci_desc_t sd = begin();

	if (argc != 4) {
		fprintf(stderr, "usage: file_checksum DRIVE ACCELERATOR BYTES\n");
		return 2;
	}
	must_nvme(smartio_nvme_open_wait(argv[1], PATIENCE_MS, &drive), argv[1]);
	must_nvme(smartio_nvme_get_namespace(drive, 0, &ns), "namespace");
	bytes = strtoull(argv[3], NULL, 0);
	if (bytes == 0 || bytes % ns.block_size || bytes > MOST_PIECES * PIECE) {
		fprintf(stderr, "BYTES is '%s'; multiples of %u up to %zu are right\n", argv[3],
			ns.block_size, (size_t)MOST_PIECES * PIECE);
		return 2;
	}
	must_accel(smartio_accel_open(argv[2], 0, &a), argv[2]);
	must_accel(smartio_accel_queue_open(a, SMARTIO_ACCEL_UNIT, 0, 0, &unit), "unit");
	must_nvme(smartio_nvme_queue_open(drive, NULL, &q), "queue");
	must_nvme(smartio_nvme_buffer_on_device(drive, argv[2], SIO_ACCEL_BAR_MEMORY, 0,
						PIECE + TABLE, &b),
		  argv[2]);
	for (uint64_t at = 0; at < bytes; at += PIECE) {
		const uint64_t n = bytes - at < PIECE ? bytes - at : PIECE;

		command(q, SMARTIO_NVME_READ, at / ns.block_size, (uint32_t)(n / ns.block_size), b,
			0);
		sum_up(unit, n, (unsigned)(at / PIECE));
	}
	command(q, SMARTIO_NVME_WRITE, bytes / ns.block_size, TABLE / ns.block_size, b, PIECE);
	printf("%" PRIu64 " bytes, sum %" PRIu64 "\n", bytes, compare(q, bytes));
	smartio_nvme_queue_close(q);
	must_nvme(smartio_nvme_buffer_free(b), "buffer");
	smartio_nvme_close(drive);
	smartio_accel_close(a);
	end(sd);
	return 0;
}
