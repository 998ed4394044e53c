/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Real hosts, of which one sends interrupts to another, with data and without, whose daemons lose
 * each other, or are killed and started again: the connections stay, and neither side is told
 * anything. What ended meanwhile is told when the two have met.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "calls.h"
#include "device_calls.h"
#include "library.h"
#include "smartiod/daemon/bond.h"
#include "smartiod/interrupt/dint.h"

#define RECEIVER 0
#define SENDER 1
#define NODE(host) (4 * ((host) + 1))
#define MEET 1000000000ull /* ns in which two daemons have met */
#define PLAIN 0
#define DATA 1

struct fixture {
	struct world *w;
	struct world_client *owner, *c;
	uint32_t interrupt[2], number[2], link[2]; /* PLAIN, DATA */
	unsigned messages;			   /* events that both had received */
};

static unsigned events(const struct world_client *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->n_messages; i++)
		n += c->message[i]->type >= SIO_EVM_SEGMENT_LOCAL;
	return n;
}

static unsigned heard(const struct fixture *f)
{
	return events(f->c) + events(f->owner);
}

static int begin(void **state, bool iommu)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct world *w = world_new(3, 0);

	assert_non_null(f);
	f->w = w;
	w->iommu = iommu;
	w->real = true;
	for (unsigned i = 0; i < 3; i++)
		w->topology->host[i].real = true;
	world_start(w);
	library_begin(w);
	w->before_step = library_pump;
	f->owner = world_client(w, RECEIVER, SIO_CLIENT_LIBRARY);
	f->c = world_client(w, SENDER, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_plain_create(w, f->owner, &f->interrupt[PLAIN], &f->number[PLAIN]),
			 0);
	assert_int_equal(call_dint_create(w, f->owner, 0, 0, &f->interrupt[DATA], &f->number[DATA]),
			 0);
	assert_int_equal(
		call_plain_connect(w, f->c, NODE(RECEIVER), f->number[PLAIN], &f->link[PLAIN]), 0);
	assert_int_equal(
		call_dint_connect(w, f->c, NODE(RECEIVER), f->number[DATA], &f->link[DATA]), 0);
	world_run(w);
	f->messages = heard(f);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return begin(state, false);
}

static int setup_iommu(void **state)
{
	return begin(state, true);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	library_end(f->w);
	world_pass(f->w, MEET);
	assert_well_ended(f->w);
	world_free(f->w);
	free(f);
	return 0;
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, setup, teardown),                                    \
		cmocka_unit_test_setup_teardown(name, setup_iommu, teardown)

/* Windows to both interrupts and to the ring, and their grants; the ring's memory. */
static void expect_quiet(const struct fixture *f)
{
	assert_int_equal(world_count(f->w, SENDER, SIO_KIND_MAP), 3);
	assert_int_equal(world_count(f->w, RECEIVER, SIO_KIND_GRANT), 3);
	assert_int_equal(world_count(f->w, RECEIVER, SIO_KIND_MEM), 1);
	assert_int_equal(heard(f), f->messages);
}

static void expect_nothing_shared(const struct fixture *f)
{
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
}

static void start_again(struct fixture *f, unsigned host)
{
	world_stop(f->w, host);
	world_run(f->w);
	world_restart(f->w, host);
	world_pass(f->w, MEET);
	assert_true(f->w->open[RECEIVER][SENDER]);
}

/* Each handle is what it was: the senders leave, the receiver hears of it, and all comes back. */
static void give_back(struct fixture *f)
{
	const struct sio_evm_dint_ring *end;
	struct world *w = f->w;

	world_forget(f->owner);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(call_handle(w, f->c, SIO_MSG_DINT_DISCONNECT, f->link[i], 0), 0);
	world_run(w);
	expect_nothing_shared(f);
	end = world_event(f->owner, SIO_EVM_DINT_RING_END, 0);
	assert_non_null(end);
	assert_int_equal(sio_from_le32(end->handle), f->interrupt[DATA]);
	assert_int_equal(call_ring_free(w, f->owner, f->interrupt[DATA], sio_from_le32(end->ring)),
			 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(call_handle(w, f->owner, SIO_MSG_DINT_REMOVE, f->interrupt[i], 0),
				 0);
	world_run(w);
	assert_int_equal(world_resources(w, SIO_KIND_MEM), 0);
	assert_int_equal(world_resources(w, SIO_KIND_IRQ), 0);
}

static void nobody_notices_a_cut(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 3; i++) {
		world_cut(f->w, RECEIVER, SENDER);
		world_pass(f->w, MEET);
		assert_true(f->w->open[RECEIVER][SENDER]);
		expect_quiet(f);
	}
	give_back(f);
}

