/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges of DMA queues that go through a connection: the connection lists them, so that they end
 * with it.
 */
#include <stdlib.h>

#include "smartiod/segment/connection.h"

void smartiod_port_detach(struct smartiod *d, uint64_t owner, uint64_t id)
{
	struct sio_req_dma_detach req = {.h = {.op = SIO_OP_DMA_DETACH, .owner = owner}, .id = id};

	if (id)
		smartiod_port_send(d, &req, sizeof(req));
}

struct smartiod_range *smartiod_range_new(struct smartiod_connection *c, struct smartiod_queue *q)
{
	struct smartiod_range *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->queue = q;
	g->next = c->ranges;
	c->ranges = g;
	return g;
}

static void range_free(struct smartiod *d, const struct smartiod_connection *c,
		       struct smartiod_range *g)
{
	if (g->bar)
		c->ops->unreach(d, g->bar);
	smartiod_charge_drop(&g->charge);
	free(g);
}

/* Forget @g (NULL: nothing) of @c; its window goes with the last of its users. */
void smartiod_range_forget(struct smartiod *d, struct smartiod_connection *c,
			   struct smartiod_range *g)
{
	struct smartiod_range **link = &c->ranges;

	while (*link && *link != g)
		link = &(*link)->next;
	if (!*link)
		return;
	*link = g->next;
	range_free(d, c, g);
	if (!c->ranges && c->n_maps == 0)
		smartiod_window_release(d, c);
}

void smartiod_ranges_end(struct smartiod *d, struct smartiod_connection *c, bool tell)
{
	while (c->ranges) {
		struct smartiod_range *g = c->ranges;

		c->ranges = g->next;
		if (tell)
			smartiod_port_detach(d, 0, g->id);
		range_free(d, c, g);
	}
}

void smartiod_ranges_free(struct smartiod_connection *c)
{
	struct smartiod_range *g;

	while ((g = c->ranges)) {
		c->ranges = g->next;
		free(g);
	}
}
