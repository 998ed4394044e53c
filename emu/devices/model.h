/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface between the machine room and its device models. A model is a step machine: it owns
 * no thread, clock or descriptor; the room calls it, and it calls the room through struct emu_dev.
 */
#ifndef EMU_DEVICE_H
#define EMU_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/err.h"
#include "core/topology.h"
#include "emu/devices/store.h"
#include "smartio/io.h"

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

/* Identity and layout, set by the model when it is made. */
struct emu_dev_config {
	uint32_t vendor, device, subsys_vendor, subsys_device, class_code;
	uint64_t serial;
	uint64_t bar_size[6];
	unsigned n_pages;
	struct emu_dev_pages pages[EMU_DEV_PAGES];
	uint32_t msix_count; /* 0: none */
	/* After this many steps without work every word of the pages has been checked. */
	unsigned full_look;
};

/*
 * What the room provides for a model. DMA goes through the device's IOMMU and the NTBs, is counted
 * by PCIe's rules and, when it fails, written to the fault log by the room. Not reentrant.
 */
struct emu_dev {
	void *room; /* the room's */
	/* For a virtual function: the model of its physical function, made before it; else NULL. */
	void *physical;
	/* For media in files; NULL: there are none here. Must outlive the model. */
	struct emu_store *store;

	/* Non-posted. 0; -EFAULT: Unsupported Request, nothing was read. */
	int (*read)(struct emu_dev *d, uint64_t addr, void *buf, size_t len);
	/*
	 * Posted: a write that cannot arrive is dropped, and recorded in the fault log; -EFAULT is
	 * for counters only.
	 */
	int (*write)(struct emu_dev *d, uint64_t addr, const void *buf, size_t len);
	/*
	 * Raises interrupt vector @vector, below msix_count: its message is sent behind all earlier
	 * writes. A masked interrupt is kept pending, and is sent once when it is unmasked.
	 */
	void (*interrupt)(struct emu_dev *d, unsigned vector);
	/* Nanoseconds, monotonic. */
	uint64_t (*now)(struct emu_dev *d);
	/*
	 * Of a physical function: how many of its virtual ones, the first ones, its SR-IOV
	 * capability has enabled. NULL: they are always there.
	 */
	unsigned (*functions)(struct emu_dev *d);
	void (*log)(struct emu_dev *d, const char *text);
	/*
	 * Zeroed memory of the model's own for much data, such as a drive's media: in large pages
	 * where available. NULL: out of memory. bulk_zero: makes whole pages of it read as zeros
	 * again. All are NULL where calloc() and memset() serve as well.
	 */
	void *(*bulk_new)(struct emu_dev *d, uint64_t size);
	void (*bulk_free)(struct emu_dev *d, void *data, uint64_t size);
	void (*bulk_zero)(struct emu_dev *d, void *data, uint64_t size);
	/*
	 * The CPU's view of the pages run @index of the configuration: plain memory shared with
	 * every program that has mapped it, hostile, read with sio_read32() and checked. Registers:
	 * @view is what the owner of the registers writes to (NULL while they are unowned), @mirror
	 * what others read; the model keeps both up to date. Pages are made at power-on, before
	 * reset(power), and disappear at power-off without notice: a pointer kept across reset() or
	 * view_changed() is wrong. None exist in create() and destroy().
	 */
	volatile void *(*view)(struct emu_dev *d, unsigned index);
	volatile void *(*mirror)(struct emu_dev *d, unsigned index);
	/*
	 * Makes the pages of run @index, of controller memory, read as zeros again, at a cost that
	 * hardly grows with their number. NULL where memset() serves as well.
	 */
	void (*zero)(struct emu_dev *d, unsigned index);
};

/* Faults that a model can be made to have, for tests of its users. */
enum emu_dev_fault_kind {
	EMU_FAULT_NONE = 0,
	EMU_FAULT_DELAY,    /* a command is carried out @value nanoseconds later */
	EMU_FAULT_DROP,	    /* it is carried out, and its completion is never posted */
	EMU_FAULT_ERROR,    /* it is not carried out, and fails with status @value */
	EMU_FAULT_WRONG_ID, /* it is completed as another one, which is not in flight */
	EMU_FAULT_TWICE,    /* it is completed twice */
	EMU_FAULT_DOORBELL, /* a store that announces commands is not seen */
	EMU_FAULT_FATAL,    /* the controller stops with fatal status instead */
	EMU_FAULT_KINDS
};
#define EMU_FAULT_ANY UINT32_MAX

struct emu_dev_fault {
	enum emu_dev_fault_kind kind;
	uint32_t opcode, queue; /* of the commands that it concerns; EMU_FAULT_ANY */
	uint32_t after, count;	/* so many of those pass before; then so many; 0: all */
	uint64_t value;
};

struct emu_dev_model {
	const char *type; /* as in the topology file */
	/* Makes a model for @dev as @topo says. @config and *ret are set on success. */
	int (*create)(struct emu_dev *dev, const struct sio_topo_device *topo,
		      struct emu_dev_config *config, void **ret, struct sio_err *reterr);
	void (*destroy)(void *model);
	/*
	 * Checks registers and doorbells and works until @budget units are done: a command is one
	 * unit, and so is each page of its data after the first. It may do more only to complete
	 * what was begun.
	 * Return: units of work done; 0: nothing to do, and every doorbell in use was checked in
	 * this very call (the room steps once more before it sleeps, and relies on that).
	 */
	unsigned (*step)(void *model, unsigned budget);
	/*
	 * Has the effect of @n steps without work: for a caller who knows of every store, and saw
	 * none since full_look steps found nothing and the model was idle().
	 */
	void (*skip_steps)(void *model, uint64_t n);
	/*
	 * Power-on or function reset: registers to their defaults, queues gone; media stay unless
	 * @power.
	 */
	void (*reset)(void *model, bool power);
	/*
	 * A new writable view of a register page was handed out (or withdrawn: view() is NULL), or
	 * the doorbells have other pages.
	 */
	void (*view_changed)(void *model, unsigned index);
	/*
	 * The owner of register page @index has just stored to it: the model checks all of it now.
	 * For a room that intercepts each store; may be NULL: the steps that follow find the store.
	 */
	void (*stored)(void *model, unsigned index);
	/*
	 * From now on the model has fault @f, too, until it has occurred as often as @f says; NULL:
	 * no fault any more, but what is delayed already arrives at its time. NULL as the function:
	 * the model has no faults. -ENOSPC: too many faults at once; -EINVAL; -ENOMEM.
	 */
	int (*fault)(void *model, const struct emu_dev_fault *f, struct sio_err *reterr);
	/* True: the model waits for nothing but registers and doorbells (the room may nap). */
	bool (*idle)(void *model);
	/* Fills in up to @max named counters. Return: how many. */
	unsigned (*counters)(void *model, char (*name)[32], uint64_t *value, unsigned max);
};

/* For counters(): copies as many of the @n as there is room for. */
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

/* Zeroes pages of a BAR, which others see, by the accessors that all models use. */
static inline void emu_dev_zero(volatile void *at, size_t len)
{
	static const uint8_t zeros[4096];

	for (size_t done = 0; done < len; done += sizeof(zeros))
		sio_copy_to((volatile uint8_t *)at + done, zeros,
			    len - done < sizeof(zeros) ? len - done : sizeof(zeros));
}

extern const struct emu_dev_model emu_accel_model, emu_memdev_model, emu_nvme_model;

#endif
