/* SPDX-License-Identifier: BSD-2-Clause */
/* How the library's packets go to a smartiod. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_words_wait_for_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
