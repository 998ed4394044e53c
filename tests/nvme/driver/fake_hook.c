/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's accesses to what the fabric carries: plain, but a manager may die at a store, and
 * others may run behind one.
 */
#include <string.h>

#include "fake.h"
#include "smartio/io.h"

uint32_t sio_hook_read(const volatile void *addr, unsigned width)
{
	if (fake.looked)
		fake.looked(addr);
	if (width == 4)
		return *(const volatile uint32_t *)addr;
	if (width == 2)
		return *(const volatile uint16_t *)addr;
	return *(const volatile uint8_t *)addr;
}

uint64_t sio_hook_read64(const volatile void *addr)
{
	return *(const volatile uint64_t *)addr;
}

void sio_hook_write(volatile void *addr, uint64_t value, unsigned width)
{
	fake_manager_step();
	if (fake_is_cut())
		return;
	if (width == 8)
		*(volatile uint64_t *)addr = value;
	else if (width == 4)
		*(volatile uint32_t *)addr = (uint32_t)value;
	else if (width == 2)
		*(volatile uint16_t *)addr = (uint16_t)value;
	else
		*(volatile uint8_t *)addr = (uint8_t)value;
	if (fake.stored)
		fake.stored(addr);
}

/* Word by word: it dies in the middle of it, too. */
void sio_hook_copy_to(volatile void *dst, const void *src, size_t len)
{
	for (size_t i = 0; i < len; i += 16) {
		fake_manager_step();
		if (fake_is_cut())
			return;
		memcpy((char *)(uintptr_t)dst + i, (const char *)src + i,
		       len - i < 16 ? len - i : 16);
	}
}

void sio_hook_copy_from(void *dst, const volatile void *src, size_t len)
{
	memcpy(dst, (const void *)(uintptr_t)src, len);
}

void sio_hook_copy_across(volatile void *dst, const volatile void *src, size_t len)
{
	memcpy((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, len);
}

void sio_hook_barrier(int which)
{
	(void)which;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

uint32_t sio_hook_compare_exchange32(volatile void *addr, uint32_t expected, uint32_t desired)
{
	__atomic_compare_exchange_n((volatile uint32_t *)addr, &expected, desired, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return expected;
}
