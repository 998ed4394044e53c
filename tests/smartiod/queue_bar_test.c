/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA queues that reach memory in a BAR, by the daemons of lender and borrower: cut at every event,
 * refused by the port at every request, and what they never reach.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "memory_world.h"
#include "smartiod/borrower/borrow.h"

struct attached {
	uint64_t range, first, length;
	uint32_t slot;
};

static struct sio_msg_queue_attach attach_of(uint32_t queue, uint32_t bar, uint64_t offset,
					     uint64_t bytes)
{
	return (struct sio_msg_queue_attach){.queue = sio_to_le32(queue),
					     .segment = sio_to_le32(bar),
					     .remote = sio_to_le32(1),
					     .offset = sio_to_le64(offset),
					     .bytes = sio_to_le64(bytes)};
}

/* Return: as call_*(). */
static int attach(struct world *w, struct world_client *c, uint32_t queue, uint32_t bar,
		  uint64_t offset, uint64_t bytes, struct attached *ret)
{
	struct sio_msg_queue_attach msg = attach_of(queue, bar, offset, bytes);
	const struct world_message *m = world_call(w, c, SIO_MSG_QUEUE_ATTACH, &msg, sizeof(msg));
	const struct sio_rep_queue_attach *rep;

	memset(ret, 0, sizeof(*ret));
	if (!m || m->error)
		return m ? (int)m->error : -1;
	rep = (const void *)m->data;
	*ret = (struct attached){.range = sio_from_le64(rep->range),
				 .first = sio_from_le64(rep->first),
				 .length = sio_from_le64(rep->length),
				 .slot = sio_from_le32(rep->slot)};
	return 0;
}

static unsigned play(struct world *w, struct world_client *c)
{
	struct memory_holder h;
	struct attached a;
	uint32_t queue[2] = {0};
	unsigned n = 0;

	memory_hold(w, c, &h);
	for (unsigned i = 0; i < 2; i++)
		call_queue_create(w, c, 0, &queue[i]);
	n += attach(w, c, queue[0], h.memory, PAGE + 3, 5, &a) == 0;
	call_queue_detach(w, c, queue[0], a.range);
	n += attach(w, c, queue[0], h.memory, 0, 4 * PAGE, &a) == 0;
	n += attach(w, c, queue[1], h.memory, 0, PAGE, &a) == 0;
	call_handle(w, c, SIO_MSG_QUEUE_REMOVE, queue[1], 0);
	n += attach(w, c, queue[0], h.bar, 0, 8, &a) == 0; /* registers: never */
	call_handle(w, c, SIO_MSG_SEG_DISCONNECT, h.memory, 0);
	call_dev_seg_connect(w, c, h.b.handle, 2, SCI_MEMTYPE_BAR, &h.memory, NULL);
	n += attach(w, c, queue[0], h.memory, 0, PAGE, &a) == 0; /* which is left behind */
	return n;
}

static void cut_at_every_event(void **state)
{
	(void)state;
	for (enum memory_cut cut = MEMORY_KILL; cut < MEMORY_CUTS; cut++)
		memory_cut_everywhere(cut, play, 4);
}

static void port_refuses_every_request(void **state)
{
	(void)state;
	memory_refuse_everywhere(play);
}

