/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of the port, by system calls. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "smartiod/port_shim/shim_port_own.h"
#include "smartiod/port_vfio/vfio_file.h"
#include "smartiod/port_vfio/vfio_live.h"

#define STATUS_BYTES 4096

int vfio_live_watch(struct vfio_live *l, struct vfio_source *s, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = s};

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, s->fd, &ev) < 0 ? -errno : 0;
}

void vfio_live_unwatch(struct vfio_live *l, struct vfio_source *s)
{
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	close(s->fd);
	s->fd = -1;
}

/* ---- owners: pipes of which programs have the end that is written to, and nobody writes ---- */

static int watch_owner(struct vfio_live *l, uint64_t id, int fd)
{
	struct vfio_source *s = calloc(1, sizeof(*s));
	struct stat st;
	int r;

	if (!s)
		return -ENOMEM;
	s->kind = VFIO_OWNER;
	s->id = id;
	s->fd = fd;
	r = fstat(fd, &st) < 0 ? -errno : 0;
	s->inode = st.st_ino;
	HASH_ADD(hh, l->owners, id, sizeof(s->id), s);
	if (!s->hh.tbl) {
		free(s);
		return -ENOMEM;
	}
	if (r == 0)
		r = vfio_live_watch(l, s, 0); /* hang-ups come unasked */
	if (r < 0) {
		HASH_DEL(l->owners, s);
		free(s);
	}
	return r;
}

static int owner_new(void *ctx, uint64_t id, int *ret_fd)
{
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	r = watch_owner(ctx, id, fds[0]);
	if (r < 0) {
		close(fds[0]);
		close(fds[1]);
		return r;
	}
	*ret_fd = fds[1];
	return 0;
}

/* @fd: the end of the pipe that was ours before. */
static int owner_again(void *ctx, uint64_t id, int fd)
{
	struct vfio_live *l = ctx;
	int r = watch_owner(l, id, fd);

	if (r < 0)
		close(fd);
	return r;
}

static void owner_free(void *ctx, uint64_t id)
{
	struct vfio_live *l = ctx;
	struct vfio_source *s = NULL;

	HASH_FIND(hh, l->owners, &id, sizeof(id), s);
	if (!s)
		return; /* a child has none */
	HASH_DEL(l->owners, s);
	vfio_live_unwatch(l, s);
	free(s);
}

/* A descriptor that can do nothing (O_PATH) proves nothing. */
static int identity(void *ctx, int fd, uint64_t ret[2])
{
	struct vfio_live *l = ctx;
	struct vfio_source *s, *tmp;
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0 || fcntl(fd, F_GETFL) & O_PATH)
		return -EBADF;
	if ((unsigned long)fs.f_type != PIPEFS_MAGIC) {
		ret[0] = st.st_dev;
		ret[1] = st.st_ino;
		return ret[0] && S_ISREG(st.st_mode) ? 0 : -EBADF;
	}
	HASH_ITER (hh, l->owners, s, tmp) {
		if (s->inode == st.st_ino) {
			ret[0] = 0;
			ret[1] = s->id;
			return 0;
		}
	}
	return -EBADF;
}

/* ---- memory ---- */

/*
 * Its pages are taken now, so that nobody who touches them finds that there are none, and its size
 * is for ever: a device that writes knows nothing of the ends of files.
 */
static int memory_new(void *ctx, uint64_t size, bool huge, int *ret_fd, struct sio_err *reterr)
{
	int fd = -1, r;

	(void)ctx;
	if (huge)
		fd = memfd_create("smartio memory", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (fd >= 0 && (fallocate(fd, 0, 0, (off_t)size) < 0)) { /* none is left: others do */
		close(fd);
		fd = -1;
	}
	if (fd < 0) {
		fd = memfd_create("smartio memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (fd < 0)
			return sio_fail(reterr, -errno, "ALLOC: %s", strerror(errno));
		if (fallocate(fd, 0, 0, (off_t)size) < 0)
			goto fail;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto fail;
	*ret_fd = fd;
	return 0;

fail:
	r = -errno;
	close(fd);
	if (r == -ENOSPC || r == -ENOMEM)
		return sio_fail_exhausted(reterr, -ENOSPC, SIO_OUT_OF_RAM,
					  "ALLOC: the machine has no %" PRIu64 " bytes left", size);
	return sio_fail(reterr, r, "ALLOC: %s", strerror(-r));
}

/*
 * A file of its own where that may be had: of two descriptors of the same one systemd's store drops
 * the second.
 */
static int open_again(int fd)
{
	char path[64];
	int own;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, (fcntl(fd, F_GETFL) & O_ACCMODE) | O_CLOEXEC);
	return own < 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : own;
}

/* The kernel checks again whether it may be written, when it is mapped for a device (DMAMAP). */
static int memory_take(void *ctx, int fd, uint32_t kind, int *ret_fd, uint64_t *ret_size,
		       struct sio_err *reterr)
{
	int r = vfio_file_size(fd, kind, ret_size, reterr);

	(void)ctx;
	if (r < 0)
		return r;
	*ret_fd = open_again(fd);
	return *ret_fd < 0 ? sio_fail(reterr, -errno, "IMPORT: %s", strerror(errno)) : 0;
}

static int status_new(void *ctx, int *ret_fd, uint64_t *ret_size)
{
	const struct sio_status_page page = {.magic = SIO_STATUS_MAGIC, .version = 1};
	int fd = memfd_create("smartio-status", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)ctx;
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, STATUS_BYTES) < 0 || pwrite(fd, &page, sizeof(page), 0) != sizeof(page) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0) {
		close(fd);
		return -EIO;
	}
	*ret_fd = fd;
	*ret_size = STATUS_BYTES;
	return 0;
}

