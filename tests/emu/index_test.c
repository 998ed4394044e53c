/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is looked up by a key, against a walk through everything: random requests, always the same.
 */
#include "fake.h"

#define ENTRIES 19u /* for devices; two more are the CPUs' */
#define BDFS 27u    /* more than fit */
#define STEPS 6000u
#define IRQS 5u
#define LIVE 64u

static unsigned pick(struct fake *f, unsigned n)
{
	f->seed ^= f->seed << 13;
	f->seed ^= f->seed >> 7;
	f->seed ^= f->seed << 17;
	return (unsigned)(f->seed % n);
}

static struct emu_requester_entry *walk_entries(struct emu_adapter *a, uint32_t bdf)
{
	for (unsigned i = EMU_CPU_REQUESTERS; i < a->topo->requesters; i++)
		if (a->requester[i].holders && a->requester[i].bdf == bdf)
			return &a->requester[i];
	return NULL;
}

static struct emu_requester *walk_requesters(struct emu_host *h, const struct emu_device *d)
{
	struct emu_object *o, *tmp;

	HASH_ITER (hh, h->objects, o, tmp)
		if (o->kind == SIO_KIND_REQUESTER && ((struct emu_requester *)o)->device == d)
			return (struct emu_requester *)o;
	return NULL;
}

static void check_requesters(struct fake *f)
{
	struct emu_host *h = &f->room->host[LENDER];
	struct emu_adapter *a = &h->adapter[0];
	unsigned used = EMU_CPU_REQUESTERS;

	for (unsigned i = EMU_CPU_REQUESTERS; i < a->topo->requesters; i++)
		used += a->requester[i].holders != 0;
	assert_int_equal(a->requesters_used, used);
	for (uint32_t bdf = 0; bdf < BDFS + 2; bdf++)
		assert_ptr_equal(emu_requester_lookup(a, bdf), walk_entries(a, bdf));
	for (unsigned i = 0; i < 3; i++) {
		assert_ptr_equal(emu_requester_of(h->device[i], 0),
				 walk_requesters(h, h->device[i]));
		assert_ptr_equal(emu_requester_lookup(a, h->device[i]->topo->bdf),
				 walk_entries(a, h->device[i]->topo->bdf));
	}
}

/* Add one by its number or, now and then, a device by its id. */
static int add_requester(struct fake *f, uint64_t *ret_id)
{
	struct sio_req_requester_add req = {.direction = SIO_REQUESTER_OUT};
	struct emu_adapter *a = &f->room->host[LENDER].adapter[0];
	unsigned what = pick(f, BDFS + 6);
	struct sio_evt_requester_add evt;
	uint32_t bdf = what + 1;
	bool fits;
	int rc;

	if (what < BDFS) {
		req.bdf = bdf;
	} else {
		req.device = DEV(LENDER, what % 3);
		bdf = f->room->host[LENDER].device[what % 3]->topo->bdf;
	}
	fits = walk_entries(a, bdf) || a->requesters_used < a->topo->requesters;
	rc = ask(f, LENDER, &req, SIO_OP_REQUESTER_ADD, &evt);
	assert_int_equal(rc, fits ? 0 : -ENOSPC);
	*ret_id = rc ? 0 : evt.id;
	return rc;
}

static void requesters_are_found_as_by_a_walk(void **state)
{
	struct fake *f = fake_new_of(0, ENTRIES + EMU_CPU_REQUESTERS);
	uint64_t id[LIVE] = {0};
	unsigned full = 0;

	(void)state;
	fake_up(f, LENDER);
	for (unsigned i = 0; i < 3; i++)
		fake_open(f, LENDER, i);
	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t *one = &id[pick(f, LIVE)];

		if (*one) {
			assert_int_equal(fake_end(f, LENDER, SIO_OP_REQUESTER_DEL, *one, 0), 0);
			*one = 0;
		} else {
			full += add_requester(f, one) != 0;
		}
		if (i % 16 == 0)
			check_requesters(f);
	}
	assert_true(full > 50);
	/* A host that starts again has an empty table. */
	emu_room_host_down(f->room, LENDER);
	fake_up(f, LENDER);
	assert_int_equal(f->room->host[LENDER].adapter[0].requesters_used, EMU_CPU_REQUESTERS);
	check_requesters(f);
	fake_free(f);
}

