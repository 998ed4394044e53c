/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "calls.h"
#include "smartiod/base/session.h"

static int result(const struct world_message *m)
{
	return m ? (int)m->error : -1;
}

int call_seg_create(struct world *w, struct world_client *c, uint32_t id, uint64_t bytes,
		    uint32_t flags, uint32_t *ret_handle, uint32_t *ret_id)
{
	struct sio_msg_seg_create msg = {.segment_id = sio_to_le32(id),
					 .flags = sio_to_le32(flags),
					 .bytes = sio_to_le64(bytes)};
	const struct world_message *m = world_call(w, c, SIO_MSG_SEG_CREATE, &msg, sizeof(msg));

	if (m && !m->error) {
		const struct sio_rep_seg_create *rep = (const void *)m->data;

		assert_int_equal(m->len, sizeof(*rep));
		assert_int_equal(m->n_fds, flags & SCI_FLAG_EMPTY ? 0 : 1);
		*ret_handle = sio_from_le32(rep->handle);
		if (ret_id)
			*ret_id = sio_from_le32(rep->segment_id);
	}
	return result(m);
}

int call_seg_adapter(struct world *w, struct world_client *c, uint32_t type, uint32_t handle,
		     uint32_t adapter, uint32_t flags)
{
	struct sio_msg_seg_adapter msg = {.handle = sio_to_le32(handle),
					  .adapter = sio_to_le32(adapter),
					  .flags = sio_to_le32(flags)};

	return result(world_call(w, c, type, &msg, sizeof(msg)));
}

int call_seg_export(struct world *w, struct world_client *c, uint32_t id, uint64_t bytes,
		    uint32_t *ret_handle)
{
	int rc = call_seg_create(w, c, id, bytes, 0, ret_handle, NULL);

	if (rc == 0)
		rc = call_seg_adapter(w, c, SIO_MSG_SEG_PREPARE, *ret_handle, 0, 0);
	if (rc == 0)
		rc = call_seg_adapter(w, c, SIO_MSG_SEG_AVAILABLE, *ret_handle, 0, 0);
	return rc;
}

int call_seg_connect_at(struct world *w, struct world_client *c, uint32_t node, uint32_t id,
			uint32_t adapter, uint32_t *ret_handle)
{
	struct sio_msg_seg_connect msg = {.node = sio_to_le32(node),
					  .segment_id = sio_to_le32(id),
					  .adapter = sio_to_le32(adapter)};
	const struct world_message *m = world_call(w, c, SIO_MSG_SEG_CONNECT, &msg, sizeof(msg));

	if (m && !m->error) {
		const struct sio_rep_seg_connect *rep = (const void *)m->data;

		assert_int_equal(m->len, sizeof(*rep));
		assert_int_equal(sio_from_le32(rep->node), node);
		*ret_handle = sio_from_le32(rep->handle);
	}
	return result(m);
}

int call_seg_connect(struct world *w, struct world_client *c, uint32_t node, uint32_t id,
		     uint32_t *ret_handle)
{
	return call_seg_connect_at(w, c, node, id, 0, ret_handle);
}

int call_seg_map(struct world *w, struct world_client *c, uint32_t handle, uint64_t offset,
		 uint64_t bytes, uint32_t *ret_map)
{
	struct sio_msg_seg_map msg = {.handle = sio_to_le32(handle),
				      .offset = sio_to_le64(offset),
				      .bytes = sio_to_le64(bytes)};
	const struct world_message *m = world_call(w, c, SIO_MSG_SEG_MAP, &msg, sizeof(msg));

	if (m && !m->error) {
		const struct sio_rep_seg_map *rep = (const void *)m->data;

		assert_int_equal(m->len, sizeof(*rep));
		assert_int_equal(m->n_fds, 1);
		assert_int_equal(sio_from_le32(rep->n_pieces), 1);
		assert_int_equal(sio_from_le64(rep->piece[0].bytes), bytes);
		*ret_map = sio_from_le32(rep->map);
	}
	return result(m);
}

