/* SPDX-License-Identifier: BSD-2-Clause */
/* A machine beside the room: what hosts reach of it, what it reaches of them, and when not. */
#include "fake.h"

#include "emu/engine/engine.h"
#include "smartio/io.h"

#define START 9

static struct fake *mixed(unsigned iommu)
{
	struct fake *f = fake_new_mixed(iommu);

	for (unsigned i = 0; i < 3; i++)
		fake_up(f, i);
	assert_int_equal(emu_room_machine(f->room, NODE(MACHINE), 0, START), 0);
	f->machine_access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	return f;
}

static struct fake_event *link_of_machine(struct fake *f, unsigned host)
{
	struct fake_event *e;

	do
		e = fake_take(f, host, SIO_EV_LINK);
	while (e && e->u.link.peer_node != NODE(MACHINE));
	return e;
}

static void its_starts_are_told(void **state)
{
	struct fake *f = fake_new_mixed(0);
	struct fake_event *e;

	(void)state;
	fake_up(f, LENDER);
	fake_forget(f);
	assert_int_equal(emu_room_machine(f->room, NODE(MACHINE), 0, START), 0);
	e = link_of_machine(f, LENDER);
	assert_non_null(e);
	assert_int_equal(e->u.link.state, SIO_LINK_UP);
	assert_int_equal(e->u.link.generation, START);
	assert_int_equal(emu_room_machine(f->room, NODE(MACHINE), 0, START + 1), 0);
	e = link_of_machine(f, LENDER);
	assert_int_equal(e->u.link.state, SIO_LINK_DOWN);
	e = link_of_machine(f, LENDER);
	assert_int_equal(e->u.link.state, SIO_LINK_UP);
	assert_int_equal(e->u.link.generation, START + 1);
	assert_int_equal(emu_room_link(f->room, MACHINE, 0, false), 0);
	assert_int_equal(link_of_machine(f, LENDER)->u.link.state, SIO_LINK_DOWN);
	assert_int_equal(emu_room_link(f->room, MACHINE, 0, true), 0);
	assert_int_equal(link_of_machine(f, LENDER)->u.link.state, SIO_LINK_UP);
	assert_int_equal(emu_room_machine(f->room, NODE(MACHINE), 0, 0), 0);
	assert_int_equal(link_of_machine(f, LENDER)->u.link.state, SIO_LINK_DOWN);
	assert_int_equal(emu_room_machine(f->room, NODE(CLIENT), 0, 1), -ENODEV);
	assert_int_equal(emu_room_machine(f->room, NODE(MACHINE), 1, 1), -ENODEV);
	assert_true(emu_room_start(f->room, LENDER) != 0);
	assert_int_equal(emu_room_start(f->room, CLIENT), 0);
	fake_free(f);
}

static struct sio_req_map map_of(uint64_t address, uint64_t length)
{
	struct sio_evt_grant g = {.bus_addr = address, .length = length, .generation = START};
	uint32_t message = MACHINE_MESSAGE;

	memcpy(g.token + SIO_TOKEN_MESSAGE, &message, sizeof(message));
	return fake_map_request(MACHINE, &g);
}

static void what_it_granted_is_mapped(void **state)
{
	struct fake *f = mixed(0);
	struct sio_req_map req = map_of(MACHINE_RAM + 0x1000, 0x1000);
	struct sio_evt_map evt;

	(void)state;
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_MAP, &evt), 0);
	assert_int_equal(evt.offset, 0x8000); /* in the machine's file */
	assert_int_equal(evt.map_flags, 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNMAP, evt.id, 0), 0);
	f->machine_access = SIO_ACCESS_READ;
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_MAP, &evt), 0);
	assert_int_equal(evt.map_flags, SIO_MAP_READ_ONLY);
	f->machine_access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
	assert_int_equal(ask_only(f, CLIENT, &req, SIO_OP_MAP), -EACCES);
	assert_non_null(strstr(fake_text(f), "machine host3 granted us nothing"));
	req.bus_addr += 8;
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_MAP), -EINVAL);
	req = map_of(MACHINE_RAM, 0x3000);
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_MAP), -EACCES);
	req = map_of(MACHINE_RAM, 0x1000);
	req.generation++;
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_MAP), -ESTALE);
	emu_room_machine(f->room, NODE(MACHINE), 0, 0);
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_MAP), -ENETDOWN);
	fake_free(f);
}

