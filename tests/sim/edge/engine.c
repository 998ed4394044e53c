/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The DMA engines of the room. They access memory as their host's processors do, but by themselves,
 * at times that the simulator chooses. Engines of a host that would find nothing to do are not run.
 * With the fault "doze" they sleep as those of the live cluster do: they say so in their rings,
 * check once more, and do nothing until a doorbell.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "edge/edge.h"
#include "emu/device/device.h"
#include "fabric/fabric.h"
#include "smartio/io.h"

#define DOZE_ONE_IN 4u /* of the looks that find nothing puts the engine to sleep */
#define FORGOTTEN SIM_SECOND

static struct engines {
	uint64_t until; /* they copy; 0: the host has none */
	/* the last look found nothing, nor will the next one, until a ring is written to */
	bool nothing;
	uint64_t stores; /* to rings of the host, as of that look */
	bool asleep;
	/* since when the engine sleeps although there is work; 0: there is none */
	uint64_t forgotten;
} engines[SIM_HOSTS];

struct bell {
	unsigned host;
	int fd; /* the room's */
	struct bell *next;
};

static struct bell *bells;
uint64_t sim_engine_naps;
void (*sim_engine_forgotten)(unsigned host);

int sim_engine_start(void *ctx, unsigned host)
{
	(void)ctx;
	engines[host].until = 1;
	engines[host].asleep = false;
	return 0;
}

int sim_engine_watch(void *ctx, unsigned host, int fd)
{
	struct bell *b = malloc(sizeof(*b));

	(void)ctx;
	assert(b);
	*b = (struct bell){.host = host, .fd = fd};
	LL_PREPEND(bells, b);
	return 0;
}

void sim_engine_unwatch(void *ctx, unsigned host, int fd)
{
	struct bell *b;

	(void)ctx;
	(void)host;
	LL_SEARCH_SCALAR(bells, b, fd, fd);
	assert(b);
	LL_DELETE(bells, b);
	free(b);
}

void sim_engines_forget(void)
{
	memset(engines, 0, sizeof(engines));
}

bool sim_has_engines(void)
{
	for (unsigned i = 0; i < sim_hosts(); i++)
		if (sim_port_count(i, SIO_KIND_DMA) > 0)
			return true;
	return false;
}

static bool rest(const struct engines *e, unsigned host)
{
	if (!e->nothing)
		return false;
	/* A look at a ring is a read, so writes in flight to this host's memory arrive first. */
	if (fabric_rings[host].open) {
		fabric_settle(sim_now());
		fabric_path_read(host, host, sim_now());
	}
	return e->stores == fabric_rings[host].stores;
}

static unsigned step(struct engines *e, unsigned host)
{
	unsigned work;

	fabric_act(host);
	work = emu_room_engine_step(sim_cluster->room, host);
	e->until = fabric_actor.clock;
	e->nothing = work == 0;
	e->stores = fabric_rings[host].stores;
	fabric_act(FABRIC_NOBODY);
	return work;
}

/* ---- asleep ---- */
static bool is_rung(unsigned host)
{
	bool rung = false;
	struct bell *b;

	LL_FOREACH (bells, b) {
		if (b->host != host || sim_fd(b->fd)->count == 0)
			continue;
		sim_fd(b->fd)->count = 0;
		rung = true;
	}
	return rung;
}

static void doze(unsigned host, bool asleep)
{
	sim_trace("room: engines of node %u %s", sim_node(host), asleep ? "doze" : "wake");
	fabric_act(host);
	emu_room_engine_doze(sim_cluster->room, host, asleep);
	fabric_act(FABRIC_NOBODY);
}

static bool has_work(unsigned host)
{
	const struct emu_host *h = &sim_cluster->room->host[host];
	const struct emu_channel *c;

	for (unsigned a = 0; a < h->topo->n_adapters; a++) {
		if (!h->adapter[a].engine)
			continue;
		DL_FOREACH (h->adapter[a].engine->channels, c)
			if (c->state != EMU_CHANNEL_BROKEN &&
			    sio_read32(&((struct sio_dma_ring *)c->mem.data)->tail) != c->head)
				return true;
	}
	return false;
}

/* A program that wrote to a ring must ring the doorbell soon, or be dead. */
static void sleeps(struct engines *e, unsigned host)
{
	if (!has_work(host))
		e->forgotten = 0;
	else if (!e->forgotten)
		e->forgotten = sim_now();
	else if (sim_now() - e->forgotten > FORGOTTEN)
		sim_engine_forgotten(host);
}

/* The engine found nothing. Return: the work that its last look before sleep found. */
static unsigned fall_asleep(struct engines *e, unsigned host)
{
	unsigned work;

	if (!sim_engine_naps || sim_draw(&sim_engine_naps) % DOZE_ONE_IN)
		return 0;
	doze(host, true);
	work = step(e, host);
	if (work)
		doze(host, false);
	else
		e->asleep = true;
	sim_did.doze += e->asleep;
	return work;
}

static unsigned look(struct engines *e, unsigned host)
{
	unsigned work = 0;

	if (e->asleep && !is_rung(host)) {
		sleeps(e, host);
		return 0;
	}
	if (e->asleep)
		doze(host, false);
	e->asleep = false;
	e->forgotten = 0;
	if (!rest(e, host))
		work = step(e, host);
	return work ? work : fall_asleep(e, host);
}

unsigned sim_engines_step(void)
{
	unsigned work = 0, n = sim_hosts();

	for (unsigned i = 0; i < n; i++) {
		struct engines *e = &engines[i];

		if (e->until && e->until <= sim_now() && sim_host[i].powered)
			work += look(e, i);
	}
	/* Without work there was no fault. */
	if (work)
		emu_room_engines_collect(sim_cluster->room);
	return work;
}
