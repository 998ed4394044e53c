/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"
#include "base/state.h"
#include "topofile/topofile.h"

#define FIRST_FDS 32 /* checked before all descriptors of a process are listed */

int tool_path(char *path, size_t size, struct sio_err *reterr, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(path, size, fmt, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= size)
		return sio_fail(reterr, -ENAMETOOLONG,
				"%s...: a path of %d bytes; %zu are the limit", path, len,
				size - 1);
	return 0;
}

int tool_state_check_private(const char *dir, struct sio_err *reterr)
{
	struct stat st;

	if (lstat(dir, &st) < 0)
		return sio_fail(reterr, -errno, "%s: %s", dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return sio_fail(reterr, -ENOTDIR, "%s is not a directory; remove it", dir);
	if (st.st_uid != geteuid())
		return sio_fail(reterr, -EPERM,
				"%s belongs to user %u, not to you (%u); set XDG_RUNTIME_DIR or "
				"SMARTIO_STATE to a directory of your own",
				dir, st.st_uid, geteuid());
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return sio_fail(reterr, -EPERM,
				"%s can be written to by others (mode %03o); run "
				"chmod 700 %s",
				dir, st.st_mode & 0777, dir);
	return 0;
}

int tool_state_base(char *dir, size_t size, struct sio_err *reterr)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	int r;

	if (runtime && *runtime == '/')
		r = tool_path(dir, size, reterr, "%s/smartio", runtime);
	else if (geteuid() == 0)
		r = tool_path(dir, size, reterr, "/run/smartio");
	else
		r = tool_path(dir, size, reterr, "%s/smartio-%u", tmp && *tmp == '/' ? tmp : "/tmp",
			      geteuid());
	if (r < 0)
		return r;
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return sio_fail(reterr, -errno, "%s: cannot be made: %s", dir, strerror(errno));
	return tool_state_check_private(dir, reterr);
}

int tool_state_path(const char *name, char *dir, size_t size, struct sio_err *reterr)
{
	char base[PATH_MAX];
	int r;

	if (!*name || *name == '.' || strchr(name, '/') || strlen(name) >= SIO_NAME_LEN)
		return sio_fail(reterr, -EINVAL,
				"'%s' is no name for a cluster: 1 to %d characters, "
				"no '/', and no '.' at the start",
				name, SIO_NAME_LEN - 1);
	r = tool_state_base(base, sizeof(base), reterr);
	if (r < 0)
		return r;
	return tool_path(dir, size, reterr, "%s/%s", base, name);
}

static bool is_file(int dir, const char *fd, const struct stat *file)
{
	struct stat got;

	return fstatat(dir, fd, &got, 0) == 0 && got.st_ino == file->st_ino &&
	       got.st_dev == file->st_dev;
}

/*
 * True if process @pid has the file @path open. Daemons and smartio-emu open theirs before they
 * have connections, of which a large cluster has hundreds: so the first descriptors are checked
 * first, and all are listed only if it is none of these.
 */
static bool has_open(pid_t pid, const char *path)
{
	struct dirent *entry;
	bool found = false;
	struct stat want;
	char text[64];
	DIR *dir;

	if (stat(path, &want) < 0)
		return false;
	snprintf(text, sizeof(text), "/proc/%d/fd", (int)pid);
	dir = opendir(text);
	if (!dir)
		return false;
	for (unsigned fd = 0; !found && fd < FIRST_FDS; fd++) {
		snprintf(text, sizeof(text), "%u", fd);
		found = is_file(dirfd(dir), text, &want);
	}
	while (!found && (entry = readdir(dir)))
		found = is_file(dirfd(dir), entry->d_name, &want);
	closedir(dir);
	return found;
}

static pid_t read_pid(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[32] = "", *end;
	ssize_t len;
	long pid;

	if (fd < 0)
		return -1;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return -1;
	pid = strtol(text, &end, 10);
	return (*end == '\n' || *end == '\0') && pid > 0 && pid <= INT_MAX ? (pid_t)pid : -1;
}

int tool_state_program(const char *dir, const char *name, bool want_fd, struct tool_program *ret)
{
	struct tool_program p = {.pidfd = -1};
	char path[PATH_MAX];

	if (tool_path(path, sizeof(path), NULL, "%s/%s.pid", dir, name) < 0)
		return -ESRCH;
	p.pid = read_pid(path);
	if (p.pid < 0)
		return -ESRCH;
	/*
	 * The descriptor first, then the check: then its result holds for the process of the
	 * descriptor.
	 */
	p.pidfd = pidfd_open(p.pid, 0);
	if (p.pidfd < 0)
		return -ESRCH;
	if (!has_open(p.pid, path)) {
		close(p.pidfd);
		return -ESRCH;
	}
	if (!want_fd) {
		close(p.pidfd);
		p.pidfd = -1;
	}
	snprintf(p.name, sizeof(p.name), "%s", name);
	*ret = p;
	return 0;
}

