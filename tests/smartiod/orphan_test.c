/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that a device has mapped, when its host loses the device's lender: it stays until the
 * lender has settled it or started again, and no program notices. Where the memory's host has an
 * IOMMU only the address stays. Each test is run with and without one.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "smartiod/lender/lend.h"

#define FDID 0x400001
#define LENDER 0
#define EXPORTER 1
#define THIRD 2
#define NODE(host) (4 * ((host) + 1))
#define AGAIN 100000000 /* daemons that lost each other have found each other */

struct fixture {
	struct fake_device fake;
	struct world *w;
	bool iommu;
	struct world_client *owner;    /* of the memory */
	struct world_client *borrower; /* often the same */
	struct call_borrow b;
	uint32_t segment, connection, dma;
};

/* The device has the first page of segment 1 of the exporter mapped, for a program of @borrower. */
static struct fixture *start(void **state, unsigned borrower)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct world *w = world_new(3, 0);

	assert_non_null(f);
	f->w = w;
	f->iommu = *(const bool *)*state;
	fake_device_add(w, &f->fake);
	w->iommu = f->iommu;
	world_start(w);
	fake_device_resets(w, false); /* else its lender would settle by itself */
	f->owner = f->borrower = world_client(w, EXPORTER, SIO_CLIENT_LIBRARY);
	if (borrower != EXPORTER)
		f->borrower = world_client(w, borrower, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_seg_export(w, f->owner, 1, 8192, &f->segment), 0);
	assert_int_equal(call_borrow(w, f->borrower, FDID, 0, &f->b), 0);
	if (borrower != EXPORTER)
		assert_int_equal(
			call_seg_connect(w, f->borrower, NODE(EXPORTER), 1, &f->connection), 0);
	assert_int_equal(call_dma_map(w, f->borrower, f->b.handle,
				      f->connection ? f->connection : f->segment,
				      f->connection != 0, 0, 4096, &f->dma),
			 0);
	return f;
}

/* A grant is orphaned, and nothing else refers to its memory. */
static void expect_orphaned(const struct fixture *f)
{
	expect_kept(f->w, EXPORTER, 1, !f->iommu);
}

static void settle(struct fixture *f)
{
	struct world_client *c = world_client(f->w, LENDER, SIO_CLIENT_LIBRARY);
	struct call_borrow b = {.handle = 0};

	fake_device_resets(f->w, true);
	assert_int_equal(call_borrow(f->w, c, FDID, 0, &b), 0);
	assert_int_equal(call_handle(f->w, c, SIO_MSG_DEV_RESET, b.handle, 0), 0);
	world_kill(f->w, c);
	world_run(f->w);
}

static void finish(struct fixture *f)
{
	for (unsigned i = 0; i < f->w->n_clients; i++)
		world_kill(f->w, &f->w->client[i]);
	world_run(f->w);
	assert_nothing_left(f->w);
	assert_int_equal(f->fake.bad, 0);
	assert_int_equal(f->w->wild, 0);
	world_free(f->w);
	free(f);
}

/* The segment can be removed, its number is free, its program may end; the memory stays. */
static void a_program_notices_nothing(void **state)
{
	struct fixture *f = start(state, EXPORTER);
	uint32_t again;

	assert_int_equal(call_handle(f->w, f->owner, SIO_MSG_SEG_REMOVE, f->segment, 0), EBUSY);
	world_cut(f->w, LENDER, EXPORTER);
	world_run(f->w);
	expect_kept(f->w, EXPORTER, 1, 1);
	assert_int_equal(call_handle(f->w, f->owner, SIO_MSG_SEG_REMOVE, f->segment, 0), 0);
	assert_int_equal(call_seg_export(f->w, f->owner, 1, 4096, &again), 0);
	expect_kept(f->w, EXPORTER, 1, 1 + !f->iommu);
	assert_int_equal(call_handle(f->w, f->owner, SIO_MSG_SEG_REMOVE, again, 0), 0);
	expect_orphaned(f);
	world_kill(f->w, f->owner);
	world_run(f->w);
	expect_orphaned(f);
	world_pass(f->w, AGAIN);
	expect_orphaned(f);
	settle(f);
	expect_kept(f->w, EXPORTER, 0, 0);
	finish(f);
}

