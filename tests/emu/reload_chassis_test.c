/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chassis come and go by another file while the room runs, wherever in the file they stand: what is
 * behind one that stays goes on over it, and the links count on.
 */
#include "channel.h"
#include "next.h"

#define BOX_BASE 0x4000000000ull

/* Chassis have names of one letter. The number of one, as of what is in it; 0: there is none. */
static unsigned number(const struct sio_topo_host *h, char name)
{
	for (unsigned i = 0; i < h->n_chassis; i++)
		if (h->chassis[i].name[0] == name)
			return i + 1;
	return 0;
}

static unsigned renumber(const struct sio_topo_host *was, const struct sio_topo_host *h,
			 unsigned in)
{
	return in ? number(h, was->chassis[in - 1].name[0]) : 0;
}

/* The host's chassis in that order; new ones are in slots of the host. Nothing is in others. */
static void arrange(struct next *n, unsigned host, const char *order)
{
	struct sio_topo_host *h = &n->host[host], was = *h;
	struct sio_topo_chassis before[NEXT_CHASSIS];

	if (was.n_chassis)
		memcpy(before, h->chassis, was.n_chassis * sizeof(*before));
	was.chassis = before;
	h->n_chassis = (unsigned)strlen(order);
	assert_true(h->n_chassis <= NEXT_CHASSIS);
	for (unsigned i = 0; i < h->n_chassis; i++) {
		unsigned k = number(&was, order[i]);

		h->chassis[i] = k ? before[k - 1]
				  : (struct sio_topo_chassis){.name = {order[i]},
							      .link_width = 8,
							      .link_generation = 3};
	}
	for (unsigned i = 0; i < h->n_chassis; i++)
		h->chassis[i].in = renumber(&was, h, h->chassis[i].in);
	for (unsigned i = 0; i < h->n_adapters; i++)
		h->adapter[i].in = renumber(&was, h, h->adapter[i].in);
	for (unsigned i = 0; i < h->n_devices; i++)
		h->device[i].in = renumber(&was, h, h->device[i].in);
}

static uint64_t passed(struct fake *f, unsigned host, char name, const char *what)
{
	unsigned k = number(&f->topo.host[host], name);

	assert_true(k > 0);
	return fake_counter(f, host, SIO_STATS_CHASSIS, k - 1, what);
}

/* Each host has its adapter in a. The lender has b in that, with its device 0; others beside it. */
static void a_and_b(struct sio_topology *t, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < 2; k++)
			t->host[i].chassis[k] = (struct sio_topo_chassis){.name = {(char)('a' + k)},
									  .in = i == LENDER ? k : 0,
									  .link_width = 8,
									  .link_generation = 3};
		t->host[i].adapter[0].in = 1;
	}
	t->host[LENDER].device[0].in = 2;
}

/* The lender's device 0 writes to its own host's memory and to the client's. */
struct rig {
	struct fake *f;
	struct next n;
	uint64_t owner, mem, theirs;
	struct sio_evt_dmamap here, there;
	uint32_t word;
	uint64_t a, b, of_client; /* what has passed these chassis */
};

static void set_up(struct rig *g)
{
	struct sio_evt_grant grant;
	struct sio_evt_map map;
	uint64_t owner;

	*g = (struct rig){.f = fake_new_tree(0, 2, a_and_b, NULL)};
	for (unsigned i = 0; i < 3; i++)
		fake_up(g->f, i);
	owner = fake_owner(g->f, CLIENT);
	g->theirs = fake_alloc(g->f, CLIENT, owner, 0x1000);
	grant = fake_grant(g->f, CLIENT, owner, g->theirs, 0x1000, LENDER);
	g->owner = fake_owner(g->f, LENDER);
	g->mem = fake_alloc(g->f, LENDER, g->owner, 0x1000);
	map = fake_map(g->f, LENDER, g->owner, CLIENT, &grant);
	fake_open(g->f, LENDER, 0);
	fake_requester(g->f, LENDER, g->owner, 0);
	g->here = fake_dmamap(g->f, LENDER, g->owner, 0, SIO_KIND_MEM, g->mem, 0x1000, 3);
	g->there = fake_dmamap(g->f, LENDER, g->owner, 0, SIO_KIND_MAP, map.id, 0x1000, 3);
	fake_forget(g->f);
}