/* What the machine's adapter has counted. */
static struct sio_pcie_count passed(struct fake *f, uint64_t *ret_messages)
{
	struct sio_pcie_count c;

	assert_int_equal(emu_room_machine_passed(f->room, NODE(MACHINE), 0, &c, ret_messages), 0);
	assert_int_equal(emu_room_machine_passed(f->room, NODE(MACHINE), 7, &c, ret_messages),
			 -ENODEV);
	assert_int_equal(emu_room_machine_passed(f->room, NODE(LENDER), 0, &c, ret_messages),
			 -ENODEV);
	return c;
}

/* Looked up each time: what it takes back is not reached any more. */
static void devices_reach_its_memory(void **state)
{
	(void)state;
	for (unsigned iommu = 0; iommu < 2; iommu++) {
		struct fake *f = mixed(iommu << LENDER);
		struct sio_req_map req = map_of(MACHINE_RAM, 0x2000);
		struct emu_dev *dev = fake_dev(f, LENDER, 0);
		uint8_t data[0x2000], back[0x2000];
		struct sio_evt_dmamap m;
		uint64_t messages;
		struct sio_evt_map evt;

		fake_open(f, LENDER, 0);
		fake_requester(f, LENDER, 0, 0);
		assert_int_equal(ask(f, LENDER, &req, SIO_OP_MAP, &evt), 0);
		m = fake_dmamap(f, LENDER, 0, 0, SIO_KIND_MAP, evt.id, 0x2000, 3);
		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = (uint8_t)(i * 7);
		assert_int_equal(dev->write(dev, m.iova, data, sizeof(data)), 0);
		assert_memory_equal(f->machine_ram, data, sizeof(data));
		assert_int_equal(passed(f, &messages).write_bytes, sizeof(data));
		assert_int_equal(messages, 0);
		f->machine_ram[0x1fff] = 0x55;
		assert_int_equal(dev->read(dev, m.iova + 0x1ff8, back, 8), 0);
		assert_int_equal(back[7], 0x55);
		f->machine_access = SIO_ACCESS_READ;
		assert_int_equal(dev->write(dev, m.iova, back, 8), -EFAULT);
		assert_int_equal(f->machine_ram[1], 7);
		f->machine_access = 0;
		assert_int_equal(dev->read(dev, m.iova, back, 8), -EFAULT);
		f->machine_access = 3;
		emu_room_machine(f->room, NODE(MACHINE), 0, START + 1);
		assert_int_equal(dev->read(dev, m.iova, back, 8), -EFAULT);
		fake_free(f);
	}
}

/* A channel of the lender's engine: slot 0 is memory of its own, slot 1 the machine's. */
struct engine {
	struct fake *f;
	uint64_t owner, channel;
	struct sio_dma_ring *ring;
	uint8_t *here;
};

static void attach_to(struct engine *e, uint32_t kind, uint64_t target, uint32_t slot)
{
	struct sio_req_dma_attach req = {.h.owner = e->owner,
					 .channel = e->channel,
					 .target = target,
					 .target_kind = kind,
					 .length = 0x2000,
					 .access = SIO_ACCESS_READ | SIO_ACCESS_WRITE};
	struct sio_evt_dma_attach evt;

	assert_int_equal(ask(e->f, LENDER, &req, SIO_OP_DMA_ATTACH, &evt), 0);
	assert_int_equal(evt.slot, slot);
}

