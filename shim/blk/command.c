// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands of requests. Data passes through memory that the drive reaches in any case: a command's
 * slot, by its tag. The lists of a slot's pages are made once.
 * Source: NVM Express Base Specification 1.4, sections 4.3 and 6.
 */
#include "disk.h"

#define PAGE_OF_DRIVE 4096u

static void set_data(const struct disk_queue *q, struct nvme_command *c, u32 tag, u32 bytes)
{
	u64 at = disk_slot_address(q, tag);

	c->rw.dptr.prp1 = cpu_to_le64(at);
	if (bytes > 2 * PAGE_OF_DRIVE)
		c->rw.dptr.prp2 = cpu_to_le64(q->memory_address + disk_list_offset(q, tag));
	else if (bytes > PAGE_OF_DRIVE)
		c->rw.dptr.prp2 = cpu_to_le64(at + PAGE_OF_DRIVE);
}

/* For a drive's first block of the namespace the disk has its own. */
static u64 lba_of(const struct disk *d, const struct request *rq)
{
	return d->is.first + (blk_rq_pos(rq) >> (d->is.block_shift - SECTOR_SHIFT));
}

static u32 blocks_of(const struct disk *d, const struct request *rq)
{
	return blk_rq_bytes(rq) >> d->is.block_shift;
}

static void set_range(const struct disk *d, struct nvme_command *c, const struct request *rq)
{
	c->rw.slba = cpu_to_le64(lba_of(d, rq));
	c->rw.length = cpu_to_le16(blocks_of(d, rq) - 1);
	if (rq->cmd_flags & REQ_FUA)
		c->rw.control = cpu_to_le16(NVME_RW_FUA);
}

/* The one range goes through the slot. */
static void make_discard(const struct disk_queue *q, struct nvme_command *c,
			 const struct request *rq)
{
	struct nvme_dsm_range *range = disk_slot(q, rq->tag);

	range->cattr = 0;
	range->nlb = cpu_to_le32(blocks_of(q->disk, rq));
	range->slba = cpu_to_le64(lba_of(q->disk, rq));
	c->dsm.opcode = nvme_cmd_dsm;
	c->dsm.nr = 0; /* one less */
	c->dsm.attributes = cpu_to_le32(NVME_DSMGMT_AD);
	set_data(q, c, rq->tag, sizeof(*range));
}

bool disk_command_make(const struct disk_queue *q, struct nvme_command *c, struct request *rq)
{
	memset(c, 0, sizeof(*c));
	c->common.command_id = rq->tag;
	c->common.nsid = cpu_to_le32(q->disk->is.nsid);
	switch (req_op(rq)) {
	case REQ_OP_READ:
	case REQ_OP_WRITE:
		c->rw.opcode = req_op(rq) == REQ_OP_WRITE ? nvme_cmd_write : nvme_cmd_read;
		set_range(q->disk, c, rq);
		set_data(q, c, rq->tag, blk_rq_bytes(rq));
		return true;
	case REQ_OP_FLUSH:
		c->common.opcode = nvme_cmd_flush;
		return true;
	case REQ_OP_WRITE_ZEROES:
		c->rw.opcode = nvme_cmd_write_zeroes;
		set_range(q->disk, c, rq);
		return true;
	case REQ_OP_DISCARD:
		make_discard(q, c, rq);
		return true;
	default:
		return false;
	}
}

void disk_make_lists(const struct disk_queue *q)
{
	for (u32 tag = 0; tag < q->disk->is.depth; tag++) {
		__le64 *list = q->memory->ram + disk_list_offset(q, tag);
		u64 at = disk_slot_address(q, tag);

		for (u32 done = PAGE_OF_DRIVE; done < q->disk->is.slot; done += PAGE_OF_DRIVE)
			*list++ = cpu_to_le64(at + done);
	}
}
