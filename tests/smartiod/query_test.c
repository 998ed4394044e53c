/* SPDX-License-Identifier: BSD-2-Clause */
/* Listings, adapters and counters. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "calls.h"

#define SECOND 1000000000ull

struct fixture {
	struct world *w;
	struct world_client *program, *tool;
};

static int begin(void **state, bool real)
{
	static struct fixture f;

	f.w = world_new(3, 0);
	if (real)
		world_real(f.w);
	world_start(f.w);
	f.program = world_client(f.w, 0, SIO_CLIENT_LIBRARY);
	f.tool = world_client(f.w, 0, SIO_CLIENT_TOOL);
	*state = &f;
	return 0;
}

static int setup(void **state)
{
	return begin(state, false);
}

static int setup_real(void **state)
{
	return begin(state, true);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < f->w->n_clients; i++)
		world_kill(f->w, &f->w->client[i]);
	world_run(f->w);
	assert_nothing_left(f->w);
	world_free(f->w);
	return 0;
}

/* One page of a listing; NULL: the errno is in *ret_error. */
static const struct sio_rep_list *list(struct fixture *f, uint32_t kind, uint64_t after,
				       uint32_t *ret_error)
{
	struct sio_msg_list msg = {.kind = sio_to_le32(kind), .after = sio_to_le64(after)};
	const struct world_message *m = world_call(f->w, f->tool, SIO_MSG_LIST, &msg, sizeof(msg));

	assert_non_null(m);
	if (ret_error)
		*ret_error = m->error;
	return m->error ? NULL : (const struct sio_rep_list *)m->data;
}

static void nodes_up_and_down(void **state)
{
	struct fixture *f = *state;
	const struct sio_rep_list *rep;

	world_crash(f->w, 2);
	world_run(f->w);
	rep = list(f, SIO_LIST_NODES, 0, NULL);
	assert_int_equal(sio_from_le32(rep->count), 3);
	assert_string_equal(rep->row[0].name, "host0");
	assert_int_equal(sio_from_le32(rep->row[1].node), 8);
	assert_true(sio_from_le32(rep->row[0].flags) & SIO_ROW_UP);
	assert_true(sio_from_le32(rep->row[1].flags) & SIO_ROW_UP);
	assert_false(sio_from_le32(rep->row[2].flags) & SIO_ROW_UP);
	rep = list(f, SIO_LIST_NODES, 8, NULL);
	assert_int_equal(sio_from_le32(rep->count), 1);
}

/* More rows than a page: each is seen once, in order. */
static void pages_cover_everything(void **state)
{
	struct fixture *f = *state;
	unsigned seen = 0;
	uint64_t after = 0;
	bool more = true;

	for (uint32_t i = 0; i < 150; i++) {
		uint32_t h;

		assert_int_equal(call_seg_create(f->w, f->program, i, 4096, 0, &h, NULL), 0);
	}
	while (more) {
		const struct sio_rep_list *rep = list(f, SIO_LIST_SEGMENTS, after, NULL);

		for (uint32_t i = 0; i < sio_from_le32(rep->count); i++) {
			assert_true(sio_from_le64(rep->row[i].key) > after);
			after = sio_from_le64(rep->row[i].key);
			assert_int_equal(sio_from_le32(rep->row[i].id), seen++);
			assert_int_equal(sio_from_le64(rep->row[i].bytes), 4096);
		}
		more = sio_from_le32(rep->more) != 0;
	}
	assert_int_equal(seen, 150);
}

