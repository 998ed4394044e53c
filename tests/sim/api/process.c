/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs and threads of the API's tests: what the C library's calls are in the simulator. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "api/api.h"
#include "fabric/fabric.h"

#define MOST_PROGRAMS 4096
#define LIMIT (60 * SIM_SECOND)

static struct api_program program[MOST_PROGRAMS];
static unsigned programs;

/* ---- processes ---- */
static void program_main(struct sim_proc *p)
{
	const struct api_program *a = p->arg;

	p->result = a->fn(a->arg);
}

pid_t api_program_new(unsigned host, int (*fn)(void *arg), void *arg)
{
	struct api_program *a = &program[programs++];
	char name[32];

	assert(programs < MOST_PROGRAMS);
	*a = (struct api_program){.fn = fn, .arg = arg};
	snprintf(name, sizeof(name), "program%u@%u", programs, sim_node(host));
	a->proc = sim_proc_new(name, host, program_main, a);
	a->proc->pid = programs;
	return (pid_t)programs;
}

struct api_program *api_program(pid_t pid)
{
	assert(pid > 0 && (unsigned)pid <= programs);
	return &program[pid - 1];
}

void api_programs_free(void)
{
	for (unsigned i = 0; i < programs; i++)
		sim_proc_free(program[i].proc);
	programs = 0;
}

pid_t api_getpid(void)
{
	assert(sim_self());
	return (pid_t)sim_self()->pid;
}

int api_kill(pid_t pid, int sig)
{
	struct api_program *a = api_program(pid);

	assert(sig == SIGKILL);
	if (a->proc->dead)
		return 0;
	sim_trace("%s is killed", a->proc->name);
	a->signal = sig;
	sim_proc_kill(a->proc);
	if (sim_self() == a->proc)
		sim_coro_exit();
	return 0;
}

int api_raise(int sig)
{
	return api_kill(api_getpid(), sig);
}

void api_exit(int status)
{
	struct sim_proc *p = sim_self();

	if (!p)
		exit(status);
	p->result = status;
	p->finished = true;
	sim_trace("%s exits with %d", p->name, status);
	sim_proc_kill(p);
	sim_coro_exit();
}

/* ---- time ---- */
static bool never(void *arg)
{
	(void)arg;
	return false;
}

void api_sleep(uint64_t ns)
{
	if (sim_self())
		sim_sleep(ns);
	else
		sim_run(never, NULL, ns);
}

bool api_wait_until(bool (*done)(void *arg), void *arg)
{
	uint64_t end = sim_now() + LIMIT;

	if (!sim_self())
		return sim_run(done, arg, LIMIT);
	sim_step(&sim_self()->world);
	sim_sync();
	while (!done(arg) && sim_now() < end)
		sim_coro_block(end);
	sim_sync();
	return done(arg);
}

/* The test's own clock, independent of the clocks of its hosts. */
int api_clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	time->tv_sec = (time_t)(sim_now() / (1000 * SIM_MS));
	time->tv_nsec = (long)(sim_now() % (1000 * SIM_MS));
	return 0;
}

int api_usleep(useconds_t us)
{
	api_sleep(1000ull * us);
	return 0;
}

int api_nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	api_sleep((uint64_t)time->tv_sec * SIM_SECOND + (uint64_t)time->tv_nsec);
	return 0;
}

/* Only the program's death ends the call. */
int api_pause(void)
{
	sim_step(&sim_self()->world);
	for (;;)
		sim_coro_block(UINT64_MAX);
}

int api_yield(void)
{
	struct sio_world *w = &sim_self()->world;

	w->yield(w);
	return 0;
}

int api_poll(struct pollfd *p, nfds_t n, int timeout_ms)
{
	struct sio_world *w = &sim_self()->world;
	struct sio_poll one = {.fd = p->fd};
	uint64_t until = SIO_FOREVER;
	int found;

	assert(n == 1);
	if (timeout_ms >= 0)
		until = timeout_ms ? w->now(w) + (uint64_t)timeout_ms * SIM_MS : 0;
	found = w->poll(w, &one, 1, until);
	p->revents = one.readable ? POLLIN : 0;
	return found;
}

