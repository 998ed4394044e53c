/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What passes chassis and links between switches, in random trees and with all combinations of
 * IOMMUs, against the links of the computed route (core/route.h): of memory here and there, of BARs
 * of devices beside and of another host, of accesses that fault, and of multicast.
 */
#include <stdlib.h>

#include "core/route.h"
#include "fake.h"
#include "../core/prng.h"

#define SIZE 0x2000
#define CHASSIS 4
#define LINKS 64

struct fixture {
	struct fake *f;
	struct sio_graph *g;
	struct sio_routes *r;
	uint64_t before[LINKS], wanted[LINKS]; /* by number of the graph's link */
	uint64_t crossed, turned;
};

static void draw(struct sio_topology *t, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 3; i++) {
		struct sio_topo_host *h = &t->host[i];

		for (unsigned k = 0; k < h->n_chassis; k++)
			h->chassis[k] = (struct sio_topo_chassis){.in = (unsigned)prng_below(k + 1),
								  .link_width = 8,
								  .link_generation = 3};
		h->adapter[0].in = (unsigned)prng_below(h->n_chassis + 1);
		for (unsigned k = 0; k < h->n_devices; k++)
			h->device[k].in = (unsigned)prng_below(h->n_chassis + 1);
	}
}

/* What passed link number @link of the graph; of those that are no chassis' or trunk's 0. */
static uint64_t passed(struct fixture *x, unsigned link)
{
	const struct sio_graph_node *lower = &x->g->node[x->g->link[link].end[0]];

	if (link < x->g->topology->n_trunks)
		return fake_counter(x->f, LENDER, SIO_STATS_TRUNK, link, "wr_bytes") +
		       fake_counter(x->f, LENDER, SIO_STATS_TRUNK, link, "rd_bytes");
	if (lower->kind != SIO_GRAPH_CHASSIS)
		return 0;
	return fake_counter(x->f, lower->host, SIO_STATS_CHASSIS, lower->index, "wr_bytes") +
	       fake_counter(x->f, lower->host, SIO_STATS_CHASSIS, lower->index, "rd_bytes");
}

static bool is_counted(const struct fixture *x, unsigned link)
{
	return link < x->g->topology->n_trunks ||
	       x->g->node[x->g->link[link].end[0]].kind == SIO_GRAPH_CHASSIS;
}

/* @bytes went from device 0 of the lender to @to: each link of the route carried them. */
static void expect(struct fixture *x, unsigned to, uint64_t bytes)
{
	unsigned from = sio_graph_device(x->g, LENDER, 0), link[SIO_ROUTE_LINKS], n;
	struct sio_route route;

	assert_int_equal(sio_routes_find(x->r, from, to, &route), 0);
	n = sio_routes_links(x->r, from, to, &route, link);
	for (unsigned i = 0; i < n; i++) {
		if (!is_counted(x, link[i]))
			continue;
		x->wanted[link[i]] += bytes;
		x->crossed++;
		for (unsigned k = 0; k < i; k++)
			x->turned += link[k] == link[i]; /* up, and down again from the root */
	}
	for (unsigned i = 0; i < x->g->n_links; i++)
		assert_int_equal(passed(x, i), x->wanted[i]);
}

static uint64_t view(struct fake *f, unsigned host, unsigned device)
{
	struct sio_req_bar req = {
		.device = DEV(host, device), .offset = DOORBELLS, .length = 0x1000, .access = 3};
	struct sio_evt_bar evt;

	assert_int_equal(ask(f, host, &req, SIO_OP_BAR, &evt), 0);
	return evt.id;
}

static void both_ways(struct fixture *x, uint64_t iova, unsigned to)
{
	struct emu_dev *dev = fake_dev(x->f, LENDER, 0);
	char buf[0x800] = {0};

	assert_int_equal(dev->write(dev, iova + 12, buf, sizeof(buf)), 0);
	assert_int_equal(dev->read(dev, iova, buf, 64), 0);
	expect(x, to, sizeof(buf) + 64);
}

static uint64_t to_grant(struct fake *f, unsigned host, const struct sio_evt_grant *g)
{
	struct sio_evt_map map = fake_map(f, LENDER, 0, host, g);

	return fake_dmamap(f, LENDER, 0, 0, SIO_KIND_MAP, map.id, g->length, 3).iova;
}

static struct sio_evt_grant grant_bar(struct fake *f, unsigned host, uint64_t bar)
{
	struct sio_req_grant req = {.source_kind = SIO_KIND_BAR,
				    .source = bar,
				    .length = 0x1000,
				    .peer_node = NODE(LENDER),
				    .access = 3};
	struct sio_evt_grant evt;

	assert_int_equal(ask(f, host, &req, SIO_OP_GRANT, &evt), 0);
	return evt;
}

static void round_of(struct fixture *x)
{
	struct fake *f = x->f;
	struct emu_dev *dev;
	struct sio_evt_grant g;
	uint64_t mem, at;
	char buf[64] = {0};

	for (unsigned i = 0; i < 3; i++)
		fake_up(f, i);
	fake_open(f, LENDER, 0);
	fake_open(f, LENDER, 1);
	fake_open(f, CLIENT, 0);
	fake_requester(f, LENDER, 0, 0);
	mem = fake_alloc(f, LENDER, 0, SIZE);
	both_ways(x, fake_dmamap(f, LENDER, 0, 0, SIO_KIND_MEM, mem, SIZE, 3).iova,
		  sio_graph_host(x->g, LENDER));
	mem = fake_alloc(f, CLIENT, 0, SIZE);
	g = fake_grant(f, CLIENT, 0, mem, SIZE, LENDER);
	at = to_grant(f, CLIENT, &g);
	both_ways(x, at, sio_graph_host(x->g, CLIENT));
	both_ways(x, fake_dmamap(f, LENDER, 0, 0, SIO_KIND_BAR, view(f, LENDER, 1), 0x1000, 3).iova,
		  sio_graph_device(x->g, LENDER, 1));
	g = grant_bar(f, CLIENT, view(f, CLIENT, 0));
	both_ways(x, to_grant(f, CLIENT, &g), sio_graph_device(x->g, CLIENT, 0));
	/* One that nothing answers has passed what leads to the path that is down. */
	dev = fake_dev(f, LENDER, 0);
	assert_int_equal(emu_room_trunk(f->room, 0, false), 0);
	assert_int_equal(dev->write(dev, at, buf, sizeof(buf)), -EFAULT);
	assert_int_equal(passed(x, 0), x->wanted[0]);
}

static void links_are_those_of_the_route(void **state)
{
	unsigned rounds = prng_start(247, 400);
	uint64_t crossed = 0, turned = 0;

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		struct fixture x = {
			.f = fake_new_tree(i % 8, (unsigned)prng_below(CHASSIS + 1), draw, NULL)};

		assert_int_equal(sio_graph_new(&x.f->topo, &x.g), 0);
		assert_int_equal(sio_routes_new(x.g, &x.r), 0);
		assert_true(x.g->n_links <= LINKS);
		round_of(&x);
		crossed += x.crossed;
		turned += x.turned;
		sio_routes_free(x.r);
		sio_graph_free(x.g);
		fake_free(x.f);
	}
	print_message("crossed %" PRIu64 ", twice %" PRIu64 "\n", crossed, turned);
	assert_true(crossed > 4ull * rounds && turned > rounds / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_are_those_of_the_route),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