/* Memory that a removed segment's importer still has shows as quarantined. */
static void quarantine_shows(void **state)
{
	struct fixture *f = *state;
	struct world_client *importer = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
	const struct sio_rep_list *rep;
	uint32_t h, c, m;

	assert_int_equal(call_seg_export(f->w, f->program, 1, 4096, &h), 0);
	rep = list(f, SIO_LIST_SEGMENTS, 0, NULL);
	assert_int_equal(sio_from_le32(rep->row[0].flags), SIO_ROW_LIVE | SIO_ROW_AVAILABLE);
	assert_int_equal(sio_from_le32(rep->row[0].pid), 1001);
	assert_int_equal(call_seg_connect(f->w, importer, 4, 1, &c), 0);
	assert_int_equal(call_seg_map(f->w, importer, c, 0, 4096, &m), 0);
	f->w->drop_peer_messages = true; /* the importer does not hear of the end */
	world_kill(f->w, f->program);
	world_run(f->w);
	rep = list(f, SIO_LIST_SEGMENTS, 0, NULL);
	assert_int_equal(sio_from_le32(rep->count), 1);
	assert_int_equal(sio_from_le32(rep->row[0].flags), SIO_ROW_QUARANTINED);
	f->w->drop_peer_messages = false;
	world_kill(f->w, importer);
	world_run(f->w);
	rep = list(f, SIO_LIST_SEGMENTS, 0, NULL);
	assert_int_equal(sio_from_le32(rep->count), 0);
}

static uint32_t memory_of(struct fixture *f, uint32_t row)
{
	return sio_from_le32(list(f, SIO_LIST_SEGMENTS, 0, NULL)->row[row].memory);
}

/* Memory that the program fills a segment with is what it says, as far as it can be that. */
static void kinds_of_memory_show(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_seg_take take = {.memory = sio_to_le32(SIO_MEMORY_GPU)};
	uint32_t h, id;

	assert_int_equal(call_seg_create(f->w, f->program, 1, 4096, 0, &h, NULL), 0);
	assert_int_equal(memory_of(f, 0), SIO_MEMORY_HOST);
	assert_int_equal(call_seg_create(f->w, f->program, 2, 4096, SCI_FLAG_EMPTY, &h, NULL), 0);
	assert_int_equal(memory_of(f, 1), SIO_MEMORY_NONE);
	for (uint32_t kind = SIO_MEMORY_NONE; kind <= SIO_MEMORY_UNKNOWN; kind++)
		if (kind != SIO_MEMORY_PAGES && kind != SIO_MEMORY_PINNED)
			assert_int_equal(call_handle(f->w, f->program, SIO_MSG_SEG_FILL, h, kind),
					 EINVAL);
	assert_int_equal(memory_of(f, 1), SIO_MEMORY_NONE);
	assert_int_equal(call_handle(f->w, f->program, SIO_MSG_SEG_FILL, h, SIO_MEMORY_PINNED), 0);
	assert_int_equal(memory_of(f, 1), SIO_MEMORY_PINNED);
	/* The pages could not be exchanged, and others can. */
	assert_int_equal(call_handle(f->w, f->program, SIO_MSG_SEG_FILL, h, SIO_MEMORY_PAGES), 0);
	assert_int_equal(memory_of(f, 1), SIO_MEMORY_PAGES);
	assert_int_equal(call_seg_create(f->w, f->program, 3, 4096, SCI_FLAG_EMPTY, &h, NULL), 0);
	take.handle = sio_to_le32(h);
	id = world_send_with(f->w, f->program, SIO_MSG_SEG_TAKE, &take, sizeof(take), 1);
	world_run(f->w);
	assert_int_equal(world_reply(f->program, id)->error, 0);
	assert_int_equal(memory_of(f, 2), SIO_MEMORY_GPU);
	take.memory = sio_to_le32(SIO_MEMORY_HOST);
	id = world_send_with(f->w, f->program, SIO_MSG_SEG_TAKE, &take, sizeof(take), 1);
	world_run(f->w);
	assert_int_equal(world_reply(f->program, id)->error, EINVAL);
}

