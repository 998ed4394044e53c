/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * States of the machine that concern real and emulated clusters alike. Each is found by trying what
 * the programs will do, instead of asking for a version.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/memfd.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/doctor_facts.h"
#include "base/output.h"
#include "cluster/proctree.h"
#include "cluster/start.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#define WANTED_FILES 4096 /* a daemon holds some descriptors per client and per segment */
#define WANTED_MEMORY (512ULL << 20)

static void find_few_files(struct doctor *d, const struct doctor_state *s)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		limit.rlim_max = 0;
	if (limit.rlim_max < WANTED_FILES)
		doctor_found(d, s, NULL, "%llu a process (hard limit), %d are wanted",
			     (unsigned long long)limit.rlim_max, WANTED_FILES);
	else
		doctor_says(d, s, DOCTOR_FINE, "%llu a process (hard limit)",
			    (unsigned long long)limit.rlim_max);
}

static void find_no_sealing(struct doctor *d, const struct doctor_state *s)
{
	int fd = memfd_create("smartio-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

	if (fd < 0 || ftruncate(fd, 4096) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
		doctor_found(d, s, NULL, "%s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void find_no_pidfd(struct doctor *d, const struct doctor_state *s)
{
	int fd = pidfd_open(getpid(), 0);

	if (fd < 0 || pidfd_send_signal(fd, 0, NULL, 0) < 0)
		doctor_found(d, s, NULL, "pidfd_open: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* `smartio run` finds the processes it must kill by their parents. */
static void find_no_proc(struct doctor *d, const struct doctor_state *s)
{
	struct tool_proc *p = NULL;
	size_t n = 0;

	if (tool_proc_scan(&p, &n) < 0 || !tool_proc_find(p, n, getpid()) ||
	    access("/proc/self/fd", R_OK) < 0)
		doctor_found(d, s, NULL, "/proc does not show our processes");
	free(p);
}

static void find_no_reaper(struct doctor *d, const struct doctor_state *s)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		doctor_found(d, s, NULL, "PR_SET_CHILD_SUBREAPER: %s", strerror(errno));
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void find_little_memory(struct doctor *d, const struct doctor_state *s)
{
	char total[TOOL_SIZE_TEXT], avail[TOOL_SIZE_TEXT];
	struct sysinfo i;

	if (sysinfo(&i) < 0)
		i = (struct sysinfo){.mem_unit = 1};
	tool_size((uint64_t)i.totalram * i.mem_unit, total);
	tool_size((uint64_t)(i.freeram + i.bufferram) * i.mem_unit, avail);
	if ((uint64_t)i.totalram * i.mem_unit < WANTED_MEMORY)
		doctor_found(d, s, NULL, "%s, %s of it free", total, avail);
	else
		doctor_says(d, s, DOCTOR_FINE, "%s, %s of it free; %d processors", total, avail,
			    get_nprocs());
}

/* As long as a cluster's name may be. */
static void find_long_path(struct doctor *d, const struct doctor_state *s)
{
	char base[PATH_MAX];

	if (tool_state_base(base, sizeof(base), NULL) < 0)
		return; /* find_no_permission() says why */
	if (strlen(base) + SIO_NAME_LEN + sizeof("/node.508") > TOOL_SOCKET_PATH_MAX)
		doctor_found(d, s, NULL, "%s has %zu bytes, a socket's path may have %d", base,
			     strlen(base), TOOL_SOCKET_PATH_MAX);
	else
		doctor_says(d, s, DOCTOR_FINE, "clusters lie in %s", base);
}

/*
 * Tried as the library does it when it maps doorbells. Without it everything works, only more
 * expensively.
 */
static void find_no_faults(struct doctor *d, const struct doctor_state *s)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP |
					     UFFD_FEATURE_WP_HUGETLBFS_SHMEM};

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0)
		doctor_says(d, s, DOCTOR_FINE, "a plain store wakes a sleeping device");
	else
		doctor_found(d, s, NULL, "userfaultfd: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* The version that @path reports, without the line end; "": none. */
static void ask_version(const char *path, const char *name, char *ret, size_t size)
{
	ssize_t len = 0;
	int out[2];
	pid_t pid;

	*ret = '\0';
	if (pipe2(out, O_CLOEXEC) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		dup2(out[1], 1);
		execl(path, name, "--version", (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	if (pid > 0) {
		len = read(out[0], ret, size - 1);
		waitpid(pid, NULL, 0);
	}
	close(out[0]);
	ret[len > 0 ? len : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

static void find_no_program(struct doctor *d, const struct doctor_state *s)
{
	static const char *const name[] = {"smartiod", "smartio-emu"};
	char path[PATH_MAX], text[128];
	struct sio_err err;
	size_t len, mine = strlen(SMARTIO_VERSION);
	bool real = !getenv("SMARTIO_BINDIR") && access("/run/smartiod", F_OK) == 0;

	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		if (tool_find_binary(name[i], path, sizeof(path), &err) < 0) {
			if (i && real) /* this one comes in a package of its own */
				doctor_says(d, s, DOCTOR_FINE, "no %s: no emulated clusters",
					    name[i]);
			else
				doctor_found(d, s, NULL, "%s", err.text);
			continue;
		}
		ask_version(path, name[i], text, sizeof(text));
		len = strlen(text);
		if (len < mine || strcmp(text + len - mine, SMARTIO_VERSION) != 0)
			doctor_found(d, s, NULL, "%s: %s; this is smartio " SMARTIO_VERSION, path,
				     *text ? text : "tells no version");
		else
			doctor_says(d, s, DOCTOR_FINE, "%s: %s", path, text);
	}
}

#define SECCOMP                                                                                    \
	"docker run --security-opt seccomp=unconfined # IMAGE; without a container: a newer kernel"

static const struct doctor_state states[] = {
	{"few-descriptors", DOCTOR_BAD, DOCTOR_TRY, "a process may have too few descriptors",
	 "each segment, connection and map takes some, in the program, the daemon and the room",
	 find_few_files,
	 "echo '* hard nofile 65536' | sudo tee /etc/security/limits.d/smartio.conf # then log in "
	 "again"},
	{"no-sealing", DOCTOR_BAD, DOCTOR_TRY, "memory files cannot be sealed",
	 "a kernel before 5.1, or a container that forbids memfd_create", find_no_sealing, SECCOMP},
	{"no-pidfd", DOCTOR_BAD, DOCTOR_TRY, "processes have no descriptors",
	 "a kernel before 5.3, or a container that forbids pidfd_open", find_no_pidfd, SECCOMP},
	{"no-proc", DOCTOR_BAD, DOCTOR_TRY, "/proc is missing",
	 "it is not mounted, or hides our processes", find_no_proc,
	 "sudo mount -t proc proc /proc"},
	{"no-subreaper", DOCTOR_BAD, DOCTOR_TRY, "programs cannot be kept with what they start",
	 "a container that forbids prctl", find_no_reaper, SECCOMP},
	{"little-memory", DOCTOR_BAD, DOCTOR_TRY, "this machine has little memory",
	 "memory of emulated hosts and drives is used when it is written; 512M are wanted",
	 find_little_memory,
	 "{smartio} cluster down # and 'ram' and 'size' of the topology file smaller"},
	{"long-path", DOCTOR_BAD, DOCTOR_TRY, "the directory of clusters has too long a path",
	 "a socket's path is short: cluster names of full length do not fit", find_long_path,
	 "export XDG_RUNTIME_DIR=$(mktemp -d)"},
	{"no-faults", DOCTOR_NOTE, DOCTOR_TRY, "no plain store wakes a sleeping device",
	 "a kernel before 5.19, or a container that forbids userfaultfd: docs/waking.md",
	 find_no_faults, SECCOMP},
	{"no-program", DOCTOR_BAD, DOCTOR_TRY,
	 "a program of SmartIO is missing, or of another version",
	 "installed in part, or SMARTIO_BINDIR leads elsewhere", find_no_program,
	 "unset SMARTIO_BINDIR; make && sudo make install"},
};

const struct doctor_area doctor_machine_area = {"machine", states,
						sizeof(states) / sizeof(states[0])};
