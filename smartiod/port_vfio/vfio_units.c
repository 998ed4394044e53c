/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which functions belong to smartio-vfio: those that `smartio device add --vfio` left a note of and
 * that are bound to vfio-pci. Other functions bound to vfio-pci belong to virtual machines.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "smartiod/port_vfio/vfio_live.h"

_Static_assert(sizeof(((struct vfio_unit *)0)->name) == sizeof(((struct sio_evt_device *)0)->name),
	       "names are as long");

#define RETRY_MS 20
#define PARTNER_MS 1000
#define RETRIES 100

struct vfio_unit *vfio_unit_find(const struct vfio_live *l, uint64_t id)
{
	struct vfio_unit *u = l->units;

	while (u && u->id != id)
		u = u->next;
	return u;
}

struct vfio_unit *vfio_unit_partner(const struct vfio_live *l, const struct vfio_unit *u)
{
	struct vfio_unit *o = l->units;

	while (o && (o == u || o->fd[VFIO_DEVICE] < 0 || o->group_number != u->group_number))
		o = o->next;
	return o;
}

static struct vfio_unit *named(const struct vfio_live *l, const char *name)
{
	struct vfio_unit *u = l->units;

	while (u && strcmp(u->name, name) != 0)
		u = u->next;
	return u;
}

/* ---- coming ---- */

static void unit_free(struct vfio_live *l, struct vfio_unit *u)
{
	struct vfio_source *s = NULL;

	if (u->fd[VFIO_DEVICE] >= 0)
		vfio_store_device_closed(l, u);
	vfio_kernel_close(u);
	HASH_FIND(hh, l->requests, &u->id, sizeof(u->id), s);
	if (s) {
		HASH_DEL(l->requests, s);
		vfio_live_unwatch(l, s);
		free(s);
	}
	free(u);
}

/* The kernel asks for it by an eventfd when it is unbound or pulled out. */
static int watch_requests(struct vfio_live *l, struct vfio_unit *u)
{
	struct vfio_source *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->kind = VFIO_REQUEST;
	s->id = u->id;
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->fd < 0 || vfio_live_watch(l, s, EPOLLIN) < 0)
		goto fail;
	HASH_ADD(hh, l->requests, id, sizeof(s->id), s);
	if (!s->hh.tbl) {
		vfio_live_unwatch(l, s);
		goto fail;
	}
	u->request = s->fd;
	return 0;

fail:
	if (s->fd >= 0)
		close(s->fd);
	free(s);
	return -ENOMEM;
}

static struct vfio_unit *unit_new(struct vfio_live *l, const struct sio_evt_device *info)
{
	struct vfio_unit *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	for (unsigned i = 0; i < VFIO_PARTS; i++)
		u->fd[i] = -1;
	u->request = u->sink = -1;
	u->done = l->reset_write;
	u->id = info->id;
	memcpy(u->name, info->name, sizeof(u->name)); /* as long, with its end */
	u->group_number = info->iommu_group;
	u->by = vfio_backend_of(info->iommu_mode);
	vfio_iommufd_node(u->name, u->node);
	u->next = l->units;
	l->units = u;
	return u;
}

int vfio_unit_again(struct vfio_live *l, const struct sio_evt_device *info, struct vfio_space *ret,
		    struct sio_err *reterr)
{
	struct vfio_unit *u = unit_new(l, info);
	int fd[VFIO_PARTS], r = u ? 0 : -ENOMEM;

