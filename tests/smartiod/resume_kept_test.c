/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments that were removed and are kept for importers of other hosts, when their exporter's
 * daemon is started again: nothing but their memory tells of them there, and the importers.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "resume_world.h"
#include "smartiod/segment/requests.h"
#include "smartiod/segment/segment.h"

#define ID 25
#define EXPORTER LENDER
#define IMPORTERS 2 /* of host 1, which has mapped it, and of host 2, which has not */

struct shared {
	struct world_client *owner, *importer[IMPORTERS];
	uint32_t segment, connection[IMPORTERS], map;
	unsigned mems; /* of all hosts, without it */
};

static void share(struct fixture *f, struct shared *s)
{
	s->mems = world_resources(f->w, SIO_KIND_MEM);
	s->owner = world_client(f->w, EXPORTER, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_seg_export(f->w, s->owner, ID, 4096, &s->segment), 0);
	for (unsigned i = 0; i < IMPORTERS; i++) {
		s->importer[i] = world_client(f->w, 1 + i, SIO_CLIENT_LIBRARY);
		assert_int_equal(call_seg_connect(f->w, s->importer[i], NODE(EXPORTER), ID,
						  &s->connection[i]),
				 0);
	}
	assert_int_equal(call_seg_map(f->w, s->importer[0], s->connection[0], 0, 4096, &s->map), 0);
}

static void restart(struct fixture *f, unsigned host)
{
	world_restart(f->w, host);
	world_pass(f->w, MEET);
	assert_int_equal(library_lost(), 0);
}

static void expect_not_lost(struct world_client *c)
{
	const struct sio_evm_segment *e;

	for (unsigned i = 0; (e = world_event(c, SIO_EVM_SEGMENT_REMOTE, i)); i++)
		assert_int_equal(sio_from_le32(e->loss), SIO_LOSS_REMOVED);
}

/* It can be mapped by those who have it, and by nobody else. */
static void expect_shared(struct fixture *f, const struct shared *s)
{
	uint32_t other, map;

	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), s->mems + 1);
	for (unsigned i = 0; i < IMPORTERS; i++) {
		expect_not_lost(s->importer[i]);
		assert_int_equal(
			call_seg_map(f->w, s->importer[i], s->connection[i], 0, 4096, &map), 0);
		assert_int_equal(call_handle(f->w, s->importer[i], SIO_MSG_SEG_UNMAP, map, 0), 0);
		assert_int_equal(call_seg_connect(f->w, s->importer[i], NODE(EXPORTER), ID, &other),
				 ENOENT);
	}
}

/* It ends with its last connection. */
static void leave(struct fixture *f, const struct shared *s)
{
	assert_int_equal(call_handle(f->w, s->importer[0], SIO_MSG_SEG_UNMAP, s->map, 0), 0);
	for (unsigned i = 0; i < IMPORTERS; i++) {
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), s->mems + 1);
		assert_int_equal(call_handle(f->w, s->importer[i], SIO_MSG_SEG_DISCONNECT,
					     s->connection[i], 0),
				 0);
		world_run(f->w);
	}
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), s->mems);
}

static void nobody_loses_it(void **state)
{
	struct fixture *f = *state;
	struct shared s;

	share(f, &s);
	assert_int_equal(call_seg_remove(f->w, s.owner, s.segment), 0);
	for (unsigned i = 0; i < 6; i++) {
		restart(f, i % 3);
		expect_shared(f, &s);
		assert_int_equal(f->w->bad_ends, 0);
	}
	leave(f, &s);
}

/* No program of its host is left that would have to come back. */
static void its_maker_has_ended(void **state)
{
	struct fixture *f = *state;
	struct shared s;

	share(f, &s);
	assert_int_equal(call_seg_remove(f->w, s.owner, s.segment), 0);
	library_gone(s.owner);
	world_kill(f->w, s.owner);
	world_run(f->w);
	for (unsigned i = 0; i < 3; i++) {
		restart(f, EXPORTER);
		expect_shared(f, &s);
	}
	leave(f, &s);
}

