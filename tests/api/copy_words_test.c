/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which loads and stores a copy is made of: the accessors of smartio/io.h are calls here
 * (SIO_IO_HOOKS), which write down what they are asked for. Each size at each place of a line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "sisci/copy/copy.h"

#define MOST 80u
#define PLACES 16u
#define EDGE 16u

static struct {
	unsigned touched[EDGE + PLACES + MOST + EDGE]; /* how often, of the segment's bytes */
	unsigned words, copies, barriers;
	size_t last_bytes;
} did;
static _Alignas(16) uint8_t segment[EDGE + PLACES + MOST + EDGE];

static void touch(const volatile void *addr, size_t width)
{
	size_t at = (size_t)((const volatile uint8_t *)addr - segment);

	assert_true(at + width <= sizeof(segment));
	for (size_t i = 0; i < width; i++)
		did.touched[at + i]++;
	did.last_bytes = width;
}

static void touch_word(const volatile void *addr, unsigned width)
{
	assert_true(width == 1 || width == 2 || width == 4 || width == 8);
	assert_int_equal((uintptr_t)addr % width, 0);
	touch(addr, width);
	did.words++;
}

uint32_t sio_hook_read(const volatile void *addr, unsigned width)
{
	uint32_t value = 0;

	touch_word(addr, width);
	memcpy(&value, (const void *)(uintptr_t)addr, width);
	return value;
}

uint64_t sio_hook_read64(const volatile void *addr)
{
	uint64_t value;

	touch_word(addr, 8);
	memcpy(&value, (const void *)(uintptr_t)addr, 8);
	return value;
}

void sio_hook_write(volatile void *addr, uint64_t value, unsigned width)
{
	touch_word(addr, width);
	memcpy((void *)(uintptr_t)addr, &value, width);
}

void sio_hook_copy_to(volatile void *dst, const void *src, size_t len)
{
	touch(dst, len);
	did.copies++;
	memcpy((void *)(uintptr_t)dst, src, len);
}

void sio_hook_copy_from(void *dst, const volatile void *src, size_t len)
{
	touch(src, len);
	did.copies++;
	memcpy(dst, (const void *)(uintptr_t)src, len);
}

void sio_hook_barrier(int which)
{
	(void)which;
	did.barriers++;
}

/* As few as alignment lets it be, whatever order they come in. */
static unsigned least_words(size_t at, size_t size)
{
	unsigned n = 0;

	for (size_t width; size > 0; size -= width, at += width, n++)
		for (width = 8; at % width || width > size;)
			width /= 2;
	return n;
}

static bool one_word(size_t at, size_t size)
{
	return (size == 1 || size == 2 || size == 4 || size == 8) && at % size == 0;
}

static void check_touched(size_t at, size_t size)
{
	for (size_t i = 0; i < sizeof(segment); i++)
		assert_int_equal(did.touched[i], i >= at && i - at < size);
	assert_int_equal(did.barriers, 0); /* the caller's */
}

static void check_way(size_t at, size_t size, bool words)
{
	check_touched(at, size);
	if (words || size <= 8) {
		assert_int_equal(did.copies, 0);
		assert_int_equal(did.words, least_words(at, size));
	} else {
		assert_int_equal(did.copies, 1);
		assert_int_equal(did.words, 0);
	}
	if (one_word(at, size)) {
		assert_int_equal(did.words, 1);
		assert_int_equal(did.last_bytes, size);
	}
}

static uint8_t drawn(size_t i)
{
	return (uint8_t)(i * 131u + 7u);
}

static void out(size_t at, size_t from, size_t size, bool words)
{
	uint8_t memory[PLACES + MOST];

	for (size_t i = 0; i < size; i++)
		memory[from + i] = drawn(i);
	memset(segment, 0xee, sizeof(segment));
	memset(&did, 0, sizeof(did));
	sio_copy_out(segment + at, memory + from, size, words);
	check_way(at, size, words);
	for (size_t i = 0; i < sizeof(segment); i++)
		assert_int_equal(segment[i], i >= at && i - at < size ? drawn(i - at) : 0xee);
}

static void in(size_t at, size_t to, size_t size, bool words)
{
	uint8_t memory[PLACES + MOST + 1];

	for (size_t i = 0; i < size; i++)
		segment[at + i] = drawn(i);
	memset(memory, 0xdd, sizeof(memory));
	memset(&did, 0, sizeof(did));
	sio_copy_in(memory + to, segment + at, size, words);
	check_way(at, size, words);
	for (size_t i = 0; i < sizeof(memory); i++)
		assert_int_equal(memory[i], i >= to && i - to < size ? drawn(i - to) : 0xdd);
}

static void test_each_way(void **state)
{
	(void)state;
	for (size_t size = 0; size <= MOST; size++)
		for (size_t place = 0; place < PLACES; place++)
			for (unsigned words = 0; words < 2; words++) {
				out(EDGE + place, (place * 5 + size) % PLACES, size, words);
				in(EDGE + place, (place * 5 + size) % PLACES, size, words);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_way)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
