/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a device's accesses go, for every combination of IOMMUs; how they fail; what is counted. */
#include <stdio.h>

#include "fake.h"

#define SIZE 0x4000

/* A device of the lender, and memory of each host that it was given. */
struct reach {
	struct fake *f;
	struct emu_dev *dev;
	uint64_t local_mem, remote_mem, grant_id, map_id, requester;
	struct sio_evt_grant grant;
	struct sio_evt_map map;
	struct sio_evt_dmamap local, remote;
};

static void reach_init_in(struct reach *r, struct fake *f)
{
	memset(r, 0, sizeof(*r));
	r->f = f;
	for (unsigned i = 0; i < 3; i++)
		fake_up(f, i);
	fake_open(f, LENDER, 0);
	r->dev = fake_dev(f, LENDER, 0);
	r->local_mem = fake_alloc(f, LENDER, 0, SIZE);
	r->remote_mem = fake_alloc(f, CLIENT, 0, SIZE);
	r->grant = fake_grant(f, CLIENT, 0, r->remote_mem, SIZE, LENDER);
	r->map = fake_map(f, LENDER, 0, CLIENT, &r->grant);
	r->requester = fake_requester(f, LENDER, 0, 0);
	r->local = fake_dmamap(f, LENDER, 0, 0, SIO_KIND_MEM, r->local_mem, SIZE, 3);
	r->remote = fake_dmamap(f, LENDER, 0, 0, SIO_KIND_MAP, r->map.id, SIZE, 3);
	fake_forget(f);
}

static void reach_init(struct reach *r, unsigned iommu)
{
	reach_init_in(r, fake_new(iommu));
}

static void assert_fault(struct reach *r, unsigned access, uint64_t addr, size_t len,
			 const char *reason)
{
	const struct sio_evt_fault *evt;
	struct fake_event *e;
	char buf[0x3000];

	memset(buf, 0x55, sizeof(buf));
	fake_forget(r->f);
	if (access == SIO_FAULT_READ)
		assert_int_equal(r->dev->read(r->dev, addr, buf, len), -EFAULT);
	else
		assert_int_equal(r->dev->write(r->dev, addr, buf, len), -EFAULT);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(buf[i], 0x55); /* a read that failed has read nothing */
	e = fake_take(r->f, LENDER, SIO_EV_FAULT);
	assert_non_null(e);
	evt = &e->u.fault;
	assert_int_equal(evt->device, DEV(LENDER, 0));
	assert_int_equal(evt->access, access);
	if (!strstr(evt->reason, reason))
		fail_msg("'%s' does not contain '%s'", evt->reason, reason);
	r->f->clock += 1000000000; /* the next one is not too many */
}

static void devices_reach_what_was_mapped(void **state)
{
	(void)state;
	for (unsigned iommu = 0; iommu < 8; iommu++) {
		uint8_t out[SIZE], in[SIZE];
		struct reach r;

		reach_init(&r, iommu);
		for (unsigned i = 0; i < SIZE; i++)
			out[i] = (uint8_t)(i * 7 + i / 256);
		/* Neither whole pages nor words: from inside one page to inside another. */
		assert_int_equal(r.dev->write(r.dev, r.local.iova + 5, out, SIZE - 9), 0);
		assert_int_equal(r.dev->write(r.dev, r.remote.iova + 3, out, SIZE - 3), 0);
		assert_memory_equal(fake_data(r.f, LENDER, r.local_mem) + 5, out, SIZE - 9);
		assert_memory_equal(fake_data(r.f, CLIENT, r.remote_mem) + 3, out, SIZE - 3);
		assert_int_equal(r.dev->read(r.dev, r.remote.iova + 3, in, SIZE - 3), 0);
		assert_memory_equal(in, out, SIZE - 3);
		assert_int_equal(r.dev->read(r.dev, r.remote.iova, in, 0), 0);
		assert_int_equal(r.f->n_events, 0);
		if (iommu & 1 << LENDER)
			assert_int_not_equal(r.local.iova, 0x100000000ull);
		fake_free(r.f);
	}
}

