/* SPDX-License-Identifier: BSD-2-Clause */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <errno.h>

#include "fake_shadow.h"

static struct fake_shadows *all;
static bool (*others)(struct world *w, unsigned host, const struct sio_req *req, size_t len);
static void (*owners)(struct world *w, unsigned host, uint64_t owner);

/* ---- requests of daemons ---- */

static void answered(int error, uint32_t value)
{
	all->n_answers++;
	all->shadow = 0;
	all->error = error;
	all->value = value;
}

/* Its driver has gone, with what it asked. */
static void forget(uint64_t shadow)
{
	if (all->shadow == shadow)
		answered(-ENODEV, UINT32_MAX);
	for (unsigned i = all->n_told; i-- > 0;)
		if (all->told[i].id == shadow || all->told[i].target == shadow)
			all->told[i] = all->told[--all->n_told];
}

static void peer(struct world *w, unsigned host, const struct sio_req_shadow_peer *req)
{
	assert(world_res_find(w, host, SIO_KIND_SHADOW, req->id));
	assert(world_res_find(w, host, SIO_KIND_SHADOW, req->target));
	if (all->peer_error) {
		world_answer_error(w, host, &req->h, all->peer_error, "it lies in the window");
		return;
	}
	for (unsigned i = 0; i < all->n_told; i++)
		if (all->told[i].id == req->id && all->told[i].target == req->target &&
		    all->told[i].bar == req->bar) {
			all->n_twice++;
			world_answer_error(w, host, &req->h, -EEXIST, "it was told");
			return;
		}
	assert(all->n_told < FAKE_SHADOW_TOLD);
	all->told[all->n_told].id = req->id;
	all->told[all->n_told].target = req->target;
	all->told[all->n_told].address = req->address;
	all->told[all->n_told++].bar = req->bar;
	world_answer_ok(w, host, &req->h);
}

/* All memory of a host, without a descriptor; an aperture. */
static void memory(struct world *w, unsigned host, const struct sio_req *req)
{
	struct sio_evt_import ram = {.size = FAKE_SHADOW_RAM};
	struct sio_evt_aperture aperture = {.length = 0};
	struct world_res *r;

	if (!world_res_find(w, host, SIO_KIND_OWNER, req->owner)) {
		world_answer_error(w, host, req, -ENOENT, "no such owner");
		return;
	}
	r = world_res_new(w, host, SIO_KIND_MEM, req->owner);
	ram.id = aperture.id = r->id;
	r->size = FAKE_SHADOW_RAM;
	r->address = 0;
	if (req->op == SIO_OP_IMPORT) {
		world_answer(w, host, req, &ram, sizeof(ram), NULL, 0);
		return;
	}
	r->size = aperture.length = ((const struct sio_req_aperture *)(const void *)req)->length;
	r->address = aperture.bus_addr = 0x800000000000ULL;
	world_answer(w, host, req, &aperture, sizeof(aperture), NULL, 0);
}

static void shadow(struct world *w, unsigned host, const struct sio_req_shadow *req)
{
	struct sio_evt_shadow evt = {.bdf = 0x80000000};
	struct world_res *r;

	if (all->refused) {
		world_answer_error(w, host, &req->h, -EINVAL, "the kernel does not take it");
		return;
	}
	if (!world_res_find(w, host, SIO_KIND_OWNER, req->h.owner)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such owner");
		return;
	}
	assert(world_res_find(w, host, SIO_KIND_MAP, req->bar_map[0]));
	for (uint32_t i = 0; i < req->vectors; i++)
		assert(world_res_find(w, host, SIO_KIND_IRQ, req->irq[i]));
	r = world_res_new(w, host, SIO_KIND_SHADOW, req->h.owner);
	r->target = req->bar_map[0];
	r->target_kind = SIO_KIND_MAP;
	evt.id = r->id;
	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
}

static void shadow_del(struct world *w, unsigned host, const struct sio_req_shadow_del *req)
{
	struct world_res *r = world_res_find(w, host, SIO_KIND_SHADOW, req->id);

	if (!r || r->quarantined) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such shadow");
		return;
	}
	if (all->slow) {
		assert(!all->held.id);
		all->held_host = host;
		all->held = *req;
		return;
	}
	all->lost += req->h.flags & SIO_SHADOW_LOST;
	forget(r->id);
	world_res_free(w, r);
	world_settle_memory(w, host);
	world_answer_ok(w, host, &req->h);
}

void fake_shadows_go(struct world *w)
{
	const struct sio_req_shadow_del req = all->held;

	all->slow = false;
	all->held.id = 0;
	if (req.id)
		shadow_del(w, all->held_host, &req);
}

