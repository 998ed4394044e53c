/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a drive has standby managers: each tells of itself in a shared segment. */
#ifndef NVME_USER_STANDBY_LOOK_H
#define NVME_USER_STANDBY_LOOK_H

#include "device.h"
#include "smartio/nvme.h"

/* False: there is none with that number, or it comes, or goes, just now. */
bool sio_nvme_standby_at(struct sio_nvme_device *d, unsigned number,
			 struct smartio_nvme_standby *ret);
bool sio_nvme_has_standby(struct sio_nvme_device *d);

#endif
