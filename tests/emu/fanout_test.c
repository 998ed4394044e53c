/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exact multicast groups against the obvious: a copy of each member's memory, and counters kept by
 * walking through the members for each write. Random members, in RAM and in BARs of devices,
 * links, writes of a device and of a DMA engine; and what may not be asked of such a group.
 * Overlays alone: overlay_test.c.
 */
#include "fake.h"

#include "emu/device/device.h"

#define GROUP 3u
#define SIZE 0x3000u
#define MEMBERS 6u
#define STEPS 4000u
#define BAR_BYTES 0x2000u

struct obvious {
	unsigned host;
	uint64_t id;  /* 0: there is none */
	uint64_t bar; /* the view that it is laid on; 0: on none */
	uint8_t *bar_data;
	bool published;
	uint64_t size;
	uint8_t copy[SIZE];
};

struct group_test {
	struct fake *f;
	struct obvious member[MEMBERS];
	bool link[3];
	uint64_t tlps[3], sent[2]; /* passed each adapter; sent by the device, and the engine */
	uint64_t sender[2];	   /* of LENDER and CLIENT */
	struct sio_evt_dmamap map;
	struct emu_dev *dev;
	struct emu_channel *channel;
	uint8_t *source;
};

static unsigned pick(struct group_test *t, unsigned n)
{
	uint64_t *x = &t->f->seed;

	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return (unsigned)(*x % n);
}

static int mcast(struct fake *f, unsigned host, uint32_t what, uint64_t target, uint64_t length,
		 struct sio_evt_mcast *ret)
{
	struct sio_req_mcast req = {
		.group = GROUP, .what = what, .target = target, .length = length};

	return ask(f, host, &req, SIO_OP_MCAST, ret);
}

static struct emu_object *object(struct fake *f, unsigned host, uint64_t id)
{
	struct emu_object *o;

	HASH_FIND(hh, f->room->host[host].objects, &id, sizeof(id), o);
	assert_non_null(o);
	return o;
}

/* Members 3 and 4 have a device each, whose BAR no other member lies in. */
static bool may_overlay(unsigned i)
{
	return i == 3 || i == 4;
}

static void join_bar(struct group_test *t, unsigned i)
{
	struct sio_req_mcast req = {.group = GROUP,
				    .what = SIO_MCAST_JOIN,
				    .length = EMU_PAGE * (1 + pick(t, 2)),
				    .source_kind = SIO_KIND_BAR};
	unsigned host = i % 3, device = host == LENDER;
	struct sio_req_bar view = {.device = DEV(host, device),
				   .offset = MEMORY,
				   .length = BAR_BYTES,
				   .access = SIO_ACCESS_READ | SIO_ACCESS_WRITE};
	struct obvious *m = &t->member[i];
	struct sio_evt_mcast evt;
	struct sio_evt_bar bar;

	req.offset = req.length == EMU_PAGE ? EMU_PAGE * pick(t, 2) : 0;
	assert_int_equal(ask(t->f, host, &view, SIO_OP_BAR, &bar), 0);
	req.source = bar.id;
	assert_int_equal(ask(t->f, host, &req, SIO_OP_MCAST, &evt), 0);
	assert_int_equal(t->f->answer.n_fds, 0);
	assert_int_equal(evt.size, req.length);
	*m = (struct obvious){.host = host, .id = evt.id, .size = evt.size, .bar = bar.id};
	m->bar_data = (uint8_t *)t->f->room->host[host].device[device]->run[MEMORY_RUN].mem.data +
		      req.offset;
	memcpy(m->copy, m->bar_data, m->size);
}

static void join(struct group_test *t, unsigned i, uint64_t size)
{
	struct obvious *m = &t->member[i];
	struct sio_evt_mcast evt;

	m->host = i % 3;
	assert_int_equal(mcast(t->f, m->host, SIO_MCAST_JOIN, 0, size, &evt), 0);
	assert_int_equal(t->f->answer.n_fds, 1);
	assert_int_equal(evt.mode, SIO_MCAST_EXACT);
	m->id = evt.id;
	m->bar = 0;
	m->size = evt.size;
	m->published = false;
	memset(m->copy, 0, sizeof(m->copy));
}

