/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may do what, and how much, as the cluster's file says: asked by hosts, of the lender and the
 * exporter; by programs, of their own daemon. What ends counts back, however it ends.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "smartiod/base/state.h"
#include "wire/client.h"
#include "wire/peer.h"

#define FDID 0x400001 /* of node 4 */

static struct fake_device fake;
static uint32_t twelve[] = {12};
static struct sio_policy_person alice[] = {{"alice", 1000}};
static const struct sio_policy_person_of is_alice = {.uid = 1000, .gid = 100},
					 is_bob = {.uid = 1001, .gid = 100};

/* The world's hosts have these rules, before anything has been asked. */
static struct world *world_with(struct sio_policy_rule *rule, unsigned n)
{
	struct world *w = call_world(&fake);

	w->topology->policy.rule = rule;
	w->topology->policy.n_rules = n;
	return w;
}

static void end(struct world *w)
{
	w->topology->policy.n_rules = 0;
	w->topology->policy.rule = NULL;
	call_world_end(w, &fake, FDID);
}

/* The text of the last message to @c. */
static const char *said(const struct world_client *c)
{
	return ((const struct sio_msg_error *)(const void *)c->message[c->n_messages - 1]->data)
		->text;
}

static int64_t refusals(struct world *w, unsigned host)
{
	struct world_client *t = world_client(w, host, SIO_CLIENT_TOOL);

	return call_counter(w, t, "refusals");
}

static void the_lender_refuses_a_node_that_is_not_in_the_list(void **state)
{
	struct sio_policy_rule rule = {.kind = SIO_POLICY_DEVICE,
				       .has_nodes = true,
				       .node = twelve,
				       .n_nodes = 1,
				       .line = 3};
	struct world *w = world_with(&rule, 1);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct call_borrow borrow;

	(void)state;
	assert_int_equal(call_borrow(w, b, FDID, 0, &borrow), EPERM);
	assert_non_null(strstr(said(b), "node 8 may not borrow device"));
	assert_non_null(strstr(said(b), "allowed: nodes 12; see line 3"));
	assert_int_equal(call_borrow(w, c, FDID, 0, &borrow), 0);
	assert_int_equal(call_borrow(w, l, FDID, 0, &borrow), 0);
	assert_int_equal(refusals(w, 0), 1);
	assert_int_equal(refusals(w, 1), 0);
	end(w);
}

static void the_exporter_refuses_segments_of_a_range(void **state)
{
	struct sio_policy_rule rule = {.kind = SIO_POLICY_SEGMENTS,
				       .host = 4,
				       .first = 10,
				       .last = 19,
				       .has_nodes = true,
				       .node = twelve,
				       .n_nodes = 1,
				       .line = 5};
	struct world *w = world_with(&rule, 1);
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	uint32_t handle;

	(void)state;
	assert_int_equal(call_seg_export(w, l, 9, 4096, &handle), 0);
	assert_int_equal(call_seg_export(w, l, 10, 4096, &handle), 0);
	assert_int_equal(call_seg_connect(w, b, 4, 9, &handle), 0);
	assert_int_equal(call_seg_connect(w, b, 4, 10, &handle), EACCES);
	assert_non_null(strstr(said(b), "node 8 may not have segment 0xa of"));
	assert_int_equal(call_seg_connect(w, c, 4, 10, &handle), 0);
	assert_int_equal(call_seg_connect(w, l, 4, 10, &handle), 0);
	assert_int_equal(refusals(w, 0), 1);
	end(w);
}

/* Its devices would reach the memory, too. */
static void a_lender_that_may_not_have_a_segment_maps_it_for_nobody(void **state)
{
	static uint32_t eight[] = {8};
	struct sio_policy_rule rule = {.kind = SIO_POLICY_SEGMENTS,
				       .host = 12,
				       .first = 5,
				       .last = 5,
				       .has_nodes = true,
				       .node = eight,
				       .n_nodes = 1};
	struct world *w = world_with(&rule, 1);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *e = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct call_borrow borrow;
	uint32_t handle, far, map;

	(void)state;
	assert_int_equal(call_seg_export(w, e, 5, 4096, &handle), 0);
	assert_int_equal(call_borrow(w, b, FDID, 0, &borrow), 0);
	assert_int_equal(call_seg_connect(w, b, 12, 5, &far), 0);
	assert_int_equal(call_dma_map(w, b, borrow.handle, far, 1, 0, 4096, &map), EACCES);
	assert_non_null(strstr(said(b), "node 4 may not have segment 0x5 of"));
	rule.all_nodes = true;
	assert_int_equal(call_dma_map(w, b, borrow.handle, far, 1, 0, 4096, &map), 0);
	end(w);
}