static void engine_init(struct engine *e, unsigned iommu)
{
	struct sio_req_map map = map_of(MACHINE_RAM, 0x2000);
	struct sio_req_dma req = {.h.reserved = 0};
	struct sio_evt_map mapped;
	struct sio_evt_dma made;
	uint64_t mem;

	e->f = mixed(iommu << LENDER);
	req.h.owner = map.h.owner = e->owner = fake_owner(e->f, LENDER);
	assert_int_equal(ask(e->f, LENDER, &req, SIO_OP_DMA, &made), 0);
	e->channel = made.id;
	e->ring = ((struct emu_channel *)emu_object_by_id(&e->f->room->host[LENDER], made.id))
			  ->mem.data;
	mem = fake_alloc(e->f, LENDER, e->owner, 0x2000);
	e->here = fake_data(e->f, LENDER, mem);
	assert_int_equal(ask(e->f, LENDER, &map, SIO_OP_MAP, &mapped), 0);
	attach_to(e, SIO_KIND_MEM, mem, 0);
	attach_to(e, SIO_KIND_MAP, mapped.id, 1);
}

/* All of the one to the other. Return: how that ended. */
static int transfer(struct engine *e, uint32_t from, uint32_t to)
{
	struct sio_dma_ring *ring = e->ring;

	ring->entry[ring->tail % SIO_DMA_ENTRIES] = (struct sio_dma_entry){
		.source = from, .target = to, .length = 0x2000, .flags = SIO_DMA_LAST};
	ring->tail++;
	while (emu_room_engine_step(e->f->room, LENDER))
		;
	emu_room_engines_collect(e->f->room);
	assert_int_equal(ring->done, ring->tail);
	return ring->result[(ring->done - 1) % SIO_DMA_RESULTS];
}

/* They keep no translation of it between two pieces, either. */
static void engines_reach_its_memory(void **state)
{
	(void)state;
	for (unsigned iommu = 0; iommu < 2; iommu++) {
		struct sio_pcie_count before, after;
		uint64_t messages;
		struct engine e;

		engine_init(&e, iommu);
		for (size_t i = 0; i < 0x2000; i++)
			e.here[i] = (uint8_t)(i * 7 + i / 256);
		before = passed(e.f, &messages);
		assert_int_equal(transfer(&e, 0, 1), 0);
		assert_memory_equal(e.f->machine_ram, e.here, 0x2000);
		after = passed(e.f, &messages);
		assert_int_equal(after.write_bytes - before.write_bytes, 0x2000);
		e.f->machine_ram[0x1fff] ^= 0x55;
		assert_int_equal(transfer(&e, 1, 0), 0);
		assert_int_equal(e.here[0x1fff], e.f->machine_ram[0x1fff]);
		/* What it takes back from them they do not reach any more. */
		e.f->machine_access = SIO_ACCESS_READ;
		e.here[0]++;
		assert_int_equal(transfer(&e, 0, 1), -EFAULT);
		assert_int_equal(e.f->machine_ram[0], (uint8_t)(e.here[0] - 1));
		assert_int_equal(transfer(&e, 1, 0), 0);
		e.f->machine_access = 0;
		assert_int_equal(transfer(&e, 1, 0), -EFAULT);
		e.f->machine_access = SIO_ACCESS_READ | SIO_ACCESS_WRITE;
		emu_room_machine(e.f->room, NODE(MACHINE), 0, START + 1);
		assert_int_equal(transfer(&e, 1, 0), -EFAULT);
		fake_free(e.f);
	}
}

