/* SPDX-License-Identifier: BSD-2-Clause */
/* The NVM command set (NVMe 1.4, section 6): Read, Write, Flush; the others are in blocks.c. */
#include <endian.h>

#include "emu/devices/nvme/model.h"

#define FLAGS_REFUSED 0xc3u /* fused operations and SGLs are not advertised */
#define NLB_MASK 0xffffu
#define WRITE_DTYPE (0xfu << 20) /* no directives */

/* A command that is not for all namespaces was told "all" (section 6.1), or one that is not there.
 */
unsigned emu_nvme_check_namespace(uint32_t nsid)
{
	if (emu_nvme_likely(nsid == EMU_NVME_NSID))
		return 0;
	return nsid == NVME_NSID_ALL ? EMU_NVME_FAIL(INVALID_FIELD) : EMU_NVME_FAIL(INVALID_NS);
}

static unsigned read_write(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, bool is_write)
{
	uint64_t lba = (uint64_t)le32toh(sqe->cdw11) << 32 | le32toh(sqe->cdw10);
	uint32_t cdw12 = le32toh(sqe->cdw12);
	uint32_t count = (cdw12 & NLB_MASK) + 1;
	uint8_t *data;

	if (emu_nvme_unlikely(le32toh(sqe->nsid) != EMU_NVME_NSID))
		return emu_nvme_check_namespace(le32toh(sqe->nsid));
	if (emu_nvme_unlikely(count > m->max_blocks))
		return EMU_NVME_FAIL(INVALID_FIELD);
	if (emu_nvme_unlikely(lba >= m->blocks || count > m->blocks - lba))
		return EMU_NVME_FAIL(LBA_RANGE);
	data = m->media + (lba << m->block_shift);
	m->pages += ((count << m->block_shift) - 1) / EMU_NVME_PAGE;
	if (is_write) {
		if (emu_nvme_unlikely(cdw12 & WRITE_DTYPE))
			return EMU_NVME_FAIL(INVALID_FIELD);
		m->stats.writes++;
		m->stats.written_bytes += (uint64_t)count << m->block_shift;
		return emu_nvme_prp_from_host(m, sqe, data, (size_t)count << m->block_shift);
	}
	m->stats.reads++;
	m->stats.read_bytes += (uint64_t)count << m->block_shift;
	return emu_nvme_prp_to_host(m, sqe, data, (size_t)count << m->block_shift);
}

#define SOON_BYTES 512u /* the processor finds the rest by itself */
#define CACHE_LINE 64u

/*
 * Data at random places of a large drive come late. All commands of a run are known before the
 * first is carried out: what one waits for, the one before can ask for.
 */
void emu_nvme_io_soon(const struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint64_t lba = (uint64_t)le32toh(sqe->cdw11) << 32 | le32toh(sqe->cdw10);
	const uint8_t *data;

	if (emu_nvme_unlikely(sqe->opcode != nvme_cmd_read || lba >= m->blocks))
		return;
	data = m->media + (lba << m->block_shift);
	for (unsigned at = 0; at < SOON_BYTES; at += CACHE_LINE)
		__builtin_prefetch(data + at);
}

/* Nothing is cached: what was completed is on the media. */
static unsigned flush(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint32_t nsid = le32toh(sqe->nsid);

	if (nsid != EMU_NVME_NSID && nsid != NVME_NSID_ALL)
		return EMU_NVME_FAIL(INVALID_NS);
	m->stats.flushes++;
	return 0;
}

unsigned emu_nvme_io(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint8_t opcode = sqe->opcode;

	if (emu_nvme_unlikely(sqe->flags & FLAGS_REFUSED))
		return EMU_NVME_FAIL(INVALID_FIELD);
	if (emu_nvme_likely(opcode == nvme_cmd_read || opcode == nvme_cmd_write))
		return read_write(m, sqe, opcode == nvme_cmd_write);
	switch (opcode) {
	case nvme_cmd_flush:
		return flush(m, sqe);
	case nvme_cmd_compare:
		return emu_nvme_compare(m, sqe);
	case nvme_cmd_write_zeroes:
		return emu_nvme_write_zeroes(m, sqe);
	case nvme_cmd_dsm:
		return emu_nvme_dataset_management(m, sqe);
	case nvme_cmd_verify:
		return emu_nvme_verify(m, sqe);
	default:
		return EMU_NVME_FAIL(INVALID_OPCODE);
	}
}
