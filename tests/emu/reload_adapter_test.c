/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adapters of hosts that stay come and go by another file while the room runs, or are other ones:
 * what goes over those that stay does not notice, what is left of one that goes leads nowhere, and
 * another one has its number only when nothing is.
 */
#include "channel.h"
#include "next.h"

#define SECOND 1 /* number of the client's adapter that comes and goes */

/* What the client has of the lender's memory by one adapter. */
struct window {
	struct sio_evt_grant grant;
	struct sio_evt_map map;
	struct sio_evt_dmamap dma;
	uint64_t requester;
};

/* The client's device 0 writes to the lender's memory, through either adapter. */
struct rig {
	struct fake *f;
	struct next n;
	uint64_t owner, mem, theirs;
	struct window zero; /* by the client's first adapter */
	struct sio_evt_dmamap first;
	uint32_t word;
};

static int try_grant(struct fake *f, unsigned host, uint64_t owner, uint64_t mem, unsigned adapter,
		     unsigned peer, unsigned peer_adapter, struct sio_evt_grant *ret)
{
	struct sio_req_grant req = {.h.owner = owner,
				    .source_kind = SIO_KIND_MEM,
				    .access = 3,
				    .adapter = adapter,
				    .source = mem,
				    .length = 0x1000,
				    .peer_node = NODE(peer),
				    .peer_adapter = peer_adapter};

	return ask(f, host, &req, SIO_OP_GRANT, ret);
}

static int try_map(struct fake *f, unsigned host, uint64_t owner, unsigned adapter, unsigned peer,
		   unsigned peer_adapter, const struct sio_evt_grant *g, struct sio_evt_map *ret)
{
	struct sio_req_map req = fake_map_request(peer, g);

	req.h.owner = owner;
	req.adapter = adapter;
	req.peer_adapter = peer_adapter;
	return ask(f, host, &req, SIO_OP_MAP, ret);
}

static uint64_t add_requester(struct rig *g, unsigned adapter)
{
	struct sio_req_requester_add req = {.h.owner = g->theirs,
					    .adapter = adapter,
					    .direction = SIO_REQUESTER_OUT,
					    .device = DEV(CLIENT, 0)};
	struct sio_evt_requester_add evt;

	assert_int_equal(ask(g->f, CLIENT, &req, SIO_OP_REQUESTER_ADD, &evt), 0);
	return evt.id;
}

static void open_window(struct rig *g, unsigned adapter, struct window *w)
{
	assert_int_equal(try_grant(g->f, LENDER, g->owner, g->mem, 0, CLIENT, adapter, &w->grant),
			 0);
	assert_int_equal(try_map(g->f, CLIENT, g->theirs, adapter, LENDER, 0, &w->grant, &w->map),
			 0);
	w->requester = add_requester(g, adapter);
	w->dma = fake_dmamap(g->f, CLIENT, g->theirs, 0, SIO_KIND_MAP, w->map.id, 0x1000, 3);
}

static void close_window(struct rig *g, const struct window *w)
{
	assert_int_equal(fake_end(g->f, CLIENT, SIO_OP_DMAUNMAP, w->dma.id, g->theirs), 0);
	assert_int_equal(fake_end(g->f, CLIENT, SIO_OP_REQUESTER_DEL, w->requester, g->theirs), 0);
	assert_int_equal(fake_end(g->f, CLIENT, SIO_OP_UNMAP, w->map.id, g->theirs), 0);
	assert_int_equal(fake_end(g->f, LENDER, SIO_OP_UNGRANT, w->grant.id, g->owner), 0);
}

static void set_up(struct rig *g, unsigned iommu)
{
	*g = (struct rig){.f = fake_new(iommu)};
	for (unsigned i = 0; i < 3; i++)
		fake_up(g->f, i);
	g->owner = fake_owner(g->f, LENDER);
	g->mem = fake_alloc(g->f, LENDER, g->owner, 0x1000);
	g->theirs = fake_owner(g->f, CLIENT);
	fake_open(g->f, CLIENT, 0);
	open_window(g, 0, &g->zero);
	g->first = g->zero.dma;
	fake_forget(g->f);
}

static bool arrives(struct rig *g, const struct sio_evt_dmamap *dma)
{
	struct emu_dev *dev = fake_dev(g->f, CLIENT, 0);

	g->word++;
	if (dev->write(dev, dma->iova, &g->word, sizeof(g->word)) != 0)
		return false;
	assert_memory_equal(fake_data(g->f, LENDER, g->mem), &g->word, sizeof(g->word));
	return true;
}

