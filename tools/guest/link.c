/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
#define CALLERS 4

struct link {
	struct relay relay; /* first: a session's context is the relay */
	char path[PATH_MAX];
	int listener;	     /* -1: not made yet */
	int socket;	     /* -1: no emulator is connected */
	int caller[CALLERS]; /* have connected and said nothing yet, in their order */
	unsigned n_callers;
	bool cut; /* the connection cannot be used any more */
	struct sio_vfio_frame frame;
};

/* Of one machine. */
struct links {
	struct relay_machine machine;
	struct sio_eventfd events;
	struct link link[RELAY_DEVICES];
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
	sio_eventfd_add(link_of(ctx)->relay.machine->events, fd, 1);
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

#define HAD "another one has it"
#define SILENT "it has connected and says nothing"

static void turn_away(struct link *l, int fd, const char *why)
{
	tool_note("%s: a machine is turned away: %s", l->relay.name, why);
	close(fd);
}

/* Which process is at the other end; 0: it is not known. */
static pid_t emulator(int fd)
{
	struct ucred who = {.pid = 0};
	socklen_t len = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 ? 0 : who.pid;
}

/*
 * One machine has all of them, for each reaches the others' BARs. Return: why whoever is at @fd may
 * be another one; NULL: it is the same.
 */
static const char *is_another(const struct links *all, int fd)
{
	pid_t caller = emulator(fd), has;

	for (unsigned i = 0; i < all->machine.n; i++) {
		if (all->link[i].socket < 0)
			continue;
		has = emulator(all->link[i].socket);
		if (!has || !caller)
			return "another machine may have the other devices of this command: "
			       "an emulator whose process is seen from here is right";
		if (has != caller)
			return "another machine has the other devices of this command";
	}
	return NULL;
}

static void serve(struct links *all, struct link *l, int fd)
{
	struct timeval patience = {.tv_sec = PATIENCE_S};
	struct relay *r = &l->relay;
	const char *why = is_another(all, fd);
	struct sio_err err;

	if (why) {
		turn_away(l, fd, why);
		return;
	}
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

static int take_caller(struct link *l, unsigned i)
{
	int fd = l->caller[i];

	for (l->n_callers--; i < l->n_callers; i++)
		l->caller[i] = l->caller[i + 1];
	return fd;
}

/*
 * Whoever only looks whether somebody listens, as a second relay at this path does, gets nothing
 * borrowed and nothing reset: an emulator speaks first. Who does not is in nobody's way.
 */
static void accept_one(struct link *l)
{
	int fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (l->socket >= 0) {
		turn_away(l, fd, HAD);
		return;
	}
	if (l->n_callers == CALLERS)
		turn_away(l, take_caller(l, 0), SILENT);
	l->caller[l->n_callers++] = fd;
}

static void hear_caller(struct links *all, struct link *l, unsigned i)
{
	int fd = take_caller(l, i);
	char first;

	if (recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
		close(fd);
	else if (l->socket >= 0)
		turn_away(l, fd, HAD);
	else
		serve(all, l, fd);
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

/* What of a link is waited for, in this order. */
enum { LISTENER, SOCKET, EVENTS, CALLER, WAITED = CALLER + CALLERS };

static void waits(const struct link *l, struct pollfd *p)
{
	const int fd[CALLER] = {
		[LISTENER] = l->listener,
		[SOCKET] = l->socket,
		/* Lost events stay readable for ever. */
		[EVENTS] = l->socket >= 0 && l->relay.state != RELAY_LOST
				   ? smartio_device_event_fd(l->relay.device)
				   : -1,
	};

	for (unsigned i = 0; i < WAITED; i++)
		p[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	for (unsigned i = 0; i < CALLER; i++)
		p[i].fd = fd[i];
	for (unsigned i = 0; i < l->n_callers; i++)
		p[CALLER + i].fd = l->caller[i];
}

static void serve_link(struct links *all, struct link *l, const struct pollfd *p)
{
	if (p[EVENTS].revents)
		relay_event(&l->relay);
	if (p[SOCKET].revents)
		receive(l);
	if (l->cut)
		disconnect(l);
	/* From the last on: who is heard is no caller any more, and those behind move up. */
	for (unsigned i = l->n_callers; i-- > 0;)
		if (p[CALLER + i].revents)
			hear_caller(all, l, i);
	if (p[LISTENER].revents)
		accept_one(l);
}

static void give_up_callers(struct links *all)
{
	for (unsigned i = 0; i < all->machine.n; i++) {
		struct link *l = &all->link[i];

		while (l->n_callers)
			turn_away(l, take_caller(l, 0), SILENT);
	}
}

/* Return: false: @stop is readable. */
static bool serve_all(struct links *all, int stop)
{
	struct pollfd p[RELAY_DEVICES * WAITED + 1];
	unsigned n = all->machine.n;
	bool called = false;
	int ready;

	for (unsigned i = 0; i < n; i++) {
		waits(&all->link[i], p + (size_t)i * WAITED);
		called |= all->link[i].n_callers;
	}
	p[(size_t)n * WAITED] = (struct pollfd){.fd = stop, .events = POLLIN};
	ready = poll(p, n * WAITED + 1, called ? PATIENCE_S * 1000 : -1);
	if (ready < 0)
		return true;
	if (p[(size_t)n * WAITED].revents)
		return false;
	if (ready == 0)
		give_up_callers(all);
	for (unsigned i = 0; i < n && ready > 0; i++)
		serve_link(all, &all->link[i], p + (size_t)i * WAITED);
	return true;
}

/* The first one at @path, the others at @path.2 and so on. */
static int open_link(struct links *all, struct relay *r, unsigned i, const char *path,
		     struct sio_err *reterr)
{
	struct link *l = &all->link[i];
	int n = i == 0 ? snprintf(l->path, sizeof(l->path), "%s", path)
		       : snprintf(l->path, sizeof(l->path), "%s.%u", path, i + 1);

	l->listener = l->socket = -1;
	l->relay = *r;
	l->relay.machine = &all->machine;
	if (n < 0 || (size_t)n >= sizeof(l->path))
		return sio_fail(reterr, -ENAMETOOLONG, "%s: a path is shorter", path);
	all->machine.relay[all->machine.n++] = &l->relay;
	return listen_at(l->path, &l->listener, reterr);
}

static void close_link(struct link *l)
{
	disconnect(l);
	while (l->n_callers)
		close(take_caller(l, 0));
	if (l->listener < 0)
		return;
	close(l->listener);
	unlink(l->path);
}

/* Without AIO eventfds are written to, which their emulator may have wait. */
static int open_events(struct links *all, struct sio_err *reterr)
{
	int rc = sio_eventfd_open(&all->events);

	if (rc < 0)
		return sio_fail(reterr, rc, "a descriptor: %s", strerror(-rc));
	rc = sio_eventfd_start(&all->events);
	if (rc < 0)
		tool_note("asynchronous I/O: %s: a machine can have this command wait",
			  strerror(-rc));
	all->machine.events = &all->events;
	return 0;
}

int relay_serve(struct relay *r, unsigned n, const char *path, int stop, struct sio_err *reterr)
{
	struct links *all = calloc(1, sizeof(*all));
	int rc;

	if (!all)
		return sio_no_memory(reterr, "borrowed devices");
	rc = open_events(all, reterr);
	for (unsigned i = 0; rc == 0 && i < n; i++)
		rc = open_link(all, &r[i], i, path, reterr);
	for (unsigned i = 0; rc == 0 && i < n; i++)
		tool_note("%s: a virtual machine can have it at %s", r[i].name, all->link[i].path);
	while (rc == 0 && serve_all(all, stop))
		;
	for (unsigned i = 0; i < all->machine.n; i++)
		close_link(&all->link[i]);
	sio_eventfd_close(&all->events);
	free(all);
	return rc;
}
