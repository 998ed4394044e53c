/* SPDX-License-Identifier: BSD-2-Clause */
/* The port of a real host: smartio.ko's device node, and the kernel's log beside it. */
#ifndef SMARTIOD_PORT_SHIM_H
#define SMARTIOD_PORT_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#include "smartiod/live/live.h"
#include "smartiod/port_shim/shim_port.h"
#include "smartio/uapi.h"

#define PORT_SHIM_DEVICES 256

#define PORT_SHIM_REFUSED 64

extern const struct live_port live_port_shim; /* smartio.ko's device node */

struct port_shim {
	struct live *live;
	struct shim_port *port;
	sd_event_source *io, *defer;
	struct sio_evt_error refused[PORT_SHIM_REFUSED]; /* to be answered by ourselves */
	unsigned n_refused;
	/* Devices as the module reported them, for the kernel's log names places only. */
	struct {
		uint64_t id;
		uint32_t bdf;
	} device[PORT_SHIM_DEVICES];
	unsigned n_devices;
	int log_fd; /* /dev/kmsg; -1 */
	sd_event_source *log;
};

/*
 * A line of the kernel's log, if it reports a DMA fault as the IOMMU drivers do: place, address and
 * access. Pure. Return: whether it does.
 */
bool port_shim_parse_fault(const char *line, uint32_t *ret_bdf, uint64_t *ret_address,
			   uint32_t *ret_access);

/* A device as the port reported it, for that. */
void port_shim_remember(struct port_shim *p, const struct sio_evt_device *evt);

/* Hear the kernel's log from now on; without the right to, a warning. */
void port_shim_log_open(struct port_shim *p);
void port_shim_log_close(struct port_shim *p);

#endif
