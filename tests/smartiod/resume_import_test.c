/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Real hosts, of which one has connected to segments of another, whose daemon is killed and started
 * again: the windows stay, and neither side is told anything. What ended meanwhile is told when the
 * two have met.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "calls.h"
#include "library.h"
#include "smartiod/daemon/bond.h"
#include "smartiod/restart/restore.h"
#include "smartiod/segment/grant.h"

#define EXPORTER 0
#define IMPORTER 1
#define NODE(host) (4 * ((host) + 1))
#define MEET 1000000000ull /* ns in which two daemons have met */

struct fixture {
	struct world *w;
	struct world_client *owner, *c;
	uint32_t segment, other, connection, map[2], unmapped;
	unsigned messages; /* events that both had received */
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
	f->owner = world_client(w, EXPORTER, SIO_CLIENT_LIBRARY);
	f->c = world_client(w, IMPORTER, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_seg_export(w, f->owner, 1, 8192, &f->segment), 0);
	assert_int_equal(call_seg_export(w, f->owner, 2, 4096, &f->other), 0);
	assert_int_equal(call_seg_connect(w, f->c, NODE(EXPORTER), 1, &f->connection), 0);
	assert_int_equal(call_seg_connect(w, f->c, NODE(EXPORTER), 2, &f->unmapped), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			call_seg_map(w, f->c, f->connection, 4096ull * i, 4096, &f->map[i]), 0);
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

static void expect_quiet(const struct fixture *f)
{
	assert_int_equal(world_count(f->w, IMPORTER, SIO_KIND_MAP), 1);
	assert_int_equal(world_count(f->w, EXPORTER, SIO_KIND_GRANT), 1);
	assert_int_equal(heard(f), f->messages);
}

static void start_again(struct fixture *f)
{
	world_stop(f->w, IMPORTER);
	world_run(f->w);
	world_restart(f->w, IMPORTER);
	world_pass(f->w, MEET);
	assert_true(f->w->open[EXPORTER][IMPORTER]);
}

/* Each handle is what it was, and all comes back. */
static void give_back(struct fixture *f)
{
	struct world *w = f->w;
	uint32_t map;

	assert_int_equal(call_seg_map(w, f->c, f->connection, 0, 8192, &map), 0);
	assert_int_equal(world_count(w, IMPORTER, SIO_KIND_MAP), 1); /* by the same window */
	assert_int_equal(call_handle(w, f->c, SIO_MSG_SEG_DISCONNECT, f->connection, 0), EBUSY);
	assert_int_equal(call_handle(w, f->c, SIO_MSG_SEG_UNMAP, map, 0), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(call_handle(w, f->c, SIO_MSG_SEG_UNMAP, f->map[i], 0), 0);
	world_run(w);
	assert_int_equal(world_resources(w, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(w, SIO_KIND_GRANT), 0);
	assert_int_equal(call_seg_map(w, f->c, f->unmapped, 0, 4096, &map), 0);
	assert_int_equal(call_handle(w, f->c, SIO_MSG_SEG_UNMAP, map, 0), 0);
	assert_int_equal(call_handle(w, f->c, SIO_MSG_SEG_DISCONNECT, f->unmapped, 0), 0);
	assert_int_equal(call_handle(w, f->c, SIO_MSG_SEG_DISCONNECT, f->connection, 0), 0);
	assert_int_equal(call_handle(w, f->owner, SIO_MSG_SEG_REMOVE, f->other, 0), 0);
	assert_int_equal(call_handle(w, f->owner, SIO_MSG_SEG_REMOVE, f->segment, 0), 0);
	world_run(w);
	assert_int_equal(world_resources(w, SIO_KIND_MEM), 0);
}

static void nobody_notices(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 3; i++) {
		start_again(f);
		expect_quiet(f);
	}
	give_back(f);
}

/* Windows stay, those too that a DMA queue alone needs, and so do its ranges. */
static void a_dma_queue_goes_on(void **state)
{
	struct fixture *f = *state;
	struct world *w = f->w;
	uint64_t range[3] = {0};
	uint32_t queue = 0, own, slot, kept[3];

	assert_int_equal(call_seg_export(w, f->c, 3, 4096, &own), 0);
	assert_int_equal(call_queue_create(w, f->c, 0, &queue), 0);
	kept[0] = f->unmapped;
	kept[1] = f->connection;
	kept[2] = own;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(
			call_queue_attach(w, f->c, queue, kept[i], i < 2, &slot, &range[i]), 0);
	for (unsigned i = 0; i < 3; i++) {
		start_again(f);
		assert_int_equal(world_count(w, IMPORTER, SIO_KIND_DMA), 1);
		assert_int_equal(world_count(w, IMPORTER, SIO_KIND_DMA_RANGE), 3);
		assert_int_equal(world_count(w, IMPORTER, SIO_KIND_MAP), 2);
		assert_int_equal(heard(f), f->messages);
	}
	assert_int_equal(call_queue_detach(w, f->c, queue, range[0]), 0);
	world_run(w);
	assert_int_equal(world_count(w, IMPORTER, SIO_KIND_MAP), 1); /* its last user */
	start_again(f); /* what was given back is not there again */
	assert_int_equal(world_count(w, IMPORTER, SIO_KIND_DMA_RANGE), 2);
	assert_int_equal(call_seg_remove(w, f->c, own), 0);
	assert_int_equal(call_handle(w, f->c, SIO_MSG_QUEUE_REMOVE, queue, 0), 0);
	world_run(w);
	assert_int_equal(world_resources(w, SIO_KIND_DMA), 0);
	assert_int_equal(world_resources(w, SIO_KIND_DMA_RANGE), 0);
	start_again(f);
	assert_int_equal(library_lost(), 0);
	give_back(f);
}

/*
 * The exporter has given it up before. It knows the connection no more; or, started again since
 * then, takes it for a new one. The memory that the window leads to is there, or an IOMMU has
 * taken it away and nothing but the address is left.
 */
static void away_for_too_long(struct fixture *f, bool exporter_too)
{
	bool lost = f->w->iommu || !exporter_too;

	world_forget(f->c);
	f->w->lossy = true;
	world_stop(f->w, IMPORTER);
	world_pass(f->w, SMARTIOD_EXPECT_NS);
	if (exporter_too)
		world_restart(f->w, EXPORTER);
	world_run(f->w);
	world_restart(f->w, IMPORTER);
	world_pass(f->w, MEET);
	assert_true(f->w->open[EXPORTER][IMPORTER]);
	if (lost)
		expect_event(f->c, SIO_EVM_SEGMENT_REMOTE, 0, f->connection, SCI_CB_LOST,
			     SIO_LOSS_LOST);
	else
		assert_int_equal(events(f->c), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), !lost);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), !lost);
}

