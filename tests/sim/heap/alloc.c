/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocations of what is simulated (library, driver, daemons, room) come here: the linker wraps
 * them (--wrap), and one of them can be made to fail. Those of the simulator itself do not.
 *
 * Behind each lie bytes that mean something, so that who reads there does not find what happens to
 * look like nothing. Sanitizers have their own.
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
