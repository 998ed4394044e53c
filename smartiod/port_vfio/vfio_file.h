/* SPDX-License-Identifier: BSD-2-Clause */
/* A file of a program as memory for a device: a memfd, or a device of /dev/dax. */
#ifndef SMARTIOD_VFIO_FILE_H
#define SMARTIOD_VFIO_FILE_H

#include <stdint.h>

#include "core/err.h"

/*
 * Bytes of @fd, which it never has fewer of. 0; -EBADF: it is no file of @kind (SIO_IMPORT_*);
 * -EINVAL: it could become shorter, or may not be written.
 */
int vfio_file_size(int fd, uint32_t kind, uint64_t *ret, struct sio_err *reterr);
/* Bytes of its pages: mappings begin and end with whole ones, or the kernel does not undo them. */
uint64_t vfio_file_page(int fd);

#endif
