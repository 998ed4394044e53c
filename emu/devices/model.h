/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the machine room and its device models. A model is a step machine: it owns no thread,
 * clock or descriptor; the room calls it, and it calls the room through struct emu_dev.
 */
#ifndef EMU_DEVICE_H
#define EMU_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/err.h"
#include "core/topology.h"

enum emu_page_kind {
	EMU_PAGE_REGISTERS = 1, /* one writable view at a time, and a read-only mirror */
	EMU_PAGE_DOORBELLS,	/* every borrower, read and write */
	EMU_PAGE_MSIX,		/* nobody */
	EMU_PAGE_MEMORY,	/* controller memory */
};

#define EMU_DEV_PAGES 32

/* A run of BAR pages with one purpose. The room makes the memory; the model names the layout. */
struct emu_dev_pages {
	uint32_t bar;
	enum emu_page_kind kind;
	uint64_t offset, length; /* in the BAR; multiples of the page size */
};

/* Identity and layout, told by the model when it is made. */
struct emu_dev_config {
	uint32_t vendor, device, subsys_vendor, subsys_device, class_code;
	uint64_t serial;
	uint64_t bar_size[6];
	unsigned n_pages;
	struct emu_dev_pages pages[EMU_DEV_PAGES];
	uint32_t msix_count; /* 0: none */
	/* So many steps that find nothing, and each word of the pages was looked at. */
	unsigned full_look;
};

/*
 * What the room gives a model. DMA goes through the device's IOMMU and the NTBs, is counted by
 * PCIe's rules and, when it fails, written to the fault log by the room. Not reentrant.
 */
struct emu_dev {
	void *room; /* the room's */

	/* Non-posted. 0; -EFAULT: Unsupported Request, nothing was read. */
	int (*read)(struct emu_dev *d, uint64_t addr, void *buf, size_t len);
	/*
	 * Posted: what cannot arrive vanishes, stands in the fault log, and -EFAULT is for counters
	 * only.
	 */
	int (*write)(struct emu_dev *d, uint64_t addr, const void *buf, size_t len);
	/*
	 * Raise interrupt vector @vector, below msix_count: its message goes out behind all that
	 * was written before. One that is masked is kept, and goes out once when it no longer is.
	 */
	void (*interrupt)(struct emu_dev *d, unsigned vector);
	/* Nanoseconds, monotonic. */
	uint64_t (*now)(struct emu_dev *d);
	void (*log)(struct emu_dev *d, const char *text);
	/*
	 * Zeroed memory of the model's own for much data, such as a drive's media: in large pages
	 * where there are such. NULL: out of memory. bulk_zero: whole pages of it read as zeros
	 * again. All are NULL where calloc() and memset() serve as well.
	 */
	void *(*bulk_new)(struct emu_dev *d, uint64_t size);
	void (*bulk_free)(struct emu_dev *d, void *data, uint64_t size);
	void (*bulk_zero)(struct emu_dev *d, void *data, uint64_t size);
	/*
	 * The CPU's view of the pages run @index of the configuration: plain memory shared with
	 * whoever mapped it, hostile, read with sio_read32() and checked. Registers: @view is what
	 * the holder of the registers writes to (NULL while nobody does), @mirror what the others
	 * read; the model keeps both up to date.
	 * Pages are made at power-on, before reset(power), and go at power-off without a word: a
	 * pointer kept across reset() or view_changed() is wrong. None exist in create() and
	 * destroy().
	 */
	volatile void *(*view)(struct emu_dev *d, unsigned index);
	volatile void *(*mirror)(struct emu_dev *d, unsigned index);
	/*
	 * The pages of run @index, of controller memory, read as zeros again; much memory costs no
	 * more than little. NULL where memset() serves as well.
	 */
	void (*zero)(struct emu_dev *d, unsigned index);
};

struct emu_dev_model {
	const char *type; /* as in the topology file */
	/* Make a model for @dev as @topo says. @config and *ret are set on success. */
	int (*create)(struct emu_dev *dev, const struct sio_topo_device *topo,
		      struct emu_dev_config *config, void **ret, struct sio_err *reterr);
	void (*destroy)(void *model);
	/*
	 * Look at registers and doorbells and work until @budget units are done: a command is one,
	 * and each page of its data after the first another. More only by what was begun.
	 * Return: units of work done; 0: nothing to do, and every doorbell in use was looked at in
	 * this very call (the room steps once more before it sleeps, and trusts the answer).
	 */
	unsigned (*step)(void *model, unsigned budget);
	/*
	 * As @n steps that find nothing: for who knows of every store, and saw none since full_look
	 * steps found nothing and the model was idle().
	 */
	void (*skip_steps)(void *model, uint64_t n);
	/*
	 * Power-on or function reset: registers to their defaults, queues gone; media stay unless
	 * @power.
	 */
	void (*reset)(void *model, bool power);
	/*
	 * A new writable view of a register page was handed out (or taken back: view() is NULL), or
	 * the doorbells are elsewhere.
	 */
	void (*view_changed)(void *model, unsigned index);
	/*
	 * The holder of register page @index has just stored to it: look at all of it now. For a
	 * room that takes each store by itself; may be NULL: the steps that follow find it.
	 */
	void (*stored)(void *model, unsigned index);
	/* True: the model waits for nothing but registers and doorbells (the room may nap). */
	bool (*idle)(void *model);
	/* Fill up to @max named counters. Return: how many. */
	unsigned (*counters)(void *model, char (*name)[32], uint64_t *value, unsigned max);
};

/* For counters(): as many of the @n as there is room for. */
struct emu_dev_counter {
	const char *name;
	uint64_t value;
};
static inline unsigned emu_dev_counters(const struct emu_dev_counter *all, unsigned n,
					char (*name)[32], uint64_t *value, unsigned max)
{
	if (n > max)
		n = max;
	for (unsigned i = 0; i < n; i++) {
		snprintf(name[i], sizeof(name[i]), "%s", all[i].name);
		value[i] = all[i].value;
	}
	return n;
}

extern const struct emu_dev_model emu_accel_model, emu_memdev_model, emu_nvme_model;

#endif
