/* SPDX-License-Identifier: BSD-2-Clause */
/* Holds of queue memory: whose word counts, what stays mapped, and what ends it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "smartiod/lender/lend.h"

#define FDID 0x400001

/*
 * Host 0 lends. A manager on host 1 has the registers; a client on host 2 and one on the lender's
 * own host have 8 KiB each mapped.
 */
struct fixture {
	struct fake_device fake;
	struct world *w;
	struct world_client *manager, *client, *local;
	struct call_borrow m, c, l;
	uint32_t bar, map;	      /* the manager's */
	uint32_t c_seg, c_map, l_map; /* handles */
	uint64_t c_at, l_at;	      /* as the device sees it */
};

static void take_registers(struct world *w, struct world_client *c, struct call_borrow *b,
			   uint32_t *bar, uint32_t *map)
{
	uint32_t access[4];

	call_take(w, c, FDID, 0, b, bar, map, access);
	assert_int_equal(access[0], SIO_ACCESS_READ | SIO_ACCESS_WRITE);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	uint32_t seg;

	assert_non_null(f);
	*state = f;
	f->w = world_new(3, 0);
	fake_device_add(f->w, &f->fake);
	world_start(f->w);
	f->manager = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
	f->client = world_client(f->w, 2, SIO_CLIENT_LIBRARY);
	f->local = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	take_registers(f->w, f->manager, &f->m, &f->bar, &f->map);
	assert_int_equal(call_borrow(f->w, f->client, FDID, 0, &f->c), 0);
	assert_int_equal(call_borrow(f->w, f->local, FDID, 0, &f->l), 0);
	assert_int_equal(call_seg_export(f->w, f->client, 1, 8192, &f->c_seg), 0);
	assert_int_equal(call_dma_map_at(f->w, f->client, f->c.handle, f->c_seg, 0, 0, 8192,
					 &f->c_map, &f->c_at),
			 0);
	assert_int_equal(call_seg_create(f->w, f->local, 1, 8192, 0, &seg, NULL), 0);
	assert_int_equal(
		call_dma_map_at(f->w, f->local, f->l.handle, seg, 0, 0, 8192, &f->l_map, &f->l_at),
		0);
	return 0;
}

/* Whatever is held: when all are gone and the device is reset, nothing is left. */
static int teardown(void **state)
{
	struct fixture *f = *state;

	call_world_end(f->w, &f->fake, FDID);
	free(f);
	return 0;
}

static int hold(struct fixture *f, uint64_t borrower, uint64_t ioaddr, uint64_t bytes)
{
	uint64_t number;

	return call_hold(f->w, f->manager, f->m.handle, borrower, ioaddr, bytes, &number);
}

static int unmap(struct fixture *f, struct world_client *c, uint32_t map)
{
	return call_handle(f->w, c, SIO_MSG_DMA_UNMAP, map, 0);
}

static void who_asks_and_for_whom(void **state)
{
	struct fixture *f = *state;
	uint64_t number;

	assert_int_equal(hold(f, f->c.id, f->c_at, 8192), 0);
	assert_int_equal(hold(f, f->l.id, f->l_at, 8192), 0);
	/* Numbers that are nobody's, and each other's memory. */
	assert_int_equal(hold(f, f->c.id + 1000, f->c_at, 8192), EINVAL);
	assert_int_equal(hold(f, 0, f->c_at, 8192), EINVAL);
	assert_int_equal(hold(f, UINT64_MAX, f->c_at, 8192), EINVAL);
	assert_int_equal(hold(f, f->l.id, f->c_at, 8192), ERANGE);
	assert_int_equal(hold(f, f->c.id, f->l_at, 8192), ERANGE);
	assert_int_equal(hold(f, f->m.id, f->c_at, 8192), ERANGE);
	/* Only the owner of the registers is answered, be it about its own. */
	assert_int_equal(call_hold(f->w, f->client, f->c.handle, f->c.id, f->c_at, 8192, &number),
			 EACCES);
	assert_int_equal(call_hold(f->w, f->local, f->l.handle, f->l.id, f->l_at, 8192, &number),
			 EACCES);
	assert_int_equal(call_hold(f->w, f->client, 99, f->c.id, f->c_at, 8192, &number), EBADF);
}

