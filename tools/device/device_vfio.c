/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/local.h"
#include "base/output.h"
#include "base/state.h"
#include "core/iommufd_abi.h"
#include "core/vfio_hold.h"
#include "core/vfio_reach.h"
#include "device/device_vfio.h"

#define NOTES TOOL_LOCAL_STATE "/vfio"
#define WAITS ".waits-" /* smartio-vfio ignores files that begin with a dot */
#define NODES 320
#define PATIENCE_MS 10000 /* until smartio-vfio has released the function, and what reaches it */

/* ---- its IOMMU group ---- */

/*
 * Calls @fn for each other function of the group until a call returns something other than 0, and
 * returns that.
 */
static int each_other(const struct tool_function *f,
		      int (*fn)(const struct tool_function *f, struct tool_function *other,
				struct sio_err *reterr),
		      struct sio_err *reterr)
{
	struct tool_function other;
	struct dirent *entry;
	char path[PATH_MAX];
	int r = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/kernel/iommu_groups/%d/devices", f->group);
	dir = opendir(path);
	while (dir && r == 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, f->bdf) == 0)
			continue;
		r = tool_function_find(entry->d_name, &other, reterr);
		if (r == 0)
			r = fn(f, &other, reterr);
	}
	if (dir)
		closedir(dir);
	return r;
}

/* ---- the note, whose creation and removal smartio-vfio sees ---- */

static int note_path(const struct tool_function *f, const char *prefix, char ret[PATH_MAX],
		     struct sio_err *reterr)
{
	return tool_path(ret, PATH_MAX, reterr, NOTES "/%s%s", prefix, f->bdf);
}

