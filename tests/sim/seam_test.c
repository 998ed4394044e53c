/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seam's test: two daemons, machine room, drive, manager and two clients in one thread with a
 * clock of its own. Kills a client in its step n, for every n until it ends unharmed, and asks
 * after each death: is everything back, did the drive stay well, did the other client notice
 * nothing, can the queue pairs be had again? The same seed writes the same trace.
 *
 *   seam_test [SEEDS]            every n of so many seeds, or one in SEAM_STRIDE
 *   seam_test SEED N [TRACE]     one run; N = 0: nobody dies
 */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/branch.h"
#include "base/sim.h"
#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"
#include "smartio/uapi.h"

static const char topology[] = "cluster: sim\n"
			       "switches: [sw0]\n"
			       "hosts:\n"
			       "  lender:\n"
			       "    ram: 16M\n"
			       "    iommu: on\n"
			       "    adapters: [{to: sw0, window: 64M, entries: 64}]\n"
			       "    devices:\n"
			       "      nvme0: {type: nvme, size: 4M, block: 512, queue_pairs: 3}\n"
			       "  remote:\n"
			       "    ram: 16M\n"
			       "    adapters: [{to: sw0, window: 64M, entries: 64}]\n";

#define BLOCKS 8
#define ROUNDS 6

static const uint32_t kinds[] = {SIO_KIND_OWNER,     SIO_KIND_MEM, SIO_KIND_GRANT,    SIO_KIND_MAP,
				 SIO_KIND_REQUESTER, SIO_KIND_BAR, SIO_KIND_DMAMAP,   SIO_KIND_IRQ,
				 SIO_KIND_WATCH,     SIO_KIND_DMA, SIO_KIND_DMA_RANGE};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct {
	bool serving;
	struct sim_proc *manager, *victim, *other, *late;
	unsigned before[2][KINDS];
	struct smartio_nvme_manager *m;
	uint64_t stride; /* a death in one step of so many */
} T;

#define CHECK(cond, ...)                                                                           \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s: ", __func__, __LINE__, #cond);                 \
			fprintf(stderr, __VA_ARGS__);                                              \
			fprintf(stderr, "\n");                                                     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static void manager_main(struct sim_proc *p)
{
	sci_error_t err;
	int rc;

	SCIInitialize(0, &err);
	CHECK(err == SCI_ERR_OK, "%s", smartio_last_error());
	rc = smartio_nvme_manager_open("nvme0", NULL, &T.m);
	CHECK(rc == 0, "%d %s", rc, smartio_nvme_error());
	T.serving = true;
	for (;;) {
		rc = smartio_nvme_manager_serve(T.m, UINT32_MAX);
		CHECK(rc >= 0, "%d %s", rc, smartio_nvme_error());
	}
	p->result = 0;
}

/* Writes stamped blocks and reads them back; any wrong byte or error ends the run. */
static void client_main(struct sim_proc *p)
{
	uint64_t base = *(uint64_t *)p->arg;
	uint8_t out[BLOCKS * 512], in[BLOCKS * 512];
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = 4};
	struct smartio_nvme *n;
	struct smartio_nvme_queue *q;
	sci_error_t err;
	int rc;

	SCIInitialize(0, &err);
	CHECK(err == SCI_ERR_OK, "%s: %s", p->name, smartio_last_error());
	rc = smartio_nvme_open("nvme0", &n);
	CHECK(rc == 0, "%s: open: %d %s", p->name, rc, smartio_nvme_error());
	rc = smartio_nvme_queue_open(n, &o, &q);
	CHECK(rc == 0, "%s: queue: %d %s", p->name, rc, smartio_nvme_error());
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < sizeof(out); i++)
			out[i] = (uint8_t)(base / 512 + round * 31 + i);
		rc = smartio_nvme_write(q, out, base, sizeof(out));
		CHECK(rc == 0, "%s: write: %d %s", p->name, rc, smartio_nvme_error());
		memset(in, 0, sizeof(in));
		rc = smartio_nvme_read(q, in, base, sizeof(in));
		CHECK(rc == 0, "%s: read: %d %s", p->name, rc, smartio_nvme_error());
		CHECK(memcmp(in, out, sizeof(in)) == 0, "%s: wrong byte", p->name);
	}
	smartio_nvme_queue_close(q);
	smartio_nvme_close(n);
	SCITerminate();
	p->result = 0;
}

static bool manager_serves(void *arg)
{
	(void)arg;
	return T.serving;
}

static unsigned count(unsigned host, unsigned kind)
{
	return sim_port_count(host, kinds[kind]);
}

static bool all_back(void *arg)
{
	struct sim_proc **clients = arg;

	for (; *clients; clients++)
		if (!(*clients)->dead)
			return false;
	for (unsigned host = 0; host < 2; host++)
		for (unsigned k = 0; k < KINDS; k++)
			if (count(host, k) != T.before[host][k])
				return false;
	return true;
}

static void explain(const char *when)
{
	for (unsigned host = 0; host < 2; host++)
		for (unsigned k = 0; k < KINDS; k++)
			if (count(host, k) != T.before[host][k])
				fprintf(stderr, "%s: host %u holds %u of kind %u, had %u\n", when,
					host, count(host, k), kinds[k], T.before[host][k]);
}

