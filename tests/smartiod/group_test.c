/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of multicast groups: requests that overlap. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "calls.h"
#include "smartiod/segment/segment.h"

/* Threads of a program make a group's member available on two adapters at once, and not. */
static void requests_about_a_group_build_on_each_other(void **state)
{
	struct world *w = world_new(2, 0);
	struct sio_msg_seg_adapter msg = {.flags = 0};
	struct world_client *c;
	uint32_t h, id, sent[2];

	(void)state;
	world_adapters(w, 2);
	world_start(w);
	c = world_client(w, 0, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_seg_create(w, c, 3, 4096, SCI_FLAG_BROADCAST, &h, &id), 0);
	msg.handle = sio_to_le32(h);
	for (uint32_t a = 0; a < 2; a++) {
		msg.adapter = sio_to_le32(a);
		world_call(w, c, SIO_MSG_SEG_PREPARE, &msg, sizeof(msg));
	}
	for (unsigned step = 0; step < 2; step++) {
		for (uint32_t a = 0; a < 2; a++) {
			msg.adapter = sio_to_le32(a);
			sent[a] = world_send(w, c,
					     step ? SIO_MSG_SEG_UNAVAILABLE : SIO_MSG_SEG_AVAILABLE,
					     &msg, sizeof(msg));
		}
		world_run(w);
		for (unsigned a = 0; a < 2; a++) {
			assert_non_null(world_reply(c, sent[a]));
			assert_int_equal(world_reply(c, sent[a])->error, 0);
		}
	}
	world_free(w);
}

/* Whichever of two overlapping requests fails, the member is as the other one left it. */
static void a_failed_request_leaves_what_overlaps_it(void **state)
{
	const uint32_t type[] = {SIO_MSG_SEG_AVAILABLE, SIO_MSG_SEG_UNAVAILABLE};
	/* Before, between and after: what was available as the port knows it at last. */
	const struct {
		bool before, fails[2], after;
	} one[] = {
		{false, {false, false}, false}, {false, {true, false}, false},
		{false, {false, true}, true},	{false, {true, true}, false},
		{true, {false, false}, false},	{true, {true, false}, false},
		{true, {false, true}, true},	{true, {true, true}, true},
	};

	(void)state;
	/* The port's answers in order, then in orders of several seeds. */
	for (unsigned n = 0; n < 8 * sizeof(one) / sizeof(one[0]); n++) {
		unsigned i = n % (sizeof(one) / sizeof(one[0]));
		struct world *w = world_new(2, n / (sizeof(one) / sizeof(one[0])));
		struct sio_msg_seg_adapter msg = {.flags = 0};
		uint32_t h, id, sent[2];
		struct world_client *c;

		world_start(w);
		c = world_client(w, 0, SIO_CLIENT_LIBRARY);
		assert_int_equal(call_seg_create(w, c, 3, 4096, SCI_FLAG_BROADCAST, &h, &id), 0);
		msg.handle = sio_to_le32(h);
		world_call(w, c, SIO_MSG_SEG_PREPARE, &msg, sizeof(msg));
		if (one[i].before)
			assert_int_equal(call_seg_adapter(w, c, type[0], h, 0, 0), 0);
		for (unsigned k = 0; k < 2; k++) {
			w->fail_at = one[i].fails[k] ? w->requests + 1 : 0;
			sent[k] = world_send(w, c, type[k], &msg, sizeof(msg));
		}
		w->fail_at = 0;
		world_run(w);
		for (unsigned k = 0; k < 2; k++)
			assert_int_equal(world_reply(c, sent[k])->error != 0, one[i].fails[k]);
		assert_int_equal(w->host[0].daemon->member[3]->available, one[i].after);
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_about_a_group_build_on_each_other),
		cmocka_unit_test(a_failed_request_leaves_what_overlaps_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
