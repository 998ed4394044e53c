/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cables lead elsewhere and switches come and go by another file while the room runs: a path that
 * still joins the same two adapters is the same, however long; one that does not is down, like one
 * whose cable was pulled out.
 */
#include "next.h"

/* Lender at switch sw0, client and other host at sw1, which a link joins with it. */
struct rig {
	struct fake *f;
	struct next n;
	uint64_t theirs, mem;
	struct sio_evt_map map;
	struct sio_evt_dmamap dma; /* of the client's device, to the lender's memory */
	uint32_t word;
};

static void set_up(struct rig *g)
{
	struct sio_evt_grant grant;
	uint64_t owner;

	*g = (struct rig){.f = fake_new_cascade(true)};
	for (unsigned i = 0; i < 3; i++)
		fake_up(g->f, i);
	owner = fake_owner(g->f, LENDER);
	g->mem = fake_alloc(g->f, LENDER, owner, 0x1000);
	grant = fake_grant(g->f, LENDER, owner, g->mem, 0x1000, CLIENT);
	g->theirs = fake_owner(g->f, CLIENT);
	g->map = fake_map(g->f, CLIENT, g->theirs, LENDER, &grant);
	fake_open(g->f, CLIENT, 0);
	fake_requester(g->f, CLIENT, g->theirs, 0);
	g->dma = fake_dmamap(g->f, CLIENT, g->theirs, 0, SIO_KIND_MAP, g->map.id, 0x1000, 3);
	fake_forget(g->f);
}

/* What was mapped before is written to: does it arrive? */
static bool arrives(struct rig *g)
{
	struct emu_dev *dev = fake_dev(g->f, CLIENT, 0);

	g->word++;
	if (dev->write(dev, g->dma.iova, &g->word, sizeof(g->word)) != 0)
		return false;
	assert_memory_equal(fake_data(g->f, LENDER, g->mem), &g->word, sizeof(g->word));
	return true;
}

/* The client's page has two paths, of which this is the one to the lender. */
static const struct sio_status_page *page(struct rig *g, unsigned *ret)
{
	const struct sio_status_page *p = g->f->room->host[CLIENT].status.data;

	assert_int_equal(p->count, 2);
	*ret = p->path[0].peer_node == NODE(LENDER) ? 0 : 1;
	assert_int_equal(p->path[*ret].peer_node, NODE(LENDER));
	return p;
}

static uint32_t state(struct rig *g)
{
	unsigned i;
	const struct sio_status_page *p = page(g, &i);

	return p->path[i].state;
}

static uint32_t generation(struct rig *g)
{
	unsigned i;
	const struct sio_status_page *p = page(g, &i);

	return p->path[i].generation;
}

/* The client's daemon hears of the path to the lender, and of no other before. */
static void expect_path(struct rig *g, uint32_t state_now, uint32_t hops)
{
	struct fake_event *e = fake_take(g->f, CLIENT, SIO_EV_LINK);

	assert_non_null(e);
	assert_int_equal(e->u.link.peer_node, NODE(LENDER));
	assert_int_equal(e->u.link.state, state_now);
	assert_int_equal(e->u.link.hops, hops);
}

static void name_switch(struct next *n, unsigned i, const char *name)
{
	snprintf(n->sw[i].name, sizeof(n->sw[i].name), "%s", name);
	if (n->topo.n_switches <= i)
		n->topo.n_switches = i + 1;
}

static void add_trunk(struct next *n, unsigned a, unsigned b)
{
	n->trunk[n->topo.n_trunks++] =
		(struct sio_topo_trunk){.sw = {a, b}, .link_width = 8, .link_generation = 3};
}

static uint64_t passed(struct rig *g, unsigned trunk)
{
	return fake_counter(g->f, LENDER, SIO_STATS_TRUNK, trunk, "wr_bytes");
}