static void one_mapping_covers_it_all(void **state)
{
	struct fixture *f = *state;
	uint64_t at;
	uint32_t map;

	assert_int_equal(hold(f, f->c.id, f->c_at, 1), 0);
	assert_int_equal(hold(f, f->c.id, f->c_at + 8191, 1), 0);
	assert_int_equal(hold(f, f->c.id, f->c_at + 4096, 4096), 0);
	assert_int_equal(hold(f, f->c.id, f->c_at, 0), EINVAL);
	assert_int_equal(hold(f, f->c.id, f->c_at, 8193), ERANGE);
	assert_int_equal(hold(f, f->c.id, f->c_at + 8192, 1), ERANGE);
	assert_int_equal(hold(f, f->c.id, f->c_at + 1, 8192), ERANGE);
	assert_int_equal(hold(f, f->c.id, f->c_at - 1, 8192), ERANGE);
	assert_int_equal(hold(f, f->c.id, f->c_at, UINT64_MAX), ERANGE);
	assert_int_equal(hold(f, f->c.id, f->c_at + 1, UINT64_MAX), ERANGE);
	assert_int_equal(hold(f, f->c.id, UINT64_MAX, 1), ERANGE);
	assert_int_equal(hold(f, f->c.id, 0, UINT64_MAX), ERANGE);
	/* What was unmapped is not mapped. */
	assert_int_equal(
		call_dma_map_at(f->w, f->client, f->c.handle, f->c_seg, 0, 0, 4096, &map, &at), 0);
	assert_int_equal(unmap(f, f->client, map), 0);
	assert_int_equal(hold(f, f->c.id, at, 4096), ERANGE);
}

static void what_is_held_stays_mapped(void **state)
{
	struct fixture *f = *state;
	struct world_client *who[2] = {f->client, f->local};
	const uint64_t id[2] = {f->c.id, f->l.id}, at[2] = {f->c_at, f->l_at};
	const uint32_t map[2] = {f->c_map, f->l_map};
	uint64_t a, b;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(call_hold(f->w, f->manager, f->m.handle, id[i], at[i], 4096, &a),
				 0);
		assert_int_equal(
			call_hold(f->w, f->manager, f->m.handle, id[i], at[i] + 4096, 64, &b), 0);
		assert_int_equal(unmap(f, who[i], map[i]), EBUSY);
		assert_int_equal(call_unhold(f->w, f->manager, f->m.handle, a), 0);
		assert_int_equal(unmap(f, who[i], map[i]), EBUSY);
		assert_int_equal(call_unhold(f->w, who[i], i ? f->l.handle : f->c.handle, b),
				 EACCES);
		assert_int_equal(call_unhold(f->w, f->manager, f->m.handle, b), 0);
		assert_int_equal(call_unhold(f->w, f->manager, f->m.handle, b), EINVAL);
		assert_int_equal(unmap(f, who[i], map[i]), 0);
		assert_int_equal(call_unhold(f->w, f->manager, f->m.handle, b), EINVAL);
	}
	assert_int_equal(call_unhold(f->w, f->manager, f->m.handle, 0), EINVAL);
	assert_int_equal(call_unhold(f->w, f->manager, f->m.handle, UINT64_MAX), EINVAL);
}

