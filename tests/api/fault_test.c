/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each allocation and each call to the world fails once: the library reports an error or does
 * without, loses nothing, and goes on. The objects of the library are linked in, with a world that
 * passes on to the live one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "session/world.h"
#include "../lib/program.h"
#include "fault.h"
#include "topology.h"

#define PAGE 4096u
#define TRIES 4 /* of a packet: session/send.c */

/* world_live.c is compiled with these names changed. */
struct sio_world *sio_world_live(void);

static unsigned calls, failing; /* atomic; the failing-th call fails; 0: none */

static bool fails(enum fault_kind kind)
{
	if (__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) !=
	    __atomic_load_n(&failing, __ATOMIC_SEQ_CST))
		return false;
	__atomic_store_n(&fault_failed, kind, __ATOMIC_SEQ_CST);
	return true;
}

/* The @n-th call from now on, too; 0: none. */
static void arm_again(unsigned n)
{
	__atomic_store_n(&failing, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&calls, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&failing, n, __ATOMIC_SEQ_CST);
}

/* And nothing has failed yet. */
static void arm(unsigned n)
{
	__atomic_store_n(&fault_failed, FAULT_NONE, __ATOMIC_SEQ_CST);
	arm_again(n);
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails(FAULT_MEMORY) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails(FAULT_MEMORY) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails(FAULT_MEMORY) ? NULL : __real_realloc(p, size);
}

/* Packets are counted by themselves: none from the so-manieth on can be sent; 0: all can. */
static unsigned packets, no_room_from;
static __thread unsigned more; /* of the thread's sends fail: those of the packet that does */

static bool is_sent(void)
{
	unsigned n = __atomic_add_fetch(&packets, 1, __ATOMIC_SEQ_CST),
		 from = __atomic_load_n(&no_room_from, __ATOMIC_SEQ_CST);

	if (from && n >= from) {
		__atomic_store_n(&fault_failed, FAULT_UNSENT, __ATOMIC_SEQ_CST);
		return false;
	}
	if (more) {
		more--;
		return false;
	}
	if (fails(FAULT_UNSENT)) {
		more = TRIES - 1;
		return false;
	}
	return true;
}

static void arm_packets(unsigned n)
{
	__atomic_store_n(&no_room_from, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&packets, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&no_room_from, n, __ATOMIC_SEQ_CST);
}

static void relief(void)
{
	__atomic_store_n(&no_room_from, 0, __ATOMIC_SEQ_CST);
}

static int connect_or_fail(struct sio_world *w)
{
	return fails(FAULT_SYSTEM) ? -EMFILE : sio_world_live()->connect(w);
}

static ssize_t send_or_fail(struct sio_world *w, int fd, const void *buf, size_t len,
			    const int *fds, unsigned n_fds)
{
	return is_sent() ? sio_world_live()->send(w, fd, buf, len, fds, n_fds) : -ENOBUFS;
}

static int event_new_or_fail(struct sio_world *w)
{
	return fails(FAULT_SYSTEM) ? -EMFILE : sio_world_live()->event_new(w);
}

static int reserve_or_fail(struct sio_world *w, void *hint, bool fixed, size_t len, void **ret)
{
	return fails(FAULT_SYSTEM) ? -ENOMEM : sio_world_live()->reserve(w, hint, fixed, len, ret);
}

static unsigned wake_ways(struct sio_world *w)
{
	unsigned ways = sio_world_live()->wake_ways(w);

	return fault_no_faults ? ways & ~SIO_WAKE_FAULT : ways;
}

static int fault_new_or_fail(struct sio_world *w, void *at, size_t len)
{
	return fails(FAULT_SYSTEM) ? -EMFILE : sio_world_live()->fault_new(w, at, len);
}

static int map_or_fail(struct sio_world *w, void *at, size_t len, int prot, int fd, uint64_t offset)
{
	return fails(FAULT_SYSTEM) ? -ENOMEM : sio_world_live()->map(w, at, len, prot, fd, offset);
}

