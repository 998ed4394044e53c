/* SPDX-License-Identifier: BSD-2-Clause */
/* What was shared is not resumed if the file that the next daemon reads does not allow it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "resume_world.h"

/* The file that the next daemon reads lets the importer's host have the segment no more. */
static void a_connection_that_is_allowed_no_more_does_not_come_back(void **state)
{
	struct fixture *f = *state;
	struct sio_policy_rule rule = {.kind = SIO_POLICY_SEGMENTS,
				       .host = NODE(LENDER),
				       .first = 3,
				       .last = 3,
				       .has_nodes = true};
	struct world_client *owner = world_client(f->w, LENDER, SIO_CLIENT_LIBRARY);
	const struct sio_evm_segment *evm;
	uint32_t segment, connection, other;

	assert_int_equal(call_seg_export(f->w, owner, 3, 8192, &segment), 0);
	assert_int_equal(call_seg_connect(f->w, f->c, NODE(LENDER), 3, &connection), 0);
	f->w->topology->policy.rule = &rule;
	f->w->topology->policy.n_rules = 1;
	world_cut(f->w, LENDER, BORROWER); /* the daemon that gave it knows it */
	world_pass(f->w, MEET);
	assert_null(world_event(f->c, SIO_EVM_SEGMENT_REMOTE, 0));
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	evm = world_event(f->c, SIO_EVM_SEGMENT_REMOTE, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->handle), connection);
	assert_int_equal(sio_from_le32(evm->reason), SCI_CB_LOST);
	assert_int_equal(call_seg_connect(f->w, f->c, NODE(LENDER), 3, &other), EACCES);
	assert_null(call_device_event(f->c, 0)); /* the borrow is another thing */
	f->w->topology->policy.n_rules = 0;
	f->w->topology->policy.rule = NULL;
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_DISCONNECT, connection, 0), 0);
	assert_int_equal(call_seg_remove(f->w, owner, segment), 0);
	give_back(f);
}

static void a_borrow_that_is_allowed_no_more_does_not_come_back(void **state)
{
	struct fixture *f = *state;
	struct sio_policy_rule rule = {.kind = SIO_POLICY_DEVICE, .has_nodes = true};
	const struct sio_evm_device *evm;

	f->w->lossy = true;
	f->w->topology->policy.rule = &rule;
	f->w->topology->policy.n_rules = 1;
	world_cut(f->w, LENDER, BORROWER);
	world_pass(f->w, MEET);
	assert_null(call_device_event(f->c, 0));
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	evm = call_device_event(f->c, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->event), SIO_DEVICE_EV_LOST);
	assert_int_equal(world_count(f->w, LENDER, SIO_KIND_DMAMAP), 0);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_GRANT), 0);
	f->w->topology->policy.n_rules = 0;
	f->w->topology->policy.rule = NULL;
}

/* Of a program of that host. What nobody else sees no rule is about. */
static void a_segment_that_is_allowed_no_more_does_not_come_back(void **state)
{
	struct fixture *f = *state;
	struct sio_policy_rule rule = {
		.kind = SIO_POLICY_SEGMENTS, .first = 3, .last = 4, .has_people = true};
	struct world_client *owner = world_client(f->w, LENDER, SIO_CLIENT_LIBRARY);
	const struct sio_evm_segment *evm;
	uint32_t segment, hidden, id;

	assert_int_equal(call_seg_export(f->w, owner, 3, 8192, &segment), 0);
	assert_int_equal(call_seg_create(f->w, owner, 4, 8192, SCI_FLAG_PRIVATE, &hidden, &id), 0);
	world_forget(owner);
	f->w->topology->policy.rule = &rule;
	f->w->topology->policy.n_rules = 1;
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	evm = world_event(owner, SIO_EVM_SEGMENT_LOCAL, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->handle), segment);
	assert_null(world_event(owner, SIO_EVM_SEGMENT_LOCAL, 1));
	f->w->topology->policy.n_rules = 0;
	f->w->topology->policy.rule = NULL;
	assert_int_equal(call_seg_remove(f->w, owner, hidden), 0);
	give_back(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_connection_that_is_allowed_no_more_does_not_come_back),
		TEST(a_borrow_that_is_allowed_no_more_does_not_come_back),
		TEST(a_segment_that_is_allowed_no_more_does_not_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
