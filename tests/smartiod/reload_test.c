/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cluster's file is read again while programs are at work: what it says of access and quotas
 * holds from then on, what somebody has and may have no more stays or ends, and a file that differs
 * in more than a running daemon can take, or cannot be read, changes nothing.
 */
#include "reload.h"

#define FDID 0x400001 /* of node 4 */

static uint32_t twelve[] = {12};
static struct sio_policy_person alice[] = {{"alice", 1000}};
static const struct sio_policy_person_of is_alice = {.uid = 1000, .gid = 100},
					 is_bob = {.uid = 1001, .gid = 100};

static struct world *make(void)
{
	struct world *w = call_world(&fake);

	memset(&next, 0, sizeof(next));
	w->file_read = read_file;
	return w;
}

static void only_twelve_may_have_the_device(void)
{
	next.has_rule = true;
	next.rule = (struct sio_policy_rule){.kind = SIO_POLICY_DEVICE,
					     .has_nodes = true,
					     .node = twelve,
					     .n_nodes = 1,
					     .line = 3};
}

/* ---- what happens ---- */

static void new_rules_hold_at_once_and_borrows_stay(void **state)
{
	struct world *w = make();
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct call_borrow first, other;
	struct done done;
	const char *text;
	uint32_t kind;

	(void)state;
	assert_int_equal(call_borrow(w, b, FDID, 0, &first), 0);
	only_twelve_may_have_the_device();
	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_true(done.applied && w->file_kept == 1);
	assert_int_equal(done.lines, 2);
	assert_int_equal(done.count[SIO_RELOAD_NOW], 1);
	assert_int_equal(done.count[SIO_RELOAD_STAYS], 1);
	assert_int_equal(done.count[SIO_RELOAD_RESTART] + done.count[SIO_RELOAD_ENDS], 0);
	text = line(w, tool, 0, &kind);
	assert_string_equal(text, "line 3: rule is new: device all: nodes 12");
	assert_int_equal(kind, SIO_RELOAD_NOW);
	text = line(w, tool, 1, &kind);
	assert_non_null(strstr(text, "node 8 may not borrow device"));
	assert_int_equal(kind, SIO_RELOAD_STAYS);
	assert_null(line(w, tool, 2, &kind));
	assert_int_equal(call_borrow(w, b, FDID, 0, &other), EPERM);
	assert_int_equal(call_borrow(w, c, FDID, 0, &other), 0);
	assert_null(call_device_event(b, 0));
	assert_int_equal(call_handle(w, b, SIO_MSG_DEV_RETURN, first.handle, 0), 0);
	/* Once more, the same: nothing differs, and what was told is told again. */
	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_true(done.applied);
	assert_int_equal(done.lines, 0);
	next.has_rule = false;
	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_int_equal(done.count[SIO_RELOAD_NOW], 1);
	assert_int_equal(call_borrow(w, b, FDID, 0, &first), 0);
	call_world_end(w, &fake, FDID);
}

static void what_is_only_checked_changes_nothing(void **state)
{
	struct world *w = make();
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct call_borrow borrow;
	struct done done;

	(void)state;
	assert_int_equal(call_borrow(w, b, FDID, 0, &borrow), 0);
	only_twelve_may_have_the_device();
	assert_int_equal(reload(w, tool, SIO_RELOAD_CHECK | SIO_RELOAD_ENFORCE, &done), 0);
	assert_false(done.applied || w->file_kept);
	assert_int_equal(done.count[SIO_RELOAD_ENDS], 1);
	assert_null(call_device_event(b, 0));
	assert_int_equal(call_borrow(w, b, FDID, 0, &borrow), 0);
	call_world_end(w, &fake, FDID);
}

/* What cannot be without a restart is named, and the rest of the file is not taken either. */
static void a_file_that_differs_in_more_is_not_taken(void **state)
{
	struct world *w = make();
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct call_borrow borrow;
	struct done done;
	uint32_t kind = 0;

	(void)state;
	only_twelve_may_have_the_device();
	next.has_more_ram = true;
	assert_int_equal(reload(w, tool, SIO_RELOAD_ENFORCE, &done), 0);
	assert_false(done.applied || w->file_kept);
	assert_int_equal(done.count[SIO_RELOAD_RESTART], 1);
	assert_string_equal(line(w, tool, 0, &kind),
			    "host 'host1': ram is 536870912, was 268435456; or one reload removes "
			    "it, and the next adds it");
	assert_int_equal(kind, SIO_RELOAD_RESTART);
	assert_int_equal(call_borrow(w, b, FDID, 0, &borrow), 0);
	call_world_end(w, &fake, FDID);
}

