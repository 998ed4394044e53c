/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A drive and another device with memory in BAR 2, of this machine or of others.
 * usage: bartarget work DRIVE DEVICE
 *        bartarget queue DRIVE DEVICE
 *        bartarget noqueue DRIVE DEVICE
 *        bartarget reset DRIVE DEVICE
 *        bartarget member DEVICE
 *        bartarget group
 *        bartarget borrow DEVICE
 *        bartarget still DEVICE
 *        bartarget refused DRIVE DEVICE [iommu|window]
 *        bartarget nomember DRIVE [alone]
 * work: until its input ends, the drive reads blocks out of the memory and writes others into it,
 * and the program compares them. Prints as lib/rounds.h says, and how many there were.
 * queue: the same, but what lies in the memory is the drive's submission queue.
 * noqueue: which is refused.
 * reset: prints "running" after the first of these. Its input ends when the device has been reset:
 * "cut" if the drive does not reach the memory any more, "kept" if it does as before.
 * member: until its input ends, writes to a multicast group, and finds it in memory of this host
 * and in the device's, which are its members; what is written when the device has left is not
 * there. It says what cannot be a member. Prints as lib/rounds.h says.
 * group: the same, without the device.
 * borrow: has the device alone for a moment.
 * still: fills the memory and prints "running"; when its input ends nobody may have changed it.
 * refused: what no program gets mapped, the drive having a manager. With "iommu": what it gets. With
 * "window": of devices of two hosts, neither of which has an IOMMU.
 * nomember: what of the drive cannot be a member of a group. With "alone": there are no groups.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/rounds.h"
#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"

#define BAR 2
#define BYTES 65536u /* of the BAR */
#define PAGE 4096u
#define LBA 1024 /* of other tests' files nothing lies there */
#define BLOCKS 64
#define PATIENCE_MS 60000
#define PAUSE_MS 5
#define GROUP 3

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "bartarget: %s: %s\n", what, smartio_nvme_error());
	exit(1);
}

static void check(sci_error_t err, sci_error_t right, const char *what)
{
	if (err == right)
		return;
	fprintf(stderr, "bartarget: %s: %s, not %s: %s\n", what, SCIGetErrorString(err),
		SCIGetErrorString(right), smartio_last_error());
	exit(1);
}

/* ---- a drive that reads and writes there ---- */

/* The drive's data are in the other device, or its queue. */
struct work {
	struct smartio_nvme *drive;
	struct smartio_nvme_queue *queue;
	struct smartio_nvme_buffer *buffer;
	uint32_t words; /* of a block */
	uint64_t rounds;
};

static void begin_drive(struct work *w, char **args,
			const struct smartio_nvme_queue_options *options)
{
	struct smartio_nvme_namespace ns;

	memset(w, 0, sizeof(*w));
	must(smartio_nvme_open_wait(args[0], PATIENCE_MS, &w->drive), args[0]);
	must(smartio_nvme_get_namespace(w->drive, 0, &ns), "namespace");
	w->words = ns.block_size / 8;
	must(smartio_nvme_queue_open(w->drive, options, &w->queue), "queue");
}

static void begin_work(struct work *w, char **args)
{
	begin_drive(w, args, NULL);
	must(smartio_nvme_buffer_on_device(w->drive, args[1], BAR, 0, BYTES, &w->buffer), args[1]);
}

static void end_work(struct work *w)
{
	smartio_nvme_queue_close(w->queue);
	must(smartio_nvme_buffer_free(w->buffer), "buffer");
	smartio_nvme_close(w->drive);
}

/* Return: its status. */
static unsigned command(struct work *w, enum smartio_nvme_op op, size_t offset)
{
	struct smartio_nvme_completion c;
	int n;

	must(smartio_nvme_submit(w->queue, op, LBA + w->rounds % BLOCKS, 1, w->buffer, offset,
				 NULL),
	     "submit");
	do {
		n = smartio_nvme_poll(w->queue, &c, 1);
		must(n, "poll");
	} while (n == 0);
	return c.status;
}

static uint64_t pattern(uint64_t round, unsigned word)
{
	return (round + 1) * 0x9e3779b97f4a7c15u + word;
}

/* All of it has arrived when this comes back: a word of it has. */
static void fill(volatile uint64_t *p, unsigned words, uint64_t round)
{
	for (unsigned i = 0; i < words; i++)
		p[i] = pattern(round, i);
	SCIFlush(NULL, 0);
	(void)p[words - 1];
}

static int is_filled(const volatile uint64_t *p, unsigned words, uint64_t round)
{
	unsigned i = 0;

	while (i < words && p[i] == pattern(round, i))
		i++;
	return i == words;
}

