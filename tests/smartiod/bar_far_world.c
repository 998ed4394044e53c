/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "bar_far_world.h"

/* IOMMUs: of the host that lends the drive, and of its adapter; of the others. */
#define IOMMU_HERE 1u
#define IOMMU_THERE 2u
#define IOMMUS 3u

uint32_t far_target(const struct fixture *f)
{
	return (uint32_t)NODE(f->at) << 20 | 0x200; /* by its place */
}

static int setup(void **state, unsigned at, unsigned who, unsigned iommus)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct world *w = world_new(3, 0);
	uint32_t node;

	assert_non_null(f);
	*state = f;
	f->w = w;
	f->at = at;
	f->who = who;
	fake_device_add(w, &f->drive);
	if (at == LENDER)
		fake_device_add_second(w, &f->target);
	else
		fake_device_add_far(w, &f->target, at);
	f->drive.iommu = iommus & IOMMU_HERE ? SIO_IOMMU_STRICT : SIO_IOMMU_OFF;
	f->target.iommu = at == LENDER ? f->drive.iommu : SIO_IOMMU_OFF;
	w->iommu = iommus & IOMMU_THERE; /* that of the drive's host is not asked for */
	w->lossy = !w->iommu;		 /* pages of BARs are taken away at once */
	f->target.cmb = CMB;
	world_real(w);
	world_start(w);
	library_begin(w);
	w->before_step = library_pump;
	f->c = world_client(w, who, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, f->c, DRIVE, 0, &f->on), 0);
	call_take(w, f->c, far_target(f), 0, &f->of, &f->regs, &f->regs_map, f->access);
	assert_int_equal(f->access[0], 3);
	assert_int_equal(call_dev_seg_connect(w, f->c, f->of.handle, CMB_BAR, SCI_MEMTYPE_BAR,
					      &f->cmb, &node),
			 0);
	return 0;
}

/* The target is the drive's neighbour; in a third host; in the program's own host. */
int far_beside(void **state)
{
	return setup(state, LENDER, BORROWER, IOMMUS);
}

int far_third(void **state)
{
	return setup(state, OTHER, BORROWER, IOMMUS);
}

int far_own(void **state)
{
	return setup(state, BORROWER, BORROWER, IOMMUS);
}

/* The program is where the drive is, and the target is not. */
int far_near(void **state)
{
	return setup(state, OTHER, LENDER, IOMMUS);
}

/* Windows of a host without an IOMMU, whose other end has one; the reverse; neither. */
int far_held(void **state)
{
	return setup(state, OTHER, BORROWER, IOMMU_THERE);
}

int far_cut(void **state)
{
	return setup(state, OTHER, BORROWER, IOMMU_HERE);
}

int far_neither(void **state)
{
	return setup(state, OTHER, BORROWER, 0);
}

int far_beside_without(void **state)
{
	return setup(state, LENDER, BORROWER, IOMMU_THERE);
}

int far_teardown(void **state)
{
	struct fixture *f = *state;

	library_end(f->w);
	world_pass(f->w, SMARTIOD_GRACE_NS);
	call_last_reset(f->w, DRIVE);
	assert_well_ended(f->w);
	assert_int_equal(f->drive.bad, 0);
	assert_int_equal(f->target.bad, 0);
	assert_int_equal(f->drive.disturbed, 0);
	world_free(f->w);
	free(f);
	return 0;
}

void far_restart(struct fixture *f, unsigned host)
{
	world_restart(f->w, host);
	world_pass(f->w, MEET);
	for (unsigned i = 0; i < f->w->n_hosts; i++)
		assert_true(i == LENDER || f->w->open[LENDER][i]);
	assert_true(library_settled(f->w));
}

int far_map(struct fixture *f, uint32_t bar, uint64_t offset, uint64_t bytes, uint32_t *ret)
{
	return call_dma_map(f->w, f->c, f->on.handle, bar, 1, offset, bytes, ret);
}

int far_unmap(struct fixture *f, uint32_t dma)
{
	return call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, dma, 0);
}

unsigned far_reach(const struct fixture *f, bool cut)
{
	unsigned n = 0;

	for (const struct world_res *r = f->w->res; r; r = r->next)
		n += r->kind == SIO_KIND_DMAMAP && r->cut == cut;
	return n;
}

unsigned far_leads(const struct fixture *f)
{
	unsigned n = 0;

	for (const struct world_res *r = f->w->res; r; r = r->next) {
		const struct world_res *to =
			r->kind == SIO_KIND_DMAMAP && !r->cut
				? world_res_find(f->w, r->host, r->target_kind, r->target)
				: NULL;

		n += to && !world_leads_nowhere(f->w, to);
	}
	return n;
}

unsigned far_windows(const struct fixture *f)
{
	unsigned n = 0;

	for (const struct world_res *r = f->w->res; r; r = r->next)
		n += r->kind == SIO_KIND_MAP && r->host == LENDER;
	return n;
}

unsigned far_views(const struct fixture *f, uint64_t offset)
{
	unsigned n = 0;

	for (const struct world_res *r = f->w->res; r; r = r->next)
		n += r->kind == SIO_KIND_BAR &&
		     r->address == FAKE_BAR_ADDRESS + FAKE_APART + offset;
	return n;
}

void far_picture(struct fixture *f, unsigned *ret)
{
	for (uint32_t kind = 1; kind <= SIO_KIND_SHADOW; kind++)
		ret[kind] = world_resources(f->w, kind);
	f->messages = f->c->n_messages;
}

void far_expect_unchanged(struct fixture *f, const unsigned *before)
{
	for (uint32_t kind = 1; kind <= SIO_KIND_SHADOW; kind++)
		if (world_resources(f->w, kind) != before[kind])
			fail_msg("%u resources of kind %u, not %u", world_resources(f->w, kind),
				 kind, before[kind]);
	for (unsigned i = f->messages; i < f->c->n_messages; i++)
		if (f->c->message[i]->type >= SIO_EVM_SEGMENT_LOCAL)
			fail_msg("the program received event %#x", f->c->message[i]->type);
	world_forget(f->c);
	f->messages = 0;
}

void far_reset(struct fixture *f)
{
	struct sio_msg_dev_admin_reset reset = {.fdid = sio_to_le32(far_target(f)),
						.force = sio_to_le32(1)};
	struct world_client *admin = world_client(f->w, f->at, SIO_CLIENT_LIBRARY);

	assert_int_equal(
		world_call(f->w, admin, SIO_MSG_DEV_ADMIN_RESET, &reset, sizeof(reset))->error, 0);
	library_gone(admin);
	world_kill(f->w, admin);
	world_run(f->w);
}
