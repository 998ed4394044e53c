/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files of programs are memory for a device, and in what pages they are mapped. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "smartio/uapi.h"
#include "smartiod/port_vfio/vfio_file.h"

#define PAGE 4096u
#define SEAL_FUTURE_WRITE 0x10 /* F_SEAL_FUTURE_WRITE, which old headers of libc lack */

/* ---- devices of /dev/dax ---- */

static bool is_dax(const struct stat *st)
{
	char path[64], target[256];
	const char *class;
	ssize_t n;

	if (!S_ISCHR(st->st_mode))
		return false;
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/subsystem", major(st->st_rdev),
		 minor(st->st_rdev));
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	class = strrchr(target, '/');
	return class && strcmp(class + 1, "dax") == 0;
}

/* Neither "size" nor "align" changes while it is open. 0: it is none. */
static uint64_t dax_number(const struct stat *st, const char *name)
{
	char path[64];
	uint64_t number = 0;
	FILE *f;

	if (!is_dax(st))
		return 0;
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/%s", major(st->st_rdev),
		 minor(st->st_rdev), name);
	f = fopen(path, "re");
	if (f && fscanf(f, "%" SCNu64, &number) != 1)
		number = 0;
	if (f)
		fclose(f);
	return number;
}

/* ---- memfds ---- */

static bool is_memfd(int fd, uint32_t kind, const struct stat *st)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0 || !S_ISREG(st->st_mode))
		return false;
	return ((unsigned long)fs.f_type == TMPFS_MAGIC && kind != SIO_IMPORT_HUGETLB) ||
	       ((unsigned long)fs.f_type == HUGETLBFS_MAGIC && kind != SIO_IMPORT_MEMFD);
}

static int no_file(uint32_t kind, struct sio_err *reterr)
{
	static const char *const right[] = {[SIO_IMPORT_MEMFD] = "a memfd of ordinary pages",
					    [SIO_IMPORT_HUGETLB] = "a memfd of huge pages",
					    [SIO_IMPORT_FILE] =
						    "a memfd, or a device of /dev/dax,"};

	return sio_fail(reterr, -EBADF,
			"IMPORT: the descriptor is of another kind of file: %s is right",
			right[kind]);
}

/* Its size is of after the seal: the program may have made it shorter until then. */
static int memfd_size(int fd, uint64_t *ret, struct sio_err *reterr)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return sio_fail(reterr, -EINVAL, "IMPORT: seal it with F_SEAL_SHRINK before");
	if (seals & (F_SEAL_WRITE | SEAL_FUTURE_WRITE))
		return sio_fail(reterr, -EINVAL, "IMPORT: it is sealed against writing");
	if (fstat(fd, &st) < 0)
		return sio_fail(reterr, -errno, "IMPORT: %s", strerror(errno));
	*ret = (uint64_t)st.st_size / PAGE * PAGE;
	return 0;
}

/* ---- both ---- */

int vfio_file_size(int fd, uint32_t kind, uint64_t *ret, struct sio_err *reterr)
{
	struct stat st;
	int r = 0;

	if (fstat(fd, &st) < 0)
		return sio_fail(reterr, -EBADF, "IMPORT: %s", strerror(errno));
	*ret = kind == SIO_IMPORT_FILE ? dax_number(&st, "size") : 0;
	if (*ret == 0)
		r = is_memfd(fd, kind, &st) ? memfd_size(fd, ret, reterr) : no_file(kind, reterr);
	if (r == 0 && (fcntl(fd, F_GETFL) & (O_ACCMODE | O_PATH)) != O_RDWR)
		r = sio_fail(reterr, -EINVAL, "IMPORT: open it for reading and writing");
	return r;
}

uint64_t vfio_file_page(int fd)
{
	uint64_t page = 0;
	struct stat st;

	if (fstat(fd, &st) == 0)
		page = S_ISREG(st.st_mode) ? (uint64_t)st.st_blksize : dax_number(&st, "align");
	return page > PAGE ? page : PAGE;
}
