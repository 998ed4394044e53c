/* SPDX-License-Identifier: BSD-2-Clause */
/* A function opened by its IOMMU group and a container, which every kernel with VFIO has. */
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/iommufd_abi.h"
#include "smartiod/port_vfio/vfio_kernel.h"

#define INFO_BYTES 4096

enum { GROUP = VFIO_OF_GROUP, CONTAINER };

static bool is_here(const char *name)
{
	(void)name;
	return true;
}

/* ---- open ---- */

static int no_group(const struct vfio_unit *u, const char *path, int error, struct sio_err *reterr)
{
	char other[64];

	snprintf(other, sizeof(other), "/dev/vfio/noiommu-%u", u->group_number);
	if (error == ENOENT && access(other, F_OK) == 0)
		return sio_fail(reterr, -EOPNOTSUPP,
				"%s: has no IOMMU, and VFIO's mode without one is refused: nothing "
				"there holds memory in place until the device has stopped",
				u->name);
	if (error == ENOENT)
		return sio_fail(reterr, -error,
				"%s: there is no %s: a kernel without VFIO's groups has --backend "
				"iommufd",
				u->name, path);
	return sio_fail(reterr, -error, "%s: %s: %s", u->name, path, strerror(error));
}

static int open_group(struct vfio_unit *u, struct sio_err *reterr)
{
	struct vfio_group_status status = {.argsz = sizeof(status)};
	char path[64];

	snprintf(path, sizeof(path), "/dev/vfio/%u", u->group_number);
	u->fd[GROUP] = open(path, O_RDWR | O_CLOEXEC);
	if (u->fd[GROUP] < 0 && errno == EBUSY)
		return sio_fail(
			reterr, -EBUSY,
			"%s: another process has IOMMU group %u: a virtual machine, or programs "
			"whose smartio-vfio was killed (fuser %s%s tells)",
			u->name, u->group_number, path,
			access(SIO_VFIO_CDEVS, F_OK) == 0 ? " " SIO_VFIO_CDEVS "/*" : "");
	if (u->fd[GROUP] < 0)
		return no_group(u, path, errno, reterr);
	if (ioctl(u->fd[GROUP], VFIO_GROUP_GET_STATUS, &status) < 0)
		return sio_fail(reterr, -errno, "%s: %s: %s", u->name, path, strerror(errno));
	if (!(status.flags & VFIO_GROUP_FLAGS_VIABLE))
		return sio_fail(
			reterr, -EPERM,
			"%s: other functions of IOMMU group %u are with drivers of their own: all "
			"must be with vfio-pci or without one",
			u->name, u->group_number);
	return 0;
}

static int open_container(struct vfio_unit *u, struct sio_err *reterr)
{
	int fd = u->fd[CONTAINER] = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
	bool joined;

	if (fd < 0)
		return sio_fail(reterr, -errno, "/dev/vfio/vfio: %s: modprobe vfio-pci",
				strerror(errno));
	if (ioctl(fd, VFIO_GET_API_VERSION) != VFIO_API_VERSION ||
	    ioctl(fd, VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU) != 1)
		return sio_fail(reterr, -EOPNOTSUPP,
				"the kernel's VFIO has no type1 IOMMU: modprobe vfio_iommu_type1");
	joined = ioctl(u->fd[GROUP], VFIO_GROUP_SET_CONTAINER, &fd) == 0;
	if (joined && ioctl(fd, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) == 0)
		return 0;
	/*
	 * Such a device could send any interrupt to any processor. Intel's driver says the same of
	 * one that the firmware has reserved memory for.
	 */
	if (joined && errno == EPERM)
		return sio_fail(
			reterr, -EPERM,
			"%s: VFIO may not give it away; most likely this machine remaps no "
			"interrupts: enable interrupt remapping in the firmware, and boot "
			"without intremap=off (dmesg | grep -i -e remap -e RMRR tells more)",
			u->name);
	return sio_fail(reterr, -errno, "%s: IOMMU group %u cannot be joined to a container: %s",
			u->name, u->group_number, strerror(errno));
}

