// SPDX-License-Identifier: GPL-2.0-only
/*
 * The block device. Data passes through memory that the drive reaches in any case: a command's
 * slot, by its tag. So the drive reaches nothing else of this host, with an IOMMU or without, from
 * whichever host; and a command that was given up can harm nothing. The price is a copy. The lists
 * of a slot's pages are made once.
 */
#include <linux/bvec.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/version.h>

#include "disk.h"

#define PAGE_OF_DRIVE 4096u
#define ZEROES_BLOCKS 65536u

static DEFINE_IDA(numbers);

/* ---- commands ---- */

static void copy_in(const struct disk *d, struct request *rq)
{
	void *to = disk_slot(d, rq->tag);
	struct req_iterator i;
	struct bio_vec v;

	rq_for_each_segment(v, rq, i)
	{
		memcpy_from_bvec(to, &v);
		to += v.bv_len;
	}
}

static void copy_out(const struct disk *d, struct request *rq)
{
	const void *from = disk_slot(d, rq->tag);
	struct req_iterator i;
	struct bio_vec v;

	rq_for_each_segment(v, rq, i)
	{
		memcpy_to_bvec(&v, from);
		from += v.bv_len;
	}
}

static void set_data(const struct disk *d, struct nvme_command *c, u32 tag, u32 bytes)
{
	u64 at = disk_slot_address(d, tag);

	c->rw.dptr.prp1 = cpu_to_le64(at);
	if (bytes > 2 * PAGE_OF_DRIVE)
		c->rw.dptr.prp2 = cpu_to_le64(d->is.memory_address + disk_list_offset(d, tag));
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
static void make_discard(const struct disk *d, struct nvme_command *c, const struct request *rq)
{
	struct nvme_dsm_range *range = disk_slot(d, rq->tag);

	range->cattr = 0;
	range->nlb = cpu_to_le32(blocks_of(d, rq));
	range->slba = cpu_to_le64(lba_of(d, rq));
	c->dsm.opcode = nvme_cmd_dsm;
	c->dsm.nr = 0; /* one less */
	c->dsm.attributes = cpu_to_le32(NVME_DSMGMT_AD);
	set_data(d, c, rq->tag, sizeof(*range));
}

/* False: the drive has no such command. */
static bool make(const struct disk *d, struct nvme_command *c, struct request *rq)
{
	c->common.command_id = rq->tag;
	c->common.nsid = cpu_to_le32(d->is.nsid);
	switch (req_op(rq)) {
	case REQ_OP_READ:
	case REQ_OP_WRITE:
		c->rw.opcode = req_op(rq) == REQ_OP_WRITE ? nvme_cmd_write : nvme_cmd_read;
		set_range(d, c, rq);
		set_data(d, c, rq->tag, blk_rq_bytes(rq));
		return true;
	case REQ_OP_FLUSH:
		c->common.opcode = nvme_cmd_flush;
		return true;
	case REQ_OP_WRITE_ZEROES:
		c->rw.opcode = nvme_cmd_write_zeroes;
		set_range(d, c, rq);
		return true;
	case REQ_OP_DISCARD:
		make_discard(d, c, rq);
		return true;
	default:
		return false;
	}
}

static blk_status_t queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *bd)
{
	struct disk *d = hctx->queue->queuedata;
	struct nvme_command c = {};
	struct request *rq = bd->rq;

	if (!make(d, &c, rq))
		return BLK_STS_NOTSUPP;
	blk_mq_start_request(rq);
	if (req_op(rq) == REQ_OP_WRITE)
		copy_in(d, rq);
	return disk_queue_put(d, rq, &c, bd->last) ? BLK_STS_OK : BLK_STS_IOERR;
}

static void commit_rqs(struct blk_mq_hw_ctx *hctx)
{
	disk_queue_ring(hctx->queue->queuedata);
}

static void on_complete(struct request *rq)
{
	blk_status_t status = ((struct disk_command *)blk_mq_rq_to_pdu(rq))->status;

	if (req_op(rq) == REQ_OP_READ && status == BLK_STS_OK)
		copy_out(rq->q->queuedata, rq);
	blk_mq_end_request(rq, status);
}

/* It may have been done, and may still be; so nothing is sent again. */
static enum blk_eh_timer_return on_timeout(struct request *rq)
{
	struct disk *d = rq->q->queuedata;

	if (!disk_queue_look(d, rq))
		disk_queue_kill(d, "a command did not come back", BLK_STS_TIMEOUT);
	/* Else somebody took that long between its start and its way to the queue. */
	return blk_mq_rq_state(rq) == MQ_RQ_IN_FLIGHT ? BLK_EH_RESET_TIMER : BLK_EH_DONE;
}

static const struct blk_mq_ops mq_ops = {
	.queue_rq = queue_rq,
	.commit_rqs = commit_rqs,
	.complete = on_complete,
	.timeout = on_timeout,
};

/* ---- what /sys shows ---- */

static const struct disk *disk_of(struct device *dev)
{
	return dev_to_disk(dev)->private_data;
}

static ssize_t source_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", disk_of(dev)->is.source);
}
static DEVICE_ATTR_RO(source);

static ssize_t first_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", disk_of(dev)->is.first);
}
static DEVICE_ATTR_RO(first);

static ssize_t holder_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", disk_of(dev)->holder);
}
static DEVICE_ATTR_RO(holder);

