/* SPDX-License-Identifier: BSD-2-Clause */
/* The disks that attach made of this host: their list, and the end of one. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "smartio/disk.h"
#include "document.h"
#include "tool.h"

#define BLOCK "/sys/block/"

struct disk {
	char name[32], source[64], state[16];
	uint64_t first, bytes; /* first: block of the namespace */
	int holder;
	bool read_only;
};

int disk_open_node(void)
{
	int fd = open(SIO_DISK_NODE, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		failed("smartio_blk.ko is not loaded: modprobe smartio_blk");
	else if (errno == EACCES || errno == EPERM)
		failed("disks are made and ended by root alone: use sudo");
	else
		failed("%s: %s", SIO_DISK_NODE, strerror(errno));
	return -1;
}

/* ---- what /sys says ---- */

/* A file of a disk, without the end of its line. False: the disk is gone. */
static bool read_file(const char *disk, const char *file, char *ret, size_t size)
{
	char path[128];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), BLOCK "%s/%s", disk, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, ret, size - 1);
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return false;
	ret[n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return true;
}

static bool read_number(const char *disk, const char *file, uint64_t *ret)
{
	char text[32];

	if (!read_file(disk, file, text, sizeof(text)))
		return false;
	*ret = strtoull(text, NULL, 10);
	return true;
}

static bool read_disk(const char *name, struct disk *d)
{
	uint64_t sectors = 0, holder = 0, read_only = 0;

	memset(d, 0, sizeof(*d));
	if (strncmp(name, SIO_DISK_NAME, strlen(SIO_DISK_NAME)) != 0 ||
	    snprintf(d->name, sizeof(d->name), "%s", name) >= (int)sizeof(d->name) ||
	    !read_file(name, "smartio/source", d->source, sizeof(d->source)) ||
	    !read_file(name, "smartio/state", d->state, sizeof(d->state)) ||
	    !read_number(name, "smartio/first", &d->first) ||
	    !read_number(name, "smartio/holder", &holder) || !read_number(name, "size", &sectors) ||
	    !read_number(name, "ro", &read_only))
		return false;
	d->bytes = sectors * 512;
	d->holder = (int)holder;
	d->read_only = read_only;
	return true;
}

/* ---- disks ---- */

static void print_disk(const struct disk *d, struct json_object *list)
{
	struct json_object *entry;

	if (!list) {
		printf("/dev/%s  %s, from block %" PRIu64 ", %" PRIu64 " bytes, process %d%s%s%s\n",
		       d->name, d->source, d->first, d->bytes, d->holder,
		       d->read_only ? ", read-only" : "", strcmp(d->state, "live") ? ", " : "",
		       strcmp(d->state, "live") ? d->state : "");
		return;
	}
	entry = doc_object();
	doc_string(entry, "disk", d->name);
	doc_string(entry, "device", d->source);
	doc_hex(entry, "lba", d->first);
	doc_hex(entry, "bytes", d->bytes);
	doc_number(entry, "process", (uint64_t)d->holder);
	doc_bool(entry, "read_only", d->read_only);
	doc_string(entry, "state", d->state);
	doc_append(list, entry);
}

int cmd_disks(const struct options *o)
{
	struct json_object *list = o->json ? doc_array() : NULL, *data;
	DIR *dir = opendir(BLOCK);
	struct dirent *e;
	struct disk d;
	unsigned n = 0;

	while (dir && (e = readdir(dir)))
		if (read_disk(e->d_name, &d)) {
			print_disk(&d, list);
			n++;
		}
	if (dir)
		closedir(dir);
	if (list) {
		data = doc_object();
		doc_add(data, "disks", list);
		doc_print("nvme-disks", data);
	} else if (n == 0) {
		printf("this host has no disks of shared drives\n");
	}
	return EXIT_OK;
}

/* ---- detach ---- */

/* /dev/smartio-nvme0, or smartio-nvme0. */
static int find_disk(const char *word, struct disk *ret, uint32_t *ret_index)
{
	const char *name = strncmp(word, "/dev/", 5) ? word : word + 5;
	const char *number = name + strlen(SIO_DISK_NAME);
	char *end = NULL;

	if (!strncmp(name, SIO_DISK_NAME, strlen(SIO_DISK_NAME)) && *number >= '0' &&
	    *number <= '9') {
		*ret_index = (uint32_t)strtoul(number, &end, 10);
		if (!*end && read_disk(name, ret))
			return EXIT_OK;
	}
	return failed("%s is no disk of smartio-nvme attach; smartio-nvme disks lists them", word);
}

/* Its holder ends when all is given back. */
static int await_end(int holder)
{
	struct pollfd p = {.fd = holder, .events = POLLIN};

	while (poll(&p, 1, -1) < 0)
		if (errno != EINTR)
			return failed("poll: %s", strerror(errno));
	return EXIT_OK;
}

static int ask_for(const struct options *o, uint32_t index, int holder)
{
	const struct sio_disk_detach m = {
		.size = sizeof(m), .flags = o->force ? SIO_DISK_FORCE : 0, .index = index};
	int node = disk_open_node(), rc = EXIT_FAILED;

	if (node < 0)
		return rc;
	if (ioctl(node, SIO_DISK_DETACH, &m) == 0)
		rc = await_end(holder);
	else if (errno == EBUSY)
		failed("%s is open (mounted, say); with --force its I/O fails", o->device);
	else
		failed("%s: %s", o->device, strerror(errno));
	close(node);
	return rc;
}

int cmd_detach(const struct options *o)
{
	struct json_object *data;
	struct disk d;
	uint32_t index = 0;
	int rc = find_disk(o->device, &d, &index), holder;

	if (rc)
		return rc;
	holder = pidfd_open(d.holder, 0);
	if (holder < 0)
		return failed("process %d, which holds %s: %s", d.holder, o->device,
			      strerror(errno));
	rc = ask_for(o, index, holder);
	close(holder);
	if (rc || !o->json)
		return rc;
	data = doc_object();
	doc_string(data, "disk", d.name);
	doc_string(data, "device", d.source);
	doc_print("nvme-detach", data);
	return rc;
}
