/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Device Lending: smartio_lend.ko puts a borrowed function into this host's PCI tree, where its
 * stock driver binds. smartio.ko knows who owns it, and what its parts lead to.
 */
#ifndef SHIM_LEND_H
#define SHIM_LEND_H

#include <linux/module.h>
#include <linux/pci.h>
#include <linux/types.h>

#include <smartio/uapi.h>

struct smartio_shadow; /* smartio_lend.ko's */
struct sio_shadow;     /* smartio.ko's */

struct smartio_shadow_bar {
	phys_addr_t phys; /* where this host's processors find it */
	u64 size;	  /* a power of 2; 0: there is none */
	u32 type;	  /* SIO_BAR_64, SIO_BAR_PREFETCH */
};

struct smartio_shadow_info {
	struct pci_dev *parent;	 /* the adapter's function */
	struct sio_shadow *port; /* for smartio_shadow_ask(); NULL: nobody is asked */
	u32 class_revision;
	u16 vendor, device, subsys_vendor, subsys_device;
	struct smartio_shadow_bar bar[SIO_DEVICE_BARS];
	u32 vectors, table_bar;	  /* of MSI-X, 0: none; memory, in which its table is */
	u64 dma_base, dma_length; /* physical address n is dma_base + n for the device; */
	/* with a domain: I/O address io_base + n is. Nobody else maps anything there. */
	struct iommu_domain *domain;
	u64 io_base;
	bool peers; /* its driver may map BARs for it */
};

/*
 * All may sleep but interrupt() and lost(). Only peer(), free() and lost() are called with
 * smartio.ko's lock.
 */
struct smartio_lend_ops {
	struct module *owner; /* who is kept loaded while there are shadows */
	/* In the tree, without a driver yet. *ret_bdf: as of the port's ADAPTER. Or an error. */
	struct smartio_shadow *(*add)(const struct smartio_shadow_info *info, u32 *ret_bdf);
	/* Drivers may bind. */
	void (*start)(struct smartio_shadow *s);
	/* The device sent @vector. Between add() and free(), from any context. */
	void (*interrupt)(struct smartio_shadow *s, unsigned int vector);
	/* Nothing is behind it any more: configuration space reads as ones. From any context. */
	void (*lost)(struct smartio_shadow *s);
	/*
	 * The device reaches @size bytes of BAR @bar of @target, from its beginning, at @address:
	 * until del() of one of them. With smartio.ko's lock. -EEXIST: it has an address
	 * already; -ERANGE: that meets the window.
	 */
	int (*peer)(struct smartio_shadow *s, struct smartio_shadow *target, unsigned int bar,
		    u64 address, u64 size);
	/* Its driver goes, then the function. */
	void (*del)(struct smartio_shadow *s);
	void (*free)(struct smartio_shadow *s);
};

/*
 * Bits @mask of register @reg (SIO_SHADOW_*) of the device itself become those of @value (0: none),
 * then it is read into *ret. Sleeps, but not for ever; neither smartio.ko's lock nor a spinlock is
 * held. Return: 0; or an error, and *ret is all ones. Between add() and free().
 */
int smartio_shadow_ask(struct sio_shadow *s, u32 reg, u32 value, u32 mask, u32 *ret);
/*
 * The device may still send, although its driver believes that it does not: it is lost, and when
 * this returns it does not reach this host any more. The same contexts.
 */
void smartio_shadow_cut(struct sio_shadow *s);

/* -EBUSY: somebody else does it. */
int smartio_lend_register(const struct smartio_lend_ops *ops);
void smartio_lend_unregister(const struct smartio_lend_ops *ops);

#endif
