/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function opened by its own device node and iommufd (Linux 6.6). Each group has an iommufd of
 * its own, because whoever has the descriptor of a device can attach it to any address space of its
 * iommufd, or to none.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/iommufd_abi.h"
#include "smartiod/port_vfio/vfio_kernel.h"

#define PATH (sizeof(SIO_VFIO_CDEVS) + VFIO_NAME)

enum { IOMMUFD = VFIO_OF_GROUP };

bool vfio_iommufd_node(const char *name, char ret[VFIO_NAME])
{
	char path[VFIO_NAME + 64];
	struct dirent *e;
	DIR *dir;

	*ret = '\0';
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/vfio-dev", name);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		if (strncmp(e->d_name, "vfio", 4) == 0 && strlen(e->d_name) < VFIO_NAME)
			strcpy(ret, e->d_name);
	if (dir)
		closedir(dir);
	return *ret;
}

static bool is_here(const char *name)
{
	char node[VFIO_NAME], path[PATH];

	if (!vfio_iommufd_node(name, node))
		return false;
	snprintf(path, sizeof(path), SIO_VFIO_CDEVS "/%s", node);
	return access(path, F_OK) == 0 && access(SIO_IOMMUFD_DEVICE, F_OK) == 0;
}

/* ---- open ---- */

static int open_node(const struct vfio_unit *u, int flags)
{
	char path[PATH];

	snprintf(path, sizeof(path), SIO_VFIO_CDEVS "/%s", u->node);
	return open(path, flags | O_CLOEXEC);
}

static int open_nodes(struct vfio_unit *u, struct sio_err *reterr)
{
	if (!is_here(u->name))
		return sio_fail(
			reterr, -EOPNOTSUPP,
			"%s: this kernel has no iommufd with devices of VFIO (" SIO_IOMMUFD_DEVICE
			", " SIO_VFIO_CDEVS "; CONFIG_IOMMUFD, CONFIG_VFIO_DEVICE_CDEV): "
			"--backend group does without",
			u->name);
	vfio_iommufd_node(u->name, u->node);
	if (u->fd[IOMMUFD] < 0)
		u->fd[IOMMUFD] = open(SIO_IOMMUFD_DEVICE, O_RDWR | O_CLOEXEC);
	if (u->fd[IOMMUFD] < 0)
		return sio_fail(reterr, -errno, "%s: " SIO_IOMMUFD_DEVICE ": %s", u->name,
				strerror(errno));
	u->fd[VFIO_DEVICE] = open_node(u, O_RDWR);
	if (u->fd[VFIO_DEVICE] < 0)
		return sio_fail(reterr, -errno, "%s: " SIO_VFIO_CDEVS "/%s: %s", u->name, u->node,
				strerror(errno));
	return 0;
}

/* The kernel says EINVAL of a device that is open already, EPERM if another one of its group is. */
static int bind_node(int device, int iommufd, uint32_t *ret)
{
	struct sio_vfio_bind bind = {.size = sizeof(bind), .iommufd = iommufd};

	if (ioctl(device, SIO_VFIO_DEVICE_BIND_IOMMUFD, &bind) < 0)
		return errno == EINVAL || errno == EPERM ? -EBUSY : -errno;
	*ret = bind.device;
	return 0;
}

/*
 * A page table that is ours and stays: the pages that are mapped are held in place by it, also when
 * a program takes its device away from it; and are never looked up again at our addresses, where
 * something else may be by then.
 */
static int make_table(struct vfio_unit *u, uint32_t device, struct sio_err *reterr)
{
	struct sio_ioas_alloc ioas = {.size = sizeof(ioas)};
	struct sio_hwpt_alloc table = {.size = sizeof(table), .device = device};

	if (ioctl(u->fd[IOMMUFD], SIO_IOMMU_IOAS_ALLOC, &ioas) < 0)
		return sio_fail(reterr, -errno, "%s: cannot make an address space: %s", u->name,
				strerror(errno));
	u->table.ioas = table.ioas = ioas.ioas;
	if (ioctl(u->fd[IOMMUFD], SIO_IOMMU_HWPT_ALLOC, &table) < 0)
		return sio_fail(reterr, -errno,
				"%s: cannot make a page table: %s; --backend group uses another "
				"one",
				u->name, strerror(errno));
	u->table.hwpt = table.hwpt;
	return 0;
}

/* One that is attached to another one is moved, and stays where it is if that was this one. */
static int attach(const struct vfio_unit *u)
{
	struct sio_vfio_attach to = {.size = sizeof(to), .table = u->table.hwpt};

	return ioctl(u->fd[VFIO_DEVICE], SIO_VFIO_DEVICE_ATTACH_IOMMUFD_PT, &to) < 0 ? -errno : 0;
}

static int open_all(struct vfio_unit *u, const struct vfio_unit *partner, struct sio_err *reterr)
{
	uint32_t device = 0;
	int r = open_nodes(u, reterr);

	if (r < 0)
		return r;
	r = bind_node(u->fd[VFIO_DEVICE], u->fd[IOMMUFD], &device);
	if (r == -EBUSY)
		return sio_fail(
			reterr, r,
			"%s: another process has IOMMU group %u: a virtual machine, or programs "
			"whose smartio-vfio was killed (fuser " SIO_VFIO_CDEVS "/%s /dev/vfio/%u "
			"tells); or another function of the group is with a driver of its own",
			u->name, u->group_number, u->node, u->group_number);
	if (r < 0)
		return sio_fail(reterr, r, "%s: " SIO_VFIO_CDEVS "/%s: %s", u->name, u->node,
				strerror(-r));
	r = partner ? 0 : make_table(u, device, reterr);
	if (r < 0)
		return r;
	r = attach(u);
	return r < 0 ? sio_fail(reterr, r, "%s: cannot be attached to its page table: %s", u->name,
				strerror(-r))
		     : 0;
}

