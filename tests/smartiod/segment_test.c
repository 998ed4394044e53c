/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments between two hosts: states, references, windows, events. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "calls.h"
#include "segment_world.h"

static void hello_gives_owner_and_status_page(void **state)
{
	struct fixture *f = *state;
	const struct world_message *m = f->exporter->message[0];
	const struct sio_rep_hello *rep = (const void *)m->data;

	assert_int_equal(m->type, SIO_MSG_HELLO);
	assert_int_equal(m->n_fds, 2);
	assert_int_equal(sio_from_le32(rep->node), 4);
	assert_string_equal(rep->host, "host0");
	assert_string_equal(rep->cluster, "test");
	assert_int_equal(world_resources(f->w, SIO_KIND_OWNER), 2);
	/* The daemons keep the status pages and no copy of an owner. */
	assert_int_equal(world_open_fds(f->w), 2);
}

static void create_checks_what_it_is_given(void **state)
{
	struct fixture *f = *state;
	uint32_t h, id;

	assert_int_equal(call_seg_create(f->w, f->exporter, 7, 0, 0, &h, &id), EINVAL);
	assert_int_equal(call_seg_create(f->w, f->exporter, 7, 257u << 20, 0, &h, &id), ENOSPC);
	assert_int_equal(call_seg_create(f->w, f->exporter, 7, UINT64_MAX, 0, &h, &id), ENOSPC);
	assert_int_equal(call_seg_create(f->w, f->exporter, 7, 1,
					 SCI_FLAG_BROADCAST | SCI_FLAG_PRIVATE, &h, &id),
			 EINVAL);
	assert_int_equal(call_seg_create(f->w, f->exporter, 8, 1, SCI_FLAG_BROADCAST, &h, &id),
			 EINVAL);
	assert_int_equal(call_seg_create(f->w, f->exporter, 7, 1, SCI_FLAG_ALLOW_UNICAST, &h, &id),
			 EINVAL);
	assert_int_equal(call_seg_create(f->w, f->exporter, 7, 1, SCI_FLAG_PHYSICAL, &h, &id),
			 EOPNOTSUPP);
	assert_int_equal(call_seg_create(f->w, f->exporter, 7, 1, 0x40000000, &h, &id), EINVAL);
	assert_int_equal(call_seg_create(f->w, f->exporter, 7, 4096, SIO_SEG_IMPORT, &h, &id),
			 EMFILE);
	assert_int_equal(call_seg_create(f->w, f->exporter, 7, 4096,
					 SIO_SEG_IMPORT | SCI_FLAG_EMPTY, &h, &id),
			 EINVAL);
	assert_int_equal(call_seg_create(f->w, f->exporter, 7, 1, 0, &h, &id), 0);
	assert_int_equal(id, 7);
	assert_int_equal(call_seg_create(f->w, f->exporter, 7, 1, 0, &h, &id), EEXIST);
	/* Another program of the same host, too; another host has its own ids. */
	assert_int_equal(call_seg_create(f->w, f->importer, 7, 1, 0, &h, &id), 0);
	assert_int_equal(call_seg_create(f->w, f->exporter, 7, 1, SCI_FLAG_AUTO_ID, &h, &id), 0);
	assert_int_equal(id, 8);
	assert_int_equal(call_seg_create(f->w, f->exporter, UINT32_MAX, 1, 0, &h, &id), 0);
	/* Behind the greatest comes the least: 0, then 1. */
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(call_seg_create(f->w, f->exporter, UINT32_MAX, 1, SCI_FLAG_AUTO_ID,
						 &h, &id),
				 0);
		assert_int_equal(id, i);
	}
	assert_int_equal(call_seg_create(f->w, f->exporter, 0, 1, 0, &h, &id), EEXIST);
}

