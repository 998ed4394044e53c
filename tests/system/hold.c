/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client that has a drive and some queue pairs open and does nothing until its input ends.
 * usage: hold DEVICE [QUEUE-PAIRS]
 * Prints "open N" when it has them, or why not (exit 1).
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"

int main(int argc, char **argv)
{
	unsigned want = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1, have = 0;
	struct smartio_nvme_queue **queue;
	struct smartio_nvme *n = NULL;
	sci_error_t err;
	int status = 1;
	char c;

	if (argc < 2) {
		fprintf(stderr, "usage: hold DEVICE [QUEUE-PAIRS]\n");
		return 2;
	}
	SCIInitialize(0, &err);
	if (err != SCI_ERR_OK) {
		fprintf(stderr, "hold: %s\n", smartio_last_error());
		return 1;
	}
	queue = calloc(want, sizeof(*queue));
	if (!queue || smartio_nvme_open(argv[1], &n) < 0)
		goto out;
	while (have < want && smartio_nvme_queue_open(n, NULL, &queue[have]) == 0)
		have++;
	if (have < want)
		goto out;
	printf("open %u\n", have);
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	status = 0;
out:
	if (status)
		fprintf(stderr, "hold: %u of %u queue pairs: %s\n", have, want,
			smartio_nvme_error());
	while (have > 0)
		smartio_nvme_queue_close(queue[--have]);
	smartio_nvme_close(n);
	SCITerminate();
	free(queue);
	return status;
}