int tool_state_dying(const char *dir, const char *name)
{
	char path[PATH_MAX], comm[32] = "";
	int fd, pidfd;
	pid_t pid;

	if (tool_path(path, sizeof(path), NULL, "%s/%s.pid", dir, name) < 0)
		return -ESRCH;
	pid = read_pid(path);
	pidfd = pid > 0 ? pidfd_open(pid, 0) : -1;
	if (pidfd < 0)
		return -ESRCH;
	/* A process keeps its name to its end; another program may have the number by now. */
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, comm, sizeof(comm) - 1) > 0 && strcmp(comm, "smartiod\n") == 0) {
		close(fd);
		return pidfd;
	}
	if (fd >= 0)
		close(fd);
	close(pidfd);
	return -ESRCH;
}

static bool ends_with(const char *s, const char *end)
{
	size_t a = strlen(s), b = strlen(end);

	return a >= b && strcmp(s + a - b, end) == 0;
}

/* The names that this command and the programs of a cluster give to files. */
static bool is_ours(const char *name)
{
	return strcmp(name, "topology.yaml") == 0 || strcmp(name, "topology.yaml.new") == 0 ||
	       strcmp(name, "keys") == 0 || strncmp(name, "port.", 5) == 0 ||
	       strncmp(name, "node.", 5) == 0 || strncmp(name, "peer.", 5) == 0 ||
	       strncmp(name, "vfio.", 5) == 0 || strcmp(name, "memory") == 0 ||
	       strncmp(name, "memory.", 7) == 0 || strcmp(name, "room") == 0 ||
	       strcmp(name, "emu.pid") == 0 || strcmp(name, "emu.log") == 0 ||
	       strcmp(name, "local") == 0 || strncmp(name, "local.", 6) == 0 || /* a link */
	       strncmp(name, "run.", 4) == 0 || strncmp(name, "nvme-manager.", 13) == 0 ||
	       strncmp(name, "machine.", 8) == 0 ||
	       strncmp(name, "device-", 7) == 0 || /* what `device add` keeps for `device remove` */
	       strcmp(name, "vfio") == 0 ||	   /* the same, of --vfio */
	       strncmp(name, "borrow-", 7) == 0 || /* what `borrow` keeps for `return` */
	       (strncmp(name, "smartiod.", 9) == 0 &&
		(ends_with(name, ".pid") || ends_with(name, ".log")));
}

unsigned tool_state_strangers(const char *dir)
{
	struct dirent *entry;
	unsigned n = 0;
	DIR *d = opendir(dir);

	if (!d)
		return 0;
	while ((entry = readdir(d)))
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		     !is_ours(entry->d_name);
	closedir(d);
	return n;
}

unsigned tool_state_programs(const char *dir, struct tool_program **ret)
{
	struct tool_program *list = NULL, p;
	struct dirent *entry;
	unsigned n = 0;
	DIR *d = opendir(dir);

	*ret = NULL;
	if (!d)
		return 0;
	while ((entry = readdir(d))) {
		if (!is_ours(entry->d_name) || !ends_with(entry->d_name, ".pid"))
			continue;
		entry->d_name[strlen(entry->d_name) - 4] = '\0';
		if (tool_state_program(dir, entry->d_name, true, &p) < 0)
			continue;
		list = tool_grow(list, n + 1, sizeof(*list));
		list[n++] = p;
	}
	closedir(d);
	*ret = list;
	return n;
}

void tool_state_forget(const char *dir, uint32_t node)
{
	static const char *const name[] = {"node.%u", "peer.%u", "smartiod.%u.pid"};

	for (unsigned i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		char file[32], path[PATH_MAX];

		snprintf(file, sizeof(file), name[i], node);
		if (tool_path(path, sizeof(path), NULL, "%s/%s", dir, file) == 0)
			unlink(path);
	}
}

void tool_state_daemon_name(uint32_t node, char *name, size_t size)
{
	snprintf(name, size, "smartiod.%u", node);
}

void tool_state_machine_name(uint32_t node, char *name, size_t size)
{
	snprintf(name, size, "machine.%u", node);
}

enum tool_machine_state tool_state_machine(const char *dir, uint32_t node, pid_t *ret_pid)
{
	char name[48], path[PATH_MAX];
	struct tool_program p;

	if (ret_pid)
		*ret_pid = 0;
	tool_state_machine_name(node, name, sizeof(name));
	if (tool_state_program(dir, name, false, &p) == 0) {
		if (ret_pid)
			*ret_pid = p.pid;
		return TOOL_MACHINE_RUNNING;
	}
	/* QEMU removes the file when it ends normally. */
	if (tool_path(path, sizeof(path), NULL, "%s/%s.pid", dir, name) < 0 ||
	    access(path, F_OK) < 0)
		return TOOL_MACHINE_OFF;
	return TOOL_MACHINE_KILLED;
}

const char *tool_machine_state_name(enum tool_machine_state state)
{
	static const char *const name[] = {"off", "running", "killed"};

	return name[state];
}

enum tool_state tool_state_probe(const char *dir)
{
	bool ours = false, foreign = false, lives = false;
	struct tool_program p;
	struct dirent *entry;
	DIR *d = opendir(dir);

