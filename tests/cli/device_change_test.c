/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio device add and remove, killed before each of their steps, and the next command, too: in a
 * machine that this file plays, with two functions in one IOMMU group. Whatever was killed, a
 * removal brings each function back to its own driver, and an addition makes one lent.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../lib/tempdir.h"
#include "base/command.h"
#include "base/local.h"
#include "base/output.h"
#include "device/device_give.h"
#include "device/device_vfio.h"
#define DEVICE_CHANGE_TEST
#include "device_change.h"

#define N 2
#define KILLED 99
#define GROUP 4321 /* /dev has no such one */
#define OWN "nvme"
#define OWN_TYPE "DMA-FQ"

static const char *const bdf[N] = {"fffe:05:00.0", "fffe:05:00.1"};

/* What the kernel knows, which no death changes. */
struct machine {
	char driver[N][TOOL_FUNCTION_WORD], override[N][TOOL_FUNCTION_WORD];
	char type[TOOL_FUNCTION_WORD];
	unsigned left; /* steps until this process is killed; 0: it is not */
};
static struct machine *m;
static char root[80];

/* ---- steps ---- */

static void step(void)
{
	if (m->left && --m->left == 0)
		_exit(KILLED);
}

static const char *in_root(const char *path, char ret[512])
{
	snprintf(ret, 512, "%s%s", root, path);
	return ret;
}

int fake_unlink(const char *path)
{
	char at[512];

	step();
	return unlink(in_root(path, at));
}

int fake_rename(const char *from, const char *to)
{
	char at[512], then[512];

	step();
	return rename(in_root(from, at), in_root(to, then));
}

int fake_mkdir(const char *path, mode_t mode)
{
	char at[512];

	step();
	return mkdir(in_root(path, at), mode);
}

FILE *fake_fopen(const char *path, const char *mode)
{
	char at[512];

	if (*mode == 'w')
		step();
	return fopen(in_root(path, at), mode);
}

/* What is not written yet is lost with the process. */
int fake_fclose(FILE *f)
{
	step();
	return fclose(f);
}

int fake_access(const char *path, int mode)
{
	char at[512];

	return access(in_root(path, at), mode);
}

DIR *fake_opendir(const char *path)
{
	char at[512];

	return opendir(in_root(path, at));
}

uid_t fake_geteuid(void)
{
	return 0;
}

/* ---- the machine's functions ---- */

static unsigned number(const struct tool_function *f)
{
	return strcmp(f->bdf, bdf[1]) == 0;
}

void tool_function_reread(struct tool_function *f)
{
	snprintf(f->driver, sizeof(f->driver), "%s", m->driver[number(f)]);
}

int tool_function_find(const char *word, struct tool_function *ret, struct sio_err *reterr)
{
	(void)reterr;
	*ret = (struct tool_function){.group = GROUP, .name = "a drive"};
	snprintf(ret->bdf, sizeof(ret->bdf), "%s", word);
	tool_function_reread(ret);
	return 0;
}

int tool_function_unused(const struct tool_function *f, struct sio_err *reterr)
{
	(void)f;
	(void)reterr;
	return 0;
}

unsigned tool_function_neighbours(const struct tool_function *f, char ret[TOOL_FUNCTION_BDF])
{
	(void)f;
	*ret = '\0';
	return 0;
}

void tool_function_iommu(const struct tool_function *f, char ret[TOOL_FUNCTION_WORD])
{
	(void)f;
	snprintf(ret, TOOL_FUNCTION_WORD, "%s", m->type);
}

int tool_function_set_iommu(const struct tool_function *f, const char *type, struct sio_err *reterr)
{
	(void)f;
	step();
	if (*m->driver[0] || *m->driver[1])
		return sio_fail(reterr, -EBUSY, "a driver is bound");
	snprintf(m->type, sizeof(m->type), "%s", type);
	return 0;
}

int tool_function_unbind(const struct tool_function *f, struct sio_err *reterr)
{
	(void)reterr;
	step();
	if (*f->driver)
		*m->driver[number(f)] = '\0';
	return 0;
}

int tool_function_override(const struct tool_function *f, const char *driver,
			   struct sio_err *reterr)
{
	(void)reterr;
	step();
	snprintf(m->override[number(f)], TOOL_FUNCTION_WORD, "%s", driver);
	return 0;
}

