/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BAR pages as targets of other devices' DMA: what may be mapped, what reaches them, and what is
 * left when they are taken away.
 */
#include "fake.h"

/* Device 1 of the lender reaches pages of device 0. */
struct peers {
	struct fake *f;
	uint64_t owner, target_owner;
	struct emu_dev *dev, *target;
};

static void have(struct peers *p, unsigned iommu)
{
	struct fake *f = fake_new(iommu);

	for (unsigned i = 0; i < 3; i++)
		fake_up(f, i);
	fake_open(f, LENDER, 0);
	fake_open(f, LENDER, 1);
	*p = (struct peers){.f = f,
			    .owner = fake_owner(f, LENDER),
			    .target_owner = fake_owner(f, LENDER),
			    .dev = fake_dev(f, LENDER, 1),
			    .target = fake_dev(f, LENDER, 0)};
	fake_forget(f);
}

static uint64_t view(struct peers *p, uint64_t offset, uint32_t access)
{
	struct sio_req_bar req = {.h.owner = p->target_owner,
				  .device = DEV(LENDER, 0),
				  .offset = offset,
				  .length = 0x1000,
				  .access = access};
	struct sio_evt_bar evt;

	assert_int_equal(ask(p->f, LENDER, &req, SIO_OP_BAR, &evt), 0);
	return evt.id;
}

static int map(struct peers *p, unsigned device, uint64_t bar, uint32_t access)
{
	struct sio_req_dmamap req = {.h.owner = p->owner,
				     .device = DEV(LENDER, device),
				     .target_kind = SIO_KIND_BAR,
				     .access = access,
				     .target = bar,
				     .length = 0x1000,
				     .iova = SIO_PORT_ANY,
				     .highest = SIO_PORT_ANY};

	return ask_only(p->f, LENDER, &req, SIO_OP_DMAMAP);
}

static int keep_address(struct peers *p, uint64_t map, uint64_t owner)
{
	struct sio_req_dmaunmap req = {.h = {.flags = SIO_DMAUNMAP_KEEP_ADDRESS, .owner = owner},
				       .id = map};

	return ask_only(p->f, LENDER, &req, SIO_OP_DMAUNMAP);
}

static uint32_t get(struct peers *p, uint64_t at, int error)
{
	uint32_t value = 0;

	assert_int_equal(p->dev->read(p->dev, at, &value, sizeof(value)), error);
	return value;
}

static void put(struct peers *p, uint64_t at, uint32_t value, int error)
{
	assert_int_equal(p->dev->write(p->dev, at, &value, sizeof(value)), error);
}

static void what_may_be_mapped(void **state)
{
	struct peers p;
	uint64_t bar;

	(void)state;
	have(&p, 1u << LENDER);
	bar = view(&p, REGISTERS, SIO_ACCESS_READ);
	assert_int_equal(map(&p, 1, bar, SIO_ACCESS_READ), -EACCES); /* a mirror */
	bar = view(&p, MEMORY, SIO_ACCESS_READ);
	assert_int_equal(map(&p, 1, bar, SIO_ACCESS_READ | SIO_ACCESS_WRITE), -EACCES);
	assert_int_equal(map(&p, 1, bar, SIO_ACCESS_READ), 0);
	bar = view(&p, DOORBELLS, SIO_ACCESS_READ | SIO_ACCESS_WRITE);
	assert_int_equal(map(&p, 0, bar, SIO_ACCESS_READ), -EOPNOTSUPP);
	assert_non_null(strstr(fake_text(p.f), "of the same device"));
	assert_int_equal(map(&p, 1, bar, SIO_ACCESS_READ | SIO_ACCESS_WRITE), 0);
	bar = view(&p, REGISTERS, SIO_ACCESS_READ | SIO_ACCESS_WRITE);
	assert_int_equal(map(&p, 1, bar, SIO_ACCESS_READ | SIO_ACCESS_WRITE), 0);
	fake_free(p.f);
}

