/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From device to device: what was mapped for a device is cut when the pages are not the borrower's
 * any more: by a reset, with the borrow, with the device, its host or the link. With IOMMUs, and
 * without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "p2p.h"

/* What children tell one another. */
static struct {
	uint64_t at;
} * told;

/* Without an IOMMU nothing stops a device inside of its host. */
static bool can_cut(const char *name)
{
	return with_iommu || strcmp(name, "beside") != 0;
}

/*
 * What was at @at is cut: with an IOMMU when we hear of why, else as soon as the drive's lender has
 * given its window back.
 */
static void is_cut(struct admin *a, sci_ioaddr_t at)
{
	uint64_t before = faults();

	do {
		identify_anyhow(a, at);
	} while (!with_iommu && faults() == before);
	CHECK(faults() > before);
}

/*
 * The doorbell is a fresh page after a reset; the RAM is zeroed, and stays where it is. Without an
 * IOMMU they are not mapped together: both lie in what one look-up entry shows.
 */
static int resets_the_target(void *arg)
{
	static struct admin a;
	sci_remote_segment_t bar;
	sci_ioaddr_t bell, ram;
	volatile uint8_t *p;
	struct target t;
	uint64_t before;
	sci_error_t error;
	sci_map_t map, regs;

	admin_start(&a);
	t = target_take(a.sd, arg, SCI_FLAG_EXCLUSIVE, PAGE);
	bar = connect_bar(t.device, SIO_MEMDEV_BAR_REGISTERS);
	SCIMapRemoteSegment(bar, &regs, 0, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	ram = map_for(t.bar, a.device, PAGE, PAGE);
	identify(&a, ram);
	CHECK(is_identity(t.ram));
	if (!with_iommu)
		unmap_for(t.bar, a.device);
	bell = map_for(bar, a.device, PAGE, PAGE);
	before = faults();
	identify(&a, bell);
	CHECK(faults() == before);
	smartio_device_reset(t.device, &error);
	CHECK_OK(error);
	CHECK(get32(t.ram) == 0);
	p = SCIMapRemoteSegment(bar, &map, PAGE, PAGE, NULL, 0, &error);
	CHECK_OK(error);
	CHECK(get32(p) == 0);
	if (can_cut(arg)) {
		is_cut(&a, bell);
		put32(p + 8, 0x600d);
		SCIFlush(NULL, 0);
		is_cut(&a, bell);
		CHECK(get32(p + 8) == 0x600d);
	}
	if (!with_iommu)
		ram = map_for(t.bar, a.device, PAGE, PAGE);
	identify(&a, ram);
	CHECK(is_identity(t.ram));
	/* It can be mapped again, beside what is cut. */
	CHECK(map_for(bar, a.device, PAGE, PAGE) != bell || !with_iommu);
	unmap_for(bar, a.device);
	unmap_for(t.bar, a.device);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	drop_bar(bar, regs);
	target_return(&t);
	admin_stop(&a);
	return 0;
}

static void a_reset_of_the_target_cuts_its_doorbells(void **state)
{
	struct cluster *c = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned k = 0; k < PLACES; k++)
		assert_int_equal(
			cluster_wait(cluster_fork(c, BORROWER, resets_the_target, places[k])), 0);
}

/* The drive's manager stays; who has mapped pages for the drive dies. */
static int dies_with_pages_mapped(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t drive = api_borrow(sd, 0);
	struct target t = target_take(sd, arg, 0, PAGE);

	told->at = map_for(t.bar, drive, PAGE, PAGE);
	step_done(1);
	step_await(2);
	CHECK(is_identity(t.ram));
	kill(getpid(), SIGKILL);
	return 1;
}

static int drives_on(void *arg)
{
	struct smartio_device_event event;
	static struct admin a;
	uint64_t before;
	struct target t;
	sci_error_t error;

	admin_start(&a);
	SCIReleaseExclusiveBorrow(a.device, 0, &error);
	CHECK_OK(error);
	step_done(0);
	step_await(1);
	before = faults();
	identify(&a, told->at);
	CHECK(faults() == before);
	step_done(2);
	do { /* our own resets are told, too */
		smartio_wait_device_event(a.device, &event, SCI_INFINITE_TIMEOUT, &error);
		CHECK_OK(error);
	} while (event.kind == SMARTIO_DEVICE_RESET);
	CHECK(event.kind == SMARTIO_DEVICE_BORROWER_GONE);
	/* Its pages are another one's now, though nobody has settled anything. */
	t = target_take(a.sd, arg, SCI_FLAG_EXCLUSIVE, PAGE);
	CHECK(get32(t.ram) == 0);
	if (can_cut(arg)) {
		is_cut(&a, told->at);
		put_all(t.ram, 0, PAGE);
		SCIFlush(NULL, 0);
		is_cut(&a, told->at);
		CHECK(get32(t.ram) == 0);
	}
	smartio_device_settled(a.device, event.borrower, &error);
	CHECK_OK(error);
	target_return(&t);
	admin_stop(&a);
	return 0;
}

