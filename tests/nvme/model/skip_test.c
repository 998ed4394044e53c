/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps that are skipped leave the model where steps that find nothing would have. */
#include <string.h>

#include "rig.h"

#define PMR 24u /* the first word of registers that are looked at in turn */

static unsigned step(struct rig *r)
{
	return emu_nvme_model.step(r->model, 64);
}

/* What its holder must not write to, and doorbells of queues that do not exist. */
static void scribble(struct rig *r)
{
	for (unsigned i = PMR; i < RIG_VIEW_BYTES / 4; i++)
		r->view[i] = ~r->view[i];
	for (unsigned i = 4; i < r->config.pages[1].length / 4; i++)
		r->doorbells[i] = 1;
}

static void assert_scribbled(const struct rig *r, bool doorbells)
{
	for (unsigned i = PMR; i < RIG_VIEW_BYTES / 4; i++)
		assert_int_equal(r->view[i], r->mirror[i]);
	for (unsigned i = 4; doorbells && i < r->config.pages[1].length / 4; i++)
		assert_int_equal(r->doorbells[i], 0);
}

/* As far as they go from here, both take the same steps and leave the same. */
static void expect_equal_steps(struct rig *a, struct rig *b)
{
	scribble(a);
	scribble(b);
	for (unsigned i = 0; i < a->config.full_look; i++) {
		assert_int_equal(step(a), step(b));
		assert_memory_equal(a->view, b->view, RIG_VIEW_BYTES);
		assert_memory_equal(a->doorbells, b->doorbells, a->config.pages[1].length);
	}
}

static void compare_after(uint64_t n, bool enabled)
{
	struct rig *a = rig_new(NULL), *b = rig_new(NULL);

	if (enabled) {
		rig_enable(a, 32, 32);
		rig_enable(b, 32, 32);
	}
	assert_true(emu_nvme_model.idle(a->model));
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(step(a), 0);
	emu_nvme_model.skip_steps(b->model, n);
	expect_equal_steps(a, b);
	assert_scribbled(a, enabled);
	rig_free(a);
	rig_free(b);
}

static void looks_go_on_where_steps_would_be(void **state)
{
	static const uint64_t n[] = {0, 1, 7, 8, 9, 499, 504, 505, 511, 512, 513, 520, 100003};

	(void)state;
	for (unsigned i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		compare_after(n[i], false);
		compare_after(n[i], true);
	}
}

/* Its turns know of more than one slice: a second skip follows the first. */
static void skips_add_up(void **state)
{
	struct rig *a = *state, *b = rig_new(NULL);

	rig_enable(b, 32, 32);
	emu_nvme_model.skip_steps(a->model, 5);
	emu_nvme_model.skip_steps(a->model, 1030);
	emu_nvme_model.skip_steps(b->model, 1035);
	expect_equal_steps(a, b);
	rig_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_go_on_where_steps_would_be),
		rig_test(skips_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