/* One more of @host, at the switch. */
static struct sio_topo_adapter *add_adapter(struct next *n, unsigned host)
{
	struct sio_topo_host *h = &n->host[host];
	struct sio_topo_adapter *a = &h->adapter[h->n_adapters++];

	*a = h->adapter[0];
	a->window_base += 0x10000000ull;
	a->bdf += 8;
	return a;
}

static int comes(struct rig *g)
{
	read_next(g->f, &g->n);
	add_adapter(&g->n, CLIENT);
	fake_forget(g->f);
	return reload(&g->n);
}

static int goes(struct rig *g)
{
	read_next(g->f, &g->n);
	g->n.host[CLIENT].n_adapters--;
	fake_forget(g->f);
	return reload(&g->n);
}

static int ask_adapter(struct rig *g, struct sio_evt_adapter *ret)
{
	struct sio_req_adapter req = {.index = SECOND};

	return ask(g->f, CLIENT, &req, SIO_OP_ADAPTER, ret);
}

/* The next LINK event of @host is that of a path, or of the adapter itself, in that state. */
static void expect_link(struct rig *g, unsigned host, unsigned adapter, unsigned peer,
			unsigned peer_adapter, uint32_t state)
{
	struct fake_event *e = fake_take(g->f, host, SIO_EV_LINK);

	assert_non_null(e);
	assert_int_equal(e->u.link.adapter, adapter);
	assert_int_equal(e->u.link.peer_node, NODE(peer));
	assert_int_equal(e->u.link.peer_adapter, peer_adapter);
	assert_int_equal(e->u.link.state, state);
}

/* Of the client's second adapter: first it, then its paths to the other two hosts. */
static void expect_all(struct rig *g, uint32_t state)
{
	expect_link(g, CLIENT, SECOND, CLIENT, SECOND, state);
	expect_link(g, CLIENT, SECOND, LENDER, 0, state);
	expect_link(g, CLIENT, SECOND, OTHER, 0, state);
	assert_null(fake_take(g->f, CLIENT, SIO_EV_LINK));
	expect_link(g, LENDER, 0, CLIENT, SECOND, state);
	assert_null(fake_take(g->f, LENDER, SIO_EV_LINK));
}

static uint32_t page_state(struct rig *g)
{
	const struct sio_status_page *p = g->f->room->host[CLIENT].status.data;

	for (unsigned i = 0; i < p->count; i++)
		if (p->path[i].adapter == SECOND && p->path[i].peer_node == NODE(LENDER))
			return p->path[i].state;
	return UINT32_MAX;
}

static void one_comes_works_and_goes(void **unused)
{
	struct sio_evt_adapter evt;
	struct sio_evt_map map;
	struct window w;
	struct rig g;

	(void)unused;
	for (unsigned iommu = 0; iommu < 8; iommu += 7) {
		set_up(&g, iommu);
		assert_int_equal(ask_adapter(&g, &evt), -ENODEV);
		for (unsigned turn = 0; turn < 8; turn++) {
			assert_int_equal(comes(&g), 0);
			expect_all(&g, SIO_LINK_UP);
			assert_int_equal(page_state(&g), SIO_LINK_UP);
			assert_int_equal(ask_adapter(&g, &evt), 0);
			assert_true(evt.link_up);
			assert_int_equal(evt.entries_free, evt.entries_total);
			open_window(&g, SECOND, &w);
			assert_true(arrives(&g, &w.dma));
			assert_int_equal(
				fake_counter(g.f, CLIENT, SIO_KIND_ADAPTER, SECOND, "wr_bytes"),
				sizeof(g.word));
			assert_true(arrives(&g, &g.first));
			if (turn % 2) /* nothing is left of it */
				close_window(&g, &w);
			assert_int_equal(goes(&g), 0);
			expect_all(&g, SIO_LINK_DOWN);
			assert_int_equal(page_state(&g), SIO_LINK_DOWN);
			assert_int_equal(ask_adapter(&g, &evt), -ENODEV);
			assert_true(arrives(&g, &g.first));
			assert_int_equal(
				try_map(g.f, CLIENT, g.theirs, SECOND, LENDER, 0, &w.grant, &map),
				-ENODEV);
			assert_int_equal(g.f->room->host[CLIENT].n_adapters, 2 - turn % 2);
			if (turn % 2)
				continue;
			assert_false(arrives(&g, &w.dma));
			assert_int_equal(comes(&g), -EBUSY);
			assert_non_null(strstr(g.n.err.text,
					       "host 'host1', adapter 1 is new, and of the "
					       "one of before something is left (maps: 1, "
					       "requester entries: 1)"));
			assert_int_equal(g.f->n_events, 0);
			close_window(&g, &w);
		}
		fake_free(g.f);
	}
}

