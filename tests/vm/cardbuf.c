/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a card as a segment, by its driver's dma-buf (shim/test/smartio_card.c).
 * usage: cardbuf export ID
 *        cardbuf drive DRIVE
 * export: offers it to other machines until its input ends; prints as lib/rounds.h says, and at the
 * end the last word of the first 64 bytes, as the card's driver shows it.
 * drive: a drive, perhaps another machine's, reads blocks into it and writes others out of it, by
 * commands that this program builds; they are compared with what the library reads and writes.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/rounds.h"
#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/gpu.h"
#include "smartio/nvme.h"
#include "smartio/nvmeraw.h"

#define CARD_GIVE 0x5300
#define BYTES 65536u /* all of the card's memory */
#define PAGE 4096u
#define PLACE (4u << 20) /* on the drive */
#define PAUSE_MS 5
#define PATIENCE_MS 60000
#define DEPTH 4
enum { NVME_WRITE = 1, NVME_READ = 2 };

static void check(sci_error_t err, const char *what)
{
	if (err == SCI_ERR_OK)
		return;
	fprintf(stderr, "cardbuf: %s: %s: %s\n", what, SCIGetErrorString(err),
		smartio_last_error());
	exit(1);
}

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "cardbuf: %s: %s\n", what, smartio_nvme_error());
	exit(1);
}

static void fail(const char *what)
{
	fprintf(stderr, "cardbuf: %s\n", what);
	exit(1);
}

/* A segment of the card's memory, which is @ret_at as well, for other hosts. */
static sci_local_segment_t make_segment(sci_desc_t sd, unsigned id, volatile uint8_t **ret_at)
{
	int dev = open("/dev/smartio_card", O_RDWR | O_CLOEXEC);
	int fd = dev < 0 ? -1 : ioctl(dev, CARD_GIVE);
	sci_local_segment_t segment;
	sci_error_t err;
	void *at;

	if (fd < 0)
		fail("no /dev/smartio_card gives memory");
	at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		fail("its memory cannot be mapped");
	*ret_at = at;
	SCICreateSegment(sd, &segment, id, BYTES, NULL, NULL, SCI_FLAG_EMPTY, &err);
	check(err, "SCICreateSegment");
	smartio_attach_dmabuf(fd, 0, BYTES, segment, 0, &err);
	check(err, "smartio_attach_dmabuf");
	SCIPrepareSegment(segment, 0, 0, &err);
	check(err, "SCIPrepareSegment");
	SCISetSegmentAvailable(segment, 0, 0, &err);
	check(err, "SCISetSegmentAvailable");
	close(fd);
	close(dev);
	return segment;
}

static void remove_segment(sci_local_segment_t segment)
{
	sci_error_t err;

	do { /* until the importers have disconnected */
		SCIRemoveSegment(segment, 0, &err);
	} while (err == SCI_ERR_BUSY && poll(NULL, 0, PAUSE_MS) == 0);
	check(err, "SCIRemoveSegment");
}

static void export_until_end(sci_desc_t sd, unsigned id)
{
	volatile uint8_t *at;
	sci_local_segment_t segment = make_segment(sd, id, &at);

	rounds_running();
	while (!rounds_end(PAUSE_MS))
		rounds_answer();
	printf("word %u\n", ((const volatile uint32_t *)(const volatile void *)at)[15]);
	remove_segment(segment);
}

/* ---- a drive ---- */

struct drive {
	struct smartio_nvme *nvme;
	struct smartio_nvme_queue *plain, *given;
	struct smartio_nvme_raw raw;
	volatile uint32_t *sq, *cq;
	volatile uint8_t *bells;
	sci_map_t map[3];
	unsigned n; /* commands so far */
};

static volatile void *map_of(sci_remote_segment_t s, size_t offset, size_t bytes, sci_map_t *map,
			     const char *what)
{
	volatile void *at;
	sci_error_t err;

	at = SCIMapRemoteSegment(s, map, offset, (bytes + PAGE - 1) / PAGE * PAGE, NULL, 0, &err);
	check(err, what);
	return at;
}

static void open_drive(struct drive *d, const char *name)
{
	const struct smartio_nvme_queue_options options = {.size = sizeof(options), .depth = DEPTH};

	must(smartio_nvme_open_wait(name, PATIENCE_MS, &d->nvme), name);
	must(smartio_nvme_queue_open(d->nvme, NULL, &d->plain), "queue");
	must(smartio_nvme_queue_open(d->nvme, &options, &d->given), "queue for commands of ours");
	d->raw.size = sizeof(d->raw);
	must(smartio_nvme_queue_hand_over(d->given, &d->raw), "queue for commands of ours");
	d->sq = map_of(d->raw.sq, 0, d->raw.entries * 64, &d->map[0], "submission queue");
	d->cq = map_of(d->raw.cq, 0, d->raw.entries * 16, &d->map[1], "completion queue");
	d->bells = map_of(d->raw.bar, PAGE, PAGE, &d->map[2], "doorbells");
}

