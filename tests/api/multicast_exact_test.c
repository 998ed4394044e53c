/* SPDX-License-Identifier: BSD-2-Clause */
/* Exact multicast groups: each member has memory of its own, which DMA and copy calls write to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/cluster.h"
#include "../lib/mapped.h"
#include "../lib/program.h"
#include "member.h"

#define GROUP 5u
#define BYTES (3u << 20)
#define MEMBERS 2u /* besides the sender's own */
#define OWN 0u	   /* a word of each member's own */
#define BY_DMA 4096u
#define BY_MEMCPY 8195u
#define BY_MEMWRITE 12289u
#define BY_BLOCK 16384u
#define AFTER_LOSS 20480u
#define LARGE (1u << 20)
#define LARGE_BYTES ((1u << 20) + 5000u)
#define BY_THREADS (2560u << 10)
#define THREADS 3u
#define COPIES 40u

/* Steps. */
enum { JOINED, WRITTEN, SEEN, CUT_OFF, IS_DOWN, MISSED, MEND, IS_UP, ALL_DONE };

static int up(void **state)
{
	*state = cluster_up(
		"cluster: exact\n"
		"switches: [sw0]\n"
		"multicast: exact\n"
		"hosts:\n"
		"  one: {ram: 64M, iommu: on, devices: {nvme0: {type: nvme, size: 4M}}}\n"
		"  two: {ram: 64M}\n"
		"  three: {ram: 64M, iommu: on}\n");
	return *state ? 0 : -1;
}

static int down(void **state)
{
	return *state ? cluster_down(*state) : 0;
}

static int audit(void **state)
{
	return cluster_audit(*state);
}

static void join(struct member *m, sci_desc_t sd)
{
	member_join(m, sd, GROUP, BYTES, 0);
}

static sci_remote_segment_t reach_all(sci_desc_t sd)
{
	sci_remote_segment_t all = NULL;

	CHECK_OK(group_reach(sd, GROUP, &all));
	return all;
}

static uint8_t pattern(unsigned i)
{
	return (uint8_t)(i * 7 + i / 251);
}

static void check_pattern(const struct member *m, unsigned at, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		CHECK(get8(m->memory + at + i) == pattern(i));
}

static void check_text(const struct member *m, unsigned at, const char *text)
{
	CHECK(same_bytes(m->memory + at, text, strlen(text)));
}

static void check_all(const struct member *m, uint8_t own)
{
	CHECK(get8(m->memory + OWN) == own);
	check_pattern(m, BY_DMA, 1000);
	check_text(m, BY_MEMCPY, "copied");
	check_text(m, BY_MEMWRITE, "written");
	check_pattern(m, BY_BLOCK, 512);
	check_pattern(m, LARGE, LARGE_BYTES);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(get8(m->memory + BY_THREADS + i) == COPIES);
}

static int is_member(void *arg)
{
	uint8_t own = (uint8_t)(uintptr_t)arg;
	sci_desc_t sd = api_begin();
	struct member m;

	join(&m, sd);
	put8(m.memory + OWN, own);
	step_done(JOINED);
	step_await(WRITTEN);
	check_all(&m, own);
	step_done(SEEN);
	step_await(MISSED);
	/* Host two is cut off. */
	if (own == 8)
		CHECK(get8(m.memory + AFTER_LOSS) == 0);
	else
		check_text(&m, AFTER_LOSS, "first");
	step_done(SEEN);
	step_await(ALL_DONE);
	check_text(&m, AFTER_LOSS, "again");
	check_all(&m, own);
	member_leave(&m);
	api_end(sd);
	return 0;
}

struct copier {
	sci_map_t map;
	unsigned index;
};

static void *copy_often(void *arg)
{
	const struct copier *c = arg;
	sci_error_t error;

	for (uint8_t i = 1; i <= COPIES; i++) {
		SCIMemCpy(NULL, &i, c->map, BY_THREADS + c->index, 1, SCI_FLAG_ERROR_CHECK, &error);
		CHECK_OK(error);
	}
	return NULL;
}