int call_group_connect(struct world *w, struct world_client *c, uint32_t group,
		       uint32_t *ret_handle)
{
	struct sio_msg_seg_connect msg = {.node = sio_to_le32(DIS_BROADCAST_NODEID_GROUP_ALL),
					  .segment_id = sio_to_le32(group),
					  .flags = sio_to_le32(SCI_FLAG_BROADCAST)};
	const struct world_message *m = world_call(w, c, SIO_MSG_SEG_CONNECT, &msg, sizeof(msg));

	if (m && !m->error) {
		const struct sio_rep_seg_connect *rep = (const void *)m->data;

		assert_int_equal(sio_from_le32(rep->path), SIO_PATH_EXACT);
		*ret_handle = sio_from_le32(rep->handle);
	}
	return result(m);
}

int call_group_map(struct world *w, struct world_client *c, uint32_t handle, uint32_t *ret_map)
{
	struct sio_msg_seg_map msg = {.handle = sio_to_le32(handle),
				      .flags = sio_to_le32(SCI_FLAG_READONLY_MAP),
				      .bytes = sio_to_le64(4096)};
	const struct world_message *m = world_call(w, c, SIO_MSG_SEG_MAP, &msg, sizeof(msg));

	if (m && !m->error)
		*ret_map = sio_from_le32(((const struct sio_rep_seg_map *)m->data)->map);
	return result(m);
}

bool call_seg_join(struct world *w, struct world_client *c, uint32_t node, unsigned steps,
		   uint32_t *ret_request, uint32_t *ret_handle)
{
	struct sio_msg_seg_connect con = {.node = sio_to_le32(node), .segment_id = sio_to_le32(1)};
	struct sio_msg_seg_map map = {.bytes = sio_to_le64(4096)};
	uint32_t id = world_send(w, c, SIO_MSG_SEG_CONNECT, &con, sizeof(con));
	bool done = false;

	for (unsigned i = 0; i < steps; i++) {
		const struct world_message *m;

		done = !world_step(w);
		m = world_reply(c, id);
		if (m && !m->error && !map.handle) {
			map.handle = ((const struct sio_rep_seg_connect *)m->data)->handle;
			id = world_send(w, c, SIO_MSG_SEG_MAP, &map, sizeof(map));
			done = false;
		}
	}
	*ret_request = id;
	*ret_handle = sio_from_le32(map.handle);
	return done;
}

int call_seg_attach(struct world *w, struct world_client *c, uint32_t id, uint32_t *ret_handle)
{
	struct sio_msg_seg_attach msg = {.segment_id = sio_to_le32(id)};
	const struct world_message *m = world_call(w, c, SIO_MSG_SEG_ATTACH, &msg, sizeof(msg));

	*ret_handle = 0;
	if (m && !m->error) {
		*ret_handle = sio_from_le32(((const struct sio_rep_seg_attach *)m->data)->handle);
		assert_int_equal(m->n_fds, 1);
	}
	return m ? (int)m->error : -1;
}

void expect_event(struct world_client *c, uint32_t type, unsigned nth, uint32_t handle,
		  uint32_t reason, uint32_t lost)
{
	const struct sio_evm_segment *evm = world_event(c, type, nth);

	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->handle), handle);
	assert_int_equal(sio_from_le32(evm->reason), reason);
	assert_int_equal(sio_from_le32(evm->loss), lost);
}

void expect_kept(const struct world *w, unsigned host, unsigned grants, unsigned mems)
{
	assert_int_equal(world_count(w, host, SIO_KIND_GRANT), grants);
	assert_int_equal(world_count(w, host, SIO_KIND_MEM), mems);
	assert_int_equal(w->wild, 0);
}

int call_seg_remove(struct world *w, struct world_client *c, uint32_t handle)
{
	struct sio_msg_handle msg = {.handle = sio_to_le32(handle)};
	uint32_t id = world_send(w, c, SIO_MSG_SEG_REMOVE, &msg, sizeof(msg));

	world_run(w);
	return result(world_reply(c, id));
}