/* Switches that a link joins lead as one does; those that nothing joins do not. */
static void cascades_lead_from_switch_to_switch(void **state)
{
	uint8_t out[64] = "a cascade", in[64];
	struct emu_host *h;
	struct reach r;
	struct fake *f;

	(void)state;
	reach_init_in(&r, fake_new_cascade(true));
	assert_int_equal(r.dev->write(r.dev, r.remote.iova, out, 64), 0);
	assert_memory_equal(fake_data(r.f, CLIENT, r.remote_mem), out, 64);
	assert_int_equal(r.dev->read(r.dev, r.remote.iova, in, 64), 0);
	assert_memory_equal(in, out, 64);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(r.f->room->host[i].n_paths, 2);
	assert_int_equal(emu_room_link(r.f->room, CLIENT, 0, false), 0);
	assert_fault(&r, SIO_FAULT_READ, r.remote.iova, 64, "the path to host1 is down");
	assert_int_equal(emu_room_link(r.f->room, CLIENT, 0, true), 0);
	assert_int_equal(r.dev->read(r.dev, r.remote.iova, in, 64), 0);
	assert_int_equal(emu_room_trunk(r.f->room, 0, false), 0);
	assert_false(emu_room_trunk_in(r.f->room, 0));
	assert_fault(&r, SIO_FAULT_READ, r.remote.iova, 64, "the path to host1 is down");
	assert_int_equal(emu_room_switch(r.f->room, 1, false), 0);
	assert_int_equal(emu_room_trunk(r.f->room, 0, true), 0);
	assert_fault(&r, SIO_FAULT_READ, r.remote.iova, 64, "the path to host1 is down");
	assert_int_equal(emu_room_switch(r.f->room, 1, true), 0);
	assert_int_equal(r.dev->read(r.dev, r.remote.iova, in, 64), 0);
	fake_free(r.f);
	f = fake_new_cascade(false);
	h = f->room->host;
	assert_int_equal(h[LENDER].n_paths, 0);
	assert_int_equal(h[CLIENT].n_paths, 1);
	assert_non_null(emu_path_find(&h[CLIENT], 0, OTHER, 0));
	assert_null(emu_path_find(&h[CLIENT], 0, LENDER, 0));
	fake_free(f);
}

/* Aligned 4 KiB read at depth 1: 64 B fetched, 4 KiB and 16 B written; port and both links alike.
 */
static void transactions_are_counted_where_they_pass(void **state)
{
	static const char *const name[] = {"rd_req", "rd_cpl",	 "rd_bytes",
					   "wr_tlp", "wr_bytes", "faults"};
	static const uint64_t right[] = {1, 1, 64, 17, 4112, 0};
	static const uint64_t twice[] = {2, 2, 128, 34, 8224, 0};
	char buf[0x1000] = {0};
	struct reach r;

	(void)state;
	reach_init(&r, 1 << LENDER);
	assert_int_equal(r.dev->read(r.dev, r.remote.iova + 64, buf, 64), 0);
	assert_int_equal(r.dev->write(r.dev, r.remote.iova + 0x1000, buf, 0x1000), 0);
	assert_int_equal(r.dev->write(r.dev, r.remote.iova + 0x2010, buf, 16), 0);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(
			fake_counter(r.f, LENDER, SIO_KIND_DEVICE, DEV(LENDER, 0), name[i]),
			right[i]);
		assert_int_equal(fake_counter(r.f, LENDER, SIO_KIND_ADAPTER, 0, name[i]), right[i]);
		assert_int_equal(fake_counter(r.f, CLIENT, SIO_KIND_ADAPTER, 0, name[i]), right[i]);
		assert_int_equal(fake_counter(r.f, OTHER, SIO_KIND_ADAPTER, 0, name[i]), 0);
	}
	/* The same in local memory: no link sees it. */
	assert_int_equal(r.dev->read(r.dev, r.local.iova + 64, buf, 64), 0);
	assert_int_equal(r.dev->write(r.dev, r.local.iova + 0x1000, buf, 0x1000), 0);
	assert_int_equal(r.dev->write(r.dev, r.local.iova + 0x2010, buf, 16), 0);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(
			fake_counter(r.f, LENDER, SIO_KIND_DEVICE, DEV(LENDER, 0), name[i]),
			twice[i]);
		assert_int_equal(fake_counter(r.f, LENDER, SIO_KIND_ADAPTER, 0, name[i]), right[i]);
	}
	fake_free(r.f);
}

#define BOX_BASE 0x4000000000ull