static int map_ones_or_fail(struct sio_world *w, void *at, size_t len)
{
	return fails(FAULT_SYSTEM) ? -ENOMEM : sio_world_live()->map_ones(w, at, len);
}

static int map_aside_or_fail(struct sio_world *w, void *at, size_t len, void **ret)
{
	return fails(FAULT_SYSTEM) ? -ENOMEM : sio_world_live()->map_aside(w, at, len, ret);
}

static int map_back_or_fail(struct sio_world *w, void *aside, void *at, size_t len)
{
	return fails(FAULT_SYSTEM) ? -ENOMEM : sio_world_live()->map_back(w, aside, at, len);
}

static int pages_adopt_or_fail(struct sio_world *w, void *at, size_t len, int fd)
{
	return fails(FAULT_SYSTEM) ? -ENOMEM : sio_world_live()->pages_adopt(w, at, len, fd);
}

static int pages_release_or_fail(struct sio_world *w, void *at, size_t len, int fd)
{
	return fails(FAULT_SYSTEM) ? -ENOMEM : sio_world_live()->pages_release(w, at, len, fd);
}

static int thread_start_or_fail(struct sio_world *w, void (*fn)(void *), void *arg,
				struct sio_world_thread **ret)
{
	return fails(FAULT_SYSTEM) ? -EAGAIN : sio_world_live()->thread_start(w, fn, arg, ret);
}

static int lock_new_or_fail(struct sio_world *w, struct sio_world_lock **ret)
{
	return fails(FAULT_SYSTEM) ? -ENOMEM : sio_world_live()->lock_new(w, ret);
}

static void log_nothing(struct sio_world *w, const char *text)
{
	(void)w;
	(void)text;
}

struct sio_world *sio_world_current(void)
{
	static struct sio_world world;

	if (!world.connect) {
		world = *sio_world_live();
		world.connect = connect_or_fail;
		world.send = send_or_fail;
		world.event_new = event_new_or_fail;
		world.reserve = reserve_or_fail;
		world.map = map_or_fail;
		world.map_ones = map_ones_or_fail;
		world.map_aside = map_aside_or_fail;
		world.map_back = map_back_or_fail;
		world.pages_adopt = pages_adopt_or_fail;
		world.pages_release = pages_release_or_fail;
		world.fault_new = fault_new_or_fail;
		world.wake_ways = wake_ways;
		world.thread_start = thread_start_or_fail;
		world.lock_new = lock_new_or_fail;
		world.log = log_nothing;
	}
	return &world;
}

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/*
 * What fails, and when: of @scenario (NULL: the library's beginning) the @n-th call; or the packets
 * from the @n-th on.
 */
struct turn {
	const struct fault_scenario *scenario;
	unsigned n;
	bool packets;
};

static void begin_turn(const struct turn *t)
{
	arm(t->packets ? 0 : t->n);
	arm_packets(t->packets ? t->n : 0);
}

/* What could not be sent has left nothing that the same session would meet once more. */
static void use_again(const struct turn *t, sci_desc_t sd)
{
	unsigned all = t->packets ? packets : calls;

	if (fault_failed != FAULT_UNSENT)
		return;
	arm(0);
	relief();
	t->scenario->use(sd);
	*(t->packets ? &packets : &calls) = all;
}

/* Return: whether there was a library to use. */
static bool use_once(const struct turn *t)
{
	sci_desc_t sd = NULL;
	sci_error_t error;

	arm(0);
	arm_packets(0);
	if (!t->scenario)
		begin_turn(t);
	SCIInitialize(0, &error);
	if (!worked_as(FAULT_BEGINS, error))
		return false;
	SCIOpen(&sd, 0, &error);
	if (worked(error)) {
		if (t->scenario) {
			begin_turn(t);
			t->scenario->use(sd);
			use_again(t, sd);
		}
		SCIClose(sd, 0, &error);
		CHECK_OK(error);
	}
	SCITerminate();
	return true;
}