/* While VFIO has one of a group the kernel binds no other driver in there. */
int tool_function_probe(const struct tool_function *f, struct sio_err *reterr)
{
	unsigned n = number(f);
	const char *driver = *m->override[n] ? m->override[n] : OWN;

	(void)reterr;
	step();
	if (!*m->driver[n] &&
	    (strcmp(driver, TOOL_VFIO_DRIVER) == 0 || strcmp(m->driver[!n], TOOL_VFIO_DRIVER) != 0))
		snprintf(m->driver[n], TOOL_FUNCTION_WORD, "%s", driver);
	return 0;
}

/* ---- what else the commands ask for ---- */

struct tool_where tool_where;

bool tool_local_runs(void)
{
	return false;
}

int tool_local_borrowers(const char *place, unsigned *ret)
{
	(void)place;
	(void)ret;
	return -ENOTCONN;
}

int tool_options(const struct tool_command *self, int argc, char **argv, int *ret_status)
{
	(void)self;
	(void)argc;
	(void)argv;
	(void)ret_status;
	fail();
	return -1;
}

int tool_fail(const struct sio_err *err)
{
	(void)err;
	fail();
	return 1;
}

/* ---- commands, and what they leave ---- */

enum command { ADD, ADD_VFIO, REMOVE };

static int run_here(enum command c, unsigned n)
{
	struct tool_function f;
	struct sio_err err;
	int r = c == REMOVE ? tool_device_take(bdf[n], false, &f, &err)
			    : tool_device_give(bdf[n], false, c == ADD_VFIO, &f, &err);

	if (r < 0 && (c != REMOVE || r != -EINVAL))
		fprintf(stderr, "%s\n", err.text);
	return r;
}

/* In a process that is killed before step @kill. Return: true: it was; false: it has ended well. */
static bool run(enum command c, unsigned n, unsigned kill)
{
	int status;
	pid_t pid;

	m->left = kill;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		tool_notes_off();
		_exit(-run_here(c, n));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	m->left = 0;
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == KILLED)
		return true;
	/* Removed already: the next attempt finds nothing that it could do. */
	if (c != REMOVE || WEXITSTATUS(status) != EINVAL)
		assert_int_equal(WEXITSTATUS(status), 0);
	return false;
}

/* Files in this folder of the made tree, but for those that were not renamed yet. */
static unsigned files_in(const char *folder)
{
	char at[512];
	DIR *dir = opendir(in_root(folder, at));
	struct dirent *e;
	unsigned n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		n += e->d_type != DT_DIR && !strstr(e->d_name, ".new") &&
		     strncmp(e->d_name, ".fffe", 5) != 0;
	closedir(dir);
	return n;
}

static void is_own(void)
{
	for (unsigned n = 0; n < N; n++) {
		assert_string_equal(m->driver[n], OWN);
		assert_string_equal(m->override[n], "");
	}
	assert_string_equal(m->type, OWN_TYPE);
	assert_int_equal(files_in(TOOL_LOCAL_STATE), 0);
	assert_int_equal(files_in(TOOL_LOCAL_STATE "/vfio"), 0);
}

static void is_lent(unsigned n)
{
	bool vfio = strcmp(m->driver[n], TOOL_VFIO_DRIVER) == 0;
	char path[128], at[512];

	if (!vfio)
		assert_string_equal(m->driver[n], TOOL_FUNCTION_DRIVER);
	snprintf(path, sizeof(path), TOOL_LOCAL_STATE "/vfio/%s", bdf[n]);
	assert_int_equal(access(in_root(path, at), F_OK), vfio ? 0 : -1);
	snprintf(path, sizeof(path), TOOL_LOCAL_STATE "/device-%s.underway", bdf[n]);
	assert_int_equal(access(in_root(path, at), F_OK), -1);
	assert_string_equal(m->type, vfio ? OWN_TYPE : "DMA");
}

/* ---- tests ---- */

static const enum command adds[] = {ADD, ADD_VFIO};

/* @c is killed before step @kill. Return: false: it ended before that. */
static bool begin(enum command c, enum command add, unsigned kill)
{
	is_own();
	/* VFIO wants all of a group, and the module changes its type, which no driver may see. */
	*m->driver[1] = '\0';
	if (c == REMOVE)
		assert_false(run(add, 0, 0));
	return run(c, 0, kill);
}

