/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/disk.h"

/* A disk, by its name in /sys/block, on the machine below @root. */
struct disk {
	const char *root, *name;
};

/*
 * The functions below return 1: yes; 0: no; -errno: unknown, with the reason in @ret. A file that
 * does not exist cannot be in use.
 */
static int unseen(const char *path, char *ret, size_t size)
{
	int error = errno;

	if (error == ENOENT || error == ENOTDIR)
		return 0;
	snprintf(ret, size, "%.200s cannot be looked at: %s", path, strerror(error));
	return -error;
}

/* ---- to which function a disk belongs ---- */

/* Does @path lead to something below the function @bdf? */
static int leads_to(const char *path, const char *bdf, char *ret, size_t size)
{
	char real[PATH_MAX], part[64];
	const char *at;

	if (!realpath(path, real))
		return unseen(path, ret, size);
	snprintf(part, sizeof(part), "/%.60s", bdf);
	at = strstr(real, part);
	return at && (at[strlen(part)] == '/' || at[strlen(part)] == '\0');
}

/*
 * A disk behind several controllers is below none of them in sysfs: check the controllers that it
 * has.
 */
static int below_subsystem(const struct disk *d, const char *bdf, char *ret, size_t size)
{
	char path[PATH_MAX];
	struct dirent *entry;
	int found = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/block/%s/device", d->root, d->name);
	dir = opendir(path);
	if (!dir)
		return unseen(path, ret, size);
	while (!found && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "nvme", 4) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/sys/block/%s/device/%s/device", d->root, d->name,
			 entry->d_name);
		found = leads_to(path, bdf, ret, size);
	}
	closedir(dir);
	return found;
}

static int belongs_to(const struct disk *d, const char *bdf, char *ret, size_t size)
{
	char path[PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s/sys/block/%s", d->root, d->name);
	rc = leads_to(path, bdf, ret, size);
	return rc ? rc : below_subsystem(d, bdf, ret, size);
}

/* ---- how a disk is used ---- */

/* Is @name the disk or a partition of it? */
static bool is_part(const struct disk *d, const char *name)
{
	char path[PATH_MAX];

	if (strcmp(name, d->name) == 0)
		return true;
	if (strncmp(name, d->name, strlen(d->name)) != 0)
		return false;
	snprintf(path, sizeof(path), "%s/sys/block/%s/%s", d->root, d->name, name);
	return access(path, F_OK) == 0;
}

static int mounted(const struct disk *d, char *ret, size_t size)
{
	char line[4096], path[PATH_MAX], real[PATH_MAX], where[1024];
	unsigned major, minor;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", d->root);
	file = fopen(path, "re");
	if (!file) { /* where there is a /proc there always is one */
		snprintf(ret, size, "%.200s cannot be looked at: %s", path, strerror(errno));
		return -EIO;
	}
	while (!found && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*u %*u %u:%u %*s %1023s", &major, &minor, where) != 3)
			continue;
		snprintf(path, sizeof(path), "%s/sys/dev/block/%u:%u", d->root, major, minor);
		if (!realpath(path, real))
			continue;
		found = is_part(d, strrchr(real, '/') + 1);
		if (found)
			snprintf(ret, size, "disk %.60s is mounted at %.100s", d->name, where);
	}
	fclose(file);
	return found;
}

static int swapped(const struct disk *d, char *ret, size_t size)
{
	char line[4096], path[PATH_MAX], name[256];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/swaps", d->root);
	file = fopen(path, "re");
	if (!file)
		return unseen(path, ret, size);
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, "/dev/%255s", name) == 1 && is_part(d, name);
	fclose(file);
	if (found)
		snprintf(ret, size, "this machine swaps to disk %.60s", d->name);
	return found;
}

/*
 * A text that says that @holder uses the disk. Volumes of LVM and encryption have names that people
 * know.
 */
