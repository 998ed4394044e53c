/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may be another host's daemon: the process that holds its pid file, once. Other processes
 * are children of this one that do what it tells them; the daemon behind the edge only counts.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../lib/tempdir.h"
#include "smartiod/live/live.h"
#include "smartiod/live/file.h"
#include "smartiod/live/transport.h"

#define LIMIT_MS 60000
#define OTHER 8
#define THIRD 12

/* ---- the world of live/peer.c ---- */

static char dir[96], last_log[1024];
static unsigned ups, downs, expelled, lines;

void live_log_from(const char *file, int level, const char *fmt, ...)
{
	va_list ap;

	(void)file;
	(void)level;
	va_start(ap, fmt);
	vsnprintf(last_log, sizeof(last_log), fmt, ap);
	va_end(ap);
	lines++;
}

void smartiod_peer_up(struct smartiod *d, uint32_t node)
{
	(void)d;
	assert_int_equal(node, OTHER);
	ups++;
}

void smartiod_peer_down(struct smartiod *d, uint32_t node)
{
	(void)d;
	assert_int_equal(node, OTHER);
	downs++;
}

void smartiod_peer_expelled(struct smartiod *d, uint32_t node)
{
	(void)d;
	assert_int_equal(node, OTHER);
	expelled++;
}

void smartiod_peer_message(struct smartiod *d, uint32_t node, const void *msg, size_t len)
{
	(void)d;
	(void)node;
	(void)msg;
	(void)len;
}

/* ---- a process that does as it is told ---- */

struct actor {
	pid_t pid;
	int control;
};

static const char *in_dir(const char *name, unsigned node)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s.%u%s", dir, name, node, *name == 's' ? ".pid" : "");
	return path;
}

/* Our number in the pid file of a node, but no lock on it. */
static int forge(unsigned node)
{
	FILE *f = fopen(in_dir("smartiod", node), "w");

	/* Left open, as a daemon would. */
	return f && fprintf(f, "%ld\n", (long)getpid()) > 0 && fflush(f) == 0 ? 0 : -1;
}

static int connect_as(unsigned node)
{
	const uint32_t hello[] = {0x72656570u, 1, node, 4};
	struct sio_err err;
	int fd;

	if (live_connect(in_dir("peer", 4), &fd, &err) < 0 ||
	    send(fd, hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello))
		return -1;
	return fd;
}

/* 0: it goes on; 1: the other end has hung up. */
static int is_over(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) > 0 && (p.revents & POLLHUP);
}

/*
 * p: take the pid file; f: forge it; u: give it up; c: connect; x: close the first of two
 * connections; o: is the last one over?; h: a child keeps the connection, and this process ends.
 */
static int perform(char what, unsigned node)
{
	static int pid_fd = -1, conn[2] = {-1, -1};
	struct sio_err err;

	switch (what) {
	case 'p':
		return live_pid_file(in_dir("smartiod", node), &pid_fd, &err);
	case 'f':
		return forge(node);
	case 'u':
		return close(pid_fd);
	case 'c':
		conn[0] = conn[1];
		conn[1] = connect_as(node);
		return conn[1] < 0;
	case 'x':
		return close(conn[0]);
	case 'o':
		return is_over(conn[1]);
	default:
		return fork() ? -1 : close(pid_fd);
	}
}

static void act(int control)
{
	unsigned char order[2];
	int result;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(control, order, sizeof(order)) == sizeof(order)) {
		result = perform((char)order[0], order[1]);
		if (result == -1 && order[0] == 'h')
			_exit(0);
		if (write(control, &result, sizeof(result)) != sizeof(result))
			break;
	}
	_exit(0);
}

static struct actor actor_new(void)
{
	struct actor a;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	a.pid = fork();
	if (a.pid == 0) {
		close(pair[0]);
		act(pair[1]);
	}
	close(pair[1]);
	a.control = pair[0];
	return a;
}

static void actor_end(struct actor *a)
{
	close(a->control);
	assert_int_equal(waitpid(a->pid, NULL, 0), a->pid);
}

