/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to the module, one after the other; long ones on threads beside them; answers and events
 * in one stream.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "smartiod/port_shim/shim_port.h"
#include "smartiod/port_shim/shim_port_own.h"

struct list {
	struct shim_call *first, **last;
};

/* One that takes long. */
struct beside {
	struct beside *next;
	struct shim_port *port;
	struct shim_call *call;
	pthread_t thread;
};

struct shim_port {
	int node, wake, poll; /* wake: an eventfd, not 0 while there are answers */
	pthread_mutex_t lock; /* of done, and who arms wake */
	bool armed;
	struct list done;	/* answered */
	struct list behind;	/* wait for a reset */
	struct beside *besides; /* under way, or not yet read */
	uint64_t requests, refused;
	struct shim_call spare; /* for whoever waits for no answer, when there is no memory */
};

static void append(struct list *l, struct shim_call *c)
{
	c->next = NULL;
	*l->last = c;
	l->last = &c->next;
}

static struct shim_call *take_first(struct list *l)
{
	struct shim_call *c = l->first;

	if (c)
		l->first = c->next;
	if (!l->first)
		l->last = &l->first;
	return c;
}

/* ---- one request ---- */

static void call_free(struct shim_call *c)
{
	for (unsigned i = 0; i < c->n_fds; i++)
		close(c->fd[i]);
	for (unsigned i = 0; i < c->n_answer_fds; i++)
		close(c->answer_fd[i]);
	free(c);
}

static int call_new(struct shim_port *p, const void *req, size_t len, const int *fds,
		    unsigned n_fds, struct shim_call **ret)
{
	struct shim_call *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->node = p->node;
	c->len = len;
	memcpy(&c->req, req, len);
	for (; c->n_fds < n_fds; c->n_fds++) {
		c->fd[c->n_fds] = fcntl(fds[c->n_fds], F_DUPFD_CLOEXEC, 3);
		if (c->fd[c->n_fds] < 0) {
			int error = -errno;

			call_free(c);
			return error;
		}
	}
	*ret = c;
	return 0;
}

/* What ran out, where we refuse ourselves. */
static uint32_t reason_of(int error)
{
	if (error == -ENOMEM)
		return SIO_OUT_OF_MEMORY;
	return error == -EMFILE ? SIO_OUT_OF_DESCRIPTORS : SIO_OUT_OF_NOTHING;
}

void shim_call_refuse(struct shim_call *c, int error, const char *fmt, ...)
{
	va_list ap;

	memset(&c->answer.error, 0, sizeof(c->answer.error));
	c->answer.h = (struct sio_evt){.size = sizeof(c->answer.error),
				       .op = c->req.h.op,
				       .reason = reason_of(error),
				       .error = error,
				       .cookie = c->req.h.cookie,
				       .owner = c->req.h.owner};
	va_start(ap, fmt);
	vsnprintf(c->answer.error.text, sizeof(c->answer.error.text), fmt, ap);
	va_end(ap);
}

void *shim_call_answer(struct shim_call *c, size_t size)
{
	memset(&c->answer, 0, size);
	c->answer.h = (struct sio_evt){.size = (uint32_t)size,
				       .op = c->req.h.op,
				       .cookie = c->req.h.cookie,
				       .owner = c->req.h.owner};
	return &c->answer;
}

void shim_call_module(struct shim_call *c)
{
	struct sio_ioc_packet packet = {.data = (uintptr_t)&c->req,
					.answer = (uintptr_t)&c->answer,
					.size = (uint32_t)c->len,
					.n_fds = c->n_fds};

	memcpy(packet.fd, c->fd, sizeof(packet.fd));
	if (ioctl(c->node, SIO_IOC_REQUEST, &packet) < 0) {
		shim_call_refuse(c, -errno, "the kernel module did not take request %u: %s",
				 c->req.h.op, strerror(errno));
		return;
	}
	c->unsettled = packet.unsettled;
	c->n_answer_fds = packet.n_fds;
	memcpy(c->answer_fd, packet.fd, sizeof(c->answer_fd));
	if (c->answer.h.error && c->answer.h.size != sizeof(c->answer.error))
		shim_call_refuse(c, c->answer.h.error, "the kernel module has another version: %s",
				 strerror(-c->answer.h.error));
}

