/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread: sockets and devices in turn. While nobody has a page mapped that a device must poll,
 * the loop sleeps in epoll. Otherwise it polls: without a pause while there is work, and yielding
 * for a window after that (emu/machine/pace.h). Then it sleeps until a watch wakes it or, if there
 * is a mapping whose stores wake nobody, naps, with short naps first. docs/waking.md has the
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

#include "emu/live/live.h"

#define BUDGET 256 /* units of work of a device per turn: 1 MiB, or so many commands */
#define SHORT_NS 5000000ull
#define SHORT_NAP_NS 50000
#define LONG_NAP_NS 1000000
/*
 * A store may be missed: of a fork's child, which has no watch, or one whose fault the room was not
 * notified of. Somebody looks, though seldom.
 */
#define BACKSTOP_NS 100000000
#define TURNS_PER_CALM 16 /* a room at work for longer keeps nobody waiting in a fault */
#define EVENTS 32

int live_loop_open(struct live *l, struct sio_err *reterr)
{
	sigset_t set;
	int rc = sio_eventfd_open(&l->events);

	if (rc < 0)
		return sio_fail(reterr, rc, "/dev/null: %s", strerror(-rc));
	rc = sio_eventfd_start(&l->events);
	if (rc < 0)
		live_log(
			"no AIO (%s): programs that fill their event descriptors can stop the room",
			strerror(-rc));
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
	signal(SIGXFSZ, SIG_IGN); /* a drive's file beyond a limit: the write fails */
	l->signal.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (l->signal.fd < 0)
		return sio_fail(reterr, -errno, "no signal descriptor: %s", strerror(errno));
	rc = live_watch(l, &l->signal, EPOLLIN);
	if (rc < 0)
		return sio_fail(reterr, rc, "epoll: %s", strerror(-rc));
	return live_engines_open(l, reterr);
}

void live_loop_close(struct live *l)
{
	struct live_owner *o, *tmp;

	HASH_ITER (hh, l->owners, o, tmp) {
		HASH_DEL(l->owners, o);
		close(o->source.fd);
		free(o);
	}
	live_watches_close(l);
	live_owners_bury(l);
	if (l->signal.fd >= 0)
		close(l->signal.fd);
	live_engines_close(l);
	if (l->spare_fd >= 0)
		close(l->spare_fd);
	if (l->epoll >= 0)
		close(l->epoll);
	sio_eventfd_close(&l->events);
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
	case LIVE_WATCH:
		live_watch_event(l, s, ev->events);
		break;
	case LIVE_ENGINES:
		live_engines_event(l);
		break;
	case LIVE_CONTROL:
		live_control_event(l, s);
		break;
	case LIVE_VFIO_LISTENER:
	case LIVE_VFIO: /* engines of hosts look at what a machine has and grants */
		live_engines_stop(l);
		live_vfio_event(l, s, ev->events);
		live_engines_go(l);
		break;
	case LIVE_STORE:
		live_store_event(l);
		break;
	case LIVE_ALARM:
		live_ntb_event(l);
		break;
	case LIVE_SIGNAL:
		l->stop = true;
		break;
	}
}

/* -1: no time limit. */
static int wait_events(struct live *l, struct epoll_event *ev, long ns)
{
	const struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	int n;

	if (ns <= 0)
		return epoll_wait(l->epoll, ev, EVENTS, ns < 0 ? -1 : 0);
	n = epoll_pwait2(l->epoll, ev, EVENTS, &t, NULL);
	if (n < 0 && errno == ENOSYS)
		n = epoll_wait(l->epoll, ev, EVENTS, (int)((ns + 999999) / 1000000));
	return n;
}

