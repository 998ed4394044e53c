/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of one drive (SR-IOV): a reset of the physical one takes all virtual ones away, with
 * everything that hosts have of them, and they come back as new; a reset of a virtual one leaves
 * its siblings as they are, with what is mapped for them. The emulated hardware's state is looked
 * at before and after each reset, and no daemon is believed. That borrowers are notified is judged
 * by the workload "device", and what daemons still believe by the oracles agree and records.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>

#include <utlist.h>

#include "emu/device/device.h"
#include "run/run.h"

#define MOST 8 /* functions of a slot */

/* What a function was before the reset. */
struct before {
	struct emu_device *d;
	bool in;
	uint64_t generation;
	unsigned maps;
};

static unsigned count_maps(const struct emu_device *d)
{
	const struct emu_dmamap *m;
	unsigned n = 0;

	DL_FOREACH2(d->dmamaps, m, dev_next)
	n++;
	return n;
}

/* All functions in the slot of @d, the physical one first. */
static unsigned note(struct emu_device *d, struct before *ret)
{
	unsigned n = 0;

	for (d = d->physical ? d->physical : d; d; d = d->next_function) {
		assert(n < MOST);
		ret[n++] = (struct before){d, d->slot == EMU_SLOT_IN, d->generation, count_maps(d)};
	}
	return n;
}

static struct emu_device *find(uint64_t id)
{
	struct emu_room *r = sim_cluster->room;

	for (unsigned i = 0; i < r->n_hosts; i++)
		for (unsigned k = 0; k < r->host[i].n_devices; k++)
			if (r->host[i].device[k]->topo->fdid == id)
				return r->host[i].device[k];
	return NULL;
}

/* The physical one was reset. */
static void check_taken(const struct before *b)
{
	if (b->in && b->d->generation == b->generation)
		sim_fail("functions", "%s outlives a reset of %s", b->d->topo->name,
			 b->d->physical->topo->name);
	if (b->in && count_maps(b->d) > 0)
		sim_fail("functions", "%s has %u mappings of before the reset of %s",
			 b->d->topo->name, count_maps(b->d), b->d->physical->topo->name);
}

static void check_kept(const struct before *b, const struct emu_device *reset)
{
	if (b->d->generation != b->generation || count_maps(b->d) != b->maps)
		sim_fail("functions", "a reset of %s reaches %s", reset->topo->name,
			 b->d->topo->name);
}

int __real_emu_op_reset(struct emu_request *rq, const void *msg);
int __wrap_emu_op_reset(struct emu_request *rq, const void *msg);

int __wrap_emu_op_reset(struct emu_request *rq, const void *msg)
{
	const struct sio_req_reset *m = msg;
	struct emu_device *d = find(m->device);
	struct before before[MOST];
	unsigned n = d ? note(d, before) : 0;
	int rc = __real_emu_op_reset(rq, msg);

	if (rc < 0 || n < 2)
		return rc;
	if (!d->physical && m->kind != SIO_RESET_DONE)
		sim_functions_gone(m->device);
	for (unsigned i = 0; i < n; i++) {
		if (before[i].d == d)
			continue;
		if (d->physical || m->kind == SIO_RESET_DONE)
			check_kept(&before[i], d);
		else
			check_taken(&before[i]);
	}
	return rc;
}

const struct sim_oracle sim_oracle_functions = {.name = "functions"};
