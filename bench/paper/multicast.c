/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One Identify of a drive to all members of a multicast group (multicast.py says what is counted):
 *
 *	multicast listen		a member: tells of each page that arrives in its memory
 *	multicast drive DEVICE NODE...	a member that drives the device's registers by itself
 *
 * Both obey lines of standard input, "group" and "each": a page is written by one command to the
 * group, or by one command to each member; who listens awaits it, and says so.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define PAGE 4096u
#define GROUP 7u
#define OWN 8u /* each member's other segment, for commands of its own */
#define ENTRIES 64u
#define MEMBERS ENTRIES

/* NVM Express Base Specification 1.4, section 3.1. */
enum { AQA = 0x24, ASQ = 0x28, ACQ = 0x30, CC = 0x14, CSTS = 0x1c };
#define CC_ENABLE (4u << 20 | 6u << 16 | 1u)
#define IDENTIFY 0x06u
#define CONTROLLER 1u
#define SERIAL 1u /* word of the page: within the drive's serial number */

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static void check(sci_error_t error, const char *what)
{
	if (error != SCI_ERR_OK)
		fail(what, smartio_last_error());
}

static sci_desc_t begin(void)
{
	sci_error_t error;
	sci_desc_t sd;

	SCIInitialize(0, &error);
	check(error, "SCIInitialize");
	SCIOpen(&sd, 0, &error);
	check(error, "SCIOpen");
	return sd;
}

/* ---- members ---- */

static volatile uint32_t *share(sci_desc_t sd, unsigned id, unsigned flags,
				sci_local_segment_t *ret)
{
	volatile void *p;
	sci_local_segment_t s;
	sci_error_t error;
	sci_map_t m;

	SCICreateSegment(sd, &s, id, PAGE, NULL, NULL, flags, &error);
	check(error, "SCICreateSegment");
	SCIPrepareSegment(s, 0, flags, &error);
	check(error, "SCIPrepareSegment");
	p = SCIMapLocalSegment(s, &m, 0, PAGE, NULL, 0, &error);
	check(error, "SCIMapLocalSegment");
	SCISetSegmentAvailable(s, 0, 0, &error);
	check(error, "SCISetSegmentAvailable");
	*ret = s;
	return p;
}

static void say(const char *text)
{
	puts(text);
	fflush(stdout);
}

/* The page is cleared when it was seen, for the next. */
static void await(volatile uint32_t *page)
{
	while (sio_read32(page + SERIAL) == 0)
		smartio_yield();
	sio_from_fabric_barrier();
	for (unsigned i = 0; i < PAGE / 4; i++)
		sio_write32(page + i, 0);
}

static int listen_to(void)
{
	sci_desc_t sd = begin();
	sci_local_segment_t s;
	volatile uint32_t *group = share(sd, GROUP, SCI_FLAG_BROADCAST, &s);
	volatile uint32_t *own = share(sd, OWN, 0, &s);
	char line[64];

	say("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "group\n") == 0)
			await(group);
		else if (strcmp(line, "each\n") == 0)
			await(own);
		else
			fail(line, "group and each are right");
		say("seen");
	}
	SCITerminate();
	return 0;
}

/* ---- who drives ---- */

struct drive {
	sci_desc_t sd;
	sci_smartio_device_t device;
	volatile uint8_t *regs, *bells;
	volatile uint32_t *sq, *cq;
	sci_ioaddr_t at;
	uint32_t tail, head, phase;
	sci_ioaddr_t group, each[MEMBERS];
	unsigned n;
};

static void map_queues(struct drive *d)
{
	sci_local_segment_t s;
	sci_error_t error;
	volatile uint8_t *p;
	sci_map_t m;

	SCICreateSegment(d->sd, &s, 0, 2 * PAGE, NULL, NULL, SCI_FLAG_AUTO_ID, &error);
	check(error, "SCICreateSegment");
	SCIPrepareSegment(s, 0, 0, &error);
	check(error, "SCIPrepareSegment");
	SCISetSegmentAvailable(s, 0, 0, &error);
	check(error, "SCISetSegmentAvailable");
	p = SCIMapLocalSegment(s, &m, 0, 2 * PAGE, NULL, 0, &error);
	check(error, "SCIMapLocalSegment");
	SCIMapLocalSegmentForDevice(s, 0, d->device, &d->at, 0, 2 * PAGE, 0, &error);
	check(error, "SCIMapLocalSegmentForDevice");
	d->sq = (volatile uint32_t *)p;
	d->cq = (volatile uint32_t *)(p + PAGE);
}

static void write_address(struct drive *d, unsigned reg, uint64_t at)
{
	sio_write32(d->regs + reg, (uint32_t)at);
	sio_write32(d->regs + reg + 4, (uint32_t)(at >> 32));
}

