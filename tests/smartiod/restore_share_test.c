/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared segments whose makers released them, and a smartiod that is killed then: the memory is the
 * port's own, and who attached is all that tells of it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "restore_world.h"
#include "smartiod/segment/segment.h"

static uint32_t attach_to(struct fixture *f, struct world_client *c, uint32_t id)
{
	struct sio_msg_seg_attach attach = {.segment_id = sio_to_le32(id)};
	const struct world_message *m =
		world_call(f->w, c, SIO_MSG_SEG_ATTACH, &attach, sizeof(attach));

	assert_int_equal(m->error, 0);
	return sio_from_le32(((const struct sio_rep_seg_attach *)m->data)->handle);
}

/* @maker shares segment @id, @other attaches: its handle. */
static uint32_t share(struct fixture *f, struct handles *maker, struct handles *other, uint32_t id)
{
	struct programs *p = &f->p;

	OK(call_seg_export(f->w, maker->c, id, 4096, &maker->segment));
	OK(call_handle(f->w, maker->c, SIO_MSG_SEG_SHARE, maker->segment, 0));
	return attach_to(f, other->c, id);
}

/* It is the port's own then; who attached has it, again and again, and its last handle frees it. */
static void what_the_maker_released_is_restored(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	unsigned mems = world_resources(f->w, SIO_KIND_MEM);
	uint32_t handle = share(f, &p->b, &p->a, 5);

	OK(call_seg_remove(f->w, p->b.c, p->b.segment));
	for (unsigned i = 0; i < 3; i++) {
		restart(f->w);
		assert_true(library_settled(f->w));
		assert_int_equal(library_lost(), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems + 1);
	}
	world_kill(f->w, p->b.c); /* it is not its maker's any more */
	library_gone(p->b.c);
	world_run(f->w);
	attach_to(f, p->c.c, 5);
	OK(call_handle(f->w, p->c.c, SIO_MSG_SEG_REMOVE,
		       sio_from_le32(entry_of(p->c.c, SIO_MSG_SEG_ATTACH).handle), 0));
	assert_int_equal(n_told(p->a.c, SCI_CB_LOST), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems + 1);
	OK(call_handle(f->w, p->a.c, SIO_MSG_SEG_REMOVE, handle, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems);
}

/* Killed when the port had been given it, and before the maker had its answer: it asks again. */
static void released_without_an_answer(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	unsigned mems = world_resources(f->w, SIO_KIND_MEM);
	uint32_t handle = share(f, &p->b, &p->a, 5);

	library_lose_answer(p->b.c);
	OK(call_seg_remove(f->w, p->b.c, p->b.segment));
	restart(f->w);
	assert_true(library_settled(f->w) && !library_busy(p->b.c));
	assert_int_equal(library_lost(), 0);
	assert_int_equal(n_told(p->b.c, SCI_CB_LOST) + n_told(p->a.c, SCI_CB_LOST), 0);
	OK(call_handle(f->w, p->a.c, SIO_MSG_SEG_REMOVE, handle, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems);
}

/*
 * As before, but the maker, who has it again, dies before it can ask: no owner's end frees the
 * memory.
 */
static void released_and_dead(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct sio_msg_restore m;
	unsigned mems;

	share(f, &p->b, &p->a, 5);
	mems = world_resources(f->w, SIO_KIND_MEM);
	m = entry_of(p->b.c, SIO_MSG_SEG_CREATE);
	OK(call_seg_remove(f->w, p->b.c, p->b.segment));
	library_gone(p->b.c);
	restart(f->w);
	world_reconnect(f->w, p->b.c);
	assert_int_equal(say_hello(f->w, p->b.c, p->b.c->owner, SIO_CLIENT_LIBRARY), 0);
	assert_int_equal(say(f->w, p->b.c, &m), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems);
	world_kill(f->w, p->b.c);
	world_run(f->w);
	assert_true(library_settled(f->w));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems - 1);
}

/* The port refused to take it: it stays among its maker's things, who says nothing of it. */
static void what_the_port_refused_is_the_makers(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	unsigned mems = world_resources(f->w, SIO_KIND_MEM);
	uint32_t handle = share(f, &p->b, &p->a, 5);

	f->w->fail_at = f->w->requests + 1;
	OK(call_seg_remove(f->w, p->b.c, p->b.segment));
	restart(f->w);
	assert_true(library_settled(f->w));
	assert_int_equal(library_lost(), 0);
	OK(call_handle(f->w, p->a.c, SIO_MSG_SEG_REMOVE, handle, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems);
}

/*
 * Importers of what only who attached can tell of: each is connected to what another attached to,
 * and says so in the order in which it made that. The segment was made available after both
 * attached.
 */
static void importers_wait_for_who_attached(void **state)
{
	struct sio_msg_seg_adapter adapter = {.adapter = sio_to_le32(0)};
	struct fixture *f = *state;
	struct programs *p = &f->p;
	uint32_t handle[2];

	for (unsigned i = 0; i < 2; i++) {
		struct handles *of = i ? &p->c : &p->b, *other = i ? &p->b : &p->c;

		OK(call_seg_create(f->w, p->a.c, 5 + i, 4096, 0, &handle[i], NULL));
		OK(call_handle(f->w, p->a.c, SIO_MSG_SEG_SHARE, handle[i], 0));
		if (i == 0)
			attach_to(f, of->c, 5);
		adapter.handle = sio_to_le32(handle[i]);
		OK((int)world_call(f->w, p->a.c, SIO_MSG_SEG_PREPARE, &adapter, sizeof(adapter))
			   ->error);
		OK((int)world_call(f->w, p->a.c, SIO_MSG_SEG_AVAILABLE, &adapter, sizeof(adapter))
			   ->error);
		OK(call_seg_connect(f->w, other->c, NODE, 5 + i, &other->connection));
		OK(call_seg_map(f->w, other->c, other->connection, 0, 4096, &other->map));
	}
	for (unsigned i = 0; i < 5; i++) /* it has more to say than the other */
		attach_to(f, p->c.c, 5);
	attach_to(f, p->c.c, 6);
	OK(call_seg_remove(f->w, p->a.c, handle[0]));
	OK(call_seg_remove(f->w, p->a.c, handle[1]));
	restart(f->w);
	assert_true(library_settled(f->w));
	assert_int_equal(library_lost(), 0);
	OK(call_handle(f->w, p->b.c, SIO_MSG_SEG_UNMAP, p->b.map, 0));
	OK(call_handle(f->w, p->c.c, SIO_MSG_SEG_UNMAP, p->c.map, 0));
}

/* Nobody is left who attached; a device may still reach it, until who used that is settled. */
static void nothing_is_left_of_what_nobody_attached_to(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	unsigned mems = world_resources(f->w, SIO_KIND_MEM);
	uint32_t handle, unused = share(f, &p->a, &p->c, 6);

	OK(call_seg_remove(f->w, p->a.c, p->a.segment));
	handle = share(f, &p->a, &p->c, 5);
	OK(call_borrow(f->w, p->b.c, FDID, SCI_FLAG_EXCLUSIVE, &p->b.b));
	OK(call_dev_seg_connect(f->w, p->b.c, p->b.b.handle, 0, SCI_MEMTYPE_BAR, &p->b.bar, NULL));
	OK(call_bar_map(f->w, p->b.c, p->b.bar, 0, &p->b.bar_map, p->b.access));
	OK(call_handle(f->w, p->b.c, SIO_MSG_DEV_RELEASE_EXCLUSIVE, p->b.b.handle, 0));
	OK(call_borrow(f->w, p->c.c, FDID, 0, &p->c.b));
	OK(call_dma_map_at(f->w, p->c.c, p->c.b.handle, handle, 0, 0, 4096, &p->c.dma,
			   &p->c.ioaddr));
	OK(call_seg_remove(f->w, p->a.c, p->a.segment));
	assert_int_not_equal(handle, unused);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems + 2);
	world_stop(f->w, 0);
	library_gone(p->c.c);
	world_kill(f->w, p->c.c);
	restart(f->w);
	assert_true(library_settled(f->w));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems + 1);
	OK(call_settled(f->w, p->b.c, p->b.b.handle, p->c.b.id));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems);
}