static void states_follow_the_table(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = f->exporter;
	uint32_t h, remote;

	assert_int_equal(call_seg_create(f->w, c, 1, 4096, 0, &h, NULL), 0);
	assert_int_equal(call_seg_adapter(f->w, c, SIO_MSG_SEG_AVAILABLE, h, 0, 0), EPERM);
	assert_int_equal(call_seg_adapter(f->w, c, SIO_MSG_SEG_UNAVAILABLE, h, 0, 0), EPERM);
	assert_int_equal(call_seg_adapter(f->w, c, SIO_MSG_SEG_PREPARE, h, 1, 0), ENXIO);
	assert_int_equal(call_seg_adapter(f->w, c, SIO_MSG_SEG_PREPARE, h + 9, 0, 0), EBADF);
	assert_int_equal(call_seg_adapter(f->w, c, SIO_MSG_SEG_PREPARE, h, 0, 0), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &remote), ENOENT);
	assert_int_equal(call_seg_adapter(f->w, c, SIO_MSG_SEG_UNAVAILABLE, h, 0, 0), 0);
	assert_int_equal(call_seg_adapter(f->w, c, SIO_MSG_SEG_AVAILABLE, h, 0, 0), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &remote), 0);
	assert_int_equal(call_seg_adapter(f->w, c, SIO_MSG_SEG_UNAVAILABLE, h, 0, 0), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &remote), ENOENT);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_DISCONNECT, remote, 0), 0);
	assert_int_equal(call_handle(f->w, c, SIO_MSG_SEG_REMOVE, h, 0), 0);
	assert_int_equal(call_handle(f->w, c, SIO_MSG_SEG_REMOVE, h, 0), EBADF);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
}

static void private_segments_stay_private(void **state)
{
	struct fixture *f = *state;
	uint32_t h;

	assert_int_equal(call_seg_create(f->w, f->exporter, 1, 1, SCI_FLAG_PRIVATE, &h, NULL), 0);
	assert_int_equal(call_seg_adapter(f->w, f->exporter, SIO_MSG_SEG_PREPARE, h, 0, 0), 0);
	assert_int_equal(call_seg_adapter(f->w, f->exporter, SIO_MSG_SEG_AVAILABLE, h, 0, 0),
			 EPERM);
}

static void maps_share_one_window(void **state)
{
	struct fixture *f = *state;
	uint32_t h, c, m1, m2;

	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 8192, &h), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
	expect_event(f->exporter, SIO_EVM_SEGMENT_LOCAL, 0, h, SCI_CB_CONNECT, 0);
	assert_int_equal(call_seg_map(f->w, f->importer, c, 0, 0, &m1), EINVAL);
	assert_int_equal(call_seg_map(f->w, f->importer, c, 4096, 4097, &m1), ERANGE);
	assert_int_equal(call_seg_map(f->w, f->importer, c, UINT64_MAX, 2, &m1), ERANGE);
	assert_int_equal(call_seg_map(f->w, f->importer, c, 0, 8192, &m1), 0);
	assert_int_equal(call_seg_map(f->w, f->importer, c, 4096, 4096, &m2), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 1);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 1);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_DISCONNECT, c, 0), EBUSY);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_UNMAP, m1, 0), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 1);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_UNMAP, m1, 0), EBADF);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_UNMAP, m2, 0), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_DISCONNECT, c, 0), 0);
	expect_event(f->exporter, SIO_EVM_SEGMENT_LOCAL, 1, h, SCI_CB_DISCONNECT, 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
}

/* Requests that come while the window is being made wait for it. */
static void maps_at_the_same_time_share_too(void **state)
{
	struct fixture *f = *state;
	uint32_t h, c, id[4];

	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 8192, &h), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
	for (unsigned i = 0; i < 4; i++) {
		struct sio_msg_seg_map msg = {.handle = sio_to_le32(c), .bytes = sio_to_le64(4096)};

		id[i] = world_send(f->w, f->importer, SIO_MSG_SEG_MAP, &msg, sizeof(msg));
	}
	world_run(f->w);
	for (unsigned i = 0; i < 4; i++) {
		assert_non_null(world_reply(f->importer, id[i]));
		assert_int_equal(world_reply(f->importer, id[i])->error, 0);
	}
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 1);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 1);
}

