/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that back drives, over one io_uring for all of them. What the kernel cannot do at once its
 * own threads do, so the loop never waits for a disk. The completions wake it by an event
 * descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <liburing.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <utlist.h>

#include "emu/live/live.h"

#define ENTRIES 256u
#define KEEP_PIECE (2 << 20) /* larger pieces of memory are given back at once */
#define KEEP_ALL (64 << 20)  /* of the others only what exceeds this */
/*
 * A file that an emulator had is locked until the kernel has ended what it had begun, which is some
 * time after its death. While hosts run nobody waits for that.
 */
#define LOCK_TRIES 500
#define LOCK_PAUSE_NS 10000000

struct live_file {
	struct live_file *next;
	int fd;
	dev_t dev;
	ino_t ino;
};

struct live_store {
	struct emu_store store;
	struct io_uring ring;
	struct live_source source; /* fd: the event descriptor */
	const struct live *live;
	bool watched;
	struct live_file *files;
	struct emu_store_queue waiting; /* started, and not in the ring yet */
};

static struct live_store *to_store(struct emu_store *s)
{
	return (struct live_store *)s;
}

/* ---- files ---- */

static int check_kind(const char *path, const struct stat *st, struct sio_err *reterr)
{
	if (S_ISREG(st->st_mode))
		return 0;
	return sio_fail(reterr, -EINVAL, "file %s: it is %s; a regular file is right", path,
			S_ISDIR(st->st_mode)   ? "a directory"
			: S_ISBLK(st->st_mode) ? "a block device"
			: S_ISCHR(st->st_mode) ? "a character device"
					       : "a pipe or a socket");
}

static int lock(const char *path, int fd, unsigned tries, struct sio_err *reterr)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};

	for (unsigned i = 0; i < tries; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return sio_fail(reterr, -errno, "file %s: cannot be locked: %s", path,
					strerror(errno));
		if (tries > 1)
			nanosleep(&pause, NULL);
	}
	return sio_fail(reterr, -EBUSY,
			"file %s: another program has it locked, perhaps the emulator of another "
			"cluster; a file that nobody uses is right",
			path);
}

/*
 * The file's name survives a power loss from here on. Where that cannot be had the drive works, and
 * a power loss may take the whole file away for some seconds.
 */
static void sync_directory(const char *path)
{
	char *real = realpath(path, NULL);
	int fd = real ? open(dirname(real), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	/* EINVAL: the file system has no such thing. */
	if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
		live_log("file %s is new, and its directory cannot be synced: %s", path,
			 strerror(errno));
	if (fd >= 0)
		close(fd);
	free(real);
}

/* Only who has the lock looks at the size: the one before may just have set it. */
static int fit(const char *path, int fd, uint64_t size, struct sio_err *reterr)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return sio_fail(reterr, -errno, "file %s: %s", path, strerror(errno));
	if ((uint64_t)st.st_size == size)
		return 0;
	if (st.st_size != 0)
		return sio_fail(reterr, -EINVAL,
				"file %s: it has %" PRIu64
				" bytes, and the topology says size %" PRIu64 "; the same is right",
				path, (uint64_t)st.st_size, size);
	sync_directory(path); /* first: one of the right size was synced by who made it so */
	if (ftruncate(fd, (off_t)size) < 0)
		return sio_fail(reterr, -errno,
				"file %s: cannot be made %" PRIu64 " bytes long: %s", path, size,
				strerror(errno));
	return 0;
}

static bool is_open(const struct live_store *s, const struct stat *st)
{
	for (const struct live_file *f = s->files; f; f = f->next)
		if (f->dev == st->st_dev && f->ino == st->st_ino)
			return true;
	return false;
}

/* What is not a regular file is not even opened: that alone moves some devices. */
static int open_fd(const char *path, struct sio_err *reterr)
{
	struct stat st;
	int fd, rc = stat(path, &st) == 0 ? check_kind(path, &st, reterr) : 0;

	if (rc < 0)
		return rc;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
	if (fd < 0)
		return sio_fail(reterr, -errno, "file %s: cannot be opened to read and write: %s",
				path, strerror(errno));
	return fd;
}

