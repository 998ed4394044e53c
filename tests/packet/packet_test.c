/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets with descriptors: whole, at most so many, and none left open. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "packet/packet.h"

#define T(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)

struct pair {
	int end[2];
	int lowest; /* free descriptor, before the test */
};

static int lowest_free(void)
{
	int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	return fd;
}

static int open_pair(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	*state = p;
	if (!p || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p->end) < 0)
		return -1;
	p->lowest = lowest_free();
	return 0;
}

/* No test leaves a descriptor open. */
static int close_pair(void **state)
{
	struct pair *p = *state;
	int rc = lowest_free() == p->lowest ? 0 : -1;

	close(p->end[0]);
	close(p->end[1]);
	free(p);
	return rc;
}

static void send_zeros(const struct pair *p, unsigned n_fds)
{
	int fds[SIO_PACKET_FDS] = {0};

	assert_int_equal(sio_packet_send(p->end[0], "abcd", 4, fds, n_fds, false), 4);
}

static void a_packet_arrives_with_its_descriptors(void **state)
{
	const struct pair *p = *state;
	unsigned n_fds;
	char buf[16];
	int fds[2];
	bool lost;

	send_zeros(p, 2);
	assert_int_equal(sio_packet_recv(p->end[1], buf, sizeof(buf), fds, 2, &n_fds, &lost), 4);
	assert_memory_equal(buf, "abcd", 4);
	assert_int_equal(n_fds, 2);
	assert_false(lost);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
		close(fds[i]);
	}
}

static void descriptors_beyond_the_most_are_closed(void **state)
{
	const struct pair *p = *state;
	unsigned n_fds;
	char buf[16];
	int fd;
	bool lost;

	send_zeros(p, SIO_PACKET_FDS);
	assert_int_equal(sio_packet_recv(p->end[1], buf, sizeof(buf), &fd, 1, &n_fds, &lost), 4);
	assert_int_equal(n_fds, 1);
	assert_true(lost);
	close(fd);
	assert_int_equal(lowest_free(), p->lowest);
}

static void a_full_table_loses_descriptors_and_not_the_packet(void **state)
{
	const struct pair *p = *state;
	struct rlimit before, none;
	unsigned n_fds;
	char buf[16];
	int fds[2];
	bool lost;

	send_zeros(p, 2);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = (rlim_t)p->lowest, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(sio_packet_recv(p->end[1], buf, sizeof(buf), fds, 2, &n_fds, &lost), 4);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(n_fds, 0);
	assert_true(lost);
}

static void a_long_packet_is_told_and_its_descriptors_are_ours(void **state)
{
	const struct pair *p = *state;
	unsigned n_fds;
	char byte;
	int fd;
	bool lost;

	send_zeros(p, 1);
	assert_int_equal(sio_packet_recv(p->end[1], &byte, 1, &fd, 1, &n_fds, &lost), -EMSGSIZE);
	assert_int_equal(n_fds, 1);
	close(fd);
}

static void nobody_waits(void **state)
{
	const struct pair *p = *state;
	unsigned n_fds = 7;
	ssize_t n;
	char buf[4096] = {0};
	int fd;
	bool lost;

	assert_int_equal(sio_packet_recv(p->end[1], buf, sizeof(buf), &fd, 1, &n_fds, &lost),
			 -EAGAIN);
	assert_int_equal(n_fds, 0);
	do
		n = sio_packet_send(p->end[0], buf, sizeof(buf), NULL, 0, false);
	while (n == sizeof(buf));
	assert_int_equal(n, -EAGAIN);
}

static void an_end_is_told(void **state)
{
	struct pair *p = *state;
	unsigned n_fds;
	char buf[16];
	int fd;
	bool lost;

	assert_int_equal(shutdown(p->end[0], SHUT_RDWR), 0);
	assert_int_equal(sio_packet_recv(p->end[1], buf, sizeof(buf), &fd, 1, &n_fds, &lost), 0);
	assert_int_equal(sio_packet_send(p->end[1], buf, 1, NULL, 0, true), -EPIPE);
}

static void more_descriptors_than_the_kernel_takes_are_refused(void **state)
{
	const struct pair *p = *state;
	int fds[SIO_PACKET_FDS + 1] = {0};

	assert_int_equal(sio_packet_send(p->end[0], "a", 1, fds, SIO_PACKET_FDS + 1, false),
			 -EINVAL);
	assert_int_equal(sio_packet_send(p->end[0], "a", 1, (int[]){-1}, 1, false), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_packet_arrives_with_its_descriptors),
		T(descriptors_beyond_the_most_are_closed),
		T(a_full_table_loses_descriptors_and_not_the_packet),
		T(a_long_packet_is_told_and_its_descriptors_are_ours),
		T(nobody_waits),
		T(an_end_is_told),
		T(more_descriptors_than_the_kernel_takes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
