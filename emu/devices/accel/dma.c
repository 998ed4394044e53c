/* SPDX-License-Identifier: BSD-2-Clause */
/* How the accelerator reaches memory, its own and the fabric's; and its DMA engine. */
#include <errno.h>

#include "emu/devices/accel/accel.h"
#include "smartio/io.h"

uint8_t *emu_accel_local(const struct accelerator *m, uint64_t at, uint64_t bytes)
{
	const uint64_t offset = at & ~SIO_ACCEL_LOCAL;

	if (!(at & SIO_ACCEL_LOCAL) || offset > m->memory_bytes || bytes > m->memory_bytes - offset)
		return NULL;
	return m->memory + offset;
}

int emu_accel_read(struct accelerator *m, uint64_t at, void *buf, size_t len)
{
	const uint8_t *local;

	if (!(at & SIO_ACCEL_LOCAL))
		return m->dev->read(m->dev, at, buf, len);
	local = emu_accel_local(m, at, len);
	if (!local)
		return -EFAULT;
	sio_copy_from(buf, local, len);
	return 0;
}

int emu_accel_write(struct accelerator *m, uint64_t at, const void *buf, size_t len)
{
	uint8_t *local;

	if (!(at & SIO_ACCEL_LOCAL))
		return m->dev->write(m->dev, at, buf, len);
	local = emu_accel_local(m, at, len);
	if (!local)
		return -EFAULT;
	/*
	 * Short ones word by word: who polls for the last word finds the others, and what was
	 * written before, there. Pairs with take() of the driver.
	 */
	if (len <= 64 && len % 8 == 0 && (uintptr_t)local % 8 == 0) {
		sio_to_fabric_barrier();
		for (size_t i = 0; i < len; i += 8) {
			uint64_t word;

			sio_copy_from(&word, (const uint8_t *)buf + i, sizeof(word));
			sio_write64(local + i, word);
		}
		return 0;
	}
	sio_copy_to(local, buf, len);
	return 0;
}

/* The range does not cross from the fabric's addresses into the device's own, nor wrap around. */
static bool holds_together(const struct accelerator *m, uint64_t at, uint64_t bytes)
{
	if (at & SIO_ACCEL_LOCAL)
		return emu_accel_local(m, at, bytes);
	return bytes <= SIO_ACCEL_LOCAL - at;
}

static bool valid(const struct accelerator *m, const struct accel_queue *q)
{
	const uint64_t *a = q->task.argument;

	return q->command.operation == SIO_ACCEL_TRANSFER && a[2] &&
	       holds_together(m, a[0], a[2]) && holds_together(m, a[1], a[2]);
}

/* @bytes, a page at most where neither end is its own memory. Return: a status. */
static uint32_t move(struct accelerator *m, uint64_t from, uint64_t to, uint64_t bytes)
{
	const uint8_t *source = emu_accel_local(m, from, bytes);
	uint8_t *target = emu_accel_local(m, to, bytes);

	if (source && target) {
		sio_copy_across(target, source, bytes); /* which may overlap */
		return SIO_ACCEL_OK;
	}
	if (source)
		return emu_accel_write(m, to, source, bytes) < 0 ? SIO_ACCEL_WRITE_FAILED
								 : SIO_ACCEL_OK;
	if (emu_accel_read(m, from, target ? target : m->page, bytes) < 0)
		return SIO_ACCEL_READ_FAILED;
	if (!target && emu_accel_write(m, to, m->page, bytes) < 0)
		return SIO_ACCEL_WRITE_FAILED;
	return SIO_ACCEL_OK;
}

/*
 * As many bytes as go at once: up to the page boundaries of a fabric address, so that each page's
 * packets are those of one access, and a fault costs no page that is there.
 */
static uint64_t piece(uint64_t from, uint64_t to, uint64_t left, unsigned budget)
{
	const bool through = !((from | to) & SIO_ACCEL_LOCAL);
	const uint64_t far = from & SIO_ACCEL_LOCAL ? to : from;
	uint64_t most = (uint64_t)(through || budget == 0 ? 1 : budget) * ACCEL_PAGE;

	most -= far % ACCEL_PAGE;
	return left < most ? left : most;
}

enum sio_accel_progress emu_accel_transfer(struct accelerator *m, struct accel_queue *q,
					   unsigned budget, unsigned *done)
{
	const uint64_t *a = q->task.argument;
	uint64_t n;

	if (!valid(m, q)) {
		q->status = SIO_ACCEL_INVALID;
		return SIO_ACCEL_KERNEL_FAILS;
	}
	n = piece(a[0] + q->task.at, a[1] + q->task.at, a[2] - q->task.at, budget);
	q->status = move(m, a[0] + q->task.at, a[1] + q->task.at, n);
	*done += (unsigned)((n + ACCEL_PAGE - 1) / ACCEL_PAGE);
	if (q->status != SIO_ACCEL_OK)
		return SIO_ACCEL_KERNEL_FAILS;
	m->stats.bytes += n;
	q->task.at += n;
	q->task.result = q->task.at;
	return q->task.at == a[2] ? SIO_ACCEL_KERNEL_DONE : SIO_ACCEL_KERNEL_MORE;
}
