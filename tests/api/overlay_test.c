/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of exact multicast groups in BARs of borrowed devices, beside members in hosts' memory:
 * over a cascade, and behind a chassis. What crosses is counted; copy calls reach them; and what
 * may not be a member is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "overlay.h"

#define PAYLOAD 256u
#define PACKETS (GROUP_BYTES / PAYLOAD)

/* Steps. */
enum { JOINED, READY, GO, READ, SEEN, OVER };

static int up_fused(void **state)
{
	return up_as(state, CLUSTER("fused"));
}

/* ---- one Read fills them all ---- */

static int listens(void *arg)
{
	sci_desc_t sd = api_begin();
	struct member m;

	(void)arg;
	member_join(&m, sd, GROUP, GROUP_BYTES, 0);
	step_done(JOINED);
	step_await(READ);
	CHECK(holds(m.memory, 1));
	step_done(SEEN);
	step_await(OVER);
	member_leave(&m);
	api_end(sd);
	return 0;
}

static int reads_once(void *arg)
{
	static struct io io;
	struct target t;
	struct member m;

	io_start(&io);
	fill_drive(&io, 2);
	member_join(&m, io.a.sd, GROUP, GROUP_BYTES, 0);
	for (unsigned i = 0; i < 2; i++)
		step_await(JOINED);
	t = target_take(io.a.sd, arg, 0, 0);
	enter(&t);
	reach_group(&io);
	step_done(READY);
	step_await(GO);
	CHECK(io_command(&io, 0x02, io.group_at, 1) == 0);
	CHECK(holds(m.memory, 1));
	CHECK(holds(t.ram + PAGE, 1));
	CHECK(get32(t.ram + PAGE - 4) == 0 && get32(t.ram + PAGE + GROUP_BYTES) == 0);
	step_done(READ);
	step_done(READ);
	step_await(SEEN);
	step_await(SEEN);
	step_done(READY);
	step_await(OVER);
	quit(&t);
	CHECK(io_command(&io, 0x02, io.group_at, 0) == 0);
	CHECK(holds(m.memory, 0));
	CHECK(holds(t.ram + PAGE, 1));
	target_return(&t);
	member_leave(&m);
	io_stop(&io);
	return 0;
}

static void tlps(const struct cluster *c, unsigned long long count[HOSTS + 1])
{
	for (unsigned h = 0; h < HOSTS; h++)
		assert_int_equal(cluster_adapter_counter(c, 4 * (h + 1), 0, "wr_tlp", &count[h]),
				 0);
	assert_int_equal(cluster_chassis_counter(c, 12, "box", "wr_tlp", &count[HOSTS]), 0);
}

/* The packets go once to each host, and once into the chassis of the device that has one. */
static void one_read_fills_memory_and_a_device(void **state)
{
	static const struct {
		char name[8];
		bool chassis;
	} device[] = {{"beside", false}, {"far", true}};
	unsigned long long before[HOSTS + 1], after[HOSTS + 1];
	struct cluster *c = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned k = 0; k < 2; k++) {
		pid_t driver, member[2];

		steps_reset();
		driver = cluster_fork(c, DRIVER, reads_once, (void *)device[k].name);
		for (unsigned i = 0; i < 2; i++)
			member[i] = cluster_fork(c, 12 + 4 * i, listens, NULL);
		step_await(READY);
		tlps(c, before);
		step_done(GO);
		step_await(READY);
		tlps(c, after);
		for (unsigned h = 0; h < HOSTS; h++) /* the completion goes from one to two */
			assert_int_equal(after[h] - before[h], PACKETS + (h < 2));
		assert_int_equal(after[HOSTS] - before[HOSTS], device[k].chassis ? PACKETS : 0);
		for (unsigned i = 0; i < 3; i++)
			step_done(OVER);
		assert_int_equal(cluster_wait(driver), 0);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(cluster_wait(member[i]), 0);
	}
}

/* ---- what is refused ---- */

