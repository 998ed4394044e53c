/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program says to the next smartiod that it had of another host's device: half the truth,
 * too much of it, or not all of it in time. Nobody else loses anything by it, and nothing ends
 * under what somebody has mapped.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "resume_world.h"
#include "smartiod/lender/lend.h"
#include "smartiod/restart/restore.h"

#define ENTRIES 16

/* A map of a segment's window has other words than one of a BAR. */
static uint32_t what(const struct sio_msg_restore *m)
{
	uint32_t type = sio_from_le32(m->type);

	if (!m->seal)
		return 0;
	return type == SIO_MSG_SEG_MAP && !m->claim[1].map ? 0xffff : type;
}

/* The words that are sealed, of what @m is; NULL: that is all. */
static sio_le32 *sealed_half(struct sio_msg_restore *m, unsigned i)
{
	sio_le32 *const of_borrow[] = {&m->bdf, &m->class_code, &m->handle};
	sio_le32 *const of_connection[] = {&m->node, &m->path, &m->number, &m->handle};
	sio_le32 *const of_map[] = {&m->path, &m->doorbells, &m->handle};

	switch (what(m)) {
	case SIO_MSG_DEV_BORROW:
		return i < 3 ? of_borrow[i] : NULL;
	case SIO_MSG_DEV_SEG_CONNECT:
		return i < 4 ? of_connection[i] : NULL;
	case SIO_MSG_SEG_MAP:
		return i < 3 ? of_map[i] : NULL;
	case SIO_MSG_DEV_HOLD:
	case 0xffff:
		return i < 1 ? &m->handle : NULL;
	}
	return NULL;
}

static sio_le64 *sealed_word(struct sio_msg_restore *m, unsigned i)
{
	sio_le64 *const of_any[] = {&m->key, &m->seal};
	sio_le64 *const of_connection[] = {&m->key, &m->extra, &m->bytes, &m->peer_boot, &m->seal};
	sio_le64 *const of_map[] = {&m->claim[0].view, &m->claim[0].grant, &m->claim[0].map,
				    &m->claim[2].view, &m->seal};

	switch (what(m)) {
	case SIO_MSG_DEV_BORROW:
	case SIO_MSG_DEV_HOLD:
	case 0xffff:
		return i < 2 ? of_any[i] : NULL;
	case SIO_MSG_DEV_SEG_CONNECT:
		return i < 5 ? of_connection[i] : NULL;
	case SIO_MSG_SEG_MAP:
		return i < 5 ? of_map[i] : NULL;
	}
	return NULL;
}

static unsigned only_the_truth(struct fixture *f, const struct sio_msg_restore *truth)
{
	struct sio_msg_restore lie = *truth;
	unsigned lies = 0;

	for (unsigned i = 0; sealed_half(&lie, i); lie = *truth, i++, lies++) {
		sio_le32 *at = sealed_half(&lie, i);

		*at = sio_to_le32(sio_from_le32(*at) + 1);
		assert_int_equal(say(f->w, f->c, &lie), ENOENT);
	}
	for (unsigned i = 0; sealed_word(&lie, i); lie = *truth, i++, lies++) {
		sio_le64 *at = sealed_word(&lie, i);

		*at = sio_to_le64(sio_from_le64(*at) + 1);
		assert_int_equal(say(f->w, f->c, &lie), ENOENT);
	}
	assert_int_equal(say(f->w, f->c, truth), 0);
	return lies;
}

/* All that it has, in the order in which it would be said. */
struct truth {
	struct sio_msg_restore m[SIO_RESTORE_STEPS][ENTRIES];
	unsigned n[SIO_RESTORE_STEPS];
};

static void get_truth(struct fixture *f, struct truth *ret)
{
	uint64_t at;

	for (unsigned i = 0; i < SIO_RESTORE_STEPS; i++)
		for (ret->n[i] = at = 0; library_next(f->c, i + 1, &at, &ret->m[i][ret->n[i]]);)
			assert_true(++ret->n[i] < ENTRIES);
}