/* A segment that is kept for a device of another host's program, when that host is lost. */
static void a_kept_segment_is_orphaned(void **state)
{
	struct fixture *f = start(state, LENDER);

	assert_int_equal(call_handle(f->w, f->owner, SIO_MSG_SEG_REMOVE, f->segment, 0), 0);
	assert_int_equal(call_handle(f->w, f->borrower, SIO_MSG_DMA_UNMAP, f->dma, 0), 0);
	assert_int_equal(
		call_dma_map(f->w, f->borrower, f->b.handle, f->connection, 1, 0, 4096, &f->dma),
		0);
	world_cut(f->w, LENDER, EXPORTER);
	world_kill(f->w, f->owner);
	world_run(f->w);
	expect_orphaned(f);
	world_pass(f->w, AGAIN);
	assert_int_equal(call_handle(f->w, f->borrower, SIO_MSG_DMA_UNMAP, f->dma, 0), 0);
	expect_kept(f->w, EXPORTER, 0, 0);
	finish(f);
}

static void settled_while_apart(void **state)
{
	struct fixture *f = start(state, EXPORTER);

	world_link(f->w, LENDER, EXPORTER, false);
	world_cut(f->w, LENDER, EXPORTER);
	world_pass(f->w, AGAIN);
	settle(f);
	expect_kept(f->w, EXPORTER, 1, 1); /* nobody could tell */
	world_link(f->w, LENDER, EXPORTER, true);
	world_pass(f->w, AGAIN);
	expect_kept(f->w, EXPORTER, 0, 1);
	finish(f);
}

/* Cut again and again, and with the question or its answer on the way. */
static void cut_many_times(void **state)
{
	for (unsigned steps = 0; steps < 30; steps++) {
		struct fixture *f = start(state, EXPORTER);

		for (unsigned i = 0; i < 3; i++) {
			world_cut(f->w, LENDER, EXPORTER);
			world_run(f->w);
			if (i == 1)
				settle(f);
			world_tick(f->w, 30000000);
			for (unsigned k = 0; k < steps && world_step(f->w); k++)
				;
			assert_int_equal(f->w->wild, 0);
		}
		world_pass(f->w, AGAIN);
		expect_kept(f->w, EXPORTER, 0, 1);
		finish(f);
	}
}

/* The link alone: the daemons go on talking. */
static void link_down_and_up(void **state)
{
	struct fixture *f = start(state, EXPORTER);

	world_link(f->w, LENDER, EXPORTER, false);
	world_run(f->w);
	assert_int_equal(call_handle(f->w, f->owner, SIO_MSG_SEG_REMOVE, f->segment, 0), 0);
	expect_orphaned(f);
	world_link(f->w, LENDER, EXPORTER, true);
	world_pass(f->w, AGAIN);
	expect_orphaned(f);
	settle(f);
	expect_kept(f->w, EXPORTER, 0, 0);
	finish(f);
}

static void the_lender_starts_anew(void **state)
{
	struct fixture *f = start(state, EXPORTER);

	world_crash(f->w, LENDER);
	world_pass(f->w, 10000000000);
	expect_kept(f->w, EXPORTER, 1, 1);
	world_boot(f->w, LENDER);
	world_pass(f->w, AGAIN);
	expect_kept(f->w, EXPORTER, 0, 1);
	finish(f);
}

static const struct smartiod_dma *lenders_map(const struct fixture *f)
{
	const struct smartiod *d = f->w->host[LENDER].daemon;
	struct smartiod_tree_node *n = smartiod_tree_after(&d->dmas, 0);

	return n ? SMARTIOD_OF(n, struct smartiod_dma, by_id) : NULL;
}

/* By then its number may be that of another grant. */
static void the_exporter_starts_anew(void **state)
{
	struct fixture *f = start(state, EXPORTER);

	world_crash(f->w, EXPORTER);
	world_pass(f->w, AGAIN);
	assert_non_null(lenders_map(f));
	assert_int_not_equal(lenders_map(f)->grant, 0);
	world_boot(f->w, EXPORTER);
	world_pass(f->w, AGAIN);
	assert_int_equal(lenders_map(f)->grant, 0);
	settle(f);
	finish(f);
}

/*
 * Memory of a third host: the borrow goes on. What was lost is no place for a queue of the device.
 */
