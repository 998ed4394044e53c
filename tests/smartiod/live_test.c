/* SPDX-License-Identifier: BSD-2-Clause */
/* The live edge's parts: packets and descriptors, readers that do not read, pid files, sockets. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "../lib/tempdir.h"
#include "smartiod/live/conn.h"
#include "smartiod/live/file.h"

#define QUEUE 65536

struct end {
	sd_event *event;
	struct live_conn conn;
	int peer; /* the other end */
	unsigned packets, overs, fds;
	size_t last_len;
	int error, kept;
	bool stop, keep, answer;
};

static void on_packet(struct live_conn *c, const void *buf, size_t len, int *fds, unsigned n_fds)
{
	struct end *e = c->ctx;

	(void)buf;
	e->packets++;
	e->fds += n_fds;
	e->last_len = len;
	if (e->keep && n_fds) {
		e->kept = fds[0];
		fds[0] = -1;
	}
	if (e->answer)
		live_conn_send(c, "a", 1, NULL, 0);
	if (e->stop)
		live_conn_stop(c);
}

static void on_over(struct live_conn *c, int error)
{
	struct end *e = c->ctx;

	e->overs++;
	e->error = error;
	live_conn_done(c);
}

static const struct live_conn_handler handler = {.packet = on_packet, .over = on_over};

static int setup(void **state)
{
	struct end *e = calloc(1, sizeof(*e));
	int fd[2];

	if (!e || sd_event_new(&e->event) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) < 0)
		return -1;
	e->peer = fd[1];
	e->kept = -1;
	*state = e;
	return live_conn_init(&e->conn, e->event, fd[0], QUEUE, &handler, e);
}

static int teardown(void **state)
{
	struct end *e = *state;

	live_conn_done(&e->conn);
	if (e->peer >= 0)
		close(e->peer);
	if (e->kept >= 0)
		close(e->kept);
	sd_event_unref(e->event);
	free(e);
	return 0;
}

/* Until the loop has nothing to do. */
static void run(struct end *e)
{
	while (sd_event_run(e->event, 0) > 0)
		;
}

static int lowest_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static void send_fds(int to, const void *buf, size_t len, unsigned n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 64)];
	} control = {.bytes = {0}};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = CMSG_SPACE(sizeof(int) * n)};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	int fds[64];

	for (unsigned i = 0; i < n; i++)
		fds[i] = STDERR_FILENO;
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(h), fds, sizeof(int) * n);
	assert_int_equal(sendmsg(to, &m, MSG_NOSIGNAL), len);
}

static void what_is_not_taken_is_closed(void **state)
{
	struct end *e = *state;
	int before = lowest_fd();

	send_fds(e->peer, "four", 4, 3);
	run(e);
	assert_int_equal(e->packets, 1);
	assert_int_equal(e->fds, 3);
	assert_int_equal(e->last_len, 4);
	assert_int_equal(lowest_fd(), before);
	send_fds(e->peer, "more", 4, 40); /* more than a message may bring */
	run(e);
	assert_int_equal(e->packets, 2);
	assert_int_equal(e->fds, 3 + LIVE_MAX_FDS);
	assert_int_equal(lowest_fd(), before);
	e->keep = true;
	send_fds(e->peer, "keep", 4, 2);
	run(e);
	assert_int_equal(fcntl(e->kept, F_GETFD), FD_CLOEXEC);
}

static void too_long_a_packet_ends_it(void **state)
{
	static const char big[LIVE_MAX_PACKET + 1];
	struct end *e = *state;

	assert_int_equal(send(e->peer, big, LIVE_MAX_PACKET, 0), LIVE_MAX_PACKET);
	run(e);
	assert_int_equal(e->packets, 1);
	assert_int_equal(send(e->peer, big, sizeof(big), 0), sizeof(big));
	run(e);
	assert_int_equal(e->packets, 1);
	assert_int_equal(e->overs, 1);
	assert_int_equal(e->error, -EMSGSIZE);
}

static void what_came_before_the_end_is_read(void **state)
{
	struct end *e = *state;

	for (int i = 0; i < 40; i++)
		assert_int_equal(send(e->peer, "x", 1, 0), 1);
	close(e->peer);
	e->peer = -1;
	run(e);
	assert_int_equal(e->packets, 40);
	assert_int_equal(e->overs, 1);
	assert_int_equal(e->error, 0);
}

/*
 * Whoever closes has not read all that we said, or is answered when he has gone, at once or from
 * the queue: his last words are behind that.
 */
static void last_words_are_read(void **state)
{
	struct end *e = *state;
	int fd[2];

	for (unsigned how = 0; how < 8; how++) {
		bool unread = how & 1, queued = how & 4;

		if (how > 0) {
			e->packets = e->overs = 0;
			assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fd),
					 0);
			e->peer = fd[1];
			assert_int_equal(
				live_conn_init(&e->conn, e->event, fd[0], QUEUE, &handler, e), 0);
		}
		e->answer = how & 2;
		if (unread || queued)
			live_conn_send(&e->conn, "early", 5, NULL, 0);
		while (queued && !e->conn.first)
			live_conn_send(&e->conn, "early", 5, NULL, 0);
		for (int i = 0; i < 3; i++)
			assert_int_equal(send(e->peer, "x", 1, 0), 1);
		close(e->peer);
		e->peer = -1;
		run(e);
		assert_int_equal(e->packets, 3);
		assert_int_equal(e->overs, 1);
		assert_int_equal(e->error, unread || queued ? -ECONNRESET : 0);
	}
}

