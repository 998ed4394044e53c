/* SPDX-License-Identifier: BSD-2-Clause */
/* Options with a size: a program built with older or newer headers than the library. */
#ifndef NVME_USER_OPTIONS_H
#define NVME_USER_OPTIONS_H

#include <stddef.h>

/*
 * Copies the options that the caller gave, which begin with their size; fields beyond that size are
 * 0. -EINVAL: the size is impossible, or a part that this library does not know is not 0. @given
 * may be NULL.
 */
int sio_nvme_options(void *options, size_t size, const void *given);

#endif
