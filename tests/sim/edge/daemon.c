/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment of a daemon: its operations table, timers, shared interrupts. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <stdio.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "edge/edge.h"

/* ---- shared interrupts ---- */
struct sim_irq {
	struct sim_host *host;
	uint64_t life, irq;
	struct sim_object *object; /* NULL: closed, or not watched any more */
	bool queued;
	struct sim_irq *prev, *next;
};

static struct sim_irq *irqs;

static void irq_fires(void *arg)
{
	struct sim_irq *q = arg;
	uint64_t count;

	q->queued = false;
	if (!q->object) {
		free(q);
		return;
	}
	count = q->object->count;
	q->object->count = 0;
	if (count == 0 || sim_stopping || !q->host->daemon || q->host->life != q->life)
		return;
	sim_trace("daemon %u: shared interrupt %llu times", q->host->node,
		  (unsigned long long)count);
	smartiod_irq(q->host->daemon, q->irq, count);
}

void sim_irq_ready(struct sim_irq *q)
{
	if (q->queued)
		return;
	q->queued = true;
	sim_after(sim_latency(), irq_fires, q);
}

/* The object is gone, or no longer watched. */
void sim_irq_gone(struct sim_irq *q)
{
	DL_DELETE(irqs, q);
	if (q->object)
		q->object->watch = NULL;
	q->object = NULL;
	if (!q->queued)
		free(q);
}

static int irq_watch(void *ctx, int fd, uint64_t irq)
{
	struct sim_host *h = ctx;
	struct sim_irq *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	assert(!sim_fd(fd)->watch);
	q->host = h;
	q->life = h->life;
	q->irq = irq;
	q->object = sim_fd(fd);
	q->object->watch = q;
	DL_APPEND(irqs, q);
	if (q->object->count > 0)
		sim_irq_ready(q);
	return 0;
}

static void irq_unwatch(void *ctx, uint64_t irq)
{
	struct sim_irq *q, *next;

	DL_FOREACH_SAFE (irqs, q, next)
		if (q->host == ctx && q->irq == irq)
			sim_irq_gone(q);
}

static void irq_signal(void *ctx, int fd, uint64_t count)
{
	(void)ctx;
	sim_event_add(fd, count);
}

void sim_irqs_drop(struct sim_host *h)
{
	struct sim_irq *q, *next;

	DL_FOREACH_SAFE (irqs, q, next)
		if (q->host == h)
			sim_irq_gone(q);
}

/* ---- time ---- */
#define SIM_LATER_NS 2000000

static uint64_t now(void *ctx)
{
	struct sim_host *h = ctx;

	return sim_host_clock(h->index);
}

static void timer_fires(void *arg)
{
	struct sim_host *h = arg;

	/* The timer was set again meanwhile, for a later time: another event will come. */
	if (sim_stopping || !h->daemon || sim_now() < h->timer)
		return;
	h->timer = UINT64_MAX;
	smartiod_timer(h->daemon);
}

void sim_timer_arm(struct sim_host *h)
{
	if (h->timer != UINT64_MAX)
		sim_after(h->timer > sim_now() ? h->timer - sim_now() : 0, timer_fires, h);
}

static void later_comes(void *arg)
{
	struct sim_host *h = arg;

	if (sim_stopping || !h->daemon || !h->later)
		return;
	h->later = false;
	smartiod_later(h->daemon);
}

static void later(void *ctx)
{
	struct sim_host *h = ctx;

	assert(!h->later);
	h->later = true;
	sim_after(sim_below(SIM_LATER_NS), later_comes, h);
}

static void timer(void *ctx, uint64_t when)
{
	struct sim_host *h = ctx;

	if (when != UINT64_MAX)
		when = sim_from_clock(h->index, when);
	if (when == h->timer)
		return;
	h->timer = when;
	sim_timer_arm(h);
}

/* On emulated hosts a stream of its own: what is drawn here leaves the runs as they were. */
static uint64_t chance(void *ctx)
{
	struct sim_host *h = ctx;
	uint64_t rng = (h->index + 1) * 0x100000000ull + h->draws++;

	return sim_outliving ? sim_random() : sim_draw(&rng);
}

/* ---- the rest ---- */
static void any_close(void *ctx, int fd)
{
	(void)ctx;
	sim_fd_close(fd);
}

static void ready(void *ctx)
{
	struct sim_host *h = ctx;

	sim_trace("daemon %u ready", h->node);
	h->ready = true;
}

static void end_later(void *arg)
{
	struct sim_packet *k = arg;

	if (!sim_stopping && k->host->life == k->life && k->host->daemon)
		sim_daemon_lost(k->host->index);
	sim_packet_free(k);
}

/* The daemon cannot continue: its environment ends it. */
static void fatal(void *ctx, const char *text)
{
	struct sim_host *h = ctx;
	struct sim_packet *k = sim_packet_new("", 0, NULL, 0);

	sim_trace("daemon %u cannot go on: %s", h->node, text);
	sim_cluster->daemons_fatal++;
	k->host = h;
	k->life = h->life;
	sim_after(0, end_later, k);
}

static void write_log(void *ctx, const char *file, int level, const char *fmt, va_list ap)
{
	struct sim_host *h = ctx;
	char text[512];

	(void)file;
	vsnprintf(text, sizeof(text), fmt, ap);
	sim_trace("daemon %u log %d: %s", h->node, level, text);
}

const struct smartiod_ops sim_daemon_ops = {
	.port = sim_port_request,
	.client_send = sim_client_send,
	.client_take = sim_client_take,
	.client_close = sim_client_close,
	.peer_connect = sim_peer_connect,
	.peer_send = sim_peer_send,
	.peer_close = sim_peer_close,
	.close = any_close,
	.irq_watch = irq_watch,
	.irq_unwatch = irq_unwatch,
	.irq_signal = irq_signal,
	.now = now,
	.timer = timer,
	.later = later,
	.random = chance,
	.ready = ready,
	.fatal = fatal,
	.log = write_log,
};
