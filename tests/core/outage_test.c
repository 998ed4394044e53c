/* SPDX-License-Identifier: BSD-2-Clause */
/* What switches and trunks that are out leave, by eye and against the obvious answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prng.h"
#include "core/outage.h"
#include "fail_alloc.h"

#define MOST_SWITCHES 7
#define MOST_TRUNKS 10

/* sw0 -- sw1 -- sw2 and sw3 alone; adapters as their numbers say. */
struct world {
	struct sio_topology t;
	struct sio_topo_switch sw[MOST_SWITCHES];
	struct sio_topo_trunk trunk[MOST_TRUNKS];
	struct sio_topo_adapter at[MOST_SWITCHES], cable, nowhere;
	struct sio_outage *o;
};

static void fill(struct world *w, unsigned switches)
{
	memset(w, 0, sizeof(*w));
	w->t.sw = w->sw;
	w->t.trunk = w->trunk;
	w->t.n_switches = switches;
	for (unsigned i = 0; i < MOST_SWITCHES; i++)
		w->at[i] =
			(struct sio_topo_adapter){.attach = SIO_ATTACH_SWITCH, .attach_index = i};
	w->cable.attach = SIO_ATTACH_LINK;
}

static void add_trunk(struct world *w, unsigned a, unsigned b)
{
	w->trunk[w->t.n_trunks++] = (struct sio_topo_trunk){.sw = {a, b}};
}

static int make(void **state)
{
	struct world *w = malloc(sizeof(*w));

	if (!w)
		return -1;
	fill(w, 4);
	add_trunk(w, 0, 1);
	add_trunk(w, 2, 1);
	*state = w;
	return sio_outage_new(&w->t, &w->o);
}

static int unmake(void **state)
{
	struct world *w = *state;

	sio_outage_free(w->o);
	free(w);
	return 0;
}

static bool joined(const struct world *w, unsigned a, unsigned b)
{
	bool there = sio_outage_joins(w->o, &w->at[a], &w->at[b]);

	assert_int_equal(sio_outage_joins(w->o, &w->at[b], &w->at[a]), there);
	return there;
}

static void a_trunk_cuts_what_is_behind_it(void **state)
{
	struct world *w = *state;

	assert_true(joined(w, 0, 2));
	assert_false(joined(w, 0, 3));
	assert_true(sio_outage_trunk(w->o, 1, false));
	assert_false(sio_outage_trunk(w->o, 1, false));
	assert_false(sio_outage_trunk_in(w->o, 1));
	assert_true(sio_outage_trunk_in(w->o, 0));
	assert_true(joined(w, 0, 1));
	assert_true(joined(w, 2, 2));
	assert_false(joined(w, 0, 2));
	assert_true(sio_outage_trunk(w->o, 1, true));
	assert_false(sio_outage_trunk(w->o, 1, true));
	assert_true(joined(w, 0, 2));
}

static void a_switch_takes_its_ports_with_it(void **state)
{
	struct world *w = *state;

	assert_true(sio_outage_switch(w->o, 1, false));
	assert_false(sio_outage_switch_in(w->o, 1));
	assert_true(sio_outage_switch_in(w->o, 0));
	assert_false(joined(w, 1, 1));
	assert_false(joined(w, 0, 1));
	assert_false(joined(w, 0, 2));
	assert_true(joined(w, 0, 0));
	assert_false(sio_outage_port_in(w->o, &w->at[1]));
	assert_true(sio_outage_port_in(w->o, &w->at[0]));
	/* A trunk is as it was when its switch comes back. */
	assert_true(sio_outage_trunk_in(w->o, 0));
	assert_true(sio_outage_trunk(w->o, 0, false));
	assert_true(sio_outage_switch(w->o, 1, true));
	assert_false(joined(w, 0, 1));
	assert_true(joined(w, 1, 2));
	/* At its second end, too. */
	assert_true(sio_outage_switch(w->o, 2, false));
	assert_false(joined(w, 1, 2));
}

static void a_cable_passes_no_switch(void **state)
{
	struct world *w = *state;

	for (unsigned i = 0; i < 4; i++)
		sio_outage_switch(w->o, i, false);
	assert_true(sio_outage_port_in(w->o, &w->cable));
	assert_true(sio_outage_joins(w->o, &w->cable, &w->cable));
	assert_true(sio_outage_joins(w->o, &w->at[0], &w->cable));
	assert_true(sio_outage_port_in(w->o, &w->nowhere));
}

/* The next file has switches in another order, one less and one more; two links side by side. */
static void what_is_out_is_out_by_the_next_file(void **state)
{
	struct world *w = *state, *next = malloc(sizeof(*next));
	struct sio_topology moved;

	assert_non_null(next);
	for (unsigned i = 0; i < 4; i++)
		snprintf(w->sw[i].name, sizeof(w->sw[i].name), "sw%u", i);
	w->trunk[1].port[1] = 3;
	sio_outage_trunk(w->o, 1, false);
	sio_outage_switch(w->o, 3, false);
	fill(next, 4);
	for (unsigned i = 0; i < 4; i++)
		snprintf(next->sw[i].name, sizeof(next->sw[i].name), "sw%u", i ? 4 - i : 4);
	add_trunk(next, 3, 2); /* sw1 to sw2, which sw2 to sw1 was; at other ports */
	add_trunk(next, 3, 2);
	next->trunk[1].port[0] = 3;
	add_trunk(next, 1, 0);
	assert_int_equal(sio_topology_trunk(&w->t, &next->t, 0), w->t.n_trunks);
	assert_int_equal(sio_topology_trunk(&w->t, &next->t, 1), 1);
	assert_int_equal(sio_topology_switch(&next->t, "sw3"), 1);
	assert_int_equal(sio_topology_switch(&next->t, "sw0"), 4);
	assert_int_equal(sio_outage_new(&next->t, &next->o), 0);
	moved = next->t;
	sio_outage_follow(next->o, w->o, &moved);
	memset(&next->t, 0, sizeof(next->t));
	assert_false(sio_outage_trunk_in(next->o, 1) || sio_outage_switch_in(next->o, 1));
	assert_true(sio_outage_trunk_in(next->o, 0) && sio_outage_trunk_in(next->o, 2));
	assert_true(joined(next, 3, 2));
	assert_false(joined(next, 1, 0));
	assert_true(sio_outage_trunk(next->o, 0, false));
	assert_false(joined(next, 3, 2));
	assert_true(sio_outage_trunk(next->o, 1, true));
	assert_true(joined(next, 3, 2));
	sio_outage_free(next->o);
	free(next);
}

