/* SPDX-License-Identifier: BSD-2-Clause */
/* Fences, and who waits for programs that have not handled their events. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "calls.h"
#include "segment_world.h"
#include "smartiod/base/fence.h"

#define MS 1000000ull

/* ---- the logic ---- */

static void fences_are_for_what_was_sent(void **state)
{
	struct smartiod_fence f = {.told = 0};
	uint64_t number = 0;

	(void)state;
	assert_false(smartiod_fence_send(&f, 0, &number)); /* nothing was sent */
	assert_false(smartiod_fence_late(&f));
	smartiod_fence_tell(&f, 7);
	assert_false(smartiod_fence_late(&f)); /* nobody has asked */
	assert_false(smartiod_fence_send(&f, 7, &number));
	assert_true(smartiod_fence_send(&f, 6, &number));
	assert_int_equal(number, 7);
	assert_true(smartiod_fence_late(&f));
	assert_false(smartiod_fence_send(&f, 0, &number)); /* it stands already */
	assert_int_equal(smartiod_fence_take(&f, 8), -EINVAL);
	assert_true(smartiod_fence_late(&f));
	assert_int_equal(smartiod_fence_take(&f, 7), 0);
	assert_false(smartiod_fence_late(&f));
	assert_false(smartiod_fence_send(&f, 6, &number)); /* it is known to have been handled */
}

static void the_last_of_several_counts(void **state)
{
	struct smartiod_fence f = {.told = 0};
	uint64_t number = 0;

	(void)state;
	smartiod_fence_tell(&f, 3);
	assert_true(smartiod_fence_send(&f, 0, &number));
	smartiod_fence_tell(&f, 9);
	assert_true(smartiod_fence_send(&f, 0, &number));
	assert_int_equal(number, 9);
	assert_int_equal(smartiod_fence_take(&f, 3), 0);
	assert_true(smartiod_fence_late(&f));
	assert_int_equal(smartiod_fence_take(&f, 9), 0);
	assert_int_equal(smartiod_fence_take(&f, 3), 0); /* an old one says nothing new */
	assert_false(smartiod_fence_late(&f));
}

/* ---- the daemon ---- */

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < f->w->n_clients; i++)
		world_kill(f->w, &f->w->client[i]);
	return segment_teardown(state);
}

static uint32_t ask(struct world *w, struct world_client *tool, uint64_t since, uint32_t node,
		    uint32_t limit_ms)
{
	struct sio_msg_events_await msg = {.since = sio_to_le64(since),
					   .node = sio_to_le32(node),
					   .limit_ms = sio_to_le32(limit_ms)};
	uint32_t id = world_send(w, tool, SIO_MSG_EVENTS_AWAIT, &msg, sizeof(msg));

	world_run(w);
	return id;
}

static const struct sio_rep_events_await *reply(struct world_client *tool, uint32_t id)
{
	const struct world_message *m = world_reply(tool, id);

	if (!m)
		return NULL;
	assert_int_equal(m->error, 0);
	return (const struct sio_rep_events_await *)m->data;
}

static void expect_late(struct world_client *tool, uint32_t id, const struct world_client *who)
{
	const struct sio_rep_events_await *rep = reply(tool, id);

	assert_non_null(rep);
	assert_int_equal(sio_from_le32(rep->late), who ? 1 : 0);
	assert_int_equal(sio_from_le32(rep->pid[0]), who ? who->pid : 0);
}

/* What a library does. */
static void take(struct world *w, struct world_client *c, unsigned nth)
{
	const struct sio_evm_fence *fence = world_event(c, SIO_EVM_FENCE, nth);
	struct sio_msg_events_taken msg;

	assert_non_null(fence);
	msg = (struct sio_msg_events_taken){.number = fence->number};
	assert_int_equal(world_call(w, c, SIO_MSG_EVENTS_TAKEN, &msg, sizeof(msg))->error, 0);
}

