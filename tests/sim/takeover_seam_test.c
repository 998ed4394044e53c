/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seam's test of managers: one is killed in its step n while clients read, write, make and
 * delete queue pairs, and a standby on the other host goes on; for every n that the manager has
 * while they run. No call of a client may fail, no byte be wrong, the drive stays well, and in the
 * end all queue pairs can be had. Every fourth time the standby is killed as well, some steps after
 * it began to serve, and a second one goes on.
 *
 *   takeover_seam_test                every n, or one in SEAM_STRIDE, an odd number below 100
 *   takeover_seam_test SEED N [TRACE] one run; N = 0: nobody dies
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
#define ROUNDS 5
#define MANAGERS 3

static struct {
	struct sim_proc *manager[MANAGERS];
	bool stands[MANAGERS]; /* by, or serves */
	bool serves[MANAGERS];
	uint64_t served_at[MANAGERS]; /* its step when it began to */
	struct smartio_nvme_manager_status status[MANAGERS];
	uint64_t stride; /* a death in one step of so many */
	uint64_t second; /* so many steps after that the second manager is killed; 0: not */
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

/* ---- programs ---- */
static void note(unsigned me, const struct smartio_nvme_manager *m)
{
	smartio_nvme_manager_get_status(m, &T.status[me]);
	T.stands[me] = true;
	if (!T.status[me].serves || T.serves[me])
		return;
	T.serves[me] = true;
	T.served_at[me] = T.manager[me]->steps;
	if (me == 1 && T.second)
		T.manager[me]->kill_at = T.served_at[me] + T.second;
}

static void manager_main(struct sim_proc *p)
{
	struct smartio_nvme_manager_options o = {.size = sizeof(o), .flags = SMARTIO_NVME_STANDBY};
	const unsigned me = *(unsigned *)p->arg;
	struct smartio_nvme_manager *m;
	sci_error_t err;
	int rc;

	SCIInitialize(0, &err);
	CHECK(err == SCI_ERR_OK, "%s", smartio_last_error());
	rc = smartio_nvme_manager_open("nvme0", &o, &m);
	CHECK(rc == 0, "%d %s", rc, smartio_nvme_error());
	for (;;) {
		note(me, m);
		rc = smartio_nvme_manager_serve(m, UINT32_MAX);
		CHECK(rc >= 0, "manager %u: %d %s", me, rc, smartio_nvme_error());
	}
}

static void round_of(struct smartio_nvme_queue *q, const char *who, uint64_t base, unsigned round)
{
	uint8_t out[BLOCKS * 512], in[BLOCKS * 512];
	int rc;

	for (unsigned i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(base / 512 + round * 31 + i);
	rc = smartio_nvme_write(q, out, base, sizeof(out));
	CHECK(rc == 0, "%s: write: %d %s", who, rc, smartio_nvme_error());
	memset(in, 0, sizeof(in));
	rc = smartio_nvme_read(q, in, base, sizeof(in));
	CHECK(rc == 0, "%s: read: %d %s", who, rc, smartio_nvme_error());
	CHECK(memcmp(in, out, sizeof(in)) == 0, "%s: wrong byte", who);
}

static struct smartio_nvme *begin(struct sim_proc *p)
{
	struct smartio_nvme *n = NULL;
	sci_error_t err;
	int rc;

	SCIInitialize(0, &err);
	CHECK(err == SCI_ERR_OK, "%s: %s", p->name, smartio_last_error());
	rc = smartio_nvme_open("nvme0", &n);
	CHECK(rc == 0, "%s: open: %d %s", p->name, rc, smartio_nvme_error());
	return n;
}

/* One queue pair after the other, beside one that stays. */
static void client_main(struct sim_proc *p)
{
	struct smartio_nvme_queue_options o = {.size = sizeof(o), .depth = 4};
	struct smartio_nvme *n = begin(p);
	struct smartio_nvme_queue *q, *more;
	uint64_t base = *(uint64_t *)p->arg;
	int rc = smartio_nvme_queue_open(n, &o, &q);

	CHECK(rc == 0, "%s: queue: %d %s", p->name, rc, smartio_nvme_error());
	for (unsigned round = 0; round < ROUNDS; round++) {
		rc = smartio_nvme_queue_open(n, &o, &more);
		CHECK(rc == 0, "%s: one more: %d %s", p->name, rc, smartio_nvme_error());
		round_of(more, p->name, base, round);
		round_of(q, p->name, base + (1u << 19), round);
		smartio_nvme_queue_close(more);
	}
	smartio_nvme_close(n);
	SCITerminate();
	p->result = 0;
}

/* One of three at once: so all pairs are there. */
static void late_main(struct sim_proc *p)
{
	struct smartio_nvme *n = begin(p);
	struct smartio_nvme_queue *q;
	int rc = smartio_nvme_queue_open(n, NULL, &q);

	CHECK(rc == 0, "%s: queue: %d %s", p->name, rc, smartio_nvme_error());
	round_of(q, p->name, *(uint64_t *)p->arg, 0);
	smartio_nvme_close(n);
	SCITerminate();
	p->result = 0;
}

/* ---- runs ---- */
static bool never(void *arg)
{
	(void)arg;
	return false;
}

static bool stands(void *arg)
{
	return T.stands[*(unsigned *)arg];
}

static bool all_dead(void *arg)
{
	for (struct sim_proc **p = arg; *p; p++)
		if (!(*p)->dead)
			return false;
	return true;
}

static void wait_for_all(const char *when, struct sim_proc **clients)
{
	if (!sim_run(all_dead, clients, 60 * SIM_SECOND))
		for (; *clients; clients++)
			CHECK((*clients)->dead, "%s: %s still runs after %" PRIu64 " steps", when,
			      (*clients)->name, (*clients)->steps);
	for (; *clients; clients++)
		CHECK((*clients)->finished, "%s: %s died", when, (*clients)->name);
}

static void second_too(uint64_t kill_at)
{
	T.second = kill_at && kill_at % 4 == 0 ? kill_at % 601 + 1 : 0;
}

/*
 * Kills the first manager in its @kill_at-th step while clients run. @stride: a death branches off
 * in one step of so many; 0: none. Return: it lives.
 */
static bool run(uint64_t seed, uint64_t kill_at, uint64_t stride, uint64_t *ret_hash)
{
	static uint64_t base = 0, base_late[3] = {1u << 21, 3u << 20, 3u << 19};
	static unsigned number[MANAGERS] = {0, 1, 2};
	struct sim_proc *client[2] = {NULL}, *late[4] = {NULL};

	second_too(kill_at);
	sim_start(seed);
	sim_cluster_start(topology);
	/* Before the daemons are ready nobody can connect. */
	sim_run(never, NULL, SIM_SECOND / 10);
	for (unsigned i = 0; i < MANAGERS; i++) {
		T.manager[i] = sim_proc_new("manager", !(i % 2), manager_main, &number[i]);
		CHECK(sim_run(stands, &number[i], 10 * SIM_SECOND), "manager %u does not come up",
		      i);
	}
	CHECK(T.serves[0] && !T.serves[1] && !T.serves[2], "the first one does not serve");
	if (kill_at)
		T.manager[0]->kill_at = T.manager[0]->steps + kill_at;
	if (stride)
		branch_at(T.manager[0], stride, second_too);
	client[0] = sim_proc_new("client", 0, client_main, &base);
	wait_for_all("after the death", client);
	for (unsigned i = 0; i < 3; i++)
		late[i] = sim_proc_new("late", i % 2, late_main, &base_late[i]);
	wait_for_all("after the late clients", late);
	CHECK(sim_cluster->fatal == 0, "the drive went to fatal status");
	CHECK(sim_cluster->faults == 0, "%" PRIu64 " faults of the drive", sim_cluster->faults);
	for (unsigned i = 1; i < MANAGERS; i++)
		CHECK(T.status[i].kept == T.status[i].takeovers, "manager %u reset the drive", i);
	*ret_hash = sim_trace_hash();
	return !T.manager[0]->dead;
}

static void run_once(uint64_t seed, uint64_t kill_at)
{
	uint64_t hash;

	CHECK(run(seed, kill_at, 0, &hash) == (kill_at == 0), "the manager's end");
	branch_report(hash);
}

static void run_with_branches(uint64_t seed, uint64_t kill_at)
{
	uint64_t hash;

	run(seed, kill_at, T.stride, &hash);
	branch_report(hash);
}

int main(int argc, char **argv)
{
	struct branch_reports *reports;
	uint64_t hash, again;

	if (argc >= 3) {
		if (argc > 3)
			CHECK(sim_trace_file(argv[3]) == 0, "%s: cannot be written", argv[3]);
		printf("alive %d",
		       run(strtoull(argv[1], NULL, 0), strtoull(argv[2], NULL, 0), 0, &hash));
		printf(" hash %016" PRIx64 "\n", hash);
		sim_trace_end();
		return 0;
	}
	T.stride = getenv("SEAM_STRIDE") ? strtoull(getenv("SEAM_STRIDE"), NULL, 0) : 1;
	reports = branch_start("takeover_seam_test");
	branch_child(run_once, 1, 0);
	hash = reports->trunk;
	branch_child(run_with_branches, 1, 0);
	CHECK(hash == reports->trunk, "two traces");
	CHECK(reports->last > 100, "the manager did only %" PRIu64 " steps", reports->last);
	/* A branch is the run that dies there from its start; the standby, too. */
	for (again = reports->last / 2 / T.stride * T.stride + 1;
	     again % 4 && again < reports->last; again += T.stride)
		;
	CHECK(again % 4 == 0 && again <= reports->last, "no branch in which two die");
	branch_child(run_once, 1, again);
	CHECK(reports->trunk == reports->hash[again], "two traces with a death in step %" PRIu64,
	      again);
	for (uint64_t n = 1; n <= reports->last; n += T.stride)
		CHECK(reports->hash[n] && reports->hash[n] != hash, "no death in step %" PRIu64, n);
	printf("killed in %" PRIu64 " of its %" PRIu64 " steps\n", reports->deaths, reports->last);
	return 0;
}