static void it_was_away_for_too_long(void **state)
{
	away_for_too_long(*state, false);
}

static void and_its_exporter_was_started_again(void **state)
{
	away_for_too_long(*state, true);
}

static void both_are_started_again(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 3; i++) {
		world_stop(f->w, IMPORTER);
		world_stop(f->w, EXPORTER);
		world_run(f->w);
		world_restart(f->w, i % 2 ? IMPORTER : EXPORTER);
		world_run(f->w);
		world_restart(f->w, i % 2 ? EXPORTER : IMPORTER);
		world_pass(f->w, MEET);
		expect_quiet(f);
	}
	give_back(f);
}

/* Killed once more at any point of the meeting; or the connection breaks there. */
static void it_is_killed_at_every_step(void **state)
{
	struct fixture *f = *state;
	bool ended = false;
	unsigned steps = 0;

	for (; !ended; steps++) {
		world_restart(f->w, IMPORTER);
		for (unsigned i = 0; i < steps && !ended; i++)
			ended = !world_step(f->w);
		if (steps % 2)
			world_restart(f->w, steps % 4 == 1 ? IMPORTER : EXPORTER);
		else
			world_cut(f->w, EXPORTER, IMPORTER);
		world_pass(f->w, MEET);
		expect_quiet(f);
	}
	assert_true(steps > 20);
	give_back(f);
}

/* Both at once, as a program with two threads may. */
static void send_unmaps(struct fixture *f)
{
	for (unsigned i = 0; i < 2; i++) {
		struct sio_msg_handle m = {.handle = sio_to_le32(f->map[i])};

		world_send(f->w, f->c, SIO_MSG_SEG_UNMAP, &m, sizeof(m));
	}
}

/* The program unmaps at any point of the meeting: the grant ends after the window, never before. */
static void it_unmaps_at_every_step(void **state)
{
	struct fixture *f = *state;
	struct world *w = f->w;
	bool ended = false;

	for (unsigned steps = 0; !ended; steps++) {
		world_restart(w, IMPORTER);
		while (!library_settled(w))
			assert_true(world_step(w));
		for (unsigned i = 0; i < steps && !ended; i++)
			ended = !world_step(w);
		send_unmaps(f);
		world_pass(w, MEET);
		assert_int_equal(world_resources(w, SIO_KIND_MAP), 0);
		assert_int_equal(world_resources(w, SIO_KIND_GRANT), 0);
		assert_int_equal(w->bad_ends, 0);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(call_seg_map(w, f->c, f->connection, 0, 4096, &f->map[i]),
					 0);
	}
	give_back(f);
}

