/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Format NVM (NVMe 1.4, section 5.23): blocks of 512 or of 4096 bytes, and zeros everywhere.
 * Nothing is under way when an admin command is carried out, so that there is nothing to abort.
 */
#include <endian.h>

#include "emu/devices/nvme/model.h"

#define LBAF(cdw10) ((cdw10)&0xf)
#define PROTECTION(cdw10) ((cdw10) >> 5 & 7)
#define ERASE(cdw10) ((cdw10) >> 9 & 7)

void emu_nvme_set_blocks(struct emu_nvme *m, unsigned shift)
{
	m->block_shift = shift;
	m->blocks = m->media_size >> shift;
	m->max_blocks = (EMU_NVME_PAGE << EMU_NVME_MDTS) >> shift;
}

unsigned emu_nvme_format(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint32_t nsid = le32toh(sqe->nsid), cdw10 = le32toh(sqe->cdw10);
	unsigned shift = LBAF(cdw10) == 0 ? 9 : 12;

	if (nsid != EMU_NVME_NSID && nsid != NVME_NSID_ALL)
		return EMU_NVME_FAIL(INVALID_NS);
	/* Without metadata there is nothing for protection information to be in. */
	if (LBAF(cdw10) >= EMU_NVME_FORMATS || PROTECTION(cdw10) || m->media_size >> shift == 0)
		return EMU_NVME_FAIL_SPECIFIC(INVALID_FORMAT);
	/* No cryptographic erase (FNA). */
	if (ERASE(cdw10) > NVME_FORMAT_SES_USER_DATA_ERASE)
		return EMU_NVME_FAIL(INVALID_FIELD);
	m->stats.formats++;
	emu_nvme_set_blocks(m, shift);
	emu_nvme_zero(m, 0, m->media_size);
	return 0;
}