int call_handle(struct world *w, struct world_client *c, uint32_t type, uint32_t handle,
		uint32_t flags)
{
	struct sio_msg_handle msg = {.handle = sio_to_le32(handle), .flags = sio_to_le32(flags)};

	return result(world_call(w, c, type, &msg, sizeof(msg)));
}

int call_queue_create(struct world *w, struct world_client *c, uint32_t adapter,
		      uint32_t *ret_handle)
{
	struct sio_msg_queue_create msg = {.adapter = sio_to_le32(adapter)};
	const struct world_message *m = world_call(w, c, SIO_MSG_QUEUE_CREATE, &msg, sizeof(msg));

	if (m && !m->error) {
		const struct sio_rep_queue_create *rep = (const void *)m->data;

		assert_int_equal(m->len, sizeof(*rep));
		assert_int_equal(m->n_fds, 3);
		assert_true(sio_from_le64(rep->bytes) >= sizeof(struct sio_dma_ring));
		*ret_handle = sio_from_le32(rep->handle);
	}
	return result(m);
}

int call_queue_attach(struct world *w, struct world_client *c, uint32_t queue, uint32_t segment,
		      bool remote, uint32_t *ret_slot, uint64_t *ret_range)
{
	struct sio_msg_queue_attach msg = {.queue = sio_to_le32(queue),
					   .segment = sio_to_le32(segment),
					   .remote = sio_to_le32(remote)};
	const struct world_message *m = world_call(w, c, SIO_MSG_QUEUE_ATTACH, &msg, sizeof(msg));

	if (m && !m->error) {
		const struct sio_rep_queue_attach *rep = (const void *)m->data;

		assert_int_equal(m->len, sizeof(*rep));
		*ret_slot = sio_from_le32(rep->slot);
		*ret_range = sio_from_le64(rep->range);
	}
	return result(m);
}

int call_queue_attach_bar(struct world *w, struct world_client *c, uint32_t queue, uint32_t bar,
			  uint64_t offset, uint64_t *ret_range)
{
	struct sio_msg_queue_attach msg = {.queue = sio_to_le32(queue),
					   .segment = sio_to_le32(bar),
					   .remote = sio_to_le32(1),
					   .offset = sio_to_le64(offset),
					   .bytes = sio_to_le64(8)};
	const struct world_message *m = world_call(w, c, SIO_MSG_QUEUE_ATTACH, &msg, sizeof(msg));

	if (m && !m->error)
		*ret_range = sio_from_le64(
			((const struct sio_rep_queue_attach *)(const void *)m->data)->range);
	return result(m);
}

int call_queue_detach(struct world *w, struct world_client *c, uint32_t queue, uint64_t range)
{
	struct sio_msg_queue_detach msg = {.queue = sio_to_le32(queue),
					   .range = sio_to_le64(range)};

	return result(world_call(w, c, SIO_MSG_QUEUE_DETACH, &msg, sizeof(msg)));
}

int call_dint_create(struct world *w, struct world_client *c, uint32_t number, uint32_t flags,
		     uint32_t *ret_handle, uint32_t *ret_number)
{
	struct sio_msg_dint_create msg = {.number = sio_to_le32(number),
					  .flags = sio_to_le32(flags)};
	const struct world_message *m = world_call(w, c, SIO_MSG_DINT_CREATE, &msg, sizeof(msg));

	if (m && !m->error) {
		const struct sio_rep_dint_create *rep = (const void *)m->data;

		assert_int_equal(m->n_fds, 1);
		*ret_handle = sio_from_le32(rep->handle);
		if (ret_number)
			*ret_number = sio_from_le32(rep->number);
	}
	return result(m);
}

