/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers that are another thing than what was asked for. An exporter that lies names another grant
 * that it has given the same host: of an interrupt where memory is asked for, of memory to be read
 * only, of memory where it is an interrupt. The port maps each of them, and says what it is. A
 * lender names a segment of another device, or gives a borrow no number. Neither program nor device
 * is given any.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "smartiod/segment/segment.h"

#define FDID 0x400001
#define ANSWERS 1000u /* more than were asked for */

struct scene {
	struct world *w;
	struct world_client *owner, *user; /* of nodes 4 and 8 */
	uint32_t con, bars, device;
	struct sio_wire_grant memory, interrupt, registers;
};

static struct fake_device fake;

/* One of @kind that host @host, node 4 or 8, has given to the other. */
static struct sio_wire_grant a_grant(struct world *w, unsigned host, uint32_t kind, uint32_t access)
{
	struct sio_wire_grant g = {.length = sio_to_le64(1 << 20),
				   .generation = sio_to_le64(w->host[host].boot_generation)};
	struct world_res *r = w->res;

	while (r &&
	       (r->host != host || r->kind != SIO_KIND_GRANT || r->node != w->host[!host].node ||
		r->target_kind != kind || (access && r->access != access)))
		r = r->next;
	assert_non_null(r);
	g.grant = sio_to_le64(r->id);
	memcpy(g.token, &r->id, sizeof(r->id));
	return g;
}

static void make(struct scene *s)
{
	struct world *w = world_new(2, 0);
	uint32_t seg, dint, number, access[4], link;
	struct call_borrow borrow;

	fake_device_add(w, &fake);
	world_start(w);
	*s = (struct scene){.w = w,
			    .owner = world_client(w, 0, SIO_CLIENT_LIBRARY),
			    .user = world_client(w, 1, SIO_CLIENT_LIBRARY)};
	assert_int_equal(call_seg_export(w, s->owner, 1, 65536, &seg), 0);
	assert_int_equal(call_dint_create(w, s->owner, 7, SCI_FLAG_FIXED_INTNO, &dint, &number), 0);
	assert_int_equal(call_dint_connect(w, s->user, 4, 7, &link), 0);
	assert_int_equal(call_seg_connect(w, s->user, 4, 1, &s->con), 0);
	assert_int_equal(call_borrow(w, s->user, FDID, 0, &borrow), 0);
	assert_int_equal(
		call_dev_seg_connect(w, s->user, borrow.handle, 0, SCI_MEMTYPE_BAR, &s->bars, NULL),
		0);
	assert_int_equal(call_bar_map(w, s->user, s->bars, SCI_FLAG_READONLY_MAP, &number, access),
			 0);
	s->device = borrow.handle;
	s->interrupt = a_grant(w, 0, SIO_KIND_IRQ, 0);
	s->memory = a_grant(w, 0, SIO_KIND_MEM, 0);
	s->registers = a_grant(w, 0, SIO_KIND_BAR, SIO_ACCESS_READ);
	world_forget(s->user);
}

/* Daemon @host hears @lie as the answer to all that it can have asked node @node. */
static void say(struct scene *s, unsigned host, uint32_t node, uint32_t reply, void *lie,
		size_t size)
{
	struct sio_msg *h = lie;

	h->size = sio_to_le32((uint32_t)size);
	h->type = sio_to_le32(reply | SIO_PEER_REPLY);
	for (uint32_t k = 1; k < ANSWERS; k++) {
		h->id = sio_to_le32(k);
		smartiod_peer_message(s->w->host[host].daemon, node, lie, size);
	}
	world_run(s->w);
}

/*
 * The user asks, node 4 is not heard, and @lie is said in its place. Return: what the user hears.
 */
static uint32_t ask(struct scene *s, uint32_t type, void *msg, size_t len, uint32_t reply,
		    void *lie, size_t size)
{
	unsigned maps = world_count(s->w, 1, SIO_KIND_MAP), fds = world_open_fds(s->w);
	uint32_t id, error;

	s->w->drop_peer_messages = true;
	id = world_send(s->w, s->user, type, msg, len);
	world_run(s->w);
	say(s, 1, 4, reply, lie, size);
	s->w->drop_peer_messages = false;
	assert_non_null(world_reply(s->user, id));
	error = world_reply(s->user, id)->error;
	assert_int_equal(world_count(s->w, 1, SIO_KIND_MAP), maps);
	world_forget(s->user);
	assert_int_equal(world_open_fds(s->w), fds);
	return error;
}

