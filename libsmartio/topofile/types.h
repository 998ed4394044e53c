/* SPDX-License-Identifier: BSD-2-Clause */
/* The types of devices that a topology file can name. */
#ifndef TOPOFILE_TYPES_H
#define TOPOFILE_TYPES_H

#include "core/devtype.h"

extern const struct sio_devtype *const sio_device_types[]; /* ends with NULL */
extern const char sio_device_type_names[];		   /* "nvme|accelerator|memory" */

#endif
