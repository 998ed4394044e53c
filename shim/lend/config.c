// SPDX-License-Identifier: GPL-2.0-only
/*
 * Configuration space: a copy on this host, which shows what can be lent: memory BARs, and MSI-X,
 * whose table is memory that stands for the device's own. (The device's own table is the lender's,
 * because whoever writes it can interrupt the lender.) There are no INTx, I/O ports, ROM, resets,
 * power states, MSI, nor anything beyond the first 256 bytes. The copy says that the device is an
 * endpoint integrated into the root complex, because there is no port above it whose link could be
 * queried.
 *
 * Three registers are the device's own: whether it is present, whether it may send and which errors
 * it met, and how it sends. Accesses to those go to the lender, which decides what may be written.
 * Where the answer cannot be waited for (interrupts are off, as for reads of sysfs), the copy has
 * the last values, and what is written follows later.
 */

#include "shadow.h"

#define EXPRESS 0x40
#define EXPRESS_BYTES 0x3c /* of version 2 */
#define MSIX 0x80
#define PENDING 0x800 /* in the BAR with the table, which begins it */
#define ERRORS                                                                                     \
	((u32)(PCI_STATUS_PARITY | PCI_STATUS_SIG_TARGET_ABORT | PCI_STATUS_REC_TARGET_ABORT |     \
	       PCI_STATUS_REC_MASTER_ABORT | PCI_STATUS_SIG_SYSTEM_ERROR |                         \
	       PCI_STATUS_DETECTED_PARITY))

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
	put(s, EXPRESS, 2, PCI_CAP_ID_EXP | (s->info.vectors ? MSIX << 8 : 0), 0);
	put(s, EXPRESS + PCI_EXP_FLAGS, 2, 2 | PCI_EXP_TYPE_RC_END << 4, 0);
	put(s, EXPRESS + PCI_EXP_DEVCAP, 4, PCI_EXP_DEVCAP_RBER, 0);
	put(s, EXPRESS + PCI_EXP_DEVCTL, 2, PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN,
	    0xffff & ~PCI_EXP_DEVCTL_BCR_FLR);
	BUILD_BUG_ON(EXPRESS + EXPRESS_BYTES > MSIX);
}