static void lists_of_the_port(void **state)
{
	struct fixture *f = *state;
	const struct sio_rep_list *rep;
	uint32_t h, error;

	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(call_seg_create(f->w, f->program, i, 4096, 0, &h, NULL), 0);
	rep = list(f, SIO_LIST_PORT + SIO_KIND_MEM, 0, NULL);
	assert_int_equal(sio_from_le32(rep->count), SIO_LIST_MAX);
	assert_int_equal(sio_from_le32(rep->more), 1);
	rep = list(f, SIO_LIST_PORT + SIO_KIND_MEM, sio_from_le64(rep->row[SIO_LIST_MAX - 1].key),
		   NULL);
	assert_int_equal(sio_from_le32(rep->count), 40 - SIO_LIST_MAX);
	assert_int_equal(sio_from_le32(rep->more), 0);
	assert_null(list(f, SIO_LIST_PORT, 0, &error));
	assert_int_equal(error, EINVAL);
	assert_null(list(f, 50, 0, &error));
	assert_int_equal(error, EINVAL);
}

static void clients_and_connections(void **state)
{
	struct fixture *f = *state;
	const struct sio_rep_list *rep = list(f, SIO_LIST_CLIENTS, 0, NULL);
	uint32_t h, c, d, n;

	assert_int_equal(sio_from_le32(rep->count), 2);
	assert_string_equal(rep->row[0].name, "library");
	assert_string_equal(rep->row[1].name, "tool");
	assert_int_equal(call_seg_export(f->w, f->program, 9, 4096, &h), 0);
	assert_int_equal(call_seg_connect(f->w, f->program, 4, 9, &c), 0);
	assert_int_equal(call_dint_create(f->w, f->program, 0, 0, &d, &n), 0);
	rep = list(f, SIO_LIST_CONNECTIONS, 0, NULL);
	assert_int_equal(sio_from_le32(rep->count), 1);
	assert_string_equal(rep->row[0].name, "local");
	assert_int_equal(sio_from_le32(rep->row[0].id), 9);
	rep = list(f, SIO_LIST_DINTS, 0, NULL);
	assert_int_equal(sio_from_le32(rep->count), 1);
	assert_int_equal(sio_from_le32(rep->row[0].id), n);
}

static void adapters(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_adapter msg = {.adapter = sio_to_le32(0)};
	const struct world_message *m =
		world_call(f->w, f->tool, SIO_MSG_ADAPTER, &msg, sizeof(msg));
	const struct sio_rep_adapter *rep = (const void *)m->data;

	assert_int_equal(m->error, 0);
	assert_int_equal(sio_from_le32(rep->node), 4);
	assert_int_equal(sio_from_le32(rep->requesters_total), 32);
	msg.adapter = sio_to_le32(1);
	assert_int_equal(world_call(f->w, f->tool, SIO_MSG_ADAPTER, &msg, sizeof(msg))->error,
			 ENXIO);
}

/* What a program sees of another host by way of its own daemon. */
static void others_are_asked(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_list nodes = {.kind = sio_to_le32(SIO_LIST_CLIENTS), .node = sio_to_le32(8)};
	struct sio_msg_adapter adapter = {.node = sio_to_le32(8)};
	struct sio_msg_stats stats = {.node = sio_to_le64(8)};
	struct world_client *other = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
	const struct world_message *m;

	assert_non_null(other);
	m = world_call(f->w, f->tool, SIO_MSG_LIST, &nodes, sizeof(nodes));
	assert_int_equal(m->error, 0);
	assert_int_equal(sio_from_le32(((const struct sio_rep_list *)m->data)->count), 1);
	m = world_call(f->w, f->tool, SIO_MSG_ADAPTER, &adapter, sizeof(adapter));
	assert_int_equal(m->error, 0);
	assert_int_equal(sio_from_le32(((const struct sio_rep_adapter *)m->data)->node), 8);
	m = world_call(f->w, f->tool, SIO_MSG_STATS, &stats, sizeof(stats));
	assert_int_equal(m->error, 0);
	assert_string_equal(((const struct sio_rep_stats *)m->data)->counter[0].name,
			    "client_version");
	/* Refusals are the other's; and who is not there cannot be asked. */
	adapter.adapter = sio_to_le32(7);
	assert_int_equal(
		world_call(f->w, f->tool, SIO_MSG_ADAPTER, &adapter, sizeof(adapter))->error,
		ENXIO);
	nodes.node = sio_to_le32(99);
	assert_int_equal(world_call(f->w, f->tool, SIO_MSG_LIST, &nodes, sizeof(nodes))->error,
			 EHOSTUNREACH);
	/* That takes no link of the fabric, once the daemons are connected. */
	world_link(f->w, 0, 1, false);
	world_run(f->w);
	assert_int_equal(world_call(f->w, f->tool, SIO_MSG_STATS, &stats, sizeof(stats))->error, 0);
	world_cut(f->w, 0, 1);
	world_run(f->w);
	assert_int_equal(world_call(f->w, f->tool, SIO_MSG_STATS, &stats, sizeof(stats))->error,
			 ENETDOWN);
}