static void the_borrower_is_another_host(void **state)
{
	struct fixture *f = start(state, THIRD);
	struct world_client *m = world_client(f->w, LENDER, SIO_CLIENT_LIBRARY);
	struct call_borrow b = {.handle = 0};
	uint32_t bar, map, access[4];
	uint64_t hold;

	assert_int_equal(call_borrow(f->w, m, FDID, 0, &b), 0);
	assert_int_equal(call_dev_seg_connect(f->w, m, b.handle, 0, SCI_MEMTYPE_BAR, &bar, NULL),
			 0);
	assert_int_equal(call_bar_map(f->w, m, bar, 0, &map, access), 0);
	assert_int_equal(
		call_hold(f->w, m, b.handle, f->b.id, lenders_map(f)->iova.addr, 4096, &hold), 0);
	assert_int_equal(call_unhold(f->w, m, b.handle, hold), 0);
	world_cut(f->w, LENDER, EXPORTER);
	world_pass(f->w, AGAIN);
	expect_kept(f->w, EXPORTER, 1, 1);
	assert_int_not_equal(
		call_hold(f->w, m, b.handle, f->b.id, lenders_map(f)->iova.addr, 4096, &hold), 0);
	world_kill(f->w, f->owner);
	world_run(f->w);
	expect_orphaned(f);
	assert_int_equal(call_handle(f->w, f->borrower, SIO_MSG_DMA_UNMAP, f->dma, 0), 0);
	expect_kept(f->w, EXPORTER, 0, 0);
	finish(f);
}

/* Two handles: who made it lets go, and the port gives us memory and grant. */
static void a_shared_segment_is_released(void **state)
{
	struct fixture *f = start(state, EXPORTER);
	struct world_client *other = world_client(f->w, EXPORTER, SIO_CLIENT_LIBRARY);
	uint32_t second;

	assert_int_equal(call_handle(f->w, f->owner, SIO_MSG_SEG_SHARE, f->segment, 0), 0);
	assert_int_equal(call_seg_attach(f->w, other, 1, &second), 0);
	world_cut(f->w, LENDER, EXPORTER);
	world_run(f->w);
	assert_int_equal(call_handle(f->w, f->owner, SIO_MSG_SEG_REMOVE, f->segment, 0), 0);
	world_kill(f->w, f->owner);
	world_run(f->w);
	expect_kept(f->w, EXPORTER, 1, 1);
	assert_int_equal(call_handle(f->w, other, SIO_MSG_SEG_REMOVE, second, 0), 0);
	expect_orphaned(f);
	world_pass(f->w, AGAIN);
	settle(f);
	expect_kept(f->w, EXPORTER, 0, 0);
	finish(f);
}

static void say(struct fixture *f, unsigned to, unsigned from, uint32_t type, uint64_t grant)
{
	struct sio_peer_grant_query msg = {
		.h = {.size = sio_to_le32(sizeof(msg)), .type = sio_to_le32(type)},
		.grant = sio_to_le64(grant)};

	smartiod_peer_message(f->w->host[to].daemon, NODE(from), &msg, sizeof(msg));
	world_run(f->w);
}

/*
 * A lender that is silent keeps the memory; a third host, or a question about nothing, ends
 * nothing.
 */
static void those_who_lie_or_say_nothing(void **state)
{
	struct fixture *f = start(state, EXPORTER);
	uint64_t grant = lenders_map(f)->grant;

	world_cut(f->w, LENDER, EXPORTER);
	world_run(f->w);
	world_kill(f->w, f->owner);
	world_run(f->w);
	f->w->drop_peer_messages = true;
	world_pass(f->w, 60000000000);
	f->w->drop_peer_messages = false;
	expect_orphaned(f);
	world_cut(f->w, LENDER, EXPORTER);
	world_pass(f->w, AGAIN);
	say(f, EXPORTER, THIRD, SIO_PEER_GRANT_RELEASE, grant);
	expect_orphaned(f);
	say(f, LENDER, THIRD, SIO_PEER_GRANT_QUERY, grant);
	say(f, LENDER, EXPORTER, SIO_PEER_GRANT_QUERY, grant + 1);
	say(f, LENDER, EXPORTER, SIO_PEER_GRANT_QUERY, 0);
	say(f, EXPORTER, LENDER, SIO_PEER_GRANT_QUERY, grant);
	expect_orphaned(f);
	settle(f);
	expect_kept(f->w, EXPORTER, 0, 0);
	finish(f);
}