static int write_note(const struct tool_function *f, struct sio_err *reterr)
{
	char path[PATH_MAX], fresh[PATH_MAX];
	FILE *file;

	if ((mkdir(TOOL_LOCAL_STATE, 0755) < 0 && errno != EEXIST) ||
	    (mkdir(NOTES, 0755) < 0 && errno != EEXIST))
		return sio_fail(reterr, -errno, NOTES ": %s", strerror(errno));
	if (note_path(f, "", path, reterr) < 0 || note_path(f, ".", fresh, reterr) < 0)
		return reterr->code;
	file = fopen(fresh, "we");
	if (!file)
		return sio_fail(reterr, -errno, "%s: %s", fresh, strerror(errno));
	fprintf(file, "%s\n", f->name);
	if (fclose(file) != 0 || rename(fresh, path) < 0)
		return sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

static void remove_note(const struct tool_function *f)
{
	char path[PATH_MAX];
	struct sio_err err;

	if (note_path(f, "", path, &err) == 0)
		unlink(path);
}

bool tool_vfio_added(const struct tool_function *f)
{
	char path[PATH_MAX];
	struct sio_err err;

	return strcmp(f->driver, TOOL_VFIO_DRIVER) == 0 && note_path(f, "", path, &err) == 0 &&
	       access(path, F_OK) == 0;
}

/* ---- add ---- */

/* VFIO makes such groups where it is allowed to do without an IOMMU. */
static bool is_without_iommu(const struct tool_function *f)
{
	char path[64], name[32] = "";
	FILE *file;
	bool yes;

	if (f->group < 0)
		return true;
	snprintf(path, sizeof(path), "/sys/kernel/iommu_groups/%d/name", f->group);
	file = fopen(path, "re");
	yes = file && fgets(name, sizeof(name), file) && strcmp(name, "vfio-noiommu\n") == 0;
	if (file)
		fclose(file);
	return yes;
}

/* The kernel gives a program a whole group, or nothing of it. */
static int check_other(const struct tool_function *f, struct tool_function *other,
		       struct sio_err *reterr)
{
	if (other->bridge || !*other->driver || strcmp(other->driver, TOOL_VFIO_DRIVER) == 0)
		return 0;
	return sio_fail(reterr, -EBUSY,
			"%s shares IOMMU group %d with %s, which driver %s has, and VFIO wants all "
			"of a group: unbind that one (echo %s | sudo tee "
			"/sys/bus/pci/devices/%s/driver/unbind; it can be added, too), or put the "
			"card into another slot",
			f->bdf, f->group, other->bdf, other->driver, other->bdf, other->bdf);
}

int tool_vfio_check(const struct tool_function *f, struct sio_err *reterr)
{
	if (access("/sys/bus/pci/drivers/" TOOL_VFIO_DRIVER, F_OK) < 0)
		return sio_fail(reterr, -ENODEV, "vfio-pci is not loaded: sudo modprobe vfio-pci");
	if (is_without_iommu(f))
		return sio_fail(
			reterr, -EOPNOTSUPP,
			"%s has no IOMMU: enable it in the firmware and boot with intel_iommu=on (AMD: "
			"it is on), or use smartio.ko; VFIO's mode without one "
			"(enable_unsafe_noiommu_mode) is refused: nothing there holds memory in place "
			"until the device has stopped (docs/vfio.md)",
			f->bdf);
	return each_other(f, check_other, reterr);
}

/*
 * Its own driver cannot have the function while VFIO has others of the group: this note says that
 * it waits.
 */
static void write_waits(const struct tool_function *f)
{
	char path[PATH_MAX];
	struct sio_err err;
	FILE *file = note_path(f, WAITS, path, &err) == 0 ? fopen(path, "we") : NULL;

	if (file)
		fclose(file);
}

static void remove_waits(const struct tool_function *f)
{
	char path[PATH_MAX];
	struct sio_err err;

	if (note_path(f, WAITS, path, &err) == 0)
		unlink(path);
}

bool tool_vfio_waits(const struct tool_function *f)
{
	char path[PATH_MAX];
	struct sio_err err;

	return note_path(f, WAITS, path, &err) == 0 && access(path, F_OK) == 0;
}

static int is_vfios(const struct tool_function *f, struct tool_function *other,
		    struct sio_err *reterr)
{
	(void)f;
	(void)reterr;
	return strcmp(other->driver, TOOL_VFIO_DRIVER) == 0;
}

static int end_wait(const struct tool_function *f, struct tool_function *other,
		    struct sio_err *reterr)
{
	(void)f;
	if (!tool_vfio_waits(other))
		return 0;
	/*
	 * In this order, so that the next removal repeats both if this process is killed in
	 * between.
	 */
	tool_function_probe(other, reterr);
	remove_waits(other);
	return 0;
}

static void undo(struct tool_function *f)
{
	struct sio_err err;

	remove_note(f);
	tool_function_override(f, "", &err);
	tool_function_reread(f);
	if (strcmp(f->driver, TOOL_VFIO_DRIVER) == 0)
		tool_function_unbind(f, &err);
	tool_function_probe(f, &err);
	tool_function_reread(f);
	if (each_other(f, is_vfios, &err) == 0)
		each_other(f, end_wait, &err);
	else if (!*f->driver)
		write_waits(f);
}

int tool_vfio_give(struct tool_function *f, struct sio_err *reterr)
{
	bool bound = strcmp(f->driver, TOOL_VFIO_DRIVER) == 0;
	int r = bound ? 0 : tool_function_unbind(f, reterr);

	if (r < 0)
		return r;
	r = tool_function_override(f, TOOL_VFIO_DRIVER, reterr);
	if (r == 0)
		r = tool_function_probe(f, reterr);
	tool_function_reread(f);
	if (r == 0 && strcmp(f->driver, TOOL_VFIO_DRIVER) != 0)
		r = sio_fail(reterr, -EIO, "vfio-pci did not take %s: dmesg tells why", f->bdf);
	if (r == 0)
		r = write_note(f, reterr);
	if (r < 0)
		undo(f);
	else
		remove_waits(f);
	return r;
}

/* ---- remove ---- */

/* 0, -EBUSY, or -ENOENT: the kernel has no groups (CONFIG_VFIO_GROUP), or none that VFIO has. */
static int try_group(const struct tool_function *f)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/vfio/%d", f->group);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == EBUSY || errno == ENOENT ? -errno : 0;
	close(fd);
	return 0;
}

/* A program has the function by either of them; the second exists where the kernel has iommufd. */
static void name_nodes(const struct tool_function *f, char ret[NODES])
{
	char path[PATH_MAX], node[NODES / 2];
	struct dirent *e;
	DIR *dir;
	int n = snprintf(ret, NODES, "/dev/vfio/%d", f->group);

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/vfio-dev", f->bdf);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		snprintf(node, sizeof(node), SIO_VFIO_CDEVS "/%.64s", e->d_name);
		if (e->d_name[0] != '.' && access(node, F_OK) == 0)
			snprintf(ret + n, NODES - (size_t)n, " %s", node);
	}
	if (dir)
		closedir(dir);
}

