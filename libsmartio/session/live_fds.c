/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors of the library in a live process: which of the process's descriptors are the
 * library's, the socket of smartiod, and events. The library must know its own, because a child of
 * fork() closes them.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "packet/packet.h"
#include "session/live.h"
#include "wire/wire.h"

/* The socket of the smartiod that runs with the kernel module, for its first node. */
#define MACHINE_SOCKET "/run/smartiod/local"
#define POLL_ON_STACK 16
#define LOOK_NS 20000000ull

/* The library's own descriptors, which a child closes. */
static struct {
	pthread_mutex_t mutex;
	unsigned char *open; /* a flag per descriptor */
	int size;
} live = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void sio_live_fds_lock(void)
{
	pthread_mutex_lock(&live.mutex);
}

void sio_live_fds_unlock(void)
{
	pthread_mutex_unlock(&live.mutex);
}

int sio_live_own(int fd)
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

void sio_live_disown(int fd)
{
	if (fd >= 0 && fd < live.size)
		live.open[fd] = 0;
	close(fd);
}

void sio_live_close(struct sio_world *w, int fd)
{
	(void)w;
	pthread_mutex_lock(&live.mutex);
	sio_live_disown(fd);
	pthread_mutex_unlock(&live.mutex);
}

void sio_live_fds_close_all(void)
{
	for (int fd = 0; fd < live.size; fd++)
		if (live.open[fd])
			close(fd);
	if (live.size)
		memset(live.open, 0, (size_t)live.size);
}

/* *ret_set: the user chose the path. */
static const char *socket_path(bool *ret_set)
{
	const char *set = getenv("SMARTIO_SOCKET");

	*ret_set = set && *set;
	return *ret_set ? set : MACHINE_SOCKET;
}

/*
 * On a real machine smartiod leaves its socket's name behind when it is killed, or when it ends
 * while programs are connected.
 */
bool sio_live_comes_again(struct sio_world *w)
{
	bool set;

	(void)w;
	return !strcmp(socket_path(&set), MACHINE_SOCKET);
}

int sio_live_connect(struct sio_world *w)
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
	fd = sio_live_own(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	pthread_mutex_unlock(&live.mutex);
	if (fd < 0)
		return fd;
	while (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int rc = -errno;

		if (rc == -EINTR)
			continue;
		sio_live_close(w, fd);
		return rc == -ENOENT && !set ? -ENODATA : rc;
	}
	return fd;
}

ssize_t sio_live_send(struct sio_world *w, int fd, const void *buf, size_t len, const int *fds,
		      unsigned n_fds)
{
	(void)w;
	return n_fds > SIO_WIRE_MAX_FDS ? -EINVAL : sio_packet_send(fd, buf, len, fds, n_fds, true);
}

