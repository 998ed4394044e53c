/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach: a queue pair of a drive as a disk of this host (smartio_blk.ko). A process in the
 * background owns all that the disk consists of, so that it is taken back as that of any program
 * when the process ends, for whatever reason.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sisci_api.h"
#include "smartio/disk.h"
#include "smartio/ext.h"
#include "smartio/nvmeraw.h"
#include "document.h"
#include "tool.h"

#define DEPTH 31u   /* with SLOT and lists, 2 MiB of memory in one piece */
#define SLOT 65536u /* bytes of one command */
#define TIMEOUT_MS 30000u
#define PAGE 4096u	  /* of the drive */
#define DOORBELLS 0x1000u /* from here on in BAR 0 */

struct holder {
	const struct options *o;
	struct smartio_nvme *n;
	struct smartio_nvme_namespace ns;
	struct smartio_nvme_lease *lease; /* NULL: the whole namespace */
	struct smartio_nvme_queue *queue;
	struct smartio_nvme_buffer *memory;
	struct smartio_nvme_raw raw;
	sci_map_t map[3];
	int node;
	struct sio_disk_attach disk;
};

static int wake = -1;

/* In a signal handler. */
static void stop(void)
{
	uint64_t one = 1;

	if (write(wake, &one, sizeof(one)) < 0) /* it is full: readable */
		return;
}

/* ---- what the disk is of ---- */

static int take_range(struct holder *h)
{
	const struct options *o = h->o;
	const uint64_t size = h->ns.block_size;
	char name[16];

	if (!o->has_length) {
		if (o->has_offset || o->lease)
			return failed("a range needs --length BYTES");
		return EXIT_OK;
	}
	if (o->length == 0 || o->length % size || o->offset % size)
		return failed("offset and length are multiples of a block, %" PRIu64 " bytes",
			      size);
	snprintf(name, sizeof(name), "%s", o->lease ? o->lease : smartio_host_name());
	if (smartio_nvme_lease_take(h->n, name, o->nsid,
				    o->has_offset ? o->offset / size : SMARTIO_NVME_ANYWHERE,
				    o->length / size, &h->lease))
		return failed_nvme();
	return EXIT_OK;
}

/* What the drive can do, as flags of a disk. */
static uint32_t flags_of(uint32_t features)
{
	return (features & SMARTIO_NVME_HAS_CACHE ? SIO_DISK_CACHE : 0) |
	       (features & SMARTIO_NVME_HAS_DEALLOCATE ? SIO_DISK_DISCARD : 0) |
	       (features & SMARTIO_NVME_HAS_WRITE_ZEROES ? SIO_DISK_ZEROES : 0);
}

/* ---- the queue pair ---- */

static uint32_t slot_of(const struct smartio_nvme_info *info)
{
	uint32_t slot = SLOT;

	while (slot > PAGE && slot > info->max_transfer)
		slot /= 2;
	return slot;
}

static int open_queue(struct holder *h)
{
	struct smartio_nvme_info info;
	struct smartio_nvme_queue_options qo = {.size = sizeof(qo),
						.cq_placement = SMARTIO_NVME_PLACE_LOCAL,
						.namespace_id = h->o->nsid,
						.flags = SMARTIO_NVME_INTERRUPT,
						.lease = h->lease};

	if (h->o->depth > SIO_DISK_DEPTH)
		return failed("a disk has up to %u commands in flight, not %" PRIu64,
			      SIO_DISK_DEPTH, h->o->depth);
	smartio_nvme_get_info(h->n, &info);
	h->disk.flags = flags_of(info.features);
	qo.depth = h->o->depth ? (uint32_t)h->o->depth : DEPTH;
	if (qo.depth > info.max_queue_entries - 1)
		qo.depth = info.max_queue_entries - 1;
	qo.max_transfer = h->disk.slot = slot_of(&info);
	h->disk.depth = qo.depth;
	if (open_pair(h->o, h->n, true, &qo, &h->queue))
		return EXIT_FAILED;
	h->raw.size = sizeof(h->raw);
	if (smartio_nvme_queue_hand_over(h->queue, &h->raw) ||
	    smartio_nvme_buffer_alloc(
		    h->n, (size_t)qo.depth * (h->disk.slot + SIO_DISK_LIST(h->disk.slot)),
		    &h->memory))
		return failed_nvme();
	return EXIT_OK;
}