/* The page is what the holder has, as long as he has it; the next one has another. */
static void registers_while_somebody_holds_them(void **state)
{
	struct sio_evt_dmamap m;
	struct peers p;
	uint64_t bar, next;

	(void)state;
	for (unsigned iommu = 0; iommu < 2; iommu++) {
		have(&p, iommu << LENDER);
		bar = view(&p, REGISTERS, 3);
		m = fake_dmamap(p.f, LENDER, p.owner, 1, SIO_KIND_BAR, bar, 0x1000, 3);
		put(&p, m.iova + 16, 0x12345, 0);
		assert_int_equal(((volatile uint32_t *)p.target->view(p.target, REGISTERS_RUN))[4],
				 0x12345);
		((volatile uint32_t *)p.target->view(p.target, REGISTERS_RUN))[5] = 77;
		assert_int_equal(get(&p, m.iova + 20, 0), 77);
		assert_int_equal(fake_end(p.f, LENDER, SIO_OP_BAR_CLOSE, bar, p.target_owner),
				 -EBUSY);
		assert_int_equal(keep_address(&p, m.id, p.owner), 0);
		assert_int_equal(keep_address(&p, m.id, p.owner), 0); /* again is no error */
		assert_int_equal(fake_end(p.f, LENDER, SIO_OP_BAR_CLOSE, bar, p.target_owner), 0);
		get(&p, m.iova + 16, -EFAULT);
		next = view(&p, REGISTERS, 3);
		if (iommu)
			put(&p, m.iova + 16, 9, -EFAULT);
		assert_int_equal(((volatile uint32_t *)p.target->view(p.target, REGISTERS_RUN))[4],
				 0);
		/* What was cut has its address still. */
		if (iommu)
			assert_true(
				fake_dmamap(p.f, LENDER, p.owner, 1, SIO_KIND_BAR, next, 0x1000, 3)
					.iova != m.iova);
		assert_int_equal(fake_end(p.f, LENDER, SIO_OP_DMAUNMAP, m.id, p.owner), 0);
		fake_free(p.f);
	}
}

/* The owner of the pages ends; whose the mapping is lives, and waits for nobody's word. */
static void a_view_ends_with_its_owner(void **state)
{
	struct sio_req_owner_close close = {.h.size = 0};
	struct sio_evt_owner_gone gone;
	struct sio_evt_dmamap m[2];
	struct fake_event *e;
	struct peers p;
	uint64_t bar[2];

	(void)state;
	have(&p, 1u << LENDER);
	bar[0] = view(&p, REGISTERS, 3);
	bar[1] = view(&p, DOORBELLS, 3);
	for (unsigned i = 0; i < 2; i++) {
		m[i] = fake_dmamap(p.f, LENDER, p.owner, 1, SIO_KIND_BAR, bar[i], 0x1000, 3);
		put(&p, m[i].iova, 5, 0);
	}
	close.h.owner = p.target_owner;
	assert_int_equal(ask_only(p.f, LENDER, &close, SIO_OP_OWNER_CLOSE), 0);
	e = fake_take(p.f, LENDER, SIO_EV_OWNER_GONE);
	assert_non_null(e);
	gone = e->u.gone;
	assert_int_equal(gone.h.owner, p.target_owner);
	assert_int_equal(gone.dmamaps, 0);
	assert_non_null(fake_take(p.f, LENDER, SIO_EV_OWNER_END)); /* nothing of it is left */
	assert_int_equal(fake_count(p.f, LENDER, SIO_KIND_BAR), 0);
	assert_int_equal(fake_count(p.f, LENDER, SIO_KIND_DMAMAP), 2);
	for (unsigned i = 0; i < 2; i++)
		put(&p, m[i].iova, 6, -EFAULT);
	/* Others have the pages at once. */
	p.target_owner = fake_owner(p.f, LENDER);
	view(&p, REGISTERS, 3);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(fake_end(p.f, LENDER, SIO_OP_DMAUNMAP, m[i].id, p.owner), 0);
	fake_free(p.f);
}