/* An importer of its own host restores it, and leaves before the others are met. */
static void one_of_its_host_leaves_first(void **state)
{
	struct fixture *f = *state;
	struct world_client *local = world_client(f->w, EXPORTER, SIO_CLIENT_LIBRARY);
	struct shared s;
	uint32_t connection;

	share(f, &s);
	assert_int_equal(call_seg_connect(f->w, local, NODE(EXPORTER), ID, &connection), 0);
	assert_int_equal(call_seg_remove(f->w, s.owner, s.segment), 0);
	f->w->lossy = true;
	for (unsigned i = 0; i < IMPORTERS; i++)
		world_stop(f->w, 1 + i);
	world_run(f->w);
	restart(f, EXPORTER);
	assert_int_equal(call_handle(f->w, local, SIO_MSG_SEG_DISCONNECT, connection, 0), 0);
	for (unsigned i = 0; i < IMPORTERS; i++)
		restart(f, 1 + i);
	expect_shared(f, &s);
	leave(f, &s);
}

/* Its maker removes it before the importers are met. */
static void it_is_removed_before_they_are_met(void **state)
{
	struct fixture *f = *state;
	struct shared s;

	share(f, &s);
	f->w->lossy = true;
	for (unsigned i = 0; i < IMPORTERS; i++)
		world_stop(f->w, 1 + i);
	world_run(f->w);
	restart(f, EXPORTER);
	assert_int_equal(call_seg_remove(f->w, s.owner, s.segment), 0);
	for (unsigned i = 0; i < IMPORTERS; i++)
		restart(f, 1 + i);
	expect_shared(f, &s);
	leave(f, &s);
}

/* Nobody can be connected to what was never available: it ends with its removal. */
static void one_that_was_never_available_ends_at_once(void **state)
{
	const uint32_t flags[] = {0, SCI_FLAG_PRIVATE};
	struct fixture *f = *state;
	struct world_client *owner = world_client(f->w, EXPORTER, SIO_CLIENT_LIBRARY);
	unsigned mems = world_resources(f->w, SIO_KIND_MEM);
	uint32_t segment[2];

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			call_seg_create(f->w, owner, ID + i, 4096, flags[i], &segment[i], NULL), 0);
	f->w->lossy = true;
	for (unsigned i = 0; i < IMPORTERS; i++)
		world_stop(f->w, 1 + i);
	world_run(f->w);
	restart(f, EXPORTER);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems + 2);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(call_seg_remove(f->w, owner, segment[i]), 0);
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems);
	for (unsigned i = 0; i < IMPORTERS; i++)
		restart(f, 1 + i);
}

/* They give it back meanwhile: then it ends when they are met. */
static void they_leave_meanwhile(void **state)
{
	struct fixture *f = *state;
	struct shared s;

	share(f, &s);
	assert_int_equal(call_seg_remove(f->w, s.owner, s.segment), 0);
	world_stop(f->w, EXPORTER);
	world_run(f->w);
	assert_int_equal(call_handle(f->w, s.importer[0], SIO_MSG_SEG_UNMAP, s.map, 0), 0);
	for (unsigned i = 0; i < IMPORTERS; i++)
		assert_int_equal(call_handle(f->w, s.importer[i], SIO_MSG_SEG_DISCONNECT,
					     s.connection[i], 0),
				 0);
	restart(f, EXPORTER);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), s.mems);
}

/* A host that does not come back has it no longer than anything else. */
static void one_does_not_come_back(void **state)
{
	struct fixture *f = *state;
	struct shared s;

	share(f, &s);
	assert_int_equal(call_seg_remove(f->w, s.owner, s.segment), 0);
	assert_int_equal(call_handle(f->w, s.importer[0], SIO_MSG_SEG_UNMAP, s.map, 0), 0);
	assert_int_equal(
		call_handle(f->w, s.importer[0], SIO_MSG_SEG_DISCONNECT, s.connection[0], 0), 0);
	f->w->lossy = true;
	world_stop(f->w, 2);
	world_run(f->w);
	restart(f, EXPORTER);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), s.mems + 1);
	world_pass(f->w, 40 * MEET);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), s.mems);
	restart(f, 2);
}

/* Nothing says which number it had: who maps it was let in. */
static void its_number_is_not_known(void **state)
{
	struct fixture *f = *state;
	struct shared s;

	share(f, &s);
	assert_int_equal(call_seg_remove(f->w, s.owner, s.segment), 0);
	for (struct world_res *r = f->w->res; r; r = r->next)
		if (r->host == EXPORTER && r->kind == SIO_KIND_MEM && r->owner == 0)
			r->cookie = 0;
	world_restart(f->w, EXPORTER);
	world_pass(f->w, MEET);
	expect_not_lost(s.importer[0]);
	expect_event(s.importer[1], SIO_EVM_SEGMENT_REMOTE, 1, s.connection[1], SCI_CB_LOST,
		     SIO_LOSS_LOST);
	assert_int_equal(call_handle(f->w, s.importer[0], SIO_MSG_SEG_UNMAP, s.map, 0), 0);
	assert_int_equal(
		call_handle(f->w, s.importer[0], SIO_MSG_SEG_DISCONNECT, s.connection[0], 0), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), s.mems);
}

