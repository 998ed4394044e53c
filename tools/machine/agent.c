/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio-agent INTERFACE ADDRESS PORT: in a virtual machine, runs the programs that `smartio run`
 * asks for (stream.h).
 *
 * It listens at one interface only, which leads to the process that runs the machine and to nobody
 * else, and goes to the background as soon as it listens. A process of its own serves each
 * connection; it is the subreaper of the program and of all processes that the program starts, and
 * kills them if the connection ends before the program has.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/proctree.h"
#include "machine/stream.h"

#define PART_MS 60000 /* how long the other end may take to close */

#define EXIT_NO_EXEC 126 /* as in a shell */
#define EXIT_NO_FILE 127
#define MAX_WORDS 4096

struct program {
	struct stream stream;
	pid_t pid;  /* 0: it has ended */
	int in;	    /* its standard input; -1: closed */
	int out[2]; /* standard output and error; -1: closed */
	int signals, status;
	bool ended, close_in; /* close_in: when @input has been written */
	uint8_t input[STREAM_WINDOW];
	size_t input_len;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The words of a RUN message as an argv, in allocated memory. NULL: the message has none. */
static char **read_words(const struct stream_msg *m)
{
	char **argv, *text;
	size_t n = 0, at = 0;

	if (m->len == 0 || m->data[m->len - 1] != 0)
		return NULL;
	argv = calloc(MAX_WORDS + 1, sizeof(*argv));
	text = malloc(m->len);
	if (!argv || !text)
		return NULL;
	memcpy(text, m->data, m->len);
	for (; at < m->len && n < MAX_WORDS; at += strlen(text + at) + 1)
		argv[n++] = text + at;
	return at == m->len ? argv : NULL;
}

static void __attribute__((noreturn)) exec_program(char **argv, const int fds[3], int report)
{
	sigset_t none;
	int error;

	setpgid(0, 0);
	for (int i = 0; i < 3; i++)
		dup2(fds[i], i);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(argv[0], argv);
	error = errno;
	if (write(report, &error, sizeof(error)) < 0)
		_exit(EXIT_NO_EXEC);
	_exit(error == ENOENT ? EXIT_NO_FILE : EXIT_NO_EXEC);
}

/*
 * Return: 0, or the errno that is to be reported.
 */
static int start(struct program *p, char **argv)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, report[2] = {-1, -1};
	int error = 0;
	ssize_t len;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 ||
	    pipe2(report, O_CLOEXEC) < 0 || (p->pid = fork()) < 0) {
		error = errno;
		p->pid = 0;
		close_fd(&in[1]);
		close_fd(&out[0]);
		close_fd(&err[0]);
	} else {
		if (p->pid == 0)
			exec_program(argv, (const int[]){in[0], out[1], err[1]}, report[1]);
		setpgid(p->pid, p->pid);
		close_fd(&report[1]);
		do
			len = read(report[0], &error, sizeof(error));
		while (len < 0 && errno == EINTR);
		error = len == sizeof(error) ? error : 0;
	}
	close_fd(&report[0]);
	close_fd(&report[1]);
	close_fd(&in[0]);
	close_fd(&out[1]);
	close_fd(&err[1]);
	p->in = in[1];
	p->out[0] = out[0];
	p->out[1] = err[0];
	if (p->in >= 0)
		fcntl(p->in, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 2; i++)
		if (p->out[i] >= 0)
			fcntl(p->out[i], F_SETFL, O_NONBLOCK);
	return error;
}

/* Writes pending input, and reports how many bytes of it are done. */
static void feed(struct program *p)
{
	ssize_t len = 0;

	if (p->in >= 0 && p->input_len) {
		len = write(p->in, p->input, p->input_len);
		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			return;
	}
	if (len < 0 || p->in < 0) { /* the program reads no more: the rest counts as read */
		close_fd(&p->in);
		len = (ssize_t)p->input_len;
	}
	memmove(p->input, p->input + len, p->input_len - (size_t)len);
	p->input_len -= (size_t)len;
	if (len)
		stream_put_numbers(&p->stream, STREAM_TAKEN, (uint32_t)len, 0);
	if (p->close_in && p->input_len == 0)
		close_fd(&p->in);
}

static void pass_signal(const struct program *p, int number, bool group)
{
	if (p->pid > 0 && number > 0 && number < NSIG)
		kill(group ? -p->pid : p->pid, number);
}

/* False: the connection must be ended. */
static bool take_messages(struct program *p)
{
	struct stream_msg m;
	int r;

	while ((r = stream_next(&p->stream, &m)) > 0) {
		if (m.kind == STREAM_INPUT) {
			if (m.len > sizeof(p->input) - p->input_len)
				return false;
			memcpy(p->input + p->input_len, m.data, m.len);
			p->input_len += m.len;
			feed(p);
		} else if (m.kind == STREAM_INPUT_END) {
			p->close_in = true;
			feed(p);
		} else if (m.kind == STREAM_SIGNAL) {
			pass_signal(p, (int)stream_number(&m, 0), stream_number(&m, 1) == 1);
		} else {
			return false;
		}
	}
	return r == 0;
}

