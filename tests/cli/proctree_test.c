/* SPDX-License-Identifier: BSD-2-Clause */
/* The process tree: parsing, who hangs below whom, and the end of a real branch. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "cluster/proctree.h"

static void stat_with_a_strange_name(void **state)
{
	struct tool_proc p;

	(void)state;
	assert_int_equal(
		tool_proc_parse("42 (a) b (c)) S 7 42 42 0 -1 4194304 1 0 0 0 3 4 0 0 20 0 "
				"1 0 987654 1000 2 18446744073709551615 1",
				&p),
		0);
	assert_int_equal(p.pid, 42);
	assert_int_equal(p.ppid, 7);
	assert_int_equal(p.state, 'S');
	assert_int_equal(p.start, 987654);
}

static void not_a_stat(void **state)
{
	static const char *const bad[] = {"",	       "42",	     "42 (sh",		 "42 (sh) ",
					  "42 (sh) S", "x (sh) S 1", "42 (sh) S 1 2 3 4"};
	struct tool_proc p;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(tool_proc_parse(bad[i], &p), -EINVAL);
}

static void below(void **state)
{
	/* 1 -> 10 -> 20 -> 30, 1 -> 11; 50 and 51 are each other's parent. */
	static const struct tool_proc p[] = {{1, 0, 0, 'S'},   {10, 1, 0, 'S'},	 {11, 1, 0, 'S'},
					     {20, 10, 0, 'S'}, {30, 20, 0, 'S'}, {50, 51, 0, 'S'},
					     {51, 50, 0, 'S'}};
	size_t n = sizeof(p) / sizeof(p[0]);

	(void)state;
	assert_true(tool_proc_is_below(p, n, 30, 10));
	assert_true(tool_proc_is_below(p, n, 30, 20));
	assert_true(tool_proc_is_below(p, n, 11, 1));
	assert_false(tool_proc_is_below(p, n, 11, 10));
	assert_false(tool_proc_is_below(p, n, 10, 10));
	assert_false(tool_proc_is_below(p, n, 10, 30));
	assert_false(tool_proc_is_below(p, n, 99, 1));
	assert_false(tool_proc_is_below(p, n, 50, 1));
	assert_null(tool_proc_find(p, n, 12));
	assert_null(tool_proc_find(p, 0, 12));
}

static void scan_finds_us(void **state)
{
	const struct tool_proc *us;
	struct tool_proc *p;
	size_t n;

	(void)state;
	assert_int_equal(tool_proc_scan(&p, &n), 0);
	us = tool_proc_find(p, n, getpid());
	assert_non_null(us);
	assert_int_equal(us->ppid, getppid());
	free(p);
}

/* A child that makes a daemon, which makes a child; tells over @fd when all of them are there. */
static void family(int fd)
{
	char c = 1;

	if (fork() == 0) {
		setsid();
		signal(SIGTERM, SIG_IGN);
		if (fork() == 0) {
			signal(SIGHUP, SIG_IGN);
			if (write(fd, &c, 1) < 0)
				_exit(1);
		} else {
			_exit(0); /* the grandchild is nobody's but the subreaper's */
		}
	} else if (write(fd, &c, 1) < 0) {
		_exit(1);
	}
	for (;;)
		pause();
}

static void kills_daemons_too(void **state)
{
	struct tool_proc *p;
	char text[2];
	int fds[2];
	size_t n;

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(pipe(fds), 0);
	if (fork() == 0)
		family(fds[1]);
	for (int told = 0; told < 2;) {
		ssize_t len = read(fds[0], text, 2);

		assert_true(len > 0);
		told += (int)len;
	}
	close(fds[0]);
	close(fds[1]);
	assert_true(tool_proc_kill_descendants() >= 2);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(tool_proc_scan(&p, &n), 0);
	for (size_t i = 0; i < n; i++)
		assert_false(tool_proc_is_below(p, n, p[i].pid, getpid()));
	free(p);
	assert_int_equal(tool_proc_kill_descendants(), 0);
}

static void environment(void **state)
{
	char value[64];

	(void)state;
	/* /proc shows the environment a process was started with: meson's test sets this one. */
	assert_int_equal(tool_proc_env(getpid(), "SMARTIO_TEST", value, sizeof(value)), 0);
	assert_string_equal(value, "a=b");
	assert_int_equal(tool_proc_env(getpid(), "SMARTIO_TES", value, sizeof(value)), -ENOENT);
	assert_int_equal(tool_proc_env(getpid(), "SMARTIO_TEST", value, 3), -ERANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_with_a_strange_name),
		cmocka_unit_test(not_a_stat),
		cmocka_unit_test(below),
		cmocka_unit_test(scan_finds_us),
		cmocka_unit_test(kills_daemons_too),
		cmocka_unit_test(environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
