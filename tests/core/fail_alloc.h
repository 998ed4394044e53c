/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lets the n-th allocation fail. Link with
 * -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray.
 */
#ifndef TESTS_CORE_FAIL_ALLOC_H
#define TESTS_CORE_FAIL_ALLOC_H

/* Allocation number @n from now on (from 1) fails, and each after it; 0: none does. */
void fail_alloc_at(unsigned n);
/* How many failed since. */
unsigned fail_alloc_count(void);

#endif
