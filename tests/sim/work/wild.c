/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Malicious clients of drives that use wild addresses: they have the drive read and write where
 * nothing is mapped for it (memory of hosts, windows, registers, beyond the end of their own
 * memory), and request queues there. The IOMMU refuses the accesses, the manager the queues; memory
 * that is not mapped keeps its contents, and the drive continues to serve. A malicious program can
 * change the library's memory in its process, so this one includes the driver's private header and
 * does.
 */
#include <errno.h>
#include <stdlib.h>

#include "work/canary.h"
#include "client.h"
#include "work/life.h"
#include "smartio/io.h"
#include "run/run.h"
#include "work/drives.h"

#define BYTES 16384u
#define DEPTH 2u
#define PAGE 4096u
#define MEMS 8
#define PATIENCE (100 * SIM_MS)

struct state {
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	const struct sio_topo_host *lender;
	struct sim_canary canary; /* memory of the program that is not mapped for the drive */
};

/* ---- addresses ---- */
static uint64_t page_in(uint64_t base, uint64_t size)
{
	return base + sim_pick(size / PAGE) * PAGE;
}

uint64_t sim_wild_address(const struct sio_topo_host *lender, uint64_t kind)
{
	const struct sio_topo_host *other = &sim_cluster->topology->host[sim_pick(sim_hosts())];

	switch (kind) {
	case 0:
		return page_in(lender->ram_base, lender->ram_size);
	case 1:
		return page_in(lender->adapter[0].window_base, lender->adapter[0].window_size);
	case 2:
		return lender->device[0].bar_base + sim_pick(4) * PAGE;
	case 3:
		return page_in(other->ram_base, other->ram_size);
	default:
		return (sim_pick(2) ? 0 : ~UINT64_C(0)) & ~(uint64_t)(PAGE - 1);
	}
}

/* The same, or just beyond the end of the program's own buffer. */
static uint64_t wild_address(const struct state *s)
{
	uint64_t kind = sim_pick(7);

	if (kind == 6)
		return s->b->ioaddr + s->b->size;
	return sim_wild_address(s->lender, kind % 5);
}

/* ---- data ---- */
/* Polls for the completion of the one command in flight. Return: its status; -1: none came. */
static int status_of_one(struct state *s)
{
	uint64_t until = sim_now() + PATIENCE;
	struct smartio_nvme_completion c;
	int n;

	while ((n = smartio_nvme_poll(s->q, &c, 1)) == 0 && sim_now() < until)
		sim_sleep(1 + sim_pick(20000));
	return n > 0 ? (int)c.status : -1;
}

/* One command that has the drive access address @at. Return: as status_of_one(). */
static int command(struct state *s, enum smartio_nvme_op op, uint64_t at, uint64_t lba,
		   uint32_t blocks)
{
	uint64_t right = s->b->ioaddr;
	int rc;

	s->b->ioaddr = at;
	rc = smartio_nvme_submit(s->q, op, lba, blocks, s->b, 0, NULL);
	s->b->ioaddr = right;
	return rc == 0 ? status_of_one(s) : -1;
}

/*
 * A Read whose data the drive cannot write to memory may succeed, because posted writes are not
 * answered. A Write whose data it cannot read fails, and leaves the media as they were. Return:
 * whether the queue can still be used.
 */
static bool wild_data(struct state *s)
{
	struct smartio_nvme_namespace ns;
	uint64_t at = wild_address(s), first;
	uint32_t blocks;
	bool write;
	int status;

	if (!s->lender->iommu || smartio_nvme_get_namespace(s->n, 0, &ns))
		return true;
	if (ns.block_size < 512 || ns.block_size > 4096) /* of a malicious manager */
		return false;
	blocks = 1 + (uint32_t)sim_pick(BYTES / ns.block_size);
	/*
	 * All borrowers of a drive reach what any of them has mapped for it. Beyond the end of this
	 * buffer one page is mapped for nobody, and further mappings may follow.
	 */
	if (at == s->b->ioaddr + s->b->size)
		blocks = 1;
	/* Blocks beyond those that honest clients use. */
	first = ns.blocks > 1024 ? 512 : 0;
	write = first && sim_pick(2);
	sim_wild.commands++;
	status = command(s, write ? SMARTIO_NVME_WRITE : SMARTIO_NVME_READ, at,
			 first + (first ? sim_pick(ns.blocks - first - blocks) : 0), blocks);
	if (status == 0 && write && !sim_wild.lies)
		sim_fail("wild", "%s: the drive read %#llx, where nothing is mapped for it",
			 sim_self()->name, (unsigned long long)at);
	sim_wild.refused += status > 0;
	return status >= 0;
}

/* ---- queues ---- */
static bool lies_in(const struct sio_nvme_mem *mem, uint64_t at)
{
	return at >= mem->ioaddr && at - mem->ioaddr < mem->size;
}

