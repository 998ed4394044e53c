/* SPDX-License-Identifier: BSD-2-Clause */
/* Data interrupts: numbers, rings and triggers across hosts and within one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "calls.h"
#include "wire/ring.h"

struct fixture {
	struct world *w;
	struct world_client *receiver, *sender; /* on nodes 4 and 8 */
};

static int begin(void **state, unsigned adapters)
{
	static struct fixture f;

	f.w = world_new(2, 0);
	world_adapters(f.w, adapters);
	world_start(f.w);
	f.receiver = world_client(f.w, 0, SIO_CLIENT_LIBRARY);
	f.sender = world_client(f.w, 1, SIO_CLIENT_LIBRARY);
	*state = &f;
	return 0;
}

static int setup(void **state)
{
	return begin(state, 1);
}

static int setup_two(void **state)
{
	return begin(state, 2);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	world_kill(f->w, f->receiver);
	world_kill(f->w, f->sender);
	world_run(f->w);
	assert_nothing_left(f->w);
	assert_int_equal(f->w->bad_ends, 0);
	world_free(f->w);
	return 0;
}

/* One descriptor comes: the trigger. */
static int connect_plain(struct world *w, struct world_client *c, uint32_t node, uint32_t number,
			 uint32_t *ret_link)
{
	struct sio_msg_dint_connect msg = {.node = sio_to_le32(node),
					   .number = sio_to_le32(number),
					   .flags = sio_to_le32(SIO_DINT_PLAIN)};
	const struct world_message *m = world_call(w, c, SIO_MSG_DINT_CONNECT, &msg, sizeof(msg));

	assert_non_null(m);
	if (m->error)
		return (int)m->error;
	assert_int_equal(m->n_fds, 1);
	*ret_link = sio_from_le32(((const struct sio_rep_dint_connect *)m->data)->handle);
	return 0;
}

