/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach: queue pairs of a drive as a disk of this host (smartio_blk.ko). A process in the
 * background owns all that the disk consists of, so that it is taken back as that of any program
 * when the process ends, for whatever reason; and gives the disk other pairs after a reset.
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
#include "smartio/ext.h"
#include "disk_pairs.h"
#include "document.h"

#define TIMEOUT_MS 30000u
#define SURVIVE_MS 30000u /* for other pairs, after a reset; or as long as for a manager */
#define PAUSE_MS 64	  /* between two tries, unless something happens before */

struct holder {
	const struct options *o;
	struct smartio_nvme *n;
	struct smartio_nvme_namespace ns;
	struct smartio_nvme_lease *lease; /* NULL: the whole namespace */
	struct disk_pairs pairs;
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

/* ---- the disk ---- */

static int explain_attach(const struct holder *h, int error)
{
	const struct smartio_nvme_raw *raw = &h->pairs.pair[0].raw;

	if (error == EINVAL)
		return failed("smartio_blk.ko does not take queue pair %u of %s: it is for devices "
			      "by smartio.ko, of blocks of 512 to 4,096 bytes (%u here)",
			      raw->id, h->o->device, raw->block_size);
	if (error == ENODEV)
		return failed("%s was reset meanwhile, or is lost", h->o->device);
	return failed("smartio_blk.ko: %s", strerror(error));
}

static uint32_t flags_of_disk(const struct holder *h)
{
	const struct options *o = h->o;
	struct smartio_nvme_info info;

	smartio_nvme_get_info(h->n, &info);
	return flags_of(info.features) | (o->read_only ? SIO_DISK_READ_ONLY : 0) |
	       (o->survive ? SIO_DISK_SURVIVE : 0) | (o->alone || h->lease ? SIO_DISK_ALONE : 0);
}

static int attach_disk(struct holder *h)
{
	const struct smartio_nvme_raw *raw = &h->pairs.pair[0].raw;
	struct sio_disk_attach *d = &h->disk;

	d->size = sizeof(*d);
	d->flags = flags_of_disk(h);
	d->pairs = (uintptr_t)h->pairs.kernel;
	d->n_pairs = h->pairs.count;
	d->entries = raw->entries;
	d->depth = h->pairs.qo.depth;
	d->slot = h->pairs.slot;
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
		rc = disk_pairs_open(&h->pairs, h->o, h->n, h->lease);
	return rc == EXIT_OK ? attach_disk(h) : rc;
}

/*
 * First the disk, which may still write; then what it was made of. If no manager deletes a queue,
 * its memory and the buffers stay for the drive. Half-made is fine.
 */
static void unmake(struct holder *h)
{
	close(h->node);
	disk_pairs_close(&h->pairs);
	smartio_nvme_lease_give(h->lease);
}

/* ---- its life ---- */

enum drive { DRIVE_SAME, DRIVE_RESET, DRIVE_LOST };

/* Takes the events that there are. */
static enum drive look_at_drive(const struct holder *h)
{
	const struct smartio_nvme_raw *raw = &h->pairs.pair[0].raw;
	struct smartio_device_event event;
	sci_error_t err;

	do
		smartio_wait_device_event(raw->device, &event, 0, &err);
	while (err == SCI_ERR_OK);
	if (err != SCI_ERR_TIMEOUT || smartio_device_lost(raw->device))
		return DRIVE_LOST;
	return smartio_device_generation(raw->device) == raw->generation ? DRIVE_SAME : DRIVE_RESET;
}

enum happened { HAPPENED_NOTHING, HAPPENED_STOP, HAPPENED_DEAD, HAPPENED_AWAY };

/* Waits for any of what a holder has to know of: also for what looks like that of the drive. */
static enum happened await(const struct holder *h, bool away, int ms)
{
	struct pollfd p[] = {
		{.fd = h->node, .events = (short)(POLLIN | (away ? 0 : POLLPRI))},
		{.fd = wake, .events = POLLIN},
		{.fd = smartio_device_event_fd(h->pairs.pair[0].raw.device), .events = POLLIN}};