static void two_boxes(struct sio_topology *t, void *arg)
{
	struct sio_topo_chassis *box = t->host[LENDER].chassis;

	(void)arg;
	box[0] = (struct sio_topo_chassis){
		.name = "outer", .range_base = BOX_BASE, .range_size = 0x200000};
	box[1] = (struct sio_topo_chassis){
		.name = "inner", .in = 1, .range_base = BOX_BASE, .range_size = 0x100000};
}

/* A chassis passes on what is addressed to its range, though nothing is there. */
static void what_a_chassis_passes_on_crosses_it(void **state)
{
	struct fake *f = fake_new_tree(0, 2, two_boxes, NULL);
	struct reach r;

	(void)state;
	reach_init_in(&r, f);
	assert_fault(&r, SIO_FAULT_WRITE, BOX_BASE + 0xff000, 64, "of host0, behind chassis inner");
	assert_int_equal(fake_counter(f, LENDER, SIO_STATS_CHASSIS, 0, "wr_bytes"), 64);
	assert_int_equal(fake_counter(f, LENDER, SIO_STATS_CHASSIS, 1, "wr_bytes"), 64);
	assert_fault(&r, SIO_FAULT_WRITE, BOX_BASE + 0x100000, 32, "behind chassis outer");
	assert_int_equal(fake_counter(f, LENDER, SIO_STATS_CHASSIS, 0, "wr_bytes"), 96);
	assert_int_equal(fake_counter(f, LENDER, SIO_STATS_CHASSIS, 1, "wr_bytes"), 64);
	assert_fault(&r, SIO_FAULT_WRITE, BOX_BASE + 0x200000, 32, "of host0");
	assert_fault(&r, SIO_FAULT_WRITE, BOX_BASE - 64, 32, "of host0");
	assert_int_equal(fake_counter(f, LENDER, SIO_STATS_CHASSIS, 0, "wr_bytes"), 96);
	fake_free(f);
}

static void other_domains_addresses_fault(void **state)
{
	struct reach r;

	(void)state;
	reach_init(&r, 7);
	assert_fault(&r, SIO_FAULT_READ, 0x100000000ull, 64, "nothing is mapped");
	assert_fault(&r, SIO_FAULT_WRITE, r.grant.bus_addr, 16, "nothing is mapped");
	assert_fault(&r, SIO_FAULT_READ, r.map.bus_addr, 64, "IOMMU domain of dev0");
	fake_free(r.f);
	reach_init(&r, 0);
	assert_fault(&r, SIO_FAULT_READ, 0x200000000ull, 64, "nothing is at physical address");
	assert_fault(&r, SIO_FAULT_WRITE, r.local.iova + SIZE, 64, "nothing is at");
	assert_fault(&r, SIO_FAULT_WRITE, r.map.bus_addr + SIZE, 64, "of host1");
	assert_fault(&r, SIO_FAULT_WRITE, r.map.bus_addr + 0x10000, 64, "no look-up entry");
	assert_fault(&r, SIO_FAULT_WRITE, 0x80000000ull, 4, "cannot be reached by devices");
	assert_int_equal(r.dev->write(r.dev, 0x80000000ull + MEMORY, "1234", 4), 0);
	assert_int_equal(fake_counter(r.f, LENDER, 0, 0, "faults"), 5);
	fake_free(r.f);
}

static void fault_names_nearest_mapping(void **state)
{
	const struct sio_evt_fault *evt;
	struct fake_event *e;
	struct reach r;
	char buf[64];

	(void)state;
	reach_init(&r, 7);
	assert_int_equal(r.dev->read(r.dev, r.remote.iova + SIZE + 8, buf, 64), -EFAULT);
	e = fake_take(r.f, LENDER, SIO_EV_FAULT);
	assert_non_null(e);
	evt = &e->u.fault;
	assert_int_equal(evt->nearest, r.remote.iova);
	assert_int_equal(evt->mapping, r.remote.id);
	assert_int_equal(evt->h.owner, 0); /* the daemon's own */
	assert_int_equal(evt->address, r.remote.iova + SIZE + 8);
	assert_int_equal(evt->length, 64);
	assert_int_equal(evt->node, NODE(LENDER));
	fake_free(r.f);
}

