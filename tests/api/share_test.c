/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments that several processes of one host have handles of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/mapped.h"
#include "topology.h"

#define PAGE 4096u

static sci_error_t attach(sci_desc_t sd, unsigned id, sci_local_segment_t *ret)
{
	sci_error_t error;
	size_t size = 7;

	*ret = NULL;
	SCIAttachLocalSegment(sd, ret, id, &size, NULL, NULL, 0, &error);
	CHECK(error ? !*ret && size == 7 : size == PAGE);
	return error;
}

static void expect_local(sci_local_segment_t seg, sci_segment_cb_reason_t reason)
{
	unsigned node = 0;
	sci_error_t error;

	CHECK(SCIWaitForLocalSegmentEvent(seg, &node, NULL, SCI_INFINITE_TIMEOUT, 0, &error) ==
	      reason);
	CHECK_OK(error);
	CHECK(node == cluster_node(reason == SCI_CB_LOST ? 4 : 8));
}

/* ---- the maker leaves first, in order ---- */

static int makes(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = NULL, hidden = NULL;
	sci_error_t error;
	sci_map_t map;
	uint32_t *p;

	(void)arg;
	SCICreateSegment(sd, &seg, 1, 100, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCICreateSegment(sd, &hidden, 2, 100, NULL, NULL, SCI_FLAG_PRIVATE, &error);
	CHECK_OK(error);
	SCIShareSegment(seg, 1, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCIShareSegment(NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIShareSegment(seg, 0, &error);
	CHECK_OK(error);
	p = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	put32(p, 1);
	step_done(0);
	/* The other prepared it; that counts here, too. */
	step_await(1);
	CHECK(get32(p + 1) == 2);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	step_done(2);
	expect_local(seg, SCI_CB_CONNECT);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY); /* mapped by this handle */
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIRemoveSegment(hidden, 0, &error);
	CHECK_OK(error);
	step_done(3);
	step_await(5);
	api_end(sd);
	return 0;
}

static int attaches(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = NULL, other;
	sci_error_t error;
	sci_map_t map;
	uint32_t *p;

	(void)arg;
	step_await(0);
	CHECK_IS(attach(sd, 3, &seg), SCI_ERR_NO_SUCH_SEGMENT);
	CHECK_IS(attach(sd, 2, &seg), SCI_ERR_ACCESS);
	SCIAttachLocalSegment(sd, NULL, 1, NULL, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIAttachLocalSegment(sd, &other, 1, NULL, NULL, NULL, SCI_FLAG_USE_CALLBACK, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_OK(attach(sd, 1, &seg));
	CHECK_OK(attach(sd, 1, &other));
	CHECK(SCIGetLocalSegmentId(seg) == 1 && SCIGetLocalSegmentSize(other) == PAGE);
	p = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(get32(p) == 1);
	put32(p + 1, 2);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	step_done(1);
	step_await(7);
	expect_local(seg, SCI_CB_CONNECT);
	expect_local(other, SCI_CB_CONNECT);
	step_await(3);
	CHECK(get32(p) == 1 && get32(p + 2) == 3);
	SCIRemoveSegment(other, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	step_done(4);
	expect_local(seg, SCI_CB_DISCONNECT);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	CHECK_IS(attach(sd, 1, &seg), SCI_ERR_NO_SUCH_SEGMENT);
	step_done(5);
	api_end(sd);
	return 0;
}

static int connects(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t seg = NULL;
	volatile uint32_t *p;
	sci_error_t error;
	sci_map_t map;

	(void)arg;
	do {
		SCIConnectSegment(sd, &seg, 4, 1, 0, NULL, NULL, 0, 0, &error);
	} while (error == SCI_ERR_NO_SUCH_SEGMENT);
	CHECK_OK(error);
	p = SCIMapRemoteSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(get32(p) == 1 && get32(p + 1) == 2);
	put32(p + 2, 3);
	step_done(7);
	step_await(4);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void the_last_handle_frees_the_memory(void **state)
{
	pid_t a, b, c;

	steps_reset();
	a = cluster_fork(*state, 4, makes, NULL);
	b = cluster_fork(*state, 4, attaches, NULL);
	step_await(2);
	c = cluster_fork(*state, 8, connects, NULL);
	assert_int_equal(cluster_wait(c), 0);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- the maker leaves in order, and is gone ---- */

static int makes_and_leaves(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = NULL;
	sci_error_t error;
	uint32_t *p;
	sci_map_t map;

	SCICreateSegment(sd, &seg, 1, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	p = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	put32(p, 1);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	SCIShareSegment(seg, 0, &error);
	CHECK_OK(error);
	step_done(0);
	step_await(1);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	if (arg)
		raise(SIGKILL);
	api_end(sd);
	return 0;
}

static int attaches_for_longer(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = NULL;
	sci_error_t error;
	sci_map_t map;
	uint32_t *p;

	(void)arg;
	step_await(0);
	CHECK_OK(attach(sd, 1, &seg));
	step_done(5);
	step_await(2); /* the maker is gone */
	p = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(get32(p) == 1);
	put32(p + 1, 2);
	step_done(3);
	step_await(4);
	CHECK(get32(p + 2) == 3);
	/* What came for it is a connection, and its end; no loss. */
	expect_local(seg, SCI_CB_CONNECT);
	expect_local(seg, SCI_CB_CONNECT);
	expect_local(seg, SCI_CB_DISCONNECT);
	expect_local(seg, SCI_CB_DISCONNECT);
	CHECK(SCIWaitForLocalSegmentEvent(seg, NULL, NULL, 0, 0, &error) == 0);
	CHECK_IS(error, SCI_ERR_TIMEOUT);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	CHECK_IS(attach(sd, 1, &seg), SCI_ERR_NO_SUCH_SEGMENT);
	api_end(sd);
	return 0;
}

static sci_remote_segment_t connect_and_map(sci_desc_t sd, sci_map_t *map, volatile uint32_t **p)
{
	sci_remote_segment_t seg = NULL;
	sci_error_t error;

	SCIConnectSegment(sd, &seg, cluster_node(4), 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	*p = SCIMapRemoteSegment(seg, map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	return seg;
}

static void leave(sci_remote_segment_t seg, sci_map_t map)
{
	sci_error_t error;

	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
}

/* Connected before the maker left, and once more after. */
static int stays_connected(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_remote_segment_t seg, again;
	volatile uint32_t *p, *q;
	sci_map_t map, more;

	(void)arg;
	step_await(5);
	seg = connect_and_map(sd, &map, &p);
	step_done(1);
	step_await(3);
	again = connect_and_map(sd, &more, &q);
	CHECK(get32(p) == 1 && get32(p + 1) == 2 && get32(q + 1) == 2);
	put32(p + 2, 3);
	leave(again, more);
	leave(seg, map);
	step_done(4);
	api_end(sd);
	return 0;
}

static void what_the_maker_released_stays(void **state)
{
	for (unsigned killed = 0; killed < 2; killed++) {
		pid_t a, b, c;

		steps_reset();
		b = cluster_fork(*state, 4, attaches_for_longer, NULL);
		c = cluster_fork(*state, 8, stays_connected, NULL);
		a = cluster_fork(*state, 4, makes_and_leaves, killed ? *state : NULL);
		assert_int_equal(cluster_wait(a), killed ? 128 + SIGKILL : 0);
		step_done(2);
		assert_int_equal(cluster_wait(c), 0);
		assert_int_equal(cluster_wait(b), 0);
	}
}

/* ---- the maker dies ---- */

static int makes_and_dies(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg = NULL;
	sci_error_t error;

	(void)arg;
	SCICreateSegment(sd, &seg, 1, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIShareSegment(seg, 0, &error);
	CHECK_OK(error);
	step_done(0);
	step_await(1);
	step_done(2);
	while (pause() < 0)
		;
	return 0;
}

struct heard {
	unsigned lost, other;
};

static sci_callback_action_t on_local(void *arg, sci_local_segment_t segment,
				      sci_segment_cb_reason_t reason, unsigned node,
				      unsigned adapter, sci_error_t status)
{
	struct heard *h = arg;

	(void)segment;
	(void)node;
	(void)adapter;
	(void)status;
	if (reason == SCI_CB_LOST)
		h->lost++;
	else
		h->other++;
	step_done(3);
	return SCI_CALLBACK_CONTINUE;
}

static int is_left_behind(void *arg)
{
	sci_local_segment_t seg = NULL, heard_of = NULL;
	struct heard heard = {0};
	sci_desc_t sd = api_begin();
	volatile uint32_t *p;
	sci_error_t error;
	sci_map_t map, more;

	(void)arg;
	step_await(0);
	CHECK_OK(attach(sd, 1, &seg));
	SCIAttachLocalSegment(sd, &heard_of, 1, NULL, on_local, &heard, SCI_FLAG_USE_CALLBACK,
			      &error);
	CHECK_OK(error);
	p = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	put32(p, 1);
	step_done(1);
	expect_local(seg, SCI_CB_LOST);
	step_await(3);
	CHECK(heard.lost == 1 && heard.other == 0);
	CHECK(get32(p) == 0xffffffff);
	SCIMapLocalSegment(seg, &more, 0, PAGE, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(heard_of, 0, &error);
	CHECK_OK(error);
	/* The id is free. */
	SCICreateSegment(sd, &seg, 1, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(seg, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_segment_ends_with_its_maker(void **state)
{
	pid_t a, b;

	steps_reset();
	a = cluster_fork(*state, 4, makes_and_dies, NULL);
	b = cluster_fork(*state, 4, is_left_behind, NULL);
	step_await(2);
	kill(a, SIGKILL);
	assert_int_equal(cluster_wait(a), 128 + SIGKILL);
	assert_int_equal(cluster_wait(b), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(the_last_handle_frees_the_memory),
		API_TEST(what_the_maker_released_stays),
		API_TEST(a_segment_ends_with_its_maker),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