/* ---- interrupts ---- */

static int irq_new(void *ctx, int *ret_fd)
{
	(void)ctx;
	*ret_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return *ret_fd < 0 ? -errno : 0;
}

static void irq_move(void *ctx, int from, int to)
{
	eventfd_t n;

	(void)ctx;
	if (eventfd_read(from, &n) == 0 && to >= 0)
		eventfd_write(to, 1);
}

static void close_fd(void *ctx, int fd)
{
	(void)ctx;
	close(fd);
}

/* ---- devices ---- */

static int device_open(void *ctx, uint64_t id, struct vfio_space *ret, struct sio_err *reterr)
{
	struct vfio_live *l = ctx;
	struct vfio_unit *u = vfio_unit_find(l, id);
	char from[VFIO_NAME];
	int r;

	if (!u)
		return sio_fail(reterr, -ENODEV, "DEVICE_OPEN: the device has gone");
	u->reached = vfio_reach_left(l, u, from);
	if (u->reached) {
		u->busy = true;
		return sio_fail(reterr, -EBUSY,
				"%s: programs whose smartio-vfio was killed still have %s, which "
				"reads and writes its memory",
				u->name, from);
	}
	r = vfio_kernel_open(u, vfio_unit_partner(l, u), ret, reterr);
	if (r < 0)
		return r;
	vfio_reach_opened(l, u);
	vfio_store_device(l, u);
	return 0;
}

static int device_again(void *ctx, const struct sio_evt_device *info, struct vfio_space *ret,
			struct sio_err *reterr)
{
	return vfio_unit_again(ctx, info, ret, reterr);
}

static void device_close(void *ctx, uint64_t id)
{
	struct vfio_unit *u = vfio_unit_find(ctx, id);

	if (!u)
		return;
	/* It was unmapped from all others, and when it is closed, device remove looks for that. */
	if (u->going)
		vfio_reach_gone(ctx, u);
	if (vfio_unit_partner(ctx, u))
		vfio_kernel_stop(u);
	vfio_store_device_closed(ctx, u);
	vfio_kernel_close(u);
}

static int bar(void *ctx, uint64_t id, const struct sio_req_bar *m, int *ret_fd,
	       uint64_t *ret_offset, struct sio_err *reterr)
{
	const struct vfio_unit *u = vfio_unit_find(ctx, id);

	if (!u || u->fd[VFIO_DEVICE] < 0)
		return sio_fail(reterr, -ENODEV, "BAR: the device has gone");
	if (!u->bar[m->bar].mappable)
		return sio_fail(reterr, -EOPNOTSUPP,
				"BAR: VFIO lets nobody map BAR %u of %s (smaller than a page?)",
				m->bar, u->name);
	*ret_fd = u->fd[VFIO_DEVICE];
	*ret_offset = u->bar[m->bar].offset + m->offset;
	return 0;
}

static int map(void *ctx, uint64_t id, int fd, const struct sio_req_dmamap *m,
	       struct sio_dev_addr iova, struct sio_err *reterr)
{
	const struct vfio_unit *u = vfio_unit_find(ctx, id);

	return u ? vfio_kernel_map(u, fd, m, iova, reterr)
		 : sio_fail(reterr, -ENODEV, "DMAMAP: the device has gone");
}

