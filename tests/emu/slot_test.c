/* SPDX-License-Identifier: BSD-2-Clause */
/* A device is pulled out of its slot while hosts have it, and comes back. */
#include "fake.h"

#define SIZE 0x2000

/*
 * The lender's first device, all that can be had of it by an owner, and a neighbour that has it
 * mapped.
 */
struct had {
	struct fake *f;
	uint64_t owner, mem, irq, bar, registers, requester;
	struct sio_evt_dmamap map;
	struct sio_evt_grant grant;
	uint64_t window;
};

static int ask_bar(struct had *h, uint64_t offset, uint32_t access, struct sio_evt_bar *ret)
{
	struct sio_req_bar req = {.h.owner = h->owner,
				  .device = DEV(LENDER, 0),
				  .offset = offset,
				  .length = 0x1000,
				  .access = access};

	return ask(h->f, LENDER, &req, SIO_OP_BAR, ret);
}

static int ask_vector(struct had *h, uint64_t irq)
{
	struct sio_req_vector req = {.device = DEV(LENDER, 0), .irq = irq};

	req.h.owner = irq ? h->owner : 0;
	return ask_only(h->f, LENDER, &req, SIO_OP_VECTOR);
}

static int grant_bar(struct had *h, struct sio_evt_grant *ret)
{
	struct sio_req_grant req = {.source_kind = SIO_KIND_BAR,
				    .access = 3,
				    .source = h->bar,
				    .length = 0x1000,
				    .peer_node = NODE(CLIENT)};

	return ask(h->f, LENDER, &req, SIO_OP_GRANT, ret);
}

static void have(struct had *h, unsigned iommu)
{
	struct sio_req_irq_new irq = {.h.op = 0};
	struct sio_evt_irq_new irq_evt;
	struct sio_evt_bar bar;
	struct fake *f = fake_new(iommu);

	memset(h, 0, sizeof(*h));
	h->f = f;
	for (unsigned i = 0; i < 3; i++)
		fake_up(f, i);
	fake_open(f, LENDER, 0);
	h->owner = fake_owner(f, LENDER);
	h->mem = fake_alloc(f, LENDER, h->owner, SIZE);
	h->map = fake_dmamap(f, LENDER, h->owner, 0, SIO_KIND_MEM, h->mem, SIZE, 3);
	irq.h.owner = h->owner;
	assert_int_equal(ask(f, LENDER, &irq, SIO_OP_IRQ_NEW, &irq_evt), 0);
	h->irq = irq_evt.id;
	assert_int_equal(ask_vector(h, h->irq), 0);
	assert_int_equal(ask_bar(h, REGISTERS, 3, &bar), 0);
	h->registers = bar.id;
	assert_int_equal(ask_bar(h, DOORBELLS, 3, &bar), 0);
	h->bar = bar.id;
	h->requester = fake_requester(f, LENDER, 0, 0);
	assert_int_equal(grant_bar(h, &h->grant), 0);
	h->window = fake_map(f, CLIENT, 0, LENDER, &h->grant).id;
	fake_forget(f);
}

static struct sio_list_entry entry(struct had *h, uint32_t kind)
{
	struct sio_req_list req = {.kind = kind};
	struct sio_evt_list evt;

	assert_int_equal(ask(h->f, LENDER, &req, SIO_OP_LIST, &evt), 0);
	assert_int_equal(evt.count, 1);
	return evt.entry[0];
}

static uint64_t told(struct had *h, uint32_t op)
{
	struct fake_event *e = fake_take(h->f, LENDER, op);

	assert_non_null(e);
	assert_int_equal(e->len, sizeof(e->u.device));
	assert_int_equal(e->u.device.device, DEV(LENDER, 0));
	return e->u.device.generation;
}

static void pull(struct had *h)
{
	assert_int_equal(emu_room_device(h->f->room, LENDER, 0, false), 0);
}

static void put(struct had *h)
{
	assert_int_equal(emu_room_device(h->f->room, LENDER, 0, true), 0);
}

static uint64_t listed(struct had *h)
{
	struct sio_req_device_list req = {.after = DEV(LENDER, 0) - 1};
	struct sio_evt_device evt;

	assert_int_equal(ask(h->f, LENDER, &req, SIO_OP_DEVICE_LIST, &evt), 0);
	return evt.id;
}

