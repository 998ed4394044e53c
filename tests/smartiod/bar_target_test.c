/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BAR pages of one device of a real host that another one of it reaches: which, and until when.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "bar_target_world.h"

static void memory_of_another_device_is_mapped(void **state)
{
	struct fixture *f = *state;
	const struct world_res *r;
	uint32_t dma, more;

	assert_int_equal(map(f, f->cmb, 2 * PAGE, 3 * PAGE, &dma), 0);
	assert_int_equal(map(f, f->cmb, 0, PAGE, &more), 0);
	assert_int_equal(reach(f, false), 2);
	assert_int_equal(views(f, MEMORY), 1);
	for (r = f->w->res; r; r = r->next)
		if (r->kind == SIO_KIND_DMAMAP) {
			assert_int_equal(r->device, f->drive.id);
			assert_int_equal(r->target_kind, SIO_KIND_BAR);
		}
	assert_int_equal(unmap(f, dma), 0);
	assert_int_equal(views(f, MEMORY), 1);
	assert_int_equal(unmap(f, more), 0);
	assert_int_equal(views(f, MEMORY), 0);
	assert_int_equal(unmap(f, more), EBADF);
}

/* All of a BAR that nobody knows is one run of registers; a program maps what it needs of them. */
static void a_part_of_registers_is_mapped(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_seg_map whole = {.handle = sio_to_le32(f->cmb), .bytes = sio_to_le64(CMB)};
	struct sio_msg_seg_map part = {.handle = sio_to_le32(f->cmb),
				       .offset = sio_to_le64(3 * PAGE),
				       .bytes = sio_to_le64(2 * PAGE)};
	const struct world_message *m =
		world_call(f->w, f->c, SIO_MSG_SEG_MAP, &whole, sizeof(whole));
	const struct sio_rep_seg_map *rep = (const void *)m->data;
	uint64_t at;

	assert_int_equal(m->error, 0);
	assert_int_equal(sio_from_le32(rep->n_pieces), 1);
	assert_int_equal(sio_from_le64(rep->piece[0].bytes), CMB);
	at = sio_from_le64(rep->piece[0].fd_offset);
	m = world_call(f->w, f->c, SIO_MSG_SEG_MAP, &part, sizeof(part));
	rep = (const void *)m->data;
	assert_int_equal(m->error, 0);
	assert_int_equal(sio_from_le32(rep->n_pieces), 1);
	assert_int_equal(sio_from_le64(rep->piece[0].offset), 3 * PAGE);
	assert_int_equal(sio_from_le64(rep->piece[0].bytes), 2 * PAGE);
	assert_int_equal(sio_from_le64(rep->piece[0].fd_offset), at + 3 * PAGE);
	assert_int_equal(views(f, MEMORY), 1);
}

static void without_an_iommu_it_is_refused(void **state)
{
	struct fixture *f = *state;
	uint32_t dma;

	assert_int_equal(map(f, f->cmb, 0, PAGE, &dma), EOPNOTSUPP);
	assert_int_equal(map(f, f->regs, 0x1000, PAGE, &dma), EOPNOTSUPP);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, false), 0);
	assert_int_equal(views(f, MEMORY), 0);
}

static void only_what_its_borrower_may_write(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	struct call_borrow on, of;
	uint32_t regs, cmb, own, node, dma, access[4];

	assert_int_equal(call_borrow(f->w, other, DRIVE, 0, &on), 0);
	call_take(f->w, other, TARGET, 0, &of, &regs, &node, access);
	assert_int_equal(access[0], SIO_ACCESS_READ);
	assert_int_equal(
		call_dev_seg_connect(f->w, other, of.handle, CMB_BAR, SCI_MEMTYPE_BAR, &cmb, &node),
		0);
	/* Registers, and memory that their owner gives out, of the one who holds them alone. */
	assert_int_equal(call_dma_map(f->w, other, on.handle, regs, 1, 0, PAGE, &dma), EACCES);
	assert_int_equal(call_dma_map(f->w, other, on.handle, cmb, 1, 0, PAGE, &dma), EACCES);
	/* The interrupt table of nobody, nor pages of two kinds at once, nor what is behind. */
	for (unsigned page = 0; page < 4; page++)
		assert_int_equal(map(f, f->regs, page * PAGE, 4 * PAGE - page * PAGE, &dma),
				 EACCES);
	assert_int_equal(map(f, f->regs, 2 * PAGE, PAGE, &dma), EACCES);
	assert_int_equal(map(f, f->regs, 0, 2 * PAGE, &dma), EACCES);
	assert_int_equal(map(f, f->cmb, CMB - PAGE, 2 * PAGE, &dma), ERANGE);
	/* Its own, as no switch leads it there. */
	assert_int_equal(
		call_dev_seg_connect(f->w, f->c, f->on.handle, 0, SCI_MEMTYPE_BAR, &own, &node), 0);
	assert_int_equal(map(f, own, 0x1000, PAGE, &dma), EOPNOTSUPP);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, false), 0);
	/* Doorbells are each borrower's. */
	assert_int_equal(call_dma_map(f->w, other, on.handle, regs, 1, PAGE, PAGE, &dma), 0);
	assert_int_equal(map(f, f->regs, 0, PAGE, &dma), 0);
	assert_int_equal(reach(f, false), 2);
}