/* ---- what takes long: resets, drivers that come and go, peers ---- */

/* The device that a request is about; 0: none. It is their first field. */
static uint64_t device_of(const struct shim_call *c)
{
	const struct sio_req_reset *m = (const void *)&c->req;

	switch (c->req.h.op) {
	case SIO_OP_DEVICE_OPEN:
	case SIO_OP_DEVICE_CLOSE:
	case SIO_OP_RESET:
	case SIO_OP_CONFIG:
	case SIO_OP_BAR:
	case SIO_OP_DMAMAP:
	case SIO_OP_VECTOR:
	case SIO_OP_SETTLE:
		return m->device;
	default:
		return 0;
	}
}

static bool in_reset(const struct shim_port *p, uint64_t device)
{
	for (const struct beside *r = p->besides; device && r; r = r->next)
		if (device_of(r->call) == device)
			return true;
	return false;
}

static void answered(struct shim_port *p, struct shim_call *c)
{
	pthread_mutex_lock(&p->lock);
	append(&p->done, c);
	if (!p->armed)
		eventfd_write(p->wake, 1);
	p->armed = true;
	pthread_mutex_unlock(&p->lock);
}

/* What was ended may have something under way, which a peer may hold up. */
static void settle(const struct shim_call *c)
{
	if (c->unsettled)
		ioctl(c->node, SIO_IOC_SETTLE);
}

static void *serve_thread(void *data)
{
	struct beside *r = data;

	shim_call_serve(r->call);
	settle(r->call);
	answered(r->port, r->call);
	return NULL;
}

/* Of one that was served. */
static void *settle_thread(void *data)
{
	struct beside *r = data;

	settle(r->call);
	answered(r->port, r->call);
	return NULL;
}

/* Return: it is under way. */
static bool start(struct shim_port *p, struct shim_call *c, void *(*thread)(void *))
{
	struct beside *r = calloc(1, sizeof(*r));

	if (!r)
		return false;
	r->port = p;
	r->call = c;
	if (pthread_create(&r->thread, NULL, thread, r) != 0) {
		free(r);
		return false;
	}
	r->next = p->besides;
	p->besides = r;
	return true;
}

/* The word that it has been reset takes no time; drivers come and go as slowly as they like. */
static bool takes_long(const struct shim_call *c)
{
	const struct sio_req_reset *m = (const void *)&c->req;

	return (m->h.op == SIO_OP_RESET && m->kind != SIO_RESET_DONE) || m->h.op == SIO_OP_SHADOW ||
	       m->h.op == SIO_OP_SHADOW_DEL;
}

static void run(struct shim_port *p, struct shim_call *c)
{
	c->requests = ++p->requests;
	c->refused = p->refused;
	/* Without a thread all have to wait for it. */
	if (takes_long(c) && start(p, c, serve_thread))
		return;
	shim_call_serve(c);
	if (c->unsettled && start(p, c, settle_thread))
		return;
	settle(c);
	answered(p, c);
}

/* If @c took long: those behind a reset go on, in their order. */
static void over(struct shim_port *p, struct shim_call *c)
{
	struct list behind = p->behind;
	struct beside **at = &p->besides, *r;

	while (*at && (*at)->call != c)
		at = &(*at)->next;
	r = *at;
	if (!r)
		return;
	pthread_join(r->thread, NULL);
	*at = r->next;
	free(r);
	if (!behind.first)
		return;
	p->behind.last = &p->behind.first;
	p->behind.first = NULL;
	while ((c = take_first(&behind)))
		if (in_reset(p, device_of(c)))
			append(&p->behind, c);
		else
			run(p, c);
}

/* ---- the port ---- */

/*
 * Without memory for a request whose answer nobody waits for, which is how things are given back:
 * the module needs none for these.
 */
