/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients and peers that send what they should not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "calls.h"
#include "smartiod/base/session.h"
#include "wire/check.h"

struct fixture {
	struct world *w;
	struct world_client *good;
};

static int setup(void **state)
{
	static struct fixture f;

	f.w = world_new(2, 0);
	world_start(f.w);
	f.good = world_client(f.w, 0, SIO_CLIENT_LIBRARY);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	uint32_t h;

	/* Whatever the others did: a good client is served. */
	assert_int_equal(call_seg_export(f->w, f->good, 77, 1, &h), 0);
	for (unsigned i = 0; i < f->w->n_clients; i++)
		world_kill(f->w, &f->w->client[i]);
	world_run(f->w);
	assert_nothing_left(f->w);
	world_free(f->w);
	return 0;
}

static bool is_cut(struct world *w, struct world_client *c, const void *msg, size_t len)
{
	world_send_raw(w, c, msg, len);
	world_run(w);
	return c->cut;
}

static void malformed_packets_cut_the_client(void **state)
{
	struct fixture *f = *state;
	const struct sio_msg bad[] = {
		{sio_to_le32(16), sio_to_le32(SIO_MSG_DEV_LIST), sio_to_le32(1), 0}, /* too short */
		{sio_to_le32(17), sio_to_le32(SIO_MSG_SEG_REMOVE), sio_to_le32(1), 0},
		{sio_to_le32(16), sio_to_le32(12345), sio_to_le32(1), 0},
		{sio_to_le32(16), sio_to_le32(0), sio_to_le32(1), 0},
		{sio_to_le32(16), sio_to_le32(SIO_EVM_DEVICE), sio_to_le32(1), 0},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct world_client *c = world_client(f->w, 0, SIO_CLIENT_LIBRARY);

		assert_true(is_cut(f->w, c, &bad[i], sizeof(bad[i])));
	}
	assert_true(is_cut(f->w, world_client(f->w, 0, SIO_CLIENT_LIBRARY), bad, 0));
	assert_true(is_cut(f->w, world_client(f->w, 0, SIO_CLIENT_LIBRARY), bad, 15));
}

/* Every type with every wrong length, no id, or an error. */
static void every_type_has_one_size(void **state)
{
	struct fixture *f = *state;
	static _Alignas(8) unsigned char packet[SIO_WIRE_MAX];

	for (uint32_t type = 0; type < 300; type++) {
		size_t size = sio_client_request_size(type);

		if (!size)
			continue;
		for (int wrong = 0; wrong < 4; wrong++) {
			struct world *w = f->w;
			size_t len = size + (wrong == 0 ? 8 : 0) - (wrong == 1 ? 8 : 0);
			struct sio_msg *h = (struct sio_msg *)packet;
			struct world_client *c = world_client(w, 0, SIO_CLIENT_TOOL);

			memset(packet, 0, sizeof(packet));
			h->size = sio_to_le32((uint32_t)len);
			h->type = sio_to_le32(type);
			h->id = sio_to_le32(wrong == 2 ? 0 : 7);
			h->error = sio_to_le32(wrong == 3 ? 5 : 0);
			assert_true(is_cut(w, c, packet, len));
			w->n_clients--; /* the slot is free again */
			for (unsigned i = 0; i < c->n_messages; i++)
				free(c->message[i]);
			c->n_messages = 0;
			c->cut = false;
		}
	}
}

static void nothing_goes_before_hello(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, 0, 0);
	struct sio_msg_list list = {.kind = sio_to_le32(SIO_LIST_NODES)};

	world_send(f->w, c, SIO_MSG_LIST, &list, sizeof(list));
	assert_true(c->cut);
}

static void hello_is_said_once(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, 0, SIO_CLIENT_LIBRARY), *d;
	struct sio_msg_hello m = {.version = sio_to_le32(SIO_CLIENT_VERSION),
				  .kind = sio_to_le32(SIO_CLIENT_LIBRARY)};

	world_send(f->w, c, SIO_MSG_HELLO, &m, sizeof(m));
	assert_true(c->cut);
	d = world_client(f->w, 0, 0);
	world_send(f->w, d, SIO_MSG_HELLO, &m, sizeof(m));
	world_send(f->w, d, SIO_MSG_HELLO, &m, sizeof(m)); /* the first is being answered */
	assert_true(d->cut);
}