static int open_all(struct vfio_unit *u, const struct vfio_unit *partner, struct sio_err *reterr)
{
	int r = partner ? 0 : open_group(u, reterr);

	if (r == 0 && !partner)
		r = open_container(u, reterr);
	if (r < 0)
		return r;
	u->fd[VFIO_DEVICE] = ioctl(u->fd[GROUP], VFIO_GROUP_GET_DEVICE_FD, u->name);
	return u->fd[VFIO_DEVICE] < 0 ? sio_fail(reterr, -errno, "%s: %s", u->name, strerror(errno))
				      : 0;
}

static bool is_free(const struct vfio_unit *u, const struct vfio_unit *partner)
{
	char path[64];
	int fd;

	if (partner)
		return true;
	snprintf(path, sizeof(path), "/dev/vfio/%u", u->group_number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* ---- the addresses that it has ---- */

static int look_at_space(const struct vfio_unit *u, struct vfio_space *s, struct sio_err *reterr)
{
	union {
		struct vfio_iommu_type1_info info;
		unsigned char bytes[INFO_BYTES];
	} b = {.info.argsz = sizeof(b)};
	uint32_t at;

	if (ioctl(u->fd[CONTAINER], VFIO_IOMMU_GET_INFO, &b.info) < 0)
		return sio_fail(reterr, -errno, "%s: its IOMMU cannot be asked: %s", u->name,
				strerror(errno));
	at = b.info.flags & VFIO_IOMMU_INFO_CAPS ? b.info.cap_offset : 0;
	while (at && at + sizeof(struct vfio_info_cap_header) < sizeof(b)) {
		const struct vfio_info_cap_header *h = (const void *)(b.bytes + at);
		const struct vfio_iommu_type1_info_cap_iova_range *cap = (const void *)h;

		for (uint32_t i = 0;
		     h->id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE && i < cap->nr_iovas; i++)
			vfio_space_add(s, cap->iova_ranges[i].start, cap->iova_ranges[i].end);
		at = h->next;
	}
	if (s->highest == 0) /* old kernels do not tell */
		vfio_space_add(s, 0, UINT32_MAX);
	return 0;
}

/* ---- mappings ---- */

static int map(const struct vfio_unit *u, const struct vfio_pages *p)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = (p->access & SIO_ACCESS_READ ? VFIO_DMA_MAP_FLAG_READ : 0) |
			 (p->access & SIO_ACCESS_WRITE ? VFIO_DMA_MAP_FLAG_WRITE : 0),
		.vaddr = (uintptr_t)p->at,
		.iova = p->iova.addr,
		.size = p->length};

	return ioctl(u->fd[CONTAINER], VFIO_IOMMU_MAP_DMA, &map) < 0 ? -errno : 0;
}

/*
 * The kernel finds the registers behind our mapping of them, and holds nothing in place: that they
 * are mapped no longer than they are there is for us to see to.
 */
static int map_bar(const struct vfio_unit *u, const struct vfio_unit *other, uint32_t bar,
		   uint64_t offset, const struct vfio_pages *p)
{
	int prot = PROT_READ | (p->access & SIO_ACCESS_WRITE ? PROT_WRITE : 0), r;
	struct vfio_pages at = *p;

	at.at = mmap(NULL, p->length, prot, MAP_SHARED, other->fd[VFIO_DEVICE],
		     (off_t)(other->bar[bar].offset + offset));
	if (at.at == MAP_FAILED)
		return -errno;
	r = map(u, &at);
	munmap(at.at, p->length);
	return r;
}

static int unmap(const struct vfio_unit *u, struct sio_dev_addr iova, uint64_t *length)
{
	struct vfio_iommu_type1_dma_unmap unmap = {
		.argsz = sizeof(unmap), .iova = iova.addr, .size = *length};

	if (ioctl(u->fd[CONTAINER], VFIO_IOMMU_UNMAP_DMA, &unmap) < 0)
		return -errno;
	*length = unmap.size;
	return 0;
}

const struct vfio_backend vfio_by_group = {
	.name = "group",
	.mode = SIO_IOMMU_STRICT,
	.part = {[VFIO_DEVICE] = "device", [GROUP] = "group", [CONTAINER] = "container"},
	.is_here = is_here,
	.open = open_all,
	.is_free = is_free,
	.space = look_at_space,
	.map = map,
	.unmap = unmap,
	.no_space = "raise vfio_iommu_type1's dma_entry_limit",
	.map_bar = map_bar,
};
