/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An accelerator drives a queue pair of a drive by itself: its kernel builds commands, rings the
 * doorbells and polls completions; the data goes from the accelerator's memory to the drive and
 * back. Both lie with the same lender, or with different ones; the program is in a third host.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "smartio/accel.h"
#include "smartio/io.h"
#include "smartio/nvmeraw.h"
#include "must.h"
#include "served.h"

#define BORROWER 8u
#define PATIENCE_MS 10000u
#define PAGE 4096u
#define BYTES (512u * 1024u)
#define JOB (2 * BYTES) /* where it lies in the accelerator's memory, behind the data */

#define HOSTS(iommu)                                                                               \
	"cluster: consumer\n"                                                                      \
	"switches: [sw0]\n"                                                                        \
	"hosts:\n"                                                                                 \
	"  one:\n"                                                                                 \
	"    ram: 64M\n"                                                                           \
	"    iommu: " iommu "\n"                                                                   \
	"    devices:\n"                                                                           \
	"      nvme0: {type: nvme, size: 16M}\n"                                                   \
	"      beside: {type: accelerator, size: 2M}\n"                                            \
	"  two: {ram: 64M, iommu: " iommu ", devices: {here: {type: accelerator, size: 2M}}}\n"    \
	"  three: {ram: 64M, iommu: " iommu ", devices: {far: {type: accelerator, size: 2M}}}\n"

static int up_with(void **state)
{
	return served_up(state, HOSTS("on"));
}

static int up_without(void **state)
{
	return served_up(state, HOSTS("off"));
}

/* ---- programs ---- */

/* A drive, an accelerator, and all that each is told of the other. */
struct consumer {
	sci_desc_t sd;
	struct smartio_nvme *drive;
	struct smartio_nvme_queue *q;
	struct smartio_nvme_raw raw;
	struct smartio_nvme_buffer *data;
	struct smartio_accel *a;
	struct smartio_accel_queue *unit;
	volatile uint8_t *memory;
	struct sio_accel_nvme_job job;
};

static uint64_t reach(struct consumer *c, sci_remote_segment_t segment, size_t offset, size_t bytes)
{
	sci_ioaddr_t at = 0;
	sci_error_t error;

	SCIMapRemoteSegmentForDevice(segment, smartio_accel_device(c->a), &at, offset, bytes, 0,
				     &error);
	CHECK_OK(error);
	return at;
}

static void unreach(struct consumer *c, sci_remote_segment_t segment)
{
	sci_error_t error;

	SCIUnmapRemoteSegmentForDevice(segment, smartio_accel_device(c->a), 0, &error);
	CHECK_OK(error);
}

static void start(struct consumer *c, const char *name)
{
	const struct smartio_nvme_queue_options options = {.size = sizeof(options), .depth = 31};
	uint64_t doorbells;

	memset(c, 0, sizeof(*c));
	c->sd = api_begin();
	MUST_ACCEL(smartio_accel_open(name, 0, &c->a));
	c->memory = smartio_accel_memory(c->a);
	MUST_ACCEL(smartio_accel_queue_open(c->a, SMARTIO_ACCEL_UNIT, 0, 0, &c->unit));
	OK(smartio_nvme_open_wait("nvme0", PATIENCE_MS, &c->drive));
	OK(smartio_nvme_queue_open(c->drive, &options, &c->q));
	c->raw.size = sizeof(c->raw);
	OK(smartio_nvme_queue_hand_over(c->q, &c->raw));
	OK(smartio_nvme_buffer_on_device(c->drive, name, SIO_ACCEL_BAR_MEMORY, 0, JOB, &c->data));
	doorbells = reach(c, c->raw.bar, PAGE, PAGE);
	c->job = (struct sio_accel_nvme_job){
		.sq = reach(c, c->raw.sq, 0, c->raw.entries * 64),
		.cq = reach(c, c->raw.cq, 0, c->raw.entries * 16),
		.entries = c->raw.entries,
		.sq_doorbell = doorbells + c->raw.sq_doorbell - PAGE,
		.cq_doorbell = doorbells + c->raw.cq_doorbell - PAGE,
		.namespace_id = c->raw.namespace_id,
		.depth = 31,
	};
}

static void stop(struct consumer *c)
{
	smartio_accel_queue_close(c->unit);
	unreach(c, c->raw.bar);
	unreach(c, c->raw.cq);
	unreach(c, c->raw.sq);
	smartio_nvme_queue_close(c->q);
	OK(smartio_nvme_buffer_free(c->data));
	smartio_nvme_close(c->drive);
	smartio_accel_close(c->a);
	api_end(c->sd);
}

