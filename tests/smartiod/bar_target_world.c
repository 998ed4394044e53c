/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "bar_target_world.h"

/* What tests have otherwise. */
struct wish {
	bool no_iommu; /* of either */
	bool memory;   /* the target is a memory device */
	bool strange;  /* or of a class that nobody knows; then its registers are nobody's yet */
	bool target_first; /* it was borrowed before the drive */
};

static int make(void **state, struct wish wish)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct world *w = world_new(1, 0);
	uint32_t node;

	assert_non_null(f);
	*state = f;
	f->w = w;
	w->real = true;
	fake_device_add(w, &f->drive);
	fake_device_add_second(w, &f->target);
	f->drive.iommu = f->target.iommu = wish.no_iommu ? SIO_IOMMU_OFF : SIO_IOMMU_STRICT;
	f->target.cmb = CMB;
	f->target.memory = wish.memory;
	f->target.strange = wish.strange;
	world_start(w);
	library_begin(w);
	w->before_step = library_pump;
	f->c = world_client(w, 0, SIO_CLIENT_LIBRARY);
	if (!wish.target_first)
		assert_int_equal(call_borrow(w, f->c, DRIVE, 0, &f->on), 0);
	if (wish.strange) {
		assert_int_equal(call_borrow(w, f->c, TARGET, 0, &f->of), 0);
	} else {
		call_take(w, f->c, TARGET, 0, &f->of, &f->regs, &f->regs_map, f->access);
		assert_int_equal(f->access[0], 3);
	}
	if (wish.target_first)
		assert_int_equal(call_borrow(w, f->c, DRIVE, 0, &f->on), 0);
	assert_int_equal(call_dev_seg_connect(w, f->c, f->of.handle, CMB_BAR, SCI_MEMTYPE_BAR,
					      &f->cmb, &node),
			 0);
	return 0;
}

int setup(void **state)
{
	return make(state, (struct wish){.no_iommu = false});
}

int setup_without_iommu(void **state)
{
	return make(state, (struct wish){.no_iommu = true});
}

int setup_memory(void **state)
{
	return make(state, (struct wish){.memory = true});
}

int setup_strange(void **state)
{
	return make(state, (struct wish){.strange = true});
}

int setup_target_first(void **state)
{
	return make(state, (struct wish){.target_first = true});
}

int teardown(void **state)
{
	struct fixture *f = *state;

	library_end(f->w);
	world_pass(f->w, SMARTIOD_GRACE_NS);
	call_last_reset(f->w, DRIVE);
	assert_nothing_left(f->w);
	assert_int_equal(f->drive.bad, 0);
	assert_int_equal(f->target.bad, 0);
	assert_int_equal(f->drive.disturbed, 0);
	world_free(f->w);
	free(f);
	return 0;
}

void restart(struct fixture *f)
{
	world_restart(f->w, 0);
	world_run(f->w);
	assert_true(f->w->host[0].ready);
	assert_true(library_settled(f->w));
}

int map(struct fixture *f, uint32_t bar, uint64_t offset, uint64_t bytes, uint32_t *ret)
{
	return call_dma_map(f->w, f->c, f->on.handle, bar, 1, offset, bytes, ret);
}

int unmap(struct fixture *f, uint32_t dma)
{
	return call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, dma, 0);
}

unsigned reach(const struct fixture *f, bool cut)
{
	unsigned n = 0;

	for (const struct world_res *r = f->w->res; r; r = r->next)
		n += r->kind == SIO_KIND_DMAMAP && r->cut == cut;
	return n;
}

unsigned views(const struct fixture *f, uint64_t offset)
{
	unsigned n = 0;

	for (const struct world_res *r = f->w->res; r; r = r->next)
		n += r->kind == SIO_KIND_BAR &&
		     r->address == FAKE_BAR_ADDRESS + FAKE_APART + offset;
	return n;
}

unsigned lost(struct fixture *f, uint32_t connection)
{
	const struct sio_evm_segment *evm;
	unsigned n = 0;

	for (unsigned i = 0; (evm = world_event(f->c, SIO_EVM_SEGMENT_REMOTE, i)); i++)
		n += sio_from_le32(evm->handle) == connection &&
		     sio_from_le32(evm->reason) == SCI_CB_LOST;
	return n;
}

void reset_target(struct fixture *f)
{
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DEV_RESET, f->of.handle, 0), 0);
}
