/* SPDX-License-Identifier: BSD-2-Clause */
/* The accelerator's compute units: the kernels of drivers/accel/kernels, part by part. */
#include "emu/devices/accel/accel.h"
#include "smartio/io.h"

/* Accesses that cost what a page costs that is moved at once, and how much dearer the fabric is. */
#define ACCESSES_OF_UNIT 64u
#define FABRIC_ACCESS 4u

/* What a kernel reaches memory by. */
struct accel {
	struct accelerator *m;
	uint32_t status; /* of the first access that failed; none is made after it */
	uint32_t accesses;
};

static void failed(struct accel *a, uint32_t status)
{
	if (a->status == SIO_ACCEL_OK)
		a->status = status;
}

/*
 * Is the access allowed, and where is it, if it is in the device's own memory? A part that has met
 * a failure continues with ones: a wrong command fails once, and not for each of its words.
 */
static bool begin(struct accel *a, uint64_t at, unsigned size, uint8_t **ret_local)
{
	if (a->status != SIO_ACCEL_OK)
		return false;
	if (at % size) {
		failed(a, SIO_ACCEL_INVALID);
		return false;
	}
	*ret_local = emu_accel_local(a->m, at, size);
	a->accesses += *ret_local ? 1 : FABRIC_ACCESS;
	return true;
}

static uint32_t accel_load32(struct accel *a, uint64_t at)
{
	uint32_t word = UINT32_MAX;
	uint8_t *local;

	if (!begin(a, at, sizeof(word), &local))
		return word;
	if (local)
		return sio_read32(local);
	if (emu_accel_read(a->m, at, &word, sizeof(word)) < 0)
		failed(a, SIO_ACCEL_READ_FAILED);
	return word;
}

static void accel_store32(struct accel *a, uint64_t at, uint32_t value)
{
	uint8_t *local;

	if (!begin(a, at, sizeof(value), &local))
		return;
	if (local)
		sio_write32(local, value);
	else if (emu_accel_write(a->m, at, &value, sizeof(value)) < 0)
		failed(a, SIO_ACCEL_WRITE_FAILED);
}

static uint64_t accel_load64(struct accel *a, uint64_t at)
{
	uint64_t word = UINT64_MAX;
	uint8_t *local;

	if (!begin(a, at, sizeof(word), &local))
		return word;
	if (local)
		return sio_read64(local);
	if (emu_accel_read(a->m, at, &word, sizeof(word)) < 0)
		failed(a, SIO_ACCEL_READ_FAILED);
	return word;
}

static void accel_store64(struct accel *a, uint64_t at, uint64_t value)
{
	uint8_t *local;

	if (!begin(a, at, sizeof(value), &local))
		return;
	if (local)
		sio_write64(local, value);
	else if (emu_accel_write(a->m, at, &value, sizeof(value)) < 0)
		failed(a, SIO_ACCEL_WRITE_FAILED);
}

/* The fabric keeps the order of one device's writes; its own memory is a processor's. */
static void accel_fence(struct accel *a)
{
	(void)a;
	sio_to_fabric_barrier(); /* pairs with accel_fence() of another kernel, or the reader's */
}

/* Both ways at once, of a part at most: what is between goes by the model's page. */
static void accel_move(struct accel *a, uint64_t to, uint64_t from, uint64_t bytes)
{
	if (a->status != SIO_ACCEL_OK)
		return;
	if (bytes > ACCEL_PAGE)
		failed(a, SIO_ACCEL_INVALID);
	else if (emu_accel_read(a->m, from, a->m->page, bytes) < 0)
		failed(a, SIO_ACCEL_READ_FAILED);
	else if (emu_accel_write(a->m, to, a->m->page, bytes) < 0)
		failed(a, SIO_ACCEL_WRITE_FAILED);
}

static uint64_t accel_clock(struct accel *a)
{
	return a->m->dev->now(a->m->dev);
}

#include "drivers/accel/kernels/table.h"

typedef enum sio_accel_progress kernel(struct accel *a, struct sio_accel_task *t);

#define KERNEL(number, name) [SIO_ACCEL_##number] = accel_kernel_##name,
static kernel *const kernels[] = {ACCEL_KERNELS(KERNEL)};

static kernel *find(uint32_t operation)
{
	return operation < sizeof(kernels) / sizeof(kernels[0]) ? kernels[operation] : NULL;
}

enum sio_accel_progress emu_accel_compute(struct accelerator *m, struct accel_queue *q,
					  unsigned budget, unsigned *done)
{
	kernel *run = find(q->command.operation);
	enum sio_accel_progress p = SIO_ACCEL_KERNEL_MORE;
	struct accel a = {.m = m};

	if (!run) {
		q->status = SIO_ACCEL_INVALID;
		return SIO_ACCEL_KERNEL_FAILS;
	}
	for (unsigned cost = 0; p == SIO_ACCEL_KERNEL_MORE && a.status == SIO_ACCEL_OK &&
				(cost == 0 || cost < budget);) {
		p = run(&a, &q->task);
		cost += 1 + a.accesses / ACCESSES_OF_UNIT;
		if (p != SIO_ACCEL_KERNEL_WAITS)
			*done += 1 + a.accesses / ACCESSES_OF_UNIT;
		a.accesses = 0;
	}
	q->status = a.status;
	if (a.status != SIO_ACCEL_OK)
		return SIO_ACCEL_KERNEL_FAILS;
	if (p == SIO_ACCEL_KERNEL_FAILS)
		q->status = SIO_ACCEL_FAILED;
	if (p == SIO_ACCEL_KERNEL_REFUSES)
		q->status = SIO_ACCEL_INVALID;
	return p;
}