static int map(struct holder *h, unsigned which, sci_remote_segment_t segment, size_t from,
	       size_t bytes, unsigned flags, __u64 *ret)
{
	sci_error_t err;
	volatile void *at =
		SCIMapRemoteSegment(segment, &h->map[which], from, bytes, NULL, flags, &err);

	if (err != SCI_ERR_OK)
		return failed("cannot map queue pair %u of %s: %s", h->raw.id, h->o->device,
			      smartio_last_error());
	*ret = (uintptr_t)at;
	return EXIT_OK;
}

static size_t pages(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static int map_queue(struct holder *h)
{
	const struct smartio_nvme_raw *raw = &h->raw;
	const size_t first = raw->sq_doorbell & ~(size_t)(PAGE - 1);
	__u64 doorbells = 0;
	int rc = map(h, 0, raw->sq, 0, pages(raw->entries * 64), 0, &h->disk.sq);

	if (rc == EXIT_OK)
		rc = map(h, 1, raw->cq, 0, pages(raw->entries * 16), 0, &h->disk.cq);
	if (rc == EXIT_OK)
		rc = map(h, 2, raw->bar, first, pages(raw->cq_doorbell + 4 - first),
			 SCI_FLAG_IO_MAP_IOSPACE, &doorbells);
	if (rc)
		return rc;
	h->disk.sq_doorbell = doorbells + (raw->sq_doorbell - first);
	h->disk.cq_doorbell = doorbells + (raw->cq_doorbell - first);
	/* What was mapped before a reset leads nowhere; after one, to another's queues. */
	if (smartio_device_generation(raw->device) != raw->generation)
		return failed("%s was reset meanwhile", h->o->device);
	return EXIT_OK;
}

/* ---- the disk ---- */

static int explain_attach(const struct holder *h, int error)
{
	if (error == EINVAL)
		return failed("smartio_blk.ko does not take queue pair %u of %s: it is for devices "
			      "by smartio.ko, of blocks of 512 to 4,096 bytes (%u here)",
			      h->raw.id, h->o->device, h->raw.block_size);
	if (error == ENODEV)
		return failed("%s was reset meanwhile, or is lost", h->o->device);
	return failed("smartio_blk.ko: %s", strerror(error));
}

static int attach_disk(struct holder *h)
{
	const struct smartio_nvme_raw *raw = &h->raw;
	struct sio_disk_attach *d = &h->disk;

	d->size = sizeof(*d);
	d->flags |= h->o->read_only ? SIO_DISK_READ_ONLY : 0;
	d->id = raw->id;
	d->entries = raw->entries;
	d->memory = (uintptr_t)smartio_nvme_buffer_data(h->memory);
	d->memory_address = smartio_nvme_buffer_address(h->memory);
	d->interrupt = smartio_interrupt_fd(raw->interrupt);
	d->timeout_ms = h->o->timeout_ms ? h->o->timeout_ms : TIMEOUT_MS;
	d->nsid = raw->namespace_id;
	d->block_shift = (uint32_t)__builtin_ctz(raw->block_size);
	d->first = raw->first;
	d->blocks = raw->blocks - raw->first;
	snprintf(d->source, sizeof(d->source), "%s", h->o->device);
	if (ioctl(h->node, SIO_DISK_ATTACH, d) < 0)
		return explain_attach(h, errno);
	return EXIT_OK;
}

static int make(struct holder *h)
{
	int rc = find_namespace(h->o, h->n, &h->ns);

	if (rc == EXIT_OK)
		rc = take_range(h);
	if (rc == EXIT_OK)
		rc = open_queue(h);
	if (rc == EXIT_OK)
		rc = map_queue(h);
	return rc == EXIT_OK ? attach_disk(h) : rc;
}

/*
 * First the disk, which may still write; then what it was made of. If no manager deletes the queue,
 * its memory and the buffer stay for the drive. Half-made is fine.
 */
static void unmake(struct holder *h)
{
	sci_error_t err;

	close(h->node);
	for (unsigned i = 0; i < 3; i++)
		if (h->map[i])
			SCIUnmapSegment(h->map[i], 0, &err);
	smartio_nvme_queue_close(h->queue);
	smartio_nvme_buffer_free(h->memory);
	smartio_nvme_lease_give(h->lease);
}

/* ---- its life ---- */

/* Takes the events that there are. Return: whether the queue pair still works. */
static bool look_at_drive(const struct holder *h)
{
	const sci_smartio_device_t device = h->raw.device;
	struct smartio_device_event event;
	sci_error_t err;

	do
		smartio_wait_device_event(device, &event, 0, &err);
	while (err == SCI_ERR_OK);
	return err == SCI_ERR_TIMEOUT && !smartio_device_lost(device) &&
	       smartio_device_generation(device) == h->raw.generation;
}

/* Waits until somebody ends the disk, or it has ended. */
static int hold(const struct holder *h)
{
	struct pollfd p[] = {{.fd = h->node, .events = POLLIN},
			     {.fd = wake, .events = POLLIN},
			     {.fd = smartio_device_event_fd(h->raw.device), .events = POLLIN}};

	for (;;) {
		if (poll(p, 3, -1) < 0 && errno != EINTR)
			return failed("poll: %s", strerror(errno));
		if (p[1].revents || (p[0].revents & POLLIN))
			return EXIT_OK;
		if (p[0].revents || (p[2].revents && !look_at_drive(h)))
			return failed("the queue pair of /dev/" SIO_DISK_NAME "%u is dead: %s was "
				      "reset or is lost, or did not answer; attach it anew",
				      h->disk.index, h->o->device);
	}
}

static int be_holder(const struct options *o, int report)
{
	struct holder h = {.o = o, .node = disk_open_node()};
	struct ready r = {.process = getpid()};
	int rc;

	wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h.node < 0)
		return EXIT_FAILED;
	rc = open_drive(o, &h.n);
	if (rc) {
		close(h.node);
		return rc;
	}
	catch_signals(stop);
	rc = make(&h);
	if (rc == EXIT_OK) {
		r.disk = h.disk.index;
		r.lba = h.disk.first;
		r.blocks = h.disk.blocks;
		/* Whoever ended the command before it said so wants no disk. */
		rc = background_ready(report, r, o->device) ? hold(&h) : EXIT_FAILED;
	}
	unmake(&h);
	close_drive(h.n);
	return rc;
}

static void print_attached(const struct options *o, const struct ready *r)
{
	struct json_object *data;
	char name[48];

	snprintf(name, sizeof(name), "/dev/" SIO_DISK_NAME "%u", r->disk);
	if (!o->json) {
		printf("%s: blocks %" PRIu64 " + %" PRIu64 " of namespace %u of %s; process %d\n",
		       name, r->lba, r->blocks, o->nsid, o->device, r->process);
		return;
	}
	data = doc_object();
	doc_string(data, "device", o->device);
	doc_string(data, "disk", name);
	doc_number(data, "namespace", o->nsid);
	doc_hex(data, "lba", r->lba);
	doc_hex(data, "blocks", r->blocks);
	doc_number(data, "process", (uint64_t)r->process);
	doc_print("nvme-attach", data);
}

int cmd_attach(const struct options *o)
{
	struct ready ready;
	int report = -1, rc = background_split(&report, &ready);

	if (rc < 0)
		return be_holder(o, report);
	if (rc == EXIT_OK)
		print_attached(o, &ready);
	return rc;
}