/* What there is of it, and what is given back by whatever ends. */
static void all_memory_around_it_is_reached(void **state)
{
	(void)state;
	for (unsigned host = 0; host < 2; host++) {
		struct memory_holder h;
		struct memory_run r;
		struct attached a, b;
		uint32_t queue = 0;

		memory_start(&r, host, 0);
		memory_hold(r.w, r.c, &h);
		assert_int_equal(call_queue_create(r.w, r.c, 0, &queue), 0);
		assert_int_equal(attach(r.w, r.c, queue, h.memory, PAGE, 8, &a), 0);
		assert_true(a.range && a.first == 0 && a.length == 4 * PAGE);
		assert_int_equal(attach(r.w, r.c, queue, h.memory, PAGE, 8, &b), 0);
		assert_true(b.range != a.range && b.slot != a.slot);
		assert_int_equal(world_resources(r.w, SIO_KIND_DMA_RANGE), 2);
		assert_int_equal(call_queue_detach(r.w, r.c, queue, b.range), 0);
		world_run(r.w);
		assert_int_equal(world_resources(r.w, SIO_KIND_DMA_RANGE), 1);
		assert_int_equal(call_handle(r.w, r.c, SIO_MSG_SEG_DISCONNECT, h.memory, 0), 0);
		world_run(r.w);
		assert_int_equal(world_resources(r.w, SIO_KIND_DMA_RANGE), 0);
		memory_end(&r);
	}
}

/* Registers are not taken for it, nor is anything beyond the end or of another borrower's. */
static void what_is_no_memory_of_its_own_is_not(void **state)
{
	(void)state;
	for (unsigned host = 0; host < 2; host++) {
		struct world_client *other;
		struct memory_holder h;
		struct call_borrow b;
		struct memory_run r;
		struct attached a;
		uint32_t queue = 0, registers = 0, memory = 0, own, access[4];

		memory_start(&r, host, 0);
		other = world_client(r.w, host, SIO_CLIENT_LIBRARY);
		assert_int_equal(call_borrow(r.w, other, FDID, 0, &b), 0);
		call_dev_seg_connect(r.w, other, b.handle, 0, SCI_MEMTYPE_BAR, &registers, NULL);
		call_dev_seg_connect(r.w, other, b.handle, 2, SCI_MEMTYPE_BAR, &memory, NULL);
		assert_int_equal(call_queue_create(r.w, other, 0, &queue), 0);
		assert_int_equal(attach(r.w, other, queue, registers, 0, 8, &a), EACCES);
		assert_int_equal(attach(r.w, other, queue, memory, 0, 8, &a), EACCES);
		memory_hold(r.w, r.c, &h); /* nobody has the registers */
		assert_int_equal(call_queue_create(r.w, r.c, 0, &own), 0);
		assert_int_equal(call_bar_map(r.w, r.c, h.bar, 0, &h.map, access), 0);
		assert_int_equal(access[0], BOTH);
		assert_int_equal(attach(r.w, other, queue, memory, 0, 8, &a), EACCES);
		assert_int_equal(attach(r.w, r.c, own, h.memory, 4 * PAGE - 8, 8, &a), 0);
		assert_int_equal(attach(r.w, r.c, own, h.memory, 4 * PAGE - 8, 9, &a), ERANGE);
		assert_int_equal(attach(r.w, r.c, own, h.memory, UINT64_MAX, 2, &a), ERANGE);
		memory_end(&r);
	}
}

/* Each has a window, as a map has. */
static void a_quota_of_windows_holds(void **state)
{
	(void)state;
	for (unsigned host = 0; host < 2; host++) {
		struct sio_limit *most;
		struct memory_holder h;
		struct memory_run r;
		struct attached a, b;
		uint32_t queue = 0;

		memory_start(&r, host, 0);
		memory_hold(r.w, r.c, &h);
		most = &r.w->topology->policy.program[SIO_QUOTA_WINDOWS];
		*most = (struct sio_limit){true, 2};
		assert_int_equal(call_queue_create(r.w, r.c, 0, &queue), 0);
		assert_int_equal(attach(r.w, r.c, queue, h.memory, PAGE, 8, &a), 0);
		assert_int_equal(attach(r.w, r.c, queue, h.memory, PAGE, 8, &b), host ? ENOSPC : 0);
		world_run(r.w);
		assert_int_equal(world_count(r.w, host, SIO_KIND_MAP), host ? 3 : 0);
		assert_int_equal(call_queue_detach(r.w, r.c, queue, a.range), 0);
		assert_int_equal(attach(r.w, r.c, queue, h.memory, PAGE, 8, &b), 0);
		assert_int_equal(call_handle(r.w, r.c, SIO_MSG_QUEUE_REMOVE, queue, 0), 0);
		assert_int_equal(call_queue_create(r.w, r.c, 0, &queue), 0);
		assert_int_equal(attach(r.w, r.c, queue, h.memory, PAGE, 8, &b), 0);
		assert_int_equal(call_handle(r.w, r.c, SIO_MSG_SEG_DISCONNECT, h.memory, 0), 0);
		*most = (struct sio_limit){false, 0};
		memory_end(&r);
	}
}