static int tell(const struct actor *a, char what, unsigned char node)
{
	const unsigned char order[2] = {(unsigned char)what, node};
	struct pollfd p = {.fd = a->control, .events = POLLIN};
	int result;

	assert_int_equal(write(a->control, order, 2), 2);
	assert_int_equal(poll(&p, 1, LIMIT_MS), 1);
	assert_int_equal(read(a->control, &result, sizeof(result)), sizeof(result));
	return result;
}

/* ---- fixture: the daemon of node 4 ---- */

static struct sio_topo_host hosts[3] = {{.name = "one", .node = 4},
					{.name = "two", .node = OTHER},
					{.name = "three", .node = THIRD}};
static struct sio_topology topology = {.name = "test", .host = hosts, .n_hosts = 3};

static int setup(void **state)
{
	struct live *l = calloc(1, sizeof(*l));
	struct sio_err err;

	if (!l || test_tempdir("sio-peer", dir, sizeof(dir)) < 0 || sd_event_new(&l->event) < 0)
		return -1;
	l->topology = &topology;
	l->host = &hosts[0];
	l->options.state = dir;
	l->transport = &live_transport_local;
	l->peers_listener.fd = -1;
	ups = downs = expelled = lines = 0;
	*last_log = '\0';
	*state = l;
	return l->transport->open(l, live_peer_accepted, &err) < 0 ||
	       live_listener_start(&l->peers_listener) < 0;
}

static int teardown(void **state)
{
	struct live *l = *state;

	live_peers_free(l);
	live_listener_done(&l->peers_listener);
	sd_event_unref(l->event);
	free(l);
	unlink(in_dir("smartiod", OTHER));
	unlink(in_dir("smartiod", THIRD));
	return rmdir(dir);
}

static void run(struct live *l)
{
	while (sd_event_run(l->event, 0) > 0)
		;
}

static void assert_refused(struct live *l, const struct actor *a, unsigned node, const char *why)
{
	unsigned before = ups;

	assert_int_equal(tell(a, 'c', (unsigned char)node), 0);
	run(l);
	assert_int_equal(ups, before);
	assert_non_null(strstr(last_log, why));
	assert_int_equal(tell(a, 'o', 0), 1);
}

/* ---- tests ---- */

static void only_who_holds_the_pid_file_is_a_daemon(void **state)
{
	struct actor real = actor_new(), false_one = actor_new();

	/* Nobody is node 8 yet. */
	assert_refused(*state, &false_one, OTHER, "No such file");
	assert_int_equal(tell(&real, 'p', OTHER), 0);
	assert_refused(*state, &false_one, OTHER, "names process");
	/* The daemon of another node. */
	assert_int_equal(tell(&false_one, 'p', THIRD), 0);
	assert_refused(*state, &false_one, OTHER, "names process");
	assert_refused(*state, &false_one, 16, "wanted another node of this cluster");
	assert_int_equal(tell(&real, 'c', OTHER), 0);
	run(*state);
	assert_int_equal(ups, 1);
	assert_int_equal(tell(&real, 'o', 0), 0);
	/* A number written into the file is not enough. */
	assert_int_equal(tell(&false_one, 'f', OTHER), 0);
	assert_refused(*state, &false_one, OTHER, "does not hold its lock");
	assert_int_equal(ups, 1);
	assert_int_equal(downs, 0);
	actor_end(&false_one);
	actor_end(&real);
	run(*state);
	assert_int_equal(downs, 1);
}

static void a_daemon_has_one_connection(void **state)
{
	struct actor a = actor_new();

	assert_int_equal(tell(&a, 'p', OTHER), 0);
	assert_int_equal(tell(&a, 'c', OTHER), 0);
	run(*state);
	assert_int_equal(ups, 1);
	assert_refused(*state, &a, OTHER, "connected already");
	assert_int_equal(downs, 0);
	/* It hung up and comes again, before we looked at either. */
	assert_int_equal(tell(&a, 'x', 0), 0);
	assert_int_equal(tell(&a, 'c', OTHER), 0);
	run(*state);
	assert_int_equal(ups, 2);
	assert_int_equal(downs, 1);
	assert_int_equal(tell(&a, 'o', 0), 0);
	actor_end(&a);
}

