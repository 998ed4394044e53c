/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <malloc.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "smartiod/live/live.h"
#include "smartiod/live/file.h"
#include "smartiod/live/log.h"
#include "smartiod/live/transport.h"

/* Longer than a borrow and its reset take here, and less than anybody notices. */
#define LATER_US 1000

static void op_log(void *ctx, const char *file, int level, const char *fmt, va_list ap)
{
	(void)ctx;
	live_log_write(file, level, fmt, ap);
}

static void op_port(void *ctx, const void *req, size_t len, const int *fds, unsigned n_fds)
{
	struct live *l = ctx;

	l->options.port->send(l, req, len, fds, n_fds);
}

static void op_close(void *ctx, int fd)
{
	(void)ctx;
	if (fd >= 0)
		close(fd);
}

static uint64_t op_now(void *ctx)
{
	struct timespec ts;

	(void)ctx;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t op_random(void *ctx)
{
	uint64_t value;

	(void)ctx;
	while (getrandom(&value, sizeof(value), 0) != sizeof(value))
		;
	return value;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *data)
{
	struct live *l = data;

	(void)s;
	(void)usec;
	smartiod_timer(l->daemon);
	return 0;
}

static void op_timer(void *ctx, uint64_t when)
{
	struct live *l = ctx;

	if (when == UINT64_MAX) {
		sd_event_source_set_enabled(l->timer, SD_EVENT_OFF);
		return;
	}
	/* Rounded up: never before the time asked for. */
	sd_event_source_set_time(l->timer, when / 1000 + (when % 1000 != 0));
	sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
}

static int on_later(sd_event_source *s, uint64_t usec, void *data)
{
	struct live *l = data;

	(void)s;
	(void)usec;
	smartiod_later(l->daemon);
	return 0;
}

static void op_later(void *ctx)
{
	struct live *l = ctx;

	sd_event_source_set_time(l->later, op_now(l) / 1000 + LATER_US);
	sd_event_source_set_enabled(l->later, SD_EVENT_ONESHOT);
}

static void op_fatal(void *ctx, const char *text)
{
	struct live *l = ctx;

	live_log(l, LOG_CRIT, "%s", text);
	l->exit_code = 1;
	sd_event_exit(l->event, 1);
}

static void op_ready(void *ctx)
{
	struct live *l = ctx;
	int r;

	if (l->ready)
		return;
	l->ready = true;
	r = live_listener_start(&l->peers_listener);
	if (r >= 0)
		r = live_listener_start(&l->clients_listener);
	if (r < 0) {
		op_fatal(l, strerror(-r));
		return;
	}
	live_log(l, LOG_INFO, "ready: %s", l->clients_listener.path);
	sd_notifyf(0, "READY=1\nSTATUS=node %" PRIu32 " of cluster %s", l->host->node,
		   l->topology->name);
	if (l->options.ready_fd >= 0) {
		/* Nobody left to read it is no error of ours. */
		if (write(l->options.ready_fd, "ready\n", 6) != 6)
			live_log(l, LOG_WARNING, "ready fd %d: %s", l->options.ready_fd,
				 strerror(errno));
		close(l->options.ready_fd);
		l->options.ready_fd = -1;
	}
}

static uint64_t op_heap(void *ctx)
{
	struct mallinfo2 m = mallinfo2();

	(void)ctx;
	return m.uordblks + m.hblkhd;
}

static const struct smartiod_ops ops = {
	.port = op_port,
	.client_send = live_client_send,
	.client_take = live_client_take,
	.client_close = live_client_close,
	.peer_connect = live_peer_connect,
	.peer_send = live_peer_send,
	.peer_close = live_peer_close,
	.close = op_close,
	.irq_watch = live_irq_watch,
	.irq_unwatch = live_irq_unwatch,
	.irq_signal = live_irq_signal,
	.now = op_now,
	.timer = op_timer,
	.later = op_later,
	.random = op_random,
	.heap = op_heap,
	.file_read = live_op_file_read,
	.file_keep = live_op_file_keep,
	.file_text = live_op_file_text,
	.ready = op_ready,
	.fatal = op_fatal,
	.log = op_log,
};

static int on_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *data)
{
	struct live *l = data;

	(void)s;
	live_log(l, LOG_INFO, "%s: ending", strsignal((int)si->ssi_signo));
	sd_notify(0, "STOPPING=1");
	return sd_event_exit(l->event, 0);
}

static int open_loop(struct live *l)
{
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	r = sd_event_new(&l->event);
	if (r < 0)
		return r;
	r = sd_event_add_signal(l->event, &l->sigterm, SIGTERM, on_signal, l);
	if (r < 0)
		return r;
	r = sd_event_add_signal(l->event, &l->sigint, SIGINT, on_signal, l);
	if (r < 0)
		return r;
	/* Accuracy of 1 us: the machine's 20 ms must not become sd-event's default 250 ms. */
	r = sd_event_add_time(l->event, &l->timer, CLOCK_MONOTONIC, 0, 1, on_timer, l);
	if (r < 0)
		return r;
	r = sd_event_source_set_enabled(l->timer, SD_EVENT_OFF);
	if (r < 0)
		return r;
	r = sd_event_add_time(l->event, &l->later, CLOCK_MONOTONIC, 0, 1, on_later, l);
	if (r < 0)
		return r;
	return sd_event_source_set_enabled(l->later, SD_EVENT_OFF);
}

