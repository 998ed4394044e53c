/* SPDX-License-Identifier: BSD-2-Clause */
/* What workloads of drives have in common. */
#ifndef SIM_DRIVES_H
#define SIM_DRIVES_H

#include "run/run.h"

/* ---- work/manager.c ---- */
/* As sim_called(), for a call that returned 0 or -errno; @also: a further error that is allowed. */
int sim_nvme_called(int rc, int also);
/* May completions of drives be lost, be late, or be taken for old ones? */
bool sim_drives_fail(void);
/* May what a drive sends be lost without notice, because a cable is out? */
bool sim_drives_lossy(void);
/* Is @rc an error by which a queue that survives may end, because it got no other pair? */
bool sim_survivor_may_end(int rc);
/* Are faults of drives, and the deaths of programs, the only faults of this seed? */
bool sim_drives_alone(void);

/*
 * work/wild.c: an address at which nothing is mapped for a drive of @lender. @kind: 0 to 2: in the
 * RAM, a window or a BAR of the lender; 3: in the RAM of any host; 4: the first or last page of
 * all.
 */
uint64_t sim_wild_address(const struct sio_topo_host *lender, uint64_t kind);

/* work/trial.c: what a new manager does with its drive first, in seeds that have "flood". */
struct smartio_nvme_manager;
void sim_manager_tries(struct smartio_nvme_manager *m);

/* work/pull.c: is a cable out, or about to be pulled out? */
extern bool sim_pulling;
/* Pulls a cable of this program's host, for a while. */
void sim_pull(unsigned adapter);

/* work/asker.c: the client @n, which has the queue pair @q, sends a request to its manager. */
struct smartio_nvme;
struct smartio_nvme_queue;
void sim_ask(struct smartio_nvme *n, const struct smartio_nvme_queue *q);

#endif
