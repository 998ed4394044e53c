/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The world of a live process: with pages.c, the only file of the library with system calls and
 * threads.
 *
 * After fork() the child must not act as its parent: it closes every descriptor that the library
 * had open (the owner's, too, or the parent's death would go unnoticed) and gets another pid.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "session/pages.h"
#include "session/quick.h"
#include "wire/wire.h"

/* Of the smartiod that runs with the kernel module, on its first node. */
#define MACHINE_SOCKET "/run/smartiod/node.4"
#define NS_PER_S 1000000000ull
#define ONES_BYTES (2u << 20) /* of one mapping of the file of ones */
#define POLL_ON_STACK 16

struct sio_world_lock {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
};

struct sio_world_thread {
	pthread_t id;
	void (*fn)(void *);
	void *arg;
};

/* Descriptors that are the library's own, to be closed in a child. */
static struct {
	pthread_mutex_t mutex;
	unsigned char *open; /* a flag per descriptor */
	int size;
	int ones; /* the file of ones; -1: not made yet */
	uint32_t pid;
	void *library;
} live = {.mutex = PTHREAD_MUTEX_INITIALIZER, .ones = -1};

static pthread_once_t live_once = PTHREAD_ONCE_INIT;

/*
 * Note @fd as ours; with the mutex, which is taken before the descriptor is made: a fork between
 * the two would leave the child a copy that nobody closes. Return: @fd (-errno is passed on), or
 * -ENOMEM with it closed.
 */
static int own(int fd)
{
	unsigned char *p;
	int size = fd + 256;

	if (fd < 0)
		return -errno;
	if (fd >= live.size) {
		p = realloc(live.open, (size_t)size);
		if (!p) {
			close(fd);
			return -ENOMEM;
		}
		memset(p + live.size, 0, (size_t)(size - live.size));
		live.open = p;
		live.size = size;
	}
	live.open[fd] = 1;
	return fd;
}

static void before_fork(void)
{
	sio_pages_before_fork();
	pthread_mutex_lock(&live.mutex);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&live.mutex);
	sio_pages_after_fork(false);
}

static void after_fork_child(void)
{
	for (int fd = 0; fd < live.size; fd++)
		if (live.open[fd])
			close(fd);
	if (live.size)
		memset(live.open, 0, (size_t)live.size);
	live.ones = -1;
	live.pid = (uint32_t)getpid();
	sio_quick_forget();
	pthread_mutex_unlock(&live.mutex);
	sio_pages_after_fork(true);
}

