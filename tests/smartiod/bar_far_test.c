/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BAR pages of a device that another one reaches, on real hosts: where they, and the program that
 * has borrowed both, may be; whose they may be; until when.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "bar_far_world.h"
#include "smartiod/base/peer.h"
#include "smartiod/daemon/bond.h"

static void pages_are_mapped(void **state)
{
	struct fixture *f = *state;
	uint32_t memory, more, bells;

	assert_int_equal(far_map(f, f->cmb, 2 * PAGE, 3 * PAGE, &memory), 0);
	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &more), 0);
	assert_int_equal(far_map(f, f->regs, 0x1000, PAGE, &bells), 0);
	assert_int_equal(far_reach(f, false), 3);
	assert_int_equal(far_views(f, MEMORY), 1);
	assert_int_equal(far_unmap(f, memory), 0);
	assert_int_equal(far_views(f, MEMORY), 1);
	assert_int_equal(far_unmap(f, more), 0);
	assert_int_equal(far_views(f, MEMORY), 0);
	assert_int_equal(far_unmap(f, more), EBADF);
	assert_int_equal(far_unmap(f, bells), 0);
	assert_int_equal(far_reach(f, false), 0);
	assert_int_equal(far_views(f, 0x1000), 1); /* its own */
}

/* ---- the pages are taken away ---- */

/* Nobody is there to hear of it, though all are: their connection is away. */
static void a_reset_that_nobody_says(void **state)
{
	struct fixture *f = *state;
	uint32_t bells;

	assert_int_equal(far_map(f, f->regs, 0x1000, PAGE, &bells), 0);
	world_cut(f->w, LENDER, BORROWER);
	world_cut(f->w, LENDER, OTHER);
	far_reset(f);
	world_pass(f->w, MEET);
	assert_int_equal(far_reach(f, true), 1);
	assert_int_equal(far_unmap(f, bells), 0);
}

static void a_target_that_is_pulled_out_is_cut(void **state)
{
	struct fixture *f = *state;
	uint32_t dma;

	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &dma), 0);
	assert_true(fake_device_move_one(f->w, &f->target, false));
	world_run(f->w);
	assert_int_equal(far_reach(f, false), 0);
	assert_int_equal(far_reach(f, true), 1);
	assert_int_equal(far_unmap(f, dma), 0);
	assert_int_equal(far_reach(f, true), 0);
	assert_true(fake_device_move_one(f->w, &f->target, true));
	world_run(f->w);
}

/* ---- the way there ---- */

/* Cut by the IOMMU of the drive's host; without one that of the other end holds off what comes. */
static bool is_cut(const struct fixture *f)
{
	return far_leads(f) == 0 && (far_reach(f, false) == 0 || f->drive.iommu == SIO_IOMMU_OFF);
}

/* The lender's daemon has not even met the other's since its start. */
static void the_path_is_lost(struct fixture *f, bool unmet)
{
	uint32_t dma;

	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &dma), 0);
	if (unmet)
		world_restart(f->w, LENDER);
	world_path(f->w, LENDER, f->at, 0, false);
	world_pass(f->w, MEET);
	assert_true(is_cut(f));
	world_path(f->w, LENDER, f->at, 0, true);
	world_pass(f->w, MEET);
	assert_true(is_cut(f));
}

static void a_path_that_goes_cuts(void **state)
{
	the_path_is_lost(*state, false);
}

/* Memory of that host stays mapped: a queue may lie there, and the path may come back. */
static void but_not_of_memory(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = world_client(f->w, f->at, SIO_CLIENT_LIBRARY);
	uint32_t handle, segment, dma, bar;

	assert_int_equal(call_seg_export(f->w, other, 77, PAGE, &handle), 0);
	assert_int_equal(call_seg_connect(f->w, f->c, NODE(f->at), 77, &segment), 0);
	assert_int_equal(far_map(f, segment, 0, PAGE, &dma), 0);
	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &bar), 0);
	assert_int_equal(far_reach(f, false), 2);
	world_restart(f->w, LENDER);
	world_path(f->w, LENDER, f->at, 0, false);
	world_pass(f->w, MEET);
	assert_int_equal(far_reach(f, false), 1);
	assert_int_equal(far_reach(f, true), 1);
	world_path(f->w, LENDER, f->at, 0, true);
	world_pass(f->w, MEET);
	assert_int_equal(far_reach(f, false), 1);
	assert_int_equal(far_unmap(f, dma), 0);
	assert_int_equal(far_unmap(f, bar), 0);
}

