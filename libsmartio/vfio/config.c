/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include <linux/pci_regs.h>

#include "vfio/config.h"
#include "vfio/sriov.h"

#define CAP_MSIX 0x40u
#define CAP_PCIE 0x80u
#define COMMAND_BITS                                                                               \
	(PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY | PCI_COMMAND_SERR |         \
	 PCI_COMMAND_INTX_DISABLE)

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value & 0xffff);
	put16(at + 2, value >> 16);
}

static unsigned get16(const uint8_t *at)
{
	return at[0] | (unsigned)at[1] << 8;
}

/* Two words, if there is room for the second. */
static bool is_wide(const struct sio_vfio_config_identity *id, unsigned bar)
{
	return bar < 5 && !id->bar_size[bar + 1];
}

static void add_bars(struct sio_vfio_config *c, const struct sio_vfio_config_identity *id)
{
	for (unsigned i = 0; i < 6; i++) {
		uint64_t mask = ~(id->bar_size[i] - 1);
		unsigned at = PCI_BASE_ADDRESS_0 + 4 * i;

		if (!id->bar_size[i])
			continue;
		put32(c->fresh + at,
		      (is_wide(id, i) ? PCI_BASE_ADDRESS_MEM_TYPE_64 : 0u) |
			      (id->prefetchable[i] ? PCI_BASE_ADDRESS_MEM_PREFETCH : 0u));
		put32(c->writable + at, (uint32_t)mask & ~0xfu);
		if (is_wide(id, i))
			put32(c->writable + at + 4, (uint32_t)(mask >> 32));
	}
}

/* Capabilities are a list; the newest is its head. */
static uint8_t *add_capability(struct sio_vfio_config *c, unsigned at, unsigned id)
{
	c->fresh[at] = (uint8_t)id;
	c->fresh[at + 1] = c->fresh[PCI_CAPABILITY_LIST];
	c->fresh[PCI_CAPABILITY_LIST] = (uint8_t)at;
	c->fresh[PCI_STATUS] |= PCI_STATUS_CAP_LIST;
	return c->fresh + at;
}

static void add_msix(struct sio_vfio_config *c, const struct sio_vfio_config_identity *id)
{
	uint8_t *cap;

	if (!id->msix_count)
		return;
	cap = add_capability(c, CAP_MSIX, PCI_CAP_ID_MSIX);
	put16(cap + PCI_MSIX_FLAGS, id->msix_count - 1);
	put32(cap + PCI_MSIX_TABLE, id->msix_table | id->msix_bar);
	put32(cap + PCI_MSIX_PBA, id->msix_pending | id->msix_bar);
	put16(c->writable + CAP_MSIX + PCI_MSIX_FLAGS,
	      PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
}

static void add_pcie(struct sio_vfio_config *c)
{
	uint8_t *cap = add_capability(c, CAP_PCIE, PCI_CAP_ID_EXP);

	c->pcie = CAP_PCIE;
	put16(cap + PCI_EXP_FLAGS, 2 | PCI_EXP_TYPE_ENDPOINT << 4);
	put32(cap + PCI_EXP_DEVCAP, PCI_EXP_DEVCAP_RBER | PCI_EXP_DEVCAP_FLR | 1 /* 256 bytes */);
	put16(cap + PCI_EXP_DEVCTL,
	      PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ_512B);
	/* Generation 3, 4 lanes. */
	put32(cap + PCI_EXP_LNKCAP, PCI_EXP_LNKCAP_SLS_8_0GB | 4u << 4);
	put16(cap + PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_CLS_8_0GB | PCI_EXP_LNKSTA_NLW_X4);
	put16(c->writable + CAP_PCIE + PCI_EXP_DEVCTL, 0x7fff);
	put16(c->writable + CAP_PCIE + PCI_EXP_LNKCTL,
	      PCI_EXP_LNKCTL_ASPMC | PCI_EXP_LNKCTL_RCB | PCI_EXP_LNKCTL_CCC | PCI_EXP_LNKCTL_ES);
}

void sio_vfio_config_init(struct sio_vfio_config *c, const struct sio_vfio_config_identity *id)
{
	memset(c, 0, sizeof(*c));
	put16(c->fresh + PCI_VENDOR_ID, id->vendor);
	put16(c->fresh + PCI_DEVICE_ID, id->device);
	put32(c->fresh + PCI_CLASS_REVISION, id->class_code << 8 | 1);
	put16(c->fresh + PCI_SUBSYSTEM_VENDOR_ID, id->subsys_vendor);
	put16(c->fresh + PCI_SUBSYSTEM_ID, id->subsys_device);
	put16(c->writable + PCI_COMMAND, COMMAND_BITS);
	c->writable[PCI_CACHE_LINE_SIZE] = 0xff;
	c->writable[PCI_INTERRUPT_LINE] = 0xff;
	add_bars(c, id);
	add_msix(c, id);
	add_pcie(c);
	sio_vfio_sriov_add(c, id);
	sio_vfio_config_reset(c);
}

void sio_vfio_config_reset(struct sio_vfio_config *c)
{
	memcpy(c->now, c->fresh, sizeof(c->now));
	sio_vfio_sriov_follow(c);
}

void sio_vfio_config_read(const struct sio_vfio_config *c, size_t offset, void *buf, size_t len)
{
	memcpy(buf, c->now + offset, len);
}

bool sio_vfio_config_write(struct sio_vfio_config *c, size_t offset, const void *buf, size_t len)
{
	const uint8_t *from = buf;
	size_t control = c->pcie + PCI_EXP_DEVCTL + 1; /* the byte with the bit that asks for it */
	bool reset = offset <= control && control - offset < len &&
		     from[control - offset] & PCI_EXP_DEVCTL_BCR_FLR >> 8;
	struct sio_vfio_sriov before;

	sio_vfio_sriov_keep(c, &before);
	for (size_t i = 0; i < len; i++) {
		uint8_t mask = c->writable[offset + i];

		c->now[offset + i] = (uint8_t)((c->now[offset + i] & ~mask) | (from[i] & mask));
	}
	sio_vfio_sriov_check(c, &before);
	return reset;
}

bool sio_vfio_config_is_master(const struct sio_vfio_config *c)
{
	return get16(c->now + PCI_COMMAND) & PCI_COMMAND_MASTER;
}

bool sio_vfio_config_bar(const struct sio_vfio_config *c, unsigned index, uint64_t *ret)
{
	const uint8_t *at = c->now + PCI_BASE_ADDRESS_0 + (size_t)4 * index;
	unsigned bytes = at[0] & PCI_BASE_ADDRESS_MEM_TYPE_64 ? 8 : 4;
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << 8 * i;
	*ret = value & (uint64_t)PCI_BASE_ADDRESS_MEM_MASK;
	return get16(c->now + PCI_COMMAND) & PCI_COMMAND_MEMORY;
}
