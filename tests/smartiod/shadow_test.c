/* SPDX-License-Identifier: BSD-2-Clause */
/* Shadows of borrowed devices: what is left of one that is refused, lost or unplugged. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "device_calls.h"
#include "fake_device.h"
#include "fake_shadow.h"
#include "port.h"

#define FDID 0x400001
#define FDID2 0x400002
#define HELD 8
#define KINDS (SIO_KIND_SHADOW + 1)

static struct fake_device fake;
static struct world_client *borrower;
static struct call_borrow borrowed;
static bool (*others)(struct world *w, unsigned host, const struct sio_req *req, size_t len);
static struct fake_shadows shadows;
static struct fake_device fake2;
static struct world_client *other;
static struct call_borrow borrowed2;
static bool hold_back; /* mappings of BARs are not made yet: */
static struct sio_req_dmamap held[HELD];
static unsigned n_held;

static bool port_other(struct world *w, unsigned host, const struct sio_req *req, size_t len)
{
	const struct sio_req_dmamap *map = (const void *)req;

	if (req->op != SIO_OP_DMAMAP || !hold_back || map->target_kind != SIO_KIND_BAR)
		return others(w, host, req, len);
	assert_true(n_held < HELD);
	memcpy(&held[n_held++], req, sizeof(held[0]));
	return true;
}

static struct world *make(void)
{
	struct world *w = world_new(2, 0);

	fake = (struct fake_device){.generation = 0};
	fake_device_add(w, &fake);
	fake_device_add_second(w, &fake2);
	fake_shadows_add(w, &shadows);
	others = w->port_other;
	w->port_other = port_other;
	hold_back = false;
	n_held = 0;
	world_start(w);
	borrower = world_client(w, 1, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, borrower, FDID, SCI_FLAG_EXCLUSIVE, &borrowed), 0);
	return w;
}

static uint32_t send_plug_in(struct world *w)
{
	struct sio_msg_shadow msg = {.device = sio_to_le32(borrowed.handle),
				     .flags = sio_to_le32(SIO_SHADOW_ALL_MEMORY)};

	return world_send(w, borrower, SIO_MSG_SHADOW, &msg, sizeof(msg));
}

static uint32_t plug_in(struct world *w)
{
	uint32_t id = send_plug_in(w);

	world_run(w);
	assert_non_null(world_reply(borrower, id));
	return world_reply(borrower, id)->error;
}

static uint32_t unplug(struct world *w)
{
	return fake_shadow_unplug(w, borrower, borrowed.handle);
}

static uint32_t give_back(struct world *w)
{
	struct sio_msg_handle msg = {.handle = sio_to_le32(borrowed.handle)};

	return world_call(w, borrower, SIO_MSG_DEV_RETURN, &msg, sizeof(msg))->error;
}

static void count(const struct world *w, unsigned ret[KINDS])
{
	for (uint32_t kind = 1; kind < KINDS; kind++)
		ret[kind] = world_resources(w, kind);
}

static void assert_as_before(const struct world *w, const unsigned before[KINDS])
{
	unsigned now[KINDS];

	count(w, now);
	for (uint32_t kind = 1; kind < KINDS; kind++)
		assert_int_equal(now[kind], before[kind]);
}

static void what_is_unplugged_is_given_back(void **state)
{
	struct world *w = make();
	unsigned before[KINDS];

	(void)state;
	count(w, before);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(plug_in(w), 0);
		assert_int_equal(world_resources(w, SIO_KIND_SHADOW), 1);
		assert_int_equal(world_resources(w, SIO_KIND_DMAMAP), before[SIO_KIND_DMAMAP] + 1);
		assert_int_equal(unplug(w), 0);
		assert_as_before(w, before);
	}
	assert_int_equal(unplug(w), EBADF);
	world_free(w);
}

static void a_refused_one_leaves_nothing(void **state)
{
	struct world *w = make();
	unsigned before[KINDS];

	(void)state;
	count(w, before);
	shadows.refused = true;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(plug_in(w), EINVAL);
		assert_as_before(w, before);
	}
	assert_int_equal(unplug(w), EBADF);
	shadows.refused = false;
	assert_int_equal(plug_in(w), 0);
	assert_int_equal(unplug(w), 0);
	shadows.refused = true;
	assert_int_equal(plug_in(w), EINVAL);
	assert_int_equal(give_back(w), 0);
	world_free(w);
}