/* An unmap that is under way cannot be stopped any more: what it takes is not mapped. */
static void an_unmap_under_way_wins(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_handle msg = {.handle = sio_to_le32(f->l_map)};
	struct world_client *m = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	struct sio_msg_dev_hold ask = {.borrower = sio_to_le64(f->l.id),
				       .ioaddr = sio_to_le64(f->l_at),
				       .bytes = sio_to_le64(4096)};
	uint32_t bar, map, id;
	struct call_borrow b;

	world_kill(f->w, f->manager);
	world_run(f->w);
	take_registers(f->w, m, &b, &bar, &map);
	ask.device = sio_to_le32(b.handle);
	world_send(f->w, f->local, SIO_MSG_DMA_UNMAP, &msg, sizeof(msg));
	id = world_send(f->w, m, SIO_MSG_DEV_HOLD, &ask, sizeof(ask));
	world_run(f->w);
	assert_int_equal(world_reply(m, id)->error, ERANGE);
	assert_int_equal(call_handle(f->w, f->local, SIO_MSG_DMA_UNMAP, f->l_map, 0), EBADF);
}

static void a_hold_outlives_its_holder(void **state)
{
	struct fixture *f = *state;
	struct world_client *next = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	uint32_t bar, map;
	uint64_t number;
	struct call_borrow b;

	assert_int_equal(call_hold(f->w, f->manager, f->m.handle, f->c.id, f->c_at, 64, &number),
			 0);
	world_kill(f->w, f->manager);
	world_run(f->w);
	assert_int_equal(unmap(f, f->client, f->c_map), EBUSY);
	take_registers(f->w, next, &b, &bar, &map);
	assert_int_equal(unmap(f, f->client, f->c_map), EBUSY);
	assert_int_equal(call_unhold(f->w, next, b.handle, number), 0);
	assert_int_equal(unmap(f, f->client, f->c_map), 0);
	/* Whoever had the registers and has them no more. */
	assert_int_equal(call_handle(f->w, next, SIO_MSG_SEG_UNMAP, map, 0), 0);
	assert_int_equal(call_hold(f->w, next, b.handle, f->l.id, f->l_at, 64, &number), EACCES);
	assert_int_equal(call_unhold(f->w, next, b.handle, number), EACCES);
}

static void a_device_without_queues_holds_nothing(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(hold(f, f->c.id, f->c_at, 64), 0);
	assert_int_equal(hold(f, f->l.id, f->l_at, 64), 0);
	assert_int_equal(call_settled(f->w, f->manager, f->m.handle, SIO_BORROWER_ALL), 0);
	assert_int_equal(unmap(f, f->client, f->c_map), 0);
	assert_int_equal(hold(f, f->l.id, f->l_at, 64), 0);
	assert_int_equal(unmap(f, f->local, f->l_map), EBUSY);
	assert_int_equal(call_handle(f->w, f->manager, SIO_MSG_DEV_RESET, f->m.handle, 0), 0);
	assert_int_equal(unmap(f, f->local, f->l_map), 0);
}

/* A queue that is made while all are being ended: before or after? Neither. */
static void nothing_is_held_during_a_reset(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_handle reset = {.handle = sio_to_le32(f->m.handle)};
	struct sio_msg_dev_hold ask = {.device = sio_to_le32(f->m.handle),
				       .borrower = sio_to_le64(f->c.id),
				       .ioaddr = sio_to_le64(f->c_at),
				       .bytes = sio_to_le64(4096)};
	uint32_t id;

	world_send(f->w, f->manager, SIO_MSG_DEV_RESET, &reset, sizeof(reset));
	id = world_send(f->w, f->manager, SIO_MSG_DEV_HOLD, &ask, sizeof(ask));
	world_run(f->w);
	assert_int_equal(world_reply(f->manager, id)->error, EBUSY);
	/* One that the port refuses ends nothing, and bars nobody. */
	assert_int_equal(hold(f, f->c.id, f->c_at, 4096), 0);
	f->w->fail_at = f->w->requests + 1;
	assert_int_not_equal(call_handle(f->w, f->manager, SIO_MSG_DEV_RESET, f->m.handle, 0), 0);
	f->w->fail_at = 0;
	assert_int_equal(unmap(f, f->client, f->c_map), EBUSY);
	assert_int_equal(hold(f, f->c.id, f->c_at, 4096), 0);
}

