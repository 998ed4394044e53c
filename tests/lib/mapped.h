/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How tests reach mapped memory: segments, windows, BARs. On a live cluster these are plain
 * accesses; in the simulator they are what a processor does to PCIe, and a bare dereference ends
 * the run.
 */
#ifndef TESTS_LIB_MAPPED_H
#define TESTS_LIB_MAPPED_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "smartio/io.h"

#ifdef SIO_IO_HOOKS
#define MAPPED_READ8(at) ((uint8_t)sio_hook_read(at, 1))
#define MAPPED_WRITE8(at, value) sio_hook_write(at, value, 1)
#else
#define MAPPED_READ8(at) (*(const volatile uint8_t *)(at))
#define MAPPED_WRITE8(at, value) (*(volatile uint8_t *)(at) = (value))
#endif

static inline uint8_t get8(const volatile void *at)
{
	return MAPPED_READ8(at);
}

static inline void put8(volatile void *at, uint8_t value)
{
	MAPPED_WRITE8(at, value);
}

static inline uint32_t get32(const volatile void *at)
{
	return sio_read32(at);
}

static inline void put32(volatile void *at, uint32_t value)
{
	sio_write32(at, value);
}

/* As memcpy() with either end; the other may be mapped, too. */
static inline void put_bytes(volatile void *to, const void *from, size_t n)
{
	sio_copy_to(to, from, n);
}

static inline void get_bytes(void *to, const volatile void *from, size_t n)
{
	sio_copy_from(to, from, n);
}

/* As memset(). */
static inline void put_all(volatile void *at, uint8_t value, size_t n)
{
	uint8_t some[4096];

	memset(some, value, sizeof(some));
	for (size_t done = 0, now; done < n; done += now) {
		now = n - done < sizeof(some) ? n - done : sizeof(some);
		sio_copy_to((volatile uint8_t *)at + done, some, now);
	}
}

/* As memcmp() == 0; either may be mapped. */
static inline bool same_bytes(const volatile void *a, const volatile void *b, size_t n)
{
	uint8_t one[4096], other[4096];

	for (size_t done = 0, now; done < n; done += now) {
		now = n - done < sizeof(one) ? n - done : sizeof(one);
		sio_copy_from(one, (const volatile uint8_t *)a + done, now);
		sio_copy_from(other, (const volatile uint8_t *)b + done, now);
		if (memcmp(one, other, now))
			return false;
	}
	return true;
}

/* All bytes are @value. */
static inline bool all_bytes(const volatile void *at, uint8_t value, size_t n)
{
	uint8_t some[4096];

	for (size_t done = 0, now; done < n; done += now) {
		now = n - done < sizeof(some) ? n - done : sizeof(some);
		sio_copy_from(some, (const volatile uint8_t *)at + done, now);
		for (size_t i = 0; i < now; i++)
			if (some[i] != value)
				return false;
	}
	return true;
}

/* As strcpy(), and strcmp() == 0. */
static inline void put_text(volatile void *at, const char *text)
{
	sio_copy_to(at, text, strlen(text) + 1);
}

static inline bool is_text(const volatile void *at, const char *text)
{
	return same_bytes(at, text, strlen(text) + 1);
}

#endif
