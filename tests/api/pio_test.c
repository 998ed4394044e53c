/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies by the CPU, barriers, and sequences that tell what was lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/mapped.h"
#include "topology.h"

#define PAGE 4096u
#define BYTES (64u << 10)

static sci_local_segment_t export_segment(sci_desc_t sd, unsigned id, uint8_t **ret, sci_map_t *map)
{
	sci_local_segment_t seg = NULL;
	sci_error_t error;

	SCICreateSegment(sd, &seg, id, BYTES, NULL, NULL, 0, &error);
	CHECK_OK(error);
	*ret = SCIMapLocalSegment(seg, map, 0, BYTES, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	return seg;
}

static sci_remote_segment_t import_segment(sci_desc_t sd, unsigned node, unsigned id, size_t offset,
					   unsigned flags, sci_map_t *map)
{
	sci_remote_segment_t seg = NULL;
	sci_error_t error;

	SCIConnectSegment(sd, &seg, node, id, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(seg, map, offset, BYTES - offset, NULL, flags, &error);
	CHECK_OK(error);
	return seg;
}

static void leave_segment(sci_remote_segment_t seg, sci_map_t map)
{
	sci_error_t error;

	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(seg, 0, &error);
	CHECK_OK(error);
}

/* ---- copies ---- */

static int is_written(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_local_segment_t seg;
	sci_error_t error;
	sci_map_t map;
	uint8_t *p;

	(void)arg;
	seg = export_segment(sd, 1, &p, &map);
	step_done(0);
	step_await(1);
	for (unsigned i = 0; i < 1000; i++)
		CHECK(get8(p + PAGE + 3 + i) == (uint8_t)(i * 7));
	CHECK(get8(p + PAGE + 2) == 0 && get8(p + PAGE + 1003) == 0);
	CHECK(same_bytes(p + 9, "by address", 10));
	CHECK(same_bytes(p + 8192, "by address", 10));
	CHECK(same_bytes(p + 77, "as in 1.x", 9));
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	api_remove_segment(seg);
	api_end(sd);
	return 0;
}

static void copy_wrongly(sci_map_t map, sci_map_t read_only)
{
	uint8_t byte = 0;
	sci_error_t error;

	SCIMemCpy(NULL, &byte, map, BYTES, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	SCIMemCpy(NULL, &byte, map, SIZE_MAX, 2, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	SCIMemCpy(NULL, NULL, map, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIMemCpy(NULL, &byte, NULL, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIMemCpy((sci_sequence_t)map, &byte, map, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIMemCpy(NULL, &byte, map, 0, 1, SCI_FLAG_NO_FLUSH, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCIMemCpy(NULL, &byte, map, BYTES, 0, 0, &error);
	CHECK_OK(error);
	SCIMemCpy(NULL, &byte, read_only, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	SCIMemCpy(NULL, &byte, read_only, 0, 1, SCI_FLAG_BLOCK_READ, &error);
	CHECK_OK(error);
	SCIMemCopy(&byte, map, BYTES - 1, 2, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	SCIMemWrite(NULL, &byte, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIMemWrite(&byte, NULL, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCITransferBlock(map, 0, map, BYTES - 1, 2, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	SCITransferBlock(map, 0, read_only, 0, 2, 0, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
}

static int writes(void *arg)
{
	sci_map_t map = NULL, inner = NULL, read_only = NULL;
	sci_remote_segment_t seg, other, third;
	uint8_t data[1000], back[1000];
	sci_desc_t sd = api_begin();
	sci_sequence_t sequence = NULL;
	sci_error_t error;

	(void)arg;
	step_await(0);
	seg = import_segment(sd, cluster_node(8), 1, 0, 0, &map);
	other = import_segment(sd, cluster_node(8), 1, PAGE + 1, 0, &inner);
	third = import_segment(sd, cluster_node(8), 1, 0, SCI_FLAG_READONLY_MAP, &read_only);
	SCICreateMapSequence(inner, &sequence, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	SCIMemCpy(sequence, data, inner, 2, sizeof(data), SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_OK);
	SCIMemCpy(NULL, back, map, PAGE + 3, sizeof(back),
		  SCI_FLAG_BLOCK_READ | SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	CHECK(!memcmp(data, back, sizeof(back)));
	/* An inner map ends where the segment does. */
	SCIMemCpy(NULL, data, inner, BYTES - PAGE - 1, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_OUT_OF_RANGE);
	SCIMemWrite((void *)(uintptr_t) "by address", (volatile char *)SCIGetMapPointer(map) + 9,
		    10, 0, &error);
	CHECK_OK(error);
	SCITransferBlock(map, 9, map, 8192, 10, 0, &error);
	CHECK_OK(error);
	SCIMemCopy((void *)(uintptr_t) "as in 1.x", map, 77, 9, 0, &error);
	CHECK_OK(error);
	SCIMemCopy(back, map, 77, 9, SCI_FLAG_BLOCK_READ, &error);
	CHECK_OK(error);
	CHECK(!memcmp(back, "as in 1.x", 9));
	SCIFlush(sequence, 0);
	SCIFlush(NULL, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
	SCIStoreBarrier(NULL, 0);
	SCIFlushReadBuffers(NULL);
	copy_wrongly(map, read_only);
	SCIRemoveSequence(sequence, 0, &error);
	CHECK_OK(error);
	leave_segment(other, inner);
	leave_segment(third, read_only);
	SCIMemCpy(NULL, data, inner, 0, 1, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	leave_segment(seg, map);
	step_done(1);
	api_end(sd);
	return 0;
}

static void copies_arrive(void **state)
{
	pid_t a, b;

	steps_reset();
	a = cluster_fork(*state, 8, is_written, NULL);
	b = cluster_fork(*state, 4, writes, NULL);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* ---- the life of a sequence ---- */

static int lives(void *arg)
{
	sci_sequence_t sequence = NULL, same = NULL;
	sci_remote_segment_t seg = NULL;
	sci_map_t map = NULL, far = NULL;
	sci_desc_t sd = api_begin();
	sci_local_segment_t local;
	sci_error_t error;
	uint8_t *p;

	(void)arg;
	local = export_segment(sd, 2, &p, &map);
	seg = import_segment(sd, 4, 2, 0, 0, &far);
	SCICreateMapSequence(map, &sequence, 0, &error);
	CHECK_OK(error);
	CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_OK);
	CHECK_OK(error);
	SCIRemoveSequence(sequence, 0, &error);
	CHECK_OK(error);
	SCIRemoveSequence(sequence, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_NOT_RETRIABLE);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(SCIStartSequence(NULL, 0, &error) == SCI_SEQ_NOT_RETRIABLE);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCICreateMapSequence(NULL, &same, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCICreateMapSequence(far, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCICreateMapSequence(far, &same, SCI_FLAG_NO_FLUSH, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	SCICreateMapSequence(far, &sequence, SCI_FLAG_FAST_BARRIER, &error);
	CHECK_OK(error);
	SCICreateMapSequence(far, &same, 0, &error);
	CHECK_OK(error);
	CHECK(SCICheckSequence(sequence, SCI_FLAG_NO_FLUSH | SCI_FLAG_NO_STORE_BARRIER, &error) ==
	      SCI_SEQ_OK);
	CHECK_OK(error);
	SCIRemoveSequence(same, 0, &error);
	CHECK_OK(error);
	/* The map goes first, as in programs that forget the order; and all else. */
	leave_segment(seg, far);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_NOT_RETRIABLE);
	CHECK_OK(error);
	CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_NOT_RETRIABLE);
	CHECK_OK(error);
	SCIRemoveSequence(sequence, 0, &error);
	CHECK_OK(error);
	SCICreateMapSequence(map, &sequence, 0, &error); /* never removed */
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(local, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static void a_sequence_outlives_its_map(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, lives, NULL)), 0);
}

/* ---- a check reads behind the stores ---- */

static volatile unsigned reads;
static void *window;

static void on_read(int signal_no)
{
	(void)signal_no;
	reads++;
	mprotect(window, PAGE, PROT_READ | PROT_WRITE);
}

/* How often the window was read since. */
static unsigned reads_since(unsigned *before)
{
	unsigned n = reads - *before;

	*before = reads;
	CHECK(mprotect(window, PAGE, PROT_NONE) == 0);
	return n;
}

static int pushes(void *arg)
{
	sci_sequence_t sequence = NULL;
	sci_remote_segment_t seg = NULL;
	sci_desc_t sd = api_begin();
	sci_map_t map = NULL;
	sci_error_t error;
	unsigned before = 0;
	uint32_t word = 7;

	(void)arg;
	step_await(0);
	seg = import_segment(sd, cluster_node(8), 3, 0, 0, &map);
	window = (void *)(uintptr_t)SCIGetMapPointer(map);
	CHECK(signal(SIGSEGV, on_read) != SIG_ERR);
	SCICreateMapSequence(map, &sequence, 0, &error);
	CHECK_OK(error);
	reads_since(&before);
	CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_OK);
	CHECK(reads_since(&before) == 0);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_OK);
	CHECK(reads_since(&before) == 1);
	CHECK(SCICheckSequence(sequence, SCI_FLAG_NO_FLUSH, &error) == SCI_SEQ_OK);
	CHECK(reads_since(&before) == 1);
	CHECK(SCICheckSequence(sequence, SCI_FLAG_NO_STORE_BARRIER, &error) == SCI_SEQ_OK);
	CHECK(reads_since(&before) == 0);
	SCIStoreBarrier(sequence, 0);
	CHECK(reads_since(&before) == 1);
	SCIStoreBarrier(NULL, 0);
	SCIStoreBarrier((sci_sequence_t)map, 0);
	SCIFlush(sequence, 0);
	CHECK(reads_since(&before) == 0);
	/* What is copied is in another page, which may be touched. */
	SCIMemCpy(NULL, &word, map, 2 * PAGE, sizeof(word), 0, &error);
	CHECK_OK(error);
	CHECK(reads_since(&before) == 0);
	SCIMemCpy(NULL, &word, map, 2 * PAGE, sizeof(word), SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	CHECK(reads_since(&before) == 1);
	SCITransferBlock(map, PAGE, map, 2 * PAGE, 16, 0, &error);
	CHECK_OK(error);
	CHECK(reads_since(&before) == 1);
	leave_segment(seg, map);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_NOT_RETRIABLE);
	SCIStoreBarrier(sequence, 0);
	CHECK(reads == before);
	SCIRemoveSequence(sequence, 0, &error);
	CHECK_OK(error);
	api_end(sd);
	return 0;
}

static int exports_for_ever(void *arg);

static void a_check_reads_behind_the_stores(void **state)
{
	pid_t exporter, importer;

	cluster_needs_kernel(NEEDS_SIGNALS);
	cluster_needs(NEEDS_HOSTS);
	steps_reset();
	exporter = cluster_fork(*state, 8, exports_for_ever, NULL);
	importer = cluster_fork(*state, 4, pushes, NULL);
	assert_int_equal(cluster_wait(importer), 0);
	kill(exporter, SIGKILL);
	cluster_wait(exporter);
}

/* ---- loss ---- */

static int exports_for_ever(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_map_t map;
	uint8_t *p;

	(void)arg;
	export_segment(sd, 3, &p, &map);
	step_done(0);
	while (pause() < 0)
		;
	return 0;
}

static int notices(void *arg)
{
	sci_block_transfer_t block;
	sci_sequence_t sequence = NULL;
	sci_remote_segment_t seg = NULL;
	sci_desc_t sd = api_begin();
	sci_sequence_status_t status;
	sci_map_t map = NULL;
	sci_error_t error;
	uint32_t word = 7;

	(void)arg;
	step_await(0);
	seg = import_segment(sd, cluster_node(8), 3, 0, 0, &map);
	SCICreateMapSequence(map, &sequence, 0, &error);
	CHECK_OK(error);
	CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_OK);
	SCIMemCpy(sequence, &word, map, 0, sizeof(word), SCI_FLAG_ERROR_CHECK, &error);
	CHECK_OK(error);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_OK);
	step_done(1);
	/* Our smartiod stands still: the page alone tells. */
	step_await(2);
	do {
		status = SCICheckSequence(sequence, 0, &error);
		CHECK_OK(error);
	} while (status == SCI_SEQ_OK);
	CHECK(status == SCI_SEQ_PENDING);
	CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_PENDING);
	CHECK_OK(error);
	SCIMemCpy(sequence, &word, map, 0, sizeof(word), SCI_FLAG_ERROR_CHECK, &error);
	CHECK_IS(error, SCI_ERR_TRANSFER_FAILED);
	SCIMemCopy(&word, map, 0, sizeof(word), SCI_FLAG_ERROR_CHECK, &error);
	CHECK_IS(error, SCI_ERR_TRANSFER_FAILED);
	SCITransferBlock(map, 0, map, 64, 64, 0, &error);
	CHECK_IS(error, SCI_ERR_TRANSFER_FAILED);
	SCITransferBlockAsync(map, 0, map, 64, 64, &block, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIWaitForBlockTransfer(block, SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_IS(error, SCI_ERR_TRANSFER_FAILED);
	step_done(3);
	do {
		status = SCIStartSequence(sequence, 0, &error);
		CHECK_OK(error);
	} while (status == SCI_SEQ_PENDING);
	CHECK(status == SCI_SEQ_NOT_RETRIABLE);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_NOT_RETRIABLE);
	/* The link is down; a little later it is known that the host is, too. */
	do {
		SCIMemCpy(NULL, &word, map, 0, sizeof(word), 0, &error);
	} while (error == SCI_ERR_NO_LINK_ACCESS);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	step_done(4);
	/* The link is back, and leads nowhere for the old connection. */
	step_await(5);
	CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_NOT_RETRIABLE);
	SCIRemoveSequence(sequence, 0, &error);
	CHECK_OK(error);
	leave_segment(seg, map);
	step_await(0);
	seg = import_segment(sd, cluster_node(8), 3, 0, 0, &map);
	SCICreateMapSequence(map, &sequence, 0, &error);
	CHECK_OK(error);
	CHECK(SCIStartSequence(sequence, 0, &error) == SCI_SEQ_OK);
	CHECK(SCICheckSequence(sequence, 0, &error) == SCI_SEQ_OK);
	step_done(6);
	/* A death that leaves the link alone. */
	do {
		status = SCICheckSequence(sequence, 0, &error);
		CHECK_OK(error);
	} while (status == SCI_SEQ_OK);
	CHECK(status == SCI_SEQ_NOT_RETRIABLE);
	SCIRemoveSequence(sequence, 0, &error);
	CHECK_OK(error);
	leave_segment(seg, map);
	api_end(sd);
	return 0;
}

static void a_sequence_tells_of_loss(void **state)
{
	pid_t exporter, importer;

	cluster_needs_kernel(NEEDS_DAEMON);
	cluster_needs(NEEDS_CRASH);
	steps_reset();
	exporter = cluster_fork(*state, 8, exports_for_ever, NULL);
	importer = cluster_fork(*state, 4, notices, NULL);
	step_await(1);
	kill(cluster_daemon(*state, 4), SIGSTOP);
	cluster_crash(*state, 8);
	step_done(2);
	step_await(3);
	kill(cluster_daemon(*state, 4), SIGCONT);
	step_await(4);
	kill(exporter, SIGKILL);
	cluster_wait(exporter);
	assert_int_equal(cluster_restart(*state, 8, 4), 0);
	step_done(5);
	exporter = cluster_fork(*state, 8, exports_for_ever, NULL);
	step_await(6);
	kill(exporter, SIGKILL);
	assert_int_equal(cluster_wait(exporter), 128 + SIGKILL);
	assert_int_equal(cluster_wait(importer), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(copies_arrive),
		API_TEST(a_sequence_outlives_its_map),
		API_TEST(a_check_reads_behind_the_stores),
		API_TEST(a_sequence_tells_of_loss),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
