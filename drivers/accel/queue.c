/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues of an accelerator. The ring lies in memory of this host, its completions behind it: a
 * completion is there when its number is that of the command, as no two in a row have the same.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "inside.h"

#define ENTRIES 64u
#define START_MS 5000u
#define LOOKS_APART 16u /* empty polls, of which one looks whether the queue stands */
#define CHECK_MS 50u	/* how often who sleeps looks whether the device was reset */

struct smartio_accel_queue {
	struct smartio_accel *a;
	struct smartio_accel_queue *next;
	unsigned number;
	struct smartio_accel_buffer *memory;
	volatile struct sio_accel_command *ring;
	volatile struct sio_accel_completion *word;
	uint64_t word_address;
	uint32_t entries, submitted, rung, taken; /* counts of commands; they wrap */
	uint32_t command_flags;
	uint32_t empty;			 /* polls in a row that found nothing */
	sci_local_interrupt_t interrupt; /* NULL: none */
	unsigned vector;
};

static volatile uint32_t *reg(const struct smartio_accel_queue *q, unsigned offset)
{
	return (volatile uint32_t *)(q->a->registers.at + SIO_ACCEL_QUEUE(q->number) + offset);
}

static void set(const struct smartio_accel_queue *q, unsigned offset, uint32_t value)
{
	sio_write32(reg(q, offset), value);
	sio_accel_wake(&q->a->registers);
}

/* ---- open ---- */

static bool is_open(const struct smartio_accel *a, unsigned number)
{
	for (const struct smartio_accel_queue *q = a->queues; q; q = q->next)
		if (q->number == number)
			return true;
	return false;
}

static int choose(struct smartio_accel_queue *q, enum smartio_accel_engine engine)
{
	const struct smartio_accel_info *i = &q->a->info;
	const bool dma = engine == SMARTIO_ACCEL_DMA;
	const unsigned end = dma ? i->dma_queues : i->dma_queues + i->units;

	for (q->number = dma ? 0 : i->dma_queues; q->number < end; q->number++)
		if (!is_open(q->a, q->number))
			return 0;
	return sio_accel_fail(-EBUSY, "all %u %s of %s are in use", dma ? i->dma_queues : i->units,
			      dma ? "rings of the DMA engine" : "compute units", q->a->name);
}

static int get_memory(struct smartio_accel_queue *q)
{
	const size_t ring = q->entries * sizeof(*q->ring);
	int rc = smartio_accel_buffer_alloc(q->a, ring + q->entries * sizeof(*q->word), &q->memory);

	if (rc)
		return rc;
	q->ring = (volatile void *)q->memory->at;
	q->word = (volatile void *)(q->memory->at + ring);
	q->word_address = q->memory->address + ring;
	return 0;
}

static int tie(struct smartio_accel_queue *q, unsigned number)
{
	struct smartio_accel *a = q->a;
	unsigned vector = SMARTIO_ANY_VECTOR;
	sci_remote_interrupt_t to;
	sci_error_t err, ignored;

	SCIConnectInterrupt(a->sd, &to, a->node, a->info.adapter, number, SCI_INFINITE_TIMEOUT, 0,
			    &err);
	if (err != SCI_ERR_OK)
		return sio_accel_fail_sci(err, "cannot reach interrupt %u of this host", number);
	smartio_connect_device_interrupt(a->handle, &vector, to, &err);
	SCIDisconnectInterrupt(to, 0, &ignored);
	if (err == SCI_ERR_HW_NOSPC)
		return sio_accel_fail(-EBUSY, "all interrupt vectors of %s are taken", a->name);
	if (err != SCI_ERR_OK)
		return sio_accel_fail_sci(err, "%s: no interrupt vector", a->name);
	q->vector = vector;
	q->command_flags = SIO_ACCEL_INTERRUPT;
	return 0;
}

static int get_interrupt(struct smartio_accel_queue *q)
{
	unsigned number = 0;
	sci_error_t err;

	if (q->a->info.vectors == 0)
		return sio_accel_fail(-ENOTSUP, "%s has no interrupts", q->a->name);
	SCICreateInterrupt(q->a->sd, &q->interrupt, q->a->info.adapter, &number, NULL, NULL, 0,
			   &err);
	if (err != SCI_ERR_OK) {
		q->interrupt = NULL;
		return sio_accel_fail_sci(err, "no interrupt for completions");
	}
	return tie(q, number);
}