static bool is_ours(const struct state *s, struct sio_nvme_mem *const *mem, const uint64_t *right,
		    unsigned n, uint64_t at)
{
	for (unsigned i = 0; i < n; i++)
		if (at >= right[i] && at - right[i] < mem[i]->size)
			return true;
	/* Memory of a queue that could not be deleted. */
	for (const struct smartio_nvme_queue *q = s->n->kept; q; q = q->next)
		if (lies_in(q->sq_mem, at) || lies_in(q->cq_mem, at))
			return true;
	return at >= s->b->ioaddr && at - s->b->ioaddr < s->b->size;
}

static bool is_one_of(struct sio_nvme_mem *const *mem, unsigned n, const struct sio_nvme_mem *m)
{
	for (unsigned i = 0; i < n; i++)
		if (mem[i] == m)
			return true;
	return false;
}

/*
 * The driver uses the memory of closed queues again. Here it is made to believe that this memory
 * lies at a wild address, so that it requests a queue there, which the manager must refuse.
 */
static void wild_queue(struct state *s)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = DEPTH};
	struct sio_nvme_mem *mem[MEMS];
	uint64_t right[MEMS], at = wild_address(s);
	struct smartio_nvme_queue *q = NULL;
	bool sq_lies, cq_lies;
	unsigned n = 0;
	int rc;

	for (struct sio_nvme_mem *m = s->n->spare; m && n < MEMS; m = m->next) {
		right[n] = m->ioaddr;
		mem[n++] = m;
	}
	if (n == 0 || is_ours(s, mem, right, n, at))
		return;
	for (unsigned i = 0; i < n; i++)
		if (i == 0 || sim_pick(2))
			mem[i]->ioaddr = at;
	sim_wild.queues++;
	sim_call("smartio_nvme_queue_open", 0);
	rc = smartio_nvme_queue_open(s->n, &o, &q);
	sim_nvme_called(rc, rc == -EINVAL ? rc : -EFAULT);
	sim_wild.queues_refused += rc == -EFAULT || rc == -EINVAL;
	/* The driver may have used new memory instead, perhaps mapped at that very address. */
	sq_lies = rc == 0 && is_one_of(mem, n, q->sq_mem) && q->sq_mem->ioaddr == at;
	cq_lies = rc == 0 && is_one_of(mem, n, q->cq_mem) && q->cq_mem->ioaddr == at;
	if (!sim_wild.lies && ((sq_lies && (cq_lies || q->cq_mem->ioaddr != at)) ||
			       (cq_lies && q->sq_mem->ioaddr != at)))
		sim_fail("wild", "%s: a queue was made at %#llx", sim_self()->name,
			 (unsigned long long)at);
	for (unsigned i = 0; i < n; i++)
		mem[i]->ioaddr = right[i];
	if (rc)
		return;
	sim_call("smartio_nvme_queue_close", 120000);
	smartio_nvme_queue_close(q);
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
}

/* ---- the program ---- */
static bool open_queue(struct state *s)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = DEPTH};

	sim_call("smartio_nvme_queue_open", 0);
	return sim_nvme_called(smartio_nvme_queue_open(s->n, &o, &s->q), 0) == 0;
}

static void close_queue(struct state *s)
{
	sim_call("smartio_nvme_queue_close", 120000);
	smartio_nvme_queue_close(s->q);
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
}

static void use_drive(struct state *s)
{
	unsigned queues = 1 + (unsigned)sim_pick(4), acts;
	bool lives = true;

	sim_call("smartio_nvme_buffer_alloc", 0);
	if (sim_nvme_called(smartio_nvme_buffer_alloc(s->n, BYTES, &s->b), 0))
		return;
	for (; queues > 0 && lives && !sim_stopping_programs(); queues--) {
		if (!open_queue(s))
			return;
		for (acts = (unsigned)sim_pick(20); lives && acts > 0; acts--) {
			lives = wild_data(s);
			sim_canary_look(&s->canary, "wild");
			/* The drive still serves: a valid command succeeds after each. */
			if (lives)
				lives = command(s, SMARTIO_NVME_READ, s->b->ioaddr, 0, 1) == 0;
		}
		close_queue(s);
		wild_queue(s);
	}
}

static void wild_main(struct sim_proc *p)
{
	unsigned tries = 1 + (unsigned)sim_pick(5), host;
	const char *name = sim_pick_drive(&host, NULL)->name;
	struct state s = {.lender = &sim_cluster->topology->host[host]};

	if (!sim_initialize())
		return;
	sim_canary_put(&s.canary);
	for (; tries > 0 && !sim_stopping_programs(); tries--) {
		sim_call("smartio_nvme_open", 0);
		if (sim_nvme_called(smartio_nvme_open(name, &s.n), 0) == 0) {
			use_drive(&s);
			sim_call("smartio_nvme_close", 120000);
			smartio_nvme_close(s.n);
			sim_called(SCI_ERR_OK, SCI_ERR_OK);
		}
		sim_canary_look(&s.canary, "wild");
		sim_sleep(sim_pick(300 * SIM_MS));
	}
	sim_exit(p);
}

const struct sim_workload sim_work_wild = {
	.name = "wild", .weight = 2, .fits = sim_has_drives, .main = wild_main};
