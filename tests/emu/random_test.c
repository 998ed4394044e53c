/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random requests, deaths, crashes and device accesses from a seed. The list of grants that the
 * room keeps apart from its tables (check.c) is the reference for where an access goes, and the
 * world's counts for what is left. An access aims at what was mapped at some time, so that stale
 * translations would be hit.
 */
#include <stdio.h>

#include "fake.h"

#include "emu/device/device.h"

#define STEPS 4000
#define REMEMBERED 64

struct memory {
	uint64_t id[REMEMBERED];
	unsigned n;
};

struct player {
	struct fake *f;
	uint64_t seed;
	struct memory owners[3], mems[3], grants[3], maps[3], requesters[3], dmamaps[3], bars[3],
		watches[3], channels[3], ranges[3];
	struct {
		uint64_t address;
		unsigned host, device;
	} seen[REMEMBERED];
	unsigned n_addresses;
	struct sio_evt_grant granted[REMEMBERED];
	unsigned exporter[REMEMBERED], importer[REMEMBERED], n_granted;
	unsigned mismatches, accesses, arrived;
};

static unsigned pick(struct player *p, unsigned n)
{
	p->seed = p->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)((p->seed >> 33) % n);
}

static void keep(struct player *p, struct memory *m, uint64_t id)
{
	m->id[m->n < REMEMBERED ? m->n++ : pick(p, REMEMBERED)] = id;
}

static uint64_t any(struct player *p, const struct memory *m)
{
	return m->n ? m->id[pick(p, m->n)] : 0;
}

/* The daemon most of the time, so that not everything ends at once. */
static uint64_t any_owner(struct player *p, unsigned host)
{
	return pick(p, 3) ? 0 : any(p, &p->owners[host]);
}

static void make_memory(struct player *p, unsigned host)
{
	struct sio_req_alloc req = {.h.owner = any_owner(p, host),
				    .size = 0x1000ull * (1 + pick(p, 8)),
				    .highest = SIO_PORT_ANY};
	struct sio_req_owner_new owner = {0};
	struct sio_evt_owner_new owner_evt;
	struct sio_evt_alloc evt;

	if (ask(p->f, host, &req, SIO_OP_ALLOC, &evt) == 0)
		keep(p, &p->mems[host], evt.id);
	if (pick(p, 4) == 0 && ask(p->f, host, &owner, SIO_OP_OWNER_NEW, &owner_evt) == 0)
		keep(p, &p->owners[host], owner_evt.id);
}

/* Pages of a device, and somebody to wake it by them. */
static void make_bar(struct player *p, unsigned host)
{
	struct sio_req_bar req = {.h.owner = any_owner(p, host),
				  .device = DEV(host, pick(p, 3)),
				  .access = 1 + 2 * pick(p, 2),
				  .offset = 0x1000ull * pick(p, 4),
				  .length = 0x1000};
	struct sio_req_device_open open = {.device = req.device};
	struct sio_evt_bar evt;

	ask_only(p->f, host, &open, SIO_OP_DEVICE_OPEN);
	if (ask(p->f, host, &req, SIO_OP_BAR, &evt) == 0)
		keep(p, &p->bars[host], evt.id);
}

static void make_watch(struct player *p, unsigned host)
{
	bool map = pick(p, 2);
	struct sio_req_watch req = {.h.owner = any_owner(p, host),
				    .target_kind = map ? SIO_KIND_MAP : SIO_KIND_BAR,
				    .kind = 1 + pick(p, 3),
				    .target = any(p, map ? &p->maps[host] : &p->bars[host]),
				    .length = 0x1000};
	struct sio_evt_watch evt;

	if (req.kind == SIO_WATCH_FAULT) {
		req.address = 0x1000;
		fake_with(p->f);
	}
	if (ask(p->f, host, &req, SIO_OP_WATCH, &evt) == 0)
		keep(p, &p->watches[host], evt.id);
}

/* What the edge tells of watches, of some that are long gone, too. */
static void wake_something(struct player *p, unsigned host)
{
	uint64_t id = any(p, &p->watches[host]);
	unsigned open = p->f->open_watches;
	struct emu_object *o = NULL;

	emu_room_doze(p->f->room, pick(p, 2));
	emu_room_naps(p->f->room);
	emu_room_watch_fired(p->f->room, host, id);
	HASH_FIND(hh, p->f->room->host[host].objects, &id, sizeof(id), o);
	if (pick(p, 4) || !o || ((struct emu_watch *)o)->kind == SIO_WATCH_TIMER)
		return;
	p->f->open_watches = open - 1;
	emu_room_watch_broken(p->f->room, host, id);
}