/* Node 4 asks node 8 for memory as a lender does; return: how many grants it has by that. */
static unsigned takes(struct world *w, uint64_t uid, uint64_t offset, uint64_t bytes)
{
	const struct sio_peer_seg_grant grant = {
		.h = {.size = sio_to_le32(sizeof(grant)),
		      .type = sio_to_le32(SIO_PEER_SEG_GRANT),
		      .id = sio_to_le32(4711)},
		.uid = sio_to_le64(uid),
		.offset = sio_to_le64(offset),
		.bytes = sio_to_le64(bytes),
		.ref_node = sio_to_le32(8),
		.purpose = sio_to_le32(SIO_GRANT_DEVICE),
		.access = sio_to_le32(SIO_ACCESS_WRITE),
	};
	unsigned before = world_resources(w, SIO_KIND_GRANT);

	smartiod_peer_message(w->host[1].daemon, 4, &grant, sizeof(grant));
	w->drop_peer_messages = true; /* node 4 knows of no such request, and would give it back */
	world_run(w);
	w->drop_peer_messages = false;
	return world_resources(w, SIO_KIND_GRANT) - before;
}

/* What node 4 took, and was not asked for, it gives back. */
static void gives_back(struct world *w)
{
	struct smartiod *d = w->host[1].daemon;

	for (struct smartiod_tree_node *n; (n = smartiod_tree_after(&d->grants, 0));) {
		const struct sio_peer_grant_release release = {
			.h = {.size = sio_to_le32(sizeof(release)),
			      .type = sio_to_le32(SIO_PEER_GRANT_RELEASE)},
			.grant = sio_to_le64(n->key)};

		smartiod_peer_message(d, 4, &release, sizeof(release));
		world_run(w);
	}
}

