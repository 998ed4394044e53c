/* SPDX-License-Identifier: BSD-2-Clause */
/* Lending: who may borrow, who has the registers, what stays in quarantine, how that ends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"

#define FDID 0x400001
#define RW (SIO_ACCESS_READ | SIO_ACCESS_WRITE)
#define SQ (SCI_MEMACCESS_DEVICE_READ | SCI_MEMACCESS_HOST_WRITE)
#define CQ (SCI_MEMACCESS_DEVICE_WRITE | SCI_MEMACCESS_HOST_READ)

static struct fake_device fake;

/* Borrow, connect and map BAR 0. */
static void take(struct world *w, struct world_client *c, uint32_t flags, struct call_borrow *b,
		 uint32_t *segment, uint32_t *map, uint32_t access[4])
{
	call_take(w, c, FDID, flags, b, segment, map, access);
}

static void exclusive_then_open(void **state)
{
	struct world *w = call_world(&fake);
	struct world_client *m = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct call_borrow bm, bc, bl;

	(void)state;
	assert_int_equal(call_borrow(w, m, 0x400002, 0, &bm), ENODEV);
	assert_int_equal(call_borrow(w, m, FDID, 0x4, &bm), EINVAL);
	assert_int_equal(call_borrow(w, m, FDID, SCI_FLAG_EXCLUSIVE, &bm), 0);
	assert_int_equal(call_borrow(w, c, FDID, 0, &bc), EACCES);
	assert_int_equal(call_borrow(w, l, FDID, 0, &bl), EACCES);
	assert_int_equal(call_handle(w, m, SIO_MSG_DEV_RELEASE_EXCLUSIVE, bm.handle, 0), 0);
	assert_int_equal(call_handle(w, m, SIO_MSG_DEV_RELEASE_EXCLUSIVE, bm.handle, 0), EPERM);
	assert_int_equal(call_borrow(w, c, FDID, 0, &bc), 0);
	assert_int_equal(call_borrow(w, l, FDID, 0, &bl), 0);
	assert_true(bm.id != bc.id && bc.id != bl.id && bm.id != bl.id);
	assert_int_equal(call_borrow(w, l, FDID, SCI_FLAG_EXCLUSIVE, &bl), EACCES);
	assert_int_equal(call_handle(w, c, SIO_MSG_DEV_RETURN, bc.handle, 0), 0);
	assert_int_equal(call_handle(w, c, SIO_MSG_DEV_RETURN, bc.handle, 0), EBADF);
	world_kill(w, m);
	world_kill(w, l);
	world_run(w);
	assert_int_equal(call_borrow(w, c, FDID, SCI_FLAG_EXCLUSIVE, &bc), 0);
	call_world_end(w, &fake, FDID);
}

/* Two managers: the second one sees a mirror, until the first is gone. */
static void registers_have_one_writer(void **state)
{
	struct world *w = call_world(&fake);
	struct world_client *m = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct call_borrow bm, bc;
	uint32_t sm, sc, mm, mc, access[4];

	(void)state;
	take(w, m, 0, &bm, &sm, &mm, access);
	assert_int_equal(access[0], RW);
	assert_int_equal(access[1], RW);
	assert_int_equal(access[2], 0);
	take(w, c, 0, &bc, &sc, &mc, access);
	assert_int_equal(access[0], SIO_ACCESS_READ);
	assert_int_equal(access[1], RW);
	assert_int_equal(call_settled(w, c, bc.handle, bm.id), EACCES);
	assert_int_equal(call_handle(w, c, SIO_MSG_DEV_RESET, bc.handle, 0), EACCES);
	world_kill(w, m);
	world_run(w);
	assert_int_equal(call_handle(w, c, SIO_MSG_SEG_UNMAP, mc, 0), 0);
	assert_int_equal(call_bar_map(w, c, sc, SCI_FLAG_READONLY_MAP, &mc, access), 0);
	assert_int_equal(access[0], SIO_ACCESS_READ);
	assert_int_equal(access[1], 0);
	assert_int_equal(call_settled(w, c, bc.handle, SIO_BORROWER_ALL), EACCES);
	assert_int_equal(call_bar_map(w, c, sc, 0, &mc, access), 0);
	assert_int_equal(access[0], RW);
	call_world_end(w, &fake, FDID);
}