static int open_file(struct live_store *s, struct live_file *f, const char *path, uint64_t size,
		     struct sio_err *reterr)
{
	struct stat st;
	int rc;

	if (fstat(f->fd, &st) < 0)
		return sio_fail(reterr, -errno, "file %s: %s", path, strerror(errno));
	rc = check_kind(path, &st, reterr);
	/* With O_NONBLOCK the kernel returns -EAGAIN, where a thread of its own would wait. */
	if (rc == 0 && fcntl(f->fd, F_SETFL, 0) < 0)
		rc = sio_fail(reterr, -errno, "file %s: %s", path, strerror(errno));
	if (rc == 0 && is_open(s, &st))
		rc = sio_fail(
			reterr, -EBUSY,
			"file %s: another namespace of this cluster has it, perhaps by another "
			"name; one of its own for each is right",
			path);
	if (rc == 0)
		rc = lock(path, f->fd, s->live->serving ? 1 : LOCK_TRIES, reterr);
	if (rc == 0)
		rc = fit(path, f->fd, size, reterr);
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	return rc;
}

/*
 * The data of commands, up to 1 MiB each, come and go: the C library would give their memory back
 * to the system each time, and every page of the next command would cost a fault.
 */
static void keep_memory(void)
{
#ifdef M_TRIM_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, KEEP_PIECE);
	mallopt(M_TRIM_THRESHOLD, KEEP_ALL);
#endif
}

static int start_ring(struct live_store *s, struct sio_err *reterr)
{
	int rc;

	if (s->source.fd >= 0)
		return 0;
	keep_memory();
	s->source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->source.fd < 0)
		return sio_fail(reterr, -errno, "files of drives: no event descriptor: %s",
				strerror(errno));
	rc = io_uring_queue_init(ENTRIES, &s->ring, 0);
	if (rc < 0) {
		close(s->source.fd);
		s->source.fd = -1;
		return sio_fail(reterr, rc,
				"files of drives need io_uring, which this system refuses: %s "
				"(see kernel.io_uring_disabled, and what confines this program)",
				strerror(-rc));
	}
	rc = io_uring_register_eventfd(&s->ring, s->source.fd);
	if (rc < 0) {
		io_uring_queue_exit(&s->ring);
		close(s->source.fd);
		s->source.fd = -1;
		return sio_fail(reterr, rc, "files of drives: io_uring: %s", strerror(-rc));
	}
	return 0;
}

static int store_open(struct emu_store *store, const char *path, uint64_t size, void **ret,
		      struct sio_err *reterr)
{
	struct live_store *s = to_store(store);
	struct live_file *f;
	int rc = start_ring(s, reterr);

	if (rc < 0)
		return rc;
	f = calloc(1, sizeof(*f));
	if (!f)
		return sio_fail(reterr, -ENOMEM, "no memory for file %s: " SIO_MORE_MEMORY, path);
	f->fd = open_fd(path, reterr);
	if (f->fd < 0) {
		rc = f->fd;
		goto free_file;
	}
	rc = open_file(s, f, path, size, reterr);
	if (rc < 0)
		goto close_fd;
	LL_PREPEND(s->files, f);
	*ret = f;
	return 0;

close_fd:
	close(f->fd);
free_file:
	free(f);
	return rc;
}

static void store_close(struct emu_store *store, void *file)
{
	struct live_store *s = to_store(store);
	struct live_file *f = file;

	LL_DELETE(s->files, f);
	if (fdatasync(f->fd) < 0)
		live_log("a drive's file may lack what was written last: %s", strerror(errno));
	close(f->fd);
	free(f);
}

/* ---- operations ---- */