/* That it lends a device is no leave to reach more than what is mapped for that. */
static void a_lender_has_what_was_mapped_for_its_device_alone(void **state)
{
	struct world *w = world_with(NULL, 0);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct smartiod_tree_node *n;
	struct call_borrow borrow;
	uint32_t handle[2], map;
	uint64_t uid[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(call_seg_export(w, b, 5 + i, 16384, &handle[i]), 0);
	n = smartiod_tree_after(&w->host[1].daemon->segments, 0);
	for (unsigned i = 0; i < 2;
	     i++, n = smartiod_tree_after(&w->host[1].daemon->segments, n->key))
		uid[i] = n->key;
	assert_int_equal(call_borrow(w, b, FDID, 0, &borrow), 0);
	assert_int_equal(takes(w, uid[0], 0, 4096), 0);
	assert_int_equal(call_dma_map(w, b, borrow.handle, handle[0], 0, 4096, 8192, &map), 0);
	assert_int_equal(takes(w, uid[0], 4096, 8192), 1);
	assert_int_equal(takes(w, uid[0], 8192, 4096), 1);
	assert_int_equal(takes(w, uid[0], 0, 8192), 0);
	assert_int_equal(takes(w, uid[0], 8192, 8192), 0);
	assert_int_equal(takes(w, uid[0], 4096, UINT64_MAX - 4095), 0);
	assert_int_equal(takes(w, uid[1], 4096, 4096), 0);
	assert_int_equal(call_handle(w, b, SIO_MSG_DMA_UNMAP, map, 0), 0);
	assert_int_equal(takes(w, uid[0], 4096, 8192), 0);
	gives_back(w);
	end(w);
}

static void the_receiver_refuses_interrupts_of_a_range(void **state)
{
	struct sio_policy_rule rule = {.kind = SIO_POLICY_INTERRUPTS,
				       .first = 1,
				       .last = 3,
				       .has_nodes = true,
				       .node = twelve,
				       .n_nodes = 1};
	struct world *w = world_with(&rule, 1);
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	uint32_t handle, number;

	(void)state;
	assert_int_equal(call_dint_create(w, l, 3, SCI_FLAG_FIXED_INTNO, &handle, &number), 0);
	assert_int_equal(call_dint_create(w, l, 4, SCI_FLAG_FIXED_INTNO, &handle, &number), 0);
	assert_int_equal(call_dint_connect(w, b, 4, 3, &handle), EACCES);
	assert_int_equal(call_dint_connect(w, b, 4, 4, &handle), 0);
	assert_int_equal(call_dint_connect(w, c, 4, 3, &handle), 0);
	end(w);
}

/* A number that nobody has chosen is one that the program may have. */
static void an_interrupt_without_a_number_has_one_that_is_allowed(void **state)
{
	struct sio_policy_rule rule[] = {{.kind = SIO_POLICY_INTERRUPTS,
					  .first = 3,
					  .last = 9,
					  .has_people = true,
					  .user = alice,
					  .n_users = 1},
					 {.kind = SIO_POLICY_INTERRUPTS,
					  .first = 1,
					  .last = 4,
					  .has_people = true,
					  .user = alice,
					  .n_users = 1}};
	struct world *w = world_with(rule, 2);
	struct world_client *a = world_client_of(w, 0, SIO_CLIENT_LIBRARY, &is_alice);
	struct world_client *b = world_client_of(w, 0, SIO_CLIENT_LIBRARY, &is_bob);
	uint32_t handle, number;

	(void)state;
	assert_int_equal(call_dint_create(w, b, 10, SCI_FLAG_FIXED_INTNO, &handle, &number), 0);
	assert_int_equal(call_dint_create(w, b, 0, 0, &handle, &number), 0);
	assert_int_equal(number, 11);
	assert_int_equal(call_dint_create(w, a, 0, 0, &handle, &number), 0);
	assert_int_equal(number, 1);
	rule[0].last = UINT32_MAX;
	assert_int_equal(call_dint_create(w, b, 0, 0, &handle, &number), EACCES);
	assert_int_equal(refusals(w, 0), 1);
	end(w);
}

/* Programs are refused by their own daemon: no other is asked. */
static void a_program_of_another_user_is_refused_at_home(void **state)
{
	struct sio_policy_rule rule[] = {{.kind = SIO_POLICY_DEVICE,
					  .has_people = true,
					  .user = alice,
					  .n_users = 1,
					  .line = 8},
					 {.kind = SIO_POLICY_SEGMENTS,
					  .first = 1,
					  .last = 4,
					  .has_people = true,
					  .user = alice,
					  .n_users = 1},
					 {.kind = SIO_POLICY_INTERRUPTS,
					  .first = 0,
					  .last = 9,
					  .has_people = true,
					  .user = alice,
					  .n_users = 1}};
	struct world *w = world_with(rule, 3);
	struct world_client *a = world_client_of(w, 1, SIO_CLIENT_LIBRARY, &is_alice);
	struct world_client *b = world_client_of(w, 1, SIO_CLIENT_LIBRARY, &is_bob);
	struct world_client *l = world_client_of(w, 0, SIO_CLIENT_LIBRARY, &is_alice);
	struct world_client *m = world_client_of(w, 0, SIO_CLIENT_LIBRARY, &is_bob);
	struct sio_msg_dev_admin_reset reset = {.fdid = sio_to_le32(FDID)};
	struct call_borrow borrow;
	uint32_t handle, id, number;

	(void)state;
	assert_int_equal(call_borrow(w, b, FDID, 0, &borrow), EPERM);
	assert_non_null(strstr(said(b), "user 1001 may not borrow device"));
	assert_non_null(strstr(said(b), "allowed: users alice; see line 8"));
	assert_int_equal(call_borrow(w, a, FDID, 0, &borrow), 0);
	assert_int_equal(call_seg_export(w, m, 4, 4096, &handle), EACCES);
	assert_int_equal(call_seg_export(w, m, 5, 4096, &handle), 0);
	assert_int_equal(call_seg_create(w, m, 1, 4096, SCI_FLAG_PRIVATE, &handle, &id), 0);
	assert_int_equal(call_handle(w, m, SIO_MSG_SEG_REMOVE, handle, 0), 0);
	assert_int_equal(call_seg_create(w, m, 1, 4096, SCI_FLAG_AUTO_ID, &handle, &id), 0);
	assert_int_equal(id, 6); /* 5 is taken */
	assert_int_equal(call_seg_export(w, l, 4, 4096, &handle), 0);
	assert_int_equal(call_seg_connect(w, b, 4, 4, &handle), EACCES);
	assert_int_equal(call_seg_connect(w, m, 4, 4, &handle), EACCES);
	assert_int_equal(call_seg_connect(w, a, 4, 4, &handle), 0);
	assert_int_equal(call_dint_create(w, b, 2, SCI_FLAG_FIXED_INTNO, &handle, &number), EACCES);
	assert_int_equal(call_dint_create(w, a, 2, SCI_FLAG_FIXED_INTNO, &handle, &number), 0);
	assert_int_equal(call_dint_connect(w, m, 8, 2, &handle), EACCES);
	assert_int_equal(call_dint_connect(w, l, 8, 2, &handle), 0);
	world_call(w, m, SIO_MSG_DEV_ADMIN_RESET, &reset, sizeof(reset));
	assert_int_equal(m->message[m->n_messages - 1]->error, EACCES);
	assert_int_equal(refusals(w, 0), 4);
	assert_int_equal(refusals(w, 1), 3);
	end(w);
}

/* With addresses of their own hosts are machines of their own. */
static void between_machines_nothing_is_shared_unless_the_file_says_so(void **state)
{
	struct world *w = world_with(NULL, 0);
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 2, SIO_CLIENT_LIBRARY);
	struct call_borrow borrow;
	uint32_t handle, number;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct sio_topo_address *a = &w->topology->host[i].address;

		a->port = (uint16_t)(7470 + i);
		a->ip[3] = i == 1; /* hosts 0 and 2 are on one */
	}
	assert_int_equal(call_seg_export(w, l, 1, 4096, &handle), 0);
	assert_int_equal(call_dint_create(w, l, 1, SCI_FLAG_FIXED_INTNO, &handle, &number), 0);
	assert_int_equal(call_borrow(w, b, FDID, 0, &borrow), EPERM);
	assert_int_equal(call_seg_connect(w, b, 4, 1, &handle), EACCES);
	assert_int_equal(call_dint_connect(w, b, 4, 1, &handle), EACCES);
	assert_int_equal(refusals(w, 0), 3);
	assert_int_equal(call_borrow(w, c, FDID, 0, &borrow), 0);
	assert_int_equal(call_seg_connect(w, c, 4, 1, &handle), 0);
	w->topology->policy.open = true;
	assert_int_equal(call_borrow(w, b, FDID, 0, &borrow), 0);
	assert_int_equal(call_seg_connect(w, b, 4, 1, &handle), 0);
	assert_int_equal(call_dint_connect(w, b, 4, 1, &handle), 0);
	end(w);
}