/*
 * The user asks the lender, node 4, who asks node 8: that is not heard, and @lie is said in its
 * place. Return: what the user hears.
 */
static uint32_t ask_lender(struct scene *s, uint32_t type, void *msg, size_t len, uint32_t reply,
			   void *lie, size_t size)
{
	unsigned maps = world_count(s->w, 0, SIO_KIND_MAP), fds = world_open_fds(s->w);
	uint32_t id = world_send(s->w, s->user, type, msg, len), error;

	s->w->drop_peer_messages =
		true; /* what the user's daemon says to the lender is on its way */
	world_run(s->w);
	s->w->drop_peer_messages = false;
	assert_null(world_reply(s->user, id));
	say(s, 0, 8, reply, lie, size);
	assert_non_null(world_reply(s->user, id));
	error = world_reply(s->user, id)->error;
	assert_int_equal(world_count(s->w, 0, SIO_KIND_MAP), maps);
	world_forget(s->user);
	assert_int_equal(world_open_fds(s->w), fds);
	return error;
}

static uint32_t ask_window(struct scene *s, const struct sio_wire_grant *g)
{
	struct sio_msg_seg_map msg = {.handle = sio_to_le32(s->con), .bytes = sio_to_le64(65536)};
	struct sio_prep_seg_grant lie = {.g = *g};

	return ask(s, SIO_MSG_SEG_MAP, &msg, sizeof(msg), SIO_PEER_SEG_GRANT, &lie, sizeof(lie));
}

static uint32_t ask_link(struct scene *s, uint32_t flags, const struct sio_wire_grant *memory,
			 const struct sio_wire_grant *trigger)
{
	struct sio_msg_dint_connect msg = {
		.node = sio_to_le32(4), .number = sio_to_le32(7), .flags = sio_to_le32(flags)};
	struct sio_prep_dint_lookup lie = {
		.ring = sio_to_le64(99), .memory = *memory, .trigger = *trigger};

	return ask(s, SIO_MSG_DINT_CONNECT, &msg, sizeof(msg), SIO_PEER_DINT_LOOKUP, &lie,
		   sizeof(lie));
}

static uint32_t ask_bar(struct scene *s, const struct sio_wire_grant *g)
{
	struct sio_msg_seg_map msg = {.handle = sio_to_le32(s->bars), .bytes = sio_to_le64(0x4000)};
	struct sio_prep_bar_grant lie = {.n_pieces = sio_to_le32(1)};

	lie.piece[0].bytes = sio_to_le64(4096);
	lie.piece[0].access = sio_to_le32(SIO_ACCESS_READ | SIO_ACCESS_WRITE);
	lie.piece[0].g = *g;
	return ask(s, SIO_MSG_SEG_MAP, &msg, sizeof(msg), SIO_PEER_BAR_GRANT, &lie, sizeof(lie));
}

static uint32_t ask_segment(struct scene *s, uint64_t uid, uint32_t id)
{
	struct sio_msg_dev_seg_connect msg = {.device = sio_to_le32(s->device),
					      .segment_id = sio_to_le32(5),
					      .memtype = sio_to_le32(SCI_MEMTYPE_SHARED)};
	struct sio_prep_dev_seg lie = {
		.uid = sio_to_le64(uid), .node = sio_to_le32(8), .segment_id = sio_to_le32(id)};

	return ask(s, SIO_MSG_DEV_SEG_CONNECT, &msg, sizeof(msg), SIO_PEER_DEV_SEG_LOOKUP, &lie,
		   sizeof(lie));
}

static uint32_t ask_borrow(struct scene *s, uint64_t borrower)
{
	struct sio_msg_dev_borrow msg = {.fdid = sio_to_le32(FDID)};
	struct sio_prep_borrow lie = {.borrower = sio_to_le64(borrower)};

	return ask(s, SIO_MSG_DEV_BORROW, &msg, sizeof(msg), SIO_PEER_BORROW, &lie, sizeof(lie));
}

