/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"

static int result(const struct world_message *m)
{
	return m ? (int)m->error : -1;
}

int call_borrow(struct world *w, struct world_client *c, uint32_t fdid, uint32_t flags,
		struct call_borrow *ret)
{
	struct sio_msg_dev_borrow msg = {.fdid = sio_to_le32(fdid), .flags = sio_to_le32(flags)};
	const struct world_message *m = world_call(w, c, SIO_MSG_DEV_BORROW, &msg, sizeof(msg));

	if (m && !m->error) {
		const struct sio_rep_dev_borrow *rep = (const void *)m->data;

		assert_int_equal(m->len, sizeof(*rep));
		assert_int_equal(sio_from_le32(rep->info.fdid), fdid);
		ret->handle = sio_from_le32(rep->handle);
		ret->generation = sio_from_le32(rep->generation);
		ret->id = sio_from_le64(rep->borrower);
	}
	return result(m);
}

int call_dev_seg_create(struct world *w, struct world_client *c, uint32_t device, uint32_t id,
			uint64_t bytes, uint32_t memtype, uint32_t hints, uint32_t flags)
{
	struct sio_msg_dev_seg_create msg = {.device = sio_to_le32(device),
					     .segment_id = sio_to_le32(id),
					     .bytes = sio_to_le64(bytes),
					     .memtype = sio_to_le32(memtype),
					     .hints = sio_to_le32(hints),
					     .flags = sio_to_le32(flags)};

	return result(world_call(w, c, SIO_MSG_DEV_SEG_CREATE, &msg, sizeof(msg)));
}

int call_dev_seg_connect(struct world *w, struct world_client *c, uint32_t device, uint32_t id,
			 uint32_t memtype, uint32_t *ret_handle, uint32_t *ret_node)
{
	struct sio_msg_dev_seg_connect msg = {.device = sio_to_le32(device),
					      .segment_id = sio_to_le32(id),
					      .memtype = sio_to_le32(memtype)};
	const struct world_message *m =
		world_call(w, c, SIO_MSG_DEV_SEG_CONNECT, &msg, sizeof(msg));

	if (m && !m->error) {
		const struct sio_rep_seg_connect *rep = (const void *)m->data;

		*ret_handle = sio_from_le32(rep->handle);
		if (ret_node)
			*ret_node = sio_from_le32(rep->node);
	}
	return result(m);
}

int call_bar_map(struct world *w, struct world_client *c, uint32_t segment, uint32_t flags,
		 uint32_t *ret_map, uint32_t ret_access[4])
{
	struct sio_msg_seg_map msg = {.handle = sio_to_le32(segment),
				      .flags = sio_to_le32(flags),
				      .bytes = sio_to_le64(0x4000)};
	const struct world_message *m = world_call(w, c, SIO_MSG_SEG_MAP, &msg, sizeof(msg));

	if (m && !m->error) {
		const struct sio_rep_seg_map *rep = (const void *)m->data;

		*ret_map = sio_from_le32(rep->map);
		memset(ret_access, 0, 4 * sizeof(*ret_access));
		assert_int_equal(m->n_fds, sio_from_le32(rep->n_pieces));
		for (uint32_t i = 0; i < sio_from_le32(rep->n_pieces); i++) {
			uint64_t page = sio_from_le64(rep->piece[i].offset) / 4096;

			assert_true(page < 4);
			assert_int_equal(sio_from_le64(rep->piece[i].bytes), 4096);
			ret_access[page] = sio_from_le32(rep->piece[i].access);
		}
	}
	return result(m);
}

