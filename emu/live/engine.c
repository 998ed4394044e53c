/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA engines on threads of their own, one per host that has channels. A thread takes the lock
 * shared for each piece; the room's thread takes it alone to change what engines look at, and is
 * let in before the next piece. An engine without work looks for a window (emu/machine/pace.h),
 * then says in its channels' rings that it sleeps, looks once more, and waits for a doorbell.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "emu/live/live.h"

#define SECOND 1000000000ull
#define LOOKS_AT_ONCE 16 /* are one that found nothing, for its pace */

struct live_engine {
	struct live *l;
	unsigned host;
	int epoll, wake_fd; /* from the start, so that they are always as many */
	struct emu_pace pace;
	pthread_t thread;
	bool runs;
	bool end; /* its host goes */
};

/* The loads pair with live_engines_end(), and with live_engine_close(). */
static bool stopped(const struct live_engine *e)
{
	return __atomic_load_n(&e->l->engines_end, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&e->end, __ATOMIC_ACQUIRE);
}

static unsigned look(struct live_engine *e)
{
	struct live *l = e->l;
	unsigned work;

	pthread_rwlock_rdlock(&l->engines_lock);
	work = stopped(e) ? 0 : emu_room_engine_step(l->room, e->host);
	pthread_rwlock_unlock(&l->engines_lock);
	return work;
}

static void doze(struct live_engine *e, bool asleep)
{
	struct live *l = e->l;

	pthread_rwlock_rdlock(&l->engines_lock);
	if (!stopped(e))
		emu_room_engine_doze(l->room, e->host, asleep);
	pthread_rwlock_unlock(&l->engines_lock);
}

/* Until then at most; @now is before. Return: NULL: without a limit. */
static const struct timespec *limit(struct live_engine *e, uint64_t now, struct timespec *ts)
{
	struct live *l = e->l;
	uint64_t due = UINT64_MAX;

	pthread_rwlock_rdlock(&l->engines_lock);
	if (!stopped(e))
		due = emu_room_engine_due(l->room, e->host);
	pthread_rwlock_unlock(&l->engines_lock);
	if (due == UINT64_MAX)
		return NULL;
	due = due > now ? due - now : 0;
	*ts = (struct timespec){.tv_sec = (time_t)(due / SECOND), .tv_nsec = (long)(due % SECOND)};
	return ts;
}

/* Doorbells are never read, see watch.c; the room's word to us is. */
static void wait_bell(struct live_engine *e)
{
	uint64_t before = live_ops.now(e->l), count;
	struct epoll_event ev;
	struct timespec ts;

	while (epoll_pwait2(e->epoll, &ev, 1, limit(e, live_ops.now(e->l), &ts), NULL) < 0 &&
	       errno == EINTR)
		;
	if (read(e->wake_fd, &count, sizeof(count)) < 0)
		emu_pace_slept(&e->pace, live_ops.now(e->l) - before);
}

static void *engine_main(void *arg)
{
	struct live_engine *e = arg;
	uint64_t last_work = live_ops.now(e->l);
	unsigned looks = 0;

	while (!stopped(e)) {
		if (look(e)) {
			emu_pace_worked(&e->pace, 0);
			last_work = 0;
			continue;
		}
		if (++looks % LOOKS_AT_ONCE || !emu_pace_found_nothing(&e->pace))
			continue;
		if (last_work == 0)
			last_work = live_ops.now(e->l);
		if (live_ops.now(e->l) - last_work < e->pace.window) {
			sched_yield();
			continue;
		}
		doze(e, true);
		if (!look(e))
			wait_bell(e);
		doze(e, false);
		last_work = 0;
	}
	return NULL;
}

