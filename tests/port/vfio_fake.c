/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfio_fake.h"

#define MAX_EVENTS 1024
#define RAM (16u << 20)
#define LOWEST 0x10000u
#define SPACE (1ull << 39)

/* ---- the fake machine ---- */

static int owner_new(void *ctx, uint64_t id, int *ret_fd)
{
	struct fake *f = ctx;
	int fds[2];

	if (f->n_owners == FAKE_OWNERS || pipe2(fds, O_CLOEXEC) < 0)
		return -EMFILE;
	f->owner[f->n_owners].id = id;
	f->owner[f->n_owners++].fd = fds[0];
	*ret_fd = fds[1];
	return 0;
}

static void owner_free(void *ctx, uint64_t id)
{
	struct fake *f = ctx;

	for (unsigned i = 0; i < f->n_owners; i++)
		if (f->owner[i].id == id) {
			close(f->owner[i].fd);
			f->owner[i] = f->owner[--f->n_owners];
			return;
		}
}

static int memory_new(void *ctx, uint64_t size, bool huge, int *ret_fd, struct sio_err *reterr)
{
	(void)ctx;
	(void)huge;
	(void)reterr;
	*ret_fd = memfd_create("port", MFD_CLOEXEC);
	return *ret_fd < 0 || ftruncate(*ret_fd, (off_t)size) < 0 ? -errno : 0;
}

static int memory_take(void *ctx, int fd, uint32_t kind, int *ret_fd, uint64_t *ret_size,
		       struct sio_err *reterr)
{
	struct stat st;

	(void)ctx;
	(void)kind;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return sio_fail(reterr, -EBADF, "IMPORT: a file is right");
	*ret_size = (uint64_t)st.st_size;
	*ret_fd = dup(fd);
	return *ret_fd < 0 ? -errno : 0;
}

static int irq_new(void *ctx, int *ret_fd)
{
	(void)ctx;
	*ret_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return *ret_fd < 0 ? -errno : 0;
}

static void irq_move(void *ctx, int from, int to)
{
	(void)ctx;
	(void)from;
	(void)to;
}

static int status_new(void *ctx, int *ret_fd, uint64_t *ret_size)
{
	*ret_size = 4096;
	return memory_new(ctx, *ret_size, false, ret_fd, NULL);
}

static void close_fd(void *ctx, int fd)
{
	(void)ctx;
	close(fd);
}

static int identity(void *ctx, int fd, uint64_t ret[2])
{
	const struct fake *f = ctx;
	struct stat st, owner;

	if (fstat(fd, &st) < 0)
		return -EBADF;
	for (unsigned i = 0; i < f->n_owners; i++)
		if (fstat(f->owner[i].fd, &owner) == 0 && owner.st_ino == st.st_ino) {
			ret[0] = 0;
			ret[1] = f->owner[i].id;
			return 0;
		}
	if (!S_ISREG(st.st_mode))
		return -EBADF;
	ret[0] = st.st_dev;
	ret[1] = st.st_ino;
	return 0;
}

static int device_open_fake(void *ctx, uint64_t id, struct vfio_space *ret, struct sio_err *reterr)
{
	struct fake *f = ctx;

	(void)id;
	(void)reterr;
	f->opens++;
	*ret = (struct vfio_space){.lowest = LOWEST,
				   .highest = f->wide ? UINT64_MAX : SPACE - 1,
				   .vectors = f->few ? f->few : UINT32_MAX,
				   .n_holes = 1,
				   .hole = {{0xfee00000, 1 << 20}}};
	return 0;
}

static void device_close_fake(void *ctx, uint64_t id)
{
	struct fake *f = ctx;

	(void)id;
	if (--f->opens || f->ending) /* the other one's; its descriptors are kept */
		return;
	f->maps = f->vectors = 0;
	f->mapped = f->bytes = 0;
}

static int bar(void *ctx, uint64_t id, const struct sio_req_bar *m, int *ret_fd,
	       uint64_t *ret_offset, struct sio_err *reterr)
{
	struct fake *f = ctx;

	(void)id;
	(void)reterr;
	*ret_fd = f->device_fd;
	*ret_offset = (uint64_t)m->bar << 40 | m->offset;
	return 0;
}

static int map(void *ctx, uint64_t id, int fd, const struct sio_req_dmamap *m,
	       struct sio_dev_addr iova, struct sio_err *reterr)
{
	struct fake *f = ctx;

	(void)id;
	(void)reterr;
	f->wrong |= fd < 0 || iova.addr < LOWEST;
	f->maps++;
	f->offset = m->offset;
	f->mapped += iova.addr + m->length;
	f->bytes += m->length;
	return 0;
}

static int map_bar(void *ctx, uint64_t id, uint64_t of, uint32_t number, uint64_t offset,
		   const struct sio_req_dmamap *m, struct sio_dev_addr iova, struct sio_err *reterr)
{
	struct fake *f = ctx;

	f->wrong |= of == id || number || offset >= 16384;
	return map(ctx, id, f->device_fd, m, iova, reterr);
}