static void push(struct world *w)
{
	struct sio_evt_shadow_config evt = {
		.id = all->shadow, .turn = all->turn, .reg = SIO_SHADOW_ID};
	const struct world_res *r = world_res_find(w, all->host, SIO_KIND_SHADOW, all->shadow);

	if (r && w->host[all->host].ready)
		world_port_event(w, all->host, SIO_EV_SHADOW_CONFIG, r->owner, &evt, sizeof(evt));
}

static void answer(struct world *w, unsigned host, const struct sio_req_shadow_answer *req)
{
	if (!all->shadow || req->id != all->shadow || req->turn != all->turn) {
		world_answer_error(w, host, &req->h, -ESTALE, "nobody waits for it");
		return;
	}
	answered(req->error, req->value);
	world_answer_ok(w, host, &req->h);
}

static void ask_again(struct world *w, unsigned host, const struct sio_req_reopen *req)
{
	struct sio_evt_reopen evt = {.length = 0};

	if (!world_res_find(w, host, SIO_KIND_SHADOW, req->id)) {
		world_answer_error(w, host, &req->h, -ENOENT, "no such shadow");
		return;
	}
	if (all->shadow == req->id)
		push(w);
	world_answer(w, host, &req->h, &evt, sizeof(evt), NULL, 0);
}

static bool port_other(struct world *w, unsigned host, const struct sio_req *req, size_t len)
{
	const void *msg = req;

	switch (req->op) {
	case SIO_OP_IMPORT:
	case SIO_OP_APERTURE:
		memory(w, host, req);
		return true;
	case SIO_OP_SHADOW:
		shadow(w, host, msg);
		return true;
	case SIO_OP_SHADOW_DEL:
		shadow_del(w, host, msg);
		return true;
	case SIO_OP_SHADOW_PEER:
		peer(w, host, msg);
		return true;
	case SIO_OP_SHADOW_ANSWER:
		answer(w, host, msg);
		return true;
	case SIO_OP_REOPEN:
		ask_again(w, host, msg);
		return true;
	default:
		return others(w, host, req, len);
	}
}

/* Its driver goes at once, whoever serves it. */
static void owner_other(struct world *w, unsigned host, uint64_t owner)
{
	for (const struct world_res *r = w->res; r; r = r->next)
		if (r->host == host && r->kind == SIO_KIND_SHADOW && r->owner == owner)
			forget(r->id);
	owners(w, host, owner);
}

void fake_shadows_add(struct world *w, struct fake_shadows *s)
{
	*s = (struct fake_shadows){.refused = false};
	all = s;
	others = w->port_other;
	owners = w->owner_other;
	w->port_other = port_other;
	w->owner_other = owner_other;
}

/* ---- drivers ---- */

void fake_shadow_ask(struct world *w, unsigned host, uint64_t id)
{
	assert(!all->shadow);
	all->host = host;
	all->shadow = id;
	all->turn = ++all->n_turns;
	push(w);
}

void fake_shadow_ask_any(struct world *w)
{
	const struct world_res *r = w->res;

	while (r && (r->kind != SIO_KIND_SHADOW || r->quarantined))
		r = r->next;
	if (r && !all->shadow)
		fake_shadow_ask(w, r->host, r->id);
}

struct world_res *fake_shadow_of(struct world *w)
{
	struct world_res *found = NULL;

	for (struct world_res *r = w->res; r; r = r->next)
		if (r->kind == SIO_KIND_SHADOW) {
			assert(!found);
			found = r;
		}
	return found;
}

unsigned fake_shadow_peer_maps(const struct world *w)
{
	unsigned n = 0;

	for (const struct world_res *r = w->res; r; r = r->next)
		n += r->kind == SIO_KIND_DMAMAP && r->target_kind == SIO_KIND_BAR;
	return n;
}

/* ---- programs ---- */

uint32_t fake_shadow_plug_in(struct world *w, struct world_client *c, uint32_t device,
			     uint32_t flags, const uint32_t *interrupts, uint32_t n)
{
	struct sio_msg_shadow msg = {.device = sio_to_le32(device),
				     .flags = sio_to_le32(flags),
				     .n_interrupts = sio_to_le32(n)};
	const struct world_message *rep;

	if (!(flags & SIO_SHADOW_ALL_MEMORY))
		msg.window = sio_to_le64(SIO_SHADOW_WINDOW_UNIT);
	for (uint32_t i = 0; i < n; i++)
		msg.interrupt[i] = sio_to_le32(interrupts[i]);
	rep = world_call(w, c, SIO_MSG_SHADOW, &msg, sizeof(msg));
	return rep ? rep->error : ~0u;
}

uint32_t fake_shadow_unplug(struct world *w, struct world_client *c, uint32_t device)
{
	struct sio_msg_handle msg = {.handle = sio_to_le32(device)};
	const struct world_message *rep = world_call(w, c, SIO_MSG_SHADOW_DEL, &msg, sizeof(msg));

	return rep ? rep->error : ~0u;
}