/* Two threads, or one that asks again before its first request is answered. */
static void asked_for_twice_at_once_they_are_one_writers(void **state)
{
	struct world *w = call_world(&fake);
	struct world_client *c = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct sio_msg_seg_map one = {.bytes = sio_to_le64(0x4000)}, two = one;
	uint32_t segment, ids[2];
	struct call_borrow b;

	(void)state;
	assert_int_equal(call_borrow(w, c, FDID, 0, &b), 0);
	assert_int_equal(call_dev_seg_connect(w, c, b.handle, 0, SCI_MEMTYPE_BAR, &segment, NULL),
			 0);
	one.handle = two.handle = sio_to_le32(segment);
	ids[0] = world_send(w, c, SIO_MSG_SEG_MAP, &one, sizeof(one));
	ids[1] = world_send(w, c, SIO_MSG_SEG_MAP, &two, sizeof(two));
	world_run(w);
	for (unsigned i = 0; i < 2; i++) {
		const struct sio_rep_seg_map *rep = (const void *)world_reply(c, ids[i])->data;

		assert_int_equal(world_reply(c, ids[i])->error, 0);
		assert_int_equal(sio_from_le32(rep->piece[0].access), RW);
	}
	call_world_end(w, &fake, FDID);
}

static void last_unmap_lets_the_registers_go(void **state)
{
	struct world *w = call_world(&fake);
	struct world_client *m = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct call_borrow bm, bl;
	uint32_t sm, sl, m1, m2, ml, access[4];

	(void)state;
	take(w, m, 0, &bm, &sm, &m1, access);
	assert_int_equal(call_bar_map(w, m, sm, 0, &m2, access), 0);
	assert_int_equal(access[0], RW); /* the same view once more */
	assert_int_equal(call_handle(w, m, SIO_MSG_SEG_UNMAP, m1, 0), 0);
	take(w, l, 0, &bl, &sl, &ml, access);
	assert_int_equal(access[0], SIO_ACCESS_READ);
	assert_int_equal(call_handle(w, m, SIO_MSG_SEG_UNMAP, m2, 0), 0);
	assert_int_equal(call_handle(w, l, SIO_MSG_SEG_UNMAP, ml, 0), 0);
	assert_int_equal(fake_count(w, SIO_KIND_BAR, false), 0);
	assert_int_equal(call_bar_map(w, l, sl, 0, &ml, access), 0);
	assert_int_equal(access[0], RW);
	assert_int_equal(call_handle(w, l, SIO_MSG_DEV_RETURN, bl.handle, 0), EBUSY);
	assert_int_equal(call_handle(w, l, SIO_MSG_SEG_DISCONNECT, sl, 0), EBUSY);
	call_world_end(w, &fake, FDID);
}

