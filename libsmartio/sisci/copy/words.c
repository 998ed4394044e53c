/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies whose loads or stores are counted: those of registers, and the shortest ones. */
#include <string.h>

#include "sisci/copy/copy.h"
#include "smartio/io.h"

/* The widest power of two that is aligned at @at and not above @size. */
static size_t word_at(const volatile void *at, size_t size)
{
	size_t n = SIO_COPY_WORD;

	while (n > size || (uintptr_t)at % n)
		n /= 2;
	return n;
}

static void store(volatile void *to, const void *from, size_t n)
{
	union {
		uint8_t one;
		uint16_t two;
		uint32_t four;
		uint64_t eight;
	} word;

	memcpy(&word, from, n);
	if (n == 8)
		sio_write64(to, word.eight);
	else if (n == 4)
		sio_write32(to, word.four);
	else if (n == 2)
		sio_write16(to, word.two);
	else
		sio_write8(to, word.one);
}

static void load(void *to, const volatile void *from, size_t n)
{
	union {
		uint8_t one;
		uint16_t two;
		uint32_t four;
		uint64_t eight;
	} word;

	if (n == 8)
		word.eight = sio_read64(from);
	else if (n == 4)
		word.four = sio_read32(from);
	else if (n == 2)
		word.two = sio_read16(from);
	else
		word.one = sio_read8(from);
	memcpy(to, &word, n);
}

void sio_copy_words_out(volatile void *to, const void *from, size_t size)
{
	volatile uint8_t *at = to;
	const uint8_t *rest = from;

	for (size_t n; size > 0; size -= n, at += n, rest += n) {
		n = word_at(at, size);
		store(at, rest, n);
	}
}

void sio_copy_words_in(void *to, const volatile void *from, size_t size)
{
	const volatile uint8_t *at = from;
	uint8_t *rest = to;

	for (size_t n; size > 0; size -= n, at += n, rest += n) {
		n = word_at(at, size);
		load(rest, at, n);
	}
}
