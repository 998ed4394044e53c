/* SPDX-License-Identifier: BSD-2-Clause */
/* How records lie in memory, as one number. */
#include <stddef.h>

#include "core/hash.h"
#include "smartiod/port_vfio/vfio_kernel.h"
#include "smartiod/port_vfio/vfio_record.h"

/* To be raised when a field comes to mean something else: that no size and no place tells. */
#define MEANING 2u

/*
 * The places of all fields of all that is written, one after the other: records of another layout
 * are not read.
 */
#define AT(type, field) (offsetof(struct type, field) << 16 | sizeof(((struct type *)0)->field))
static const uint64_t layout[] = {
	MEANING,
	sizeof(struct vfio_head),
	AT(vfio_head, boot_generation),
	AT(vfio_head, last_id),
	AT(vfio_head, last_device),
	AT(vfio_head, epoch),
	AT(vfio_head, boot_id),
	sizeof(struct vfio_device_record),
	AT(vfio_device_record, info),
	AT(vfio_device_record, reset_epoch),
	AT(vfio_device_record, entries),
	AT(vfio_device_record, present),
	AT(vfio_device_record, open),
	sizeof(struct sio_evt_device),
	AT(sio_evt_device, id),
	AT(sio_evt_device, generation),
	AT(sio_evt_device, bar_addr),
	AT(sio_evt_device, bar_size),
	AT(sio_evt_device, bdf),
	AT(sio_evt_device, msix_count),
	AT(sio_evt_device, msix_bar),
	AT(sio_evt_device, msix_offset),
	AT(sio_evt_device, iommu_group),
	AT(sio_evt_device, iommu_mode),
	AT(sio_evt_device, resets),
	AT(sio_evt_device, name),
	sizeof(struct vfio_tables),
	AT(vfio_tables, ioas),
	AT(vfio_tables, hwpt),
	sizeof(struct vfio_record),
	AT(vfio_record, id),
	AT(vfio_record, owner),
	AT(vfio_record, target),
	AT(vfio_record, device),
	AT(vfio_record, cookie),
	AT(vfio_record, address),
	AT(vfio_record, length),
	AT(vfio_record, epoch),
	AT(vfio_record, file_offset),
	AT(vfio_record, kind),
	AT(vfio_record, state),
	AT(vfio_record, bar),
	AT(vfio_record, cut),
	AT(vfio_record, masked),
	AT(vfio_record, child),
};

uint64_t vfio_layout(void)
{
	return sio_hash_bytes(layout, sizeof(layout));
}