static const struct world_message *greet(struct fixture *f, uint32_t version)
{
	struct sio_msg_hello m = {.version = sio_to_le32(version),
				  .kind = sio_to_le32(SIO_CLIENT_LIBRARY)};

	return world_call(f->w, world_client(f->w, 0, 0), SIO_MSG_HELLO, &m, sizeof(m));
}

static void versions_must_be_equal(void **state)
{
	static const struct {
		uint32_t version;
		const char *older;
	} other[] = {{SIO_CLIENT_VERSION + 1, "smartiod"},
		     {SIO_CLIENT_VERSION - 1, "the library"},
		     {0, "the library"},
		     {UINT32_MAX, "smartiod"}};
	struct fixture *f = *state;
	const struct world_message *rep;
	char text[120];

	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		rep = greet(f, other[i].version);
		snprintf(text, sizeof(text),
			 "the program's library speaks version %u of the protocol, smartiod %d: "
			 "%s is older",
			 other[i].version, SIO_CLIENT_VERSION, other[i].older);
		assert_int_equal(rep->error, EPROTO);
		assert_string_equal(((const struct sio_msg_error *)rep->data)->text, text);
	}
	rep = greet(f, SIO_CLIENT_VERSION);
	assert_int_equal(rep->error, 0);
	assert_int_equal(sio_from_le32(((const struct sio_rep_hello *)rep->data)->version),
			 SIO_CLIENT_VERSION);
}

static void descriptors_are_not_wanted(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	struct sio_msg_list list = {.h = {.size = sio_to_le32(sizeof(list)),
					  .type = sio_to_le32(SIO_MSG_LIST),
					  .id = sio_to_le32(9)},
				    .kind = sio_to_le32(SIO_LIST_NODES)};
	unsigned before = world_open_fds(f->w);
	int fds[2] = {world_fd(f->w), world_fd(f->w)};

	smartiod_client_message(f->w->host[0].daemon, c->number, &list, sizeof(list), fds, 2);
	assert_true(c->cut);
	world_run(f->w);
	assert_int_equal(world_open_fds(f->w), before);
}

static void reserved_fields_are_refused(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_link m = {.reserved = sio_to_le32(1)};
	struct sio_msg_hello hello = {.version = sio_to_le32(SIO_CLIENT_VERSION),
				      .reserved = sio_to_le32(1),
				      .kind = sio_to_le32(SIO_CLIENT_LIBRARY)};
	struct world_client *c;

	assert_int_equal(world_call(f->w, f->good, SIO_MSG_LINK, &m, sizeof(m))->error, EINVAL);
	c = world_client(f->w, 0, 0);
	assert_int_equal(world_call(f->w, c, SIO_MSG_HELLO, &hello, sizeof(hello))->error, EINVAL);
	/* Of another version the field may mean something. */
	hello.version = sio_to_le32(SIO_CLIENT_VERSION + 1);
	c = world_client(f->w, 0, 0);
	assert_int_equal(world_call(f->w, c, SIO_MSG_HELLO, &hello, sizeof(hello))->error, EPROTO);
}

static void handles_are_ones_own(void **state)
{
	struct fixture *f = *state;
	struct world_client *thief = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	uint32_t h, m;

	assert_int_equal(call_seg_export(f->w, f->good, 5, 4096, &h), 0);
	assert_int_equal(call_handle(f->w, thief, SIO_MSG_SEG_REMOVE, h, 0), EBADF);
	assert_int_equal(call_handle(f->w, thief, SIO_MSG_SEG_REMOVE, 0, 0), EBADF);
	/* And of the right kind. */
	assert_int_equal(call_handle(f->w, f->good, SIO_MSG_SEG_DISCONNECT, h, 0), EBADF);
	assert_int_equal(call_seg_map(f->w, f->good, h, 0, 4096, &m), EBADF);
	assert_int_equal(call_handle(f->w, f->good, SIO_MSG_DINT_REMOVE, h, 0), EBADF);
}