static uint32_t ask_of(struct fixture *f, uint32_t node)
{
	struct sio_msg_stats stats = {.node = sio_to_le64(node)};

	return world_send(f->w, f->tool, SIO_MSG_STATS, &stats, sizeof(stats));
}

/* Whom several are asked about, and who does not answer, costs one wait, and the next ask none. */
static void who_does_not_answer_costs_one_wait(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_node_probe ping = {.node = sio_to_le32(4)};
	struct world_client *other_one;
	uint32_t one, other;

	f->w->drop_peer_messages = true;
	one = ask_of(f, 8);
	other = ask_of(f, 12);
	world_run(f->w);
	assert_null(world_reply(f->tool, one));
	world_pass(f->w, 5 * SECOND);
	assert_int_equal(world_reply(f->tool, one)->error, ETIMEDOUT);
	assert_int_equal(world_reply(f->tool, other)->error, ETIMEDOUT);
	world_pass(f->w, 2 * SECOND);
	one = ask_of(f, 8);
	world_run(f->w);
	assert_int_equal(world_reply(f->tool, one)->error, ETIMEDOUT);
	assert_non_null(
		strstr(((const struct sio_msg_error *)world_reply(f->tool, one)->data)->text,
		       "smartiod of host1 is connected, and has not answered for 7"));
	/* Whatever comes from it: it is asked again. */
	f->w->drop_peer_messages = false;
	other_one = world_client(f->w, 1, SIO_CLIENT_TOOL);
	assert_int_equal(
		world_call(f->w, other_one, SIO_MSG_NODE_PROBE, &ping, sizeof(ping))->error, 0);
	one = ask_of(f, 8);
	other = ask_of(f, 12);
	world_run(f->w);
	assert_int_equal(world_reply(f->tool, one)->error, 0);
	assert_int_equal(world_reply(f->tool, other)->error, ETIMEDOUT);
}

/* One that answers others is not silent: it is asked again, although nothing more comes from it. */
static void one_answer_that_is_missing_is_no_silence(void **state)
{
	struct fixture *f = *state;
	uint32_t one, other;

	f->w->drop_peer_messages = true;
	one = ask_of(f, 8);
	world_run(f->w);
	f->w->drop_peer_messages = false;
	world_pass(f->w, SECOND);
	other = ask_of(f, 8);
	world_run(f->w);
	assert_int_equal(world_reply(f->tool, other)->error, 0);
	world_pass(f->w, 5 * SECOND);
	assert_int_equal(world_reply(f->tool, one)->error, ETIMEDOUT);
	other = ask_of(f, 8);
	world_run(f->w);
	assert_int_equal(world_reply(f->tool, other)->error, 0);
}

/* Real hosts' daemons that part expect each other. A question is of no use that long. */
static void a_question_ends_as_the_daemons_part(void **state)
{
	struct fixture *f = *state;
	uint32_t id;

	f->w->drop_peer_messages = true;
	id = ask_of(f, 8);
	world_run(f->w);
	assert_null(world_reply(f->tool, id));
	world_cut(f->w, 0, 1);
	world_run(f->w);
	assert_int_equal(world_reply(f->tool, id)->error, ENOTCONN);
	id = ask_of(f, 8);
	world_run(f->w);
	assert_int_equal(world_reply(f->tool, id)->error, ENOTCONN);
	f->w->drop_peer_messages = false;
	world_pass(f->w, 3 * SECOND);
	id = ask_of(f, 8);
	world_run(f->w);
	assert_int_equal(world_reply(f->tool, id)->error, 0);
}