static void dma_maps_hold_memory_and_table_entries(void **state)
{
	struct world *w = call_world(&fake);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct call_borrow bc, bl;
	uint32_t seg, a, b, mine, m;

	(void)state;
	assert_int_equal(call_borrow(w, c, FDID, 0, &bc), 0);
	assert_int_equal(call_borrow(w, l, FDID, 0, &bl), 0);
	assert_int_equal(call_seg_create(w, c, 1, 65536, 0, &seg, NULL), 0);
	assert_int_equal(call_dma_map(w, c, bc.handle, seg, 0, 0, 4096, &a), EPERM);
	assert_int_equal(call_seg_adapter(w, c, SIO_MSG_SEG_PREPARE, seg, 0, 0), 0);
	assert_int_equal(call_dma_map(w, c, bc.handle, seg, 0, 100, 4096, &a), EINVAL);
	assert_int_equal(call_dma_map(w, c, bc.handle, seg, 0, 0, 0, &a), EINVAL);
	assert_int_equal(call_dma_map(w, c, bc.handle, seg, 0, 4096, 65536, &a), ERANGE);
	assert_int_equal(call_dma_map(w, c, bc.handle, seg, 0, 4096, UINT64_MAX, &a), ERANGE);
	assert_int_equal(call_dma_map(w, c, bc.handle, seg + 9, 0, 0, 4096, &a), EBADF);
	assert_int_equal(call_dma_map(w, c, bc.handle, seg, 0, 0, 4096, &a), 0);
	assert_int_equal(call_dma_map(w, c, bc.handle, seg, 0, 4096, 4096, &b), 0);
	assert_int_equal(fake_count(w, SIO_KIND_REQUESTER, false), 1);
	assert_int_equal(call_handle(w, c, SIO_MSG_SEG_REMOVE, seg, 0), EBUSY);
	assert_int_equal(call_handle(w, c, SIO_MSG_DEV_RETURN, bc.handle, 0), EBUSY);
	assert_int_equal(call_handle(w, c, SIO_MSG_DMA_UNMAP, a, 0), 0);
	assert_int_equal(fake_count(w, SIO_KIND_REQUESTER, false), 1);
	assert_int_equal(call_handle(w, c, SIO_MSG_DMA_UNMAP, b, 0), 0);
	assert_int_equal(fake_count(w, SIO_KIND_REQUESTER, false), 0);
	assert_int_equal(call_handle(w, c, SIO_MSG_SEG_REMOVE, seg, 0), 0);
	/* The lender's own memory needs no window. */
	assert_int_equal(call_seg_create(w, l, 1, 4096, 0, &mine, NULL), 0);
	assert_int_equal(call_dma_map(w, l, bl.handle, mine, 0, 0, 4096, &m), 0);
	assert_int_equal(fake_count(w, SIO_KIND_REQUESTER, false), 0);
	assert_int_equal(call_handle(w, l, SIO_MSG_SEG_REMOVE, mine, 0), EBUSY);
	assert_int_equal(call_handle(w, l, SIO_MSG_DMA_UNMAP, m, 0), 0);
	assert_int_equal(call_handle(w, l, SIO_MSG_SEG_REMOVE, mine, 0), 0);
	assert_int_equal(call_handle(w, l, SIO_MSG_DEV_RETURN, bl.handle, 0), 0);
	call_world_end(w, &fake, FDID);
}

/* A borrower maps memory of a third host; its exporter dies; the memory stays for the device. */
static void third_host_memory_stays_while_mapped(void **state)
{
	struct world *w = call_world(&fake);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct world_client *x = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct call_borrow bc;
	uint32_t seg, con, map;

	(void)state;
	assert_int_equal(call_seg_export(w, x, 9, 8192, &seg), 0);
	assert_int_equal(call_borrow(w, c, FDID, 0, &bc), 0);
	assert_int_equal(call_seg_connect(w, c, 8, 9, &con), 0);
	assert_int_equal(call_dma_map(w, c, bc.handle, con, 1, 4096, 4096, &map), 0);
	assert_int_equal(call_handle(w, c, SIO_MSG_SEG_DISCONNECT, con, 0), EBUSY);
	world_kill(w, x);
	world_run(w);
	assert_non_null(world_event(c, SIO_EVM_SEGMENT_REMOTE, 0));
	assert_int_equal(fake_count(w, SIO_KIND_MEM, true), 1);
	assert_int_equal(call_handle(w, c, SIO_MSG_DMA_UNMAP, map, 0), 0);
	assert_int_equal(world_resources(w, SIO_KIND_MEM), 0);
	call_world_end(w, &fake, FDID);
}

static void expect_gone(struct world_client *c, unsigned nth, uint64_t borrower)
{
	const struct sio_evm_device *e = call_device_event(c, nth);

	assert_non_null(e);
	assert_int_equal(sio_from_le32(e->event), SIO_DEVICE_EV_BORROWER_GONE);
	assert_int_equal(sio_from_le64(e->borrower), borrower);
}