static void tools_own_nothing(void **state)
{
	struct fixture *f = *state;
	struct world_client *tool = world_client(f->w, 0, SIO_CLIENT_TOOL);
	uint32_t h;

	assert_int_equal(tool->message[0]->n_fds, 0);
	assert_int_equal(call_seg_create(f->w, tool, 1, 1, 0, &h, NULL), EPERM);
	assert_true(call_counter(f->w, tool, "client_messages") > 0);
}

static void one_program_cannot_hold_everything(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, 1, SIO_CLIENT_LIBRARY), *greedy;
	const struct smartiod *d = f->w->host[0].daemon;
	uint32_t h, id = 0x10000;
	unsigned n = 0;
	int rc;

	greedy = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	while ((rc = call_seg_create(f->w, greedy, id++, 1, SCI_FLAG_EMPTY, &h, NULL)) == 0) {
		/* Its messages are of no more use. */
		while (greedy->n_messages > 1)
			free(greedy->message[--greedy->n_messages]);
		n++;
	}
	assert_int_equal(rc, EMFILE);
	assert_int_equal(n, SMARTIOD_MAX_OBJECTS);
	assert_int_equal(call_seg_create(f->w, c, 1, 1, 0, &h, NULL), 0);

	/* It takes a while until all that is gone, in which others are served. */
	c = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	world_kill(f->w, greedy);
	assert_int_equal(call_seg_create(f->w, c, id, 1, SCI_FLAG_EMPTY, &h, NULL), 0);
	assert_true(d->segments.count > SMARTIOD_MAX_OBJECTS / 2);
	for (unsigned i = 0; i < SMARTIOD_MAX_OBJECTS && d->segments.count > 1; i++)
		world_pass(f->w, 1);
	assert_int_equal(d->segments.count, 1);
}

/* Random bytes behind a right header: replies or a cut, and nothing left afterwards. */
static void random_requests_do_no_harm(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, 0, SIO_CLIENT_LIBRARY);
	static _Alignas(8) unsigned char packet[SIO_WIRE_MAX];
	uint64_t x = 42;

	for (unsigned i = 0; i < 3000; i++) {
		uint32_t type = 1 + i % 65;
		size_t size = sio_client_request_size(type);

		if (!size || type == SIO_MSG_HELLO || type == SIO_MSG_RESTORE ||
		    type == SIO_MSG_RESTORE_STEP)
			continue;
		for (size_t j = 0; j < size; j++) {
			x = x * 6364136223846793005ULL + 1442695040888963407ULL;
			/* Mostly small numbers: they get further. */
			packet[j] = j % 4 && x >> 62 ? 0 : (unsigned char)(x >> 33) % 12;
		}
		memset(packet, 0, sizeof(struct sio_msg));
		world_call(f->w, c, type, packet, size);
		while (c->n_messages > 1)
			free(c->message[--c->n_messages]);
		assert_false(c->cut);
	}
}

/* ---- peers ---- */

static void a_peer_that_talks_nonsense_is_cut_and_heals(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
	struct smartiod *d = f->w->host[0].daemon;
	struct sio_peer_hello hello = {
		.h = {.size = sio_to_le32(sizeof(hello)), .type = sio_to_le32(SIO_PEER_HELLO)}};
	struct sio_peer_seg_release release = {.h = {.size = sio_to_le32(sizeof(release)),
						     .type = sio_to_le32(SIO_PEER_SEG_RELEASE)},
					       .reason = sio_to_le32(99)};
	struct sio_prep_seg_lookup reply = {
		.h = {.size = sio_to_le32(sizeof(reply)),
		      .type = sio_to_le32(SIO_PEER_SEG_LOOKUP | SIO_PEER_REPLY),
		      .id = sio_to_le32(4711)},
		.reserved = sio_to_le32(1)};
	const struct {
		const void *msg;
		size_t len;
	} bad[] = {{"", 0},
		   {&hello, sizeof(hello)},
		   {&release, sizeof(release)},
		   {&release, 16},
		   {&reply, sizeof(reply)}};
	uint32_t h, con;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(call_seg_export(f->w, f->good, 500 + (uint32_t)i, 4096, &h), 0);
		assert_int_equal(call_seg_connect(f->w, c, 4, 500 + (uint32_t)i, &con), 0);
		smartiod_peer_message(d, 8, bad[i].msg, bad[i].len);
		world_run(f->w);
		assert_non_null(world_event(f->good, SIO_EVM_SEGMENT_LOCAL, 2 * (unsigned)i + 1));
		world_pass(f->w, 100000000); /* node 8 connects again */
		assert_int_equal(call_probe(f->w, c, 4), 0);
	}
}