int call_dint_connect(struct world *w, struct world_client *c, uint32_t node, uint32_t number,
		      uint32_t *ret_handle)
{
	struct sio_msg_dint_connect msg = {.node = sio_to_le32(node),
					   .number = sio_to_le32(number)};
	const struct world_message *m = world_call(w, c, SIO_MSG_DINT_CONNECT, &msg, sizeof(msg));

	if (m && !m->error) {
		assert_int_equal(m->n_fds, 2);
		*ret_handle = sio_from_le32(((const struct sio_rep_dint_connect *)m->data)->handle);
	}
	return result(m);
}

int call_ring_free(struct world *w, struct world_client *c, uint32_t handle, uint32_t ring)
{
	struct sio_msg_dint_ring_free msg = {.handle = sio_to_le32(handle),
					     .ring = sio_to_le32(ring)};

	return result(world_call(w, c, SIO_MSG_DINT_RING_FREE, &msg, sizeof(msg)));
}

int call_probe(struct world *w, struct world_client *c, uint32_t node)
{
	struct sio_msg_node_probe msg = {.node = sio_to_le32(node)};

	return result(world_call(w, c, SIO_MSG_NODE_PROBE, &msg, sizeof(msg)));
}

int64_t call_counter(struct world *w, struct world_client *c, const char *name)
{
	struct sio_msg_stats msg = {.kind = sio_to_le32(0)};
	const struct world_message *m = world_call(w, c, SIO_MSG_STATS, &msg, sizeof(msg));
	const struct sio_rep_stats *rep;

	if (!m || m->error)
		return -1;
	rep = (const void *)m->data;
	for (uint32_t i = 0; i < sio_from_le32(rep->count); i++)
		if (strcmp(rep->counter[i].name, name) == 0)
			return (int64_t)sio_from_le64(rep->counter[i].value);
	fail_msg("no counter %s", name);
	return -1;
}

/* A session of many objects ends a part at a time; others are served in between. */
static void let_sessions_end(struct world *w)
{
	for (unsigned i = 0; i < w->n_hosts; i++) {
		const struct smartiod *d = w->host[i].daemon;

		for (unsigned n = 0; d && d->sessions.count && n < SMARTIOD_MAX_OBJECTS; n++)
			world_pass(w, 1);
	}
}

void assert_nothing_left(struct world *w)
{
	let_sessions_end(w);
	for (unsigned i = 0; i < w->n_hosts; i++) {
		const struct smartiod *d = w->host[i].daemon;

		if (!d)
			continue;
		assert_false(w->host[i].fatal);
		assert_int_equal(d->sessions.count, 0);
		assert_int_equal(d->ops_all.count, 0);
		assert_int_equal(d->waiting.count, 0);
		assert_int_equal(d->connections.count, 0);
		assert_int_equal(d->dint_links.count, 0);
		assert_int_equal(d->dints.count, 0);
		assert_int_equal(d->rings.count, 0);
		assert_int_equal(d->queues.count, 0);
		assert_int_equal(d->grants.count, 0);
		assert_int_equal(d->segments.count, 0);
		assert_int_equal(d->segment_ids.count, 0);
	}
	assert_int_equal(w->n_watches, 0);
	for (const struct world_res *r = w->res; r; r = r->next)
		if (r->kind != SIO_KIND_DEVICE)
			fail_msg("host %u: resource %llu of kind %u, owner %llu, %s, is left",
				 r->host, (unsigned long long)r->id, r->kind,
				 (unsigned long long)r->owner,
				 r->quarantined ? "quarantined" : "live");
	/* The status page of each daemon. */
	{
		unsigned alive = 0;

		for (unsigned i = 0; i < w->n_hosts; i++)
			alive += w->host[i].daemon != NULL;
		assert_int_equal(world_open_fds(w), alive);
	}
}

void assert_well_ended(struct world *w)
{
	assert_nothing_left(w);
	assert_int_equal(w->wild, 0);
	assert_int_equal(w->bad_ends, 0);
	for (unsigned i = 0; i < w->n_hosts; i++)
		assert_false(w->host[i].fatal);
}