/* In quarantine it is cut, too, by the daemon's word; it ends as any other. */
static void a_quarantined_mapping_is_cut(void **state)
{
	struct sio_req_owner_close close = {.h.size = 0};
	struct sio_evt_settle settled;
	struct sio_evt_dmamap m;
	struct peers p;
	uint64_t bar;

	(void)state;
	have(&p, 1u << LENDER);
	bar = view(&p, DOORBELLS, 3);
	m = fake_dmamap(p.f, LENDER, p.owner, 1, SIO_KIND_BAR, bar, 0x1000, 3);
	close.h.owner = p.owner;
	assert_int_equal(ask_only(p.f, LENDER, &close, SIO_OP_OWNER_CLOSE), 0);
	put(&p, m.iova, 5, 0);
	assert_int_equal(fake_end(p.f, LENDER, SIO_OP_BAR_CLOSE, bar, p.target_owner), -EBUSY);
	assert_int_equal(keep_address(&p, m.id, p.target_owner), -EPERM);
	assert_int_equal(keep_address(&p, m.id, 0), 0);
	put(&p, m.iova, 6, -EFAULT);
	assert_int_equal(fake_end(p.f, LENDER, SIO_OP_BAR_CLOSE, bar, p.target_owner), 0);
	assert_int_equal(fake_count(p.f, LENDER, SIO_KIND_DMAMAP), 1);
	assert_int_equal(fake_end(p.f, LENDER, SIO_OP_DMAUNMAP, m.id, 0), -EPERM);
	assert_int_equal(fake_settle(p.f, LENDER, 1, p.owner, &settled), 0);
	assert_int_equal(settled.dmamaps, 1);
	assert_int_equal(fake_count(p.f, LENDER, SIO_KIND_DMAMAP), 0);
	fake_free(p.f);
}

/* Through a window: the way there can be given back, although the address is kept. */
static void the_way_to_what_was_cut_goes_back(void **state)
{
	struct sio_req_grant ask_grant = {.source_kind = SIO_KIND_BAR,
					  .access = 3,
					  .length = 0x1000,
					  .peer_node = NODE(CLIENT)};
	struct sio_evt_grant grant;
	struct sio_evt_dmamap m;
	struct sio_evt_map window;
	struct emu_dev *dev;
	uint64_t owner, entry;
	uint32_t value = 5;
	struct peers p;

	(void)state;
	for (unsigned iommu = 0; iommu < 8; iommu++) {
		have(&p, iommu);
		ask_grant.h.owner = p.target_owner;
		ask_grant.source = view(&p, DOORBELLS, 3);
		assert_int_equal(ask(p.f, LENDER, &ask_grant, SIO_OP_GRANT, &grant), 0);
		fake_open(p.f, CLIENT, 0);
		owner = fake_owner(p.f, CLIENT);
		dev = fake_dev(p.f, CLIENT, 0);
		window = fake_map(p.f, CLIENT, owner, LENDER, &grant);
		entry = fake_requester(p.f, CLIENT, 0, 0);
		m = fake_dmamap(p.f, CLIENT, owner, 0, SIO_KIND_MAP, window.id, 0x1000, 3);
		assert_int_equal(dev->write(dev, m.iova + 8, &value, sizeof(value)), 0);
		assert_int_equal(((volatile uint32_t *)p.target->view(p.target, DOORBELLS_RUN))[2],
				 5);
		assert_int_equal(fake_end(p.f, CLIENT, SIO_OP_UNMAP, window.id, owner), -EBUSY);
		{
			struct sio_req_dmaunmap req = {.h = {.flags = SIO_DMAUNMAP_KEEP_ADDRESS},
						       .id = m.id};

			assert_int_equal(ask_only(p.f, CLIENT, &req, SIO_OP_DMAUNMAP), 0);
		}
		assert_int_equal(fake_end(p.f, CLIENT, SIO_OP_UNMAP, window.id, owner), 0);
		assert_int_equal(fake_end(p.f, CLIENT, SIO_OP_REQUESTER_DEL, entry, 0), 0);
		assert_int_equal(dev->write(dev, m.iova + 8, &value, sizeof(value)), -EFAULT);
		assert_int_equal(fake_end(p.f, CLIENT, SIO_OP_DMAUNMAP, m.id, owner), 0);
		fake_free(p.f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_may_be_mapped),
		cmocka_unit_test(registers_while_somebody_holds_them),
		cmocka_unit_test(a_view_ends_with_its_owner),
		cmocka_unit_test(a_quarantined_mapping_is_cut),
		cmocka_unit_test(the_way_to_what_was_cut_goes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