static uint32_t ask_vector(struct scene *s, uint32_t link, const struct sio_wire_grant *g)
{
	struct sio_msg_dev_vector msg = {.device = sio_to_le32(s->device),
					 .vector = sio_to_le32(1),
					 .link = sio_to_le32(link)};
	struct sio_prep_dint_lookup lie = {.ring = sio_to_le64(99), .trigger = *g};

	return ask_lender(s, SIO_MSG_DEV_VECTOR, &msg, sizeof(msg), SIO_PEER_DINT_LOOKUP, &lie,
			  sizeof(lie));
}

static uint32_t ask_dma(struct scene *s, uint32_t segment, const struct sio_wire_grant *g)
{
	struct sio_msg_dma_map msg = {.device = sio_to_le32(s->device),
				      .segment = sio_to_le32(segment),
				      .bytes = sio_to_le64(4096)};
	struct sio_prep_seg_grant lie = {.g = *g};

	return ask_lender(s, SIO_MSG_DMA_MAP, &msg, sizeof(msg), SIO_PEER_SEG_GRANT, &lie,
			  sizeof(lie));
}

static void finish(struct scene *s)
{
	for (unsigned i = 0; i < s->w->n_clients; i++)
		world_kill(s->w, &s->w->client[i]);
	world_run(s->w);
	assert_nothing_left(s->w);
	world_free(s->w);
}

/* The one segment of a device that node 8 has. */
static struct smartiod_segment *of_device(struct scene *s)
{
	struct smartiod *d = s->w->host[1].daemon;
	struct smartiod_tree_node *n = smartiod_tree_after(&d->segments, 0);
	struct smartiod_segment *seg = NULL;

	for (; n && (!seg || !seg->device); n = smartiod_tree_after(&d->segments, n->key))
		seg = SMARTIOD_OF(n, struct smartiod_segment, by_uid);
	assert_true(seg && seg->device == FDID);
	return seg;
}

/*
 * A lender says where a segment of its device is. Whichever it names, a borrower is connected to
 * what is of that device, or to nothing.
 */
static void another_devices_segment_is_not_given(void **state)
{
	struct smartiod_segment *seg;
	struct call_borrow borrow;
	struct scene s;
	uint32_t mine, con;

	(void)state;
	make(&s);
	assert_int_equal(call_seg_export(s.w, s.user, 6, 4096, &mine), 0);
	assert_int_equal(call_borrow(s.w, s.owner, FDID, 0, &borrow), 0);
	assert_int_equal(call_dev_seg_create(s.w, s.user, s.device, 5, 4096, SCI_MEMTYPE_SHARED, 0,
					     SCI_FLAG_LOCAL_ONLY),
			 0);
	seg = of_device(&s);
	assert_int_equal(ask_segment(&s, 0, 6), EPROTO); /* which anybody may connect to */
	seg->device = FDID + 1;
	assert_int_equal(ask_segment(&s, seg->uid, 5), ENOENT);
	assert_int_equal(call_dev_seg_connect(s.w, s.owner, borrow.handle, 5, SCI_MEMTYPE_SHARED,
					      &con, NULL),
			 ENOENT);
	seg->device = FDID;
	assert_int_equal(call_dev_seg_connect(s.w, s.owner, borrow.handle, 5, SCI_MEMTYPE_SHARED,
					      &con, NULL),
			 0);
	assert_int_equal(ask_segment(&s, seg->uid, 5), 0);
	finish(&s);
}

/* What a lender tells of its device: not that it has another's name, or is of another host. */
static void a_device_keeps_its_name(void **state)
{
	struct sio_msg_dev_list list = {.after = sio_to_le32(0)};
	const struct sio_rep_dev_list *rep;
	const struct world_message *m;
	struct sio_peer_devices lie = {
		.h = {.size = sio_to_le32(sizeof(lie)), .type = sio_to_le32(SIO_PEER_DEVICES)},
		.present = sio_to_le32(1)};
	struct scene s;
	char name[64];

	(void)state;
	make(&s);
	m = world_call(s.w, s.user, SIO_MSG_DEV_LIST, &list, sizeof(list));
	rep = (const void *)m->data;
	memcpy(name, rep->name, sizeof(name));
	lie.info = *rep;
	lie.info.node = sio_to_le32(8);
	lie.info.serial = sio_to_le64(4711);
	memcpy(lie.info.name, "another", 8);
	smartiod_peer_message(s.w->host[1].daemon, 4, &lie, sizeof(lie));
	m = world_call(s.w, s.user, SIO_MSG_DEV_LIST, &list, sizeof(list));
	rep = (const void *)m->data;
	assert_int_equal(sio_from_le64(rep->serial), 4711);
	assert_string_equal(rep->name, name);
	assert_int_equal(sio_from_le32(rep->node), 4);
	finish(&s);
}

