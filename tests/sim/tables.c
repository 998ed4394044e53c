/* SPDX-License-Identifier: BSD-2-Clause */
/* What there is: a line for each workload, fault and oracle. */
#include "tables.h"

/* clang-format off */
const struct sim_workload *const sim_workloads[] = {
	&sim_work_segment,
	&sim_work_share,
	&sim_work_interrupt,
	&sim_work_dma,
	&sim_work_device,
	&sim_work_hostile,
	&sim_work_group,
	&sim_work_callback,
	&sim_work_manager,
	&sim_work_nvme,
	&sim_work_exact,
	&sim_work_gather,
	&sim_work_block,
	&sim_work_kinds,
	&sim_work_wild,
	&sim_work_keep,
	&sim_work_usurper,
	&sim_work_raw,
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
	&sim_fault_restart,
	&sim_fault_lost,
	&sim_fault_late,
	&sim_fault_doubled,
	&sim_fault_phase,
	&sim_fault_fatal,
	&sim_fault_removal,
	&sim_fault_forge,
	&sim_fault_liar,
	&sim_fault_stranger,
	NULL,
};

const struct sim_oracle *const sim_oracles[] = {
	&sim_oracle_calls,
	&sim_oracle_hardware,
	&sim_oracle_books,
	&sim_oracle_exclusive,
	&sim_oracle_dma,
	&sim_oracle_reach,
	&sim_oracle_tables,
	NULL,
};