/* A switch is put in between, and taken out again: the path is longer, and never down. */
static void a_longer_path_is_the_same_path(void **unused)
{
	uint64_t before, last;
	struct rig g;

	(void)unused;
	set_up(&g);
	assert_true(arrives(&g));
	for (unsigned turn = 0; turn < 8; turn++) {
		uint32_t was = generation(&g);

		read_next(g.f, &g.n);
		name_switch(&g.n, 2, "between");
		g.n.topo.n_trunks = 0;
		add_trunk(&g.n, 2, 1);
		add_trunk(&g.n, 0, 2);
		assert_int_equal(reload(&g.n), 0);
		expect_path(&g, SIO_LINK_UP, 4);
		assert_int_equal(passed(&g, 0) + passed(&g, 1), 0);
		assert_true(arrives(&g));
		assert_int_equal(passed(&g, 0), sizeof(g.word));
		assert_int_equal(passed(&g, 1), sizeof(g.word));

		/* One of the two goes on, at another place in the file, and counting. */
		read_next(g.f, &g.n);
		g.n.topo.n_trunks = 0;
		add_trunk(&g.n, 1, 0);
		add_trunk(&g.n, 1, 2);
		assert_int_equal(reload(&g.n), 0);
		expect_path(&g, SIO_LINK_UP, 3);
		last = passed(&g, 1);
		assert_int_equal(last, sizeof(g.word));
		before = passed(&g, 0);
		assert_true(arrives(&g));
		assert_int_equal(passed(&g, 0), before + sizeof(g.word));
		assert_int_equal(passed(&g, 1), last);

		read_next(g.f, &g.n);
		g.n.topo.n_switches = 2;
		g.n.topo.n_trunks = 1;
		assert_int_equal(reload(&g.n), 0);
		assert_true(arrives(&g));
		assert_int_equal(state(&g), SIO_LINK_UP);
		assert_int_equal(generation(&g), was);
		assert_null(fake_take(g.f, CLIENT, SIO_EV_LINK));
	}
	fake_free(g.f);
}

/* An adapter's cable goes to the other switch: its path to the lender is shorter. */
static void a_cable_that_moves(void **unused)
{
	uint32_t was;
	struct rig g;

	(void)unused;
	set_up(&g);
	was = generation(&g);
	for (unsigned turn = 0; turn < 8; turn++) {
		read_next(g.f, &g.n);
		g.n.host[CLIENT].adapter[0].attach_index ^= 1;
		g.n.host[CLIENT].adapter[0].link_width ^= 12;
		assert_int_equal(reload(&g.n), 0);
		expect_path(&g, SIO_LINK_UP, turn % 2 ? 3 : 2);
		fake_forget(g.f);
		assert_true(arrives(&g));
		assert_int_equal(generation(&g), was);
	}
	fake_free(g.f);
}

/* As by a cable that is pulled out, and put in again: who was mapped then writes there again. */
static void what_loses_its_only_path_is_down(void **unused)
{
	struct rig g;

	(void)unused;
	set_up(&g);
	for (unsigned way = 0; way < 3; way++) {
		uint32_t was = generation(&g);

		read_next(g.f, &g.n);
		if (way == 0) /* without the link between the switches */
			g.n.topo.n_trunks = 0;
		if (way == 1) { /* to a switch that is alone */
			name_switch(&g.n, 2, "alone");
			g.n.host[CLIENT].adapter[0].attach_index = 2;
		}
		if (way == 2) { /* with each other alone */
			for (unsigned i = CLIENT; i <= OTHER; i++) {
				g.n.host[i].adapter[0].attach = SIO_ATTACH_LINK;
				g.n.host[i].adapter[0].attach_index = 0;
			}
			g.n.topo.n_links = 1;
		}
		assert_int_equal(reload(&g.n), 0);
		expect_path(&g, SIO_LINK_DOWN, 0);
		assert_int_equal(state(&g), SIO_LINK_DOWN);
		assert_false(arrives(&g));
		assert_non_null(fake_take(g.f, LENDER, SIO_EV_LINK));

		read_next(g.f, &g.n);
		g.n.topo.n_switches = 2;
		if (way == 0)
			add_trunk(&g.n, 0, 1);
		for (unsigned i = CLIENT; i <= OTHER; i++) {
			g.n.host[i].adapter[0].attach = SIO_ATTACH_SWITCH;
			g.n.host[i].adapter[0].attach_index = 1;
		}
		fake_forget(g.f);
		assert_int_equal(reload(&g.n), 0);
		expect_path(&g, SIO_LINK_UP, 3);
		fake_forget(g.f);
		assert_int_equal(generation(&g), was + 2);
		assert_true(arrives(&g));
	}
	fake_free(g.f);
}