/* The one in front fails: the next one tries again, and nothing of the first is left. */
static void a_failed_map_lets_the_next_try(void **state)
{
	struct fixture *f = *state;
	uint32_t h, c, id[2];

	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 8192, &h), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
	f->w->fail_at = f->w->requests + 2; /* GRANT, then the importer's MAP */
	for (unsigned i = 0; i < 2; i++) {
		struct sio_msg_seg_map msg = {.handle = sio_to_le32(c), .bytes = sio_to_le64(4096)};

		id[i] = world_send(f->w, f->importer, SIO_MSG_SEG_MAP, &msg, sizeof(msg));
	}
	world_run(f->w);
	assert_int_equal(world_reply(f->importer, id[0])->error, ENOSPC);
	assert_int_equal(world_reply(f->importer, id[1])->error, 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 1);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 1);
}

static void own_node_needs_no_window(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	uint32_t h, c, m;

	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &h), 0);
	assert_int_equal(call_seg_connect(f->w, other, 4, 1, &c), 0);
	expect_event(f->exporter, SIO_EVM_SEGMENT_LOCAL, 0, h, SCI_CB_CONNECT, 0);
	assert_int_equal(call_seg_map(f->w, other, c, 0, 4096, &m), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	assert_int_equal(
		call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, SCI_FLAG_FORCE_REMOVE), 0);
	expect_event(other, SIO_EVM_SEGMENT_REMOTE, 0, c, SCI_CB_DISCONNECT, 1);
	assert_int_equal(call_seg_map(f->w, other, c, 0, 4096, &m), ECONNRESET);
	world_kill(f->w, other);
}

/* One of each kind of importer has it, two of them mapped. */
struct importers {
	struct world_client *local;
	uint32_t h, near, far, far_map, near_map;
};

static void import(struct fixture *f, struct importers *i)
{
	i->local = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	world_forget(f->importer);
	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &i->h), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &i->far), 0);
	assert_int_equal(call_seg_map(f->w, f->importer, i->far, 0, 4096, &i->far_map), 0);
	assert_int_equal(call_seg_connect(f->w, i->local, 4, 1, &i->near), 0);
	assert_int_equal(call_seg_map(f->w, i->local, i->near, 0, 4096, &i->near_map), 0);
}

static void expect_removed(struct fixture *f, const struct importers *i)
{
	uint32_t c;

	expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 0, i->far, SCI_CB_DISCONNECT,
		     SIO_LOSS_REMOVED);
	expect_event(i->local, SIO_EVM_SEGMENT_REMOTE, 0, i->near, SCI_CB_DISCONNECT,
		     SIO_LOSS_REMOVED);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, i->h, 0), EBADF);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), ENOENT);
	assert_int_equal(call_seg_connect(f->w, i->local, 4, 1, &c), ENOENT);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 1);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 1);
	assert_int_equal(f->w->wild, 0);
}

/* They can do with it what they could before; the last one that disconnects ends it. */
static void leave(struct fixture *f, const struct importers *i)
{
	uint32_t m;

	assert_int_equal(call_seg_map(f->w, f->importer, i->far, 0, 4096, &m), 0);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_UNMAP, i->far_map, 0), 0);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_UNMAP, m, 0), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	assert_int_equal(call_seg_map(f->w, f->importer, i->far, 0, 4096, &m), 0);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_UNMAP, m, 0), 0);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_DISCONNECT, i->far, 0), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 1);
	assert_int_equal(call_handle(f->w, i->local, SIO_MSG_SEG_UNMAP, i->near_map, 0), 0);
	assert_int_equal(call_handle(f->w, i->local, SIO_MSG_SEG_DISCONNECT, i->near, 0), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	world_kill(f->w, i->local);
}

static void a_removed_segment_is_kept_for_importers(void **state)
{
	struct fixture *f = *state;
	struct importers i;
	uint32_t again;

	import(f, &i);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, i.h, 0), 0);
	expect_removed(f, &i);
	/* Its id is free at once. */
	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &again), 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, again, 0), 0);
	leave(f, &i);
}