static bool walk_grants(const struct emu_irq *q, unsigned peer)
{
	struct emu_object *o, *tmp;

	HASH_ITER (hh, q->o.host->objects, o, tmp) {
		const struct emu_grant *g = (const struct emu_grant *)o;

		if (o->kind == SIO_KIND_GRANT && g->source == &q->o && g->adapter == 0 &&
		    g->peer_host == peer)
			return true;
	}
	return false;
}

static void check_grants(struct fake *f, const uint64_t *irq)
{
	struct emu_host *h = &f->room->host[LENDER];

	for (unsigned i = 0; i < IRQS; i++) {
		struct emu_object *o;

		HASH_FIND(hh, h->objects, &irq[i], sizeof(irq[i]), o);
		assert_non_null(o);
		for (unsigned peer = 0; peer < 3; peer++)
			assert_int_equal(emu_irq_granted((struct emu_irq *)o, 0, peer),
					 walk_grants((struct emu_irq *)o, peer));
		assert_false(emu_irq_granted((struct emu_irq *)o, 1, CLIENT));
	}
}

/* Interrupts and memory, to two peers, some of them several times. */
static uint64_t grant_one(struct fake *f, const uint64_t *irq, uint64_t mem)
{
	struct sio_req_grant req = {.source_kind = SIO_KIND_IRQ,
				    .access = 3,
				    .source = irq[pick(f, IRQS)],
				    .peer_node = NODE(CLIENT + pick(f, 2))};
	struct sio_evt_grant evt;

	if (pick(f, 4) == 0) {
		req.source_kind = SIO_KIND_MEM;
		req.source = mem;
		req.length = 4096;
	}
	assert_int_equal(ask(f, LENDER, &req, SIO_OP_GRANT, &evt), 0);
	return evt.id;
}

static void granted_interrupts_are_found_as_by_a_walk(void **state)
{
	struct sio_req_irq_new irq_new = {.h.flags = 0};
	struct fake *f = fake_new(1);
	uint64_t id[LIVE / 4] = {0}, irq[IRQS], mem;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		fake_up(f, i);
	mem = fake_alloc(f, LENDER, 0, 4096);
	for (unsigned i = 0; i < IRQS; i++) {
		struct sio_evt_irq_new evt;

		assert_int_equal(ask(f, LENDER, &irq_new, SIO_OP_IRQ_NEW, &evt), 0);
		irq[i] = evt.id;
	}
	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t *one = &id[pick(f, LIVE / 4)];

		if (*one) {
			assert_int_equal(fake_end(f, LENDER, SIO_OP_UNGRANT, *one, 0), 0);
			*one = 0;
		} else {
			*one = grant_one(f, irq, mem);
		}
		if (i % 16 == 0)
			check_grants(f, irq);
	}
	fake_free(f);
}

/* What an owner held is found no more when it has ended. */
static void owners_take_theirs_along(void **state)
{
	struct fake *f = fake_new(0);
	uint64_t owner;

	(void)state;
	fake_up(f, LENDER);
	fake_open(f, LENDER, 0);
	owner = fake_owner(f, LENDER);
	fake_requester(f, LENDER, owner, 0);
	fake_requester(f, LENDER, owner, 0);
	/* Of an owner that ends: falls with it, and in order. */
	emu_room_owner_hup(f->room, LENDER, owner);
	check_requesters(f);
	assert_null(emu_requester_of(f->room->host[LENDER].device[0], 0));
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requesters_are_found_as_by_a_walk),
		cmocka_unit_test(granted_interrupts_are_found_as_by_a_walk),
		cmocka_unit_test(owners_take_theirs_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
