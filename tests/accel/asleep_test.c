/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair that somebody drives whose stores to the doorbells raise no page fault, as a GPU's:
 * here the kernel that GPUs run, by a processor, through another mapping of the doorbells. The
 * model must look by itself, on the drive's own host and on another one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../drivers/accel/kernels/plain.h"
#include "../../drivers/accel/kernels/table.h"
#include "smartio/gpu.h"
#include "smartio/guest.h"
#include "smartio/io.h"
#include "smartio/nvmeraw.h"
#include "served.h"

#define PATIENCE_MS 10000u
#define PAGE 4096u
#define COMMANDS 8u

static const char topology[] = "cluster: asleep\n"
			       "switches: [sw0]\n"
			       "hosts:\n"
			       "  one: {ram: 64M, devices: {nvme0: {type: nvme, size: 16M}}}\n"
			       "  two: {ram: 64M}\n";

static int up(void **state)
{
	return served_up(state, topology);
}

/* ---- the queue pair ---- */

struct queue {
	struct cluster *cluster;
	struct smartio_nvme *drive;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_raw raw;
	struct smartio_nvme_buffer *data;
	sci_map_t sq, cq, bells;
	uint8_t *silent; /* the doorbells, by a mapping of our own */
	struct sio_accel_nvme_job job;
};

static uint64_t map(sci_remote_segment_t segment, sci_map_t *ret, size_t offset, size_t bytes,
		    unsigned flags)
{
	sci_error_t error;
	volatile void *p = SCIMapRemoteSegment(segment, ret, offset, bytes, NULL, flags, &error);

	CHECK_OK(error);
	return (uintptr_t)p;
}

/* Nobody is told of stores there, and no fault comes of them. */
static void map_silently(struct queue *q)
{
	sci_error_t error;
	uint64_t at;
	size_t bytes;
	int fd = smartio_map_file(q->bells, 0, &at, &bytes, &error);

	CHECK_OK(error);
	CHECK(fd >= 0 && bytes >= PAGE);
	q->silent = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
	CHECK((void *)q->silent != MAP_FAILED);
}

static void start(struct queue *q)
{
	const struct smartio_nvme_queue_options options = {.size = sizeof(options), .depth = 4};

	OK(smartio_nvme_open_wait("nvme0", PATIENCE_MS, &q->drive));
	OK(smartio_nvme_queue_open(q->drive, &options, &q->q));
	q->raw.size = sizeof(q->raw);
	OK(smartio_nvme_queue_hand_over(q->q, &q->raw));
	OK(smartio_nvme_buffer_alloc(q->drive, PAGE, &q->data));
	map(q->raw.bar, &q->bells, PAGE, PAGE, SCI_FLAG_IO_MAP_IOSPACE | SMARTIO_FLAG_KEEP_FILES);
	map_silently(q);
	q->job = (struct sio_accel_nvme_job){
		.sq = map(q->raw.sq, &q->sq, 0, q->raw.entries * 64, 0),
		.cq = map(q->raw.cq, &q->cq, 0, q->raw.entries * 16, 0),
		.entries = q->raw.entries,
		.sq_doorbell = (uintptr_t)q->silent + q->raw.sq_doorbell - PAGE,
		.cq_doorbell = (uintptr_t)q->silent + q->raw.cq_doorbell - PAGE,
		.namespace_id = q->raw.namespace_id,
		.depth = 1,
		.opcode = SMARTIO_NVME_READ,
		.data = smartio_nvme_buffer_address(q->data),
		.bytes = q->raw.block_size,
		.blocks = 1,
		.commands = 1,
	};
}

static void stop(struct queue *q)
{
	sci_error_t error;

	munmap(q->silent, PAGE);
	SCIUnmapSegment(q->bells, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(q->sq, 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(q->cq, 0, &error);
	CHECK_OK(error);
	smartio_nvme_queue_close(q->q);
	OK(smartio_nvme_buffer_free(q->data));
	smartio_nvme_close(q->drive);
}

/* One command by the kernel. */
static void read_block(struct queue *q)
{
	struct sio_accel_task task = {.argument[0] = (uintptr_t)&q->job};
	const uint64_t until = smartio_now_ns() + (uint64_t)PATIENCE_MS * 1000000;
	struct accel a = {0};
	enum sio_accel_progress p;

	while ((p = accel_kernel_nvme(&a, &task)) == SIO_ACCEL_KERNEL_MORE ||
	       p == SIO_ACCEL_KERNEL_WAITS) {
		CHECK(smartio_now_ns() < until);
		smartio_yield();
	}
	CHECK(p == SIO_ACCEL_KERNEL_DONE && task.result == 1);
}

/* ---- what the model does meanwhile ---- */

static long long counter(const struct queue *q, const char *name)
{
	unsigned long long n;

	CHECK(cluster_host_counter(q->cluster, LENDER, name, &n) == 0);
	return (long long)n;
}

/* Asked for until it is so; cluster_wait() has a limit for the whole. */
static void await_more(const struct queue *q, const char *name, long long than)
{
	while (counter(q, name) <= than)
		smartio_yield();
}

static int drives(void *arg)
{
	struct queue q = {.cluster = arg};
	sci_desc_t sd = api_begin();
	sci_error_t error;
	long long naps;

	start(&q);
	/* As it is the model goes to sleep, and a store would have to wake it. */
	await_more(&q, "room_sleeps", counter(&q, "room_sleeps"));
	smartio_map_keep_awake(q.bells, &error);
	CHECK_OK(error);
	CHECK(!smartio_map_sleep_word(q.bells));
	for (unsigned i = 0; i < COMMANDS; i++) {
		naps = counter(&q, "room_naps");
		await_more(&q, "room_naps", naps + 2); /* it has nothing to do */
		read_block(&q);
	}
	smartio_map_keep_awake(q.bells, &error); /* again: the same */
	CHECK_OK(error);
	smartio_map_keep_awake(q.sq, &error); /* memory: nothing is to be done */
	CHECK_OK(error);
	smartio_map_keep_awake(NULL, &error);
	CHECK_IS(error, SCI_ERR_ILLEGAL_PARAMETER);
	stop(&q);
	api_end(sd);
	return 0;
}

static void on_its_own_host(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(cluster_wait(cluster_fork(f->cluster, LENDER, drives, f->cluster)), 0);
}

static void on_another_host(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(cluster_wait(cluster_fork(f->cluster, 8, drives, f->cluster)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(on_its_own_host),
					   cmocka_unit_test(on_another_host)};

	return cmocka_run_group_tests(tests, up, served_down);
}