static void its_interrupts_are_triggered(void **state)
{
	struct fake *f = mixed(0);
	uint64_t messages;
	struct sio_req_map req = map_of(MACHINE_IRQ, SIO_MSI_BYTES);
	struct sio_req_vector vector = {.device = DEV(LENDER, 0)};
	struct emu_dev *dev = fake_dev(f, LENDER, 0);
	struct sio_evt_map evt;

	(void)state;
	assert_int_equal(ask_only(f, CLIENT, &req, SIO_OP_MAP), -EINVAL); /* no memory of pages */
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_MAP, &evt), 0);
	assert_int_equal(evt.map_flags, SIO_MAP_TRIGGER);
	assert_int_equal(f->open_watches, 1);
	emu_room_watch_fired(f->room, LENDER, evt.id); /* a program has written to its descriptor */
	assert_int_equal(f->machine_messages, 1);
	assert_int_equal(fake_counter(f, LENDER, SIO_KIND_ADAPTER, 0, "msg"), 1);
	assert_int_equal(passed(f, &messages).write_bytes, SIO_MSI_BYTES);
	assert_int_equal(messages, 1);
	fake_open(f, LENDER, 0);
	fake_requester(f, LENDER, 0, 0);
	vector.irq = evt.id;
	assert_int_equal(ask_only(f, LENDER, &vector, SIO_OP_VECTOR), 0);
	dev->interrupt(dev, 0);
	assert_int_equal(f->machine_messages, 2);
	assert_int_equal(passed(f, &messages).write_tlps, 2);
	assert_int_equal(messages, 2);
	emu_room_link(f->room, LENDER, 0, false);
	dev->interrupt(dev, 0);
	emu_room_watch_fired(f->room, LENDER, evt.id);
	assert_int_equal(f->machine_messages, 2);
	fake_free(f);
}

static void what_is_dropped_is_counted_and_said(void **state)
{
	struct fake *f = mixed(0);
	struct sio_req_map req = map_of(MACHINE_IRQ, SIO_MSI_BYTES);
	struct sio_req_vector vector = {.device = DEV(LENDER, 0)};
	struct emu_dev *dev = fake_dev(f, LENDER, 0);
	struct fake_event *e;
	struct sio_evt_map evt;

	(void)state;
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_MAP, &evt), 0);
	f->machine_is_full = true;
	f->log_lines = 0;
	emu_room_watch_fired(f->room, LENDER, evt.id);
	assert_int_equal(fake_counter(f, LENDER, SIO_KIND_ADAPTER, 0, "faults"), 1);
	assert_non_null(strstr(f->log, "limit"));
	emu_room_watch_fired(f->room, LENDER, evt.id);
	assert_int_equal(fake_counter(f, LENDER, SIO_KIND_ADAPTER, 0, "faults"), 2);
	assert_int_equal(f->log_lines, 1); /* whoever triggers often does not fill the log */
	fake_open(f, LENDER, 0);
	fake_requester(f, LENDER, 0, 0);
	vector.irq = evt.id;
	assert_int_equal(ask_only(f, LENDER, &vector, SIO_OP_VECTOR), 0);
	fake_forget(f);
	dev->interrupt(dev, 0);
	e = fake_take(f, LENDER, SIO_EV_FAULT);
	assert_non_null(e);
	assert_non_null(strstr(e->u.fault.reason, "limit"));
	f->machine_is_full = false;
	emu_room_watch_fired(f->room, LENDER, evt.id);
	assert_int_equal(f->machine_messages, 1);
	assert_int_equal(fake_counter(f, LENDER, SIO_KIND_ADAPTER, 0, "faults"), 3);
	fake_free(f);
}

/* Each is a descriptor of the edge, as that of an interrupt of a host's own is. */
static void bells_count_as_descriptors(void **state)
{
	struct fake *f = mixed(0);
	struct sio_req_map req = map_of(MACHINE_IRQ, SIO_MSI_BYTES);
	struct sio_req_map memory = map_of(MACHINE_RAM, 0x1000);
	struct sio_evt_map evt[3];

	(void)state;
	emu_room_descriptors(f->room, 9); /* 3 for each host */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ask(f, LENDER, &req, SIO_OP_MAP, &evt[i]), 0);
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_MAP), -EMFILE);
	assert_non_null(strstr(fake_text(f), "no map: host0 holds 3 of its share of 3"));
	assert_int_equal(fake_reason(f), SIO_OUT_OF_DESCRIPTORS);
	assert_int_equal(f->open_watches, 3);
	assert_int_equal(ask_only(f, LENDER, &memory, SIO_OP_MAP), 0); /* which holds none */
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNMAP, evt[1].id, 0), 0);
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_MAP), 0);
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_MAP), -EMFILE);
	fake_free(f);
}