/*
 * Without an IOMMU the drive may send to the window's address yet, so that is nobody else's before
 * the program unmaps it. The other end holds off what comes.
 */
static void its_window_stays(struct fixture *f, bool host)
{
	uint32_t dma;

	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &dma), 0);
	assert_int_equal(far_windows(f), 1);
	if (host)
		world_stop(f->w, f->at);
	else
		world_path(f->w, LENDER, f->at, 0, false);
	world_pass(f->w, host ? 2 * SMARTIOD_EXPECT_NS : MEET);
	if (host)
		world_restart(f->w, f->at);
	else
		world_path(f->w, LENDER, f->at, 0, true);
	world_pass(f->w, MEET);
	assert_int_equal(far_leads(f), 0);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, false), 1);
	assert_int_equal(far_windows(f), 1);
	assert_int_equal(far_unmap(f, dma), 0);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, false), 0);
	assert_int_equal(far_windows(f), 0);
}

static void a_window_that_leads_nowhere_stays(void **state)
{
	its_window_stays(*state, false);
}

static void so_it_does_when_its_host_goes(void **state)
{
	its_window_stays(*state, true);
}

static void so_it_does_when_nobody_has_been_met(void **state)
{
	the_path_is_lost(*state, true);
}

/* The port of the drive's host does not answer yet. Return: the request's number. */
static uint32_t begin_to_map(struct fixture *f)
{
	struct sio_msg_dma_map msg = {.device = sio_to_le32(f->on.handle),
				      .segment = sio_to_le32(f->regs),
				      .remote = sio_to_le32(1),
				      .offset = sio_to_le64(0x1000),
				      .bytes = sio_to_le64(PAGE)};
	uint32_t id;

	f->w->late = SIO_OP_DMAMAP;
	id = world_send(f->w, f->c, SIO_MSG_DMA_MAP, &msg, sizeof(msg));
	world_run(f->w);
	assert_null(world_reply(f->c, id));
	return id;
}

static const struct world_message *mapped(struct fixture *f, uint32_t id)
{
	f->w->late = 0;
	world_run(f->w);
	assert_non_null(world_reply(f->c, id));
	return world_reply(f->c, id);
}

/* The other's daemon starts again while the port maps its pages: it learns what they are for. */
static void pages_that_are_being_mapped(void **state)
{
	struct fixture *f = *state;
	const struct sio_rep_dma_map *rep;
	const struct world_message *m;
	uint32_t id = begin_to_map(f);

	far_restart(f, f->at);
	m = mapped(f, id);
	assert_int_equal(m->error, 0);
	rep = (const void *)m->data;
	assert_int_equal(far_leads(f), 1);
	far_reset(f);
	assert_int_equal(far_leads(f), 0);
	assert_int_equal(far_unmap(f, sio_from_le32(rep->map)), 0);
}

/* They are taken away meanwhile, which nobody could say. */
static void pages_that_went_while_they_were_mapped(void **state)
{
	struct fixture *f = *state;
	uint32_t id = begin_to_map(f);

	world_cut(f->w, LENDER, f->at);
	far_reset(f);
	world_pass(f->w, MEET);
	assert_int_equal(mapped(f, id)->error, ECONNRESET);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, false), 0);
	assert_int_equal(far_windows(f), 0);
}

