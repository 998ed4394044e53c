/* SPDX-License-Identifier: BSD-2-Clause */
/* Owners, quarantine and its end; hosts that crash and come back. */
#include "fake.h"

#define SIZE 0x2000

/* The gone event of @owner; asserts that it is there and what stays. */
static void assert_gone(struct fake *f, unsigned host, uint64_t owner, unsigned dmamaps,
			unsigned grants, unsigned maps, unsigned mems)
{
	struct fake_event *e = fake_take(f, host, SIO_EV_OWNER_GONE);
	const struct sio_evt_owner_gone *evt;

	assert_non_null(e);
	evt = &e->u.gone;
	assert_int_equal(evt->h.owner, owner);
	assert_int_equal(evt->dmamaps, dmamaps);
	assert_int_equal(evt->grants, grants);
	assert_int_equal(evt->maps, maps);
	assert_int_equal(evt->mems, mems);
	assert_int_equal(evt->bytes, mems * SIZE);
}

static void assert_end(struct fake *f, unsigned host, uint64_t owner)
{
	struct fake_event *e = fake_take(f, host, SIO_EV_OWNER_END);

	assert_non_null(e);
	assert_int_equal(e->u.h.owner, owner);
}

static void what_nothing_reaches_goes_with_its_owner(void **state)
{
	struct sio_req_irq_new irq = {0};
	struct sio_req_bar bar = {.device = DEV(LENDER, 0), .access = 3, .length = 0x1000};
	struct fake *f = fake_new(7);
	struct sio_evt_grant g;
	uint64_t w, mem;

	(void)state;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	fake_open(f, LENDER, 0);
	mem = fake_alloc(f, CLIENT, 0, SIZE);
	g = fake_grant(f, CLIENT, 0, mem, SIZE, LENDER);
	w = fake_owner(f, LENDER);
	fake_alloc(f, LENDER, w, SIZE);
	fake_map(f, LENDER, w, CLIENT, &g);
	fake_requester(f, LENDER, w, 0);
	irq.h.owner = w;
	assert_int_equal(ask_only(f, LENDER, &irq, SIO_OP_IRQ_NEW), 0);
	bar.h.owner = w;
	assert_int_equal(ask_only(f, LENDER, &bar, SIO_OP_BAR), 0);
	fake_forget(f);
	emu_room_owner_hup(f->room, LENDER, w);
	assert_gone(f, LENDER, w, 0, 0, 0, 0);
	assert_end(f, LENDER, w);
	for (uint32_t kind = SIO_KIND_OWNER; kind <= SIO_KIND_IRQ; kind++)
		assert_int_equal(fake_count(f, LENDER, kind), kind == SIO_KIND_DEVICE);
	assert_int_equal(fake_counter(f, LENDER, SIO_KIND_ADAPTER, 0, "lut_used"), 0);
	assert_int_equal(fake_counter(f, LENDER, SIO_KIND_ADAPTER, 0, "requesters_used"), 2);
	assert_int_equal(fake_counter(f, LENDER, 0, 0, "ram_free"), 1 << 20);
	emu_room_owner_hup(f->room, LENDER, w); /* a late word */
	assert_int_equal(f->n_events, 0);
	fake_free(f);
}

/* An open device is an object by its device id, however many objects its host has made. */
static void ids_are_no_device_ids(void **state)
{
	struct fake *f = fake_new(0);

	(void)state;
	fake_up(f, LENDER);
	fake_open(f, LENDER, 0);
	assert_true(fake_alloc(f, LENDER, 0, SIZE) >
		    sio_topology_fdid(SIO_MAX_NODE, SIO_TOPO_NUMBERS));
	fake_free(f);
}

static uint64_t child_of(struct fake *f, uint64_t parent)
{
	struct sio_req_owner_new req = {.h = {.owner = parent, .flags = SIO_OWNER_CHILD}};
	struct sio_evt_owner_new evt;

	assert_int_equal(ask(f, LENDER, &req, SIO_OP_OWNER_NEW, &evt), 0);
	assert_int_equal(f->answer.n_fds, 0);
	return evt.id;
}