static void change_member(struct group_test *t, unsigned i)
{
	struct obvious *m = &t->member[i];
	struct sio_evt_mcast evt;

	if (!m->id && may_overlay(i) && pick(t, 2)) {
		join_bar(t, i);
	} else if (!m->id) {
		join(t, i, pick(t, 2) ? SIZE : SIZE / 3);
	} else if (i > 0 && pick(t, 4) == 0) { /* the first keeps the group */
		assert_int_equal(fake_end(t->f, m->host, SIO_OP_FREE, m->id, 0), 0);
		if (m->bar)
			assert_int_equal(fake_end(t->f, m->host, SIO_OP_BAR_CLOSE, m->bar, 0), 0);
		m->id = 0;
	} else {
		m->published = !m->published;
		assert_int_equal(mcast(t->f, m->host,
				       m->published ? SIO_MCAST_PUBLISH : SIO_MCAST_UNPUBLISH,
				       m->id, 0, &evt),
				 0);
	}
}

/* What should come of a write, piece by piece as the addresses' pages lie. True: to all. */
static bool expect_write(struct group_test *t, unsigned from, uint64_t addr, uint64_t offset,
			 const uint8_t *data, size_t len, bool page_by_page)
{
	bool all = true;

	while (len > 0) {
		size_t n = page_by_page ? EMU_PAGE - addr % EMU_PAGE : len;
		struct sio_pcie_count c = {0};
		bool out = false, in[3] = {false};

		n = n < len ? n : len;
		sio_pcie_write(&t->f->room->pcie, addr, n, &c);
		t->sent[from] += c.write_tlps;
		for (unsigned i = 0; i < MEMBERS; i++) {
			struct obvious *m = &t->member[i];

			if (!m->id || !m->published)
				continue;
			out |= m->host != from;
			if (m->host != from && !(t->link[from] && t->link[m->host])) {
				all = false;
				continue;
			}
			in[m->host] |= m->host != from;
			for (size_t k = 0; k < n; k++)
				if (offset + k < m->size)
					m->copy[offset + k] = data[k];
		}
		t->tlps[from] += out ? c.write_tlps : 0;
		for (unsigned h = 0; h < 3; h++)
			t->tlps[h] += in[h] ? c.write_tlps : 0;
		addr += n;
		offset += n;
		data += n;
		len -= n;
	}
	return all;
}

static void range(struct group_test *t, uint64_t *offset, size_t *len)
{
	*offset = pick(t, SIZE);
	*len = 1 + pick(t, pick(t, 2) ? 64 : SIZE);
	if (*len > SIZE - *offset)
		*len = SIZE - *offset;
}

static void device_writes(struct group_test *t)
{
	uint8_t data[SIZE];
	uint64_t offset;
	size_t len;
	bool all;

	range(t, &offset, &len);
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)pick(t, 256);
	all = expect_write(t, LENDER, t->map.iova + offset, offset, data, len, true);
	assert_int_equal(t->dev->write(t->dev, t->map.iova + offset, data, len), all ? 0 : -EFAULT);
}

static void engine_copies(struct group_test *t)
{
	struct sio_dma_ring *ring = t->channel->mem.data;
	uint32_t number = ring->done;
	uint64_t offset;
	size_t len;
	bool all;

	range(t, &offset, &len);
	for (size_t i = 0; i < len; i++)
		t->source[i] = (uint8_t)pick(t, 256);
	all = expect_write(t, CLIENT, t->channel->slot[1]->m.iova + offset, offset, t->source, len,
			   false);
	ring->entry[ring->tail % SIO_DMA_ENTRIES] = (struct sio_dma_entry){.source = 0,
									   .target = 1,
									   .target_offset = offset,
									   .length = len,
									   .flags = SIO_DMA_LAST};
	ring->tail++;
	while (emu_room_engine_step(t->f->room, CLIENT))
		;
	emu_room_engines_collect(t->f->room);
	assert_int_equal(ring->done, number + 1);
	assert_int_equal(ring->result[number % SIO_DMA_RESULTS], all ? 0 : -EFAULT);
}