static ssize_t state_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n",
			  READ_ONCE(disk_of(dev)->queue.state) == DISK_DEAD ? "dead" : "live");
}
static DEVICE_ATTR_RO(state);

static struct attribute *disk_attrs[] = {
	&dev_attr_source.attr,
	&dev_attr_first.attr,
	&dev_attr_holder.attr,
	&dev_attr_state.attr,
	NULL,
};
static const struct attribute_group disk_group = {.name = "smartio", .attrs = disk_attrs};
static const struct attribute_group *disk_groups[] = {&disk_group, NULL};

/* ---- life ---- */

static const struct block_device_operations fops = {
	.owner = THIS_MODULE,
};

static u32 zeroes_sectors(const struct disk *d)
{
	return d->is.flags & SIO_DISK_ZEROES ? ZEROES_BLOCKS << (d->is.block_shift - SECTOR_SHIFT)
					     : 0;
}

static u32 discard_sectors(const struct disk *d)
{
	return d->is.flags & SIO_DISK_DISCARD ? UINT_MAX >> SECTOR_SHIFT : 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static struct gendisk *alloc_gendisk(struct disk *d)
{
	struct queue_limits lim = {
		.logical_block_size = 1 << d->is.block_shift,
		.max_hw_sectors = d->is.slot >> SECTOR_SHIFT,
		.max_segments = USHRT_MAX,
		.max_write_zeroes_sectors = zeroes_sectors(d),
		.max_hw_discard_sectors = discard_sectors(d),
		.discard_granularity = 1 << d->is.block_shift,
		.features = d->is.flags & SIO_DISK_CACHE ? BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA : 0,
	};

	return blk_mq_alloc_disk(&d->set, &lim, d);
}
#else
static struct gendisk *alloc_gendisk(struct disk *d)
{
	bool cache = d->is.flags & SIO_DISK_CACHE;
	struct gendisk *g = blk_mq_alloc_disk(&d->set, d);

	if (IS_ERR(g))
		return g;
	blk_queue_logical_block_size(g->queue, 1 << d->is.block_shift);
	blk_queue_max_hw_sectors(g->queue, d->is.slot >> SECTOR_SHIFT);
	blk_queue_max_segments(g->queue, USHRT_MAX);
	blk_queue_max_write_zeroes_sectors(g->queue, zeroes_sectors(d));
	blk_queue_max_discard_sectors(g->queue, discard_sectors(d));
	g->queue->limits.discard_granularity = 1 << d->is.block_shift;
	blk_queue_write_cache(g->queue, cache, cache);
	blk_queue_flag_set(QUEUE_FLAG_NONROT, g->queue);
	return g;
}
#endif

static void make_lists(struct disk *d)
{
	for (u32 tag = 0; tag < d->is.depth; tag++) {
		__le64 *list = d->memory->ram + disk_list_offset(d, tag);
		u64 at = disk_slot_address(d, tag);

		for (u32 done = PAGE_OF_DRIVE; done < d->is.slot; done += PAGE_OF_DRIVE)
			*list++ = cpu_to_le64(at + done);
	}
}

static int add_gendisk(struct disk *d)
{
	struct gendisk *g = alloc_gendisk(d);
	int error;

	if (IS_ERR(g))
		return PTR_ERR(g);
	g->fops = &fops;
	g->private_data = d;
	snprintf(g->disk_name, sizeof(g->disk_name), SIO_DISK_NAME "%u", d->is.index);
	set_capacity(g, d->is.blocks << (d->is.block_shift - SECTOR_SHIFT));
	set_disk_ro(g, d->is.flags & SIO_DISK_READ_ONLY);
	d->gendisk = g;
	error = disk_queue_start(d);
	if (!error)
		error = device_add_disk(NULL, g, disk_groups);
	if (error)
		put_disk(g);
	return error;
}

int disk_add(struct disk *d)
{
	int error = ida_alloc(&numbers, GFP_KERNEL);

	if (error < 0)
		return error;
	d->is.index = error;
	make_lists(d);
	d->set = (struct blk_mq_tag_set){.ops = &mq_ops,
					 .nr_hw_queues = 1,
					 .queue_depth = d->is.depth,
					 .numa_node = NUMA_NO_NODE,
					 .cmd_size = sizeof(struct disk_command),
					 .timeout = msecs_to_jiffies(d->is.timeout_ms),
					 .flags = BLK_MQ_F_SHOULD_MERGE};
	error = blk_mq_alloc_tag_set(&d->set);
	if (error)
		goto free_number;
	error = add_gendisk(d);
	if (!error)
		return 0;
	blk_mq_free_tag_set(&d->set);
free_number:
	ida_free(&numbers, d->is.index);
	return error;
}

/* Who has it open gets errors; what is not dead yet first writes what the page cache has. */
void disk_del(struct disk *d)
{
	if (READ_ONCE(d->queue.state) == DISK_DEAD) {
		pr_warn(SIO_DISK_NAME "%u: the queue pair of %s is dead: %s\n", d->is.index,
			d->is.source, d->queue.why);
		blk_mark_disk_dead(d->gendisk);
	}
	del_gendisk(d->gendisk);
	blk_mq_free_tag_set(&d->set);
	put_disk(d->gendisk);
	disk_queue_kill(d, "it was detached", BLK_STS_IOERR);
	ida_free(&numbers, d->is.index);
}

bool disk_is_open(const struct disk *d)
{
	return disk_openers(d->gendisk);
}
