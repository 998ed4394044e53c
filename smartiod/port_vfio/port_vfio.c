/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection to smartio-vfio, which is a process of its own so that it outlives smartiod. The
 * first smartiod that finds none starts it; later ones find it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "smartiod/live/file.h"
#include "smartiod/live/live.h"
#include "smartiod/port_shim/port_shim.h"
#include "smartiod/port_vfio/port_vfio.h"

#define PORT_QUEUE (64u << 20)
#define PROGRAM "smartio-vfio"
#define GROUPS "/sys/kernel/iommu_groups"

/* One that ran already, of systemd or of an earlier smartiod, has heard of no option of ours. */
static void check_backend(struct live *l, const struct sio_evt_device *evt)
{
	const char *is = evt->iommu_mode == SIO_IOMMU_IOMMUFD ? "iommufd" : "group";

	if (l->options.backend && strcmp(l->options.backend, is) != 0)
		live_log(l, LOG_WARNING,
			 "%s: served by %s and not by %s: " PROGRAM " ran already, and heeds the "
			 "--backend that it was started with",
			 evt->name, is, l->options.backend);
}

static void on_packet(struct live_conn *conn, const void *buf, size_t len, int *fds, unsigned n_fds)
{
	struct live *l = conn->ctx;
	const struct sio_evt *h = buf;
	int place[LIVE_MAX_FDS];

	/* Whoever misses one has no room for it, and hears so by the -1. */
	for (unsigned i = 0; i < LIVE_MAX_FDS; i++)
		place[i] = i < n_fds ? fds[i] : -1;
	if (len == sizeof(struct sio_evt_device) && h->error == 0 &&
	    (h->op == SIO_OP_DEVICE_LIST || h->op == SIO_OP_DEVICE_OPEN))
		port_shim_remember(l->shim, buf);
	if (len == sizeof(struct sio_evt_device) && h->error == 0 && h->op == SIO_OP_DEVICE_OPEN)
		check_backend(l, buf);
	smartiod_port_event(l->daemon, buf, len, place, conn->fds_lost ? LIVE_MAX_FDS : n_fds);
	for (unsigned i = 0; i < n_fds; i++)
		fds[i] = -1;
}

static void on_over(struct live_conn *conn, int error)
{
	struct live *l = conn->ctx;

	live_log(l, LOG_CRIT, PROGRAM " has gone%s%s%s", error ? ": " : "",
		 error ? strerror(-error) : "",
		 l->ready ? "" : " before it answered: is another smartiod connected to it?");
	l->exit_code = 1;
	sd_event_exit(l->event, 1);
}

static const struct live_conn_handler handler = {.packet = on_packet, .over = on_over};

/* ---- starting it ---- */

/* Beside this program: "/usr/bin/smartiod", "/usr/bin/smartio-vfio". */
static int program_path(char ret[LIVE_PATH], struct sio_err *reterr)
{
	ssize_t n = readlink("/proc/self/exe", ret, LIVE_PATH - sizeof(PROGRAM) - 1);
	char *slash;

	if (n <= 0)
		return sio_fail(reterr, -errno, "/proc/self/exe: %s", strerror(errno));
	ret[n] = '\0';
	slash = strrchr(ret, '/');
	strcpy(slash + 1, PROGRAM);
	return access(ret, X_OK) < 0 ? sio_fail(reterr, -errno, "%s: %s", ret, strerror(errno)) : 0;
}

/* A grandchild: nobody here has to wait for its end. It has no terminal that could end it. */
static void become(const char *path, const struct live_options *o, int ready)
{
	char number[16];
	int null = open("/dev/null", O_RDWR);

	snprintf(number, sizeof(number), "%d", ready);
	if (setsid() < 0 || fork() != 0)
		_exit(0);
	dup2(null, 0);
	dup2(null, 1);
	fcntl(ready, F_SETFD, 0);
	execl(path, PROGRAM, "--state", o->state, "--ready-fd", number,
	      o->backend ? "--backend" : (char *)NULL, o->backend, (char *)NULL);
	_exit(127);
}

static int start_program(struct live *l, struct sio_err *reterr)
{
	char path[LIVE_PATH], ready[8];
	int fds[2], r = program_path(path, reterr);
	ssize_t n;
	pid_t child;

	if (r < 0)
		return r;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return sio_fail(reterr, -errno, "pipe: %s", strerror(errno));
	child = fork();
	if (child == 0)
		become(path, &l->options, fds[1]);
	close(fds[1]);
	do
		n = child < 0 ? -1 : read(fds[0], ready, sizeof(ready));
	while (n < 0 && child > 0 && errno == EINTR);
	close(fds[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	return n > 0 ? 0
		     : sio_fail(reterr, -ECHILD, "%s did not start; its own message says why",
				path);
}

/* ---- the port ---- */

static int connect_port(struct live *l, int *ret, struct sio_err *reterr)
{
	char path[LIVE_PATH];
	int r;

	if (snprintf(path, sizeof(path), "%s/vfio.port", l->options.state) >= (int)sizeof(path))
		return sio_fail(reterr, -ENAMETOOLONG, "%s: name too long", l->options.state);
	r = live_connect(path, ret, reterr);
	if (r != -ENOENT && r != -ECONNREFUSED)
		return r;
	r = start_program(l, reterr);
	return r < 0 ? r : live_connect(path, ret, reterr);
}

/* The kernel's log names places: port_shim_log.c reads it for us, too. */
static int hear_log(struct live *l, struct sio_err *reterr)
{
	l->shim = calloc(1, sizeof(*l->shim));
	if (!l->shim)
		return sio_no_memory(reterr, "what reads the kernel's log");
	l->shim->live = l;
	l->shim->log_fd = -1;
	port_shim_log_open(l->shim);
	return 0;
}

static int vfio_open(struct live *l, struct sio_err *reterr)
{
	int fd, r;

	if (geteuid() != 0)
		return sio_fail(reterr, -EPERM, "smartiod --vfio runs as root");
	if (access(GROUPS "/0", F_OK) < 0)
		live_log(l, LOG_WARNING,
			 "there is no IOMMU (" GROUPS " is empty): VFIO takes no device; it is "
			 "enabled in the firmware and by intel_iommu=on");
	r = hear_log(l, reterr);
	if (r == 0)
		r = connect_port(l, &fd, reterr);
	if (r < 0)
		return r;
	r = live_conn_init(&l->port, l->event, fd, PORT_QUEUE, &handler, l);
	if (r < 0)
		return sio_fail(reterr, r, "%s/vfio.port: %s", l->options.state, strerror(-r));
	/* Answers of the hardware first: they end what programs wait for. */
	sd_event_source_set_priority(l->port.io, SD_EVENT_PRIORITY_NORMAL - 10);
	l->port_open = true;
	return 0;
}

static void vfio_send(struct live *l, const void *req, size_t len, const int *fds, unsigned n_fds)
{
	live_conn_send(&l->port, req, len, fds, n_fds);
}

static void vfio_close(struct live *l)
{
	if (l->port_open)
		live_conn_done(&l->port);
	l->port_open = false;
	if (l->shim)
		port_shim_log_close(l->shim);
	free(l->shim);
	l->shim = NULL;
}

const struct live_port live_port_vfio = {vfio_open, vfio_send, vfio_close};