static void compare(struct group_test *t)
{
	for (unsigned i = 0; i < MEMBERS; i++)
		if (t->member[i].id)
			assert_memory_equal(t->member[i].bar ? t->member[i].bar_data
							     : fake_data(t->f, t->member[i].host,
									 t->member[i].id),
					    t->member[i].copy, t->member[i].size);
	for (unsigned h = 0; h < 3; h++) {
		const struct emu_adapter *a = &t->f->room->host[h].adapter[0];

		assert_int_equal(a->count.pcie.write_tlps + a->dma.write_tlps, t->tlps[h]);
	}
	assert_int_equal(t->f->room->host[LENDER].device[0]->count.pcie.write_tlps,
			 t->sent[LENDER]);
	assert_int_equal(t->channel->engine->d.count.pcie.write_tlps, t->sent[CLIENT]);
}

static void open_channel(struct group_test *t)
{
	struct sio_req_dma req = {.h.reserved = 0};
	struct sio_req_dma_attach attach = {
		.target_kind = SIO_KIND_MEM, .length = SIZE, .access = SIO_ACCESS_READ};
	struct sio_evt_dma_attach evt;
	struct sio_evt_dma made;

	assert_int_equal(ask(t->f, CLIENT, &req, SIO_OP_DMA, &made), 0);
	t->channel = (struct emu_channel *)object(t->f, CLIENT, made.id);
	attach.channel = made.id;
	attach.target = fake_alloc(t->f, CLIENT, 0, SIZE);
	t->source = fake_data(t->f, CLIENT, attach.target);
	assert_int_equal(ask(t->f, CLIENT, &attach, SIO_OP_DMA_ATTACH, &evt), 0);
	attach.target = t->sender[CLIENT];
	attach.access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	assert_int_equal(ask(t->f, CLIENT, &attach, SIO_OP_DMA_ATTACH, &evt), -EINVAL);
	attach.access = SIO_ACCESS_WRITE;
	assert_int_equal(ask(t->f, CLIENT, &attach, SIO_OP_DMA_ATTACH, &evt), 0);
	assert_int_equal(evt.slot, 1);
}

static void setup_group(struct group_test *t, unsigned iommu)
{
	struct sio_req_dmamap req = {.device = DEV(LENDER, 0),
				     .target_kind = SIO_KIND_MEM,
				     .length = SIZE,
				     .access = SIO_ACCESS_WRITE,
				     .iova = SIO_PORT_ANY,
				     .highest = SIO_PORT_ANY};
	struct sio_evt_mcast evt;

	memset(t, 0, sizeof(*t));
	t->f = fake_new(iommu);
	t->f->topo.exact_multicast = true;
	for (unsigned i = 0; i < 3; i++) {
		fake_up(t->f, i);
		t->link[i] = true;
	}
	fake_open(t->f, LENDER, 0);
	fake_open(t->f, LENDER, 1);
	fake_open(t->f, CLIENT, 0);
	t->dev = fake_dev(t->f, LENDER, 0);
	join(t, 0, SIZE);
	change_member(t, 0);
	for (unsigned h = LENDER; h <= CLIENT; h++) {
		assert_int_equal(mcast(t->f, h, SIO_MCAST_CONNECT, 0, 0, &evt), 0);
		assert_int_equal(t->f->answer.n_fds, 0);
		assert_int_equal(evt.mode, SIO_MCAST_EXACT);
		assert_int_equal(evt.size, SIZE);
		t->sender[h] = evt.id;
	}
	req.target = t->sender[LENDER];
	assert_int_equal(ask(t->f, LENDER, &req, SIO_OP_DMAMAP, &t->map), -ENOENT);
	assert_non_null(strstr(fake_text(t->f), "requester table"));
	fake_requester(t->f, LENDER, 0, 0);
	assert_int_equal(ask(t->f, LENDER, &req, SIO_OP_DMAMAP, &t->map), 0);
	open_channel(t);
}

