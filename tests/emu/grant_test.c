/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A grant that is taken back, and whose address is kept: the peer's window, and what its device has
 * mapped through it, lead there still.
 */
#include "fake.h"

#define SIZE 0x2000

/* The lender's memory, which a device of the client has mapped through a window. */
struct had {
	struct fake *f;
	uint64_t owner, mem, window, free_addresses;
	struct sio_evt_grant grant;
	struct sio_evt_dmamap map;
};

static uint64_t free_addresses(const struct fake *f)
{
	return sio_range_free_bytes(&f->room->host[LENDER].adapter[0].iova);
}

static void have(struct had *h, unsigned iommu)
{
	struct fake *f = fake_new(iommu);

	h->f = f;
	fake_up(f, LENDER);
	fake_up(f, CLIENT);
	h->free_addresses = free_addresses(f);
	h->owner = fake_owner(f, LENDER);
	h->mem = fake_alloc(f, LENDER, h->owner, SIZE);
	h->grant = fake_grant(f, LENDER, h->owner, h->mem, SIZE, CLIENT);
	h->window = fake_map(f, CLIENT, 0, LENDER, &h->grant).id;
	fake_open(f, CLIENT, 0);
	fake_requester(f, CLIENT, 0, 0);
	h->map = fake_dmamap(f, CLIENT, 0, 0, SIO_KIND_MAP, h->window, SIZE, 3);
	fake_forget(f);
}

static int keep_address(struct fake *f, uint64_t grant, uint64_t owner)
{
	struct sio_req_ungrant req = {.h = {.owner = owner, .flags = SIO_UNGRANT_KEEP_ADDRESS},
				      .id = grant};

	return ask_only(f, LENDER, &req, SIO_OP_UNGRANT);
}

static int device_writes(struct had *h, uint32_t word)
{
	struct emu_dev *dev = fake_dev(h->f, CLIENT, 0);

	return dev->write(dev, h->map.iova, &word, sizeof(word));
}

static uint32_t first_word(struct had *h, uint64_t mem)
{
	uint32_t word;

	memcpy(&word, fake_data(h->f, LENDER, mem), sizeof(word));
	return word;
}

static struct sio_list_entry listed_of(struct fake *f, unsigned host, uint32_t kind)
{
	struct sio_req_list req = {.kind = kind};
	struct sio_evt_list evt;

	assert_int_equal(ask(f, host, &req, SIO_OP_LIST, &evt), 0);
	assert_int_equal(evt.count, 1);
	return evt.entry[0];
}

static struct sio_list_entry listed(struct fake *f)
{
	return listed_of(f, LENDER, SIO_KIND_GRANT);
}

static void a_map_is_listed_with_it(void **state)
{
	struct sio_list_entry e;
	struct had h;

	(void)state;
	have(&h, 7);
	e = listed_of(h.f, CLIENT, SIO_KIND_MAP);
	assert_int_equal(e.id, h.window);
	assert_int_equal(e.grant, h.grant.id);
	assert_int_equal(e.cookie, h.grant.bus_addr);
	fake_free(h.f);
}

static void nobody_is_given_its_address(void **state)
{
	struct sio_evt_grant next;
	struct had h;
	uint64_t mem;

	(void)state;
	have(&h, 7);
	assert_int_equal(device_writes(&h, 1), 0);
	assert_int_equal(first_word(&h, h.mem), 1);
	assert_int_equal(keep_address(h.f, h.grant.id, 0), 0);
	assert_int_equal(device_writes(&h, 2), -EFAULT);
	assert_int_equal(first_word(&h, h.mem), 1);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_FREE, h.mem, h.owner), 0);
	mem = fake_alloc(h.f, LENDER, 0, SIZE); /* it lies where the other one did */
	next = fake_grant(h.f, LENDER, 0, mem, SIZE, CLIENT);
	assert_true(next.bus_addr >= h.grant.bus_addr + SIZE ||
		    next.bus_addr + SIZE <= h.grant.bus_addr);
	assert_int_equal(device_writes(&h, 3), -EFAULT);
	assert_int_equal(first_word(&h, mem), 0);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_UNGRANT, next.id, 0), 0);
	assert_int_equal(free_addresses(h.f), h.free_addresses - SIZE);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_UNGRANT, h.grant.id, 0), 0);
	assert_int_equal(free_addresses(h.f), h.free_addresses);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_UNGRANT, h.grant.id, 0), -ENOENT);
	fake_free(h.f);
}

static void it_is_the_daemons_and_of_nothing(void **state)
{
	struct sio_list_entry e;
	struct sio_req_map again;
	struct had h;

	(void)state;
	have(&h, 7);
	again = fake_map_request(LENDER, &h.grant);
	assert_int_equal(listed(h.f).cookie, h.mem);
	assert_int_equal(listed(h.f).state, SIO_STATE_LIVE);
	assert_int_equal(keep_address(h.f, h.grant.id, h.owner), 0);
	e = listed(h.f);
	assert_int_equal(e.id, h.grant.id);
	assert_int_equal(e.owner, 0);
	assert_int_equal(e.cookie, 0);
	assert_int_equal(e.address, h.grant.bus_addr);
	assert_int_equal(e.length, SIZE);
	assert_int_equal(e.node, NODE(CLIENT));
	assert_int_equal(e.state, SIO_STATE_QUARANTINED);
	assert_int_equal(ask_only(h.f, CLIENT, &again, SIO_OP_MAP), -EACCES);
	assert_int_equal(fake_end(h.f, LENDER, SIO_OP_UNGRANT, h.grant.id, h.owner), -EPERM);
	assert_int_equal(keep_address(h.f, h.grant.id, 0), 0); /* as it is */
	assert_int_equal(free_addresses(h.f), h.free_addresses - SIZE);
	fake_free(h.f);
}