static int group_connect(struct world *w, struct world_client *c, uint32_t *ret)
{
	struct sio_msg_seg_connect msg = {.node = sio_to_le32(DIS_BROADCAST_NODEID_GROUP_ALL),
					  .segment_id = sio_to_le32(3),
					  .flags = sio_to_le32(SCI_FLAG_BROADCAST)};
	const struct world_message *m = world_call(w, c, SIO_MSG_SEG_CONNECT, &msg, sizeof(msg));

	if (!m->error)
		*ret = sio_from_le32(((const struct sio_rep_seg_connect *)m->data)->handle);
	return m->error;
}

/* What is written to a group is in each member's memory, on whichever host. */
static void who_writes_to_a_group_may_have_the_members_segments(void **state)
{
	static uint32_t both[] = {4, 12};
	struct sio_policy_rule rule = {.kind = SIO_POLICY_SEGMENTS,
				       .first = 3,
				       .last = 3,
				       .has_nodes = true,
				       .node = twelve,
				       .n_nodes = 1,
				       .line = 6};
	struct world *w = world_with(&rule, 1);
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client_of(w, 2, SIO_CLIENT_LIBRARY, &is_bob);
	struct call_borrow borrow;
	uint32_t member, group = 0, dma;

	(void)state;
	assert_int_equal(call_seg_create(w, l, 3, 4096, SCI_FLAG_BROADCAST, &member, NULL), 0);
	call_seg_adapter(w, l, SIO_MSG_SEG_PREPARE, member, 0, 0);
	call_seg_adapter(w, l, SIO_MSG_SEG_AVAILABLE, member, 0, 0);
	assert_int_equal(group_connect(w, b, &group), EACCES);
	assert_non_null(strstr(said(b), "node 8 may not have segment 0x3 of "));
	assert_non_null(strstr(said(b), "allowed: nodes 12; see line 6"));
	assert_int_equal(refusals(w, 1), 1);
	assert_int_equal(group_connect(w, c, &group), 0);
	/* A device is its lender's: that writes for it. */
	assert_int_equal(call_borrow(w, c, FDID, 0, &borrow), 0);
	assert_int_equal(call_dma_map(w, c, borrow.handle, group, 1, 0, 4096, &dma), EACCES);
	assert_non_null(strstr(said(c), "node 4 may not have segment 0x3 of "));
	rule.node = both;
	rule.n_nodes = 2;
	assert_int_equal(call_dma_map(w, c, borrow.handle, group, 1, 0, 4096, &dma), 0);
	/* And programs of users. */
	rule.has_nodes = false;
	rule.has_people = true;
	rule.user = alice;
	rule.n_users = 1;
	assert_int_equal(group_connect(w, c, &group), EACCES);
	assert_non_null(strstr(said(c), "user 1001 may not have segment 0x3 of "));
	end(w);
}

