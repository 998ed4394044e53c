/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pair.h"

#define PROGRAMS 4096
#define VALUES 64
#define LIMIT_S 60
#define UNKNOWN (-1)

enum kind { STEP, BARRIER, END, VALUE, DOWN };

struct word {
	uint32_t kind, index;
	int64_t value;
};

static int line = -1;
static bool child, over;
static void (*on_step)(unsigned step);
static unsigned programs; /* forked so far, on either machine */
/* Guarded by the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t heard = PTHREAD_COND_INITIALIZER;
static unsigned barriers; /* of the other one's that were not met yet */
static int ends[PROGRAMS];
static pid_t stands_for[PROGRAMS];
static long long values[VALUES];
static unsigned n_values;

bool pair_is(void)
{
	const char *set = getenv("SMARTIO_TEST_PAIR");

	return set && *set;
}

unsigned pair_node(void)
{
	return (unsigned)strtoul(getenv("SMARTIO_TEST_PAIR"), NULL, 10);
}

/* A test that two machines cannot run, of a program that they can. */
static void __attribute__((constructor)) skip_one(void)
{
	const char *name = getenv("SMARTIO_TEST_SKIP");

	if (pair_is() && name && *name)
		cmocka_set_skip_filter(name);
}

/* ---- the line ---- */

static void tell(enum kind kind, unsigned index, long long value)
{
	struct word w = {(uint32_t)kind, index, value};

	if (send(line, &w, sizeof(w), MSG_NOSIGNAL) != (ssize_t)sizeof(w))
		fprintf(stderr, "the other machine's program has ended\n");
}

static void hear(const struct word *w)
{
	if (w->kind == STEP) {
		on_step(w->index);
		return;
	}
	pthread_mutex_lock(&lock);
	if (w->kind == BARRIER)
		barriers++;
	if (w->kind == DOWN)
		over = true;
	if (w->kind == END && w->index < PROGRAMS)
		ends[w->index] = (int)w->value;
	if (w->kind == VALUE && n_values < VALUES)
		values[n_values++] = w->value;
	pthread_cond_broadcast(&heard);
	pthread_mutex_unlock(&lock);
}

static void *listen_to_it(void *arg)
{
	struct word w;

	(void)arg;
	while (recv(line, &w, sizeof(w), MSG_WAITALL) == (ssize_t)sizeof(w))
		hear(&w);
	if (over)
		return NULL;
	fprintf(stderr, "the other machine's program has ended\n");
	_exit(1);
}

static int connect_to(const struct sockaddr_in *at)
{
	const struct timespec pause = {.tv_nsec = 20000000};

	for (int i = 0; i < LIMIT_S * 50; i++) {
		int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (connect(s, (const struct sockaddr *)at, sizeof(*at)) == 0)
			return s;
		close(s);
		nanosleep(&pause, NULL); /* it has not begun to listen yet */
	}
	return -1;
}

static int accept_at(const struct sockaddr_in *at)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, conn = -1;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (const struct sockaddr *)at, sizeof(*at)) == 0 && listen(s, 1) == 0)
		conn = accept(s, NULL, NULL);
	close(s);
	return conn;
}

static void be_over(void)
{
	if (!child)
		tell(DOWN, 0, 0);
}

int pair_up(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	char address[32] = "";
	unsigned node, port;
	pthread_t thread;
	int one = 1;

	if (line >= 0)
		return 0;
	if (sscanf(getenv("SMARTIO_TEST_PAIR"), "%u %31[0-9.]:%u", &node, address, &port) != 3 ||
	    inet_pton(AF_INET, address, &at.sin_addr) != 1) {
		fprintf(stderr, "SMARTIO_TEST_PAIR: NODE ADDRESS:PORT is right\n");
		return -1;
	}
	at.sin_port = htons((uint16_t)port);
	for (unsigned i = 0; i < PROGRAMS; i++)
		ends[i] = UNKNOWN;
	line = node == PAIR_FIRST ? accept_at(&at) : connect_to(&at);
	if (line < 0 || pthread_create(&thread, NULL, listen_to_it, NULL)) {
		perror("the other machine's program");
		return -1;
	}
	setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	pthread_detach(thread);
	atexit(be_over);
	return 0;
}

void pair_child(void)
{
	child = true;
}

bool pair_is_child(void)
{
	return child;
}

/* With the lock: wait until something was heard. Return: false: nothing, for too long. */
static bool await_word(int limit_s)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += limit_s;
	return pthread_cond_timedwait(&heard, &lock, &until) == 0;
}

/* ---- steps ---- */

void pair_on_step(void (*fn)(unsigned step))
{
	on_step = fn;
}

void pair_step(unsigned step)
{
	tell(STEP, step, 0);
}

void pair_barrier(void)
{
	bool met = true;

	tell(BARRIER, 0, 0);
	pthread_mutex_lock(&lock);
	while (!barriers && met)
		met = await_word(2 * LIMIT_S);
	barriers -= met;
	pthread_mutex_unlock(&lock);
	if (met)
		return;
	fprintf(stderr, "the other machine's program does not come here\n");
	_exit(1);
}

/* ---- programs ---- */

int pair_fork(bool here, pid_t *ret_pid)
{
	unsigned program = programs++ % PROGRAMS;

	pthread_mutex_lock(&lock);
	stands_for[program] = 0;
	pthread_mutex_unlock(&lock);
	if (here)
		return (int)program;
	*ret_pid = fork();
	if (*ret_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	stands_for[program] = *ret_pid;
	return -1;
}

void pair_tell_end(int program, int status)
{
	tell(END, (unsigned)program, status);
}

int pair_end(pid_t pid, int limit_ms)
{
	unsigned i = 0;
	int status;

	while (i < PROGRAMS && stands_for[i] != pid)
		i++;
	if (i == PROGRAMS)
		return -1;
	pthread_mutex_lock(&lock);
	while (ends[i] == UNKNOWN && await_word(limit_ms / 1000))
		;
	status = ends[i];
	ends[i] = UNKNOWN;
	stands_for[i] = 0;
	pthread_mutex_unlock(&lock);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (status == UNKNOWN)
		fprintf(stderr, "program %u of the other machine does not end\n", i);
	return status == UNKNOWN ? 1 : status;
}

/* ---- values ---- */

void pair_share(bool here, long long *v, unsigned n)
{
	bool some = true;

	if (child)
		return;
	for (unsigned i = 0; here && i < n; i++)
		tell(VALUE, 0, v[i]);
	if (here)
		return;
	pthread_mutex_lock(&lock);
	while (n_values < n && some)
		some = await_word(LIMIT_S);
	for (unsigned i = 0; i < n; i++)
		v[i] = some ? values[i] : -1;
	if (some) {
		memmove(values, values + n, (n_values - n) * sizeof(values[0]));
		n_values -= n;
	}
	pthread_mutex_unlock(&lock);
}

void pair_cannot(const char *needs)
{
	print_message("[  NEEDS   ] %s\n", needs);
	skip();
}
