/* SPDX-License-Identifier: BSD-2-Clause */
/* Exact multicast groups with members on two hosts, which may be machines: copies, DMA, ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/cluster.h"
#include "../lib/mapped.h"
#include "admin.h"
#include "member.h"

#define GROUP 5u
#define PAGE 4096u
#define BYTES (4 * PAGE)
#define BY_COPY 100u
#define BY_DMA PAGE
#define BY_DRIVE (2 * PAGE)
#define LATER (3 * PAGE)
#define IDENTIFY 0x06

enum { JOINED, WRITTEN, SEEN, ENDED, ALL_DONE }; /* steps */

static int up(void **state)
{
	*state = cluster_up(
		"cluster: exact\n"
		"switches: [sw0]\n"
		"multicast: exact\n"
		"hosts:\n"
		"  one: {ram: 64M, iommu: on, devices: {nvme0: {type: nvme, size: 4M}}}\n"
		"  two: {ram: 64M}\n");
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

static uint8_t pattern(unsigned i)
{
	return (uint8_t)(i * 7 + i / 251);
}

static void check_copies(const struct member *m)
{
	CHECK(same_bytes(m->memory + BY_COPY, "copied", 6));
	for (unsigned i = 0; i < PAGE; i++)
		CHECK(get8(m->memory + BY_DMA + i) == pattern(i));
	CHECK(get8(m->memory) == 0 && get8(m->memory + BY_DRIVE) == 0);
}

/* ---- copies and DMA queues ---- */

static int is_member(void *arg)
{
	sci_desc_t sd = api_begin();
	struct member m;

	(void)arg;
	member_join(&m, sd, GROUP, BYTES, 0);
	step_done(JOINED);
	step_await(WRITTEN);
	check_copies(&m);
	member_leave(&m);
	step_done(SEEN);
	api_end(sd);
	return 0;
}

static void by_dma(sci_desc_t sd, sci_remote_segment_t all)
{
	sci_local_segment_t source = NULL;
	sci_dma_queue_t queue = NULL;
	sci_map_t local = NULL;
	sci_error_t error;
	uint8_t *bytes;

	SCICreateSegment(sd, &source, 1, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(source, 0, 0, &error);
	CHECK_OK(error);
	bytes = SCIMapLocalSegment(source, &local, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < PAGE; i++)
		put8(bytes + i, pattern(i));
	SCICreateDMAQueue(sd, &queue, 0, 1, 0, &error);
	CHECK_OK(error);
	SCIStartDmaTransfer(queue, source, all, 0, PAGE, BY_DMA, NULL, NULL,
			    SCI_FLAG_BROADCAST | SCI_FLAG_DMA_WAIT, &error);
	CHECK_OK(error);
	SCIStartDmaTransfer(queue, source, all, 0, PAGE, BY_DMA, NULL, NULL,
			    SCI_FLAG_DMA_READ | SCI_FLAG_DMA_WAIT, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCIRemoveDMAQueue(queue, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(local, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(source, 0, &error);
	CHECK_OK(error);
}

static int sends(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t all = NULL;
	sci_map_t map = NULL;
	struct member m;
	sci_error_t error;

	(void)arg;
	member_join(&m, sd, GROUP, BYTES, 0);
	step_await(JOINED);
	CHECK_OK(group_reach(sd, GROUP, &all));
	CHECK(SCIGetRemoteSegmentSize(all) == BYTES);
	CHECK(SCIMapRemoteSegment(all, &map, 0, BYTES, NULL, SCI_FLAG_BROADCAST, &error) == NULL);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCIMapRemoteSegment(all, &map, 0, BYTES, NULL, SCI_FLAG_BROADCAST | SCI_FLAG_READONLY_MAP,
			    &error);
	CHECK_OK(error);
	SCIMemCpy(NULL, (char[]){"copied"}, map, BY_COPY, 6, SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	by_dma(sd, all);
	check_copies(&m); /* the sender's own */
	step_done(WRITTEN);
	step_await(SEEN);
	/* The other one has left, which nobody misses. */
	SCIMemCpy(NULL, (char[]){"alone"}, map, LATER, 5, SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	CHECK(same_bytes(m.memory + LATER, "alone", 5));
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_OK(error);
	member_leave(&m);
	CHECK(group_reach(sd, GROUP, &all) != SCI_ERR_OK);
	api_end(sd);
	return 0;
}

static void members_of_two_hosts(void **state)
{
	pid_t member, sender;

	cluster_needs(NEEDS_GROUPS);
	for (unsigned host = 4; host <= 8; host += 4) {
		steps_reset();
		member = cluster_fork(*state, host, is_member, NULL);
		sender = cluster_fork(*state, 12 - host, sends, NULL);
		assert_int_equal(cluster_wait(sender), 0);
		assert_int_equal(cluster_wait(member), 0);
	}
}

/* ---- deaths ---- */

static int dies(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t all = NULL;
	struct member m;

	(void)arg;
	member_join(&m, sd, GROUP, BYTES, 0);
	CHECK_OK(group_reach(sd, GROUP, &all));
	step_done(JOINED);
	step_await(WRITTEN);
	_exit(0); /* a member, and a way to the group */
}

static int outlives(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t all = NULL;
	sci_map_t map = NULL;
	sci_error_t error;

	(void)arg;
	step_await(JOINED);
	CHECK_OK(group_reach(sd, GROUP, &all));
	SCIMapRemoteSegment(all, &map, 0, BYTES, NULL, SCI_FLAG_READONLY_MAP, &error);
	CHECK_OK(error);
	SCIMemCpy(NULL, (char[]){"last"}, map, 0, 4, SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	step_done(WRITTEN);
	step_await(ENDED);
	/* Nobody is there any more: nobody misses it. */
	SCIMemCpy(NULL, (char[]){"more"}, map, 0, 4, SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_OK(error);
	step_done(ALL_DONE);
	api_end(sd);
	return 0;
}

static void a_member_dies(void **state)
{
	pid_t member, sender;

	cluster_needs(NEEDS_GROUPS);
	steps_reset();
	member = cluster_fork(*state, 4, dies, NULL);
	sender = cluster_fork(*state, 8, outlives, NULL);
	assert_int_equal(cluster_wait(member), 0);
	step_done(ENDED);
	assert_int_equal(cluster_wait(sender), 0);
}

/* ---- a drive ---- */

static int sees_a_drive(void *arg)
{
	sci_desc_t sd = api_begin();
	struct member m;

	(void)arg;
	member_join(&m, sd, GROUP, BYTES, 0);
	step_done(JOINED);
	step_await(WRITTEN);
	/* The serial number is text; what is beside the page is not written. */
	for (unsigned i = 4; i < 8; i++)
		CHECK(get8(m.memory + BY_DRIVE + i) >= ' ' && get8(m.memory + BY_DRIVE + i) <= '~');
	CHECK(get8(m.memory + BY_DRIVE - 1) == 0 && get8(m.memory + LATER) == 0);
	member_leave(&m);
	step_done(SEEN);
	api_end(sd);
	return 0;
}

static int drives(void *arg)
{
	sci_remote_segment_t all = NULL;
	sci_ioaddr_t at = 0;
	sci_error_t error;
	struct member m;
	struct admin a;

	(void)arg;
	admin_start(&a);
	member_join(&m, a.sd, GROUP, BYTES, 0);
	step_await(JOINED);
	CHECK_OK(group_reach(a.sd, GROUP, &all));
	SCIMapRemoteSegmentForDevice(all, a.device, &at, BY_DRIVE, PAGE, 0, &error);
	CHECK_OK(error);
	admin_command(&a, IDENTIFY, 0, a.data_at, 1);
	admin_await(&a);
	admin_command(&a, IDENTIFY, 0, at, 1);
	admin_await(&a);
	for (unsigned i = 0; i < PAGE; i++)
		CHECK(get8(m.memory + BY_DRIVE + i) == get8(a.data + i));
	step_done(WRITTEN);
	step_await(SEEN);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY); /* the device reaches it */
	SCIUnmapRemoteSegmentForDevice(all, a.device, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_OK(error);
	member_leave(&m);
	admin_stop(&a);
	return 0;
}

/* The drive is with node 4, and who drives it on either. */
static void a_drive_writes_to_both(void **state)
{
	pid_t member, driver;

	cluster_needs(NEEDS_GROUPS);
	for (unsigned host = 4; host <= 8; host += 4) {
		steps_reset();
		member = cluster_fork(*state, host, sees_a_drive, NULL);
		driver = cluster_fork(*state, 12 - host, drives, NULL);
		assert_int_equal(cluster_wait(driver), 0);
		assert_int_equal(cluster_wait(member), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(members_of_two_hosts, audit),
		cmocka_unit_test_teardown(a_member_dies, audit),
		cmocka_unit_test_teardown(a_drive_writes_to_both, audit),
	};

	return cmocka_run_group_tests(tests, up, down);
}
