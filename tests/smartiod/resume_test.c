/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Real hosts whose daemons lose each other, because one of them is killed and started again or
 * because the connection alone breaks: what the ports hold goes on, nobody is told anything, and
 * what one of them did not hear of ends when they have met again. A peer that does not come back
 * within the limit is lost, as one whose link is down is at once.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "resume_world.h"
#include "smartiod/daemon/bond.h"
#include "smartiod/lender/lend.h"

/* What of the lender's the borrower has. */
static const uint64_t *used_of(const struct fixture *f)
{
	return smartiod_peer_find(f->w->host[LENDER].daemon, NODE(BORROWER))->account.used;
}

static bool joined(const struct fixture *f)
{
	return f->w->open[LENDER][BORROWER];
}

static void a_broken_connection_changes_nothing(void **state)
{
	struct fixture *f = *state;
	unsigned before[SIO_KIND_SHADOW + 1];

	picture(f, before);
	for (unsigned i = 0; i < 3; i++) {
		world_cut(f->w, LENDER, BORROWER);
		world_run(f->w);
		expect_unchanged(f, before);
		world_pass(f->w, MEET);
		assert_true(joined(f));
		expect_unchanged(f, before);
	}
	give_back(f);
}

static void the_lenders_daemon_is_started_again(void **state)
{
	struct fixture *f = *state;
	unsigned before[SIO_KIND_SHADOW + 1];
	uint64_t used[SIO_QUOTAS];

	picture(f, before);
	memcpy(used, used_of(f), sizeof(used));
	assert_true(used[SIO_QUOTA_EXPORTED] > 0);
	for (unsigned i = 0; i < 3; i++) {
		world_stop(f->w, LENDER);
		world_run(f->w);
		expect_unchanged(f, before);
		world_restart(f->w, LENDER);
		world_pass(f->w, MEET);
		assert_true(joined(f));
		expect_unchanged(f, before);
		for (unsigned q = 0; q < SIO_QUOTAS; q++)
			assert_int_equal(used_of(f)[q], used[q]);
	}
	give_back(f);
}

/* All of the device's own memory. Return: the flags of the one piece. */
static uint32_t map_memory(struct fixture *f, uint32_t bar)
{
	struct sio_msg_seg_map msg = {.handle = sio_to_le32(bar),
				      .bytes = sio_to_le64(f->fake.cmb)};
	const struct world_message *m = world_call(f->w, f->c, SIO_MSG_SEG_MAP, &msg, sizeof(msg));
	const struct sio_rep_seg_map *rep = (const void *)m->data;

	assert_int_equal(m->error, 0);
	assert_int_equal(sio_from_le32(rep->n_pieces), 1);
	return sio_from_le32(rep->piece[0].flags);
}

/* A reset takes the doorbells away, and leaves the device's memory where it is. */
static void the_lender_knows_memory_again(void **state)
{
	struct fixture *f = *state;
	unsigned windows;
	uint32_t bar;

	assert_int_equal(
		call_dev_seg_connect(f->w, f->c, f->b.handle, 2, SCI_MEMTYPE_BAR, &bar, NULL), 0);
	assert_int_equal(map_memory(f, bar), SIO_BAR_MEMORY);
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	assert_int_equal(map_memory(f, bar), SIO_BAR_MEMORY);
	windows = world_count(f->w, BORROWER, SIO_KIND_MAP);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DEV_RESET, f->b.handle, 0), 0);
	world_run(f->w);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MAP), windows - 1);
}

/* Who shows it may have the borrowed device's BARs as a target of another one that it borrowed. */
static uint64_t ticket_at_lender(const struct fixture *f)
{
	return smartiod_loan_find(f->w->host[LENDER].daemon, f->b.id)->ticket;
}

static void the_lender_knows_the_ticket_again(void **state)
{
	struct fixture *f = *state;
	uint64_t ticket = ticket_at_lender(f);
	struct sio_peer_resume_borrow lie = {.borrower = sio_to_le64(f->b.id),
					     .ticket = sio_to_le64(ticket + 1),
					     .fdid = sio_to_le32(FDID)};

	assert_int_not_equal(ticket, 0);
	world_stop(f->w, LENDER);
	world_restart(f->w, LENDER);
	world_run(f->w);
	assert_int_equal(ticket_at_lender(f), 0); /* until its borrower says it */
	world_pass(f->w, MEET);
	assert_int_equal(ticket_at_lender(f), ticket);
	/* Once is enough. */
	message(f, LENDER, BORROWER, SIO_PEER_RESUME_BORROW, &lie, sizeof(lie));
	assert_int_equal(ticket_at_lender(f), ticket);
	give_back(f);
}

