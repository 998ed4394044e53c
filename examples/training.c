/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two accelerators and a drive train a small network. Each accelerator has the drive read its half
 * of the samples straight into its memory, by commands that its own kernel builds, computes a step,
 * and passes the weights on to the other by its DMA engine. Processors start kernels, and do
 * nothing else. Where the three are does not matter: the losses have the same bits. The drive needs
 * a manager.
 *
 * usage: training DRIVE FIRST-ACCELERATOR SECOND-ACCELERATOR EPOCHS
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "example.h"
#include "example_accel.h"
#include "example_nvme.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/nvmeraw.h"

#define PAGE 4096u
#define PATIENCE_MS 10000u
#define DEPTH 4u
#define SAMPLES 128u /* of each accelerator */
#define INPUTS 16u
#define HIDDEN 32u
#define OUTPUTS 4u
#define RATE 0.002f

/* What lies in an accelerator's memory; what the drive has comes first, in whole pages. */
struct memory {
	float x[SAMPLES][INPUTS], y[SAMPLES][OUTPUTS];
	uint8_t rest[2 * PAGE - SAMPLES * OUTPUTS * sizeof(float) % PAGE - PAGE];
	float v[INPUTS][HIDDEN], w[HIDDEN][OUTPUTS];
	float h[SAMPLES][HIDDEN], e[SAMPLES][OUTPUTS], d[SAMPLES][HIDDEN];
	struct sio_accel_nvme_job read;
	struct sio_accel_train_job train;
};
#define AT(member) smartio_accel_local(offsetof(struct memory, member))
#define DATA offsetof(struct memory, v)
#define WEIGHTS (offsetof(struct memory, h) - offsetof(struct memory, v))
_Static_assert(DATA % PAGE == 0, "commands of a page each");

/* An accelerator, and its queue pair of the drive. */
struct trainer {
	const char *name;
	struct smartio_accel *a;
	struct smartio_accel_queue *unit, *dma;
	volatile struct memory *m;
	uint64_t other; /* memory of the other one */
	struct smartio_nvme_queue *q;
	struct smartio_nvme_raw raw;
	struct smartio_nvme_buffer *data;
};

static uint64_t run(struct smartio_accel_queue *q, uint32_t operation, uint64_t a0, uint64_t a1,
		    uint64_t a2)
{
	const uint64_t argument[6] = {a0, a1, a2};
	uint64_t result;

	must_accel(smartio_accel_do(q, operation, argument, PATIENCE_MS, &result), "accelerator");
	return result;
}

/* ---- begin ---- */

static uint64_t reach(struct trainer *t, sci_remote_segment_t segment, size_t offset, size_t bytes)
{
	sci_ioaddr_t at;
	sci_error_t error;

	SCIMapRemoteSegmentForDevice(segment, smartio_accel_device(t->a), &at, offset, bytes, 0,
				     &error);
	check(error, "SCIMapRemoteSegmentForDevice");
	return at;
}

static void unreach(struct trainer *t, sci_remote_segment_t segment)
{
	sci_error_t error;

	SCIUnmapRemoteSegmentForDevice(segment, smartio_accel_device(t->a), 0, &error);
	check(error, "SCIUnmapRemoteSegmentForDevice");
}

static void take(struct trainer *t)
{
	struct smartio_accel_info info;

	must_accel(smartio_accel_open(t->name, 0, &t->a), t->name);
	smartio_accel_get_info(t->a, &info);
	if (info.memory_bytes < sizeof(struct memory)) {
		fprintf(stderr, "%s: %zu bytes of memory are needed\n", t->name,
			sizeof(struct memory));
		exit(1);
	}
	must_accel(smartio_accel_queue_open(t->a, SMARTIO_ACCEL_UNIT, 0, 0, &t->unit), "unit");
	must_accel(smartio_accel_queue_open(t->a, SMARTIO_ACCEL_DMA, 0, 0, &t->dma), "DMA");
	t->m = smartio_accel_memory(t->a);
}

/* A queue pair that the accelerator drives, and the drive's way to its memory. */
static struct sio_accel_nvme_job take_queue(struct trainer *t, struct smartio_nvme *drive)
{
	const struct smartio_nvme_queue_options options = {.size = sizeof(options), .depth = DEPTH};
	struct sio_accel_nvme_job job = {.bytes = PAGE, .commands = DATA / PAGE, .depth = DEPTH};
	uint64_t doorbells;

	must_nvme(smartio_nvme_queue_open(drive, &options, &t->q), "queue");
	t->raw.size = sizeof(t->raw);
	must_nvme(smartio_nvme_queue_hand_over(t->q, &t->raw), "queue");
	must_nvme(smartio_nvme_buffer_on_device(drive, t->name, SIO_ACCEL_BAR_MEMORY, 0, DATA,
						&t->data),
		  t->name);
	doorbells = reach(t, t->raw.bar, PAGE, PAGE) - PAGE;
	job.sq = reach(t, t->raw.sq, 0, t->raw.entries * 64);
	job.cq = reach(t, t->raw.cq, 0, t->raw.entries * 16);
	job.sq_doorbell = doorbells + t->raw.sq_doorbell;
	job.cq_doorbell = doorbells + t->raw.cq_doorbell;
	job.entries = t->raw.entries;
	job.namespace_id = t->raw.namespace_id;
	job.data = smartio_nvme_buffer_address(t->data);
	job.blocks = PAGE / t->raw.block_size;
	return job;
}