static void quarantine_ends_by_the_holders_word(void **state)
{
	struct world *w = call_world(&fake);
	struct world_client *m = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct world_client *n = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct call_borrow bm, bc, bn;
	uint32_t sm, mm, sn, mn, seg, map, access[4];

	(void)state;
	fake_device_resets(w, false);
	take(w, m, SCI_FLAG_EXCLUSIVE, &bm, &sm, &mm, access);
	assert_int_equal(call_handle(w, m, SIO_MSG_DEV_RELEASE_EXCLUSIVE, bm.handle, 0), 0);
	assert_int_equal(call_borrow(w, c, FDID, 0, &bc), 0);
	assert_int_equal(call_seg_export(w, c, 1, 65536, &seg), 0);
	assert_int_equal(call_dma_map(w, c, bc.handle, seg, 0, 0, 65536, &map), 0);
	assert_int_equal(call_settled(w, m, bm.handle, bc.id), EINVAL); /* it lives */
	world_kill(w, c);
	world_run(w);
	expect_gone(m, 0, bc.id);
	assert_int_equal(fake_count(w, SIO_KIND_DMAMAP, true), 1);
	assert_int_equal(fake_count(w, SIO_KIND_MEM, true), 1);
	assert_int_equal(fake_count(w, SIO_KIND_MAP, true), 1);
	world_kill(w, m); /* without a word: the next holder is told again */
	world_run(w);
	assert_int_equal(fake_count(w, SIO_KIND_MEM, true), 1);
	take(w, n, SCI_FLAG_EXCLUSIVE, &bn, &sn, &mn, access);
	assert_int_equal(access[0], RW);
	expect_gone(n, 0, bc.id);
	assert_int_equal(call_settled(w, n, bn.handle, bc.id + 100), EINVAL);
	assert_int_equal(call_settled(w, n, bn.handle, 0), EINVAL);
	assert_int_equal(call_settled(w, n, bn.handle, bc.id), 0);
	assert_int_equal(fake_count(w, SIO_KIND_DMAMAP, true), 0);
	assert_int_equal(world_resources(w, SIO_KIND_MEM), 0);
	assert_int_equal(world_resources(w, SIO_KIND_REQUESTER), 0);
	assert_int_equal(call_settled(w, n, bn.handle, bc.id), 0); /* said twice: the same */
	assert_null(call_device_event(n, 1));
	call_world_end(w, &fake, FDID);
}

/* Also of those who had nothing mapped, whether they die or return it; of its own it does not. */
static void the_holder_is_notified_of_each_end(void **state)
{
	struct world *w = call_world(&fake);
	struct world_client *m = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct call_borrow bm, bc, bl;
	uint32_t sm, mm, access[4];

	(void)state;
	take(w, m, SCI_FLAG_EXCLUSIVE, &bm, &sm, &mm, access);
	assert_int_equal(call_handle(w, m, SIO_MSG_DEV_RELEASE_EXCLUSIVE, bm.handle, 0), 0);
	assert_int_equal(call_borrow(w, c, FDID, 0, &bc), 0);
	assert_int_equal(call_borrow(w, l, FDID, 0, &bl), 0);
	world_kill(w, c);
	world_run(w);
	expect_gone(m, 0, bc.id);
	assert_int_equal(call_settled(w, m, bm.handle, bc.id), 0);
	assert_int_equal(call_handle(w, l, SIO_MSG_DEV_RETURN, bl.handle, 0), 0);
	world_run(w);
	expect_gone(m, 1, bl.id);
	assert_null(call_device_event(l, 0));
	assert_null(call_device_event(m, 2));
	call_world_end(w, &fake, FDID);
}

/* SETTLED for all, and RESET: the generation goes up and every borrower is told. */
static void reset_tells_every_borrower(void **state)
{
	struct world *w = call_world(&fake);
	struct world_client *m = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *all[] = {m, c, l};
	struct call_borrow bm, bc, bl;
	uint32_t sm, mm, access[4];

	(void)state;
	take(w, m, 0, &bm, &sm, &mm, access);
	assert_int_equal(call_borrow(w, c, FDID, 0, &bc), 0);
	assert_int_equal(call_borrow(w, l, FDID, 0, &bl), 0);
	assert_int_equal(call_settled(w, m, bm.handle, SIO_BORROWER_ALL), 0);
	assert_int_equal(call_handle(w, m, SIO_MSG_DEV_RESET, bm.handle, 0), 0);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 2; k++) {
			const struct sio_evm_device *e = call_device_event(all[i], k);

			assert_non_null(e);
			assert_int_equal(sio_from_le32(e->event), SIO_DEVICE_EV_RESET);
			assert_int_equal(sio_from_le32(e->generation), bm.generation + 2 * (k + 1));
		}
	assert_int_equal(fake.generation, 3);
	call_world_end(w, &fake, FDID);
}

