/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "smartiod/live/file.h"

#define LIVE_BACKLOG 128
#define LIVE_FIRST_FDS 32 /* looked at before a process's descriptors are listed */

/* A file that was removed between open() and flock() protects nothing. */
static int lock_file(int fd, const char *path)
{
	struct stat ours, there;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (fstat(fd, &ours) < 0)
		return -errno;
	if (stat(path, &there) < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	return ours.st_ino == there.st_ino && ours.st_dev == there.st_dev ? 0 : -EAGAIN;
}

static int write_pid(int fd)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

	if (ftruncate(fd, 0) < 0)
		return -errno;
	if (pwrite(fd, text, (size_t)len, 0) != len)
		return errno ? -errno : -EIO;
	return 0;
}

int live_pid_file(const char *path, int *ret_fd, struct sio_err *reterr)
{
	int fd, r;

	do {
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
		r = lock_file(fd, path);
		if (r < 0)
			close(fd);
	} while (r == -EAGAIN);
	if (r == -EBUSY)
		return sio_fail(reterr, r, "%s: another smartiod of this node is running", path);
	if (r < 0)
		return sio_fail(reterr, r, "%s: %s", path, strerror(-r));
	r = write_pid(fd);
	if (r < 0) {
		unlink(path);
		close(fd);
		return sio_fail(reterr, r, "%s: %s", path, strerror(-r));
	}
	*ret_fd = fd;
	return 0;
}

static pid_t read_pid(int fd)
{
	char text[32] = "", *end;
	long pid;

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return -1;
	pid = strtol(text, &end, 10);
	return *end == '\n' && pid > 0 ? (pid_t)pid : -1;
}

/* The kernel says which lock a descriptor holds: "lock:	1: FLOCK  ADVISORY  WRITE ...". */
static bool has_lock(pid_t pid, const char *fd)
{
	char path[64], line[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/fdinfo/%.10s", (long)pid, fd);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		found = strncmp(line, "lock:", 5) == 0 && strstr(line, " FLOCK ") &&
			strstr(line, " WRITE ");
	fclose(f);
	return found;
}

/* Whether descriptor @fd of the process whose /proc/PID/fd is @dir is @file, and holds its lock. */
static bool is_holder(pid_t pid, int dir, const char *fd, const struct stat *file)
{
	struct stat st;

	return fstatat(dir, fd, &st, 0) == 0 && st.st_ino == file->st_ino &&
	       st.st_dev == file->st_dev && has_lock(pid, fd);
}

/*
 * A daemon opens its pid file before it has a connection to anyone, so that one of the first
 * descriptors is the one; listing all costs as much as it has peers, for each peer of each peer.
 */
static bool holds(pid_t pid, const struct stat *file)
{
	struct dirent *entry;
	bool found = false;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
	dir = opendir(path);
	if (!dir)
		return false;
	for (unsigned fd = 0; !found && fd < LIVE_FIRST_FDS; fd++) {
		snprintf(path, sizeof(path), "%u", fd);
		found = is_holder(pid, dirfd(dir), path, file);
	}
	while (!found && (entry = readdir(dir)))
		found = is_holder(pid, dirfd(dir), entry->d_name, file);
	closedir(dir);
	return found;
}

int live_pid_check(const char *path, pid_t pid, struct sio_err *reterr)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	pid_t named;
	int r = 0;

	if (fd < 0)
		return sio_fail(reterr, -ESRCH, "%s: %s", path, strerror(errno));
	named = read_pid(fd);
	if (named != pid)
		r = sio_fail(reterr, -ESRCH, "%s names process %ld, not %ld", path, (long)named,
			     (long)pid);
	else if (fstat(fd, &st) < 0 || !holds(pid, &st))
		r = sio_fail(reterr, -ESRCH, "%s names process %ld, which does not hold its lock",
			     path, (long)pid);
	close(fd);
	return r;
}

static int new_socket(const char *path, struct sockaddr_un *a, int *ret_fd, struct sio_err *reterr)
{
	size_t len = strlen(path);
	int fd;

	if (len >= sizeof(a->sun_path))
		return sio_fail(reterr, -ENAMETOOLONG,
				"%s: %zu bytes, but a socket's path holds %zu; "
				"use a state directory with a shorter name",
				path, len, sizeof(a->sun_path) - 1);
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(a->sun_path, path, len);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return sio_fail(reterr, -errno, "%s: socket: %s", path, strerror(errno));
	*ret_fd = fd;
	return 0;
}

int live_listen(const char *path, int *ret_fd, struct sio_err *reterr)
{
	struct sockaddr_un a;
	int fd = -1, r;

	r = new_socket(path, &a, &fd, reterr);
	if (r < 0)
		return r;
	if (unlink(path) < 0 && errno != ENOENT) {
		r = sio_fail(reterr, -errno, "%s: cannot be replaced: %s", a.sun_path,
			     strerror(errno));
		goto close_fd;
	}
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		r = sio_fail(reterr, -errno, "%s: %s", a.sun_path, strerror(errno));
		goto close_fd;
	}
	if (chmod(path, 0600) < 0 || listen(fd, LIVE_BACKLOG) < 0) {
		r = sio_fail(reterr, -errno, "%s: %s", a.sun_path, strerror(errno));
		goto unlink_path;
	}
	*ret_fd = fd;
	return 0;
unlink_path:
	unlink(path);
close_fd:
	close(fd);
	return r;
}

int live_share(const char *path, const char *group, struct sio_err *reterr)
{
	struct group *g;

	errno = 0;
	g = getgrnam(group);
	if (!g)
		return sio_fail(reterr, -ENOENT, "there is no group %s", group);
	if (chown(path, (uid_t)-1, g->gr_gid) < 0 || chmod(path, 0660) < 0)
		return sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

int live_folder(const char *path, struct sio_err *reterr)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

int live_connect(const char *path, int *ret_fd, struct sio_err *reterr)
{
	struct sockaddr_un a;
	int fd = -1, r;

	r = new_socket(path, &a, &fd, reterr);
	if (r < 0)
		return r;
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		r = sio_fail(reterr, -errno, "%s: %s", a.sun_path, strerror(errno));
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}
