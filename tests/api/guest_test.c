/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a relay to virtual machines needs (smartio/guest.h): memory of a descriptor at addresses of
 * one's own choice, interrupts that trigger an eventfd, files of BAR pages, resets that leave them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "admin.h"
#include "smartio/guest.h"
#include "topology.h"

#define PAGE 4096u
#define PAGES 16u

/* A machine's memory, as its emulator would make it. */
static int machine_memory(unsigned char **ret, int seals)
{
	int fd = memfd_create("machine", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && ftruncate(fd, PAGES * PAGE) == 0);
	CHECK(fcntl(fd, F_ADD_SEALS, seals) == 0);
	*ret = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(*ret != MAP_FAILED);
	return fd;
}

static sci_local_segment_t import(sci_desc_t sd, int fd, uint64_t offset, size_t size)
{
	sci_local_segment_t s = NULL;
	sci_error_t error;

	smartio_import_segment(sd, &s, 0, fd, offset, size, SCI_FLAG_AUTO_ID, &error);
	CHECK_OK(error);
	SCIPrepareSegment(s, 0, 0, &error);
	CHECK_OK(error);
	return s;
}

/* Identify Controller, to @at as the drive addresses it. */
static void identify(struct admin *a, uint64_t at)
{
	admin_command(a, 6, 0, at, 1);
	admin_await(a);
}

/* VFIO serves none; of smartio.ko vm passthrough and shim_domain.c have these. */
#define NEEDS_RELAY "a port that serves relays"

static int uses_memory(void *arg)
{
	static const uint64_t places[] = {0, 0x7000, 0x10000000 - PAGE, 1ull << 40};
	unsigned char *ram;
	struct admin a;
	sci_local_segment_t s;
	sci_error_t error;
	int fd;

	(void)arg;
	admin_start(&a);
	fd = machine_memory(&ram, F_SEAL_SHRINK);
	/* Below, across and far above what is handed out to whoever asks for any address. */
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		s = import(a.sd, fd, 2 * PAGE, 4 * PAGE);
		memset(ram, 0, PAGES * PAGE);
		smartio_map_segment_at(s, 0, a.device, places[i], PAGE, 2 * PAGE, 0, &error);
		CHECK_OK(error);
		identify(&a, places[i]);
		CHECK(ram[3 * PAGE] != 0 && ram[2 * PAGE] == 0 && ram[4 * PAGE + 1] == 0);
		smartio_map_segment_at(s, 0, a.device, places[i], 0, PAGE, 0, &error);
		CHECK_IS(error, SCI_ERR_HW_NOSPC);
		SCIUnmapLocalSegmentForDevice(s, 0, a.device, 0, &error);
		CHECK_OK(error);
		SCIRemoveSegment(s, 0, &error);
		CHECK_OK(error);
	}
	CHECK(close(fd) == 0);
	admin_stop(&a);
	return 0;
}

static void memory_of_a_descriptor_at_a_chosen_address(void **state)
{
	cluster_needs(NEEDS_RELAY);
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, uses_memory, NULL)), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, uses_memory, NULL)), 0);
}

/*
 * Identify Controller into the middle of @file, of @bytes, as memory of this program's. Nobody has
 * touched the pages before: what the device writes there is nevertheless seen by the program.
 */
static void file_is_target(struct admin *a, int file, uint64_t offset, size_t bytes)
{
	sci_local_segment_t s = import(a->sd, file, offset, bytes);
	volatile uint8_t *seen =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
	sci_ioaddr_t at = 0;
	sci_error_t error;

	CHECK(seen != MAP_FAILED);
	SCIMapLocalSegmentForDevice(s, 0, a->device, &at, 0, bytes, 0, &error);
	CHECK_OK(error);
	identify(a, at + PAGE);
	CHECK(seen[PAGE] != 0); /* PCI vendor */
	for (size_t i = 0; i < PAGE; i++)
		CHECK(seen[i] == 0);
	SCIUnmapLocalSegmentForDevice(s, 0, a->device, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(s, 0, &error);
	CHECK_OK(error);
	CHECK(munmap((void *)(uintptr_t)seen, bytes) == 0);
}

#define HUGE (2u << 20)

/* Huge pages, if there are two, on kernels of their own; what /dev/dax has, by VFIO alone. */
static void other_files(struct admin *a)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	if (cluster_is_machine() && fd >= 0 && fallocate(fd, 0, 0, 2 * HUGE) == 0) {
		CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
		file_is_target(a, fd, HUGE, HUGE);
		printf("huge pages of the program\n");
	}
	if (fd >= 0)
		close(fd);
	fd = open("/dev/dax0.0", O_RDWR | O_CLOEXEC);
	if (cluster_is_vfio() && fd >= 0) {
		file_is_target(a, fd, HUGE, HUGE);
		printf("pages of /dev/dax0.0\n");
	}
	if (fd >= 0)
		close(fd);
}

