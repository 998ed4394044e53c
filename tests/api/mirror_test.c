/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A map of a whole BAR, for its doorbells, of a device whose registers another borrower holds: they
 * are shown as they are, and a store to them says why it ends the program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "smartio/io.h"
#include "topology.h"

#define PAGE 4096u
#define NVME_VS 8     /* register: version */
#define NVME_AQA 0x24 /* register: sizes of the admin queues, which can be read back */

static sigjmp_buf back;
static int log_end[2]; /* a pipe that is our standard error */

static volatile uint8_t *map_bar(sci_smartio_device_t device, sci_remote_segment_t *bar,
				 sci_map_t *map)
{
	volatile uint8_t *p;
	sci_error_t error;

	SCIConnectDeviceSegment(device, bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_OK(error);
	p = SCIMapRemoteSegment(*bar, map, 0, 2 * PAGE, NULL, SCI_FLAG_IO_MAP_IOSPACE, &error);
	CHECK_OK(error);
	return p;
}

static void unmap_bar(sci_desc_t sd, sci_smartio_device_t device, sci_remote_segment_t bar,
		      sci_map_t map)
{
	sci_error_t error;

	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(bar, 0, &error);
	CHECK_OK(error);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
	api_end(sd);
}

static int holder(void *arg)
{
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = api_borrow(sd, 0);
	sci_remote_segment_t bar = NULL;
	volatile uint8_t *p;
	sci_map_t map;

	(void)arg;
	p = map_bar(device, &bar, &map);
	CHECK(smartio_holds_registers(device));
	sio_write32(p + NVME_AQA, 3 << 16 | 3);
	step_done(0);
	step_await(1);
	sio_write32(p + NVME_AQA, 7 << 16 | 7);
	step_done(2);
	step_await(3);
	unmap_bar(sd, device, bar, map);
	return 0;
}

static void begin_log(void)
{
	CHECK(pipe(log_end) == 0);
	CHECK(dup2(log_end[1], STDERR_FILENO) == STDERR_FILENO);
}

/* What has been written, which is there already. */
static void read_log(char *text, size_t size)
{
	ssize_t n;

	CHECK(write(log_end[1], "\n", 1) == 1); /* the end, also of nothing */
	n = read(log_end[0], text, size - 1);
	CHECK(n > 0);
	text[n] = '\0';
}

static void await_register(const volatile uint8_t *p, uint32_t value)
{
	while (sio_read32(p + NVME_AQA) != value)
		smartio_yield();
}

static void on_fault(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

static void store_and_come_back(volatile uint8_t *p, uint32_t value)
{
	if (sigsetjmp(back, 1) == 0) {
		sio_write32(p + NVME_AQA, value);
		CHECK(!"a store to a mirror ended as if it were none");
	}
}

/*
 * With a handler of its own, set before: the first store has a line, and the handler gets them all.
 */
static int goes_on(void *arg)
{
	struct sigaction ours = {.sa_handler = on_fault};
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = api_borrow(sd, 0);
	sci_remote_segment_t bar = NULL;
	volatile uint8_t *p;
	char text[1024];
	sci_map_t map;

	(void)arg;
	step_await(0);
	begin_log();
	CHECK(sigaction(SIGSEGV, &ours, NULL) == 0);
	p = map_bar(device, &bar, &map);
	CHECK(!smartio_holds_registers(device));
	await_register(p, 3 << 16 | 3);
	store_and_come_back(p, 1 << 16 | 1);
	read_log(text, sizeof(text));
	CHECK(strstr(text, "libsmartio: store to offset 0x24 of BAR 0 of device 0x") == text);
	CHECK(strstr(text, "another borrower holds these registers") != NULL);
	CHECK(sio_read32(p + NVME_AQA) == (3 << 16 | 3));
	store_and_come_back(p, 1 << 16 | 1);
	read_log(text, sizeof(text));
	CHECK(!strcmp(text, "\n"));
	/* The registers go on to be those of the device; doorbells are written. */
	step_done(1);
	step_await(2);
	await_register(p, 7 << 16 | 7);
	sio_write32(p + PAGE, 0);
	unmap_bar(sd, device, bar, map);
	/* Other faults are the program's own. */
	if (sigsetjmp(back, 1) == 0)
		raise(SIGSEGV);
	read_log(text, sizeof(text));
	CHECK(!strcmp(text, "\n"));
	step_done(3);
	return 0;
}

static void the_first_store_to_a_mirror_has_a_line(void **state)
{
	pid_t a, b;

	steps_reset();
	a = cluster_fork(*state, 8, holder, NULL);
	b = cluster_fork(*state, 12, goes_on, NULL);
	assert_int_equal(cluster_wait(b), 0);
	assert_int_equal(cluster_wait(a), 0);
}

/* Without a handler of its own the program ends as ever. */
static int ends(void *arg)
{
	const struct rlimit none = {0, 0};
	sci_desc_t sd = api_begin();
	sci_smartio_device_t device = api_borrow(sd, 0);
	sci_remote_segment_t bar = NULL;
	volatile uint8_t *p;
	sci_map_t map;

	(void)arg;
	step_await(0);
	CHECK(setrlimit(RLIMIT_CORE, &none) == 0);
	CHECK(dup2(log_end[1], STDERR_FILENO) == STDERR_FILENO);
	signal(SIGSEGV, SIG_DFL);
	p = map_bar(device, &bar, &map);
	sio_write32(p + NVME_VS, 0);
	return 1;
}

static void a_store_to_a_mirror_ends_the_program(void **state)
{
	char text[1024];
	int status = 0;
	pid_t a, b;

	steps_reset();
	CHECK(pipe(log_end) == 0);
	a = cluster_fork(*state, 8, holder, NULL);
	b = cluster_fork(*state, 4, ends, NULL);
	assert_int_equal(waitpid(b, &status, 0), b);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	read_log(text, sizeof(text));
	assert_non_null(strstr(text, "store to offset 0x8 of BAR 0 of device 0x"));
	close(log_end[0]);
	close(log_end[1]);
	step_done(1);
	step_done(3);
	assert_int_equal(cluster_wait(a), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(the_first_store_to_a_mirror_has_a_line),
		API_TEST(a_store_to_a_mirror_ends_the_program),
	};

	return cmocka_run_group_tests(tests, topology_up, topology_down);
}
