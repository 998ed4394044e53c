/* SPDX-License-Identifier: BSD-2-Clause */
/* What there is: a line for each workload, fault and oracle. */
#include "tables.h"

/* clang-format off */
const struct sim_workload *const sim_workloads[] = {
	&sim_work_segment,
	&sim_work_interrupt,
	&sim_work_dma,
	&sim_work_device,
	&sim_work_hostile,
	&sim_work_group,
	&sim_work_callback,
	&sim_work_manager,
	&sim_work_nvme,
	NULL,
};

const struct sim_fault *const sim_faults[] = {
	&sim_fault_death,
	&sim_fault_crash,
	&sim_fault_link,
	&sim_fault_cut,
	&sim_fault_delay,
	&sim_fault_clock,
	&sim_fault_lack,
	&sim_fault_port,
	&sim_fault_memory,
	&sim_fault_tables,
	NULL,
};

const struct sim_oracle *const sim_oracles[] = {
	&sim_oracle_calls,
	&sim_oracle_hardware,
	&sim_oracle_exclusive,
	NULL,
};
