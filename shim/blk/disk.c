// SPDX-License-Identifier: GPL-2.0-only
/*
 * The block device. Data passes through memory that the drive reaches in any case: a command's
 * slot, by its tag. So the drive reaches nothing else of this host, with an IOMMU or without, from
 * whichever host; and a command that was given up can harm nothing. The price is a copy.
 */
#include <linux/bvec.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/version.h>

#include "disk.h"

#define ZEROES_BLOCKS 65536u

static DEFINE_IDA(numbers);

/* ---- commands ---- */

static struct disk_queue *queue_of(const struct request *rq)
{
	return rq->mq_hctx->driver_data;
}

static void copy_in(struct request *rq)
{
	void *to = disk_slot(queue_of(rq), rq->tag);
	struct req_iterator i;
	struct bio_vec v;

	rq_for_each_segment(v, rq, i) {
		memcpy_from_bvec(to, &v);
		to += v.bv_len;
	}
}

static void copy_out(struct request *rq)
{
	const void *from = disk_slot(queue_of(rq), rq->tag);
	struct req_iterator i;
	struct bio_vec v;

	rq_for_each_segment(v, rq, i) {
		memcpy_to_bvec(&v, from);
		from += v.bv_len;
	}
}

static blk_status_t queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *bd)
{
	struct request *rq = bd->rq;
	struct nvme_command c;

	if (!disk_command_make(hctx->driver_data, &c, rq))
		return BLK_STS_NOTSUPP;
	blk_mq_start_request(rq);
	if (req_op(rq) == REQ_OP_WRITE)
		copy_in(rq);
	return disk_queue_put(hctx, rq, &c, bd->last);
}

static void commit_rqs(struct blk_mq_hw_ctx *hctx)
{
	disk_queue_ring(hctx->driver_data);
}

static void on_complete(struct request *rq)
{
	blk_status_t status = disk_command_of(rq)->status;

	if (req_op(rq) == REQ_OP_READ && status == BLK_STS_OK)
		copy_out(rq);
	blk_mq_end_request(rq, status);
}

/* It may have been done, and may still be; so nothing is sent again. */
static enum blk_eh_timer_return on_timeout(struct request *rq)
{
	struct disk_queue *q = queue_of(rq);

	if (disk_queue_overdue(q, rq))
		disk_kill(q->disk, "a command did not come back", BLK_STS_TIMEOUT);
	/* Else it waits for a pair, or somebody took that long between its start and its queue. */
	return blk_mq_rq_state(rq) == MQ_RQ_IN_FLIGHT ? BLK_EH_RESET_TIMER : BLK_EH_DONE;
}

static int init_hctx(struct blk_mq_hw_ctx *hctx, void *data, unsigned int number)
{
	struct disk *d = data;

	hctx->driver_data = &d->queue[number];
	return 0;
}

static const struct blk_mq_ops mq_ops = {
	.queue_rq = queue_rq,
	.commit_rqs = commit_rqs,
	.complete = on_complete,
	.timeout = on_timeout,
	.init_hctx = init_hctx,
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
	static const char *const name[] = {[DISK_NEW] = "new",
					   [DISK_LIVE] = "live",
					   [DISK_AWAY] = "waiting",
					   [DISK_DEAD] = "dead"};

	return sysfs_emit(buf, "%s\n", name[disk_state_of(disk_of(dev))]);
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

static int add_gendisk(struct disk *d)
{
	struct gendisk *g = alloc_gendisk(d);
	int error;

	if (IS_ERR(g))
		return PTR_ERR(g);
	g->fops = &fops;
	g->private_data = d;
	snprintf(g->disk_name, sizeof(g->disk_name), SIO_DISK_NAME "%d", d->number);
	set_capacity(g, d->is.blocks << (d->is.block_shift - SECTOR_SHIFT));
	set_disk_ro(g, d->is.flags & SIO_DISK_READ_ONLY);
	d->gendisk = g;
	error = disk_queues_start(d);
	return error ? error : device_add_disk(NULL, g, disk_groups);
}

int disk_add(struct disk *d)
{
	int error;

	d->number = ida_alloc(&numbers, GFP_KERNEL);
	if (d->number < 0)
		return d->number;
	for (u32 i = 0; i < d->is.n_pairs; i++)
		disk_make_lists(&d->queue[i]);
	d->set = (struct blk_mq_tag_set){.ops = &mq_ops,
					 .driver_data = d,
					 .nr_hw_queues = d->is.n_pairs,
					 .queue_depth = d->is.depth,
					 .numa_node = NUMA_NO_NODE,
					 .cmd_size = sizeof(struct disk_command),
					 .timeout = msecs_to_jiffies(d->is.timeout_ms),
					 .flags = BLK_MQ_F_SHOULD_MERGE};
	error = blk_mq_alloc_tag_set(&d->set);
	return error ? error : add_gendisk(d);
}

/* Who has it open gets errors; what is not dead yet first writes what the page cache has. */
void disk_del(struct disk *d)
{
	disk_queues_last(d);
	if (READ_ONCE(d->why)) {
		pr_warn(SIO_DISK_NAME "%d: the queue pair of %s is dead: %s\n", d->number,
			d->is.source, d->why);
		blk_mark_disk_dead(d->gendisk);
	}
	del_gendisk(d->gendisk);
}

void disk_free(struct disk *d)
{
	if (d->gendisk)
		put_disk(d->gendisk);
	if (d->set.tags)
		blk_mq_free_tag_set(&d->set);
	if (d->number >= 0)
		ida_free(&numbers, d->number);
}

bool disk_is_open(const struct disk *d)
{
	return disk_openers(d->gendisk);
}
