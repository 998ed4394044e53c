/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a daemon tells when the two have met again is believed no more than a request is: what
 * never was, what is over, and more than there can be.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "resume_world.h"
#include "smartiod/base/peer.h"
#include "smartiod/lender/lend.h"

/* Connections that its program never heard of, while another host is still expected. */
static void of_who_comes_and_goes_meanwhile_nobody_hears(void **state)
{
	struct fixture *f = *state;
	struct world_client *owner = world_client(f->w, LENDER, SIO_CLIENT_LIBRARY);
	struct sio_peer_resume_seg come = {.connection = sio_to_le64(77)};
	struct sio_peer_seg_release go = {.connection = sio_to_le64(77),
					  .reason = sio_to_le32(SCI_CB_DISCONNECT)};
	struct smartiod_tree_node *n;
	uint32_t segment;

	assert_int_equal(call_seg_export(f->w, owner, 3, 8192, &segment), 0);
	world_stop(f->w, 2);
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	world_forget(owner);
	n = smartiod_tree_after(&f->w->host[LENDER].daemon->segments, 0);
	while (n && SMARTIOD_OF(n, struct smartiod_segment, by_uid)->id != 3)
		n = smartiod_tree_after(&f->w->host[LENDER].daemon->segments, n->key);
	assert_non_null(n);
	come.uid = go.uid = sio_to_le64(n->key);
	for (unsigned i = 0; i < 3; i++) {
		message(f, LENDER, BORROWER, SIO_PEER_RESUME_SEG, &come, sizeof(come));
		assert_int_equal(SMARTIOD_OF(n, struct smartiod_segment, by_uid)->n_refs, 1);
		message(f, LENDER, BORROWER, SIO_PEER_SEG_RELEASE, &go, sizeof(go));
		assert_int_equal(SMARTIOD_OF(n, struct smartiod_segment, by_uid)->n_refs, 0);
	}
	world_restart(f->w, 2);
	world_pass(f->w, MEET);
	assert_null(world_event(owner, SIO_EVM_SEGMENT_LOCAL, 0));
	assert_int_equal(call_seg_remove(f->w, owner, segment), 0);
	give_back(f);
}

/* No number of a view is that of what was granted since the daemon's start. */
static void a_view_that_is_none_takes_no_grant(void **state)
{
	struct fixture *f = *state;
	struct sio_peer_resume_view view = {.borrower = sio_to_le64(f->b.id),
					    .fdid = sio_to_le32(FDID)};
	unsigned before[SIO_KIND_SHADOW + 1], said = 0;

	world_cut(f->w, LENDER, BORROWER);
	world_pass(f->w, MEET);
	picture(f, before);
	for (const struct world_res *r = f->w->res; r; r = r->next) {
		if (r->host != LENDER || r->kind != SIO_KIND_GRANT)
			continue;
		view.grant = sio_to_le64(r->id);
		message(f, LENDER, BORROWER, SIO_PEER_RESUME_VIEW, &view, sizeof(view));
		said++;
	}
	world_run(f->w);
	assert_true(said > 1);
	expect_unchanged(f, before);
	give_back(f);
}

/* What a host says that it holds: too little, of before a reset, or more than there can be. */
static void what_is_held_is_believed_with_care(void **state)
{
	struct fixture *f = *state;
	struct sio_peer_resume_hold held = {.borrower = sio_to_le64(f->b.id),
					    .fdid = sio_to_le32(FDID),
					    .count = sio_to_le32(2)};
	uint32_t dma;
	uint64_t at, number;

	assert_int_equal(
		call_dma_map_at(f->w, f->c, f->b.handle, f->segment, 0, 4096, 4096, &dma, &at), 0);
	number = hold_twice(f, at);
	held.hold = sio_to_le64(number);
	held.generation = sio_to_le32(f->b.generation);
	message(f, LENDER, BORROWER, SIO_PEER_RESUME_HOLD, &held, sizeof(held));
	expect_held_twice(f, dma, number);
	/* Another borrow, of that host or of another one, has none, and gets none by saying so. */
	held.borrower = sio_to_le64(f->b.id + 1);
	message(f, LENDER, BORROWER, SIO_PEER_RESUME_HOLD, &held, sizeof(held));
	held.borrower = sio_to_le64(f->b.id);
	message(f, LENDER, 2, SIO_PEER_RESUME_HOLD, &held, sizeof(held));
	held.generation = sio_to_le32(f->b.generation - 1);
	message(f, LENDER, BORROWER, SIO_PEER_RESUME_HOLD, &held, sizeof(held));
	held.generation = sio_to_le32(f->b.generation);
	held.count = sio_to_le32(UINT32_MAX);
	message(f, LENDER, BORROWER, SIO_PEER_RESUME_HOLD, &held, sizeof(held));
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, dma, 0), 0);
	give_back(f);
}

/* A map of before the lender's start is not taken to lead through a grant of long after it. */
static void a_new_grant_of_the_address_is_another_one(void **state)
{
	struct fixture *f = *state;
	struct sio_peer_resume_grant told = {.grant = 0}, other;
	struct smartiod_dma *dma = NULL;
	struct smartiod_tree_node *n = NULL;
	struct smartiod *d;
	uint64_t grant;

	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	d = f->w->host[LENDER].daemon;
	while (!dma || !dma->map) {
		n = smartiod_tree_after(&d->dmas, n ? n->key : 0);
		assert_non_null(n);
		dma = SMARTIOD_OF(n, struct smartiod_dma, by_id);
	}
	told.bus_addr = sio_to_le64(dma->bus_addr);
	told.adapter = sio_to_le32(dma->peer_adapter);
	told.peer_adapter = sio_to_le32(dma->adapter);
	grant = dma->grant;
	told.grant = sio_to_le64(grant);
	other = told;
	other.grant = sio_to_le64(grant + 1);
	assert_false(smartiod_dma_grant_again(d, NODE(BORROWER), &told));
	dma->grant = 0;
	assert_false(smartiod_dma_grant_again(d, NODE(BORROWER), &other));
	assert_true(smartiod_dma_grant_again(d, NODE(BORROWER), &told));
	assert_int_equal(dma->grant, grant);
	dma->grant = 0;
	smartiod_loans_resumed(d, NODE(BORROWER));
	assert_false(smartiod_dma_grant_again(d, NODE(BORROWER), &told));
	assert_int_equal(dma->grant, 0);
	dma->grant = grant;
	give_back(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(of_who_comes_and_goes_meanwhile_nobody_hears),
		TEST(a_view_that_is_none_takes_no_grant),
		TEST(what_is_held_is_believed_with_care),
		TEST(a_new_grant_of_the_address_is_another_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