static void prepare(struct io_uring_sqe *sqe, struct emu_store_io *io)
{
	int fd = ((const struct live_file *)io->file)->fd;

	switch (io->op) {
	case EMU_STORE_READ:
		io_uring_prep_read(sqe, fd, io->data, (unsigned)io->length, io->offset);
		break;
	case EMU_STORE_WRITE:
		io_uring_prep_write(sqe, fd, io->data, (unsigned)io->length, io->offset);
		sqe->rw_flags = io->durable ? RWF_DSYNC : 0;
		break;
	case EMU_STORE_ZERO:
		io_uring_prep_fallocate(sqe, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					(off_t)io->offset, (off_t)io->length);
		break;
	case EMU_STORE_SYNC:
		io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
		break;
	}
	io_uring_sqe_set_data(sqe, io);
}

/* What the kernel does not take now, for want of memory, it is given by the next poll. */
static void submit(struct live_store *s)
{
	do {
		struct io_uring_sqe *sqe;

		while (s->waiting.head && (sqe = io_uring_get_sqe(&s->ring)))
			prepare(sqe, emu_store_take(&s->waiting));
		if (io_uring_sq_ready(&s->ring) && io_uring_submit(&s->ring) < 0)
			return;
	} while (s->waiting.head);
}

static void store_start(struct emu_store *store, struct emu_store_io *io)
{
	emu_store_put(&to_store(store)->waiting, io);
}

/*
 * The kernel drops what none of its threads has begun, and interrupts what can be. What the answer
 * says is of no use: the operation's own completion comes in any case. Without room in the ring it
 * is carried out.
 */
static void store_cancel(struct emu_store *store, struct emu_store_io *io)
{
	struct live_store *s = to_store(store);
	struct io_uring_sqe *sqe;

	submit(s);
	sqe = io_uring_get_sqe(&s->ring);
	if (!sqe)
		return;
	io_uring_prep_cancel(sqe, io, 0);
	io_uring_sqe_set_data(sqe, NULL);
	submit(s);
}

static void store_poll(struct emu_store *store)
{
	struct live_store *s = to_store(store);
	struct io_uring_cqe *cqe;

	submit(s);
	while (io_uring_peek_cqe(&s->ring, &cqe) == 0) {
		struct emu_store_io *io = io_uring_cqe_get_data(cqe);
		int result = cqe->res;

		io_uring_cqe_seen(&s->ring, cqe);
		if (!io) /* a cancellation's */
			continue;
		io->result = result;
		emu_store_ended(io);
	}
}

static void store_wait(struct emu_store *store)
{
	struct live_store *s = to_store(store);

	submit(s);
	/* What the kernel did not take is given to it again; if it refuses, nobody waits. */
	if (io_uring_submit_and_wait(&s->ring, 1) >= 0)
		store_poll(store);
}

static const struct emu_store_ops ops = {
	.open = store_open,
	.close = store_close,
	.start = store_start,
	.cancel = store_cancel,
	.poll = store_poll,
	.wait = store_wait,
};

/* ---- its life ---- */

struct emu_store *live_store(void *ctx)
{
	struct live *l = ctx;

	if (!l->store) {
		l->store = calloc(1, sizeof(*l->store));
		if (!l->store)
			return NULL;
		l->store->live = l;
		l->store->store.ops = &ops;
		l->store->source = (struct live_source){.kind = LIVE_STORE, .fd = -1};
	}
	return &l->store->store;
}

int live_store_watch(struct live *l, struct sio_err *reterr)
{
	int rc;

	if (!l->store || l->store->source.fd < 0 || l->store->watched)
		return 0;
	rc = live_watch(l, &l->store->source, EPOLLIN);
	l->store->watched = rc == 0;
	return rc < 0 ? sio_fail(reterr, rc, "epoll: %s", strerror(-rc)) : 0;
}

/* The models look for what has ended by themselves. */
void live_store_event(struct live *l)
{
	uint64_t n;

	if (read(l->store->source.fd, &n, sizeof(n)) < 0)
		return;
}

void live_store_close(struct live *l)
{
	if (!l->store)
		return;
	if (l->store->source.fd >= 0) {
		io_uring_queue_exit(&l->store->ring);
		close(l->store->source.fd);
	}
	free(l->store);
	l->store = NULL;
}