/* The exporter's program comes back, too, and neither it nor its importer notices. */
static void an_exporters_daemon_is_started_again(void **state)
{
	struct fixture *f = *state;
	struct world_client *owner = world_client(f->w, LENDER, SIO_CLIENT_LIBRARY);
	struct world_client *local = world_client(f->w, LENDER, SIO_CLIENT_LIBRARY);
	unsigned before[SIO_KIND_SHADOW + 1];
	uint32_t segment, connection, map, there;

	assert_int_equal(call_seg_export(f->w, owner, 3, 8192, &segment), 0);
	assert_int_equal(call_seg_connect(f->w, f->c, NODE(LENDER), 3, &connection), 0);
	assert_int_equal(call_seg_map(f->w, f->c, connection, 0, 8192, &map), 0);
	assert_int_equal(call_seg_connect(f->w, local, NODE(LENDER), 3, &there), 0);
	picture(f, before);
	world_forget(owner);
	for (unsigned i = 0; i < 3; i++) {
		world_restart(f->w, LENDER);
		world_pass(f->w, MEET);
		expect_unchanged(f, before);
		assert_null(world_event(owner, SIO_EVM_SEGMENT_LOCAL, 0));
	}
	assert_int_equal(call_seg_remove(f->w, owner, segment), 0);
	assert_true(f->c->n_messages > f->messages); /* that it was removed, and is kept */
	assert_int_equal(call_handle(f->w, local, SIO_MSG_SEG_DISCONNECT, there, 0), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_UNMAP, map, 0), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_DISCONNECT, connection, 0), 0);
	give_back(f);
}

/* An importer that went meanwhile is told of when the two have met. */
static void an_importer_goes_meanwhile(void **state)
{
	struct fixture *f = *state;
	struct world_client *owner = world_client(f->w, LENDER, SIO_CLIENT_LIBRARY);
	const struct sio_evm_segment *evm;
	uint32_t segment, connection;

	assert_int_equal(call_seg_export(f->w, owner, 3, 8192, &segment), 0);
	assert_int_equal(call_seg_connect(f->w, f->c, NODE(LENDER), 3, &connection), 0);
	world_forget(owner);
	world_stop(f->w, LENDER);
	world_run(f->w);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_DISCONNECT, connection, 0), 0);
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	evm = world_event(owner, SIO_EVM_SEGMENT_LOCAL, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->reason), SCI_CB_LOST);
	assert_null(world_event(owner, SIO_EVM_SEGMENT_LOCAL, 1));
	assert_int_equal(call_seg_remove(f->w, owner, segment), 0);
	give_back(f);
}

static void queues_keep_their_memory(void **state)
{
	struct fixture *f = *state;
	uint32_t dma;
	uint64_t at, number;

	assert_int_equal(
		call_dma_map_at(f->w, f->c, f->b.handle, f->segment, 0, 4096, 4096, &dma, &at), 0);
	number = hold_twice(f, at);
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	expect_held_twice(f, dma, number);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, dma, 0), 0);
	give_back(f);
}

/* Before each step: another borrow asks for registers whose holder has not said it has them. */
static void ask_for_registers(struct world *w, void *arg)
{
	struct fixture *f = arg;
	struct smartiod_loan *l = smartiod_loan_find(w->host[LENDER].daemon, f->b.id);
	struct sio_ledger *ledger = l ? &l->device->ledger : NULL;
	bool fresh;

	library_pump(w, NULL);
	if (!l || l->state != SMARTIOD_LOAN_LIVE || ledger->holder == l->id)
		return;
	if (f->asked++ == 0)
		assert_int_equal(sio_ledger_borrow(ledger, l->id + 1, NODE(LENDER), 1, false, NULL),
				 0);
	assert_int_equal(sio_ledger_take_registers(ledger, l->id + 1, &fresh, NULL), -EACCES);
}