static int state_path(struct live *l, const char *format, char *ret, struct sio_err *reterr)
{
	char name[64];

	snprintf(name, sizeof(name), format, l->host->node);
	if (snprintf(ret, LIVE_PATH, "%s/%s", l->options.state, name) >= LIVE_PATH)
		return sio_fail(reterr, -ENAMETOOLONG, "%s: name too long", l->options.state);
	return 0;
}

/* Without the group it goes on, for root alone. */
static int share(struct live *l, const char *path, struct sio_err *reterr)
{
	struct sio_err err;
	int r = live_share(path, l->options.group, &err);

	if (r == -ENOENT)
		live_log(l, LOG_WARNING, "%s: root alone may connect; mend: groupadd --system %s",
			 err.text, l->options.group);
	else if (r < 0)
		return sio_fail(reterr, r, "%s", err.text);
	return 0;
}

/* Programs of this machine need not know which node of which cluster it is: a link, "local". */
static int name_socket(struct live *l, struct sio_err *reterr)
{
	char name[32], fresh[LIVE_PATH], path[LIVE_PATH];
	int r;

	snprintf(name, sizeof(name), "node.%" PRIu32, l->host->node);
	r = state_path(l, "local.%" PRIu32, fresh, reterr);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%.*s", (int)(strrchr(fresh, '.') - fresh), fresh);
	if ((unlink(fresh) < 0 && errno != ENOENT) || symlink(name, fresh) < 0 ||
	    rename(fresh, path) < 0)
		return sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

/*
 * In one step from the socket of the smartiod before to ours, which members of the group may use:
 * whoever connects meanwhile is refused by the old one, and comes again.
 */
static int show_socket(struct live *l, const char *path, struct sio_err *reterr)
{
	struct live_listener *s = &l->clients_listener;
	char shown[LIVE_PATH];
	int r = share(l, path, reterr);

	if (r >= 0)
		r = state_path(l, "node.%" PRIu32, shown, reterr);
	if (r < 0)
		return r;
	if (rename(path, shown) < 0)
		return sio_fail(reterr, -errno, "%s: %s", shown, strerror(errno));
	strcpy(s->path, shown);
	return name_socket(l, reterr);
}

static int open_files(struct live *l, struct sio_err *reterr)
{
	char path[LIVE_PATH];
	int r;

	r = l->options.group ? live_folder(l->options.state, reterr) : 0;
	if (r < 0)
		return r;
	r = state_path(l, "smartiod.%" PRIu32 ".pid", l->pid_path, reterr);
	if (r < 0)
		return r;
	r = live_pid_file(l->pid_path, &l->pid_fd, reterr);
	if (r < 0)
		return r;
	r = l->transport->open(l, live_peer_accepted, reterr);
	if (r < 0)
		return r;
	r = state_path(l, l->options.group ? "new.%" PRIu32 : "node.%" PRIu32, path, reterr);
	if (r < 0)
		return r;
	r = live_listener_init(&l->clients_listener, l, path, live_client_accepted, reterr);
	return r < 0 || !l->options.group ? r : show_socket(l, path, reterr);
}

static void live_done(struct live *l)
{
	/*
	 * Programs that have something wait for the next smartiod; others then find a socket, and
	 * wait, too.
	 */
	l->clients_listener.stays = l->options.group && l->clients;
	live_listener_done(&l->clients_listener);
	live_listener_done(&l->peers_listener);
	if (l->daemon)
		smartiod_free(l->daemon);
	live_clients_free(l);
	live_peers_free(l);
	l->transport->close(l);
	live_irqs_free(l);
	l->options.port->close(l);
	sd_event_source_unref(l->timer);
	sd_event_source_unref(l->later);
	sd_event_source_unref(l->sigterm);
	sd_event_source_unref(l->sigint);
	sd_event_unref(l->event);
	live_file_done(&l->file);
	live_file_done(&l->next);
	if (l->pid_fd >= 0) {
		unlink(l->pid_path);
		close(l->pid_fd);
	}
	free(l);
}

int live_run(const struct live_options *options, const struct sio_topology *t,
	     const struct sio_topo_host *host, struct sio_err *reterr)
{
	struct live *l = calloc(1, sizeof(*l));
	struct rlimit limit;
	int r;

	if (!l) {
		free(options->file.text);
		return sio_no_memory(reterr, "smartiod");
	}
	l->options = *options;
	l->file = options->file;
	l->topology = t;
	l->host = host;
	l->pid_fd = -1;
	l->clients_listener.fd = l->clients_listener.reserve = -1;
	l->peers_listener.fd = l->peers_listener.reserve = -1;
	/* No plain connection leaves the machine. */
	l->transport = host->address.port ? &live_transport_tls : &live_transport_local;
	r = open_loop(l);
	if (r >= 0)
		r = live_irqs_open(l);
	if (r < 0) {
		sio_fail(reterr, r, "event loop: %s", strerror(-r));
		goto done;
	}
	r = open_files(l, reterr);
	if (r < 0)
		goto done;
	r = options->port->open(l, reterr);
	if (r < 0)
		goto done;
	r = smartiod_new(t, host->node, &ops, l, &l->daemon, reterr);
	if (r < 0)
		goto done;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		smartiod_descriptors(l->daemon, limit.rlim_cur);
	smartiod_start(l->daemon);
	r = sd_event_loop(l->event);
	if (r < 0)
		sio_fail(reterr, r, "event loop: %s", strerror(-r));
	else
		r = l->exit_code;
done:
	live_done(l);
	return r;
}
