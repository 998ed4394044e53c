/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of the kernel's headers about iommufd since Linux 6.6, for machines with older headers:
 * as in its linux/iommufd.h and linux/vfio.h of version 7.3, in words of our own. Every structure
 * begins with its size; a member that is not named there is 0.
 */
#ifndef CORE_IOMMUFD_ABI_H
#define CORE_IOMMUFD_ABI_H

#include <linux/ioctl.h>
#include <linux/vfio.h>
#include <stdint.h>

#define SIO_IOMMUFD_DEVICE "/dev/iommu"
#define SIO_VFIO_CDEVS "/dev/vfio/devices"

/* ---- on the iommufd ---- */

/* Makes an empty address space. */
struct sio_ioas_alloc {
	uint32_t size, flags, ioas; /* out */
};
#define SIO_IOMMU_IOAS_ALLOC _IO(';', 0x81)

struct sio_iova_range {
	uint64_t first, last;
};
/*
 * Addresses that may be mapped in an address space, in ascending order. -EMSGSIZE: there are more:
 * n has the number.
 */
struct sio_ioas_iova_ranges {
	uint32_t size, ioas, n /* in, out */, zero;
	uint64_t ranges; /* a pointer to struct sio_iova_range */
	uint64_t alignment;
};
#define SIO_IOMMU_IOAS_IOVA_RANGES _IO(';', 0x84)

#define SIO_IOAS_MAP_FIXED 1u /* at iova, and nowhere else */
#define SIO_IOAS_MAP_WRITE 2u /* the device may */
#define SIO_IOAS_MAP_READ 4u
/* Maps pages of this process, which are pinned while a page table of the address space has them. */
struct sio_ioas_map {
	uint32_t size, flags, ioas, zero;
	uint64_t va, length, iova;
};
#define SIO_IOMMU_IOAS_MAP _IO(';', 0x85)

/*
 * Maps a file without a process's addresses. Since Linux 6.13: a memfd; newer kernels: a BAR
 * (SIO_VFIO_FEATURE_DMA_BUF), whose mapping is revoked when its device is reset. -ENOTTY: older
 * kernels.
 */
struct sio_ioas_map_file {
	uint32_t size, flags, ioas;
	int32_t fd;
	uint64_t offset, length, iova;
};
#define SIO_IOMMU_IOAS_MAP_FILE _IO(';', 0x8f)

/*
 * Unmaps all mappings within the range; length is set to the bytes unmapped. -ENOENT: none, or one
 * is only partly within.
 */
struct sio_ioas_unmap {
	uint32_t size, ioas;
	uint64_t iova, length; /* in, out */
};
#define SIO_IOMMU_IOAS_UNMAP _IO(';', 0x86)

/*
 * Makes a page table with all mappings of the address space, for devices like @device. It remains.
 */
struct sio_hwpt_alloc {
	uint32_t size, flags, device, ioas, hwpt /* out */, zero;
	uint32_t data_type, data_length;
	uint64_t data;
};
#define SIO_IOMMU_HWPT_ALLOC _IO(';', 0x89)

/* ---- on a device of SIO_VFIO_CDEVS ---- */

/*
 * Opens the device for an iommufd, once. -EBUSY: its group is open, or has another owner; -EINVAL:
 * it is open already.
 */
struct sio_vfio_bind {
	uint32_t size, flags;
	int32_t iommufd;
	uint32_t device; /* out: its number in the iommufd */
};
#define SIO_VFIO_DEVICE_BIND_IOMMUFD _IO(VFIO_TYPE, VFIO_BASE + 18)

struct sio_vfio_attach {
	uint32_t size, flags, table; /* of an address space, or a page table */
};
#define SIO_VFIO_DEVICE_ATTACH_IOMMUFD_PT _IO(VFIO_TYPE, VFIO_BASE + 19)

/*
 * VFIO_DEVICE_FEATURE: the call returns a descriptor, a dma-buf, of a range of a BAR.
 * -ENOTTY: the kernel does not have this feature.
 */
#define SIO_VFIO_FEATURE_DMA_BUF 11
struct sio_vfio_dma_buf {
	uint32_t size, flags; /* of struct vfio_device_feature */
	uint32_t region, open_flags, zero, n_ranges /* 1 */;
	uint64_t offset, length;
};

#endif