static void device_segments_go_where_hints_say(void **state)
{
	struct world *w = call_world(&fake);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct world_client *m = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct call_borrow bc, bm;
	uint32_t sq, cq, shared, mine, node, map;

	(void)state;
	assert_int_equal(call_borrow(w, c, FDID, 0, &bc), 0);
	assert_int_equal(call_borrow(w, m, FDID, 0, &bm), 0);
	assert_int_equal(call_dev_seg_create(w, c, bc.handle, 1, 4096, 9, SQ, 0), EINVAL);
	assert_int_equal(call_dev_seg_create(w, c, bc.handle, 1, 0, SCI_MEMTYPE_PRIVATE, SQ, 0),
			 EINVAL);
	assert_int_equal(call_dev_seg_create(w, c, bc.handle, 1, UINT64_MAX - 5000,
					     SCI_MEMTYPE_PRIVATE, SQ, 0),
			 ENOSPC);
	assert_int_equal(call_dev_seg_create(w, c, bc.handle, 1, 4096, SCI_MEMTYPE_PRIVATE, SQ, 0),
			 0);
	assert_int_equal(call_dev_seg_create(w, c, bc.handle, 1, 4096, SCI_MEMTYPE_PRIVATE, SQ, 0),
			 EEXIST);
	assert_int_equal(call_dev_seg_create(w, c, bc.handle, 2, 4096, SCI_MEMTYPE_PRIVATE, CQ, 0),
			 0);
	assert_int_equal(call_dev_seg_connect(w, c, bc.handle, 1, SCI_MEMTYPE_PRIVATE, &sq, &node),
			 0);
	assert_int_equal(node, 4);
	assert_int_equal(call_dev_seg_connect(w, c, bc.handle, 2, SCI_MEMTYPE_PRIVATE, &cq, &node),
			 0);
	assert_int_equal(node, 12);
	assert_int_equal(call_dev_seg_connect(w, m, bm.handle, 1, SCI_MEMTYPE_PRIVATE, &mine, NULL),
			 ENOENT);
	assert_int_equal(call_dma_map(w, c, bc.handle, sq, 1, 0, 4096, &map), 0);
	assert_int_equal(call_handle(w, c, SIO_MSG_DMA_UNMAP, map, 0), 0);
	/* Shared: another host finds it, and its last disconnect ends it. */
	assert_int_equal(call_dev_seg_create(w, c, bc.handle, 1, 4096, SCI_MEMTYPE_SHARED, CQ, 0),
			 0);
	assert_int_equal(call_dev_seg_create(w, m, bm.handle, 1, 4096, SCI_MEMTYPE_SHARED, SQ, 0),
			 EEXIST);
	assert_int_equal(
		call_dev_seg_connect(w, m, bm.handle, 1, SCI_MEMTYPE_SHARED, &shared, &node), 0);
	assert_int_equal(node, 12);
	assert_int_equal(call_handle(w, m, SIO_MSG_SEG_DISCONNECT, shared, 0), 0);
	world_run(w);
	assert_int_equal(
		call_dev_seg_connect(w, m, bm.handle, 1, SCI_MEMTYPE_SHARED, &shared, NULL),
		ENOENT);
	assert_int_equal(call_handle(w, c, SIO_MSG_SEG_DISCONNECT, sq, 0), 0);
	assert_int_equal(call_handle(w, c, SIO_MSG_SEG_DISCONNECT, cq, 0), 0);
	world_run(w);
	assert_int_equal(world_resources(w, SIO_KIND_MEM), 0);
	assert_int_equal(call_dev_seg_create(w, c, bc.handle, 1, 4096, SCI_MEMTYPE_PRIVATE, SQ, 0),
			 0); /* the id is free again; the borrow's end takes it, never connected */
	call_world_end(w, &fake, FDID);
}

/* Flags that no memory can satisfy, and memory that is short on one side. */
static void device_segments_fall_back(void **state)
{
	struct world *w = call_world(&fake);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct call_borrow bc;
	uint32_t sq, node;

	(void)state;
	assert_int_equal(call_borrow(w, c, FDID, 0, &bc), 0);
	assert_int_equal(call_dev_seg_create(w, c, bc.handle, 1, 4096, SCI_MEMTYPE_PRIVATE, SQ,
					     SCI_FLAG_LOCAL_ONLY | SCI_FLAG_DEVICE_SIDE_ONLY),
			 EINVAL);
	w->fail_at = w->requests + 1; /* the lender's ALLOC */
	assert_int_equal(call_dev_seg_create(w, c, bc.handle, 1, 4096, SCI_MEMTYPE_PRIVATE, SQ,
					     SCI_FLAG_DEVICE_SIDE_ONLY),
			 ENOSPC);
	w->fail_at = w->requests + 1;
	assert_int_equal(call_dev_seg_create(w, c, bc.handle, 1, 4096, SCI_MEMTYPE_PRIVATE, SQ, 0),
			 0);
	w->fail_at = 0;
	assert_int_equal(call_dev_seg_connect(w, c, bc.handle, 1, SCI_MEMTYPE_PRIVATE, &sq, &node),
			 0);
	assert_int_equal(node, 12);
	call_world_end(w, &fake, FDID);
}