static void unmap(void *ctx, uint64_t id, struct sio_dev_addr iova, uint64_t length)
{
	struct fake *f = ctx;

	(void)id;
	f->wrong |= f->maps == 0;
	f->maps--;
	f->mapped -= iova.addr + length;
	f->bytes -= length;
}

static int vector(void *ctx, uint64_t id, uint32_t number, int fd, struct sio_err *reterr)
{
	struct fake *f = ctx;

	(void)id;
	(void)reterr;
	f->vectors = fd >= 0 ? f->vectors | 1u << number : f->vectors & ~(1u << number);
	return 0;
}

static int reset(void *ctx, uint64_t id, struct sio_err *reterr)
{
	(void)reterr;
	((struct fake *)ctx)->resetting = id;
	return 0;
}

static int config(void *ctx, const char *name, const struct sio_req_config *m, uint32_t *ret,
		  struct sio_err *reterr)
{
	(void)ctx;
	(void)name;
	(void)m;
	(void)reterr;
	*ret = 0x1234;
	return 0;
}

static uint64_t interrupts(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
	return 0;
}

static int send_evt(void *ctx, const void *evt, size_t len, const int *fds, unsigned n_fds)
{
	struct fake *f = ctx;
	struct fake_evt *e;

	if (f->ending) /* no daemon is connected */
		return 0;
	f->overflowed |= f->queued >= MAX_EVENTS;
	if (f->queued >= MAX_EVENTS && ((const struct sio_evt *)evt)->op >= SIO_EV_LINK)
		return -ENOBUFS;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->len = len;
	memcpy(e->data, evt, len);
	for (; e->n_fds < n_fds; e->n_fds++)
		e->fds[e->n_fds] = dup(fds[e->n_fds]);
	*f->last = e;
	f->last = &e->next;
	f->queued++;
	return 0;
}

/* ---- what outlives the process ---- */

static unsigned row_of(const struct fake_kept *k, uint64_t id)
{
	unsigned i = 0;

	while (i < k->n && k->record[i].id != id)
		i++;
	return i;
}

static void keep_head(void *ctx, const struct vfio_head *h)
{
	struct fake *f = ctx;

	f->kept->head = *h;
}

static void keep_device(void *ctx, const struct vfio_device_record *r)
{
	struct fake *f = ctx;
	struct vfio_device_record *to = f->kept->device;
	unsigned i = 0;

	while (i < FAKE_DEVICES && to[i].info.id != r->info.id)
		i++;
	for (unsigned n = 0; i == FAKE_DEVICES && n < FAKE_DEVICES; n++)
		i = to[n].info.id ? i : n;
	to[i] = *r;
}

static void keep(void *ctx, const struct vfio_record *r, int fd)
{
	struct fake *f = ctx;
	struct fake_kept *k = f->kept;
	unsigned i = row_of(k, r->id);

	if (i == FAKE_KEPT) {
		f->wrong = true;
		return;
	}
	if (i == k->n) {
		k->n++;
		k->fd[i] = -1;
	}
	if (r->kind == SIO_KIND_OWNER)
		for (unsigned n = 0; n < f->n_owners; n++)
			fd = f->owner[n].id == r->id ? f->owner[n].fd : fd;
	if (fd >= 0 && k->fd[i] < 0)
		k->fd[i] = dup(fd);
	k->record[i] = *r;
}

static void forget(void *ctx, uint64_t id)
{
	struct fake *f = ctx;
	struct fake_kept *k = f->kept;
	unsigned i = row_of(k, id);

	if (i == k->n) {
		f->wrong = true; /* it was never kept, or is forgotten twice */
		return;
	}
	if (k->fd[i] >= 0)
		close(k->fd[i]);
	k->n--;
	k->record[i] = k->record[k->n];
	k->fd[i] = k->fd[k->n];
}

static int take_fd(void *ctx, uint64_t id)
{
	const struct fake *f = ctx;
	int fd = f->kept->fd[row_of(f->kept, id)];

	return fd < 0 ? -1 : dup(fd);
}

static int owner_again(void *ctx, uint64_t id, int fd)
{
	struct fake *f = ctx;

	f->owner[f->n_owners].id = id;
	f->owner[f->n_owners++].fd = fd;
	return 0;
}

static int device_again(void *ctx, const struct sio_evt_device *info, struct vfio_space *ret,
			struct sio_err *reterr)
{
	return device_open_fake(ctx, info->id, ret, reterr);
}

static void vector_again(void *ctx, uint64_t id, uint32_t number)
{
	struct fake *f = ctx;

	(void)id;
	f->wrong |= !(f->vectors & 1u << number);
}

static void unmap_rest(void *ctx, uint64_t id, struct sio_dev_addr iova, uint64_t length)
{
	struct fake *f = ctx;

	(void)id;
	f->wrong |= iova.addr < LOWEST || iova.addr + (length - 1) < iova.addr;
	f->gaps += length;
}