static void queue_keeps_order_and_copies(void **state)
{
	struct end *e = *state;
	uint32_t data[256] = {0}, got[256];
	unsigned sent = 0;
	int before = lowest_fd(), fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	while (!e->conn.first) { /* until the socket is full */
		data[0] = sent++;
		live_conn_send(&e->conn, data, sizeof(data), NULL, 0);
	}
	data[0] = sent++;
	live_conn_send(&e->conn, data, sizeof(data), &fd, 1);
	close(fd); /* ours; the queue has a copy */
	for (unsigned i = 0; i < sent; i++) {
		run(e);
		assert_int_equal(recv(e->peer, got, sizeof(got), 0), sizeof(got));
		assert_int_equal(got[0], i);
	}
	run(e);
	assert_null(e->conn.first);
	assert_int_equal(e->conn.queued, 0);
	assert_int_equal(e->overs, 0);
	assert_int_equal(lowest_fd(), before);
}

static void who_does_not_read_is_cut_off(void **state)
{
	struct end *e = *state;
	char data[1024] = {0};

	for (unsigned i = 0; !e->conn.over && i < 100000; i++) {
		live_conn_send(&e->conn, data, sizeof(data), NULL, 0);
		assert_int_equal(e->overs, 0); /* never from inside */
		assert_true(e->conn.queued <= QUEUE);
	}
	assert_true(e->conn.over);
	live_conn_send(&e->conn, data, sizeof(data), NULL, 0); /* goes nowhere */
	run(e);
	assert_int_equal(e->overs, 1);
	assert_int_equal(e->error, -ENOBUFS);
}

static void stop_inside_a_packet_ends_reading(void **state)
{
	struct end *e = *state;

	e->stop = true;
	for (int i = 0; i < 5; i++)
		assert_int_equal(send(e->peer, "x", 1, 0), 1);
	run(e);
	assert_int_equal(e->packets, 1);
	assert_int_equal(e->overs, 1);
	assert_true(e->conn.quiet);
}

/* ---- files ---- */

static char dir[96];

static int dir_setup(void **state)
{
	(void)state;
	return test_tempdir("sio-live", dir, sizeof(dir));
}

static int dir_teardown(void **state)
{
	(void)state;
	return rmdir(dir); /* fails if a test leaves something */
}

static const char *in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void pid_file_is_locked_as_long_as_held(void **state)
{
	struct sio_err err;
	char text[32] = "";
	int fd, other, raw;

	(void)state;
	raw = open(in_dir("pid"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(raw, "999999999999\n", 13), 13); /* stale, and longer than ours */
	close(raw);
	assert_int_equal(live_pid_file(in_dir("pid"), &fd, &err), 0);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	assert_int_equal(strtol(text, NULL, 10), getpid());
	assert_int_equal(strlen(text), strcspn(text, "\n") + 1);
	assert_int_equal(live_pid_file(in_dir("pid"), &other, &err), -EBUSY);
	assert_non_null(strstr(err.text, in_dir("pid")));
	close(fd);
	assert_int_equal(live_pid_file(in_dir("pid"), &fd, &err), 0);
	unlink(in_dir("pid"));
	/* Our lock is on a file that is no more: the next one gets its own. */
	assert_int_equal(live_pid_file(in_dir("pid"), &other, &err), 0);
	unlink(in_dir("pid"));
	close(fd);
	close(other);
	assert_int_equal(live_pid_file(in_dir("no/pid"), &fd, &err), -ENOENT);
}

static void sockets_replace_stale_ones_and_name_the_limit(void **state)
{
	char name[128], what[256];
	struct sio_err err;
	int listener, again, fd;
	struct stat st;

	(void)state;
	assert_int_equal(live_connect(in_dir("s"), &fd, &err), -ENOENT);
	assert_int_equal(live_listen(in_dir("s"), &listener, &err), 0);
	assert_int_equal(stat(in_dir("s"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	close(listener);
	assert_int_equal(live_connect(in_dir("s"), &fd, &err), -ECONNREFUSED);
	assert_int_equal(live_listen(in_dir("s"), &again, &err), 0);
	assert_int_equal(live_connect(in_dir("s"), &fd, &err), 0);
	close(fd);
	close(again);
	unlink(in_dir("s"));
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(what, sizeof(what), "%s/%s", dir, name);
	assert_int_equal(live_listen(what, &fd, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "107"));
	assert_non_null(strstr(err.text, name));
	assert_int_equal(live_connect(what, &fd, &err), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_not_taken_is_closed, setup, teardown),
		cmocka_unit_test_setup_teardown(too_long_a_packet_ends_it, setup, teardown),
		cmocka_unit_test_setup_teardown(what_came_before_the_end_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(last_words_are_read, setup, teardown),
		cmocka_unit_test_setup_teardown(queue_keeps_order_and_copies, setup, teardown),
		cmocka_unit_test_setup_teardown(who_does_not_read_is_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(stop_inside_a_packet_ends_reading, setup, teardown),
		cmocka_unit_test_setup_teardown(pid_file_is_locked_as_long_as_held, dir_setup,
						dir_teardown),
		cmocka_unit_test_setup_teardown(sockets_replace_stale_ones_and_name_the_limit,
						dir_setup, dir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
