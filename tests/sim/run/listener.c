/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/listener.h"
#include "run/run.h"

/* The listener of the @i-th workload, or, behind the last one, oracle; *ret_end: there is none. */
static const struct sim_listener *listener_at(unsigned i, bool *ret_end)
{
	static unsigned workloads;

	while (sim_workloads[workloads])
		workloads++;
	*ret_end = i >= workloads && !sim_oracles[i - workloads];
	if (*ret_end)
		return NULL;
	return i < workloads ? sim_workloads[i]->listener : sim_oracles[i - workloads]->listener;
}

/* Calls @what of each listener that has it. */
#define EACH(what, ...)                                                                            \
	do {                                                                                       \
		const struct sim_listener *l;                                                      \
		bool end;                                                                          \
                                                                                                   \
		for (unsigned i = 0; l = listener_at(i, &end), !end; i++)                          \
			if (l && l->what)                                                          \
				l->what(__VA_ARGS__);                                              \
	} while (0)

void sim_note_borrowed(uint32_t fdid, bool exclusive, uint64_t since)
{
	EACH(borrowed, fdid, exclusive, since);
}

void sim_note_shares(uint32_t fdid)
{
	EACH(shares, fdid);
}

void sim_note_returned(uint32_t fdid)
{
	EACH(returned, fdid);
}

void sim_note_settles(uint32_t fdid, uint64_t borrower, bool reset)
{
	EACH(settles, fdid, borrower, reset);
}

void sim_note_settled(uint32_t fdid, sci_error_t error)
{
	EACH(settled, fdid, error);
}

void sim_note_lender_reset(uint32_t fdid)
{
	EACH(lender_reset, fdid);
}

void sim_note_trial(uint32_t fdid, bool begins)
{
	EACH(trial, fdid, begins);
}

void sim_note_queue(uint32_t fdid, const struct smartio_nvme_queue *q, uint64_t resets)
{
	EACH(queue_given, fdid, q, resets);
}

void sim_note_restore(const struct sim_proc *p, struct sio_msg_restore *m)
{
	EACH(restores, p, m);
}

uint64_t sim_resets_noted(uint32_t fdid)
{
	uint64_t resets = 0;

	const struct sim_listener *l;
	bool end;

	for (unsigned i = 0; l = listener_at(i, &end), !end; i++)
		if (l && l->resets)
			resets += l->resets(fdid);
	return resets;
}

void sim_note_export_waited(struct sim_export *x, sci_error_t e)
{
	EACH(export_waited, x, e);
}

void sim_note_import_waited(struct sim_import *m, sci_error_t e)
{
	EACH(import_waited, m, e);
}