static int changes(struct rig *g, uint32_t entries)
{
	struct sio_topo_adapter *a;

	read_next(g->f, &g->n);
	a = &g->n.host[CLIENT].adapter[SECOND];
	a->lut_entries = entries;
	a->window_size = (uint64_t)entries << 16;
	a->requesters = entries / 2;
	fake_forget(g->f);
	return reload(&g->n);
}

/* As by a cable that is pulled out, and put in again; nobody used it. */
static void an_unused_one_is_another_one(void **unused)
{
	struct sio_evt_adapter evt;
	struct window w;
	struct rig g;

	(void)unused;
	set_up(&g, 7);
	assert_int_equal(comes(&g), 0);
	for (unsigned turn = 0; turn < 6; turn++) {
		uint32_t entries = 8u << turn % 3;
		struct fake_event *e;
		unsigned n = 0;

		assert_int_equal(changes(&g, entries), 0);
		for (; (e = fake_take(g.f, CLIENT, SIO_EV_LINK)); n++) {
			assert_int_equal(e->u.link.adapter, SECOND);
			assert_int_equal(e->u.link.state, n < 3 ? SIO_LINK_DOWN : SIO_LINK_UP);
		}
		assert_int_equal(n, 6);
		assert_int_equal(ask_adapter(&g, &evt), 0);
		assert_int_equal(evt.entries_total, entries);
		assert_int_equal(evt.window_size, (uint64_t)entries << 16);
		assert_int_equal(evt.requesters_total, entries / 2);
		open_window(&g, SECOND, &w);
		assert_true(arrives(&g, &w.dma));
		assert_int_equal(changes(&g, 64), -EBUSY);
		assert_non_null(strstr(g.n.err.text, "host 'host1', adapter 1 is another one, and "
						     "this one is in use (maps: 1, requester "
						     "entries: 1); when its programs have ended "
						     "that is right"));
		assert_true(arrives(&g, &w.dma));
		assert_true(arrives(&g, &g.first));
		close_window(&g, &w);
	}
	/* One whose cable is out stays so. */
	assert_int_equal(emu_room_link(g.f->room, CLIENT, SECOND, false), 0);
	assert_int_equal(changes(&g, 64), 0);
	assert_int_equal(ask_adapter(&g, &evt), 0);
	assert_false(evt.link_up);
	assert_int_equal(evt.entries_total, 64);
	fake_free(g.f);
}

/* Others' windows onto it would lead to what the next one of its number lets in. */
static void what_peers_have_of_it_counts(void **unused)
{
	struct sio_evt_grant grant;
	struct sio_evt_map map;
	struct rig g;
	uint64_t mem;

	(void)unused;
	set_up(&g, 7);
	assert_int_equal(comes(&g), 0);
	mem = fake_alloc(g.f, CLIENT, g.theirs, 0x1000);
	assert_int_equal(try_grant(g.f, CLIENT, g.theirs, mem, SECOND, LENDER, 0, &grant), 0);
	assert_int_equal(try_map(g.f, LENDER, g.owner, 0, CLIENT, SECOND, &grant, &map), 0);
	assert_int_equal(fake_end(g.f, CLIENT, SIO_OP_UNGRANT, grant.id, g.theirs), 0);
	assert_int_equal(changes(&g, 8), -EBUSY);
	assert_non_null(strstr(g.n.err.text, "in use (maps of other hosts: 1)"));
	assert_int_equal(goes(&g), 0);
	assert_int_equal(comes(&g), -EBUSY);
	assert_int_equal(fake_end(g.f, LENDER, SIO_OP_UNMAP, map.id, g.owner), 0);
	assert_int_equal(comes(&g), 0);
	fake_free(g.f);
}