static void nobody_notices(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 4; i++) {
		start_again(f, i % 2 ? RECEIVER : SENDER);
		expect_quiet(f);
	}
	give_back(f);
}

static void both_are_started_again(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 3; i++) {
		world_stop(f->w, RECEIVER);
		world_stop(f->w, SENDER);
		world_run(f->w);
		world_restart(f->w, i % 2 ? RECEIVER : SENDER);
		world_run(f->w);
		world_restart(f->w, i % 2 ? SENDER : RECEIVER);
		world_pass(f->w, MEET);
		expect_quiet(f);
	}
	give_back(f);
}

/*
 * Killed once more at any point of the meeting; or the other one is, or the connection breaks
 * there.
 */
static void killed_at_every_step(struct fixture *f, unsigned host)
{
	bool ended = false;
	unsigned steps = 0;

	for (; !ended; steps++) {
		world_restart(f->w, host);
		for (unsigned i = 0; i < steps && !ended; i++)
			ended = !world_step(f->w);
		if (steps % 2)
			world_restart(f->w, steps % 4 == 1 ? SENDER : RECEIVER);
		else
			world_cut(f->w, RECEIVER, SENDER);
		world_pass(f->w, MEET);
		expect_quiet(f);
	}
	assert_true(steps > 20);
	give_back(f);
}

static void the_sender_is_killed_at_every_step(void **state)
{
	killed_at_every_step(*state, SENDER);
}

static void the_receiver_is_killed_at_every_step(void **state)
{
	killed_at_every_step(*state, RECEIVER);
}

/* A ring or two: the sender is asked for no more than it was, whatever it hears twice. */
static void connections_are_made_at_every_step(void **state)
{
	struct fixture *f = *state;
	struct world *w = f->w;
	bool ended = false;

	w->lossy = true;
	for (unsigned steps = 0; !ended; steps++) {
		uint32_t more[2] = {0, 0};
		struct sio_msg_dint_connect m = {.node = sio_to_le32(NODE(RECEIVER)),
						 .number = sio_to_le32(f->number[DATA])};

		world_send(w, f->c, SIO_MSG_DINT_CONNECT, &m, sizeof(m));
		for (unsigned i = 0; i < steps && !ended; i++)
			ended = !world_step(w);
		world_cut(w, RECEIVER, SENDER);
		world_pass(w, MEET);
		assert_true(w->open[RECEIVER][SENDER]);
		assert_int_equal(world_count(w, SENDER, SIO_KIND_MAP), 5);
		assert_int_equal(world_count(w, RECEIVER, SIO_KIND_GRANT), 5);
		library_gone(f->c);
		world_kill(w, f->c);
		world_run(w);
		expect_nothing_shared(f);
		f->c = world_client(w, SENDER, SIO_CLIENT_LIBRARY);
		assert_int_equal(
			call_plain_connect(w, f->c, NODE(RECEIVER), f->number[PLAIN], &more[0]), 0);
		assert_int_equal(
			call_dint_connect(w, f->c, NODE(RECEIVER), f->number[DATA], &more[1]), 0);
	}
}

static void expect_lost(const struct fixture *f, unsigned nth, uint32_t link)
{
	const struct sio_evm_dint_ring *evm = world_event(f->c, SIO_EVM_DINT_LOST, nth);

	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->handle), link);
}

static unsigned lost(const struct fixture *f)
{
	unsigned n = 0;

	while (world_event(f->c, SIO_EVM_DINT_LOST, n))
		n++;
	return n;
}

/* @again: its daemon is started again, too. */
static void the_receiver_ends(struct fixture *f, bool again)
{
	world_forget(f->c);
	world_stop(f->w, SENDER);
	world_run(f->w);
	library_gone(f->owner);
	world_kill(f->w, f->owner);
	f->w->lossy = again; /* of interrupts that nobody claims the grants end at once */
	if (again)
		world_restart(f->w, RECEIVER);
	world_run(f->w);
	world_restart(f->w, SENDER);
	world_pass(f->w, MEET);
	assert_int_equal(lost(f), 2);
	expect_nothing_shared(f);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_IRQ), 0);
}

static void the_receiver_ends_meanwhile(void **state)
{
	the_receiver_ends(*state, false);
}

static void and_is_started_again(void **state)
{
	the_receiver_ends(*state, true);
}