/*
 * The clock of the borrower's host runs out at any moment of a creation. Where its program is told
 * that it failed, the lender's directory has nothing by that id.
 */
static void late_device_segments_are_not_known(void **state)
{
	unsigned late = 0, n = 0;
	bool done = false;

	(void)state;
	for (; !done; n++) {
		struct sio_msg_dev_seg_create msg = {.segment_id = sio_to_le32(1),
						     .memtype = sio_to_le32(SCI_MEMTYPE_SHARED),
						     .bytes = sio_to_le64(4096),
						     .hints = sio_to_le32(CQ)};
		struct world *w = call_world(&fake);
		struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
		struct world_client *m = world_client(w, 1, SIO_CLIENT_LIBRARY);
		struct call_borrow bc, bm;
		int other;
		uint32_t id;

		assert_int_equal(call_borrow(w, c, FDID, 0, &bc), 0);
		assert_int_equal(call_borrow(w, m, FDID, 0, &bm), 0);
		msg.device = sio_to_le32(bc.handle);
		id = world_send(w, c, SIO_MSG_DEV_SEG_CREATE, &msg, sizeof(msg));
		for (unsigned i = 0; i < n; i++)
			world_step(w);
		done = world_reply(c, id);
		w->now += 6000000000ULL;
		smartiod_timer(w->host[2].daemon);
		world_run(w);
		other = call_dev_seg_create(w, m, bm.handle, 1, 4096, SCI_MEMTYPE_SHARED, SQ, 0);
		late += world_reply(c, id)->error == ETIMEDOUT;
		assert_int_equal(other, world_reply(c, id)->error ? 0 : EEXIST);
		call_world_end(w, &fake, FDID);
	}
	assert_true(late > 0);
}

/* Each daemon hears of the link in its own time, and requests are on their way between them. */
static void a_link_that_flaps_leaves_both_agreed(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct world *w = world_new(3, seed);
		struct world_client *c;
		struct sio_msg_dev_borrow msg = {.fdid = sio_to_le32(FDID)};
		struct call_borrow b;

		fake_device_add(w, &fake);
		world_start(w);
		c = world_client(w, 1, SIO_CLIENT_LIBRARY);
		for (unsigned i = 0; i < 6; i++) {
			world_send(w, c, SIO_MSG_DEV_BORROW, &msg, sizeof(msg));
			for (uint64_t k = (seed * 7 + i * 3) % 6; k > 0 && world_step(w); k--)
				;
			world_link(w, 0, 1, i % 2);
		}
		world_run(w);
		/* What it has is its own: each can be returned, and then nobody has anything. */
		assert_int_equal(call_borrow(w, c, FDID, 0, &b), 0);
		assert_int_equal(call_handle(w, c, SIO_MSG_DEV_RETURN, b.handle, 0), 0);
		call_world_end(w, &fake, FDID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exclusive_then_open),
		cmocka_unit_test(registers_have_one_writer),
		cmocka_unit_test(asked_for_twice_at_once_they_are_one_writers),
		cmocka_unit_test(last_unmap_lets_the_registers_go),
		cmocka_unit_test(dma_maps_hold_memory_and_table_entries),
		cmocka_unit_test(third_host_memory_stays_while_mapped),
		cmocka_unit_test(quarantine_ends_by_the_holders_word),
		cmocka_unit_test(the_holder_is_notified_of_each_end),
		cmocka_unit_test(reset_tells_every_borrower),
		cmocka_unit_test(device_segments_go_where_hints_say),
		cmocka_unit_test(device_segments_fall_back),
		cmocka_unit_test(late_device_segments_are_not_known),
		cmocka_unit_test(a_link_that_flaps_leaves_both_agreed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