static void make_grant(struct player *p, unsigned host)
{
	bool bar = pick(p, 4) == 0;
	struct sio_req_grant req = {.h.owner = any_owner(p, host),
				    .source_kind = bar ? SIO_KIND_BAR : SIO_KIND_MEM,
				    .access = 1 + pick(p, 3),
				    .source = any(p, bar ? &p->bars[host] : &p->mems[host]),
				    .offset = 0x1000ull * pick(p, 2),
				    .length = 0x1000ull * (1 + pick(p, 4)),
				    .peer_node = NODE(pick(p, 3))};
	struct sio_evt_grant evt;
	unsigned i;

	if (ask(p->f, host, &req, SIO_OP_GRANT, &evt) != 0)
		return;
	keep(p, &p->grants[host], evt.id);
	i = p->n_granted < REMEMBERED ? p->n_granted++ : pick(p, REMEMBERED);
	p->granted[i] = evt;
	p->exporter[i] = host;
	p->importer[i] = req.peer_node / 4 - 1;
}

static void remember(struct player *p, uint64_t address, unsigned host, unsigned device)
{
	unsigned i = p->n_addresses < REMEMBERED ? p->n_addresses++ : pick(p, REMEMBERED);

	p->seen[i].address = address;
	p->seen[i].host = host;
	p->seen[i].device = device;
}

static void make_map(struct player *p)
{
	struct sio_req_map req;
	struct sio_evt_map evt;
	unsigned i;

	if (p->n_granted == 0)
		return;
	i = pick(p, p->n_granted);
	req = fake_map_request(p->exporter[i], &p->granted[i]);
	req.h.owner = any_owner(p, p->importer[i]);
	if (!p->f->room->host[p->importer[i]].up ||
	    ask(p->f, p->importer[i], &req, SIO_OP_MAP, &evt) != 0)
		return;
	keep(p, &p->maps[p->importer[i]], evt.id);
	remember(p, evt.bus_addr, p->importer[i], 0);
}

static void make_dmamap(struct player *p, unsigned host)
{
	bool map = pick(p, 2), bar = !map && pick(p, 4) == 0;
	struct sio_req_requester_add requester = {.direction = SIO_REQUESTER_OUT,
						  .device = DEV(host, pick(p, 3))};
	struct sio_req_dmamap req = {
		.h.owner = any_owner(p, host),
		.device = DEV(host, pick(p, 3)),
		.target_kind = map   ? SIO_KIND_MAP
			       : bar ? SIO_KIND_BAR
				     : SIO_KIND_MEM,
		.access = 1 + pick(p, 3),
		.target = any(p, map   ? &p->maps[host]
				 : bar ? &p->bars[host]
				       : &p->mems[host]),
		.length = 0x1000ull * (1 + pick(p, 4)),
		.iova = SIO_PORT_ANY,
		.highest = SIO_PORT_ANY,
	};
	struct sio_req_device_open open = {.device = req.device};
	struct sio_evt_requester_add requester_evt;
	struct sio_evt_dmamap evt;

	ask_only(p->f, host, &open, SIO_OP_DEVICE_OPEN);
	if (ask(p->f, host, &requester, SIO_OP_REQUESTER_ADD, &requester_evt) == 0)
		keep(p, &p->requesters[host], requester_evt.id);
	if (ask(p->f, host, &req, SIO_OP_DMAMAP, &evt) != 0)
		return;
	keep(p, &p->dmamaps[host], evt.id);
	remember(p, evt.iova, host, req.device % 256 - 1);
}

