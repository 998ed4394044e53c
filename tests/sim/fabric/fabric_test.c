/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of the simulator: whoever dereferences one, or uses one that means nothing, ends the
 * run and is named; memory goes when nobody has it any more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fabric/litmus.h"
#include "smartio/io.h"

static uint8_t *ram;
static struct fabric_mem *mem;

static int start(void **state)
{
	(void)state;
	fabric_access = &litmus_access;
	fabric_start(NULL, NULL, 1);
	mem = fabric_mem_new(1, "segment", 2 * FABRIC_PAGE, (void **)&ram);
	return 0;
}

static int end(void **state)
{
	(void)state;
	fabric_end();
	return 0;
}

/* What a child says at its end. Return: how waitpid() reports it. */
static int end_of(void (*fn)(void), char *text, size_t room)
{
	int pipes[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(pipes[1], STDERR_FILENO);
		fabric_guard();
		fn();
		_exit(0);
	}
	close(pipes[1]);
	while (len < room - 1 && (n = read(pipes[0], text + len, room - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(pipes[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void assert_ends(void (*fn)(void), const char *why, const char *where)
{
	char text[8192];
	int status = end_of(fn, text, sizeof(text));

	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_non_null(strstr(text, why));
	assert_non_null(strstr(text, where));
	assert_non_null(strstr(text, "fabric_test")); /* the place */
}

static void bare_load(void)
{
	volatile uint8_t *at = ram + 0x10;

	(void)*at;
}

static void bare_store(void)
{
	*(volatile uint32_t *)(ram + FABRIC_PAGE) = 1;
}

static void bare_dereference_is_named(void **state)
{
	(void)state;
	assert_ends(bare_load, "dereferenced", "memory 1 (segment) of host 1 + 0x10");
	assert_ends(bare_store, "dereferenced", "memory 1 (segment) of host 1 + 0x1000");
}

static void beyond(void)
{
	sio_read32(ram + 2 * FABRIC_PAGE);
}

static void unmapped(void)
{
	fabric_unmap(ram, FABRIC_PAGE);
	sio_write32(ram, 1);
}

static void read_only(void)
{
	fabric_map(ram, FABRIC_PAGE, mem, 0, false);
	sio_read32(ram);
	sio_write32(ram, 1);
}

static void accesses_need_a_mapping(void **state)
{
	(void)state;
	assert_ends(beyond, "a load", "where nothing is mapped");
	assert_ends(unmapped, "a store", "where nothing is mapped");
	assert_ends(read_only, "read-only", "memory 1 (segment)");
}

static void what_is_mapped_moves(void **state)
{
	uint8_t *a = fabric_reserve(NULL, 2 * FABRIC_PAGE), *b = fabric_reserve(NULL, FABRIC_PAGE);

	(void)state;
	sio_write32(ram, 7);
	sio_write32(ram + FABRIC_PAGE, 8);
	fabric_map(a, FABRIC_PAGE, mem, FABRIC_PAGE, true);
	fabric_map(a + FABRIC_PAGE, FABRIC_PAGE, mem, 0, true);
	assert_int_equal(sio_read32(a), 8);
	assert_int_equal(sio_read32(a + FABRIC_PAGE), 7);
	fabric_move(a + FABRIC_PAGE, b, FABRIC_PAGE);
	fabric_map_ones(a + FABRIC_PAGE, FABRIC_PAGE);
	assert_int_equal(sio_read32(b), 7);
	sio_write32(a + FABRIC_PAGE, 1);
	assert_int_equal(sio_read32(a + FABRIC_PAGE), 0xffffffff);
	assert_int_equal(sio_read32(ram), 7);
}

static void memory_outlives_the_room(void **state)
{
	uint8_t *a = fabric_reserve(NULL, FABRIC_PAGE);

	(void)state;
	fabric_map(a, FABRIC_PAGE, mem, 0, true);
	sio_write32(ram, 7);
	fabric_mem_close(ram);
	fabric_mem_unref(mem);
	assert_int_equal(sio_read32(a), 7);
	fabric_unmap(a, FABRIC_PAGE);
}

static void copies_have_either_end(void **state)
{
	uint8_t own[300], back[300];

	(void)state;
	for (unsigned i = 0; i < sizeof(own); i++)
		own[i] = (uint8_t)i;
	sio_copy_to(ram + 4000, own, sizeof(own));
	sio_copy_across(ram + 4100, ram + 4000, sizeof(own));
	sio_copy_from(back, ram + 4100, sizeof(back));
	assert_memory_equal(own, back, sizeof(own));
	sio_copy_across(back, own, sizeof(own));
	assert_memory_equal(own, back, sizeof(own));
}

/* Pages of this process that are resident. */
static size_t resident(void)
{
	size_t size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%zu %zu", &size, &pages), 2);
	fclose(f);
	return pages;
}

/* Gigabytes of a device that is pulled out: all ones, and only what is written to takes room. */
static void large_memory_is_ones_at_no_cost(void **state)
{
	const uint64_t size = 4ull << 30, last = size - FABRIC_LINE;
	const size_t before = resident();
	struct fabric_mem *m;
	uint8_t *at;

	(void)state;
	m = fabric_mem_new(1, "bar memory", size, (void **)&at);
	sio_write64(at + last, 0x1122334455667788);
	assert_int_equal(sio_read64(at + last), 0x1122334455667788);
	fabric_mem_ones(m);
	for (uint64_t i = 0; i < size; i += size / 64)
		assert_int_equal(sio_read64(at + i), UINT64_MAX);
	assert_int_equal(sio_read64(at + last), UINT64_MAX);
	sio_write32(at + last + 4, 7);
	assert_int_equal(sio_read64(at + last), 7ull << 32 | UINT32_MAX);
	sio_write64(at, 0);
	assert_int_equal(sio_read64(at), 0);
	assert_int_equal(sio_read64(at + 8), UINT64_MAX);
	fabric_mem_zero(m);
	assert_int_equal(sio_read64(at + last), 0);
	assert_int_equal(sio_read64(at + 8), 0);
	/* Less than a hundredth of it; most of that are the tables of addresses. */
	assert_true(resident() - before < size / FABRIC_PAGE / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bare_dereference_is_named, start, end),
		cmocka_unit_test_setup_teardown(accesses_need_a_mapping, start, end),
		cmocka_unit_test_setup_teardown(what_is_mapped_moves, start, end),
		cmocka_unit_test_setup_teardown(memory_outlives_the_room, start, end),
		cmocka_unit_test_setup_teardown(copies_have_either_end, start, end),
		cmocka_unit_test_setup_teardown(large_memory_is_ones_at_no_cost, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
