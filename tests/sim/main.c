/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulator: passes the tables of meson.build to the code that runs a seed. */
#include "run/run.h"
#include "sim_tables.h" /* X(name) for each of SIM_WORKLOADS, SIM_FAULTS, SIM_ORACLES */

#define X(name) extern const struct sim_workload sim_work_##name;
SIM_WORKLOADS
#undef X
#define X(name) extern const struct sim_fault sim_fault_##name;
SIM_FAULTS
#undef X
#define X(name) extern const struct sim_oracle sim_oracle_##name;
SIM_ORACLES
#undef X

#define X(name) &sim_work_##name,
static const struct sim_workload *const workloads[] = {SIM_WORKLOADS NULL};
#undef X
#define X(name) &sim_fault_##name,
static const struct sim_fault *const faults[] = {SIM_FAULTS NULL};
#undef X
#define X(name) &sim_oracle_##name,
static const struct sim_oracle *const oracles[] = {SIM_ORACLES NULL};
#undef X

int main(int argc, char **argv)
{
	sim_workloads = workloads;
	sim_faults = faults;
	sim_oracles = oracles;
	return sim_main(argc, argv);
}
