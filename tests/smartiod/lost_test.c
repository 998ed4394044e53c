/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that programs of another host have windows to, when the two hosts lose each other: it
 * stays until the importer has unmapped it or started again, and its owner does not notice. Where
 * the memory's host has an IOMMU only the address stays. Node 4 has the memory, node 8 the windows.
 * Each test is run with and without an IOMMU.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "calls.h"
#include "smartiod/base/state.h"
#include "wire/ring.h"

#define EXPORTER 0
#define IMPORTER 1
#define AGAIN 100000000 /* daemons that lost each other have found each other */

struct fixture {
	struct world *w;
	struct world_client *owner, *user;
	uint32_t segment, connection, map; /* with a window */
	uint32_t dint, link;		   /* with a ring */
};

enum { RING = 1, FALLING = 2 };

static void start(struct fixture *f, void **state, unsigned what)
{
	uint32_t number;

	memset(f, 0, sizeof(*f));
	f->w = world_new(2, 0);
	f->w->iommu = *(const bool *)*state;
	f->w->falling = what & FALLING;
	world_start(f->w);
	f->owner = world_client(f->w, EXPORTER, SIO_CLIENT_LIBRARY);
	f->user = world_client(f->w, IMPORTER, SIO_CLIENT_LIBRARY);
	if (what & RING) {
		assert_int_equal(call_dint_create(f->w, f->owner, 0, 0, &f->dint, &number), 0);
		assert_int_equal(call_dint_connect(f->w, f->user, 4, number, &f->link), 0);
		return;
	}
	assert_int_equal(call_seg_export(f->w, f->owner, 1, 8192, &f->segment), 0);
	assert_int_equal(call_seg_connect(f->w, f->user, 4, 1, &f->connection), 0);
	assert_int_equal(call_seg_map(f->w, f->user, f->connection, 0, 8192, &f->map), 0);
}

/* The daemons lose each other, and the link keeps them from finding each other. */
static void part(struct fixture *f)
{
	world_link(f->w, EXPORTER, IMPORTER, false);
	world_cut(f->w, EXPORTER, IMPORTER);
	world_run(f->w);
}

static void meet(struct fixture *f)
{
	world_link(f->w, EXPORTER, IMPORTER, true);
	world_pass(f->w, AGAIN);
}

static void finish(struct fixture *f)
{
	for (unsigned i = 0; i < f->w->n_clients; i++)
		world_kill(f->w, &f->w->client[i]);
	world_run(f->w);
	assert_nothing_left(f->w);
	assert_int_equal(f->w->wild, 0);
	world_free(f->w);
}

/* A grant is orphaned, and nothing else refers to its memory. */
static void expect_orphaned(const struct fixture *f)
{
	expect_kept(f->w, EXPORTER, 1, !f->w->iommu);
}

/* The segment can be removed, its number is free, its program may end; the memory stays. */
static void a_segment_stays(void **state)
{
	uint32_t again;
	struct fixture f;

	start(&f, state, false);
	part(&f);
	assert_int_equal(call_handle(f.w, f.owner, SIO_MSG_SEG_REMOVE, f.segment, 0), 0);
	expect_orphaned(&f);
	assert_int_equal(call_seg_export(f.w, f.owner, 1, 4096, &again), 0);
	expect_kept(f.w, EXPORTER, 1, 1 + !f.w->iommu);
	world_kill(f.w, f.owner);
	world_pass(f.w, 10 * (uint64_t)AGAIN);
	expect_orphaned(&f);
	meet(&f);
	expect_kept(f.w, EXPORTER, 0, 0);
	finish(&f);
}

/* The library has read what was left, and the number is free. */
static void a_ring_stays(void **state)
{
	struct fixture f;

	for (unsigned i = 0; i < 4; i++) {
		bool killed = i & 1;

		start(&f, state, RING | (i & FALLING));
		part(&f);
		expect_kept(f.w, EXPORTER, 1, 1); /* the trigger's grant is no memory */
		assert_non_null(world_event(f.owner, SIO_EVM_DINT_RING_END, 0));
		assert_int_equal(call_ring_free(f.w, f.owner, f.dint, 1), 0);
		assert_int_equal(call_handle(f.w, f.owner, SIO_MSG_DINT_REMOVE, f.dint, 0), 0);
		expect_orphaned(&f);
		if (killed) {
			world_kill(f.w, f.owner);
			world_run(f.w);
			expect_orphaned(&f);
		}
		meet(&f);
		expect_kept(f.w, EXPORTER, 0, 0);
		finish(&f);
	}
}

/*
 * An importer that does not let go, of interrupts that are removed or when it is lost itself, can
 * do so again and again: of no interrupt, but of the host's memory. What stays in the host is not
 * concerned.
 */
