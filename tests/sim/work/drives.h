/* SPDX-License-Identifier: BSD-2-Clause */
/* What workloads of drives have in common. */
#ifndef SIM_DRIVES_H
#define SIM_DRIVES_H

#include "run/run.h"

/* ---- work/manager.c ---- */
/* Ends a call that returns 0 or -errno, as sim_called(); @also: another error that is allowed. */
int sim_nvme_called(int rc, int also);
/* May commands of drives be lost, or be late? */
bool sim_drives_fail(void);
/* Are drives' faults, and programs that end, the only faults? */
bool sim_drives_alone(void);

/* work/wild.c: an address at which nothing is mapped for a drive of @lender: @kind 0 to 4. */
uint64_t sim_wild_address(const struct sio_topo_host *lender, uint64_t kind);

/* work/trial.c: the first thing that a new manager does with its drive, with the fault "flood". */
struct smartio_nvme_manager;
void sim_manager_tries(struct smartio_nvme_manager *m);

/* work/pull.c: a cable is out, or about to be. */
extern bool sim_pulling;
/* Pulls a cable of this program's host, for a while. */
void sim_pull(unsigned adapter);

/* work/asker.c: the client @n, which has the queue pair @q, sends a request to its manager. */
struct smartio_nvme;
struct smartio_nvme_queue;
void sim_ask(struct smartio_nvme *n, const struct smartio_nvme_queue *q);

#endif
