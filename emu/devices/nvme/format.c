/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Format NVM (NVMe 1.4, section 5.23): blocks of 512 or of 4096 bytes, and zeros everywhere. No
 * command on memory is in flight when an admin command is carried out; those on files are
 * before it.
 */
#include <endian.h>

#include "emu/devices/nvme/model.h"

#define LBAF(cdw10) ((cdw10)&0xf)
#define PROTECTION(cdw10) ((cdw10) >> 5 & 7)
#define ERASE(cdw10) ((cdw10) >> 9 & 7)

void emu_nvme_set_blocks(struct emu_nvme_ns *ns, unsigned shift)
{
	ns->block_shift = shift;
	ns->blocks = ns->size >> shift;
	ns->max_blocks = (EMU_NVME_PAGE << EMU_NVME_MDTS) >> shift;
}

void emu_nvme_place(struct emu_nvme *m, uint8_t *media)
{
	m->media = media;
	for (uint32_t i = 0; media && i < m->n_ns; i++) {
		if (m->ns[i].file)
			continue;
		m->ns[i].media = media;
		media += m->ns[i].size;
	}
}

static bool fits(const struct emu_nvme *m, uint32_t first, uint32_t end, unsigned shift)
{
	for (uint32_t i = first; i < end; i++)
		if (m->ns[i].size >> shift == 0)
			return false;
	return true;
}

unsigned emu_nvme_format(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint32_t nsid = le32toh(sqe->nsid), cdw10 = le32toh(sqe->cdw10);
	unsigned shift = LBAF(cdw10) == 0 ? 9 : 12;
	bool all = nsid == NVME_NSID_ALL;
	uint32_t first = all ? 0 : nsid - 1, end = all ? m->n_ns : nsid;

	if (!emu_nvme_ns(m, nsid) && !all)
		return EMU_NVME_FAIL(INVALID_NS);
	/* Without metadata there is nothing for protection information to be in. */
	if (LBAF(cdw10) >= EMU_NVME_FORMATS || PROTECTION(cdw10) || !fits(m, first, end, shift))
		return EMU_NVME_FAIL_SPECIFIC(INVALID_FORMAT);
	/* No cryptographic erase (FNA). */
	if (ERASE(cdw10) > NVME_FORMAT_SES_USER_DATA_ERASE)
		return EMU_NVME_FAIL(INVALID_FIELD);
	/*
	 * Another controller's host has the drive in use: nobody would notify it. The
	 * specification leaves open what a drive does then.
	 */
	if (emu_nvme_functions_busy(m))
		return EMU_NVME_FAIL(CMD_SEQ_ERROR);
	m->stats.formats++;
	for (uint32_t i = first; i < end; i++) {
		emu_nvme_set_blocks(&m->ns[i], shift);
		if (!m->ns[i].file)
			emu_nvme_zero(m, &m->ns[i], 0, m->ns[i].size);
	}
	emu_nvme_functions_follow(m);
	return emu_nvme_files_format(m, sqe, first, end);
}
