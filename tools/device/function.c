/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/pci_regs.h>

#include "device/disk.h"
#include "device/function.h"
#include "device/function_name.h"

#define DEVICES "/sys/bus/pci/devices/"
#define GROUPS "/sys/kernel/iommu_groups/"

/* ---- files of sysfs ---- */

static int write_file(const char *path, const char *text, struct sio_err *reterr)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r = 0;

	if (fd < 0)
		return sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	if (write(fd, text, strlen(text)) < 0)
		r = sio_fail(reterr, -errno, "writing '%.*s' to %s: %s", (int)strcspn(text, "\n"),
			     text, path, strerror(errno));
	close(fd);
	return r;
}

/* The first line of the file; "" if it cannot be read. */
static void read_line(const char *path, char *ret, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);

	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	if (fd >= 0)
		close(fd);
}

/* The last part of the link's target; "" if there is none. */
static void link_name(const char *path, char *ret, size_t size)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	const char *slash;

	target[n > 0 ? n : 0] = '\0';
	slash = strrchr(target, '/');
	snprintf(ret, size, "%.*s", (int)size - 1, slash ? slash + 1 : target);
}

static void file_of(const struct tool_function *f, const char *name, char *ret, size_t size)
{
	snprintf(ret, size, DEVICES "%s/%s", f->bdf, name);
}

/* ---- finding ---- */

static int parse(const char *word, unsigned *domain, unsigned *bus, unsigned *slot, unsigned *func)
{
	int end = 0;

	if (sscanf(word, "%x:%x:%x.%x%n", domain, bus, slot, func, &end) != 4 || word[end]) {
		*domain = 0;
		end = 0;
		if (sscanf(word, "%x:%x.%x%n", bus, slot, func, &end) != 3 || word[end])
			return -EINVAL;
	}
	return *domain > 0xffff || *bus > 0xff || *slot > 0x1f || *func > 7 ? -EINVAL : 0;
}

/* The number in one of its files ("0x8086"); 0xffff if there is none. */
static unsigned number_of(const struct tool_function *f, const char *file)
{
	char path[PATH_MAX], text[16];

	file_of(f, file, path, sizeof(path));
	read_line(path, text, sizeof(text));
	return *text ? (unsigned)strtoul(text, NULL, 16) : 0xffff;
}

/* Headers of type 1 and 2 are bridges'. Everybody may read this part of the configuration space. */
static bool is_bridge(const struct tool_function *f)
{
	unsigned char type = PCI_HEADER_TYPE_NORMAL;
	char path[PATH_MAX];
	int fd;

	file_of(f, "config", path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (pread(fd, &type, 1, PCI_HEADER_TYPE) != 1)
		type = PCI_HEADER_TYPE_NORMAL;
	close(fd);
	return (type & 0x7f) != PCI_HEADER_TYPE_NORMAL;
}

static bool describe(struct tool_function *f)
{
	unsigned vendor = number_of(f, "vendor");

	if (vendor == 0xffff || vendor == 0)
		return false;
	f->bridge = is_bridge(f);
	tool_function_name(vendor, number_of(f, "device"), f->name, sizeof(f->name));
	return true;
}

void tool_function_reread(struct tool_function *f)
{
	char path[PATH_MAX];

	file_of(f, "driver", path, sizeof(path));
	link_name(path, f->driver, sizeof(f->driver));
}

int tool_function_find(const char *word, struct tool_function *ret, struct sio_err *reterr)
{
	unsigned domain, bus, slot, func;
	char path[PATH_MAX], text[32];

	if (parse(word, &domain, &bus, &slot, &func) < 0)
		return sio_fail(reterr, -EINVAL,
				"'%s' is no PCI function; wanted is its place, as 0000:05:00.0",
				word);
	*ret = (struct tool_function){.group = -1};
	snprintf(ret->bdf, sizeof(ret->bdf), "%04x:%02x:%02x.%x", domain, bus, slot, func);
	file_of(ret, "class", path, sizeof(path));
	if (access(path, F_OK) < 0 || !describe(ret))
		return sio_fail(reterr, -ENODEV, "there is no PCI function %s; lspci -D lists them",
				ret->bdf);
	read_line(path, text, sizeof(text));
	ret->class_code = (uint32_t)strtoul(text, NULL, 16);
	file_of(ret, "iommu_group", path, sizeof(path));
	link_name(path, text, sizeof(text));
	if (*text)
		ret->group = (int)strtol(text, NULL, 10);
	tool_function_reread(ret);
	return 0;
}

/* ---- how it is used ---- */

/* 1: yes; 0: no; -errno: unknown, with the reason in @ret. */
static int interface_up(const struct tool_function *f, char *ret, size_t size)
{
	char path[PATH_MAX], flags[32];
	struct dirent *entry = NULL;
	int found = 0;
	DIR *dir;

	file_of(f, "net", path, sizeof(path));
	dir = opendir(path);
	if (!dir && errno == ENOENT)
		return 0;
	while (dir && !found && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), DEVICES "%s/net/%s/flags", f->bdf, entry->d_name);
		read_line(path, flags, sizeof(flags));
		if (!*flags)
			break;
		found = strtoul(flags, NULL, 16) & 1; /* IFF_UP */
		if (found)
			snprintf(ret, size, "network interface %s is up", entry->d_name);
	}
	if (!dir || (!found && entry)) {
		found = -EIO;
		snprintf(ret, size, "%.200s cannot be looked at", path);
	}
	if (dir)
		closedir(dir);
	return found;
}