/* Read-only: that this is closed again is not what smartio-vfio waits for. */
static bool is_free(const struct vfio_unit *u, const struct vfio_unit *partner)
{
	int device = open_node(u, O_RDONLY);
	int iommufd = partner ? fcntl(partner->fd[IOMMUFD], F_DUPFD_CLOEXEC, 3)
			      : open(SIO_IOMMUFD_DEVICE, O_RDWR | O_CLOEXEC);
	uint32_t ignored;
	bool yes = device >= 0 && iommufd >= 0 && bind_node(device, iommufd, &ignored) == 0;

	if (device >= 0)
		close(device);
	if (iommufd >= 0)
		close(iommufd);
	return yes;
}

/* ---- the addresses that it has ---- */

static int look_at_space(const struct vfio_unit *u, struct vfio_space *s, struct sio_err *reterr)
{
	struct sio_iova_range range[VFIO_HOLES + 1];
	struct sio_ioas_iova_ranges ask = {.size = sizeof(ask),
					   .ioas = u->table.ioas,
					   .n = VFIO_HOLES + 1,
					   .ranges = (uintptr_t)range};

	/* Of those that have no room, that is, the highest, none is used. */
	if (ioctl(u->fd[IOMMUFD], SIO_IOMMU_IOAS_IOVA_RANGES, &ask) < 0 && errno != EMSGSIZE)
		return sio_fail(reterr, -errno, "%s: its IOMMU cannot be asked: %s", u->name,
				strerror(errno));
	if (ask.n == 0)
		return sio_fail(reterr, -ENOSPC, "%s: its IOMMU has no addresses", u->name);
	for (uint32_t i = 0; i < ask.n && i < VFIO_HOLES + 1; i++)
		vfio_space_add(s, range[i].first, range[i].last);
	return 0;
}

/* ---- mappings ---- */

static uint32_t map_flags(uint32_t access)
{
	return SIO_IOAS_MAP_FIXED | (access & SIO_ACCESS_READ ? SIO_IOAS_MAP_READ : 0) |
	       (access & SIO_ACCESS_WRITE ? SIO_IOAS_MAP_WRITE : 0);
}

/*
 * By our addresses, not by the file (IOMMU_IOAS_MAP_FILE of Linux 6.13): up to 7.3 at least that
 * takes pages of a memfd that fallocate() made and nobody has touched as they are. The device would
 * read what was in there before, and the first touch would clear what it wrote.
 */
static int map(const struct vfio_unit *u, const struct vfio_pages *p)
{
	struct sio_ioas_map map = {.size = sizeof(map),
				   .flags = map_flags(p->access),
				   .ioas = u->table.ioas,
				   .va = (uintptr_t)p->at,
				   .length = p->length,
				   .iova = p->iova.addr};

	return ioctl(u->fd[IOMMUFD], SIO_IOMMU_IOAS_MAP, &map) < 0 ? -errno : 0;
}

/* The bytes of a BAR as a file of their own. -EOPNOTSUPP: this kernel has no such files. */
static int export_bar(const struct vfio_unit *other, uint32_t bar, uint64_t offset, uint64_t length)
{
	struct sio_vfio_dma_buf ask = {.size = sizeof(ask),
				       .flags = VFIO_DEVICE_FEATURE_GET | SIO_VFIO_FEATURE_DMA_BUF,
				       .region = bar,
				       .open_flags = O_RDWR | O_CLOEXEC,
				       .n_ranges = 1,
				       .offset = offset,
				       .length = length};
	int fd = ioctl(other->fd[VFIO_DEVICE], VFIO_DEVICE_FEATURE, &ask);

	if (fd < 0)
		return errno == ENOTTY ? -EOPNOTSUPP : -errno;
	return fd;
}

/* The kernel itself takes it away when the other function is reset, or goes. */
static int map_bar(const struct vfio_unit *u, const struct vfio_unit *other, uint32_t bar,
		   uint64_t offset, const struct vfio_pages *p)
{
	struct sio_ioas_map_file map = {.size = sizeof(map),
					.flags = map_flags(p->access),
					.ioas = u->table.ioas,
					.fd = export_bar(other, bar, offset, p->length),
					.length = p->length,
					.iova = p->iova.addr};
	int r = map.fd < 0 ? map.fd : 0;

	if (r == 0 && ioctl(u->fd[IOMMUFD], SIO_IOMMU_IOAS_MAP_FILE, &map) < 0)
		r = errno == ENOTTY ? -EOPNOTSUPP : -errno;
	if (map.fd >= 0)
		close(map.fd);
	return r;
}

static int unmap(const struct vfio_unit *u, struct sio_dev_addr iova, uint64_t *length)
{
	struct sio_ioas_unmap unmap = {
		.size = sizeof(unmap), .ioas = u->table.ioas, .iova = iova.addr, .length = *length};

	if (ioctl(u->fd[IOMMUFD], SIO_IOMMU_IOAS_UNMAP, &unmap) == 0)
		*length = unmap.length;
	else if (errno == ENOENT)
		*length = 0;
	else
		return -errno;
	return 0;
}

const struct vfio_backend vfio_by_iommufd = {
	.name = "iommufd",
	.mode = SIO_IOMMU_IOMMUFD,
	.part = {[VFIO_DEVICE] = "device", [IOMMUFD] = "iommufd"},
	.is_here = is_here,
	.open = open_all,
	.attach = attach,
	.is_free = is_free,
	.space = look_at_space,
	.map = map,
	.map_bar = map_bar,
	.unmap = unmap,
	.no_space = "its IOMMU's page tables have no room",
};
