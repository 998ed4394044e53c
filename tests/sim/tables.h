/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of what tables.c lists. */
#ifndef SIM_TABLES_H
#define SIM_TABLES_H

#include "run.h"

extern const struct sim_workload sim_work_segment;
extern const struct sim_workload sim_work_interrupt;
extern const struct sim_workload sim_work_dma;
extern const struct sim_workload sim_work_device;
extern const struct sim_workload sim_work_hostile;
extern const struct sim_workload sim_work_group;
extern const struct sim_workload sim_work_callback;
extern const struct sim_workload sim_work_manager;
extern const struct sim_workload sim_work_nvme;
extern const struct sim_fault sim_fault_death;
extern const struct sim_fault sim_fault_crash;
extern const struct sim_fault sim_fault_link;
extern const struct sim_fault sim_fault_cut;
extern const struct sim_fault sim_fault_delay;
extern const struct sim_fault sim_fault_clock;
extern const struct sim_fault sim_fault_lack;
extern const struct sim_fault sim_fault_port;
extern const struct sim_fault sim_fault_memory;
extern const struct sim_fault sim_fault_tables;
extern const struct sim_oracle sim_oracle_calls;
extern const struct sim_oracle sim_oracle_hardware;
extern const struct sim_oracle sim_oracle_exclusive;

/* work_manager.c: for workloads of drives. */
/* Any drive of the cluster. False: there is none. */
bool sim_draw_drive(char name[16], unsigned *ret_host, unsigned *ret_device);
bool sim_drives(unsigned host);
/* Ends a call that gives 0 or -errno, as sim_called(); @also: one that may be, too. */
int sim_nvme_called(int rc, int also);

#endif
