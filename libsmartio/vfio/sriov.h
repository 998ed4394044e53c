/* SPDX-License-Identifier: BSD-2-Clause */
/* The SR-IOV extended capability within a configuration space (config.h). */
#ifndef VFIO_SRIOV_H
#define VFIO_SRIOV_H

#include <stdbool.h>

#include "vfio/config.h"

/* The registers that not every value may be written to. */
struct sio_vfio_sriov {
	bool enabled;
	unsigned functions;
	uint32_t page;
};

void sio_vfio_sriov_add(struct sio_vfio_config *c, const struct sio_vfio_config_identity *id);
void sio_vfio_sriov_keep(const struct sio_vfio_config *c, struct sio_vfio_sriov *ret);
/* After a write: what the host must not write is as it was. */
void sio_vfio_sriov_check(struct sio_vfio_config *c, const struct sio_vfio_sriov *before);
/* What depends on other registers follows them. */
void sio_vfio_sriov_follow(struct sio_vfio_config *c);

#endif