static void live_init(void)
{
	live.pid = (uint32_t)getpid();
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static void live_close(struct sio_world *w, int fd)
{
	(void)w;
	pthread_mutex_lock(&live.mutex);
	if (fd >= 0 && fd < live.size)
		live.open[fd] = 0;
	close(fd);
	pthread_mutex_unlock(&live.mutex);
}

/* *ret_set: the user said so. */
static const char *socket_path(bool *ret_set)
{
	const char *set = getenv("SMARTIO_SOCKET");

	*ret_set = set && *set;
	return *ret_set ? set : MACHINE_SOCKET;
}

/* A real machine's leaves its socket when it is killed, or ends while programs are connected. */
static bool live_comes_again(struct sio_world *w)
{
	bool set;

	(void)w;
	return !strcmp(socket_path(&set), MACHINE_SOCKET);
}

static int live_connect(struct sio_world *w)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	bool set;
	const char *path = socket_path(&set);
	int fd;

	(void)w;
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	pthread_mutex_lock(&live.mutex);
	fd = own(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	pthread_mutex_unlock(&live.mutex);
	if (fd < 0)
		return fd;
	while (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int rc = -errno;

		if (rc == -EINTR)
			continue;
		live_close(w, fd);
		return rc == -ENOENT && !set ? -ENODATA : rc;
	}
	return fd;
}

static ssize_t live_send(struct sio_world *w, int fd, const void *buf, size_t len, const int *fds,
			 unsigned n_fds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(SIO_WIRE_MAX_FDS * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	(void)w;
	if (n_fds > SIO_WIRE_MAX_FDS)
		return -EINVAL;
	if (n_fds > 0) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static uint64_t live_now(struct sio_world *w)
{
	struct timespec t;

	(void)w;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Return: as poll(); -errno. */
static int poll_until(struct pollfd *p, unsigned n, uint64_t deadline)
{
	for (;;) {
		uint64_t now = deadline == 0 || deadline == SIO_FOREVER ? 0 : live_now(NULL);
		uint64_t left = deadline > now ? deadline - now : 0;
		struct timespec t = {.tv_sec = (time_t)(left / NS_PER_S),
				     .tv_nsec = (long)(left % NS_PER_S)};
		int rc = ppoll(p, n, deadline == SIO_FOREVER ? NULL : &t, NULL);

		if (rc >= 0 || errno != EINTR)
			return rc < 0 ? -errno : rc;
	}
}

/*
 * Takes the descriptors out of a control message; those beyond @max are closed. A packet is taken
 * also without them: the session must not end because this process's table of descriptors is full.
 */
static unsigned take_fds(struct msghdr *msg, int *fds, unsigned max)
{
	int rc = msg->msg_flags & MSG_CTRUNC ? -EMFILE : 0;
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (n == max) {
				close(fd);
				continue;
			}
			fd = own(fd);
			if (fd < 0)
				rc = fd;
			else
				fds[n++] = fd;
		}
	}
	if (rc < 0 && n < max)
		fds[n++] = rc;
	return n;
}

static ssize_t live_recv(struct sio_world *w, int fd, void *buf, size_t len, int *fds,
			 unsigned max_fds, unsigned *ret_fds, uint64_t deadline)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(SIO_WIRE_MAX_FDS * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct pollfd p = {.fd = fd, .events = POLLIN};

	(void)w;
	*ret_fds = 0;
	for (;;) {
		struct msghdr msg = {.msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = control.space,
				     .msg_controllen = sizeof(control.space)};
		ssize_t n;
		int rc;

		pthread_mutex_lock(&live.mutex);
		n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		rc = n < 0 ? -errno : 0;
		if (n >= 0)
			*ret_fds = take_fds(&msg, fds, max_fds);
		pthread_mutex_unlock(&live.mutex);
		if (n >= 0)
			return msg.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
		if (rc == -EINTR)
			continue;
		if (rc != -EAGAIN)
			return rc;
		if (deadline == 0)
			return -ETIMEDOUT;
		if (poll_until(&p, 1, deadline) == 0)
			return -ETIMEDOUT;
	}
}

static int live_poll(struct sio_world *w, struct sio_poll *p, unsigned n, uint64_t deadline)
{
	struct pollfd few[POLL_ON_STACK], *fds = few;
	int rc;

	(void)w;
	if (n > POLL_ON_STACK) {
		fds = malloc(n * sizeof(*fds));
		if (!fds)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < n; i++)
		fds[i] = (struct pollfd){.fd = p[i].fd, .events = POLLIN};
	rc = poll_until(fds, n, deadline);
	for (unsigned i = 0; i < n; i++)
		p[i].readable = rc > 0 && fds[i].revents;
	if (fds != few)
		free(fds);
	return rc;
}

static int live_event_new(struct sio_world *w)
{
	int fd;

	(void)w;
	pthread_mutex_lock(&live.mutex);
	fd = own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	pthread_mutex_unlock(&live.mutex);
	return fd;
}

static int live_event_write(struct sio_world *w, int fd)
{
	uint64_t one = 1;
	int saved = errno, rc = 0;

	(void)w;
	/* A full counter (EAGAIN) says what another one would. */
	if (write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		rc = -errno;
	errno = saved;
	return rc;
}

/* The descriptor may be a blocking one: it came from the room. */
static int live_event_read(struct sio_world *w, int fd, uint64_t *ret_count)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n;

	(void)w;
	if (poll(&p, 1, 0) <= 0)
		return -EAGAIN;
	n = read(fd, ret_count, sizeof(*ret_count));
	return n == sizeof(*ret_count) ? 0 : n < 0 ? -errno : -EAGAIN;
}

static int live_reserve(struct sio_world *w, void *hint, bool fixed, size_t len, void **ret)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (fixed ? MAP_FIXED_NOREPLACE : 0);
	void *p = mmap(hint, len, PROT_NONE, flags, -1, 0);

	(void)w;
	if (p == MAP_FAILED)
		return -errno;
	if (fixed && p != hint) {
		munmap(p, len);
		return -EEXIST;
	}
	*ret = p;
	return 0;
}

static int live_map(struct sio_world *w, void *at, size_t len, int prot, int fd, uint64_t offset)
{
	int p = (prot & SIO_PROT_READ ? PROT_READ : 0) | (prot & SIO_PROT_WRITE ? PROT_WRITE : 0);

	(void)w;
	if (mmap(at, len, p, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED)
		return -errno;
	return 0;
}

/* With the mutex. */
static int make_ones_file(void)
{
	unsigned char block[65536];
	int fd = own(memfd_create("smartio-ones", MFD_CLOEXEC));

	memset(block, 0xff, sizeof(block));
	for (size_t done = 0; fd >= 0 && done < ONES_BYTES; done += sizeof(block)) {
		if (write(fd, block, sizeof(block)) != sizeof(block)) {
			live.open[fd] = 0;
			close(fd);
			return -ENOMEM;
		}
	}
	return fd;
}

/* Made when it is first needed, and kept. */
static int ones_file(void)
{
	int fd;

	pthread_mutex_lock(&live.mutex);
	if (live.ones < 0)
		live.ones = make_ones_file();
	fd = live.ones;
	pthread_mutex_unlock(&live.mutex);
	return fd;
}

/*
 * Pages are exchanged under whoever reads them, as a link that dies does it: no data race, but to
 * ThreadSanitizer mmap is a store.
 */
#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
#define UNDER_READERS_BEGIN AnnotateIgnoreWritesBegin(__FILE__, __LINE__)
#define UNDER_READERS_END AnnotateIgnoreWritesEnd(__FILE__, __LINE__)
#else
#define UNDER_READERS_BEGIN ((void)0)
#define UNDER_READERS_END ((void)0)
#endif

static int live_map_ones(struct sio_world *w, void *at, size_t len)
{
	int fd = ones_file(), rc = 0;

	(void)w;
	if (fd < 0)
		return fd;
	UNDER_READERS_BEGIN;
	for (size_t done = 0; done < len && rc == 0; done += ONES_BYTES) {
		size_t part = len - done < ONES_BYTES ? len - done : ONES_BYTES;

		if (mmap((char *)at + done, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
			 fd, 0) == MAP_FAILED)
			rc = -errno;
	}
	UNDER_READERS_END;
	return rc;
}

/* Length 0 asks for a second mapping of the same pages. */
static int live_map_aside(struct sio_world *w, void *at, size_t len, void **ret)
{
	void *p = mremap(at, 0, len, MREMAP_MAYMOVE);
	int rc;

	if (p == MAP_FAILED)
		return -errno;
	rc = live_map_ones(w, at, len);
	if (rc < 0) {
		munmap(p, len);
		return rc;
	}
	*ret = p;
	return 0;
}

static int live_map_back(struct sio_world *w, void *aside, void *at, size_t len)
{
	int rc = 0;

	(void)w;
	UNDER_READERS_BEGIN;
	if (mremap(aside, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED)
		rc = -errno;
	UNDER_READERS_END;
	return rc;
}

static void live_unmap(struct sio_world *w, void *at, size_t len)
{
	(void)w;
	munmap(at, len);
}

static unsigned live_wake_ways(struct sio_world *w)
{
	static const struct {
		const char *name;
		unsigned ways;
	} known[] = {{"", SIO_WAKE_TIMER | SIO_WAKE_FAULT | SIO_WAKE_EVENT},
		     {"timer", SIO_WAKE_TIMER},
		     {"fault", SIO_WAKE_FAULT},
		     {"eventfd", SIO_WAKE_TIMER | SIO_WAKE_EVENT}};
	const char *wanted = getenv("SMARTIO_WAKE");

	(void)w;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, wanted ? wanted : ""))
			return known[i].ways;
	return 0;
}

static int register_pages(int fd, void *at, size_t len)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP |
					     UFFD_FEATURE_WP_HUGETLBFS_SHMEM};
	struct uffdio_register reg = {.range = {.start = (uintptr_t)at, .len = len},
				      .mode = UFFDIO_REGISTER_MODE_WP};

	/* An older kernel knows no protection of shared memory; it refuses the feature. */
	if (ioctl(fd, UFFDIO_API, &api) < 0 || ioctl(fd, UFFDIO_REGISTER, &reg) < 0)
		return -EOPNOTSUPP;
	return reg.ioctls & 1ull << _UFFDIO_WRITEPROTECT ? 0 : -EOPNOTSUPP;
}

