/* SPDX-License-Identifier: BSD-2-Clause */
/* The room's operations, as Linux does them: memfds, eventfds, pipes, clock, random numbers. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "emu/live/live.h"

#define LARGE_PAGE (2ul << 20)

void live_log(const char *fmt, ...)
{
	char text[640];
	struct timespec ts;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	fprintf(stderr, "[%lld.%06ld] smartio-emu: %s\n", (long long)ts.tv_sec, ts.tv_nsec / 1000,
		text);
}

int live_watch(struct live *l, struct live_source *s, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = s};

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, s->fd, &ev) < 0 ? -errno : 0;
}

static int mem_new(void *ctx, const char *name, uint64_t size, struct emu_mem *ret)
{
	char label[48];
	void *data;
	int fd, rc;

	(void)ctx;
	snprintf(label, sizeof(label), "smartio-%s", name);
	fd = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		goto close_fd;
	data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		goto close_fd;
	*ret = (struct emu_mem){.fd = fd, .data = data, .size = size};
	return 0;

close_fd:
	rc = -errno;
	close(fd);
	return rc;
}

static int mem_seal(void *ctx, struct emu_mem *m)
{
	(void)ctx;
	return fcntl(m->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0 ? -errno : 0;
}

static void mem_free(void *ctx, struct emu_mem *m)
{
	(void)ctx;
	munmap(m->data, m->size);
	close(m->fd);
}

/* Engines may be at work there: to them the pages are the ones or the others. */
static int place(const struct emu_mem *whole, uint64_t offset, uint64_t size, int fd, off_t in_file)
{
	void *at = (uint8_t *)whole->data + offset;

	at = mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, in_file);
	return at == MAP_FAILED ? -errno : 0;
}

static int mem_place(void *ctx, const struct emu_mem *whole, uint64_t offset,
		     const struct emu_mem *part)
{
	(void)ctx;
	return place(whole, offset, part->size, part->fd, 0);
}

/* Without memory for that they stay apart until the next time. */
static void mem_put_back(void *ctx, const struct emu_mem *whole, uint64_t offset,
			 const struct emu_mem *part)
{
	(void)ctx;
	if (pwrite(whole->fd, part->data, part->size, (off_t)offset) == (ssize_t)part->size)
		place(whole, offset, part->size, whole->fd, (off_t)offset);
}

/* It cannot be cut short under us, so no access to it can fail for that. */
static int mem_take(void *ctx, int fd, uint64_t offset, uint64_t size, struct emu_mem *ret)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;
	void *data;

	(void)ctx;
	/* Huge pages can be missing when they are touched, and are unmapped as a whole alone. */
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0 ||
	    (unsigned long)fs.f_type != TMPFS_MAGIC)
		return -EBADF;
	if (st.st_size < 0 || offset > (uint64_t)st.st_size || size > (uint64_t)st.st_size - offset)
		return -EINVAL;
	data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
	if (data == MAP_FAILED)
		return -errno;
	*ret = (struct emu_mem){.fd = fd, .data = data, .size = size};
	return 0;
}

