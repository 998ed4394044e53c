/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps at an address of the program's choice, and maps that only read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/mapped.h"
#include "topology.h"

#define PAGE 4096u
#define BYTES (4 * PAGE)
#define ROOM (1u << 30)
#define ABOVE_ITS_END (1u << 20)

/* A segment with both kinds of maps of it by this process. */
struct both {
	sci_desc_t sd;
	sci_local_segment_t local;
	sci_remote_segment_t remote;
	sci_map_t whole;
	uint8_t *memory; /* all of it, to be written */
};

static void both_make(struct both *b)
{
	sci_error_t error;

	*b = (struct both){.sd = api_begin()};
	SCICreateSegment(b->sd, &b->local, 31, BYTES, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(b->local, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(b->local, 0, 0, &error);
	CHECK_OK(error);
	b->memory = SCIMapLocalSegment(b->local, &b->whole, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
	SCIConnectSegment(b->sd, &b->remote, cluster_node(4), 31, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
}

static void both_end(struct both *b)
{
	sci_error_t error;

	SCIDisconnectSegment(b->remote, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(b->whole, 0, &error);
	CHECK_OK(error);
	api_remove_segment(b->local);
	api_end(b->sd);
}

static volatile uint8_t *map_one(struct both *b, bool remote, size_t offset, void *addr,
				 unsigned flags, sci_map_t *map, sci_error_t *error)
{
	return remote ? SCIMapRemoteSegment(b->remote, map, offset, PAGE, addr, flags, error)
		      : SCIMapLocalSegment(b->local, map, offset, PAGE, addr, flags, error);
}

/* ---- at an address ---- */

/*
 * Address space that is free, and stays so: the kernel gives the highest first, and the first
 * allocation of a thread, the library's one too, takes 128 MiB.
 */
static uint8_t *free_address(void)
{
	uint8_t *p = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	CHECK(munmap(p, ROOM) == 0);
	return p + ABOVE_ITS_END;
}

static void maps_there(struct both *b, bool remote)
{
	uint8_t *at = free_address();
	sci_map_t map = NULL, second = NULL;
	volatile uint8_t *p;
	sci_error_t error;

	p = map_one(b, remote, PAGE, at, SCI_FLAG_FIXED_MAP_ADDR, &map, &error);
	CHECK_OK(error);
	CHECK(p == at && SCIGetMapPointer(map) == at);
	put8(p + 7, 0x5a);
	CHECK(get8(b->memory + PAGE + 7) == 0x5a);
	/* What is there stays there. */
	p = map_one(b, remote, 0, at, SCI_FLAG_FIXED_MAP_ADDR, &second, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_ADDRESS);
	CHECK(p == NULL && second == NULL);
	CHECK(get8(at + 7) == 0x5a);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	/* Then it is free again; within a page, address and offset agree. */
	p = map_one(b, remote, 100, at + 99, SCI_FLAG_FIXED_MAP_ADDR, &map, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_ADDRESS);
	p = map_one(b, remote, 2 * PAGE + 100, at + 100, SCI_FLAG_FIXED_MAP_ADDR, &map, &error);
	CHECK_OK(error);
	CHECK(p == at + 100);
	put8(p, 0xa5);
	CHECK(get8(b->memory + 2 * PAGE + 100) == 0xa5);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	/* Without the flag the address is nothing. */
	p = map_one(b, remote, 0, b->memory, 0, &map, &error);
	CHECK_OK(error);
	CHECK(p != NULL && p != b->memory);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
}

static int chooses_addresses(void *arg)
{
	struct both b;

	(void)arg;
	both_make(&b);
	maps_there(&b, true);
	maps_there(&b, false);
	both_end(&b);
	return 0;
}

static void a_program_chooses_the_address(void **state)
{
	cluster_needs_kernel(NEEDS_PAGES);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, chooses_addresses, NULL)), 0);
}

/* ---- only to be read ---- */

/* The kernel stores there for us, and says whether it may. */
static bool can_be_written(volatile uint8_t *at)
{
	int ends[2];
	ssize_t n;

	CHECK(pipe(ends) == 0);
	CHECK(write(ends[1], "x", 1) == 1);
	n = read(ends[0], (void *)(uintptr_t)at, 1);
	CHECK(n == 1 || errno == EFAULT);
	close(ends[0]);
	close(ends[1]);
	return n == 1;
}

static void reads_only(struct both *b, bool remote, bool pages)
{
	sci_map_t map = NULL;
	volatile uint8_t *p;
	sci_error_t error;

	p = map_one(b, remote, PAGE, NULL, SCI_FLAG_READONLY_MAP, &map, &error);
	CHECK_OK(error);
	put8(b->memory + PAGE + 3, 0x33);
	CHECK(get8(p + 3) == 0x33);
	put8(b->memory + PAGE + 3, 0x44);
	CHECK(get8(p + 3) == 0x44);
	CHECK(!pages || !can_be_written(p + 3));
	CHECK(get8(p + 3) == 0x44);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	p = map_one(b, remote, PAGE, NULL, 0, &map, &error);
	CHECK_OK(error);
	CHECK(!pages || can_be_written(p + 3));
	CHECK(get8(b->memory + PAGE + 3) == (pages ? 'x' : 0x44));
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
}

static int only_reads(void *arg)
{
	sci_map_t map = NULL;
	struct both b;
	sci_error_t error;

	both_make(&b);
	/* It is no group. */
	CHECK(SCIMapRemoteSegment(b.remote, &map, 0, PAGE, NULL, SCI_FLAG_BROADCAST, &error) ==
	      NULL);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	CHECK(map == NULL);
	reads_only(&b, true, arg);
	reads_only(&b, false, arg);
	both_end(&b);
	return 0;
}

static void a_map_shows_what_others_write(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, only_reads, NULL)), 0);
}

static void a_map_to_be_read_is_not_written(void **state)
{
	cluster_needs_kernel(NEEDS_PAGES);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, only_reads, state)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(a_program_chooses_the_address),
		API_TEST(a_map_shows_what_others_write),
		API_TEST(a_map_to_be_read_is_not_written),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
