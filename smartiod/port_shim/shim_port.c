/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests one after the other, resets beside them, answers and news in one stream. */
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
#include "smartiod/port_shim/shim_port_news.h"
#include "smartiod/port_shim/shim_port_own.h"

struct list {
	struct shim_call *first, **last;
};

struct reset {
	struct reset *next;
	struct shim_port *port;
	struct shim_call *call;
	pthread_t thread;
};

struct shim_port {
	int node, wake, poll; /* wake: an eventfd, not 0 while there are answers or news */
	pthread_mutex_t lock; /* of done, and who arms wake */
	bool armed;
	struct list done;     /* answered */
	struct list behind;   /* wait for a reset */
	struct reset *resets; /* under way, or not yet read */
	uint64_t requests, refused;
	struct shim_news news;
	bool look_again; /* something may have changed that the node does not tell of again */
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

/* The module says an errno: of each operation that is one thing that ran out. */
static uint32_t reason_of(uint32_t op, int error)
{
	static const uint32_t no_space[SIO_OP_COUNT] = {
		[SIO_OP_ALLOC] = SIO_OUT_OF_RAM,
		[SIO_OP_DMAMAP] = SIO_OUT_OF_REACH,
		[SIO_OP_VECTOR] = SIO_OUT_OF_VECTORS,
	};

	if (error == -ENOSPC && op < SIO_OP_COUNT)
		return no_space[op];
	if (error == -ENOMEM && op == SIO_OP_IMPORT)
		return SIO_OUT_OF_LOCKED_MEMORY;
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
				       .reason = reason_of(c->req.h.op, error),
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
	c->n_answer_fds = packet.n_fds;
	memcpy(c->answer_fd, packet.fd, sizeof(c->answer_fd));
	if (c->answer.h.error)
		shim_call_explain(c, c->answer.h.error);
}

/* ---- resets ---- */

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
	for (const struct reset *r = p->resets; device && r; r = r->next)
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

static void *reset_thread(void *data)
{
	struct reset *r = data;

	shim_call_serve(r->call);
	answered(r->port, r->call);
	return NULL;
}

/* Return: it is under way. */
static bool start_reset(struct shim_port *p, struct shim_call *c)
{
	struct reset *r = calloc(1, sizeof(*r));

	if (!r)
		return false;
	r->port = p;
	r->call = c;
	if (pthread_create(&r->thread, NULL, reset_thread, r) != 0) {
		free(r);
		return false;
	}
	r->next = p->resets;
	p->resets = r;
	return true;
}

/* The word that it has been reset takes no time. */
static bool takes_long(const struct shim_call *c)
{
	const struct sio_req_reset *m = (const void *)&c->req;

	return m->h.op == SIO_OP_RESET && m->kind != SIO_RESET_DONE;
}

static void run(struct shim_port *p, struct shim_call *c)
{
	c->requests = ++p->requests;
	c->refused = p->refused;
	/* Without a thread all have to wait for it. */
	if (takes_long(c) && start_reset(p, c))
		return;
	shim_call_serve(c);
	if (c->req.h.op == SIO_OP_OWNER_NEW && !c->answer.h.error &&
	    shim_news_owner(&p->news, c->answer.words[sizeof(struct sio_evt) / 8], true, NULL) < 0)
		p->look_again = true;
	answered(p, c);
}

/* If @c is a reset: it is no news, and those behind it go on, in their order. */
static void over(struct shim_port *p, struct shim_call *c)
{
	const struct sio_evt_reset *evt = (const void *)&c->answer;
	struct list behind = p->behind;
	struct reset **at = &p->resets, *r;

	while (*at && (*at)->call != c)
		at = &(*at)->next;
	r = *at;
	if (c->req.h.op == SIO_OP_RESET && evt->h.error == 0)
		shim_news_reset(&p->news, device_of(c), evt->generation);
	if (!r)
		return;
	pthread_join(r->thread, NULL);
	*at = r->next;
	free(r);
	p->look_again = true; /* whether its device came or went meanwhile */
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

int shim_port_send(struct shim_port *p, const void *req, size_t len, const int *fds, unsigned n_fds)
{
	struct shim_call *c = NULL;
	int r;

	if (len < sizeof(struct sio_req) || len > SIO_PORT_MAX_PACKET)
		return -EMSGSIZE;
	if (n_fds > SIO_PORT_MAX_FDS)
		return -EINVAL;
	r = call_new(p, req, len, fds, n_fds, &c);
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

/* ---- news ---- */

/* What stays of an owner that has ended. */
static int look_at_rest(const struct shim_call *c, uint64_t owner, struct sio_evt_owner_gone *ret)
{
	static const uint32_t kind[] = {SIO_KIND_DMAMAP, SIO_KIND_MEM};
	struct shim_call q = {.n_fds = 0};
	struct sio_req_list *m = (void *)&q.req;
	const struct sio_evt_list *l = (const void *)&q.answer;

	*ret = (struct sio_evt_owner_gone){.dmamaps = 0};
	for (int k = 0; k < 2; k++) {
		m->after = 0;
		do {
			m->kind = kind[k];
			if (shim_call_ask(c, &q, SIO_OP_LIST, sizeof(*m)) < 0)
				return -EIO;
			for (uint32_t i = 0; i < l->count; i++) {
				bool its = l->entry[i].owner == owner;

				ret->dmamaps += its && k == 0;
				ret->mems += its && k == 1;
				ret->bytes += its && k == 1 ? l->entry[i].length : 0;
				m->after = l->entry[i].id;
			}
		} while (l->more);
	}
	return 0;
}

static int look_at_owners(struct shim_port *p, const struct shim_call *c)
{
	struct shim_call q = {.n_fds = 0};
	struct sio_req_list *m = (void *)&q.req;
	const struct sio_evt_list *l = (const void *)&q.answer;
	struct sio_evt_owner_gone rest;

	do {
		m->kind = SIO_KIND_OWNER;
		if (shim_call_ask(c, &q, SIO_OP_LIST, sizeof(*m)) < 0)
			return -EIO;
		for (uint32_t i = 0; i < l->count; i++) {
			const struct sio_list_entry *e = &l->entry[i];
			bool live = e->state == SIO_STATE_LIVE;
			bool asks = !live && shim_news_wants(&p->news, e->id);

			if (asks && look_at_rest(c, e->id, &rest) < 0)
				return -EIO;
			if (shim_news_owner(&p->news, e->id, live, asks ? &rest : NULL) < 0)
				return -ENOMEM;
			m->after = e->id;
		}
	} while (l->more);
	return 0;
}

static int look_at_devices(struct shim_port *p, const struct shim_call *c)
{
	struct shim_call q = {.n_fds = 0};
	struct sio_req_device_list *m = (void *)&q.req;
	const struct sio_evt_device *d = (const void *)&q.answer;
	int r;

	while ((r = shim_call_ask(c, &q, SIO_OP_DEVICE_LIST, sizeof(*m))) == 0) {
		if (in_reset(p, d->id))
			shim_news_unsure(&p->news, d->id);
		else if (shim_news_device(&p->news, d->id, d->generation) < 0)
			return -ENOMEM;
		m->after = d->id;
	}
	return r == -ENOENT ? 0 : -EIO;
}

/* If it fails, the next look sees it all. */
static void look(struct shim_port *p)
{
	struct shim_call c = {.node = p->node};

	shim_news_begin(&p->news);
	p->look_again = look_at_owners(p, &c) < 0 || look_at_devices(p, &c) < 0 ||
			shim_news_end(&p->news) < 0;
}

static long event(struct shim_port *p, void *evt, int *fds, unsigned *ret_n_fds)
{
	struct shim_call *c = next_answer(p);
	uint64_t changes;
	long size;

	if (c)
		return answer_event(p, c, evt, fds, ret_n_fds);
	size = shim_news_next(&p->news, evt);
	if (size > 0)
		return size;
	size = read(p->node, &changes, sizeof(changes));
	if (size < 0 && errno != EAGAIN)
		return -errno;
	if (size > 0 || p->look_again)
		look(p);
	return shim_news_next(&p->news, evt);
}

/* The poll tells whether there is something to read. */
static void arm(struct shim_port *p)
{
	eventfd_t n;
	bool want;

	pthread_mutex_lock(&p->lock);
	want = p->done.first || p->news.first || p->look_again;
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
	shim_news_init(&p->news);
	p->wake = p->poll = -1;
	p->node = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (p->node < 0)
		goto fail;
	p->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	p->poll = epoll_create1(EPOLL_CLOEXEC);
	if (p->wake < 0 || p->poll < 0 || add(p, p->wake) < 0 || add(p, p->node) < 0)
		goto fail;
	look(p);
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
	for (struct reset *r = p->resets, *next; r; r = next) {
		next = r->next;
		pthread_join(r->thread, NULL);
		free(r);
	}
	while ((c = take_first(&p->done)) || (c = take_first(&p->behind)))
		call_free(c);
	shim_news_done(&p->news);
	close_if(p->node);
	close_if(p->wake);
	close_if(p->poll);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
