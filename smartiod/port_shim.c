/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hardware port of a real host: requests and events as ioctls on smartio.ko's device node (the
 * end of smartio/uapi.h). A request that the module does not take because too many of its answers
 * are unread waits here, and all behind it: their order is part of the contract.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <syslog.h>
#include <unistd.h>

#include "smartiod/port_shim.h"

#define BATCH 16	 /* events before the clients have their turn */
#define RETRY_US 100000u /* when descriptors had run out */

struct port_shim_request {
	struct port_shim_request *next;
	int error; /* of failed ones */
	size_t len;
	unsigned n_fds;
	int fds[SIO_PORT_MAX_FDS];
	_Alignas(8) unsigned char data[];
};

static void request_free(struct port_shim_request *q)
{
	for (unsigned i = 0; i < q->n_fds; i++)
		close(q->fds[i]);
	free(q);
}

static struct port_shim_request *request_copy(const void *req, size_t len, const int *fds,
					      unsigned n_fds)
{
	struct port_shim_request *q = calloc(1, sizeof(*q) + len);

	if (!q)
		return NULL;
	memcpy(q->data, req, len);
	q->len = len;
	for (; q->n_fds < n_fds; q->n_fds++) {
		q->fds[q->n_fds] = fcntl(fds[q->n_fds], F_DUPFD_CLOEXEC, 3);
		if (q->fds[q->n_fds] < 0) {
			request_free(q);
			return NULL;
		}
	}
	return q;
}

static void die(struct port_shim *p, const char *what, int error)
{
	struct live *l = p->live;

	live_log(l, LOG_CRIT, "%s: %s: %s", l->options.device, what, strerror(error));
	l->exit_code = 1;
	sd_event_exit(l->event, 1);
}

/* ---- requests ---- */

