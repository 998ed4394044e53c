/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forged recovery: programs that send a restarted smartiod forged claims of what they had before.
 * They claim an object of another program, or one of their own in another's place; say that a
 * segment was shared or available which was not, or the other way round; or leave a claim out. Each
 * has many objects to claim: segments that are shared, available, or neither; handles of others'
 * segments; connections; two borrows of one device, and one of any device; device segments and DMA
 * mappings of each; registers, and pinned memory. The results of their own calls are not judged.
 * oracle/restore.c judges which claims are accepted, and the other oracles that no other program is
 * harmed.
 */
#include <string.h>

#include "work/life.h"
#include "run/run.h"
#include "smartio/ext.h"
#include "wire/client.h"
#include "run/listener.h"

#define PAGE 4096u
#define OWN 4u
#define LINKS 8u
#define BORROWS 3u
#define KNOWN 64u
#define FIRST_ID 0x70000u
#define IDS 24u

struct state {
	sci_desc_t sd;
	sci_local_segment_t own[OWN], attached;
	sci_remote_segment_t link[LINKS];
	sci_map_t map[LINKS];
	sci_smartio_device_t device[BORROWS];
	sci_remote_segment_t bar;
	sci_map_t registers;
	sci_ioaddr_t at;
	bool has_at;
};

/* The latest claims of all perjurers, as they were before one may have been forged. */
static struct sio_msg_restore known[KNOWN];
static unsigned n_known;

/* ---- lies ---- */
/* An earlier claim, of @type if a few draws find one; NULL: there is none. */
static const struct sio_msg_restore *another(uint64_t *rng, sio_le32 type)
{
	unsigned have = n_known < KNOWN ? n_known : KNOWN;
	const struct sio_msg_restore *m = NULL;

	for (unsigned i = 0; have > 0 && i < 12; i++) {
		m = &known[sim_draw(rng) % have];
		if (m->type == type)
			break;
	}
	return m;
}

static void lie(uint64_t *rng, struct sio_msg_restore *m)
{
	uint64_t kind = sim_draw(rng) % 10;
	const struct sio_msg_restore *o = another(rng, m->type);
	size_t words = sizeof(m->request) - sizeof(struct sio_msg);
	size_t at = sizeof(struct sio_msg) + sim_draw(rng) % (words / 4) * 4;
	uint64_t bits = sim_draw(rng);

	switch (kind) {
	case 0:
		m->type = sio_to_le32(0); /* not reported at all */
		return;
	case 1:
		m->flags = sio_to_le32(sio_from_le32(m->flags) ^ 1u << bits % 5);
		return;
	case 2:
		m->available = m->exported = sio_to_le32(bits % 2 ? 0 : (uint32_t)(bits >> 8));
		return;
	case 3:
		m->flags = sio_to_le32(0);
		return;
	case 4:
	case 5:
		if (o)
			m->key = o->key;
		return;
	case 6:
		m->number = sio_to_le32(sio_from_le32(m->number) + 1);
		return;
	case 7:
	case 8:
		if (o && o->type == m->type)
			memcpy(m->request + at, o->request + at, 4);
		return;
	default:
		if (o && o->type == m->type) {
			sio_le32 handle = m->handle;
			struct sio_msg h = m->h;

			*m = *o;
			m->handle = handle;
			m->h = h;
		}
	}
}

static void restores(const struct sim_proc *p, struct sio_msg_restore *m)
{
	static uint64_t rng;

	if (!p->perjurer)
		return;
	if (rng == 0)
		rng = sim_options.seed ^ 0x7065726a757279ull;
	known[n_known++ % KNOWN] = *m;
	if (sim_draw(&rng) % 3 == 0)
		lie(&rng, m);
}

/* ---- what it has ---- */
/* The result of a call is not judged, because the daemon rejects some of the claims. */
#define TRY(fn, args) (sim_call(#fn, 0), fn args, sim_called(SCI_ERR_OK, SCI_ERR_OK))

static unsigned pick_id(void)
{
	return FIRST_ID + (unsigned)sim_pick(IDS);
}

/* Of two numbers, so that several borrows have segments of the same number. */
static unsigned pick_device_segment(void)
{
	return 1 + (unsigned)sim_pick(2);
}

static void make_own(struct state *s, unsigned i)
{
	sci_error_t e;

	if (s->own[i]) {
		TRY(SCIRemoveSegment, (s->own[i], SCI_FLAG_FORCE_REMOVE, &e));
		s->own[i] = NULL;
		return;
	}
	TRY(SCICreateSegment, (s->sd, &s->own[i], pick_id(), PAGE, NULL, NULL, 0, &e));
	if (e != SCI_ERR_OK) {
		s->own[i] = NULL;
		return;
	}
	if (sim_pick(2))
		TRY(SCIShareSegment, (s->own[i], 0, &e));
	TRY(SCIPrepareSegment, (s->own[i], 0, 0, &e));
	if (sim_pick(4))
		TRY(SCISetSegmentAvailable, (s->own[i], 0, 0, &e));
}

