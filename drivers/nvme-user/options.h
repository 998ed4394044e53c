/* SPDX-License-Identifier: BSD-2-Clause */
/* Options with a size: a program built with older or newer headers than the library. */
#ifndef NVME_USER_OPTIONS_H
#define NVME_USER_OPTIONS_H

#include <stddef.h>

/*
 * Copy what the caller gave, which begins with its size; what it does not have is 0. -EINVAL: the
 * size is not possible, or a part that this library does not know is not 0. @given may be NULL.
 */
int sio_nvme_options(void *options, size_t size, const void *given);

#endif