static void children_end_with_their_parent(void **state)
{
	struct sio_req_owner_new late = {.h.flags = SIO_OWNER_CHILD};
	struct sio_req_owner_close close = {0};
	struct fake *f = fake_new(7);
	uint64_t parent, child, grandchild, of_daemon;

	(void)state;
	fake_up(f, LENDER);
	parent = fake_owner(f, LENDER);
	child = child_of(f, parent);
	grandchild = child_of(f, child);
	of_daemon = child_of(f, 0);
	fake_alloc(f, LENDER, grandchild, SIZE);
	fake_alloc(f, LENDER, of_daemon, SIZE);
	close.h.owner = child;
	child = child_of(f, parent); /* a second one: outlives the first */
	assert_int_equal(ask_only(f, LENDER, &close, SIO_OP_OWNER_CLOSE), 0);
	assert_gone(f, LENDER, grandchild, 0, 0, 0, 0);
	assert_gone(f, LENDER, close.h.owner, 0, 0, 0, 0);
	assert_end(f, LENDER, close.h.owner);
	assert_end(f, LENDER, grandchild);
	fake_alloc(f, LENDER, child, SIZE);
	fake_forget(f);
	emu_room_owner_hup(f->room, LENDER, parent);
	assert_gone(f, LENDER, child, 0, 0, 0, 0);
	assert_gone(f, LENDER, parent, 0, 0, 0, 0);
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_OWNER), 1);
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_MEM), 1);
	late.h.owner = parent;
	assert_int_equal(ask_only(f, LENDER, &late, SIO_OP_OWNER_NEW), -ENOENT);
	emu_room_host_down(f->room, LENDER); /* the daemon's child goes with the host */
	fake_up(f, LENDER);
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_OWNER), 0);
	child_of(f, 0);
	fake_free(f);
}

/*
 * The parent has nothing that the device may reach, and is forgotten; the child waits, and is
 * listed.
 */
static void a_child_may_stay_longer_than_its_parent(void **state)
{
	struct sio_req_owner_close close = {0};
	struct sio_req_list list = {.kind = SIO_KIND_OWNER};
	struct sio_evt_settle settled;
	struct sio_evt_list owners;
	uint64_t parent, child;
	struct fake *f;

	(void)state;
	for (unsigned child_first = 0; child_first < 2; child_first++) {
		f = fake_new(0);
		fake_up(f, LENDER);
		fake_open(f, LENDER, 0);
		parent = fake_owner(f, LENDER);
		child = close.h.owner = child_of(f, parent);
		fake_dmamap(f, LENDER, child, 0, SIO_KIND_MEM, fake_alloc(f, LENDER, child, SIZE),
			    SIZE, 3);
		if (child_first)
			assert_int_equal(ask_only(f, LENDER, &close, SIO_OP_OWNER_CLOSE), 0);
		fake_forget(f);
		emu_room_owner_hup(f->room, LENDER, parent);
		assert_end(f, LENDER, parent);
		assert_null(fake_take(f, LENDER, SIO_EV_OWNER_END));
		assert_int_equal(ask(f, LENDER, &list, SIO_OP_LIST, &owners), 0);
		assert_int_equal(owners.count, 1);
		assert_int_equal(owners.entry[0].id, child);
		assert_int_equal(owners.entry[0].owner, 0);
		assert_int_equal(owners.entry[0].state, SIO_STATE_QUARANTINED);
		assert_int_equal(fake_settle(f, LENDER, 0, child, &settled), 0);
		assert_int_equal(settled.mems, 1);
		assert_end(f, LENDER, child);
		assert_int_equal(fake_count(f, LENDER, SIO_KIND_OWNER), 0);
		fake_free(f);
	}
}