/* Exit status: 0; 2: there were fewer calls than that. */
static int with_failure(void *arg)
{
	unsigned before = open_descriptors();
	struct turn t = *(struct turn *)arg;

	fault_relief = relief;
	use_once(&t);
	CHECK(open_descriptors() <= before + 1); /* the file of ones stays */
	if ((t.packets ? packets : calls) < t.n)
		return 2;
	/* As if nothing had been. */
	t.n = 0;
	CHECK(use_once(&t));
	CHECK(open_descriptors() <= before + 1);
	return 0;
}

/* ---- the same with a link that goes down and comes back ---- */

/* The parent does it: what it takes is no call of ours. */
static void ask_for_link(bool up)
{
	step_done(up ? 2 : 1);
	step_await(3);
}

/* As with_failure(). */
static int far_with_failure(void *arg)
{
	sci_desc_t sd = NULL;
	sci_error_t error;

	fault_link = ask_for_link;
	arm_again((unsigned)(uintptr_t)arg);
	fault_failed = FAULT_LINK;
	SCIInitialize(0, &error);
	if (worked_as(FAULT_BEGINS, error)) {
		SCIOpen(&sd, 0, &error);
		if (worked(error)) {
			use_far(sd);
			SCIClose(sd, 0, &error);
			CHECK_OK(error);
		}
		SCITerminate();
	}
	failing = 0;
	step_done(4);
	return calls < (unsigned)(uintptr_t)arg ? 2 : 0;
}

static int is_far(void *arg)
{
	(void)arg;
	fault_far_begin();
	step_done(0);
	step_await(5);
	SCITerminate();
	return 0;
}

static void each_call_fails_once_when_links_flap(void **state)
{
	static const unsigned steps[] = {1, 2, 4};
	unsigned n = 0, downs = 0;
	pid_t far;
	int rc;

	cluster_needs(NEEDS_LINK);
	steps_reset();
	far = cluster_fork(*state, 8, is_far, NULL);
	step_await(0);
	do {
		pid_t pid = cluster_fork(*state, 4, far_with_failure, (void *)(uintptr_t)++n);
		unsigned step;

		while ((step = step_await_any(steps, 3)) != 4) {
			assert_int_equal(cluster_link(*state, 8, 0, step == 2), 0);
			downs += step == 1;
			step_done(3);
		}
		rc = cluster_wait(pid);
		if (rc != 0 && rc != 2)
			fail_msg("with the %u-th call failing: exit status %d", n, rc);
	} while (rc == 0);
	assert_in_range(n, 30, 1000);
	assert_in_range(downs, n / 2, n);
	step_done(5);
	assert_int_equal(cluster_wait(far), 0);
}

/* ---- callbacks ---- */

static unsigned connects; /* atomic */

static sci_callback_action_t on_connect(void *arg, sci_local_segment_t segment,
					sci_segment_cb_reason_t reason, unsigned node,
					unsigned adapter, sci_error_t status)
{
	(void)arg;
	(void)segment;
	(void)node;
	(void)adapter;
	(void)status;
	if (reason == SCI_CB_CONNECT) {
		__atomic_add_fetch(&connects, 1, __ATOMIC_SEQ_CST);
		step_done(6);
	}
	return SCI_CALLBACK_CONTINUE;
}

/*
 * Of each connection the n-th call fails, the callback's own among them: those that are made are
 * told.
 */
