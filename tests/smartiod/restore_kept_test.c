/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments that were removed while importers are connected to them, and a smartiod that is killed
 * then: nobody but the importers tells of the memory.
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

#define ID 25

/* @p->a makes segment ID, @p->b and @p->c connect to it and map it. */
static void share(struct fixture *f)
{
	struct programs *p = &f->p;
	struct handles *importer[] = {&p->b, &p->c};

	OK(call_seg_export(f->w, p->a.c, ID, 4096, &p->a.segment));
	for (unsigned i = 0; i < 2; i++) {
		OK(call_seg_connect(f->w, importer[i]->c, NODE, ID, &importer[i]->connection));
		OK(call_seg_map(f->w, importer[i]->c, importer[i]->connection, 0, 4096,
				&importer[i]->map));
	}
}

/* How often an importer was told that it was removed; -1: something else was told. */
static int removals_told(struct world_client *c)
{
	const struct sio_evm_segment *e;
	int n = 0;

	for (unsigned i = 0; (e = world_event(c, SIO_EVM_SEGMENT_REMOTE, i)); i++) {
		if (sio_from_le32(e->loss) != SIO_LOSS_REMOVED ||
		    sio_from_le32(e->reason) != SCI_CB_DISCONNECT)
			return -1;
		n++;
	}
	return n;
}

/* It is there for both, nobody else finds it, and the last one that leaves frees it. */
static void check_kept(struct fixture *f, unsigned mems)
{
	struct programs *p = &f->p;
	uint32_t c, m;

	assert_true(removals_told(p->b.c) > 0);
	assert_true(removals_told(p->c.c) > 0);
	assert_int_equal(call_seg_connect(f->w, p->c.c, NODE, ID, &c), ENOENT);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems);
	OK(call_seg_map(f->w, p->b.c, p->b.connection, 0, 4096, &m));
	OK(call_handle(f->w, p->b.c, SIO_MSG_SEG_UNMAP, m, 0));
	OK(call_handle(f->w, p->b.c, SIO_MSG_SEG_UNMAP, p->b.map, 0));
	OK(call_handle(f->w, p->b.c, SIO_MSG_SEG_DISCONNECT, p->b.connection, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems);
	OK(call_handle(f->w, p->c.c, SIO_MSG_SEG_UNMAP, p->c.map, 0));
	OK(call_handle(f->w, p->c.c, SIO_MSG_SEG_DISCONNECT, p->c.connection, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems - 1);
}

static void a_kept_segment_is_restored(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	unsigned mems = world_resources(f->w, SIO_KIND_MEM) + 1;

	share(f);
	OK(call_seg_remove(f->w, p->a.c, p->a.segment));
	for (unsigned i = 0; i < 3; i++) {
		restart(f->w);
		assert_true(library_settled(f->w));
		assert_int_equal(library_lost(), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems);
	}
	world_kill(f->w, p->a.c); /* it is not its maker's any more */
	library_gone(p->a.c);
	world_run(f->w);
	restart(f->w);
	check_kept(f, mems);
}

/* Its number is another's meanwhile. */
static void its_number_is_free(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	unsigned mems = world_resources(f->w, SIO_KIND_MEM) + 1;
	uint32_t again;

	share(f);
	OK(call_seg_remove(f->w, p->a.c, p->a.segment));
	OK(call_seg_export(f->w, p->a.c, ID, 8192, &again));
	restart(f->w);
	assert_true(library_settled(f->w));
	assert_int_equal(library_lost(), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems + 1);
	OK(call_seg_remove(f->w, p->a.c, again));
	check_kept(f, mems);
}

/* Killed when the port had given it, and before the maker had its answer: it asks again. */
static void removed_without_an_answer(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	unsigned mems = world_resources(f->w, SIO_KIND_MEM) + 1;

	share(f);
	library_lose_answer(p->a.c);
	OK(call_seg_remove(f->w, p->a.c, p->a.segment));
	restart(f->w);
	assert_true(library_settled(f->w) && !library_busy(p->a.c));
	assert_int_equal(library_lost(), 0);
	check_kept(f, mems);
}

/* The port refused to give it: it stays among its maker's things, who says nothing of it. */
static void what_the_port_refused_is_restored(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	unsigned mems = world_resources(f->w, SIO_KIND_MEM) + 1;

	share(f);
	f->w->fail_at = f->w->requests + 1;
	OK(call_seg_remove(f->w, p->a.c, p->a.segment));
	f->w->fail_at = 0;
	for (unsigned i = 0; i < 2; i++) {
		restart(f->w);
		assert_true(library_settled(f->w));
		assert_int_equal(library_lost(), 0);
	}
	check_kept(f, mems);
}

/* All importers died while no smartiod was there: nobody tells of it, and it goes. */
static void nobody_is_left(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	unsigned mems = world_resources(f->w, SIO_KIND_MEM);

	share(f);
	OK(call_seg_remove(f->w, p->a.c, p->a.segment));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems + 1);
	world_stop(f->w, 0);
	library_gone(p->b.c);
	world_kill(f->w, p->b.c);
	library_gone(p->c.c);
	world_kill(f->w, p->c.c);
	restart(f->w);
	assert_true(library_settled(f->w));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems);
}

/* A device reaches it by an importer's mapping, which is restored with it. */
static void a_device_reaches_it(void **state)
{
	struct fixture *f = *state;
	struct programs *p = &f->p;
	unsigned mems;

	make_all(f->w, p);
	mems = world_resources(f->w, SIO_KIND_MEM);
	OK(call_seg_export(f->w, p->a.c, ID, 4096, &p->a.segment));
	OK(call_seg_connect(f->w, p->c.c, NODE, ID, &p->c.connection));
	OK(call_dma_map_at(f->w, p->c.c, p->c.b.handle, p->c.connection, 1, 0, 4096, &p->c.dma,
			   &p->c.ioaddr));
	/* A program of this host has it mapped for a device. */
	assert_int_equal(call_seg_remove(f->w, p->a.c, p->a.segment), EBUSY);
	OK(call_handle(f->w, p->c.c, SIO_MSG_DMA_UNMAP, p->c.dma, 0));
	OK(call_seg_remove(f->w, p->a.c, p->a.segment));
	OK(call_dma_map_at(f->w, p->c.c, p->c.b.handle, p->c.connection, 1, 0, 4096, &p->c.dma,
			   &p->c.ioaddr));
	restart(f->w);
	assert_true(library_settled(f->w));
	assert_int_equal(library_lost(), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems + 1);
	assert_int_equal(call_handle(f->w, p->c.c, SIO_MSG_SEG_DISCONNECT, p->c.connection, 0),
			 EBUSY);
	OK(call_handle(f->w, p->c.c, SIO_MSG_DMA_UNMAP, p->c.dma, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems + 1);
	OK(call_handle(f->w, p->c.c, SIO_MSG_SEG_DISCONNECT, p->c.connection, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), mems);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_kept_segment_is_restored),
		TEST(its_number_is_free),
		TEST(removed_without_an_answer),
		TEST(what_the_port_refused_is_restored),
		TEST(nobody_is_left),
		TEST(a_device_reaches_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