static void device_memory_waits_for_settle(void **state)
{
	struct fake *f = fake_new(7);
	struct sio_evt_dmamap local, remote;
	struct sio_req_alloc late = {.size = SIZE, .highest = SIO_PORT_ANY};
	struct sio_evt_settle settled;
	struct sio_evt_grant g;
	struct sio_evt_map map;
	uint64_t w, alive, mem, exported;
	struct emu_dev *dev;
	char buf[16] = "still there";

	(void)state;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	fake_open(f, LENDER, 0);
	dev = fake_dev(f, LENDER, 0);
	exported = fake_alloc(f, CLIENT, 0, SIZE);
	g = fake_grant(f, CLIENT, 0, exported, SIZE, LENDER);
	w = fake_owner(f, LENDER);
	alive = fake_owner(f, LENDER);
	mem = fake_alloc(f, LENDER, w, SIZE);
	fake_alloc(f, LENDER, w, SIZE); /* nothing refers to this one */
	map = fake_map(f, LENDER, w, CLIENT, &g);
	fake_requester(f, LENDER, w, 0);
	local = fake_dmamap(f, LENDER, w, 0, SIO_KIND_MEM, mem, SIZE, 3);
	remote = fake_dmamap(f, LENDER, w, 0, SIO_KIND_MAP, map.id, SIZE, 3);
	assert_int_equal(fake_settle(f, LENDER, 0, w, &settled), -EPERM); /* alive */
	fake_forget(f);
	emu_room_owner_hup(f->room, LENDER, w);
	assert_gone(f, LENDER, w, 2, 0, 1, 1);
	assert_null(fake_take(f, LENDER, SIO_EV_OWNER_END));
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_MEM), 1);

	/* All stays in place for the device, nothing of it can be ended or used again. */
	assert_int_equal(dev->write(dev, local.iova, buf, 16), 0);
	assert_int_equal(dev->write(dev, remote.iova, buf, 16), 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_DMAUNMAP, local.id, 0), -EPERM);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNMAP, map.id, 0), -EBUSY);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_FREE, mem, 0), -EBUSY);
	late.h.owner = w;
	assert_int_equal(ask_only(f, LENDER, &late, SIO_OP_ALLOC), -EPERM);

	/* The word about another owner or device changes nothing. */
	assert_int_equal(fake_settle(f, LENDER, 0, alive, &settled), -EPERM);
	fake_open(f, LENDER, 1);
	assert_int_equal(fake_settle(f, LENDER, 1, w, &settled), 0);
	assert_int_equal(settled.dmamaps, 0);

	assert_int_equal(fake_settle(f, LENDER, 0, w, &settled), 0);
	assert_int_equal(settled.dmamaps, 2);
	assert_int_equal(settled.maps, 1);
	assert_int_equal(settled.mems, 1);
	assert_int_equal(settled.bytes, SIZE);
	assert_end(f, LENDER, w);
	assert_int_equal(dev->write(dev, local.iova, buf, 16), -EFAULT);
	assert_int_equal(fake_settle(f, LENDER, 0, w, &settled), -ENOENT);
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_OWNER), 1);
	fake_free(f);
}

static void resets_spare_the_living(void **state)
{
	struct sio_req_reset reset = {.device = DEV(LENDER, 0)};
	struct fake *f = fake_new(0);
	struct sio_evt_settle settled;
	struct sio_evt_reset evt;
	uint64_t w[3], mem;

	(void)state;
	fake_up(f, LENDER);
	fake_open(f, LENDER, 0);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 3; i++) {
			w[i] = fake_owner(f, LENDER);
			mem = fake_alloc(f, LENDER, w[i], SIZE);
			fake_dmamap(f, LENDER, w[i], 0, SIO_KIND_MEM, mem, SIZE, 3);
		}
		emu_room_owner_hup(f->room, LENDER, w[0]);
		emu_room_owner_hup(f->room, LENDER, w[1]);
		assert_int_equal(fake_count(f, LENDER, SIO_KIND_DMAMAP), 3 + round);
		if (round == 0) {
			assert_int_equal(fake_settle(f, LENDER, 0, 0, &settled), -EINVAL);
			reset.kind = SIO_RESET_DONE;
		} else {
			reset.kind = SIO_RESET_FUNCTION;
		}
		assert_int_equal(ask(f, LENDER, &reset, SIO_OP_RESET, &evt), 0);
		assert_int_equal(evt.freed, 2);
		assert_int_equal(evt.generation, 2 + round); /* power-on was 1 */
		assert_int_equal(fake_count(f, LENDER, SIO_KIND_DMAMAP), 1 + round);
		assert_int_equal(fake_count(f, LENDER, SIO_KIND_MEM), 1 + round);
	}
	assert_int_equal(fake_model(f, LENDER, 0)->resets, 2);
	assert_int_equal(fake_model(f, LENDER, 0)->power_resets, 1);
	fake_free(f);
}

