/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of DMA engines share: a channel, and what it reaches. */
#ifndef TESTS_EMU_CHANNEL_H
#define TESTS_EMU_CHANNEL_H

#include "fake.h"

#include "emu/device/device.h"

#define SIZE 0x300000 /* three pieces of a channel that is alone */

/* A channel of the client with memory of its own, and of the lender's through a window. */
struct dma {
	struct fake *f;
	uint64_t owner, channel, local_mem, remote_mem, local_range, remote_range;
	uint32_t local, remote; /* slots */
	struct sio_evt_grant grant;
	struct sio_evt_map map;
	struct sio_dma_ring *ring;
	uint8_t *here, *there;
};

static inline struct emu_channel *channel_of(struct dma *d)
{
	struct emu_object *o;

	HASH_FIND(hh, d->f->room->host[CLIENT].objects, &d->channel, sizeof(d->channel), o);
	return (struct emu_channel *)o;
}

static inline int attach(struct dma *d, uint32_t kind, uint64_t target, uint64_t length,
			 uint32_t access, struct sio_evt_dma_attach *ret)
{
	struct sio_req_dma_attach req = {.h.owner = d->owner,
					 .channel = d->channel,
					 .target = target,
					 .target_kind = kind,
					 .length = length,
					 .access = access};

	return ask(d->f, CLIENT, &req, SIO_OP_DMA_ATTACH, ret);
}

/* In cluster @f, whose hosts are off. */
static inline void dma_init_in(struct dma *d, struct fake *f)
{
	struct sio_req_dma req = {.h.reserved = 0};
	struct sio_evt_dma_attach evt;
	struct sio_evt_dma made;

	memset(d, 0, sizeof(*d));
	d->f = f;
	for (unsigned i = 0; i < 3; i++) {
		f->host[i].ram_size = 8 << 20;
		for (unsigned k = 0; k < f->host[i].n_adapters; k++) {
			f->host[i].adapter[k].window_size = 64 << 16;
			f->host[i].adapter[k].lut_entries = 64;
		}
		fake_up(f, i);
	}
	d->owner = fake_owner(f, CLIENT);
	req.h.owner = d->owner;
	assert_int_equal(ask(f, CLIENT, &req, SIO_OP_DMA, &made), 0);
	assert_int_equal(f->answer.n_fds, 3);
	assert_true(made.size >= sizeof(struct sio_dma_ring));
	d->channel = made.id;
	d->ring = channel_of(d)->mem.data;
	d->local_mem = fake_alloc(f, CLIENT, d->owner, SIZE);
	d->remote_mem = fake_alloc(f, LENDER, 0, SIZE);
	d->grant = fake_grant(f, LENDER, 0, d->remote_mem, SIZE, CLIENT);
	d->map = fake_map(f, CLIENT, d->owner, LENDER, &d->grant);
	assert_int_equal(attach(d, SIO_KIND_MEM, d->local_mem, SIZE, 3, &evt), 0);
	d->local_range = evt.id;
	d->local = evt.slot;
	assert_int_equal(attach(d, SIO_KIND_MAP, d->map.id, SIZE, 3, &evt), 0);
	d->remote_range = evt.id;
	d->remote = evt.slot;
	assert_int_not_equal(d->local, d->remote);
	d->here = fake_data(f, CLIENT, d->local_mem);
	d->there = fake_data(f, LENDER, d->remote_mem);
	for (unsigned i = 0; i < SIZE; i++)
		d->here[i] = (uint8_t)(i * 31 + i / 999);
	fake_forget(f);
}

static inline void dma_init(struct dma *d, unsigned iommu)
{
	dma_init_in(d, fake_new(iommu));
}

/* Append an entry; @last: it ends a transfer. */
static inline void put(struct dma *d, uint32_t from, uint64_t from_offset, uint32_t to,
		       uint64_t to_offset, uint64_t length, bool last)
{
	d->ring->entry[d->ring->tail % SIO_DMA_ENTRIES] =
		(struct sio_dma_entry){.source = from,
				       .source_offset = from_offset,
				       .target = to,
				       .target_offset = to_offset,
				       .length = length,
				       .flags = last ? SIO_DMA_LAST : 0};
	d->ring->tail++;
}

/* Until nothing is left to do; how many pieces that were. */
static inline unsigned work(struct dma *d)
{
	unsigned n = 0;

	while (emu_room_engine_step(d->f->room, CLIENT)) {
		n++;
		assert_true(n < 100000);
	}
	emu_room_engines_collect(d->f->room);
	return n;
}

#endif