int call_group_join(struct world *w, struct world_client *c, uint32_t bar, uint32_t group,
		    uint64_t offset, uint32_t *ret_map)
{
	struct sio_msg_group_join msg = {.handle = sio_to_le32(bar),
					 .group = sio_to_le32(group),
					 .offset = sio_to_le64(offset),
					 .bytes = sio_to_le64(4096)};
	const struct world_message *m = world_call(w, c, SIO_MSG_GROUP_JOIN, &msg, sizeof(msg));

	*ret_map = 0;
	if (!m || m->error)
		return m ? (int)m->error : -1;
	*ret_map = sio_from_le32(((const struct sio_rep_group_join *)m->data)->map);
	return 0;
}

int call_group_leave(struct world *w, struct world_client *c, uint32_t map)
{
	return call_handle(w, c, SIO_MSG_GROUP_LEAVE, map, 0);
}

int call_watch(struct world *w, struct world_client *c, uint32_t map, uint32_t kind, unsigned page,
	       unsigned n_fds)
{
	struct sio_msg_seg_watch msg = {
		.map = sio_to_le32(map),
		.kind = sio_to_le32(kind),
		.offset = sio_to_le64(page * 4096ULL),
		.bytes = sio_to_le64(4096),
		.address = sio_to_le64(kind == SIO_WATCH_FAULT ? 0x7f0000000000 : 0)};
	uint32_t id = world_send_with(w, c, SIO_MSG_SEG_WATCH, &msg, sizeof(msg), n_fds);
	const struct world_message *m;

	world_run(w);
	m = world_reply(c, id);
	if (m && !m->error) {
		const struct sio_rep_seg_watch *rep = (const void *)m->data;

		assert_int_equal(m->n_fds, kind == SIO_WATCH_EVENT ? 2 : 0);
		assert_int_equal(sio_from_le32(rep->flag_offset), 64);
	}
	return result(m);
}

int call_dma_map(struct world *w, struct world_client *c, uint32_t device, uint32_t segment,
		 uint32_t remote, uint64_t offset, uint64_t bytes, uint32_t *ret_map)
{
	return call_dma_map_at(w, c, device, segment, remote, offset, bytes, ret_map, NULL);
}

int call_dma_map_at(struct world *w, struct world_client *c, uint32_t device, uint32_t segment,
		    uint32_t remote, uint64_t offset, uint64_t bytes, uint32_t *ret_map,
		    uint64_t *ret_ioaddr)
{
	struct sio_msg_dma_map msg = {.device = sio_to_le32(device),
				      .segment = sio_to_le32(segment),
				      .remote = sio_to_le32(remote),
				      .offset = sio_to_le64(offset),
				      .bytes = sio_to_le64(bytes)};
	const struct world_message *m = world_call(w, c, SIO_MSG_DMA_MAP, &msg, sizeof(msg));

	if (m && !m->error) {
		const struct sio_rep_dma_map *rep = (const void *)m->data;

		*ret_map = sio_from_le32(rep->map);
		if (ret_ioaddr)
			*ret_ioaddr = sio_from_le64(rep->ioaddr);
	}
	return result(m);
}

int call_hold(struct world *w, struct world_client *c, uint32_t device, uint64_t borrower,
	      uint64_t ioaddr, uint64_t bytes, uint64_t *ret_hold)
{
	struct sio_msg_dev_hold msg = {.device = sio_to_le32(device),
				       .borrower = sio_to_le64(borrower),
				       .ioaddr = sio_to_le64(ioaddr),
				       .bytes = sio_to_le64(bytes)};
	const struct world_message *m = world_call(w, c, SIO_MSG_DEV_HOLD, &msg, sizeof(msg));

	if (m && !m->error)
		*ret_hold = sio_from_le64(
			((const struct sio_rep_dev_hold *)(const void *)m->data)->hold);
	return result(m);
}

int call_unhold(struct world *w, struct world_client *c, uint32_t device, uint64_t hold)
{
	struct sio_msg_dev_unhold msg = {.device = sio_to_le32(device), .hold = sio_to_le64(hold)};

	return result(world_call(w, c, SIO_MSG_DEV_UNHOLD, &msg, sizeof(msg)));
}

