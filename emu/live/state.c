/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths in the state directory, and the pid file, whose lock says that a room is running there. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "emu/live/live.h"

int live_path(char *path, size_t size, struct sio_err *reterr, const char *fmt, ...)
{
	char text[4096];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= size)
		return sio_fail(reterr, -ENAMETOOLONG,
				"path of %d bytes is too long for a socket, "
				"%zu are right: %.100s...",
				n, size - 1, text);
	memcpy(path, text, (size_t)n + 1);
	return 0;
}

int live_state_lock(struct live *l, struct sio_err *reterr)
{
	char text[32];
	ssize_t n;
	int rc = live_path(l->pid_path, sizeof(l->pid_path), reterr, "%s/emu.pid", l->state_dir);

	if (rc < 0)
		return rc;
	l->pid_fd = open(l->pid_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (l->pid_fd < 0)
		return sio_fail(reterr, -errno, "%s: %s", l->pid_path, strerror(errno));
	if (flock(l->pid_fd, LOCK_EX | LOCK_NB) < 0) {
		rc = -errno;
		n = pread(l->pid_fd, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = '\0';
		text[strcspn(text, "\n")] = '\0';
		if (rc == -EWOULDBLOCK)
			sio_fail(reterr, -EBUSY, "%s: a machine room runs here already, pid %s",
				 l->state_dir, text[0] ? text : "unknown");
		else
			sio_fail(reterr, rc, "%s: cannot lock: %s", l->pid_path, strerror(-rc));
		close(l->pid_fd);
		l->pid_fd = -1;
		return rc;
	}
	n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (ftruncate(l->pid_fd, 0) < 0 || pwrite(l->pid_fd, text, (size_t)n, 0) != n) {
		rc = sio_fail(reterr, -EIO, "%s: cannot write: %s", l->pid_path, strerror(errno));
		live_state_unlock(l);
		return rc;
	}
	return 0;
}

/* Removed while still locked: whoever finds a free lock finds a stale file or none. */
void live_state_unlock(struct live *l)
{
	if (l->pid_fd < 0)
		return;
	unlink(l->pid_path);
	close(l->pid_fd);
	l->pid_fd = -1;
}
