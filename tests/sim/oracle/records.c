/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon's records and its port agree: the objects that the port holds are those of the daemon's
 * tables, plus those in quarantine. Which owners live is known by the descriptors that programs
 * have, not by the daemon. It is checked whenever no message is in flight between port and daemon,
 * and the daemon works on no request: then each object of one list is in the other.
 */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "edge/daemon_state.h"
#include "run/run.h"
#include "smartio/uapi.h"

/* One object that the daemon's tables report. */
struct entry {
	struct entry_key {
		uint64_t kind, id;
	} key;
	bool sure; /* the port must have it; otherwise the port may have released it by itself */
	bool seen; /* in the port's list */
	UT_hash_handle hh;
};

static const char *const name[] = {
	[SIO_KIND_OWNER] = "owner",
	[SIO_KIND_MEM] = "memory",
	[SIO_KIND_GRANT] = "grant",
	[SIO_KIND_MAP] = "window",
	[SIO_KIND_REQUESTER] = "requester entry",
	[SIO_KIND_BAR] = "BAR view",
	[SIO_KIND_DMAMAP] = "DMA map",
	[SIO_KIND_IRQ] = "interrupt",
	[RECORDS_ADDRESS] = "address of a grant",
	[SIO_KIND_DMA] = "DMA channel",
	[SIO_KIND_VECTOR] = "vector",
};
#define KINDS (sizeof(name) / sizeof(name[0]))

static struct entry *table;
static unsigned host_now;	   /* the host that is being checked */
static uint64_t looked[SIM_HOSTS]; /* sim_port_quiet() as of the last check */

static void note(uint32_t kind, uint64_t id, bool sure)
{
	struct entry *e;
	struct entry_key key = {kind, id};

	if (id == 0)
		return;
	HASH_FIND(hh, table, &key, sizeof(key), e);
	if (!e) {
		e = calloc(1, sizeof(*e));
		assert(e);
		e->key = key;
		HASH_ADD(hh, table, key, sizeof(e->key), e);
	}
	e->sure |= sure;
}

static void forget(void)
{
	struct entry *e, *next;

	HASH_ITER (hh, table, e, next) {
		HASH_DEL(table, e);
		free(e);
	}
}

/* An object in quarantine stays because a device or a peer may still reach it. */
static void check_quarantine(const struct sio_list_entry *l)
{
	if (l->kind != SIO_KIND_OWNER && l->refs == 0)
		sim_fail("records",
			 "node %u: %s %" PRIu64 " of ended owner %" PRIu64
			 " stays, and nothing refers to it",
			 sim_node(host_now), name[l->kind], (uint64_t)l->id, (uint64_t)l->owner);
}

static void check_one(void *arg, const struct sio_list_entry *l)
{
	bool vector = l->kind == SIO_KIND_VECTOR, address = l->kind == SIO_KIND_GRANT && !l->cookie;
	struct entry_key key = {address ? RECORDS_ADDRESS : l->kind,
				vector ? tables_vector(l->device, l->length) : l->id};
	struct entry *e;

	(void)arg;
	if (l->kind >= KINDS || !name[l->kind] ||
	    sim_fault_owns(host_now, l->kind == SIO_KIND_OWNER ? l->id : l->owner))
		return;
	HASH_FIND(hh, table, &key, sizeof(key), e);
	if (e)
		e->seen = true;
	else if (l->state == SIO_STATE_LIVE || l->kind == SIO_KIND_DMAMAP ||
		 l->kind == SIO_KIND_GRANT)
		sim_fail("records",
			 "node %u: the port has %s %" PRIu64 " of owner %" PRIu64
			 ", the daemon knows of none",
			 sim_node(host_now), name[l->kind], (uint64_t)l->id, (uint64_t)l->owner);
	else
		check_quarantine(l);
	if (l->kind == SIO_KIND_OWNER && l->state == SIO_STATE_LIVE && l->owner == 0 &&
	    !sim_owner_held(host_now, l->id))
		sim_fail("records", "node %u: owner %" PRIu64 " lives, and no program has it",
			 sim_node(host_now), (uint64_t)l->id);
}

static void check_host(unsigned host)
{
	struct entry *e, *next;

	host_now = host;
	tables_read(host, note);
	sim_port_each(host, check_one, NULL);
	HASH_ITER (hh, table, e, next)
		if (e->sure && !e->seen)
			sim_fail("records",
				 "node %u: the daemon knows of %s %" PRIu64 ", the port has none",
				 sim_node(host_now), name[e->key.kind], e->key.id);
	forget();
	sim_result.records++;
}

/* Once for all that was asked of the port since it was quiet last. */
static void check(void)
{
	for (unsigned h = 0; h < sim_hosts(); h++) {
		uint64_t quiet = sim_port_quiet(h);

		if (quiet == 0 || quiet == looked[h] || !tables_quiet(h))
			continue;
		looked[h] = quiet;
		check_host(h);
	}
}

static void start(void)
{
	memset(looked, 0, sizeof(looked));
}

const struct sim_oracle sim_oracle_records = {
	.name = "records", .every = SIM_MS, .start = start, .check = check};