static void grants_wait_for_the_peers_word(void **state)
{
	struct sio_req_grant late = {
		.source_kind = SIO_KIND_MEM, .access = 3, .length = SIZE, .peer_node = NODE(OTHER)};
	struct fake *f = fake_new(1);
	struct sio_evt_grant g1, g2;
	uint64_t w, mem;

	(void)state;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	w = fake_owner(f, LENDER);
	mem = fake_alloc(f, LENDER, w, SIZE);
	g1 = fake_grant(f, LENDER, w, mem, SIZE, CLIENT);
	g2 = fake_grant(f, LENDER, 0, mem, SIZE, OTHER); /* the daemon's own: stays alive */
	assert_int_equal(fake_end(f, LENDER, SIO_OP_FREE, mem, 0), -EBUSY);
	fake_forget(f);
	emu_room_owner_hup(f->room, LENDER, w);
	assert_gone(f, LENDER, w, 0, 1, 0, 1);
	late.source = mem; /* it goes when nobody has a grant of it: nobody gets one any more */
	assert_int_equal(ask_only(f, LENDER, &late, SIO_OP_GRANT), -EPERM);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, g1.id, 0), 0);
	assert_null(fake_take(f, LENDER, SIO_EV_OWNER_END));
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_MEM), 1);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, g2.id, 0), 0);
	assert_end(f, LENDER, w);
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_MEM), 0);
	fake_free(f);
}

/* The session's memory, mapped for the device by the borrow's own owner: either may end first. */
static void owners_refer_to_each_others_things(void **state)
{
	(void)state;
	for (unsigned first = 0; first < 2; first++) {
		struct fake *f = fake_new(7);
		struct sio_evt_settle settled;
		uint64_t session, borrow, mem;

		fake_up(f, LENDER);
		fake_open(f, LENDER, 0);
		session = fake_owner(f, LENDER);
		borrow = fake_owner(f, LENDER);
		mem = fake_alloc(f, LENDER, session, SIZE);
		fake_dmamap(f, LENDER, borrow, 0, SIO_KIND_MEM, mem, SIZE, 3);
		fake_forget(f);
		emu_room_owner_hup(f->room, LENDER, first ? borrow : session);
		emu_room_owner_hup(f->room, LENDER, first ? session : borrow);
		assert_int_equal(fake_count(f, LENDER, SIO_KIND_MEM), 1);
		assert_null(fake_take(f, LENDER, SIO_EV_OWNER_END));
		assert_int_equal(fake_settle(f, LENDER, 0, borrow, &settled), 0);
		assert_int_equal(settled.mems, 1);
		assert_int_equal(fake_count(f, LENDER, SIO_KIND_MEM), 0);
		assert_non_null(fake_take(f, LENDER, SIO_EV_OWNER_END));
		assert_non_null(fake_take(f, LENDER, SIO_EV_OWNER_END));
		fake_free(f);
	}
}

static void register_view_lives_as_long_as_its_grant(void **state)
{
	struct sio_req_bar req = {.device = DEV(LENDER, 0), .access = 3, .length = 0x1000};
	struct sio_req_grant grant = {.source_kind = SIO_KIND_BAR,
				      .access = 3,
				      .length = 0x1000,
				      .peer_node = NODE(CLIENT)};
	struct sio_req_bar again = req;
	struct fake *f = fake_new(0);
	struct sio_evt_grant g;
	struct sio_evt_bar bar;
	struct sio_evt_map map;
	uint64_t w;

	(void)state;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	fake_open(f, LENDER, 0);
	w = fake_owner(f, LENDER);
	req.h.owner = w;
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_BAR, &bar), 0);
	grant.h.owner = w;
	grant.source = bar.id;
	assert_int_equal(ask(f, LENDER, &grant, SIO_OP_GRANT, &g), 0);
	map = fake_map(f, CLIENT, 0, LENDER, &g);
	assert_int_equal(map.offset, 0);
	emu_room_owner_hup(f->room, LENDER, w);
	assert_int_equal(ask_only(f, LENDER, &again, SIO_OP_BAR), -EBUSY);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, g.id, 0), 0);
	assert_int_equal(fake_model(f, LENDER, 0)->view_changes, 2);
	assert_int_equal(ask_only(f, LENDER, &again, SIO_OP_BAR), 0);
	fake_free(f);
}