static void registers_are_nobody_elses_meanwhile(void **state)
{
	struct fixture *f = *state;
	struct sio_ledger *ledger;

	world_restart(f->w, LENDER);
	f->w->before_step = ask_for_registers;
	f->w->before_arg = f;
	world_pass(f->w, MEET);
	f->w->before_step = library_pump;
	assert_true(f->asked > 0);
	ledger = &smartiod_loan_find(f->w->host[LENDER].daemon, f->b.id)->device->ledger;
	assert_int_equal(ledger->holder, f->b.id);
	sio_ledger_end(ledger, f->b.id + 1);
	sio_ledger_closed(ledger, f->b.id + 1, false);
	give_back(f);
}

/* The connection broke between two of the lender's messages: one program has heard, one has not. */
static void who_missed_a_reset_is_told(void **state)
{
	struct fixture *f = *state;
	struct world_client *other = world_client(f->w, BORROWER, SIO_CLIENT_LIBRARY);
	struct smartiod_device *dev = smartiod_device_known(f->w->host[LENDER].daemon, FDID);
	struct sio_peer_device_event reset = {.borrower = sio_to_le64(f->b.id),
					      .fdid = sio_to_le32(FDID),
					      .event = sio_to_le32(SIO_DEVICE_EV_RESET)};
	const struct sio_evm_device *evm;
	struct call_borrow b;
	uint32_t dma;
	uint64_t at, number;

	assert_int_equal(call_borrow(f->w, other, FDID, 0, &b), 0);
	f->fake.generation++;
	dev->generation = smartiod_generation(f->fake.generation);
	reset.generation = sio_to_le32(dev->generation);
	message(f, BORROWER, LENDER, SIO_PEER_DEVICE_EVENT, &reset, sizeof(reset));
	world_run(f->w);
	assert_non_null(call_device_event(f->c, 0));
	assert_null(call_device_event(other, 0));
	/* A queue of after the reset is not over when somebody else hears of that. */
	assert_int_equal(
		call_dma_map_at(f->w, f->c, f->b.handle, f->segment, 0, 4096, 4096, &dma, &at), 0);
	assert_int_equal(call_hold(f->w, f->c, f->b.handle, f->b.id, at, 4096, &number), 0);
	world_cut(f->w, LENDER, BORROWER);
	world_pass(f->w, MEET);
	assert_null(call_device_event(f->c, 1));
	evm = call_device_event(other, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->event), SIO_DEVICE_EV_RESET);
	assert_int_equal(sio_from_le32(evm->generation), dev->generation);
	assert_null(call_device_event(other, 1));
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_DMA_UNMAP, dma, 0), EBUSY);
}

/* The device triggers an interrupt of its borrower, or of a third host's program. */
static uint32_t set_vector(struct fixture *f, struct world_client *c, unsigned host)
{
	uint32_t interrupt, number, link, vector = SIO_VECTOR_ANY;

	assert_int_equal(call_plain_create(f->w, c, &interrupt, &number), 0);
	assert_int_equal(call_plain_connect(f->w, f->c, NODE(host), number, &link), 0);
	assert_int_equal(call_vector(f->w, f->c, f->b.handle, &vector, link), 0);
	return vector;
}

/* Interrupts of the device outlive the connection, and a restart of each daemon. */
static void who_waits_for_interrupts_does_not_notice(void **state)
{
	struct fixture *f = *state;
	struct world_client *third = world_client(f->w, 2, SIO_CLIENT_LIBRARY);
	const uint32_t vector[2] = {set_vector(f, f->c, BORROWER), set_vector(f, third, 2)};
	unsigned before[SIO_KIND_SHADOW + 1];

	picture(f, before);
	for (unsigned i = 0; i < 10; i++) {
		if (i % 2)
			world_restart(f->w, i / 2 % 3);
		else
			world_cut(f->w, LENDER, i % 4 ? 2 : BORROWER);
		world_pass(f->w, MEET);
		expect_unchanged(f, before);
		assert_int_not_equal(fake_vector(f->w, vector[0]), 0);
		assert_int_not_equal(fake_vector(f->w, vector[1]), 0);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(call_unvector(f->w, f->c, f->b.handle, vector[i]), 0);
	assert_int_equal(call_unvector(f->w, f->c, f->b.handle, vector[0]), EBADF);
	assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 0);
}