static void wait_for_all(const char *when, struct sim_proc **clients)
{
	if (sim_run(all_back, clients, 60 * SIM_SECOND))
		return;
	for (; *clients; clients++)
		if (!(*clients)->dead)
			fprintf(stderr, "%s: %s still runs after %" PRIu64 " steps\n", when,
				(*clients)->name, (*clients)->steps);
	explain(when);
	exit(1);
}

/* @stride: a death branches off in one step of so many; 0: none. Return: the victim ended. */
static bool run(uint64_t seed, uint64_t kill_at, uint64_t stride, uint64_t *ret_hash)
{
	static uint64_t base_victim = 0, base_other = 1u << 20,
			base_late[3] = {1u << 21, 3u << 20, 3u << 19};
	struct sim_proc *late[4] = {NULL};
	struct sim_proc *both[3] = {NULL};
	bool finished;

	sim_start(seed);
	sim_cluster_start(topology);
	/* Before the daemons are ready nobody can connect. */
	sim_run((bool (*)(void *))manager_serves, NULL, SIM_SECOND / 10);
	T.manager = sim_proc_new("manager", 1, manager_main, NULL);
	CHECK(sim_run(manager_serves, NULL, 10 * SIM_SECOND), "the manager does not come up");
	for (unsigned host = 0; host < 2; host++)
		for (unsigned k = 0; k < KINDS; k++)
			T.before[host][k] = count(host, k);

	both[0] = T.victim = sim_proc_new("victim", 1, client_main, &base_victim);
	both[1] = T.other = sim_proc_new("other", 0, client_main, &base_other);
	T.victim->kill_at = kill_at;
	if (stride)
		branch_at(T.victim, stride, NULL);
	wait_for_all("after the death", both);
	finished = T.victim->finished;
	CHECK(T.other->finished, "the other client died");
	CHECK(finished || T.victim->steps == T.victim->kill_at, "killed elsewhere");

	/* Every queue pair can be had again, all at once. */
	for (unsigned i = 0; i < 3; i++)
		late[i] = sim_proc_new("late", i % 2, client_main, &base_late[i]);
	wait_for_all("after the late clients", late);
	for (unsigned i = 0; i < 3; i++)
		CHECK(late[i]->finished, "a late client died");
	CHECK(sim_cluster->fatal == 0, "the drive went to fatal status");
	CHECK(sim_cluster->faults == 0, "%" PRIu64 " faults of the drive", sim_cluster->faults);
	*ret_hash = sim_trace_hash();
	return finished;
}

static void run_once(uint64_t seed, uint64_t kill_at)
{
	uint64_t hash;
	bool finished = run(seed, kill_at, 0, &hash);

	CHECK(finished == (kill_at == 0), "the victim's end");
	branch_report(hash);
}

static void run_with_branches(uint64_t seed, uint64_t kill_at)
{
	uint64_t hash;

	run(seed, kill_at, T.stride, &hash);
	branch_report(hash);
}

/* The same seed is the same run, whoever branches off it; a branch is the run that dies there. */
static void try_seed(struct branch_reports *reports, uint64_t seed)
{
	uint64_t hash, middle;

	memset(reports, 0, sizeof(*reports));
	branch_child(run_once, seed, 0);
	hash = reports->trunk;
	branch_child(run_once, seed + 1000, 0);
	CHECK(hash != reports->trunk, "another seed, the same trace");
	branch_child(run_with_branches, seed, 0);
	CHECK(hash == reports->trunk, "seed %" PRIu64 ": two traces", seed);
	CHECK(reports->deaths > 0 && reports->last > 1000, "the victim did only %" PRIu64 " steps",
	      reports->last);
	middle = reports->last / 2 / T.stride * T.stride + 1;
	for (unsigned i = 0; i < 2; i++) {
		branch_child(run_once, seed, middle);
		CHECK(reports->trunk == reports->hash[middle],
		      "seed %" PRIu64 ": two traces with a death in step %" PRIu64, seed, middle);
	}
	for (uint64_t n = 1; n <= reports->last; n += T.stride)
		CHECK(reports->hash[n] && reports->hash[n] != hash, "no death in step %" PRIu64, n);
	printf("seed %" PRIu64 ": killed in %" PRIu64 " of %" PRIu64 " steps\n", seed,
	       reports->deaths, reports->last);
}

int main(int argc, char **argv)
{
	struct branch_reports *reports;
	uint64_t hash;
	unsigned seeds = 1;

	if (argc >= 3) {
		if (argc > 3)
			CHECK(sim_trace_file(argv[3]) == 0, "%s: cannot be written", argv[3]);
		printf("finished %d",
		       run(strtoull(argv[1], NULL, 0), strtoull(argv[2], NULL, 0), 0, &hash));
		printf(" hash %016" PRIx64 "\n", hash);
		sim_trace_end();
		return 0;
	}
	if (argc == 2)
		seeds = (unsigned)strtoul(argv[1], NULL, 0);
	T.stride = 1;
	if (getenv("SEAM_STRIDE"))
		T.stride = strtoull(getenv("SEAM_STRIDE"), NULL, 0);
	reports = branch_start("seam_test");
	for (uint64_t seed = 1; seed <= seeds; seed++)
		try_seed(reports, seed);
	return 0;
}
