/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accepting connections. One descriptor is kept in reserve. When no other is left, the reserve is
 * closed, and the waiting connection is accepted and closed at once; then the reserve is opened
 * again. So the program gets an error instead of waiting for ever, and the loop does not spin on a
 * readable socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "smartiod/live/live.h"
#include "smartiod/live/file.h"

#define LIVE_ACCEPT_BATCH 16
#define LIVE_COMPLAIN_US 60000000u /* the same complaint again, at the earliest */

static int open_reserve(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void turn_away(struct live_listener *s, int error)
{
	uint64_t now = 0;
	int fd;

	sd_event_now(s->live->event, CLOCK_MONOTONIC, &now);
	if (s->complained_at == 0 || now - s->complained_at > LIVE_COMPLAIN_US) {
		live_log(s->live, LOG_ERR, "%s: accept: %s; new connections are turned away",
			 s->path, strerror(error));
		s->complained_at = now;
	}
	if (s->reserve < 0)
		s->reserve = open_reserve();
	if (s->reserve < 0)
		return;
	close(s->reserve);
	fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	s->reserve = open_reserve();
}

static int on_connection(sd_event_source *source, int listen_fd, uint32_t events, void *data)
{
	struct live_listener *s = data;

	(void)source;
	(void)events;
	for (int i = 0; i < LIVE_ACCEPT_BATCH; i++) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			s->accepted(s->live, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			turn_away(s, errno);
			continue;
		}
		if (errno != ECONNABORTED && errno != EINTR)
			break;
	}
	return 0;
}

int live_listener_init(struct live_listener *s, struct live *l, const char *path,
		       void (*accepted)(struct live *l, int fd), struct sio_err *reterr)
{
	int fd, r;

	r = live_listen(path, &fd, reterr);
	if (r < 0)
		return r;
	r = live_listener_init_fd(s, l, path, fd, accepted, reterr);
	s->stays = false;
	return r;
}

int live_listener_init_fd(struct live_listener *s, struct live *l, const char *name, int fd,
			  void (*accepted)(struct live *l, int fd), struct sio_err *reterr)
{
	s->live = l;
	snprintf(s->path, sizeof(s->path), "%s", name);
	s->fd = fd;
	s->stays = true;
	s->accepted = accepted;
	s->reserve = open_reserve();
	if (s->reserve < 0)
		return sio_fail(reterr, -errno, "/dev/null: %s", strerror(errno));
	return 0;
}

int live_listener_start(struct live_listener *s)
{
	return sd_event_add_io(s->live->event, &s->io, s->fd, EPOLLIN, on_connection, s);
}

void live_listener_done(struct live_listener *s)
{
	s->io = sd_event_source_disable_unref(s->io);
	if (s->fd >= 0) {
		if (!s->stays)
			unlink(s->path);
		close(s->fd);
	}
	if (s->reserve >= 0)
		close(s->reserve);
	s->fd = s->reserve = -1;
}