static void a_host_that_is_off_has_it_when_it_starts(void **unused)
{
	struct sio_evt_adapter evt;
	struct window w;
	struct rig g;

	(void)unused;
	set_up(&g, 2);
	for (unsigned turn = 0; turn < 4; turn++) {
		emu_room_host_down(g.f->room, CLIENT);
		assert_int_equal(turn % 2 ? goes(&g) : comes(&g), 0);
		if (turn == 0)
			assert_int_equal(changes(&g, 8), 0);
		fake_up(g.f, CLIENT);
		assert_int_equal(ask_adapter(&g, &evt), turn % 2 ? -ENODEV : 0);
		if (turn % 2)
			continue;
		assert_int_equal(evt.entries_total, turn ? 16 : 8);
		g.theirs = fake_owner(g.f, CLIENT);
		fake_open(g.f, CLIENT, 0);
		open_window(&g, SECOND, &w);
		assert_true(arrives(&g, &w.dma));
	}
	/* What is left of one ends with its host. */
	assert_int_equal(comes(&g), 0);
	g.theirs = fake_owner(g.f, CLIENT);
	fake_open(g.f, CLIENT, 0);
	open_window(&g, SECOND, &w);
	assert_int_equal(goes(&g), 0);
	assert_int_equal(g.f->room->host[CLIENT].n_adapters, 2);
	emu_room_host_down(g.f->room, CLIENT);
	assert_int_equal(g.f->room->host[CLIENT].n_adapters, 1);
	assert_int_equal(comes(&g), 0);
	fake_free(g.f);
}

/* Its channels fail what they are told to copy, until their program ends them. */
static void the_engine_of_one_that_goes(void **unused)
{
	struct sio_req_dma req = {.adapter = SECOND};
	struct sio_req_dma_attach attach_req = {.target_kind = SIO_KIND_MEM, .access = 3};
	struct sio_evt_dma_attach range;
	struct sio_evt_grant grant;
	struct sio_evt_map map;
	struct sio_evt_dma made;
	struct dma d;
	struct next n;

	(void)unused;
	dma_init(&d, 7);
	read_next(d.f, &n);
	add_adapter(&n, CLIENT);
	n.host[CLIENT].adapter[SECOND].window_base = 0x5000000000ull;
	assert_int_equal(reload(&n), 0);
	req.h.owner = attach_req.h.owner = d.owner;
	assert_int_equal(ask(d.f, CLIENT, &req, SIO_OP_DMA, &made), 0);
	assert_int_equal(try_grant(d.f, LENDER, 0, d.remote_mem, 0, CLIENT, SECOND, &grant), 0);
	assert_int_equal(try_map(d.f, CLIENT, d.owner, SECOND, LENDER, 0, &grant, &map), 0);
	for (unsigned i = 0; i < 2; i++) {
		attach_req.channel = made.id;
		attach_req.length = 0x1000;
		attach_req.target_kind = i ? SIO_KIND_MAP : SIO_KIND_MEM;
		attach_req.target = i ? map.id : d.local_mem;
		assert_int_equal(ask(d.f, CLIENT, &attach_req, SIO_OP_DMA_ATTACH, &range), 0);
	}
	for (unsigned turn = 0; turn < 2; turn++) {
		struct dma second = d;

		second.channel = made.id;
		second.ring = channel_of(&second)->mem.data;
		memset(d.there, 0, 0x1000);
		put(&second, 0, 0, 1, 0, 0x1000, true);
		work(&second);
		assert_int_equal(memcmp(d.there, d.here, 0x1000) == 0, turn == 0);
		put(&d, d.local, 0, d.remote, 0, SIZE, true);
		work(&d);
		assert_memory_equal(d.there, d.here, SIZE);
		read_next(d.f, &n);
		n.host[CLIENT].n_adapters = 1;
		assert_int_equal(reload(&n), 0);
	}
	read_next(d.f, &n);
	add_adapter(&n, CLIENT);
	assert_int_equal(reload(&n), -EBUSY);
	assert_non_null(strstr(n.err.text, "DMA channels: 1"));
	assert_int_equal(fake_end(d.f, CLIENT, SIO_OP_DMA_FREE, made.id, d.owner), 0);
	assert_int_equal(fake_end(d.f, CLIENT, SIO_OP_UNMAP, map.id, d.owner), 0);
	assert_int_equal(reload(&n), 0);
	fake_free(d.f);
}

