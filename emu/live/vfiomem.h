/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of machines, mapped from files that belong to them: they can cut them short at any time.
 */
#ifndef EMU_LIVE_VFIOMEM_H
#define EMU_LIVE_VFIOMEM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * From now on an access to such memory behind the end of its file sees zeros, there and in the
 * whole mapping from then on; SIGBUS anywhere else ends this process as before.
 */
void live_vfiomem_guard(void);
/* As struct emu_vfio_memory_ops. */
int live_vfiomem_map(void *ctx, int fd, uint64_t offset, uint64_t size, bool write, void **ret);
void live_vfiomem_unmap(void *ctx, void *data, uint64_t size);

#endif