/* Return: how many events there were. */
static int poll_sockets(struct live *l, long ns)
{
	struct epoll_event ev[EVENTS];
	int n;

	live_ports_cut(l);
	live_vfios_cut(l);
	n = wait_events(l, ev, ns);

	for (int i = 0; i < n; i++)
		handle(l, &ev[i]);
	live_ports_cut(l);
	live_vfios_cut(l);
	live_owners_bury(l);
	live_watches_bury(l);
	live_callers_bury(l);
	return n;
}

static unsigned step(struct live *l)
{
	return emu_room_step(l->room, BUDGET) + live_vfios_step(l, BUDGET);
}

static bool is_busy(const struct live *l)
{
	return emu_room_busy(l->room) || live_vfios_busy(l);
}

struct rest {
	uint64_t last_work; /* 0: just now */
	uint64_t retry_at;  /* when faults of which no event came are to be repeated */
	unsigned turn;	    /* of work, since the last sleep */
};

static void work_done(struct live *l, struct rest *r, unsigned work)
{
	if (!work)
		sched_yield();
	r->last_work = 0;
	if (emu_pace_worked(&l->pace, work))
		poll_sockets(l, 0);
	if (++r->turn > TURNS_PER_CALM && l->n_armed)
		live_watches_calm(l);
}

/* Sleep until something happens, or for @ns. Work that came before is found first. */
static void doze(struct live *l, struct rest *r, long ns)
{
	uint64_t before, after;
	unsigned work;
	int n;

	emu_room_doze(l->room, true);
	live_watches_arm(l);
	work = step(l);
	if (work || is_busy(l)) {
		emu_room_doze(l->room, false);
		work_done(l, r, work);
		return;
	}
	before = live_ops.now(l);
	n = poll_sockets(l, ns);
	after = live_ops.now(l);
	emu_room_doze(l->room, false);
	emu_room_rested(l->room, ns < BACKSTOP_NS);
	if (n <= 0) {
		if (after >= r->retry_at) {
			live_watches_retry(l);
			r->retry_at = after + BACKSTOP_NS;
		}
		return;
	}
	r->last_work = after;
	r->turn = 0;
	emu_pace_look_on(&l->pace);
	if (l->woken) {
		l->woken = false;
		emu_pace_await(&l->pace);
		emu_pace_slept(&l->pace, after - before);
	}
}

/* Nobody can be woken by: a plain sleep is the cheapest nap. */
static void nap(struct live *l, struct rest *r, long ns)
{
	if (poll_sockets(l, 0) > 0) {
		r->last_work = 0;
		emu_pace_look_on(&l->pace);
		return;
	}
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
	emu_room_rested(l->room, true);
}

/* Nothing was found for a few looks in a row: yield, look at the sockets, or sleep. */
static void rest(struct live *l, struct rest *r)
{
	long ns = BACKSTOP_NS;
	uint64_t now = live_ops.now(l), idle;

	if (r->last_work == 0)
		r->last_work = now;
	idle = now - r->last_work;
	switch (emu_pace_rest(&l->pace, now)) {
	case EMU_REST_YIELD:
		sched_yield();
		return;
	case EMU_REST_POLL:
		if (poll_sockets(l, 0) > 0) {
			r->last_work = 0;
			emu_pace_look_on(&l->pace);
		}
		return;
	case EMU_REST_SLEEP:
		break;
	}
	if (emu_room_naps(l->room))
		ns = idle < SHORT_NS ? SHORT_NAP_NS : LONG_NAP_NS;
	if (l->n_watches == 0 && ns < BACKSTOP_NS)
		nap(l, r, ns);
	else
		doze(l, r, ns);
}

void live_loop_run(struct live *l)
{
	struct rest r = {0};

	while (!l->stop) {
		unsigned work = step(l);

		if (work || is_busy(l)) {
			work_done(l, &r, work);
		} else if (!emu_room_watched(l->room)) {
			poll_sockets(l, -1);
			r = (struct rest){0};
			emu_pace_look_on(&l->pace);
		} else if (emu_pace_found_nothing(&l->pace)) {
			rest(l, &r);
		}
	}
}