/* Return: 0 the module has it; -errno. */
static int hand_over(struct port_shim *p, const void *req, size_t len, const int *fds,
		     unsigned n_fds)
{
	struct sio_ioc_packet packet = {
		.data = (uintptr_t)req, .size = (uint32_t)len, .n_fds = n_fds};

	for (unsigned i = 0; i < n_fds; i++)
		packet.fd[i] = fds[i];
	while (ioctl(p->fd, SIO_IOC_REQUEST, &packet) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* There will be no answer of the module's: ours follows, from the loop. */
static void refuse(struct port_shim *p, struct port_shim_request *q, int error)
{
	q->error = error;
	q->next = NULL;
	*p->failed_last = q;
	p->failed_last = &q->next;
	sd_event_source_set_enabled(p->defer, SD_EVENT_ONESHOT);
}

static void enqueue(struct port_shim *p, const void *req, size_t len, const int *fds,
		    unsigned n_fds, int error)
{
	struct port_shim_request *q = request_copy(req, len, fds, n_fds);

	if (!q) {
		die(p, "a request is lost", ENOMEM);
	} else if (error != -EAGAIN) {
		refuse(p, q, error);
	} else {
		*p->last = q;
		p->last = &q->next;
	}
}

static void shim_send(struct live *l, const void *req, size_t len, const int *fds, unsigned n_fds)
{
	struct port_shim *p = l->shim;
	int r = -EAGAIN;

	if (len < sizeof(struct sio_req) || n_fds > SIO_PORT_MAX_FDS) {
		die(p, "a request that is none", EINVAL);
		return;
	}
	if (!p->first)
		r = hand_over(p, req, len, fds, n_fds);
	if (r < 0)
		enqueue(p, req, len, fds, n_fds, r);
}

static void flush(struct port_shim *p)
{
	while (p->first) {
		struct port_shim_request *q = p->first;
		int r = hand_over(p, q->data, q->len, q->fds, q->n_fds);

		if (r == -EAGAIN)
			return;
		p->first = q->next;
		if (!p->first)
			p->last = &p->first;
		if (r < 0)
			refuse(p, q, r);
		else
			request_free(q);
	}
}

static int on_defer(sd_event_source *s, void *data)
{
	struct port_shim *p = data;
	struct port_shim_request *q = p->failed;

	if (!q)
		return 0;
	const struct sio_req *req = (const void *)q->data;
	struct sio_evt_error evt = {.h = {.size = sizeof(evt),
					  .op = req->op,
					  .error = q->error,
					  .cookie = req->cookie,
					  .owner = req->owner}};

	snprintf(evt.text, sizeof(evt.text), "the kernel module did not take request %u: %s",
		 req->op, strerror(-q->error));
	p->failed = q->next;
	if (!p->failed)
		p->failed_last = &p->failed;
	request_free(q);
	if (p->failed)
		sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	smartiod_port_event(p->live->daemon, &evt, sizeof(evt), NULL, 0);
	return 0;
}

/* ---- events ---- */

static void remember(struct port_shim *p, const struct sio_evt_device *evt)
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

/* No descriptor is left for what the next event brings: it stays where it is. */
static void try_later(struct port_shim *p)
{
	live_log(p->live, LOG_ERR, "no descriptor is left to receive what the port sends");
	sd_event_source_set_enabled(p->io, SD_EVENT_OFF);
	sd_event_source_set_time_relative(p->retry, RETRY_US);
	sd_event_source_set_enabled(p->retry, SD_EVENT_ONESHOT);
}

static int on_retry(sd_event_source *s, uint64_t usec, void *data)
{
	struct port_shim *p = data;

	(void)s;
	(void)usec;
	sd_event_source_set_enabled(p->io, SD_EVENT_ON);
	return 0;
}

/* Return: whether an event was handled. */
static bool next_event(struct port_shim *p)
{
	_Alignas(8) unsigned char buf[SIO_PORT_MAX_PACKET];
	struct sio_ioc_packet packet = {.data = (uintptr_t)buf, .size = sizeof(buf)};
	const struct sio_evt *h = (const void *)buf;
	int fds[SIO_PORT_MAX_FDS];

	if (ioctl(p->fd, SIO_IOC_EVENT, &packet) < 0) {
		if (errno == EMFILE || errno == ENFILE)
			try_later(p);
		else if (errno != EAGAIN && errno != EINTR)
			die(p, "events cannot be read", errno);
		return false;
	}
	for (unsigned i = 0; i < packet.n_fds; i++)
		fds[i] = packet.fd[i];
	if (h->error == 0 && h->size == sizeof(struct sio_evt_device) &&
	    (h->op == SIO_OP_DEVICE_LIST || h->op == SIO_OP_DEVICE_OPEN))
		remember(p, (const void *)buf);
	smartiod_port_event(p->live->daemon, buf, packet.size, fds, packet.n_fds);
	return true;
}

static int on_io(sd_event_source *s, int fd, uint32_t events, void *data)
{
	struct port_shim *p = data;

	(void)s;
	(void)fd;
	if (events & (EPOLLERR | EPOLLHUP)) {
		die(p, "the kernel module has let go of us", EIO);
		return 0;
	}
	for (int i = 0; i < BATCH && next_event(p); i++)
		;
	flush(p);
	return 0;
}

/* ---- life ---- */

static int open_node(const char *path, struct sio_err *reterr)
{
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	switch (errno) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		return sio_fail(reterr, -errno,
				"%s: the kernel module is not loaded: modprobe smartio", path);
	case EBUSY:
		return sio_fail(reterr, -errno, "%s: another smartiod has it", path);
	case EACCES:
	case EPERM:
		return sio_fail(reterr, -errno, "%s: %s: smartiod runs as root there", path,
				strerror(errno));
	default:
		return sio_fail(reterr, -errno, "%s: %s", path, strerror(errno));
	}
}

static int add_sources(struct port_shim *p, sd_event *event)
{
	int r = sd_event_add_io(event, &p->io, p->fd, EPOLLIN, on_io, p);

	if (r < 0)
		return r;
	/* Answers of the hardware first: they end what programs wait for. */
	r = sd_event_source_set_priority(p->io, SD_EVENT_PRIORITY_NORMAL - 10);
	if (r < 0)
		return r;
	r = sd_event_add_defer(event, &p->defer, on_defer, p);
	if (r < 0)
		return r;
	r = sd_event_source_set_enabled(p->defer, SD_EVENT_OFF);
	if (r < 0)
		return r;
	r = sd_event_add_time_relative(event, &p->retry, CLOCK_MONOTONIC, RETRY_US, 0, on_retry, p);
	if (r < 0)
		return r;
	return sd_event_source_set_enabled(p->retry, SD_EVENT_OFF);
}

static int shim_open(struct live *l, struct sio_err *reterr)
{
	struct port_shim *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return sio_fail(reterr, -ENOMEM, "no memory");
	l->shim = p;
	p->live = l;
	p->last = &p->first;
	p->failed_last = &p->failed;
	p->log_fd = -1;
	p->fd = open_node(l->options.device, reterr);
	if (p->fd < 0)
		return p->fd;
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
	sd_event_source_disable_unref(p->retry);
	*p->last = p->failed;
	while (p->first) {
		struct port_shim_request *q = p->first;

		p->first = q->next;
		request_free(q);
	}
	if (p->fd >= 0)
		close(p->fd);
	free(p);
	l->shim = NULL;
}

const struct live_port live_port_shim = {shim_open, shim_send, shim_close};