/* @host is killed once more at any point of its meetings, or another one is. */
static void killed_with_vectors(struct fixture *f, unsigned host)
{
	unsigned before[SIO_KIND_SHADOW + 1], steps = 0;
	struct world_client *third = world_client(f->w, 2, SIO_CLIENT_LIBRARY);
	const uint32_t vector[2] = {set_vector(f, f->c, BORROWER), set_vector(f, third, 2)};
	bool ended = false;

	picture(f, before);
	for (; !ended; steps++) {
		world_restart(f->w, host);
		for (unsigned i = 0; i < steps && !ended; i++)
			ended = !world_step(f->w);
		if (steps % 4)
			world_restart(f->w, steps % 4 - 1);
		else
			world_cut(f->w, LENDER, BORROWER);
		world_pass(f->w, MEET);
		assert_true(f->w->open[LENDER][BORROWER]);
		expect_unchanged(f, before);
		assert_int_not_equal(fake_vector(f->w, vector[0]), 0);
		assert_int_not_equal(fake_vector(f->w, vector[1]), 0);
	}
	assert_true(steps > 20);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(call_unvector(f->w, f->c, f->b.handle, vector[i]), 0);
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 0);
}

static void the_lender_of_vectors_is_killed_at_every_step(void **state)
{
	killed_with_vectors(*state, LENDER);
}

static void the_borrower_of_vectors_is_killed_at_every_step(void **state)
{
	killed_with_vectors(*state, BORROWER);
}

static void the_receiver_of_vectors_is_killed_at_every_step(void **state)
{
	killed_with_vectors(*state, 2);
}

/* What is asked for while the lender is away waits for it. */
static void one_is_taken_back_meanwhile(void **state)
{
	struct fixture *f = *state;
	const uint32_t vector = set_vector(f, f->c, BORROWER);
	struct sio_msg_dev_vector off = {.device = sio_to_le32(f->b.handle),
					 .vector = sio_to_le32(vector)};

	world_restart(f->w, BORROWER);
	world_pass(f->w, MEET);
	world_cut(f->w, LENDER, BORROWER);
	world_send(f->w, f->c, SIO_MSG_DEV_UNVECTOR, &off, sizeof(off));
	world_pass(f->w, MEET);
	assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 0);
	assert_null(call_device_event(f->c, 0));
}

/*
 * On a real host its interrupts have one address. A vector's window is not taken for that of a
 * program's connection, to which it leads as well.
 */
static void an_address_is_not_enough(void **state)
{
	struct fixture *f = *state;
	struct world_client *here = world_client(f->w, LENDER, SIO_CLIENT_LIBRARY);
	unsigned before[SIO_KIND_SHADOW + 1];
	uint32_t interrupt, number, link, vector;

	f->w->same_message = true;
	assert_int_equal(call_plain_create(f->w, f->c, &interrupt, &number), 0);
	assert_int_equal(call_plain_connect(f->w, here, NODE(BORROWER), number, &link), 0);
	vector = set_vector(f, f->c, BORROWER);
	picture(f, before);
	for (unsigned i = 0; i < 3; i++) {
		world_restart(f->w, LENDER);
		world_pass(f->w, MEET);
		expect_unchanged(f, before);
	}
	assert_int_equal(f->w->bad_ends, 0);
	assert_int_equal(call_unvector(f->w, f->c, f->b.handle, vector), 0);
	assert_int_equal(call_handle(f->w, here, SIO_MSG_DINT_DISCONNECT, link, 0), 0);
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), before[SIO_KIND_GRANT] - 2);
}

/* Nor are the windows of several vectors taken for each other's, in whatever order they end. */
static void vectors_of_one_address_are_told_apart(void **state)
{
	struct fixture *f = *state;
	unsigned before[SIO_KIND_SHADOW + 1];
	uint32_t vector[3];

	f->w->same_message = true;
	for (unsigned i = 0; i < 3; i++)
		vector[i] = set_vector(f, f->c, BORROWER);
	picture(f, before);
	for (unsigned i = 0; i < 3; i++) {
		world_restart(f->w, i == 1 ? BORROWER : LENDER);
		world_pass(f->w, MEET);
		expect_unchanged(f, before);
	}
	assert_null(call_device_event(f->c, 0));
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(call_unvector(f->w, f->c, f->b.handle, vector[(i + 1) % 3]), 0);
		world_run(f->w);
		assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 2 - i);
		assert_int_equal(world_resources(f->w, SIO_KIND_GRANT),
				 before[SIO_KIND_GRANT] - 1 - i);
		assert_int_equal(f->w->bad_ends, 0);
		world_restart(f->w, LENDER);
		world_pass(f->w, MEET);
	}
	assert_null(call_device_event(f->c, 0));
}

