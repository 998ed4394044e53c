/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on blocks that move no data, which return when they are done. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>

#include "client.h"
#include "error.h"
#include "smartio/io.h"

#define MOST_BLOCKS 65536u	   /* of a command with a first block and a number */
#define MOST_IN_RANGE (UINT32_MAX) /* of a range */

static int do_one(struct smartio_nvme_queue *q, const struct smartio_nvme_command *command,
		  const char *what, uint64_t lba)
{
	struct smartio_nvme_completion c;
	int rc = sio_nvme_await_life(q);

	if (rc == 0)
		rc = smartio_nvme_submit_commands(q, command, 1);
	if (rc > 0)
		rc = sio_nvme_wait_some(q, &c, 1);
	if (rc < 0)
		return rc;
	if (c.status)
		return sio_nvme_fail(sio_nvme_status_error(c.status), "%s at %" PRIu64 " of %s: %s",
				     what, lba << q->block_shift, q->n->d.name,
				     smartio_nvme_status_string(c.status));
	return 0;
}

static int all_of(struct smartio_nvme_queue *q, enum smartio_nvme_op op, uint32_t flags,
		  const char *what, uint64_t offset, uint64_t bytes)
{
	int rc = sio_nvme_check_bytes(q, offset, bytes);
	uint64_t lba = offset >> q->block_shift, left = bytes >> q->block_shift;

	while (rc == 0 && left > 0) {
		uint32_t n = left < MOST_BLOCKS ? (uint32_t)left : MOST_BLOCKS;
		const struct smartio_nvme_command c = {
			.op = op, .flags = flags, .lba = lba, .blocks = n};

		rc = do_one(q, &c, what, lba);
		lba += n;
		left -= n;
	}
	return rc;
}

int smartio_nvme_write_zeroes(struct smartio_nvme_queue *q, uint64_t offset, uint64_t bytes,
			      uint32_t flags)
{
	return all_of(q, SMARTIO_NVME_WRITE_ZEROES, flags, "write zeroes", offset, bytes);
}

int smartio_nvme_verify(struct smartio_nvme_queue *q, uint64_t offset, uint64_t bytes)
{
	return all_of(q, SMARTIO_NVME_VERIFY, 0, "verify", offset, bytes);
}

int smartio_nvme_deallocate(struct smartio_nvme_queue *q, uint64_t offset, uint64_t bytes)
{
	int rc = sio_nvme_check_bytes(q, offset, bytes);
	uint64_t lba = offset >> q->block_shift, left = bytes >> q->block_shift;

	if (rc == 0 && left > 0)
		rc = sio_nvme_get_bounce(q);
	while (rc == 0 && left > 0) {
		uint32_t n = left < MOST_IN_RANGE ? (uint32_t)left : MOST_IN_RANGE;
		const struct smartio_nvme_range r = {.blocks = htole32(n), .lba = htole64(lba)};
		const struct smartio_nvme_piece piece = {.buffer = q->bounce, .bytes = sizeof(r)};
		const struct smartio_nvme_command c = {
			.op = SMARTIO_NVME_DEALLOCATE, .blocks = 1, .n_pieces = 1, .piece = &piece};

		sio_copy_to(q->bounce->mem.at, &r, sizeof(r));
		rc = do_one(q, &c, "deallocate", lba);
		lba += n;
		left -= n;
	}
	return rc;
}