static void rights_hold_at_both_ends(void **state)
{
	struct sio_req_grant req = {.source_kind = SIO_KIND_MEM,
				    .access = SIO_ACCESS_READ,
				    .length = SIZE,
				    .peer_node = NODE(LENDER)};
	struct sio_evt_dmamap d;
	struct sio_evt_grant g;
	struct sio_evt_map map;
	struct reach r;
	char buf[64];

	(void)state;
	reach_init(&r, 7);
	d = fake_dmamap(r.f, LENDER, 0, 0, SIO_KIND_MEM, r.local_mem, SIZE, SIO_ACCESS_READ);
	assert_int_equal(r.dev->read(r.dev, d.iova, buf, 64), 0);
	assert_fault(&r, SIO_FAULT_WRITE, d.iova, 64, "dev0 is not for writing");
	d = fake_dmamap(r.f, LENDER, 0, 0, SIO_KIND_MEM, r.local_mem, SIZE, SIO_ACCESS_WRITE);
	assert_fault(&r, SIO_FAULT_READ, d.iova, 64, "dev0 is not for reading");
	req.source = r.remote_mem;
	assert_int_equal(ask(r.f, CLIENT, &req, SIO_OP_GRANT, &g), 0);
	map = fake_map(r.f, LENDER, 0, CLIENT, &g);
	assert_int_equal(map.map_flags, SIO_MAP_READ_ONLY);
	d = fake_dmamap(r.f, LENDER, 0, 0, SIO_KIND_MAP, map.id, SIZE, 3);
	assert_int_equal(r.dev->read(r.dev, d.iova, buf, 64), 0);
	assert_fault(&r, SIO_FAULT_WRITE, d.iova, 64, "adapter 0 of host1 is not for writing");
	fake_free(r.f);
}

static void what_is_taken_away_faults_at_once(void **state)
{
	struct reach r;
	char buf[64];

	(void)state;
	for (unsigned iommu = 0; iommu < 8; iommu++) {
		reach_init(&r, iommu);
		assert_int_equal(r.dev->read(r.dev, r.remote.iova, buf, 64), 0);
		assert_int_equal(r.dev->read(r.dev, r.local.iova, buf, 64), 0);
		if (iommu & 1 << CLIENT) {
			assert_int_equal(fake_end(r.f, CLIENT, SIO_OP_UNGRANT, r.grant.id, 0), 0);
			assert_fault(&r, SIO_FAULT_READ, r.remote.iova, 64, "of host1");
		}
		assert_int_equal(fake_end(r.f, LENDER, SIO_OP_DMAUNMAP, r.remote.id, 0), 0);
		assert_int_equal(fake_end(r.f, LENDER, SIO_OP_REQUESTER_DEL, r.requester, 0), 0);
		if (!(iommu & 1 << LENDER))
			assert_fault(&r, SIO_FAULT_READ, r.map.bus_addr, 64, "requester table");
		assert_int_equal(fake_end(r.f, LENDER, SIO_OP_UNMAP, r.map.id, 0), 0);
		assert_fault(&r, SIO_FAULT_WRITE, r.remote.iova, 64, "");
		assert_int_equal(fake_end(r.f, LENDER, SIO_OP_DMAUNMAP, r.local.id, 0), 0);
		assert_int_equal(fake_end(r.f, LENDER, SIO_OP_FREE, r.local_mem, 0), 0);
		assert_fault(&r, SIO_FAULT_WRITE, r.local.iova, 64, "nothing is");
		fake_free(r.f);
	}
}

static void reads_fail_whole_writes_page_by_page(void **state)
{
	uint8_t *data;
	struct reach r;

	(void)state;
	reach_init(&r, 7);
	data = fake_data(r.f, LENDER, r.local_mem);
	assert_fault(&r, SIO_FAULT_READ, r.local.iova + SIZE - 0x1000, 0x2000, "nothing is mapped");
	assert_fault(&r, SIO_FAULT_WRITE, r.local.iova + SIZE - 0x1000, 0x2000,
		     "nothing is mapped");
	assert_int_equal(data[SIZE - 0x1000], 0x55);
	assert_int_equal(data[SIZE - 1], 0x55);
	assert_int_equal(data[SIZE - 0x1001], 0);
	assert_fault(&r, SIO_FAULT_READ, UINT64_MAX - 3, 8, "wraps");
	assert_fault(&r, SIO_FAULT_WRITE, UINT64_MAX - 3, 8, "wraps");
	fake_free(r.f);
}

