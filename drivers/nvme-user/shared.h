/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A shared segment of a drive that only programs access: one of them publishes something there for
 * all borrowers.
 */
#ifndef NVME_USER_SHARED_H
#define NVME_USER_SHARED_H

#include <stdbool.h>

#include "device.h"

struct sio_nvme_shared {
	sci_remote_segment_t segment;
	sci_map_t map;
	volatile uint8_t *at;
};

/* Makes segment @id of @size bytes, zeroed. @flags: SCI_FLAG_*. -EEXIST: there is one. */
int sio_nvme_shared_make(struct sio_nvme_device *d, unsigned id, size_t size, unsigned flags,
			 struct sio_nvme_shared *ret);
/*
 * The same of one that a manager before us may have, which was killed, or is about to hear of our
 * reset: that has a few seconds to go.
 */
int sio_nvme_shared_replace(struct sio_nvme_device *d, unsigned id, size_t size, unsigned flags,
			    struct sio_nvme_shared *ret);
/* Opens an existing segment, to read or, with @write, to write. -ENOENT: there is none. */
int sio_nvme_shared_open(struct sio_nvme_device *d, unsigned id, size_t size, bool write,
			 struct sio_nvme_shared *ret);
/* Is there a segment @id? It is neither mapped nor read. */
bool sio_nvme_shared_exists(struct sio_nvme_device *d, unsigned id);
/*
 * Closes the segment; a half-made one is fine. Its maker removes it, unless others are connected.
 */
void sio_nvme_shared_close(struct sio_nvme_shared *s);

#endif
