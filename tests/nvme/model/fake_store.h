/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store of files for tests (emu/devices/store.h), in memory: its operations end when the test
 * says so, with the results that it wants, and are written down in the order in which they are
 * carried out.
 */
#ifndef TESTS_NVME_MODEL_FAKE_STORE_H
#define TESTS_NVME_MODEL_FAKE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "emu/devices/store.h"

#define FAKE_STORE_FILES 2

struct fake_file {
	uint8_t *data; /* NULL: it is closed */
	uint64_t size;
	unsigned n_sync;
};

struct fake_store {
	struct emu_store store;
	struct emu_store_queue begun;
	unsigned n_begun, n_files;
	bool hold; /* operations end one at a time, by fake_store_end() */
	int fail;  /* operations end with -@fail, and do nothing; 0: they succeed */
	bool undo; /* what is cancelled is not carried out */
	unsigned n_cancelled;
	struct emu_store_io *cancelled; /* the last */
	bool no_holes;			/* ZERO is not supported */
	uint64_t most;			/* bytes of one operation; 0: all */
	struct fake_file file[FAKE_STORE_FILES];
	char order[4096]; /* what was carried out, a letter for each: r w W (durable) z s */
	unsigned n_order;
};

/* A store without files. A file "/bad" cannot be opened. */
void fake_store_init(struct fake_store *f);
/* Ends the oldest operation. False: none has begun. */
bool fake_store_end(struct fake_store *f);
/* Checks what was carried out since the last check. */
void fake_store_expect(struct fake_store *f, const char *order);

#endif