static void lost_paths_and_reboots_fault(void **state)
{
	struct reach r;
	char buf[64];

	(void)state;
	reach_init(&r, 0);
	assert_int_equal(r.dev->read(r.dev, r.remote.iova, buf, 64), 0);
	assert_int_equal(emu_room_link(r.f->room, CLIENT, 0, false), 0);
	assert_fault(&r, SIO_FAULT_READ, r.remote.iova, 64, "the path to host1 is down");
	assert_int_equal(emu_room_link(r.f->room, CLIENT, 0, true), 0);
	assert_int_equal(r.dev->read(r.dev, r.remote.iova, buf, 64), 0);
	emu_room_host_down(r.f->room, CLIENT);
	assert_fault(&r, SIO_FAULT_READ, r.remote.iova, 64, "is down");
	fake_up(r.f, CLIENT);
	fake_alloc(r.f, CLIENT, 0, SIZE); /* lies where the old memory lay */
	assert_fault(&r, SIO_FAULT_WRITE, r.remote.iova, 64,
		     "start 1 of host1, which is in start 2");
	fake_free(r.f);
}

/* What was granted and mapped before leads nowhere, and neither half can be used again. */
static void links_with_other_addresses_fault(void **state)
{
	struct sio_evt_grant fresh;
	struct sio_req_map req;
	struct sio_evt_map map;
	struct fake_event *e;
	struct reach r;

	(void)state;
	reach_init(&r, 7);
	assert_int_equal(emu_room_link_turn(r.f->room, CLIENT, 0), -EBUSY);
	assert_int_equal(emu_room_link_turn(r.f->room, CLIENT, 1), -ENODEV);
	assert_int_equal(emu_room_link(r.f->room, CLIENT, 0, false), 0);
	assert_int_equal(emu_room_link_turn(r.f->room, CLIENT, 0), 0);
	fake_forget(r.f);
	assert_int_equal(emu_room_link(r.f->room, CLIENT, 0, true), 0);
	for (unsigned host = 0; host < 2; host++) {
		e = fake_take(r.f, host ? CLIENT : LENDER, SIO_EV_LINK);
		assert_int_equal(e->u.link.generation, 1);
		assert_int_equal(e->u.link.turn, 1);
	}
	assert_fault(&r, SIO_FAULT_WRITE, r.remote.iova, 64, "is of start 1 of host1");
	req = fake_map_request(CLIENT, &r.grant);
	assert_int_equal(ask(r.f, LENDER, &req, SIO_OP_MAP, &map), -ESTALE);
	fresh = fake_grant(r.f, CLIENT, 0, r.remote_mem, SIZE, LENDER);
	assert_int_equal(fresh.generation, SIO_LINK_START(1, 1));
	req.generation = fresh.generation;
	assert_int_equal(ask(r.f, LENDER, &req, SIO_OP_MAP, &map), -EACCES);
	fake_map(r.f, LENDER, 0, CLIENT, &fresh);
	fake_free(r.f);
}

static void narrow_devices_reach_low_addresses_only(void **state)
{
	struct sio_req_dmamap req = {.device = DEV(LENDER, 2),
				     .target_kind = SIO_KIND_MEM,
				     .access = 3,
				     .length = SIZE,
				     .iova = SIO_PORT_ANY,
				     .highest = SIO_PORT_ANY};
	struct reach r;
	char buf[64];

	(void)state;
	reach_init(&r, 0); /* RAM begins at 4 GiB */
	fake_open(r.f, LENDER, 2);
	req.target = r.local_mem;
	assert_int_equal(ask_only(r.f, LENDER, &req, SIO_OP_DMAMAP), -ENOSPC);
	assert_non_null(strstr(fake_text(r.f), "0xffffffff"));
	r.dev = fake_dev(r.f, LENDER, 2);
	assert_int_equal(r.dev->read(r.dev, r.local.iova, buf, 64), -EFAULT);
	fake_free(r.f);
	reach_init(&r, 1 << LENDER);
	fake_open(r.f, LENDER, 2);
	req.target = r.local_mem;
	assert_int_equal(ask_only(r.f, LENDER, &req, SIO_OP_DMAMAP), 0);
	fake_free(r.f);
}

struct planted {
	unsigned failures;
	char text[256];
};

