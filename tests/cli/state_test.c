/* SPDX-License-Identifier: BSD-2-Clause */
/* State directories: whose they are, what runs in them, and what may be removed. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "../lib/tempdir.h"
#include "base/output.h"
#include "base/state.h"

struct fixture {
	char base[80], dir[128];
};

static void put(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(test_tempdir("sio-state", f->base, sizeof(f->base)), 0);
	setenv("XDG_RUNTIME_DIR", f->base, 1);
	unsetenv("SMARTIO_STATE");
	snprintf(f->dir, sizeof(f->dir), "%s/smartio", f->base);
	assert_int_equal(mkdir(f->dir, 0700), 0);
	snprintf(f->dir, sizeof(f->dir), "%s/smartio/one", f->base);
	assert_int_equal(mkdir(f->dir, 0700), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[112];

	snprintf(command, sizeof(command), "rm -rf %s", f->base);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

/* This process plays a program of the cluster: its pid stands in the file, and it has it open. */
static int play(const char *dir, const char *name)
{
	char path[256], text[32];
	int fd;

	snprintf(text, sizeof(text), "%d\n", (int)getpid());
	put(dir, name, text);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void states(void **state)
{
	struct fixture *f = *state;
	char path[160];
	int fd;

	assert_int_equal(tool_state_probe(f->dir), TOOL_STATE_ABSENT);
	snprintf(path, sizeof(path), "%s/none", f->dir);
	assert_int_equal(tool_state_probe(path), TOOL_STATE_ABSENT);
	put(f->dir, "topology.yaml", "");
	assert_int_equal(tool_state_probe(f->dir), TOOL_STATE_STALE);
	fd = play(f->dir, "smartiod.4.pid");
	assert_int_equal(tool_state_probe(f->dir), TOOL_STATE_RUNNING);
	close(fd);
	/* The process of that number lives, but is another one's by now. */
	assert_int_equal(tool_state_probe(f->dir), TOOL_STATE_STALE);
	put(f->dir, "device-0000:05:00.0", "DMA-FQ\n");
	put(f->dir, "local", "");
	put(f->dir, "local.4711", "");
	put(f->dir, "vfio", ""); /* a folder, where `device add --vfio` was used */
	put(f->dir, "vfio.lock", "");
	assert_int_equal(tool_state_strangers(f->dir), 0);
	put(f->dir, "letter.txt", "dear");
	assert_int_equal(tool_state_probe(f->dir), TOOL_STATE_FOREIGN);
	assert_int_equal(tool_state_strangers(f->dir), 1);
}

static void bad_pid_files(void **state)
{
	static const char *const bad[] = {"",	  "x\n", "-1\n", "0\n", "99999999999999999999\n",
					  "1 2\n"};
	struct fixture *f = *state;
	struct tool_program p;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(f->dir, "emu.pid", bad[i]);
		assert_int_equal(tool_state_program(f->dir, "emu", false, &p), -ESRCH);
	}
	assert_int_equal(tool_state_program(f->dir, "smartiod.8", false, &p), -ESRCH);
}

static void programs(void **state)
{
	struct fixture *f = *state;
	struct tool_program *p;
	int fd = play(f->dir, "emu.pid");

	put(f->dir, "smartiod.4.pid", "1\n");
	assert_int_equal(tool_state_programs(f->dir, &p), 1);
	assert_string_equal(p[0].name, "emu");
	assert_int_equal(p[0].pid, getpid());
	assert_true(p[0].pidfd >= 0);
	close(p[0].pidfd);
	free(p);
	close(fd);
}