static void assign(struct memory_run *r, const struct memory_holder *h, uint64_t of,
		   uint64_t offset, uint64_t bytes, int error)
{
	struct sio_msg_dev_assign msg = {.device = sio_to_le32(h->b.handle),
					 .bar = sio_to_le32(2),
					 .borrower = sio_to_le64(of),
					 .offset = sio_to_le64(offset),
					 .bytes = sio_to_le64(bytes)};
	const struct world_message *m;

	m = world_call(r->w, r->c, SIO_MSG_DEV_ASSIGN, &msg, sizeof(msg));
	assert_non_null(m);
	assert_int_equal(m->error, error);
}

/* By its owner, to another borrower: the pages are reached, and nothing beside them. */
static void what_it_was_given_is_reached(void **state)
{
	(void)state;
	for (unsigned host = 0; host < 2; host++) {
		struct world_client *other;
		struct memory_holder h;
		struct call_borrow b;
		struct memory_run r;
		struct attached a;
		uint32_t queue = 0, memory = 0;

		memory_start(&r, host, 0);
		memory_hold(r.w, r.c, &h);
		other = world_client(r.w, 1, SIO_CLIENT_LIBRARY);
		assert_int_equal(call_borrow(r.w, other, FDID, 0, &b), 0);
		call_dev_seg_connect(r.w, other, b.handle, 2, SCI_MEMTYPE_BAR, &memory, NULL);
		assert_int_equal(call_queue_create(r.w, other, 0, &queue), 0);
		assign(&r, &h, b.id, PAGE, 2 * PAGE, 0);
		assert_int_equal(attach(r.w, other, queue, memory, PAGE - 1, 2, &a), EACCES);
		assert_int_equal(attach(r.w, other, queue, memory, 3 * PAGE - 1, 2, &a), EACCES);
		assert_int_equal(attach(r.w, other, queue, memory, 2 * PAGE + 5, 7, &a), 0);
		assert_true(a.range && a.first == PAGE && a.length == 2 * PAGE);
		/* It goes to nobody else before that. */
		assign(&r, &h, b.id, PAGE, PAGE, EBUSY);
		assert_int_equal(call_queue_detach(r.w, other, queue, a.range), 0);
		world_run(r.w);
		assign(&r, &h, b.id, PAGE, PAGE, 0);
		assert_int_equal(attach(r.w, other, queue, memory, PAGE, PAGE, &a), 0);
		assert_true(a.first == PAGE && a.length == PAGE);
		assert_int_equal(attach(r.w, other, queue, memory, 2 * PAGE, 8, &a), EACCES);
		/* Nothing of it is of its pages or not. */
		assert_int_equal(attach(r.w, other, queue, memory, PAGE, 0, &a), 0);
		memory_end(&r);
	}
}

static void hear(struct world *w, unsigned host, uint32_t adapter, uint32_t peer_adapter, bool up)
{
	unsigned peer = 1 - host;
	struct sio_evt_link evt = {.adapter = adapter,
				   .peer_adapter = peer_adapter,
				   .peer_node = w->host[peer].node,
				   .state = up ? SIO_LINK_UP : SIO_LINK_DOWN,
				   .generation = up ? w->host[peer].boot_generation : 0};

	world_port_event(w, host, SIO_EV_LINK, 0, &evt, sizeof(evt));
}