/* The port takes its time: the exporter has been met long before the window is gone. */
static void its_grant_ends_after_its_window(void **state)
{
	struct fixture *f = *state;
	struct world *w = f->w;

	world_restart(w, IMPORTER);
	while (!library_settled(w))
		assert_true(world_step(w));
	w->late = SIO_OP_UNMAP;
	send_unmaps(f);
	world_pass(w, MEET);
	assert_true(w->open[EXPORTER][IMPORTER]);
	assert_int_equal(world_count(w, EXPORTER, SIO_KIND_GRANT), 1);
	w->late = 0;
	world_run(w);
	assert_int_equal(world_count(w, EXPORTER, SIO_KIND_GRANT), 0);
}

static void the_exporter_ends_meanwhile(void **state)
{
	struct fixture *f = *state;

	world_forget(f->c);
	world_stop(f->w, IMPORTER);
	world_run(f->w);
	library_gone(f->owner);
	world_kill(f->w, f->owner);
	world_run(f->w);
	world_restart(f->w, IMPORTER);
	world_pass(f->w, MEET);
	expect_event(f->c, SIO_EVM_SEGMENT_REMOTE, 0, f->connection, SCI_CB_LOST, SIO_LOSS_LOST);
	expect_event(f->c, SIO_EVM_SEGMENT_REMOTE, 1, f->unmapped, SCI_CB_LOST, SIO_LOSS_LOST);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
}

/* @up: the new smartiod finds the link up, at the exporter's new start. */
static void restart_after_exporter(struct fixture *f, bool up)
{
	struct smartiod *d;

	world_forget(f->c);
	f->w->lossy = true;
	world_stop(f->w, IMPORTER);
	world_run(f->w);
	library_gone(f->owner);
	world_crash(f->w, EXPORTER);
	world_boot(f->w, EXPORTER);
	world_run(f->w);
	f->w->link[EXPORTER][IMPORTER] = f->w->link[IMPORTER][EXPORTER] = up;
	world_restart(f->w, IMPORTER);
	while (!world_event(f->c, SIO_EVM_SEGMENT_REMOTE, 1) && world_step(f->w))
		;
	d = f->w->host[IMPORTER].daemon;
	assert_int_not_equal(smartiod_peer_find(d, NODE(EXPORTER))->state, SMARTIOD_PEER_READY);
}

/* Its windows lead to memory of an earlier start, whatever is there now. */
static void the_exporters_host_starts_again_meanwhile(void **state)
{
	struct fixture *f = *state;

	restart_after_exporter(f, true);
	/* It need not be asked, and what it has by these numbers now is something else. */
	expect_event(f->c, SIO_EVM_SEGMENT_REMOTE, 0, f->connection, SCI_CB_LOST, SIO_LOSS_LOST);
	expect_event(f->c, SIO_EVM_SEGMENT_REMOTE, 1, f->unmapped, SCI_CB_LOST, SIO_LOSS_LOST);
	world_pass(f->w, MEET);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
}

static void it_comes_up_later(void **state)
{
	struct fixture *f = *state;

	restart_after_exporter(f, false);
	expect_event(f->c, SIO_EVM_SEGMENT_REMOTE, 0, f->connection, SCI_CB_NOT_OPERATIONAL,
		     SIO_LOSS_NONE);
	world_forget(f->c);
	world_link(f->w, EXPORTER, IMPORTER, true);
	world_pass(f->w, MEET);
	expect_event(f->c, SIO_EVM_SEGMENT_REMOTE, 0, f->connection, SCI_CB_LOST, SIO_LOSS_LOST);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
}

/* A window for which the exporter names no grant leads nowhere that it knows of. */
static void the_exporter_has_no_grant(void **state)
{
	struct fixture *f = *state;
	struct smartiod *d = f->w->host[EXPORTER].daemon;
	uint64_t grant = smartiod_tree_after(&d->grants, 0)->key;

	world_forget(f->c);
	f->w->lossy = true;
	world_stop(f->w, IMPORTER);
	world_run(f->w);
	smartiod_grant_end(d, grant);
	world_restart(f->w, IMPORTER);
	world_pass(f->w, MEET);
	expect_event(f->c, SIO_EVM_SEGMENT_REMOTE, 0, f->connection, SCI_CB_LOST, SIO_LOSS_LOST);
	assert_null(world_event(f->c, SIO_EVM_SEGMENT_REMOTE, 1));
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	f->w->bad_ends = f->w->wild = 0; /* it ended under the window, as it was to */
}