/* Its host is given up, perhaps before it could say of what the pages are. */
static void the_reached_host_is_lost(struct fixture *f, bool unmet)
{
	uint32_t dma;

	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &dma), 0);
	world_stop(f->w, f->at);
	world_run(f->w);
	if (unmet)
		world_restart(f->w, LENDER);
	world_pass(f->w, 2 * SMARTIOD_EXPECT_NS);
	/* Without a daemon there the pages become nobody else's. */
	assert_true(is_cut(f) || f->drive.iommu == SIO_IOMMU_OFF);
	world_restart(f->w, f->at);
	world_pass(f->w, MEET);
	assert_true(is_cut(f));
}

static void a_host_that_goes_cuts(void **state)
{
	the_reached_host_is_lost(*state, false);
}

static void so_it_does_when_it_has_not_been_met(void **state)
{
	the_reached_host_is_lost(*state, true);
}

/* ---- what is refused ---- */

static void only_what_its_borrower_may_write(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = world_client(f->w, f->who, SIO_CLIENT_LIBRARY);
	struct call_borrow on, of;
	uint32_t regs, cmb, own, node, dma, access[4];

	assert_int_equal(call_borrow(f->w, other, DRIVE, 0, &on), 0);
	call_take(f->w, other, far_target(f), 0, &of, &regs, &node, access);
	assert_int_equal(access[0], SIO_ACCESS_READ);
	assert_int_equal(
		call_dev_seg_connect(f->w, other, of.handle, CMB_BAR, SCI_MEMTYPE_BAR, &cmb, &node),
		0);
	/* Registers, and memory that their owner gives out, of the one who holds them alone. */
	assert_int_equal(call_dma_map(f->w, other, on.handle, regs, 1, 0, PAGE, &dma), EACCES);
	assert_int_equal(call_dma_map(f->w, other, on.handle, cmb, 1, 0, PAGE, &dma), EACCES);
	/* The interrupt table of nobody, nor pages of two kinds at once, nor what is behind. */
	for (unsigned page = 0; page < 4; page++)
		assert_int_equal(far_map(f, f->regs, page * PAGE, 4 * PAGE - page * PAGE, &dma),
				 EACCES);
	assert_int_equal(far_map(f, f->regs, 2 * PAGE, PAGE, &dma), EACCES);
	assert_int_equal(far_map(f, f->regs, 0, 2 * PAGE, &dma), EACCES);
	assert_int_equal(far_map(f, f->cmb, CMB - PAGE, 2 * PAGE, &dma), ERANGE);
	/* Its own, as no switch leads it there. */
	assert_int_equal(
		call_dev_seg_connect(f->w, f->c, f->on.handle, 0, SCI_MEMTYPE_BAR, &own, &node), 0);
	assert_int_equal(far_map(f, own, 0x1000, PAGE, &dma), EOPNOTSUPP);
	assert_int_equal(fake_count(f->w, SIO_KIND_DMAMAP, false), 0);
	/* Doorbells are each borrower's. */
	assert_int_equal(call_dma_map(f->w, other, on.handle, regs, 1, PAGE, PAGE, &dma), 0);
	assert_int_equal(far_map(f, f->regs, 0, PAGE, &dma), 0);
	assert_int_equal(far_reach(f, false), 2);
}

/* A daemon that lies about the other borrow does not know its ticket. */
static void nobody_else_gets_the_pages(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = world_client(f->w, OTHER, SIO_CLIENT_LIBRARY);
	struct sio_peer_dma_map lie = {
		.h.type = sio_to_le32(SIO_PEER_DMA_MAP),
		.h.size = sio_to_le32(sizeof(lie)),
		.h.id = sio_to_le32(0x7777),
		.uid = sio_to_le64(f->of.id),
		.connection = sio_to_le64(1),
		.bytes = sio_to_le64(PAGE),
		.fdid = sio_to_le32(DRIVE),
		.exporter = sio_to_le32(NODE(f->at)),
		.adapter = sio_to_le32(SIO_PEER_ANY_ADAPTER),
		.target = sio_to_le32(far_target(f)),
		.bar = sio_to_le32(CMB_BAR),
	};
	struct call_borrow on;

	assert_int_equal(call_borrow(f->w, other, DRIVE, 0, &on), 0);
	lie.borrower = sio_to_le64(on.id);
	smartiod_peer_message(f->w->host[LENDER].daemon, NODE(OTHER), &lie, sizeof(lie));
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_DMAMAP), 0);
	assert_int_equal(far_views(f, MEMORY), 0);
}