/* Both arrive, over the chassis that lead there, and over no other. */
static void writes(struct rig *g)
{
	struct emu_dev *dev = fake_dev(g->f, LENDER, 0);

	g->word++;
	assert_int_equal(dev->write(dev, g->here.iova, &g->word, sizeof(g->word)), 0);
	assert_int_equal(dev->write(dev, g->there.iova, &g->word, sizeof(g->word)), 0);
	assert_memory_equal(fake_data(g->f, LENDER, g->mem), &g->word, sizeof(g->word));
	assert_memory_equal(fake_data(g->f, CLIENT, g->theirs), &g->word, sizeof(g->word));
	g->b += 2 * sizeof(g->word);
	g->a += sizeof(g->word); /* the adapter is behind it, too */
	g->of_client += sizeof(g->word);
	assert_int_equal(passed(g->f, LENDER, 'b', "wr_bytes"), g->b);
	assert_int_equal(passed(g->f, LENDER, 'a', "wr_bytes"), g->a);
	assert_int_equal(passed(g->f, CLIENT, 'a', "wr_bytes"), g->of_client);
	assert_int_equal(passed(g->f, CLIENT, 'b', "wr_bytes"), 0);
}

static void those_that_stay_count_on_in_any_order(void **state)
{
	static const char *const lender[] = {"cab", "acb", "abc", "dcab", "ab", "acdb"};
	static const char *const client[] = {"ba", "cba", "bca", "a", "cdab"};
	struct rig g;

	(void)state;
	set_up(&g);
	writes(&g);
	for (unsigned turn = 0; turn < 30; turn++) {
		const char *of_lender = lender[turn % 6], *of_client = client[turn % 5];

		read_next(g.f, &g.n);
		arrange(&g.n, LENDER, of_lender);
		arrange(&g.n, CLIENT, of_client);
		if (!strchr(of_client, 'b'))
			arrange(&g.n, CLIENT, "ab");
		assert_int_equal(reload(&g.n), 0);
		assert_int_equal(g.f->n_events, 0);
		assert_int_equal(passed(g.f, LENDER, 'b', "wr_bytes"), g.b);
		writes(&g);
		for (const char *c = "cd"; *c; c++) {
			if (strchr(of_lender, *c))
				assert_int_equal(passed(g.f, LENDER, *c, "wr_bytes"), 0);
			if (strchr(of_client, *c))
				assert_int_equal(passed(g.f, CLIENT, *c, "wr_bytes"), 0);
		}
		fake_forget(g.f);
	}
	fake_free(g.f);
}

/* A device of the lender in c, which has just come; what it writes to. */
static void comes(struct rig *g, struct sio_evt_dmamap *ret)
{
	struct fake_event *e;

	read_next(g->f, &g->n);
	arrange(&g->n, LENDER, "acb");
	g->n.chassis[LENDER][1].in = 1;
	add(&g->n, LENDER)->in = 2;
	fake_forget(g->f);
	assert_int_equal(reload(&g->n), 0);
	e = fake_take(g->f, LENDER, SIO_EV_DEVICE_BACK);
	assert_non_null(e);
	assert_int_equal(e->u.device.device, DEV(LENDER, ADDED));
	assert_null(fake_take(g->f, LENDER, SIO_EV_DEVICE_GONE));
	fake_open(g->f, LENDER, ADDED);
	*ret = fake_dmamap(g->f, LENDER, g->owner, ADDED, SIO_KIND_MEM, g->mem, 0x1000, 3);
}