/* What it sent is still read; the ring's memory is kept as long as its window is there. */
static void the_sender_leaves_meanwhile(void **state)
{
	struct fixture *f = *state;

	world_stop(f->w, RECEIVER);
	world_run(f->w);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DINT_DISCONNECT, f->link[i], 0),
				 0);
	world_forget(f->owner);
	world_restart(f->w, RECEIVER);
	world_pass(f->w, MEET);
	expect_nothing_shared(f);
	assert_non_null(world_event(f->owner, SIO_EVM_DINT_RING_END, 0));
	assert_int_equal(world_count(f->w, RECEIVER, SIO_KIND_MEM), 1);
}

/* @receiver: it is started again, too. */
static void the_sender_dies(struct fixture *f, bool receiver)
{
	world_forget(f->owner);
	world_stop(f->w, SENDER);
	world_run(f->w);
	library_gone(f->c);
	world_kill(f->w, f->c);
	if (receiver)
		world_restart(f->w, RECEIVER);
	world_run(f->w);
	world_restart(f->w, SENDER);
	world_pass(f->w, MEET);
	expect_nothing_shared(f);
	assert_non_null(world_event(f->owner, SIO_EVM_DINT_RING_END, 0));
	assert_null(world_event(f->owner, SIO_EVM_DINT_RING_END, 1));
}

static void the_sender_dies_meanwhile(void **state)
{
	the_sender_dies(*state, false);
}

static void the_sender_dies_while_both_are_away(void **state)
{
	the_sender_dies(*state, true);
}

/* The port takes its time: the daemons have met long before the window is gone. */
static void its_grant_ends_after_its_window(void **state)
{
	struct fixture *f = *state;
	struct world *w = f->w;
	struct sio_msg_handle m = {.handle = sio_to_le32(f->link[DATA])};

	w->late = SIO_OP_UNMAP;
	world_send(w, f->c, SIO_MSG_DINT_DISCONNECT, &m, sizeof(m));
	world_cut(w, RECEIVER, SENDER);
	world_pass(w, MEET);
	assert_true(w->open[RECEIVER][SENDER]);
	assert_int_equal(world_count(w, RECEIVER, SIO_KIND_GRANT), 3);
	w->late = 0;
	world_run(w);
	assert_int_equal(world_count(w, RECEIVER, SIO_KIND_GRANT), 1);
}