static void a_peer_greets_by_the_rules(void **state)
{
	static const struct {
		uint32_t min, max, node, reserved;
		bool right;
	} said[] = {
		{SIO_PEER_VERSION, SIO_PEER_VERSION, 8, 0, true},
		{SIO_PEER_VERSION - 1, SIO_PEER_VERSION + 1, 8, 0, true},
		{SIO_PEER_VERSION + 1, SIO_PEER_VERSION + 1, 8, 0, false},
		{SIO_PEER_VERSION - 1, SIO_PEER_VERSION - 1, 8, 0, false},
		{SIO_PEER_VERSION, SIO_PEER_VERSION, 12, 0, false},
		{SIO_PEER_VERSION, SIO_PEER_VERSION, 8, 1, false},
	};
	struct fixture *f = *state;
	struct smartiod *d = f->w->host[0].daemon;

	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		struct sio_peer_hello hello = {
			.h = {.size = sio_to_le32(sizeof(hello)),
			      .type = sio_to_le32(SIO_PEER_HELLO)},
			.version_min = sio_to_le32(said[i].min),
			.version_max = sio_to_le32(said[i].max),
			.node = sio_to_le32(said[i].node),
			.reserved = sio_to_le32(said[i].reserved),
		};

		f->w->drop_peer_messages = true; /* the true daemon of node 8 says nothing */
		smartiod_peer_up(d, 8);		 /* in place of the connection that there is */
		smartiod_peer_message(d, 8, &hello, sizeof(hello));
		assert_int_equal(f->w->open[0][1], said[i].right);
		f->w->drop_peer_messages = false;
		smartiod_peer_message(d, 8, "", 0); /* and is cut off, whatever it was */
		world_pass(f->w, 100000000);
		assert_true(f->w->open[0][1]);
		assert_int_equal(call_probe(f->w, f->good, 8), 0);
	}
}

/* Well-formed lies: numbers of others, replies to nothing. */
static void a_peer_that_lies_gets_errors(void **state)
{
	struct fixture *f = *state;
	struct smartiod *d = f->w->host[0].daemon;
	struct sio_peer_seg_grant grant = {
		.h = {.size = sio_to_le32(sizeof(grant)),
		      .type = sio_to_le32(SIO_PEER_SEG_GRANT),
		      .id = sio_to_le32(5)},
		.bytes = sio_to_le64(4096),
		.ref_node = sio_to_le32(8),
		.purpose = sio_to_le32(SIO_GRANT_CPU),
		.access = sio_to_le32(3),
	};
	struct sio_peer_grant_release release = {
		.h = {.size = sio_to_le32(sizeof(release)),
		      .type = sio_to_le32(SIO_PEER_GRANT_RELEASE)},
		.grant = sio_to_le64(1),
	};
	struct sio_prep_seg_lookup late = {
		.h = {.size = sio_to_le32(sizeof(late)),
		      .type = sio_to_le32(SIO_PEER_SEG_LOOKUP | SIO_PEER_REPLY),
		      .id = sio_to_le32(4711)},
	};
	uint32_t h;

	assert_int_equal(call_seg_export(f->w, f->good, 1, 4096, &h), 0);
	for (uint64_t uid = 0; uid < 20; uid++) {
		grant.uid = sio_to_le64(uid); /* not connected to any */
		smartiod_peer_message(d, 8, &grant, sizeof(grant));
	}
	smartiod_peer_message(d, 8, &release, sizeof(release));
	smartiod_peer_message(d, 8, &late, sizeof(late));
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	assert_int_equal(call_probe(f->w, f->good, 8), 0);
}

