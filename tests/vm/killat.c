/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a program, and kills it at a system call.
 * usage: killat FIRST NAME NUMBER COMMAND...   SIGKILL at the entry of call NUMBER of that name
 *        killat FIRST list FILE COMMAND...     FILE gets "NAME HOW-MANY" for each name
 * Counted is from the first call of the name FIRST on, in all threads together. The program stops
 * at these calls alone (seccomp), so that all others cost nothing; strace stops at each. Who waits
 * for us waits for the program itself: who traces is a process beside it.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS 1024 /* more than there are */

#define CALL(name) [SYS_##name] = #name
/* Those of our programs; another one is called by its number. */
static const char *const call_name[CALLS] = {
	CALL(accept4),
	CALL(access),
	CALL(arch_prctl),
	CALL(bind),
	CALL(brk),
	CALL(capget),
	CALL(capset),
	CALL(chmod),
	CALL(chown),
	CALL(clock_gettime),
	CALL(clock_nanosleep),
	CALL(clone),
	CALL(clone3),
	CALL(close),
	CALL(close_range),
	CALL(connect),
	CALL(dup),
	CALL(dup3),
	CALL(epoll_create1),
	CALL(epoll_ctl),
	CALL(epoll_pwait),
	CALL(epoll_wait),
	CALL(eventfd2),
	CALL(execve),
	CALL(exit),
	CALL(exit_group),
	CALL(faccessat2),
	CALL(fchmod),
	CALL(fchown),
	CALL(fcntl),
	CALL(flock),
	CALL(fstat),
	CALL(ftruncate),
	CALL(futex),
	CALL(getdents64),
	CALL(getpid),
	CALL(getrandom),
	CALL(getsockname),
	CALL(getsockopt),
	CALL(gettid),
	CALL(getuid),
	CALL(ioctl),
	CALL(kill),
	CALL(lseek),
	CALL(listen),
	CALL(madvise),
	CALL(membarrier),
	CALL(memfd_create),
	CALL(mkdir),
	CALL(mlock),
	CALL(mmap),
	CALL(mprotect),
	CALL(mremap),
	CALL(munmap),
	CALL(nanosleep),
	CALL(newfstatat),
	CALL(openat),
	CALL(pidfd_open),
	CALL(pipe2),
	CALL(poll),
	CALL(ppoll),
	CALL(prctl),
	CALL(pread64),
	CALL(prlimit64),
	CALL(pwrite64),
	CALL(read),
	CALL(readlink),
	CALL(readv),
	CALL(recvfrom),
	CALL(recvmsg),
	CALL(rename),
	CALL(restart_syscall),
	CALL(rseq),
	CALL(rt_sigaction),
	CALL(rt_sigprocmask),
	CALL(rt_sigreturn),
	CALL(sched_getaffinity),
	CALL(sched_setaffinity),
	CALL(sched_yield),
	CALL(sendmsg),
	CALL(sendto),
	CALL(set_robust_list),
	CALL(set_tid_address),
	CALL(setsockopt),
	CALL(shutdown),
	CALL(sigaltstack),
	CALL(signalfd4),
	CALL(socket),
	CALL(socketpair),
	CALL(statx),
	CALL(sysinfo),
	CALL(tgkill),
	CALL(timerfd_create),
	CALL(timerfd_settime),
	CALL(umask),
	CALL(uname),
	CALL(unlink),
	CALL(userfaultfd),
	CALL(wait4),
	CALL(write),
	CALL(writev),
};

static void die(const char *what)
{
	fprintf(stderr, "killat: %s: %s\n", what, strerror(errno));
	exit(2);
}

static unsigned call_number(const char *name)
{
	char *end;
	unsigned long n = strtoul(name, &end, 10);

	if (*name && !*end && n < CALLS)
		return (unsigned)n;
	for (n = 0; n < CALLS; n++)
		if (call_name[n] && strcmp(call_name[n], name) == 0)
			return (unsigned)n;
	errno = ENOSYS;
	die(name);
	return 0;
}

