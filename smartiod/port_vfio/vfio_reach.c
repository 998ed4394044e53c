/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * By groups, the kernel follows no BAR that it maps for another device: the mapping stays as long
 * as somebody has that device, if this process is killed and nothing is kept. So a file says which
 * function may reach which one's BARs, and the next process lends the second one, and `smartio
 * device remove` gives it away, only when nobody has had the first one since.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/vfio_reach.h"
#include "smartiod/port_vfio/vfio_live.h"

int vfio_reach_note(const struct vfio_live *l, const struct vfio_unit *u,
		    const struct vfio_unit *target, struct sio_err *reterr)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/vfio/" SIO_VFIO_REACH, l->state, u->name, target->name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return sio_fail(reterr, -errno, "DMAMAP: %s: %s", path, strerror(errno));
	close(fd);
	return 0;
}

/* Is it open here? Then its container is ours, and so it is known what that maps. */
static bool is_open(const struct vfio_live *l, uint32_t group)
{
	const struct vfio_unit *u = l->units;

	while (u && (u->fd[VFIO_DEVICE] < 0 || u->group_number != group))
		u = u->next;
	return u;
}

/* Does anybody else still have the group of function @name? */
static bool is_left(const struct vfio_live *l, const char *name)
{
	struct sio_evt_device info;
	char path[64];
	int fd;

	if (!vfio_kernel_look(name, &vfio_by_group, &info) || is_open(l, info.iommu_group))
		return false;
	snprintf(path, sizeof(path), "/dev/vfio/%u", info.iommu_group);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == EBUSY;
	close(fd);
	return false;
}

bool vfio_reach_left(const struct vfio_live *l, const struct vfio_unit *u, char ret[VFIO_NAME])
{
	char path[512], from[VFIO_NAME];
	bool left = false;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/vfio", l->state);
	dir = opendir(path);
	while (dir && !left && (e = readdir(dir))) {
		left = sio_vfio_reach_parse(e->d_name, u->name, from, sizeof(from)) &&
		       is_left(l, from);
		if (left)
			memcpy(ret, from, sizeof(from));
	}
	if (dir)
		closedir(dir);
	return left;
}

/* @from: NULL: whatever reaches @to; else that alone. */
static void forget(const struct vfio_live *l, const char *from, const char *to)
{
	char path[512], name[VFIO_NAME];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/vfio", l->state);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		if (sio_vfio_reach_parse(e->d_name, to, name, sizeof(name)) &&
		    (!from || strcmp(name, from) == 0))
			unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
}

void vfio_reach_opened(const struct vfio_live *l, const struct vfio_unit *u)
{
	forget(l, NULL, u->name);
	for (const struct vfio_unit *o = l->units; o; o = o->next)
		forget(l, u->name, o->name);
}

void vfio_reach_gone(const struct vfio_live *l, const struct vfio_unit *u)
{
	forget(l, NULL, u->name);
}
