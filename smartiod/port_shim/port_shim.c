/* SPDX-License-Identifier: BSD-2-Clause */
/* The hardware port of a real host (shim_port.h) on the daemon's event loop. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <syslog.h>

#include "smartiod/port_shim/port_shim.h"

#define BATCH 16 /* events before the clients have their turn */

static void die(struct port_shim *p, const char *what, int error)
{
	struct live *l = p->live;

	live_log(l, LOG_CRIT, "%s: %s: %s", l->options.device, what, strerror(error));
	l->exit_code = 1;
	sd_event_exit(l->event, 1);
}

/* ---- requests ---- */

/* A refusal of our own, from the loop; @refused is full: there have been too many at once. */
static void refuse(struct port_shim *p, const struct sio_req *req, int error)
{
	struct sio_evt_error *evt;

	if (p->n_refused == PORT_SHIM_REFUSED) {
		die(p, "a request is lost", -error);
		return;
	}
	evt = &p->refused[p->n_refused++];
	*evt = (struct sio_evt_error){.h = {.size = sizeof(*evt),
					    .op = req->op,
					    .reason = sio_reason_of(error),
					    .error = error,
					    .cookie = req->cookie,
					    .owner = req->owner}};
	snprintf(evt->text, sizeof(evt->text), "request %u cannot be made: %s", req->op,
		 strerror(-error));
	sd_event_source_set_enabled(p->defer, SD_EVENT_ONESHOT);
}

static void shim_send(struct live *l, const void *req, size_t len, const int *fds, unsigned n_fds)
{
	struct port_shim *p = l->shim;
	int r = shim_port_send(p->port, req, len, fds, n_fds);

	if (r == -EMSGSIZE || r == -EINVAL)
		die(p, "a request is invalid", -r);
	else if (r < 0)
		refuse(p, req, r);
}

static int on_defer(sd_event_source *s, void *data)
{
	struct port_shim *p = data;
	struct sio_evt_error evt;

	if (p->n_refused == 0)
		return 0;
	evt = p->refused[0];
	p->n_refused--;
	memmove(p->refused, p->refused + 1, p->n_refused * sizeof(p->refused[0]));
	if (p->n_refused)
		sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	smartiod_port_event(p->live->daemon, &evt, sizeof(evt), NULL, 0);
	return 0;
}

/* ---- events ---- */

void port_shim_remember(struct port_shim *p, const struct sio_evt_device *evt)
{
	unsigned i = 0;

	while (i < p->n_devices && p->device[i].id != evt->id)
		i++;
	if (i == PORT_SHIM_DEVICES)
		return;
	p->device[i].id = evt->id;
	p->device[i].bdf = evt->bdf;
	if (i == p->n_devices)
		p->n_devices++;
}

/* Return: whether an event was handled. */
static bool next_event(struct port_shim *p)
{
	_Alignas(8) unsigned char buf[SIO_PORT_MAX_PACKET];
	const struct sio_evt *h = (const void *)buf;
	int fds[SIO_PORT_MAX_FDS];
	unsigned n_fds;
	long size = shim_port_event(p->port, buf, fds, &n_fds);

	if (size < 0) {
		if (size != -EAGAIN && size != -EINTR)
			die(p, "events cannot be read", (int)-size);
		return false;
	}
	if (h->error == 0 && h->size == sizeof(struct sio_evt_device) &&
	    (h->op == SIO_OP_DEVICE_LIST || h->op == SIO_OP_DEVICE_OPEN))
		port_shim_remember(p, (const void *)buf);
	smartiod_port_event(p->live->daemon, buf, (size_t)size, fds, n_fds);
	return true;
}

static int on_io(sd_event_source *s, int fd, uint32_t events, void *data)
{
	struct port_shim *p = data;

	(void)s;
	(void)fd;
	if (events & (EPOLLERR | EPOLLHUP)) {
		die(p, "the kernel module has closed the connection", EIO);
		return 0;
	}
	for (int i = 0; i < BATCH && next_event(p); i++)
		;
	return 0;
}

/* ---- life ---- */

static int open_failed(const char *path, int error, struct sio_err *reterr)
{
	switch (error) {
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		return sio_fail(reterr, error,
				"%s: the kernel module is not loaded: modprobe smartio", path);
	case -EBUSY:
		return sio_fail(reterr, error, "%s: another smartiod has it", path);
	case -EACCES:
	case -EPERM:
		return sio_fail(reterr, error, "%s: %s: smartiod runs as root there", path,
				strerror(-error));
	default:
		return sio_fail(reterr, error, "%s: %s", path, strerror(-error));
	}
}

static int add_sources(struct port_shim *p, sd_event *event)
{
	int r = sd_event_add_io(event, &p->io, shim_port_fd(p->port), EPOLLIN, on_io, p);

	if (r < 0)
		return r;
	/* Answers of the hardware first: they end what programs wait for. */
	r = sd_event_source_set_priority(p->io, SD_EVENT_PRIORITY_NORMAL - 10);
	if (r < 0)
		return r;
	r = sd_event_add_defer(event, &p->defer, on_defer, p);
	if (r < 0)
		return r;
	return sd_event_source_set_enabled(p->defer, SD_EVENT_OFF);
}

static int shim_open(struct live *l, struct sio_err *reterr)
{
	struct port_shim *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return sio_no_memory(reterr, "the port");
	l->shim = p;
	p->live = l;
	p->log_fd = -1;
	r = shim_port_open(l->options.device, &p->port);
	if (r < 0)
		return open_failed(l->options.device, r, reterr);
	r = add_sources(p, l->event);
	if (r < 0)
		return sio_fail(reterr, r, "event loop: %s", strerror(-r));
	port_shim_log_open(p);
	return 0;
}

static void shim_close(struct live *l)
{
	struct port_shim *p = l->shim;

	if (!p)
		return;
	port_shim_log_close(p);
	sd_event_source_disable_unref(p->io);
	sd_event_source_disable_unref(p->defer);
	shim_port_close(p->port);
	free(p);
	l->shim = NULL;
}

const struct live_port live_port_shim = {shim_open, shim_send, shim_close};