/* A switch without power, and a link that is down, are so wherever the file has them now. */
static void what_is_out_stays_out(void **unused)
{
	struct rig g;

	(void)unused;
	set_up(&g);
	read_next(g.f, &g.n);
	name_switch(&g.n, 2, "sw2");
	add_trunk(&g.n, 0, 2);
	add_trunk(&g.n, 2, 1);
	assert_int_equal(reload(&g.n), 0);
	assert_int_equal(emu_room_trunk(g.f->room, 0, false), 0);
	expect_path(&g, SIO_LINK_UP, 4);
	assert_true(arrives(&g));
	assert_int_equal(emu_room_switch(g.f->room, 2, false), 0);
	expect_path(&g, SIO_LINK_DOWN, 0);

	/* sw0 and sw2 change places, and the links. */
	read_next(g.f, &g.n);
	name_switch(&g.n, 0, "sw2");
	name_switch(&g.n, 2, "sw0");
	g.n.host[LENDER].adapter[0].attach_index = 2;
	g.n.topo.n_trunks = 0;
	add_trunk(&g.n, 1, 0);
	add_trunk(&g.n, 0, 2);
	add_trunk(&g.n, 1, 2);
	fake_forget(g.f);
	assert_int_equal(reload(&g.n), 0);
	assert_false(emu_room_switch_in(g.f->room, 0));
	assert_true(emu_room_switch_in(g.f->room, 1) && emu_room_switch_in(g.f->room, 2));
	assert_true(emu_room_trunk_in(g.f->room, 0) && emu_room_trunk_in(g.f->room, 1));
	assert_false(emu_room_trunk_in(g.f->room, 2));
	assert_null(fake_take(g.f, CLIENT, SIO_EV_LINK));
	assert_int_equal(emu_room_trunk(g.f->room, 2, true), 0);
	expect_path(&g, SIO_LINK_UP, 3);
	assert_true(arrives(&g));

	/* Whose cable goes to a switch without power hears that its link is down. */
	read_next(g.f, &g.n);
	g.n.host[OTHER].adapter[0].attach_index = 0;
	fake_forget(g.f);
	assert_int_equal(reload(&g.n), 0);
	for (unsigned own = 0; own < 1;) {
		struct fake_event *e = fake_take(g.f, OTHER, SIO_EV_LINK);

		assert_non_null(e);
		assert_int_equal(e->u.link.state, SIO_LINK_DOWN);
		own += e->u.link.peer_node == NODE(OTHER);
	}
	fake_free(g.f);
}

/* A cable that is out of its socket may be of an adapter that leads elsewhere; it stays out. */
static void a_cable_that_was_pulled_stays_so(void **unused)
{
	struct rig g;

	(void)unused;
	set_up(&g);
	assert_int_equal(emu_room_link(g.f->room, CLIENT, 0, false), 0);
	fake_forget(g.f);
	read_next(g.f, &g.n);
	g.n.host[CLIENT].adapter[0].attach_index = 0;
	assert_int_equal(reload(&g.n), 0);
	assert_null(fake_take(g.f, CLIENT, SIO_EV_LINK));
	assert_false(arrives(&g));
	assert_int_equal(emu_room_link(g.f->room, CLIENT, 0, true), 0);
	expect_path(&g, SIO_LINK_UP, 2);
	assert_true(arrives(&g));
	fake_free(g.f);
}

static void what_cannot_be_taken_changes_nothing(void **unused)
{
	struct emu_change *c = NULL;
	struct rig g;

	(void)unused;
	set_up(&g);
	/* A window of another size is another adapter. */
	read_next(g.f, &g.n);
	g.n.topo.n_trunks = 0;
	g.n.host[CLIENT].adapter[0].window_size *= 2;
	assert_int_equal(reload(&g.n), -EBUSY);
	assert_non_null(strstr(g.n.err.text,
			       "host 'host1', adapter 0 is another one, and this one is "
			       "in use"));
	read_next(g.f, &g.n);
	g.n.topo.n_trunks = 0;
	measure(&g.n);
	for (unsigned try = 0; try < 2; try++) {
		assert_int_equal(emu_room_prepare(g.f->room, &g.n.topo, try, &c, &g.n.err), 0);
		emu_room_drop(g.f->room, c);
	}
	assert_int_equal(g.f->n_events, 0);
	assert_true(arrives(&g));
	fake_free(g.f);
}

static void not_where_machines_are(void **unused)
{
	struct fake *f = fake_new_mixed(0);
	struct next n;

	(void)unused;
	for (unsigned way = 0; way < 3; way++) {
		read_next(f, &n);
		n.host[MACHINE] = f->topo.host[MACHINE];
		n.topo.machine = &n.host[MACHINE];
		if (way == 0)
			name_switch(&n, 1, "more");
		if (way == 1)
			n.host[CLIENT].adapter[0].link_width = 4;
		if (way == 2) { /* the same, in another order */
			f->topo.n_switches = n.topo.n_switches = 2;
			name_switch(&n, 0, "sw1");
			name_switch(&n, 1, "sw0");
			for (unsigned i = 0; i <= MACHINE; i++)
				n.host[i].adapter[0].attach_index = 1;
		}
		assert_int_equal(reload(&n), -EOPNOTSUPP);
		assert_non_null(strstr(
			n.err.text, way == 2 ? "the switches are in another order"
					     : "; switches and cables change in clusters without "
					       "machines"));
	}
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_longer_path_is_the_same_path),
		cmocka_unit_test(a_cable_that_moves),
		cmocka_unit_test(what_loses_its_only_path_is_down),
		cmocka_unit_test(what_is_out_stays_out),
		cmocka_unit_test(a_cable_that_was_pulled_stays_so),
		cmocka_unit_test(what_cannot_be_taken_changes_nothing),
		cmocka_unit_test(not_where_machines_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