/*
 * A device segment lies under the mapping of a borrower that died before: it is not given back with
 * its last connection, but when the quarantine ends.
 */
static void mappings_of_the_dead_are_counted(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	struct smartiod_tree_node *n;
	uint32_t own, of_c, map;
	unsigned mapped = 0;

	make_all(f->w, p);
	OK(call_dev_seg_create(f->w, p->b.c, p->b.b.handle, 9, 4096, SCI_MEMTYPE_SHARED,
			       SCI_MEMACCESS_DEVICE_READ, 0));
	OK(call_dev_seg_connect(f->w, p->b.c, p->b.b.handle, 9, SCI_MEMTYPE_SHARED, &own, NULL));
	OK(call_dev_seg_connect(f->w, p->c.c, p->c.b.handle, 9, SCI_MEMTYPE_SHARED, &of_c, NULL));
	OK(call_dma_map(f->w, p->c.c, p->c.b.handle, of_c, 1, 0, 4096, &map));
	library_gone(p->c.c);
	world_kill(f->w, p->c.c);
	world_run(f->w);
	restart(f->w);
	assert_true(library_settled(f->w));
	for (n = smartiod_tree_after(&f->w->host[0].daemon->segments, 0); n;
	     n = smartiod_tree_after(&f->w->host[0].daemon->segments, n->key)) {
		const struct smartiod_segment *s = SMARTIOD_OF(n, struct smartiod_segment, by_uid);

		mapped += s->id == 9 && s->device ? s->dma : 0;
	}
	assert_int_equal(mapped, 1);
	OK(call_handle(f->w, p->b.c, SIO_MSG_SEG_DISCONNECT, own, 0));
	world_run(f->w);
	OK(call_settled(f->w, p->b.c, p->b.b.handle, p->c.b.id));
	assert_true(library_settled(f->w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_the_maker_released_is_restored),
		TEST(released_without_an_answer),
		TEST(released_and_dead),
		TEST(what_the_port_refused_is_the_makers),
		TEST(importers_wait_for_who_attached),
		TEST(mappings_of_the_dead_are_counted),
		TEST(nothing_is_left_of_what_nobody_attached_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