static int wait_status(struct smartio_accel_queue *q, uint32_t want)
{
	const uint64_t deadline = smartio_now_ns() + START_MS * 1000000ull;
	unsigned pauses = 0;
	uint32_t status;

	while ((status = sio_read32(reg(q, SIO_ACCEL_STATUS))) != want) {
		int rc = sio_accel_check(q->a);

		if (rc)
			return rc;
		if (smartio_now_ns() >= deadline)
			return sio_accel_fail(-ETIMEDOUT,
					      "%s: queue %u has status %u after %u ms, not %u",
					      q->a->name, q->number, status, START_MS, want);
		sio_accel_pause(&pauses);
	}
	return 0;
}

static int start(struct smartio_accel_queue *q)
{
	const uint64_t base = q->memory->address;
	int rc;

	set(q, SIO_ACCEL_CONTROL, 0);
	rc = wait_status(q, 0);
	if (rc)
		return rc;
	set(q, SIO_ACCEL_RING_BASE, (uint32_t)base);
	set(q, SIO_ACCEL_RING_BASE + 4, (uint32_t)(base >> 32));
	set(q, SIO_ACCEL_RING_ENTRIES, q->entries);
	set(q, SIO_ACCEL_VECTOR, q->vector);
	/*
	 * The device takes the commands when it sees that the queue is enabled: pairs with
	 * poll_queue(), emu.
	 */
	sio_to_fabric_barrier();
	set(q, SIO_ACCEL_CONTROL, SIO_ACCEL_ENABLE);
	return wait_status(q, SIO_ACCEL_RUNNING);
}

static void done(struct smartio_accel_queue *q)
{
	sci_error_t err;

	if (q->vector)
		SIO_ACCEL_UNTIL_FREE(
			err, smartio_disconnect_device_interrupt(q->a->handle, q->vector, &err));
	if (q->interrupt)
		SIO_ACCEL_UNTIL_FREE(err, SCIRemoveInterrupt(q->interrupt, 0, &err));
	smartio_accel_buffer_free(q->memory);
	free(q);
}

static int check(uint32_t entries, uint32_t flags)
{
	if (entries < 2 || entries > SIO_ACCEL_MOST_ENTRIES || entries & (entries - 1))
		return sio_accel_fail(-EINVAL, "%u entries, a power of 2 from 2 to %u is right",
				      entries, SIO_ACCEL_MOST_ENTRIES);
	if (flags & ~SMARTIO_ACCEL_WITH_INTERRUPT)
		return sio_accel_fail(-EINVAL,
				      "flags %#x of a queue; only %#x (interrupt) is allowed",
				      flags, SMARTIO_ACCEL_WITH_INTERRUPT);
	return 0;
}

int smartio_accel_queue_open(struct smartio_accel *a, enum smartio_accel_engine engine,
			     uint32_t entries, uint32_t flags, struct smartio_accel_queue **ret)
{
	struct smartio_accel_queue *q;
	int rc = check(entries ? entries : ENTRIES, flags);

	if (rc == 0)
		rc = sio_accel_check(a);
	if (rc)
		return rc;
	q = calloc(1, sizeof(*q));
	if (!q)
		return sio_accel_no_memory("a queue");
	q->a = a;
	q->entries = entries ? entries : ENTRIES;
	rc = choose(q, engine);
	if (rc == 0)
		rc = get_memory(q);
	if (rc == 0 && flags & SMARTIO_ACCEL_WITH_INTERRUPT)
		rc = get_interrupt(q);
	if (rc == 0)
		rc = start(q);
	if (rc) {
		done(q);
		return rc;
	}
	q->next = a->queues;
	a->queues = q;
	*ret = q;
	return 0;
}

void smartio_accel_queue_close(struct smartio_accel_queue *q)
{
	struct smartio_accel_queue **at;

	if (!q)
		return;
	for (at = &q->a->queues; *at != q; at = &(*at)->next)
		;
	*at = q->next;
	/* One that was reset has given all up already. */
	if (sio_accel_check(q->a) == 0) {
		set(q, SIO_ACCEL_CONTROL, 0);
		wait_status(q, 0);
	}
	done(q);
}

/* ---- commands ---- */

static int stands(const struct smartio_accel_queue *q)
{
	int rc = sio_accel_check(q->a);
	uint32_t status;

	if (rc)
		return rc;
	status = sio_read32(reg(q, SIO_ACCEL_STATUS));
	if (status == SIO_ACCEL_RUNNING)
		return 0;
	return sio_accel_fail(-ENODEV, "%s: queue %u has stopped, its status is %u", q->a->name,
			      q->number, status);
}