/* With the chassis that it was in: what hosts have left of it is nobody's place there. */
static void goes(struct rig *g)
{
	struct fake_event *e;

	read_next(g->f, &g->n);
	take_out(&g->n, LENDER, 3);
	arrange(&g->n, LENDER, "ab");
	fake_forget(g->f);
	assert_int_equal(reload(&g->n), 0);
	e = fake_take(g->f, LENDER, SIO_EV_DEVICE_GONE);
	assert_non_null(e);
	assert_int_equal(e->u.device.device, DEV(LENDER, ADDED));
	assert_int_equal(g->f->room->removed->topo->in, 0);
}

static void one_comes_with_a_device_and_goes_with_it(void **state)
{
	struct rig g;

	(void)state;
	set_up(&g);
	for (unsigned turn = 0; turn < 8; turn++) {
		struct sio_evt_dmamap map;
		struct emu_dev *dev;

		comes(&g, &map);
		dev = fake_dev(g.f, LENDER, 3);
		assert_int_equal(passed(g.f, LENDER, 'c', "wr_bytes"), 0);
		assert_int_equal(dev->write(dev, map.iova, &turn, sizeof(turn)), 0);
		assert_memory_equal(fake_data(g.f, LENDER, g.mem), &turn, sizeof(turn));
		assert_int_equal(passed(g.f, LENDER, 'c', "wr_bytes"), sizeof(turn));
		g.a += sizeof(turn);
		writes(&g);
		goes(&g);
		writes(&g);
		assert_int_equal(fake_end(g.f, LENDER, SIO_OP_DMAUNMAP, map.id, g.owner), 0);
	}
	read_next(g.f, &g.n);
	assert_int_equal(reload(&g.n), 0);
	assert_null(g.f->room->removed);
	fake_free(g.f);
}

/* The engine of an adapter is where the adapter is. */
static void an_engine_goes_on_over_its_adapters_chassis(void **state)
{
	static const char *const order[] = {"ab", "cba", "bca", "dcba"};
	struct dma d;

	(void)state;
	dma_init_in(&d, fake_new_tree(0, 2, a_and_b, NULL));
	for (unsigned i = 0; i < 4; i++) {
		struct next n;

		read_next(d.f, &n);
		arrange(&n, CLIENT, order[i]);
		assert_int_equal(reload(&n), 0);
		memset(d.there, 0, SIZE);
		put(&d, d.local, 0, d.remote, 0, SIZE, true);
		work(&d);
		assert_memory_equal(d.there, d.here, SIZE);
		for (const char *c = order[i]; *c; c++)
			assert_int_equal(passed(d.f, CLIENT, *c, "rd_bytes"),
					 *c == 'a' ? (i + 1ull) * SIZE : 0);
		assert_int_equal(passed(d.f, LENDER, 'a', "wr_bytes"), (i + 1ull) * SIZE);
	}
	fake_free(d.f);
}

/* What it passes on is looked for behind it: from the reload on, where that says. */
static void another_range_is_in_force_at_once(void **state)
{
	struct emu_dev *dev;
	struct rig g;

	(void)state;
	set_up(&g);
	fake_open(g.f, LENDER, 1);
	dev = fake_dev(g.f, LENDER, 1);
	for (unsigned turn = 0; turn < 6; turn++) {
		struct sio_topo_chassis *a;

		read_next(g.f, &g.n);
		a = &g.n.chassis[LENDER][0];
		a->aperture = a->range_size = 0x100000ull << turn % 3;
		a->range_base = BOX_BASE + 0x1000000ull * (turn + 1);
		assert_int_equal(reload(&g.n), 0);
		for (unsigned where = 0; where <= 7; where++) {
			uint64_t at = BOX_BASE + 0x1000000ull * where;

			assert_int_equal(dev->write(dev, at, &turn, 4), -EFAULT);
			g.a += where == turn + 1 ? 4 : 0;
			assert_int_equal(dev->write(dev, at + a->range_size, &turn, 4), -EFAULT);
			assert_int_equal(passed(g.f, LENDER, 'a', "wr_bytes"), g.a);
		}
		writes(&g);
		fake_forget(g.f);
	}
	fake_free(g.f);
}