static void the_dead_have_no_queues(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(hold(f, f->c.id, f->c_at, 64), 0);
	world_kill(f->w, f->client);
	world_run(f->w);
	assert_int_equal(hold(f, f->c.id, f->c_at, 64), EINVAL);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 1);
	assert_int_equal(call_settled(f->w, f->manager, f->m.handle, f->c.id), 0);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, true), 0);
	assert_int_equal(hold(f, f->c.id, f->c_at, 64), EINVAL);
}

/* Memory of a host that went down is mapped for the device, but no memory any more. */
static void what_cannot_be_reached_is_not_held(void **state)
{
	struct fixture *f = *state;
	struct world_client *x = world_client(f->w, 2, SIO_CLIENT_LIBRARY);
	uint32_t seg, con, map;
	uint64_t at;

	assert_int_equal(call_seg_export(f->w, x, 9, 4096, &seg), 0);
	assert_int_equal(call_seg_connect(f->w, f->local, 12, 9, &con), 0);
	assert_int_equal(call_dma_map_at(f->w, f->local, f->l.handle, con, 1, 0, 4096, &map, &at),
			 0);
	assert_int_equal(hold(f, f->l.id, at, 4096), 0);
	world_crash(f->w, 2);
	world_run(f->w);
	assert_int_equal(hold(f, f->l.id, at, 4096), ERANGE);
	world_boot(f->w, 2);
	world_pass(f->w, 100000000);
}

/* The request is on its way while the asker's clock runs out. */
static void hold_late(struct fixture *f)
{
	struct sio_msg_dev_hold ask = {.device = sio_to_le32(f->m.handle),
				       .borrower = sio_to_le64(f->c.id),
				       .ioaddr = sio_to_le64(f->c_at),
				       .bytes = sio_to_le64(4096)};
	uint32_t id = world_send(f->w, f->manager, SIO_MSG_DEV_HOLD, &ask, sizeof(ask));

	f->w->now += 6000000000ULL;
	smartiod_timer(f->w->host[1].daemon);
	assert_int_equal(world_reply(f->manager, id)->error, ETIMEDOUT);
}

static void a_late_hold_is_released(void **state)
{
	struct fixture *f = *state;

	hold_late(f);
	world_run(f->w);
	assert_int_equal(unmap(f, f->client, f->c_map), 0);
}

/* Whoever asked: it may have released the registers, or be dead. */
static void a_late_hold_of_a_former_holder_is_released(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_handle drop = {.handle = sio_to_le32(f->map)};

	hold_late(f);
	world_send(f->w, f->manager, SIO_MSG_SEG_UNMAP, &drop, sizeof(drop));
	world_run(f->w);
	assert_int_equal(unmap(f, f->client, f->c_map), 0);
}

static void a_late_hold_of_the_dead_is_released(void **state)
{
	struct fixture *f = *state;

	hold_late(f);
	world_kill(f->w, f->manager);
	world_run(f->w);
	assert_int_equal(unmap(f, f->client, f->c_map), 0);
}

/* No hold but the late one: neither those of other nodes, nor of after a reset. */
static void a_late_hold_takes_no_other_with_it(void **state)
{
	struct fixture *f = *state;
	struct sio_peer_hold_release end = {.h.type = sio_to_le32(SIO_PEER_HOLD_RELEASE),
					    .h.size = sio_to_le32(sizeof(end)),
					    .fdid = sio_to_le32(FDID)};
	uint64_t number;

	assert_int_equal(call_hold(f->w, f->manager, f->m.handle, f->c.id, f->c_at, 4096, &number),
			 0);
	end.hold = sio_to_le64(number);
	end.borrower = sio_to_le64(f->m.id);
	end.generation = sio_to_le32(f->m.generation);
	smartiod_peer_message(f->w->host[0].daemon, 12, &end, sizeof(end));
	assert_int_equal(unmap(f, f->client, f->c_map), EBUSY);
	assert_int_equal(call_handle(f->w, f->manager, SIO_MSG_DEV_RESET, f->m.handle, 0), 0);
	assert_int_equal(call_hold(f->w, f->manager, f->m.handle, f->c.id, f->c_at, 4096, &number),
			 0);
	smartiod_peer_message(f->w->host[0].daemon, 8, &end, sizeof(end));
	assert_int_equal(unmap(f, f->client, f->c_map), EBUSY);
	end.generation = sio_to_le32(f->m.generation + 2);
	smartiod_peer_message(f->w->host[0].daemon, 8, &end, sizeof(end));
	assert_int_equal(unmap(f, f->client, f->c_map), 0);
}

