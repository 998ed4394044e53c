/* SPDX-License-Identifier: BSD-2-Clause */
/* SCIMemCpy() of every size and direction, and of handles that are no longer, or not yet, right. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "smartio/ext.h"
#include "../lib/mapped.h"
#include "topology.h"

#define BYTES (4u << 20)
#define MOST 300 /* each size up to here */

struct maps {
	sci_desc_t sd;
	sci_local_segment_t local;
	sci_remote_segment_t remote;
	sci_map_t near, far;
	uint8_t *memory; /* what @far writes to, by @near */
};

static void make(struct maps *m)
{
	sci_error_t error;

	m->sd = api_begin();
	SCICreateSegment(m->sd, &m->local, 1, BYTES, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(m->local, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(m->local, 0, 0, &error);
	CHECK_OK(error);
	m->memory = SCIMapLocalSegment(m->local, &m->near, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
	SCIConnectSegment(m->sd, &m->remote, 4, 1, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(m->remote, &m->far, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
}

static void unmake(struct maps *m)
{
	sci_error_t error;

	SCIUnmapSegment(m->far, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(m->remote, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(m->near, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(m->local, 0, &error);
	CHECK_OK(error);
	api_end(m->sd);
}

static void one_size(const struct maps *m, size_t at, size_t from, size_t size)
{
	static uint8_t data[BYTES + 64], back[BYTES + 64];
	sci_error_t error = SCI_ERR_BUSY;
	const size_t edge = 32;

	CHECK(at >= edge && at + size + edge <= BYTES && from + size <= sizeof(data));
	for (size_t i = 0; i < size; i++)
		data[from + i] = (uint8_t)(i * 5 + size);
	put_all(m->memory + at - edge, 0xee, size + 2 * edge);
	SetSciMemCopyFunction((int)size - 1); /* whatever its number, it changes nothing */
	SCIMemCpy(NULL, data + from, m->far, at, size, 0, &error);
	CHECK_OK(error);
	CHECK(same_bytes(m->memory + at, data + from, size));
	CHECK(all_bytes(m->memory + at - edge, 0xee, edge));
	CHECK(all_bytes(m->memory + at + size, 0xee, edge));
	memset(back, 0xdd, from + size + edge);
	SCIMemCpy(NULL, back + from, m->far, at, size, SCI_FLAG_BLOCK_READ, &error);
	CHECK_OK(error);
	CHECK(!memcmp(back + from, data + from, size));
	for (size_t i = 0; i < from; i++)
		CHECK(back[i] == 0xdd);
	for (size_t i = 0; i < edge; i++)
		CHECK(back[from + size + i] == 0xdd);
}

static int copies(void *arg)
{
	static const size_t large[] = {1500, 4096, 65537, (512u << 10) - 1, 2u << 20, BYTES - 4096};
	struct maps m;

	(void)arg;
	make(&m);
	for (size_t size = 0; size <= MOST; size++) {
		one_size(&m, 64, 0, size);
		one_size(&m, 4096 + size % 13 - 5, size % 7, size);
	}
	for (unsigned i = 0; i < sizeof(large) / sizeof(large[0]); i++)
		one_size(&m, 33 + i, i, large[i]);
	unmake(&m);
	return 0;
}

static void every_size_arrives_whole(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, copies, NULL)), 0);
}

/* What is near the end, and what a short copy must not take for right. */
static int is_refused(void *arg)
{
	sci_sequence_t sequence = NULL;
	uint8_t bytes[64] = {1};
	struct maps m;
	sci_error_t error;

	(void)arg;
	make(&m);
	SCICreateMapSequence(m.far, &sequence, 0, &error);
	CHECK_OK(error);
	SCIMemCpy(sequence, bytes, m.far, BYTES - 64, 64, 0, NULL);
	CHECK(get8(m.memory + BYTES - 64) == 1);
	SCIMemCpy(sequence, bytes, m.far, BYTES - 63, 64, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	CHECK(*smartio_last_error());
	SCIMemCpy(sequence, bytes, m.far, 0, 64, 0, &error);
	CHECK_OK(error);
	SCIMemCpy(NULL, bytes, m.far, SIZE_MAX - 7, 16, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	SCIMemCpy(NULL, bytes, m.far, 8, SIZE_MAX, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	SCIMemCpy((sci_sequence_t)m.far, bytes, m.far, 0, 64, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIMemCpy(NULL, bytes, (sci_map_t)sequence, 0, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIMemCpy(NULL, bytes, (sci_map_t)m.remote, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIMemCpy(NULL, bytes, NULL, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	for (unsigned i = 1; i < 64; i++) {
		SCIMemCpy(NULL, bytes, (sci_map_t)((uintptr_t)m.far ^ (uintptr_t)1 << i), 0, 1, 0,
			  &error);
		if (error == SCI_ERR_OK) /* the other map's handle may be one bit away */
			CHECK(((uintptr_t)m.far ^ (uintptr_t)1 << i) == (uintptr_t)m.near);
		else
			CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	}
	SCIRemoveSequence(sequence, 0, &error);
	CHECK_OK(error);
	SCIMemCpy(sequence, bytes, m.far, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIUnmapSegment(m.far, 0, &error);
	CHECK_OK(error);
	SCIMemCpy(NULL, bytes, m.far, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCITerminate();
	SCIMemCpy(NULL, bytes, m.near, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
	return 0;
}

static void what_is_wrong_is_refused(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, is_refused, NULL)), 0);
}

static int forks(void *arg)
{
	uint8_t byte = 7;
	struct maps m;
	sci_error_t error;
	pid_t pid;

	(void)arg;
	make(&m);
	pid = fork();
	if (pid == 0) {
		SCIMemCpy(NULL, &byte, m.far, 0, 1, 0, &error);
		CHECK_IS(error, SCI_ERR_NOT_INITIALIZED);
		_exit(0);
	}
	CHECK(cluster_wait(pid) == 0);
	CHECK(get8(m.memory) == 0);
	SCIMemCpy(NULL, &byte, m.far, 0, 1, 0, &error);
	CHECK_OK(error);
	CHECK(get8(m.memory) == 7);
	unmake(&m);
	return 0;
}

static void a_child_has_no_maps(void **state)
{
	cluster_needs_kernel(NEEDS_FORK);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, forks, NULL)), 0);
}

/* ---- maps come and go beside one that is written to ---- */

static uint32_t stop;

static void *copy_on(void *arg)
{
	const struct maps *m = arg;
	uint8_t bytes[200];
	sci_error_t error;

	memset(bytes, 3, sizeof(bytes));
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		SCIMemCpy(NULL, bytes, m->far, 4096, sizeof(bytes), 0, &error);
		CHECK_OK(error);
		SCIMemCpy(NULL, bytes, (sci_map_t)m->sd, 4096, sizeof(bytes), 0, &error);
		CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	}
	return NULL;
}

static int maps_beside(void *arg)
{
	pthread_t thread;
	struct maps m;
	sci_error_t error;

	(void)arg;
	make(&m);
	CHECK(!pthread_create(&thread, NULL, copy_on, &m));
	for (unsigned i = 0; i < 600; i++) { /* each place of the table twice */
		sci_map_t map;
		uint8_t byte = (uint8_t)i;

		SCIMapRemoteSegment(m.remote, &map, 0, 4096, NULL, 0, &error);
		CHECK_OK(error);
		SCIMemCpy(NULL, &byte, map, i, 1, 0, &error);
		CHECK_OK(error);
		CHECK(get8(m.memory + i) == byte);
		SCIMemCpy(NULL, &byte, map, 4096, 1, 0, &error);
		CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
		SCIUnmapSegment(map, 0, &error);
		CHECK_OK(error);
		SCIMemCpy(NULL, &byte, map, 0, 1, 0, &error);
		CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	unmake(&m);
	return 0;
}

static void maps_come_and_go_beside_copies(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, maps_beside, NULL)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(every_size_arrives_whole),
		API_TEST(what_is_wrong_is_refused),
		API_TEST(a_child_has_no_maps),
		API_TEST(maps_come_and_go_beside_copies),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