static bool is_held(const struct tool_function *f)
{
	char nodes[NODES], *node = nodes;
	int fd = eventfd(0, EFD_CLOEXEC);
	bool held = fd >= 0 && sio_vfio_is_held(fd, f->bdf);

	if (fd >= 0)
		close(fd);
	name_nodes(f, nodes);
	while (!held && (node = strchr(node, ' '))) {
		*node++ = '\0';
		fd = open(node, O_RDONLY | O_CLOEXEC);
		held = fd >= 0 && sio_vfio_is_held(fd, f->bdf);
		if (fd >= 0)
			close(fd);
	}
	return held;
}

static int other_is_held(const struct tool_function *f, struct tool_function *other,
			 struct sio_err *reterr)
{
	(void)f;
	(void)reterr;
	return is_held(other);
}

/*
 * The group being open is no sign: a program may have it open for another function of the group.
 * Without groups there is the lock of the function's own node alone.
 */
static bool is_free(const struct tool_function *f)
{
	struct sio_err ignored;
	int r = try_group(f);

	if (r == 0 || is_held(f))
		return r == 0;
	return r == -ENOENT || each_other(f, other_is_held, &ignored) == 1;
}

/*
 * Does somebody have a function whose mappings may reach this one, which smartio-vfio has not? It
 * removes the file with the mapping; without it the mapping stays as long as that one is open.
 */
static bool is_reached(const struct tool_function *f, struct tool_function *ret)
{
	char from[TOOL_FUNCTION_BDF];
	struct sio_err ignored;
	struct dirent *e;
	bool yes = false;
	DIR *dir = opendir(NOTES);

	while (dir && !yes && (e = readdir(dir)))
		yes = sio_vfio_reach_parse(e->d_name, f->bdf, from, sizeof(from)) &&
		      tool_function_find(from, ret, &ignored) == 0 &&
		      strcmp(ret->driver, TOOL_VFIO_DRIVER) == 0 && try_group(ret) == -EBUSY;
	if (dir)
		closedir(dir);
	return yes;
}

static bool is_unreached(const struct tool_function *f)
{
	struct tool_function other;

	return !is_reached(f, &other);
}

/*
 * For smartio-vfio, which may be about to end: it closes one function after the other. (The kernel
 * unbinds the function only when it is closed, and that wait cannot be interrupted.)
 */
static bool await(const struct tool_function *f, bool (*is_so)(const struct tool_function *f))
{
	struct pollfd p = {.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), .events = POLLIN};
	int64_t until = tool_now_ms() + PATIENCE_MS;
	char buf[4096];
	bool yes;

	if (p.fd < 0)
		return is_so(f);
	inotify_add_watch(p.fd, "/dev/vfio", IN_CLOSE);
	/*
	 * The event comes a moment before a function is closed, so it is checked again after a
	 * pause; the check itself may close groups, whose events are read before it waits.
	 */
	while (!(yes = is_so(f)) && tool_now_ms() < until) {
		while (read(p.fd, buf, sizeof(buf)) > 0)
			;
		poll(&p, 1, 100);
	}
	close(p.fd);
	return yes;
}

/* smartio-vfio closes the function, and unmaps its BARs, when its note goes. */
static int release(const struct tool_function *f, struct sio_err *reterr)
{
	struct tool_function other;
	struct sio_err ignored;
	char nodes[NODES];
	bool noted = tool_vfio_added(f);
	int r = 0;

	/* A smartio-vfio without programs is about to end. */
	if (!tool_local_runs() && !await(f, is_free)) {
		name_nodes(f, nodes);
		return sio_fail(
			reterr, -EBUSY,
			"programs have %s, although no smartiod runs; VFIO takes it from nobody: "
			"end them before (fuser %s tells who they are)",
			f->bdf, nodes);
	}
	remove_note(f);
	if (!await(f, is_free))
		r = sio_fail(
			reterr, -EBUSY,
			"programs still have %s, and VFIO takes it from nobody: end them before",
			f->bdf);
	else if (!await(f, is_unreached) && is_reached(f, &other))
		r = sio_fail(
			reterr, -EBUSY,
			"programs still have %s, whose reads and writes reach %s: end them before "
			"(fuser /dev/vfio/%d tells who they are)",
			other.bdf, f->bdf, other.group);
	if (r < 0 && noted)
		write_note(f, &ignored);
	return r;
}

int tool_vfio_take(struct tool_function *f, struct sio_err *reterr)
{
	int r = strcmp(f->driver, TOOL_VFIO_DRIVER) == 0 ? release(f, reterr) : 0;

	if (r == 0)
		undo(f);
	return r;
}