static void who_asks_wrongly_changes_nothing(void **state)
{
	struct world *w = make();
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct world_client *second = world_client(w, 0, SIO_CLIENT_TOOL);
	struct world_client *bob = world_client_of(w, 0, SIO_CLIENT_TOOL, &is_bob);
	struct done done;
	uint32_t kind;

	(void)state;
	only_twelve_may_have_the_device();
	assert_int_equal(reload(w, bob, 0, &done), EPERM);
	assert_int_equal(reload(w, tool, 8, &done), EINVAL);
	next.is_wrong = true;
	assert_int_equal(reload(w, tool, 0, &done), EINVAL);
	assert_int_equal(w->file_kept, 0);
	next.is_wrong = false;
	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_non_null(line(w, tool, 0, &kind));
	assert_null(line(w, second, 0, &kind));
	assert_int_equal(reload(w, second, 0, &done), 0);
	assert_null(line(w, tool, 0, &kind));
	w->file_read = NULL;
	assert_int_equal(reload(w, tool, 0, &done), EOPNOTSUPP);
	call_world_end(w, &fake, FDID);
}

/* ---- what ends ---- */

/* With all that hangs on it; what a device may still reach waits, as when a path was lost. */
static void a_borrow_of_another_host_ends(void **state)
{
	struct world *w = make();
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct world_client *m = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct call_borrow manager, lost, kept;
	uint32_t seg, bar, map, dma, access[4];
	const struct sio_evm_device *evm;
	struct done done;

	(void)state;
	call_take(w, m, FDID, 0, &manager, &seg, &map, access);
	call_take(w, b, FDID, 0, &lost, &bar, &map, access);
	assert_int_equal(call_seg_export(w, b, 9, 8192, &seg), 0);
	assert_int_equal(call_dma_map(w, b, lost.handle, seg, 0, 0, 8192, &dma), 0);
	assert_int_equal(call_borrow(w, c, FDID, 0, &kept), 0);
	only_twelve_may_have_the_device();
	w->lossy = true; /* what is revoked ends at once, whatever the borrower's daemon does */
	assert_int_equal(reload(w, tool, SIO_RELOAD_ENFORCE, &done), 0);
	assert_true(done.applied);
	assert_int_equal(done.count[SIO_RELOAD_ENDS], 1);
	world_run(w);
	evm = call_device_event(b, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->event), SIO_DEVICE_EV_LOST);
	assert_null(call_device_event(c, 0));
	assert_int_equal(call_borrow(w, b, FDID, 0, &kept), EPERM);
	/* Whoever has the registers settles what it left. */
	assert_int_equal(world_count(w, 0, SIO_KIND_DMAMAP), 1);
	assert_int_equal(call_settled(w, m, manager.handle, lost.id), 0);
	world_run(w);
	assert_int_equal(world_count(w, 0, SIO_KIND_DMAMAP), 0);
	/* Twice: there is nothing left to end. */
	assert_int_equal(reload(w, tool, SIO_RELOAD_ENFORCE, &done), 0);
	assert_int_equal(done.lines, 0);
	call_world_end(w, &fake, FDID);
}

static void a_borrow_of_a_program_of_this_host_ends(void **state)
{
	for (unsigned host = 0; host < 2; host++) { /* of its own host's device, and of another's */
		struct world *w = make();
		struct world_client *tool = world_client(w, host, SIO_CLIENT_TOOL);
		struct world_client *a = world_client_of(w, host, SIO_CLIENT_LIBRARY, &is_alice);
		struct world_client *b = world_client_of(w, host, SIO_CLIENT_LIBRARY, &is_bob);
		struct call_borrow kept, lost;
		uint32_t seg, bar, map, dma, access[4];
		struct done done;

		(void)state;
		assert_int_equal(call_borrow(w, a, FDID, 0, &kept), 0);
		call_take(w, b, FDID, 0, &lost, &bar, &map, access);
		assert_int_equal(call_seg_export(w, b, 9, 8192, &seg), 0);
		assert_int_equal(call_dma_map(w, b, lost.handle, seg, 0, 0, 8192, &dma), 0);
		next.has_rule = true;
		next.rule = (struct sio_policy_rule){
			.kind = SIO_POLICY_DEVICE, .has_people = true, .user = alice, .n_users = 1};
		assert_int_equal(reload(w, tool, SIO_RELOAD_ENFORCE, &done), 0);
		assert_int_equal(done.count[SIO_RELOAD_ENDS], 1);
		world_run(w);
		assert_non_null(call_device_event(b, 0));
		assert_int_equal(sio_from_le32(call_device_event(b, 0)->event), SIO_DEVICE_EV_LOST);
		assert_null(call_device_event(a, 0));
		next.has_rule = false; /* for who resets it at the end is root */
		assert_int_equal(reload(w, tool, 0, &done), 0);
		call_world_end(w, &fake, FDID);
	}
}