/* The first map of a BAR, or (@bar false) of a segment's window. */
static struct sio_msg_restore *map_in(struct truth *t, bool bar)
{
	for (unsigned i = 0; i < t->n[2]; i++)
		if (what(&t->m[2][i]) == (bar ? SIO_MSG_SEG_MAP : 0xffff))
			return &t->m[2][i];
	fail();
	return NULL;
}

static void a_word_is_wrong(void **state)
{
	struct fixture *f = *state;
	struct truth t;
	unsigned before[SIO_KIND_SHADOW + 1], lies = 0;
	uint32_t dma;
	uint64_t at;

	assert_int_equal(
		call_dma_map_at(f->w, f->c, f->b.handle, f->segment, 0, 4096, 4096, &dma, &at), 0);
	hold_twice(f, at);
	picture(f, before);
	get_truth(f, &t);
	speak_to_next(f->w, f->c, BORROWER);
	for (unsigned i = 0; i < SIO_RESTORE_STEPS; i++) {
		for (unsigned j = 0; j < t.n[i]; j++)
			lies += only_the_truth(f, &t.m[i][j]);
		say_step(f->w, f->c, i + 1);
	}
	/* A borrow, a connection, a map of each kind, two holds. */
	assert_int_equal(lies, 5 + 9 + 8 + 3 + 2 * 3);
	world_pass(f->w, MEET);
	for (uint32_t kind = 1; kind <= SIO_KIND_SHADOW; kind++)
		assert_int_equal(world_resources(f->w, kind), before[kind]);
	assert_non_null(call_device_event(f->c, 4)); /* so many lies were about the borrow */
	assert_null(call_device_event(f->c, 5));
}

/* The window of a BAR as a segment's: the grant would go with the BAR, and not with the window. */
static void a_window_is_of_something_else(void **state)
{
	struct fixture *f = *state;
	struct truth t;
	struct sio_msg_restore lie;

	get_truth(f, &t);
	speak_to_next(f->w, f->c, BORROWER);
	for (unsigned i = 0; i < SIO_RESTORE_STEPS; i++) {
		for (unsigned j = 0; j < t.n[i]; j++) {
			if (what(&t.m[i][j]) == SIO_MSG_SEG_MAP) {
				lie = *map_in(&t, false);
				lie.key = map_in(&t, true)->claim[0].map;
				assert_int_equal(say(f->w, f->c, &lie), ENOENT);
			}
			assert_int_equal(say(f->w, f->c, &t.m[i][j]), 0);
		}
		say_step(f->w, f->c, i + 1);
	}
	world_pass(f->w, MEET);
	assert_int_equal(call_handle(f->w, f->c, SIO_MSG_SEG_UNMAP, f->bar_map, 0), 0);
	world_run(f->w);
	assert_int_equal(world_count(f->w, BORROWER, SIO_KIND_MAP), 1);
}

/* Its map of a BAR as one of another borrow: grants would be given back to another lender. */
static void a_map_is_of_another_borrow(void **state)
{
	struct fixture *f = *state;
	struct sio_msg_dev_seg_connect *r;
	struct call_borrow second;
	struct truth t;

	assert_int_equal(call_borrow(f->w, f->c, FDID, 0, &second), 0);
	get_truth(f, &t);
	speak_to_next(f->w, f->c, BORROWER);
	for (unsigned j = 0; j < t.n[0]; j++)
		assert_int_equal(say(f->w, f->c, &t.m[0][j]), 0);
	say_step(f->w, f->c, 1);
	say_step(f->w, f->c, 2);
	for (unsigned j = 0; j < t.n[2]; j++) {
		r = (void *)t.m[2][j].request;
		if (sio_from_le32(t.m[2][j].handle) != f->bar)
			continue;
		r->device = sio_to_le32(second.handle);
		assert_int_equal(say(f->w, f->c, &t.m[2][j]), 0);
	}
	assert_int_equal(say(f->w, f->c, map_in(&t, true)), ENOENT);
	say_step(f->w, f->c, 3);
}

