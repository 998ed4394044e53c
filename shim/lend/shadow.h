/* SPDX-License-Identifier: GPL-2.0-only */
/* A shadow: a function of a root bus of its own. */
#ifndef SHIM_LEND_SHADOW_H
#define SHIM_LEND_SHADOW_H

#include <linux/msi.h>
#include <linux/spinlock.h>

#include "../lend.h"

#define SHADOW_CONFIG 256
#define SHADOW_MAX_VECTORS 32 /* of MSI */

struct smartio_shadow {
	struct pci_sysdata sysdata; /* the bus's; first, so that one leads to the other */
	struct smartio_shadow_info info;
	struct pci_bus *bus;
	struct device *bridge; /* the bus's; @s lives as long as that */
	struct resource numbers, window[SIO_DEVICE_BARS];
	raw_spinlock_t lock; /* of the configuration space */
	u8 config[SHADOW_CONFIG], writable[SHADOW_CONFIG];
	bool lost;
	struct fwnode_handle *fwnode;
	struct irq_domain *domain; /* NULL: it has no vectors */
	struct msi_domain_info msi;
	unsigned int virq[SHADOW_MAX_VECTORS]; /* the kernel's numbers; 0: nobody's */
};

static inline struct smartio_shadow *shadow_of(const struct pci_bus *bus)
{
	return container_of(bus->sysdata, struct smartio_shadow, sysdata);
}

/* config.c */
extern struct pci_ops shadow_config_ops;
void shadow_config_fill(struct smartio_shadow *s);

/* msi.c */
int shadow_msi_make(struct smartio_shadow *s);
void shadow_msi_free(struct smartio_shadow *s);
void shadow_interrupt(struct smartio_shadow *s, unsigned int vector);

/* dma.c */
extern const struct dma_map_ops shadow_dma_ops;

#endif
