/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Look-up table of one NTB adapter: which entry of the window translates to which page of which
 * node. Pure logic; only sio_lut_init() allocates. "Page" here: entry_size bytes.
 */
#ifndef CORE_LUT_H
#define CORE_LUT_H

#include <stdint.h>

#include "core/err.h"
#include "core/types.h"

/*
 * The target of an entry. Entries are shared only by mappings whose targets are equal in all
 * fields.
 */
struct sio_lut_target {
	struct sio_bus_addr bus; /* as the peer's buses address it */
	uint32_t adapter;	 /* the peer's adapter, through which it comes in */
	uint64_t generation;	 /* of the peer's boot: an entry of an earlier one leads nowhere */
};

struct sio_lut_entry {
	struct sio_lut_target target; /* bus.addr: a multiple of entry_size */
	unsigned refs;		      /* mappings that cover it; 0: free */
};

struct sio_lut {
	char name[SIO_NAME_LEN];
	uint64_t entry_size; /* bytes, a power of 2 */
	unsigned n_entries, n_used;
	struct sio_lut_entry *entry;
};

/*
 * A window of @window bytes in @n_entries. Return: 0; -EINVAL: entries are not a power of 2 of
 * bytes; -ENOMEM.
 */
int sio_lut_init(struct sio_lut *lut, const char *name, uint64_t window, unsigned n_entries,
		 struct sio_err *reterr);
void sio_lut_done(struct sio_lut *lut);
int sio_lut_map(struct sio_lut *lut, const struct sio_lut_target *target, uint64_t len,
		struct sio_window_at *ret, struct sio_err *reterr);
int sio_lut_unmap(struct sio_lut *lut, struct sio_window_at at, uint64_t len,
		  struct sio_err *reterr);
int sio_lut_translate(const struct sio_lut *lut, struct sio_window_at at,
		      struct sio_lut_target *ret_target, uint64_t *ret_length);

/* The longest run of free entries: a window of this many entries can still be mapped. */
unsigned sio_lut_longest_run(const struct sio_lut *lut);

#endif