static void what_cannot_be_taken_changes_nothing(void **unused)
{
	struct emu_change *c = NULL;
	struct sio_evt_adapter evt;
	struct sio_evt_grant grant;
	struct window w;
	struct rig g;

	(void)unused;
	set_up(&g, 7);
	assert_int_equal(comes(&g), 0);
	/* A third one, and another second one; nobody begins to use that meanwhile. */
	read_next(g.f, &g.n);
	add_adapter(&g.n, CLIENT)->window_base = 0x5000000000ull;
	g.n.host[CLIENT].adapter[SECOND].requesters = 64;
	measure(&g.n);
	fake_forget(g.f);
	for (unsigned try = 0; try < 2; try++) {
		assert_int_equal(emu_room_prepare(g.f->room, &g.n.topo, try, &c, &g.n.err), 0);
		if (!try) {
			assert_int_equal(
				try_grant(g.f, LENDER, g.owner, g.mem, 0, CLIENT, SECOND, &grant),
				0);
			assert_int_equal(
				try_map(g.f, CLIENT, g.theirs, SECOND, LENDER, 0, &grant, &w.map),
				-EBUSY);
			assert_int_equal(fake_end(g.f, LENDER, SIO_OP_UNGRANT, grant.id, g.owner),
					 0);
		}
		emu_room_drop(g.f->room, c);
	}
	assert_int_equal(g.f->n_events, 0);
	assert_int_equal(g.f->room->host[CLIENT].n_adapters, 2);
	assert_int_equal(ask_adapter(&g, &evt), 0);
	assert_int_equal(evt.requesters_total, 4);
	open_window(&g, SECOND, &w);
	assert_true(arrives(&g, &w.dma));
	/* One whose window would lie where something is left of the one that goes. */
	assert_int_equal(goes(&g), 0);
	read_next(g.f, &g.n);
	g.n.host[CLIENT].adapter[0].window_base += 0x10000000ull;
	assert_int_equal(reload(&g.n), -EBUSY);
	assert_non_null(strstr(g.n.err.text, "adapter 0 is another one, and this one is in use"));
	assert_true(arrives(&g, &g.first));
	fake_free(g.f);
}

/* One file leaves out the second adapter, and has the first one's window where its was. */
static void one_window_for_two(struct rig *g)
{
	struct sio_topo_host *h;

	read_next(g->f, &g->n);
	h = &g->n.host[CLIENT];
	h->adapter[0].window_base = h->adapter[SECOND].window_base;
	h->n_adapters--;
}

static void a_window_in_the_place_of_one_that_goes(void **unused)
{
	(void)unused;
	for (unsigned used = 0; used < 2; used++) {
		struct emu_change *c = NULL;
		struct sio_evt_grant grant;
		struct sio_evt_map map;
		struct window w;
		struct rig g;

		set_up(&g, 7);
		assert_int_equal(comes(&g), 0);
		close_window(&g, &g.zero);
		if (used) {
			open_window(&g, SECOND, &w);
			one_window_for_two(&g);
			assert_int_equal(reload(&g.n), -EBUSY);
			assert_non_null(strstr(g.n.err.text,
					       "host 'host1', adapter 0: its window would lie "
					       "where that of adapter 1 was, and of adapter 1 "
					       "something is left"));
			assert_true(arrives(&g, &w.dma));
			close_window(&g, &w);
		}
		/* Until the change nobody begins to use the one that goes. */
		one_window_for_two(&g);
		measure(&g.n);
		assert_int_equal(emu_room_prepare(g.f->room, &g.n.topo, false, &c, &g.n.err), 0);
		assert_int_equal(try_grant(g.f, LENDER, g.owner, g.mem, 0, CLIENT, SECOND, &grant),
				 0);
		assert_int_equal(try_map(g.f, CLIENT, g.theirs, SECOND, LENDER, 0, &grant, &map),
				 -EBUSY);
		emu_room_drop(g.f->room, c);
		assert_int_equal(try_map(g.f, CLIENT, g.theirs, SECOND, LENDER, 0, &grant, &map),
				 0);
		assert_int_equal(fake_end(g.f, CLIENT, SIO_OP_UNMAP, map.id, g.theirs), 0);
		assert_int_equal(fake_end(g.f, LENDER, SIO_OP_UNGRANT, grant.id, g.owner), 0);
		one_window_for_two(&g);
		assert_int_equal(reload(&g.n), 0);
		assert_int_equal(g.f->room->host[CLIENT].n_adapters, 1);
		open_window(&g, 0, &w);
		assert_true(arrives(&g, &w.dma));
		fake_free(g.f);
	}
}

