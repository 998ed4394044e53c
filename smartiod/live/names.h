/* SPDX-License-Identifier: BSD-2-Clause */
/* Users and groups that the cluster's file names, as numbers of this machine. */
#ifndef SMARTIOD_NAMES_H
#define SMARTIOD_NAMES_H

#include "core/policy.h"

/* Numbers for the names; one that is not known here is nobody's, and the log says so. */
void live_names_find(struct sio_policy *p);

#endif
