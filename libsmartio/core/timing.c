/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>

#include "core/timing.h"

#define REQUEST 16u    /* header of what carries a 64-bit address */
#define COMPLETION 12u /* header */
#define AROUND 8u      /* sequence number, LCRC, framing */
#define FLITS 6u       /* the first generation that has them */
#define WORD 4u	       /* data travel in whole ones */
#define PAGE 4096u     /* no request crosses a multiple of it */

uint64_t sio_timing_byte(uint32_t width, uint32_t generation)
{
	/* Of one lane: 2.5 and 5 GT/s by 8b/10b; 8, 16 and 32 by 128b/130b; 64 in flits. */
	static const uint64_t lane[] = {4000000, 2000000, 1015625, 507813, 253906, 135593};
	const unsigned last = sizeof(lane) / sizeof(lane[0]);

	assert(width > 0 && generation > 0);
	return lane[(generation < last ? generation : last) - 1] / width;
}

uint32_t sio_timing_around(uint32_t generation)
{
	return generation < FLITS ? AROUND : 0;
}

uint64_t sio_timing_chip(const struct sio_graph *g, unsigned node)
{
	const struct sio_graph_node *n = &g->node[node];
	const struct sio_topology *t = g->topology;
	uint32_t ns;

	switch (n->kind) {
	case SIO_GRAPH_SWITCH:
		ns = t->sw[n->index].latency;
		break;
	case SIO_GRAPH_CHASSIS:
		ns = t->host[n->host].chassis[n->index].latency;
		break;
	case SIO_GRAPH_ADAPTER:
		ns = t->host[n->host].adapter[n->index].latency;
		break;
	default: /* of a root between two devices nobody has published how long it takes */
		ns = 0;
	}
	return ns * 1000ull;
}

static unsigned other_end(const struct sio_graph_link *l, unsigned node)
{
	return l->end[0] == node ? l->end[1] : l->end[0];
}

struct sio_timing sio_timing_of(const struct sio_routes *r, unsigned from, unsigned to,
				const struct sio_route *route)
{
	const struct sio_topology *topo = r->graph->topology;
	struct sio_timing t = {
		.rules = {.max_payload = topo->max_payload,
			  .max_read_request = topo->max_read_request,
			  .read_completion_boundary = topo->read_completion_boundary},
		.hops = route->hops};
	unsigned link[SIO_ROUTE_LINKS], n = sio_routes_links(r, from, to, route, link), at = from;

	for (unsigned i = 0; i < n; i++) {
		const struct sio_graph_link *l = &r->graph->link[link[i]];
		uint64_t byte = sio_timing_byte(l->width, l->generation);

		if (byte >= t.byte_fs) {
			t.byte_fs = byte;
			t.around = sio_timing_around(l->generation);
		}
		at = other_end(l, at);
		if (i + 1 < n)
			t.chips += sio_timing_chip(r->graph, at);
	}
	return t;
}

/* Picoseconds of packets that carry the words of @len bytes at @at together. */
static uint64_t wire(const struct sio_timing *t, uint64_t packets, uint32_t header, uint64_t at,
		     uint64_t len)
{
	uint64_t words = ((at & (WORD - 1)) + len + WORD - 1) & ~(uint64_t)(WORD - 1);

	return (packets * (header + t->around) + words) * t->byte_fs / 1000;
}

uint64_t sio_timing_write_at(const struct sio_timing *t, uint64_t at, uint64_t len)
{
	struct sio_pcie_count n = {0};

	sio_pcie_write(&t->rules, at, len, &n);
	return t->chips + wire(t, n.write_tlps, REQUEST, at, len);
}

uint64_t sio_timing_write(const struct sio_timing *t, uint64_t len)
{
	return sio_timing_write_at(t, 0, len);
}

/* What one request from @at on asks for at most: as core/pcie.c counts them. */
static uint64_t request(const struct sio_timing *t, uint64_t at)
{
	uint64_t most = t->rules.max_read_request - at % WORD, room = PAGE - at % PAGE;

	return most < room ? most : room;
}

uint64_t sio_timing_read_at(const struct sio_timing *t, const struct sio_timing_reader *reader,
			    uint64_t at, uint64_t len)
{
	/* Of each open request, when the last byte of its data is there. */
	uint64_t done[SIO_TIMING_TAGS], issue = 0, arrived = 0;
	const uint64_t ask = wire(t, 1, REQUEST, 0, 0);
	uint32_t tag = 0;

	assert(reader->tags > 0 && reader->tags <= SIO_TIMING_TAGS && len <= SIO_TIMING_MOST);
	for (uint32_t i = 0; i < reader->tags; i++)
		done[i] = 0;
	for (uint64_t part; len > 0; at += part, len -= part) {
		struct sio_pcie_count n = {0};
		uint64_t first;

		part = request(t, at);
		if (part > len)
			part = len;
		sio_pcie_read(&t->rules, at, part, &n);
		if (issue < done[tag])
			issue = done[tag]; /* the tag is free again */
		issue += ask;
		first = issue + 2 * t->chips + reader->memory;
		arrived = (first > arrived ? first : arrived) +
			  wire(t, n.completions, COMPLETION, at, part);
		done[tag] = arrived;
		tag = (tag + 1) % reader->tags;
	}
	return arrived;
}

uint64_t sio_timing_read(const struct sio_timing *t, const struct sio_timing_reader *reader,
			 uint64_t len)
{
	return sio_timing_read_at(t, reader, 0, len);
}