int smartio_accel_submit(struct smartio_accel_queue *q, uint32_t operation,
			 const uint64_t argument[6])
{
	const uint32_t slot = q->submitted & (q->entries - 1);
	volatile struct sio_accel_command *c = &q->ring[slot];
	int rc = sio_accel_check(q->a);

	if (rc)
		return rc;
	if (q->submitted - q->taken == q->entries)
		return -EAGAIN;
	sio_write32(&c->operation, htole32(operation));
	sio_write32(&c->flags, htole32(q->command_flags));
	sio_write64(&c->completion, htole64(q->word_address + slot * sizeof(*q->word)));
	for (unsigned i = 0; i < 6; i++)
		sio_write64(&c->argument[i], htole64(argument[i]));
	q->submitted++;
	return 0;
}

void smartio_accel_ring(struct smartio_accel_queue *q)
{
	if (q->rung == q->submitted)
		return;
	/* The commands are there before the doorbell: pairs with the barrier in next(), emu. */
	sio_to_fabric_barrier();
	q->rung = q->submitted;
	sio_write32(q->a->doorbells.at + SIO_ACCEL_DOORBELL(q->number) - SIO_ACCEL_DOORBELL(0),
		    q->rung);
	sio_accel_wake(&q->a->doorbells);
}

static bool take(struct smartio_accel_queue *q, struct sio_accel_completion *ret)
{
	const volatile struct sio_accel_completion *w = &q->word[q->taken & (q->entries - 1)];

	if (q->taken == q->submitted || le32toh(sio_read32(&w->number)) != q->taken + 1)
		return false;
	/* What the device wrote before its number is there: pairs with emu_accel_write(). */
	sio_from_fabric_barrier();
	ret->result = le64toh(sio_read64(&w->result));
	ret->status = le32toh(sio_read32(&w->status));
	ret->number = ++q->taken;
	return true;
}

int smartio_accel_poll(struct smartio_accel_queue *q, struct sio_accel_completion *ret)
{
	int rc;

	smartio_accel_ring(q);
	if (take(q, ret)) {
		q->empty = 0;
		return 1;
	}
	/* A look at the registers takes their line from the device, which counts commands there. */
	rc = q->empty++ % LOOKS_APART ? sio_accel_check(q->a) : stands(q);
	if (rc == 0)
		smartio_yield();
	return rc;
}

/* Until the interrupt comes, or it is time to look. */
static int sleep_until(struct smartio_accel_queue *q, uint64_t deadline)
{
	const uint64_t now = smartio_now_ns();
	unsigned ms = CHECK_MS;
	sci_error_t err;

	if (deadline - now < CHECK_MS * 1000000ull)
		ms = (unsigned)((deadline - now + 999999) / 1000000);
	SCIWaitForInterrupt(q->interrupt, ms, 0, &err);
	if (err == SCI_ERR_OK || err == SCI_ERR_TIMEOUT)
		return 0;
	return sio_accel_fail_sci(err, "%s: the interrupt of queue %u is lost", q->a->name,
				  q->number);
}

int smartio_accel_wait(struct smartio_accel_queue *q, uint32_t timeout_ms,
		       struct sio_accel_completion *ret)
{
	const uint64_t deadline =
		timeout_ms == UINT32_MAX ? UINT64_MAX : smartio_now_ns() + timeout_ms * 1000000ull;
	unsigned pauses = 0;

	if (q->taken == q->submitted)
		return sio_accel_fail(-ENOENT, "%s: nothing is in flight in queue %u", q->a->name,
				      q->number);
	for (;;) {
		int rc = smartio_accel_poll(q, ret);

		if (rc)
			return rc < 0 ? rc : 0;
		if (smartio_now_ns() >= deadline)
			return sio_accel_fail(-ETIMEDOUT,
					      "%s: command %" PRIu32 " of queue %u is not done",
					      q->a->name, q->taken + 1, q->number);
		if (!q->interrupt)
			sio_accel_pause(&pauses);
		else if ((rc = sleep_until(q, deadline)))
			return rc;
	}
}

int smartio_accel_do(struct smartio_accel_queue *q, uint32_t operation, const uint64_t argument[6],
		     uint32_t timeout_ms, uint64_t *ret_result)
{
	struct sio_accel_completion c;
	int rc;

	if (q->taken != q->submitted)
		return sio_accel_fail(-EBUSY, "%s: something is in flight in queue %u", q->a->name,
				      q->number);
	rc = smartio_accel_submit(q, operation, argument);
	if (rc == 0)
		rc = smartio_accel_wait(q, timeout_ms, &c);
	if (rc)
		return rc;
	if (ret_result)
		*ret_result = c.result;
	if (c.status != SIO_ACCEL_OK)
		return sio_accel_fail(-EIO, "%s: operation %u failed: %s", q->a->name, operation,
				      smartio_accel_status_string(c.status));
	return 0;
}