static void the_end_of_the_borrow_cuts(void **state)
{
	struct cluster *c = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned k = 0; k < PLACES; k++) {
		pid_t a, b;

		steps_reset();
		a = cluster_fork(c, BORROWER, drives_on, places[k]);
		step_await(0);
		b = cluster_fork(c, BORROWER, dies_with_pages_mapped, places[k]);
		assert_int_equal(cluster_wait(b), 128 + SIGKILL);
		assert_int_equal(cluster_wait(a), 0);
	}
}

/* The drive reaches memory of device @name until that is lost, and then back, as another one. */
static sci_ioaddr_t reach_until_lost(struct admin *a, struct target *t, const char *name)
{
	struct smartio_device_event event;
	sci_error_t error;
	sci_ioaddr_t at;

	*t = target_take(a->sd, name, 0, PAGE);
	at = map_for(t->bar, a->device, PAGE, PAGE);
	identify(a, at);
	CHECK(is_identity(t->ram));
	step_done(0);
	smartio_wait_device_event(t->device, &event, SCI_INFINITE_TIMEOUT, &error);
	CHECK_OK(error);
	CHECK(event.kind == SMARTIO_DEVICE_LOST);
	step_await(1);
	return at;
}

static int loses_the_target(void *arg)
{
	static struct admin a;
	sci_ioaddr_t at;
	struct target t;
	sci_error_t error;

	admin_start(&a);
	at = reach_until_lost(&a, &t, arg);
	if (can_cut(arg))
		is_cut(&a, at);
	CHECK(get32(t.ram) == 0xffffffff);
	SCIMapRemoteSegmentForDevice(t.bar, a.device, &at, PAGE, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_CONNECTED);
	unmap_for(t.bar, a.device);
	target_return(&t);
	t = target_take(a.sd, arg, 0, PAGE);
	CHECK(get32(t.ram) == 0);
	target_return(&t);
	admin_stop(&a);
	return 0;
}

static void a_target_that_goes_is_cut(void **state)
{
	struct cluster *c = *state;

	cluster_needs(NEEDS_MEMORY);
	for (unsigned k = 0; k < PLACES; k++) {
		pid_t a;

		steps_reset();
		a = cluster_fork(c, BORROWER, loses_the_target, places[k]);
		step_await(0);
		assert_int_equal(cluster_slot(c, places[k], false), 0);
		assert_int_equal(cluster_slot(c, places[k], true), 0);
		step_done(1);
		assert_int_equal(cluster_wait(a), 0);
	}
}

static int loses_the_host(void *arg)
{
	static struct admin a;
	sci_ioaddr_t at;
	struct target t;

	admin_start(&a);
	at = reach_until_lost(&a, &t, arg);
	is_cut(&a, at);
	unmap_for(t.bar, a.device);
	target_return(&t);
	t = target_take(a.sd, arg, 0, PAGE);
	CHECK(get32(t.ram) == 0);
	at = map_for(t.bar, a.device, PAGE, PAGE);
	identify(&a, at);
	CHECK(is_identity(t.ram));
	unmap_for(t.bar, a.device);
	target_return(&t);
	admin_stop(&a);
	return 0;
}

static void a_host_or_link_that_goes_is_cut(void **state)
{
	struct cluster *c = *state;
	char name[] = "far";

	cluster_needs(NEEDS_MEMORY);
	for (unsigned k = 0; k < 2; k++) {
		pid_t a;

		steps_reset();
		a = cluster_fork(c, BORROWER, loses_the_host, name);
		step_await(0);
		if (k == 0) {
			cluster_crash(c, 12);
			assert_int_equal(cluster_restart(c, 12, 4), 0);
			assert_int_equal(cluster_reaches(c, 8), 0);
		} else {
			assert_int_equal(cluster_link(c, 12, 0, false), 0);
			assert_int_equal(cluster_link(c, 12, 0, true), 0);
			assert_int_equal(cluster_reaches(c, 4), 0);
			assert_int_equal(cluster_reaches(c, 8), 0);
		}
		step_done(1);
		assert_int_equal(cluster_wait(a), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_reset_of_the_target_cuts_its_doorbells, audit),
		cmocka_unit_test_teardown(the_end_of_the_borrow_cuts, audit),
		cmocka_unit_test_teardown(a_target_that_goes_is_cut, audit),
		cmocka_unit_test_teardown(a_host_or_link_that_goes_is_cut, audit),
	};
	int failed;

	told = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED)
		return 1;
	failed = cmocka_run_group_tests_name("with IOMMUs", tests, up_with, down);
	return failed + cmocka_run_group_tests_name("without", tests, up_without, down);
}