/* Its interrupt ends, and with it the vector: nobody misses it at a meeting. */
static void one_that_ended_is_not_missed(void **state)
{
	struct fixture *f = *state;
	struct world_client *third = world_client(f->w, 2, SIO_CLIENT_LIBRARY);
	uint32_t vector = set_vector(f, third, 2);

	library_gone(third);
	world_kill(f->w, third);
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 0);
	assert_int_equal(call_unvector(f->w, f->c, f->b.handle, vector), EBADF);
	assert_int_equal(set_vector(f, f->c, BORROWER), vector);
	world_forget(f->c);
	world_cut(f->w, LENDER, BORROWER);
	world_pass(f->w, MEET);
	assert_null(call_device_event(f->c, 0));
	assert_int_equal(call_unvector(f->w, f->c, f->b.handle, vector), 0);
	world_cut(f->w, LENDER, BORROWER);
	world_pass(f->w, MEET);
	assert_null(call_device_event(f->c, 0));
}

/* Nor is it when the daemon that had heard of its end is started again: its library had not. */
static void one_that_ended_is_not_missed_by_the_next_daemon(void **state)
{
	struct fixture *f = *state;

	for (unsigned host = 0; host < 3; host++) {
		struct world_client *third = world_client(f->w, 2, SIO_CLIENT_LIBRARY);
		uint32_t vector = set_vector(f, third, 2);

		library_gone(third);
		world_kill(f->w, third);
		world_run(f->w);
		assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 0);
		world_restart(f->w, host);
		world_pass(f->w, MEET);
		assert_null(call_device_event(f->c, 0));
		assert_int_equal(call_unvector(f->w, f->c, f->b.handle, vector), EBADF);
	}
	give_back(f);
}

/* Nor if the daemons are apart when it ends, whichever of them comes back. */
static void one_that_ends_meanwhile_is_not_missed(void **state)
{
	struct fixture *f = *state;

	f->w->lossy = true;
	for (unsigned host = 0; host < 2; host++) {
		struct world_client *third = world_client(f->w, 2, SIO_CLIENT_LIBRARY);
		uint32_t vector = set_vector(f, third, 2);

		world_stop(f->w, host);
		world_run(f->w);
		library_gone(third);
		world_kill(f->w, third);
		world_run(f->w);
		world_restart(f->w, host);
		world_pass(f->w, MEET);
		assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 0);
		assert_null(call_device_event(f->c, 0));
		assert_int_equal(call_unvector(f->w, f->c, f->b.handle, vector), EBADF);
	}
	give_back(f);
}

/* Of the end of an interrupt whoever is connected to it hears, and has the device as ever. */
static void who_waits_for_interrupts_is_told(void **state)
{
	struct fixture *f = *state;
	struct world_client *third = world_client(f->w, 2, SIO_CLIENT_LIBRARY);

	f->w->lossy = true;
	set_vector(f, third, 2);
	world_stop(f->w, LENDER);
	world_run(f->w);
	library_gone(third);
	world_crash(f->w, 2);
	world_boot(f->w, 2);
	world_run(f->w);
	world_restart(f->w, LENDER);
	world_link(f->w, LENDER, 2, true);
	world_pass(f->w, MEET);
	assert_non_null(world_event(f->c, SIO_EVM_DINT_LOST, 0));
	assert_null(call_device_event(f->c, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_VECTOR), 0);
	give_back(f);
}

/* One that polls again is not. */
static void who_waits_for_none_any_more_is_not_told(void **state)
{
	struct fixture *f = *state;
	uint32_t interrupt, number, link, vector[2] = {SIO_VECTOR_ANY, SIO_VECTOR_ANY};

	assert_int_equal(call_plain_create(f->w, f->c, &interrupt, &number), 0);
	assert_int_equal(call_plain_connect(f->w, f->c, NODE(BORROWER), number, &link), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(call_vector(f->w, f->c, f->b.handle, &vector[i], link), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(call_unvector(f->w, f->c, f->b.handle, vector[i]), 0);
	assert_int_equal(call_unvector(f->w, f->c, f->b.handle, vector[0]), EBADF);
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	assert_null(call_device_event(f->c, 0));
	give_back(f);
}

static void it_is_killed_at_every_step(void **state)
{
	kill_at_every_step(*state, LENDER);
	give_back(*state);
}

/* What the borrower gave back while nobody could hear it is given back when they have met. */
static void what_was_given_back_meanwhile_ends(void **state)
{
	struct fixture *f = *state;

	world_stop(f->w, LENDER);
	world_run(f->w);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_UNMAP, f->bar_map, 0), 0);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_UNMAP, f->near_map, 0), 0);
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	assert_int_equal(world_count(f->w, LENDER, SIO_KIND_GRANT), 0);
	assert_int_equal(world_count(f->w, LENDER, SIO_KIND_BAR), 0);
	assert_int_equal(call_bar_map(f->w, f->c, f->bar, 0, &f->bar_map, f->access), 0);
	assert_int_equal(call_seg_map(f->w, f->c, f->near, 0, 4096, &f->near_map), 0);
	give_back(f);
}