/* ---- quotas ---- */

static void what_a_program_has_counts_back(void **state)
{
	struct world *w = world_with(NULL, 0);
	struct sio_limit *most = w->topology->policy.program;
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct call_borrow borrow, more;
	uint32_t own, seg, map, far, window, handle;

	(void)state;
	most[SIO_QUOTA_BORROWS] = (struct sio_limit){true, 1};
	most[SIO_QUOTA_WINDOWS] = (struct sio_limit){true, 1};
	most[SIO_QUOTA_DMA] = (struct sio_limit){true, 12288};
	most[SIO_QUOTA_EXPORTED] = (struct sio_limit){true, 16384};
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(call_seg_export(w, l, 1, 4096, &own), 0);
		assert_int_equal(call_borrow(w, b, FDID, 0, &borrow), 0);
		assert_int_equal(call_borrow(w, b, FDID, 0, &more), ENOSPC);
		assert_non_null(strstr(said(b), "may have 1 (quotas.program.borrows"));
		assert_int_equal(call_seg_export(w, b, 7, 12288, &seg), 0);
		assert_int_equal(call_seg_export(w, b, 8, 8192, &handle), ENOSPC);
		assert_int_equal(call_dma_map(w, b, borrow.handle, seg, 0, 0, 8192, &map), 0);
		assert_int_equal(call_dma_map(w, b, borrow.handle, seg, 0, 0, 8192, &handle),
				 ENOSPC);
		assert_int_equal(call_seg_connect(w, b, 4, 1, &far), 0);
		assert_int_equal(call_seg_map(w, b, far, 0, 4096, &window), 0);
		assert_int_equal(call_seg_map(w, b, far, 0, 4096, &handle), ENOSPC);
		if (i == 2)
			break; /* killed with all of it */
		assert_int_equal(call_handle(w, b, SIO_MSG_SEG_UNMAP, window, 0), 0);
		assert_int_equal(call_handle(w, b, SIO_MSG_SEG_DISCONNECT, far, 0), 0);
		assert_int_equal(call_handle(w, b, SIO_MSG_DMA_UNMAP, map, 0), 0);
		assert_int_equal(call_handle(w, b, SIO_MSG_DEV_RETURN, borrow.handle, 0), 0);
		assert_int_equal(call_seg_remove(w, b, seg), 0);
		assert_int_equal(call_seg_remove(w, l, own), 0);
	}
	world_kill(w, b);
	world_run(w);
	b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, b, FDID, 0, &borrow), 0);
	assert_int_equal(call_seg_export(w, b, 7, 16384, &seg), 0);
	end(w);
}

/* How many rows of the list of accounts are of process @pid. */
static unsigned rows_of(struct world *w, unsigned host, uint32_t pid)
{
	struct world_client *t = world_client(w, host, SIO_CLIENT_TOOL);
	struct sio_msg_list msg = {.kind = sio_to_le32(SIO_LIST_ACCOUNTS)};
	const struct sio_rep_list *rep =
		(const void *)world_call(w, t, SIO_MSG_LIST, &msg, sizeof(msg))->data;
	unsigned n = 0;

	assert_int_equal(sio_from_le32(rep->more), 0);
	for (uint32_t i = 0; i < sio_from_le32(rep->count); i++)
		n += sio_from_le32(rep->row[i].pid) == pid;
	return n;
}

