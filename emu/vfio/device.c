/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/types.h"
#include "vfio/config.h"
#include "emu/vfio/device.h"
#include "smartio/io.h"

#define MSIX_ENTRY 16u
#define ASKED_AT_ONCE 32u	/* writes that the peer has not done yet */
#define LOW_MEMORY (512u << 10) /* that every machine has from address 0 on, at least */
#define REFUSED "the machine's NTB refuses it; its fault registers say why"
#define LARGEST_BAR (256u << 20) /* their pages are memory here */

struct emu_vfio_device {
	struct emu_dev dev;
	const struct emu_dev_model *model;
	void *state;
	const struct sio_topo_device *topo;
	const struct emu_vfio_device_ops *ops;
	void *ctx;
	struct emu_dev_config config;
	struct sio_vfio_config space;
	struct sio_vfio_session *session;
	uint8_t *bar[SIO_VFIO_BARS]; /* all of it; outside the runs of pages it reads as zeros */
	uint64_t n_faults;
};

/* ---- what the model asks for ---- */

static void fault(struct emu_vfio_device *d, const char *what, uint64_t addr, size_t len,
		  const char *why)
{
	char text[SIO_ERR_TEXT];

	/* Whoever drives it can have it fault for ever: log the 1st, 2nd, 4th, ... */
	d->n_faults++;
	if (d->n_faults & (d->n_faults - 1))
		return;
	snprintf(text, sizeof(text),
		 "fault no. %" PRIu64 ": cannot %s %zu bytes at %#" PRIx64 ": %s", d->n_faults,
		 what, len, addr, why);
	d->ops->log(d->ctx, text);
}

static bool may_send(struct emu_vfio_device *d, const char *what, uint64_t addr, size_t len)
{
	if (d->session && sio_vfio_config_is_master(&d->space))
		return true;
	fault(d, what, addr, len, "it is no bus master");
	return false;
}

/*
 * Does the peer show its bus as it is? With an IOMMU that translates, nothing lies at address 0, or
 * a page at most.
 */
static bool untranslated(struct emu_vfio_device *d)
{
	const struct sio_vfio_range *r = sio_vfio_memory_at(sio_vfio_session_memory(d->session), 0);

	return r && r->data && r->size >= LOW_MEMORY;
}

/*
 * What lies beside the device in its peer's machine: as of ops->beside(). A queue entry's halves go
 * one after the other, as in store().
 */
static int beside(struct emu_vfio_device *d, uint64_t addr, uint8_t *buf, const uint8_t *data,
		  size_t len)
{
	size_t half = len / 2;
	int rc;

	if (!d->ops->beside || !untranslated(d))
		return -ENXIO;
	/* Pairs with what those of store() pair with. */
	sio_to_fabric_barrier();
	if (!data || len != 2 * sizeof(uint64_t))
		return d->ops->beside(d->ctx, addr, buf, data, len);
	rc = d->ops->beside(d->ctx, addr, NULL, data, half);
	if (rc < 0)
		return rc;
	sio_to_fabric_barrier(); /* pairs with the same */
	return d->ops->beside(d->ctx, addr + half, NULL, data + half, half);
}

static int read_beside(struct emu_vfio_device *d, uint64_t addr, uint8_t *to, size_t len,
		       bool there)
{
	int rc = beside(d, addr, to, NULL, len);

	if (rc == -EFAULT)
		fault(d, "read", addr, len, REFUSED);
	else if (rc < 0)
		fault(d, "read", addr, len,
		      there ? "no memory, and the model cannot wait for an answer"
			    : "nothing that may be read is there");
	return rc < 0 ? -EFAULT : 0;
}

static int dma_read(struct emu_dev *dev, uint64_t addr, void *buf, size_t len)
{
	struct emu_vfio_device *d = dev->room;
	uint8_t *to = buf;
	size_t part;

	if (!may_send(d, "read", addr, len))
		return -EFAULT;
	for (; len > 0; addr += part, to += part, len -= part) {
		const struct sio_vfio_range *r = sio_vfio_memory_part(
			sio_vfio_session_memory(d->session), addr, len, false, &part);

		if (!r)
			return read_beside(d, addr, to, len, false);
		if (r->data)
			sio_copy_from(to, r->data + (addr - r->address), part);
		else if (read_beside(d, addr, to, part, true) < 0)
			return -EFAULT;
	}
	return 0;
}