static int live_fault_new(struct sio_world *w, void *at, size_t len)
{
	int fd, rc;

	pthread_mutex_lock(&live.mutex);
	/* User mode alone needs no privilege: of system calls that write there, EFAULT comes. */
	fd = own((int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
	pthread_mutex_unlock(&live.mutex);
	if (fd < 0)
		return fd == -EMFILE || fd == -ENOMEM ? fd : -EOPNOTSUPP;
	rc = register_pages(fd, at, len);
	if (rc == 0)
		return fd;
	live_close(w, fd);
	return rc;
}

static uint64_t live_random(struct sio_world *w)
{
	uint64_t v;

	/* Without the call (seccomp), time will do: it is not for secrets. */
	if (getrandom(&v, sizeof(v), 0) != sizeof(v))
		v = live_now(w) * 0x9e3779b97f4a7c15ull;
	return v;
}

static void live_yield(struct sio_world *w)
{
	(void)w;
	sched_yield();
}

static uint32_t live_pid(struct sio_world *w)
{
	(void)w;
	return __atomic_load_n(&live.pid, __ATOMIC_RELAXED);
}

static void live_log(struct sio_world *w, const char *text)
{
	(void)w;
	fprintf(stderr, "libsmartio: %s\n", text);
}

static void *thread_body(void *arg)
{
	struct sio_world_thread *t = arg;

	t->fn(t->arg);
	return NULL;
}

/* Signals are the program's: none is taken by our threads. */
static int live_thread_start(struct sio_world *w, void (*fn)(void *), void *arg,
			     struct sio_world_thread **ret)
{
	struct sio_world_thread *t = malloc(sizeof(*t));
	sigset_t all, old;
	int rc;

	(void)w;
	if (!t)
		return -ENOMEM;
	t->fn = fn;
	t->arg = arg;
	*ret = t;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&t->id, NULL, thread_body, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		*ret = NULL;
		free(t);
	}
	return -rc;
}

static void live_thread_join(struct sio_world *w, struct sio_world_thread *t)
{
	(void)w;
	pthread_join(t->id, NULL);
	free(t);
}

static bool live_thread_is_self(struct sio_world *w, struct sio_world_thread *t)
{
	(void)w;
	return pthread_equal(t->id, pthread_self());
}

static int live_lock_new(struct sio_world *w, struct sio_world_lock **ret)
{
	struct sio_world_lock *l = malloc(sizeof(*l));
	pthread_condattr_t attr;

	(void)w;
	if (!l)
		return -ENOMEM;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&l->mutex, NULL);
	pthread_cond_init(&l->condition, &attr);
	pthread_condattr_destroy(&attr);
	*ret = l;
	return 0;
}