/* In memory that who holds the registers gives out; see bar_queue_test.c. */
static void a_queue_does_not_lie_there(void **state)
{
	struct fixture *f = *state;
	uint32_t own, own_map, access[4], dma, node;
	uint64_t at, hold;

	assert_int_equal(
		call_dev_seg_connect(f->w, f->c, f->on.handle, 0, SCI_MEMTYPE_BAR, &own, &node), 0);
	assert_int_equal(call_bar_map(f->w, f->c, own, 0, &own_map, access), 0);
	assert_int_equal(call_dma_map_at(f->w, f->c, f->on.handle, f->cmb, 1, 0, PAGE, &dma, &at),
			 0);
	assert_int_equal(call_hold(f->w, f->c, f->on.handle, f->on.id, at, PAGE, &hold),
			 EOPNOTSUPP);
	/* What is gone is not "not mapped": its borrower did as it should. */
	assert_true(fake_device_move_one(f->w, &f->target, false));
	world_run(f->w);
	assert_int_equal(call_hold(f->w, f->c, f->on.handle, f->on.id, at, PAGE, &hold), ENOENT);
	assert_int_equal(call_hold(f->w, f->c, f->on.handle, f->on.id, at, 2 * PAGE, &hold),
			 ERANGE);
	assert_int_equal(unmap(f, dma), 0);
	assert_int_equal(call_hold(f->w, f->c, f->on.handle, f->on.id, at, PAGE, &hold), ERANGE);
	assert_true(fake_device_move_one(f->w, &f->target, true));
	world_run(f->w);
}

/* Doorbells are another's after a reset; registers are still their owner's. */
static void a_reset_cuts_doorbells(void **state)
{
	struct fixture *f = *state;
	uint32_t bells, regs, again;

	assert_int_equal(map(f, f->regs, 0x1000, PAGE, &bells), 0);
	assert_int_equal(map(f, f->regs, 0, PAGE, &regs), 0);
	reset_target(f);
	assert_int_equal(reach(f, true), 1);
	assert_int_equal(reach(f, false), 1);
	assert_int_equal(views(f, 0x1000), 0);
	assert_int_equal(map(f, f->regs, 0x1000, PAGE, &again), 0);
	assert_int_equal(reach(f, false), 2);
	assert_int_equal(unmap(f, bells), 0);
	assert_int_equal(unmap(f, again), 0);
	assert_int_equal(unmap(f, regs), 0);
	assert_int_equal(reach(f, true) + reach(f, false), 0);
}

/* What its drive still does goes nowhere, and its address is nobody else's before it is settled. */
static void the_end_of_the_program_cuts_all(void **state)
{
	struct fixture *f = *state;
	uint32_t dma;

	assert_int_equal(map(f, f->cmb, 0, PAGE, &dma), 0);
	assert_int_equal(map(f, f->regs, 0, PAGE, &dma), 0);
	f->w->before_step = NULL;
	library_gone(f->c);
	fake_device_resets(f->w, false);
	world_kill(f->w, f->c);
	world_run(f->w);
	assert_int_equal(reach(f, false), 0);
	assert_int_equal(fake_count(f->w, SIO_KIND_BAR, false), 0);
	f->w->before_step = library_pump;
}

static void a_target_that_is_pulled_out_is_cut(void **state)
{
	struct fixture *f = *state;
	uint32_t dma;

	assert_int_equal(map(f, f->cmb, 0, PAGE, &dma), 0);
	assert_true(fake_device_move_one(f->w, &f->target, false));
	world_run(f->w);
	assert_int_equal(reach(f, false), 0);
	assert_int_equal(reach(f, true), 1);
	assert_int_equal(unmap(f, dma), 0);
	assert_int_equal(reach(f, true), 0);
	assert_true(fake_device_move_one(f->w, &f->target, true));
	world_run(f->w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(memory_of_another_device_is_mapped),
		cmocka_unit_test_setup_teardown(a_part_of_registers_is_mapped, setup_strange,
						teardown),
		cmocka_unit_test_setup_teardown(without_an_iommu_it_is_refused, setup_without_iommu,
						teardown),
		TEST(only_what_its_borrower_may_write),
		TEST(a_queue_does_not_lie_there),
		TEST(a_reset_cuts_doorbells),
		TEST(the_end_of_the_program_cuts_all),
		TEST(a_target_that_is_pulled_out_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