/* A program that ends meanwhile leaves what the device may reach, which the reset ends. */
static void its_program_dies_meanwhile(void **state)
{
	struct fixture *f = *state;

	world_stop(f->w, LENDER);
	world_run(f->w);
	library_gone(f->c);
	world_kill(f->w, f->c);
	world_run(f->w);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_GRANT), 1);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MEM), 1);
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	assert_int_equal(world_resources(f->w, SIO_KIND_DMAMAP), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MEM), 0);
}

/* Its memory stays until the lender's device has released it, which nobody can know. */
static void a_lender_that_does_not_come_back_is_lost(void **state)
{
	struct fixture *f = *state;
	const struct sio_evm_device *evm;

	world_stop(f->w, LENDER);
	world_pass(f->w, SMARTIOD_EXPECT_NS / 2);
	assert_null(call_device_event(f->c, 0));
	world_pass(f->w, SMARTIOD_EXPECT_NS);
	evm = call_device_event(f->c, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->event), SIO_DEVICE_EV_LOST);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_GRANT), 1);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MEM), 1);
	world_restart(f->w, LENDER);
	world_pass(f->w, MEET);
	assert_int_equal(world_resources(f->w, SIO_KIND_DMAMAP), 0);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_GRANT), 0);
}

static void a_borrower_that_does_not_come_back_is_lost(void **state)
{
	struct fixture *f = *state;

	f->w->lossy = true; /* its program may have BAR pages mapped as they are taken away */
	world_stop(f->w, BORROWER);
	world_pass(f->w, SMARTIOD_EXPECT_NS / 2);
	assert_int_equal(world_count(f->w, LENDER, SIO_KIND_DMAMAP), 2);
	world_pass(f->w, SMARTIOD_EXPECT_NS);
	assert_int_equal(world_count(f->w, LENDER, SIO_KIND_DMAMAP), 0);
	world_restart(f->w, BORROWER);
	world_pass(f->w, MEET);
}

/* The fabric's word ends all at once. */
static void a_link_that_goes_down_meanwhile_ends_all(void **state)
{
	struct fixture *f = *state;
	const struct sio_evm_device *evm;

	f->w->lossy = true;
	world_stop(f->w, LENDER);
	world_run(f->w);
	world_hear(f->w, BORROWER, LENDER, 0, false);
	world_run(f->w);
	evm = call_device_event(f->c, 0);
	assert_non_null(evm);
	assert_int_equal(sio_from_le32(evm->event), SIO_DEVICE_EV_LOST);
	world_restart(f->w, LENDER);
	world_hear(f->w, BORROWER, LENDER, 0, true);
	world_pass(f->w, MEET);
	assert_int_equal(world_resources(f->w, SIO_KIND_DMAMAP), 0);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_GRANT), 0);
}

/* A request that waits for the lender's answer is sent again, to the next daemon. */
static void a_request_on_its_way_is_answered(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_dev_borrow msg = {.fdid = sio_to_le32(FDID)};
	const struct world_message *m;
	uint32_t id;

	for (unsigned steps = 1; steps < 12; steps++) {
		id = world_send(f->w, f->c, SIO_MSG_DEV_BORROW, &msg, sizeof(msg));
		for (unsigned i = 0; i < steps; i++)
			world_step(f->w);
		world_restart(f->w, LENDER);
		world_pass(f->w, MEET);
		m = world_reply(f->c, id);
		assert_non_null(m);
		assert_int_equal(m->error, 0);
		assert_int_equal(
			call_handle(
				f->w, f->c, SIO_MSG_DEV_RETURN,
				sio_from_le32(((const struct sio_rep_dev_borrow *)m->data)->handle),
				0),
			0);
	}
	world_run(f->w);
	assert_int_equal(world_count(f->w, LENDER, SIO_KIND_OWNER), 1);
	give_back(f);
}