static uint32_t flags_of(struct fixture *f, struct world_client *c, uint32_t kind)
{
	struct sio_msg_list msg = {.kind = sio_to_le32(kind)};
	const struct world_message *m = world_call(f->w, c, SIO_MSG_LIST, &msg, sizeof(msg));
	const struct sio_rep_list *rep;

	assert_non_null(m);
	assert_int_equal(m->error, 0);
	rep = (const void *)m->data;
	assert_int_equal(sio_from_le32(rep->count), 1);
	return sio_from_le32(rep->row[0].flags);
}

static void it_is_listed_as_quarantine(void **state)
{
	struct fixture *f = start(state, EXPORTER);
	struct world_client *tool = world_client(f->w, EXPORTER, SIO_CLIENT_TOOL);
	const uint32_t grants = SIO_LIST_PORT + SIO_KIND_GRANT;

	assert_int_equal(flags_of(f, tool, grants), SIO_ROW_LIVE);
	world_cut(f->w, LENDER, EXPORTER);
	world_run(f->w);
	assert_int_equal(flags_of(f, tool, grants), SIO_ROW_QUARANTINED);
	assert_int_equal(call_handle(f->w, f->owner, SIO_MSG_SEG_REMOVE, f->segment, 0), 0);
	if (!f->iommu)
		assert_int_equal(flags_of(f, tool, SIO_LIST_SEGMENTS), SIO_ROW_QUARANTINED);
	assert_int_equal(flags_of(f, tool, grants), SIO_ROW_QUARANTINED);
	world_pass(f->w, AGAIN);
	settle(f);
	finish(f);
}

/*
 * At every moment of a mapping's making: the grant under way, its answer, the map; two orders of
 * packets.
 */
static bool cut_while_it_is_made(void **state, unsigned borrower, unsigned steps, uint64_t seed,
				 bool link)
{
	struct fixture *f = start(state, borrower);
	uint32_t segment = f->connection ? f->connection : f->segment;
	struct sio_msg_dma_map map = {.device = sio_to_le32(f->b.handle),
				      .segment = sio_to_le32(segment),
				      .remote = sio_to_le32(f->connection != 0),
				      .offset = sio_to_le64(4096),
				      .bytes = sio_to_le64(4096)};
	bool done = false;

	f->w->random = seed;
	world_send(f->w, f->borrower, SIO_MSG_DMA_MAP, &map, sizeof(map));
	for (unsigned i = 0; i < steps; i++)
		done = !world_step(f->w);
	if (link)
		world_link(f->w, LENDER, EXPORTER, false);
	world_cut(f->w, LENDER, EXPORTER);
	for (unsigned i = 0; i < steps % 7; i++)
		world_step(f->w);
	world_link(f->w, LENDER, EXPORTER, true);
	world_pass(f->w, AGAIN);
	assert_int_equal(f->w->wild, 0);
	for (unsigned i = 0; i < f->w->n_clients; i++)
		world_kill(f->w, &f->w->client[i]);
	world_run(f->w);
	settle(f);
	expect_kept(f->w, EXPORTER, 0, 0);
	finish(f);
	return done;
}

static void cut_while_a_mapping_is_made(void **state)
{
	for (unsigned host = 0; host < 3; host++)
		for (uint64_t seed = 0; seed < 8; seed++) {
			unsigned steps = 0;

			while (!cut_while_it_is_made(state, host, steps, seed, seed % 2))
				steps++;
			assert_true(steps > 4);
		}
}

/* Grants of the device's registers to a program of the exporter's host. */
static unsigned bar_grants(struct fixture *f)
{
	return world_count(f->w, LENDER, SIO_KIND_GRANT);
}

static unsigned map_bar(struct fixture *f, uint32_t *ret_map)
{
	uint32_t bar, access[4];

	assert_int_equal(call_dev_seg_connect(f->w, f->borrower, f->b.handle, 0, SCI_MEMTYPE_BAR,
					      &bar, NULL),
			 0);
	assert_int_equal(call_bar_map(f->w, f->borrower, bar, 0, ret_map, access), 0);
	return bar_grants(f);
}

