/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of what tables.c lists. */
#ifndef SIM_TABLES_H
#define SIM_TABLES_H

#include "run.h"

extern const struct sim_workload sim_work_segment, sim_work_interrupt, sim_work_dma,
	sim_work_device, sim_work_hostile, sim_work_manager, sim_work_nvme;
extern const struct sim_fault sim_fault_death, sim_fault_crash, sim_fault_link, sim_fault_cut,
	sim_fault_delay, sim_fault_clock, sim_fault_lack, sim_fault_port, sim_fault_memory,
	sim_fault_tables;
extern const struct sim_oracle sim_oracle_calls, sim_oracle_hardware, sim_oracle_exclusive;

/* work_manager.c: for workloads of drives. */
/* Any drive of the cluster. False: there is none. */
bool sim_draw_drive(char name[16], unsigned *ret_host, unsigned *ret_device);
bool sim_drives(unsigned host);
/* Ends a call that gives 0 or -errno, as sim_called(); @also: one that may be, too. */
int sim_nvme_called(int rc, int also);

#endif
