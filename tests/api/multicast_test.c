/* SPDX-License-Identifier: BSD-2-Clause */
/* Reflective memory: groups with members on several hosts, and who writes to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/mapped.h"
#include "member.h"
#include "topology.h"

#define GROUP 2u
#define BYTES 16384u
#define MEMBERS 3u
#define DONE 10 /* steps */

/* Each of three writes its word to all and waits for the others'. The order of ending is theirs. */
static int reflects(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	sci_desc_t sd = api_begin();
	sci_remote_segment_t all = NULL;
	volatile uint32_t *write;
	struct member m;
	sci_error_t error;
	sci_map_t map;

	member_join(&m, sd, GROUP, BYTES, 0);
	CHECK_OK(group_reach(sd, GROUP, &all));
	CHECK(SCIGetRemoteSegmentSize(all) == BYTES);
	CHECK(SCIGetRemoteSegmentId(all) == GROUP);
	CHECK(SCIGetRemoteSegmentNodeId(all) == DIS_BROADCAST_NODEID_GROUP_ALL);
	write = SCIMapRemoteSegment(all, &map, 0, BYTES, NULL, me ? SCI_FLAG_BROADCAST : 0, &error);
	CHECK_OK(error);
	for (uint32_t round = 1; round <= 50; round++) {
		put32(write + 16 * me, round);
		SCIFlush(NULL, 0);
		for (unsigned i = 0; i < MEMBERS; i++)
			while (get32(m.memory + 64 * i) < round)
				sched_yield();
	}
	/* The member goes while everybody, this process too, is connected to the group. */
	member_leave(&m);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void each_sees_what_each_wrote(void **state)
{
	pid_t pid[MEMBERS];

	cluster_needs(NEEDS_GROUPS);
	for (unsigned i = 0; i < MEMBERS; i++)
		pid[i] = cluster_fork(*state, 4 * (i + 1), reflects, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < MEMBERS; i++)
		assert_int_equal(cluster_wait(pid[i]), 0);
}

static int is_member(void *arg)
{
	sci_desc_t sd = api_begin();
	struct member m;

	(void)arg;
	member_join(&m, sd, GROUP, BYTES, 0);
	step_done(0);
	step_await(1);
	for (unsigned i = 0; i < 64; i++)
		CHECK(get32(m.memory + 4096 + 4 * i) == i * 3);
	CHECK(same_bytes(m.memory + 8192, "copied", 7));
	member_leave(&m);
	api_end(sd);
	return 0;
}

/* No member itself: by DMA and by copy calls, and reading what is there. */
static int sends(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t all = NULL;
	sci_local_segment_t source = NULL;
	sci_dma_queue_t queue = NULL;
	sci_map_t map, local;
	uint32_t *words;
	char back[7];
	sci_error_t error;

	(void)arg;
	CHECK_IS(group_reach(sd, GROUP, &all), SCI_ERR_NO_SUCH_SEGMENT);
	step_done(2);
	step_await(0); /* both members are in */
	step_await(0);
	CHECK_OK(group_reach(sd, GROUP, &all));
	SCICreateSegment(sd, &source, 1, 4096, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(source, 0, SCI_FLAG_DMA_SOURCE_ONLY, &error);
	CHECK_OK(error);
	words = SCIMapLocalSegment(source, &local, 0, 4096, NULL, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < 64; i++)
		put32(words + i, i * 3);
	SCICreateDMAQueue(sd, &queue, 0, 1, 0, &error);
	CHECK_OK(error);
	SCIStartDmaTransfer(queue, source, all, 0, 128, 4096, NULL, NULL,
			    SCI_FLAG_BROADCAST | SCI_FLAG_DMA_WAIT, &error);
	CHECK_OK(error);
	SCIStartDmaTransferVec(
		queue, source, all, 2,
		(dis_dma_vec_t[]){{64, 128, 4096 + 128, 0}, {64, 192, 4096 + 192, 0}}, NULL, NULL,
		SCI_FLAG_BROADCAST | SCI_FLAG_DMA_WAIT, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(all, &map, 8192, 4096, NULL, SCI_FLAG_BROADCAST, &error);
	CHECK_OK(error);
	SCIMemCpy(NULL, (char[]){"copied"}, map, 0, 7, 0, &error);
	CHECK_OK(error);
	SCIMemCpy(NULL, back, map, 0, 7, SCI_FLAG_BLOCK_READ, &error);
	CHECK_OK(error);
	CHECK(memcmp(back, "copied", 7) == 0);
	step_done(1); /* of each member */
	step_done(1);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIRemoveDMAQueue(queue, 0, &error);
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

static void who_is_no_member_may_write(void **state)
{
	pid_t sender, one, two;

	cluster_needs(NEEDS_GROUPS);
	steps_reset();
	sender = cluster_fork(*state, 12, sends, NULL);
	step_await(2);
	one = cluster_fork(*state, 4, is_member, NULL);
	two = cluster_fork(*state, 8, is_member, NULL);
	assert_int_equal(cluster_wait(sender), 0);
	assert_int_equal(cluster_wait(one), 0);
	assert_int_equal(cluster_wait(two), 0);
}

static int makes_mistakes(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t all = NULL;
	sci_local_segment_t seg = NULL;
	struct member m;
	sci_error_t error;

	(void)arg;
	SCICreateSegment(sd, &seg, 8, 4096, NULL, NULL, SCI_FLAG_BROADCAST, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCICreateSegment(sd, &seg, 1, 4096, NULL, NULL, SCI_FLAG_BROADCAST | SCI_FLAG_AUTO_ID,
			 &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCICreateSegment(sd, &seg, 1, 4096, NULL, NULL, SCI_FLAG_ALLOW_UNICAST, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	CHECK(seg == NULL);
	member_join(&m, sd, 1, 4096, 0);
	SCICreateSegment(sd, &seg, 1, 4096, NULL, NULL, SCI_FLAG_BROADCAST, &error);
	CHECK_IS(error, SCI_ERR_SEGMENTID_USED);
	/* Groups and segments are numbered apart. */
	SCICreateSegment(sd, &seg, 1, 4096, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	SCIConnectSegment(sd, &all, 4, 1, 0, NULL, NULL, 0, SCI_FLAG_BROADCAST, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_NODEID);
	SCIConnectSegment(sd, &all, DIS_BROADCAST_NODEID_GROUP_ALL, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_NODEID);
	SCIConnectSegment(sd, &all, 4, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_SEGMENT);
	SCISetSegmentUnavailable(m.seg, 0, 0, &error);
	CHECK_OK(error);
	CHECK_IS(group_reach(sd, 1, &all), SCI_ERR_NO_SUCH_SEGMENT);
	SCISetSegmentAvailable(m.seg, 0, 0, &error);
	CHECK_OK(error);
	CHECK_OK(group_reach(sd, 1, &all));
	CHECK_IS(group_reach(sd, 9, &all), SCI_ERR_ILLEGAL_PARAMETER);
	SCIRemoveSegment(m.seg, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY); /* mapped */
	member_leave(&m);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void mistakes_get_their_errors(void **state)
{
	cluster_needs(NEEDS_GROUPS);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, makes_mistakes, NULL)), 0);
}

static int stays(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t all = NULL;
	struct member m;

	(void)arg;
	member_join(&m, sd, GROUP, BYTES, 0);
	CHECK_OK(group_reach(sd, GROUP, &all));
	step_done(0);
	for (;;)
		pause();
}

static int outlives(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t all = NULL;
	struct member m;
	sci_error_t error;

	(void)arg;
	member_join(&m, sd, GROUP, BYTES, 0);
	step_done(1);
	step_await(2);
	CHECK_OK(group_reach(sd, GROUP, &all));
	put32(m.memory + 28, 9);
	member_leave(&m);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

/* The audit behind this finds nothing of it. */
static void members_die(void **state)
{
	pid_t dies, lives;

	cluster_needs(NEEDS_GROUPS);
	steps_reset();
	dies = cluster_fork(*state, 4, stays, NULL);
	step_await(0);
	lives = cluster_fork(*state, 8, outlives, NULL);
	step_await(1);
	kill(dies, SIGKILL);
	assert_int_equal(cluster_wait(dies), 128 + SIGKILL);
	step_done(2);
	assert_int_equal(cluster_wait(lives), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(each_sees_what_each_wrote),
		API_TEST(who_is_no_member_may_write),
		API_TEST(mistakes_get_their_errors),
		API_TEST(members_die),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
