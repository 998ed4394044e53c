/* SPDX-License-Identifier: BSD-2-Clause */
/* The NVM command set (NVMe 1.4, section 6): Read, Write, Flush; the others are in blocks.c. */
#include <endian.h>

#include "emu/devices/nvme/model.h"

#define FLAGS_REFUSED 0x03u /* fused operations are not advertised */
#define NLB_MASK 0xffffu
#define WRITE_DTYPE (0xfu << 20) /* no directives */

/* "All" (section 6.1), or one that is not there. */
unsigned emu_nvme_no_namespace(uint32_t nsid)
{
	return nsid == NVME_NSID_ALL ? EMU_NVME_FAIL(INVALID_FIELD) : EMU_NVME_FAIL(INVALID_NS);
}

static unsigned read_write(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, bool is_write)
{
	uint64_t lba = (uint64_t)le32toh(sqe->cdw11) << 32 | le32toh(sqe->cdw10);
	uint32_t cdw12 = le32toh(sqe->cdw12);
	uint32_t count = (cdw12 & NLB_MASK) + 1;
	const struct emu_nvme_ns *ns = emu_nvme_ns(m, le32toh(sqe->nsid));
	size_t bytes;
	uint8_t *data;

	if (emu_nvme_unlikely(!ns))
		return emu_nvme_no_namespace(le32toh(sqe->nsid));
	if (emu_nvme_unlikely(count > ns->max_blocks))
		return EMU_NVME_FAIL(INVALID_FIELD);
	if (emu_nvme_unlikely(lba >= ns->blocks || count > ns->blocks - lba))
		return EMU_NVME_FAIL(LBA_RANGE);
	bytes = (size_t)count << ns->block_shift;
	m->pages += (unsigned)((bytes - 1) / EMU_NVME_PAGE);
	if (is_write) {
		if (emu_nvme_unlikely(cdw12 & WRITE_DTYPE))
			return EMU_NVME_FAIL(INVALID_FIELD);
		m->stats.writes++;
		m->stats.written_bytes += bytes;
		if (emu_nvme_unlikely(ns->file))
			return emu_nvme_file_write(m, sqe, lba, count);
		data = ns->media + (lba << ns->block_shift);
		return emu_nvme_prp_from_host(m, sqe, data, bytes);
	}
	m->stats.reads++;
	m->stats.read_bytes += bytes;
	if (emu_nvme_unlikely(ns->file))
		return emu_nvme_file_read(m, sqe, lba, count);
	data = ns->media + (lba << ns->block_shift);
	return emu_nvme_prp_to_host(m, sqe, data, bytes);
}

#define SOON_BYTES 512u /* the processor finds the rest by itself */
#define CACHE_LINE 64u

/*
 * Data at random places of a large drive come late. All commands of a run are known before the
 * first is carried out: what one waits for, the one before can ask for.
 */
void emu_nvme_io_soon(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint64_t lba = (uint64_t)le32toh(sqe->cdw11) << 32 | le32toh(sqe->cdw10);
	const struct emu_nvme_ns *ns = emu_nvme_ns(m, le32toh(sqe->nsid));
	const uint8_t *data;

	if (emu_nvme_unlikely(sqe->opcode != nvme_cmd_read || !ns || lba >= ns->blocks || ns->file))
		return;
	data = ns->media + (lba << ns->block_shift);
	for (unsigned at = 0; at < SOON_BYTES; at += CACHE_LINE)
		__builtin_prefetch(data + at);
}

/* Of memory nothing is cached: what was completed is on the media. */
static unsigned flush(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint32_t nsid = le32toh(sqe->nsid);

	if (!emu_nvme_ns(m, nsid) && nsid != NVME_NSID_ALL)
		return EMU_NVME_FAIL(INVALID_NS);
	m->stats.flushes++;
	return nsid == NVME_NSID_ALL ? emu_nvme_files_flush(m, sqe, 0, m->n_ns)
				     : emu_nvme_files_flush(m, sqe, nsid - 1, nsid);
}

unsigned emu_nvme_io(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint8_t opcode = sqe->opcode;

	if (emu_nvme_unlikely(sqe->flags && (sqe->flags & FLAGS_REFUSED ||
					     (sqe->flags & EMU_NVME_PSDT) == EMU_NVME_PSDT)))
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
