/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Device Lending: smartio_lend.ko puts a borrowed function into this host's PCI tree, where its
 * stock driver binds. smartio.ko knows whose it is, and what its parts lead to.
 */
#ifndef SHIM_LEND_H
#define SHIM_LEND_H

#include <linux/module.h>
#include <linux/pci.h>
#include <linux/types.h>

#include <smartio/uapi.h>

struct smartio_shadow; /* smartio_lend.ko's */

struct smartio_shadow_bar {
	phys_addr_t phys; /* where this host's processors find it */
	u64 size;	  /* a power of 2; 0: there is none */
	u32 type;	  /* SIO_BAR_64, SIO_BAR_PREFETCH */
};

struct smartio_shadow_info {
	struct pci_dev *parent; /* the adapter's function */
	u32 class_revision;
	u16 vendor, device, subsys_vendor, subsys_device;
	struct smartio_shadow_bar bar[SIO_DEVICE_BARS];
	u32 vectors;		  /* a power of 2; 0: none */
	u64 dma_base, dma_length; /* physical address n is dma_base + n for the device */
};

/*
 * All may sleep but interrupt() and lost(). Only free() and lost() are called with smartio.ko's
 * lock.
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
	/* Its driver goes, then the function. */
	void (*del)(struct smartio_shadow *s);
	void (*free)(struct smartio_shadow *s);
};

/* -EBUSY: somebody else does it. */
int smartio_lend_register(const struct smartio_lend_ops *ops);
void smartio_lend_unregister(const struct smartio_lend_ops *ops);

#endif
