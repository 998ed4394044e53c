/* SPDX-License-Identifier: BSD-2-Clause */
/* What oracles of devices have in common (oracle/dma.c). */
#ifndef SIM_ORACLE_DEVICE_H
#define SIM_ORACLE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* The device of a handle of the running program's; 0: none that it borrowed. */
uint32_t sim_device_fdid(const void *device);
/* The device is one of the host that lies. */
bool sim_liars_device(uint32_t fdid);
/* Hosts may lose each other, and what they borrow. */
bool sim_may_lose_borrowers(void);

#endif