static void refused(sci_remote_segment_t bar, unsigned group, size_t offset, size_t size,
		    sci_error_t expected, const char *text)
{
	sci_error_t error;

	smartio_join_group(bar, group, offset, size, 0, &error);
	CHECK_IS(error, expected);
	if (!strstr(smartio_last_error(), text))
		fprintf(stderr, "wanted: %s\n", text);
	CHECK(strstr(smartio_last_error(), text) != NULL);
}

static int asks_for_too_much(void *arg)
{
	static struct admin a;
	sci_remote_segment_t regs, cmb, ram = NULL;
	sci_error_t error;
	struct target t;
	struct member m;

	admin_start(&a);
	t = target_take(a.sd, arg, 0, 0);
	regs = connect_bar(t.device, SIO_MEMDEV_BAR_REGISTERS);
	/* Its registers, doorbell, interrupt table; those of a drive, whoever holds them. */
	for (unsigned page = 0; page < 3; page++)
		refused(regs, GROUP, page * PAGE, PAGE, SCI_ERR_ACCESS, "is memory of the device");
	refused(a.bar, GROUP, 0, PAGE, SCI_ERR_ACCESS, "is memory of the device");
	refused(a.bar, GROUP, PAGE, PAGE, SCI_ERR_ACCESS, "is memory of the device");
	refused(t.bar, GROUP, 8, PAGE, SCI_ERR_ILLEGAL_PARAMETER, "whole pages");
	refused(t.bar, GROUP, 0, PAGE / 2, SCI_ERR_ILLEGAL_PARAMETER, "whole pages");
	refused(t.bar, GROUP, 16 * PAGE, PAGE, SCI_ERR_OUT_OF_RANGE, "");
	refused(t.bar, GROUP, 15 * PAGE, 2 * PAGE, SCI_ERR_OUT_OF_RANGE, "");
	refused(t.bar, 8, 0, PAGE, SCI_ERR_ILLEGAL_PARAMETER, "0 to 7 are right");
	smartio_join_group(t.bar, GROUP, 0, PAGE, SCI_FLAG_BROADCAST, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	smartio_join_group(NULL, GROUP, 0, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	/* A group that has members, and is smaller; memory of a host. */
	member_join(&m, a.sd, GROUP, PAGE, 0);
	refused(t.bar, GROUP, 0, 2 * PAGE, SCI_ERR_OUT_OF_RANGE, "was made with");
	CHECK_OK(group_reach(a.sd, GROUP, &ram));
	refused(ram, GROUP, 0, PAGE, SCI_ERR_ILLEGAL_PARAMETER, "no BAR of a device");
	SCIDisconnectSegment(ram, 0, &error);
	CHECK_OK(error);
	/* Once; then it is in use. */
	smartio_leave_group(t.bar, GROUP, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	smartio_join_group(t.bar, GROUP, 0, PAGE, 0, &error);
	CHECK_OK(error);
	refused(t.bar, GROUP, PAGE, PAGE, SCI_ERR_SEGMENTID_USED, "has a member of group 3");
	smartio_join_group(t.bar, GROUP + 1, 0, PAGE, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(t.map, 0, &error);
	CHECK_OK(error);
	t.map = NULL;
	SCIDisconnectSegment(t.bar, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	smartio_leave_group(t.bar, GROUP, SCI_FLAG_BROADCAST, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	quit(&t);
	smartio_leave_group(t.bar, GROUP, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_OPERATION);
	smartio_leave_group(t.bar, GROUP + 1, 0, &error);
	CHECK_OK(error);
	/* The drive's memory is for the holder of its registers. */
	cmb = connect_bar(a.device, 2);
	SCIUnmapSegment(a.regs_map, 0, &error);
	CHECK_OK(error);
	refused(cmb, GROUP, 0, PAGE, SCI_ERR_ACCESS, "who holds its registers");
	a.regs = SCIMapRemoteSegment(a.bar, &a.regs_map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	smartio_join_group(cmb, GROUP, PAGE, PAGE, 0, &error);
	CHECK_OK(error);
	smartio_leave_group(cmb, GROUP, 0, &error);
	CHECK_OK(error);
	drop_bar(cmb, NULL);
	member_leave(&m);
	drop_bar(regs, NULL);
	target_return(&t);
	admin_stop(&a);
	return 0;
}

static void what_may_be_no_member_is_refused(void **state)
{
	static char name[][8] = {"beside", "far"};
	struct cluster *c = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(cluster_wait(cluster_fork(c, DRIVER, asks_for_too_much, name[i])),
				 0);
}

static int finds_fused_groups(void *arg)
{
	sci_desc_t sd = api_begin();
	struct target t = target_take(sd, arg, 0, 0);

	refused(t.bar, GROUP, 0, PAGE, SCI_ERR_NOT_SUPPORTED, "exact groups");
	target_return(&t);
	api_end(sd);
	return 0;
}

static void fused_groups_have_no_overlays(void **state)
{
	static char name[] = "far";
	struct cluster *c = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned node = 12; node <= 16; node += 4)
		assert_int_equal(cluster_wait(cluster_fork(c, node, finds_fused_groups, name)), 0);
}

/* ---- processors and engines ---- */

/* What a copy call sends reaches the memory of a drive, whose holder has made it a member. */
static int copies_to_a_drive(void *arg)
{
	static struct admin a;
	sci_remote_segment_t cmb, group = NULL;
	sci_map_t map, to_all;
	volatile uint8_t *p;
	sci_error_t error;
	struct member m;

	(void)arg;
	admin_start(&a);
	cmb = connect_bar(a.device, 2);
	p = SCIMapRemoteSegment(cmb, &map, 0, 4 * PAGE, NULL, 0, &error);
	CHECK_OK(error);
	member_join(&m, a.sd, GROUP, GROUP_BYTES, 0);
	smartio_join_group(cmb, GROUP, PAGE, GROUP_BYTES, 0, &error);
	CHECK_OK(error);
	CHECK_OK(group_reach(a.sd, GROUP, &group));
	SCIMapRemoteSegment(group, &to_all, 0, GROUP_BYTES, NULL, SCI_FLAG_READONLY_MAP, &error);
	CHECK_OK(error);
	SCIMemCpy(NULL, (void *)"to all of them", to_all, 12, 14, SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	CHECK(same_bytes(m.memory + 12, "to all of them", 14));
	CHECK(same_bytes(p + PAGE + 12, "to all of them", 14));
	CHECK(get32(p) == 0 && get8(p + PAGE + 26) == 0);
	smartio_leave_group(cmb, GROUP, 0, &error);
	CHECK_OK(error);
	SCIMemCpy(NULL, (void *)"to memory", to_all, 12, 9, SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	CHECK(same_bytes(m.memory + 12, "to memory", 9));
	CHECK(same_bytes(p + PAGE + 12, "to all of them", 14));
	SCIUnmapSegment(to_all, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(group, 0, &error);
	CHECK_OK(error);
	drop_bar(cmb, map);
	member_leave(&m);
	admin_stop(&a);
	return 0;
}

static void copies_reach_the_memory_of_a_drive(void **state)
{
	struct cluster *c = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned node = 4; node <= 16; node += 4)
		assert_int_equal(cluster_wait(cluster_fork(c, node, copies_to_a_drive, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest exact[] = {
		cmocka_unit_test_teardown(one_read_fills_memory_and_a_device, audit),
		cmocka_unit_test_teardown(what_may_be_no_member_is_refused, audit),
		cmocka_unit_test_teardown(copies_reach_the_memory_of_a_drive, audit),
	};
	const struct CMUnitTest fused[] = {
		cmocka_unit_test_teardown(fused_groups_have_no_overlays, audit),
	};
	int failed = cmocka_run_group_tests(exact, up, down);

	return failed + cmocka_run_group_tests(fused, up_fused, down);
}