/* Whoever ends, in whatever order: its maker, or importers without a word. */
static void a_kept_segment_outlives_its_maker(void **state)
{
	struct fixture *f = *state;
	struct importers i;
	uint32_t m;

	import(f, &i);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, i.h, 0), 0);
	world_kill(f->w, f->exporter);
	world_run(f->w);
	assert_null(world_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 1));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 1);
	assert_int_equal(f->w->wild, 0);
	assert_int_equal(call_seg_map(f->w, f->importer, i.far, 0, 4096, &m), 0);
	world_kill(f->w, f->importer);
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 1);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	world_kill(f->w, i.local);
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
}

/*
 * The maker ends at any packet of its removal: what the port gave us is kept, what it refused is
 * lost with its maker. Nothing is left in the end.
 */
static void the_maker_ends_while_it_removes(void **state)
{
	struct fixture *f = *state;

	for (unsigned n = 0; n < 36; n++) {
		struct world_client *maker = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
		struct sio_msg_handle remove = {0};
		bool refused = n % 2;
		uint32_t h, c, m;

		world_forget(f->importer);
		assert_int_equal(call_seg_export(f->w, maker, 1, 4096, &h), 0);
		assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
		assert_int_equal(call_seg_map(f->w, f->importer, c, 0, 4096, &m), 0);
		remove.handle = sio_to_le32(h);
		f->w->fail_at = refused ? f->w->requests + 1 : 0;
		world_send(f->w, maker, SIO_MSG_SEG_REMOVE, &remove, sizeof(remove));
		for (unsigned i = 0; i < n / 6; i++)
			world_step(f->w);
		f->w->fail_at = 0;
		f->w->style = n / 2 % 3;
		world_kill(f->w, maker);
		world_run(f->w);
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), !refused);
		if (!refused)
			expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 0, c, SCI_CB_DISCONNECT,
				     SIO_LOSS_REMOVED);
		else
			expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE,
				     world_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 1) != NULL, c,
				     SCI_CB_LOST, SIO_LOSS_LOST);
		assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_UNMAP, m, 0), 0);
		assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_DISCONNECT, c, 0), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
		assert_int_equal(f->w->wild, 0);
	}
	f->w->style = WORLD_KILL;
}

/* The port has no memory for GIVE: kept all the same, as long as its maker lives. */
static void a_port_that_gives_nothing(void **state)
{
	struct fixture *f = *state;
	struct importers i;

	for (unsigned ends = 0; ends < 2; ends++) {
		import(f, &i);
		f->w->fail_at = f->w->requests + 1;
		assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, i.h, 0), 0);
		f->w->fail_at = 0;
		expect_removed(f, &i);
		if (ends)
			break;
		leave(f, &i);
	}
	world_kill(f->w, f->exporter);
	world_run(f->w);
	expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 1, i.far, SCI_CB_LOST, SIO_LOSS_LOST);
	expect_event(i.local, SIO_EVM_SEGMENT_REMOTE, 1, i.near, SCI_CB_LOST, SIO_LOSS_LOST);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	world_kill(f->w, i.local);
}

/* An importer's host is lost: its grant is in quarantine, and the segment with it. */
static void a_kept_segment_of_a_lost_host(void **state)
{
	struct fixture *f = *state;
	uint32_t h, c, m;

	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &h), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
	assert_int_equal(call_seg_map(f->w, f->importer, c, 0, 4096, &m), 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0), 0);
	world_cut(f->w, 0, 1);
	world_kill(f->w, f->exporter);
	world_run(f->w);
	expect_kept(f->w, 0, 1, 1);
	world_pass(f->w, 2 * 20000000); /* a daemon tries again, and the two ask each other */
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	assert_int_equal(f->w->wild, 0);
}