static void requests_for_a_gone_device_are_refused(void **state)
{
	struct sio_req_device_open open = {.device = DEV(LENDER, 0)};
	struct sio_req_reset reset = {.device = DEV(LENDER, 0), .kind = SIO_RESET_FUNCTION};
	struct sio_req_watch watch = {.target_kind = SIO_KIND_BAR, .kind = 1, .length = 0x1000};
	struct sio_req_map map;
	struct sio_evt_bar bar;
	struct sio_evt_grant grant;
	struct had h;

	(void)state;
	for (unsigned iommu = 0; iommu < 4; iommu++) {
		have(&h, iommu);
		assert_int_equal(listed(&h), DEV(LENDER, 0));
		pull(&h);
		assert_int_equal(listed(&h), DEV(LENDER, 1));
		assert_int_equal(ask_only(h.f, LENDER, &open, SIO_OP_DEVICE_OPEN), -ENODEV);
		assert_int_equal(ask_only(h.f, LENDER, &reset, SIO_OP_RESET), -ENODEV);
		assert_int_equal(ask_bar(&h, DOORBELLS, 1, &bar), -ENODEV);
		assert_int_equal(ask_vector(&h, h.irq), -ENODEV);
		assert_int_equal(grant_bar(&h, &grant), -ENODEV);
		watch.target = h.bar;
		assert_int_equal(ask_only(h.f, LENDER, &watch, SIO_OP_WATCH), -ENODEV);
		map = fake_map_request(LENDER, &h.grant);
		assert_int_equal(ask_only(h.f, CLIENT, &map, SIO_OP_MAP), -ENODEV);
		assert_non_null(strstr(fake_text(h.f), "gone"));
		assert_int_equal(emu_room_device(h.f->room, LENDER, 0, false), -EALREADY);
		put(&h); /* another one: the old views stay cut off */
		watch.target = h.bar;
		assert_int_equal(ask_only(h.f, LENDER, &watch, SIO_OP_WATCH), -ENODEV);
		assert_int_equal(ask_only(h.f, CLIENT, &map, SIO_OP_MAP), -ENODEV);
		assert_int_equal(ask_bar(&h, DOORBELLS, 1, &bar), -EPERM); /* not open */
		assert_int_equal(ask_only(h.f, LENDER, &open, SIO_OP_DEVICE_OPEN), 0);
		assert_int_equal(ask_bar(&h, REGISTERS, 3, &bar), 0);
		assert_int_equal(emu_room_device(h.f->room, LENDER, 0, true), -EALREADY);
		assert_int_equal(emu_room_device(h.f->room, LENDER, 3, true), -ENODEV);
		fake_free(h.f);
	}
}

static void each_coming_and_going_is_a_generation(void **state)
{
	uint64_t gone, back;
	struct had h;

	(void)state;
	have(&h, 1);
	pull(&h);
	gone = told(&h, SIO_EV_DEVICE_GONE);
	assert_null(fake_take(h.f, LENDER, SIO_EV_DEVICE_BACK));
	put(&h);
	back = told(&h, SIO_EV_DEVICE_BACK);
	assert_true(back > gone);
	pull(&h);
	assert_true(told(&h, SIO_EV_DEVICE_GONE) > back);
	assert_int_equal(h.f->n_events, 0);
	fake_free(h.f);
}

static void what_was_mapped_reads_as_ones(void **state)
{
	struct had h;

	(void)state;
	have(&h, 0);
	assert_int_equal(h.f->ones_freed, 0);
	pull(&h); /* doorbells, controller memory, mirror and the writer's registers */
	assert_int_equal(h.f->ones_freed, 4);
	fake_free(h.f);
}

static void a_gone_device_does_nothing(void **state)
{
	struct fake_model *m;
	struct emu_dev *dev;
	uint32_t word = 7;
	unsigned steps;
	struct had h;

	(void)state;
	have(&h, 1);
	dev = fake_dev(h.f, LENDER, 0);
	m = fake_model(h.f, LENDER, 0);
	emu_room_step(h.f->room, 1);
	assert_int_equal(dev->write(dev, h.map.iova, &word, sizeof(word)), 0);
	pull(&h);
	steps = m->steps;
	emu_room_step(h.f->room, 1);
	assert_int_equal(m->steps, steps);
	assert_int_equal(fake_counter(h.f, LENDER, SIO_KIND_DEVICE, DEV(LENDER, 0), "steps"),
			 steps);
	assert_int_equal(dev->write(dev, h.map.iova, &word, sizeof(word)), -EFAULT);
	h.f->signals = 0;
	dev->interrupt(dev, 0);
	put(&h);
	emu_room_step(h.f->room, 1);
	assert_int_equal(m->steps, steps + 1);
	/* The new one has a domain of its own, and no vector. */
	assert_int_equal(dev->write(dev, h.map.iova, &word, sizeof(word)), -EFAULT);
	dev->interrupt(dev, 0);
	assert_int_equal(h.f->signals, 0);
	assert_int_equal(m->power_resets, 1);
	fake_free(h.f);
}