static void put_msix(struct smartio_shadow *s)
{
	put(s, MSIX, 2, PCI_CAP_ID_MSIX, 0);
	put(s, MSIX + PCI_MSIX_FLAGS, 2, s->info.vectors - 1,
	    PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
	put(s, MSIX + PCI_MSIX_TABLE, 4, s->info.table_bar, 0);
	put(s, MSIX + PCI_MSIX_PBA, 4, s->info.table_bar | PENDING, 0);
	BUILD_BUG_ON(SIO_SHADOW_VECTORS * PCI_MSIX_ENTRY_SIZE > PENDING);
}

bool shadow_config_interrupts(const struct smartio_shadow *s)
{
	u16 flags = s->config[MSIX + PCI_MSIX_FLAGS] | s->config[MSIX + PCI_MSIX_FLAGS + 1] << 8;

	return (flags & (PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL)) == PCI_MSIX_FLAGS_ENABLE;
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
		put_msix(s);
}

/* ---- accesses ---- */

/* Ones are what is read where there is nothing. */
static struct smartio_shadow *find(struct pci_bus *bus, unsigned int devfn, int where, int size)
{
	struct smartio_shadow *s = shadow_of(bus);

	return devfn || where < 0 || where + size > SHADOW_CONFIG || READ_ONCE(s->lost) ? NULL : s;
}

static const struct {
	unsigned int where;
	u32 live;    /* bits that are the device's own */
	u16 forward; /* of the lower half: these are forwarded to it */
} regs[SIO_SHADOW_REGISTERS] = {
	[SIO_SHADOW_ID] = {PCI_VENDOR_ID, ~0},
	[SIO_SHADOW_COMMAND] = {PCI_COMMAND, ERRORS << 16, PCI_COMMAND_MASTER},
	[SIO_SHADOW_CONTROL] = {EXPRESS + PCI_EXP_DEVCTL, 0xffff0000,
				PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN |
					PCI_EXP_DEVCTL_READRQ},
};

/* The register whose bytes these are; SIO_SHADOW_REGISTERS: none. */
static unsigned int reg_at(unsigned int where)
{
	unsigned int i = 0;

	while (i < ARRAY_SIZE(regs) && where / 4 != regs[i].where / 4)
		i++;
	return i;
}

/* Bits of those bytes, in the register. */
static u32 bits_of(unsigned int where, unsigned int size)
{
	return (u32)(BIT_ULL(8 * size) - 1) << 8 * (where & 3);
}

static u32 get(const struct smartio_shadow *s, unsigned int where, unsigned int size)
{
	u32 value = 0;

	for (unsigned int i = 0; i < size; i++)
		value |= (u32)s->config[where + i] << 8 * i;
	return value;
}

/* A driver that believes that it has stopped the device gives its memory back. */
static void tell(struct smartio_shadow *s, unsigned int reg, u32 value, u32 mask)
{
	bool stops = reg == SIO_SHADOW_COMMAND && mask & ~value & PCI_COMMAND_MASTER;
	u32 got;

	if (smartio_shadow_ask(s->info.port, reg, value, mask, &got) && stops)
		smartio_shadow_cut(s->info.port);
}

/* What could not be waited for. */
void shadow_config_post(struct work_struct *work)
{
	struct smartio_shadow *s = container_of(work, struct smartio_shadow, post);
	unsigned long flags;
	u32 value, mask;

	for (unsigned int i = 0; i < ARRAY_SIZE(regs); i++) {
		raw_spin_lock_irqsave(&s->lock, flags);
		value = s->posted[i].value;
		mask = s->posted[i].mask;
		s->posted[i].mask = 0;
		raw_spin_unlock_irqrestore(&s->lock, flags);
		if (mask)
			tell(s, i, value, mask);
	}
}

/* With the lock. */
static void post(struct smartio_shadow *s, unsigned int reg, u32 value, u32 mask)
{
	s->posted[reg].value = (s->posted[reg].value & ~mask) | (value & mask);
	s->posted[reg].mask |= mask;
	schedule_work(&s->post);
}

/* False: it is not there, or nobody knows. */
static bool fetch(struct smartio_shadow *s, unsigned int reg)
{
	unsigned long flags;
	u32 got;

	flush_work(&s->post);
	if (smartio_shadow_ask(s->info.port, reg, 0, 0, &got) || got == U32_MAX)
		return false;
	raw_spin_lock_irqsave(&s->lock, flags);
	for (unsigned int i = 0; i < 4 && reg != SIO_SHADOW_ID; i++) {
		u8 live = regs[reg].live >> 8 * i;

		s->config[regs[reg].where + i] &= ~live;
		s->config[regs[reg].where + i] |= got >> 8 * i & live;
	}
	raw_spin_unlock_irqrestore(&s->lock, flags);
	return true;
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *ret)
{
	struct smartio_shadow *s = find(bus, devfn, where, size);
	unsigned int reg = reg_at(where);
	unsigned long flags;

	*ret = ~0;
	if (!s)
		return devfn ? PCIBIOS_DEVICE_NOT_FOUND : PCIBIOS_SUCCESSFUL;
	if (reg < ARRAY_SIZE(regs) && regs[reg].live & bits_of(where, size) && READ_ONCE(s->live) &&
	    preemptible() && !fetch(s, reg))
		return PCIBIOS_SUCCESSFUL;
	raw_spin_lock_irqsave(&s->lock, flags);
	*ret = get(s, where, size);
	raw_spin_unlock_irqrestore(&s->lock, flags);
	return PCIBIOS_SUCCESSFUL;
}

/*
 * With the lock: into the copy. Return: what is to be written to the device; of errors, which a 1
 * clears, all that are written, else what changes, and what it was never told.
 */
static u32 store(struct smartio_shadow *s, unsigned int where, unsigned int size, u32 value,
		 unsigned int reg)
{
	u32 written = bits_of(where, size), mask, before;

	before = reg < ARRAY_SIZE(regs) ? get(s, regs[reg].where, 4) : 0;
	for (unsigned int i = 0; i < size; i++) {
		u8 may = s->writable[where + i];

		s->config[where + i] &= ~may;
		s->config[where + i] |= value >> 8 * i & may;
	}
	if (reg == ARRAY_SIZE(regs) || !s->live)
		return 0;
	mask = (value << 8 * (where & 3)) & written & 0xffff0000 & regs[reg].live;
	written &= regs[reg].forward;
	if (!(s->told & BIT(reg)) || (before ^ get(s, regs[reg].where, 4)) & written)
		mask |= written;
	if (written)
		s->told |= BIT(reg);
	return mask;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	struct smartio_shadow *s = find(bus, devfn, where, size);
	unsigned int reg = reg_at(where);
	unsigned long flags;
	bool waits = preemptible();
	u32 mask;

	if (!s)
		return devfn ? PCIBIOS_DEVICE_NOT_FOUND : PCIBIOS_SUCCESSFUL;
	raw_spin_lock_irqsave(&s->lock, flags);
	mask = store(s, where, size, value, reg);
	if (where / 4 == MSIX / 4)
		shadow_msi_again(s);
	value <<= 8 * (where & 3);
	if (mask && !waits)
		post(s, reg, value, mask);
	raw_spin_unlock_irqrestore(&s->lock, flags);
	if (mask && waits) {
		flush_work(&s->post);
		tell(s, reg, value, mask);
	}
	return PCIBIOS_SUCCESSFUL;
}

struct pci_ops shadow_config_ops = {
	.read = config_read,
	.write = config_write,
};