static void force_remove_takes_it_from_importers(void **state)
{
	struct fixture *f = *state;
	uint32_t h, h2, c, m;

	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &h), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
	assert_int_equal(call_seg_map(f->w, f->importer, c, 0, 4096, &m), 0);
	assert_int_equal(
		call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, SCI_FLAG_FORCE_REMOVE), 0);
	expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 0, c, SCI_CB_DISCONNECT, 1);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	assert_int_equal(call_seg_map(f->w, f->importer, c, 0, 4096, &m), ECONNRESET);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_UNMAP, m, 0), 0);
	assert_int_equal(call_handle(f->w, f->importer, SIO_MSG_SEG_DISCONNECT, c, 0), 0);
	/* The id is free again. */
	assert_int_equal(call_seg_create(f->w, f->exporter, 1, 1, 0, &h2, NULL), 0);
}

/* Removed while an importer connects and maps, after each packet: it gets an error, or is told. */
static void removal_overtakes_a_connection(void **state)
{
	struct fixture *f = *state;
	bool done = false;

	for (unsigned n = 0; !done; n++) {
		const struct world_message *m;
		uint32_t h, c, id;

		assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &h), 0);
		world_forget(f->importer);
		done = call_seg_join(f->w, f->importer, 4, n, &id, &c);
		assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h,
					     SCI_FLAG_FORCE_REMOVE),
				 0);
		m = world_reply(f->importer, id);
		assert_non_null(m);
		if (!m->error && !c)
			c = sio_from_le32(((const struct sio_rep_seg_connect *)m->data)->handle);
		if (!m->error)
			expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 0, c, SCI_CB_DISCONNECT,
				     1);
		assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	}
}

/*
 * A handle can be guessed: what is taken away by force before it was made is not answered as if it
 * were there.
 */
static void removed_before_it_was_made(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_seg_create create = {.segment_id = sio_to_le32(1),
					    .bytes = sio_to_le64(4096)};
	struct sio_msg_handle remove = {.handle = sio_to_le32(1),
					.flags = sio_to_le32(SCI_FLAG_FORCE_REMOVE)};
	uint32_t made, gone;

	made = world_send(f->w, f->exporter, SIO_MSG_SEG_CREATE, &create, sizeof(create));
	gone = world_send(f->w, f->exporter, SIO_MSG_SEG_REMOVE, &remove, sizeof(remove));
	world_run(f->w);
	assert_int_equal(world_reply(f->exporter, gone)->error, 0);
	assert_int_equal(world_reply(f->exporter, made)->error, ECANCELED);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
}

static void unavailable_tells_or_cuts_importers(void **state)
{
	struct fixture *f = *state;
	uint32_t h, c;

	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &h), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
	assert_int_equal(
		call_seg_adapter(f->w, f->exporter, SIO_MSG_SEG_UNAVAILABLE, h, 0, SCI_FLAG_NOTIFY),
		0);
	expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 0, c, SCI_CB_DISCONNECT, 0);
	assert_int_equal(call_seg_adapter(f->w, f->exporter, SIO_MSG_SEG_AVAILABLE, h, 0, 0), 0);
	assert_int_equal(call_seg_adapter(f->w, f->exporter, SIO_MSG_SEG_UNAVAILABLE, h, 0,
					  SCI_FLAG_FORCE_DISCONNECT),
			 0);
	expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 1, c, SCI_CB_DISCONNECT, 1);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0), 0);
}