/* One file leaves out the second adapter, and has a new device where its window was. */
static int a_device_for_it(struct rig *g)
{
	struct sio_topo_host *h;

	read_next(g->f, &g->n);
	h = &g->n.host[CLIENT];
	add(&g->n, CLIENT)->bar_base = h->adapter[SECOND].window_base;
	h->n_adapters--;
	return reload(&g->n);
}

static void a_device_in_the_place_of_one_that_goes(void **unused)
{
	struct sio_evt_grant grant;
	struct emu_change *c = NULL;
	struct sio_evt_map map;
	struct window w;
	struct rig g;

	(void)unused;
	set_up(&g, 7);
	assert_int_equal(comes(&g), 0);
	open_window(&g, SECOND, &w);
	assert_int_equal(a_device_for_it(&g), -EBUSY);
	assert_non_null(
		strstr(g.n.err.text,
		       "device host1/added: its BARs would lie where the window of adapter 1 "
		       "was, and of adapter 1 something is left"));
	assert_true(arrives(&g, &w.dma));
	/* Nor in a later file. */
	assert_int_equal(goes(&g), 0);
	read_next(g.f, &g.n);
	add(&g.n, CLIENT)->bar_base = g.f->room->host[CLIENT].adapter[SECOND].topo->window_base;
	assert_int_equal(reload(&g.n), -EBUSY);
	close_window(&g, &w);
	/* Until the change nobody begins to use it, and when that is dropped somebody does. */
	assert_int_equal(comes(&g), 0);
	read_next(g.f, &g.n);
	add(&g.n, CLIENT)->bar_base = g.n.host[CLIENT].adapter[SECOND].window_base;
	g.n.host[CLIENT].n_adapters--;
	measure(&g.n);
	assert_int_equal(emu_room_prepare(g.f->room, &g.n.topo, false, &c, &g.n.err), 0);
	assert_int_equal(try_grant(g.f, LENDER, g.owner, g.mem, 0, CLIENT, SECOND, &grant), 0);
	assert_int_equal(try_map(g.f, CLIENT, g.theirs, SECOND, LENDER, 0, &grant, &map), -EBUSY);
	emu_room_drop(g.f->room, c);
	assert_int_equal(fake_end(g.f, LENDER, SIO_OP_UNGRANT, grant.id, g.owner), 0);
	open_window(&g, SECOND, &w);
	close_window(&g, &w);
	assert_int_equal(a_device_for_it(&g), 0);
	assert_true(arrives(&g, &g.first));
	fake_free(g.f);
}

/* Also of one whose cable was out all the time a daemon hears that it is gone. */
static void one_without_a_cable_goes(void **unused)
{
	struct rig g;

	(void)unused;
	set_up(&g, 0);
	assert_int_equal(comes(&g), 0);
	assert_int_equal(emu_room_link(g.f->room, CLIENT, SECOND, false), 0);
	assert_int_equal(goes(&g), 0);
	expect_link(&g, CLIENT, SECOND, CLIENT, SECOND, SIO_LINK_DOWN);
	assert_null(fake_take(g.f, CLIENT, SIO_EV_LINK));
	assert_int_equal(comes(&g), 0);
	expect_all(&g, SIO_LINK_UP);
	fake_free(g.f);
}

static void not_where_machines_are(void **unused)
{
	struct fake *f = fake_new_mixed(0);
	struct next n;

	(void)unused;
	read_next(f, &n);
	n.host[MACHINE] = f->topo.host[MACHINE];
	n.topo.machine = &n.host[MACHINE];
	add_adapter(&n, CLIENT);
	assert_int_equal(reload(&n), -EOPNOTSUPP);
	assert_string_equal(n.err.text, "needs a restart: host 'host1', adapter 1 is new; adapters "
					"change in clusters without machines");
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_comes_works_and_goes),
		cmocka_unit_test(an_unused_one_is_another_one),
		cmocka_unit_test(what_peers_have_of_it_counts),
		cmocka_unit_test(a_host_that_is_off_has_it_when_it_starts),
		cmocka_unit_test(the_engine_of_one_that_goes),
		cmocka_unit_test(what_cannot_be_taken_changes_nothing),
		cmocka_unit_test(a_window_in_the_place_of_one_that_goes),
		cmocka_unit_test(a_device_in_the_place_of_one_that_goes),
		cmocka_unit_test(one_without_a_cable_goes),
		cmocka_unit_test(not_where_machines_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
