/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pairs of a disk of this host, with the memory that data pass through. */
#ifndef NVME_USER_TOOL_DISK_PAIRS_H
#define NVME_USER_TOOL_DISK_PAIRS_H

#include "sisci_api.h"
#include "smartio/disk.h"
#include "smartio/nvmeraw.h"
#include "tool.h"

struct disk_pair {
	struct smartio_nvme_queue *queue;
	struct smartio_nvme_buffer *memory;
	struct smartio_nvme_raw raw;
	sci_map_t map[3];
};

struct disk_pairs {
	const struct options *o;
	struct smartio_nvme *n;
	struct smartio_nvme_queue_options qo; /* of each */
	uint32_t slot;			      /* bytes of one command */
	unsigned count;
	struct disk_pair pair[SIO_DISK_PAIRS];
	struct sio_disk_pair kernel[SIO_DISK_PAIRS]; /* the same, for smartio_blk.ko */
};

/*
 * As many as @o says; by default one for each processor, a quarter of the drive's at most, and
 * fewer where the manager has no more. EXIT_OK or EXIT_FAILED, reported.
 */
int disk_pairs_open(struct disk_pairs *p, const struct options *o, struct smartio_nvme *n,
		    const struct smartio_nvme_lease *lease);
/*
 * After a reset: as many anew, with the memory of those before. 0; -EAGAIN: not now; or what it is
 * no use to try again after, with smartio_nvme_error(). What was made of them is gone then, and the
 * next try makes it anew.
 */
int disk_pairs_renew(struct disk_pairs *p, uint32_t wait_ms);
/* Half-made is fine. */
void disk_pairs_close(struct disk_pairs *p);

#endif
