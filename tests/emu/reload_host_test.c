/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts come and go by another file while the room runs: the others keep their numbers, their
 * memory and their paths, and whoever had something of one that goes has nothing of the next one.
 */
#include "next.h"

#define NEW 3 /* number of a host that only the next file has */

/* As the client, at the same switch; with a device, and in two chassis. */
static void come(struct next *n)
{
	struct sio_topo_host *h = &n->host[NEW];

	*h = n->host[CLIENT];
	snprintf(h->name, sizeof(h->name), "new");
	h->node = NODE(NEW);
	h->device = n->device[NEW];
	h->n_devices = 0;
	add(n, NEW);
	n->topo.n_hosts = NEW + 1;
}

/* As sio_topology_align() leaves it. */
static void go(struct next *n, unsigned host)
{
	n->host[host] = (struct sio_topo_host){.node = NODE(host)};
}

static const struct sio_status_page *page(struct fake *f, unsigned host)
{
	return f->room->host[host].status.data;
}

/* Where @host's page has the path to @peer; all hosts have one adapter. */
static unsigned place(struct fake *f, unsigned host, unsigned peer)
{
	const struct sio_status_page *p = page(f, host);
	unsigned at = 0;

	while (at < p->count && p->path[at].peer_node != NODE(peer))
		at++;
	return at;
}

static void expect_link(struct fake *f, unsigned host, unsigned peer, uint32_t state)
{
	struct fake_event *e = fake_take(f, host, SIO_EV_LINK);

	while (e && e->u.link.peer_node != NODE(peer))
		e = fake_take(f, host, SIO_EV_LINK);
	assert_non_null(e);
	assert_int_equal(e->u.link.state, state);
	assert_int_equal(page(f, host)->path[place(f, host, peer)].state, state);
}

/* The lender's memory, as @peer maps it; what it maps is written by a device of it. */
struct shared {
	uint64_t owner, mem, theirs;
	struct sio_evt_grant grant;
	struct sio_evt_map map;
	struct sio_evt_dmamap dma; /* of a test's device */
};

static void share(struct fake *f, unsigned peer, struct shared *s)
{
	s->owner = fake_owner(f, LENDER);
	s->mem = fake_alloc(f, LENDER, s->owner, 0x1000);
	s->grant = fake_grant(f, LENDER, s->owner, s->mem, 0x1000, peer);
	s->theirs = fake_owner(f, peer);
	s->map = fake_map(f, peer, s->theirs, LENDER, &s->grant);
}

static void one_comes_works_goes_and_comes_again(void **state)
{
	struct fake *f = fake_new(1);
	unsigned at[2], count;
	struct shared kept, lost, again;
	struct next n;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		fake_up(f, i);
	share(f, CLIENT, &kept);
	at[0] = place(f, LENDER, CLIENT);
	count = page(f, LENDER)->count;
	for (unsigned turn = 0; turn < 25; turn++) {
		read_next(f, &n);
		come(&n);
		fake_forget(f);
		assert_int_equal(reload(&n), 0);
		/* It is there, off: nobody hears of it, and it has its path already. */
		assert_null(fake_take(f, LENDER, SIO_EV_LINK));
		assert_int_equal(page(f, LENDER)->count, count + 1);
		at[1] = place(f, LENDER, NEW);
		assert_int_equal(at[1], count);
		assert_int_equal(page(f, LENDER)->path[at[1]].state, SIO_LINK_DOWN);
		fake_up(f, NEW);
		expect_link(f, LENDER, NEW, SIO_LINK_UP);
		share(f, NEW, turn ? &again : &lost);
		fake_open(f, NEW, ADDED);
		emu_room_step(f->room, 1);
		assert_int_equal(fake_model(f, NEW, 0)->steps, 1);

		read_next(f, &n);
		go(&n, NEW);
		fake_forget(f);
		assert_int_equal(reload(&n), 0);
		expect_link(f, LENDER, NEW, SIO_LINK_DOWN);
		assert_null(fake_take(f, LENDER, SIO_EV_DEVICE_GONE));
		assert_int_equal(emu_room_start(f->room, NEW), 0);
		assert_int_equal(page(f, LENDER)->count, count + 1);
		assert_int_equal(place(f, LENDER, CLIENT), at[0]);
	}
	/* The next one is in no start of one before: what was granted to that is not its. */
	read_next(f, &n);
	come(&n);
	assert_int_equal(reload(&n), 0);
	fake_up(f, NEW);
	assert_int_equal(emu_room_start(f->room, NEW), 26);
	/* Those that stayed have what they had. */
	assert_int_equal(fake_end(f, CLIENT, SIO_OP_UNMAP, kept.map.id, kept.theirs), 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, lost.grant.id, lost.owner), 0);
	fake_free(f);
}

