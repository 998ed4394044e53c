/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "calls.h"
#include "segment_world.h"

int segment_setup(void **state)
{
	static struct fixture f;

	f.w = world_new(2, 0);
	world_start(f.w);
	f.exporter = world_client(f.w, 0, SIO_CLIENT_LIBRARY);
	f.importer = world_client(f.w, 1, SIO_CLIENT_LIBRARY);
	f.other = NULL;
	*state = &f;
	return 0;
}

int segment_teardown(void **state)
{
	struct fixture *f = *state;

	world_kill(f->w, f->exporter);
	world_kill(f->w, f->importer);
	if (f->other)
		world_kill(f->w, f->other);
	world_run(f->w);
	assert_nothing_left(f->w);
	assert_int_equal(f->w->bad_ends, 0);
	world_free(f->w);
	return 0;
}