static void writes_reach_each_member(void **state)
{
	(void)state;
	for (unsigned iommu = 0; iommu < 8; iommu++) {
		struct group_test t;

		setup_group(&t, iommu);
		for (unsigned i = 0; i < STEPS; i++) {
			unsigned what = pick(&t, 16), h = pick(&t, 3);

			if (what < 2) {
				change_member(&t, pick(&t, MEMBERS));
			} else if (what == 2) {
				t.link[h] = !t.link[h] || pick(&t, 2);
				assert_int_equal(emu_room_link(t.f->room, h, 0, t.link[h]), 0);
			} else if (what < 10) {
				device_writes(&t);
			} else {
				engine_copies(&t);
			}
			fake_forget(t.f);
			if (i % 20 == 0)
				compare(&t);
		}
		compare(&t);
		assert_true(t.tlps[LENDER] && t.tlps[CLIENT] && t.tlps[OTHER]);
		fake_free(t.f);
	}
}

static void nothing_else_goes_there(void **state)
{
	struct sio_req_grant grant = {
		.source_kind = SIO_KIND_MEM, .access = 3, .length = SIZE, .peer_node = NODE(OTHER)};
	struct sio_req_dmamap req = {.device = DEV(LENDER, 0),
				     .target_kind = SIO_KIND_MEM,
				     .length = SIZE,
				     .access = SIO_ACCESS_READ,
				     .iova = SIO_PORT_ANY,
				     .highest = SIO_PORT_ANY};
	struct group_test t;
	uint8_t byte;

	(void)state;
	setup_group(&t, 0);
	grant.source = req.target = t.sender[LENDER];
	assert_int_equal(ask_only(t.f, LENDER, &req, SIO_OP_DMAMAP), -EINVAL);
	assert_non_null(strstr(fake_text(t.f), "writing"));
	assert_int_equal(ask_only(t.f, LENDER, &grant, SIO_OP_GRANT), -EINVAL);
	/* Without an IOMMU a device may try to read there. */
	assert_int_equal(t.dev->read(t.dev, t.map.iova, &byte, 1), -EFAULT);
	assert_non_null(
		strstr(t.f->room->host[LENDER]
			       .faults.ring[(t.f->room->host[LENDER].faults.count - 1) % EMU_FAULTS]
			       .reason,
		       "can only be written to"));
	/* In use it cannot go; a member can, of which nobody but the sender is left then. */
	assert_int_equal(fake_end(t.f, LENDER, SIO_OP_FREE, t.sender[LENDER], 0), -EBUSY);
	assert_int_equal(fake_end(t.f, LENDER, SIO_OP_FREE, t.member[0].id, 0), 0);
	assert_int_equal(t.dev->write(t.dev, t.map.iova, "nobody", 6), 0);
	fake_free(t.f);
}

/* A host that crashes is no member any more, nor is the program that dies. */
static void the_dead_are_no_members(void **state)
{
	struct sio_req_mcast req = {.group = GROUP, .what = SIO_MCAST_JOIN, .length = SIZE};
	struct sio_evt_mcast evt;
	struct group_test t;
	uint64_t owner, tlps;

	(void)state;
	setup_group(&t, 7);
	join(&t, 2, SIZE);
	change_member(&t, 2);
	owner = req.h.owner = fake_owner(t.f, CLIENT);
	assert_int_equal(ask(t.f, CLIENT, &req, SIO_OP_MCAST, &evt), 0);
	assert_int_equal(mcast(t.f, CLIENT, SIO_MCAST_PUBLISH, evt.id, 0, &evt), 0);
	assert_int_equal(t.dev->write(t.dev, t.map.iova, "all", 3), 0);
	emu_room_owner_hup(t.f->room, CLIENT, owner);
	assert_int_equal(t.dev->write(t.dev, t.map.iova, "two", 3), 0);
	emu_room_host_down(t.f->room, OTHER);
	tlps = t.f->room->host[LENDER].adapter[0].count.pcie.write_tlps;
	assert_int_equal(tlps, 2);
	assert_int_equal(t.dev->write(t.dev, t.map.iova, "one", 3), 0);
	assert_int_equal(t.f->room->host[LENDER].adapter[0].count.pcie.write_tlps, tlps);
	assert_memory_equal(fake_data(t.f, LENDER, t.member[0].id), "one", 3);
	fake_free(t.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_reach_each_member),
		cmocka_unit_test(nothing_else_goes_there),
		cmocka_unit_test(the_dead_are_no_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