/* Memory is given to the daemon with its grants, and the peer's window leads there as before. */
static void what_is_given_outlives_its_owner(void **state)
{
	struct fake *f = fake_new(0);
	struct sio_evt_grant g, later, others;
	uint64_t w, other, mem, kept;

	(void)state;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	w = fake_owner(f, LENDER);
	other = fake_owner(f, LENDER);
	mem = fake_alloc(f, LENDER, w, SIZE);
	kept = fake_alloc(f, LENDER, w, SIZE);
	g = fake_grant(f, LENDER, w, mem, SIZE, CLIENT);
	others = fake_grant(f, LENDER, other, mem, SIZE, CLIENT);
	fake_map(f, CLIENT, 0, LENDER, &g);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_GIVE, mem, other), -EPERM);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_GIVE, mem, w), 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_GIVE, mem, w), -EPERM);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_GIVE, mem, 0), 0); /* it is ours already */
	fake_forget(f);
	emu_room_owner_hup(f->room, LENDER, w);
	assert_gone(f, LENDER, w, 0, 0, 0, 0);
	assert_end(f, LENDER, w);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_FREE, kept, 0), -ENOENT);
	assert_int_equal(fake_count(f, LENDER, SIO_KIND_GRANT), 2);
	later = fake_grant(f, LENDER, 0, mem, SIZE, CLIENT);
	fake_map(f, CLIENT, 0, LENDER, &later);
	/* A grant that another owner has is that owner's still. */
	emu_room_owner_hup(f->room, LENDER, other);
	assert_gone(f, LENDER, other, 0, 1, 0, 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, others.id, 0), 0);
	assert_end(f, LENDER, other);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_FREE, mem, 0), -EBUSY);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, g.id, 0), 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, later.id, 0), 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_FREE, mem, 0), 0);
	assert_int_equal(fake_counter(f, LENDER, 0, 0, "ram_free"), 1 << 20);
	fake_free(f);
}

/* An owner that has ended gives nothing. */
static void what_waits_in_quarantine_is_not_given(void **state)
{
	struct fake *f = fake_new(0);
	struct sio_evt_grant g;
	uint64_t w, mem;

	(void)state;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	w = fake_owner(f, LENDER);
	mem = fake_alloc(f, LENDER, w, SIZE);
	g = fake_grant(f, LENDER, w, mem, SIZE, CLIENT);
	emu_room_owner_hup(f->room, LENDER, w);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_GIVE, mem, 0), -EPERM);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, g.id, 0), 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_GIVE, mem, 0), -ENOENT);
	assert_int_equal(fake_counter(f, LENDER, 0, 0, "ram_free"), 1 << 20);
	fake_free(f);
}

static void a_crash_takes_all_and_gives_new_numbers(void **state)
{
	struct sio_req_info info = {.version_min = SIO_PORT_VERSION,
				    .version_max = SIO_PORT_VERSION};
	struct sio_evt_info before, after;
	struct fake *f = fake_new(7);
	struct sio_req_map req;
	struct sio_evt_grant g;
	struct fake_event *e;
	uint64_t w, mem;

	(void)state;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	fake_open(f, LENDER, 0);
	assert_int_equal(ask(f, LENDER, &info, SIO_OP_INFO, &before), 0);
	w = fake_owner(f, LENDER);
	mem = fake_alloc(f, LENDER, w, SIZE);
	g = fake_grant(f, LENDER, w, mem, SIZE, CLIENT);
	fake_map(f, CLIENT, 0, LENDER, &g);
	fake_dmamap(f, LENDER, w, 0, SIO_KIND_MEM, mem, SIZE, 3);
	req = fake_map_request(LENDER, &g);
	fake_forget(f);

	emu_room_host_down(f->room, LENDER);
	e = fake_take(f, CLIENT, SIO_EV_LINK);
	assert_non_null(e);
	assert_int_equal(e->u.link.state, SIO_LINK_DOWN);
	assert_int_equal(f->n_events, 0);
	assert_int_equal(f->open_owners, 0);
	assert_int_equal(ask_only(f, CLIENT, &req, SIO_OP_MAP), -ENETDOWN);

	fake_up(f, LENDER);
	assert_int_equal(emu_room_host_up(f->room, LENDER), -EBUSY);
	e = fake_take(f, CLIENT, SIO_EV_LINK);
	assert_non_null(e);
	assert_int_equal(e->u.link.generation, 2);
	assert_int_equal(ask_only(f, CLIENT, &req, SIO_OP_MAP), -ESTALE);
	for (uint32_t kind = SIO_KIND_OWNER; kind <= SIO_KIND_IRQ; kind++)
		assert_int_equal(fake_count(f, LENDER, kind), 0);
	assert_int_equal(ask(f, LENDER, &info, SIO_OP_INFO, &after), 0);
	assert_int_equal(after.boot_generation, before.boot_generation + 1);
	assert_memory_not_equal(after.boot_id, before.boot_id, sizeof(after.boot_id));
	assert_int_equal(after.ram_free, after.ram_total);
	assert_true(fake_owner(f, LENDER) > w);
	fake_free(f);
}