/* However many connections it has; and what one of them had ends with that. */
static void connections_of_a_process_share_an_account(void **state)
{
	struct world *w = world_with(NULL, 0);
	struct sio_limit *most = w->topology->policy.program;
	struct world_client *one = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *two = world_client_again(w, one), *three;
	struct world_client *other = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct call_borrow borrow, more;
	uint32_t seg, handle;

	(void)state;
	most[SIO_QUOTA_BORROWS] = (struct sio_limit){true, 1};
	most[SIO_QUOTA_EXPORTED] = (struct sio_limit){true, 12288};
	assert_int_equal(call_borrow(w, one, FDID, 0, &borrow), 0);
	assert_int_equal(call_borrow(w, two, FDID, 0, &more), ENOSPC);
	assert_non_null(strstr(said(two), "program 1001 may have 1 (quotas.program.borrows"));
	assert_int_equal(call_borrow(w, other, FDID, 0, &more), 0);
	assert_int_equal(call_seg_export(w, two, 7, 8192, &seg), 0);
	assert_int_equal(call_seg_export(w, one, 8, 8192, &handle), ENOSPC);
	assert_int_equal(rows_of(w, 1, one->pid), SIO_QUOTAS);
	world_kill(w, two);
	world_run(w);
	assert_int_equal(call_seg_export(w, one, 8, 12288, &handle), 0);
	assert_int_equal(call_borrow(w, one, FDID, 0, &more), ENOSPC);
	three = world_client_again(w, one);
	assert_int_equal(call_seg_export(w, three, 9, 4096, &handle), ENOSPC);
	/* The first connection ends before the others. */
	world_kill(w, one);
	world_run(w);
	assert_int_equal(rows_of(w, 1, three->pid), SIO_QUOTAS);
	assert_int_equal(call_seg_export(w, three, 9, 12288, &handle), 0);
	assert_int_equal(call_borrow(w, three, FDID, 0, &more), 0);
	end(w);
}

/* The kernel gives a number again, and does not always say when a process was started. */
static void another_process_has_an_account_of_its_own(void **state)
{
	struct world *w = world_with(NULL, 0);
	struct world_client *one = world_client(w, 1, SIO_CLIENT_LIBRARY), later = *one, *c;
	struct call_borrow borrow;

	(void)state;
	w->topology->policy.program[SIO_QUOTA_BORROWS] = (struct sio_limit){true, 1};
	assert_int_equal(call_borrow(w, one, FDID, 0, &borrow), 0);
	later.started += 1;
	c = world_client_again(w, &later);
	assert_int_equal(call_borrow(w, c, FDID, 0, &borrow), 0);
	later.started = 0;
	for (unsigned i = 0; i < 2; i++) {
		c = world_client_again(w, &later);
		assert_int_equal(call_borrow(w, c, FDID, 0, &borrow), 0);
	}
	assert_int_equal(rows_of(w, 1, one->pid), 4 * SIO_QUOTAS);
	end(w);
}

/* Of a node's programs together; and what stays in quarantine counts until it is settled. */
static void what_a_node_has_counts_back(void **state)
{
	struct world *w = world_with(NULL, 0);
	struct sio_limit *most = w->topology->policy.node;
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *m = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *other = world_client(w, 2, SIO_CLIENT_LIBRARY);
	uint32_t segment, far, second, window, seg, map, handle, access[4], ms, mm;
	struct call_borrow borrow, holder, manager;

	(void)state;
	most[SIO_QUOTA_BORROWS] = (struct sio_limit){true, 1};
	most[SIO_QUOTA_DMA] = (struct sio_limit){true, 8192};
	most[SIO_QUOTA_EXPORTED] = (struct sio_limit){true, 8192};
	call_take(w, m, FDID, 0, &manager, &ms, &mm, access);
	assert_int_equal(call_seg_export(w, l, 1, 8192, &segment), 0);
	assert_int_equal(call_seg_export(w, l, 2, 8192, &segment), 0);
	assert_int_equal(call_seg_connect(w, b, 4, 1, &far), 0);
	assert_int_equal(call_seg_map(w, b, far, 0, 8192, &window), 0);
	assert_int_equal(call_seg_connect(w, c, 4, 2, &second), 0);
	assert_int_equal(call_seg_map(w, c, second, 0, 4096, &handle), ENOSPC);
	assert_non_null(strstr(said(c), "(quotas.node.exported of the cluster's file): it has 8K"));
	assert_int_equal(call_seg_connect(w, other, 4, 2, &handle), 0);
	assert_int_equal(call_seg_map(w, other, handle, 0, 4096, &handle), 0);
	assert_int_equal(call_handle(w, b, SIO_MSG_SEG_UNMAP, window, 0), 0);
	world_run(w);
	assert_int_equal(call_seg_map(w, c, second, 0, 4096, &handle), 0);

	assert_int_equal(call_borrow(w, b, FDID, 0, &borrow), 0);
	assert_int_equal(call_borrow(w, c, FDID, 0, &holder), ENOSPC);
	assert_int_equal(call_borrow(w, other, FDID, 0, &holder), 0);
	assert_int_equal(call_seg_export(w, b, 9, 8192, &seg), 0);
	assert_int_equal(call_dma_map(w, b, borrow.handle, seg, 0, 0, 8192, &map), 0);
	world_kill(w, b);
	world_run(w);
	assert_int_equal(call_borrow(w, c, FDID, 0, &holder), 0);
	assert_int_equal(call_seg_export(w, c, 9, 8192, &seg), 0);
	assert_int_equal(call_dma_map(w, c, holder.handle, seg, 0, 0, 4096, &map), ENOSPC);
	assert_int_equal(call_settled(w, m, manager.handle, borrow.id), 0);
	assert_int_equal(call_dma_map(w, c, holder.handle, seg, 0, 0, 4096, &map), 0);
	end(w);
}

