/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands on blocks whose data stay where they are (NVMe 1.4, sections 6.6, 6.7, 6.14, 6.16):
 * Compare, Dataset Management, Verify, Write Zeroes. What is deallocated reads as zeros.
 */
#include <endian.h>
#include <string.h>

#include "emu/devices/nvme/model.h"

#define NLB_MASK 0xffffu
#define RANGES_MASK 0xffu
#define DEALLOCATE (1u << 2)
/* Less is not worth a system call. */
#define BULK (64u << 10)

_Static_assert(256 * sizeof(struct nvme_dsm_range) == EMU_NVME_PAGE, "all ranges fit in the page");

void emu_nvme_zero(struct emu_nvme *m, uint64_t offset, uint64_t len)
{
	uint64_t first = (offset + EMU_NVME_PAGE - 1) / EMU_NVME_PAGE * EMU_NVME_PAGE;
	uint64_t end = (offset + len) / EMU_NVME_PAGE * EMU_NVME_PAGE;

	m->pages += (unsigned)((len < BULK ? len : BULK) / EMU_NVME_PAGE); /* it takes its time */
	if (!m->dev->bulk_zero || len < BULK) {
		memset(m->media + offset, 0, len);
		return;
	}
	memset(m->media + offset, 0, first - offset);
	m->dev->bulk_zero(m->dev, m->media + first, end - first);
	memset(m->media + end, 0, offset + len - end);
}

static bool is_inside(const struct emu_nvme *m, uint64_t lba, uint64_t count)
{
	return lba <= m->blocks && count <= m->blocks - lba;
}

/* The range of a command that names blocks as Read and Write do; none moves more than it says. */
static unsigned range(const struct emu_nvme *m, const struct emu_nvme_sqe *sqe, uint64_t *ret_lba,
		      uint32_t *ret_count)
{
	unsigned status = emu_nvme_check_namespace(le32toh(sqe->nsid));

	if (status)
		return status;
	*ret_lba = (uint64_t)le32toh(sqe->cdw11) << 32 | le32toh(sqe->cdw10);
	*ret_count = (le32toh(sqe->cdw12) & NLB_MASK) + 1;
	return is_inside(m, *ret_lba, *ret_count) ? 0 : EMU_NVME_FAIL(LBA_RANGE);
}

unsigned emu_nvme_compare(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint64_t lba;
	uint32_t count;
	unsigned status;

	/* The host's data are transferred, so that the largest transfer counts, as for Read. */
	status = emu_nvme_check_namespace(le32toh(sqe->nsid));
	if (!status && (le32toh(sqe->cdw12) & NLB_MASK) >= m->max_blocks)
		status = EMU_NVME_FAIL(INVALID_FIELD);
	if (!status)
		status = range(m, sqe, &lba, &count);
	if (status)
		return status;
	m->stats.compares++;
	m->stats.compared_bytes += (uint64_t)count << m->block_shift;
	m->pages += ((count << m->block_shift) - 1) / EMU_NVME_PAGE;
	return emu_nvme_prp_compare(m, sqe, m->media + (lba << m->block_shift),
				    (size_t)count << m->block_shift);
}

unsigned emu_nvme_write_zeroes(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint64_t lba;
	uint32_t count;
	unsigned status = range(m, sqe, &lba, &count);

	if (status)
		return status;
	m->stats.zeroes++;
	emu_nvme_zero(m, lba << m->block_shift, (uint64_t)count << m->block_shift);
	return 0;
}

/* There is nothing that could be wrong with blocks in memory. */
unsigned emu_nvme_verify(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	uint64_t lba;
	uint32_t count;
	unsigned status = range(m, sqe, &lba, &count);

	m->stats.verifies += !status;
	return status;
}

/*
 * Hints are taken note of by nobody. Deallocate is done for all ranges, or for none if one is
 * wrong; and for no more blocks than there are, so that ranges that overlap cost no more than that.
 */
unsigned emu_nvme_dataset_management(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	unsigned n = (le32toh(sqe->cdw10) & RANGES_MASK) + 1;
	const struct nvme_dsm_range *r = (const void *)m->page;
	unsigned status = emu_nvme_check_namespace(le32toh(sqe->nsid));
	uint64_t total = 0;

	if (!status)
		status = emu_nvme_prp_from_host(m, sqe, m->page, n * sizeof(*r));
	for (unsigned i = 0; !status && i < n; i++)
		if (!is_inside(m, le64toh(r[i].slba), le32toh(r[i].nlb)))
			status = EMU_NVME_FAIL(LBA_RANGE);
	if (status || !(le32toh(sqe->cdw11) & DEALLOCATE))
		return status;
	m->stats.deallocates++;
	for (unsigned i = 0; i < n; i++) {
		total += le32toh(r[i].nlb);
		if (total > m->blocks)
			break;
		emu_nvme_zero(m, le64toh(r[i].slba) << m->block_shift,
			      (uint64_t)le32toh(r[i].nlb) << m->block_shift);
	}
	return 0;
}