static void the_program_ends_meanwhile(void **state)
{
	struct fixture *f = *state;

	world_forget(f->owner);
	world_stop(f->w, IMPORTER);
	world_run(f->w);
	library_gone(f->c);
	world_kill(f->w, f->c);
	world_run(f->w);
	world_restart(f->w, IMPORTER);
	world_pass(f->w, MEET);
	expect_event(f->owner, SIO_EVM_SEGMENT_LOCAL, 0, f->segment, SCI_CB_LOST, SIO_LOSS_NONE);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
}

/* It lives, but says nothing: its windows end before the exporter is met. */
static void the_program_does_not_come_back(void **state)
{
	struct fixture *f = *state;

	world_forget(f->owner);
	library_gone(f->c);
	world_restart(f->w, IMPORTER);
	world_run(f->w);
	assert_int_equal(world_count(f->w, IMPORTER, SIO_KIND_MAP), 1);
	assert_false(f->w->open[EXPORTER][IMPORTER]);
	world_pass(f->w, SMARTIOD_GRACE_NS);
	world_pass(f->w, MEET);
	assert_true(f->w->open[EXPORTER][IMPORTER]);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	expect_event(f->owner, SIO_EVM_SEGMENT_LOCAL, 0, f->segment, SCI_CB_LOST, SIO_LOSS_NONE);
}

/* An exporter that is away for too long is lost, as ever. */
static void the_exporter_does_not_come_back(void **state)
{
	struct fixture *f = *state;

	world_forget(f->c);
	f->w->lossy = true;
	world_stop(f->w, EXPORTER);
	world_restart(f->w, IMPORTER);
	world_pass(f->w, MEET);
	assert_int_equal(world_count(f->w, IMPORTER, SIO_KIND_MAP), 1);
	world_pass(f->w, SMARTIOD_EXPECT_NS);
	expect_event(f->c, SIO_EVM_SEGMENT_REMOTE, 0, f->connection, SCI_CB_LOST, SIO_LOSS_LOST);
	assert_int_equal(world_count(f->w, IMPORTER, SIO_KIND_MAP), 0);
	world_restart(f->w, EXPORTER);
	world_pass(f->w, MEET);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
}

/* The memory is kept at both ends, and the path leads there again. */
static void the_link_is_down_meanwhile(void **state)
{
	struct fixture *f = *state;

	world_forget(f->c);
	f->w->lossy = true;
	world_link(f->w, EXPORTER, IMPORTER, false);
	world_run(f->w);
	expect_event(f->c, SIO_EVM_SEGMENT_REMOTE, 1, f->unmapped, SCI_CB_NOT_OPERATIONAL,
		     SIO_LOSS_NONE);
	f->messages = heard(f);
	world_restart(f->w, IMPORTER);
	world_pass(f->w, MEET);
	expect_quiet(f);
	assert_int_equal(call_seg_map(f->w, f->c, f->unmapped, 0, 4096, &f->map[1]), ENETDOWN);
	world_forget(f->c);
	world_link(f->w, EXPORTER, IMPORTER, true);
	world_pass(f->w, MEET);
	expect_event(f->c, SIO_EVM_SEGMENT_REMOTE, 0, f->connection, SCI_CB_OPERATIONAL,
		     SIO_LOSS_NONE);
	assert_int_equal(world_count(f->w, IMPORTER, SIO_KIND_MAP), 1);
}

/* What it has heard of a path is not said again, and what it has missed is. */
static void a_path_changes_meanwhile(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_restore m;
	uint64_t at = 0;

	world_link(f->w, EXPORTER, IMPORTER, false);
	world_run(f->w);
	expect_event(f->c, SIO_EVM_SEGMENT_REMOTE, 0, f->connection, SCI_CB_NOT_OPERATIONAL,
		     SIO_LOSS_NONE);
	assert_true(library_next(f->c, 3, &at, &m));
	assert_int_equal(sio_from_le32(m.flags), SIO_RESTORE_DOWN);
	world_link(f->w, EXPORTER, IMPORTER, true);
	world_pass(f->w, MEET);
	at = 0;
	assert_true(library_next(f->c, 3, &at, &m));
	assert_int_equal(sio_from_le32(m.flags), 0);
	f->messages = heard(f);
	start_again(f);
	expect_quiet(f);
	give_back(f);
}

/* ---- half the truth ---- */

/* Its own words, to the next smartiod, which waits for connections and maps. */
static void speak(struct fixture *f)
{
	speak_to_next(f->w, f->c, IMPORTER);
	say_step(f->w, f->c, 1);
	say_step(f->w, f->c, 2);
}

