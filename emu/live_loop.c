/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread: sockets and devices in turn. While nobody holds a page that a device must look at,
 * the loop sleeps in epoll. Else it looks: all the time while there is work and SPIN_NS longer,
 * yielding, then after short naps for SHORT_NS, then after long ones. docs/emulation.md has the
 * measurements behind the figures.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "emu/live.h"

#define BUDGET 64	  /* commands of a device per turn */
#define TURNS_PER_POLL 64 /* a busy room looks at its sockets this often */
#define LOOKS_PER_YIELD 8 /* empty ones; a look is much cheaper than a yield */
#define LOOKS_PER_POLL 64 /* and a yield than a look at the sockets */
#define SPIN_NS 20000ull
#define SHORT_NS 5000000ull
#define SHORT_NAP_NS 50000
#define LONG_NAP_NS 1000000
#define EVENTS 32

int live_loop_open(struct live *l, struct sio_err *reterr)
{
	sigset_t set;
	int rc;

	l->signal = (struct live_source){.kind = LIVE_SIGNAL, .fd = -1};
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0)
		return sio_fail(reterr, -errno, "no epoll descriptor: %s", strerror(errno));
	l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	l->signal.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (l->signal.fd < 0)
		return sio_fail(reterr, -errno, "no signal descriptor: %s", strerror(errno));
	rc = live_watch(l, &l->signal, EPOLLIN);
	return rc < 0 ? sio_fail(reterr, rc, "epoll: %s", strerror(-rc)) : 0;
}

void live_loop_close(struct live *l)
{
	struct live_owner *o, *tmp;

	HASH_ITER (hh, l->owners, o, tmp) {
		HASH_DEL(l->owners, o);
		close(o->source.fd);
		free(o);
	}
	live_owners_bury(l);
	if (l->signal.fd >= 0)
		close(l->signal.fd);
	if (l->spare_fd >= 0)
		close(l->spare_fd);
	if (l->epoll >= 0)
		close(l->epoll);
}

static void handle(struct live *l, const struct epoll_event *ev)
{
	const struct live_source *s = ev->data.ptr;

	if (s->fd < 0) /* closed by an event before this one in the same turn */
		return;
	switch (s->kind) {
	case LIVE_LISTENER:
	case LIVE_PORT:
		live_port_event(l, s, ev->events);
		break;
	case LIVE_OWNER:
		emu_room_owner_hup(l->room, s->host,
				   ((const struct live_owner *)(const void *)s)->key.id);
		break;
	case LIVE_SIGNAL:
		l->stop = true;
		break;
	}
}

/* Return: how many events there were. */
static int poll_sockets(struct live *l, int timeout_ms)
{
	struct epoll_event ev[EVENTS];
	int n;

	live_ports_cut(l);
	n = epoll_wait(l->epoll, ev, EVENTS, timeout_ms);

	for (int i = 0; i < n; i++)
		handle(l, &ev[i]);
	live_ports_cut(l);
	live_owners_bury(l);
	return n;
}

static void nap(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* Nothing was found for a few looks in a row: yield, look at the sockets, or sleep. */
static void rest(struct live *l, uint64_t *last_work, unsigned empty)
{
	uint64_t idle;

	if (*last_work == 0)
		*last_work = live_ops.now(l);
	idle = live_ops.now(l) - *last_work;
	if (idle < SPIN_NS && empty % LOOKS_PER_POLL != 0) {
		sched_yield();
		return;
	}
	if (poll_sockets(l, 0) > 0)
		*last_work = 0;
	else if (idle >= SPIN_NS)
		nap(idle < SHORT_NS ? SHORT_NAP_NS : LONG_NAP_NS);
}

void live_loop_run(struct live *l)
{
	uint64_t last_work = 0; /* 0: just now */
	unsigned turn = 0, empty = 0;

	while (!l->stop) {
		unsigned work = emu_room_step(l->room, BUDGET);

		if (work || emu_room_busy(l->room)) {
			if (!work)
				sched_yield();
			last_work = 0;
			if (++turn % TURNS_PER_POLL == 0)
				poll_sockets(l, 0);
		} else if (!emu_room_watched(l->room)) {
			poll_sockets(l, -1);
			last_work = 0;
		} else if (++empty % LOOKS_PER_YIELD == 0) {
			rest(l, &last_work, empty);
		}
	}
}