/*
 * A queue entry's last word tells that it is whole: its two halves become visible in their order,
 * and behind the data of the command. Pairs with the barrier of the guest's driver behind its look.
 */
static void store(uint8_t *to, const void *from, size_t len)
{
	uint64_t half[2];

	if (len != sizeof(half) || (uintptr_t)to % sizeof(half[0])) {
		sio_copy_to(to, from, len);
		return;
	}
	memcpy(half, from, sizeof(half));
	sio_to_fabric_barrier();
	sio_write64(to, half[0]);
	sio_to_fabric_barrier();
	sio_write64(to + sizeof(half[0]), half[1]);
}

/* To what is no memory, by the peer itself: posted, nobody waits for the answer. */
static int write_by_peer(struct emu_vfio_device *d, uint64_t addr, const uint8_t *from, size_t len)
{
	size_t most = sio_vfio_session_dma_max(d->session), n;

	for (; len > 0; addr += n, from += n, len -= n) {
		n = len < most ? len : most;
		if (sio_vfio_session_asked(d->session) >= ASKED_AT_ONCE ||
		    sio_vfio_session_dma_write(d->session, addr, from, n, NULL, NULL) < 0) {
			fault(d, "write", addr, len, "the peer does not answer its DMA messages");
			return -EFAULT;
		}
	}
	return 0;
}

static int write_beside(struct emu_vfio_device *d, uint64_t addr, const uint8_t *from, size_t len,
			bool there)
{
	int rc = beside(d, addr, NULL, from, len);

	if (rc == -ENXIO && there)
		return write_by_peer(d, addr, from, len);
	if (rc < 0)
		fault(d, "write", addr, len,
		      rc == -EFAULT ? REFUSED : "nothing that may be written is there");
	return rc < 0 ? -EFAULT : 0;
}

static int dma_write(struct emu_dev *dev, uint64_t addr, const void *buf, size_t len)
{
	struct emu_vfio_device *d = dev->room;
	const uint8_t *from = buf;
	int rc = 0;
	size_t part;

	if (!may_send(d, "write", addr, len))
		return -EFAULT;
	for (; len > 0; addr += part, from += part, len -= part) {
		const struct sio_vfio_range *r = sio_vfio_memory_part(
			sio_vfio_session_memory(d->session), addr, len, true, &part);

		if (!r)
			return write_beside(d, addr, from, len, false) < 0 ? -EFAULT : rc;
		if (r->data)
			store(r->data + (addr - r->address), from, part);
		else if (write_beside(d, addr, from, part, true) < 0)
			rc = -EFAULT;
	}
	return rc;
}

static void interrupt(struct emu_dev *dev, unsigned vector)
{
	struct emu_vfio_device *d = dev->room;

	/* A message goes behind all that was written: pairs with the wait for its descriptor. */
	sio_to_fabric_barrier();
	if (d->session && sio_vfio_config_is_master(&d->space))
		sio_vfio_session_interrupt(d->session, vector);
}

static uint64_t now(struct emu_dev *dev)
{
	struct emu_vfio_device *d = dev->room;

	return d->ops->now(d->ctx);
}

static void say(struct emu_dev *dev, const char *text)
{
	struct emu_vfio_device *d = dev->room;

	d->ops->log(d->ctx, text);
}

static void *bulk_new(struct emu_dev *dev, uint64_t size)
{
	struct emu_vfio_device *d = dev->room;

	return d->ops->bulk_new(d->ctx, size);
}

static void bulk_free(struct emu_dev *dev, void *data, uint64_t size)
{
	struct emu_vfio_device *d = dev->room;

	d->ops->bulk_free(d->ctx, data, size);
}

static void bulk_zero(struct emu_dev *dev, void *data, uint64_t size)
{
	struct emu_vfio_device *d = dev->room;

	d->ops->bulk_zero(d->ctx, data, size);
}

static volatile void *view(struct emu_dev *dev, unsigned index)
{
	struct emu_vfio_device *d = dev->room;
	const struct emu_dev_pages *p = &d->config.pages[index];

	return index < d->config.n_pages && d->bar[p->bar] ? d->bar[p->bar] + p->offset : NULL;
}