/* ---- pages of the program's own ---- */
void *api_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	/* There are no child processes to share it with, so it is ordinary memory. */
	if (flags == (MAP_SHARED | MAP_ANONYMOUS))
		return mmap(at, len, prot, flags, fd, offset);
	assert(!at && prot == (PROT_READ | PROT_WRITE) && fd < 0 && offset == 0);
	assert(flags == (MAP_PRIVATE | MAP_ANONYMOUS));
	return sim_pages_new(len);
}

int api_munmap(void *at, size_t len)
{
	sim_pages_free(at, len);
	return 0;
}

/* Whole pages, because a test will register them as a segment. */
void *api_aligned_alloc(size_t alignment, size_t len)
{
	assert(alignment == FABRIC_PAGE);
	return sim_pages_new(len);
}

/* Pages stay allocated until the program ends. */
void api_free(void *at)
{
	if (!fabric_is_ours(at))
		free(at);
}

/* ---- threads ---- */
struct thread {
	void *(*fn)(void *arg);
	void *arg, *result;
	struct sim_coro *coro;
};

static void thread_main(void *arg)
{
	struct thread *t = arg;

	t->result = t->fn(t->arg);
}

int api_thread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	struct thread *t = calloc(1, sizeof(*t));

	assert(t && !attr);
	sim_step(&sim_self()->world);
	sim_sync();
	*t = (struct thread){.fn = fn, .arg = arg};
	t->coro = sim_coro_new(sim_self(), thread_main, t);
	*ret = (pthread_t)(uintptr_t)t->coro;
	return 0;
}

/* Until another thread of this process has done something. */
static void block(void)
{
	sim_coro_block(UINT64_MAX);
	sim_sync();
}

int api_thread_join(pthread_t thread, void **ret)
{
	struct sim_coro *c = (struct sim_coro *)(uintptr_t)thread;
	struct thread *t = c->arg;

	sim_step(&sim_self()->world);
	while (!c->finished)
		block();
	sim_sync();
	if (ret)
		*ret = t->result;
	free(t);
	return 0;
}

pthread_t api_thread_self(void)
{
	return (pthread_t)(uintptr_t)sim_coro_current();
}

int api_mutex_lock(pthread_mutex_t *m)
{
	sim_step(&sim_self()->world);
	while (pthread_mutex_trylock(m))
		block();
	sim_sync();
	return 0;
}

int api_mutex_unlock(pthread_mutex_t *m)
{
	sim_sync();
	pthread_mutex_unlock(m);
	sim_notify(sim_self());
	return 0;
}

/* May also wake without a signal, as POSIX allows. */
int api_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	(void)c;
	api_mutex_unlock(m);
	block();
	return api_mutex_lock(m);
}

int api_cond_signal(pthread_cond_t *c)
{
	(void)c;
	sim_step(&sim_self()->world);
	sim_notify(sim_self());
	return 0;
}

struct barrier {
	unsigned wanted, waiting, round;
};
_Static_assert(sizeof(struct barrier) <= sizeof(pthread_barrier_t), "it lies in the caller's");

int api_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attr, unsigned n)
{
	assert(!attr);
	*(struct barrier *)(void *)b = (struct barrier){.wanted = n};
	return 0;
}

int api_barrier_wait(pthread_barrier_t *at)
{
	struct barrier *b = (struct barrier *)(void *)at;
	unsigned round = b->round;

	sim_step(&sim_self()->world);
	sim_sync();
	if (++b->waiting == b->wanted) {
		b->waiting = 0;
		b->round++;
		sim_notify(sim_self());
		return PTHREAD_BARRIER_SERIAL_THREAD;
	}
	while (b->round == round)
		block();
	return 0;
}

int api_barrier_destroy(pthread_barrier_t *b)
{
	(void)b;
	return 0;
}