static void note(void *arg, const char *text)
{
	struct planted *p = arg;

	p->failures++;
	snprintf(p->text, sizeof(p->text), "%s", text);
}

static void windows_do_not_chain(void **state)
{
	struct planted p = {0};
	struct reach r;

	(void)state;
	reach_init(&r, 0);
	/* No grant leads into an aperture: turn the entry by hand, and expect the list to see it.
	 */
	emu_check_hook(r.f->room->check, note, &p);
	r.f->room->host[LENDER].adapter[0].lut.entry[0].target.bus.addr = 0x2100000000ull;
	emu_invalidate(r.f->room);
	assert_fault(&r, SIO_FAULT_READ, r.map.bus_addr, 64, "lies in an aperture");
	assert_int_equal(p.failures, EMU_CHECK);
	fake_free(r.f);
}

static void fault_storm_is_bounded(void **state)
{
	unsigned events = 0, overflows = 0;
	struct reach r;
	char buf[16];

	(void)state;
	reach_init(&r, 7);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(r.dev->write(r.dev, 64, buf, 16), -EFAULT);
	assert_int_equal(r.f->events_lost, 0);
	while (fake_take(r.f, LENDER, SIO_EV_FAULT))
		events++;
	while (fake_take(r.f, LENDER, SIO_EV_OVERFLOW))
		overflows++;
	assert_int_equal(events, 32);
	assert_int_equal(overflows, 1);
	assert_int_equal(fake_counter(r.f, LENDER, 0, 0, "faults"), 1000);
	fake_free(r.f);
}

/* Bugs put into the tables by hand: the list kept apart from them must see each. */
static void naive_list_catches_wrong_tables(void **state)
{
	const struct sio_region *lowest;
	struct planted p = {0};
	struct reach r;
	char buf[64];

	(void)state;
	if (!EMU_CHECK)
		skip();
	reach_init(&r, 7);
	emu_check_hook(r.f->room->check, note, &p);
	assert_int_equal(r.dev->read(r.dev, r.remote.iova, buf, 64), 0);
	assert_int_equal(p.failures, 0);

	/* A translation that outlives its mapping, as if nobody had moved the generation. */
	assert_int_equal(fake_end(r.f, LENDER, SIO_OP_DMAUNMAP, r.remote.id, 0), 0);
	r.f->room->gen--;
	assert_int_equal(r.dev->read(r.dev, r.remote.iova, buf, 64), 0);
	assert_int_equal(p.failures, 1);
	assert_non_null(strstr(p.text, "read of 64 bytes"));
	r.f->room->gen++;

	/* A mapping that leads one page too far. */
	lowest = sio_addrmap_overlap(&r.f->room->host[LENDER].device[0]->iommu.map, 0, UINT64_MAX);
	((struct sio_region *)(uintptr_t)lowest)->offset += 0x1000;
	emu_invalidate(r.f->room);
	assert_int_equal(r.dev->read(r.dev, r.local.iova, buf, 64), 0);
	assert_int_equal(p.failures, 2);

	/* One that is missing. */
	sio_iommu_unmap(&r.f->room->host[LENDER].device[0]->iommu,
			(struct sio_dev_addr){r.local.iova});
	emu_invalidate(r.f->room);
	assert_int_equal(r.dev->read(r.dev, r.local.iova, buf, 64), -EFAULT);
	assert_int_equal(p.failures, 3);
	fake_free(r.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_reach_what_was_mapped),
		cmocka_unit_test(cascades_lead_from_switch_to_switch),
		cmocka_unit_test(transactions_are_counted_where_they_pass),
		cmocka_unit_test(what_a_chassis_passes_on_crosses_it),
		cmocka_unit_test(other_domains_addresses_fault),
		cmocka_unit_test(fault_names_nearest_mapping),
		cmocka_unit_test(rights_hold_at_both_ends),
		cmocka_unit_test(what_is_taken_away_faults_at_once),
		cmocka_unit_test(reads_fail_whole_writes_page_by_page),
		cmocka_unit_test(lost_paths_and_reboots_fault),
		cmocka_unit_test(links_with_other_addresses_fault),
		cmocka_unit_test(narrow_devices_reach_low_addresses_only),
		cmocka_unit_test(windows_do_not_chain),
		cmocka_unit_test(fault_storm_is_bounded),
		cmocka_unit_test(naive_list_catches_wrong_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
