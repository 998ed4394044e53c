/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts that several programs own: event descriptors on the loop. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <syslog.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "eventfd/eventfd.h"
#include "smartiod/live/live.h"

struct live_irq {
	struct live *live;
	uint64_t number;
	sd_event_source *io;
	UT_hash_handle hh;
};

static int on_trigger(sd_event_source *s, int fd, uint32_t revents, void *data)
{
	struct live_irq *q = data;
	uint64_t count;

	(void)s;
	(void)revents;
	/* Programs hold copies: another one may have read it since, and its flags are theirs. */
	if (sio_eventfd_take(fd, &count) == 0)
		smartiod_irq(q->live->daemon, q->number, count);
	return 0;
}

int live_irqs_open(struct live *l)
{
	l->events = calloc(1, sizeof(*l->events));
	return l->events ? sio_eventfd_open(l->events) : -ENOMEM;
}

static void irq_free(struct live_irq *q)
{
	HASH_DEL(q->live->irqs, q);
	sd_event_source_unref(q->io);
	free(q);
}

int live_irq_watch(void *ctx, int fd, uint64_t irq)
{
	struct live_irq *q = calloc(1, sizeof(*q));
	struct live *l = ctx;
	int r;

	if (!q)
		return -ENOMEM;
	q->live = l;
	q->number = irq;
	HASH_ADD(hh, l->irqs, number, sizeof(q->number), q);
	if (!q->hh.tbl) {
		free(q);
		return -ENOMEM;
	}
	r = sio_eventfd_start(l->events);
	if (r < 0)
		live_log(l, LOG_WARNING,
			 "no AIO (%s): programs that share interrupts can stop this daemon",
			 strerror(-r));
	r = sd_event_add_io(l->event, &q->io, fd, EPOLLIN, on_trigger, q);
	if (r < 0)
		irq_free(q);
	return r < 0 ? r : 0;
}

void live_irq_unwatch(void *ctx, uint64_t irq)
{
	struct live *l = ctx;
	struct live_irq *q;

	HASH_FIND(hh, l->irqs, &irq, sizeof(irq), q);
	if (q)
		irq_free(q);
}

void live_irq_signal(void *ctx, int fd, uint64_t count)
{
	sio_eventfd_add(((struct live *)ctx)->events, fd, count);
}

void live_irqs_free(struct live *l)
{
	struct live_irq *q, *next;

	HASH_ITER (hh, l->irqs, q, next)
		irq_free(q);
	if (l->events)
		sio_eventfd_close(l->events);
	free(l->events);
}