/* Return: the status of the first that failed; 0: the block came back as it was. */
static unsigned round_trip(struct work *w)
{
	volatile uint64_t *first = smartio_nvme_buffer_data(w->buffer);
	volatile uint64_t *second = first + BYTES / 2 / 8;
	unsigned status;

	fill(first, w->words, w->rounds);
	fill(second, w->words, ~w->rounds);
	status = command(w, SMARTIO_NVME_WRITE, 0);
	if (!status)
		status = command(w, SMARTIO_NVME_READ, BYTES / 2);
	/* Data and completion may go different ways; what it reads is behind what it wrote. */
	if (!status)
		status = command(w, SMARTIO_NVME_WRITE, BYTES / 2);
	if (status)
		return status;
	if (!is_filled(second, w->words, w->rounds)) {
		fprintf(stderr, "bartarget: block %llu came back changed\n",
			(unsigned long long)w->rounds);
		exit(1);
	}
	w->rounds++;
	return 0;
}

static void good_round(struct work *w)
{
	unsigned status = round_trip(w);

	if (!status)
		return;
	fprintf(stderr, "bartarget: the drive, after %llu rounds: %s\n",
		(unsigned long long)w->rounds, smartio_nvme_status_string(status));
	exit(1);
}

/* Rounds until its input ends. */
static int rounds(struct work *w)
{
	good_round(w);
	rounds_running();
	while (!rounds_end(0)) {
		good_round(w);
		rounds_answer();
	}
	printf("%llu rounds\n", (unsigned long long)w->rounds);
	end_work(w);
	return 0;
}

static int work(char **args)
{
	struct work w;

	rounds_begin();
	begin_work(&w, args);
	return rounds(&w);
}

static int queue(char **args)
{
	const struct smartio_nvme_queue_options options = {
		.size = sizeof(options), .depth = 8, .sq_device = args[1]};
	struct work w;

	rounds_begin();
	begin_drive(&w, args, &options);
	must(smartio_nvme_buffer_alloc(w.drive, BYTES, &w.buffer), "buffer");
	return rounds(&w);
}

/* Where nothing keeps it there when its program has died. */
static int no_queue(char **args)
{
	const struct smartio_nvme_queue_options options = {
		.size = sizeof(options), .depth = 8, .sq_device = args[1]};
	struct smartio_nvme_queue *queue;
	struct smartio_nvme *drive;

	must(smartio_nvme_open_wait(args[0], PATIENCE_MS, &drive), args[0]);
	if (smartio_nvme_queue_open(drive, &options, &queue) != -ENOTSUP) {
		fprintf(stderr, "bartarget: a queue in %s: %s\n", args[1], smartio_nvme_error());
		return 1;
	}
	printf("a queue: %s\n", smartio_nvme_error());
	smartio_nvme_close(drive);
	return 0;
}

static int reset(char **args)
{
	volatile uint64_t *first;
	struct work w;
	int cut;

	begin_work(&w, args);
	good_round(&w);
	rounds_running();
	while (!rounds_end(PAUSE_MS))
		;
	first = smartio_nvme_buffer_data(w.buffer);
	fill(first, w.words, ~w.rounds);
	/* QEMU's drive does not always say that its write went nowhere. */
	command(&w, SMARTIO_NVME_READ, 0);
	cut = is_filled(first, w.words, ~w.rounds);
	if (!cut)
		good_round(&w);
	puts(cut ? "cut" : "kept");
	end_work(&w);
	return 0;
}

/* ---- by the device's own calls ---- */

static sci_smartio_device_t borrow(sci_desc_t sd, const char *name, unsigned flags)
{
	sci_smartio_device_t device;
	sci_error_t err;
	unsigned fdid;

	smartio_find_device(name, &fdid, &err);
	check(err, SCI_ERR_OK, name);
	SCIBorrowDevice(sd, &device, fdid, flags, &err);
	check(err, SCI_ERR_OK, name);
	return device;
}

static sci_remote_segment_t connect_bar(sci_smartio_device_t device, unsigned bar)
{
	sci_remote_segment_t segment;
	sci_error_t err;

	SCIConnectDeviceSegment(device, &segment, bar, SCI_MEMTYPE_BAR, NULL, NULL, 0, &err);
	check(err, SCI_ERR_OK, "SCIConnectDeviceSegment");
	return segment;
}

