/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "resume_world.h"

int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct world *w = world_new(3, 0);

	assert_non_null(f);
	f->w = w;
	fake_device_add(w, &f->fake);
	f->fake.cmb = 4 * SIO_PAGE_SIZE;
	world_real(w);
	world_start(w);
	library_begin(w);
	w->before_step = library_pump;
	fake_device_resets(w, true);
	f->c = world_client(w, BORROWER, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, f->c, FDID, 0, &f->b), 0);
	assert_int_equal(call_dev_seg_connect(w, f->c, f->b.handle, 0, SCI_MEMTYPE_BAR, &f->bar,
					      &f->near_node),
			 0);
	assert_int_equal(call_bar_map(w, f->c, f->bar, 0, &f->bar_map, f->access), 0);
	assert_int_equal(call_seg_export(w, f->c, 1, 8192, &f->segment), 0);
	assert_int_equal(call_dma_map(w, f->c, f->b.handle, f->segment, 0, 0, 4096, &f->dma), 0);
	assert_int_equal(call_dev_seg_create(w, f->c, f->b.handle, 7, 4096, SCI_MEMTYPE_PRIVATE, 0,
					     SCI_FLAG_DEVICE_SIDE_ONLY),
			 0);
	assert_int_equal(call_dev_seg_connect(w, f->c, f->b.handle, 7, SCI_MEMTYPE_PRIVATE,
					      &f->near, &f->near_node),
			 0);
	assert_int_equal(f->near_node, NODE(LENDER));
	assert_int_equal(call_seg_map(w, f->c, f->near, 0, 4096, &f->near_map), 0);
	assert_int_equal(call_dma_map(w, f->c, f->b.handle, f->near, 1, 0, 4096, &f->near_dma), 0);
	f->messages = f->c->n_messages;
	*state = f;
	return 0;
}

int teardown(void **state)
{
	struct fixture *f = *state;

	library_end(f->w);
	world_pass(f->w, MEET);
	assert_well_ended(f->w);
	assert_int_equal(f->fake.bad, 0);
	world_free(f->w);
	free(f);
	return 0;
}

void expect_unchanged(struct fixture *f, const unsigned *before)
{
	for (uint32_t kind = 1; kind <= SIO_KIND_SHADOW; kind++)
		if (world_resources(f->w, kind) != before[kind])
			fail_msg("%u resources of kind %u, not %u", world_resources(f->w, kind),
				 kind, before[kind]);
	for (unsigned i = f->messages; i < f->c->n_messages; i++)
		if (f->c->message[i]->type >= SIO_EVM_SEGMENT_LOCAL)
			fail_msg("the program received event %#x", f->c->message[i]->type);
	world_forget(f->c);
	f->messages = 0;
}

void expect_lost(struct fixture *f)
{
	const struct sio_evm_device *evm = call_device_event(f->c, 0);

	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->event), SIO_DEVICE_EV_LOST);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MAP), 0);
}

void kill_at_every_step(struct fixture *f, unsigned host)
{
	unsigned before[SIO_KIND_SHADOW + 1], steps = 0;
	unsigned other = host == LENDER ? BORROWER : LENDER;
	bool ended = false;

	picture(f, before);
	for (; !ended; steps++) {
		world_restart(f->w, host);
		for (unsigned i = 0; i < steps && !ended; i++)
			ended = !world_step(f->w);
		if (steps % 2)
			world_restart(f->w, steps % 4 == 1 ? host : other);
		else
			world_cut(f->w, LENDER, BORROWER);
		world_pass(f->w, MEET);
		assert_true(f->w->open[LENDER][BORROWER]);
		f->w->lossy = false;
		expect_unchanged(f, before);
	}
	assert_true(steps > 20);
}

void picture(struct fixture *f, unsigned *ret)
{
	for (uint32_t kind = 1; kind <= SIO_KIND_SHADOW; kind++)
		ret[kind] = world_resources(f->w, kind);
	f->messages = f->c->n_messages;
}

void give_back(struct fixture *f)
{
	struct world *w = f->w;

	assert_int_equal(call_handle(w, f->c, SIO_MSG_DMA_UNMAP, f->near_dma, 0), 0);
	assert_int_equal(call_handle(w, f->c, SIO_MSG_SEG_UNMAP, f->near_map, 0), 0);
	assert_int_equal(call_handle(w, f->c, SIO_MSG_SEG_DISCONNECT, f->near, 0), 0);
	assert_int_equal(call_handle(w, f->c, SIO_MSG_DMA_UNMAP, f->dma, 0), 0);
	assert_int_equal(call_handle(w, f->c, SIO_MSG_SEG_REMOVE, f->segment, 0), 0);
	assert_int_equal(call_handle(w, f->c, SIO_MSG_SEG_UNMAP, f->bar_map, 0), 0);
	assert_int_equal(call_handle(w, f->c, SIO_MSG_SEG_DISCONNECT, f->bar, 0), 0);
	assert_int_equal(call_handle(w, f->c, SIO_MSG_DEV_RETURN, f->b.handle, 0), 0);
	world_run(w);
	assert_int_equal(world_resources(w, SIO_KIND_DMAMAP), 0);
	assert_int_equal(world_resources(w, SIO_KIND_GRANT), 0);
	assert_int_equal(world_resources(w, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(w, SIO_KIND_REQUESTER), 0);
	assert_int_equal(world_resources(w, SIO_KIND_MEM), 0);
}

uint64_t hold_twice(struct fixture *f, uint64_t at)
{
	uint64_t number;

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(call_hold(f->w, f->c, f->b.handle, f->b.id, at, 4096, &number), 0);
	return number;
}

void expect_held_twice(struct fixture *f, uint32_t dma, uint64_t number)
{
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, dma, 0), EBUSY);
		assert_int_equal(call_unhold(f->w, f->c, f->b.handle, number), 0);
	}
}

void message(struct fixture *f, unsigned to, unsigned from, uint32_t type, void *msg, size_t len)
{
	*(struct sio_msg *)msg =
		(struct sio_msg){.type = sio_to_le32(type), .size = sio_to_le32((uint32_t)len)};
	smartiod_peer_message(f->w->host[to].daemon, NODE(from), msg, len);
}