static volatile void *mirror(struct emu_dev *dev, unsigned index)
{
	(void)dev;
	(void)index;
	return NULL; /* each load is a message, and sees the page itself */
}

/* ---- what the peer asks for ---- */

static void region(void *function, unsigned index, struct sio_vfio_region *ret)
{
	struct emu_vfio_device *d = function;

	if (index < SIO_VFIO_BARS)
		ret->size = d->config.bar_size[index];
	else if (index == SIO_VFIO_CONFIG)
		ret->size = SIO_VFIO_CONFIG_BYTES;
	if (ret->size)
		ret->flags = SIO_VFIO_REGION_READABLE | SIO_VFIO_REGION_WRITABLE;
}

static uint32_t vectors(void *function)
{
	return ((struct emu_vfio_device *)function)->config.msix_count;
}

static void reset(void *function)
{
	struct emu_vfio_device *d = function;

	sio_vfio_config_reset(&d->space);
	for (unsigned i = 0; i < d->config.n_pages; i++) {
		const struct emu_dev_pages *p = &d->config.pages[i];

		if (p->kind != EMU_PAGE_MEMORY)
			memset(d->bar[p->bar] + p->offset, 0, p->length);
	}
	d->model->reset(d->state, false);
}

/* Of the run's memory, by whole words where they are asked for. */
static void load(void *to, const uint8_t *from, size_t len)
{
	if (len == 4 && (uintptr_t)from % 4 == 0) {
		uint32_t word = sio_read32(from);

		memcpy(to, &word, sizeof(word));
	} else if (len == 8 && (uintptr_t)from % 8 == 0) {
		uint64_t word = sio_read64(from);

		memcpy(to, &word, sizeof(word));
	} else {
		memcpy(to, from, len);
	}
}

static int bar_or_config_read(void *function, unsigned index, uint64_t offset, void *buf,
			      size_t len)
{
	struct emu_vfio_device *d = function;

	if (index == SIO_VFIO_CONFIG)
		sio_vfio_config_read(&d->space, offset, buf, len);
	else
		load(buf, d->bar[index] + offset, len);
	return 0;
}

/* Words that come whole are stored whole. */
static void put(uint8_t *to, const uint8_t *from, size_t len)
{
	for (; len >= 4 && (uintptr_t)to % 4 == 0; to += 4, from += 4, len -= 4) {
		uint32_t word;

		memcpy(&word, from, sizeof(word));
		sio_write32(to, word);
	}
	memcpy(to, from, len);
}

/* The part of a store that falls into run @index; what falls into none is lost. */
static void store_to_run(struct emu_vfio_device *d, unsigned index, uint64_t offset,
			 const uint8_t *from, size_t len)
{
	const struct emu_dev_pages *p = &d->config.pages[index];
	uint64_t first = offset > p->offset ? offset : p->offset;
	uint64_t end = offset + len < p->offset + p->length ? offset + len : p->offset + p->length;

	/* The bits of pending vectors can only be read. */
	if (p->kind == EMU_PAGE_MSIX && end > p->offset + d->config.msix_count * MSIX_ENTRY)
		end = p->offset + d->config.msix_count * MSIX_ENTRY;
	if (first >= end)
		return;
	put(d->bar[p->bar] + first, from + (first - offset), end - first);
	if (p->kind == EMU_PAGE_REGISTERS && d->model->stored)
		d->model->stored(d->state, index);
}

static int bar_or_config_write(void *function, unsigned index, uint64_t offset, const void *buf,
			       size_t len)
{
	struct emu_vfio_device *d = function;

	if (index == SIO_VFIO_CONFIG) {
		if (sio_vfio_config_write(&d->space, offset, buf, len))
			reset(d);
		return 0;
	}
	for (unsigned i = 0; i < d->config.n_pages; i++)
		if (d->config.pages[i].bar == index)
			store_to_run(d, i, offset, buf, len);
	return 0;
}

const struct sio_vfio_function_ops emu_vfio_device_function = {
	.region = region,
	.vectors = vectors,
	.read = bar_or_config_read,
	.write = bar_or_config_write,
	.reset = reset,
};

/* ---- its life ---- */