/* The way from the borrower's first adapter to @adapter of the lender. */
static void way(struct world *w, uint32_t adapter, bool up)
{
	hear(w, 0, adapter, 0, up);
	hear(w, 1, 0, adapter, up);
	world_run(w);
}

/* Two ways lead to the lender: a borrow over one adapter keeps to the one that it has taken. */
static void it_goes_the_way_of_maps(void **state)
{
	struct sio_msg_dev_borrow over = {.fdid = sio_to_le32(FDID), .over = sio_to_le32(1)};
	struct memory_run r = {.host = 1, .w = world_new(3, 0)};
	const struct smartiod_bar_map *map;
	const struct world_message *m;
	uint32_t handle, bar = 0, memory = 0, mapped, queue = 0, access[4];
	struct attached a;

	(void)state;
	world_adapters(r.w, 2);
	r.w->topology->host[0].adapter[1].attach_index = 0;
	fake_device_add(r.w, &r.fake);
	r.fake.cmb = 4 * PAGE;
	world_start(r.w);
	r.c = world_client(r.w, 1, SIO_CLIENT_LIBRARY);
	way(r.w, 1, true);
	way(r.w, 0, false);
	m = world_call(r.w, r.c, SIO_MSG_DEV_BORROW, &over, sizeof(over));
	assert_int_equal(m->error, 0);
	handle = sio_from_le32(((const struct sio_rep_dev_borrow *)(const void *)m->data)->handle);
	call_dev_seg_connect(r.w, r.c, handle, 0, SCI_MEMTYPE_BAR, &bar, NULL);
	call_dev_seg_connect(r.w, r.c, handle, 2, SCI_MEMTYPE_BAR, &memory, NULL);
	assert_int_equal(call_bar_map(r.w, r.c, bar, 0, &mapped, access), 0);
	map = r.w->host[1].daemon->borrows->maps;
	assert_int_equal(map->peer_adapter, 1);
	way(r.w, 0, true);
	assert_int_equal(call_queue_create(r.w, r.c, 0, &queue), 0);
	assert_int_equal(attach(r.w, r.c, queue, memory, 0, 8, &a), 0);
	map = r.w->host[1].daemon->borrows->maps;
	assert_int_equal(map->peer_adapter, 1);
	memory_end(&r);
}

/* Their answers find nobody who wants them. */
static void the_queue_goes_meanwhile(void **state)
{
	static const uint32_t late[] = {SIO_OP_BAR, SIO_OP_DMA_ATTACH};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct sio_msg_queue_attach msg;
		struct memory_holder h;
		struct memory_run r;
		uint32_t queue = 0, id;

		memory_start(&r, i & 1, 0);
		memory_hold(r.w, r.c, &h);
		assert_int_equal(call_queue_create(r.w, r.c, 0, &queue), 0);
		msg = attach_of(queue, h.memory, 0, PAGE);
		r.w->late = late[i >> 1];
		id = world_send(r.w, r.c, SIO_MSG_QUEUE_ATTACH, &msg, sizeof(msg));
		world_run(r.w);
		assert_int_equal(call_handle(r.w, r.c, SIO_MSG_QUEUE_REMOVE, queue, 0), 0);
		r.w->late = 0;
		world_run(r.w);
		assert_int_not_equal(world_reply(r.c, id)->error, 0);
		assert_int_equal(world_resources(r.w, SIO_KIND_DMA_RANGE), 0);
		assert_int_equal(call_handle(r.w, r.c, SIO_MSG_SEG_DISCONNECT, h.memory, 0), 0);
		memory_end(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_at_every_event),
		cmocka_unit_test(port_refuses_every_request),
		cmocka_unit_test(all_memory_around_it_is_reached),
		cmocka_unit_test(what_is_no_memory_of_its_own_is_not),
		cmocka_unit_test(a_quota_of_windows_holds),
		cmocka_unit_test(what_it_was_given_is_reached),
		cmocka_unit_test(it_goes_the_way_of_maps),
		cmocka_unit_test(the_queue_goes_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