/* Its program hears what it would have heard if it had come later, and nobody keeps anything. */
static void a_borrow_in_the_making_ends_for_that_reason(void **state)
{
	struct world *w = make();
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct sio_msg_dev_borrow msg = {.fdid = sio_to_le32(FDID)};
	const struct world_message *m;
	struct done done;
	uint32_t id;

	(void)state;
	w->late = SIO_OP_OWNER_NEW; /* the port is slow */
	id = world_send(w, b, SIO_MSG_DEV_BORROW, &msg, sizeof(msg));
	world_run(w);
	assert_null(world_reply(b, id));
	only_twelve_may_have_the_device();
	assert_int_equal(reload(w, tool, SIO_RELOAD_ENFORCE, &done), 0);
	assert_int_equal(done.count[SIO_RELOAD_ENDS], 1);
	w->late = 0;
	world_run(w);
	m = world_reply(b, id);
	assert_non_null(m);
	assert_int_equal(m->error, EPERM);
	assert_non_null(strstr(((const struct sio_msg_error *)(const void *)m->data)->text,
			       "the cluster's file, which was read anew, does not allow it"));
	assert_null(call_device_event(b, 0));
	call_world_end(w, &fake, FDID);
}

static void connections_of_other_hosts_end(void **state)
{
	struct world *w = make();
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	uint32_t own, seg, lost, also, kept, window, other;
	const struct sio_evm_segment *evm;
	struct done done;

	(void)state;
	assert_int_equal(call_seg_export(w, l, 5, 8192, &seg), 0);
	assert_int_equal(call_seg_connect(w, l, 4, 5, &own), 0);
	assert_int_equal(call_seg_connect(w, b, 4, 5, &lost), 0);
	assert_int_equal(call_seg_connect(w, b, 4, 5, &also), 0);
	assert_int_equal(call_seg_connect(w, c, 4, 5, &kept), 0);
	assert_int_equal(call_seg_map(w, b, lost, 0, 8192, &window), 0);
	next.has_rule = true;
	next.rule = (struct sio_policy_rule){.kind = SIO_POLICY_SEGMENTS,
					     .first = 5,
					     .last = 5,
					     .has_nodes = true,
					     .node = twelve,
					     .n_nodes = 1};
	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_int_equal(done.count[SIO_RELOAD_STAYS], 1); /* of one host, however many */
	world_run(w);
	assert_null(world_event(b, SIO_EVM_SEGMENT_REMOTE, 0));
	assert_int_equal(reload(w, tool, SIO_RELOAD_ENFORCE, &done), 0);
	assert_int_equal(done.count[SIO_RELOAD_ENDS], 1);
	world_run(w);
	for (unsigned i = 0; i < 2; i++) {
		evm = world_event(b, SIO_EVM_SEGMENT_REMOTE, i);
		assert_non_null(evm);
		assert_int_equal(sio_from_le32(evm->reason), SCI_CB_LOST);
	}
	assert_int_equal(world_count(w, 0, SIO_KIND_GRANT), 0);
	assert_null(world_event(c, SIO_EVM_SEGMENT_REMOTE, 0));
	assert_int_equal(call_seg_map(w, c, kept, 0, 8192, &window), 0);
	assert_int_equal(call_seg_connect(w, b, 4, 5, &other), EACCES);
	assert_int_equal(call_handle(w, b, SIO_MSG_SEG_DISCONNECT, also, 0), 0);
	call_world_end(w, &fake, FDID);
}

