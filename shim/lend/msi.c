// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts. What the device sends arrives as an interrupt of the adapter's function, which
 * smartio.ko has, and is passed on to the kernel's number for the shadow's vector. So the messages
 * that the kernel would write into the MSI-X table have no effect, and no processor can be chosen
 * for a vector, as with VMD.
 *
 * The device goes on sending by a vector that is masked here; the interrupt is pending here, too,
 * until the vector is unmasked. The kernel's masks and pending bits are kept here, not in the
 * table, which is memory of the lender's host: reading that takes long, and for ever when the host
 * is gone.
 */
#include <linux/irq.h>
#include <linux/irqdomain.h>

#include "shadow.h"

#define INDEX 0x7ff /* of the vector, in the hardware number that the kernel makes of a PCI place */

static void ack(struct irq_data *d)
{
}

static void mask(struct irq_data *d)
{
	struct smartio_shadow *s = irq_data_get_irq_chip_data(d);
	unsigned long flags;

	raw_spin_lock_irqsave(&s->lock, flags);
	s->masked |= BIT(d->hwirq & INDEX);
	raw_spin_unlock_irqrestore(&s->lock, flags);
}

static void unmask(struct irq_data *d)
{
	struct smartio_shadow *s = irq_data_get_irq_chip_data(d);
	unsigned long flags;

	raw_spin_lock_irqsave(&s->lock, flags);
	s->masked &= ~BIT(d->hwirq & INDEX);
	shadow_msi_again(s);
	raw_spin_unlock_irqrestore(&s->lock, flags);
}

static void write_message(struct irq_data *d, struct msi_msg *msg)
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
	.irq_mask = mask,
	.irq_unmask = unmask,
	.irq_write_msi_msg = write_message,
	.irq_set_affinity = set_affinity,
	.irq_compose_msi_msg = compose,
};

static int msi_init(struct irq_domain *domain, struct msi_domain_info *info, unsigned int virq,
		    irq_hw_number_t hwirq, msi_alloc_info_t *arg)
{
	struct smartio_shadow *s = info->data;
	u32 i = hwirq & INDEX;
	unsigned long flags;

	if (i >= s->info.vectors)
		return -ENOSPC;
	irq_domain_set_info(domain, virq, hwirq, info->chip, s, handle_edge_irq, s, "edge");
	raw_spin_lock_irqsave(&s->lock, flags);
	s->virq[i] = virq;
	s->masked |= BIT(i);
	s->pending &= ~BIT(i);
	raw_spin_unlock_irqrestore(&s->lock, flags);
	return 0;
}

static void msi_free(struct irq_domain *domain, struct msi_domain_info *info, unsigned int virq)
{
	struct smartio_shadow *s = info->data;
	unsigned long flags;

	raw_spin_lock_irqsave(&s->lock, flags);
	s->virq[irq_domain_get_irq_data(domain, virq)->hwirq & INDEX] = 0;
	raw_spin_unlock_irqrestore(&s->lock, flags);
}

static struct msi_domain_ops msi_ops = {
	.msi_init = msi_init,
	.msi_free = msi_free,
};

/* The kernel's number for it; 0: nobody has it, or it is pending now. */
static unsigned int number_of(struct smartio_shadow *s, unsigned int vector)
{
	unsigned int virq = 0;
	unsigned long flags;

	raw_spin_lock_irqsave(&s->lock, flags);
	if (s->masked & BIT(vector) || !shadow_config_interrupts(s))
		s->pending |= BIT(vector);
	else
		virq = s->virq[vector];
	raw_spin_unlock_irqrestore(&s->lock, flags);
	return virq;
}

/* Interrupt descriptors are freed by RCU. */
void shadow_interrupt(struct smartio_shadow *s, unsigned int vector)
{
	unsigned int virq;

	rcu_read_lock();
	virq = vector < s->info.vectors ? number_of(s, vector) : 0;
	if (virq)
		generic_handle_irq_safe(virq);
	rcu_read_unlock();
}

/* Not where it was unmasked, for there the kernel has the lock of that interrupt. */
static void report_again(struct irq_work *work)
{
	struct smartio_shadow *s = container_of(work, struct smartio_shadow, again);
	unsigned long flags, due;
	unsigned int i;

	raw_spin_lock_irqsave(&s->lock, flags);
	due = s->pending & ~s->masked;
	s->pending &= ~due;
	raw_spin_unlock_irqrestore(&s->lock, flags);
	for_each_set_bit(i, &due, SIO_SHADOW_VECTORS)
		shadow_interrupt(s, i);
}

void shadow_msi_again(struct smartio_shadow *s)
{
	if (s->pending & ~s->masked && shadow_config_interrupts(s))
		irq_work_queue(&s->again);
}

int shadow_msi_make(struct smartio_shadow *s)
{
	s->masked = ~0ul;
	init_irq_work(&s->again, report_again);
	if (!s->info.vectors)
		return 0;
	s->fwnode = irq_domain_alloc_named_id_fwnode("smartio-shadow", s->sysdata.domain);
	if (!s->fwnode)
		return -ENOMEM;
	s->msi = (struct msi_domain_info){
		.flags = MSI_FLAG_USE_DEF_DOM_OPS | MSI_FLAG_USE_DEF_CHIP_OPS | MSI_FLAG_PCI_MSIX,
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
	irq_work_sync(&s->again);
	irq_domain_remove(s->domain);
	irq_domain_free_fwnode(s->fwnode);
	s->domain = NULL;
}
