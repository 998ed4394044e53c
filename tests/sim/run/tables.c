/* SPDX-License-Identifier: BSD-2-Clause */
/* The workloads, faults and oracles that the main program handed in. */
#include "run/run.h"

const struct sim_workload *const *sim_workloads;
const struct sim_fault *const *sim_faults;
const struct sim_oracle *const *sim_oracles;
