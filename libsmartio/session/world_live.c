/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The world of a live process: its table of operations, fork, time, threads. With live_*.c,
 * freeze.c and pages.c the only files of the library that make system calls and start threads.
 *
 * After fork() the child must not act as its parent: it closes every descriptor that the library
 * had open (the owner's, too, or the parent's death would go unnoticed) and has another pid.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "session/live.h"
#include "session/pages.h"
#include "session/quick.h"

struct sio_world_lock {
	pthread_mutex_t mutex;
	pthread_cond_t condition;
};

struct sio_world_thread {
	pthread_t id;
	void (*fn)(void *);
	void *arg;
};

static struct {
	uint32_t pid;
	void *library;
} live;

static pthread_once_t live_once = PTHREAD_ONCE_INIT;

static unsigned threads;					      /* of the library, now */
static __thread bool ours __attribute__((tls_model("initial-exec"))); /* one of these threads */

static void before_fork(void)
{
	sio_pages_before_fork();
	sio_live_fds_lock();
}

static void after_fork_parent(void)
{
	sio_live_fds_unlock();
	sio_pages_after_fork(false);
}

static void after_fork_child(void)
{
	sio_live_fds_close_all();
	sio_live_ones_forget();
	sio_live_stores_after_fork();
	live.pid = (uint32_t)getpid();
	threads = 0;
	ours = false;
	sio_quick_forget();
	sio_live_fds_unlock();
	sio_pages_after_fork(true);
}

static struct sio_world live_world;

/*
 * A short copy reads the program's error variable before that is written, which valgrind would
 * report. Programs under valgrind take the slow path.
 */
static bool is_watched(void)
{
	const char *libraries = getenv("LD_PRELOAD");

	return libraries && strstr(libraries, "/vgpreload_core");
}

static void live_init(void)
{
	live_world.alone = !is_watched();
	live.pid = (uint32_t)getpid();
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

uint64_t sio_live_now(struct sio_world *w)
{
	struct timespec t;

	(void)w;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SIO_NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t live_random(struct sio_world *w)
{
	uint64_t v;

	/* Where the call is forbidden (seccomp), the time will do: no secret depends on it. */
	if (getrandom(&v, sizeof(v), 0) != sizeof(v))
		v = sio_live_now(w) * 0x9e3779b97f4a7c15ull;
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

static void live_limits(struct sio_world *w, struct sio_limits *ret)
{
	int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
	struct rlimit limit;
	char text[24] = "";

	(void)w;
	*ret = (struct sio_limits){0};
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0)
		ret->mappings = strtoull(text, NULL, 10);
	if (fd >= 0)
		close(fd);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		ret->descriptors = limit.rlim_cur;
		ret->most_descriptors = limit.rlim_max;
	}
}

static void live_log(struct sio_world *w, const char *text)
{
	(void)w;
	fprintf(stderr, "libsmartio: %s\n", text);
}

unsigned sio_live_threads(void)
{
	return __atomic_load_n(&threads, __ATOMIC_RELAXED) - ours;
}

static void *thread_body(void *arg)
{
	struct sio_world_thread *t = arg;

	ours = true;
	t->fn(t->arg);
	__atomic_sub_fetch(&threads, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Signals belong to the program: the library's threads take none. */
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
	__atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	rc = pthread_create(&t->id, NULL, thread_body, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		__atomic_sub_fetch(&threads, 1, __ATOMIC_RELAXED);
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
	struct timespec t = {.tv_sec = (time_t)(deadline / SIO_NS_PER_S),
			     .tv_nsec = (long)(deadline % SIO_NS_PER_S)};

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
	.look_ns = 200000, /* the same as in the machine room, docs/waking.md */
	.connect = sio_live_connect,
	.comes_again = sio_live_comes_again,
	.send = sio_live_send,
	.try_send = sio_live_try_send,
	.recv = sio_live_recv,
	.poll = sio_live_poll,
	.close = sio_live_close,
	.event_new = sio_live_event_new,
	.event_write = sio_live_event_write,
	.event_read = sio_live_event_read,
	.gate_new = sio_live_gate_new,
	.gate_set = sio_live_gate_set,
	.reserve = sio_live_reserve,
	.map = sio_live_map,
	.map_ones = sio_live_map_ones,
	.map_none = sio_live_map_none,
	.map_aside = sio_live_map_aside,
	.map_back = sio_live_map_back,
	.pages_adopt = sio_pages_adopt,
	.pages_release = sio_pages_release,
	.unmap = sio_live_unmap,
	.gpu = &sio_live_cuda,
	.wake_ways = sio_live_wake_ways,
	.fault_new = sio_live_fault_new,
	.note_store = sio_live_note_store,
	.forget_stores = sio_live_forget_stores,
	.now = sio_live_now,
	.random = live_random,
	.yield = live_yield,
	.pid = live_pid,
	.limits = live_limits,
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