/* Each request to either port on the way, one after the other. */
static void wherever_it_fails(void **state)
{
	struct world *w = make();
	unsigned before[KINDS], failed = 0;
	uint32_t error;

	(void)state;
	count(w, before);
	do {
		w->fail_at = w->requests + failed + 1;
		error = plug_in(w);
		w->fail_at = 0;
		if (error) {
			assert_int_equal(error, ENOSPC);
			assert_as_before(w, before);
			failed++;
		}
	} while (error);
	/* Memory, grant, window, entry, mapping, view, grant, window, shadow. */
	assert_in_range(failed, 9, 20);
	assert_int_equal(unplug(w), 0);
	assert_as_before(w, before);
	world_free(w);
}

/* Else its driver would have it, and the next borrower, too. */
static void one_that_is_plugged_in_is_not_returned(void **state)
{
	struct world *w = make();

	(void)state;
	assert_int_equal(plug_in(w), 0);
	assert_int_equal(give_back(w), EBUSY);
	assert_int_equal(unplug(w), 0);
	assert_int_equal(give_back(w), 0);
	world_free(w);
}

/* The kernel has it by then: its driver goes first. */
static void one_that_is_lost_meanwhile_is_unplugged(void **state)
{
	struct world *w = make();
	uint32_t id;

	(void)state;
	w->late = SIO_OP_SHADOW;
	id = send_plug_in(w);
	world_run(w);
	assert_int_equal(world_resources(w, SIO_KIND_SHADOW), 1);
	fake_device_move(w, false);
	world_run(w);
	assert_null(world_reply(borrower, id));
	w->late = 0;
	world_run(w);
	assert_int_equal(world_reply(borrower, id)->error, ECONNRESET);
	assert_int_equal(world_resources(w, SIO_KIND_SHADOW), 1);
	assert_int_equal(unplug(w), 0);
	assert_int_equal(world_resources(w, SIO_KIND_SHADOW), 0);
	world_free(w);
}

/* ---- peer-to-peer ---- */

/* The second device's program, whose shadow reaches others and is reached. */
static void make_other(struct world *w)
{
	other = world_client(w, 1, SIO_CLIENT_LIBRARY);
	assert_int_equal(call_borrow(w, other, FDID2, SCI_FLAG_EXCLUSIVE, &borrowed2), 0);
}

static uint32_t send_with_peers(struct world *w, struct world_client *c,
				const struct call_borrow *b)
{
	struct sio_msg_shadow msg = {
		.device = sio_to_le32(b->handle),
		.flags = sio_to_le32(SIO_SHADOW_ALL_MEMORY | SIO_SHADOW_WITH_PEERS)};

	return world_send(w, c, SIO_MSG_SHADOW, &msg, sizeof(msg));
}

/* What the kernel was told is there, and is the device's that was named, and nothing else is. */
static void assert_all_told(struct world *w)
{
	assert_int_equal(fake_shadow_peer_maps(w), shadows.n_told);
	for (unsigned i = 0; i < shadows.n_told; i++) {
		const struct world_res *r = w->res;

		while (r && (r->kind != SIO_KIND_DMAMAP || r->address != shadows.told[i].address))
			r = r->next;
		assert_non_null(r);
		assert_int_equal(r->target_kind, SIO_KIND_BAR);
	}
}

static void plug_in_with_peers(struct world *w)
{
	uint32_t id = send_with_peers(w, borrower, &borrowed);

	world_run(w);
	assert_int_equal(world_reply(borrower, id)->error, 0);
}

static void shadows_reach_each_other(void **state)
{
	struct world *w = make();
	uint32_t id;

	(void)state;
	make_other(w);
	plug_in_with_peers(w);
	assert_int_equal(shadows.n_told, 0);
	id = send_with_peers(w, other, &borrowed2);
	world_run(w);
	assert_int_equal(world_reply(other, id)->error, 0);
	assert_int_equal(shadows.n_told, 2);
	assert_int_equal(shadows.n_twice, 0);
	assert_all_told(w);
	world_free(w);
}

/* Again and again: what it reached of the other goes with its driver, and is not kept for it. */
static void one_that_is_plugged_in_again_keeps_no_mapping(void **state)
{
	struct world *w = make();
	unsigned before[KINDS];
	uint32_t id;

	(void)state;
	make_other(w);
	id = send_with_peers(w, other, &borrowed2);
	world_run(w);
	assert_int_equal(world_reply(other, id)->error, 0);
	count(w, before);
	for (unsigned i = 0; i < 3; i++) {
		plug_in_with_peers(w);
		assert_int_equal(shadows.n_told, 2);
		assert_int_equal(fake_shadow_peer_maps(w),
				 2 + i); /* the other one's driver lives */
		assert_int_equal(unplug(w), 0);
		assert_int_equal(fake_shadow_peer_maps(w), 1 + i);
	}
	assert_int_equal(fake_shadow_unplug(w, other, borrowed2.handle), 0);
	assert_int_equal(fake_shadow_peer_maps(w), 0);
	world_free(w);
}