/* Sends at most one message of the program's output. Return: false: there is none now. */
static bool take_output(struct program *p, int i)
{
	char data[STREAM_CHUNK];
	ssize_t len;

	if (p->out[i] < 0 || !stream_has_room(&p->stream))
		return false;
	len = read(p->out[i], data, sizeof(data));
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (len <= 0) {
		close_fd(&p->out[i]);
		return false;
	}
	return stream_put(&p->stream, i == 0 ? STREAM_OUTPUT : STREAM_ERRORS, data, (size_t)len);
}

static void reap(struct program *p)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(p->signals, &info, sizeof(info)) == sizeof(info))
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != p->pid)
			continue;
		p->pid = 0;
		p->ended = true;
		p->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
}

/*
 * Output from before the program's end is sent before the message that it has ended. True: all is
 * sent.
 */
static bool say_ended(struct program *p)
{
	if (!p->ended)
		return false;
	for (int i = 0; i < 2; i++)
		while (take_output(p, i))
			;
	if (!stream_has_room(&p->stream))
		return false;
	stream_put_numbers(&p->stream, STREAM_ENDED, (uint32_t)p->status, 0);
	return true;
}

/* Until the program has ended and that is reported (true), or the connection has ended (false). */
static bool watch(struct program *p)
{
	bool told = false;

	while (!told || stream_pending(&p->stream)) {
		bool room = stream_has_room(&p->stream);
		struct pollfd f[5] = {{p->stream.fd,
				       (short)(POLLIN | (stream_pending(&p->stream) ? POLLOUT : 0)),
				       0},
				      {p->signals, POLLIN, 0},
				      {p->input_len ? p->in : -1, POLLOUT, 0},
				      {room && !told ? p->out[0] : -1, POLLIN, 0},
				      {room && !told ? p->out[1] : -1, POLLIN, 0}};

		if (poll(f, 5, -1) < 0 && errno != EINTR)
			return false;
		if (f[0].revents & (POLLIN | POLLHUP | POLLERR))
			if (!stream_receive(&p->stream) || !take_messages(p))
				return false;
		if (f[1].revents)
			reap(p);
		if (f[2].revents)
			feed(p);
		for (int i = 0; i < 2; i++)
			if (f[3 + i].revents)
				take_output(p, i);
		if (!told)
			told = say_ended(p);
		if (!stream_send(&p->stream))
			return false;
	}
	return true;
}

/* The words of the first message; NULL: no message came. */
static char **wait_for_words(struct stream *s)
{
	struct pollfd f = {.fd = s->fd, .events = POLLIN};
	struct stream_msg m;
	int r;

	while ((r = stream_next(s, &m)) == 0) {
		if (poll(&f, 1, -1) < 0 && errno != EINTR)
			return NULL;
		if (!stream_receive(s))
			return NULL;
	}
	return r == 1 && m.kind == STREAM_RUN ? read_words(&m) : NULL;
}

/*
 * Waits until the other end has read everything, and closes: closing a connection with unread data
 * resets it, and data in flight to the other end is lost.
 */
static void part(int fd)
{
	struct pollfd f = {fd, POLLIN, 0};
	char rest[4096];

	shutdown(fd, SHUT_WR);
	while (poll(&f, 1, PART_MS) > 0 && recv(fd, rest, sizeof(rest), MSG_DONTWAIT) > 0)
		;
}

static int serve(int fd)
{
	static struct program p;
	sigset_t set;
	char **argv;
	int error;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGCHLD, SIG_DFL);
	p.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	stream_init(&p.stream, fd);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_NAME, "smartio-run");
	argv = wait_for_words(&p.stream);
	if (!argv || p.signals < 0)
		return 1;
	signal(SIGPIPE, SIG_DFL); /* for the program; our own writes go to sockets, and to @in */
	error = start(&p, argv);
	signal(SIGPIPE, SIG_IGN);
	stream_put_numbers(&p.stream, error ? STREAM_FAILED : STREAM_STARTED,
			   (uint32_t)(error ? error : p.pid), 0);
	if (watch(&p))
		part(fd);
	else
		tool_proc_kill_descendants();
	return 0;
}

static int fail(const char *what)
{
	fprintf(stderr, "smartio-agent: %s: %s\n", what, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	int fd, one = 1;

	if (argc != 4 || inet_pton(AF_INET, argv[2], &at.sin_addr) != 1) {
		fputs("usage: smartio-agent INTERFACE ADDRESS PORT\n", stderr);
		return 2;
	}
	at.sin_port = htons((uint16_t)atoi(argv[3]));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, argv[1], (socklen_t)strlen(argv[1])) < 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 64) < 0)
		return fail(argv[2]);
	/*
	 * The process that started this one may end its session before the child has one of its
	 * own.
	 */
	signal(SIGHUP, SIG_IGN);
	if (daemon(1, 0) < 0)
		return fail("daemon");
	signal(SIGHUP, SIG_DFL);
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int one_of = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		pid_t pid = one_of < 0 ? -1 : fork();

		if (pid == 0) {
			close(fd);
			_exit(serve(one_of));
		}
		if (one_of >= 0)
			close(one_of);
		else if (errno != EINTR && errno != ECONNABORTED)
			return fail("accept");
	}
}