static void attach(struct state *s)
{
	sci_error_t e;

	if (s->attached)
		return;
	TRY(SCIAttachLocalSegment, (s->sd, &s->attached, pick_id(), NULL, NULL, NULL, 0, &e));
	if (e != SCI_ERR_OK)
		s->attached = NULL;
}

static void connect(struct state *s, unsigned i)
{
	sci_smartio_device_t device = s->device[sim_pick(BORROWS)];
	unsigned type = sim_pick(4) ? SCI_MEMTYPE_PRIVATE : SCI_MEMTYPE_SHARED;
	sci_error_t e;

	if (s->link[i])
		return;
	if (device && sim_pick(3))
		TRY(SCIConnectDeviceSegment,
		    (device, &s->link[i], pick_device_segment(), type, NULL, NULL, 0, &e));
	else
		TRY(SCIConnectSegment, (s->sd, &s->link[i], sim_node(sim_self()->host), pick_id(),
					0, NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &e));
	if (e != SCI_ERR_OK) {
		s->link[i] = NULL;
		return;
	}
	if (sim_pick(2))
		return;
	sim_call("SCIMapRemoteSegment", 0);
	(void)SCIMapRemoteSegment(s->link[i], &s->map[i], 0, PAGE, NULL, 0, &e);
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
	if (e != SCI_ERR_OK)
		s->map[i] = NULL;
}

static void disconnect(struct state *s, unsigned i)
{
	sci_error_t e;

	if (s->map[i])
		TRY(SCIUnmapSegment, (s->map[i], 0, &e));
	s->map[i] = NULL;
	if (s->link[i])
		TRY(SCIDisconnectSegment, (s->link[i], 0, &e));
	s->link[i] = NULL;
}

/* The first two borrows are of one device, the third is of any. */
static void borrow(struct state *s, unsigned i)
{
	const struct sio_topo_host *h = &sim_cluster->topology->host[sim_self()->host];
	unsigned which = i < 2 ? 0 : (unsigned)sim_pick(h->n_devices), type;
	sci_error_t e;

	if (s->device[i] || h->n_devices == 0)
		return;
	TRY(SCIBorrowDevice, (s->sd, &s->device[i], h->device[which].fdid, 0, &e));
	if (e != SCI_ERR_OK) {
		s->device[i] = NULL;
		return;
	}
	type = sim_pick(4) ? SCI_MEMTYPE_PRIVATE : SCI_MEMTYPE_SHARED;
	TRY(SCICreateDeviceSegment, (s->device[i], pick_device_segment(), PAGE, type, 0, 0, &e));
}

static void map_for(struct state *s)
{
	sci_smartio_device_t device = s->device[sim_pick(BORROWS)];
	unsigned i = (unsigned)sim_pick(OWN);
	sci_ioaddr_t at;
	sci_error_t e;

	if (!device || !s->own[i])
		return;
	TRY(SCIMapLocalSegmentForDevice, (s->own[i], 0, device, &at, 0, PAGE, 0, &e));
	if (e == SCI_ERR_OK && device == s->device[2]) {
		s->at = at;
		s->has_at = true;
	}
}

static void hold(struct state *s)
{
	uint64_t number;
	sci_error_t e;

	if (!s->device[2] || !s->has_at)
		return;
	if (!s->bar) {
		TRY(SCIConnectDeviceSegment,
		    (s->device[2], &s->bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &e));
		if (e != SCI_ERR_OK)
			s->bar = NULL;
	}
	if (s->bar && !s->registers) {
		sim_call("SCIMapRemoteSegment", 0);
		(void)SCIMapRemoteSegment(s->bar, &s->registers, 0, PAGE, NULL, 0, &e);
		sim_called(SCI_ERR_OK, SCI_ERR_OK);
		if (e != SCI_ERR_OK)
			s->registers = NULL;
	}
	if (s->registers)
		TRY(smartio_device_hold,
		    (s->device[2], smartio_borrower_id(s->device[2]), s->at, PAGE, &number, &e));
}

static void act(void *state)
{
	struct state *s = state;

	switch (sim_pick(12)) {
	case 0:
	case 1:
		make_own(s, (unsigned)sim_pick(OWN));
		break;
	case 2:
		attach(s);
		break;
	case 3:
	case 4:
		connect(s, (unsigned)sim_pick(LINKS));
		break;
	case 5:
		disconnect(s, (unsigned)sim_pick(LINKS));
		break;
	case 6:
	case 7:
		borrow(s, (unsigned)sim_pick(BORROWS));
		break;
	case 8:
	case 9:
		map_for(s);
		break;
	default:
		hold(s);
	}
}

static void perjurer_main(struct sim_proc *p)
{
	static const struct sim_life life = {.acts = 300, .act = act};
	struct state s = {0};

	p->perjurer = true;
	sim_live(&life, &s, &s.sd);
}

/* Only where hosts outlive their smartiod, which is restarted. */
static bool fits(unsigned host)
{
	(void)host;
	return sim_outliving;
}

static const struct sim_listener listener = {.restores = restores};

const struct sim_workload sim_work_perjurer = {.name = "perjurer",
					       .weight = 4,
					       .fits = fits,
					       .main = perjurer_main,
					       .listener = &listener};