static void live_lock_free(struct sio_world *w, struct sio_world_lock *l)
{
	(void)w;
	if (!l)
		return;
	pthread_cond_destroy(&l->condition);
	pthread_mutex_destroy(&l->mutex);
	free(l);
}

static void live_lock(struct sio_world *w, struct sio_world_lock *l)
{
	(void)w;
	pthread_mutex_lock(&l->mutex);
}

static void live_unlock(struct sio_world *w, struct sio_world_lock *l)
{
	(void)w;
	pthread_mutex_unlock(&l->mutex);
}

static int live_wait(struct sio_world *w, struct sio_world_lock *l, uint64_t deadline)
{
	struct timespec t = {.tv_sec = (time_t)(deadline / NS_PER_S),
			     .tv_nsec = (long)(deadline % NS_PER_S)};

	(void)w;
	if (deadline == SIO_FOREVER)
		return -pthread_cond_wait(&l->condition, &l->mutex);
	return -pthread_cond_timedwait(&l->condition, &l->mutex, &t);
}

static void live_wake_all(struct sio_world *w, struct sio_world_lock *l)
{
	(void)w;
	pthread_cond_broadcast(&l->condition);
}

static struct sio_world live_world = {
	.alone = true,
	.connect = live_connect,
	.comes_again = live_comes_again,
	.send = live_send,
	.recv = live_recv,
	.poll = live_poll,
	.close = live_close,
	.event_new = live_event_new,
	.event_write = live_event_write,
	.event_read = live_event_read,
	.reserve = live_reserve,
	.map = live_map,
	.map_ones = live_map_ones,
	.map_aside = live_map_aside,
	.map_back = live_map_back,
	.pages_adopt = sio_pages_adopt,
	.pages_release = sio_pages_release,
	.unmap = live_unmap,
	.wake_ways = live_wake_ways,
	.fault_new = live_fault_new,
	.now = live_now,
	.random = live_random,
	.yield = live_yield,
	.pid = live_pid,
	.log = live_log,
	.thread_start = live_thread_start,
	.thread_join = live_thread_join,
	.thread_is_self = live_thread_is_self,
	.lock_new = live_lock_new,
	.lock_free = live_lock_free,
	.lock = live_lock,
	.unlock = live_unlock,
	.wait = live_wait,
	.wake_all = live_wake_all,
};

struct sio_world *sio_world_current(void)
{
	pthread_once(&live_once, live_init);
	return &live_world;
}

void **sio_world_library(struct sio_world *w)
{
	(void)w;
	return &live.library;
}