/* Windows of those that stay lead nowhere when the host behind them is gone, nor to the next. */
static void what_was_granted_by_one_that_goes_is_gone(void **state)
{
	struct fake *f = fake_new(1);
	struct sio_evt_dmamap dma;
	struct sio_evt_grant grant;
	struct sio_evt_map map;
	uint64_t owner, theirs, mem;
	uint32_t word = 0x5eed;
	struct emu_dev *dev;
	struct next n;

	(void)state;
	fake_up(f, LENDER);
	read_next(f, &n);
	come(&n);
	assert_int_equal(reload(&n), 0);
	fake_up(f, NEW);
	theirs = fake_owner(f, NEW);
	mem = fake_alloc(f, NEW, theirs, 0x1000);
	grant = fake_grant(f, NEW, theirs, mem, 0x1000, LENDER);
	owner = fake_owner(f, LENDER);
	map = fake_map(f, LENDER, owner, NEW, &grant);
	fake_open(f, LENDER, 0);
	fake_requester(f, LENDER, owner, 0);
	dma = fake_dmamap(f, LENDER, owner, 0, SIO_KIND_MAP, map.id, 0x1000, 3);
	dev = fake_dev(f, LENDER, 0);
	assert_int_equal(dev->write(dev, dma.iova, &word, sizeof(word)), 0);
	assert_memory_equal(fake_data(f, NEW, mem), &word, sizeof(word));
	for (unsigned turn = 0; turn < 2; turn++) {
		read_next(f, &n);
		if (turn)
			come(&n);
		else
			go(&n, NEW);
		assert_int_equal(reload(&n), 0);
		if (turn)
			fake_up(f, NEW);
		assert_int_not_equal(dev->write(dev, dma.iova, &word, sizeof(word)), 0);
	}
	fake_free(f);
}

static void what_cannot_be_taken_changes_nothing(void **state)
{
	struct fake *f = fake_new(0);
	struct emu_change *c = NULL;
	unsigned count;
	struct next n;

	(void)state;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	fake_forget(f);
	count = page(f, LENDER)->count;
	read_next(f, &n);
	come(&n);
	strcpy(n.device[NEW][0].type, "unknown");
	assert_int_equal(reload(&n), -EINVAL);
	assert_non_null(strstr(n.err.text, "no model of type 'unknown'"));
	read_next(f, &n);
	come(&n);
	n.host[NEW].real = true;
	assert_int_equal(reload(&n), -EOPNOTSUPP);
	read_next(f, &n);
	strcpy(n.host[CLIENT].name, "another");
	assert_int_equal(reload(&n), -EOPNOTSUPP);
	assert_non_null(strstr(n.err.text, "host 'another' has node id 8, which is that of host "
					   "'host1'; another one is right"));
	/* And who changed his mind: in a place that nobody had, and in one that is vacant. */
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned try = 0; try < 2; try++) {
			read_next(f, &n);
			come(&n);
			go(&n, CLIENT);
			assert_int_equal(emu_room_prepare(f->room, &n.topo, try, &c, &n.err), 0);
			emu_room_drop(f->room, c);
		}
		assert_int_equal(f->n_events, 0);
		assert_int_equal(page(f, LENDER)->count, count + turn);
		assert_true(emu_room_start(f->room, CLIENT) > 0);
		for (unsigned way = 0; turn == 0 && way < 2; way++) {
			read_next(f, &n);
			if (way)
				go(&n, NEW);
			else
				come(&n);
			assert_int_equal(reload(&n), 0);
		}
	}
	fake_free(f);
}

static void not_where_machines_are(void **state)
{
	struct fake *f = fake_new_mixed(0);
	struct next n;

	(void)state;
	read_next(f, &n);
	come(&n);
	n.host[NEW + 1] = f->topo.host[MACHINE];
	n.topo.machine = &n.host[NEW + 1];
	assert_int_equal(reload(&n), -EOPNOTSUPP);
	assert_non_null(strstr(n.err.text,
			       "host 'new' is new; hosts come and go in clusters without "
			       "machines"));
	fake_free(f);
}

static void in_chassis(struct sio_topology *t, void *arg)
{
	(void)arg;
	t->host[LENDER].device[0].in = 1;
	t->host[CLIENT].device[0].in = 1;
}

/* Their counts lie behind one another: a host that comes with chassis moves those of others. */
static void links_go_on_counting(void **state)
{
	static const struct {
		unsigned host;
		uint32_t kind;
	} link[] = {{LENDER, SIO_STATS_CHASSIS},
		    {CLIENT, SIO_STATS_CHASSIS},
		    {LENDER, SIO_STATS_TRUNK}};
	struct fake *f = fake_new_tree(0, 1, in_chassis, NULL);
	uint64_t before[3];
	struct shared s;
	struct next n;

	(void)state;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	share(f, CLIENT, &s);
	fake_open(f, CLIENT, 0);
	fake_requester(f, CLIENT, s.theirs, 0);
	s.dma = fake_dmamap(f, CLIENT, s.theirs, 0, SIO_KIND_MAP, s.map.id, 0x1000, 3);
	for (unsigned turn = 0; turn < 3; turn++) {
		struct emu_dev *dev = fake_dev(f, CLIENT, 0);

		assert_int_equal(dev->write(dev, s.dma.iova, &turn, sizeof(turn)), 0);
		for (unsigned i = 0; i < 3; i++) {
			uint64_t now = fake_counter(f, link[i].host, link[i].kind, 0, "wr_bytes");

			assert_true(turn == 0 || now == before[i] + (i > 0) * sizeof(turn));
			before[i] = now;
		}
		assert_true(before[1] > 0 && before[2] > 0);
		read_next(f, &n);
		if (turn)
			go(&n, NEW);
		else
			come(&n);
		assert_int_equal(reload(&n), 0);
	}
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_comes_works_goes_and_comes_again),
		cmocka_unit_test(what_was_granted_by_one_that_goes_is_gone),
		cmocka_unit_test(what_cannot_be_taken_changes_nothing),
		cmocka_unit_test(not_where_machines_are),
		cmocka_unit_test(links_go_on_counting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