static void death_of_a_side_is_told_to_the_other(void **state)
{
	struct fixture *f = *state;
	uint32_t h, c, m;

	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &h), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
	assert_int_equal(call_seg_map(f->w, f->importer, c, 0, 4096, &m), 0);
	world_kill(f->w, f->importer);
	world_run(f->w);
	expect_event(f->exporter, SIO_EVM_SEGMENT_LOCAL, 1, h, SCI_CB_LOST, 0);
	/* One that says that it ends by itself leaves, whichever of its ends is seen first. */
	for (unsigned i = 0; i < 2; i++) {
		struct sio_msg_bye bye = {.h.size = 0};

		f->w->style = i ? WORLD_OWNER_FIRST : WORLD_KILL;
		f->importer = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
		assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
		assert_int_equal(call_seg_map(f->w, f->importer, c, 0, 4096, &m), 0);
		assert_int_equal(
			world_call(f->w, f->importer, SIO_MSG_BYE, &bye, sizeof(bye))->error, 0);
		world_kill(f->w, f->importer);
		world_run(f->w);
		expect_event(f->exporter, SIO_EVM_SEGMENT_LOCAL, 3 + 2 * i, h, SCI_CB_DISCONNECT,
			     0);
	}
	f->importer = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
	assert_int_equal(call_seg_map(f->w, f->importer, c, 0, 4096, &m), 0);
	world_kill(f->w, f->exporter);
	world_run(f->w);
	expect_event(f->importer, SIO_EVM_SEGMENT_REMOTE, 0, c, SCI_CB_LOST, 1);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
}

static void an_empty_segment_is_filled(void **state)
{
	struct fixture *f = *state;
	const struct world_message *m;
	struct sio_msg_handle msg = {.flags = sio_to_le32(SIO_MEMORY_PAGES)};
	uint32_t h, c;
	sio_le64 key;

	assert_int_equal(call_seg_create(f->w, f->exporter, 1, 5000, SCI_FLAG_EMPTY, &h, NULL), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	assert_int_equal(call_seg_adapter(f->w, f->exporter, SIO_MSG_SEG_PREPARE, h, 0, 0), EPERM);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), ENOENT);
	assert_int_equal(call_seg_attach(f->w, f->exporter, 1, &c), ENOENT);
	f->w->fail_at = f->w->requests + 1;
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_FILL, h, SIO_MEMORY_PAGES),
			 ENOSPC);
	msg.handle = sio_to_le32(h);
	m = world_call(f->w, f->exporter, SIO_MSG_SEG_FILL, &msg, sizeof(msg));
	assert_int_equal(m->error, 0);
	assert_int_equal(m->n_fds, 1);
	assert_int_equal(sio_from_le64(((const struct sio_rep_seg_create *)m->data)->bytes), 8192);
	key = ((const struct sio_rep_seg_create *)m->data)->key;
	/* Asked again, as by a program that had no room for the descriptor. */
	m = world_call(f->w, f->exporter, SIO_MSG_SEG_FILL, &msg, sizeof(msg));
	assert_int_equal(m->error, 0);
	assert_int_equal(m->n_fds, 1);
	assert_memory_equal(&((const struct sio_rep_seg_create *)m->data)->key, &key, sizeof(key));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 1);
	assert_int_equal(call_seg_create(f->w, f->exporter, 2, 1, 0, &c, NULL), 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_FILL, c, SIO_MEMORY_PAGES),
			 EPERM);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, c, 0), 0);
	assert_int_equal(call_seg_adapter(f->w, f->exporter, SIO_MSG_SEG_PREPARE, h, 0, 0), 0);
	assert_int_equal(call_seg_adapter(f->w, f->exporter, SIO_MSG_SEG_AVAILABLE, h, 0, 0), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
	assert_int_equal(
		call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, SCI_FLAG_FORCE_REMOVE), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	/* Removed empty, and while it is filled. */
	assert_int_equal(call_seg_create(f->w, f->exporter, 1, 1, SCI_FLAG_EMPTY, &h, NULL), 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0), 0);
	assert_int_equal(call_seg_create(f->w, f->exporter, 1, 1, SCI_FLAG_EMPTY, &h, NULL), 0);
	msg.handle = sio_to_le32(h);
	world_send(f->w, f->exporter, SIO_MSG_SEG_FILL, &msg, sizeof(msg));
	assert_int_equal(
		call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, SCI_FLAG_FORCE_REMOVE), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
}

