/* SPDX-License-Identifier: BSD-2-Clause */
/* A lender's host, or the link to it, goes down: who hears of what, when, and what stays. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"

#define FDID 0x400001

static struct fake_device fake;

/* What @c was told, in order: where the first event of @type is. */
static unsigned first_event(const struct world_client *c, uint32_t type)
{
	unsigned i = 0;

	while (i < c->n_messages && (c->message[i]->id != 0 || c->message[i]->type != type))
		i++;
	return i;
}

/*
 * Whoever finds ones in memory that a device wrote to must know already that the device is lost: it
 * is told before the segments of the lender's are.
 */
static void loss_of_a_device_is_told_first(void **state)
{
	static const bool links[] = {false, true};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct world *w = call_world(&fake);
		struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
		struct world_client *lender = world_client(w, 0, SIO_CLIENT_LIBRARY);
		struct call_borrow b;
		uint32_t there, to;

		assert_int_equal(call_seg_export(w, lender, 1, 4096, &there), 0);
		assert_int_equal(call_seg_connect(w, c, 4, 1, &to), 0);
		assert_int_equal(call_borrow(w, c, FDID, 0, &b), 0);
		if (links[i])
			world_link(w, 0, 2, false);
		else
			world_crash(w, 0);
		world_run(w);
		assert_non_null(call_device_event(c, 0));
		assert_non_null(world_event(c, SIO_EVM_SEGMENT_REMOTE, 0));
		assert_true(first_event(c, SIO_EVM_DEVICE) <
			    first_event(c, SIO_EVM_SEGMENT_REMOTE));
		if (links[i])
			world_link(w, 0, 2, true);
		else
			world_boot(w, 0);
		world_pass(w, 100000000);
		call_world_end(w, &fake, FDID);
	}
}

static void lender_down_is_told(void **state)
{
	struct world *w = call_world(&fake);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct call_borrow bc;
	const struct sio_evm_device *e;
	uint32_t sc, mc, seg, map, access[4];

	(void)state;
	call_take(w, c, FDID, 0, &bc, &sc, &mc, access);
	assert_int_equal(call_seg_export(w, c, 1, 4096, &seg), 0);
	assert_int_equal(call_dma_map(w, c, bc.handle, seg, 0, 0, 4096, &map), 0);
	world_crash(w, 0);
	world_run(w);
	e = call_device_event(c, 0);
	assert_non_null(e);
	assert_int_equal(sio_from_le32(e->event), SIO_DEVICE_EV_LOST);
	assert_non_null(world_event(c, SIO_EVM_SEGMENT_REMOTE, 0));
	assert_int_equal(call_borrow(w, c, FDID, 0, &bc), ENODEV);
	assert_int_equal(call_settled(w, c, bc.handle, 1), ECONNRESET);
	assert_int_equal(call_handle(w, c, SIO_MSG_DMA_UNMAP, map, 0), 0);
	assert_int_equal(call_handle(w, c, SIO_MSG_SEG_UNMAP, mc, 0), 0);
	assert_int_equal(call_handle(w, c, SIO_MSG_SEG_DISCONNECT, sc, 0), 0);
	assert_int_equal(call_handle(w, c, SIO_MSG_DEV_RETURN, bc.handle, 0), 0);
	assert_int_equal(call_handle(w, c, SIO_MSG_SEG_REMOVE, seg, 0), 0);
	world_boot(w, 0);
	world_pass(w, 100000000);
	assert_int_equal(call_borrow(w, c, FDID, SCI_FLAG_EXCLUSIVE, &bc), 0);
	call_world_end(w, &fake, FDID);
}

/* Segment events of a client with this reason. */
static unsigned segment_events(struct world_client *c, uint32_t reason)
{
	const struct sio_evm_segment *e;
	unsigned n = 0;

	for (unsigned i = 0; (e = world_event(c, SIO_EVM_SEGMENT_REMOTE, i)); i++)
		n += sio_from_le32(e->reason) == reason;
	return n;
}

/*
 * The last link goes: borrows end, what is not a device's stays, and all is well when it is back.
 */
static void segments_outlive_the_link_of_a_borrow(void **state)
{
	struct world *w = call_world(&fake);
	struct world_client *borrower = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *lender = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct call_borrow b, again;
	uint32_t there, here, to, from, number, ring, dma, bar, map, access[4];

	(void)state;
	fake_device_resets(w, false);
	assert_int_equal(call_seg_export(w, lender, 1, 8192, &there), 0);
	assert_int_equal(call_seg_export(w, borrower, 2, 8192, &here), 0);
	assert_int_equal(call_seg_connect(w, borrower, 4, 1, &to), 0);
	assert_int_equal(call_seg_connect(w, lender, 8, 2, &from), 0);
	assert_int_equal(call_seg_map(w, borrower, to, 0, 4096, &map), 0);
	assert_int_equal(call_dint_create(w, lender, 0, 0, &ring, &number), 0);
	assert_int_equal(call_dint_connect(w, borrower, 4, number, &ring), 0);
	call_take(w, borrower, FDID, SCI_FLAG_EXCLUSIVE, &b, &bar, &map, access);
	assert_int_equal(call_dma_map(w, borrower, b.handle, here, 0, 0, 4096, &dma), 0);
	world_link(w, 0, 1, false);
	world_run(w);
	assert_int_equal(sio_from_le32(call_device_event(borrower, 0)->event), SIO_DEVICE_EV_LOST);
	assert_int_equal(segment_events(borrower, SCI_CB_NOT_OPERATIONAL), 1);
	assert_int_equal(segment_events(borrower, SCI_CB_LOST), 1); /* the BAR */
	assert_int_equal(segment_events(lender, SCI_CB_NOT_OPERATIONAL), 1);
	assert_int_equal(segment_events(lender, SCI_CB_LOST), 0);
	assert_null(world_event(borrower, SIO_EVM_DINT_LOST, 0));
	assert_int_equal(call_borrow(w, borrower, FDID, 0, &again), ENETDOWN);
	world_link(w, 0, 1, true);
	world_run(w);
	assert_int_equal(segment_events(borrower, SCI_CB_OPERATIONAL), 1);
	assert_int_equal(segment_events(lender, SCI_CB_OPERATIONAL), 1);
	assert_int_equal(call_seg_map(w, borrower, to, 4096, 4096, &map), 0);
	/* The exclusive borrow has ended. */
	assert_int_equal(call_borrow(w, lender, FDID, 0, &again), 0);
	/* One of the segment, two of the data interrupt; and its device is not settled. */
	assert_int_equal(world_resources(w, SIO_KIND_GRANT), 4);
	assert_int_equal(call_borrow(w, borrower, FDID, 0, &b), 0);
	call_world_end(w, &fake, FDID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loss_of_a_device_is_told_first),
		cmocka_unit_test(lender_down_is_told),
		cmocka_unit_test(segments_outlive_the_link_of_a_borrow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
