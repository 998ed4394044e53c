/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A smartiod that is started again has no memory for one of the things that programs restore, at
 * any of the allocations that it makes for it. It is told of it once more: then all is as it was,
 * or the thing is lost and its program is notified of that, but it is never there in part.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "restore_world.h"
#include "smartiod/base/room.h"

/* Allocation number @fails of the restoring of thing number @thing fails. */
static struct {
	unsigned thing, fails;
	unsigned things, allocations;
	bool restoring, failed;
	uint32_t type; /* of that thing */
} want;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
const struct smartiod_restorable *__real_smartiod_room_restorable(const struct smartiod *d,
								  uint32_t type);
const struct smartiod_restorable *__wrap_smartiod_room_restorable(const struct smartiod *d,
								  uint32_t type);

static void *one(size_t n, size_t size)
{
	(void)n;
	return __real_malloc(size);
}

static void *fail_or(void *(*allocate)(size_t, size_t), size_t n, size_t size)
{
	if (want.restoring && ++want.allocations == want.fails) {
		want.failed = true;
		return NULL;
	}
	return allocate(n, size);
}

void *__wrap_malloc(size_t size)
{
	return fail_or(one, 1, size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fail_or(__real_calloc, n, size);
}

/* The world's own never fail. */
void *world_calloc(size_t n, size_t size)
{
	return __real_calloc(n, size);
}

static const struct smartiod_restorable *real;

static int restore(struct smartiod *d, struct smartiod_session *s, const struct sio_msg_restore *m,
		   struct sio_err *reterr)
{
	int rc;

	want.allocations = 0;
	want.restoring = ++want.things == want.thing;
	if (want.restoring)
		want.type = sio_from_le32(m->type);
	rc = real->fn(d, s, m, reterr);
	want.restoring = false;
	return rc;
}

const struct smartiod_restorable *__wrap_smartiod_room_restorable(const struct smartiod *d,
								  uint32_t type)
{
	static struct smartiod_restorable counted;

	real = __real_smartiod_room_restorable(d, type);
	if (!real)
		return NULL;
	counted = *real;
	counted.fn = restore;
	return &counted;
}

/* What a restarted smartiod gives back by halves cannot be told again, and is lost (STATUS.md). */
static bool may_be_lost(uint32_t type)
{
	return type == SIO_MSG_SEG_MAP || type == SIO_MSG_GROUP_JOIN || type == SIO_MSG_SEG_CONNECT;
}

static void look(struct fixture *f, unsigned thing, unsigned fails, const char *before)
{
	char *after = malloc(PICTURE);

	assert_non_null(after);
	assert_true(library_settled(f->w));
	if (library_lost()) {
		if (!may_be_lost(want.type))
			fail_msg("thing %u, of request %u, was lost for want of its allocation %u",
				 thing, want.type, fails);
	} else {
		take_picture(f->w, after);
		assert_string_equal(before, after);
		give_all_back(f->w, &f->p);
	}
	free(after);
}

/* Return: whether there was such an allocation; *ret_thing: whether there was such a thing. */
static bool try(unsigned thing, unsigned fails, bool *ret_thing)
{
	char *before = malloc(PICTURE);
	struct fixture *f;
	void *state;

	want.thing = 0;
	assert_non_null(before);
	assert_int_equal(setup(&state), 0);
	f = state;
	make_all(f->w, &f->p);
	take_picture(f->w, before);
	want.thing = thing;
	want.fails = fails;
	want.things = 0;
	want.failed = false;
	restart(f->w);
	want.thing = 0;
	*ret_thing = want.things >= thing;
	look(f, thing, fails, before);
	assert_int_equal(teardown(&state), 0);
	free(before);
	return want.failed;
}

static void it_is_told_again_or_lost(void **state)
{
	unsigned failures = 0, lost = 0;
	bool is_thing = true;

	(void)state;
	for (unsigned thing = 1; is_thing; thing++)
		for (unsigned fails = 1; try(thing, fails, &is_thing); fails++) {
			failures++;
			lost += library_lost() > 0;
		}
	print_message("%u allocations failed, %u of them lost something\n", failures, lost);
	assert_true(lost < failures / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_told_again_or_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