static void senders_of_other_hosts_end(void **state)
{
	struct world *w = make();
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	uint32_t dint, plain, number, plain_number, own, lost, also, kept, kept_too, other;
	struct done done;

	(void)state;
	assert_int_equal(call_dint_create(w, l, 3, SCI_FLAG_FIXED_INTNO, &dint, &number), 0);
	assert_int_equal(call_plain_create(w, l, &plain, &plain_number), 0);
	assert_int_equal(call_dint_connect(w, l, 4, 3, &own), 0);
	assert_int_equal(call_dint_connect(w, b, 4, 3, &lost), 0);
	assert_int_equal(call_plain_connect(w, b, 4, plain_number, &also), 0);
	assert_int_equal(call_dint_connect(w, c, 4, 3, &kept), 0);
	assert_int_equal(call_plain_connect(w, c, 4, plain_number, &kept_too), 0);
	next.has_rule = true;
	next.rule = (struct sio_policy_rule){.kind = SIO_POLICY_INTERRUPTS,
					     .last = UINT32_MAX,
					     .has_nodes = true,
					     .node = twelve,
					     .n_nodes = 1};
	assert_int_equal(reload(w, tool, 0, &done), 0);
	assert_int_equal(done.count[SIO_RELOAD_STAYS], 2);
	world_run(w);
	assert_null(world_event(b, SIO_EVM_DINT_LOST, 0));
	assert_int_equal(reload(w, tool, SIO_RELOAD_CHECK | SIO_RELOAD_ENFORCE, &done), 0);
	assert_int_equal(done.count[SIO_RELOAD_ENDS], 2);
	world_run(w);
	assert_null(world_event(b, SIO_EVM_DINT_LOST, 0));
	assert_int_equal(reload(w, tool, SIO_RELOAD_ENFORCE, &done), 0);
	assert_int_equal(done.count[SIO_RELOAD_ENDS], 2);
	assert_int_equal(done.count[SIO_RELOAD_STAYS], 0);
	world_run(w);
	assert_non_null(world_event(b, SIO_EVM_DINT_LOST, 1));
	assert_non_null(world_event(l, SIO_EVM_DINT_RING_END, 0));
	assert_null(world_event(l, SIO_EVM_DINT_RING_END, 1));
	assert_null(world_event(c, SIO_EVM_DINT_LOST, 0));
	/* Of the one that may: its ring and the interrupt's trigger, and the plain one. */
	assert_int_equal(world_count(w, 0, SIO_KIND_GRANT), 3);
	assert_int_equal(call_dint_connect(w, b, 4, 3, &other), EACCES);
	assert_int_equal(call_handle(w, b, SIO_MSG_DINT_DISCONNECT, lost, 0), 0);
	assert_int_equal(reload(w, tool, SIO_RELOAD_ENFORCE, &done), 0);
	assert_int_equal(done.count[SIO_RELOAD_ENDS], 0);
	call_world_end(w, &fake, FDID);
}

/* What programs made or are connected to is told of and stays. */
static void the_rest_stays(void **state)
{
	struct world *w = make();
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct world_client *l = world_client_of(w, 0, SIO_CLIENT_LIBRARY, &is_bob);
	struct sio_msg_seg_connect all = {.node = sio_to_le32(DIS_BROADCAST_NODEID_GROUP_ALL),
					  .segment_id = sio_to_le32(3),
					  .flags = sio_to_le32(SCI_FLAG_BROADCAST)};
	uint32_t seg, connection, member;
	struct done done;

	(void)state;
	assert_int_equal(call_seg_export(w, l, 5, 8192, &seg), 0);
	assert_int_equal(call_seg_connect(w, l, 4, 5, &connection), 0);
	assert_int_equal(call_seg_create(w, l, 3, 4096, SCI_FLAG_BROADCAST, &member, NULL), 0);
	call_seg_adapter(w, l, SIO_MSG_SEG_PREPARE, member, 0, 0);
	call_seg_adapter(w, l, SIO_MSG_SEG_AVAILABLE, member, 0, 0);
	assert_int_equal(world_call(w, l, SIO_MSG_SEG_CONNECT, &all, sizeof(all))->error, 0);
	next.has_rule = true;
	next.rule = (struct sio_policy_rule){.kind = SIO_POLICY_SEGMENTS,
					     .last = UINT32_MAX,
					     .has_people = true,
					     .user = alice,
					     .n_users = 1};
	assert_int_equal(reload(w, tool, SIO_RELOAD_ENFORCE, &done), 0);
	/* Its segment, its member of a group, and its connections to both. */
	assert_int_equal(done.count[SIO_RELOAD_STAYS], 4);
	assert_int_equal(done.count[SIO_RELOAD_ENDS], 0);
	assert_int_equal(call_handle(w, l, SIO_MSG_SEG_DISCONNECT, connection, 0), 0);
	call_world_end(w, &fake, FDID);
}