static void end(void)
{
	snprintf(m->driver[1], sizeof(m->driver[1]), OWN);
	is_own();
}

static void killed_then_removed(void **state)
{
	unsigned kills = 0, again = 0;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		for (unsigned kill = 1;; kill++) {
			enum command c = i & 1 ? REMOVE : adds[i / 2];
			bool was = begin(c, adds[i / 2], kill);

			kills += was;
			/* The removals are killed, too, each time before others of their steps. */
			for (unsigned next = 1 + kill % 4; run(REMOVE, 0, next); next += 4)
				again++;
			end();
			if (!was)
				break;
		}
	print_message("%u commands were killed, and %u removals after them\n", kills, again);
	assert_true(kills > 30 && again > 40);
}

static void killed_then_added(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++)
		for (unsigned kill = 1;; kill++) {
			enum command c = i & 1 ? REMOVE : adds[i / 4], next = adds[i / 2 % 2];
			bool was = begin(c, adds[i / 4], kill);

			run(next, 0, kill);
			assert_false(run(next, 0, 0));
			is_lent(0);
			assert_false(run(REMOVE, 0, 0));
			end();
			if (!was)
				break;
		}
}

/* The first one that is removed waits for the last one; whose removal is killed. */
static void killed_with_another_in_the_group(void **state)
{
	bool was = true;

	(void)state;
	for (unsigned kill = 1; was; kill++) {
		*m->driver[1] = '\0'; /* else the first one is refused */
		assert_false(run(ADD_VFIO, 0, 0));
		assert_false(run(ADD_VFIO, 1, 0));
		was = run(REMOVE, 0, kill);
		for (unsigned next = 1 + kill % 4; run(REMOVE, 0, next); next += 4)
			;
		assert_string_equal(m->driver[0], "");
		was |= run(REMOVE, 1, kill);
		for (unsigned next = 1 + kill % 4; run(REMOVE, 1, next); next += 4)
			;
		is_own();
	}
}

static void not_of_a_virtual_machine(void **state)
{
	struct tool_function f;
	struct sio_err err;

	(void)state;
	snprintf(m->driver[0], sizeof(m->driver[0]), TOOL_VFIO_DRIVER);
	assert_int_equal(tool_device_take(bdf[0], false, &f, &err), -EINVAL);
	assert_non_null(strstr(err.text, "was not added: driver vfio-pci has it"));
	snprintf(m->driver[0], sizeof(m->driver[0]), OWN);
	is_own();
}

static void put_folder(const char *path)
{
	char at[512];

	for (char *c = strchr(in_root(path, at) ? at + strlen(root) + 1 : at, '/'); c;
	     c = strchr(c + 1, '/')) {
		*c = '\0';
		mkdir(at, 0755);
		*c = '/';
	}
	assert_true(mkdir(at, 0755) == 0 || errno == EEXIST);
}

static int setup(void **state)
{
	char path[256];

	(void)state;
	m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(m != MAP_FAILED);
	assert_int_equal(test_tempdir("sio-change", root, sizeof(root)), 0);
	put_folder("/sys/bus/pci/drivers/" TOOL_VFIO_DRIVER);
	put_folder("/sys/bus/pci/drivers/" TOOL_FUNCTION_DRIVER);
	put_folder("/run");
	put_folder(TOOL_LOCAL_STATE "/vfio");
	for (unsigned n = 0; n < N; n++) {
		snprintf(path, sizeof(path), "/sys/kernel/iommu_groups/%d/devices/%s", GROUP,
			 bdf[n]);
		put_folder(path);
		snprintf(m->driver[n], sizeof(m->driver[n]), OWN);
	}
	snprintf(m->type, sizeof(m->type), OWN_TYPE);
	return 0;
}

static int teardown(void **state)
{
	char command[112];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	assert_int_equal(system(command), 0);
	return munmap(m, sizeof(*m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_then_removed),
		cmocka_unit_test(killed_then_added),
		cmocka_unit_test(killed_with_another_in_the_group),
		cmocka_unit_test(not_of_a_virtual_machine),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
