/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients, and sometimes managers, of drives whose lender's daemon is malicious (fault/liar.c,
 * fault/liar_answer.c): it says where the drive's registers are, at which address the drive sees a
 * queue, and whether it was reset. Any error and any data may be the result. But each call ends in
 * time; what completes was submitted; memory that is shared with nobody keeps its contents; and
 * nothing is left when all programs have ended.
 *
 * On the malicious host itself the same workload is an honest manager of its drives.
 */
#include <errno.h>

#include "work/canary.h"
#include "work/life.h"
#include "run/run.h"
#include "smartio/nvme.h"

#define DEPTH 6u
#define MOST 4u /* blocks of a command */
#define SLOT 16384u
#define ENDS_MS 120000u /* a call that waits several times for daemon, manager and drive */

struct deceived {
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_buffer *b;
	struct sim_canary canary;
	struct smartio_nvme_namespace ns;
	bool used[DEPTH];
};

/* As SIM_CALL(), for calls that return 0 or -errno; any error is allowed. */
#define NVME_ASK(rc, fn, args)                                                                     \
	(sim_call(#fn, ENDS_MS), (rc) = fn args, (void)sim_called(SCI_ERR_OK, SCI_ERR_OK))

static const char *a_drive(void)
{
	const struct sio_topo_host *h = &sim_cluster->topology->host[sim_liar()];

	return h->device[sim_pick(h->n_devices)].name;
}

/* ---- clients ---- */
/* Return: whether the queue can still be used. */
static bool submit(struct deceived *l)
{
	unsigned i = (unsigned)sim_pick(DEPTH);
	uint32_t n = 1 + (uint32_t)sim_pick(MOST);
	uint64_t blocks = l->ns.blocks ? l->ns.blocks : 1;
	bool write = sim_pick(2);
	int rc;

	if (l->used[i] || n > SLOT / (l->ns.block_size ? l->ns.block_size : 1))
		return true;
	rc = smartio_nvme_submit(l->q, write ? SMARTIO_NVME_WRITE : SMARTIO_NVME_READ,
				 sim_pick(blocks), n, l->b, i * (size_t)SLOT, &l->used[i]);
	l->used[i] = rc == 0;
	return rc == 0 || rc == -ERANGE || rc == -EAGAIN;
}

static bool poll(struct deceived *l)
{
	struct smartio_nvme_completion done[DEPTH];
	int n;

	if (sim_pick(4) == 0)
		NVME_ASK(n, smartio_nvme_wait, (l->q, (uint32_t)sim_pick(20)));
	n = smartio_nvme_poll(l->q, done, DEPTH);
	for (int i = 0; i < n; i++) {
		bool *used = done[i].cookie;

		if (used < l->used || used >= l->used + DEPTH || !*used)
			sim_fail("states", "%s: a completion of nothing that was sent",
				 sim_self()->name);
		*used = false;
	}
	sim_sleep(1 + sim_pick(SIM_MS));
	return n >= 0;
}

static void use_queue(struct deceived *l)
{
	bool lives = true;

	for (uint64_t acts = sim_pick(200); lives && acts > 0 && !sim_stopping_programs(); acts--)
		lives = sim_pick(2) ? submit(l) : poll(l);
}

static void use_drive(struct deceived *l)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o)};
	int rc = smartio_nvme_get_namespace(l->n, 0, &l->ns);

	for (unsigned i = 0; i < DEPTH; i++)
		l->used[i] = false;
	if (rc)
		return;
	o.depth = DEPTH;
	o.sq_placement = (uint32_t)sim_pick(4);
	o.cq_placement = (uint32_t)sim_pick(3);
	o.flags = sim_pick(4) ? 0 : SMARTIO_NVME_INTERRUPT;
	NVME_ASK(rc, smartio_nvme_queue_open, (l->n, &o, &l->q));
	if (rc)
		return;
	NVME_ASK(rc, smartio_nvme_buffer_alloc, (l->n, DEPTH * SLOT, &l->b));
	if (rc == 0)
		use_queue(l);
	sim_canary_look(&l->canary, "memory");
	sim_call("smartio_nvme_queue_close", ENDS_MS);
	smartio_nvme_queue_close(l->q);
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
	if (rc == 0)
		NVME_ASK(rc, smartio_nvme_buffer_free, (l->b));
}

static void be_client(struct deceived *l)
{
	int rc;

	NVME_ASK(rc, smartio_nvme_open, (a_drive(), &l->n));
	if (rc)
		return;
	for (unsigned queues = 1 + (unsigned)sim_pick(3); queues > 0; queues--)
		use_drive(l);
	sim_call("smartio_nvme_close", ENDS_MS);
	smartio_nvme_close(l->n);
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
}

/* ---- managers ---- */
static void be_manager(uint64_t until)
{
	struct smartio_nvme_manager *m;
	int rc;

	NVME_ASK(rc, smartio_nvme_manager_open, (a_drive(), NULL, &m));
	if (rc)
		return;
	while (rc >= 0 && sim_now() < until && !sim_stopping_programs())
		NVME_ASK(rc, smartio_nvme_manager_serve, (m, (uint32_t)sim_pick(300)));
	sim_call("smartio_nvme_manager_close", ENDS_MS);
	smartio_nvme_manager_close(m);
	sim_called(SCI_ERR_OK, SCI_ERR_OK);
}

/* ---- the program ---- */
static void deceived_main(struct sim_proc *p)
{
	bool at_home = p->host == sim_liar();
	struct deceived l = {.n = NULL};

	if (!sim_initialize())
		return;
	if (!at_home)
		sim_canary_put(&l.canary);
	for (unsigned tries = 1 + (unsigned)sim_pick(10); tries > 0 && !sim_stopping_programs();
	     tries--) {
		if (at_home || sim_pick(8) == 0)
			be_manager(sim_now() + sim_pick(at_home ? 8 * SIM_SECOND : SIM_SECOND));
		else
			be_client(&l);
		sim_canary_look(&l.canary, "memory");
		sim_sleep(sim_pick(200 * SIM_MS));
	}
	sim_terminate(p);
}

static bool seen(unsigned hosts)
{
	return sim_has_fault("liar") && !sim_outliving && hosts > 2;
}

static bool fits(unsigned host)
{
	(void)host;
	return sim_liar() < sim_hosts() && sim_cluster->topology->host[sim_liar()].n_devices > 0;
}

const struct sim_workload sim_work_deceived = {
	.name = "deceived", .weight = 6, .seen = seen, .fits = fits, .main = deceived_main};
