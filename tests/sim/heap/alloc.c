/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The linker redirects allocations of the simulated code (library, driver, daemons, machine room)
 * to here (--wrap), so that one of them can be made to fail. Allocations of the simulator itself
 * are not redirected.
 *
 * Bytes with a pattern follow each block, so that a read beyond its end does not find zeros by
 * luck. Sanitizers have checks of their own.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "heap/alloc.h"

#ifdef __has_feature
#define SANITIZED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
#define BEHIND (SANITIZED ? 0u : 64u)
#define MEANINGLESS 0x5a

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

static void *mark(void *at, size_t size)
{
	if (at)
		memset((char *)at + size, MEANINGLESS, BEHIND);
	return at;
}

void *__wrap_malloc(size_t size)
{
	return fails() || size > SIZE_MAX - BEHIND ? NULL
						   : mark(__real_malloc(size + BEHIND), size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	if (fails() || (size && n > (SIZE_MAX - BEHIND) / size))
		return NULL;
	size *= n;
	return mark(__real_calloc(1, size + BEHIND), size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() || size > SIZE_MAX - BEHIND ? NULL
						   : mark(__real_realloc(old, size + BEHIND), size);
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