static void listings_count_holds(void **state)
{
	struct fixture *f = *state;
	struct world_client *t = world_client(f->w, 0, SIO_CLIENT_TOOL);
	struct sio_msg_list msg = {.kind = sio_to_le32(SIO_LIST_DMA_MAPS)};
	const struct sio_rep_list *rep;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(hold(f, f->c.id, f->c_at, 64), 0);
	rep = (const void *)world_call(f->w, t, SIO_MSG_LIST, &msg, sizeof(msg))->data;
	assert_int_equal(sio_from_le32(rep->count), 2);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(sio_from_le32(rep->row[i].refs),
				 sio_from_le64(rep->row[i].address) == f->c_at ? 3 : 0);
}

/* The client's, by the number that HOLD knows it by. */
static uint64_t mapping(const struct fixture *f)
{
	const struct smartiod_loan *l = smartiod_loan_find(f->w->host[0].daemon, f->c.id);

	assert_true(l && l->dmas);
	return l->dmas->by_id.key;
}

/* Each borrow that leaves a pin behind is an entry of the lender's. */
static void pins_of_so_many_borrows(void **state)
{
	struct fixture *f = *state;
	uint64_t number;

	for (unsigned i = 0; i < SMARTIOD_MAX_HOLDERS; i++) {
		assert_int_equal(hold(f, f->c.id, f->c_at, 64), 0);
		assert_int_equal(call_handle(f->w, f->manager, SIO_MSG_SEG_UNMAP, f->map, 0), 0);
		assert_int_equal(call_handle(f->w, f->manager, SIO_MSG_SEG_DISCONNECT, f->bar, 0),
				 0);
		assert_int_equal(call_handle(f->w, f->manager, SIO_MSG_DEV_RETURN, f->m.handle, 0),
				 0);
		world_run(f->w);
		world_forget(f->manager);
		take_registers(f->w, f->manager, &f->m, &f->bar, &f->map);
	}
	assert_int_equal(hold(f, f->c.id, f->c_at, 64), ENOSPC);
	assert_int_equal(call_hold(f->w, f->manager, f->m.handle, f->l.id, f->l_at, 64, &number),
			 0);
	/* What another has left is let go of, and there is room for one's own. */
	number = mapping(f);
	assert_int_equal(call_unhold(f->w, f->manager, f->m.handle, number), 0);
	assert_int_equal(hold(f, f->c.id, f->c_at, 64), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(who_asks_and_for_whom),
		CASE(one_mapping_covers_it_all),
		CASE(what_is_held_stays_mapped),
		CASE(an_unmap_under_way_wins),
		CASE(a_hold_outlives_its_holder),
		CASE(a_device_without_queues_holds_nothing),
		CASE(nothing_is_held_during_a_reset),
		CASE(the_dead_have_no_queues),
		CASE(what_cannot_be_reached_is_not_held),
		CASE(a_late_hold_is_released),
		CASE(a_late_hold_of_a_former_holder_is_released),
		CASE(a_late_hold_of_the_dead_is_released),
		CASE(a_late_hold_takes_no_other_with_it),
		CASE(listings_count_holds),
		CASE(pins_of_so_many_borrows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