static int mem_part(void *ctx, uint32_t node, uint64_t offset, uint64_t size, struct emu_mem *ret)
{
	const struct live *l = ctx;
	unsigned i = 0;
	void *data;
	int fd;

	while (i < l->n_pools && l->pool[i].node != node)
		i++;
	if (i == l->n_pools)
		return -ENOENT;
	fd = fcntl(l->pool[i].fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
	if (data == MAP_FAILED) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	*ret = (struct emu_mem){.fd = fd, .data = data, .size = size};
	return 0;
}

/* The pages go back to the system, and come as zeros when they are touched again. */
static void mem_zero(void *ctx, const struct emu_mem *m)
{
	(void)ctx;
	if (madvise(m->data, m->size, MADV_REMOVE) < 0)
		memset(m->data, 0, m->size);
}

/*
 * Aligned to large pages, and they are asked for: blocks at random places of a large drive then
 * miss the TLB less, which is a quarter of the time of copying 128 KiB. Where the system has none
 * to give, small ones serve.
 */
static void *bulk_new(void *ctx, uint64_t size)
{
	uint64_t room, before, behind;
	char *data;

	(void)ctx;
	if (__builtin_add_overflow(size, LARGE_PAGE, &room))
		return NULL;
	data = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (data == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)data % LARGE_PAGE;
	behind = (room - before - size) / SIO_PAGE_SIZE * SIO_PAGE_SIZE;
	if (before)
		munmap(data, before);
	if (behind)
		munmap(data + room - behind, behind);
	data += before;
	madvise(data, size, MADV_HUGEPAGE);
	return data;
}

static void bulk_free(void *ctx, void *data, uint64_t size)
{
	(void)ctx;
	munmap(data, size);
}

/* The pages go back to the system, and come as zeros when they are touched again. */
static void bulk_zero(void *ctx, void *data, uint64_t size)
{
	(void)ctx;
	if (madvise(data, size, MADV_DONTNEED) < 0)
		memset(data, 0, size);
}

/*
 * A pipe: its write end is the owner's descriptor; when the last copy of that closes, the read
 * end, which stays here, reports a hang-up. Nothing that is written into it is ever looked at.
 */
static int owner_new(void *ctx, unsigned host, uint64_t owner, int *ret_fd)
{
	struct live *l = ctx;
	struct live_owner *o = calloc(1, sizeof(*o));
	int fds[2], rc;

	if (!o)
		return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
		rc = -errno;
		goto free_owner;
	}
	o->source = (struct live_source){.kind = LIVE_OWNER, .host = host, .fd = fds[0]};
	o->key = (struct live_key){.id = owner, .host = host};
	rc = live_watch(l, &o->source, 0);
	if (rc < 0)
		goto close_fds;
	HASH_ADD(hh, l->owners, key, sizeof(o->key), o);
	if (!o->hh.tbl) {
		rc = -ENOMEM;
		goto close_fds;
	}
	*ret_fd = fds[1];
	return 0;

close_fds:
	close(fds[0]);
	close(fds[1]);
free_owner:
	free(o);
	return rc;
}

static void owner_free(void *ctx, unsigned host, uint64_t owner)
{
	struct live_key key = {.id = owner, .host = host};
	struct live *l = ctx;
	struct live_owner *o;

	HASH_FIND(hh, l->owners, &key, sizeof(key), o);
	if (!o)
		return;
	HASH_DEL(l->owners, o);
	close(o->source.fd);
	o->source.fd = -1;
	o->next_dead = l->dead;
	l->dead = o;
}

void live_owners_bury(struct live *l)
{
	while (l->dead) {
		struct live_owner *o = l->dead;

		l->dead = o->next_dead;
		free(o);
	}
}

static int event_new(void *ctx, int *ret_fd)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	(void)ctx;
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int event_signal(void *ctx, int fd)
{
	return sio_eventfd_add(&((struct live *)ctx)->events, fd, 1);
}

/*
 * Anything else that can be written to may be full, and whoever waits for its reader waits for
 * ever.
 */
bool live_is_event(void *ctx, int fd)
{
	(void)ctx;
	return sio_eventfd_is(fd);
}

static int op_dup(void *ctx, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	(void)ctx;
	return copy < 0 ? -errno : copy;
}

static void op_close(void *ctx, int fd)
{
	(void)ctx;
	close(fd);
}

static uint64_t now(void *ctx)
{
	struct timespec ts;

	(void)ctx;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Tokens guard memory: without good random numbers there is no room. */
static uint64_t op_random(void *ctx)
{
	uint64_t value;

	(void)ctx;
	while (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value)) {
		if (errno == EINTR)
			continue;
		live_log("no random numbers: %s", strerror(errno));
		abort();
	}
	return value;
}

static void op_log(void *ctx, const char *text)
{
	(void)ctx;
	live_log("%s", text);
}

const struct emu_ops live_ops = {
	.grows = true,
	.mem_new = mem_new,
	.mem_seal = mem_seal,
	.mem_free = mem_free,
	.mem_place = mem_place,
	.mem_put_back = mem_put_back,
	.mem_take = mem_take,
	.mem_part = mem_part,
	.mem_zero = mem_zero,
	.bulk_new = bulk_new,
	.bulk_free = bulk_free,
	.bulk_zero = bulk_zero,
	.store = live_store,
	.owner_new = owner_new,
	.owner_free = owner_free,
	.event_new = event_new,
	.event_signal = event_signal,
	.event_check = live_is_event,
	.dup = op_dup,
	.close = op_close,
	.watch_new = live_watch_new,
	.watch_free = live_watch_free,
	.send = live_send,
	.engine_start = live_engine_start,
	.engine_watch = live_engine_watch,
	.engine_unwatch = live_engine_unwatch,
	.engines_stop = live_engines_stop,
	.engines_go = live_engines_go,
	.engine_report = live_engine_report,
	.machine_memory = live_machine_memory,
	.machine_message = live_machine_message,
	.machine_store = live_machine_store,
	.now = now,
	.random = op_random,
	.log = op_log,
};
