/* SPDX-License-Identifier: BSD-2-Clause */
/* The accelerator's compute units: the kernels of drivers/accel/kernels, part by part. */
#include "emu/devices/accel/accel.h"
#include "smartio/io.h"

/* What a kernel reaches memory by. */
struct accel {
	struct accelerator *m;
	uint32_t status; /* of the first access that failed */
};

/* After an access that failed the part goes on, but reaches nothing more: one fault is enough. */
static bool can_access(struct accel *a, uint64_t at, unsigned bytes)
{
	if (a->status == SIO_ACCEL_OK && at % bytes)
		a->status = SIO_ACCEL_INVALID;
	return a->status == SIO_ACCEL_OK;
}

static uint32_t accel_load32(struct accel *a, uint64_t at)
{
	const uint8_t *local = emu_accel_local(a->m, at, 4);
	uint32_t word = UINT32_MAX;

	if (!can_access(a, at, 4))
		return word;
	if (local)
		return sio_read32(local);
	if (emu_accel_read(a->m, at, &word, sizeof(word)) < 0)
		a->status = SIO_ACCEL_READ_FAILED;
	return word;
}

static void accel_store32(struct accel *a, uint64_t at, uint32_t value)
{
	uint8_t *local = emu_accel_local(a->m, at, 4);

	if (!can_access(a, at, 4))
		return;
	if (local)
		sio_write32(local, value);
	else if (emu_accel_write(a->m, at, &value, sizeof(value)) < 0)
		a->status = SIO_ACCEL_WRITE_FAILED;
}

static uint64_t accel_load64(struct accel *a, uint64_t at)
{
	const uint8_t *local = emu_accel_local(a->m, at, 8);
	uint64_t word = UINT64_MAX;

	if (!can_access(a, at, 8))
		return word;
	if (local)
		return sio_read64(local);
	if (emu_accel_read(a->m, at, &word, sizeof(word)) < 0)
		a->status = SIO_ACCEL_READ_FAILED;
	return word;
}

static void accel_store64(struct accel *a, uint64_t at, uint64_t value)
{
	uint8_t *local = emu_accel_local(a->m, at, 8);

	if (!can_access(a, at, 8))
		return;
	if (local)
		sio_write64(local, value);
	else if (emu_accel_write(a->m, at, &value, sizeof(value)) < 0)
		a->status = SIO_ACCEL_WRITE_FAILED;
}

/* The fabric keeps the order of one device's writes; its own memory is a processor's. */
static void accel_fence(struct accel *a)
{
	(void)a;
	sio_to_fabric_barrier();
}

/* Both ways at once, of a part at most: what is between goes by the model's page. */
static void accel_move(struct accel *a, uint64_t to, uint64_t from, uint64_t bytes)
{
	if (a->status != SIO_ACCEL_OK)
		return;
	if (bytes > ACCEL_PAGE)
		a->status = SIO_ACCEL_INVALID;
	else if (emu_accel_read(a->m, from, a->m->page, bytes) < 0)
		a->status = SIO_ACCEL_READ_FAILED;
	else if (emu_accel_write(a->m, to, a->m->page, bytes) < 0)
		a->status = SIO_ACCEL_WRITE_FAILED;
}

static uint64_t accel_clock(struct accel *a)
{
	return a->m->dev->now(a->m->dev);
}

#include "drivers/accel/kernels/table.h"

typedef enum accel_progress kernel(struct accel *a, struct accel_task *t);

#define KERNEL(number, name) [SIO_ACCEL_##number] = accel_kernel_##name,
static kernel *const kernels[] = {ACCEL_KERNELS(KERNEL)};

static kernel *find(uint32_t operation)
{
	return operation < sizeof(kernels) / sizeof(kernels[0]) ? kernels[operation] : NULL;
}

enum accel_progress emu_accel_compute(struct accelerator *m, struct accel_queue *q, unsigned budget,
				      unsigned *done)
{
	kernel *run = find(q->command.operation);
	enum accel_progress p = ACCEL_MORE;
	struct accel a = {.m = m};

	if (!run) {
		q->status = SIO_ACCEL_INVALID;
		return ACCEL_FAILS;
	}
	for (unsigned i = 0; p == ACCEL_MORE && a.status == SIO_ACCEL_OK && (i == 0 || i < budget);
	     i++) {
		p = run(&a, &q->task);
		*done += p != ACCEL_WAITS;
	}
	q->status = a.status;
	if (a.status != SIO_ACCEL_OK)
		return ACCEL_FAILS;
	if (p == ACCEL_FAILS)
		q->status = SIO_ACCEL_FAILED;
	if (p == ACCEL_REFUSES)
		q->status = SIO_ACCEL_INVALID;
	return p;
}