static void another_kind_is_not_given(void **state)
{
	struct scene s;
	uint32_t map;

	(void)state;
	make(&s);
	assert_int_equal(ask_window(&s, &s.interrupt), EPROTO);
	assert_int_equal(ask_window(&s, &s.registers), EPROTO);
	assert_int_equal(ask_link(&s, 0, &s.interrupt, &s.interrupt), EPROTO);
	assert_int_equal(ask_link(&s, 0, &s.registers, &s.interrupt), EPROTO);
	assert_int_equal(ask_link(&s, 0, &s.memory, &s.memory), EPROTO);
	assert_int_equal(ask_link(&s, SIO_DINT_PLAIN, &s.memory, &s.memory), EPROTO);
	assert_int_equal(ask_bar(&s, &s.interrupt), EPROTO);
	assert_int_equal(ask_bar(&s, &s.registers), EPROTO);
	/* The truth is taken as before. */
	assert_int_equal(call_seg_map(s.w, s.user, s.con, 0, 65536, &map), 0);
	finish(&s);
}

/* A borrow without a number could be neither used nor given back. */
static void a_borrow_has_a_number(void **state)
{
	struct call_borrow borrow;
	struct scene s;

	(void)state;
	make(&s);
	assert_int_equal(ask_borrow(&s, 0), EPROTO);
	assert_int_equal(call_borrow(s.w, s.user, FDID, 0, &borrow), 0);
	assert_int_not_equal(borrow.id, 0);
	finish(&s);
}

/* The device writes to what it is given, as a program does: to memory here, an interrupt there. */
static void devices_are_given_no_other_kind(void **state)
{
	uint32_t con, own, dint, plain, number, link, map, vector = 1, dma;
	struct sio_wire_grant memory, interrupt;
	struct scene s;

	(void)state;
	make(&s);
	assert_int_equal(call_seg_export(s.w, s.user, 6, 65536, &own), 0);
	assert_int_equal(call_seg_connect(s.w, s.owner, 8, 6, &con), 0);
	assert_int_equal(call_seg_map(s.w, s.owner, con, 0, 65536, &map), 0);
	assert_int_equal(call_dint_create(s.w, s.user, 7, SCI_FLAG_FIXED_INTNO, &dint, &number), 0);
	assert_int_equal(call_dint_connect(s.w, s.owner, 8, 7, &link), 0);
	assert_int_equal(call_plain_create(s.w, s.user, &plain, &number), 0);
	assert_int_equal(call_plain_connect(s.w, s.user, 8, number, &link), 0);
	memory = a_grant(s.w, 1, SIO_KIND_MEM, 0);
	interrupt = a_grant(s.w, 1, SIO_KIND_IRQ, 0);
	world_forget(s.user);
	assert_int_equal(ask_vector(&s, link, &memory), EPROTO);
	assert_int_equal(fake_vector(s.w, 1), 0);
	assert_int_equal(ask_dma(&s, own, &interrupt), EPROTO);
	assert_int_equal(fake_count(s.w, SIO_KIND_DMAMAP, false), 0);
	/* The truth is taken as before. */
	assert_int_equal(call_vector(s.w, s.user, s.device, &vector, link), 0);
	assert_int_equal(call_dma_map(s.w, s.user, s.device, own, 0, 0, 4096, &dma), 0);
	assert_int_equal(call_handle(s.w, s.user, SIO_MSG_DMA_UNMAP, dma, 0), 0);
	finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_kind_is_not_given),
		cmocka_unit_test(another_devices_segment_is_not_given),
		cmocka_unit_test(a_device_keeps_its_name),
		cmocka_unit_test(a_borrow_has_a_number),
		cmocka_unit_test(devices_are_given_no_other_kind),
	};

	return cmocka_run_group_tests_name("kind", tests, NULL, NULL);
}