static struct sio_accel_train_job training(void)
{
	const union {
		float value;
		uint32_t bits;
	} rate = {.value = RATE};

	return (struct sio_accel_train_job){.x = AT(x),
					    .y = AT(y),
					    .v = AT(v),
					    .w = AT(w),
					    .h = AT(h),
					    .e = AT(e),
					    .d = AT(d),
					    .n = SAMPLES,
					    .inputs = INPUTS,
					    .hidden = HIDDEN,
					    .outputs = OUTPUTS,
					    .rate = rate.bits};
}

static float noise(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return (float)(int32_t)*seed / 2147483648.0f;
}

/* Samples whose targets follow from their inputs; the last input is 1. */
static void make_samples(volatile struct memory *m, uint32_t *seed)
{
	for (unsigned i = 0; i < SAMPLES; i++) {
		for (unsigned k = 0; k < INPUTS - 1; k++)
			m->x[i][k] = noise(seed);
		m->x[i][INPUTS - 1] = 1;
		for (unsigned k = 0; k < OUTPUTS; k++)
			m->y[i][k] = m->x[i][k] * m->x[i][k + 1] - m->x[i][k + 2];
	}
}

static void make_weights(volatile struct memory *m, uint32_t *seed)
{
	for (unsigned i = 0; i < INPUTS; i++)
		for (unsigned k = 0; k < HIDDEN; k++)
			m->v[i][k] = noise(seed) / 2;
	for (unsigned i = 0; i < HIDDEN; i++)
		for (unsigned k = 0; k < OUTPUTS; k++)
			m->w[i][k] = noise(seed) / 2;
}

/* The drive gets the samples from where they are made; the place is cleared, and they come back. */
static void store_samples(struct trainer *t, struct smartio_nvme *drive, unsigned half,
			  uint32_t *seed)
{
	struct sio_accel_nvme_job job = take_queue(t, drive);

	job.lba = half * job.commands * job.blocks;
	job.opcode = SMARTIO_NVME_WRITE;
	make_samples(t->m, seed);
	sio_copy_to(&t->m->read, &job, sizeof(job));
	SCIFlush(NULL, 0);
	run(t->unit, SIO_ACCEL_NVME, AT(read), 0, 0);
	run(t->unit, SIO_ACCEL_FILL, AT(x), DATA, 0);
	sio_write64(&t->m->read.opcode, SMARTIO_NVME_READ);
}

/* ---- at work ---- */

/* Return: the loss of this half, before it learned from it. */
static float step(struct trainer *t)
{
	union {
		uint32_t bits;
		float value;
	} loss;

	run(t->unit, SIO_ACCEL_NVME, AT(read), 0, 0);
	loss.bits = (uint32_t)run(t->unit, SIO_ACCEL_TRAIN, AT(train), 0, 0);
	run(t->dma, SIO_ACCEL_TRANSFER, AT(v), t->other + offsetof(struct memory, v), WEIGHTS);
	return loss.value;
}

static void leave(struct trainer *t)
{
	unreach(t, t->raw.bar);
	unreach(t, t->raw.cq);
	unreach(t, t->raw.sq);
	smartio_nvme_queue_close(t->q);
	must_nvme(smartio_nvme_buffer_free(t->data), "buffer");
}

int main(int argc, char **argv)
{
	const struct sio_accel_train_job job = training();
	struct smartio_nvme *drive;
	struct trainer t[2] = {0};
	uint32_t seed = 1;
	uint64_t total = 0, least = UINT64_MAX;
	unsigned long epochs;
	sci_desc_t sd = begin();

	if (argc != 5) {
		fprintf(stderr, "usage: training DRIVE FIRST-ACCELERATOR SECOND-ACCELERATOR "
				"EPOCHS\n");
		return 2;
	}
	epochs = strtoul(argv[4], NULL, 0);
	if (epochs == 0) {
		fprintf(stderr, "EPOCHS is '%s'; a number from 1 on is right\n", argv[4]);
		return 2;
	}
	must_nvme(smartio_nvme_open_wait(argv[1], PATIENCE_MS, &drive), argv[1]);
	for (unsigned i = 0; i < 2; i++) {
		t[i].name = argv[2 + i];
		take(&t[i]);
		store_samples(&t[i], drive, i, &seed);
		sio_copy_to(&t[i].m->train, &job, sizeof(job));
	}
	must_accel(smartio_accel_reach(t[0].a, t[1].a, &t[0].other), "reach");
	must_accel(smartio_accel_reach(t[1].a, t[0].a, &t[1].other), "reach");
	make_weights(t[0].m, &seed);
	SCIFlush(NULL, 0);
	for (unsigned long i = 1; i <= epochs; i++) {
		const uint64_t from = smartio_now_ns();
		const float first = step(&t[0]), second = step(&t[1]);
		const uint64_t took = smartio_now_ns() - from;

		total += took;
		least = took < least ? took : least;
		printf("epoch %lu: loss %.4f (%a, %a)\n", i, (first + second) / (2 * SAMPLES),
		       first, second);
	}
	fprintf(stderr, "an epoch took %.3f ms, the shortest %.3f ms\n",
		(double)total / (double)epochs / 1e6, (double)least / 1e6);
	leave(&t[0]);
	leave(&t[1]);
	smartio_nvme_close(drive);
	smartio_accel_close(t[0].a);
	smartio_accel_close(t[1].a);
	end(sd);
	return 0;
}
