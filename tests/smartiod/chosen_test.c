/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a relay to a virtual machine has of another host's device: memory at addresses of its own
 * choice, as long as nobody else can have the device. That outlives both daemons, as any borrow
 * does: the next one learns from the port which addresses were chosen.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "resume_world.h"

#define CHOSEN 0x7000u
#define ELSEWHERE (1ull << 40)

static int begin(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct world *w = world_new(3, 0);

	assert_non_null(f);
	f->w = w;
	fake_device_add(w, &f->fake);
	f->fake.iommu = SIO_IOMMU_STRICT;
	world_real(w);
	world_start(w);
	library_begin(w);
	w->before_step = library_pump;
	fake_device_resets(w, true);
	f->c = world_client(w, BORROWER, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, f->c, FDID, SCI_FLAG_EXCLUSIVE, &f->b), 0);
	assert_int_equal(call_seg_export(w, f->c, 1, 8192, &f->segment), 0);
	*state = f;
	return 0;
}

/* Return: an errno. */
static int choose(struct fixture *f, uint64_t at, uint32_t *ret_map)
{
	struct sio_msg_dma_map msg = {.device = sio_to_le32(f->b.handle),
				      .segment = sio_to_le32(f->segment),
				      .bytes = sio_to_le64(4096),
				      .ioaddr = sio_to_le64(at),
				      .flags = sio_to_le32(SIO_DMA_AT)};
	const struct world_message *m = world_call(f->w, f->c, SIO_MSG_DMA_MAP, &msg, sizeof(msg));
	const struct sio_rep_dma_map *rep;

	assert_non_null(m);
	if (m->error)
		return m->error;
	rep = (const void *)m->data;
	assert_true(sio_from_le64(rep->ioaddr) == at);
	*ret_map = sio_from_le32(rep->map);
	return 0;
}

static int open_to_others(struct fixture *f)
{
	return call_handle(f->w, f->c, SIO_MSG_DEV_RELEASE_EXCLUSIVE, f->b.handle, 0);
}

static void start_again(struct fixture *f, unsigned host)
{
	world_stop(f->w, host);
	world_run(f->w);
	world_restart(f->w, host);
	world_pass(f->w, MEET);
	assert_true(library_settled(f->w));
}

static void end(struct fixture *f)
{
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_REMOVE, f->segment, 0), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DEV_RETURN, f->b.handle, 0), 0);
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_DMAMAP), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
}

static void it_stays_closed_over_restarts(void **state)
{
	static const unsigned hosts[] = {LENDER, BORROWER, LENDER};
	struct fixture *f = *state;
	uint32_t first, second;

	assert_int_equal(choose(f, CHOSEN, &first), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(open_to_others(f), EBUSY);
		start_again(f, hosts[i]);
	}
	assert_int_equal(open_to_others(f), EBUSY);
	assert_int_equal(choose(f, ELSEWHERE, &second), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, first, 0), 0);
	assert_int_equal(open_to_others(f), EBUSY);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, second, 0), 0);
	assert_int_equal(open_to_others(f), 0);
	assert_int_equal(choose(f, CHOSEN, &first), EACCES);
	end(f);
}

/* Any address that the lender's port chose is no reason. */
static void what_was_not_chosen_is_no_reason(void **state)
{
	struct fixture *f = *state;
	uint32_t map;

	assert_int_equal(call_dma_map(f->w, f->c, f->b.handle, f->segment, 0, 0, 4096, &map), 0);
	start_again(f, LENDER);
	assert_int_equal(open_to_others(f), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, map, 0), 0);
	end(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_stays_closed_over_restarts, begin, teardown),
		cmocka_unit_test_setup_teardown(what_was_not_chosen_is_no_reason, begin, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
