/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of drives: completions that are lost, late, doubled, in the wrong phase, or of a command
 * that was not sent, in queues of clients and of the manager; fatal status; surprise removal, and
 * the return of the drive.
 */
#include "fabric/fabric.h"
#include "run/run.h"
#include "edge/trouble.h"

static void want(uint64_t *rng)
{
	(void)rng;
	trouble_wanted = true;
}

/* Any device of the cluster, with all its functions, and its host; NULL: there is none. */
static const struct sio_topo_device *draw_drive(struct sim_fault_event *e, unsigned *ret_host)
{
	const struct sio_topology *t = sim_cluster->topology;
	uint64_t drawn = sim_draw(&e->rng);
	unsigned n = 0, wanted;

	for (unsigned h = 0; h < t->n_hosts; h++)
		n += t->host[h].n_devices;
	if (n == 0)
		return NULL;
	wanted = (unsigned)(drawn % n);
	for (const struct sio_topo_host *h = t->host;; h++) {
		if (wanted < h->n_devices) {
			*ret_host = (unsigned)(h - t->host);
			if (h->device[wanted].physical)
				wanted = h->device[wanted].physical - 1;
			return &h->device[wanted];
		}
		wanted -= h->n_devices;
	}
}

/* Acts on one of the next 50 completions, of whichever drives are in use then. */
static void plan(struct sim_fault_event *e, enum trouble_kind kind, uint64_t ns)
{
	uint64_t in = sim_draw(&e->rng), gap = sim_draw(&e->rng);

	trouble_plan(kind, 1 + (unsigned)(in % 50), ns, gap & 1);
}

static void lost_begin(struct sim_fault_event *e)
{
	plan(e, TROUBLE_LOST, 0);
}

/* By the time of a few commands, or by more than anybody waits. */
static void late_begin(struct sim_fault_event *e)
{
	static const uint64_t how[] = {20000, SIM_MS, 50 * SIM_MS, 2 * SIM_SECOND, 35 * SIM_SECOND};

	plan(e, TROUBLE_LATE, how[sim_draw(&e->rng) % 5]);
}

/* The second time at once, or when another command may have the number. */
static void doubled_begin(struct sim_fault_event *e)
{
	static const uint64_t how[] = {0, 2000, 20000, SIM_MS, 50 * SIM_MS};

	plan(e, TROUBLE_DOUBLED, how[sim_draw(&e->rng) % 5]);
}

static void phase_begin(struct sim_fault_event *e)
{
	plan(e, TROUBLE_PHASE, 0);
}

static void stray_begin(struct sim_fault_event *e)
{
	plan(e, TROUBLE_STRAY, 0);
}

static void fatal_begin(struct sim_fault_event *e)
{
	plan(e, TROUBLE_FETCH, 0);
}

/* ---- removal: at any time, whatever the drive is doing ---- */
#define NOTHING UINT32_MAX /* there is no drive, or another event has pulled it out already */

static void removal_begin(struct sim_fault_event *e)
{
	const struct sio_topo_device *d = draw_drive(e, &e->a);

	e->b = NOTHING;
	if (!d)
		return;
	e->b = (unsigned)(d - sim_cluster->topology->host[e->a].device);
	if (sim_drive_move(e->a, e->b, false))
		sim_did.removal++;
	else
		e->b = NOTHING;
}

/* Sometimes so soon that nobody has been notified of the removal yet. */
static void removal_end(struct sim_fault_event *e)
{
	if (e->b != NOTHING)
		sim_drive_move(e->a, e->b, true);
}

const struct sim_fault sim_fault_removal = {.name = "removal",
					    .did = &sim_did.removal,
					    .most = 30,
					    .longest = SIM_SECOND,
					    .begin = removal_begin,
					    .end = removal_end};
const struct sim_fault sim_fault_lost = {.name = "lost",
					 .did = &trouble_count[TROUBLE_LOST],
					 .most = 6,
					 .prepare = want,
					 .begin = lost_begin,
					 .heal = trouble_heal};
const struct sim_fault sim_fault_late = {.name = "late",
					 .did = &trouble_count[TROUBLE_LATE],
					 .most = 12,
					 .prepare = want,
					 .begin = late_begin,
					 .heal = trouble_heal};
const struct sim_fault sim_fault_doubled = {.name = "doubled",
					    .did = &trouble_count[TROUBLE_DOUBLED],
					    .most = 6,
					    .prepare = want,
					    .begin = doubled_begin,
					    .heal = trouble_heal};
const struct sim_fault sim_fault_phase = {.name = "phase",
					  .did = &trouble_count[TROUBLE_PHASE],
					  .most = 6,
					  .prepare = want,
					  .begin = phase_begin,
					  .heal = trouble_heal};
const struct sim_fault sim_fault_stray = {.name = "stray",
					  .did = &trouble_count[TROUBLE_STRAY],
					  .most = 12,
					  .prepare = want,
					  .begin = stray_begin,
					  .heal = trouble_heal};
const struct sim_fault sim_fault_fatal = {.name = "fatal",
					  .did = &trouble_count[TROUBLE_FETCH],
					  .most = 6,
					  .prepare = want,
					  .begin = fatal_begin,
					  .heal = trouble_heal};