static void a_word_is_wrong(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_restore truth, other, map, lie = {.type = 0};
	sio_le64 *const word[] = {&lie.key, &lie.extra, &lie.seal, &lie.bytes, &lie.peer_boot};
	sio_le32 *const half[] = {&lie.number, &lie.path, &lie.handle};
	struct sio_msg_seg_connect *r = (void *)lie.request;
	uint64_t at = 0;

	assert_true(library_next(f->c, 3, &at, &truth));
	assert_int_equal(sio_from_le32(truth.type), SIO_MSG_SEG_CONNECT);
	assert_true(library_next(f->c, 3, &at, &other));
	assert_int_equal(sio_from_le32(other.type), SIO_MSG_SEG_CONNECT);
	do
		assert_true(library_next(f->c, 3, &at, &map));
	while (sio_from_le32(map.type) != SIO_MSG_SEG_MAP);
	speak(f);
	for (unsigned i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
		lie = truth;
		*word[i] = sio_to_le64(sio_from_le64(*word[i]) + 1);
		assert_int_equal(say(f->w, f->c, &lie), ENOENT);
	}
	for (unsigned i = 0; i < sizeof(half) / sizeof(half[0]); i++) {
		lie = truth;
		*half[i] = sio_to_le32(sio_from_le32(*half[i]) + 1);
		assert_int_equal(say(f->w, f->c, &lie), ENOENT);
	}
	lie = truth;
	r->node = sio_to_le32(NODE(2));
	assert_int_equal(say(f->w, f->c, &lie), ENOENT);
	r->node = sio_to_le32(NODE(7)); /* no host */
	assert_int_equal(say(f->w, f->c, &lie), ENOENT);
	assert_int_equal(say(f->w, f->c, &truth), 0);
	lie = other;
	lie.extra = truth.extra; /* that is there already */
	assert_int_equal(say(f->w, f->c, &lie), ENOENT);
	assert_int_equal(say(f->w, f->c, &other), 0);
	lie = truth;
	assert_int_equal(say(f->w, f->c, &lie), ENOENT); /* twice */
	lie = map;
	lie.key = sio_to_le64(sio_from_le64(map.key) + 1);
	assert_int_equal(say(f->w, f->c, &lie), ENOENT);
	assert_int_equal(say(f->w, f->c, &map), 0);
	assert_int_equal(world_count(f->w, IMPORTER, SIO_KIND_MAP), 1);
}

/* A window of its own, but of another segment: shorter than that, or already somebody's. */
static void a_window_is_anothers(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_restore entry[5], lie;
	struct sio_msg_seg_map *r = (void *)lie.request;
	uint64_t at = 0;
	uint32_t map;

	assert_int_equal(call_seg_map(f->w, f->c, f->unmapped, 0, 4096, &map), 0);
	for (unsigned i = 0; i < 5; i++) /* two connections, three maps */
		assert_true(library_next(f->c, 3, &at, &entry[i]));
	speak(f);
	assert_int_equal(say(f->w, f->c, &entry[0]), 0);
	assert_int_equal(say(f->w, f->c, &entry[1]), 0);
	lie = entry[4];
	r->handle = sio_to_le32(f->connection);
	assert_int_equal(say(f->w, f->c, &lie), ENOENT); /* too short */
	assert_int_equal(say(f->w, f->c, &entry[2]), 0);
	lie = entry[3];
	lie.key = entry[4].key;
	assert_int_equal(say(f->w, f->c, &lie), ENOENT); /* there is another one */
	assert_int_equal(say(f->w, f->c, &entry[3]), 0);
	assert_int_equal(say(f->w, f->c, &entry[4]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nobody_notices),
		TEST(it_was_away_for_too_long),
		TEST(and_its_exporter_was_started_again),
		TEST(both_are_started_again),
		TEST(it_is_killed_at_every_step),
		TEST(it_unmaps_at_every_step),
		TEST(its_grant_ends_after_its_window),
		TEST(the_exporter_ends_meanwhile),
		TEST(the_exporters_host_starts_again_meanwhile),
		TEST(it_comes_up_later),
		TEST(the_exporter_has_no_grant),
		TEST(the_program_ends_meanwhile),
		TEST(the_program_does_not_come_back),
		TEST(the_exporter_does_not_come_back),
		TEST(a_dma_queue_goes_on),
		TEST(the_link_is_down_meanwhile),
		TEST(a_path_changes_meanwhile),
		TEST(a_word_is_wrong),
		TEST(a_window_is_anothers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
