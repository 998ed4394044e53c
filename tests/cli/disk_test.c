/* SPDX-License-Identifier: BSD-2-Clause */
/* What this machine does with a function's disks, on machines made of folders and links. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../lib/tempdir.h"
#include "device/disk.h"

#define DRIVE "0000:05:00.0"
#define OTHER "0000:06:00.0"
#define SWAPS "Filename Type Size Used Priority\n"
#define ROOTFS "21 1 0:19 / / rw - tmpfs tmpfs rw\n"

static char root[80], said[300];

static void shell(const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "set -e; cd %s; %s", root, command);
	assert_int_equal(system(line), 0);
}

static void put(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* A disk of a function, with one partition: sysfs as the kernel makes it. */
static void add_disk(const char *bdf, const char *disk, unsigned minor)
{
	char command[900];

	snprintf(command, sizeof(command),
		 "d=sys/devices/pci0000:00/%s/nvme/nvme0/%s; mkdir -p $d/holders $d/%sp1/holders;"
		 "ln -s ../../$d sys/block/%s; ln -s ../../../$d sys/dev/block/259:%u;"
		 "ln -s ../../../$d/%sp1 sys/dev/block/259:%u",
		 bdf, disk, disk, disk, minor, disk, minor + 1);
	shell(command);
}

/*
 * One with a disk of the drive, "nvme0n1" (259:0, its part 259:1); and "nvme0n10" of another one.
 */
static int setup(void **state)
{
	(void)state;
	said[0] = '\0';
	assert_int_equal(test_tempdir("sio-disk", root, sizeof(root)), 0);
	shell("mkdir -p sys/block sys/dev/block proc/self dev");
	add_disk(DRIVE, "nvme0n1", 0);
	add_disk(OTHER, "nvme0n10", 10);
	put("proc/self/mountinfo", ROOTFS);
	put("proc/swaps", SWAPS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	shell("rm -rf \"$PWD\"");
	return 0;
}

static void is_free(const char *bdf)
{
	if (tool_disk_in_use(root, bdf, said, sizeof(said)) != 0)
		fail_msg("%s is in use: %s", bdf, said);
}

static void is_used(const char *bdf, const char *what)
{
	assert_int_equal(tool_disk_in_use(root, bdf, said, sizeof(said)), 1);
	assert_string_equal(said, what);
}

static void nobody_uses_it(void **state)
{
	(void)state;
	is_free(DRIVE);
	is_free("0000:07:00.0"); /* has no disk */
	is_free("0000:05:00");	 /* is no function; the drive's name begins so */
}

static void a_disk_or_a_part_is_mounted(void **state)
{
	(void)state;
	put("proc/self/mountinfo", ROOTFS "30 21 259:1 / /mnt/data rw,relatime - ext4 /dev/x rw\n");
	is_used(DRIVE, "disk nvme0n1 is mounted at /mnt/data");
	is_free(OTHER);
	put("proc/self/mountinfo", ROOTFS "30 21 259:10 / /home rw - ext4 /dev/x rw\n");
	is_used(OTHER, "disk nvme0n10 is mounted at /home");
	is_free(DRIVE);
}

static void it_is_swapped_to(void **state)
{
	(void)state;
	put("proc/swaps", SWAPS "/dev/nvme0n1p1 partition 1000 0 -2\n");
	is_used(DRIVE, "this machine swaps to disk nvme0n1");
	is_free(OTHER);
	put("proc/swaps", SWAPS "/swapfile file 1000 0 -2\n/dev/nvme0n10 partition 1000 0 -3\n");
	is_used(OTHER, "this machine swaps to disk nvme0n10");
	is_free(DRIVE);
}

static void something_lies_upon_it(void **state)
{
	(void)state;
	shell("mkdir -p sys/block/dm-0/dm; echo vg0-root >sys/block/dm-0/dm/name;"
	      "touch sys/block/nvme0n1/nvme0n1p1/holders/dm-0");
	is_used(DRIVE, "dm-0 (vg0-root) lies upon disk nvme0n1");
	is_free(OTHER);
	shell("rm sys/block/nvme0n1/nvme0n1p1/holders/dm-0; touch sys/block/nvme0n1/holders/md127");
	is_used(DRIVE, "md127 lies upon disk nvme0n1");
	shell("rm sys/block/nvme0n1/holders/md127");
	is_free(DRIVE);
}

/* Several controllers lead to one disk, which lies below none of them. */
static void a_disk_of_several_functions(void **state)
{
	(void)state;
	shell("s=sys/devices/virtual/nvme-subsystem/nvme-subsys3;"
	      "mkdir -p $s/nvme3n1/holders $s/nvme3n1/nvme3n1p1/holders;"
	      "for n in 3 4; do c=sys/devices/pci0000:00/0000:0$n:00.0/nvme/nvme$n; mkdir -p $c;"
	      "ln -s ../../../0000:0$n:00.0 $c/device; ln -s ../../../../../$c $s/nvme$n; done;"
	      "ln -s ../../nvme-subsys3 $s/nvme3n1/device; ln -s ../../$s/nvme3n1 sys/block/nvme3n1;"
	      "ln -s ../../../$s/nvme3n1/nvme3n1p1 sys/dev/block/259:21");
	put("proc/self/mountinfo", "30 21 259:21 / /srv rw - ext4 /dev/x rw\n");
	is_used("0000:03:00.0", "disk nvme3n1 is mounted at /srv");
	is_used("0000:04:00.0", "disk nvme3n1 is mounted at /srv");
	is_free(DRIVE);
}

/* What cannot be opened, for whatever reason, is not taken for free. */
static void who_cannot_look_does_not_know(void **state)
{
	static const struct {
		const char *hide, *show, *path;
	} looks[] = {
		{"mv proc/self/mountinfo kept", "mv kept proc/self/mountinfo",
		 "proc/self/mountinfo"},
		{"rm proc/swaps; ln -s swaps proc/swaps", "rm proc/swaps", "proc/swaps"},
		{"rmdir sys/block/nvme0n1/holders; ln -s holders sys/block/nvme0n1/holders",
		 "rm sys/block/nvme0n1/holders", "sys/block/nvme0n1/holders"},
		{"ln -s nvme0n1 dev/nvme0n1", "rm dev/nvme0n1", "dev/nvme0n1"},
		{"ln -s nvme9n1 sys/block/nvme9n1", "rm sys/block/nvme9n1", "sys/block/nvme9n1"},
		{"mkdir sys/block/nvme9n1; ln -s device sys/block/nvme9n1/device",
		 "rm -r sys/block/nvme9n1", "sys/block/nvme9n1/device"},
		{"mv sys/block kept; ln -s block sys/block", "rm sys/block; mv kept sys/block",
		 "sys/block"},
	};
	char want[200];

	(void)state;
	for (unsigned i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		shell(looks[i].hide);
		assert_true(tool_disk_in_use(root, DRIVE, said, sizeof(said)) < 0);
		snprintf(want, sizeof(want), "%s/%s cannot be looked at: ", root, looks[i].path);
		assert_memory_equal(said, want, strlen(want));
		shell(looks[i].show);
		is_free(DRIVE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_uses_it, setup, teardown),
		cmocka_unit_test_setup_teardown(a_disk_or_a_part_is_mounted, setup, teardown),
		cmocka_unit_test_setup_teardown(it_is_swapped_to, setup, teardown),
		cmocka_unit_test_setup_teardown(something_lies_upon_it, setup, teardown),
		cmocka_unit_test_setup_teardown(a_disk_of_several_functions, setup, teardown),
		cmocka_unit_test_setup_teardown(who_cannot_look_does_not_know, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
