/* SPDX-License-Identifier: BSD-2-Clause */
/* How the library's packets go to a smartiod, and how it waits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "session/live.h"

/* A smartiod that hangs does not keep a program that ends: its last word is sent, or is not. */
static void last_words_wait_for_nobody(void **state)
{
	char word[16] = "bye", got[16];
	ssize_t n;
	int fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), 0);
	do {
		n = sio_live_try_send(NULL, fd[0], word, sizeof(word));
	} while (n == sizeof(word));
	assert_int_equal(n, -EAGAIN);
	assert_int_equal(recv(fd[1], got, sizeof(got), 0), sizeof(word));
	assert_string_equal(got, word);
	close(fd[1]);
	assert_in_range(-sio_live_try_send(NULL, fd[0], word, sizeof(word)), EPIPE, ECONNRESET);
	close(fd[0]);
}

/* With a limit of one descriptor the system refuses to wait at two: both are looked at, slowly. */
static void waiting_does_not_spin_where_it_cannot_be(void **state)
{
	struct rlimit before, one;
	unsigned looks = 0;
	uint64_t deadline;
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	one = before;
	one.rlim_cur = 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &one), 0);
	deadline = sio_live_now(NULL) + 200000000;
	for (;;) {
		struct sio_poll p[2] = {{.fd = fd[0]}, {.fd = fd[0]}};

		if (sio_live_poll(NULL, p, 2, deadline) == 0)
			break;
		assert_true(p[0].readable && p[1].readable);
		looks++;
	}
	assert_in_range(looks, 0, 10); /* one in 20 ms */
	assert_true(sio_live_now(NULL) >= deadline);
	assert_int_equal(sio_live_poll(NULL, NULL, 0, deadline), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_words_wait_for_nobody),
		cmocka_unit_test(waiting_does_not_spin_where_it_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