static void removes_only_its_own(void **state)
{
	struct fixture *f = *state;
	char path[160];
	struct sio_err err;

	put(f->dir, "topology.yaml", "");
	put(f->dir, "emu.log", "");
	put(f->dir, "node.4", "");
	put(f->dir, "letter.txt", "dear");
	assert_int_equal(tool_state_remove(f->dir, &err), -ENOTEMPTY);
	snprintf(path, sizeof(path), "%s/letter.txt", f->dir);
	assert_int_equal(access(path, F_OK), 0);
	snprintf(path, sizeof(path), "%s/emu.log", f->dir);
	assert_int_equal(access(path, F_OK), -1);
	snprintf(path, sizeof(path), "%s/letter.txt", f->dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(tool_state_remove(f->dir, &err), 0);
	assert_int_equal(access(f->dir, F_OK), -1);
}

static void one_command_at_a_time(void **state)
{
	struct fixture *f = *state;
	struct sio_err err;
	int a, b;

	assert_int_equal(tool_state_lock(f->dir, &a, &err), 0);
	assert_int_equal(tool_state_lock(f->dir, &b, &err), -EBUSY);
	close(a);
	assert_int_equal(tool_state_lock(f->dir, &b, &err), 0);
	close(b);
	assert_int_equal(rmdir(f->dir), 0);
	assert_int_equal(tool_state_lock(f->dir, &b, &err), -ENOENT);
}

static void which_cluster(void **state)
{
	struct fixture *f = *state;
	char dir[256], two[160];
	struct sio_err err;
	int one_fd, two_fd;

	assert_int_equal(tool_state_find(NULL, NULL, dir, sizeof(dir), &err), -ENOENT);
	assert_non_null(strstr(err.text, " cluster up TOPOLOGY"));
	one_fd = play(f->dir, "emu.pid");
	assert_int_equal(tool_state_find(NULL, NULL, dir, sizeof(dir), &err), 0);
	assert_string_equal(dir, f->dir);
	snprintf(two, sizeof(two), "%s/smartio/two", f->base);
	assert_int_equal(mkdir(two, 0700), 0);
	two_fd = play(two, "emu.pid");
	assert_int_equal(tool_state_find(NULL, NULL, dir, sizeof(dir), &err), -EEXIST);
	assert_non_null(strstr(err.text, "one, two"));
	assert_int_equal(tool_state_find(NULL, "two", dir, sizeof(dir), &err), 0);
	assert_string_equal(dir, two);
	setenv("SMARTIO_STATE", f->dir, 1);
	assert_int_equal(tool_state_find(NULL, NULL, dir, sizeof(dir), &err), 0);
	assert_string_equal(dir, f->dir);
	assert_int_equal(tool_state_find(two, NULL, dir, sizeof(dir), &err), 0);
	assert_string_equal(dir, two);
	assert_int_equal(tool_state_find("/nowhere", NULL, dir, sizeof(dir), &err), -ENOENT);
	close(one_fd);
	close(two_fd);
}

static void names(void **state)
{
	static const char *const bad[] = {
		"", ".", "..", ".x", "a/b", "/etc", "a-name-that-is-longer-than-thirty-one"};
	char dir[256];
	struct sio_err err;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(tool_state_path(bad[i], dir, sizeof(dir), &err), -EINVAL);
}

static void base_is_ours_alone(void **state)
{
	struct fixture *f = *state;
	char base[96], dir[256];
	struct sio_err err;

	snprintf(base, sizeof(base), "%s/smartio", f->base);
	assert_int_equal(chmod(base, 0777), 0);
	assert_int_equal(tool_state_base(dir, sizeof(dir), &err), -EPERM);
	assert_non_null(strstr(err.text, "chmod 700"));
	assert_int_equal(chmod(base, 0700), 0);
	assert_int_equal(tool_state_base(dir, sizeof(dir), &err), 0);
	assert_string_equal(dir, base);
}

static void too_long_for_a_socket(void **state)
{
	struct sio_topo_host host[2] = {{.node = 4}, {.node = 240}};
	struct sio_topology t = {.n_hosts = 2, .host = host};
	char dir[128];
	struct sio_err err;

	(void)state;
	/* "/node.240" takes 9 bytes. */
	memset(dir, 'x', sizeof(dir));
	dir[0] = '/';
	dir[TOOL_SOCKET_PATH_MAX - 9] = '\0';
	assert_int_equal(tool_state_check_length(dir, &t, &err), 0);
	dir[TOOL_SOCKET_PATH_MAX - 9] = 'x';
	dir[TOOL_SOCKET_PATH_MAX - 8] = '\0';
	assert_int_equal(tool_state_check_length(dir, &t, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "108 bytes, but a socket's path holds 107"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(states),
		TEST(bad_pid_files),
		TEST(programs),
		TEST(removes_only_its_own),
		TEST(one_command_at_a_time),
		TEST(which_cluster),
		TEST(names),
		TEST(base_is_ours_alone),
		TEST(too_long_for_a_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
