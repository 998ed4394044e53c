/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of the port by VFIO, from which its next process continues where this one was killed: one
 * for each object and device. They outlive the process in memory, never in a file, and are read by
 * the same version alone.
 */
#ifndef SMARTIOD_VFIO_RECORD_H
#define SMARTIOD_VFIO_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "smartio/uapi.h"

struct vfio_head {
	uint64_t boot_generation, last_id, last_device, epoch;
	uint8_t boot_id[16];
};

struct vfio_device_record {
	struct sio_evt_device info; /* info.id 0: there is none */
	uint64_t reset_epoch;
	uint32_t entries;
	bool present, open;
};

/* As struct vfio_object; target and device by their numbers. */
struct vfio_record {
	uint64_t id; /* 0: there is none */
	uint64_t owner, target, device, cookie, address, length, epoch, file_offset;
	uint32_t kind, state, bar;
	bool cut, masked, child;
};

/* Differs where records are laid out in another way, or mean something else. (vfio_layout.c) */
uint64_t vfio_layout(void);

/* What was kept, for vfio_port_restore(). */
struct vfio_kept {
	struct vfio_head head;
	const struct vfio_device_record *device;
	const struct vfio_record *record; /* in any order, with free ones among them */
	unsigned n_devices, n_records;
	/* The descriptor of an object, which is the caller's no more; -1: it is lost. */
	int (*take_fd)(void *ctx, uint64_t id);
};

#endif