static int place(struct world *w, struct world_client *c, const struct call_borrow *b, uint32_t id)
{
	return call_dev_seg_create(w, c, b->handle, id, 8192, SCI_MEMTYPE_PRIVATE, 0,
				   SCI_FLAG_DEVICE_SIDE_ONLY);
}

/* The lender's memory, too, is of who has it made. */
static void memory_beside_a_device_counts(void **state)
{
	struct world *w = world_with(NULL, 0);
	struct sio_policy *policy = &w->topology->policy;
	struct world_client *l = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *b = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct world_client *c = world_client(w, 1, SIO_CLIENT_LIBRARY);
	struct call_borrow own, far, other;
	uint32_t handle;

	(void)state;
	policy->node[SIO_QUOTA_EXPORTED] = (struct sio_limit){true, 12288};
	policy->program[SIO_QUOTA_EXPORTED] = (struct sio_limit){true, 12288};
	assert_int_equal(call_borrow(w, l, FDID, 0, &own), 0);
	assert_int_equal(call_borrow(w, b, FDID, 0, &far), 0);
	assert_int_equal(call_borrow(w, c, FDID, 0, &other), 0);
	assert_int_equal(place(w, b, &far, 1), 0);
	assert_int_equal(place(w, c, &other, 1), ENOSPC);
	assert_non_null(strstr(said(c), "(quotas.node.exported of the cluster's file): it has 8K"));
	assert_int_equal(place(w, l, &own, 1), 0);
	assert_int_equal(call_seg_export(w, l, 1, 8192, &handle), ENOSPC);
	assert_int_equal(place(w, l, &own, 2), ENOSPC);
	assert_int_equal(call_seg_export(w, l, 1, 4096, &handle), 0);
	world_kill(w, b);
	world_run(w);
	assert_int_equal(place(w, c, &other, 1), 0);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lender_refuses_a_node_that_is_not_in_the_list),
		cmocka_unit_test(the_exporter_refuses_segments_of_a_range),
		cmocka_unit_test(a_lender_that_may_not_have_a_segment_maps_it_for_nobody),
		cmocka_unit_test(a_lender_has_what_was_mapped_for_its_device_alone),
		cmocka_unit_test(the_receiver_refuses_interrupts_of_a_range),
		cmocka_unit_test(an_interrupt_without_a_number_has_one_that_is_allowed),
		cmocka_unit_test(a_program_of_another_user_is_refused_at_home),
		cmocka_unit_test(between_machines_nothing_is_shared_unless_the_file_says_so),
		cmocka_unit_test(who_writes_to_a_group_may_have_the_members_segments),
		cmocka_unit_test(what_a_program_has_counts_back),
		cmocka_unit_test(connections_of_a_process_share_an_account),
		cmocka_unit_test(another_process_has_an_account_of_its_own),
		cmocka_unit_test(what_a_node_has_counts_back),
		cmocka_unit_test(memory_beside_a_device_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
