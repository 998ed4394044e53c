// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts. What the device sends arrives as an interrupt of the adapter's function, which
 * smartio.ko has, and is handed on to the kernel's number for the shadow's vector. So the message
 * that the kernel writes into the shadow is read by nobody, and no processor can be chosen for it,
 * as with VMD.
 */
#include <linux/irq.h>
#include <linux/irqdomain.h>

#include "shadow.h"

#define INDEX 0x7ff /* of the vector, in the hardware number that the kernel makes of a PCI place */

static void ack(struct irq_data *d)
{
}

static void compose(struct irq_data *d, struct msi_msg *msg)
{
	memset(msg, 0, sizeof(*msg));
}

/* It goes where the adapter's goes. */
static int set_affinity(struct irq_data *d, const struct cpumask *mask, bool force)
{
	return -EINVAL;
}

static struct irq_chip chip = {
	.name = "smartio-shadow",
	.irq_ack = ack,
	.irq_set_affinity = set_affinity,
	.irq_compose_msi_msg = compose,
};

static int msi_init(struct irq_domain *domain, struct msi_domain_info *info, unsigned int virq,
		    irq_hw_number_t hwirq, msi_alloc_info_t *arg)
{
	struct smartio_shadow *s = info->data;
	u32 i = hwirq & INDEX;

	if (i >= s->info.vectors)
		return -ENOSPC;
	irq_domain_set_info(domain, virq, hwirq, info->chip, s, handle_edge_irq, s, "edge");
	WRITE_ONCE(s->virq[i], virq);
	return 0;
}

static void msi_free(struct irq_domain *domain, struct msi_domain_info *info, unsigned int virq)
{
	struct smartio_shadow *s = info->data;

	WRITE_ONCE(s->virq[irq_domain_get_irq_data(domain, virq)->hwirq & INDEX], 0);
}

static struct msi_domain_ops msi_ops = {
	.msi_init = msi_init,
	.msi_free = msi_free,
};

/* Interrupt descriptors are freed by RCU. */
void shadow_interrupt(struct smartio_shadow *s, unsigned int vector)
{
	unsigned int virq;

	rcu_read_lock();
	virq = vector < SHADOW_MAX_VECTORS ? READ_ONCE(s->virq[vector]) : 0;
	if (virq)
		generic_handle_irq_safe(virq);
	rcu_read_unlock();
}

int shadow_msi_make(struct smartio_shadow *s)
{
	if (!s->info.vectors)
		return 0;
	s->fwnode = irq_domain_alloc_named_id_fwnode("smartio-shadow", s->sysdata.domain);
	if (!s->fwnode)
		return -ENOMEM;
	s->msi = (struct msi_domain_info){
		.flags = MSI_FLAG_USE_DEF_DOM_OPS | MSI_FLAG_USE_DEF_CHIP_OPS |
			 MSI_FLAG_MULTI_PCI_MSI,
		.ops = &msi_ops,
		.chip = &chip,
		.data = s,
	};
	s->domain = pci_msi_create_irq_domain(s->fwnode, &s->msi, NULL);
	if (!s->domain) {
		irq_domain_free_fwnode(s->fwnode);
		return -ENOMEM;
	}
	/* Else interrupt remapping puts its own domain in the place of this one. */
	irq_domain_update_bus_token(s->domain, DOMAIN_BUS_VMD_MSI);
	return 0;
}

void shadow_msi_free(struct smartio_shadow *s)
{
	if (!s->domain)
		return;
	irq_domain_remove(s->domain);
	irq_domain_free_fwnode(s->fwnode);
	s->domain = NULL;
}
