/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocations of what is simulated (library, driver, daemons, room) come here: the linker wraps
 * them (--wrap), and one of them can be made to fail. Those of the simulator itself do not.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc.h"

uint64_t sim_alloc_fail_in;
void (*sim_alloc_failed)(void);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);

static bool fails(void)
{
	if (!sim_alloc_fail_in || --sim_alloc_fail_in > 0)
		return false;
	if (sim_alloc_failed)
		sim_alloc_failed();
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

void *sim_real_malloc(size_t size)
{
	return __real_malloc(size);
}

void *sim_real_calloc(size_t n, size_t size)
{
	return __real_calloc(n, size);
}

void *sim_real_realloc(void *old, size_t size)
{
	return __real_realloc(old, size);
}