static void a_quota_holds_for_what_is_asked_next(void **state)
{
	struct world *w = make();
	struct world_client *tool = world_client(w, 0, SIO_CLIENT_TOOL);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct call_borrow first, second, third;
	struct done done;

	(void)state;
	assert_int_equal(call_borrow(w, b, FDID, 0, &first), 0);
	assert_int_equal(call_borrow(w, b, FDID, 0, &second), 0);
	next.borrows = 1;
	assert_int_equal(reload(w, tool, SIO_RELOAD_ENFORCE, &done), 0);
	assert_int_equal(done.count[SIO_RELOAD_NOW], 1);
	assert_int_equal(done.lines, 1);
	assert_int_equal(call_borrow(w, b, FDID, 0, &third), ENOSPC);
	assert_int_equal(call_handle(w, b, SIO_MSG_DEV_RETURN, first.handle, 0), 0);
	assert_int_equal(call_borrow(w, b, FDID, 0, &third), ENOSPC);
	assert_int_equal(call_handle(w, b, SIO_MSG_DEV_RETURN, second.handle, 0), 0);
	world_run(w);
	assert_int_equal(call_borrow(w, b, FDID, 0, &third), 0);
	call_world_end(w, &fake, FDID);
}

/* ---- the other's file ---- */

static void files_are_read_from_host_to_host(void **state)
{
	static char text[SIO_FILE_BYTES + 6];
	struct world *w = make();
	struct world_client *tool = world_client(w, 1, SIO_CLIENT_TOOL);
	const struct sio_rep_file *rep;
	uint64_t sum;
	uint32_t error;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	w->file_text[0] = text;
	w->file_text[1] = "ours\n";
	rep = file(w, tool, 0, 0, &error);
	assert_int_equal(error, 0);
	assert_int_equal(sio_from_le32(rep->total), 5);
	assert_memory_equal(rep->bytes, "ours\n", 5);
	sum = sio_from_le64(rep->sum);
	rep = file(w, tool, 4, 0, &error);
	assert_int_equal(error, 0);
	assert_int_equal(sio_from_le32(rep->total), SIO_FILE_BYTES + 5);
	assert_int_equal(sio_from_le32(rep->count), SIO_FILE_BYTES);
	assert_int_not_equal(sio_from_le64(rep->sum), sum);
	sum = sio_from_le64(rep->sum);
	rep = file(w, tool, 4, SIO_FILE_BYTES, &error);
	assert_int_equal(sio_from_le32(rep->count), 5);
	assert_int_equal(sio_from_le64(rep->sum), sum);
	file(w, tool, 4, SIO_FILE_BYTES + 6, &error);
	assert_int_equal(error, EINVAL);
	file(w, tool, 12, 0, &error);
	assert_int_equal(error, ENOENT);
	file(w, tool, 16, 0, &error);
	assert_int_equal(error, EHOSTUNREACH);
	call_world_end(w, &fake, FDID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_rules_hold_at_once_and_borrows_stay),
		cmocka_unit_test(what_is_only_checked_changes_nothing),
		cmocka_unit_test(a_file_that_differs_in_more_is_not_taken),
		cmocka_unit_test(who_asks_wrongly_changes_nothing),
		cmocka_unit_test(a_borrow_of_another_host_ends),
		cmocka_unit_test(a_borrow_of_a_program_of_this_host_ends),
		cmocka_unit_test(a_borrow_in_the_making_ends_for_that_reason),
		cmocka_unit_test(connections_of_other_hosts_end),
		cmocka_unit_test(senders_of_other_hosts_end),
		cmocka_unit_test(the_rest_stays),
		cmocka_unit_test(a_quota_holds_for_what_is_asked_next),
		cmocka_unit_test(files_are_read_from_host_to_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
