/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks of smartio doctor. Each tries what the programs will do, instead of asking a version.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/memfd.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"
#include "output.h"
#include "proctree.h"
#include "start.h"
#include "state.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#define WANTED_FILES 4096 /* a daemon holds some descriptors per client and per segment */

static void __attribute__((format(printf, 2, 3)))
found(struct tool_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->found, sizeof(f->found), fmt, ap);
	va_end(ap);
}

static void __attribute__((format(printf, 2, 3))) mend(struct tool_finding *f, const char *fmt, ...)
{
	va_list ap;

	f->good = false;
	va_start(ap, fmt);
	vsnprintf(f->mend, sizeof(f->mend), fmt, ap);
	va_end(ap);
}

static void check_files(struct tool_finding *f)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		limit.rlim_max = 0;
	found(f, "%llu descriptors a process (hard limit)", (unsigned long long)limit.rlim_max);
	if (limit.rlim_max < WANTED_FILES)
		mend(f,
		     "%d are wanted: echo '* hard nofile 65536' | sudo tee "
		     "/etc/security/limits.d/smartio.conf, then log in again",
		     WANTED_FILES);
}

static void check_memfd(struct tool_finding *f)
{
	int fd = memfd_create("smartio-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

	found(f, "memory files can be sealed");
	if (fd < 0 || ftruncate(fd, 4096) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0) {
		found(f, "memory files cannot be sealed: %s", strerror(errno));
		mend(f,
		     "run a kernel from 5.1 on, and allow memfd_create in the container's seccomp "
		     "profile");
	}
	if (fd >= 0)
		close(fd);
}

static void check_pidfd(struct tool_finding *f)
{
	int fd = pidfd_open(getpid(), 0);

	found(f, "processes have descriptors");
	if (fd < 0 || pidfd_send_signal(fd, 0, NULL, 0) < 0) {
		found(f, "pidfd_open: %s", strerror(errno));
		mend(f, "run a kernel from 5.3 on, and allow pidfd_open in the container's seccomp "
			"profile");
	}
	if (fd >= 0)
		close(fd);
}

/* `smartio run` finds the processes it must kill by their parents. */
static void check_proc(struct tool_finding *f)
{
	struct tool_proc *p = NULL;
	size_t n = 0;

	found(f, "/proc shows our processes");
	if (tool_proc_scan(&p, &n) < 0 || !tool_proc_find(p, n, getpid()) ||
	    access("/proc/self/fd", R_OK) < 0) {
		found(f, "/proc does not show our processes");
		mend(f, "sudo mount -t proc proc /proc");
	}
	free(p);
}

static void check_reaper(struct tool_finding *f)
{
	found(f, "programs can be kept with all that they start");
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
		found(f, "PR_SET_CHILD_SUBREAPER: %s", strerror(errno));
		mend(f, "allow prctl in the container's seccomp profile");
	}
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void check_memory(struct tool_finding *f)
{
	char total[TOOL_SIZE_TEXT], avail[TOOL_SIZE_TEXT];
	struct sysinfo s;

	if (sysinfo(&s) < 0)
		s = (struct sysinfo){.mem_unit = 1};
	found(f, "%s, %s of it free; %d processors",
	      tool_size((uint64_t)s.totalram * s.mem_unit, total),
	      tool_size((uint64_t)(s.freeram + s.bufferram) * s.mem_unit, avail), get_nprocs());
	if ((uint64_t)s.totalram * s.mem_unit < 512ULL << 20)
		mend(f,
		     "at least 512M are wanted; memory of emulated hosts and drives is used when "
		     "it is written");
}

static void check_base(struct tool_finding *f)
{
	char base[PATH_MAX];
	struct sio_err err;

	if (tool_state_base(base, sizeof(base), &err) < 0) {
		found(f, "%s", err.text);
		mend(f, "export XDG_RUNTIME_DIR=$(mktemp -d)");
		return;
	}
	found(f, "clusters lie in %.150s", base);
	if (access(base, W_OK | X_OK) < 0)
		mend(f, "chmod 700 %.150s", base);
	else if (strlen(base) + SIO_NAME_LEN + sizeof("/node.252") > TOOL_SOCKET_PATH_MAX)
		mend(f,
		     "a socket's path holds %d bytes, too few for long cluster names there: "
		     "export XDG_RUNTIME_DIR=$(mktemp -d)",
		     TOOL_SOCKET_PATH_MAX);
}

static void check_stale(struct tool_finding *f)
{
	unsigned stale = 0, hidden = 0;
	char **names;
	char first[64] = "";
	size_t n;

	for (int pass = 0; pass < 2; pass++) {
		if (tool_state_list(&names, &n, TOOL_STATE_STALE, pass == 1, NULL) < 0)
			continue;
		for (size_t i = 0; i < n; i++) {
			if (!*first)
				snprintf(first, sizeof(first), "%s", names[i]);
			free(names[i]);
		}
		free(names);
		stale += (unsigned)n;
		hidden += pass ? (unsigned)n : 0;
	}
	found(f, stale ? "%u cluster%s ended without being taken down" : "none left behind", stale,
	      stale == 1 ? "" : "s");
	if (stale > hidden)
		mend(f, "smartio cluster down %s", first);
	else if (stale)
		mend(f, "smartio doctor --clean");
}

/* As the library does when it maps doorbells. Nothing is wrong without, it is only dearer. */
static void check_faults(struct tool_finding *f)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP |
					     UFFD_FEATURE_WP_HUGETLBFS_SHMEM};

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0)
		found(f, "a plain store wakes a sleeping device");
	else
		found(f,
		      "no plain store wakes a sleeping device (userfaultfd: %s; wanted: kernel "
		      "5.19, and userfaultfd in the container's seccomp profile): docs/waking.md",
		      strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void check_binary(struct tool_finding *f, const char *name)
{
	char path[PATH_MAX], text[64] = "";
	struct sio_err err;
	ssize_t len = 0;
	int out[2];
	pid_t pid;

	if (tool_find_binary(name, path, sizeof(path), &err) < 0) {
		found(f, "%s", err.text);
		mend(f, "make, or install SmartIO completely");
		return;
	}
	if (pipe2(out, O_CLOEXEC) < 0)
		return found(f, "pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		execl(path, name, "--version", (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	if (pid > 0) {
		len = read(out[0], text, sizeof(text) - 1);
		waitpid(pid, NULL, 0);
	}
	close(out[0]);
	text[len > 0 ? len : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	found(f, "%.120s: %s", path, *text ? text : "tells no version");
	len = (ssize_t)strlen(text) - (ssize_t)strlen(SMARTIO_VERSION);
	if (len < 0 || strcmp(text + len, SMARTIO_VERSION) != 0)
		mend(f,
		     "this is smartio " SMARTIO_VERSION ": install programs of one version, or set "
		     "SMARTIO_BINDIR");
}

static void check_daemon(struct tool_finding *f)
{
	check_binary(f, "smartiod");
}

static void check_room(struct tool_finding *f)
{
	check_binary(f, "smartio-emu");
}

void tool_doctor_machine(struct tool_findings *ret)
{
	static const struct {
		const char *what;
		void (*check)(struct tool_finding *f);
	} checks[] = {
		{"descriptors", check_files}, {"sealing", check_memfd},	   {"pidfd", check_pidfd},
		{"proc", check_proc},	      {"subreaper", check_reaper}, {"memory", check_memory},
		{"state", check_base},	      {"stale", check_stale},	   {"faults", check_faults},
		{"smartiod", check_daemon},   {"smartio-emu", check_room},
	};

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		checks[i].check(tool_findings_add(ret, checks[i].what));
}