/* What an exporter says of its grants is not believed: the program would map what is not there. */
static void a_peer_that_grants_too_little_gives_no_window(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
	const struct {
		uint64_t grant, length;
	} lies[] = {{0, 8192}, {99, 4096}, {99, 0}};
	uint32_t h, con, id, map;

	assert_int_equal(call_seg_export(f->w, f->good, 1, 8192, &h), 0);
	assert_int_equal(call_seg_connect(f->w, c, 4, 1, &con), 0);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct sio_msg_seg_map msg = {.handle = sio_to_le32(con),
					      .bytes = sio_to_le64(8192)};
		struct sio_prep_seg_grant lie = {
			.h = {.size = sio_to_le32(sizeof(lie)),
			      .type = sio_to_le32(SIO_PEER_SEG_GRANT | SIO_PEER_REPLY)},
			.g = {.grant = sio_to_le64(lies[i].grant),
			      .length = sio_to_le64(lies[i].length)},
		};

		f->w->drop_peer_messages = true; /* the exporter is not asked */
		id = world_send(f->w, c, SIO_MSG_SEG_MAP, &msg, sizeof(msg));
		world_run(f->w);
		for (uint32_t k = 1; k < 1000; k++) {
			lie.h.id = sio_to_le32(k);
			smartiod_peer_message(f->w->host[1].daemon, 4, &lie, sizeof(lie));
		}
		world_run(f->w);
		f->w->drop_peer_messages = false;
		assert_non_null(world_reply(c, id));
		assert_int_equal(world_reply(c, id)->error, EPROTO);
		assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	}
	assert_int_equal(call_seg_map(f->w, c, con, 0, 8192, &map), 0);
}

/* ---- the port ---- */

/* What came with the answer is given back, and the next try finds nothing in its way. */
static void a_daemon_without_descriptors_makes_nothing_of_half(void **state)
{
	struct fixture *f = *state;
	struct world_client *c = world_client(f->w, 1, SIO_CLIENT_LIBRARY);
	uint32_t h, con, map, number;

	assert_int_equal(call_seg_export(f->w, f->good, 1, 8192, &h), 0);
	assert_int_equal(call_seg_connect(f->w, c, 4, 1, &con), 0);
	f->w->no_fds_for = SIO_OP_MAP;
	assert_int_equal(call_seg_map(f->w, c, con, 0, 8192, &map), EMFILE);
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_MAP), 0);
	assert_int_equal(world_resources(f->w, SIO_KIND_GRANT), 0);
	f->w->no_fds_for = SIO_OP_IRQ_NEW;
	assert_int_equal(call_dint_create(f->w, c, 3, SCI_FLAG_FIXED_INTNO, &h, &number), EMFILE);
	world_run(f->w);
	assert_int_equal(world_resources(f->w, SIO_KIND_IRQ), 0);
	f->w->no_fds_for = 0;
	assert_int_equal(call_seg_map(f->w, c, con, 0, 8192, &map), 0);
	assert_int_equal(call_dint_create(f->w, c, 3, SCI_FLAG_FIXED_INTNO, &h, &number), 0);
}

static void a_port_that_talks_nonsense_is_fatal(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct world *w = world_new(1, 0);
		struct sio_evt_ok evt = {
			.h = {.size = sizeof(evt), .op = SIO_OP_ALLOC, .cookie = 99}};
		int fd;

		world_start(w);
		fd = world_fd(w);
		if (i == 1)
			evt.h.op = 0x20000;
		smartiod_port_event(w->host[0].daemon, &evt, i == 2 ? 8 : sizeof(evt), &fd, 1);
		assert_true(w->host[0].fatal);
		assert_int_equal(fd, -1);
		/* It does nothing any more. */
		assert_true(world_client(w, 0, 0)->cut);
		smartiod_timer(w->host[0].daemon);
		world_free(w);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(malformed_packets_cut_the_client),
		CASE(every_type_has_one_size),
		CASE(nothing_goes_before_hello),
		CASE(hello_is_said_once),
		CASE(versions_must_be_equal),
		CASE(descriptors_are_not_wanted),
		CASE(reserved_fields_are_refused),
		CASE(handles_are_ones_own),
		CASE(tools_own_nothing),
		CASE(one_program_cannot_hold_everything),
		CASE(random_requests_do_no_harm),
		CASE(a_peer_that_talks_nonsense_is_cut_and_heals),
		CASE(a_peer_greets_by_the_rules),
		CASE(a_peer_that_lies_gets_errors),
		CASE(a_peer_that_grants_too_little_gives_no_window),
		CASE(a_daemon_without_descriptors_makes_nothing_of_half),
		cmocka_unit_test(a_port_that_talks_nonsense_is_fatal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