/* The importer of host 1 is told that the link is down; @ret_since: what was sent before. */
static struct world_client *link_down(struct fixture *f, uint64_t *ret_since)
{
	struct world_client *tool = world_client(f->w, 1, SIO_CLIENT_TOOL);
	uint32_t h, c, m, id;

	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &h), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
	assert_int_equal(call_seg_map(f->w, f->importer, c, 0, 4096, &m), 0);
	id = ask(f->w, tool, SIO_EVENTS_NONE, 0, 0);
	expect_late(tool, id, NULL);
	*ret_since = sio_from_le64(reply(tool, id)->events);
	world_link(f->w, 0, 1, false);
	return tool;
}

static void link_up(struct fixture *f)
{
	world_link(f->w, 0, 1, true);
	world_run(f->w);
}

static void it_waits_until_the_program_has_switched(void **state)
{
	struct fixture *f = *state;
	uint64_t since;
	struct world_client *tool = link_down(f, &since);
	uint32_t id = ask(f->w, tool, since, 0, 5000);

	assert_null(reply(tool, id));
	/* The fence stands behind what it is for, though the port had not reported that yet. */
	assert_int_equal(f->importer->message[f->importer->n_messages - 1]->type, SIO_EVM_FENCE);
	assert_int_equal(f->importer->message[f->importer->n_messages - 2]->type,
			 SIO_EVM_SEGMENT_REMOTE);
	take(f->w, f->importer, 0);
	expect_late(tool, id, NULL);
	link_up(f);
}

static void who_has_not_is_named(void **state)
{
	struct fixture *f = *state;
	uint64_t since;
	struct world_client *tool = link_down(f, &since);
	uint32_t id = ask(f->w, tool, since, 0, 5000);

	world_pass(f->w, 4999 * MS);
	assert_null(reply(tool, id));
	world_pass(f->w, 2 * MS);
	expect_late(tool, id, f->importer);
	/* Nothing new was sent to it, but what was is still not handled. */
	expect_late(tool, ask(f->w, tool, SIO_EVENTS_NONE, 0, 0), f->importer);
	id = ask(f->w, tool, SIO_EVENTS_NONE, 0, 1000);
	assert_null(reply(tool, id));
	take(f->w, f->importer, 0);
	expect_late(tool, id, NULL);
	link_up(f);
}

/* A process has as many connections as it opened, and is one program. */
static void processes_are_counted_once(void **state)
{
	struct fixture *f = *state;
	struct world_client *again = world_client_again(f->w, f->importer), *tool;
	uint32_t c, m, id;
	uint64_t since;

	tool = link_down(f, &since);
	expect_late(tool, ask(f->w, tool, since, 0, 0), f->importer);
	link_up(f);
	take(f->w, f->importer, 0);
	assert_int_equal(call_seg_connect(f->w, again, 4, 1, &c), 0);
	assert_int_equal(call_seg_map(f->w, again, c, 0, 4096, &m), 0);
	world_link(f->w, 0, 1, false);
	id = ask(f->w, tool, since, 0, 5000);
	assert_non_null(world_event(f->importer, SIO_EVM_FENCE, 1));
	world_pass(f->w, 5001 * MS);
	expect_late(tool, id, again);
	take(f->w, f->importer, 1);
	expect_late(tool, ask(f->w, tool, SIO_EVENTS_NONE, 0, 0),
		    again); /* the other one has not */
	take(f->w, again, 0);
	expect_late(tool, ask(f->w, tool, SIO_EVENTS_NONE, 0, 0), NULL);
	link_up(f);
}

static void the_dead_do_not_count(void **state)
{
	struct fixture *f = *state;
	uint64_t since;
	struct world_client *tool = link_down(f, &since);
	uint32_t id = ask(f->w, tool, since, 0, 5000);

	assert_null(reply(tool, id));
	world_kill(f->w, f->importer);
	world_run(f->w);
	expect_late(tool, id, NULL);
	link_up(f);
}