static int map_bar(void *ctx, uint64_t id, uint64_t of, uint32_t number, uint64_t offset,
		   const struct sio_req_dmamap *m, struct sio_dev_addr iova, struct sio_err *reterr)
{
	const struct vfio_unit *u = vfio_unit_find(ctx, id), *other = vfio_unit_find(ctx, of);
	int r;

	if (!u || !other || other->fd[VFIO_DEVICE] < 0)
		return sio_fail(reterr, -ENODEV, "DMAMAP: a device has gone");
	/* By iommufd the kernel takes the mapping away when the other one is closed. */
	r = u->by == &vfio_by_group ? vfio_reach_note(ctx, u, other, reterr) : 0;
	if (r < 0)
		return r;
	return vfio_kernel_map_bar(u, other, number, offset, m, iova, reterr);
}

/* What VFIO does not unmap a device may still write to: nothing may go on as if it could not. */
static void unmap(void *ctx, uint64_t id, struct sio_dev_addr iova, uint64_t length)
{
	const struct vfio_unit *u = vfio_unit_find(ctx, id);
	int r = u ? vfio_kernel_unmap(u, iova, length) : 0;

	if (r < 0) {
		vfio_log("%s: %#" PRIx64 " + %#" PRIx64 " is not unmapped: %s", u->name, iova.addr,
			 length, strerror(-r));
		abort();
	}
}

static int vector(void *ctx, uint64_t id, uint32_t number, int fd, struct sio_err *reterr)
{
	struct vfio_unit *u = vfio_unit_find(ctx, id);

	return u ? vfio_kernel_vector(u, number, fd, reterr)
		 : sio_fail(reterr, -ENODEV, "VECTOR: the device has gone");
}

static void vector_again(void *ctx, uint64_t id, uint32_t number)
{
	struct vfio_unit *u = vfio_unit_find(ctx, id);

	if (u && number < VFIO_VECTORS)
		u->sinks[number] = true;
}

static void unmap_rest(void *ctx, uint64_t id, struct sio_dev_addr iova, uint64_t length)
{
	const struct vfio_unit *u = vfio_unit_find(ctx, id);
	int r = u && length ? vfio_kernel_unmap_all(u, iova, length) : 0;

	if (r < 0)
		vfio_log("%s: what is mapped in %#" PRIx64 " + %#" PRIx64 ": %s", u->name,
			 iova.addr, length, strerror(-r));
}

static int reset(void *ctx, uint64_t id, struct sio_err *reterr)
{
	struct vfio_unit *u = vfio_unit_find(ctx, id);

	return u ? vfio_kernel_reset(u, reterr)
		 : sio_fail(reterr, -ENODEV, "RESET: the device has gone");
}

/* By sysfs, as beside smartio.ko. */
static int config(void *ctx, const char *name, const struct sio_req_config *m, uint32_t *ret,
		  struct sio_err *reterr)
{
	struct shim_call *c = calloc(1, sizeof(*c));
	int r;

	(void)ctx;
	if (!c)
		return sio_fail(reterr, -ENOMEM, "CONFIG: out of memory: " SIO_MORE_MEMORY);
	memcpy(&c->req, m, sizeof(*m));
	shim_device_config(c, name, m);
	r = c->answer.h.error;
	if (r == 0)
		*ret = ((const struct sio_evt_config *)(const void *)&c->answer)->value;
	else
		sio_fail(reterr, r, "%s", c->answer.error.text);
	free(c);
	return r;
}

static uint64_t interrupts(void *ctx, const char *name)
{
	(void)ctx;
	return shim_device_interrupts(name);
}

static int send_evt(void *ctx, const void *evt, size_t len, const int *fds, unsigned n_fds)
{
	return vfio_socket_send(ctx, evt, len, fds, n_fds);
}

const struct vfio_ops vfio_live_ops = {
	.owner_new = owner_new,
	.owner_free = owner_free,
	.memory_new = memory_new,
	.memory_take = memory_take,
	.irq_new = irq_new,
	.irq_move = irq_move,
	.status_new = status_new,
	.close = close_fd,
	.identity = identity,
	.device_open = device_open,
	.device_close = device_close,
	.bar = bar,
	.map = map,
	.map_bar = map_bar,
	.unmap = unmap,
	.vector = vector,
	.reset = reset,
	.config = config,
	.interrupts = interrupts,
	.keep_head = vfio_store_keep_head,
	.keep_device = vfio_store_keep_device,
	.keep = vfio_store_keep,
	.forget = vfio_store_forget,
	.owner_again = owner_again,
	.device_again = device_again,
	.vector_again = vector_again,
	.unmap_rest = unmap_rest,
	.send = send_evt,
};