/* What a living owner has stays as objects that hold nothing, until he ends them. */
static void the_living_end_what_they_have(void **state)
{
	struct had h;

	(void)state;
	have(&h, 3);
	pull(&h);
	assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_DEVICE), 0);
	assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_VECTOR), 0);
	assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_BAR), 2);
	assert_int_equal(entry(&h, SIO_KIND_DMAMAP).cookie, 0);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_FREE, h.mem, h.owner), 0);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_DMAUNMAP, h.map.id, h.owner), 0);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_REQUESTER_DEL, h.requester, 0), 0);
	put(&h);
	fake_open(h.f, LENDER, 0); /* and to end them does the new one no harm */
	assert_int_equal(ask_vector(&h, h.irq), 0);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_BAR_CLOSE, h.registers, h.owner), 0);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_BAR_CLOSE, h.bar, h.owner), -EBUSY);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_UNGRANT, h.grant.id, 0), 0);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_BAR_CLOSE, h.bar, h.owner), 0);
	assert_int_equal(fake_end(h.f, CLIENT, SIO_OP_UNMAP, h.window, 0), 0);
	assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_VECTOR), 1);
	fake_free(h.f);
}

static void what_an_owner_leaves_of_a_gone_device_goes_with_it(void **state)
{
	struct fake_event *e;
	struct had h;

	(void)state;
	have(&h, 1);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_UNGRANT, h.grant.id, 0), 0);
	pull(&h);
	emu_room_owner_hup(h.f->room, LENDER, h.owner);
	e = fake_take(h.f, LENDER, SIO_EV_OWNER_GONE);
	assert_non_null(e);
	assert_int_equal(e->u.gone.dmamaps + e->u.gone.mems, 0);
	assert_non_null(fake_take(h.f, LENDER, SIO_EV_OWNER_END));
	assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_MEM), 0);
	fake_free(h.f);
}

/* Memory that only the device could still write to is nobody's now. */
static void quarantines_end(void **state)
{
	struct had h;

	(void)state;
	have(&h, 1);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_UNGRANT, h.grant.id, 0), 0);
	emu_room_owner_hup(h.f->room, LENDER, h.owner);
	assert_null(fake_take(h.f, LENDER, SIO_EV_OWNER_END));
	assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_MEM), 1);
	pull(&h);
	assert_non_null(fake_take(h.f, LENDER, SIO_EV_OWNER_END));
	for (uint32_t kind = SIO_KIND_OWNER; kind <= SIO_KIND_IRQ; kind++)
		if (kind != SIO_KIND_REQUESTER)
			assert_int_equal(fake_count(h.f, LENDER, kind), 0);
	fake_free(h.f);
}

static void who_had_opened_it_may_be_gone(void **state)
{
	struct sio_req_device_open open = {.device = DEV(LENDER, 1)};
	struct had h;

	(void)state;
	have(&h, 1);
	open.h.owner = fake_owner(h.f, LENDER);
	assert_int_equal(ask_only(h.f, LENDER, &open, SIO_OP_DEVICE_OPEN), 0);
	fake_dmamap(h.f, LENDER, h.owner, 1, SIO_KIND_MEM, h.mem, SIZE, 3);
	emu_room_owner_hup(h.f->room, LENDER, open.h.owner);
	assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_DEVICE), 2);
	assert_int_equal(emu_room_device(h.f->room, LENDER, 1, false), 0);
	assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_DEVICE), 1);
	fake_free(h.f);
}

/* A device of the neighbour's, which has the doorbells mapped. */
static struct sio_evt_dmamap peers(struct had *h, struct emu_dev **ret_dev)
{
	have(h, 1 << LENDER | 1 << CLIENT);
	fake_open(h->f, CLIENT, 0);
	fake_requester(h->f, CLIENT, 0, 0);
	*ret_dev = fake_dev(h->f, CLIENT, 0);
	return fake_dmamap(h->f, CLIENT, 0, 0, SIO_KIND_MAP, h->window, 0x1000, 3);
}

