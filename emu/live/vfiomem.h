/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of machines, mapped from files that belong to the machines, which can truncate them at any
 * time.
 */
#ifndef EMU_LIVE_VFIOMEM_H
#define EMU_LIVE_VFIOMEM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LIVE_FILES 8u /* of a machine's adapter that are kept */

struct live_vfiomem_place;
/* A file of which there are mappings: emulated hosts are given it. */
struct live_vfiomem_file {
	dev_t device;
	ino_t inode;
	int mode, fd;
	unsigned users; /* mappings; 0: it is none */
};
/* The mappings of one session. Zeroed: closed. It must not move in memory while it is open. */
struct live_vfiomem {
	struct live_vfiomem *next;
	struct live_vfiomem_place *place;
	struct live_vfiomem_file *file;
	unsigned n_places, n_files;
};

/* Allocates @places mappings, and room for @files files. Return: 0; -ENOMEM. */
int live_vfiomem_open(struct live_vfiomem *m, unsigned places, unsigned files);
/* Unmaps everything. One that is not open is fine. */
void live_vfiomem_close(struct live_vfiomem *m);

/*
 * From now on an access to such memory behind the end of its file reads zeros, there and in the
 * whole mapping from then on; SIGBUS anywhere else ends this process as before.
 */
void live_vfiomem_guard(void);
/* As struct sio_vfio_memory_ops; -ENOSPC: no place is free. */
int live_vfiomem_map(struct live_vfiomem *m, int fd, uint64_t offset, uint64_t size, bool write,
		     void **ret);
void live_vfiomem_unmap(struct live_vfiomem *m, void *data, uint64_t size);
/*
 * The file of @data, of any session, and the offset there; -1: the file is not kept. It stays ours.
 */
int live_vfiomem_file(const void *data, uint64_t *ret_offset);

#endif
