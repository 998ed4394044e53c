/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PCI Express Base 6.0, section 9.3.3. It is the only extended capability, so it is the first. What
 * a host writes against the rules has undefined results there; here it has none.
 */
#include <linux/pci_regs.h>

#include "vfio/sriov.h"

#define CAP_SRIOV 0x100u /* where the list begins */
#define VERSION 1u
/* In units of 4 KiB: 4, 8, 64 and 256 KiB, 1 and 4 MiB, which a device must support. */
#define PAGES 0x553u
#define PAGE_SHIFT 12
#define CONTROL (PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE | PCI_SRIOV_CTRL_ARI)

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

static uint32_t get32(const uint8_t *at)
{
	return get16(at) | (uint32_t)get16(at + 2) << 16;
}

void sio_vfio_sriov_add(struct sio_vfio_config *c, const struct sio_vfio_config_identity *id)
{
	const struct sio_vfio_config_functions *f = &id->functions;
	uint8_t *cap = c->fresh + CAP_SRIOV, *writable = c->writable + CAP_SRIOV;

	if (!f->total)
		return;
	c->sriov = CAP_SRIOV;
	put32(cap, PCI_EXT_CAP_ID_SRIOV | VERSION << 16);
	put16(cap + PCI_SRIOV_INITIAL_VF, f->total);
	put16(cap + PCI_SRIOV_TOTAL_VF, f->total);
	put16(cap + PCI_SRIOV_VF_OFFSET, f->offset);
	put16(cap + PCI_SRIOV_VF_STRIDE, f->stride);
	put16(cap + PCI_SRIOV_VF_DID, f->device);
	put32(cap + PCI_SRIOV_SUP_PGSIZE, PAGES);
	put32(cap + PCI_SRIOV_SYS_PGSIZE, 1);
	for (unsigned i = 0; i < 6; i++) {
		c->function_bar[i] = id->bar_size[i];
		if (id->bar_size[i])
			put32(cap + PCI_SRIOV_BAR + 4 * i,
			      PCI_BASE_ADDRESS_MEM_TYPE_64 |
				      (id->prefetchable[i] ? PCI_BASE_ADDRESS_MEM_PREFETCH : 0u));
	}
	put16(writable + PCI_SRIOV_CTRL, CONTROL);
	put16(writable + PCI_SRIOV_NUM_VF, 0xffff);
	put32(writable + PCI_SRIOV_SYS_PGSIZE, UINT32_MAX);
}

void sio_vfio_sriov_keep(const struct sio_vfio_config *c, struct sio_vfio_sriov *ret)
{
	const uint8_t *cap = c->now + c->sriov;

	*ret = (struct sio_vfio_sriov){0};
	if (!c->sriov)
		return;
	ret->enabled = get16(cap + PCI_SRIOV_CTRL) & PCI_SRIOV_CTRL_VFE;
	ret->functions = get16(cap + PCI_SRIOV_NUM_VF);
	ret->page = get32(cap + PCI_SRIOV_SYS_PGSIZE);
}

static bool is_page(uint32_t page)
{
	return page & PAGES && !(page & (page - 1));
}

void sio_vfio_sriov_check(struct sio_vfio_config *c, const struct sio_vfio_sriov *before)
{
	uint8_t *cap = c->now + c->sriov;

	if (!c->sriov)
		return;
	if (before->enabled || get16(cap + PCI_SRIOV_NUM_VF) > get16(cap + PCI_SRIOV_TOTAL_VF))
		put16(cap + PCI_SRIOV_NUM_VF, before->functions);
	if (before->enabled || !is_page(get32(cap + PCI_SRIOV_SYS_PGSIZE)))
		put32(cap + PCI_SRIOV_SYS_PGSIZE, before->page);
	sio_vfio_sriov_follow(c);
}

/* Each function's part of a BAR begins with a page of the host's (section 9.3.3.14). */
void sio_vfio_sriov_follow(struct sio_vfio_config *c)
{
	uint8_t *bar = c->now + c->sriov + PCI_SRIOV_BAR;
	uint8_t *writable = c->writable + c->sriov + PCI_SRIOV_BAR;
	uint64_t page;

	if (!c->sriov)
		return;
	page = (uint64_t)get32(c->now + c->sriov + PCI_SRIOV_SYS_PGSIZE) << PAGE_SHIFT;
	for (unsigned i = 0; i < 6; i++) {
		uint64_t size = c->function_bar[i] > page ? c->function_bar[i] : page;
		uint32_t low = (uint32_t) ~(size - 1);

		if (!c->function_bar[i])
			continue;
		put32(writable + 4 * i, low);
		put32(bar + 4 * i, get32(bar + 4 * i) & (low | 0xf));
		if (i < 5) {
			put32(writable + 4 * i + 4, (uint32_t)(~(size - 1) >> 32));
			put32(bar + 4 * i + 4,
			      get32(bar + 4 * i + 4) & (uint32_t)(~(size - 1) >> 32));
		}
	}
}

unsigned sio_vfio_config_functions(const struct sio_vfio_config *c)
{
	const unsigned on = PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE;
	const uint8_t *cap = c->now + c->sriov;

	if (!c->sriov || (get16(cap + PCI_SRIOV_CTRL) & on) != on)
		return 0;
	return get16(cap + PCI_SRIOV_NUM_VF);
}
