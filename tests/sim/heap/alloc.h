/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocations that fail. */
#ifndef SIM_ALLOC_H
#define SIM_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* malloc(), calloc() and realloc() of the simulator's own sources: they never fail. */
void *sim_real_malloc(size_t size);
void *sim_real_calloc(size_t n, size_t size);
void *sim_real_realloc(void *old, size_t size);

/* The number of allocations of simulated code from now on until one fails; 0: none does. */
extern uint64_t sim_alloc_fail_in;
/* Called when one fails; NULL. */
extern void (*sim_alloc_failed)(void);

#endif