static void copy_at_once(sci_map_t map)
{
	struct copier c[THREADS];
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		c[i] = (struct copier){map, i};
		CHECK(pthread_create(&thread[i], NULL, copy_often, &c[i]) == 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static void by_dma(sci_desc_t sd, sci_local_segment_t source, sci_remote_segment_t all)
{
	sci_dma_queue_t queue = NULL;
	sci_error_t error;

	SCICreateDMAQueue(sd, &queue, 0, 1, 0, &error);
	CHECK_OK(error);
	SCIStartDmaTransfer(queue, source, all, 0, 1000, BY_DMA, NULL, NULL,
			    SCI_FLAG_BROADCAST | SCI_FLAG_DMA_WAIT, &error);
	CHECK_OK(error);
	SCIStartDmaTransfer(queue, source, all, 0, 1000, BY_DMA, NULL, NULL,
			    SCI_FLAG_DMA_READ | SCI_FLAG_DMA_WAIT, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCIRemoveDMAQueue(queue, 0, &error);
	CHECK_OK(error);
}

static void by_copies(sci_map_t local, sci_map_t map, volatile uint8_t *pointer)
{
	uint8_t *large = malloc(LARGE_BYTES);
	sci_error_t error;
	uint8_t back = 0;

	CHECK(large != NULL);
	SCIMemCpy(NULL, (char[]){"copied"}, map, BY_MEMCPY, 6, 0, &error);
	CHECK_OK(error);
	SCIMemWrite((char[]){"written"}, pointer + BY_MEMWRITE, 7, 0, &error);
	CHECK_OK(error);
	SCITransferBlock(local, 0, map, BY_BLOCK, 512, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < LARGE_BYTES; i++)
		large[i] = pattern(i);
	SCIMemCpy(NULL, large, map, LARGE, LARGE_BYTES, SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	free(large);
	SCIMemCpy(NULL, &back, map, BYTES, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	/* Nothing can be read through the group. */
	SCIMemCpy(NULL, &back, map, BY_MEMCPY, 1, SCI_FLAG_BLOCK_READ, &error);
	CHECK_OK(error);
	CHECK(back == 0xff && get8(pointer + BY_MEMCPY) == 0xff);
}

static void with_a_link_down(sci_map_t map, sci_sequence_t seq)
{
	sci_error_t error;

	step_done(CUT_OFF);
	step_await(IS_DOWN);
	CHECK(SCICheckSequence(seq, 0, &error) == SCI_SEQ_OK);
	SCIMemCpy(seq, (char[]){"first"}, map, AFTER_LOSS, 5, SCI_FLAG_ERROR_CHECK, &error);
	CHECK_IS(error, SCI_ERR_TRANSFER_FAILED);
	CHECK(SCICheckSequence(seq, 0, &error) == SCI_SEQ_RETRIABLE);
	/* Whoever asks the sequence alone hears of it there. */
	CHECK(SCIStartSequence(seq, 0, &error) == SCI_SEQ_OK);
	SCIMemCpy(seq, (char[]){"first"}, map, AFTER_LOSS, 5, 0, &error);
	CHECK_OK(error);
	CHECK(SCICheckSequence(seq, 0, &error) == SCI_SEQ_RETRIABLE);
	for (unsigned i = 0; i < MEMBERS; i++)
		step_done(MISSED);
	for (unsigned i = 0; i < MEMBERS; i++)
		step_await(SEEN);
	step_done(MEND);
	step_await(IS_UP);
	CHECK(SCIStartSequence(seq, 0, &error) == SCI_SEQ_OK);
	SCIMemCpy(seq, (char[]){"again"}, map, AFTER_LOSS, 5, SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	CHECK(SCICheckSequence(seq, 0, &error) == SCI_SEQ_OK);
}

static int sends(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t all = NULL;
	sci_local_segment_t source = NULL;
	sci_sequence_t seq = NULL;
	volatile uint8_t *pointer;
	sci_map_t map, local;
	struct member m;
	sci_error_t error;
	uint8_t *bytes;

	(void)arg;
	join(&m, sd);
	put8(m.memory + OWN, 12);
	for (unsigned i = 0; i < MEMBERS; i++)
		step_await(JOINED);
	all = reach_all(sd);
	CHECK(SCIGetRemoteSegmentSize(all) == BYTES);
	SCICreateSegment(sd, &source, 1, 4096, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(source, 0, 0, &error);
	CHECK_OK(error);
	bytes = SCIMapLocalSegment(source, &local, 0, 4096, NULL, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < 4096; i++)
		put8(bytes + i, pattern(i));
	CHECK(SCIMapRemoteSegment(all, &map, 0, BYTES, NULL, SCI_FLAG_BROADCAST, &error) == NULL);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	pointer = SCIMapRemoteSegment(all, &map, 0, BYTES, NULL,
				      SCI_FLAG_BROADCAST | SCI_FLAG_READONLY_MAP, &error);
	CHECK_OK(error);
	SCICreateMapSequence(map, &seq, 0, &error);
	CHECK_OK(error);
	by_dma(sd, source, all);
	by_copies(local, map, pointer);
	copy_at_once(map);
	check_all(&m, 12);
	for (unsigned i = 0; i < MEMBERS; i++)
		step_done(WRITTEN);
	for (unsigned i = 0; i < MEMBERS; i++)
		step_await(SEEN);
	with_a_link_down(map, seq);
	for (unsigned i = 0; i < MEMBERS; i++)
		step_done(ALL_DONE);
	member_leave(&m);
	SCIRemoveSequence(seq, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(local, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(source, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void each_member_has_its_own(void **state)
{
	pid_t sender, one, two;

	cluster_needs(NEEDS_GROUPS);
	steps_reset();
	one = cluster_fork(*state, 4, is_member, (void *)4);
	two = cluster_fork(*state, 8, is_member, (void *)8);
	sender = cluster_fork(*state, 12, sends, NULL);
	step_await(CUT_OFF);
	assert_int_equal(cluster_link(*state, 8, 0, false), 0);
	step_done(IS_DOWN);
	step_await(MEND);
	assert_int_equal(cluster_link(*state, 8, 0, true), 0);
	step_done(IS_UP);
	assert_int_equal(cluster_wait(sender), 0);
	assert_int_equal(cluster_wait(one), 0);
	assert_int_equal(cluster_wait(two), 0);
}

/* Ends with everything open, a copy's queue among it. */
static int exits(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t all = NULL;
	struct member m;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	join(&m, sd);
	all = reach_all(sd);
	SCIMapRemoteSegment(all, &map, 4096, 4096, NULL, SCI_FLAG_READONLY_MAP, &error);
	CHECK_OK(error);
	SCIMemCpy(NULL, (char[]){"last"}, map, 7, 4, SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	check_text(&m, 4096 + 7, "last");
	return 0;
}

static void nothing_is_left_of_one_that_exits(void **state)
{
	cluster_needs(NEEDS_GROUPS);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, exits, NULL)), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, exits, NULL)), 0);
}

/* ---- one member alone ---- */

static int allows_unicast(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t other = NULL;
	struct member m;
	sci_error_t error;

	(void)arg;
	member_join(&m, sd, GROUP, BYTES, SCI_FLAG_ALLOW_UNICAST);
	SCICreateSegment(sd, &other, GROUP, 4096, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENTID_USED);
	step_done(JOINED);
	step_await(WRITTEN);
	check_text(&m, BY_DMA, "alone");
	check_text(&m, BY_MEMCPY, "all");
	/* A connection to it alone is as one to any segment. */
	SCIUnmapSegment(m.map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(m.seg, 0, &error);
	CHECK_OK(error);
	step_done(SEEN);
	step_await(ALL_DONE);
	api_end(sd);
	return 0;
}

static int writes_to_one(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t one = NULL, all;
	volatile char *pointer;
	sci_map_t map, all_map;
	struct member m;
	sci_error_t status, error;

	(void)arg;
	join(&m, sd);
	step_await(JOINED);
	SCIConnectSegment(sd, &one, 12, GROUP, 0, NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_SEGMENT); /* ours, which does not allow it */
	SCIConnectSegment(sd, &one, 8, GROUP, 0, NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_OK(error);
	pointer = SCIMapRemoteSegment(one, &map, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
	put_bytes(pointer + BY_DMA, "alone", 5);
	SCIFlush(NULL, 0);
	all = reach_all(sd);
	SCIMapRemoteSegment(all, &all_map, 0, BYTES, NULL, SCI_FLAG_READONLY_MAP, &error);
	CHECK_OK(error);
	SCIMemCpy(NULL, (char[]){"all"}, all_map, BY_MEMCPY, 3, SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	CHECK(get8(m.memory + BY_DMA) == 0);
	check_text(&m, BY_MEMCPY, "all");
	CHECK(same_bytes(pointer + BY_MEMCPY, "all", 3));
	step_done(WRITTEN);
	step_await(SEEN);
	/* Cut off from the one, which has left the group. */
	SCIMemCpy(NULL, (char[]){"two"}, all_map, BY_MEMCPY, 3, SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	check_text(&m, BY_MEMCPY, "two");
	while (SCIWaitForRemoteSegmentEvent(one, &status, SCI_INFINITE_TIMEOUT, 0, &error) ==
	       SCI_CB_CONNECT)
		;
	SCIMemCpy(NULL, (char[]){"gone"}, map, 0, 4, 0, &error);
	CHECK(error != SCI_ERR_OK);
	SCIUnmapSegment(map, 0, &error);
	SCIUnmapSegment(all_map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(one, 0, &error);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_OK(error);
	member_leave(&m);
	step_done(ALL_DONE);
	api_end(sd);
	return 0;
}

static void one_member_can_be_reached_alone(void **state)
{
	pid_t member, writer;

	cluster_needs(NEEDS_GROUPS);
	steps_reset();
	member = cluster_fork(*state, 8, allows_unicast, NULL);
	writer = cluster_fork(*state, 12, writes_to_one, NULL);
	assert_int_equal(cluster_wait(writer), 0);
	assert_int_equal(cluster_wait(member), 0);
}

/* ---- for a device ---- */

static int maps_for_a_device(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = NULL;
	sci_remote_segment_t all;
	sci_ioaddr_t first = 0, second = 0;
	unsigned fdid = 0;
	struct member m;
	sci_error_t error;

	(void)arg;
	smartio_find_device("nvme0", &fdid, &error);
	CHECK_OK(error);
	join(&m, sd);
	all = reach_all(sd);
	SCIBorrowDevice(sd, &device, fdid, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegmentForDevice(all, device, &first, 0, BYTES, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegmentForDevice(all, device, &second, 4096, 8192, 0, &error);
	CHECK_OK(error);
	CHECK(first != 0 && second != 0 && first != second);
	SCIMapRemoteSegmentForDevice(all, device, &second, BYTES, 4096, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIUnmapRemoteSegmentForDevice(all, device, 0, &error);
	CHECK_OK(error);
	if (arg) { /* dies with one */
		SCIMapRemoteSegmentForDevice(all, device, &first, 0, BYTES, 0, &error);
		CHECK_OK(error);
		_exit(0);
	}
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_OK(error);
	member_leave(&m);
	api_end(sd);
	return 0;
}

static void a_group_is_mapped_for_a_device(void **state)
{
	cluster_needs(NEEDS_GROUPS);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, maps_for_a_device, NULL)), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, 12, maps_for_a_device, NULL)), 0);
	/* What one that dies leaves is in quarantine until the device is reset. */
	assert_int_equal(cluster_wait(cluster_fork(*state, 12, maps_for_a_device, *state)), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, program_settle, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(each_member_has_its_own, audit),
		cmocka_unit_test_teardown(nothing_is_left_of_one_that_exits, audit),
		cmocka_unit_test_teardown(one_member_can_be_reached_alone, audit),
		cmocka_unit_test_teardown(a_group_is_mapped_for_a_device, audit),
	};

	return cmocka_run_group_tests(tests, up, down);
}