/* Whichever comes first, nothing of the owner is left, and the address is. */
static void it_outlives_its_owner(void **state)
{
	(void)state;
	for (unsigned ended = 0; ended < 2; ended++) {
		const struct fake_event *e;
		struct had h;

		have(&h, 7);
		if (!ended)
			assert_int_equal(keep_address(h.f, h.grant.id, 0), 0);
		emu_room_owner_hup(h.f->room, LENDER, h.owner);
		e = fake_take(h.f, LENDER, SIO_EV_OWNER_GONE);
		assert_non_null(e);
		assert_int_equal(e->u.gone.grants, ended);
		assert_int_equal(e->u.gone.mems, ended);
		if (ended) {
			assert_null(fake_take(h.f, LENDER, SIO_EV_OWNER_END));
			assert_int_equal(keep_address(h.f, h.grant.id, 0), 0);
		}
		assert_non_null(fake_take(h.f, LENDER, SIO_EV_OWNER_END));
		assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_MEM), 0);
		assert_int_equal(listed(h.f).owner, 0);
		assert_int_equal(free_addresses(h.f), h.free_addresses - SIZE);
		assert_int_equal(device_writes(&h, 1), -EFAULT);
		fake_free(h.f);
	}
}

static void physical_addresses_cannot_be_kept(void **state)
{
	struct sio_req_grant of_irq = {
		.source_kind = SIO_KIND_IRQ, .access = 2, .peer_node = NODE(CLIENT)};
	struct sio_req_irq_new irq = {.h.op = 0};
	struct sio_evt_irq_new irq_evt;
	struct sio_evt_grant g;
	struct had h;

	(void)state;
	for (unsigned iommu = 0; iommu < 2; iommu++) {
		have(&h, iommu);
		assert_int_equal(ask(h.f, LENDER, &irq, SIO_OP_IRQ_NEW, &irq_evt), 0);
		of_irq.source = irq_evt.id;
		assert_int_equal(ask(h.f, LENDER, &of_irq, SIO_OP_GRANT, &g), 0);
		assert_int_equal(keep_address(h.f, g.id, 0), -EOPNOTSUPP);
		assert_int_equal(fake_end(h.f, LENDER, SIO_OP_IRQ_FREE, irq_evt.id, 0), -EBUSY);
		if (!iommu) {
			assert_int_equal(keep_address(h.f, h.grant.id, 0), -EOPNOTSUPP);
			assert_int_equal(fake_end(h.f, LENDER, SIO_OP_FREE, h.mem, 0), -EBUSY);
			assert_int_equal(device_writes(&h, 1), 0);
		}
		fake_free(h.f);
	}
}

/* Also one whose device has been pulled out: nobody is given its address any more than memory's. */
static void a_bar_s_address(void **state)
{
	struct sio_req_bar req = {
		.device = DEV(LENDER, 0), .offset = DOORBELLS, .length = 0x1000, .access = 3};
	struct sio_req_grant grant = {.source_kind = SIO_KIND_BAR,
				      .access = 3,
				      .length = 0x1000,
				      .peer_node = NODE(CLIENT)};

	(void)state;
	for (unsigned pulled = 0; pulled < 2; pulled++) {
		struct sio_evt_grant g, next;
		struct sio_evt_bar bar;
		struct had h;

		have(&h, 7);
		fake_open(h.f, LENDER, 0);
		assert_int_equal(ask(h.f, LENDER, &req, SIO_OP_BAR, &bar), 0);
		grant.source = bar.id;
		assert_int_equal(ask(h.f, LENDER, &grant, SIO_OP_GRANT, &g), 0);
		fake_map(h.f, CLIENT, 0, LENDER, &g);
		if (pulled)
			assert_int_equal(emu_room_device(h.f->room, LENDER, 0, false), 0);
		assert_int_equal(keep_address(h.f, g.id, 0), 0);
		assert_int_equal(fake_end(h.f, LENDER, SIO_OP_BAR_CLOSE, bar.id, 0), 0);
		if (!pulled)
			assert_int_equal(emu_room_device(h.f->room, LENDER, 0, false), 0);
		next = fake_grant(h.f, LENDER, 0, h.mem, 0x1000, CLIENT);
		assert_int_not_equal(next.bus_addr, g.bus_addr);
		assert_int_equal(fake_end(h.f, LENDER, SIO_OP_UNGRANT, next.id, 0), 0);
		assert_int_equal(fake_end(h.f, LENDER, SIO_OP_UNGRANT, g.id, 0), 0);
		assert_int_equal(free_addresses(h.f), h.free_addresses - SIZE);
		fake_free(h.f);
	}
}

static void a_crash_frees_it(void **state)
{
	struct had h;

	(void)state;
	have(&h, 7);
	assert_int_equal(keep_address(h.f, h.grant.id, 0), 0);
	emu_room_host_down(h.f->room, LENDER);
	fake_up(h.f, LENDER);
	assert_int_equal(fake_count(h.f, LENDER, SIO_KIND_GRANT), 0);
	assert_int_equal(free_addresses(h.f), h.free_addresses);
	fake_free(h.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_map_is_listed_with_it),
		cmocka_unit_test(nobody_is_given_its_address),
		cmocka_unit_test(it_is_the_daemons_and_of_nothing),
		cmocka_unit_test(it_outlives_its_owner),
		cmocka_unit_test(physical_addresses_cannot_be_kept),
		cmocka_unit_test(a_bar_s_address),
		cmocka_unit_test(a_crash_frees_it),
	};

	return cmocka_run_group_tests_name("grant", tests, NULL, NULL);
}