/* The whole of @data (offset in the accelerator's memory) from or to the drive. */
static void give(struct consumer *c, uint64_t opcode, uint64_t data, uint64_t bytes)
{
	c->job.opcode = opcode;
	c->job.data = smartio_nvme_buffer_address(c->data) + data;
	c->job.bytes = bytes;
	c->job.blocks = bytes / c->raw.block_size;
	c->job.commands = BYTES / bytes;
	sio_copy_to(c->memory + JOB, &c->job, sizeof(c->job));
	SCIFlush(NULL, 0);
	MUST_ACCEL(smartio_accel_submit(c->unit, SIO_ACCEL_NVME,
					(uint64_t[6]){smartio_accel_local(JOB)}));
}

static void transfer(struct consumer *c, uint64_t opcode, uint64_t data, uint64_t bytes)
{
	struct sio_accel_completion done;

	give(c, opcode, data, bytes);
	MUST_ACCEL(smartio_accel_wait(c->unit, PATIENCE_MS, &done));
	sio_copy_from(&c->job, c->memory + JOB, sizeof(c->job)); /* where the next one begins */
	CHECK(done.status == SIO_ACCEL_OK && done.result == BYTES / bytes);
}

static uint64_t checksum(struct consumer *c, uint64_t at)
{
	uint64_t sum;

	MUST_ACCEL(smartio_accel_do(c->unit, SIO_ACCEL_CHECKSUM,
				    (uint64_t[6]){smartio_accel_local(at), BYTES}, PATIENCE_MS,
				    &sum));
	return sum;
}

static int consumes(void *name)
{
	struct smartio_nvme_completion none;
	struct smartio_nvme_raw again = {.size = sizeof(again)};
	struct smartio_nvme_info info;
	struct sio_accel_completion done;
	struct consumer c;
	uint64_t sum;

	start(&c, name);
	CHECK(smartio_nvme_queue_hand_over(c.q, &again) == -EBUSY);
	CHECK(c.raw.generation == smartio_device_generation(c.raw.device));
	CHECK(!c.raw.interrupt);
	smartio_nvme_get_info(c.drive, &info);
	CHECK(info.features == (SMARTIO_NVME_HAS_DEALLOCATE | SMARTIO_NVME_HAS_WRITE_ZEROES));
	CHECK(smartio_nvme_poll(c.q, &none, 1) == -EBUSY);
	CHECK(smartio_nvme_submit(c.q, SMARTIO_NVME_FLUSH, 0, 0, NULL, 0, NULL) == -EBUSY);
	for (uint32_t i = 0; i < BYTES / 4; i++)
		sio_write32(c.memory + 4 * i, i * 2654435761u);
	SCIFlush(NULL, 0);
	sum = checksum(&c, 0);
	transfer(&c, SMARTIO_NVME_WRITE, 0, PAGE);
	/* Back to another place, by commands of another size: queues go round many times. */
	CHECK(checksum(&c, BYTES) == 0);
	transfer(&c, SMARTIO_NVME_READ, BYTES, 512);
	CHECK(checksum(&c, BYTES) == sum);
	transfer(&c, SMARTIO_NVME_READ, BYTES, 2 * PAGE);
	CHECK(checksum(&c, BYTES) == sum);
	/* Beyond the namespace: the drive's word for it, and all that was in flight has ended. */
	c.job.lba = 16u * 1024 * 1024 / c.raw.block_size;
	give(&c, SMARTIO_NVME_READ, 0, PAGE);
	MUST_ACCEL(smartio_accel_wait(c.unit, PATIENCE_MS, &done));
	CHECK(done.status == SIO_ACCEL_FAILED && done.result == 0x80);
	stop(&c);
	return 0;
}

static const char *const places[] = {"beside", "here", "far"};

static void a_kernel_drives_a_drive(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 3; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%s", places[i]);
		assert_int_equal(cluster_wait(cluster_fork(f->cluster, BORROWER, consumes, name)),
				 0);
	}
}

/* Its kernel is at work all the time. */
static int is_killed(void *name)
{
	struct consumer c;

	start(&c, name);
	transfer(&c, SMARTIO_NVME_WRITE, 0, 512);
	step_done(1);
	for (;;)
		transfer(&c, SMARTIO_NVME_READ, BYTES, 512);
	return 0;
}

/*
 * The manager deletes the queue pair; the kernel, whose doorbells are cut, ends with the next
 * program that drives the accelerator.
 */
static void a_death_stops_neither(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 3; i++) {
		char name[16];
		pid_t pid;

		snprintf(name, sizeof(name), "%s", places[i]);
		steps_reset();
		pid = cluster_fork(f->cluster, BORROWER, is_killed, name);
		step_await(1);
		kill(pid, SIGKILL);
		assert_int_equal(cluster_wait(pid), 128 + SIGKILL);
		assert_int_equal(cluster_wait(cluster_fork(f->cluster, BORROWER, consumes, name)),
				 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_kernel_drives_a_drive),
					   cmocka_unit_test(a_death_stops_neither)};
	int failed = cmocka_run_group_tests_name("with IOMMUs", tests, up_with, served_down);

	return failed + cmocka_run_group_tests_name("without", tests, up_without, served_down);
}
