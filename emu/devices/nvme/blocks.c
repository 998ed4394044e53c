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

void emu_nvme_zero(struct emu_nvme *m, struct emu_nvme_ns *ns, uint64_t offset, uint64_t len)
{
	uint64_t first = (offset + EMU_NVME_PAGE - 1) / EMU_NVME_PAGE * EMU_NVME_PAGE;
	uint64_t end = (offset + len) / EMU_NVME_PAGE * EMU_NVME_PAGE;

	m->pages += (unsigned)((len < BULK ? len : BULK) / EMU_NVME_PAGE); /* it takes its time */
	if (!m->dev->bulk_zero || len < BULK) {
		memset(ns->media + offset, 0, len);
		return;
	}
	memset(ns->media + offset, 0, first - offset);
	m->dev->bulk_zero(m->dev, ns->media + first, end - first);
	memset(ns->media + end, 0, offset + len - end);
}

static bool is_inside(const struct emu_nvme_ns *ns, uint64_t lba, uint64_t count)
{
	return lba <= ns->blocks && count <= ns->blocks - lba;
}

/* The range of a command that names blocks as Read and Write do; none moves more than it says. */
static unsigned range(struct emu_nvme *m, const struct emu_nvme_sqe *sqe, struct emu_nvme_ns **ret,
		      uint64_t *ret_lba, uint32_t *ret_count)
{
	struct emu_nvme_ns *ns = emu_nvme_ns(m, le32toh(sqe->nsid));

	*ret = ns;
	*ret_lba = (uint64_t)le32toh(sqe->cdw11) << 32 | le32toh(sqe->cdw10);
	*ret_count = (le32toh(sqe->cdw12) & NLB_MASK) + 1;
	if (!ns)
		return emu_nvme_no_namespace(le32toh(sqe->nsid));
	return is_inside(ns, *ret_lba, *ret_count) ? 0 : EMU_NVME_FAIL(LBA_RANGE);
}

unsigned emu_nvme_compare(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	struct emu_nvme_ns *ns = emu_nvme_ns(m, le32toh(sqe->nsid));
	uint64_t lba;
	uint32_t count;
	size_t bytes;
	unsigned status;

	/* The host's data are transferred, so that the largest transfer counts, as for Read. */
	if (ns && (le32toh(sqe->cdw12) & NLB_MASK) >= ns->max_blocks)
		return EMU_NVME_FAIL(INVALID_FIELD);
	status = range(m, sqe, &ns, &lba, &count);
	if (status)
		return status;
	bytes = (size_t)count << ns->block_shift;
	m->stats.compares++;
	m->stats.compared_bytes += bytes;
	m->pages += (unsigned)((bytes - 1) / EMU_NVME_PAGE);
	if (ns->file)
		return emu_nvme_file_read(m, sqe, lba, count);
	return emu_nvme_prp_compare(m, sqe, ns->media + (lba << ns->block_shift), bytes);
}

unsigned emu_nvme_write_zeroes(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	struct emu_nvme_ns *ns;
	uint64_t lba;
	uint32_t count;
	unsigned status = range(m, sqe, &ns, &lba, &count);

	if (status)
		return status;
	m->stats.zeroes++;
	if (ns->file)
		return emu_nvme_file_zero(m, sqe, lba, count);
	emu_nvme_zero(m, ns, lba << ns->block_shift, (uint64_t)count << ns->block_shift);
	return 0;
}

/* There is nothing that could be wrong with blocks in memory; those of a file are read. */
unsigned emu_nvme_verify(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	struct emu_nvme_ns *ns;
	uint64_t lba;
	uint32_t count;
	unsigned status = range(m, sqe, &ns, &lba, &count);

	if (status)
		return status;
	m->stats.verifies++;
	return ns->file ? emu_nvme_file_read(m, sqe, lba, count) : 0;
}

/* How many of the ranges together have no more blocks than there are. */
static unsigned within(const struct emu_nvme_ns *ns, const struct nvme_dsm_range *r, unsigned n)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < n; i++) {
		total += le32toh(r[i].nlb);
		if (total > ns->blocks)
			return i;
	}
	return n;
}

/*
 * Hints are taken note of by nobody. Deallocate is done for all ranges, or for none if one is
 * wrong; and for no more blocks than there are, so that ranges that overlap cost no more than that.
 */
unsigned emu_nvme_dataset_management(struct emu_nvme *m, const struct emu_nvme_sqe *sqe)
{
	unsigned n = (le32toh(sqe->cdw10) & RANGES_MASK) + 1;
	const struct nvme_dsm_range *r = (const void *)m->page;
	struct emu_nvme_ns *ns = emu_nvme_ns(m, le32toh(sqe->nsid));
	unsigned status;

	if (!ns)
		return emu_nvme_no_namespace(le32toh(sqe->nsid));
	status = emu_nvme_prp_from_host(m, sqe, m->page, n * sizeof(*r));
	for (unsigned i = 0; !status && i < n; i++)
		if (!is_inside(ns, le64toh(r[i].slba), le32toh(r[i].nlb)))
			status = EMU_NVME_FAIL(LBA_RANGE);
	if (status || !(le32toh(sqe->cdw11) & DEALLOCATE))
		return status;
	m->stats.deallocates++;
	if (ns->file)
		return emu_nvme_file_deallocate(m, sqe, r, within(ns, r, n));
	n = within(ns, r, n);
	for (unsigned i = 0; i < n; i++)
		emu_nvme_zero(m, ns, le64toh(r[i].slba) << ns->block_shift,
			      (uint64_t)le32toh(r[i].nlb) << ns->block_shift);
	return 0;
}