int call_plain_create(struct world *w, struct world_client *c, uint32_t *ret_handle,
		      uint32_t *ret_number)
{
	return call_dint_create(w, c, 0, SIO_DINT_PLAIN, ret_handle, ret_number);
}

int call_plain_connect(struct world *w, struct world_client *c, uint32_t node, uint32_t number,
		       uint32_t *ret_link)
{
	struct sio_msg_dint_connect msg = {.node = sio_to_le32(node),
					   .number = sio_to_le32(number),
					   .flags = sio_to_le32(SIO_DINT_PLAIN)};
	const struct world_message *m = world_call(w, c, SIO_MSG_DINT_CONNECT, &msg, sizeof(msg));

	if (m && !m->error)
		*ret_link = sio_from_le32(
			((const struct sio_rep_dint_connect *)(const void *)m->data)->handle);
	return result(m);
}

int call_vector(struct world *w, struct world_client *c, uint32_t device, uint32_t *vector,
		uint32_t link)
{
	struct sio_msg_dev_vector msg = {.device = sio_to_le32(device),
					 .vector = sio_to_le32(*vector),
					 .link = sio_to_le32(link)};
	const struct world_message *m = world_call(w, c, SIO_MSG_DEV_VECTOR, &msg, sizeof(msg));

	if (m && !m->error)
		*vector = sio_from_le32(
			((const struct sio_rep_dev_vector *)(const void *)m->data)->vector);
	return result(m);
}

int call_unvector(struct world *w, struct world_client *c, uint32_t device, uint32_t vector)
{
	struct sio_msg_dev_vector msg = {.device = sio_to_le32(device),
					 .vector = sio_to_le32(vector)};

	return result(world_call(w, c, SIO_MSG_DEV_UNVECTOR, &msg, sizeof(msg)));
}

int call_settled(struct world *w, struct world_client *c, uint32_t device, uint64_t borrower)
{
	struct sio_msg_dev_settled msg = {.device = sio_to_le32(device),
					  .borrower = sio_to_le64(borrower)};

	return result(world_call(w, c, SIO_MSG_DEV_SETTLED, &msg, sizeof(msg)));
}

const struct sio_evm_device *call_device_event(struct world_client *c, unsigned nth)
{
	return world_event(c, SIO_EVM_DEVICE, nth);
}

void call_take(struct world *w, struct world_client *c, uint32_t fdid, uint32_t flags,
	       struct call_borrow *b, uint32_t *segment, uint32_t *map, uint32_t access[4])
{
	assert_int_equal(call_borrow(w, c, fdid, flags, b), 0);
	assert_int_equal(call_dev_seg_connect(w, c, b->handle, 0, SCI_MEMTYPE_BAR, segment, NULL),
			 0);
	assert_int_equal(call_bar_map(w, c, *segment, 0, map, access), 0);
}

void call_last_reset(struct world *w, uint32_t fdid)
{
	struct world_client *c = world_client(w, 0, SIO_CLIENT_LIBRARY);
	struct call_borrow b = {.id = 0};

	fake_device_resets(w, true);
	assert_int_equal(call_borrow(w, c, fdid, SCI_FLAG_EXCLUSIVE, &b), 0);
	assert_int_equal(call_handle(w, c, SIO_MSG_DEV_RESET, b.handle, 0), 0);
	world_kill(w, c);
	world_run(w);
}

struct world *call_world(struct fake_device *fake)
{
	struct world *w = world_new(3, 0);

	fake_device_add(w, fake);
	world_start(w);
	return w;
}

void call_world_end(struct world *w, struct fake_device *fake, uint32_t fdid)
{
	for (unsigned i = 0; i < w->n_clients; i++)
		world_kill(w, &w->client[i]);
	world_run(w);
	call_last_reset(w, fdid);
	assert_nothing_left(w);
	assert_int_equal(fake->bad, 0);
	assert_int_equal(w->bad_ends, 0);
	world_free(w);
}