/* -1: there is no such adapter, or it says both. */
static long long link_seconds(struct fixture *f, uint32_t adapter, bool up)
{
	struct sio_msg_link msg = {.adapter = sio_to_le32(adapter)};
	const struct world_message *m = world_call(f->w, f->tool, SIO_MSG_LINK, &msg, sizeof(msg));
	const struct sio_rep_link *rep = (const void *)m->data;

	if (m->error)
		return -1;
	return sio_from_le32(rep->up) == up ? (long long)sio_from_le64(rep->seconds) : -2;
}

static void links_tell_since_when(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(link_seconds(f, 0, true), 0);
	world_pass(f->w, 3 * SECOND);
	assert_int_equal(link_seconds(f, 0, true), 3);
	world_cable(f->w, 0, 0, true); /* told again: nothing has changed */
	world_crash(f->w, 1);	       /* nor by whoever is behind it */
	world_run(f->w);
	world_pass(f->w, SECOND / 2);
	assert_int_equal(link_seconds(f, 0, true), 3);
	world_cable(f->w, 0, 0, false);
	world_run(f->w);
	assert_int_equal(link_seconds(f, 0, false), 0);
	world_pass(f->w, SECOND);
	assert_int_equal(link_seconds(f, 0, false), 1);
	world_cable(f->w, 0, 0, true);
	world_run(f->w);
	assert_int_equal(link_seconds(f, 0, true), 0);
	assert_int_equal(link_seconds(f, 1, true), -1);
	world_cable(f->w, 0, 1, true); /* of none that there is */
	world_run(f->w);
	assert_int_equal(link_seconds(f, 1, true), -1);
}

static uint32_t stats_error(struct fixture *f, uint32_t kind, uint32_t id)
{
	struct sio_msg_stats msg = {.kind = sio_to_le32(kind), .id = sio_to_le32(id)};

	return world_call(f->w, f->tool, SIO_MSG_STATS, &msg, sizeof(msg))->error;
}

/* What the demo relies on: no message, no count. */
static void counters_count(void **state)
{
	struct fixture *f = *state;
	int64_t before = call_counter(f->w, f->tool, "client_messages"), requests;
	uint32_t h;

	assert_int_equal(call_counter(f->w, f->tool, "client_messages"), before + 1);
	requests = call_counter(f->w, f->tool, "port_requests");
	assert_int_equal(call_seg_create(f->w, f->program, 1, 1, 0, &h, NULL), 0);
	assert_int_equal(call_counter(f->w, f->tool, "port_requests"), requests + 1);
	assert_int_equal(call_counter(f->w, f->tool, "segments"), 1);
	assert_int_equal(call_counter(f->w, f->tool, "operations"), 0);
	assert_int_equal(stats_error(f, 1, 0), 0);
	assert_int_equal(stats_error(f, 2, 0), 0);
	assert_int_equal(stats_error(f, 2, 1), ENXIO);
	assert_int_equal(stats_error(f, 3, 0x9999), ENODEV);
	assert_int_equal(stats_error(f, 7, 0), EINVAL);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(nodes_up_and_down),
		CASE(pages_cover_everything),
		CASE(quarantine_shows),
		CASE(kinds_of_memory_show),
		CASE(lists_of_the_port),
		CASE(clients_and_connections),
		CASE(adapters),
		CASE(links_tell_since_when),
		CASE(counters_count),
		CASE(others_are_asked),
		CASE(who_does_not_answer_costs_one_wait),
		CASE(one_answer_that_is_missing_is_no_silence),
		cmocka_unit_test_setup_teardown(a_question_ends_as_the_daemons_part, setup_real,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