struct trace {
	pid_t pid;
	unsigned first, wanted, at; /* the calls' numbers; kill at the at-th wanted one */
	const char *list;	    /* or: the file that tells of all */
	bool begun;
	unsigned seen[CALLS];
};

/* ---- the program ---- */

/* Stop for the tracer at these two calls, or at all. */
static void filter(const struct trace *t)
{
	struct sock_filter two[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, t->first, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, t->wanted, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
	};
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
	struct sock_fprog program = {
		.len = t->list ? 1 : sizeof(two) / sizeof(two[0]),
		.filter = t->list ? &all : two,
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		die("seccomp");
}

/* ---- who traces ---- */

static void tell(const struct trace *t)
{
	char part[256];
	FILE *f;

	snprintf(part, sizeof(part), "%s.part", t->list);
	f = fopen(part, "w");
	if (!f)
		return;
	for (unsigned n = 0; n < CALLS; n++)
		if (t->seen[n] && call_name[n])
			fprintf(f, "%s %u\n", call_name[n], t->seen[n]);
		else if (t->seen[n])
			fprintf(f, "%u %u\n", n, t->seen[n]);
	if (fclose(f) == 0)
		rename(part, t->list);
}

/* A thread is at a call. */
static void at_call(struct trace *t, pid_t thread)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) <= 0 ||
	    info.op != PTRACE_SYSCALL_INFO_SECCOMP || info.seccomp.nr >= CALLS)
		return;
	t->begun |= info.seccomp.nr == t->first;
	if (!t->begun)
		return;
	t->seen[info.seccomp.nr]++;
	if (!t->list && info.seccomp.nr == t->wanted && t->seen[t->wanted] == t->at)
		kill(t->pid, SIGKILL);
}

/* Until the program has ended. */
static void follow(struct trace *t)
{
	int status, event, signal;
	pid_t thread;

	while ((thread = waitpid(-1, &status, __WALL)) > 0) {
		if (!WIFSTOPPED(status))
			continue;
		event = status >> 16;
		signal = WSTOPSIG(status);
		if (event == PTRACE_EVENT_SECCOMP)
			at_call(t, thread);
		if (event == PTRACE_EVENT_STOP && signal != SIGTRAP)
			ptrace(PTRACE_LISTEN, thread, 0, 0); /* SIGSTOP and the like */
		else
			ptrace(PTRACE_CONT, thread, 0, event ? 0 : signal);
	}
	if (t->list)
		tell(t);
}

/* A process that is nobody's child here: it seizes the program, says so, and follows it. */
static void start_tracer(struct trace *t)
{
	const long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
			     PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
	int ready[2];
	pid_t pid;
	char word = 0;

	t->pid = getpid();
	if (pipe(ready) < 0)
		die("a pipe");
	/* It is no ancestor, which Yama may want; where there is no Yama this fails, and may. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	pid = fork();
	if (pid < 0)
		die("a tracer");
	if (pid == 0 && fork() == 0) {
		/* Whoever waits for the end of what the program writes does not wait for us. */
		dup2(ready[1], 0);
		close_range(1, ~0u, 0);
		setsid();
		if (ptrace(PTRACE_SEIZE, t->pid, 0, options) < 0 || write(0, "1", 1) != 1)
			_exit(1);
		close(0);
		follow(t);
		_exit(0);
	}
	if (pid == 0)
		_exit(0);
	close(ready[1]);
	waitpid(pid, NULL, 0);
	if (read(ready[0], &word, 1) != 1)
		die("ptrace");
	close(ready[0]);
}

int main(int argc, char **argv)
{
	static struct trace t;

	if (argc < 5) {
		fprintf(stderr, "usage: killat FIRST NAME NUMBER|list FILE COMMAND...\n");
		return 2;
	}
	t.first = call_number(argv[1]);
	if (strcmp(argv[2], "list") == 0)
		t.list = argv[3];
	else
		t.wanted = call_number(argv[2]);
	t.at = t.list ? 0 : (unsigned)strtoul(argv[3], NULL, 10);
	start_tracer(&t);
	filter(&t);
	execvp(argv[4], argv + 4);
	die(argv[4]);
}
