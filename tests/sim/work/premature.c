/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Premature release: malicious managers of drives that end quarantines too early. Notified of a
 * borrower's end, they end its quarantine at once without deleting its queues. The drive completes
 * what is in flight there, and fetches further commands when their doorbell is rung, while the
 * memory at those addresses is already another program's, or free.
 *
 * With an IOMMU before the drive its addresses lead only to what is mapped for it. It may write to
 * the memory of its borrowers, so the contents of its blocks are not judged. All other memory is
 * judged by its owners, and nothing that the drive has sent may arrive in freed memory.
 *
 * Without an IOMMU the manager can have the drive write to all of the lender's memory, and to
 * everything that the lender has windows to. In seeds with such managers no program runs that
 * checks memory there; judged are the memory of other hosts behind an IOMMU, that calls end, and
 * that the drive serves afterwards.
 */
#include "model/blocks.h"
#include "work/canary.h"
#include "work/life.h"
#include "manager.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/nvme.h"
#include "run/run.h"
#include "work/drives.h"

#define SEEN_IN 16u /* in one seed of so many: drives at work take long to simulate */
#define OPEN_IN 3u  /* in one of so many of these the drive may have no IOMMU before it */
#define PAIRS 8u

struct state {
	struct smartio_nvme_manager *m;
	struct sim_canary canary;
	bool lives;
};

/*
 * May this seed have such managers without an IOMMU before their drive? Then it has no program that
 * checks memory; but a completion could be so late that the probes at the end check memory already.
 */
static bool is_open(void)
{
	static const char *const later[] = {"late", "doubled", "stray"};
	uint64_t seed = sim_options.seed ^ 0x6f70656eull;

	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
		if (sim_has_fault(later[i]))
			return false;
	return sim_draw(&seed) % OPEN_IN == 0;
}

/* ---- what it does ---- */
/* The drive fetches what is in a queue's memory now. */
static void ring(struct state *s)
{
	struct sio_nvme_ctrl *c = &s->m->ctrl;
	uint32_t qid = 1 + (uint32_t)sim_pick(PAIRS);

	if ((2 * qid + 1) * c->stride > SIO_NVME_PAGE)
		return;
	sio_write32(c->db + 2 * (size_t)qid * c->stride, (uint32_t)sim_pick(4));
	sio_nvme_wake(c->db_map, c->db_sleeps);
}

/* Ends the quarantine while completions of what was in flight are still to come. */
static void settle(struct state *s, uint64_t borrower)
{
	sci_error_t e;

	SIM_CALL(smartio_device_settled, (s->m->d.handle, borrower, &e), &e,
		 SCI_ERR_ILLEGAL_PARAMETER, SCI_ERR_ACCESS, SCI_ERR_NOT_CONNECTED, SCI_ERR_BUSY);
	sim_wild.premature += e == SCI_ERR_OK;
	s->lives = e != SCI_ERR_ACCESS && e != SCI_ERR_NOT_CONNECTED;
	/* Rings at once; act() does so later, when another program may have the memory. */
	for (uint64_t n = sim_pick(2) ? 0 : sim_pick(PAIRS); s->lives && n > 0; n--)
		ring(s);
}

static void hear(struct state *s)
{
	unsigned timeout = (unsigned)sim_pick(20);
	struct smartio_device_event event;
	sci_error_t e;

	sim_call("smartio_wait_device_event", timeout + 1000);
	smartio_wait_device_event(s->m->d.handle, &event, timeout, &e);
	sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED, SCI_ERR_OK);
	if (e == SCI_ERR_TIMEOUT)
		return;
	if (e != SCI_ERR_OK || event.kind == SMARTIO_DEVICE_LOST)
		s->lives = false;
	else if (event.kind == SMARTIO_DEVICE_BORROWER_GONE)
		settle(s, event.borrower);
	else
		s->lives = event.generation == s->m->meta.generation; /* its own reset */
}