static void end_something(struct player *p, unsigned host)
{
	struct sio_req_reset reset = {.kind = SIO_RESET_DONE};
	struct sio_req_ungrant retire = {.h.flags = SIO_UNGRANT_KEEP_ADDRESS};
	struct sio_evt_reset evt;

	switch (pick(p, 14)) {
	case 12:
		fake_end(p->f, host, SIO_OP_GIVE, any(p, &p->mems[host]), 0);
		break;
	case 13: /* its number is drawn again, perhaps */
		retire.id = any(p, &p->grants[host]);
		ask_only(p->f, host, &retire, SIO_OP_UNGRANT);
		break;
	case 10:
		fake_end(p->f, host, SIO_OP_DMA_DETACH, any(p, &p->ranges[host]), 0);
		break;
	case 11:
		if (pick(p, 4) == 0)
			fake_end(p->f, host, SIO_OP_DMA_FREE, any(p, &p->channels[host]), 0);
		break;
	case 0:
		fake_end(p->f, host, SIO_OP_FREE, any(p, &p->mems[host]), 0);
		break;
	case 1:
		fake_end(p->f, host, SIO_OP_UNGRANT, any(p, &p->grants[host]), 0);
		break;
	case 2:
		fake_end(p->f, host, SIO_OP_UNMAP, any(p, &p->maps[host]), 0);
		break;
	case 3:
		fake_end(p->f, host, SIO_OP_REQUESTER_DEL, any(p, &p->requesters[host]), 0);
		break;
	case 4:
	case 5:
		fake_end(p->f, host, SIO_OP_DMAUNMAP, any(p, &p->dmamaps[host]), 0);
		break;
	case 6:
		fake_end(p->f, host, SIO_OP_BAR_CLOSE, any(p, &p->bars[host]), 0);
		break;
	case 7:
		fake_end(p->f, host, SIO_OP_UNWATCH, any(p, &p->watches[host]), 0);
		break;
	case 8:
		emu_room_owner_hup(p->f->room, host, any(p, &p->owners[host]));
		break;
	default:
		reset.device = DEV(host, pick(p, 3));
		ask(p->f, host, &reset, SIO_OP_RESET, &evt);
	}
}

/* Two channels for each host most of the time; what they reach may be gone when they do. */
static void make_channel(struct player *p, unsigned host)
{
	struct sio_req_dma req = {.h.owner = any_owner(p, host)};
	bool map = pick(p, 2);
	struct sio_req_dma_attach attach = {.channel = any(p, &p->channels[host]),
					    .target = any(p, map ? &p->maps[host] : &p->mems[host]),
					    .target_kind = map ? SIO_KIND_MAP : SIO_KIND_MEM,
					    .length = 0x1000ull * (1 + pick(p, 4)),
					    .access = pick(p, 4) ? 3 : 1 + pick(p, 2)};
	struct sio_evt_dma_attach range;
	struct sio_evt_dma evt;

	if (p->f->room->host[host].n_of_kind[SIO_KIND_DMA] < 2 &&
	    ask(p->f, host, &req, SIO_OP_DMA, &evt) == 0)
		keep(p, &p->channels[host], evt.id);
	if (ask(p->f, host, &attach, SIO_OP_DMA_ATTACH, &range) == 0)
		keep(p, &p->ranges[host], range.id);
}

/* A transfer between any two slots, most of them in use, and a few pieces of all. */
static void transfer_something(struct player *p, unsigned host)
{
	uint64_t id = any(p, &p->channels[host]);
	struct emu_object *o = NULL;
	struct sio_dma_ring *ring;
	struct sio_dma_entry *e;

	HASH_FIND(hh, p->f->room->host[host].objects, &id, sizeof(id), o);
	if (o && o->kind == SIO_KIND_DMA) {
		ring = ((struct emu_channel *)o)->mem.data;
		e = &ring->entry[ring->tail % SIO_DMA_ENTRIES];
		*e = (struct sio_dma_entry){.source = pick(p, 12),
					    .target = pick(p, 12),
					    .source_offset = pick(p, 0x1800),
					    .target_offset = pick(p, 0x1800),
					    .length = pick(p, 0x2000),
					    .flags = pick(p, 3) != 0};
		if (ring->tail - ring->head < SIO_DMA_ENTRIES)
			ring->tail++;
		if (pick(p, 16) == 0)
			ring->abort = ring->done + 1;
	}
	for (unsigned i = pick(p, 6); i > 0; i--)
		emu_room_engine_step(p->f->room, pick(p, 3));
	emu_room_engines_collect(p->f->room);
}

/* Mostly the device that an address was made for; sometimes another one, or past its end. */
static void access_something(struct player *p)
{
	uint8_t buf[0x3000] = {0};
	unsigned i, host, device;
	struct emu_dev *dev;
	uint64_t addr;
	size_t len;
	int rc;

	if (p->n_addresses == 0)
		return;
	i = pick(p, p->n_addresses);
	host = p->seen[i].host;
	device = pick(p, 8) ? p->seen[i].device : pick(p, 3);
	if (device >= p->f->room->host[host].n_devices)
		return;
	dev = fake_dev(p->f, host, device);
	len = 1 + pick(p, pick(p, 4) ? 64 : sizeof(buf));
	addr = p->seen[i].address + pick(p, pick(p, 4) ? 0x1000 : 0x5000);
	rc = pick(p, 2) ? dev->read(dev, addr, buf, len) : dev->write(dev, addr, buf, len);
	p->accesses++;
	p->arrived += rc == 0;
}

