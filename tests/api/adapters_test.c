/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts with several adapters: each is a way of its own, to be prepared, connected and cut alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/cluster.h"
#include "../lib/mapped.h"
#include "smartio/ext.h"

#define PAGE 4096u
#define ADAPTERS 4u

/* Four switches; the client's adapters are wired to them in another order than the server's. */
#define TOPOLOGY                                                                                   \
	"cluster: adapters\n"                                                                      \
	"switches: [a, b, c, d]\n"                                                                 \
	"hosts:\n"                                                                                 \
	"  one: {ram: 64M, iommu: on, adapters: [{to: a}, {to: b}, {to: c}, {to: d}]}\n"           \
	"  two: {ram: 64M, adapters: [{to: a}, {to: d}, {to: c}, {to: b}]}\n"

static const unsigned far_end[ADAPTERS] = {0, 3, 2, 1}; /* of an adapter of either host */

static int up(void **state)
{
	*state = cluster_up(TOPOLOGY);
	return *state ? 0 : -1;
}

static int audit(void **state)
{
	return cluster_audit(*state);
}

static int down(void **state)
{
	return *state ? cluster_down(*state) : 0;
}

static int serves(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = NULL;
	unsigned node = 0, adapter = 0;
	sci_error_t error;
	sci_map_t map;
	uint32_t *p;

	(void)arg;
	SCICreateSegment(sd, &seg, 1, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	p = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_SEGMENT_NOT_PREPARED);
	for (unsigned i = 0; i < ADAPTERS; i++) {
		SCIPrepareSegment(seg, i, 0, &error);
		CHECK_OK(error);
	}
	SCIPrepareSegment(seg, ADAPTERS, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_ADAPTERNO);
	/* One after the other, so that the client finds one way at a time. */
	for (unsigned i = 0; i < ADAPTERS; i++) {
		SCISetSegmentAvailable(seg, i, 0, &error);
		CHECK_OK(error);
		step_done(0);
		CHECK(SCIWaitForLocalSegmentEvent(seg, &node, &adapter, SCI_INFINITE_TIMEOUT, 0,
						  &error) == SCI_CB_CONNECT);
		CHECK(node == 8 && adapter == i);
	}
	/* The link of the client's adapter 1, which is our 3. */
	CHECK(SCIWaitForLocalSegmentEvent(seg, &node, &adapter, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_NOT_OPERATIONAL);
	CHECK(node == 8 && adapter == 3);
	CHECK(SCIWaitForLocalSegmentEvent(seg, &node, &adapter, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_OPERATIONAL);
	CHECK(node == 8 && adapter == 3);
	SCISetSegmentUnavailable(seg, 2, SCI_FLAG_FORCE_DISCONNECT, &error);
	CHECK_OK(error);
	step_await(3);
	for (unsigned i = 0; i < ADAPTERS; i++)
		CHECK(get32(p + i) == 100 + i);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	api_remove_segment(seg);
	api_end(sd);
	return 0;
}

static int comes_by_all_ways(void *arg)
{
	sci_remote_segment_t seg[ADAPTERS] = {NULL}, other = NULL;
	volatile uint32_t *p[ADAPTERS];
	sci_desc_t sd = api_begin();
	sci_map_t map[ADAPTERS];
	unsigned node = 0;
	sci_error_t error;

	(void)arg;
	for (unsigned i = 0; i < ADAPTERS; i++) {
		unsigned own = far_end[i];

		SCIGetLocalNodeId(i, &node, 0, &error);
		CHECK_OK(error);
		CHECK(node == 8);
		CHECK(SCIProbeNode(sd, i, 4, 0, &error));
		step_await(0);
		for (unsigned j = i + 1; j < ADAPTERS; j++) {
			SCIConnectSegment(sd, &other, 4, 1, far_end[j], NULL, NULL, 0, 0, &error);
			CHECK_IS(error, SCI_ERR_NO_SUCH_SEGMENT);
		}
		SCIConnectSegment(sd, &seg[own], 4, 1, own, NULL, NULL, 0, 0, &error);
		CHECK_OK(error);
		p[own] = SCIMapRemoteSegment(seg[own], &map[own], 0, PAGE, NULL, 0, &error);
		CHECK_OK(error);
		put32(p[own] + own, 100 + own);
	}
	step_done(1);
	CHECK(SCIWaitForRemoteSegmentEvent(seg[1], NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_NOT_OPERATIONAL);
	CHECK(get32(p[1]) == 0xffffffff && get32(p[0] + 1) == 101);
	CHECK(get32(p[2] + 1) == 101 && get32(p[3] + 1) == 101);
	SCIConnectSegment(sd, &other, 4, 1, 1, NULL, NULL, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NO_LINK_ACCESS);
	CHECK(!SCIProbeNode(sd, 1, 4, 0, &error) && SCIProbeNode(sd, 0, 4, 0, &error));
	step_done(2);
	CHECK(SCIWaitForRemoteSegmentEvent(seg[1], NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_OPERATIONAL);
	CHECK(get32(p[1]) == 100);
	CHECK(SCIWaitForRemoteSegmentEvent(seg[2], NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      SCI_CB_DISCONNECT);
	CHECK(get32(p[2]) == 0xffffffff && get32(p[3]) == 100);
	for (unsigned i = 0; i < ADAPTERS; i++) {
		CHECK(SCIWaitForRemoteSegmentEvent(seg[i], NULL, 0, 0, &error) == 0);
		SCIUnmapSegment(map[i], 0, &error);
		CHECK_OK(error);
		SCIDisconnectSegment(seg[i], 0, &error);
		CHECK_OK(error);
	}
	step_done(3);
	api_end(sd);
	return 0;
}

static void each_adapter_is_a_way_of_its_own(void **state)
{
	pid_t a, b;

	cluster_needs(NEEDS_LINK);
	steps_reset();
	a = cluster_fork(*state, 4, serves, NULL);
	b = cluster_fork(*state, 8, comes_by_all_ways, NULL);
	step_await(1);
	assert_int_equal(cluster_link(*state, 8, 1, false), 0);
	step_await(2);
	assert_int_equal(cluster_link(*state, 8, 1, true), 0);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

static int hears_at_all(void *arg)
{
	sci_local_data_interrupt_t all = NULL, other = NULL;
	unsigned number = 7, plain = 7, heard = 0, length, by;
	sci_local_interrupt_t none = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	(void)arg;
	SCICreateDataInterrupt(sd, &all, SMARTIO_ALL_ADAPTERS, &number, NULL, NULL,
			       SCI_FLAG_FIXED_INTNO, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < ADAPTERS; i++) {
		SCICreateDataInterrupt(sd, &other, i, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO,
				       &error);
		CHECK_IS(error, SCI_ERR_INTNO_USED);
	}
	SCICreateInterrupt(sd, &none, SMARTIO_ALL_ADAPTERS, &plain, NULL, NULL,
			   SCI_FLAG_FIXED_INTNO, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_ADAPTERNO);
	step_done(0);
	for (unsigned i = 0; i < ADAPTERS; i++) {
		length = sizeof(by);
		SCIWaitForDataInterrupt(all, &by, &length, SCI_INFINITE_TIMEOUT, 0, &error);
		CHECK_OK(error);
		heard |= 1u << by;
	}
	CHECK(heard == (1u << ADAPTERS) - 1);
	SCIRemoveDataInterrupt(all, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < ADAPTERS; i++) {
		SCICreateDataInterrupt(sd, &other, i, &number, NULL, NULL, SCI_FLAG_FIXED_INTNO,
				       &error);
		CHECK_OK(error);
		SCIRemoveDataInterrupt(other, 0, &error);
		CHECK_OK(error);
	}
	api_end(sd);
	return 0;
}

static int tells_by_each(void *arg)
{
	sci_remote_data_interrupt_t to = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	(void)arg;
	step_await(0);
	for (unsigned i = 0; i < ADAPTERS; i++) {
		SCIConnectDataInterrupt(sd, &to, 4, i, 7, SCI_INFINITE_TIMEOUT, 0, &error);
		CHECK_OK(error);
		SCITriggerDataInterrupt(to, &i, sizeof(i), 0, &error);
		CHECK_OK(error);
		SCIDisconnectDataInterrupt(to, 0, &error);
		CHECK_OK(error);
	}
	api_end(sd);
	return 0;
}

static void an_interrupt_may_be_at_all_of_them(void **state)
{
	pid_t a, b;

	cluster_needs(NEEDS_LINK);
	steps_reset();
	a = cluster_fork(*state, 4, hears_at_all, NULL);
	b = cluster_fork(*state, 8, tells_by_each, NULL);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(each_adapter_is_a_way_of_its_own, audit),
		cmocka_unit_test_teardown(an_interrupt_may_be_at_all_of_them, audit),
	};

	return cmocka_run_group_tests(tests, up, down);
}