/* The device is nobody's but his, and he asks twice: he is not in his own way. */
static void an_exclusive_borrow_is_asked_for_again(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_dev_borrow msg = {.fdid = sio_to_le32(FDID),
					 .flags = sio_to_le32(SCI_FLAG_EXCLUSIVE)};
	const struct world_message *m;
	uint32_t id;

	give_back(f);
	f->w->late = SIO_OP_OWNER_NEW;
	id = world_send(f->w, f->c, SIO_MSG_DEV_BORROW, &msg, sizeof(msg));
	world_run(f->w);
	world_cut(f->w, LENDER, BORROWER);
	world_pass(f->w, MEET);
	assert_true(joined(f));
	f->w->late = 0;
	world_run(f->w);
	m = world_reply(f->c, id);
	assert_non_null(m);
	assert_int_equal(m->error, 0);
	assert_int_equal(world_count(f->w, LENDER, SIO_KIND_OWNER), 1);
}

/* Nothing is shared with the host, and its daemon accepts a connection that it never speaks on. */
static void a_request_does_not_wait_for_ever(void **state)
{
	struct fixture *f = *state;
	struct smartiod *d = f->w->host[BORROWER].daemon;
	struct sio_msg_seg_connect msg = {.node = sio_to_le32(NODE(2)),
					  .segment_id = sio_to_le32(3)};
	const struct world_message *m;
	uint32_t id;

	world_stop(f->w, 2);
	world_pass(f->w, 2 * SMARTIOD_EXPECT_NS);
	id = world_send(f->w, f->c, SIO_MSG_SEG_CONNECT, &msg, sizeof(msg));
	world_run(f->w);
	smartiod_peer_up(d, NODE(2));
	smartiod_peer_down(d, NODE(2));
	world_run(f->w);
	assert_null(world_reply(f->c, id));
	world_pass(f->w, SMARTIOD_EXPECT_NS);
	m = world_reply(f->c, id);
	assert_non_null(m);
	assert_int_equal(m->error, ETIMEDOUT);
	give_back(f);
}

/* Its daemon is another kernel's: nothing that it had is there. */
static void another_start_ends_all(void **state)
{
	struct fixture *f = *state;

	f->w->lossy = true;
	world_cut(f->w, LENDER, BORROWER);
	world_run(f->w);
	world_crash(f->w, LENDER);
	world_run(f->w);
	world_boot(f->w, LENDER);
	world_pass(f->w, MEET);
	assert_non_null(call_device_event(f->c, 0));
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_broken_connection_changes_nothing),
		TEST(the_lenders_daemon_is_started_again),
		TEST(the_lender_knows_memory_again),
		TEST(the_lender_knows_the_ticket_again),
		TEST(an_exporters_daemon_is_started_again),
		TEST(an_importer_goes_meanwhile),
		TEST(queues_keep_their_memory),
		TEST(registers_are_nobody_elses_meanwhile),
		TEST(who_missed_a_reset_is_told),
		TEST(who_waits_for_interrupts_does_not_notice),
		TEST(the_lender_of_vectors_is_killed_at_every_step),
		TEST(the_borrower_of_vectors_is_killed_at_every_step),
		TEST(the_receiver_of_vectors_is_killed_at_every_step),
		TEST(one_is_taken_back_meanwhile),
		TEST(an_address_is_not_enough),
		TEST(vectors_of_one_address_are_told_apart),
		TEST(one_that_ended_is_not_missed),
		TEST(one_that_ended_is_not_missed_by_the_next_daemon),
		TEST(one_that_ends_meanwhile_is_not_missed),
		TEST(who_waits_for_interrupts_is_told),
		TEST(who_waits_for_none_any_more_is_not_told),
		TEST(it_is_killed_at_every_step),
		TEST(what_was_given_back_meanwhile_ends),
		TEST(its_program_dies_meanwhile),
		TEST(a_lender_that_does_not_come_back_is_lost),
		TEST(a_borrower_that_does_not_come_back_is_lost),
		TEST(a_link_that_goes_down_meanwhile_ends_all),
		TEST(a_request_on_its_way_is_answered),
		TEST(an_exclusive_borrow_is_asked_for_again),
		TEST(a_request_does_not_wait_for_ever),
		TEST(another_start_ends_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