static void report_holder(const struct disk *d, const char *holder, char *ret, size_t size)
{
	char path[PATH_MAX], volume[128] = "";
	FILE *file;

	snprintf(path, sizeof(path), "%s/sys/block/%s/dm/name", d->root, holder);
	file = fopen(path, "re");
	if (file && fscanf(file, "%127s", volume) != 1)
		volume[0] = '\0';
	if (file)
		fclose(file);
	snprintf(ret, size, "%.60s%s%.60s%s lies upon disk %.60s", holder, *volume ? " (" : "",
		 volume, *volume ? ")" : "", d->name);
}

/* Does another block device use what @path is? */
static int held_at(const struct disk *d, const char *path, char *ret, size_t size)
{
	char holders[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	if (snprintf(holders, sizeof(holders), "%s/holders", path) >= (int)sizeof(holders))
		return 0;
	dir = opendir(holders);
	if (!dir)
		return unseen(holders, ret, size);
	while (!found && (entry = readdir(dir))) {
		found = entry->d_name[0] != '.';
		if (found)
			report_holder(d, entry->d_name, ret, size);
	}
	closedir(dir);
	return found;
}

/*
 * RAID, a volume manager, encryption: another block device uses the disk or one of its partitions.
 */
static int held(const struct disk *d, char *ret, size_t size)
{
	char path[PATH_MAX], part[PATH_MAX];
	struct dirent *entry;
	int found;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/block/%s", d->root, d->name);
	dir = opendir(path);
	if (!dir)
		return unseen(path, ret, size);
	found = held_at(d, path, ret, size);
	while (!found && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, d->name, strlen(d->name)) != 0)
			continue;
		if (snprintf(part, sizeof(part), "%s/%s", path, entry->d_name) < (int)sizeof(part))
			found = held_at(d, part, ret, size);
	}
	closedir(dir);
	return found;
}

/*
 * The kernel claims a disk for any use of it or of a part of it. So a claim also shows what is
 * mounted where this process cannot see it (another mount namespace), or under a device number of
 * its own (btrfs).
 */
static int claimed(const struct disk *d, char *ret, size_t size)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	if (snprintf(path, sizeof(path), "%s/dev/%s", d->root, d->name) >= (int)sizeof(path))
		return 0;
	for (char *c = path + strlen(d->root); *c; c++)
		if (*c == '!') /* sysfs has it in place of a slash */
			*c = '/';
	if (stat(path, &st) < 0)
		return unseen(path, ret, size);
	if (!S_ISBLK(st.st_mode))
		return 0;
	fd = open(path, O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno == ENXIO || errno == ENOMEDIUM) /* there is no disk behind it */
		return 0;
	if (errno != EBUSY)
		return unseen(path, ret, size);
	snprintf(
		ret, size,
		"disk %.60s is claimed: a file system (of a container?), a volume or a program has it",
		d->name);
	return 1;
}

static int in_use(const struct disk *d, char *ret, size_t size)
{
	static int (*const looks[])(const struct disk *, char *, size_t) = {mounted, swapped, held,
									    claimed};
	int rc = 0;

	for (unsigned i = 0; i < sizeof(looks) / sizeof(looks[0]) && rc == 0; i++)
		rc = looks[i](d, ret, size);
	return rc;
}

int tool_disk_in_use(const char *root, const char *bdf, char *ret, size_t size)
{
	struct dirent *entry;
	char path[PATH_MAX];
	DIR *dir;
	int rc = 0;

	snprintf(path, sizeof(path), "%s/sys/block", root);
	dir = opendir(path);
	if (!dir)
		return unseen(path, ret, size);
	while (rc == 0 && (entry = readdir(dir))) {
		const struct disk d = {root, entry->d_name};

		if (entry->d_name[0] == '.')
			continue;
		rc = belongs_to(&d, bdf, ret, size);
		if (rc > 0)
			rc = in_use(&d, ret, size);
	}
	closedir(dir);
	return rc;
}