/* Registers are no memory, and end at once. Their address is kept for who may still have it. */
static void a_bar_s_address_stays(void **state)
{
	enum { LOST, GONE, DOWN, HOW };

	for (unsigned how = 0; how < HOW; how++) {
		struct fixture *f = start(state, EXPORTER);
		uint32_t map;
		unsigned n = map_bar(f, &map);

		assert_true(n > 0);
		f->w->drop_peer_messages = true;
		if (how == GONE)
			fake_device_move(f->w, false);
		else if (how == DOWN)
			world_link(f->w, LENDER, EXPORTER, false);
		else
			world_cut(f->w, LENDER, EXPORTER);
		world_run(f->w);
		assert_int_equal(bar_grants(f), f->iommu ? n : 0);
		assert_int_equal(world_count(f->w, LENDER, SIO_KIND_BAR), 0);
		f->w->drop_peer_messages = false;
		world_link(f->w, LENDER, EXPORTER, true);
		world_cut(f->w, LENDER, EXPORTER);
		world_pass(f->w, AGAIN);
		assert_int_equal(bar_grants(f), 0);
		if (how == GONE)
			fake_device_move(f->w, true);
		world_run(f->w);
		settle(f);
		finish(f);
	}
}

/* The port takes its time to unmap it; others may have the registers meanwhile. */
static void as_long_as_the_port_has_the_window(void **state)
{
	for (unsigned killed = 0; killed < 2; killed++) {
		struct fixture *f = start(state, EXPORTER);
		uint32_t map;
		unsigned n = map_bar(f, &map);

		f->w->late = SIO_OP_UNMAP;
		if (killed)
			world_kill(f->w, f->borrower);
		else
			assert_int_equal(call_handle(f->w, f->borrower, SIO_MSG_SEG_UNMAP, map, 0),
					 0);
		world_run(f->w);
		assert_int_equal(bar_grants(f), f->iommu ? n : 0);
		assert_int_equal(world_count(f->w, LENDER, SIO_KIND_BAR), 0);
		f->w->late = 0;
		world_run(f->w);
		assert_int_equal(bar_grants(f), 0);
		world_kill(f->w, f->borrower);
		world_run(f->w);
		settle(f);
		finish(f);
	}
}

/* At each step of its making; the word that it was made may not come. */
static void cut_while_a_bar_is_mapped(void **state)
{
	struct sio_msg_seg_map map = {.bytes = sio_to_le64(4096)};

	for (unsigned steps = 0; steps < 40; steps++) {
		struct fixture *f = start(state, EXPORTER);
		uint32_t bar;

		f->w->random = steps;
		assert_int_equal(call_dev_seg_connect(f->w, f->borrower, f->b.handle, 0,
						      SCI_MEMTYPE_BAR, &bar, NULL),
				 0);
		map.handle = sio_to_le32(bar);
		world_send(f->w, f->borrower, SIO_MSG_SEG_MAP, &map, sizeof(map));
		for (unsigned i = 0; i < steps / 2; i++)
			world_step(f->w);
		if (steps % 2)
			fake_device_move(f->w, false);
		else
			world_cut(f->w, LENDER, EXPORTER);
		world_pass(f->w, AGAIN);
		assert_int_equal(bar_grants(f), 0);
		if (steps % 2)
			fake_device_move(f->w, true);
		world_run(f->w);
		settle(f);
		finish(f);
	}
}

static bool no = false, yes = true;

#define BOTH(test)                                                                                 \
	{#test, test, NULL, NULL, &no},                                                            \
	{                                                                                          \
#test " with an IOMMU", test, NULL, NULL, &yes                                     \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(a_program_notices_nothing),
		BOTH(a_kept_segment_is_orphaned),
		BOTH(settled_while_apart),
		BOTH(cut_many_times),
		BOTH(link_down_and_up),
		BOTH(the_lender_starts_anew),
		BOTH(the_exporter_starts_anew),
		BOTH(the_borrower_is_another_host),
		BOTH(a_shared_segment_is_released),
		BOTH(those_who_lie_or_say_nothing),
		BOTH(it_is_listed_as_quarantine),
		BOTH(cut_while_a_mapping_is_made),
		BOTH(a_bar_s_address_stays),
		BOTH(cut_while_a_bar_is_mapped),
		BOTH(as_long_as_the_port_has_the_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
