/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order in which a DMA engine stores what programs look at without asking: the accessors of
 * smartio/io.h are calls here (SIO_IO_HOOKS), which do what they are for, and look.
 */
#include <string.h>

#include "channel.h"
#include "smartio/io.h"

static struct {
	struct sio_dma_ring *ring; /* NULL: nobody looks */
	unsigned barriers, stores; /* so far */
	unsigned result_before;	   /* as many barriers when the last result was stored */
	bool copied;		   /* since the last barrier */
} seen;

uint32_t sio_hook_read(const volatile void *addr, unsigned width)
{
	return width == 4   ? *(const volatile uint32_t *)addr
	       : width == 2 ? *(const volatile uint16_t *)addr
			    : *(const volatile uint8_t *)addr;
}

uint64_t sio_hook_read64(const volatile void *addr)
{
	return *(const volatile uint64_t *)addr;
}

/* A transfer is over when its result is there, and its bytes. */
static void look(const volatile void *addr, uint64_t value)
{
	uint32_t over = (uint32_t)value - 1;

	if (addr == &seen.ring->result[seen.ring->done % SIO_DMA_RESULTS])
		seen.result_before = seen.barriers;
	if (addr != &seen.ring->done)
		return;
	seen.stores++;
	assert_int_equal(over, seen.ring->done);
	assert_int_equal(seen.ring->result[over % SIO_DMA_RESULTS], over % 3 ? 0 : -EINVAL);
	assert_true(seen.barriers > seen.result_before);
	assert_false(seen.copied);
}

void sio_hook_write(volatile void *addr, uint64_t value, unsigned width)
{
	if (seen.ring)
		look(addr, value);
	if (width == 8)
		*(volatile uint64_t *)addr = value;
	else
		*(volatile uint32_t *)addr = (uint32_t)value;
}

void sio_hook_copy_to(volatile void *dst, const void *src, size_t len)
{
	memcpy((void *)(uintptr_t)dst, src, len);
	seen.copied = true;
}

void sio_hook_copy_from(void *dst, const volatile void *src, size_t len)
{
	memcpy(dst, (const void *)(uintptr_t)src, len);
}

void sio_hook_copy_across(volatile void *dst, const volatile void *src, size_t len)
{
	memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, len);
	seen.copied = true;
}

void sio_hook_barrier(int which)
{
	if (which == 2) /* sio_from_fabric_barrier() */
		return;
	seen.barriers++;
	seen.copied = false;
}

/* Good ones and bad ones, often enough for results to lie where others lay. */
static void a_transfer_is_over_when_its_result_is_there(void **state)
{
	const unsigned n = 3 * SIO_DMA_RESULTS + 1;
	struct dma d;

	(void)state;
	dma_init(&d, 0);
	seen.ring = d.ring;
	for (unsigned i = 0; i < n; i++)
		put(&d, d.local, i % 3 ? 0 : SIZE, d.remote, 0, 64, true);
	work(&d);
	assert_int_equal(seen.stores, n);
	seen.ring = NULL;
	fake_free(d.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_transfer_is_over_when_its_result_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
