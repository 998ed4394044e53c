/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the driver of a client never does with a drive, tried by a manager before it serves: more
 * commands than the completion queue has entries, while no completion is consumed; PRP lists that
 * begin anywhere in a page and continue in another one. The clients' blocks are only read.
 */
#include <nvme/types.h>

#include <endian.h>
#include <string.h>

#include "work/life.h"
#include "manager.h"
#include "smartio/io.h"
#include "smartio/nvme.h"
#include "run/run.h"
#include "edge/trouble.h"
#include "run/listener.h"
#include "work/drives.h"

#define PAGE SIO_NVME_PAGE
#define QID 1u
#define PAGES 4u /* of a transfer */
/* Pages of the trial's memory. */
enum { CQ, SQ, LIST, MORE, PLAIN, CHAINED = PLAIN + PAGES, ALL = CHAINED + PAGES };

struct trial {
	struct sio_nvme_ctrl *c;
	struct sio_nvme_mem mem;
	uint32_t cq_entries, sq_entries, tail, head, phase, nsid, blocks; /* of PAGES */
};

static volatile uint8_t *at(struct trial *t, unsigned page)
{
	return t->mem.at + (size_t)page * PAGE;
}

static uint64_t address(const struct trial *t, unsigned page)
{
	return t->mem.ioaddr + (uint64_t)page * PAGE;
}

static void ring(struct trial *t, unsigned which, uint32_t value)
{
	sio_to_fabric_barrier();
	sio_write32(t->c->db + (size_t)(2 * QID + which) * t->c->stride, value);
	sio_nvme_wake(t->c->db_map, t->c->db_sleeps);
}

static void put(struct trial *t, uint32_t cid, uint64_t prp1, uint64_t prp2, uint32_t blocks)
{
	uint32_t sqe[16] = {htole32(nvme_cmd_read | cid << 16), htole32(t->nsid)};

	memcpy(&sqe[6], &(uint64_t){htole64(prp1)}, 8);
	memcpy(&sqe[8], &(uint64_t){htole64(prp2)}, 8);
	sqe[12] = htole32(blocks - 1);
	sio_copy_to(at(t, SQ) + t->tail * sizeof(sqe), sqe, sizeof(sqe));
	t->tail = (t->tail + 1) % t->sq_entries;
}

/* Is there a completion in the entry @i places behind the head? */
static bool has_come(struct trial *t, uint32_t i)
{
	uint32_t place = t->head + i;
	uint32_t phase = t->phase ^ (place >= t->cq_entries);
	uint32_t dw3 = le32toh(sio_read32(at(t, CQ) + place % t->cq_entries * 16 + 12));

	return (dw3 >> 16 & 1) == phase;
}

/* Takes the next completion. Return: the id of its command; ~0: none came. */
static uint32_t take(struct trial *t)
{
	uint32_t dw3;

	for (unsigned i = 0; !has_come(t, 0); i++) {
		if (i == 1000)
			return ~0u;
		sim_sleep(SIM_MS);
	}
	sio_from_fabric_barrier();
	dw3 = le32toh(sio_read32(at(t, CQ) + t->head * 16 + 12));
	if (++t->head == t->cq_entries) {
		t->head = 0;
		t->phase ^= 1;
	}
	ring(t, 1, t->head);
	if (dw3 >> 17)
		sim_fail("drive", "%s: command %u is refused: %#x", sim_self()->name, dw3 & 0xffff,
			 dw3 >> 17);
	return dw3 & 0xffff;
}

/* More completions than the queue has room for: the others come as entries are consumed. */
static void overflow(struct trial *t)
{
	uint32_t n = t->sq_entries - 1, seen = 0;

	for (uint32_t i = 0; i < n; i++)
		put(t, i, address(t, PLAIN), 0, 1);
	ring(t, 0, t->tail);
	sim_sleep(20 * SIM_MS); /* a command takes less than one millisecond */
	for (uint32_t i = 0; i < t->cq_entries; i++)
		if (has_come(t, i) != (i < n && i < t->cq_entries - 1))
			sim_fail("drive", "%s: entry %u of %u in a completion queue has%s come",
				 sim_self()->name, i, t->cq_entries, has_come(t, i) ? "" : " not");
	for (uint32_t i = 0; i < n; i++) {
		uint32_t cid = take(t);

		if (cid >= n || seen >> cid & 1)
			sim_fail("drive", "%s: the completion of command %u", sim_self()->name,
				 cid);
		seen |= 1u << cid;
	}
}

static void list(volatile uint8_t *where, unsigned i, uint64_t page)
{
	sio_write64(where + 8 * (size_t)i, htole64(page));
}

