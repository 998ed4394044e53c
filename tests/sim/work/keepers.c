/* SPDX-License-Identifier: BSD-2-Clause */
/* The borrowers of the workload "keep" (work/keepers.h). */
#include <utlist.h>

#include "run/listener.h"
#include "run/run.h"
#include "smartio/ext.h"
#include "work/keepers.h"

struct keeper *sim_keepers;

bool sim_keeper_pulled(const struct keeper *k)
{
	uint64_t when = sim_drive_pulled(k->fdid);

	return when && when >= k->since;
}

const struct keeper *sim_keeper_find(uint32_t fdid, uint64_t borrower)
{
	const struct keeper *k;

	DL_FOREACH (sim_keepers, k)
		if (k->fdid == fdid && k->borrower == borrower)
			return k;
	return NULL;
}

bool sim_keeper_lives(const struct keeper *k)
{
	return k && sim_living(k->pid) && !k->leaves && !sim_keeper_pulled(k) &&
	       sim_peer_breaks(k->host, k->lender) == k->breaks &&
	       sim_paths_gone(k->host, k->lender) == k->gone;
}

static void settles(uint32_t fdid, uint64_t borrower, bool reset)
{
	struct keeper *k;

	(void)reset;
	DL_FOREACH (sim_keepers, k)
		if (k->fdid == fdid && !sim_living(k->pid) &&
		    (borrower == SMARTIO_ALL_BORROWERS || k->borrower == borrower))
			k->settled = k->settled ? k->settled : sim_self()->pid;
}

static void settled(uint32_t fdid, sci_error_t error)
{
	struct keeper *k;

	DL_FOREACH (sim_keepers, k)
		if (k->fdid == fdid && k->settled == sim_self()->pid)
			k->settled = error == SCI_ERR_ACCESS ? 0 : SETTLED;
}

static void lender_reset(uint32_t fdid)
{
	struct keeper *k;

	DL_FOREACH (sim_keepers, k)
		if (k->fdid == fdid && !sim_living(k->pid))
			k->settled = SETTLED;
}

void sim_keepers_notice_deaths(void)
{
	struct keeper *k;

	DL_FOREACH (sim_keepers, k)
		if (k->end == 0 && !sim_living(k->pid))
			k->end = sim_now();
}

struct keeper *sim_keeper_pick(uint32_t fdid)
{
	struct keeper *k, *found = NULL;
	unsigned n = 0;

	DL_FOREACH (sim_keepers, k)
		if (k->fdid == fdid && sim_pick(++n) == 0)
			found = k;
	return found;
}

const struct sim_listener sim_keepers_listener = {
	.settles = settles, .settled = settled, .lender_reset = lender_reset};