/* Serves one request, but leaves the notifications of borrowers' ends to hear(). */
static void serve_one(struct state *s)
{
	unsigned len = sizeof(s->m->message), timeout = 1 + (unsigned)sim_pick(20);
	sci_error_t e;

	sim_call("SCIWaitForDataInterrupt", timeout + 1000);
	SCIWaitForDataInterrupt(s->m->interrupt, s->m->message, &len, timeout, 0, &e);
	sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED, SCI_ERR_OK);
	s->lives = e == SCI_ERR_OK || e == SCI_ERR_TIMEOUT;
	if (e != SCI_ERR_OK)
		return;
	sim_call("sio_nvme_manager_request", 0);
	s->lives = sim_nvme_called(sio_nvme_manager_request(s->m, len), 0) == 0;
}

static void act(struct state *s)
{
	switch (sim_pick(8)) {
	case 0:
		ring(s);
		break;
	case 1:
		sim_call("smartio_nvme_manager_serve", 0);
		s->lives = sim_nvme_called(smartio_nvme_manager_serve(s->m, (uint32_t)sim_pick(5)),
					   0) >= 0;
		break;
	case 2:
	case 3:
	case 4:
		hear(s);
		break;
	default:
		serve_one(s);
	}
	sim_canary_look(&s->canary, "memory");
}

/* ---- the program ---- */
static void rule(struct state *s, uint64_t until)
{
	s->lives = true;
	while (s->lives && sim_now() < until && !sim_stopping_programs()) {
		act(s);
		sim_sleep(sim_pick(100000));
	}
	sim_call("smartio_nvme_manager_close", 0);
	smartio_nvme_manager_close(s->m);
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
}

/* The contents of the blocks of all drives that such a manager can affect are not judged. */
static void distrust(const struct sio_topo_host *lender, unsigned host, unsigned device)
{
	sim_wild.lies++;
	sim_wild.guarded += lender->iommu;
	blocks_distrust(blocks_drive(host, device));
	for (unsigned h = 0; !lender->iommu && h < sim_hosts(); h++)
		for (unsigned i = 0; i < sim_cluster->topology->host[h].n_devices; i++)
			blocks_distrust(blocks_drive(h, i));
}

static void premature_main(struct sim_proc *p)
{
	uint64_t until = sim_now() + sim_pick(6 * SIM_SECOND);
	unsigned tries = 1 + (unsigned)sim_pick(5), host, device;
	const char *name = sim_pick_drive(&host, &device)->name;
	const struct sio_topo_host *lender = &sim_cluster->topology->host[host];
	struct state s = {.m = NULL};

	if ((!lender->iommu && !is_open()) || !sim_initialize())
		return;
	/* Only in memory that the drive cannot reach. */
	if (lender->iommu || (p->host != host && sim_cluster->topology->host[p->host].iommu))
		sim_canary_put(&s.canary);
	for (; tries > 0 && sim_now() < until && !sim_stopping_programs(); tries--) {
		distrust(lender, host, device);
		sim_call("smartio_nvme_manager_open", 0);
		if (sim_nvme_called(smartio_nvme_manager_open(name, NULL, &s.m), 0) == 0)
			rule(&s, until);
		sim_canary_look(&s.canary, "memory");
		sim_sleep(sim_pick(500 * SIM_MS));
	}
	sim_exit(p);
}

static bool seen(unsigned hosts)
{
	uint64_t seed = sim_options.seed ^ 0x6861737479ull;
	bool named = sim_options.workload && strstr(sim_options.workload, "premature");

	(void)hosts;
	return named || sim_draw(&seed) % SEEN_IN == 0;
}

static const char *beside(void)
{
	return is_open() ? "premature,nvme,manager,steward,asker" : NULL;
}

const struct sim_workload sim_work_premature = {.name = "premature",
						.weight = 2,
						.fits = sim_has_drives,
						.seen = seen,
						.beside = beside,
						.main = premature_main};
