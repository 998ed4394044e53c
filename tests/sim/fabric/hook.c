/* SPDX-License-Identifier: BSD-2-Clause */
/* The accessors of smartio/io.h, as the simulator's builds of rooms have them. */
#undef NDEBUG /* what the simulator asserts is part of the test */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fabric.h"
#include "smartio/io.h"

void (*fabric_on_ring)(const struct fabric_view *v);
const struct fabric_access *fabric_access;

static void load(struct fabric_core *c, const volatile void *at, void *buf, size_t len)
{
	struct fabric_view v = fabric_look(at, len, false);

	if (c)
		fabric_core_load(c, &v, buf, len);
	else
		fabric_act_load(&v, buf, len);
}

static void store(struct fabric_core *c, volatile void *at, const void *buf, size_t len,
		  bool streaming)
{
	struct fabric_view v = fabric_look(at, len, true);

	if (c)
		fabric_core_store(c, &v, buf, len, streaming);
	else
		fabric_act_store(&v, buf, len);
}

/* How much of @len bytes at @at is done at once: programs go by lines, devices by packets. */
static size_t piece(const struct fabric_core *c, const volatile void *at, size_t len)
{
	size_t most = c ? FABRIC_LINE : FABRIC_PIECE, room = most - (uintptr_t)at % most;

	return len < room ? len : room;
}

/*
 * memcpy() reads and writes as wide and as often as it likes, which is no way to treat registers.
 */
static void not_registers(const volatile void *at, bool write)
{
	struct fabric_view v = fabric_look(at, 1, write);

	assert(!v.mem || v.mem->kind != FABRIC_REGISTER);
}

/* Memory of a process alone is its own: a copy may have it at either end. */
static void get(const volatile void *at, void *buf, size_t len)
{
	struct fabric_core *c;

	if (!fabric_is_ours(at)) {
		memcpy(buf, (const void *)(uintptr_t)at, len);
		return;
	}
	c = fabric_access->core();
	if (c && len)
		not_registers(at, false);
	for (size_t done = 0, n; done < len; done += n) {
		n = piece(c, (const volatile uint8_t *)at + done, len - done);
		load(c, (const volatile uint8_t *)at + done, (uint8_t *)buf + done, n);
	}
}

static void set(volatile void *at, const void *buf, size_t len)
{
	struct fabric_core *c;

	if (!fabric_is_ours(at)) {
		memcpy((void *)(uintptr_t)at, buf, len);
		return;
	}
	c = fabric_access->core();
	if (c && len)
		not_registers(at, true);
	for (size_t done = 0, n; done < len; done += n) {
		n = piece(c, (volatile uint8_t *)at + done, len - done);
		store(c, (volatile uint8_t *)at + done, (const uint8_t *)buf + done, n, true);
	}
}

static uint64_t read_word(const volatile void *addr, unsigned width)
{
	uint64_t value = 0;

	assert((uintptr_t)addr % width == 0);
	if (fabric_is_ours(addr))
		load(fabric_access->core(), addr, &value, width);
	else
		memcpy(&value, (const void *)(uintptr_t)addr, width);
	return value;
}

uint32_t sio_hook_read(const volatile void *addr, unsigned width)
{
	return (uint32_t)read_word(addr, width);
}

uint64_t sio_hook_read64(const volatile void *addr)
{
	return read_word(addr, 8);
}

/* A store to a register or a doorbell by a program. */
static void ring(const volatile void *addr)
{
	struct fabric_view v = fabric_look(addr, 1, true);

	if (!fabric_access->core() || !v.mem || v.mem->kind != FABRIC_REGISTER)
		return;
	fabric_access->ring();
	v = fabric_look(addr, 1, true); /* while it was stopped it may have become another */
	if (fabric_on_ring && v.mem)
		fabric_on_ring(&v);
}

void sio_hook_write(volatile void *addr, uint64_t value, unsigned width)
{
	assert((uintptr_t)addr % width == 0);
	if (fabric_is_ours(addr)) {
		ring(addr);
		store(fabric_access->core(), addr, &value, width, false);
	} else {
		memcpy((void *)(uintptr_t)addr, &value, width);
	}
}

/* A locked instruction, of a program: nobody runs between its load and its store. */
uint32_t sio_hook_compare_exchange32(volatile void *addr, uint32_t expected, uint32_t desired)
{
	struct fabric_core *c;
	struct fabric_view v;
	uint32_t is;

	if (!fabric_is_ours(addr)) {
		__atomic_compare_exchange_n((volatile uint32_t *)addr, &expected, desired, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
		return expected;
	}
	c = fabric_access->core();
	v = fabric_look(addr, sizeof(is), true);
	assert(c && v.mem && (uintptr_t)addr % sizeof(is) == 0);
	fabric_core_exchange(c, &v, expected, desired, &is);
	return is;
}

void sio_hook_copy_across(volatile void *dst, const volatile void *src, size_t len)
{
	uint8_t *buf;

	if (len == 0)
		return;
	buf = malloc(len);
	assert(buf);
	get(src, buf, len);
	if (!fabric_access->core())
		fabric_act_copied(len);
	set(dst, buf, len);
	free(buf);
}

void sio_hook_copy_to(volatile void *dst, const void *src, size_t len)
{
	if (fabric_is_ours(src))
		sio_hook_copy_across(dst, src, len);
	else
		set(dst, src, len);
}

void sio_hook_copy_from(void *dst, const volatile void *src, size_t len)
{
	if (fabric_is_ours(dst))
		sio_hook_copy_across(dst, src, len);
	else
		get(src, dst, len);
}

void sio_hook_barrier(int which)
{
	struct fabric_core *c = fabric_access->core();

	if (c)
		fabric_core_barrier(c, which);
	else
		fabric_act_barrier(which);
}
