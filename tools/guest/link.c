/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/output.h"
#include "eventfd/eventfd.h"
#include "guest/link.h"
#include "packet/packet.h"
#include "smartio/ext.h"
#include "vfiosock/frame.h"

#define PATIENCE_S 10 /* how long an emulator may take to read, and to say its first word */

struct link {
	struct relay relay; /* first: a session's context is the relay */
	int socket;	    /* -1: no emulator is connected */
	int caller;	    /* has connected and said nothing yet; -1: nobody */
	bool cut;	    /* the connection cannot be used any more */
	struct sio_vfio_frame frame;
};

static struct link *link_of(void *ctx)
{
	return (struct link *)ctx;
}

/* ---- what a session calls ---- */

static void send_message(void *ctx, const void *message, size_t len, int fd)
{
	struct link *l = link_of(ctx);
	const uint8_t *data = message;

	while (len && !l->cut) {
		ssize_t n = sio_packet_send(l->socket, data, len, &fd, fd >= 0, true);

		if (n <= 0) {
			tool_note("%s: its machine does not listen: %s", l->relay.name,
				  strerror((int)-n));
			l->cut = true;
			return;
		}
		fd = -1; /* it was sent with the first byte */
		data += n;
		len -= (size_t)n;
	}
}

static bool is_event(void *ctx, int fd)
{
	(void)ctx;
	return sio_eventfd_is(fd);
}

static void signal_event(void *ctx, int fd)
{
	(void)ctx;
	eventfd_write(fd, 1);
}

static void close_fd(void *ctx, int fd)
{
	(void)ctx;
	close(fd);
}

static void say(void *ctx, const char *text)
{
	tool_note("%s: %s", link_of(ctx)->relay.name, text);
}

static const struct sio_vfio_session_ops session_ops = {
	.memory = {.map = relay_ram_map, .unmap = relay_ram_unmap},
	.send = send_message,
	.is_event = is_event,
	.signal = signal_event,
	.close = close_fd,
	.log = say,
};

/* ---- an emulator comes and goes ---- */

static void disconnect(struct link *l)
{
	struct relay *r = &l->relay;

	if (l->socket < 0)
		return;
	relay_stop(r);
	l->cut = true; /* nothing more is sent */
	sio_vfio_session_free(r->session);
	r->session = NULL;
	relay_return(r);
	sio_vfio_frame_drop(&l->frame);
	close(l->socket);
	l->socket = -1;
	tool_note("%s is returned: its machine is gone", r->name);
}

static void turn_away(struct link *l, int fd, const char *why)
{
	tool_note("%s: a machine is turned away: %s", l->relay.name, why);
	close(fd);
}

static void serve(struct link *l, int fd)
{
	struct timeval patience = {.tv_sec = PATIENCE_S};
	struct relay *r = &l->relay;
	struct sio_err err;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (relay_borrow(r, &err) < 0) {
		turn_away(l, fd, err.text);
		return;
	}
	l->socket = fd;
	l->cut = false;
	r->session = sio_vfio_session_new(&relay_function, r, &session_ops, r);
	if (!r->session) {
		l->socket = -1;
		relay_return(r);
		turn_away(l, fd, "no memory: " SIO_MORE_MEMORY);
		return;
	}
	tool_note("%s is borrowed for a machine", r->name);
}

/*
 * Whoever only looks whether somebody listens, as a second relay at this path does, gets nothing
 * borrowed and nothing reset: an emulator speaks first.
 */
static void accept_one(struct link *l, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0 && l->socket >= 0)
		turn_away(l, fd, "another one has it");
	else if (fd >= 0)
		l->caller = fd;
}

static void hear_caller(struct link *l)
{
	int fd = l->caller;
	char first;

	l->caller = -1;
	if (recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
		serve(l, fd);
	else
		close(fd);
}

static void receive(struct link *l)
{
	struct sio_vfio_frame *f = &l->frame;
	struct sio_err err = {0};
	int rc = sio_vfio_frame_receive(f, l->socket, &err);

	if (rc < 0 && rc != -EAGAIN) {
		if (err.text[0])
			tool_note("%s: its machine is cut off: %s", l->relay.name, err.text);
		l->cut = true;
		return;
	}
	if (rc <= 0)
		return;
	if (sio_vfio_session_take(l->relay.session, f->in, (size_t)rc, f->fds,
				  sio_vfio_frame_taken(f)) < 0)
		l->cut = true;
}

/* ---- the socket ---- */

static int listen_at(const char *path, int *ret, struct sio_err *reterr)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct stat st;
	int fd, rc;

	if (strlen(path) >= sizeof(sa.sun_path))
		return sio_fail(reterr, -ENAMETOOLONG, "%s: a socket's path has %zu bytes at most",
				path, sizeof(sa.sun_path) - 1);
	memcpy(sa.sun_path, path, strlen(path) + 1);
	/* Another kind of file would also give ECONNREFUSED, but belongs to somebody else. */
	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return sio_fail(reterr, -EEXIST, "%s is there, and is no socket", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return sio_fail(reterr, -errno, "socket: %s", strerror(errno));
	/* Left by a relay that was killed; a live one answers. */
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 && errno == ECONNREFUSED)
		unlink(path);
	close(fd);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return sio_fail(reterr, -errno, "socket: %s", strerror(errno));
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || chmod(path, 0600) < 0 ||
	    listen(fd, 4) < 0) {
		rc = -errno;
		close(fd);
		return sio_fail(reterr, rc, "%s: %s", path, strerror(-rc));
	}
	*ret = fd;
	return 0;
}

static void serve_one(struct link *l, int listener, int stop)
{
	struct pollfd p[] = {
		{.fd = stop, .events = POLLIN},
		{.fd = listener, .events = POLLIN},
		{.fd = l->socket, .events = POLLIN},
		{.fd = l->socket >= 0 ? smartio_device_event_fd(l->relay.device) : -1,
		 .events = POLLIN},
		{.fd = l->caller, .events = POLLIN},
	};
	int n;

	/* Lost events stay readable for ever. */
	if (l->relay.state == RELAY_LOST)
		p[3].fd = -1;
	/* The next ones wait in the socket's queue. */
	if (l->caller >= 0)
		p[1].fd = -1;
	n = poll(p, sizeof(p) / sizeof(p[0]), l->caller >= 0 ? PATIENCE_S * 1000 : -1);
	if (n < 0)
		return;
	if (n == 0) {
		turn_away(l, l->caller, "it has connected and says nothing");
		l->caller = -1;
		return;
	}
	if (p[3].revents)
		relay_event(&l->relay);
	if (p[2].revents)
		receive(l);
	if (l->cut)
		disconnect(l);
	if (p[4].revents)
		hear_caller(l);
	if (p[1].revents)
		accept_one(l, listener);
}

static bool is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

int relay_serve(struct relay *r, const char *path, int stop, struct sio_err *reterr)
{
	struct link *l = calloc(1, sizeof(*l));
	int listener = -1, rc;

	if (!l)
		return sio_no_memory(reterr, "a borrowed device");
	l->relay = *r;
	l->socket = l->caller = -1;
	rc = listen_at(path, &listener, reterr);
	if (rc == 0) {
		tool_note("%s: a virtual machine can have it at %s", r->name, path);
		while (!is_readable(stop))
			serve_one(l, listener, stop);
		disconnect(l);
		if (l->caller >= 0)
			close(l->caller);
		close(listener);
		unlink(path);
	}
	free(l);
	return rc;
}