static void open_drive(struct drive *d, const char *name)
{
	sci_remote_segment_t bar;
	sci_error_t error;
	sci_map_t m, b;
	unsigned fdid;

	d->sd = begin();
	smartio_find_device(name, &fdid, &error);
	check(error, name);
	SCIBorrowDevice(d->sd, &d->device, fdid, SCI_FLAG_EXCLUSIVE, &error);
	check(error, "SCIBorrowDevice");
	SCIConnectDeviceSegment(d->device, &bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	check(error, "SCIConnectDeviceSegment");
	d->regs = SCIMapRemoteSegment(bar, &m, 0, PAGE, NULL, 0, &error);
	check(error, "registers");
	d->bells = SCIMapRemoteSegment(bar, &b, PAGE, PAGE, NULL, 0, &error);
	check(error, "doorbells");
	map_queues(d);
	d->phase = 1;
	sio_write32(d->regs + AQA, (ENTRIES - 1) << 16 | (ENTRIES - 1));
	write_address(d, ASQ, d->at);
	write_address(d, ACQ, d->at + PAGE);
	sio_to_fabric_barrier();
	sio_write32(d->regs + CC, CC_ENABLE);
	while (sio_read32(d->regs + CSTS) != 1)
		smartio_yield();
}

/* Identify, to where @at leads; not waited for. */
static void identify(struct drive *d, sci_ioaddr_t at)
{
	volatile uint32_t *e = d->sq + d->tail * 16;

	for (unsigned i = 0; i < 16; i++)
		sio_write32(e + i, 0);
	sio_write32(e, IDENTIFY | d->tail << 16);
	sio_write32(e + 6, (uint32_t)at);
	sio_write32(e + 7, (uint32_t)(at >> 32));
	sio_write32(e + 10, CONTROLLER);
	d->tail = (d->tail + 1) % ENTRIES;
	sio_to_fabric_barrier();
	sio_write32(d->bells, d->tail);
}

static void take(struct drive *d)
{
	volatile uint32_t *e = d->cq + d->head * 4;
	uint32_t last;

	do {
		last = sio_read32(e + 3);
		if ((last >> 16 & 1) != d->phase)
			smartio_yield();
	} while ((last >> 16 & 1) != d->phase);
	if (last >> 17)
		fail("Identify", "the drive refused it");
	sio_from_fabric_barrier();
	d->head = (d->head + 1) % ENTRIES;
	d->phase ^= d->head == 0;
	sio_write32(d->bells + 4, d->head);
}

static sci_ioaddr_t reach(struct drive *d, unsigned node, unsigned id, unsigned flags)
{
	sci_remote_segment_t s;
	sci_error_t error;
	sci_ioaddr_t at;

	SCIConnectSegment(d->sd, &s, node, id, 0, NULL, NULL, SCI_INFINITE_TIMEOUT, flags, &error);
	check(error, "SCIConnectSegment");
	SCIMapRemoteSegmentForDevice(s, d->device, &at, 0, PAGE, 0, &error);
	check(error, "SCIMapRemoteSegmentForDevice");
	return at;
}

/* Return: nanoseconds until the drive has said that all is done. */
static uint64_t to_each(struct drive *d)
{
	uint64_t from = smartio_now_ns();

	for (unsigned i = 0; i < d->n; i++)
		identify(d, d->each[i]);
	for (unsigned i = 0; i < d->n; i++)
		take(d);
	return smartio_now_ns() - from;
}

static uint64_t to_group(struct drive *d)
{
	uint64_t from = smartio_now_ns();

	identify(d, d->group);
	take(d);
	return smartio_now_ns() - from;
}

static int drive(int argc, char **argv)
{
	struct drive d = {0};
	volatile uint32_t *group, *own;
	sci_local_segment_t s;
	sci_error_t error;
	char line[64];

	open_drive(&d, argv[0]);
	own = share(d.sd, OWN, 0, &s);
	SCIMapLocalSegmentForDevice(s, 0, d.device, &d.each[d.n++], 0, PAGE, 0, &error);
	check(error, "SCIMapLocalSegmentForDevice");
	group = share(d.sd, GROUP, SCI_FLAG_BROADCAST, &s);
	d.group = reach(&d, DIS_BROADCAST_NODEID_GROUP_ALL, GROUP, SCI_FLAG_BROADCAST);
	for (int i = 1; i < argc; i++)
		d.each[d.n++] = reach(&d, (unsigned)strtoul(argv[i], NULL, 10), OWN, 0);
	say("ready");
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t ns = strcmp(line, "group\n") == 0 ? to_group(&d) : to_each(&d);

		await(strcmp(line, "group\n") == 0 ? group : own);
		printf("%" PRIu64 "\n", ns);
		fflush(stdout);
	}
	sio_write32(d.regs + CC, 0);
	while (sio_read32(d.regs + CSTS) & 1)
		smartio_yield();
	SCITerminate();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "listen") == 0)
		return listen_to();
	/* Commands to each are all in the queue at once. */
	if (argc >= 3 && argc <= 3 + (int)ENTRIES - 1 && strcmp(argv[1], "drive") == 0)
		return drive(argc - 2, argv + 2);
	fprintf(stderr, "usage: multicast listen | drive DEVICE NODE...\n");
	return 2;
}