/* A borrower's daemon says that a device's mapping is of memory; the target's knows better. */
static void a_borrower_that_lies_keeps_nothing(void **state)
{
	struct fixture *f = *state;
	struct sio_peer_resume_dma lie = {
		.h.type = sio_to_le32(SIO_PEER_RESUME_DMA),
		.h.size = sio_to_le32(sizeof(lie)),
		.borrower = sio_to_le64(f->on.id),
		.fdid = sio_to_le32(DRIVE),
	};
	uint32_t bells;

	assert_int_equal(far_map(f, f->regs, 0x1000, PAGE, &bells), 0);
	for (const struct world_res *r = f->w->res; r; r = r->next)
		if (r->kind == SIO_KIND_DMAMAP)
			lie.map = sio_to_le64(r->id);
	world_restart(f->w, LENDER);
	while (smartiod_peer_find(f->w->host[LENDER].daemon, NODE(BORROWER))->state !=
	       SMARTIOD_PEER_READY)
		if (!world_step(f->w))
			world_tick(f->w, MEET / 100);
	smartiod_peer_message(f->w->host[LENDER].daemon, NODE(BORROWER), &lie, sizeof(lie));
	world_pass(f->w, MEET);
	assert_int_equal(far_reach(f, false), 1);
	far_reset(f);
	assert_int_equal(far_reach(f, true), 1);
	assert_int_equal(far_unmap(f, bells), 0);
}

/* Nor does a third host's that takes away what is not its own. */
static void nobody_else_cuts(void **state)
{
	struct fixture *f = *state;
	struct sio_peer_bar_cut lie = {.h.type = sio_to_le32(SIO_PEER_BAR_CUT),
				       .h.size = sio_to_le32(sizeof(lie))};
	uint32_t dma;

	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &dma), 0);
	for (const struct world_res *r = f->w->res; r; r = r->next)
		if (r->kind == SIO_KIND_GRANT) {
			lie.grant = sio_to_le64(r->id);
			smartiod_peer_message(f->w->host[LENDER].daemon,
					      NODE(f->at == OTHER ? BORROWER : OTHER), &lie,
					      sizeof(lie));
		}
	world_run(f->w);
	assert_int_equal(far_reach(f, false), 1);
}

static void without_an_iommu_it_is_refused(void **state)
{
	struct fixture *f = *state;
	uint32_t dma;

	assert_int_equal(far_map(f, f->cmb, 0, PAGE, &dma), EOPNOTSUPP);
	assert_int_equal(far_map(f, f->regs, 0x1000, PAGE, &dma), EOPNOTSUPP);
	assert_int_equal(world_resources(f->w, SIO_KIND_DMAMAP), 0);
	assert_int_equal(far_views(f, MEMORY), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ANYWHERE(pages_are_mapped),
		FAR(a_reset_that_nobody_says),
		ANYWHERE(a_target_that_is_pulled_out_is_cut),
		cmocka_unit_test_setup_teardown(but_not_of_memory, far_third, far_teardown),
		WINDOW(a_path_that_goes_cuts),
		AT(held, a_window_that_leads_nowhere_stays),
		AT(held, so_it_does_when_its_host_goes),
		WINDOW(so_it_does_when_nobody_has_been_met),
		WINDOW(a_host_that_goes_cuts),
		WINDOW(so_it_does_when_it_has_not_been_met),
		WINDOW(pages_that_are_being_mapped),
		WINDOW(pages_that_went_while_they_were_mapped),
		ANYWHERE(only_what_its_borrower_may_write),
		ANYWHERE(nobody_else_gets_the_pages),
		AT(third, a_borrower_that_lies_keeps_nothing),
		FAR(nobody_else_cuts),
		AT(beside_without, without_an_iommu_it_is_refused),
		AT(neither, without_an_iommu_it_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