	while (poll(p, 3, ms) < 0)
		if (errno != EINTR)
			return HAPPENED_DEAD;
	if (p[1].revents || (p[0].revents & POLLIN))
		return HAPPENED_STOP;
	if (p[0].revents & (POLLHUP | POLLERR | POLLNVAL))
		return HAPPENED_DEAD;
	return p[0].revents & POLLPRI ? HAPPENED_AWAY : HAPPENED_NOTHING;
}

static int dead(const struct holder *h, const char *why)
{
	return failed("/dev/" SIO_DISK_NAME "%u has ended: %s %s; attach it anew", h->disk.index,
		      h->o->device, why);
}

/* Other pairs, once. False: not yet; else @ret: EXIT_OK, or EXIT_FAILED, reported. */
static bool renew(struct holder *h, uint32_t wait_ms, int *ret)
{
	const struct sio_disk_renew none = {.size = sizeof(none)};
	struct sio_disk_renew m = {
		.size = sizeof(m), .n_pairs = h->pairs.count, .pairs = (uintptr_t)h->pairs.kernel};
	int rc;

	/* Before anything of the pairs of before may become the next ones'. */
	if (ioctl(h->node, SIO_DISK_RENEW, &none) < 0)
		failed("smartio_blk.ko: %s", strerror(errno));
	rc = disk_pairs_renew(&h->pairs, wait_ms);
	if (rc == -EAGAIN)
		return false;
	*ret = EXIT_FAILED;
	if (rc) {
		failed("%s", smartio_nvme_error());
		dead(h, "was reset");
	} else if (ioctl(h->node, SIO_DISK_RENEW, &m) == 0) {
		*ret = EXIT_OK;
	} else if (errno == ENODEV) { /* once more */
		return false;
	} else {
		failed("smartio_blk.ko: %s", strerror(errno));
		dead(h, "was reset");
	}
	return true;
}

static int ms_until(uint64_t end)
{
	const uint64_t now = smartio_now_ns();

	return now < end ? (int)((end - now) / 1000000) + 1 : 0;
}

/* The drive was reset, or the way there is cut. @ret_stop: somebody wants the disk to end. */
static int go_on(struct holder *h, bool *ret_stop)
{
	const uint32_t ms = h->o->wait_ms > SURVIVE_MS ? h->o->wait_ms : SURVIVE_MS;
	const uint64_t end = smartio_now_ns() + ms * 1000000ull;
	enum drive drive = look_at_drive(h), now;
	int rc = EXIT_FAILED;

	while (smartio_now_ns() < end) {
		enum happened what;

		if (drive == DRIVE_LOST)
			return dead(h, "or its host is lost");
		if (drive == DRIVE_RESET && renew(h, PAUSE_MS, &rc))
			return rc;
		what = await(h, true, drive == DRIVE_RESET ? PAUSE_MS : ms_until(end));
		if (what == HAPPENED_DEAD)
			return dead(h, "did not answer");
		*ret_stop = what == HAPPENED_STOP;
		if (*ret_stop)
			return EXIT_OK;
		now = look_at_drive(h);
		/* Of the first pair alone; others may be of before. */
		if (drive != DRIVE_RESET || now == DRIVE_LOST)
			drive = now;
	}
	return dead(h, drive == DRIVE_RESET ? "was reset, and gave no queue pairs in time"
					    : "cannot be reached");
}

/* Waits until somebody ends the disk, or it has ended. */
static int hold(struct holder *h)
{
	const bool survives = h->o->survive;
	bool stop = false;
	int rc = EXIT_OK;

	while (rc == EXIT_OK && !stop) {
		const enum happened what = await(h, false, -1);
		const enum drive drive = look_at_drive(h);

		stop = what == HAPPENED_STOP;
		if (what == HAPPENED_DEAD)
			rc = dead(h, "was reset or is lost, or did not answer");
		else if (what == HAPPENED_AWAY || (!stop && survives && drive != DRIVE_SAME))
			rc = go_on(h, &stop);
		else if (!stop && drive != DRIVE_SAME)
			rc = dead(h, "was reset or is lost");
	}
	return rc;
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
		r.queue_pairs = h.pairs.count;
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
		printf("%s: blocks %" PRIu64 " + %" PRIu64
		       " of namespace %u of %s; queues %u; process %d\n",
		       name, r->lba, r->blocks, o->nsid, o->device, r->queue_pairs, r->process);
		return;
	}
	data = doc_object();
	doc_string(data, "device", o->device);
	doc_string(data, "disk", name);
	doc_number(data, "namespace", o->nsid);
	doc_hex(data, "lba", r->lba);
	doc_hex(data, "blocks", r->blocks);
	doc_number(data, "queues", r->queue_pairs);
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