static void numbers_are_per_host(void **state)
{
	struct fixture *f = *state;
	uint32_t h, n, h2;

	assert_int_equal(call_dint_create(f->w, f->receiver, 0, 0, &h, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(call_dint_create(f->w, f->receiver, 2, SCI_FLAG_FIXED_INTNO, &h2, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(call_dint_create(f->w, f->receiver, 2, SCI_FLAG_FIXED_INTNO, &h2, &n),
			 EEXIST);
	assert_int_equal(call_dint_create(f->w, f->sender, 2, SCI_FLAG_FIXED_INTNO, &h2, &n), 0);
	assert_int_equal(call_dint_create(f->w, f->receiver, 0, 0, &h2, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(call_handle(f->w, f->receiver, SIO_MSG_DINT_REMOVE, h, 0), 0);
	assert_int_equal(call_dint_create(f->w, f->receiver, 0, 0, &h, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(
		call_dint_create(f->w, f->receiver, 0, SCI_FLAG_BROADCAST | SIO_DINT_PLAIN, &h, &n),
		EOPNOTSUPP);
	assert_int_equal(call_dint_create(f->w, f->receiver, 0, 0x40000000, &h, &n), EINVAL);
}

static uint32_t create_at(struct fixture *f, uint32_t adapter, uint32_t number, uint32_t flags,
			  uint32_t *ret_handle, uint32_t *ret_number)
{
	struct sio_msg_dint_create msg = {.adapter = sio_to_le32(adapter),
					  .number = sio_to_le32(number),
					  .flags = sio_to_le32(flags)};
	const struct world_message *m =
		world_call(f->w, f->receiver, SIO_MSG_DINT_CREATE, &msg, sizeof(msg));
	const struct sio_rep_dint_create *rep = (const void *)m->data;

	if (m->error)
		return m->error;
	*ret_handle = sio_from_le32(rep->handle);
	*ret_number = sio_from_le32(rep->number);
	return 0;
}

static uint32_t connect_by(struct fixture *f, struct world_client *c, uint32_t adapter,
			   uint32_t number)
{
	struct sio_msg_dint_connect msg = {.node = sio_to_le32(4),
					   .adapter = sio_to_le32(adapter),
					   .number = sio_to_le32(number)};

	return world_call(f->w, c, SIO_MSG_DINT_CONNECT, &msg, sizeof(msg))->error;
}

/* One number at each adapter of the host: found by whatever way, and nobody else's at any. */
static void one_may_be_of_all_adapters(void **state)
{
	const uint32_t all = SIO_DINT_ALL_ADAPTERS, fixed = SCI_FLAG_FIXED_INTNO;
	struct fixture *f = *state;
	uint32_t one = 0, h, n;

	assert_int_equal(create_at(f, 0, 1, fixed, &h, &n), 0);
	assert_int_equal(create_at(f, 1, 2, fixed, &h, &n), 0);
	assert_int_equal(create_at(f, 0, 3, fixed, &h, &n), 0);
	assert_int_equal(create_at(f, all, 1, fixed, &one, &n), EEXIST);
	assert_int_equal(create_at(f, all, 2, fixed, &one, &n), EEXIST);
	assert_int_equal(create_at(f, all, 0, 0, &one, &n), 0);
	assert_int_equal(n, 4);
	for (uint32_t adapter = 0; adapter < 2; adapter++) {
		assert_int_equal(create_at(f, adapter, 4, fixed, &h, &n), EEXIST);
		assert_int_equal(connect_by(f, f->sender, adapter, 4), 0);
		assert_int_equal(connect_by(f, f->receiver, adapter, 4), 0);
	}
	assert_int_equal(create_at(f, all, 0, 0, &h, &n), 0);
	assert_int_equal(n, 5);
	assert_int_equal(call_handle(f->w, f->receiver, SIO_MSG_DINT_REMOVE, one, 0), 0);
	for (uint32_t adapter = 0; adapter < 2; adapter++) {
		assert_int_equal(connect_by(f, f->sender, adapter, 4), ENOENT);
		assert_int_equal(create_at(f, adapter, 4, fixed, &h, &n), 0);
	}
	assert_int_equal(create_at(f, all, 9, fixed | SIO_DINT_PLAIN, &h, &n), ENXIO);
	assert_int_equal(create_at(f, 2, 9, fixed, &h, &n), ENXIO);
}

/* Interrupts without data: numbers of their own, no ring, no end while somebody is connected. */
static void plain_interrupts_have_no_rings(void **state)
{
	struct fixture *f = *state;
	struct world_client *senders[] = {f->sender, f->receiver};
	uint32_t h, n, data, link = 0;

	assert_int_equal(call_dint_create(f->w, f->receiver, 7,
					  SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN, &h, &n),
			 0);
	assert_int_equal(call_dint_create(f->w, f->receiver, 7, SCI_FLAG_FIXED_INTNO, &data, &n),
			 0);
	assert_int_equal(call_dint_create(f->w, f->receiver, 7,
					  SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN, &data, &n),
			 EEXIST);
	assert_int_equal(call_dint_create(f->w, f->receiver, 0, SCI_FLAG_COUNTING_INT, &data, &n),
			 EINVAL);
	assert_int_equal(call_dint_create(f->w, f->receiver, 0, SCI_FLAG_SHARED_INT, &data, &n),
			 EINVAL);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(connect_plain(f->w, senders[i], 4, 8, &link), ENOENT);
		assert_int_equal(connect_plain(f->w, senders[i], 4, 7, &link), 0);
		assert_null(world_event(f->receiver, SIO_EVM_DINT_RING, 0));
		assert_int_equal(call_handle(f->w, f->receiver, SIO_MSG_DINT_REMOVE, h, 0), EBUSY);
		assert_int_equal(call_handle(f->w, senders[i], SIO_MSG_DINT_DISCONNECT, link, 0),
				 0);
		world_run(f->w);
	}
	assert_int_equal(connect_plain(f->w, f->sender, 4, 7, &link), 0);
	world_kill(f->w, f->receiver);
	world_run(f->w);
	assert_non_null(world_event(f->sender, SIO_EVM_DINT_LOST, 0));
}

/* The receiver knows of the ring before the sender may write to it; memory outlives the sender. */
static void a_ring_lives_as_long_as_either_needs_it(void **state)
{
	struct fixture *f = *state;
	const struct sio_evm_dint_ring *evm;
	uint32_t h, n, link;

	assert_int_equal(call_dint_connect(f->w, f->sender, 4, 1, &link), ENOENT);
	assert_int_equal(call_dint_create(f->w, f->receiver, 0, 0, &h, &n), 0);
	assert_int_equal(call_dint_connect(f->w, f->sender, 4, n, &link), 0);
	evm = world_event(f->receiver, SIO_EVM_DINT_RING, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->handle), h);
	assert_int_equal(sio_from_le32(evm->node), 8);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 2);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 2);
	assert_int_equal(call_handle(f->w, f->sender, SIO_MSG_DINT_DISCONNECT, link, 0), 0);
	assert_non_null(world_event(f->receiver, SIO_EVM_DINT_RING_END, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 1);
	assert_int_equal(call_ring_free(f->w, f->receiver, h, sio_from_le32(evm->ring)), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	assert_int_equal(call_ring_free(f->w, f->receiver, h, sio_from_le32(evm->ring)), EBADF);
}

/*
 * What was triggered last may be on its way: where it leads to stays until the sender's port has
 * unmapped it, and the sender, who may connect again then, is answered no sooner.
 */
static void the_way_is_unmapped_before_the_receiver_is_told(void **state)
{
	struct fixture *f = *state;

	for (unsigned plain = 0; plain < 2; plain++) {
		struct sio_msg_handle leave = {.flags = 0};
		unsigned windows = plain ? 1 : 2; /* to the interrupt, and to a ring */
		uint32_t h, n, link, id;

		assert_int_equal(
			call_dint_create(f->w, f->receiver, 0, plain ? SIO_DINT_PLAIN : 0, &h, &n),
			0);
		assert_int_equal(plain ? connect_plain(f->w, f->sender, 4, n, &link)
				       : call_dint_connect(f->w, f->sender, 4, n, &link),
				 0);
		leave.handle = sio_to_le32(link);
		f->w->late = SIO_OP_UNMAP;
		id = world_send(f->w, f->sender, SIO_MSG_DINT_DISCONNECT, &leave, sizeof(leave));
		world_run(f->w);
		assert_int_equal(world_count(f->w, 0, SIO_KIND_GRANT), windows);
		assert_null(world_reply(f->sender, id));
		f->w->late = 0;
		world_run(f->w);
		assert_int_equal(world_count(f->w, 0, SIO_KIND_GRANT), 0);
		assert_non_null(world_reply(f->sender, id));
		assert_int_equal(world_reply(f->sender, id)->error, 0);
	}
}

/*
 * The receiver goes while it is used, and before its windows are unmapped the sender leaves (or
 * dies): they are unmapped once, and who left is answered behind that.
 */
static void a_lost_connection_is_left_while_it_is_unmapped(void **state)
{
	struct fixture *f = *state;

	for (unsigned dies = 0; dies < 2; dies++) {
		struct sio_msg_handle leave = {.flags = 0};
		struct world_client *sender = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
		uint32_t h, n, link, id = 0;
		uint64_t requests;

		assert_int_equal(call_dint_create(f->w, f->receiver, 0, 0, &h, &n), 0);
		assert_int_equal(call_dint_connect(f->w, sender, 4, n, &link), 0);
		leave.handle = sio_to_le32(link);
		f->w->late = SIO_OP_UNMAP;
		assert_int_equal(call_handle(f->w, f->receiver, SIO_MSG_DINT_REMOVE, h, 0), 0);
		assert_non_null(world_event(sender, SIO_EVM_DINT_LOST, 0));
		requests = f->w->requests;
		if (dies)
			world_kill(f->w, sender);
		else
			id = world_send(f->w, sender, SIO_MSG_DINT_DISCONNECT, &leave,
					sizeof(leave));
		world_run(f->w);
		/* Nothing is asked of the port once more; the owner of the dead is closed. */
		assert_int_equal(f->w->requests, requests + dies);
		if (!dies)
			assert_null(world_reply(sender, id));
		f->w->late = 0;
		world_run(f->w);
		assert_int_equal(world_count(f->w, 1, SIO_KIND_MAP), 0);
		if (!dies) {
			assert_non_null(world_reply(sender, id));
			assert_int_equal(world_reply(sender, id)->error, 0);
			assert_int_equal(
				call_handle(f->w, sender, SIO_MSG_DINT_DISCONNECT, link, 0), EBADF);
			world_kill(f->w, sender);
		}
	}
}

/* The sender dies while it connects, after each packet: the operation gives back what it has. */
static void a_sender_dies_while_it_connects(void **state)
{
	struct fixture *f = *state;
	bool done = false;
	uint32_t h, number;

	assert_int_equal(call_dint_create(f->w, f->receiver, 0, 0, &h, &number), 0);
	for (unsigned n = 0; !done; n++) {
		struct sio_msg_dint_connect msg = {.node = sio_to_le32(4),
						   .number = sio_to_le32(number)};
		struct world_client *sender = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
		const struct sio_evm_dint_ring *evm;

		world_forget(f->receiver);
		world_send(f->w, sender, SIO_MSG_DINT_CONNECT, &msg, sizeof(msg));
		for (unsigned i = 0; i < n; i++)
			done = !world_step(f->w);
		world_kill(f->w, sender);
		world_run(f->w);
		assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
		evm = world_event(f->receiver, SIO_EVM_DINT_RING, 0);
		if (evm)
			assert_int_equal(
				call_ring_free(f->w, f->receiver, h, sio_from_le32(evm->ring)), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	}
}

/* A receiver that frees a ring in use cuts the sender off, on whatever host that is. */
static void a_receiver_cuts_senders_off(void **state)
{
	struct fixture *f = *state;
	struct world_client *local = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	struct world_client *sender[] = {f->sender, local};
	uint32_t h, n, link, ring;

	assert_int_equal(call_dint_create(f->w, f->receiver, 0, 0, &h, &n), 0);
	for (unsigned i = 0; i < 2; i++) {
		world_forget(f->receiver);
		assert_int_equal(call_dint_connect(f->w, sender[i], 4, n, &link), 0);
		ring = sio_from_le32(((const struct sio_evm_dint_ring *)world_event(
					      f->receiver, SIO_EVM_DINT_RING, 0))
					     ->ring);
		assert_int_equal(call_ring_free(f->w, f->receiver, h, ring), 0);
		world_run(f->w);
		assert_non_null(world_event(sender[i], SIO_EVM_DINT_LOST, 0));
		assert_null(world_event(f->receiver, SIO_EVM_DINT_RING_END, 0));
		assert_int_equal(call_ring_free(f->w, f->receiver, h, ring), EBADF);
		assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
		assert_int_equal(call_handle(f->w, sender[i], SIO_MSG_DINT_DISCONNECT, link, 0), 0);
	}
	world_kill(f->w, local);
}

static void within_one_host(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	uint32_t h, n, link;

	assert_int_equal(call_dint_create(f->w, f->receiver, 0, 0, &h, &n), 0);
	assert_int_equal(call_dint_connect(f->w, other, 4, n, &link), 0);
	assert_non_null(world_event(f->receiver, SIO_EVM_DINT_RING, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	world_kill(f->w, other);
	world_run(f->w);
	assert_non_null(world_event(f->receiver, SIO_EVM_DINT_RING_END, 0));
	assert_int_equal(call_ring_free(f->w, f->receiver, h, 1), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	/* To oneself. */
	assert_int_equal(call_dint_connect(f->w, f->receiver, 4, n, &link), 0);
}

static void removal_is_told_to_senders(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	const struct sio_evm_dint_ring *evm;
	uint32_t h, n, link, local;

	assert_int_equal(call_dint_create(f->w, f->receiver, 0, 0, &h, &n), 0);
	assert_int_equal(call_dint_connect(f->w, f->sender, 4, n, &link), 0);
	assert_int_equal(call_dint_connect(f->w, other, 4, n, &local), 0);
	assert_int_equal(call_handle(f->w, f->receiver, SIO_MSG_DINT_REMOVE, h, 0), 0);
	evm = world_event(f->sender, SIO_EVM_DINT_LOST, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->handle), link);
	evm = world_event(other, SIO_EVM_DINT_LOST, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->handle), local);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_IRQ), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	assert_int_equal(call_handle(f->w, f->sender, SIO_MSG_DINT_DISCONNECT, link, 0), 0);
	world_kill(f->w, other);
}

/* Removed while a sender connects, after each packet: it gets an error, or is told. */
static void removal_overtakes_a_connection(void **state)
{
	struct fixture *f = *state;
	bool done = false;

	for (unsigned n = 0; !done; n++) {
		struct sio_msg_dint_connect msg = {.node = sio_to_le32(4)};
		const struct world_message *m;
		uint32_t h, number, id;

		assert_int_equal(call_dint_create(f->w, f->receiver, 0, 0, &h, &number), 0);
		world_forget(f->sender);
		msg.number = sio_to_le32(number);
		id = world_send(f->w, f->sender, SIO_MSG_DINT_CONNECT, &msg, sizeof(msg));
		for (unsigned i = 0; i < n; i++)
			done = !world_step(f->w);
		assert_int_equal(call_handle(f->w, f->receiver, SIO_MSG_DINT_REMOVE, h, 0), 0);
		m = world_reply(f->sender, id);
		assert_non_null(m);
		if (!m->error)
			assert_non_null(world_event(f->sender, SIO_EVM_DINT_LOST, 0));
		assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
		assert_int_equal(world_resources(f->w, SIO_KIND_IRQ), 0);
	}
}

static void death_of_a_side(void **state)
{
	struct fixture *f = *state;
	uint32_t h, n, link;

	assert_int_equal(call_dint_create(f->w, f->receiver, 0, 0, &h, &n), 0);
	assert_int_equal(call_dint_connect(f->w, f->sender, 4, n, &link), 0);
	world_kill(f->w, f->sender);
	world_run(f->w);
	assert_non_null(world_event(f->receiver, SIO_EVM_DINT_RING_END, 0));
	f->sender = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_dint_connect(f->w, f->sender, 4, n, &link), 0);
	world_kill(f->w, f->receiver);
	world_run(f->w);
	assert_non_null(world_event(f->sender, SIO_EVM_DINT_LOST, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_IRQ), 0);
}

/* Senders come, leave a message, and go; the receiver reads nothing. */
static void a_stopped_receiver_takes_a_part_of_its_host(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	uint64_t most = f->w->topology->host[0].ram_size / 4 / SIO_RING_TOTAL;
	const struct sio_evm_dint_ring *evm;
	uint32_t h[2], n[2], o, other_n, link, ring = 0;

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(call_dint_create(f->w, f->receiver, 0, 0, &h[i], &n[i]), 0);
	for (uint64_t i = 0; i < most; i++) {
		assert_int_equal(call_dint_connect(f->w, f->sender, 4, n[i % 2], &link), 0);
		evm = world_event(f->receiver, SIO_EVM_DINT_RING, 0);
		assert_non_null(evm);
		ring = sio_from_le32(evm->ring);
		assert_int_equal(call_handle(f->w, f->sender, SIO_MSG_DINT_DISCONNECT, link, 0), 0);
		world_forget(f->receiver);
		world_forget(f->sender);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(call_dint_connect(f->w, f->sender, 4, n[i], &link), ENOSPC);
	/* Other programs are not concerned, nor are interrupts without data. */
	assert_int_equal(call_dint_create(f->w, other, 0, 0, &o, &other_n), 0);
	assert_int_equal(call_dint_connect(f->w, f->sender, 4, other_n, &link), 0);
	assert_int_equal(call_dint_create(f->w, f->receiver, 0, SIO_DINT_PLAIN, &o, &other_n), 0);
	assert_int_equal(connect_plain(f->w, f->sender, 4, other_n, &link), 0);
	/* One that is read makes room for one; an interrupt that ends for all of its own. */
	assert_int_equal(call_ring_free(f->w, f->receiver, h[(most - 1) % 2], ring), 0);
	assert_int_equal(call_dint_connect(f->w, f->sender, 4, n[0], &link), 0);
	assert_int_equal(call_dint_connect(f->w, f->sender, 4, n[0], &link), ENOSPC);
	assert_int_equal(call_handle(f->w, f->receiver, SIO_MSG_DINT_REMOVE, h[1], 0), 0);
	for (uint64_t i = 0; i < most / 2; i++) {
		assert_int_equal(call_dint_connect(f->w, f->sender, 4, n[0], &link), 0);
		world_forget(f->receiver);
		world_forget(f->sender);
	}
	assert_int_equal(call_dint_connect(f->w, f->sender, 4, n[0], &link), ENOSPC);
	world_kill(f->w, other);
}

static int share(struct fixture *f, struct world_client *c, uint32_t number, uint32_t *ret_handle)
{
	return call_dint_create(f->w, c, number,
				SCI_FLAG_FIXED_INTNO | SCI_FLAG_SHARED_INT | SIO_DINT_PLAIN,
				ret_handle, &number);
}

static void triggered(struct fixture *f, uint64_t count, unsigned members)
{
	uint64_t signals = f->w->signals, sum = f->w->signalled;

	assert_int_equal(f->w->n_watches, 1);
	smartiod_irq(f->w->host[0].daemon, f->w->watch[0].irq, count);
	assert_int_equal(f->w->signals - signals, members);
	assert_int_equal(f->w->signalled - sum, members * count);
}

/* A number of several owners: each hears of each trigger, connections are to the number. */
static void owners_share_a_number(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	uint32_t a, b, c, h, n, link = 0;

	assert_int_equal(share(f, f->receiver, 7, &a), 0);
	assert_int_equal(share(f, f->receiver, 7, &b), 0);
	assert_int_equal(share(f, other, 7, &c), 0);
	assert_int_equal(
		call_dint_create(f->w, other, 7, SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN, &h, &n),
		EEXIST);
	assert_int_equal(connect_plain(f->w, f->sender, 4, 7, &link), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_IRQ), 4);
	triggered(f, 3, 3);
	/* Whoever leaves leaves the others with the connection. */
	assert_int_equal(call_handle(f->w, f->receiver, SIO_MSG_DINT_REMOVE, a, 0), 0);
	triggered(f, 1, 2);
	world_kill(f->w, other);
	world_run(f->w);
	triggered(f, 1, 1);
	assert_int_equal(call_handle(f->w, f->receiver, SIO_MSG_DINT_REMOVE, b, 0), EBUSY);
	assert_null(world_event(f->sender, SIO_EVM_DINT_LOST, 0));
	/* Not while one who does not share has the number. */
	assert_int_equal(call_dint_create(f->w, f->receiver, 8,
					  SCI_FLAG_FIXED_INTNO | SIO_DINT_PLAIN, &h, &n),
			 0);
	assert_int_equal(share(f, f->receiver, 8, &c), EEXIST);
	assert_int_equal(call_handle(f->w, f->sender, SIO_MSG_DINT_DISCONNECT, link, 0), 0);
	world_run(f->w);
	assert_int_equal(call_handle(f->w, f->receiver, SIO_MSG_DINT_REMOVE, b, 0), 0);
	assert_int_equal(f->w->n_watches, 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_IRQ), 1);
	assert_int_equal(connect_plain(f->w, f->sender, 4, 7, &link), ENOENT);
	/* The last owner dies: senders are told. */
	assert_int_equal(share(f, f->receiver, 7, &a), 0);
	assert_int_equal(connect_plain(f->w, f->sender, 4, 7, &link), 0);
	world_kill(f->w, f->receiver);
	world_run(f->w);
	assert_non_null(world_event(f->sender, SIO_EVM_DINT_LOST, 0));
}

/* Each request that the port refuses, and each owner that dies while it is made. */
static void sharing_fails_as_a_whole(void **state)
{
	struct fixture *f = *state;
	uint32_t a;

	for (unsigned n = 1; n <= 2; n++) {
		f->w->fail_at = f->w->requests + n;
		assert_int_not_equal(share(f, f->receiver, 7, &a), 0);
		f->w->fail_at = 0;
		world_run(f->w);
		assert_int_equal(world_resources(f->w, SIO_KIND_IRQ), 0);
		assert_int_equal(f->w->n_watches, 0);
	}
	for (unsigned steps = 0; steps < 12; steps++) {
		struct world_client *c = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
		struct sio_msg_dint_create msg = {.number = sio_to_le32(7),
						  .flags = sio_to_le32(SCI_FLAG_FIXED_INTNO |
								       SCI_FLAG_SHARED_INT |
								       SIO_DINT_PLAIN)};

		world_send(f->w, c, SIO_MSG_DINT_CREATE, &msg, sizeof(msg));
		world_send(f->w, f->receiver, SIO_MSG_DINT_CREATE, &msg, sizeof(msg));
		for (unsigned i = 0; i < steps; i++)
			world_step(f->w);
		world_kill(f->w, c);
		world_run(f->w);
		assert_int_equal(f->w->n_watches, 1);
		assert_int_equal(world_resources(f->w, SIO_KIND_IRQ), 2);
		triggered(f, 1, 1);
		world_kill(f->w, f->receiver);
		world_run(f->w);
		assert_int_equal(world_resources(f->w, SIO_KIND_IRQ), 0);
		f->receiver = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	}
}

static void link_loss_keeps_rings(void **state)
{
	struct fixture *f = *state;
	uint32_t h, n, link, more;

	assert_int_equal(call_dint_create(f->w, f->receiver, 0, 0, &h, &n), 0);
	assert_int_equal(call_dint_connect(f->w, f->sender, 4, n, &link), 0);
	for (unsigned i = 0; i < 2; i++) {
		world_link(f->w, 0, 1, false);
		world_run(f->w);
		assert_null(world_event(f->sender, SIO_EVM_DINT_LOST, 0));
		assert_null(world_event(f->receiver, SIO_EVM_DINT_RING_END, 0));
		assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 2);
		assert_int_equal(call_dint_connect(f->w, f->sender, 4, n, &more), ENETDOWN);
		if (i)
			break;
		world_link(f->w, 0, 1, true);
		world_run(f->w);
	}
	/* To leave needs no link. */
	assert_int_equal(call_handle(f->w, f->sender, SIO_MSG_DINT_DISCONNECT, link, 0), 0);
	assert_non_null(world_event(f->receiver, SIO_EVM_DINT_RING_END, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	world_link(f->w, 0, 1, true);
	world_run(f->w);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(numbers_are_per_host),
		cmocka_unit_test_setup_teardown(one_may_be_of_all_adapters, setup_two, teardown),
		CASE(plain_interrupts_have_no_rings),
		CASE(a_ring_lives_as_long_as_either_needs_it),
		CASE(the_way_is_unmapped_before_the_receiver_is_told),
		CASE(a_lost_connection_is_left_while_it_is_unmapped),
		CASE(a_sender_dies_while_it_connects),
		CASE(a_receiver_cuts_senders_off),
		CASE(within_one_host),
		CASE(removal_is_told_to_senders),
		CASE(removal_overtakes_a_connection),
		CASE(death_of_a_side),
		CASE(a_stopped_receiver_takes_a_part_of_its_host),
		CASE(owners_share_a_number),
		CASE(sharing_fails_as_a_whole),
		CASE(link_loss_keeps_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
