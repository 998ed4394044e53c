/* SPDX-License-Identifier: BSD-2-Clause */
/* When a process was started, of the process that connected a socket. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "smartiod/live/process.h"

static int refusal; /* of the kernel that is asked for a descriptor of the process; 0: none */

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (name == SO_PEERCRED || !refusal)
		return __real_getsockopt(fd, level, name, value, len);
	errno = refusal;
	return -1;
}

static int listener(struct sockaddr_un *ret, socklen_t *ret_len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	*ret_len = sizeof(sa_family_t); /* the kernel chooses an abstract name */
	assert_int_equal(bind(fd, (struct sockaddr *)ret, *ret_len), 0);
	*ret_len = sizeof(*ret);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret, ret_len), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

/* As smartiod sees who connected. */
static uint64_t start_of(int fd, pid_t *ret)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len), 0);
	*ret = cred.pid;
	return live_process_start(fd, cred.pid);
}

static void connect_to(const struct sockaddr_un *a, socklen_t len, int *ret)
{
	*ret = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(*ret, (const struct sockaddr *)a, len), 0);
}

/* Twice the same, whatever its name; another process differs, and one that is gone is not known. */
static void a_process_is_known_by_its_start(void **state)
{
	int fd, end[3], seen[3], hold[2], status;
	struct sockaddr_un a;
	uint64_t start, child;
	socklen_t len;
	pid_t pid, who;
	char byte;

	(void)state;
	fd = listener(&a, &len);
	for (unsigned i = 0; i < 2; i++) {
		connect_to(&a, len, &end[i]);
		seen[i] = accept(fd, NULL, NULL);
	}
	start = start_of(seen[0], &who);
	assert_true(start > 0);
	assert_int_equal(who, getpid());
	assert_int_equal(prctl(PR_SET_NAME, "x) S 1 2 (3"), 0);
	assert_true(start_of(seen[1], &who) == start);
	assert_int_equal(pipe(hold), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(hold[1]);
		connect_to(&a, len, &end[2]);
		if (read(hold[0], &byte, 1) != 0)
			_exit(1);
		_exit(0);
	}
	seen[2] = accept(fd, NULL, NULL);
	child = start_of(seen[2], &who);
	assert_int_equal(who, pid);
	assert_true(child >= start);
	close(hold[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(start_of(seen[2], &who) == 0);
	assert_true(live_process_start(seen[0], 0) == 0);
	for (unsigned i = 0; i < 3; i++)
		close(seen[i]);
	close(end[0]);
	close(end[1]);
	close(hold[0]);
	close(fd);
}

/* Its number is another's by now. Kernels say that it has ended by an error, or cannot say it. */
static void a_number_that_was_given_again_is_not_known(void **state)
{
	struct sockaddr_un a;
	socklen_t len;
	int fd, end, seen, status;
	pid_t pid;

	(void)state;
	fd = listener(&a, &len);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		connect_to(&a, len, &end);
		_exit(0);
	}
	seen = accept(fd, NULL, NULL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	refusal = EINVAL; /* Linux 6.5 to 6.14, once it has been waited for; since then ESRCH */
	assert_true(live_process_start(seen, getpid()) == 0);
	refusal = ESRCH;
	assert_true(live_process_start(seen, getpid()) == 0);
	refusal = ENOPROTOOPT; /* before Linux 6.5 */
	assert_true(live_process_start(seen, getpid()) > 0);
	refusal = 0;
	close(seen);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_known_by_its_start),
		cmocka_unit_test(a_number_that_was_given_again_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
