/* SPDX-License-Identifier: BSD-2-Clause */
/* A multicast group that is mapped for a device: what a drive writes there reaches each member. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "admin.h"
#include "member.h"
#include "topology.h"

#define PAGE 4096u
#define GROUP 3u
#define HOSTS 3u
#define IDENTIFY 0x06

enum { JOINED, WRITTEN, SEEN, OVER }; /* steps */

static uint8_t *written; /* shared: what the drive writes */

static int is_member(void *arg)
{
	sci_desc_t sd = api_begin();
	struct member m;

	(void)arg;
	member_join(&m, sd, GROUP, 2 * PAGE, 0);
	step_done(JOINED);
	for (unsigned round = 0; round < 2; round++) {
		step_await(WRITTEN);
		for (unsigned i = 0; i < PAGE; i++)
			CHECK(get8(m.memory + PAGE + i) == written[i] && get8(m.memory + i) == 0);
		step_done(SEEN);
	}
	step_await(OVER);
	member_leave(&m);
	api_end(sd);
	return 0;
}

/*
 * Identify of the controller, then of the namespace: into the queue's own memory, whose completion
 * comes behind it, then into the second page of the group, to which another way may lead. Steps
 * come last.
 */
static void identify(struct admin *a, uint64_t at, const struct member *m, unsigned round)
{
	admin_command(a, IDENTIFY, round, a->data_at, round ? 0 : 1);
	admin_await(a);
	for (unsigned i = 0; i < PAGE; i++)
		written[i] = get8(a->data + i);
	admin_command(a, IDENTIFY, round, at, round ? 0 : 1);
	admin_await(a);
	if (round == 0) /* the serial number is text */
		CHECK(written[4] >= ' ' && written[4] <= '~');
	else /* the namespace's size is that of the drive, in blocks */
		CHECK(written[0] | written[1] | written[2] | written[3]);
	for (unsigned i = 0; i < HOSTS - 1; i++)
		step_done(WRITTEN);
	for (unsigned i = 0; i < HOSTS - 1; i++)
		step_await(SEEN);
	for (unsigned i = 0; i < PAGE; i++)
		CHECK(get8(m->memory + PAGE + i) == written[i]);
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
	member_join(&m, a.sd, GROUP, 2 * PAGE, 0);
	for (unsigned i = 0; i < HOSTS - 1; i++)
		step_await(JOINED);
	CHECK_OK(group_reach(a.sd, GROUP, &all));
	SCIMapRemoteSegmentForDevice(all, a.device, &at, PAGE, PAGE, 0, &error);
	CHECK_OK(error);
	for (unsigned round = 0; round < 2; round++)
		identify(&a, at, &m, round);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY); /* the device reaches it */
	SCIUnmapRemoteSegmentForDevice(all, a.device, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(all, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < HOSTS - 1; i++)
		step_done(OVER);
	member_leave(&m);
	admin_stop(&a);
	return 0;
}

/* The drive is with node 4, and whoever drives it on any host. */
static void a_drive_writes_to_all(struct cluster *c)
{
	static const unsigned nodes[HOSTS] = {4, 8, 12};
	pid_t pid[HOSTS];

	for (unsigned driver = 0; driver < HOSTS; driver++) {
		steps_reset();
		for (unsigned i = 0; i < HOSTS; i++)
			pid[i] = cluster_fork(c, nodes[i], i == driver ? drives : is_member, NULL);
		for (unsigned i = 0; i < HOSTS; i++)
			assert_int_equal(cluster_wait(pid[i]), 0);
		assert_int_equal(cluster_audit(c), 0);
	}
}

static void members_share_a_page(void **state)
{
	cluster_needs(NEEDS_GROUPS);
	a_drive_writes_to_all(*state);
}

static void members_have_each_their_own(void **state)
{
	struct cluster *c;

	(void)state;
	cluster_needs_kernel(NEEDS_TWO);
	cluster_needs(NEEDS_GROUPS);
	c = cluster_up("cluster: exact\n"
		       "switches: [sw0]\n"
		       "multicast: exact\n"
		       "hosts:\n"
		       "  one: {ram: 64M, iommu: on, devices: {nvme0: {type: nvme, size: 4M}}}\n"
		       "  two: {ram: 64M}\n"
		       "  three: {ram: 64M, iommu: on}\n");
	assert_non_null(c);
	a_drive_writes_to_all(c);
	assert_int_equal(cluster_down(c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(members_share_a_page),
		API_TEST(members_have_each_their_own),
	};

	written = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (written == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