/* The pages where a program stores to the doorbells that map @id is of. */
static uint32_t *stores_of(struct fake *f, const struct sio_evt_map *evt)
{
	const struct emu_object *o = emu_object_by_id(&f->room->host[LENDER], evt->id);

	return ((const struct emu_map *)o)->stores.data;
}

static void doorbells_are_carried_on(void **state)
{
	struct fake *f = mixed(0);
	struct sio_req_map req = map_of(MACHINE_BAR, 0x1000);
	unsigned mems = f->open_mems;
	struct sio_evt_map evt;
	uint64_t messages;
	uint32_t *word;

	(void)state;
	f->machine_has_bar = true;
	assert_int_equal(ask_only(f, LENDER, &req, SIO_OP_MAP), -EOPNOTSUPP);
	assert_non_null(strstr(fake_text(f), "doorbells alone"));
	req.h.flags = SIO_MAP_DOORBELLS;
	assert_false(emu_room_watched(f->room));
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_MAP, &evt), 0);
	assert_int_equal(evt.map_flags, 0);
	assert_int_equal(evt.offset, 0);
	assert_true(emu_room_watched(f->room) && emu_room_naps(f->room));
	word = stores_of(f, &evt);
	assert_int_equal(word[0], UINT32_MAX);
	assert_int_equal(emu_stores_step(f->room), 0);
	sio_write32(&word[2], 5);
	sio_write32(&word[1023], 0);
	emu_room_step(f->room, 1);
	assert_int_equal(f->machine_stores, 2);
	assert_int_equal(f->machine_stored_at, 0xffc);
	assert_int_equal(f->machine_store, 0);
	assert_int_equal(passed(f, &messages).write_tlps, 2);
	/* The same value once more is another store. */
	sio_write32(&word[2], 5);
	assert_int_equal(emu_stores_step(f->room), 1);
	assert_int_equal(f->machine_store, 5);
	assert_int_equal(f->machine_stored_at, 8);
	/* Also while that is carried on. */
	sio_write32(&word[2], 5);
	f->stored_again = &word[2];
	assert_int_equal(emu_stores_step(f->room), 1);
	assert_int_equal(emu_stores_step(f->room), 1);
	assert_int_equal(f->machine_stores, 5);
	assert_int_equal(emu_stores_step(f->room), 0);
	/* One that the machine does not take now waits, and may become another one. */
	f->machine_is_full = true;
	sio_write32(&word[2], 6);
	assert_int_equal(emu_stores_step(f->room), 0);
	sio_write32(&word[2], 7);
	f->machine_is_full = false;
	assert_int_equal(emu_stores_step(f->room), 1);
	assert_int_equal(f->machine_store, 7);
	assert_int_equal(fake_counter(f, LENDER, SIO_KIND_ADAPTER, 0, "faults"), 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNMAP, evt.id, 0), 0);
	assert_int_equal(f->open_mems, mems);
	assert_false(emu_room_watched(f->room) || emu_room_naps(f->room));
	fake_free(f);
}

static void doorbells_of_one_who_is_gone_are_dropped(void **state)
{
	struct fake *f = mixed(0);
	struct sio_req_map req = map_of(MACHINE_BAR, 0x1000);
	struct sio_evt_map evt;
	uint32_t *word;

	(void)state;
	f->machine_has_bar = true;
	req.h.flags = SIO_MAP_DOORBELLS;
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_MAP, &evt), 0);
	word = stores_of(f, &evt);
	f->machine_has_bar = false; /* taken back */
	sio_write32(&word[1], 1);
	assert_int_equal(emu_stores_step(f->room), 1);
	assert_int_equal(fake_counter(f, LENDER, SIO_KIND_ADAPTER, 0, "faults"), 1);
	f->machine_has_bar = true;
	/* Out of it and in again: what is stored meanwhile does not come later. */
	emu_room_link(f->room, LENDER, 0, false);
	sio_write32(&word[1], 2);
	assert_int_equal(emu_stores_step(f->room), 1);
	emu_room_link(f->room, LENDER, 0, true);
	assert_int_equal(emu_stores_step(f->room), 0);
	assert_int_equal(f->machine_stores, 0);
	emu_room_machine(f->room, NODE(MACHINE), 0, START + 1);
	sio_write32(&word[1], 3);
	assert_int_equal(emu_stores_step(f->room), 1);
	assert_int_equal(f->machine_stores, 0);
	assert_int_equal(fake_counter(f, LENDER, SIO_KIND_ADAPTER, 0, "faults"), 3);
	fake_free(f); /* with the map */
}

