/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The controller memory buffer (NVMe 1.4, sections 3.1.11 to 3.1.15, and 4.8): memory of the drive
 * in a BAR of its own. Once the host has said where on the bus it lies for the controller (CMBMSC),
 * what queue entries and PRPs name there is read and written without a transaction.
 */
#include <string.h>

#include "emu/devices/nvme/model.h"
#include "smartio/io.h"

/* Queues, lists and data, freely mixed with what lies elsewhere; in units of 4 KiB or 1 MiB. */
#define CMBLOC                                                                                     \
	((uint32_t)EMU_NVME_CMB_BAR << NVME_CMBLOC_BIR_SHIFT | 1u << NVME_CMBLOC_CDPLMS_SHIFT |    \
	 1u << NVME_CMBLOC_CDPCILS_SHIFT)
#define CMBSZ                                                                                      \
	(1u << NVME_CMBSZ_SQS_SHIFT | 1u << NVME_CMBSZ_LISTS_SHIFT | 1u << NVME_CMBSZ_RDS_SHIFT |  \
	 1u << NVME_CMBSZ_WDS_SHIFT)
#define UNIT_4K 0u
#define UNIT_1M 2u
#define CRE 1u
#define CMSE 2u

static uint32_t size_register(const struct emu_nvme *m)
{
	bool whole = m->cmb.bytes % (1u << 20) == 0;

	return CMBSZ | (whole ? UNIT_1M : UNIT_4K) << NVME_CMBSZ_SZU_SHIFT |
	       m->cmb.bytes >> (whole ? 20 : 12) << NVME_CMBSZ_SZ_SHIFT;
}

void emu_nvme_cmb_defaults(struct emu_nvme *m)
{
	m->cmb.on = false;
	if (m->cmb.bytes)
		m->reg[EMU_NVME_WORD(NVME_REG_CAP) + 1] |= 1u << (NVME_CAP_CMBS_SHIFT - 32);
}

void emu_nvme_cmb_control(struct emu_nvme *m)
{
	uint32_t low = m->reg[EMU_NVME_WORD(NVME_REG_CMBMSC)];
	uint64_t base = (uint64_t)m->reg[EMU_NVME_WORD(NVME_REG_CMBMSC) + 1] << 32 |
			(low & ~(uint32_t)(EMU_NVME_PAGE - 1));
	bool wanted = low & CRE && low & CMSE, good = base + m->cmb.bytes > base;

	emu_nvme_reg_set(m, EMU_NVME_WORD(NVME_REG_CMBLOC), low & CRE ? CMBLOC : 0);
	emu_nvme_reg_set(m, EMU_NVME_WORD(NVME_REG_CMBSZ), low & CRE ? size_register(m) : 0);
	emu_nvme_reg_set(m, EMU_NVME_WORD(NVME_REG_CMBSTS), wanted && !good);
	m->cmb.base = base;
	m->cmb.on = wanted && good;
}

/* How many of @len bytes at @addr lie on one side of its edges; *ret_at: there, NULL: elsewhere. */
static size_t side(const struct emu_nvme *m, uint64_t addr, size_t len, uint8_t **ret_at)
{
	uint64_t into = addr - m->cmb.base, rest;

	*ret_at = into < m->cmb.bytes ? m->cmb.data + into : NULL;
	rest = *ret_at ? m->cmb.bytes - into : m->cmb.base - addr; /* wraps where it lies behind */
	return len < rest ? len : (size_t)rest;
}

int emu_nvme_cmb_read(struct emu_nvme *m, uint64_t addr, void *buf, size_t len)
{
	uint8_t *to = buf, *at;

	while (len > 0) {
		size_t n = side(m, addr, len, &at);

		if (at)
			sio_copy_from(to, at, n);
		else if (m->dev->read(m->dev, addr, to, n))
			return -1;
		addr += n;
		to += n;
		len -= n;
	}
	return 0;
}

int emu_nvme_cmb_write(struct emu_nvme *m, uint64_t addr, const void *buf, size_t len)
{
	const uint8_t *from = buf;
	uint8_t *at;
	int rc = 0;

	while (len > 0) {
		size_t n = side(m, addr, len, &at);

		if (at)
			sio_copy_to(at, from, n);
		else if (m->dev->write(m->dev, addr, from, n))
			rc = -1;
		addr += n;
		from += n;
		len -= n;
	}
	return rc;
}
