/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/command.h"
#include "base/forward.h"
#include "base/hint.h"
#include "base/output.h"
#include "base/state.h"
#include "cluster/keeper.h"
#include "machine/client.h"
#include "machine/stream.h"

/* Data to be written to one of our outputs. */
struct sink {
	int fd; /* -1: nobody reads it any more */
	size_t len, done;
	uint8_t data[STREAM_DATA];
};

enum state { STARTING, RUNNING, ENDED };

struct client {
	const struct machine_run *run;
	struct stream stream;
	struct sink out[2];
	int input, signals; /* input: -1: it has ended */
	size_t window;	    /* bytes of input that may be sent now */
	enum state state;
	int status, process;
	int report; /* of a detached program: to the process that waits for its start; else -1 */
};

/* Return: a connected socket; -1: an error was printed. */
static int connect_agent(const struct machine_run *run)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct sio_err err;
	int fd;

	if (tool_path(at.sun_path, sizeof(at.sun_path), &err, "%s/machine.%u.run", run->dir,
		      run->node) < 0) {
		tool_fail(&err);
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	tool_error("%s: %s", at.sun_path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool send_words(struct client *c)
{
	char text[STREAM_DATA];
	size_t used = 0;

	for (unsigned i = 0; c->run->argv[i]; i++) {
		size_t len = strlen(c->run->argv[i]) + 1;

		if (len > sizeof(text) - used)
			return false;
		memcpy(text + used, c->run->argv[i], len);
		used += len;
	}
	return stream_put(&c->stream, STREAM_RUN, text, used);
}

/*
 * A signal of the terminal (SI_KERNEL) is for the whole group of the program; a signal that a
 * process sent to this one is for the program alone.
 */
static void take_signals(struct client *c)
{
	struct signalfd_siginfo info;

	while (read(c->signals, &info, sizeof(info)) == sizeof(info)) {
		stream_put_numbers(&c->stream, STREAM_SIGNAL, info.ssi_signo,
				   info.ssi_code == SI_KERNEL);
		if (info.ssi_signo == SIGTSTP) {
			stream_send(&c->stream);
			kill(getpid(), SIGSTOP);
		}
	}
}

static void take_input(struct client *c)
{
	char data[STREAM_CHUNK];
	ssize_t len;

	len = read(c->input, data, c->window < sizeof(data) ? c->window : sizeof(data));
	if (len < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (len <= 0) {
		stream_put(&c->stream, STREAM_INPUT_END, NULL, 0);
		c->input = -1;
		return;
	}
	stream_put(&c->stream, STREAM_INPUT, data, (size_t)len);
	c->window -= (size_t)len;
}

/* A pipe that can be written to takes PIPE_BUF bytes without blocking. */
static void drain(struct client *c, struct sink *s)
{
	size_t len = s->len - s->done < PIPE_BUF ? s->len - s->done : PIPE_BUF;
	ssize_t done = write(s->fd, s->data + s->done, len);

	if (done < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (done < 0) {
		/* On this machine the program's own write would have caused the signal. */
		if (c->state == RUNNING)
			stream_put_numbers(&c->stream, STREAM_SIGNAL, SIGPIPE, 0);
		s->fd = -1;
		s->len = s->done = 0;
		return;
	}
	s->done += (size_t)done;
	if (s->done == s->len)
		s->len = s->done = 0;
}

static void say_started(struct client *c)
{
	if (c->report >= 0) {
		if (write(c->report, &c->process, sizeof(c->process)) < 0)
			c->status = TOOL_EXIT_FAILURE;
		close(c->report);
		c->report = -1;
	}
}

/* False: the connection must be ended. */
static bool take_message(struct client *c, const struct stream_msg *m)
{
	struct sink *s = &c->out[m->kind == STREAM_ERRORS];
	int error = (int)stream_number(m, 0);

	switch (m->kind) {
	case STREAM_STARTED:
		c->state = RUNNING;
		c->process = (int)stream_number(m, 0);
		say_started(c);
		return true;
	case STREAM_FAILED:
		tool_error("'%s' cannot be run on machine '%s': %s", c->run->argv[0], c->run->host,
			   strerror(error));
		c->state = RUNNING;
		return true;
	case STREAM_OUTPUT:
	case STREAM_ERRORS:
		if (s->fd < 0)
			return true;
		memcpy(s->data, m->data, m->len);
		s->len = m->len;
		return true;
	case STREAM_TAKEN:
		c->window += stream_number(m, 0);
		return c->window <= STREAM_WINDOW;
	case STREAM_ENDED:
		c->state = ENDED;
		c->status = (int)stream_number(m, 0);
		return true;
	default:
		return false;
	}
}

/* Messages are processed one by one, as the output that they brought is written. */
static bool take_messages(struct client *c)
{
	struct stream_msg m;
	int r;

	while (c->state != ENDED && !c->out[0].len && !c->out[1].len) {
		r = stream_next(&c->stream, &m);
		if (r <= 0)
			return r == 0;
		if (!take_message(c, &m))
			return false;
	}
	return true;
}

static void watch(struct client *c)
{
	bool there = true;

	while ((there && c->state != ENDED) || c->out[0].len || c->out[1].len) {
		bool busy = c->out[0].len || c->out[1].len;
		bool wants_input = c->input >= 0 && c->window && stream_has_room(&c->stream) &&
				   c->state == RUNNING;
		short wanted =
			(short)((busy ? 0 : POLLIN) | (stream_pending(&c->stream) ? POLLOUT : 0));
		struct pollfd f[5] = {{there && wanted ? c->stream.fd : -1, wanted, 0},
				      {c->signals, POLLIN, 0},
				      {wants_input ? c->input : -1, POLLIN, 0},
				      {c->out[0].len ? c->out[0].fd : -1, POLLOUT, 0},
				      {c->out[1].len ? c->out[1].fd : -1, POLLOUT, 0}};

		if (poll(f, 5, -1) < 0 && errno != EINTR)
			return;
		if (f[1].revents)
			take_signals(c);
		if (f[2].revents)
			take_input(c);
		for (int i = 0; i < 2; i++)
			if (f[3 + i].revents)
				drain(c, &c->out[i]);
		if (there && !busy && f[0].revents & (POLLIN | POLLHUP | POLLERR))
			there = stream_receive(&c->stream);
		if (!take_messages(c))
			return;
		/*
		 * A peer that reads no more may have sent messages before, the program's end last.
		 */
		if (there && !stream_send(&c->stream))
			stream_forget(&c->stream);
	}
}

/* The machine, or its agent, ended before the program did. */
static int say_lost(const struct client *c)
{
	const struct machine_run *run = c->run;
	char hint[TOOL_HINT_TEXT];

	if (run->silent)
		return TOOL_EXIT_KILLED;
	if (c->state == STARTING)
		return tool_error("machine '%s' does not answer; see what it does with: %s machine "
				  "console %s",
				  run->host, tool_hint(run->dir, hint), run->host);
	tool_error("machine %s crashed; its programs with it", run->host);
	return TOOL_EXIT_KILLED;
}

static int run_here(struct client *c)
{
	int fd = connect_agent(c->run);

	if (fd < 0)
		return TOOL_EXIT_FAILURE;
	stream_init(&c->stream, fd);
	signal(SIGPIPE, SIG_IGN);
	c->signals = tool_forward_open(false);
	c->window = STREAM_WINDOW;
	if (!send_words(c)) {
		close(fd);
		return tool_error("the words of the command line are too long: %d bytes are the "
				  "limit",
				  STREAM_DATA);
	}
	watch(c);
	close(fd);
	close(c->signals);
	return c->state == ENDED ? c->status : say_lost(c);
}

/*
 * The background process of a detached program. The process that waits for its start names its log.
 */
static void __attribute__((noreturn)) stay(struct client *c, const char *log)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	int status;

	setsid();
	if (null < 0 || fd < 0)
		_exit(tool_error("%s: %s", log, strerror(errno)));
	dup2(null, 0);
	c->out[0].fd = c->out[1].fd = fd;
	c->input = 0;
	status = run_here(c);
	if (c->state == ENDED)
		dprintf(fd, "smartio: '%s' (process %d) ended with exit status %d\n",
			c->run->argv[0], c->process, status);
	else
		dprintf(fd, "smartio: machine %s crashed\n", c->run->host);
	_exit(status);
}

static int say_detached(const struct machine_run *run, int process, const char *log)
{
	struct tool_keep keep = {.dir = run->dir, .node = run->node};
	char path[PATH_MAX];
	struct sio_err err;

	if (tool_keep_log(&keep, process, path, sizeof(path), &err) < 0)
		return tool_fail(&err);
	if (rename(log, path) < 0)
		return tool_error("%s: %s", path, strerror(errno));
	return tool_keep_say_log(path, process, run->host);
}

static int run_detached(struct client *c)
{
	char log[PATH_MAX];
	struct sio_err err;
	int report[2], process = 0;
	ssize_t len;
	pid_t pid;

	if (tool_path(log, sizeof(log), &err, "%s/run.%u.new.%d", c->run->dir, c->run->node,
		      (int)getpid()) < 0)
		return tool_fail(&err);
	if (pipe2(report, O_CLOEXEC) < 0)
		return tool_error("pipe: %s", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return tool_error("fork: %s", strerror(errno));
	if (pid == 0) {
		close(report[0]);
		c->report = report[1];
		stay(c, log);
	}
	close(report[1]);
	do
		len = read(report[0], &process, sizeof(process));
	while (len < 0 && errno == EINTR);
	close(report[0]);
	if (len == sizeof(process))
		return say_detached(c->run, process, log);
	unlink(log);
	return TOOL_EXIT_FAILURE;
}

int machine_run(const struct machine_run *run)
{
	struct client *c = tool_alloc(1, sizeof(*c));
	int status;

	c->run = run;
	c->report = -1;
	c->input = run->silent ? -1 : 0;
	c->out[0].fd = run->silent ? -1 : 1;
	c->out[1].fd = run->silent ? -1 : 2;
	status = run->detached ? run_detached(c) : run_here(c);
	free(c);
	return status;
}