/* Both are told when the time is over, and connect anew. */
static void one_is_away_for_too_long(void **state)
{
	struct fixture *f = *state;
	uint32_t link;

	world_forget(f->c);
	world_forget(f->owner);
	f->w->lossy = true;
	world_stop(f->w, RECEIVER);
	world_pass(f->w, SMARTIOD_EXPECT_NS);
	expect_lost(f, 0, f->link[PLAIN]);
	expect_lost(f, 1, f->link[DATA]);
	assert_int_equal(world_count(f->w, SENDER, SIO_KIND_MAP), 0);
	world_restart(f->w, RECEIVER);
	world_pass(f->w, MEET);
	assert_non_null(world_event(f->owner, SIO_EVM_DINT_RING_END, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	assert_int_equal(call_dint_connect(f->w, f->c, NODE(RECEIVER), f->number[DATA], &link), 0);
}

/* Its connections are of an earlier start. @up: the new smartiod finds the link up. */
static void restart_after_receiver(struct fixture *f, bool up)
{
	world_forget(f->c);
	f->w->lossy = true;
	world_stop(f->w, SENDER);
	world_run(f->w);
	library_gone(f->owner);
	world_crash(f->w, RECEIVER);
	world_boot(f->w, RECEIVER);
	world_run(f->w);
	f->w->link[RECEIVER][SENDER] = f->w->link[SENDER][RECEIVER] = up;
	world_restart(f->w, SENDER);
	world_run(f->w);
	if (!up) {
		assert_int_equal(lost(f), 0);
		world_link(f->w, RECEIVER, SENDER, true);
	}
	world_pass(f->w, MEET);
	assert_int_equal(lost(f), 2);
	expect_nothing_shared(f);
}

static void the_receivers_host_starts_again_meanwhile(void **state)
{
	restart_after_receiver(*state, true);
}

static void and_its_link_comes_up_later(void **state)
{
	restart_after_receiver(*state, false);
}

/* ---- one that lies ---- */

static void say_ring(struct fixture *f, unsigned from, const struct sio_peer_resume_ring *what)
{
	struct sio_peer_resume_ring m = *what;

	m.h = (struct sio_msg){.type = sio_to_le32(SIO_PEER_RESUME_RING),
			       .size = sio_to_le32(sizeof(m))};
	smartiod_peer_message(f->w->host[RECEIVER].daemon, NODE(from), &m, sizeof(m));
	world_run(f->w);
}

/* A third host has no grants here: it gets no ring, neither a new one nor the sender's. */
static void a_stranger_gets_nothing(void **state)
{
	struct fixture *f = *state;
	struct smartiod *d = f->w->host[RECEIVER].daemon;
	const struct smartiod_ring *ring;
	struct sio_peer_resume_ring m = {.link = sio_to_le64(7)};
	uint64_t key = 0;

	for (struct smartiod_tree_node *n; (n = smartiod_tree_after(&d->rings, key));) {
		ring = SMARTIOD_OF(n, struct smartiod_ring, by_uid);
		key = n->key;
		m.ring = sio_to_le64(ring->uid);
		m.trigger = sio_to_le64(ring->irq_grant);
		m.memory = sio_to_le64(ring->memory_grant);
		say_ring(f, 2, &m);
		m.ring = sio_to_le64(ring->uid + 1000);
		say_ring(f, 2, &m);
		m.ring = 0;
		say_ring(f, 2, &m);
	}
	assert_int_equal(d->rings.count, 2);
	expect_quiet(f);
	give_back(f);
}

/* Of what the port has kept it gets what it has, once, and no number that may become another's. */
static void lies_after_a_restart(void **state)
{
	struct fixture *f = *state;
	struct smartiod *d;
	struct sio_peer_resume_ring m = {.link = sio_to_le64(7)};
	uint64_t grant = 0;

	f->w->lossy = true;
	world_stop(f->w, SENDER);
	world_run(f->w);
	world_restart(f->w, RECEIVER);
	world_run(f->w);
	d = f->w->host[RECEIVER].daemon;
	for (struct smartiod_tree_node *n = NULL; (n = smartiod_tree_after(&d->grants, grant));) {
		grant = n->key;
		m.trigger = sio_to_le64(grant);
		m.ring = sio_to_le64(d->next_uid + 10);
		say_ring(f, 2, &m);
		m.ring = sio_to_le64(1);
		say_ring(f, 2, &m);
	}
	assert_int_equal(d->rings.count, 1); /* the one with data, which its program has */
	world_restart(f->w, SENDER);
	world_pass(f->w, MEET);
	expect_quiet(f);
}

/*
 * A third host that has an interrupt here, too, calls it by the sender's number: nothing is
 * lost.
 */
static void a_number_is_its_hosts(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = world_client(f->w, 2, SIO_CLIENT_LIBRARY);
	struct smartiod *d = f->w->host[RECEIVER].daemon;
	struct sio_peer_resume_ring m = {.link = sio_to_le64(7)};
	const struct smartiod_ring *ring;
	uint64_t key = 0, numbers[2];
	unsigned n = 0;
	uint32_t link;

	assert_int_equal(call_plain_connect(f->w, other, NODE(RECEIVER), f->number[PLAIN], &link),
			 0);
	for (struct smartiod_tree_node *t; (t = smartiod_tree_after(&d->rings, key));) {
		ring = SMARTIOD_OF(t, struct smartiod_ring, by_uid);
		key = t->key;
		if (ring->node == NODE(2))
			m.trigger = sio_to_le64(ring->irq_grant);
		else
			numbers[n++] = key;
	}
	assert_int_equal(n, 2);
	world_stop(f->w, SENDER);
	world_run(f->w);
	world_restart(f->w, RECEIVER);
	world_run(f->w);
	for (unsigned i = 0; i < 2; i++) {
		m.ring = sio_to_le64(numbers[i]);
		say_ring(f, 2, &m);
	}
	world_restart(f->w, SENDER);
	world_pass(f->w, MEET);
	assert_int_equal(lost(f), 0);
	assert_int_equal(world_count(f->w, SENDER, SIO_KIND_MAP), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nobody_notices_a_cut),
		TEST(nobody_notices),
		TEST(both_are_started_again),
		TEST(the_sender_is_killed_at_every_step),
		TEST(the_receiver_is_killed_at_every_step),
		TEST(connections_are_made_at_every_step),
		TEST(the_receiver_ends_meanwhile),
		TEST(and_is_started_again),
		TEST(the_sender_leaves_meanwhile),
		TEST(the_sender_dies_meanwhile),
		TEST(the_sender_dies_while_both_are_away),
		TEST(its_grant_ends_after_its_window),
		TEST(one_is_away_for_too_long),
		TEST(the_receivers_host_starts_again_meanwhile),
		TEST(and_its_link_comes_up_later),
		TEST(a_stranger_gets_nothing),
		TEST(lies_after_a_restart),
		TEST(a_number_is_its_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