ssize_t sio_live_try_send(struct sio_world *w, int fd, const void *buf, size_t len)
{
	ssize_t n = send(fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	(void)w;
	return n < 0 ? -errno : n;
}

/*
 * poll() fails when there is no memory, or when the limit of descriptors (ulimit -n) is below the
 * number that it is given. Then the caller checks everything after each pause. Return: @error; 0:
 * the deadline has come.
 */
static int pause_for(int error, uint64_t deadline)
{
	uint64_t until = sio_live_now(NULL) + LOOK_NS;
	struct timespec t;

	if (until > deadline)
		until = deadline;
	t = (struct timespec){.tv_sec = (time_t)(until / SIO_NS_PER_S),
			      .tv_nsec = (long)(until % SIO_NS_PER_S)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
	return deadline && until == deadline ? 0 : error;
}

/* Return: as poll(); -errno after a pause: the caller must check everything. */
static int poll_until(struct pollfd *p, unsigned n, uint64_t deadline)
{
	for (;;) {
		uint64_t now = deadline == 0 || deadline == SIO_FOREVER ? 0 : sio_live_now(NULL);
		uint64_t left = deadline > now ? deadline - now : 0;
		struct timespec t = {.tv_sec = (time_t)(left / SIO_NS_PER_S),
				     .tv_nsec = (long)(left % SIO_NS_PER_S)};
		int rc = ppoll(p, n, deadline == SIO_FOREVER ? NULL : &t, NULL);

		if (rc >= 0)
			return rc;
		rc = -errno;
		if (rc == -EINTR)
			continue;
		return pause_for(rc, deadline);
	}
}

/*
 * Records the descriptors of a packet as the library's. A packet is accepted even without them: a
 * full table of descriptors in this process must not end the session. Return: how many there are;
 * the last may be -errno, for a descriptor that is missing.
 */
static unsigned own_fds(int *fds, unsigned n, unsigned max, bool lost)
{
	int rc = lost ? -EMFILE : 0;
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		int fd = sio_live_own(fds[i]);

		if (fd < 0)
			rc = fd;
		else
			fds[kept++] = fd;
	}
	if (rc < 0 && kept < max)
		fds[kept++] = rc;
	return kept;
}

ssize_t sio_live_recv(struct sio_world *w, int fd, void *buf, size_t len, int *fds,
		      unsigned max_fds, unsigned *ret_fds, uint64_t deadline)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	(void)w;
	for (;;) {
		bool lost;
		ssize_t n;

		pthread_mutex_lock(&live.mutex);
		n = sio_packet_recv(fd, buf, len, fds, max_fds, ret_fds, &lost);
		*ret_fds = own_fds(fds, *ret_fds, max_fds, lost);
		pthread_mutex_unlock(&live.mutex);
		if (n != -EAGAIN)
			return n;
		if (deadline == 0)
			return -ETIMEDOUT;
		if (poll_until(&p, 1, deadline) == 0)
			return -ETIMEDOUT;
	}
}

int sio_live_poll(struct sio_world *w, struct sio_poll *p, unsigned n, uint64_t deadline)
{
	struct pollfd few[POLL_ON_STACK], *fds = few;
	int rc;

	(void)w;
	if (n > POLL_ON_STACK) {
		fds = malloc(n * sizeof(*fds));
	}
	for (unsigned i = 0; fds && i < n; i++)
		fds[i] = (struct pollfd){.fd = p[i].fd, .events = POLLIN};
	rc = fds ? poll_until(fds, n, deadline) : pause_for(-ENOMEM, deadline);
	for (unsigned i = 0; i < n; i++)
		p[i].readable = rc < 0 || (rc > 0 && fds[i].revents);
	if (fds != few)
		free(fds);
	return rc < 0 ? (int)n : rc;
}

int sio_live_event_new(struct sio_world *w)
{
	int fd;

	(void)w;
	pthread_mutex_lock(&live.mutex);
	fd = sio_live_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	pthread_mutex_unlock(&live.mutex);
	return fd;
}

int sio_live_event_write(struct sio_world *w, int fd)
{
	uint64_t one = 1;
	int saved = errno, rc = 0;

	(void)w;
	/* a full counter (EAGAIN) is as readable as one that was raised */
	if (write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		rc = -errno;
	errno = saved;
	return rc;
}

/* The descriptor may be a blocking one: it was made by the machine room. */
int sio_live_event_read(struct sio_world *w, int fd, uint64_t *ret_count)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n;

	(void)w;
	if (poll(&p, 1, 0) <= 0)
		return -EAGAIN;
	n = read(fd, ret_count, sizeof(*ret_count));
	return n == sizeof(*ret_count) ? 0 : n < 0 ? -errno : -EAGAIN;
}

int sio_live_gate_new(struct sio_world *w, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	int gate;

	pthread_mutex_lock(&live.mutex);
	gate = sio_live_own(epoll_create1(EPOLL_CLOEXEC));
	pthread_mutex_unlock(&live.mutex);
	if (gate >= 0 && epoll_ctl(gate, EPOLL_CTL_ADD, fd, &event) < 0) {
		int rc = -errno;

		sio_live_close(w, gate);
		return rc;
	}
	return gate;
}

void sio_live_gate_set(struct sio_world *w, int gate, int fd, bool open)
{
	struct epoll_event event = {.events = open ? EPOLLIN : 0};
	int saved = errno;

	(void)w;
	epoll_ctl(gate, EPOLL_CTL_MOD, fd, &event); /* it is there: that needs no memory */
	errno = saved;
}