/* Reads the same blocks by a list in one page and by a list that continues in a second page. */
static void chain(struct trial *t)
{
	unsigned here = 1 + (unsigned)sim_pick(PAGES - 1), first = PAGE / 8 - here, n = 0;
	uint8_t plain[PAGE], chained[PAGE];

	for (unsigned i = 1; i < PAGES; i++)
		list(at(t, LIST), i - 1, address(t, PLAIN + i));
	put(t, 1, address(t, PLAIN), address(t, LIST), t->blocks);
	for (unsigned i = 1; i < PAGES; i++) {
		bool fits = n < here - 1 || (here == PAGES - 1 && n < here);

		list(fits ? at(t, LIST) + 8 * (size_t)first : at(t, MORE),
		     fits ? n : n - (here - 1), address(t, CHAINED + i));
		n++;
	}
	if (here < PAGES - 1)
		list(at(t, LIST), PAGE / 8 - 1, address(t, MORE));
	put(t, 2, address(t, CHAINED), address(t, LIST) + 8 * (uint64_t)first, t->blocks);
	ring(t, 0, t->tail);
	if (take(t) + take(t) != 3)
		return;
	for (unsigned i = 0; i < PAGES; i++) {
		sio_copy_from(plain, at(t, PLAIN + i), PAGE);
		sio_copy_from(chained, at(t, CHAINED + i), PAGE);
		if (memcmp(plain, chained, PAGE) != 0)
			sim_fail("drive", "%s: page %u of a list that is cut behind %u is wrong",
				 sim_self()->name, i, here);
	}
}

/*
 * Is nothing wrong with the drive but what the trial finds? Not if drives, paths or hosts may fail.
 */
static bool fits(const struct smartio_nvme_manager *m)
{
	static const char *const other[] = {"crash",   "link",	  "between", "anew",   "cut",
					    "delay",   "removal", "liar",    "lack",   "port",
					    "restart", "memory",  "stop",    "absent", "stray",
					    "unheard", "scarce"};
	uint64_t bytes = m->meta.ns[0].blocks * m->meta.ns[0].block_size;

	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		if (sim_has_fault(other[i]))
			return false;
	return !trouble_wanted && !sim_wild.lies && !sim_wild.commands && !sim_wild.queues &&
	       m->meta.namespaces && bytes >= PAGES * PAGE && m->ctrl.max_entries >= 4 &&
	       (2 * QID + 1) * m->ctrl.stride < PAGE;
}

static void try_queue(struct trial *t)
{
	uint32_t status = 0;
	int rc;

	sim_call("sio_nvme_ctrl_create_cq", 0);
	rc = sim_nvme_called(
		sio_nvme_ctrl_create_cq(t->c, QID, address(t, CQ), t->cq_entries, 0, &status), 0);
	if (rc || status)
		return;
	sim_call("sio_nvme_ctrl_create_sq", 0);
	rc = sim_nvme_called(
		sio_nvme_ctrl_create_sq(t->c, QID, address(t, SQ), t->sq_entries, QID, &status), 0);
	if (rc == 0 && status == 0) {
		overflow(t);
		chain(t);
	}
	sim_call("sio_nvme_ctrl_delete_sq", 0);
	sim_nvme_called(sio_nvme_ctrl_delete_sq(t->c, QID), 0);
	sim_call("sio_nvme_ctrl_delete_cq", 0);
	sim_nvme_called(sio_nvme_ctrl_delete_cq(t->c, QID), 0);
}

void sim_manager_tries(struct smartio_nvme_manager *m)
{
	struct trial t = {.c = &m->ctrl, .phase = 1, .nsid = m->meta.ns[0].id};

	if (!sim_has_fault("flood") || !fits(m))
		return;
	t.blocks = PAGES * PAGE / m->meta.ns[0].block_size;
	t.sq_entries = m->ctrl.max_entries < 8 ? m->ctrl.max_entries : 8;
	t.cq_entries = 2 + (uint32_t)sim_pick(4);
	if (t.cq_entries > t.sq_entries)
		t.cq_entries = t.sq_entries;
	sim_call("sio_nvme_mem_local", 0);
	if (sim_nvme_called(sio_nvme_mem_local(&m->d, (size_t)ALL * PAGE, &t.mem), 0) == 0) {
		sio_nvme_mem_clear(&t.mem, (size_t)ALL * PAGE);
		sim_note_trial(m->d.fdid, true);
		try_queue(&t);
		sim_note_trial(m->d.fdid, false);
		sim_did.flood++;
	}
	sim_call("sio_nvme_mem_done", 0);
	sio_nvme_mem_done(&t.mem);
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
}