/* Any operation with any fields, some of them ids that exist: answered once, and nothing breaks. */
static void ask_nonsense(struct player *p, unsigned host)
{
	static const uint64_t odd[] = {0,
				       1,
				       2,
				       3,
				       4,
				       8,
				       12,
				       0x1000,
				       0x2000,
				       0x400001, /* DEV(0, 0) */
				       EMU_FIRST_ID,
				       UINT32_MAX,
				       1ull << 63,
				       UINT64_MAX - 0xfff,
				       UINT64_MAX};
	static const uint32_t size[] = {32, 40, 48, 56, 72, 80, 88, 104};
	union {
		struct sio_req h;
		uint64_t words[104 / 8];
	} req = {.words = {0}};
	uint32_t op = 1 + pick(p, SIO_OP_COUNT - 1), n = size[pick(p, 8)];

	req.h.owner = any_owner(p, host);
	req.h.flags = pick(p, 4) == 0;
	for (unsigned i = sizeof(req.h) / 8; i < n / 8; i++)
		req.words[i] = pick(p, 3) ? odd[pick(p, sizeof(odd) / sizeof(odd[0]))]
					  : any(p, pick(p, 2) ? &p->mems[host] : &p->maps[host]);
	fake_ask(p->f, host, &req, n, op, NULL, 0);
}

static void crash_something(struct player *p)
{
	unsigned host = pick(p, 3);

	if (pick(p, 2)) {
		emu_room_link(p->f->room, host, 0, pick(p, 3) != 0);
	} else if (p->f->room->host[host].up) {
		emu_room_host_down(p->f->room, host);
	} else {
		fake_up(p->f, host);
	}
}

/* Or it is so already. */
static void move_device(struct player *p, unsigned host)
{
	unsigned device = pick(p, 3);

	emu_room_device(p->f->room, host, device, pick(p, 2));
}

static void mismatch(void *arg, const char *text)
{
	struct player *p = arg;

	p->mismatches++;
	fprintf(stderr, "%s\n", text);
}

static void play(uint64_t seed, unsigned *ret_accesses, unsigned *ret_arrived,
		 unsigned *ret_transfers)
{
	struct player p = {.seed = seed};

	p.f = fake_new((unsigned)seed % 8);
	emu_check_hook(p.f->room->check, mismatch, &p);
	for (unsigned i = 0; i < 3; i++)
		fake_up(p.f, i);
	for (unsigned i = 0; i < STEPS && p.mismatches == 0; i++) {
		unsigned host = pick(&p, 3), what = pick(&p, 100);

		fake_forget(p.f);
		if (what == 0 && pick(&p, 4) == 0)
			crash_something(&p);
		else if (what == 1 && pick(&p, 2) == 0)
			move_device(&p, host);
		else if (!p.f->room->host[host].up || what < 30)
			access_something(&p);
		else if (what < 33)
			make_channel(&p, host);
		else if (what < 40)
			transfer_something(&p, host);
		else if (what < 44)
			ask_nonsense(&p, host);
		else if (what < 46)
			make_bar(&p, host);
		else if (what < 49)
			make_watch(&p, host);
		else if (what < 51)
			wake_something(&p, host);
		else if (what < 57)
			make_memory(&p, host);
		else if (what < 65)
			make_grant(&p, host);
		else if (what < 74)
			make_map(&p);
		else if (what < 86)
			make_dmamap(&p, host);
		else
			end_something(&p, host);
	}
	if (p.mismatches)
		fail_msg("seed %llu", (unsigned long long)seed);
	*ret_accesses += p.accesses;
	*ret_arrived += p.arrived;
	for (unsigned i = 0; i < 3; i++)
		if (p.f->room->host[i].adapter[0].engine) /* of this start of the host */
			*ret_transfers += (unsigned)p.f->room->host[i].adapter[0].engine->transfers;
	fake_free(p.f);
}

static void tables_and_list_agree(void **state)
{
	unsigned accesses = 0, arrived = 0, transfers = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 32; seed++)
		play(seed, &accesses, &arrived, &transfers);
	printf("%u of %u accesses arrived; %u transfers\n", arrived, accesses, transfers);
	assert_true(transfers > 500);
	/* The game is worth something only if both happen often. */
	assert_in_range(arrived, accesses / 10, accesses - accesses / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_and_list_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