	if (!u)
		return sio_fail(reterr, r, "%s: out of memory: " SIO_MORE_MEMORY, info->name);
	r = vfio_store_take_device(l, u, fd);
	if (r < 0)
		sio_fail(reterr, r, "%s: its descriptors are lost", info->name);
	if (r == 0)
		r = watch_requests(l, u) == 0 ? vfio_kernel_adopt(u, fd, ret, reterr) : -ENOMEM;
	if (r == 0) {
		vfio_log("%s is here still", u->name);
		return 0;
	}
	for (unsigned i = 0; i < VFIO_PARTS; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	l->units = u->next;
	unit_free(l, u);
	return r;
}

static void add(struct vfio_live *l, const char *name)
{
	struct sio_evt_device info;
	struct vfio_unit *u;

	if (named(l, name) || !vfio_kernel_look(name, l->by, &info))
		return;
	u = unit_new(l, &info);
	if (!u)
		return;
	u->id = vfio_port_device_here(l->port, &info);
	vfio_watch_nodes(l);
	if (u->id == 0 || watch_requests(l, u) < 0)
		vfio_log("%s: out of memory: " SIO_MORE_MEMORY, name);
	else
		vfio_log("%s is here, by %s", name, u->by->name);
}

/* ---- going ---- */

static void go(struct vfio_live *l, struct vfio_unit *u, const char *why)
{
	struct vfio_unit **at = &l->units;

	/* The kernel closes none that is being reset, and would have all wait for that. */
	u->going = why;
	if (u->resetting)
		return;
	vfio_log("%s has gone: %s", u->name, why);
	vfio_port_device_gone(l->port, u->id);
	while (*at != u)
		at = &(*at)->next;
	*at = u->next;
	unit_free(l, u);
}

void vfio_unit_was_reset(struct vfio_live *l, struct vfio_unit *u)
{
	if (u->going)
		go(l, u, u->going);
}

void vfio_unit_wanted(struct vfio_live *l, uint64_t id)
{
	struct vfio_unit *u = vfio_unit_find(l, id);
	eventfd_t n;

	if (!u)
		return;
	eventfd_read(u->request, &n);
	go(l, u, "the kernel takes it from vfio-pci");
}

static bool is_ours(const struct vfio_live *l, const char *name)
{
	struct sio_evt_device info;
	char path[512];

	snprintf(path, sizeof(path), "%s/vfio/%s", l->state, name);
	return access(path, F_OK) == 0 && vfio_kernel_look(name, l->by, &info);
}

void vfio_units_look(struct vfio_live *l)
{
	struct vfio_unit *u = l->units, *next;
	struct dirent *e;
	char path[512];
	DIR *dir;

	for (; u; u = next) {
		next = u->next;
		if (!is_ours(l, u->name))
			go(l, u, "it was removed");
	}
	snprintf(path, sizeof(path), "%s/vfio", l->state);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			add(l, e->d_name);
	if (dir)
		closedir(dir);
}

/* ---- functions whose group somebody has ---- */

void vfio_units_freed(struct vfio_live *l, const char *node)
{
	char group[16];

	for (struct vfio_unit *u = l->units; u; u = u->next) {
		snprintf(group, sizeof(group), "%u", u->group_number);
		if (u->reached ||
		    (u->busy && (strcmp(node, group) == 0 || strcmp(node, u->node) == 0)))
			u->tries = RETRIES;
	}
}

/* Where others of the group are open nothing tells that one of it was closed. */
static bool is_silent(const struct vfio_live *l, const struct vfio_unit *u)
{
	return u->busy && vfio_unit_partner(l, u);
}

int vfio_units_wait(const struct vfio_live *l)
{
	int wait = -1;

	for (const struct vfio_unit *u = l->units; u; u = u->next) {
		if (u->busy && u->tries)
			return RETRY_MS;
		if (is_silent(l, u))
			wait = PARTNER_MS;
	}
	return wait;
}

/* The kernel reports a close before it has done it: so it is tried more than once. */
void vfio_units_retry(struct vfio_live *l)
{
	struct sio_evt_device info;
	char from[VFIO_NAME];

	for (struct vfio_unit *u = l->units; u; u = u->next) {
		if (!u->busy || (!u->tries && !is_silent(l, u)))
			continue;
		u->tries -= u->tries > 0;
		/* First: is_free() closes the node, and that event would start this anew. */
		if ((u->reached && vfio_reach_left(l, u, from)) || vfio_kernel_is_held(u) ||
		    !u->by->is_free(u, vfio_unit_partner(l, u)) ||
		    !vfio_kernel_look(u->name, u->by, &info))
			continue;
		u->busy = u->reached = false;
		vfio_log("%s: nobody else has its IOMMU group any more", u->name);
		/* As if it had come just now: the daemon opens it. */
		vfio_port_device_gone(l->port, u->id);
		vfio_port_device_here(l->port, &info);
	}
}

void vfio_units_free(struct vfio_live *l)
{
	for (struct vfio_unit *u; (u = l->units);) {
		l->units = u->next;
		unit_free(l, u);
	}
}
