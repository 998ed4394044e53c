/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer's memory as its DMA_MAP messages tell: which bus addresses are what. */
#ifndef EMU_VFIO_MEMORY_H
#define EMU_VFIO_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

/* How its files come to us; the edge does it. */
struct emu_vfio_memory_ops {
	/*
	 * Map @size bytes of @fd from @offset on; @write: for stores, too. What cannot be reached
	 * later (the peer cuts its file short) must not end us: it reads as zeros then.
	 * Return: 0; -errno: of mmap(2), -EINVAL: the file is shorter than that.
	 */
	int (*map)(void *ctx, int fd, uint64_t offset, uint64_t size, bool write, void **ret);
	void (*unmap)(void *ctx, void *data, uint64_t size);
};

/* Address space is all machines'. */
#define EMU_VFIO_MAX_MAPPED (1ull << 40)

struct emu_vfio_range {
	uint64_t address, size;
	uint8_t *data; /* NULL: not memory: the peer does accesses itself (DMA_READ, DMA_WRITE) */
	bool can_read, can_write;
};

struct emu_vfio_memory {
	const struct emu_vfio_memory_ops *ops;
	void *ctx;
	struct emu_vfio_range *range; /* ascending, they do not overlap */
	unsigned n, room;
	uint64_t mapped; /* bytes of all that has data */
};

void emu_vfio_memory_init(struct emu_vfio_memory *m, const struct emu_vfio_memory_ops *ops,
			  void *ctx);
/* Forgets all ranges. */
void emu_vfio_memory_clear(struct emu_vfio_memory *m);
/*
 * @fd: -1: no memory. It stays the caller's. Ranges that overlap one that is there are refused.
 * Return: 0; -EEXIST; -ENOSPC: too many, too large; -ENOMEM; -errno of ops->map.
 */
int emu_vfio_memory_add(struct emu_vfio_memory *m, uint64_t address, uint64_t size, int fd,
			uint64_t offset, bool can_read, bool can_write, struct sio_err *reterr);
/* All ranges within; one that lies across an end is refused. Return: 0; -EINVAL; -ENOENT: none. */
int emu_vfio_memory_remove(struct emu_vfio_memory *m, uint64_t address, uint64_t size,
			   struct sio_err *reterr);
/* The range at @address; NULL: none. Good until the next add, remove or clear. */
const struct emu_vfio_range *emu_vfio_memory_at(const struct emu_vfio_memory *m, uint64_t address);
/*
 * The next part of an access of @len bytes (not 0) at @address that is in one range: *part bytes.
 * @write: what the range must allow. Return: the range; NULL: nothing there, or not allowed.
 */
const struct emu_vfio_range *emu_vfio_memory_part(const struct emu_vfio_memory *m, uint64_t address,
						  size_t len, bool write, size_t *part);

#endif
