/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 20,000 segments, connections and maps in one program: all of them work, and when the program is
 * killed its host's smartiod takes them back while others ask it.
 *
 * A machine whose limits are lower (descriptors, mappings) is tested with as many as it allows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/cluster.h"
#include "smartio/io.h"

#define WANTED 20000u
#define PAGE 4096u
#define FIRST_EXPORTED 0x100000u
#define FIRST_OWN 0x200000u
#define SPARE 300u /* descriptors and mappings that are not of these objects */

#define TOPOLOGY                                                                                   \
	"cluster: many\n"                                                                          \
	"switches: [sw0]\n"                                                                        \
	"hosts:\n"                                                                                 \
	"  one: {ram: 256M, iommu: on}\n"                                                          \
	"  two: {ram: 256M, iommu: on}\n"

enum { EXPORTED, HELD, WRITTEN, READY, KILLED };

static unsigned count; /* of each kind */

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

static sci_local_segment_t export_one(sci_desc_t sd, unsigned id, volatile uint32_t **ret)
{
	sci_local_segment_t seg = NULL;
	sci_error_t error;
	sci_map_t map;

	SCICreateSegment(sd, &seg, id, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	*ret = SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	return seg;
}

static volatile uint32_t **new_words(void)
{
	volatile uint32_t **words = calloc(count, sizeof(*words));

	CHECK(words);
	return words;
}

/* ---- the programs ---- */

static int exporter(void *arg)
{
	volatile uint32_t **word = new_words();
	sci_desc_t sd = api_begin();

	(void)arg;
	for (unsigned i = 0; i < count; i++)
		export_one(sd, FIRST_EXPORTED + i, &word[i]);
	step_done(EXPORTED);
	step_await(WRITTEN);
	for (unsigned i = 0; i < count; i++)
		CHECK(sio_read32(word[i]) == i + 1);
	step_done(READY);
	step_await(KILLED); /* it is killed, too */
	return 1;
}

/* Some go and come in the middle of all the others. */
static void exchange_some(sci_desc_t sd, sci_remote_segment_t *seg, sci_map_t *map)
{
	volatile uint32_t *p;
	sci_error_t error;

	for (unsigned i = 0; i < count; i += count / 50) {
		SCIUnmapSegment(map[i], 0, &error);
		CHECK_OK(error);
		SCIDisconnectSegment(seg[i], 0, &error);
		CHECK_OK(error);
		SCIConnectSegment(sd, &seg[i], 8, FIRST_EXPORTED + i, 0, NULL, NULL, 0, 0, &error);
		CHECK_OK(error);
		p = SCIMapRemoteSegment(seg[i], &map[i], 0, PAGE, NULL, 0, &error);
		CHECK_OK(error);
		CHECK(sio_read32(p) == i + 1);
	}
}

static int holder(void *arg)
{
	sci_remote_segment_t *seg = calloc(count, sizeof(*seg));
	sci_map_t *map = calloc(count, sizeof(*map));
	volatile uint32_t **own = new_words(), *p;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	(void)arg;
	CHECK(seg && map);
	for (unsigned i = 0; i < count; i++)
		export_one(sd, FIRST_OWN + i, &own[i]);
	step_await(EXPORTED);
	for (unsigned i = 0; i < count; i++) {
		SCIConnectSegment(sd, &seg[i], 8, FIRST_EXPORTED + i, 0, NULL, NULL, 0, 0, &error);
		CHECK_OK(error);
		p = SCIMapRemoteSegment(seg[i], &map[i], 0, PAGE, NULL, 0, &error);
		CHECK_OK(error);
		sio_write32(p, i + 1);
	}
	step_done(WRITTEN);
	exchange_some(sd, seg, map);
	step_done(HELD);
	step_await(KILLED); /* which it does not live to see */
	return 1;
}

/* SCI_ERR_OK: the id was free; it is again. */
static sci_error_t try_id(sci_desc_t sd, unsigned id)
{
	sci_local_segment_t seg = NULL;
	sci_error_t error, gone;

	SCICreateSegment(sd, &seg, id, PAGE, NULL, NULL, SCI_FLAG_EMPTY, &error);
	if (error == SCI_ERR_OK) {
		SCIRemoveSegment(seg, 0, &gone);
		CHECK_OK(gone);
	} else {
		CHECK_IS(error, SCI_ERR_SEGMENTID_USED);
	}
	return error;
}

/*
 * The ids of a killed program become free one after the other. Whoever is answered when the first
 * one is free and the last one is not was served in the middle: how often depends on when this
 * program had a processor, and may be never. That the daemon serves others in between is held by
 * tests/smartiod/hostile_test.c, where nobody waits for a processor.
 */
static int bystander(void *arg)
{
	sci_desc_t sd = api_begin();
	unsigned served = 0;

	(void)arg;
	CHECK_IS(try_id(sd, FIRST_OWN), SCI_ERR_SEGMENTID_USED);
	step_done(READY);
	while (try_id(sd, FIRST_OWN) != SCI_ERR_OK)
		;
	while (try_id(sd, FIRST_OWN + count - 1) != SCI_ERR_OK)
		served++;
	fprintf(stderr, "served %u times while %u objects were taken back\n", served, 3 * count);
	api_end(sd);
	return 0;
}

static void one_program_holds_many(void **state)
{
	pid_t a, b, c;

	cluster_needs(NEEDS_HOSTS);
	steps_reset();
	a = cluster_fork(*state, 8, exporter, NULL);
	b = cluster_fork(*state, 4, holder, NULL);
	step_await(HELD);
	step_await(READY);
	c = cluster_fork(*state, 4, bystander, NULL);
	step_await(READY);
	kill(b, SIGKILL);
	assert_int_equal(cluster_wait(b), 128 + SIGKILL);
	assert_int_equal(cluster_wait(c), 0);
	kill(a, SIGKILL);
	assert_int_equal(cluster_wait(a), 128 + SIGKILL);
}

/* ---- what limits there are is told ---- */

static unsigned long limit_of_mappings(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
	unsigned long n = 0;

	if (f && fscanf(f, "%lu", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

#define FEW 40u

static int runs_out_of_descriptors(void *arg)
{
	struct rlimit few = {FEW, FEW};
	sci_local_segment_t seg = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error = SCI_ERR_OK;

	(void)arg;
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	for (unsigned i = 0; i < FEW && error == SCI_ERR_OK; i++)
		SCICreateSegment(sd, &seg, i, PAGE, NULL, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_NOSPC);
	CHECK(strstr(smartio_last_error(), "descriptor left of 40:"));
	CHECK(strstr(smartio_last_error(), "ulimit -n, up to 40"));
	SCITerminate();
	return 0;
}

/* Maps of one segment: as many as the process may have mappings. */
static int runs_out_of_mappings(void *arg)
{
	sci_local_segment_t seg = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;
	sci_map_t map;
	char number[24];

	(void)arg;
	SCICreateSegment(sd, &seg, 1, PAGE, NULL, NULL, 0, &error);
	CHECK_OK(error);
	for (unsigned long n = 0; error == SCI_ERR_OK && n <= limit_of_mappings(); n++)
		SCIMapLocalSegment(seg, &map, 0, PAGE, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_NOSPC);
	snprintf(number, sizeof(number), "%lu", limit_of_mappings());
	CHECK(strstr(smartio_last_error(), number));
	CHECK(strstr(smartio_last_error(), "vm.max_map_count"));
	_exit(0); /* with tens of thousands of maps */
}

static void limits_are_named(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, runs_out_of_descriptors, NULL)), 0);
	if (limit_of_mappings() <= 100000)
		assert_int_equal(cluster_wait(cluster_fork(*state, 4, runs_out_of_mappings, NULL)),
				 0);
}

/* ---- what this machine allows ---- */

/* The smartiod of the importer has two descriptors for each, and each host half of the room's. */
static void find_count(void)
{
	struct rlimit limit = {1u << 18, 1u << 18};
	unsigned long most, maps = limit_of_mappings();

	/* Whoever may raise the hard limit, too. */
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	most = limit.rlim_cur < maps ? limit.rlim_cur : maps;
	count = WANTED;
	if (2 * (unsigned long)count + SPARE > most) {
		count = (unsigned)(most - SPARE) / 2;
		fprintf(stderr,
			"%u instead of %u: %lu descriptors (ulimit -Hn) and %lu mappings "
			"(vm.max_map_count) are what this machine allows\n",
			count, WANTED, (unsigned long)limit.rlim_cur, maps);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(one_program_holds_many, audit),
		cmocka_unit_test_teardown(limits_are_named, audit),
	};

	find_count();
	return cmocka_run_group_tests(tests, up, down);
}