/* The neighbour's device wrote to the doorbells; not to those of the one that came in its place. */
static void peers_lose_it_too(void **state)
{
	struct sio_req_watch watch = {.target_kind = SIO_KIND_MAP, .kind = 1, .length = 0x1000};
	struct sio_evt_dmamap map, inside;
	uint32_t word = 7;
	struct emu_dev *dev;
	struct had h;

	(void)state;
	map = peers(&h, &dev);
	fake_open(h.f, LENDER, 1);
	assert_int_equal(dev->write(dev, map.iova, &word, sizeof(word)), 0);
	assert_true(emu_room_naps(h.f->room));
	inside = fake_dmamap(h.f, LENDER, 0, 1, SIO_KIND_BAR, h.bar, 0x1000, 3);
	pull(&h);
	assert_false(emu_room_naps(h.f->room));
	watch.target = h.window;
	assert_int_equal(ask_only(h.f, CLIENT, &watch, SIO_OP_WATCH), -ENODEV);
	put(&h);
	assert_int_equal(dev->write(dev, map.iova, &word, sizeof(word)), -EFAULT);
	dev = fake_dev(h.f, LENDER, 1); /* nor does another device of the same host */
	assert_int_equal(dev->write(dev, inside.iova, &word, sizeof(word)), -EFAULT);
	fake_free(h.f);
}

/*
 * Another device of the host, which has the doorbells mapped, by the same owner or by the daemon.
 */
static struct sio_evt_dmamap neighbour(struct had *h, bool same_owner)
{
	struct sio_evt_dmamap map;

	have(h, 1);
	fake_open(h->f, LENDER, 1);
	map = fake_dmamap(h->f, LENDER, same_owner ? h->owner : 0, 1, SIO_KIND_BAR, h->bar, 0x1000,
			  3);
	assert_int_equal(fake_end(h->f, LENDER, SIO_OP_UNGRANT, h->grant.id, 0), 0);
	return map;
}

static void a_neighbours_quarantine_ends_as_ever(void **state)
{
	struct sio_req_reset reset = {.device = DEV(LENDER, 1), .kind = SIO_RESET_FUNCTION};
	struct sio_evt_settle settled;
	struct had h;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		neighbour(&h, true);
		if (i % 2) /* its owner ends before, or behind it */
			emu_room_owner_hup(h.f->room, LENDER, h.owner);
		pull(&h);
		if (i % 2 == 0)
			emu_room_owner_hup(h.f->room, LENDER, h.owner);
		assert_null(fake_take(h.f, LENDER, SIO_EV_OWNER_END));
		assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_DMAMAP), 1);
		if (i / 2 == 0) {
			assert_int_equal(fake_settle(h.f, LENDER, 1, h.owner, &settled), 0);
			assert_int_equal(settled.dmamaps, 1);
		} else if (i / 2 == 1) {
			assert_int_equal(ask_only(h.f, LENDER, &reset, SIO_OP_RESET), 0);
		} else {
			assert_int_equal(emu_room_device(h.f->room, LENDER, 1, false), 0);
		}
		assert_non_null(fake_take(h.f, LENDER, SIO_EV_OWNER_END));
		assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_DMAMAP), 0);
		assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_OWNER), 0);
		fake_free(h.f);
	}
}

/*
 * It may have commands that name the address: nothing else is there before the mapping has ended.
 */
static void a_neighbour_reaches_nothing_else_by_it(void **state)
{
	struct sio_evt_dmamap map, next;
	struct emu_dev *dev;
	uint32_t word = 7;
	struct had h;

	(void)state;
	map = neighbour(&h, false);
	pull(&h);
	dev = fake_dev(h.f, LENDER, 1);
	next = fake_dmamap(h.f, LENDER, h.owner, 1, SIO_KIND_MEM, h.mem, 0x1000, 3);
	assert_int_not_equal(next.iova, map.iova);
	assert_int_equal(dev->write(dev, map.iova, &word, sizeof(word)), -EFAULT);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_BAR_CLOSE, h.bar, h.owner), 0);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_DMAUNMAP, map.id, 0), 0);
	next = fake_dmamap(h.f, LENDER, h.owner, 1, SIO_KIND_MEM, h.mem, 0x1000, 3);
	assert_int_equal(next.iova, map.iova);
	assert_int_equal(dev->write(dev, map.iova, &word, sizeof(word)), 0);
	fake_free(h.f);
}

