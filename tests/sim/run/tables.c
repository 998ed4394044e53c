/* SPDX-License-Identifier: BSD-2-Clause */
/* What there is, by the lists of meson.build. */
#include "run/tables.h"

#define X(name) &sim_work_##name,
const struct sim_workload *const sim_workloads[] = {SIM_WORKLOADS NULL};
#undef X

#define X(name) &sim_fault_##name,
const struct sim_fault *const sim_faults[] = {SIM_FAULTS NULL};
#undef X

#define X(name) &sim_oracle_##name,
const struct sim_oracle *const sim_oracles[] = {SIM_ORACLES NULL};
#undef X