/* Of links that join the same ports, as far as the file says, each is another one. */
static void links_side_by_side_keep_their_order(void **state)
{
	struct world *w = *state, next;

	for (unsigned i = 0; i < 4; i++)
		snprintf(w->sw[i].name, sizeof(w->sw[i].name), "sw%u", i);
	fill(&next, 4);
	memcpy(next.sw, w->sw, sizeof(w->sw));
	for (unsigned i = 0; i < 3; i++)
		add_trunk(&next, i % 2, !(i % 2));
	assert_int_equal(sio_topology_trunk(&next.t, &w->t, 0), 0);
	assert_int_equal(sio_topology_trunk(&w->t, &next.t, 0), 0);
	for (unsigned i = 1; i < 3; i++)
		assert_int_equal(sio_topology_trunk(&w->t, &next.t, i), w->t.n_trunks);
	add_trunk(w, 1, 0);
	assert_int_equal(sio_topology_trunk(&next.t, &w->t, 2), 1);
	assert_int_equal(sio_topology_trunk(&w->t, &next.t, 1), 2);
	assert_int_equal(sio_topology_trunk(&w->t, &next.t, 2), w->t.n_trunks);
}

static void says_that_there_is_no_memory(void **state)
{
	struct world w;
	unsigned n = 0;
	int rc;

	(void)state;
	fill(&w, 4);
	do {
		fail_alloc_at(++n);
		rc = sio_outage_new(&w.t, &w.o);
		fail_alloc_at(0);
		assert_true(rc == 0 || rc == -ENOMEM);
	} while (rc < 0);
	assert_int_equal(n, 6);
	sio_outage_free(w.o);
	sio_outage_free(NULL);
}

/* Switches that hang together have one colour: painted over until nothing changes. */
static void paint(const struct world *w, const bool *sw_out, const bool *trunk_out,
		  unsigned colour[MOST_SWITCHES])
{
	bool more = true;

	for (unsigned i = 0; i < MOST_SWITCHES; i++)
		colour[i] = i;
	while (more) {
		more = false;
		for (unsigned i = 0; i < w->t.n_trunks; i++) {
			unsigned *a = &colour[w->trunk[i].sw[0]], *b = &colour[w->trunk[i].sw[1]];

			if (trunk_out[i] || sw_out[w->trunk[i].sw[0]] ||
			    sw_out[w->trunk[i].sw[1]] || *a == *b)
				continue;
			*a = *b = *a < *b ? *a : *b;
			more = true;
		}
	}
}

static void agrees_with_painting(void **state)
{
	unsigned rounds = prng_start(77, 3000), apart = 0, together = 0;

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		bool sw_out[MOST_SWITCHES] = {false}, trunk_out[MOST_TRUNKS] = {false};
		unsigned colour[MOST_SWITCHES], trunks = prng_below(MOST_TRUNKS + 1);
		struct world w;

		fill(&w, 2 + prng_below(MOST_SWITCHES - 1));
		for (unsigned k = 0; k < trunks; k++)
			add_trunk(&w, prng_below(w.t.n_switches), prng_below(w.t.n_switches));
		assert_int_equal(sio_outage_new(&w.t, &w.o), 0);
		for (unsigned k = 0; k < 12; k++) {
			bool in = prng_below(2), trunk = w.t.n_trunks && prng_below(2);
			unsigned n = prng_below(trunk ? w.t.n_trunks : w.t.n_switches);
			bool *out = trunk ? &trunk_out[n] : &sw_out[n];

			assert_int_equal((trunk ? sio_outage_trunk : sio_outage_switch)(w.o, n, in),
					 *out == in);
			*out = !in;
			paint(&w, sw_out, trunk_out, colour);
			for (unsigned a = 0; a < w.t.n_switches; a++) {
				for (unsigned b = 0; b < w.t.n_switches; b++) {
					bool want =
						!sw_out[a] && !sw_out[b] && colour[a] == colour[b];

					assert_int_equal(joined(&w, a, b), want);
					*(want ? &together : &apart) += a != b;
				}
			}
		}
		sio_outage_free(w.o);
	}
	assert_true(rounds < 1000 || (apart > 10000 && together > 10000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_trunk_cuts_what_is_behind_it, make, unmake),
		cmocka_unit_test_setup_teardown(a_switch_takes_its_ports_with_it, make, unmake),
		cmocka_unit_test_setup_teardown(a_cable_passes_no_switch, make, unmake),
		cmocka_unit_test_setup_teardown(what_is_out_is_out_by_the_next_file, make, unmake),
		cmocka_unit_test_setup_teardown(links_side_by_side_keep_their_order, make, unmake),
		cmocka_unit_test(says_that_there_is_no_memory),
		cmocka_unit_test(agrees_with_painting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
