/* SPDX-License-Identifier: BSD-2-Clause */
/* What the examples with a drive share: every error ends the program, with its text. */
#ifndef EXAMPLE_NVME_H
#define EXAMPLE_NVME_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "smartio/nvme.h"

static inline void must_nvme(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, smartio_nvme_error());
	exit(1);
}

/* A command from its submission to its completion. */
static inline void command(struct smartio_nvme_queue *q, enum smartio_nvme_op op, uint64_t lba,
			   uint32_t blocks, struct smartio_nvme_buffer *b, size_t offset)
{
	struct smartio_nvme_completion c;
	int n;

	must_nvme(smartio_nvme_submit(q, op, lba, blocks, b, offset, NULL), "submit");
	do {
		n = smartio_nvme_poll(q, &c, 1);
		must_nvme(n, "poll");
	} while (n == 0);
	if (c.status) {
		fprintf(stderr, "the drive: %s\n", smartio_nvme_status_string(c.status));
		exit(1);
	}
}

#endif