static void status_page_tells_before_the_event(void **state)
{
	struct fake *f = fake_new(0);
	const struct sio_status_page *page;
	uint32_t generation;

	(void)state;
	fake_up(f, LENDER);
	page = f->room->host[LENDER].status.data;
	assert_int_equal(page->magic, SIO_STATUS_MAGIC);
	assert_int_equal(page->count, 2);
	assert_int_equal(page->path[0].peer_node, NODE(CLIENT));
	assert_int_equal(page->path[0].state, SIO_LINK_DOWN);
	fake_up(f, CLIENT);
	assert_int_equal(page->path[0].state, SIO_LINK_UP);
	generation = page->path[0].generation;
	assert_int_equal(emu_room_link(f->room, CLIENT, 0, false), 0);
	assert_int_equal(page->path[0].state, SIO_LINK_DOWN);
	assert_int_equal(page->path[0].generation, generation + 1);
	assert_int_equal(emu_room_link(f->room, CLIENT, 1, false), -ENODEV);
	assert_int_equal(page->path[1].generation, 0);
	fake_free(f);
}

/* A switch without power is no link to whoever is at it. */
static void a_switch_tells_those_at_it(void **state)
{
	struct fake *f = fake_new(0);
	const struct sio_status_page *page;

	(void)state;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	page = f->room->host[LENDER].status.data;
	assert_int_equal(page->path[0].state, SIO_LINK_UP);
	fake_forget(f);
	assert_int_equal(emu_room_switch(f->room, f->topo.n_switches, false), -ENODEV);
	assert_int_equal(emu_room_trunk(f->room, f->topo.n_trunks, false), -ENODEV);
	for (unsigned in = 0; in < 2; in++) {
		bool own = false, path = false;
		struct fake_event *e;

		for (unsigned again = 0; again < 2; again++)
			assert_int_equal(emu_room_switch(f->room, 0, in), 0);
		assert_int_equal(emu_room_switch_in(f->room, 0), in);
		assert_int_equal(page->path[0].state, in ? SIO_LINK_UP : SIO_LINK_DOWN);
		while ((e = fake_take(f, LENDER, SIO_EV_LINK))) {
			assert_int_equal(e->u.link.state, in ? SIO_LINK_UP : SIO_LINK_DOWN);
			assert_false(e->u.link.peer_node == NODE(LENDER) ? own : path);
			*(e->u.link.peer_node == NODE(LENDER) ? &own : &path) = true;
		}
		assert_true(own && path);
	}
	/* A cable that was pulled meanwhile is told once. */
	emu_room_switch(f->room, 0, false);
	fake_forget(f);
	emu_room_link(f->room, LENDER, 0, false);
	emu_room_switch(f->room, 0, true);
	assert_null(fake_take(f, LENDER, SIO_EV_LINK));
	fake_free(f);
}

