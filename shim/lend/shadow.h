/* SPDX-License-Identifier: GPL-2.0-only */
/* A shadow: a function of a root bus of its own. */
#ifndef SHIM_LEND_SHADOW_H
#define SHIM_LEND_SHADOW_H

#include <linux/dma-mapping.h>
#include <linux/iova.h>
#include <linux/irq_work.h>
#include <linux/msi.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "../lend.h"

#define SHADOW_CONFIG 256

struct smartio_shadow {
	struct pci_sysdata sysdata; /* the bus's; first, so that one leads to the other */
	struct list_head node;	    /* peer.c */
	struct smartio_shadow_info info;
	struct pci_bus *bus;
	struct device *bridge; /* the bus's; @s lives as long as that */
	struct resource numbers, window[SIO_DEVICE_BARS];
	raw_spinlock_t lock; /* of the configuration space, and of which vectors are masked */
	u8 config[SHADOW_CONFIG], writable[SHADOW_CONFIG];
	bool lost;
	bool live; /* registers of the device's own are asked for */
	u32 told;  /* bit per register: it was told what the copy says */
	struct {
		u32 value, mask;
	} posted[SIO_SHADOW_REGISTERS]; /* that are yet to be written to it, by @post */
	struct work_struct post;
	struct fwnode_handle *fwnode;
	struct irq_domain *domain; /* NULL: it has no vectors */
	struct msi_domain_info msi;
	unsigned int virq[SIO_SHADOW_VECTORS]; /* the kernel's numbers; 0: nobody's */
	unsigned long masked, pending;	       /* bit per vector */
	struct irq_work again;		       /* tells what is pending and not masked any more */
	bool has_window;
	struct iova_domain numbers_of_pages; /* of the window: which are free */
	atomic_long_t mapped;		     /* pages */
};

static inline struct smartio_shadow *shadow_of(const struct pci_bus *bus)
{
	return container_of(bus->sysdata, struct smartio_shadow, sysdata);
}

/* config.c */
extern struct pci_ops shadow_config_ops;
void shadow_config_fill(struct smartio_shadow *s);
void shadow_config_post(struct work_struct *work);
/* May it interrupt at all? With the lock. */
bool shadow_config_interrupts(const struct smartio_shadow *s);

/* msi.c */
int shadow_msi_make(struct smartio_shadow *s);
void shadow_msi_free(struct smartio_shadow *s);
/* The function may interrupt again: what is pending is delivered. With the lock. */
void shadow_msi_again(struct smartio_shadow *s);
void shadow_interrupt(struct smartio_shadow *s, unsigned int vector);

/* dma.c */
extern const struct dma_map_ops shadow_dma_ops;

/* peer.c: BARs of other shadows */
/* From before a driver may know its BARs until none does. */
void shadow_peers_join(struct smartio_shadow *s);
void shadow_peers_leave(struct smartio_shadow *s);
int shadow_peer_add(struct smartio_shadow *s, struct smartio_shadow *target, unsigned int bar,
		    u64 address, u64 size);
/* Nobody reaches it, and it reaches nobody. */
void shadow_peers_drop(const struct smartio_shadow *s);
/* dma_map_resource() of its driver, and the opposite. */
dma_addr_t shadow_peer_map(struct device *dev, phys_addr_t phys, size_t size,
			   enum dma_data_direction dir);
void shadow_peer_unmap(struct device *dev, dma_addr_t address, size_t size);

/* window.c: of a shadow that has one; as the DMA operations of these names */
dma_addr_t shadow_window_map(struct device *dev, u64 phys, size_t size,
			     enum dma_data_direction dir);
/* The same of another device's registers. */
dma_addr_t shadow_window_map_bar(struct device *dev, u64 phys, size_t size,
				 enum dma_data_direction dir);
void shadow_window_unmap(struct device *dev, dma_addr_t address, size_t size);
int shadow_window_map_sg(struct device *dev, struct scatterlist *sgl, int n,
			 enum dma_data_direction dir);
void shadow_window_unmap_sg(struct device *dev, struct scatterlist *sgl, int n);
/* Bytes that one mapping may have. */
size_t shadow_window_longest(const struct smartio_shadow *s);
int shadow_window_make(struct smartio_shadow *s);
/* No driver has it any more. */
void shadow_window_free(struct smartio_shadow *s);

#endif
