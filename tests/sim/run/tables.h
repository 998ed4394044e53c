/* SPDX-License-Identifier: BSD-2-Clause */
/* The workloads, faults and oracles that meson.build lists. */
#ifndef SIM_TABLES_H
#define SIM_TABLES_H

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

#endif