static int still(sci_desc_t sd, char **args)
{
	sci_smartio_device_t device = borrow(sd, args[0], SCI_FLAG_EXCLUSIVE);
	sci_remote_segment_t bar = connect_bar(device, BAR);
	volatile uint64_t *p;
	sci_error_t err;
	sci_map_t map;

	p = SCIMapRemoteSegment(bar, &map, 0, BYTES, NULL, 0, &err);
	check(err, SCI_ERR_OK, "SCIMapRemoteSegment");
	fill(p, BYTES / 8, 0);
	rounds_running();
	while (!rounds_end(PAUSE_MS))
		;
	if (!is_filled(p, BYTES / 8, 0)) {
		fprintf(stderr, "bartarget: somebody wrote into memory that is ours alone\n");
		return 1;
	}
	return 0;
}

/* ---- memory of the device in a group ---- */

struct group {
	sci_local_segment_t own;
	sci_remote_segment_t bar, all;
	sci_map_t own_map, bar_map, all_map;
	volatile uint64_t *here, *there; /* members: of this host, and the device's */
	uint64_t rounds;
};

static void begin_group(struct group *g, sci_desc_t sd)
{
	sci_error_t err;

	SCICreateSegment(sd, &g->own, GROUP, PAGE, NULL, NULL, SCI_FLAG_BROADCAST, &err);
	check(err, SCI_ERR_OK, "SCICreateSegment");
	SCIPrepareSegment(g->own, 0, SCI_FLAG_BROADCAST, &err);
	check(err, SCI_ERR_OK, "SCIPrepareSegment");
	g->here = SCIMapLocalSegment(g->own, &g->own_map, 0, PAGE, NULL, 0, &err);
	check(err, SCI_ERR_OK, "SCIMapLocalSegment");
	SCISetSegmentAvailable(g->own, 0, 0, &err);
	check(err, SCI_ERR_OK, "SCISetSegmentAvailable");
	SCIConnectSegment(sd, &g->all, DIS_BROADCAST_NODEID_GROUP_ALL, GROUP, 0, NULL, NULL,
			  SCI_INFINITE_TIMEOUT, SCI_FLAG_BROADCAST, &err);
	check(err, SCI_ERR_OK, "SCIConnectSegment");
	SCIMapRemoteSegment(g->all, &g->all_map, 0, PAGE, NULL, SCI_FLAG_READONLY_MAP, &err);
	check(err, SCI_ERR_OK, "SCIMapRemoteSegment of the group");
}

/* @device is ours alone. */
static void join(struct group *g, sci_smartio_device_t device)
{
	sci_error_t err;

	g->bar = connect_bar(device, BAR);
	g->there = SCIMapRemoteSegment(g->bar, &g->bar_map, PAGE, PAGE, NULL, 0, &err);
	check(err, SCI_ERR_OK, "SCIMapRemoteSegment of the BAR");
	smartio_join_group(g->bar, GROUP, PAGE, 2 * PAGE, 0, &err);
	check(err, SCI_ERR_OUT_OF_RANGE, "more than the group has");
	smartio_join_group(g->bar, GROUP, PAGE, PAGE, 0, &err);
	check(err, SCI_ERR_OK, "smartio_join_group");
	smartio_join_group(g->bar, GROUP, 0, PAGE, 0, &err);
	check(err, SCI_ERR_SEGMENTID_USED, "a second member");
}

static void write_group(struct group *g)
{
	uint64_t words[PAGE / 8];
	sci_error_t err;

	g->rounds++;
	for (unsigned i = 0; i < PAGE / 8; i++)
		words[i] = pattern(g->rounds, i);
	SCIMemCpy(NULL, words, g->all_map, 0, PAGE, 0, &err);
	check(err, SCI_ERR_OK, "SCIMemCpy to the group");
}

static void is_there(const volatile uint64_t *p, uint64_t round, const char *where)
{
	if (is_filled(p, PAGE / 8, round))
		return;
	fprintf(stderr, "bartarget: %s: not what was written in round %llu\n", where,
		(unsigned long long)round);
	exit(1);
}

static void write_all(struct group *g)
{
	write_group(g);
	is_there(g->here, g->rounds, "this host's member");
	is_there(g->there, g->rounds, "the device's member");
}

static void leave(struct group *g)
{
	sci_error_t err;

	smartio_leave_group(g->bar, GROUP, 0, &err);
	check(err, SCI_ERR_OK, "smartio_leave_group");
	write_group(g);
	is_there(g->here, g->rounds, "this host's member");
	is_there(g->there, g->rounds - 1, "the device that has left");
}

/* The same without the device. */
static int group(sci_desc_t sd)
{
	struct group g = {.rounds = 0};

	rounds_begin();
	begin_group(&g, sd);
	rounds_running();
	while (!rounds_end(PAUSE_MS)) {
		write_group(&g);
		is_there(g.here, g.rounds, "this host's member");
		rounds_answer();
	}
	return 0;
}