int tool_function_unused(const struct tool_function *f, struct sio_err *reterr)
{
	char what[300];
	int used = tool_disk_in_use("", f->bdf, what, sizeof(what));

	if (used == 0)
		used = interface_up(f, what, sizeof(what));
	if (used)
		return sio_fail(reterr, -EBUSY, "%s %s in use: %s", f->bdf,
				used < 0 ? "may be" : "is", what);
	return 0;
}

/* ---- IOMMU ---- */

void tool_function_iommu(const struct tool_function *f, char ret[TOOL_FUNCTION_WORD])
{
	char path[PATH_MAX];

	*ret = '\0';
	if (f->group < 0)
		return;
	snprintf(path, sizeof(path), GROUPS "%d/type", f->group);
	read_line(path, ret, TOOL_FUNCTION_WORD);
}

unsigned tool_function_neighbours(const struct tool_function *f, char ret[TOOL_FUNCTION_BDF])
{
	char path[PATH_MAX];
	struct dirent *entry;
	unsigned n = 0;
	DIR *dir;

	*ret = '\0';
	snprintf(path, sizeof(path), GROUPS "%d/devices", f->group);
	dir = f->group < 0 ? NULL : opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, f->bdf) != 0 && n++ == 0)
			snprintf(ret, TOOL_FUNCTION_BDF, "%.*s", TOOL_FUNCTION_BDF - 1,
				 entry->d_name);
	if (dir)
		closedir(dir);
	return n;
}

/* ---- unbinding it ---- */

int tool_function_unbind(const struct tool_function *f, struct sio_err *reterr)
{
	char path[PATH_MAX];

	file_of(f, "driver/unbind", path, sizeof(path));
	return *f->driver ? write_file(path, f->bdf, reterr) : 0;
}

int tool_function_override(const struct tool_function *f, const char *driver,
			   struct sio_err *reterr)
{
	char path[PATH_MAX], line[TOOL_FUNCTION_WORD];

	file_of(f, "driver_override", path, sizeof(path));
	snprintf(line, sizeof(line), "%s\n", driver);
	return write_file(path, line, reterr);
}

int tool_function_set_iommu(const struct tool_function *f, const char *type, struct sio_err *reterr)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), GROUPS "%d/type", f->group);
	return write_file(path, type, reterr);
}

int tool_function_probe(const struct tool_function *f, struct sio_err *reterr)
{
	return write_file("/sys/bus/pci/drivers_probe", f->bdf, reterr);
}
