/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory device's DMA engine: entries of its ring, page after page. */
#include <endian.h>
#include <string.h>

#include "emu/devices/memdev/memdev.h"
#include "smartio/io.h"

#define FLAGS (SIO_MEMDEV_FROM_RAM | SIO_MEMDEV_TO_RAM | SIO_MEMDEV_INTERRUPT)

static bool in_ram(const struct memdev *m, uint64_t at, uint32_t len)
{
	return at <= m->ram_bytes && len <= m->ram_bytes - at;
}

static uint32_t check(const struct memdev *m, const struct sio_memdev_entry *e)
{
	if (e->length == 0 || e->length > SIO_MEMDEV_MOST_BYTES || e->flags & ~FLAGS ||
	    e->completion % 8)
		return SIO_MEMDEV_INVALID;
	if (e->flags & SIO_MEMDEV_FROM_RAM && !in_ram(m, e->source, e->length))
		return SIO_MEMDEV_INVALID;
	if (e->flags & SIO_MEMDEV_TO_RAM && !in_ram(m, e->target, e->length))
		return SIO_MEMDEV_INVALID;
	return SIO_MEMDEV_OK;
}

/* The next entry, read once; false: the ring cannot be read. */
static bool fetch(struct memdev *m)
{
	struct sio_memdev_entry *e = &m->entry;
	uint64_t at = m->ring + (uint64_t)(m->head & (m->entries - 1)) * sizeof(*e);

	if (m->dev->read(m->dev, at, e, sizeof(*e)) < 0) {
		emu_memdev_halt(m, SIO_MEMDEV_RING_LOST);
		return false;
	}
	e->source = le64toh(e->source);
	e->target = le64toh(e->target);
	e->length = le32toh(e->length);
	e->flags = le32toh(e->flags);
	e->completion = le64toh(e->completion);
	m->at = 0;
	m->failure = check(m, e);
	m->under_way = true;
	return true;
}

/* Up to the next page boundary of the far end. */
static void copy_some(struct memdev *m)
{
	const struct sio_memdev_entry *e = &m->entry;
	uint64_t far = e->flags & SIO_MEMDEV_TO_RAM ? e->source : e->target;
	uint32_t len = MEMDEV_PAGE - (uint32_t)((far + m->at) % MEMDEV_PAGE);

	if (len > e->length - m->at)
		len = e->length - m->at;
	if (e->flags & SIO_MEMDEV_FROM_RAM) {
		sio_copy_from(m->page, m->ram + e->source + m->at, len);
	} else if (m->dev->read(m->dev, e->source + m->at, m->page, len) < 0) {
		m->failure = SIO_MEMDEV_READ_FAILED;
		return;
	}
	if (e->flags & SIO_MEMDEV_TO_RAM)
		sio_copy_to(m->ram + e->target + m->at, m->page, len);
	else if (m->dev->write(m->dev, e->target + m->at, m->page, len) < 0)
		m->failure = SIO_MEMDEV_WRITE_FAILED;
	m->at += len;
	m->stats.bytes += len;
}

static void complete(struct memdev *m)
{
	const struct sio_memdev_entry *e = &m->entry;
	struct sio_memdev_completion c;

	m->under_way = false;
	m->head++;
	m->stats.entries++;
	m->stats.failed += m->failure != SIO_MEMDEV_OK;
	c.number = htole32(m->head);
	c.status = htole32(m->failure);
	if (e->completion && e->completion % 8 == 0)
		m->dev->write(m->dev, e->completion, &c, sizeof(c));
	/*
	 * Whoever sees the count sees in the RAM what was copied: pairs with the driver's barrier.
	 */
	sio_to_fabric_barrier();
	emu_memdev_set(m, SIO_MEMDEV_DONE, m->head);
	if (e->flags & SIO_MEMDEV_INTERRUPT && m->reg[SIO_MEMDEV_VECTOR / 4] < m->vectors) {
		m->stats.interrupts++;
		m->dev->interrupt(m->dev, m->reg[SIO_MEMDEV_VECTOR / 4]);
	}
}

unsigned emu_memdev_run(struct memdev *m, unsigned budget)
{
	unsigned done = 0;

	while (m->running && done < budget) {
		m->tail = sio_read32(m->doorbell);
		if (m->tail - m->head > m->entries) {
			emu_memdev_halt(m, SIO_MEMDEV_BAD_DOORBELL);
			return done + 1;
		}
		if (!m->under_way && m->tail == m->head)
			break;
		/* The entries were written before the doorbell: pairs with the driver's barrier. */
		sio_from_fabric_barrier();
		done++;
		if (!m->under_way && !fetch(m))
			break;
		while (m->failure == SIO_MEMDEV_OK && m->at < m->entry.length && done <= budget) {
			copy_some(m);
			done++;
		}
		if (m->failure != SIO_MEMDEV_OK || m->at == m->entry.length)
			complete(m);
	}
	return done;
}
