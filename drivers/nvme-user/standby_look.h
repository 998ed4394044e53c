/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks for standby managers of a drive: each publishes itself in a shared segment. */
#ifndef NVME_USER_STANDBY_LOOK_H
#define NVME_USER_STANDBY_LOOK_H

#include "device.h"
#include "smartio/nvme.h"

/* False: there is none with that number, or it is just beginning or ending. */
bool sio_nvme_standby_at(struct sio_nvme_device *d, unsigned number,
			 struct smartio_nvme_standby *ret);
bool sio_nvme_has_standby(struct sio_nvme_device *d);

#endif