static int inbound(struct fake *f, uint64_t address, size_t len, const void *data, uint8_t **ret)
{
	const struct emu_inbound x = {.node = NODE(LENDER),
				      .machine = NODE(MACHINE),
				      .address = address,
				      .len = len,
				      .data = data};

	return emu_room_inbound(f->room, &x, ret);
}

static void it_reaches_what_was_granted(void **state)
{
	(void)state;
	for (unsigned iommu = 0; iommu < 2; iommu++) {
		struct fake *f = mixed(iommu << LENDER);
		uint64_t mem = fake_alloc(f, LENDER, 0, 0x3000);
		uint64_t others = fake_alloc(f, LENDER, 0, 0x1000);
		struct sio_evt_grant g = fake_grant(f, LENDER, 0, mem, 0x2000, MACHINE);
		struct sio_evt_grant o = fake_grant(f, LENDER, 0, others, 0x1000, CLIENT);
		uint8_t *data;

		assert_int_equal(inbound(f, g.bus_addr + 0x1ffc, 4, NULL, &data), 0);
		assert_ptr_equal(data, fake_data(f, LENDER, mem) + 0x1ffc);
		assert_int_equal(inbound(f, g.bus_addr + 0x1ffd, 4, NULL, &data), -EACCES);
		assert_int_equal(inbound(f, g.bus_addr + 0x2000, 4, NULL, &data), -EACCES);
		assert_int_equal(inbound(f, UINT64_MAX - 1, 4, NULL, &data), -EACCES);
		assert_int_equal(inbound(f, o.bus_addr, 4, NULL, &data), -EACCES);
		assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, g.id, 0), 0);
		assert_int_equal(inbound(f, g.bus_addr, 4, NULL, &data), -EACCES);
		fake_free(f);
	}
}

static struct sio_evt_grant grant_part(struct fake *f, uint64_t mem, uint64_t offset,
				       uint64_t length)
{
	struct sio_req_grant req = {.source_kind = SIO_KIND_MEM,
				    .access = 3,
				    .source = mem,
				    .offset = offset,
				    .length = length,
				    .peer_node = NODE(MACHINE)};
	struct sio_evt_grant evt;

	assert_int_equal(ask(f, LENDER, &req, SIO_OP_GRANT, &evt), 0);
	return evt;
}