/* Who has reported all cannot have been connected to it. */
static void nobody_comes_to_it_later(void **state)
{
	struct fixture *f = *state;
	struct sio_peer_resume_seg lie = {.connection = sio_to_le64(77)};
	const struct smartiod_segment *seg = NULL;
	struct smartiod_tree_node *n;
	struct shared s;

	share(f, &s);
	assert_int_equal(call_seg_remove(f->w, s.owner, s.segment), 0);
	restart(f, EXPORTER);
	for (uint64_t key = 0;
	     (n = smartiod_tree_after(&f->w->host[EXPORTER].daemon->segments, key)); key = n->key)
		if (SMARTIOD_OF(n, struct smartiod_segment, by_uid)->state == SMARTIOD_SEGMENT_KEPT)
			seg = SMARTIOD_OF(n, struct smartiod_segment, by_uid);
	assert_non_null(seg);
	assert_int_equal(seg->id, ID);
	lie.uid = sio_to_le64(seg->uid);
	message(f, EXPORTER, 2, SIO_PEER_RESUME_SEG, &lie, sizeof(lie));
	assert_false(smartiod_segment_has_ref(seg, NODE(2), 77));
	world_run(f->w);
	expect_shared(f, &s);
	leave(f, &s);
}

/* By the number of a private segment, which its programs shared, no other host may have it. */
static void nobody_has_a_private_one_by_its_number(void **state)
{
	struct fixture *f = *state;
	struct world_client *owner = world_client(f->w, EXPORTER, SIO_CLIENT_LIBRARY);
	struct world_client *other = world_client(f->w, EXPORTER, SIO_CLIENT_LIBRARY);
	unsigned mems = world_resources(f->w, SIO_KIND_MEM);
	struct sio_peer_resume_seg lie = {.connection = sio_to_le64(77)};
	const struct smartiod_from liar = {.node = NODE(2)};
	const struct smartiod_segment *seg = NULL;
	struct smartiod_tree_node *n;
	uint32_t segment, attached;
	struct sio_err err;

	assert_int_equal(call_seg_create(f->w, owner, ID, 4096, SCI_FLAG_PRIVATE, &segment, NULL),
			 0);
	assert_int_equal(call_handle(f->w, owner, SIO_MSG_SEG_SHARE, segment, 0), 0);
	assert_int_equal(call_seg_attach(f->w, other, ID, &attached), 0);
	assert_int_equal(call_seg_remove(f->w, owner, segment), 0);
	f->w->lossy = true;
	for (unsigned i = 0; i < 1 + IMPORTERS; i++)
		world_stop(f->w, i);
	library_gone(other);
	world_kill(f->w, other);
	world_restart(f->w, EXPORTER);
	world_run(f->w);
	for (uint64_t key = 0;
	     (n = smartiod_tree_after(&f->w->host[EXPORTER].daemon->segments, key)); key = n->key)
		if (SMARTIOD_OF(n, struct smartiod_segment, by_uid)->state == SMARTIOD_SEGMENT_KEPT)
			seg = SMARTIOD_OF(n, struct smartiod_segment, by_uid);
	assert_non_null(seg);
	lie.uid = sio_to_le64(seg->uid);
	assert_int_equal(smartiod_peer_resume_seg(f->w->host[EXPORTER].daemon, &liar, &lie, &err),
			 0);
	assert_false(smartiod_segment_has_ref(seg, NODE(2), 77));
	for (unsigned i = 0; i < IMPORTERS; i++)
		restart(f, 1 + i);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nobody_loses_it),
		TEST(its_maker_has_ended),
		TEST(one_of_its_host_leaves_first),
		TEST(it_is_removed_before_they_are_met),
		TEST(one_that_was_never_available_ends_at_once),
		TEST(they_leave_meanwhile),
		TEST(one_does_not_come_back),
		TEST(its_number_is_not_known),
		TEST(nobody_comes_to_it_later),
		TEST(nobody_has_a_private_one_by_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