/* With @n descriptors. Return: the reply. */
static const struct world_message *take(struct fixture *f, struct world_client *c, uint32_t h,
					uint64_t offset, unsigned n)
{
	struct sio_msg_seg_take msg = {.handle = sio_to_le32(h),
				       .memory = sio_to_le32(SIO_MEMORY_DMABUF),
				       .offset = sio_to_le64(offset)};
	uint32_t id = world_send_with(f->w, c, SIO_MSG_SEG_TAKE, &msg, sizeof(msg), n);

	world_run(f->w);
	return world_reply(c, id);
}

static void an_empty_segment_takes_a_dmabuf(void **state)
{
	struct fixture *f = *state;
	const struct world_message *m;
	const unsigned fds = world_open_fds(f->w);
	uint32_t h, full;
	sio_le64 key;

	assert_int_equal(call_seg_create(f->w, f->exporter, 1, 8000, SCI_FLAG_EMPTY, &h, NULL), 0);
	assert_int_equal(call_seg_create(f->w, f->exporter, 2, 8000, 0, &full, NULL), 0);
	assert_int_equal(take(f, f->exporter, h, 0, 0)->error, EMFILE);
	assert_int_equal(take(f, f->exporter, h, 1, 1)->error, EINVAL);
	assert_int_equal(take(f, f->exporter, full, 0, 1)->error, EPERM);
	assert_int_equal(take(f, f->exporter, h + 77, 0, 1)->error, EBADF);
	f->w->fail_at = f->w->requests + 1;
	assert_int_equal(take(f, f->exporter, h, 4096, 1)->error, ENOSPC);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, full, 0), 0);
	assert_int_equal(world_open_fds(f->w), fds);
	m = take(f, f->exporter, h, 4096, 1);
	assert_int_equal(m->error, 0);
	assert_int_equal(m->n_fds, 1);
	assert_int_equal(sio_from_le64(((const struct sio_rep_seg_create *)m->data)->bytes), 8192);
	key = ((const struct sio_rep_seg_create *)m->data)->key;
	/* Asked again: the same memory, and the second descriptor is nobody's. */
	m = take(f, f->exporter, h, 4096, 1);
	assert_int_equal(m->error, 0);
	assert_memory_equal(&((const struct sio_rep_seg_create *)m->data)->key, &key, sizeof(key));
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 1);
	/* Neither is taken for the other, when only the descriptor did not arrive. */
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_FILL, h, SIO_MEMORY_PAGES),
			 EPERM);
	assert_int_equal(call_seg_create(f->w, f->exporter, 3, 8000, SCI_FLAG_EMPTY, &full, NULL),
			 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_FILL, full, SIO_MEMORY_PAGES),
			 0);
	assert_int_equal(take(f, f->exporter, full, 0, 1)->error, EPERM);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, full, 0), 0);
	assert_int_equal(call_seg_adapter(f->w, f->exporter, SIO_MSG_SEG_PREPARE, h, 0, 0), 0);
	assert_int_equal(call_handle(f->w, f->exporter, SIO_MSG_SEG_REMOVE, h, 0), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, segment_setup, segment_teardown)
	const struct CMUnitTest tests[] = {
		CASE(hello_gives_owner_and_status_page),
		CASE(create_checks_what_it_is_given),
		CASE(states_follow_the_table),
		CASE(private_segments_stay_private),
		CASE(maps_share_one_window),
		CASE(maps_at_the_same_time_share_too),
		CASE(a_failed_map_lets_the_next_try),
		CASE(own_node_needs_no_window),
		CASE(a_removed_segment_is_kept_for_importers),
		CASE(a_kept_segment_outlives_its_maker),
		CASE(the_maker_ends_while_it_removes),
		CASE(a_port_that_gives_nothing),
		CASE(a_kept_segment_of_a_lost_host),
		CASE(force_remove_takes_it_from_importers),
		CASE(removal_overtakes_a_connection),
		CASE(removed_before_it_was_made),
		CASE(unavailable_tells_or_cuts_importers),
		CASE(death_of_a_side_is_told_to_the_other),
		CASE(an_empty_segment_is_filled),
		CASE(an_empty_segment_takes_a_dmabuf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