/* Of many that lie side by side, some within others, each is found, and none that has gone. */
static void many_grants_are_found(void **state)
{
	enum { PARTS = 48 };
	struct fake *f = mixed(0);
	uint64_t mem = fake_alloc(f, LENDER, 0, PARTS * 0x1000);
	struct sio_evt_grant part[PARTS], all;
	uint8_t *data;

	(void)state;
	/* Odd ones first, in descending order, then the others; each but the last has two pages. */
	for (unsigned i = 0; i < PARTS; i++) {
		unsigned n = i < PARTS / 2 ? PARTS - 1 - 2 * i : 2 * (i - PARTS / 2);

		part[n] = grant_part(f, mem, n * 0x1000, n == PARTS - 1 ? 0x1000 : 0x2000);
	}
	for (unsigned i = 0; i < PARTS; i++) {
		uint64_t last = part[i].bus_addr + part[i].length - 4;

		assert_int_equal(inbound(f, part[i].bus_addr, 4, NULL, &data), 0);
		assert_ptr_equal(data, fake_data(f, LENDER, mem) + i * 0x1000);
		assert_int_equal(inbound(f, last, 4, NULL, &data), 0);
		assert_int_equal(inbound(f, part[i].bus_addr, 0x2001, NULL, &data), -EACCES);
	}
	/* Without the even ones the first page is nobody's, and every other is an odd one's. */
	for (unsigned i = 0; i < PARTS; i += 2)
		assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, part[i].id, 0), 0);
	assert_int_equal(inbound(f, part[0].bus_addr, 4, NULL, &data), -EACCES);
	for (unsigned i = 1; i < PARTS; i++)
		assert_int_equal(inbound(f, part[i].bus_addr, 4, NULL, &data), 0);
	assert_int_equal(inbound(f, part[1].bus_addr + 0x1ffe, 4, NULL, &data), -EACCES);
	/* One around them all, found behind those that are in it. */
	all = grant_part(f, mem, 0, PARTS * 0x1000);
	assert_int_equal(inbound(f, part[1].bus_addr + 0x1ffe, 4, NULL, &data), 0);
	assert_int_equal(inbound(f, all.bus_addr, PARTS * 0x1000, NULL, &data), 0);
	assert_int_equal(inbound(f, all.bus_addr + 1, PARTS * 0x1000, NULL, &data), -EACCES);
	for (unsigned i = 1; i < PARTS; i += 2)
		assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, part[i].id, 0), 0);
	assert_int_equal(inbound(f, part[PARTS - 1].bus_addr + 0xffc, 4, NULL, &data), 0);
	assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, all.id, 0), 0);
	assert_int_equal(inbound(f, part[9].bus_addr, 4, NULL, &data), -EACCES);
	fake_free(f);
}

static void it_has_rights_and_messages(void **state)
{
	struct fake *f = mixed(0);
	struct sio_req_irq_new irq = {.h.owner = 0};
	struct sio_req_grant req = {.source_kind = SIO_KIND_MEM,
				    .access = SIO_ACCESS_READ,
				    .source = fake_alloc(f, LENDER, 0, 0x1000),
				    .length = 0x1000,
				    .peer_node = NODE(MACHINE)};
	struct sio_evt_irq_new made;
	struct sio_evt_grant g;
	uint32_t message;
	uint8_t *data;

	(void)state;
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_GRANT, &g), 0);
	assert_int_equal(inbound(f, g.bus_addr, 4, &message, &data), -EPERM);
	assert_int_equal(inbound(f, g.bus_addr, 4, NULL, &data), 0);
	assert_int_equal(ask(f, LENDER, &irq, SIO_OP_IRQ_NEW, &made), 0);
	req = (struct sio_req_grant){.source_kind = SIO_KIND_IRQ,
				     .access = 3,
				     .source = made.id,
				     .peer_node = NODE(MACHINE)};
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_GRANT, &g), 0);
	memcpy(&message, g.token + SIO_TOKEN_MESSAGE, sizeof(message));
	f->signals = 0;
	assert_int_equal(inbound(f, g.bus_addr, 4, &message, &data), 1);
	assert_int_equal(f->signals, 1);
	assert_int_equal(inbound(f, g.bus_addr, 4, NULL, &data), -EPERM);
	message++;
	assert_int_equal(inbound(f, g.bus_addr, 4, &message, &data), -EPERM);
	assert_int_equal(f->signals, 1);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_starts_are_told),
		cmocka_unit_test(what_it_granted_is_mapped),
		cmocka_unit_test(devices_reach_its_memory),
		cmocka_unit_test(engines_reach_its_memory),
		cmocka_unit_test(its_interrupts_are_triggered),
		cmocka_unit_test(what_is_dropped_is_counted_and_said),
		cmocka_unit_test(bells_count_as_descriptors),
		cmocka_unit_test(doorbells_are_carried_on),
		cmocka_unit_test(doorbells_of_one_who_is_gone_are_dropped),
		cmocka_unit_test(it_reaches_what_was_granted),
		cmocka_unit_test(many_grants_are_found),
		cmocka_unit_test(it_has_rights_and_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
