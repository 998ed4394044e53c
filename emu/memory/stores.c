/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbells of a machine's devices, for programs of emulated hosts. QEMU has no file of a device's
 * registers, so nothing of them can be mapped; and it takes accesses from outside only as messages.
 * So a program gets pages of ones, and each word that is not ones any more was stored to: it is
 * carried on to the machine, by the ranges that it grants at that moment, and is ones again.
 * Several stores to a word between two looks are the last one; a look takes the words in the order
 * of their addresses. What a program loads there is no register.
 */
#include "emu/memory/memory.h"
#include "smartio/io.h"

#define ONES UINT32_MAX

int emu_stores_new(struct emu_request *rq, struct emu_map *map)
{
	struct emu_room *r = rq->host->room;
	int rc = emu_object_hold(rq, &map->o);

	if (rc < 0)
		return rc;
	rc = r->ops->mem_new(r->ctx, "doorbells", map->length, &map->stores);
	if (rc < 0) {
		memset(&map->stores, 0, sizeof(map->stores));
		return sio_fail(&rq->err, rc,
				"MAP: no memory for stores to doorbells: " SIO_MORE_MEMORY);
	}
	memset(map->stores.data, 0xff, map->length);
	DL_APPEND2(r->stores, map, stores_prev, stores_next);
	return 0;
}

void emu_stores_free(struct emu_map *map)
{
	struct emu_room *r = map->o.host->room;

	if (!map->stores.data)
		return;
	DL_DELETE2(r->stores, map, stores_prev, stores_next);
	r->ops->mem_free(r->ctx, &map->stores);
	memset(&map->stores, 0, sizeof(map->stores));
}

static void count(const struct emu_map *map, uint64_t address)
{
	struct emu_host *h = map->o.host;
	struct emu_room *r = h->room;

	sio_pcie_write(&r->pcie, address, sizeof(uint32_t), &h->adapter[map->adapter].count.pcie);
	sio_pcie_write(&r->pcie, address, sizeof(uint32_t),
		       &r->host[map->peer_host].adapter[map->peer_adapter].count.pcie);
}

/* Return: false: the machine has too many under way: not now. */
static bool carry_on(const struct emu_map *map, uint64_t at, uint32_t value)
{
	struct emu_host *h = map->o.host;
	struct emu_room *r = h->room;
	const struct emu_reach x = {.node = h->topo->node,
				    .adapter = map->adapter,
				    .machine = r->host[map->peer_host].topo->node,
				    .machine_adapter = map->peer_adapter,
				    .address = map->bus_addr + at,
				    .length = sizeof(value)};
	int rc = -ENETDOWN;

	if (emu_machine_leads_there(map))
		rc = r->ops->machine_store(r->ctx, &x, &value);
	if (rc == -EBUSY)
		return false;
	if (rc == 0)
		count(map, x.address);
	else /* as a posted write that is refused: whoever stored is not told */
		h->adapter[map->adapter].count.faults++;
	return true;
}

/*
 * Return: how many were carried on, or dropped. A word is ones again before its store goes on: one
 * that comes meanwhile is another store, even of the same value, and stays for the next look.
 */
static unsigned look(struct emu_map *map)
{
	uint32_t *word = map->stores.data;
	size_t n = map->length / sizeof(*word);
	unsigned work = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t value = sio_read32(&word[i]), none = ONES;

		if (value == ONES)
			continue;
		/* What the program stored before it is there: pairs with its barrier. */
		value = __atomic_exchange_n(&word[i], ONES, __ATOMIC_ACQ_REL);
		sio_from_fabric_barrier();
		if (value == ONES || carry_on(map, i * sizeof(*word), value)) {
			work++;
			continue;
		}
		/* Back with it, unless a later one has come. */
		__atomic_compare_exchange_n(&word[i], &none, value, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
		break;
	}
	return work;
}

unsigned emu_stores_step(struct emu_room *r)
{
	struct emu_map *map;
	unsigned work = 0;

	DL_FOREACH2(r->stores, map, stores_next)
	work += look(map);
	return work;
}