/* Both map the same, when one comes while the other one is at it: one of these is enough. */
static void two_that_tell_the_same_keep_one_mapping(void **state)
{
	struct world *w = make();
	uint32_t again, id;

	(void)state;
	make_other(w);
	assert_int_equal(plug_in(w), 0); /* without peers */
	assert_int_equal(unplug(w), 0);
	plug_in_with_peers(w);
	hold_back = true;
	id = send_with_peers(w, other, &borrowed2);
	world_run(w);
	assert_int_equal(n_held, 1);
	hold_back = false;
	assert_int_equal(unplug(w), 0);
	again = send_with_peers(w, borrower, &borrowed);
	world_run(w);
	assert_int_equal(world_reply(borrower, again)->error, 0);
	assert_int_equal(shadows.n_told, 2);
	assert_int_equal(shadows.n_twice, 0);
	others(w, 0, &held[0].h, sizeof(held[0]));
	world_run(w);
	assert_int_equal(world_reply(other, id)->error, 0);
	assert_int_equal(shadows.n_twice, 1);
	assert_int_equal(shadows.n_told, 2);
	assert_all_told(w);
	world_free(w);
}

/* The mapping was made for the shadow of before: the kernel is not told of it under this one. */
static void one_that_was_plugged_in_anew_meanwhile_is_another(void **state)
{
	struct world *w = make();
	uint32_t first, again, id;

	(void)state;
	make_other(w);
	first = send_with_peers(w, borrower, &borrowed);
	world_run(w);
	assert_int_equal(world_reply(borrower, first)->error, 0);
	hold_back = true;
	id = send_with_peers(w, other, &borrowed2);
	world_run(w);
	assert_int_equal(n_held, 1);
	assert_int_equal(unplug(w), 0);
	again = send_with_peers(w, borrower, &borrowed);
	world_run(w);
	assert_int_equal(n_held, 2);
	others(w, 0, &held[0].h, sizeof(held[0])); /* that of before */
	world_run(w);
	assert_int_equal(shadows.n_told, 0);
	assert_int_equal(fake_shadow_peer_maps(w), 0);
	hold_back = false;
	for (unsigned i = 1; i < n_held; i++)
		others(w, 0, &held[i].h, sizeof(held[i]));
	world_run(w);
	assert_int_equal(world_reply(borrower, again)->error, 0);
	assert_int_equal(world_reply(other, id)->error, 0);
	assert_int_equal(shadows.n_told, 2);
	assert_all_told(w);
	world_free(w);
}

/* The kernel does not believe an address that a lender gave: that one has nothing mapped for it. */
static void a_lender_that_lies_has_nothing_mapped(void **state)
{
	struct world *w = make();
	uint32_t id;

	(void)state;
	make_other(w);
	plug_in_with_peers(w);
	shadows.peer_error = -ERANGE;
	id = send_with_peers(w, other, &borrowed2);
	world_run(w);
	assert_int_equal(world_reply(other, id)->error, 0); /* its driver may never want that */
	assert_int_equal(shadows.n_told, 0);
	assert_int_equal(fake_shadow_peer_maps(w), 0);
	shadows.peer_error = 0;
	assert_int_equal(unplug(w), 0);
	plug_in_with_peers(w);
	assert_int_equal(shadows.n_told, 2);
	assert_all_told(w);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_unplugged_is_given_back),
		cmocka_unit_test(a_refused_one_leaves_nothing),
		cmocka_unit_test(wherever_it_fails),
		cmocka_unit_test(one_that_is_plugged_in_is_not_returned),
		cmocka_unit_test(one_that_is_lost_meanwhile_is_unplugged),
		cmocka_unit_test(shadows_reach_each_other),
		cmocka_unit_test(one_that_is_plugged_in_again_keeps_no_mapping),
		cmocka_unit_test(two_that_tell_the_same_keep_one_mapping),
		cmocka_unit_test(one_that_was_plugged_in_anew_meanwhile_is_another),
		cmocka_unit_test(a_lender_that_lies_has_nothing_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