/* A connection that it has, as one by its borrow: what the file forbids would be asked no more. */
static void a_connection_is_no_borrows(void **state)
{
	struct fixture *f = *state;
	struct world_client *owner = world_client(f->w, LENDER, SIO_CLIENT_LIBRARY);
	struct truth t;
	struct sio_msg_restore plain = {.type = sio_to_le32(0)}, lie = {.type = sio_to_le32(0)};
	uint32_t segment, connection;

	assert_int_equal(call_seg_export(f->w, owner, 3, 8192, &segment), 0);
	assert_int_equal(call_seg_connect(f->w, f->c, NODE(LENDER), 3, &connection), 0);
	get_truth(f, &t);
	for (unsigned j = 0; j < t.n[2]; j++) {
		if (sio_from_le32(t.m[2][j].type) == SIO_MSG_SEG_CONNECT)
			plain = t.m[2][j];
		if (what(&t.m[2][j]) == SIO_MSG_DEV_SEG_CONNECT)
			lie = t.m[2][j];
	}
	speak_to_next(f->w, f->c, BORROWER);
	for (unsigned j = 0; j < t.n[0]; j++)
		assert_int_equal(say(f->w, f->c, &t.m[0][j]), 0);
	say_step(f->w, f->c, 1);
	say_step(f->w, f->c, 2);
	/* The request is that of the device's segment, all else that of the other connection. */
	plain.type = lie.type;
	memcpy(plain.request, lie.request, sizeof(lie.request));
	assert_int_equal(say(f->w, f->c, &plain), ENOENT);
	assert_int_equal(say(f->w, f->c, &lie), 0);
	say_step(f->w, f->c, 3);
}

/* A map by a handle that is taken: its window is being unmapped when the next one is named. */
static void two_windows_of_one_connection(void **state)
{
	struct fixture *f = *state;
	struct truth t;
	struct sio_msg_restore m;
	uint32_t other;

	assert_int_equal(call_seg_map(f->w, f->c, f->near, 0, 4096, &other), 0);
	get_truth(f, &t);
	speak_to_next(f->w, f->c, BORROWER);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned j = 0; j < t.n[i]; j++)
			assert_int_equal(say(f->w, f->c, &t.m[i][j]), 0);
		say_step(f->w, f->c, i + 1);
	}
	f->w->late = SIO_OP_UNMAP;
	m = *map_in(&t, false);
	for (unsigned j = 0; j < t.n[2]; j++)
		if (what(&t.m[2][j]) == SIO_MSG_DEV_SEG_CONNECT)
			assert_int_equal(say(f->w, f->c, &t.m[2][j]), 0);
	m.handle = sio_to_le32(f->near);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(say(f->w, f->c, &m), ENOENT);
	f->w->late = 0;
	world_run(f->w);
	say_step(f->w, f->c, 3);
	world_pass(f->w, MEET);
}

/* It is here, but does not say the rest in time: it hears that the device is lost. */
static void it_does_not_come_to_the_end(void **state)
{
	struct fixture *f = *state;
	struct truth t;

	get_truth(f, &t);
	speak_to_next(f->w, f->c, BORROWER);
	for (unsigned j = 0; j < t.n[0]; j++)
		assert_int_equal(say(f->w, f->c, &t.m[0][j]), 0);
	say_step(f->w, f->c, 1);
	world_forget(f->c);
	world_pass(f->w, SMARTIOD_GRACE_NS - 1);
	assert_null(call_device_event(f->c, 0));
	world_pass(f->w, 1);
	expect_lost(f);
	for (unsigned j = 0; j < t.n[2]; j++)
		if (what(&t.m[2][j]))
			assert_int_equal(say(f->w, f->c, &t.m[2][j]),
					 EINVAL); /* before step 2 ends */
	say_step(f->w, f->c, 2);
	for (unsigned j = 0; j < t.n[2]; j++)
		if (what(&t.m[2][j]))
			assert_int_equal(say(f->w, f->c, &t.m[2][j]), ENOENT);
	say_step(f->w, f->c, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_word_is_wrong),
		TEST(a_window_is_of_something_else),
		TEST(a_map_is_of_another_borrow),
		TEST(a_connection_is_no_borrows),
		TEST(two_windows_of_one_connection),
		TEST(it_does_not_come_to_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