static int connect_with_failures(void *arg)
{
	unsigned first = (unsigned)(uintptr_t)arg, made = 0, most = 0;
	sci_remote_segment_t far[3] = {NULL};
	sci_local_segment_t seg = NULL;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	SCICreateSegment(sd, &seg, 1, PAGE, on_connect, NULL, SCI_FLAG_USE_CALLBACK, &error);
	CHECK_OK(error);
	SCIPrepareSegment(seg, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(seg, 0, 0, &error);
	CHECK_OK(error);
	for (unsigned i = 0; i < 3; i++) {
		arm_again(first);
		SCIConnectSegment(sd, &far[i], 4, 1, 0, NULL, NULL, 0, 0, &error);
		made += found(error);
		most = calls > most ? calls : most;
	}
	for (unsigned i = 0; i < made; i++)
		step_await(6);
	failing = 0;
	CHECK(__atomic_load_n(&connects, __ATOMIC_SEQ_CST) == made);
	for (unsigned i = 0; i < 3; i++) {
		if (!far[i])
			continue;
		SCIDisconnectSegment(far[i], 0, &error);
		CHECK_OK(error);
	}
	api_remove_segment(seg);
	api_end(sd);
	return most < first ? 2 : 0;
}

static void callbacks_come_without_memory(void **state)
{
	unsigned n = 0;
	int rc;

	do {
		steps_reset();
		rc = cluster_wait(
			cluster_fork(*state, 4, connect_with_failures, (void *)(uintptr_t)++n));
		if (rc != 0 && rc != 2)
			fail_msg("with the %u-th call failing: exit status %d", n, rc);
	} while (rc == 0);
	assert_in_range(n, 4, 100);
}

/* Return: how many calls, or packets, there were to fail. */
static unsigned try_all(struct cluster *c, const struct fault_scenario *scenario, bool packets_fail)
{
	struct turn t = {.scenario = scenario, .packets = packets_fail};
	int rc;

	do {
		t.n++;
		rc = cluster_wait(cluster_fork(c, 4, with_failure, &t));
		if (rc != 0 && rc != 2)
			fail_msg("%s with %s failing: exit status %d, number %u",
				 scenario ? scenario->name : "library",
				 packets_fail ? "all packets from one on" : "a call", rc, t.n);
	} while (rc == 0);
	return t.n - 1;
}

static void try_scenarios(struct cluster *c, bool exact, bool packets_fail)
{
	for (const struct fault_scenario *s = fault_scenarios; s->name; s++) {
		bool groups = s->use == use_multicast || s->use == use_exact_multicast;
		/* Queries have no memory of their own; a machine has no engine. */
		unsigned least =
			s->use == use_queries || cluster_is_machine() || packets_fail ? 1 : 5;
		unsigned n;

		if (s->exact != exact || (groups && cluster_is_machine()))
			continue;
		n = try_all(c, s, packets_fail);
		fprintf(stderr, "%s: %u %s failed, one by one\n", s->name, n,
			packets_fail ? "packets and all behind them" : "calls");
		assert_in_range(n, least, 500); /* the whole scenario */
	}
	/* A failure may have ended the connection while memory was mapped for the device. */
	assert_int_equal(cluster_wait(cluster_fork(c, 4, program_settle, NULL)), 0);
}

static void each_call_fails_once(void **state)
{
	assert_in_range(try_all(*state, NULL, false), 10, 500);
	try_scenarios(*state, false, false);
}

/* For want of memory: each call says so, what is ended is ended, nothing is left with smartiod. */
static void no_packet_is_sent_from_one_on(void **state)
{
	assert_in_range(try_all(*state, NULL, true), 1, 10);
	try_scenarios(*state, false, true);
}

static void each_call_fails_once_in_exact_groups(void **state)
{
	struct cluster *c;

	(void)state;
	cluster_needs(NEEDS_GROUPS);
	c = cluster_up("cluster: exact\n"
		       "switches: [sw0]\n"
		       "multicast: exact\n"
		       "hosts:\n"
		       "  one: {ram: 64M, iommu: on, devices: {nvme0: {type: nvme, size: 4M}}}\n"
		       "  two: {ram: 64M}\n");
	assert_non_null(c);
	try_scenarios(c, true, false);
	try_scenarios(c, true, true);
	assert_int_equal(cluster_down(c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(callbacks_come_without_memory),
		API_TEST(each_call_fails_once),
		API_TEST(no_packet_is_sent_from_one_on),
		API_TEST(each_call_fails_once_in_exact_groups),
		API_TEST(each_call_fails_once_when_links_flap),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