/* What is left of a daemon that ended does not keep the next one away. */
static void a_newer_daemon_takes_the_place(void **state)
{
	struct actor old = actor_new(), next = actor_new();
	unsigned char order[2] = {'h', 0};
	int result;

	assert_int_equal(tell(&old, 'p', OTHER), 0);
	assert_int_equal(tell(&old, 'c', OTHER), 0);
	run(*state);
	assert_int_equal(write(old.control, order, 2), 2);
	assert_int_equal(read(old.control, &result, sizeof(result)), sizeof(result));
	assert_int_equal(waitpid(old.pid, NULL, 0), old.pid);
	run(*state);
	assert_int_equal(downs, 0);
	assert_int_equal(tell(&next, 'p', OTHER), 0);
	assert_int_equal(tell(&next, 'c', OTHER), 0);
	run(*state);
	assert_int_equal(ups, 2);
	assert_int_equal(downs, 1);
	close(old.control);
	actor_end(&next);
}

static void the_silent_keep_nobody_out(void **state)
{
	struct actor a = actor_new();
	struct sio_err err;
	int silent[200];

	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(live_connect(in_dir("peer", 4), &silent[i], &err), 0);
		if (i % 100 == 99)
			run(*state);
	}
	assert_int_equal(is_over(silent[0]), 1);
	assert_int_equal(is_over(silent[199]), 0);
	assert_int_equal(tell(&a, 'p', OTHER), 0);
	assert_int_equal(tell(&a, 'c', OTHER), 0);
	run(*state);
	assert_int_equal(ups, 1);
	for (unsigned i = 0; i < 200; i++)
		close(silent[i]);
	run(*state);
	assert_int_equal(downs, 0);
	actor_end(&a);
}

/* What a change of the keys says of a connection that there is. */
static int verdict;

static int recheck(struct live *l, struct live_conn *c, struct sio_err *reterr)
{
	(void)l;
	(void)c;
	return verdict ? sio_fail(reterr, verdict, "not to be trusted") : 0;
}

static void who_is_revoked_is_not_waited_for(void **state)
{
	struct live_transport strict = live_transport_local;
	struct actor a = actor_new();
	struct live *l = *state;

	strict.recheck = recheck;
	l->transport = &strict;
	assert_int_equal(tell(&a, 'p', OTHER), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(tell(&a, 'c', OTHER), 0);
		run(l);
		assert_int_equal(ups, i + 1);
		verdict = 0;
		live_peers_check(l);
		run(l);
		assert_int_equal(downs + expelled, i);
		/* One that has expired may be renewed in time. */
		verdict = i == 0 ? -EACCES : -EKEYREVOKED;
		live_peers_check(l);
		run(l);
		assert_int_equal(downs, 1);
		assert_int_equal(expelled, i);
		assert_int_equal(tell(&a, 'o', 0), 1);
	}
	actor_end(&a);
	l->transport = &live_transport_local;
}

static void the_same_complaint_fills_no_log(void **state)
{
	struct actor a = actor_new();
	unsigned before;

	for (unsigned i = 0; i < 200; i++)
		assert_refused(*state, &a, OTHER, "No such file");
	/* The first six, and then those that come 1, 2, 4... s after one that was logged. */
	assert_in_range(lines, 6, 18);
	before = lines;
	assert_refused(*state, &a, 16, "wanted another node of this cluster");
	assert_int_equal(lines, before + 1);
	/* Two that take turns fill none, either. */
	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(tell(&a, 'c', i % 2 ? OTHER : 16), 0);
		run(*state);
		assert_int_equal(tell(&a, 'o', 0), 1);
	}
	assert_int_equal(ups, 0);
	assert_in_range(lines, before + 6, before + 30);
	actor_end(&a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_who_holds_the_pid_file_is_a_daemon),
		TEST(a_daemon_has_one_connection),
		TEST(a_newer_daemon_takes_the_place),
		TEST(the_silent_keep_nobody_out),
		TEST(who_is_revoked_is_not_waited_for),
		TEST(the_same_complaint_fills_no_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