	if (!d)
		return errno == ENOENT ? TOOL_STATE_ABSENT : TOOL_STATE_FOREIGN;
	while ((entry = readdir(d))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (!is_ours(entry->d_name)) {
			foreign = true;
			continue;
		}
		ours = true;
		if (ends_with(entry->d_name, ".pid")) {
			entry->d_name[strlen(entry->d_name) - 4] = '\0';
			lives |= tool_state_program(dir, entry->d_name, false, &p) == 0;
		}
	}
	closedir(d);
	if (lives)
		return TOOL_STATE_RUNNING;
	if (foreign)
		return TOOL_STATE_FOREIGN;
	return ours ? TOOL_STATE_STALE : TOOL_STATE_ABSENT;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int tool_state_list(char ***ret_names, size_t *ret_n, enum tool_state state, bool hidden,
		    struct sio_err *reterr)
{
	char base[PATH_MAX], dir[PATH_MAX], **names = NULL;
	struct dirent *entry;
	size_t n = 0;
	DIR *d;
	int r;

	r = tool_state_base(base, sizeof(base), reterr);
	if (r < 0)
		return r;
	d = opendir(base);
	if (!d)
		return sio_fail(reterr, -errno, "%s: %s", base, strerror(errno));
	while ((entry = readdir(d))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    (entry->d_name[0] == '.') != hidden ||
		    tool_path(dir, sizeof(dir), NULL, "%s/%s", base, entry->d_name) < 0 ||
		    tool_state_probe(dir) != state)
			continue;
		names = tool_grow(names, n + 1, sizeof(*names));
		names[n++] = tool_strdup(entry->d_name);
	}
	closedir(d);
	if (n > 1)
		qsort(names, n, sizeof(*names), by_name);
	*ret_names = names;
	*ret_n = n;
	return 0;
}

int tool_state_lock(const char *dir, int *ret_fd, struct sio_err *reterr)
{
	struct stat ours, there;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return sio_fail(reterr, -errno, "%s: %s", dir, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = errno == EWOULDBLOCK
			    ? sio_fail(reterr, -EBUSY,
				       "%s: another smartio command is bringing this "
				       "cluster up or down",
				       dir)
			    : sio_fail(reterr, -errno, "%s: flock: %s", dir, strerror(errno));
		goto close_fd;
	}
	/* A lock on a directory that was removed between open() and flock() protects nothing. */
	if (fstat(fd, &ours) < 0 || stat(dir, &there) < 0 || ours.st_ino != there.st_ino ||
	    ours.st_dev != there.st_dev) {
		r = sio_fail(reterr, -ENOENT, "%s has just been removed", dir);
		goto close_fd;
	}
	*ret_fd = fd;
	return 0;
close_fd:
	close(fd);
	return r;
}

/* Removes the keys that were made for a cluster's daemons, and no other file. */
static void remove_keys(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(d)))
		if (ends_with(entry->d_name, ".pem") || ends_with(entry->d_name, ".key"))
			unlinkat(fd, entry->d_name, 0);
	closedir(d);
	unlinkat(dir_fd, name, AT_REMOVEDIR);
}

int tool_state_clean(const char *dir, struct sio_err *reterr)
{
	struct dirent *entry;
	DIR *d = opendir(dir);

	if (!d)
		return sio_fail(reterr, -errno, "%s: %s", dir, strerror(errno));
	while ((entry = readdir(d)))
		if (is_ours(entry->d_name))
			unlinkat(dirfd(d), entry->d_name, 0);
	remove_keys(dirfd(d), "keys");
	remove_keys(dirfd(d), "machine.keys");
	closedir(d);
	return 0;
}

int tool_state_remove(const char *dir, struct sio_err *reterr)
{
	int r = tool_state_clean(dir, reterr);

	if (r == 0 && rmdir(dir) < 0)
		r = sio_fail(reterr, -errno, "%s: cannot be removed: %s", dir, strerror(errno));
	return r;
}

int tool_state_check_length(const char *dir, const struct sio_topology *t, struct sio_err *reterr)
{
	char path[PATH_MAX];
	size_t len;
	int r;

	if (t->n_hosts == 0)
		return 0;
	/* Hosts are sorted by node id, so the last one's is the longest. */
	r = tool_path(path, sizeof(path), reterr, "%s/node.%u", dir, t->host[t->n_hosts - 1].node);
	if (r < 0)
		return r;
	len = strlen(path);
	if (len > TOOL_SOCKET_PATH_MAX)
		return sio_fail(reterr, -ENAMETOOLONG,
				"%s: %zu bytes, but a socket's path holds %d; "
				"choose a shorter directory with --state DIR",
				path, len, TOOL_SOCKET_PATH_MAX);
	return 0;
}

int tool_state_topology(const char *dir, struct sio_topology **ret, struct sio_err *reterr)
{
	char path[PATH_MAX];
	int r = tool_path(path, sizeof(path), reterr, "%s/topology.yaml", dir);

	return r < 0 ? r : sio_topofile_read(path, ret, reterr);
}