static void one_host_takes_a_part_of_the_memory(void **state)
{
	const uint32_t most = 70;
	uint32_t n, own, link;
	struct fixture f;

	for (unsigned lost = 0; lost < 2; lost++) {
		start(&f, state, RING);
		if (lost && f.w->iommu) { /* then the memory is not kept */
			finish(&f);
			continue;
		}
		f.w->topology->host[EXPORTER].ram_size = (uint64_t)4 * SIO_RING_TOTAL * most;
		assert_int_equal(call_handle(f.w, f.owner, SIO_MSG_DINT_REMOVE, f.dint, 0), 0);
		f.w->late = SIO_OP_UNMAP;
		for (uint32_t ring = 0; ring < most; ring++) {
			if (ring % 30 == 0)
				assert_int_equal(call_dint_create(f.w, f.owner, 0, 0, &f.dint, &n),
						 0);
			assert_int_equal(call_dint_connect(f.w, f.user, 4, n, &link), 0);
			if (ring % 30 != 29)
				continue;
			if (lost)
				part(&f);
			assert_int_equal(call_handle(f.w, f.owner, SIO_MSG_DINT_REMOVE, f.dint, 0),
					 0);
			if (lost)
				meet(&f);
			world_forget(f.owner);
			world_forget(f.user);
		}
		assert_int_equal(world_count(f.w, EXPORTER, SIO_KIND_MEM), most);
		assert_int_equal(call_dint_connect(f.w, f.user, 4, n, &link), ENOSPC);
		assert_int_equal(world_count(f.w, EXPORTER, SIO_KIND_MEM), most);
		assert_int_equal(call_dint_connect(f.w, f.owner, 4, n, &own), 0);
		f.w->late = 0;
		world_run(f.w);
		assert_int_equal(call_dint_connect(f.w, f.user, 4, n, &link), 0);
		finish(&f);
	}
}

/* What is left in it is read when the grant is gone, or with its program's end nobody reads it. */
static void a_ring_outlasts_its_grant(void **state)
{
	struct fixture f;

	for (unsigned killed = 0; killed < 3; killed++) {
		start(&f, state, true);
		part(&f);
		if (killed == 1)
			world_kill(f.w, f.owner);
		meet(&f);
		expect_kept(f.w, EXPORTER, 0, killed != 1);
		if (killed == 2)
			world_kill(f.w, f.owner);
		else if (killed == 0)
			assert_int_equal(call_ring_free(f.w, f.owner, f.dint, 1), 0);
		world_run(f.w);
		expect_kept(f.w, EXPORTER, 0, 0);
		finish(&f);
	}
}

static void the_importer_starts_anew(void **state)
{
	struct fixture f;

	for (unsigned ring = 0; ring < 2; ring++) {
		start(&f, state, ring);
		world_crash(f.w, IMPORTER);
		world_kill(f.w, f.owner);
		world_pass(f.w, 100 * (uint64_t)AGAIN);
		expect_orphaned(&f);
		world_boot(f.w, IMPORTER);
		world_pass(f.w, AGAIN);
		expect_kept(f.w, EXPORTER, 0, 0);
		finish(&f);
	}
}

/* Return: the request, which may have to wait for its answer. */
static uint32_t release_it(struct fixture *f, bool ring)
{
	struct sio_msg_handle msg = {.handle = sio_to_le32(ring ? f->link : f->map)};
	uint32_t id = world_send(f->w, f->user, ring ? SIO_MSG_DINT_DISCONNECT : SIO_MSG_SEG_UNMAP,
				 &msg, sizeof(msg));

	world_run(f->w);
	return id;
}

/*
 * Its port takes its time: the answer to the question waits for that, whether the window was lost,
 * given back by the program, or given back and then lost, or left behind by it. So does the answer
 * to who disconnects from an interrupt, for what he connects to next must not be told before that.
 */
static void as_long_as_the_port_has_the_window(void **state)
{
	static const struct {
		bool given_back, lost, killed;
	} how[] = {{.given_back = true},
		   {.lost = true},
		   {.given_back = true, .lost = true},
		   {.given_back = true, .killed = true}};
	struct fixture f;

	for (unsigned ring = 0; ring < 2; ring++)
		for (unsigned i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
			uint32_t id = 0;

			start(&f, state, ring);
			f.w->late = SIO_OP_UNMAP;
			if (how[i].given_back) {
				id = release_it(&f, ring);
				assert_int_equal(world_reply(f.user, id) == NULL, ring);
			}
			if (how[i].lost)
				world_cut(f.w, EXPORTER, IMPORTER);
			if (how[i].killed)
				world_kill(f.w, f.user);
			world_pass(f.w, AGAIN);
			expect_kept(f.w, EXPORTER, ring && !how[i].lost ? 2 : 1, 1);
			f.w->late = 0;
			world_run(f.w);
			expect_kept(f.w, EXPORTER, 0, 1);
			if (how[i].given_back && !how[i].killed)
				assert_int_equal(world_reply(f.user, id)->error, 0);
			finish(&f);
		}
}

/* Where the nth event of an interrupt's rings is among all that the client received. */
static unsigned place(struct world_client *c, uint32_t type, unsigned nth)
{
	const void *event = world_event(c, type, nth);
	unsigned i = 0;

	assert_non_null(event);
	while (c->message[i]->data != event)
		i++;
	return i;
}