static int send_spare(struct shim_port *p, const void *req, size_t len)
{
	struct shim_call *c = &p->spare;

	memset(c, 0, sizeof(*c));
	c->node = p->node;
	c->len = len;
	memcpy(&c->req, req, len);
	if (device_of(c))
		return -ENOMEM; /* it may have to wait */
	shim_call_serve(c);	/* settled or not */
	return 0;
}

int shim_port_send(struct shim_port *p, const void *req, size_t len, const int *fds, unsigned n_fds)
{
	struct shim_call *c = NULL;
	int r;

	if (len < sizeof(struct sio_req) || len > SIO_PORT_MAX_PACKET)
		return -EMSGSIZE;
	if (n_fds > SIO_PORT_MAX_FDS)
		return -EINVAL;
	r = call_new(p, req, len, fds, n_fds, &c);
	if (r == -ENOMEM && n_fds == 0 && ((const struct sio_req *)req)->cookie == 0)
		return send_spare(p, req, len);
	if (r < 0)
		return r;
	if (in_reset(p, device_of(c)))
		append(&p->behind, c);
	else
		run(p, c);
	return 0;
}

static struct shim_call *next_answer(struct shim_port *p)
{
	struct shim_call *c;

	pthread_mutex_lock(&p->lock);
	c = take_first(&p->done);
	pthread_mutex_unlock(&p->lock);
	return c;
}

static long answer_event(struct shim_port *p, struct shim_call *c, void *evt, int *fds,
			 unsigned *ret_n_fds)
{
	long size = c->answer.h.size;

	p->refused += c->answer.h.error != 0;
	memcpy(evt, &c->answer, (size_t)size);
	memcpy(fds, c->answer_fd, sizeof(c->answer_fd));
	*ret_n_fds = c->n_answer_fds;
	c->n_answer_fds = 0;
	over(p, c);
	call_free(c);
	return size;
}

/* Answers come first: they end what programs wait for. */
static long event(struct shim_port *p, void *evt, int *fds, unsigned *ret_n_fds)
{
	struct shim_call *c = next_answer(p);
	long size;

	if (c)
		return answer_event(p, c, evt, fds, ret_n_fds);
	size = read(p->node, evt, SIO_PORT_MAX_PACKET);
	return size < 0 ? -errno : size;
}

/* The poll tells whether there is something to read. */
static void arm(struct shim_port *p)
{
	eventfd_t n;
	bool want;

	pthread_mutex_lock(&p->lock);
	want = p->done.first;
	if (want && !p->armed)
		eventfd_write(p->wake, 1);
	if (!want && p->armed)
		eventfd_read(p->wake, &n);
	p->armed = want;
	pthread_mutex_unlock(&p->lock);
}

long shim_port_event(struct shim_port *p, void *evt, int *fds, unsigned *ret_n_fds)
{
	long size;

	*ret_n_fds = 0;
	size = event(p, evt, fds, ret_n_fds);
	arm(p);
	return size;
}

int shim_port_fd(const struct shim_port *p)
{
	return p->poll;
}

static int add(struct shim_port *p, int fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(p->poll, EPOLL_CTL_ADD, fd, &e);
}

int shim_port_open(const char *path, struct shim_port **ret)
{
	struct shim_port *p = calloc(1, sizeof(*p));
	int error;

	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	p->done.last = &p->done.first;
	p->behind.last = &p->behind.first;
	p->wake = p->poll = -1;
	p->node = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (p->node < 0)
		goto fail;
	p->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	p->poll = epoll_create1(EPOLL_CLOEXEC);
	if (p->wake < 0 || p->poll < 0 || add(p, p->wake) < 0 || add(p, p->node) < 0)
		goto fail;
	*ret = p;
	return 0;

fail:
	error = -errno;
	shim_port_close(p);
	return error;
}

static void close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

void shim_port_close(struct shim_port *p)
{
	struct shim_call *c;

	if (!p)
		return;
	for (struct beside *r = p->besides, *next; r; r = next) {
		next = r->next;
		pthread_join(r->thread, NULL);
		free(r);
	}
	while ((c = take_first(&p->done)) || (c = take_first(&p->behind)))
		call_free(c);
	close_if(p->node);
	close_if(p->wake);
	close_if(p->poll);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