static int uses_files(void *arg)
{
	unsigned char *ram;
	struct admin a;
	int fd;

	(void)arg;
	admin_start(&a);
	for (unsigned i = 0; i < PAGES - 2; i += 5) {
		fd = machine_memory(&ram, F_SEAL_SHRINK);
		CHECK(fallocate(fd, 0, 0, PAGES * PAGE) == 0);
		file_is_target(&a, fd, i * PAGE, (PAGES - i) * PAGE);
		close(fd);
		CHECK(munmap(ram, PAGES * PAGE) == 0);
	}
	other_files(&a);
	admin_stop(&a);
	return 0;
}

static void files_of_the_program_are_memory_for_a_device(void **state)
{
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, uses_files, NULL)), 0);
}

static int is_refused_memory(void *arg)
{
	unsigned char *ram;
	sci_local_segment_t s = NULL;
	sci_smartio_device_t device;
	sci_map_t map;
	sci_error_t error;
	sci_desc_t sd = api_begin();
	int fd = machine_memory(&ram, F_SEAL_GROW), good = machine_memory(&ram, F_SEAL_SHRINK);
	int huge = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	(void)arg;
	if (huge >= 0) { /* this kernel has them */
		CHECK(ftruncate(huge, 2 << 20) == 0);
		CHECK(fcntl(huge, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
		smartio_import_segment(sd, &s, 0, huge, 0, PAGE, SCI_FLAG_AUTO_ID, &error);
		CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
		close(huge);
	}
	smartio_import_segment(sd, &s, 0, fd, 0, PAGE, SCI_FLAG_AUTO_ID, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_import_segment(sd, &s, 0, -1, 0, PAGE, SCI_FLAG_AUTO_ID, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_import_segment(sd, &s, 0, good, 0, PAGE + 1, SCI_FLAG_AUTO_ID, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_import_segment(sd, &s, 0, good, 0, (PAGES + 1) * PAGE, SCI_FLAG_AUTO_ID, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_import_segment(sd, &s, 0, good, 0, 1 << 30, SCI_FLAG_AUTO_ID, &error);
	CHECK_IS(error, SCI_ERR_NOSPC);
	smartio_import_segment(sd, &s, 0, good, 0, PAGE, SCI_FLAG_EMPTY, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	smartio_import_segment(sd, NULL, 0, good, 0, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	/* Nobody else gets its file. */
	s = import(sd, good, 0, PAGE);
	SCIMapLocalSegment(s, &map, 0, PAGE, NULL, 0, &error);
	CHECK_IS(error, SCI_ERR_NOT_SUPPORTED);
	SCIShareSegment(s, 0, &error);
	CHECK(error != SCI_ERR_OK);
	SCISetSegmentAvailable(s, 0, 0, &error);
	CHECK(error != SCI_ERR_OK);
	/* Addresses are for whoever is alone. */
	device = api_borrow(sd, 0);
	smartio_map_segment_at(s, 0, device, 0x7000, 0, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	smartio_device_restart(device, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	device = api_borrow(sd, SCI_FLAG_EXCLUSIVE);
	smartio_map_segment_at(s, 0, device, 0x7001, 0, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_map_segment_at(s, 0, device, 1ull << 60, 0, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_map_segment_at(s, 0, device, 0xfee00000, 0, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_HW_NOSPC); /* where messages go */
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(s, 0, &error);
	CHECK_OK(error);
	CHECK(close(fd) == 0 && close(good) == 0);
	api_end(sd);
	return 0;
}

static void what_memory_is_refused(void **state)
{
	cluster_needs(NEEDS_RELAY);
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, is_refused_memory, NULL)), 0);
}

/* While addresses are chosen nobody else can have the device; then again, and it stays open. */
static int opens(void *arg)
{
	unsigned char *ram;
	int fd = machine_memory(&ram, F_SEAL_SHRINK);
	sci_local_segment_t s;
	sci_smartio_device_t device;
	sci_error_t error;
	sci_desc_t sd = api_begin();

	(void)arg;
	s = import(sd, fd, 0, 2 * PAGE);
	device = api_borrow(sd, SCI_FLAG_EXCLUSIVE);
	smartio_map_segment_at(s, 0, device, 0x7000, 0, PAGE, 0, &error);
	CHECK_OK(error);
	SCIReleaseExclusiveBorrow(device, 0, &error);
	CHECK_IS(error, SCI_ERR_BUSY);
	CHECK(strstr(smartio_last_error(), "at an address that was chosen") != NULL);
	SCIUnmapLocalSegmentForDevice(s, 0, device, 0, &error);
	CHECK_OK(error);
	SCIReleaseExclusiveBorrow(device, 0, &error);
	CHECK_OK(error);
	smartio_map_segment_at(s, 0, device, 0x7000, 0, PAGE, 0, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	SCIRemoveSegment(s, 0, &error);
	CHECK_OK(error);
	CHECK(close(fd) == 0);
	api_end(sd);
	return 0;
}

static void whoever_chooses_addresses_stays_alone(void **state)
{
	cluster_needs(NEEDS_RELAY);
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, opens, NULL)), 0);
}

/* An eventfd's interrupt, and another program that knows its number. */
#define OWN_NUMBER 11u

static int is_stranger(void *arg)
{
	sci_remote_interrupt_t to;
	sci_error_t error;
	sci_desc_t sd = api_begin();

	(void)arg;
	SCIConnectInterrupt(sd, &to, 8, 0, OWN_NUMBER, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ACCESS);
	CHECK(strstr(smartio_last_error(), "a program's own eventfd") != NULL);
	api_end(sd);
	return 0;
}

static int has_own(void *arg)
{
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	unsigned number = OWN_NUMBER;
	sci_remote_interrupt_t to;
	sci_local_interrupt_t i;
	sci_error_t error;
	eventfd_t count;
	sci_desc_t sd = api_begin();

	(void)arg;
	smartio_import_interrupt(sd, &i, 0, &number, event, SCI_FLAG_FIXED_INTNO, &error);
	CHECK_OK(error);
	CHECK(smartio_interrupt_fd(i) < 0);
	step_done(0);
	step_await(1);
	CHECK(eventfd_read(event, &count) < 0);
	SCIConnectInterrupt(sd, &to, 8, 0, OWN_NUMBER, 0, 0, &error);
	CHECK_OK(error);
	SCIDisconnectInterrupt(to, 0, &error);
	CHECK_OK(error);
	SCIRemoveInterrupt(i, 0, &error);
	CHECK_OK(error);
	CHECK(close(event) == 0);
	api_end(sd);
	return 0;
}

static void an_eventfd_is_triggered_by_whom_its_program_lets(void **state)
{
	pid_t pid;

	cluster_needs(NEEDS_RELAY);
	steps_reset();
	pid = cluster_fork(*state, 8, has_own, NULL);
	step_await(0);
	/* Of the same host, and of another one. */
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, is_stranger, NULL)), 0);
	assert_int_equal(cluster_wait(cluster_fork(*state, 4, is_stranger, NULL)), 0);
	step_done(1);
	assert_int_equal(cluster_wait(pid), 0);
}

static int hears(void *arg)
{
	unsigned number = 0, file_number = 7, vector = 0;
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), null = open("/dev/null", O_RDWR);
	sci_remote_interrupt_t to;
	sci_local_interrupt_t i;
	struct admin a;
	sci_error_t error;
	eventfd_t count;

	(void)arg;
	admin_start(&a);
	smartio_import_interrupt(a.sd, &i, 0, &number, null, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_import_interrupt(a.sd, &i, 0, &number, -1, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	smartio_import_interrupt(a.sd, &i, 0, &number, event, SCI_FLAG_SHARED_INT, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_FLAG);
	smartio_import_interrupt(a.sd, &i, 0, &file_number, event, SCI_FLAG_FIXED_INTNO, &error);
	CHECK_OK(error);
	CHECK_IS(file_number, 7);
	SCIWaitForInterrupt(i, 0, 0, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIConnectInterrupt(a.sd, &to, 8, 0, 7, SCI_INFINITE_TIMEOUT, 0, &error);
	CHECK_OK(error);
	SCITriggerInterrupt(to, 0, &error);
	CHECK_OK(error);
	CHECK(eventfd_read(event, &count) == 0 && count == 1);
	smartio_connect_device_interrupt(a.device, &vector, to, &error);
	CHECK_OK(error);
	SCIDisconnectInterrupt(to, 0, &error);
	CHECK_OK(error);
	admin_submit(&a);
	admin_await(&a);
	while (eventfd_read(event, &count) < 0)
		smartio_yield();
	smartio_disconnect_device_interrupt(a.device, 0, &error);
	CHECK_OK(error);
	SCIRemoveInterrupt(i, 0, &error);
	CHECK_OK(error);
	CHECK(eventfd_read(event, &count) < 0); /* nothing of ours is written there */
	CHECK(close(event) == 0 && close(null) == 0);
	admin_stop(&a);
	return 0;
}

static void an_interrupt_triggers_an_eventfd(void **state)
{
	cluster_needs(NEEDS_RELAY);
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, hears, NULL)), 0);
}

static int hands_on(void *arg)
{
	struct smartio_device_layout layout;
	volatile uint32_t *bells;
	uint64_t offset = 0;
	struct admin a;
	size_t bytes = 0;
	sci_map_t map;
	sci_error_t error;
	unsigned fdid;
	int fd;

	(void)arg;
	admin_start(&a);
	smartio_find_device("nvme0", &fdid, &error);
	CHECK_OK(error);
	smartio_device_layout(fdid, &layout, &error);
	CHECK_OK(error);
	CHECK(layout.bar_size[0] >= 2 * PAGE && layout.msix_count > 0 && layout.translated == 1);
	CHECK(layout.class_code == 0x010802 && layout.resets == 1);
	smartio_device_layout(fdid + 1, &layout, &error);
	CHECK_IS(error, SCI_ERR_NO_SUCH_FDID);
	smartio_device_layout(fdid, NULL, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	CHECK(smartio_map_file(a.regs_map, 0, &offset, &bytes, &error) < 0);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	SCIUnmapSegment(a.bells_map, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(a.bar, &map, PAGE, PAGE, NULL, SMARTIO_FLAG_KEEP_FILES, &error);
	CHECK_OK(error);
	fd = smartio_map_file(map, 0, &offset, &bytes, &error);
	CHECK_OK(error);
	CHECK(fd >= 0 && bytes == PAGE);
	bells = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
	CHECK(bells != MAP_FAILED);
	/* A reset that leaves them: what is stored there still reaches the drive. */
	smartio_device_restart(a.device, &error);
	CHECK_OK(error);
	admin_enable(&a);
	SCIUnmapSegment(a.bells_map, 0, &error);
	CHECK_OK(error);
	a.bells_map = map;
	a.bells = (volatile uint8_t *)bells;
	for (unsigned i = 0; i < 40; i++) {
		admin_submit(&a);
		admin_await(&a);
	}
	CHECK(munmap((void *)(uintptr_t)bells, PAGE) == 0);
	a.bells = NULL;
	admin_stop(&a);
	return 0;
}

static void pages_of_a_bar_are_handed_on(void **state)
{
	cluster_needs(NEEDS_RELAY);
	setenv("SMARTIO_WAKE", "timer", 1);
	assert_int_equal(cluster_wait(cluster_fork(*state, 8, hands_on, NULL)), 0);
	unsetenv("SMARTIO_WAKE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(memory_of_a_descriptor_at_a_chosen_address),
		API_TEST(files_of_the_program_are_memory_for_a_device),
		API_TEST(what_memory_is_refused),
		API_TEST(whoever_chooses_addresses_stays_alone),
		API_TEST(an_interrupt_triggers_an_eventfd),
		API_TEST(an_eventfd_is_triggered_by_whom_its_program_lets),
		API_TEST(pages_of_a_bar_are_handed_on),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
