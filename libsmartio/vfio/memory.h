/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer's memory as its DMA_MAP messages describe it: what each bus address is. */
#ifndef VFIO_MEMORY_H
#define VFIO_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct sio_vfio_range {
	uint64_t address, size;
	uint8_t *data; /* NULL: not memory: the peer does accesses itself (DMA_READ, DMA_WRITE) */
	bool can_read, can_write;
};

/* How the peer's files are mapped; the edge does it. */
struct sio_vfio_memory_ops {
	/*
	 * Maps the range, which has no data yet, from @fd's @offset on; for stores, too, if
	 * can_write. If memory cannot be reached later (the peer truncates its file), this process
	 * must survive: it reads zeros then.
	 * Return: 0; -errno: of mmap(2), -EINVAL: the file is shorter than that, or there can be no
	 * memory at the range's address.
	 */
	int (*map)(void *ctx, int fd, uint64_t offset, const struct sio_vfio_range *range,
		   void **ret);
	void (*unmap)(void *ctx, void *data, uint64_t size);
};

/* A limit, since all machines share this process's address space. */
#define SIO_VFIO_MAX_MAPPED (1ull << 40)

struct sio_vfio_memory {
	const struct sio_vfio_memory_ops *ops;
	void *ctx;
	struct sio_vfio_range *range; /* ascending, they do not overlap */
	unsigned n, room;
	uint64_t mapped; /* bytes of all that has data */
};

void sio_vfio_memory_init(struct sio_vfio_memory *m, const struct sio_vfio_memory_ops *ops,
			  void *ctx);
/* Forgets all ranges. */
void sio_vfio_memory_clear(struct sio_vfio_memory *m);
/*
 * Adds a range. @fd: -1: no memory. It stays the caller's. A range that overlaps another is
 * refused.
 * Return: 0; -EEXIST; -ENOSPC: too many, too large; -ENOMEM; -errno of ops->map.
 */
int sio_vfio_memory_add(struct sio_vfio_memory *m, uint64_t address, uint64_t size, int fd,
			uint64_t offset, bool can_read, bool can_write, struct sio_err *reterr);
/*
 * Removes all ranges within; one that crosses an end is refused. Return: 0; -EINVAL; -ENOENT: none.
 */
int sio_vfio_memory_remove(struct sio_vfio_memory *m, uint64_t address, uint64_t size,
			   struct sio_err *reterr);
/* The range at @address; NULL: none. Valid until the next add, remove or clear. */
const struct sio_vfio_range *sio_vfio_memory_at(const struct sio_vfio_memory *m, uint64_t address);
/*
 * The next part of an access of @len bytes (not 0) at @address that is in one range: *part bytes.
 * @write: what the range must allow. Return: the range; NULL: nothing there, or not allowed.
 */
const struct sio_vfio_range *sio_vfio_memory_part(const struct sio_vfio_memory *m, uint64_t address,
						  size_t len, bool write, size_t *part);

#endif
