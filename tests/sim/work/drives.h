/* SPDX-License-Identifier: BSD-2-Clause */
/* What workloads of drives have in common. */
#ifndef SIM_DRIVES_H
#define SIM_DRIVES_H

#include "run/run.h"

/* ---- work/manager.c ---- */
/* Ends a call that gives 0 or -errno, as sim_called(); @also: one that may be, too. */
int sim_nvme_called(int rc, int also);
/* Commands of drives may be lost, or be late. */
bool sim_drives_fail(void);
/* Nothing else goes wrong but what drives do, and programs that end. */
bool sim_drives_alone(void);

/* work/wild.c: where nothing is mapped for a drive of @lender: @kind 0 to 4. */
uint64_t sim_wild_address(const struct sio_topo_host *lender, uint64_t kind);

/* work/trial.c: what a new manager does with its drive first, with the fault "flood". */
struct smartio_nvme_manager;
void sim_manager_tries(struct smartio_nvme_manager *m);

/* work/asker.c: the client @n, which has the queue pair @q, asks its manager for something. */
struct smartio_nvme;
struct smartio_nvme_queue;
void sim_ask(struct smartio_nvme *n, const struct smartio_nvme_queue *q);

#endif
