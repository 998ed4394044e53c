/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by oracles of devices (oracle/dma.c). */
#ifndef SIM_ORACLE_DEVICE_H
#define SIM_ORACLE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* The device of a handle of the running program; 0: not a device that it borrowed. */
uint32_t sim_device_fdid(const void *device);
/* Is the device one of the malicious host's? */
bool sim_liars_device(uint32_t fdid);
/* May hosts lose each other, and what they borrow? */
bool sim_may_lose_borrowers(void);

#endif