/* However long things take: the receiver hears of it in the order in which the sender did it. */
static void who_left_and_came_back_is_told_in_that_order(void **state)
{
	struct sio_msg_handle msg = {.h.size = 0};
	struct fixture f;
	uint32_t id, link;

	for (uint64_t seed = 1; seed < 200; seed++) {
		start(&f, state, RING);
		f.w->random =
			seed *
			0x9e3779b97f4a7c15; /* from now on packets of different channels overtake */
		msg.handle = sio_to_le32(f.link);
		id = world_send(f.w, f.user, SIO_MSG_DINT_DISCONNECT, &msg, sizeof(msg));
		while (!world_reply(f.user, id))
			assert_true(world_step(f.w));
		assert_int_equal(call_dint_connect(f.w, f.user, 4, 1, &link), 0);
		assert_true(place(f.owner, SIO_EVM_DINT_RING_END, 0) <
			    place(f.owner, SIO_EVM_DINT_RING, 1));
		finish(&f);
	}
}

/* A window that is still being made is one, too. */
static void lost_while_it_is_made(void **state)
{
	struct sio_msg_seg_map msg = {.bytes = sio_to_le64(8192)};
	struct fixture f;
	uint32_t id;

	start(&f, state, false);
	assert_int_equal(call_handle(f.w, f.user, SIO_MSG_SEG_UNMAP, f.map, 0), 0);
	expect_kept(f.w, EXPORTER, 0, 1);
	f.w->late = SIO_OP_MAP;
	msg.handle = sio_to_le32(f.connection);
	id = world_send(f.w, f.user, SIO_MSG_SEG_MAP, &msg, sizeof(msg));
	world_run(f.w);
	world_cut(f.w, EXPORTER, IMPORTER);
	world_pass(f.w, AGAIN);
	expect_kept(f.w, EXPORTER, 1, 1);
	f.w->late = 0;
	world_run(f.w);
	assert_int_equal(world_reply(f.user, id)->error, ECONNRESET);
	expect_kept(f.w, EXPORTER, 0, 1);
	finish(&f);
}

/* One window after the other; the connection may be closed meanwhile. */
static void mapped_again_before_it_is_unmapped(void **state)
{
	struct sio_msg_seg_map msg = {.bytes = sio_to_le64(8192)};
	struct fixture f;
	uint32_t id;

	for (unsigned closed = 0; closed < 2; closed++) {
		start(&f, state, false);
		f.w->late = SIO_OP_UNMAP;
		assert_int_equal(call_handle(f.w, f.user, SIO_MSG_SEG_UNMAP, f.map, 0), 0);
		if (closed) {
			assert_int_equal(
				call_handle(f.w, f.user, SIO_MSG_SEG_DISCONNECT, f.connection, 0),
				0);
			expect_kept(f.w, EXPORTER, 1, 1);
			f.w->late = 0;
			world_run(f.w);
			expect_kept(f.w, EXPORTER, 0, 1);
			finish(&f);
			continue;
		}
		msg.handle = sio_to_le32(f.connection);
		id = world_send(f.w, f.user, SIO_MSG_SEG_MAP, &msg, sizeof(msg));
		world_run(f.w);
		assert_null(world_reply(f.user, id));
		expect_kept(f.w, EXPORTER, 1, 1);
		f.w->late = 0;
		world_run(f.w);
		assert_int_equal(world_reply(f.user, id)->error, 0);
		expect_kept(f.w, EXPORTER, 1, 1);
		finish(&f);
	}
}

/*
 * The exporter's next start has numbers of its own: what the one before gave is not given back to
 * it.
 */
static void the_exporter_starts_anew_meanwhile(void **state)
{
	struct fixture f;
	uint64_t sent;

	for (unsigned ring = 0; ring < 2; ring++) {
		start(&f, state, ring);
		f.w->late = SIO_OP_UNMAP;
		world_crash(f.w, EXPORTER);
		world_pass(f.w, AGAIN);
		world_boot(f.w, EXPORTER);
		world_pass(f.w, AGAIN);
		sent = f.w->host[IMPORTER].daemon->count.peer_sent;
		f.w->late = 0;
		world_run(f.w);
		assert_int_equal(f.w->host[IMPORTER].daemon->count.peer_sent, sent);
		finish(&f);
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
		BOTH(a_segment_stays),
		BOTH(a_ring_stays),
		BOTH(a_ring_outlasts_its_grant),
		BOTH(one_host_takes_a_part_of_the_memory),
		BOTH(the_importer_starts_anew),
		BOTH(as_long_as_the_port_has_the_window),
		BOTH(who_left_and_came_back_is_told_in_that_order),
		BOTH(lost_while_it_is_made),
		BOTH(mapped_again_before_it_is_unmapped),
		BOTH(the_exporter_starts_anew_meanwhile),
	};

	return cmocka_run_group_tests_name("lost", tests, NULL, NULL);
}
