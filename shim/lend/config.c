// SPDX-License-Identifier: GPL-2.0-only
/*
 * Configuration space: a copy of this host's. The lender has enabled the function and made it a bus
 * master before; so nothing that a driver writes here needs to reach it, and no access waits for
 * anybody (they are made with interrupts off, too).
 *
 * It shows what can be lent: memory BARs, MSI. No INTx, I/O ports, ROM, resets, power states, MSI-X
 * (whose table is the lender's, since who writes it can interrupt the lender), nor anything beyond
 * the first 256 bytes. It says that it is an endpoint integrated into the root complex, for there
 * is no port above it whose link could be asked for.
 */

#include <linux/log2.h>

#include "shadow.h"

#define EXPRESS 0x40
#define EXPRESS_BYTES 0x3c /* of version 2 */
#define MSI 0x80

/* ---- the copy ---- */

static void put(struct smartio_shadow *s, unsigned int at, unsigned int size, u32 value,
		u32 writable)
{
	for (unsigned int i = 0; i < size; i++) {
		s->config[at + i] = value >> 8 * i;
		s->writable[at + i] = writable >> 8 * i;
	}
}

static void put_bar(struct smartio_shadow *s, unsigned int i)
{
	const struct smartio_shadow_bar *b = &s->info.bar[i];
	u64 mask = ~(b->size - 1), value = b->phys & mask;
	unsigned int at = PCI_BASE_ADDRESS_0 + 4 * i;
	u32 type = 0;

	if (!b->size)
		return;
	if (b->type & SIO_BAR_PREFETCH)
		type |= PCI_BASE_ADDRESS_MEM_PREFETCH;
	if (b->type & SIO_BAR_64)
		type |= PCI_BASE_ADDRESS_MEM_TYPE_64;
	put(s, at, 4, lower_32_bits(value) | type, lower_32_bits(mask));
	if (b->type & SIO_BAR_64)
		put(s, at + 4, 4, upper_32_bits(value), upper_32_bits(mask));
}

static void put_express(struct smartio_shadow *s)
{
	put(s, PCI_CAPABILITY_LIST, 1, EXPRESS, 0);
	put(s, EXPRESS, 2, PCI_CAP_ID_EXP | (s->info.vectors ? MSI << 8 : 0), 0);
	put(s, EXPRESS + PCI_EXP_FLAGS, 2, 2 | PCI_EXP_TYPE_RC_END << 4, 0);
	put(s, EXPRESS + PCI_EXP_DEVCAP, 4, PCI_EXP_DEVCAP_RBER, 0);
	put(s, EXPRESS + PCI_EXP_DEVCTL, 2, PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN,
	    0xffff & ~PCI_EXP_DEVCTL_BCR_FLR);
	BUILD_BUG_ON(EXPRESS + EXPRESS_BYTES > MSI);
}

static void put_msi(struct smartio_shadow *s)
{
	u32 many = ilog2(s->info.vectors);

	put(s, MSI, 2, PCI_CAP_ID_MSI, 0);
	put(s, MSI + PCI_MSI_FLAGS, 2, PCI_MSI_FLAGS_64BIT | many << 1,
	    PCI_MSI_FLAGS_ENABLE | PCI_MSI_FLAGS_QSIZE);
	put(s, MSI + PCI_MSI_ADDRESS_LO, 4, 0, ~0);
	put(s, MSI + PCI_MSI_ADDRESS_HI, 4, 0, ~0);
	put(s, MSI + PCI_MSI_DATA_64, 2, 0, ~0);
}

void shadow_config_fill(struct smartio_shadow *s)
{
	const struct smartio_shadow_info *f = &s->info;

	put(s, PCI_VENDOR_ID, 2, f->vendor, 0);
	put(s, PCI_DEVICE_ID, 2, f->device, 0);
	put(s, PCI_COMMAND, 2, 0,
	    PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY | PCI_COMMAND_SERR |
		    PCI_COMMAND_INTX_DISABLE);
	put(s, PCI_STATUS, 2, PCI_STATUS_CAP_LIST, 0);
	put(s, PCI_CLASS_REVISION, 4, f->class_revision, 0);
	put(s, PCI_CACHE_LINE_SIZE, 1, 0, ~0);
	put(s, PCI_SUBSYSTEM_VENDOR_ID, 2, f->subsys_vendor, 0);
	put(s, PCI_SUBSYSTEM_ID, 2, f->subsys_device, 0);
	put(s, PCI_INTERRUPT_LINE, 1, 0, ~0);
	for (unsigned int i = 0; i < SIO_DEVICE_BARS; i++)
		put_bar(s, i);
	put_express(s);
	if (f->vectors)
		put_msi(s);
}

/* ---- accesses ---- */

/* Ones are what is read where there is nothing. */
static struct smartio_shadow *find(struct pci_bus *bus, unsigned int devfn, int where, int size)
{
	struct smartio_shadow *s = shadow_of(bus);

	return devfn || where < 0 || where + size > SHADOW_CONFIG || READ_ONCE(s->lost) ? NULL : s;
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *ret)
{
	struct smartio_shadow *s = find(bus, devfn, where, size);
	unsigned long flags;

	*ret = ~0;
	if (!s)
		return devfn ? PCIBIOS_DEVICE_NOT_FOUND : PCIBIOS_SUCCESSFUL;
	raw_spin_lock_irqsave(&s->lock, flags);
	*ret = 0;
	for (int i = 0; i < size; i++)
		*ret |= (u32)s->config[where + i] << 8 * i;
	raw_spin_unlock_irqrestore(&s->lock, flags);
	return PCIBIOS_SUCCESSFUL;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	struct smartio_shadow *s = find(bus, devfn, where, size);
	unsigned long flags;

	if (!s)
		return devfn ? PCIBIOS_DEVICE_NOT_FOUND : PCIBIOS_SUCCESSFUL;
	raw_spin_lock_irqsave(&s->lock, flags);
	for (int i = 0; i < size; i++) {
		u8 mask = s->writable[where + i];

		s->config[where + i] &= ~mask;
		s->config[where + i] |= value >> 8 * i & mask;
	}
	raw_spin_unlock_irqrestore(&s->lock, flags);
	return PCIBIOS_SUCCESSFUL;
}

struct pci_ops shadow_config_ops = {
	.read = config_read,
	.write = config_write,
};