static void what_cannot_be_taken_changes_nothing(void **state)
{
	static const char *const text[] = {
		"needs a restart: chassis 'b' of host 'host0': in is a slot of the host, was a",
		"needs a restart: device host0/dev1: in is b, was a slot of the host",
		("host 'host0', adapter 0 is another one, and this one is in use (maps: 1, "
		 "requester entries: 1); when its programs have ended that is right")};
	struct emu_change *c = NULL;
	struct rig g;

	(void)state;
	set_up(&g);
	for (unsigned i = 0; i < 3; i++) {
		read_next(g.f, &g.n);
		arrange(&g.n, LENDER, "cab");
		if (i == 0)
			g.n.chassis[LENDER][2].in = 0;
		if (i == 1)
			g.n.device[LENDER][1].in = 3;
		if (i == 2)
			g.n.host[LENDER].adapter[0].in = 0;
		assert_int_equal(reload(&g.n), i == 2 ? -EBUSY : -EOPNOTSUPP);
		assert_string_equal(g.n.err.text, text[i]);
	}
	read_next(g.f, &g.n);
	arrange(&g.n, LENDER, "cab");
	add(&g.n, LENDER)->in = 1;
	measure(&g.n);
	for (unsigned try = 0; try < 2; try++) {
		assert_int_equal(emu_room_prepare(g.f->room, &g.n.topo, try, &c, &g.n.err), 0);
		emu_room_drop(g.f->room, c);
	}
	assert_int_equal(g.f->n_events, 0);
	assert_int_equal(g.f->topo.host[LENDER].n_chassis, 2);
	writes(&g);
	fake_free(g.f);
}

/* Machines refer to hosts and adapters, which stay where they are. */
static void also_where_machines_are(void **state)
{
	struct fake *f = fake_new_mixed(0);
	const struct sio_topo_host *h = &f->topo.host[LENDER];
	uint64_t owner, mem;
	uint32_t word = 0x5eed;
	struct next n;

	(void)state;
	fake_up(f, LENDER);
	owner = fake_owner(f, LENDER);
	mem = fake_alloc(f, LENDER, owner, 0x1000);
	for (unsigned turn = 0; turn < 6; turn++) {
		struct sio_evt_dmamap map;
		struct emu_dev *dev;

		read_next(f, &n);
		n.host[MACHINE] = f->topo.host[MACHINE];
		n.topo.machine = &n.host[MACHINE];
		if (turn % 2 == 0) {
			arrange(&n, LENDER, turn % 4 ? "bca" : "ac");
			add(&n, LENDER)->in = number(&n.host[LENDER], 'c');
		} else {
			take_out(&n, LENDER, 3);
			arrange(&n, LENDER, turn % 4 == 1 ? "ba" : "");
		}
		assert_int_equal(reload(&n), 0);
		assert_ptr_equal(&f->topo.host[LENDER], h);
		if (turn % 2)
			continue;
		fake_open(f, LENDER, ADDED);
		map = fake_dmamap(f, LENDER, owner, ADDED, SIO_KIND_MEM, mem, 0x1000, 3);
		dev = fake_dev(f, LENDER, 3);
		assert_int_equal(dev->write(dev, map.iova, &word, sizeof(word)), 0);
		assert_int_equal(passed(f, LENDER, 'c', "wr_bytes"), sizeof(word));
		assert_int_equal(passed(f, LENDER, 'a', "wr_bytes"), 0);
		assert_int_equal(fake_end(f, LENDER, SIO_OP_DMAUNMAP, map.id, owner), 0);
	}
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_that_stay_count_on_in_any_order),
		cmocka_unit_test(one_comes_with_a_device_and_goes_with_it),
		cmocka_unit_test(an_engine_goes_on_over_its_adapters_chassis),
		cmocka_unit_test(another_range_is_in_force_at_once),
		cmocka_unit_test(what_cannot_be_taken_changes_nothing),
		cmocka_unit_test(also_where_machines_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