static void close_drive(struct drive *d)
{
	sci_error_t err;

	for (unsigned i = 0; i < 3; i++) {
		SCIUnmapSegment(d->map[i], 0, &err);
		check(err, "SCIUnmapSegment");
	}
	smartio_nvme_queue_close(d->given);
	smartio_nvme_queue_close(d->plain);
	smartio_nvme_close(d->nvme);
}

static void ring(struct drive *d, size_t bell, uint32_t value)
{
	__sync_synchronize(); /* what was stored before has left this processor */
	*(volatile uint32_t *)(volatile void *)(d->bells + bell - PAGE) = value;
}

/* Entry by entry: the next one when the one before is answered. */
static void command(struct drive *d, uint32_t opcode, uint64_t data, uint64_t block)
{
	const unsigned entry = d->n % d->raw.entries, next = (d->n + 1) % d->raw.entries;
	const uint32_t phase = d->n / d->raw.entries % 2 == 0;
	const volatile uint32_t *answer = d->cq + entry * 4 + 3;
	const uint32_t words[16] = {
		[0] = opcode | d->n << 16,
		[1] = d->raw.namespace_id,
		[6] = (uint32_t)data,
		[7] = (uint32_t)(data >> 32),
		[10] = (uint32_t)block,
		[11] = (uint32_t)(block >> 32),
		[12] = PAGE / d->raw.block_size - 1,
	};

	for (unsigned i = 0; i < 16; i++)
		d->sq[entry * 16 + i] = words[i];
	ring(d, d->raw.sq_doorbell, next);
	while ((*answer >> 16 & 1) != phase)
		poll(NULL, 0, 1); /* the test has a limit */
	if (*answer >> 17)
		fail("the drive reports an error");
	ring(d, d->raw.cq_doorbell, next);
	d->n++;
}

static uint8_t byte_of(unsigned round, size_t i)
{
	return (uint8_t)(round * 37 + i + i / PAGE * 11);
}

static void transfer(struct drive *d, uint32_t opcode, sci_ioaddr_t at)
{
	const uint64_t first = d->raw.first + PLACE / d->raw.block_size;

	for (unsigned i = 0; i < BYTES / PAGE; i++)
		command(d, opcode, at + i * PAGE, first + i * (PAGE / d->raw.block_size));
}

static void work(struct drive *d, volatile uint8_t *card, sci_ioaddr_t at)
{
	static uint8_t data[BYTES];

	for (size_t i = 0; i < BYTES; i++)
		data[i] = byte_of(1, i);
	must(smartio_nvme_write(d->plain, data, PLACE, BYTES), "write");
	transfer(d, NVME_READ, at);
	for (size_t i = 0; i < BYTES; i++)
		if (card[i] != byte_of(1, i))
			fail("the drive has not put its blocks into the card's memory");
	for (size_t i = 0; i < BYTES; i++)
		card[i] = byte_of(2, i);
	transfer(d, NVME_WRITE, at);
	must(smartio_nvme_read(d->plain, data, PLACE, BYTES), "read");
	for (size_t i = 0; i < BYTES; i++)
		if (data[i] != byte_of(2, i))
			fail("the drive has not taken its blocks from the card's memory");
	printf("%u commands\n", d->n);
}

static void use_drive(sci_desc_t sd, const char *name)
{
	volatile uint8_t *card;
	sci_local_segment_t segment = make_segment(sd, 1, &card);
	struct drive d = {.n = 0};
	sci_ioaddr_t at = 0;
	sci_error_t err;

	open_drive(&d, name);
	SCIMapLocalSegmentForDevice(segment, 0, d.raw.device, &at, 0, BYTES, 0, &err);
	check(err, "SCIMapLocalSegmentForDevice");
	work(&d, card, at);
	SCIUnmapLocalSegmentForDevice(segment, 0, d.raw.device, 0, &err);
	check(err, "SCIUnmapLocalSegmentForDevice");
	close_drive(&d);
	remove_segment(segment);
}

int main(int argc, char **argv)
{
	bool drive = argc == 3 && strcmp(argv[1], "drive") == 0;
	sci_error_t err;
	sci_desc_t sd;

	if (!drive && (argc != 3 || strcmp(argv[1], "export") != 0)) {
		fprintf(stderr, "usage: cardbuf export ID\n       cardbuf drive DRIVE\n");
		return 2;
	}
	rounds_begin();
	SCIInitialize(0, &err);
	check(err, "SCIInitialize");
	SCIOpen(&sd, 0, &err);
	check(err, "SCIOpen");
	if (drive)
		use_drive(sd, argv[2]);
	else
		export_until_end(sd, (unsigned)atoi(argv[2]));
	SCIClose(sd, 0, &err);
	check(err, "SCIClose");
	SCITerminate();
	return 0;
}