static void who_waits_may_end(void **state)
{
	struct fixture *f = *state;
	uint64_t since;
	struct world_client *tool = link_down(f, &since);
	struct world_client *other = world_client(f->w, 1, SIO_CLIENT_TOOL);
	uint32_t id;

	ask(f->w, tool, since, 0, 5000);
	id = ask(f->w, other, since, 0, 5000);
	world_kill(f->w, tool);
	world_run(f->w);
	assert_null(reply(other, id));
	take(f->w, f->importer, 0);
	expect_late(other, id, NULL);
	link_up(f);
}

/* A program that was sent nothing is not asked. */
static void others_are_left_alone(void **state)
{
	struct fixture *f = *state;
	struct world_client *bystander = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
	uint64_t since;
	struct world_client *tool = link_down(f, &since);

	expect_late(tool, ask(f->w, tool, since, 0, 0), f->importer);
	assert_null(world_event(bystander, SIO_EVM_FENCE, 0));
	link_up(f);
	world_kill(f->w, bystander);
	world_run(f->w);
}

/* What the other daemon has sent before its answer comes before the fence. */
static void the_other_daemon_is_heard_first(void **state)
{
	struct fixture *f = *state;
	struct world_client *tool = world_client(f->w, 1, SIO_CLIENT_TOOL);
	uint32_t h, c, id;
	uint64_t since;

	assert_int_equal(call_seg_export(f->w, f->exporter, 1, 4096, &h), 0);
	assert_int_equal(call_seg_connect(f->w, f->importer, 4, 1, &c), 0);
	id = ask(f->w, tool, SIO_EVENTS_NONE, 0, 0);
	since = sio_from_le64(reply(tool, id)->events);
	world_kill(f->w, f->exporter); /* its daemon tells the importer's */
	id = ask(f->w, tool, since, 4, 0);
	expect_late(tool, id, f->importer);
	/* A host that is not there, or is none, makes nobody wait. */
	take(f->w, f->importer, 0);
	expect_late(tool, ask(f->w, tool, since, 77, 0), NULL);
	world_crash(f->w, 0);
	assert_non_null(reply(tool, ask(f->w, tool, since, 4, 0)));
	world_boot(f->w, 0);
	world_run(f->w);
}

static void bad_numbers_are_refused(void **state)
{
	struct fixture *f = *state;
	struct world_client *tool = world_client(f->w, 1, SIO_CLIENT_TOOL);
	struct sio_msg_events_await await = {.limit_ms = sio_to_le32(SIO_EVENTS_LIMIT_MS + 1)};
	struct sio_msg_events_taken taken = {.number = sio_to_le64(1)};

	assert_int_equal(world_call(f->w, tool, SIO_MSG_EVENTS_AWAIT, &await, sizeof(await))->error,
			 EINVAL);
	assert_int_equal(world_call(f->w, tool, SIO_MSG_EVENTS_TAKEN, &taken, sizeof(taken))->error,
			 EINVAL);
	assert_int_equal(
		world_call(f->w, f->importer, SIO_MSG_EVENTS_TAKEN, &taken, sizeof(taken))->error,
		EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fences_are_for_what_was_sent),
		cmocka_unit_test(the_last_of_several_counts),
		cmocka_unit_test_setup_teardown(it_waits_until_the_program_has_switched,
						segment_setup, teardown),
		cmocka_unit_test_setup_teardown(who_has_not_is_named, segment_setup, teardown),
		cmocka_unit_test_setup_teardown(processes_are_counted_once, segment_setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_dead_do_not_count, segment_setup, teardown),
		cmocka_unit_test_setup_teardown(who_waits_may_end, segment_setup, teardown),
		cmocka_unit_test_setup_teardown(others_are_left_alone, segment_setup, teardown),
		cmocka_unit_test_setup_teardown(the_other_daemon_is_heard_first, segment_setup,
						teardown),
		cmocka_unit_test_setup_teardown(bad_numbers_are_refused, segment_setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
