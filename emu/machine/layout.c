/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>

#include "emu/machine/layout.h"

#define GIB (1ull << 30)
#define MOST_BITS 46u /* of addresses that processors send */

/* Where a host has something: from the lowest address to behind the highest. */
struct span {
	uint64_t from, to, alignment;
};

static void include(struct span *s, uint64_t base, uint64_t size)
{
	if (size == 0)
		return;
	if (base < s->from)
		s->from = base;
	if (base + size > s->to)
		s->to = base + size;
	if (size > s->alignment)
		s->alignment = size;
}

static struct span span_of(const struct sio_topo_host *h)
{
	struct span s = {.from = UINT64_MAX, .alignment = GIB};

	include(&s, h->ram_base, h->ram_size);
	for (unsigned i = 0; i < h->n_adapters; i++)
		include(&s, h->adapter[i].window_base, h->adapter[i].window_size);
	for (unsigned i = 0; i < h->n_devices; i++)
		include(&s, h->device[i].bar_base, sio_topology_bar_space(&h->device[i]));
	for (unsigned i = 0; i < h->n_chassis; i++)
		include(&s, h->chassis[i].range_base, h->chassis[i].range_size);
	return s;
}

/* Devices send to the window of their host, as processors do to all. */
static unsigned bits_of(const struct sio_topo_host *h)
{
	unsigned bits = MOST_BITS;

	for (unsigned i = 0; i < h->n_devices; i++)
		if (h->device[i].dma_bits < bits)
			bits = h->device[i].dma_bits;
	return bits;
}

/* @by: modulo 2^64, so that it may lead downwards. */
static void move(struct sio_topo_host *h, uint64_t by)
{
	h->ram_base += by;
	for (unsigned i = 0; i < h->n_adapters; i++)
		h->adapter[i].window_base += by;
	for (unsigned i = 0; i < h->n_devices; i++)
		h->device[i].bar_base += by;
	for (unsigned i = 0; i < h->n_chassis; i++)
		if (h->chassis[i].range_size)
			h->chassis[i].range_base += by;
}

int emu_layout_move(struct sio_topo_host *h, struct sio_err *reterr)
{
	struct span s = span_of(h);
	unsigned bits = bits_of(h);
	uint64_t by = GIB;

	/* Windows and BARs are as aligned as they are large, and so is the distance. */
	while (by < s.alignment || by < s.to - s.from)
		by *= 2;
	if (s.to + by <= 1ull << bits)
		move(h, by);
	else if (s.from >= by)
		move(h, -by);
	else
		return sio_fail(reterr, -ENOSPC,
				"host %s has no other place for %#" PRIx64 " to %#" PRIx64
				": its devices send addresses of %u bits",
				h->name, s.from, s.to, bits);
	return 0;
}