static const struct vfio_ops ops = {
	.owner_new = owner_new,
	.owner_free = owner_free,
	.memory_new = memory_new,
	.memory_take = memory_take,
	.irq_new = irq_new,
	.irq_move = irq_move,
	.status_new = status_new,
	.close = close_fd,
	.identity = identity,
	.device_open = device_open_fake,
	.device_close = device_close_fake,
	.bar = bar,
	.map = map,
	.map_bar = map_bar,
	.unmap = unmap,
	.vector = vector,
	.reset = reset,
	.config = config,
	.interrupts = interrupts,
	.keep_head = keep_head,
	.keep_device = keep_device,
	.keep = keep,
	.forget = forget,
	.owner_again = owner_again,
	.device_again = device_again,
	.vector_again = vector_again,
	.unmap_rest = unmap_rest,
	.send = send_evt,
};

void fake_drop_events(struct fake *f)
{
	for (struct fake_evt *e; (e = f->first);) {
		f->first = e->next;
		for (unsigned i = 0; i < e->n_fds; i++)
			close(e->fds[i]);
		free(e);
	}
	f->last = &f->first;
	f->queued = 0;
	f->overflowed = false;
}

/* ---- its life ---- */

static const struct sio_evt_device function = {.bar_size = {16384},
					       .bdf = 0x100,
					       .msix_count = 17,
					       .msix_offset = 8192,
					       .resets = 1u << SIO_RESET_FUNCTION,
					       .name = "0000:01:00.0"};

static int new_port(struct fake *f)
{
	static const struct vfio_start start = {
		.boot_generation = 1, .ram_total = RAM, .memory_limit = RAM};

	f->ops = ops;
	if (!f->kept)
		f->ops.keep = NULL;
	return vfio_port_new(&f->ops, f, &start, &f->port);
}

int fake_open(struct fake *f, bool kept)
{
	int r;

	f->socket = -1;
	f->last = &f->first;
	f->device_fd = eventfd(0, EFD_CLOEXEC);
	f->kept = kept ? calloc(1, sizeof(*f->kept)) : NULL;
	if (kept && !f->kept)
		return -ENOMEM;
	r = new_port(f);
	if (r == 0)
		f->device = vfio_port_device_here(f->port, &function);
	return r;
}

/*
 * What the daemon has not read yet stays for it, which makes it the same one. A reset that goes on
 * would be lost with the process, and that events were dropped.
 */
int fake_restart(struct fake *f)
{
	struct vfio_device_record device[FAKE_DEVICES];
	struct vfio_kept k = {.n_devices = FAKE_DEVICES, .device = device, .take_fd = take_fd};
	struct vfio_record *record;
	uint64_t bytes = f->bytes;
	bool open;
	int r;

	if (f->resetting || f->overflowed)
		return 0;
	f->ending = true;
	vfio_port_free(f->port);
	f->wrong |= f->n_owners != 0;
	k.head = f->kept->head;
	k.n_records = f->kept->n;
	memcpy(device, f->kept->device, sizeof(device));
	record = malloc((k.n_records + 1) * sizeof(*record));
	r = record ? new_port(f) : -ENOMEM;
	if (r == 0) {
		memcpy(record, f->kept->record, k.n_records * sizeof(*record));
		k.record = record;
		open = device[0].present && device[0].open;
		f->gaps = 0;
		r = vfio_port_restore(f->port, &k);
		/* What is in use is in none of the gaps, and they are all the rest. */
		f->wrong |= open && f->gaps + bytes != (f->wide ? 0 : SPACE) - LOWEST;
	}
	/* A new process looks at what is bound, as this one did at first. */
	for (unsigned i = 0; r == 0 && i < FAKE_DEVICES; i++)
		if (device[i].present)
			vfio_port_device_here(f->port, i ? &device[i].info : &function);
	free(record);
	f->ending = false;
	f->restarts++;
	return r;
}

void fake_lose(struct fake *f, uint64_t id)
{
	unsigned i = row_of(f->kept, id);

	close(f->kept->fd[i]);
	f->kept->fd[i] = -1;
}

int fake_close(struct fake *f)
{
	int wrong;

	vfio_port_device_gone(f->port, f->device);
	wrong = f->wrong || f->maps || f->mapped || f->vectors || f->n_owners;
	if (f->kept) {
		for (unsigned i = 0; i < f->kept->n; i++) {
			wrong |= f->kept->record[i].kind == SIO_KIND_OWNER;
			if (f->kept->fd[i] >= 0)
				close(f->kept->fd[i]);
		}
		wrong |= f->restarts == 0;
	}
	vfio_port_free(f->port);
	free(f->kept);
	close(f->device_fd);
	fake_drop_events(f);
	return wrong;
}

void fake_look(struct fake *f)
{
	uint64_t id = f->resetting;

	f->resetting = 0;
	if (id)
		vfio_port_reset_done(f->port, id, 0);
	for (unsigned i = 0; i < f->n_owners; i++) {
		struct pollfd p = {.fd = f->owner[i].fd};

		if (poll(&p, 1, 0) == 1 && p.revents & POLLHUP) {
			vfio_port_owner_hup(f->port, f->owner[i].id);
			i = -1u;
		}
	}
}