static int member(sci_desc_t sd, char **args)
{
	struct group g = {.rounds = 0};

	rounds_begin();
	begin_group(&g, sd);
	join(&g, borrow(sd, args[0], SCI_FLAG_EXCLUSIVE));
	write_all(&g);
	rounds_running();
	while (!rounds_end(PAUSE_MS)) {
		write_all(&g);
		rounds_answer();
	}
	leave(&g);
	printf("%llu rounds\n", (unsigned long long)g.rounds);
	return 0;
}

/* Whether it can be had alone. */
static int borrow_once(sci_desc_t sd, char **args)
{
	borrow(sd, args[0], SCI_FLAG_EXCLUSIVE);
	return 0;
}

static void try_map(sci_remote_segment_t bar, sci_smartio_device_t device, size_t offset,
		    sci_error_t right, const char *what)
{
	sci_ioaddr_t at = 0;
	sci_error_t err;

	SCIMapRemoteSegmentForDevice(bar, device, &at, offset, PAGE, 0, &err);
	check(err, right, what);
	printf("%s: %s\n", what, err == SCI_ERR_OK ? "mapped" : smartio_last_error());
	if (err != SCI_ERR_OK)
		return;
	SCIUnmapRemoteSegmentForDevice(bar, device, 0, &err);
	check(err, SCI_ERR_OK, what);
}

/* The device is the one that would reach the drive: no pages of that are ours but its doorbells. */
static int refused(sci_desc_t sd, char **args)
{
	sci_smartio_device_t drive = borrow(sd, args[0], 0), device = borrow(sd, args[1], 0);
	sci_remote_segment_t bar = connect_bar(drive, 0), memory = connect_bar(device, BAR);
	int iommu = args[2] && !strcmp(args[2], "iommu"), asked = args[2] != NULL;

	try_map(bar, device, 0, asked ? SCI_ERR_ACCESS : SCI_ERR_NOT_SUPPORTED,
		"registers of another");
	try_map(bar, device, 2 * PAGE, asked ? SCI_ERR_ACCESS : SCI_ERR_NOT_SUPPORTED,
		"the interrupt table");
	try_map(bar, drive, PAGE, SCI_ERR_NOT_SUPPORTED, "its own doorbells");
	try_map(bar, device, PAGE, iommu ? SCI_ERR_OK : SCI_ERR_NOT_SUPPORTED, "doorbells");
	try_map(memory, drive, 0, iommu ? SCI_ERR_OK : SCI_ERR_NOT_SUPPORTED, "memory");
	return 0;
}

/* Of the drive nothing can be a member of a group; a machine alone has no groups at all. */
static int no_member(sci_desc_t sd, char **args)
{
	sci_smartio_device_t drive = borrow(sd, args[0], 0);
	sci_remote_segment_t bar = connect_bar(drive, 0);
	sci_error_t err;

	for (unsigned page = 0; page < 3; page++) {
		smartio_join_group(bar, GROUP, page * PAGE, PAGE, 0, &err);
		check(err, args[1] ? SCI_ERR_NOT_SUPPORTED : SCI_ERR_ACCESS,
		      "registers, doorbells or the interrupt table in a group");
	}
	return 0;
}

int main(int argc, char **argv)
{
	sci_error_t err;
	sci_desc_t sd;

	SCIInitialize(0, &err);
	check(err, SCI_ERR_OK, "SCIInitialize");
	SCIOpen(&sd, 0, &err);
	check(err, SCI_ERR_OK, "SCIOpen");
	if (argc == 4 && !strcmp(argv[1], "work"))
		return work(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "queue"))
		return queue(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "noqueue"))
		return no_queue(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "reset"))
		return reset(argv + 2);
	if (argc == 2 && !strcmp(argv[1], "group"))
		return group(sd);
	if (argc == 3 && !strcmp(argv[1], "member"))
		return member(sd, argv + 2);
	if (argc == 3 && !strcmp(argv[1], "borrow"))
		return borrow_once(sd, argv + 2);
	if (argc == 3 && !strcmp(argv[1], "still"))
		return still(sd, argv + 2);
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "refused"))
		return refused(sd, argv + 2);
	if (argc == 3 && !strcmp(argv[1], "nomember"))
		return no_member(sd, argv + 2);
	if (argc == 4 && !strcmp(argv[1], "nomember") && !strcmp(argv[3], "alone"))
		return no_member(sd, argv + 2);
	fprintf(stderr,
		"usage: bartarget work|queue|noqueue|reset|refused DRIVE DEVICE [iommu|window]\n"
		"       bartarget member|borrow|still DEVICE\n"
		"       bartarget nomember DRIVE [alone]\n"
		"       bartarget group\n");
	return 2;
}
