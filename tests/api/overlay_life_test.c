/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members of exact multicast groups in BARs of borrowed devices: they come and go under traffic,
 * and what takes the pages away takes the member along, and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "overlay.h"

/* Two ways between the borrower and the lender. */
#define TWO_WAYS                                                                                   \
	"cluster: ways\n"                                                                          \
	"multicast: exact\n"                                                                       \
	"switches: [a, b]\n"                                                                       \
	"hosts:\n"                                                                                 \
	"  one:\n"                                                                                 \
	"    ram: 64M\n"                                                                           \
	"    adapters: [{to: a}, {to: b}]\n"                                                       \
	"    devices: {beside: {type: memory, size: 64K}}\n"                                       \
	"  two: {ram: 64M, adapters: [{to: a}, {to: b}]}\n"

/* Steps. */
enum { JOINED, READY, GO };

/* What programs tell one another. */
static struct {
	uint32_t sent, seen[HOSTS]; /* transfers to the group; taken by its members */
	uint32_t over;
} * told;

static int up_two_ways(void **state)
{
	return up_as(state, TWO_WAYS);
}

/* ---- members come and go ---- */

#define UNITS 8u
#define TURNS 12u

static uint32_t now(uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void tell(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static void until(uint32_t *word, uint32_t value)
{
	while ((int32_t)(now(word) - value) < 0 && !now(&told->over))
		sched_yield();
}

/* Misses no transfer. */
static int takes_each(void *arg)
{
	unsigned h = (unsigned)(uintptr_t)arg;
	sci_desc_t sd = api_begin();
	struct member m;

	member_join(&m, sd, GROUP, GROUP_BYTES, 0);
	step_done(JOINED);
	for (uint32_t n = 1; !now(&told->over); n++) {
		until(&told->sent, n);
		if (now(&told->over))
			break;
		CHECK(holds(m.memory, n % UNITS));
		tell(&told->seen[h], n);
	}
	member_leave(&m);
	api_end(sd);
	return 0;
}

/* One transfer after the other, until it is told to stop. */
static int sends_on(void *arg)
{
	static struct io io;
	struct member m;

	(void)arg;
	io_start(&io);
	fill_drive(&io, UNITS);
	member_join(&m, io.a.sd, GROUP, GROUP_BYTES, 0);
	for (unsigned i = 0; i < 2; i++)
		step_await(JOINED);
	reach_group(&io);
	step_done(READY);
	for (uint32_t n = 1; !now(&told->over); n++) {
		CHECK(io_command(&io, 0x02, io.group_at, n % UNITS) == 0);
		CHECK(holds(m.memory, n % UNITS));
		tell(&told->sent, n);
		for (unsigned h = 2; h < HOSTS; h++)
			until(&told->seen[h], n);
	}
	member_leave(&m);
	io_stop(&io);
	return 0;
}

#define MARK 0x5afe5afeu

static void mark(const struct target *t)
{
	for (unsigned i = 0; i < GROUP_BYTES; i += 4)
		put32(t->ram + PAGE + i, MARK);
	SCIFlush(NULL, 0);
	for (unsigned i = 0; i < GROUP_BYTES; i += 4)
		CHECK(get32(t->ram + PAGE + i) == MARK);
}

static bool is_marked(const struct target *t)
{
	for (unsigned i = 0; i < GROUP_BYTES; i += 4)
		if (get32(t->ram + PAGE + i) != MARK)
			return false;
	return true;
}

/* From its return on a joined device has all; from its return on one that left has none. */
static int comes_and_goes(void *arg)
{
	sci_desc_t sd = api_begin();
	struct target t = target_take(sd, arg, 0, 0);

	for (unsigned i = 0; i < TURNS; i++) {
		mark(&t);
		enter(&t);
		until(&told->sent, now(&told->sent) + 2);
		CHECK(!now(&told->over));
		for (unsigned at = 0; at < GROUP_BYTES; at += 4)
			CHECK((get32(t.ram + PAGE + at) & 0xffff) == at / 4);
		quit(&t);
		mark(&t);
		until(&told->sent, now(&told->sent) + 2);
		CHECK(!now(&told->over));
		CHECK(is_marked(&t));
	}
	target_return(&t);
	api_end(sd);
	return 0;
}

static void start_traffic(struct cluster *c, pid_t pid[3])
{
	memset(told, 0, sizeof(*told));
	steps_reset();
	pid[0] = cluster_fork(c, DRIVER, sends_on, NULL);
	for (unsigned h = 2; h < HOSTS; h++)
		pid[h - 1] = cluster_fork(c, 4 * (h + 1), takes_each, (void *)(uintptr_t)h);
	step_await(READY);
}

static void stop_traffic(pid_t pid[3])
{
	uint32_t sent = now(&told->sent);

	until(&told->sent, sent + 2);
	tell(&told->over, 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(cluster_wait(pid[i]), 0);
}

static void members_come_and_go_under_traffic(void **state)
{
	static char name[][8] = {"beside", "far"};
	struct cluster *c = *state;
	pid_t traffic[3], own[2];

	cluster_needs(NEEDS_MEMORY);
	start_traffic(c, traffic);
	/* One device joins by a program on its own host, the other by one on another host. */
	own[0] = cluster_fork(c, 4, comes_and_goes, name[0]);
	own[1] = cluster_fork(c, 16, comes_and_goes, name[1]);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(cluster_wait(own[i]), 0);
	stop_traffic(traffic);
}

/* ---- what takes the pages away ---- */

static int stays_a_member(void *arg)
{
	sci_desc_t sd = api_begin();
	struct target t = target_take(sd, arg, 0, 0);

	enter(&t);
	step_done(JOINED);
	for (;;)
		pause();
	return 0;
}

/* The memory is somebody else's then, whom nothing disturbs. */
static int has_it_next(void *arg)
{
	sci_desc_t sd = api_begin();
	struct target t = target_take(sd, arg, 0, 0);

	mark(&t);
	until(&told->sent, now(&told->sent) + 2);
	CHECK(!now(&told->over));
	CHECK(is_marked(&t));
	enter(&t);
	until(&told->sent, now(&told->sent) + 2);
	CHECK(!is_marked(&t));
	quit(&t);
	target_return(&t);
	api_end(sd);
	return 0;
}

static void a_killed_borrower_is_no_member(void **state)
{
	static char name[][8] = {"beside", "far"};
	struct cluster *c = *state;
	pid_t traffic[3];

	cluster_needs(NEEDS_MEMORY);
	start_traffic(c, traffic);
	for (unsigned i = 0; i < 4; i++) {
		pid_t pid = cluster_fork(c, i < 2 ? 16 : 12, stays_a_member, name[i % 2]);

		step_await(JOINED);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
		assert_int_equal(cluster_wait(cluster_fork(c, 16, has_it_next, name[i % 2])), 0);
	}
	stop_traffic(traffic);
}

static int loses_the_device(void *arg)
{
	sci_desc_t sd = api_begin();
	struct target t = target_take(sd, arg, 0, 0);
	sci_error_t error;

	enter(&t);
	step_done(JOINED);
	step_await(GO);
	while (!smartio_device_lost(t.device))
		sched_yield();
	smartio_join_group(t.bar, GROUP + 1, 0, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	quit(&t);
	target_return(&t);
	api_end(sd);
	return 0;
}

static void a_device_that_goes_is_no_member(void **state)
{
	static char name[] = "far";
	struct cluster *c = *state;
	pid_t traffic[3];

	cluster_needs(NEEDS_MEMORY);
	start_traffic(c, traffic);
	for (unsigned node = 12; node <= 16; node += 4) {
		pid_t pid = cluster_fork(c, node, loses_the_device, name);

		step_await(JOINED);
		assert_int_equal(cluster_slot(c, "far", false), 0);
		step_done(GO);
		assert_int_equal(cluster_wait(pid), 0);
		assert_int_equal(cluster_slot(c, "far", true), 0);
		assert_int_equal(cluster_wait(cluster_fork(c, 16, has_it_next, name)), 0);
	}
	stop_traffic(traffic);
}

/* No data of it passes between borrower and lender, so it goes over none of their ways. */
static int keeps_its_member(void *arg)
{
	sci_desc_t sd = api_begin();
	struct target t = {.device = NULL};
	sci_error_t error;

	smartio_borrow_device_over(sd, &t.device, find_device(arg), 1, 0, &error);
	CHECK_OK(error);
	t.bar = connect_bar(t.device, SIO_MEMDEV_BAR_RAM);
	enter(&t);
	step_done(JOINED);
	step_await(GO);
	t.ram = SCIMapRemoteSegment(t.bar, &t.map, 0, 4 * PAGE, NULL, 0, &error);
	CHECK_OK(error);
	mark(&t);
	CHECK(!smartio_device_lost(t.device));
	quit(&t);
	target_return(&t);
	api_end(sd);
	return 0;
}

static void another_way_that_goes_leaves_it(void **state)
{
	static char name[] = "beside";
	struct cluster *c = *state;
	pid_t pid;

	cluster_needs(NEEDS_MEMORY);
	steps_reset();
	pid = cluster_fork(c, DRIVER, keeps_its_member, name);
	step_await(JOINED);
	assert_int_equal(cluster_link(c, DRIVER, 0, false), 0);
	step_done(GO);
	assert_int_equal(cluster_wait(pid), 0);
	assert_int_equal(cluster_link(c, DRIVER, 0, true), 0);
}

int main(void)
{
	const struct CMUnitTest one_way[] = {
		cmocka_unit_test_teardown(members_come_and_go_under_traffic, audit),
		cmocka_unit_test_teardown(a_killed_borrower_is_no_member, audit),
		cmocka_unit_test_teardown(a_device_that_goes_is_no_member, audit),
	};
	const struct CMUnitTest two_ways[] = {
		cmocka_unit_test_teardown(another_way_that_goes_leaves_it, audit),
	};
	int failed;

	told = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED)
		return 1;
	failed = cmocka_run_group_tests(one_way, up, down);
	return failed + cmocka_run_group_tests(two_ways, up_two_ways, down);
}