static int new_bars(struct emu_vfio_device *d, struct sio_err *reterr)
{
	for (unsigned i = 0; i < SIO_VFIO_BARS; i++) {
		uint64_t size = d->config.bar_size[i];

		if (size > LARGEST_BAR)
			return sio_fail(reterr, -EINVAL,
					"%s: BAR %u has %" PRIu64 " bytes; at most %u are right",
					d->topo->name, i, size, LARGEST_BAR);
		d->bar[i] = size ? aligned_alloc(SIO_PAGE_SIZE, size) : NULL;
		if (size && !d->bar[i])
			return sio_fail(reterr, -ENOMEM,
					"%s: no memory for its BARs: " SIO_MORE_MEMORY,
					d->topo->name);
		if (size)
			memset(d->bar[i], 0, size);
	}
	return 0;
}

static void describe(struct emu_vfio_device *d)
{
	struct sio_vfio_config_identity id = {
		.vendor = d->config.vendor,
		.device = d->config.device,
		.subsys_vendor = d->config.subsys_vendor,
		.subsys_device = d->config.subsys_device,
		.class_code = d->config.class_code,
		.msix_count = d->config.msix_count,
	};

	memcpy(id.bar_size, d->config.bar_size, sizeof(id.bar_size));
	for (unsigned i = 0; i < d->config.n_pages; i++) {
		const struct emu_dev_pages *p = &d->config.pages[i];

		if (p->kind != EMU_PAGE_MSIX)
			continue;
		id.msix_bar = p->bar;
		id.msix_table = (uint32_t)p->offset;
		id.msix_pending = (uint32_t)p->offset + d->config.msix_count * MSIX_ENTRY;
	}
	sio_vfio_config_init(&d->space, &id);
}

int emu_vfio_device_new(const struct emu_dev_model *model, const struct sio_topo_device *topo,
			const struct emu_vfio_device_ops *ops, void *ctx,
			struct emu_vfio_device **ret, struct sio_err *reterr)
{
	struct emu_vfio_device *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return sio_fail(reterr, -ENOMEM, "%s: no memory for the device: " SIO_MORE_MEMORY,
				topo->name);
	d->dev = (struct emu_dev){
		.room = d,
		.read = dma_read,
		.write = dma_write,
		.interrupt = interrupt,
		.now = now,
		.log = say,
		.view = view,
		.mirror = mirror,
		.bulk_new = ops->bulk_new ? bulk_new : NULL,
		.bulk_free = ops->bulk_free ? bulk_free : NULL,
		.bulk_zero = ops->bulk_zero ? bulk_zero : NULL,
		.store = ops->store ? ops->store(ctx) : NULL,
	};
	d->model = model;
	d->topo = topo;
	d->ops = ops;
	d->ctx = ctx;
	rc = model->create(&d->dev, topo, &d->config, &d->state, reterr);
	if (rc < 0)
		d->state = NULL;
	else
		rc = new_bars(d, reterr);
	if (rc < 0) {
		emu_vfio_device_free(d);
		return rc;
	}
	describe(d);
	model->reset(d->state, true);
	*ret = d;
	return 0;
}

void emu_vfio_device_free(struct emu_vfio_device *d)
{
	if (!d)
		return;
	if (d->state)
		d->model->destroy(d->state);
	for (unsigned i = 0; i < SIO_VFIO_BARS; i++)
		free(d->bar[i]);
	free(d);
}

void emu_vfio_device_attach(struct emu_vfio_device *d, struct sio_vfio_session *s)
{
	d->session = s;
	reset(d);
}

unsigned emu_vfio_device_counters(struct emu_vfio_device *d, char (*name)[32], uint64_t *value,
				  unsigned max)
{
	if (max == 0)
		return 0;
	snprintf(name[0], sizeof(name[0]), "faults");
	value[0] = d->n_faults;
	return 1 + d->model->counters(d->state, name + 1, value + 1, max - 1);
}

unsigned emu_vfio_device_step(struct emu_vfio_device *d, unsigned budget)
{
	return d->session ? d->model->step(d->state, budget) : 0;
}

bool emu_vfio_device_idle(const struct emu_vfio_device *d)
{
	return !d->session || d->model->idle(d->state);
}