/* Its own link, though no path goes up or down with it. */
static void a_cable_tells_its_own_host(void **state)
{
	struct fake *f = fake_new(0);

	(void)state;
	fake_up(f, LENDER);
	fake_forget(f);
	for (unsigned up = 0; up < 2; up++) {
		struct fake_event *e;

		assert_int_equal(emu_room_link(f->room, CLIENT, 0, up), 0); /* it is off */
		for (unsigned again = 0; again < 2; again++)
			assert_int_equal(emu_room_link(f->room, LENDER, 0, up), 0);
		e = fake_take(f, LENDER, SIO_EV_LINK);
		assert_non_null(e);
		assert_int_equal(e->u.link.peer_node, NODE(LENDER));
		assert_int_equal(e->u.link.state, up ? SIO_LINK_UP : SIO_LINK_DOWN);
		assert_int_equal(e->u.link.adapter, 0);
		assert_int_equal(f->n_events, 0);
	}
	fake_free(f);
}

/* The daemon does not read: what is dropped is told of once, and links are told again. */
static void events_are_dropped_until_the_daemon_reads(void **state)
{
	struct fake *f = fake_new(7);
	struct fake_event *e;
	uint64_t w[3];

	(void)state;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	fake_up(f, OTHER);
	for (unsigned i = 0; i < 3; i++)
		w[i] = fake_owner(f, LENDER);
	fake_forget(f);
	f->deaf = 1u << LENDER;
	emu_room_owner_hup(f->room, LENDER, w[0]);
	assert_int_equal(fake_counter(f, LENDER, 0, 0, "owners"), 2); /* it is answered */
	f->deaf = 0;
	emu_room_owner_hup(f->room, LENDER, w[1]); /* there is room again, but it has not read */
	emu_room_host_down(f->room, CLIENT);
	emu_room_host_down(f->room, OTHER);
	fake_up(f, OTHER);
	assert_null(fake_take(f, LENDER, SIO_EV_LINK));
	assert_null(fake_take(f, LENDER, SIO_EV_OWNER_GONE));
	fake_forget(f);
	emu_room_drained(f->room, LENDER);
	e = fake_take(f, LENDER, SIO_EV_OVERFLOW);
	assert_non_null(e);
	assert_int_equal(e->len, sizeof(struct sio_evt_overflow));
	for (unsigned i = 0; i < 4; i++) {
		static const struct {
			uint32_t node, state;
		} want[] = {{NODE(LENDER), SIO_LINK_UP},
			    {NODE(CLIENT), SIO_LINK_DOWN},
			    {NODE(OTHER), SIO_LINK_DOWN},
			    {NODE(OTHER), SIO_LINK_UP}};

		e = fake_take(f, LENDER, SIO_EV_LINK);
		assert_non_null(e);
		assert_int_equal(e->u.link.peer_node, want[i].node);
		assert_int_equal(e->u.link.state, want[i].state);
	}
	assert_null(fake_take(f, LENDER, SIO_EV_LINK));
	emu_room_drained(f->room, LENDER); /* nothing was dropped */
	assert_null(fake_take(f, LENDER, SIO_EV_OVERFLOW));
	emu_room_owner_hup(f->room, LENDER, w[2]);
	assert_gone(f, LENDER, w[2], 0, 0, 0, 0);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_no_device_ids),
		cmocka_unit_test(what_nothing_reaches_goes_with_its_owner),
		cmocka_unit_test(device_memory_waits_for_settle),
		cmocka_unit_test(resets_spare_the_living),
		cmocka_unit_test(grants_wait_for_the_peers_word),
		cmocka_unit_test(owners_refer_to_each_others_things),
		cmocka_unit_test(children_end_with_their_parent),
		cmocka_unit_test(a_child_may_stay_longer_than_its_parent),
		cmocka_unit_test(register_view_lives_as_long_as_its_grant),
		cmocka_unit_test(what_is_given_outlives_its_owner),
		cmocka_unit_test(what_waits_in_quarantine_is_not_given),
		cmocka_unit_test(a_crash_takes_all_and_gives_new_numbers),
		cmocka_unit_test(status_page_tells_before_the_event),
		cmocka_unit_test(a_switch_tells_those_at_it),
		cmocka_unit_test(a_cable_tells_its_own_host),
		cmocka_unit_test(events_are_dropped_until_the_daemon_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