static int watch_fd(const struct live_engine *e, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* The room holds the lock: the thread's first look comes after what is being made. */
int live_engine_start(void *ctx, unsigned host)
{
	struct live *l = ctx;
	struct live_engine *e = &l->engine[host];
	int rc = -pthread_create(&e->thread, NULL, engine_main, e);

	if (rc == 0)
		e->runs = true;
	return rc;
}

int live_engine_watch(void *ctx, unsigned host, int fd)
{
	return watch_fd(&((struct live *)ctx)->engine[host], fd);
}

void live_engine_unwatch(void *ctx, unsigned host, int fd)
{
	/* Its program may hold a copy: closing ours would leave it in the set. */
	epoll_ctl(((struct live *)ctx)->engine[host].epoll, EPOLL_CTL_DEL, fd, NULL);
}

void live_engines_stop(void *ctx)
{
	struct live *l = ctx;

	if (l->engines_stops++ == 0)
		pthread_rwlock_wrlock(&l->engines_lock);
}

void live_engines_go(void *ctx)
{
	struct live *l = ctx;

	if (--l->engines_stops == 0)
		pthread_rwlock_unlock(&l->engines_lock);
}

void live_engine_report(void *ctx)
{
	uint64_t one = 1;
	struct live *l = ctx;

	if (write(l->engines_report.fd, &one, sizeof(one)) < 0)
		return; /* it says so already */
}

static void wake(const struct live_engine *e)
{
	uint64_t one = 1;

	if (e->runs && write(e->wake_fd, &one, sizeof(one)) < 0)
		return; /* it says so already */
}

static void wake_all(const struct live *l)
{
	for (unsigned i = 0; i < live_max_hosts(l); i++)
		wake(&l->engine[i]);
}

void live_engines_event(struct live *l)
{
	uint64_t count;

	if (read(l->engines_report.fd, &count, sizeof(count)) < 0)
		return;
	emu_room_engines_collect(l->room);
	wake_all(l);
}

int live_engine_open(struct live *l, unsigned host)
{
	struct live_engine *e = &l->engine[host];

	e->l = l;
	e->host = host;
	e->pace = l->pace;
	e->wake_fd = -1;
	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (e->epoll >= 0)
		e->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return e->wake_fd < 0 ? -errno : watch_fd(e, e->wake_fd);
}

void live_engine_close(struct live *l, unsigned host)
{
	struct live_engine *e = &l->engine[host];

	__atomic_store_n(&e->end, true, __ATOMIC_RELEASE); /* pairs with stopped() */
	wake(e);
	if (e->runs)
		pthread_join(e->thread, NULL);
	if (e->wake_fd >= 0)
		close(e->wake_fd);
	if (e->epoll >= 0)
		close(e->epoll);
	*e = (struct live_engine){.epoll = -1, .wake_fd = -1};
}

int live_engines_open(struct live *l, struct sio_err *reterr)
{
	pthread_rwlockattr_t attr;
	int rc = 0;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&l->engines_lock, &attr);
	pthread_rwlockattr_destroy(&attr);
	l->engine = calloc(live_max_hosts(l), sizeof(*l->engine));
	if (!l->engine)
		return sio_no_memory(reterr, "the DMA engines");
	for (unsigned i = 0; i < live_max_hosts(l); i++)
		l->engine[i].epoll = l->engine[i].wake_fd = -1;
	for (unsigned i = 0; rc == 0 && i < l->topo->n_hosts; i++)
		rc = live_engine_open(l, i);
	l->engines_report = (struct live_source){.kind = LIVE_ENGINES, .fd = -1};
	if (rc == 0) {
		l->engines_report.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		rc = l->engines_report.fd < 0 ? -errno : live_watch(l, &l->engines_report, EPOLLIN);
	}
	return rc < 0 ? sio_fail(reterr, rc, "descriptors of DMA engines: %s", strerror(-rc)) : 0;
}

void live_engines_end(struct live *l)
{
	if (!l->engine)
		return;
	__atomic_store_n(&l->engines_end, true, __ATOMIC_RELEASE); /* pairs with stopped() */
	wake_all(l);
	for (unsigned i = 0; i < live_max_hosts(l); i++) {
		if (l->engine[i].runs)
			pthread_join(l->engine[i].thread, NULL);
		l->engine[i].runs = false;
	}
}

void live_engines_close(struct live *l)
{
	for (unsigned i = 0; l->engine && i < live_max_hosts(l); i++)
		live_engine_close(l, i);
	free(l->engine);
	if (l->engines_report.fd >= 0)
		close(l->engines_report.fd);
}