/* Nor does it write to what is granted to it next, until it has given back its window. */
static void peers_reach_nothing_else_by_it(void **state)
{
	struct sio_evt_grant next;
	struct sio_evt_dmamap map;
	uint32_t word = 7;
	struct emu_dev *dev;
	struct had h;

	(void)state;
	map = peers(&h, &dev);
	pull(&h);
	next = fake_grant(h.f, LENDER, h.owner, h.mem, 0x1000, CLIENT);
	assert_int_not_equal(next.bus_addr, h.grant.bus_addr);
	assert_int_equal(dev->write(dev, map.iova, &word, sizeof(word)), -EFAULT);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_UNGRANT, h.grant.id, 0), 0);
	next = fake_grant(h.f, LENDER, h.owner, h.mem, 0x1000, CLIENT);
	assert_int_equal(next.bus_addr, h.grant.bus_addr);
	fake_free(h.f);
}

static void it_stays_out_until_it_can_be_put_back(void **state)
{
	struct had h;

	(void)state;
	have(&h, 1);
	pull(&h);
	fake_forget(h.f);
	for (unsigned i = 1; i <= 4; i++) { /* three memories, a seal */
		h.f->calls = 0;
		h.f->fail_at = i;
		assert_true(emu_room_device(h.f->room, LENDER, 0, true) < 0);
		assert_int_equal(h.f->n_events, 0);
		assert_int_equal(listed(&h), DEV(LENDER, 1));
	}
	h.f->fail_at = 0;
	put(&h);
	fake_free(h.f);
}

/* Power of the host, or of the device alone, and in which order they come back. */
static void hosts_crash_meanwhile(void **state)
{
	struct fake_model *m;
	struct had h;

	(void)state;
	have(&h, 1);
	m = fake_model(h.f, LENDER, 0);
	pull(&h);
	emu_room_host_down(h.f->room, LENDER);
	fake_up(h.f, LENDER);
	assert_int_equal(m->power_resets, 1);
	assert_int_equal(listed(&h), DEV(LENDER, 1));
	put(&h);
	assert_int_equal(m->power_resets, 2);
	emu_room_host_down(h.f->room, LENDER);
	pull(&h);
	put(&h);
	fake_forget(h.f);
	fake_up(h.f, LENDER);
	assert_int_equal(m->power_resets, 3);
	assert_int_equal(listed(&h), DEV(LENDER, 0));
	assert_null(fake_take(h.f, LENDER, SIO_EV_DEVICE_BACK));
	fake_free(h.f);
}

/* The windows lie where its BARs were; in the slot or not, it has another place now. */
static void its_host_comes_back_with_another_layout(void **state)
{
	struct sio_req_device_list req = {.after = DEV(LENDER, 0) - 1};
	struct sio_topo_adapter *adapter;
	struct sio_topo_device *slot;
	struct sio_evt_device evt;
	struct had h;

	(void)state;
	for (unsigned gone = 0; gone < 2; gone++) {
		have(&h, 1);
		slot = &h.f->host[LENDER].device[0];
		adapter = &h.f->host[LENDER].adapter[0];
		if (gone)
			pull(&h);
		emu_room_host_down(h.f->room, LENDER);
		adapter->window_base = slot->bar_base;
		slot->bar_base = adapter->window_base + adapter->window_size;
		h.f->host[LENDER].device[1].bar_base = slot->bar_base + 0x100000;
		h.f->host[LENDER].device[2].bar_base = slot->bar_base + 0x200000;
		fake_up(h.f, LENDER);
		if (gone)
			put(&h);
		assert_int_equal(ask(h.f, LENDER, &req, SIO_OP_DEVICE_LIST, &evt), 0);
		assert_int_equal(evt.id, DEV(LENDER, 0));
		assert_int_equal(evt.bar_addr[0], slot->bar_base);
		fake_free(h.f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_for_a_gone_device_are_refused),
		cmocka_unit_test(each_coming_and_going_is_a_generation),
		cmocka_unit_test(what_was_mapped_reads_as_ones),
		cmocka_unit_test(a_gone_device_does_nothing),
		cmocka_unit_test(the_living_end_what_they_have),
		cmocka_unit_test(what_an_owner_leaves_of_a_gone_device_goes_with_it),
		cmocka_unit_test(quarantines_end),
		cmocka_unit_test(who_had_opened_it_may_be_gone),
		cmocka_unit_test(peers_lose_it_too),
		cmocka_unit_test(a_neighbours_quarantine_ends_as_ever),
		cmocka_unit_test(a_neighbour_reaches_nothing_else_by_it),
		cmocka_unit_test(peers_reach_nothing_else_by_it),
		cmocka_unit_test(it_stays_out_until_it_can_be_put_back),
		cmocka_unit_test(hosts_crash_meanwhile),
		cmocka_unit_test(its_host_comes_back_with_another_layout),
	};

	return cmocka_run_group_tests_name("slots", tests, NULL, NULL);
}
