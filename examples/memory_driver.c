/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A whole driver in one file, with the installed headers alone: the DMA engine of a memory device,
 * which may be with any host, copies a buffer of this program into the device's RAM and back.
 * docs/driver-author.md goes through it, step by step.
 *
 * usage: memory_driver DEVICE COPIES poll|interrupt
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "example.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/memdev.h"

#define PAGE 4096u
#define RING 8u /* entries */
#define BYTES ((size_t)8192)
#define PATIENCE_MS 10000u
#define VECTOR 0u

/* Memory for the CPU at @at, and for the device at @address. */
struct memory {
	sci_remote_segment_t segment;
	sci_map_t map;
	volatile uint8_t *at;
	sci_ioaddr_t address;
};

struct driver {
	sci_smartio_device_t device;
	uint32_t generation; /* what is set up is of this time, between two resets */
	sci_remote_segment_t bar;
	sci_map_t registers_map, doorbell_map;
	volatile uint8_t *registers, *doorbell;
	const volatile uint32_t *sleeps; /* of an emulated device; NULL: never mind */
	struct memory ring, done;
	uint32_t submitted;
	/* This program's own data, as the device sees it. */
	sci_local_segment_t data;
	sci_map_t data_map;
	volatile uint64_t *words;
	sci_ioaddr_t data_address;
	sci_local_interrupt_t interrupt; /* NULL: it is polled */
};

static void fail(int status, const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(status);
}

/* ---- 1. the device: its lender resets it first, nothing of the borrower before is in it ---- */
static void borrow(struct driver *d, sci_desc_t sd, const char *name)
{
	sci_smartio_device_info_t info = {0};
	sci_smartio_query_device_t query = {.subcommand = SCI_Q_DEVICE_INFO, .data = &info};

	/* The borrower before may just be ending. */
	CALL(smartio_await_device, name, SMARTIO_AWAIT_EXCLUSIVE, PATIENCE_MS, &query.fdid);
	CALL(SCIQuery, SCI_Q_DEVICE, &query, 0);
	if (info.pci_class != SIO_MEMDEV_CLASS)
		fail(1, "this is no memory device");
	CALL(SCIBorrowDevice, sd, &d->device, query.fdid, SCI_FLAG_EXCLUSIVE);
	d->generation = smartio_device_generation(d->device);
}

/* ---- 2. its registers and its doorbell ---- */
static volatile uint8_t *map_page(struct driver *d, size_t offset, sci_map_t *ret)
{
	volatile uint8_t *at;
	sci_error_t error;

	at = SCIMapRemoteSegment(d->bar, ret, offset, PAGE, NULL, SCI_FLAG_IO_MAP_IOSPACE, &error);
	check(error, "SCIMapRemoteSegment of a BAR");
	return at;
}

static void map_bar(struct driver *d)
{
	CALL(SCIConnectDeviceSegment, d->device, &d->bar, SIO_MEMDEV_BAR_REGISTERS, SCI_MEMTYPE_BAR,
	     NULL, NULL, 0);
	d->registers = map_page(d, 0, &d->registers_map);
	d->doorbell = map_page(d, SIO_MEMDEV_DOORBELL, &d->doorbell_map);
	d->sleeps = smartio_map_sleep_word(d->doorbell_map);
	if (sio_read32(d->registers + SIO_MEMDEV_MAGIC) != SIO_MEMDEV_MAGIC_VALUE)
		fail(1, "no memory device answers");
}

/* ---- 3. memory that both use: where it lies follows from who reads and who writes it ---- */
static void make(struct driver *d, unsigned id, unsigned hints, struct memory *m)
{
	CALL(SCICreateDeviceSegment, d->device, id, PAGE, SCI_MEMTYPE_PRIVATE, hints, 0);
	CALL(SCIConnectDeviceSegment, d->device, &m->segment, id, SCI_MEMTYPE_PRIVATE, NULL, NULL,
	     0);
	m->at = map_remote(m->segment, PAGE, &m->map);
	CALL(SCIMapRemoteSegmentForDevice, m->segment, d->device, &m->address, 0, PAGE, 0);
}

/* ---- 4. a DMA window to data of this program's own ---- */
static void make_data(struct driver *d, sci_desc_t sd)
{
	d->words = export_segment(sd, 1, 2 * BYTES, SCI_FLAG_AUTO_ID, &d->data, &d->data_map);
	CALL(SCIMapLocalSegmentForDevice, d->data, ADAPTER, d->device, &d->data_address, 0,
	     2 * BYTES, 0);
}

/* ---- 5. an interrupt of this host, which the device triggers by itself ---- */
static void tie_interrupt(struct driver *d, sci_desc_t sd)
{
	unsigned vector = VECTOR, number = 0, node;
	sci_remote_interrupt_t ourselves;

	CALL(SCIGetLocalNodeId, ADAPTER, &node, 0);
	CALL(SCICreateInterrupt, sd, &d->interrupt, ADAPTER, &number, NULL, NULL, 0);
	CALL(SCIConnectInterrupt, sd, &ourselves, node, ADAPTER, number, SCI_INFINITE_TIMEOUT, 0);
	CALL(smartio_connect_device_interrupt, d->device, &vector, ourselves);
	CALL(SCIDisconnectInterrupt, ourselves, 0);
}

/* ---- 6. the device is told where all that is ---- */
static void start(struct driver *d)
{
	sio_write32(d->registers + SIO_MEMDEV_RING_BASE, (uint32_t)d->ring.address);
	sio_write32(d->registers + SIO_MEMDEV_RING_BASE + 4, (uint32_t)(d->ring.address >> 32));
	sio_write32(d->registers + SIO_MEMDEV_RING_ENTRIES, RING);
	sio_write32(d->registers + SIO_MEMDEV_VECTOR, VECTOR);
	sio_to_fabric_barrier();
	sio_write32(d->registers + SIO_MEMDEV_CONTROL, SIO_MEMDEV_ENABLE);
	while (sio_read32(d->registers + SIO_MEMDEV_STATUS) != SIO_MEMDEV_RUNNING)
		smartio_yield();
}

/* ---- 7. the data path: stores and loads, and no call unless it sleeps ---- */
/* Lost, or reset by its lender: what was set up is gone, and so is what was in flight. */
static void check_alive(const struct driver *d)
{
	if (smartio_device_generation(d->device) != d->generation)
		fail(3, smartio_device_lost(d->device) ? "the device was lost"
						       : "the device was reset by its lender");
}

static void submit(struct driver *d, uint64_t source, uint64_t target, uint32_t flags)
{
	const struct sio_memdev_entry e = {.source = source,
					   .target = target,
					   .length = BYTES,
					   .flags = flags |
						    (d->interrupt ? SIO_MEMDEV_INTERRUPT : 0),
					   .completion = d->done.address};

	sio_copy_to(d->ring.at + d->submitted++ % RING * sizeof(e), &e, sizeof(e));
	check_alive(d);
	/* The entry is there before the device hears of it. */
	sio_to_fabric_barrier();
	sio_write32(d->doorbell, d->submitted);
	if (!d->sleeps)
		return;
	sio_full_barrier();
	if (sio_read32(d->sleeps))
		smartio_map_wake(d->doorbell_map);
}

static void await(struct driver *d)
{
	uint64_t deadline = smartio_now_ns() + PATIENCE_MS * 1000000ull;
	sci_error_t error;

	while (sio_read32(d->done.at) != d->submitted) {
		check_alive(d);
		if (smartio_now_ns() >= deadline)
			fail(1, "no answer");
		if (d->interrupt) /* it comes behind the completion, and is kept if it is early */
			SCIWaitForInterrupt(d->interrupt, 50, 0, &error);
		else
			smartio_yield();
	}
	/* What came before the completion is there, too. */
	sio_from_fabric_barrier();
	if (sio_read32(d->done.at + 4) != SIO_MEMDEV_OK)
		fail(1, "a copy failed");
}

/* ---- 8. the end, in the order of the beginning, backwards; a death is the same ---- */
static void drop(struct driver *d, struct memory *m)
{
	CALL(SCIUnmapRemoteSegmentForDevice, m->segment, d->device, 0);
	disconnect_segment(m->segment, m->map);
}

static void stop(struct driver *d)
{
	/* First the device stops using memory, then memory goes. */
	sio_write32(d->registers + SIO_MEMDEV_CONTROL, 0);
	while (sio_read32(d->registers + SIO_MEMDEV_STATUS) == SIO_MEMDEV_RUNNING)
		smartio_yield();
	if (d->interrupt) {
		CALL(smartio_disconnect_device_interrupt, d->device, VECTOR);
		CALL(SCIRemoveInterrupt, d->interrupt, 0);
	}
	CALL(SCIUnmapLocalSegmentForDevice, d->data, ADAPTER, d->device, 0);
	remove_segment(d->data, d->data_map);
	drop(d, &d->done);
	drop(d, &d->ring);
	CALL(SCIUnmapSegment, d->doorbell_map, 0);
	disconnect_segment(d->bar, d->registers_map);
	CALL(SCIReturnDevice, d->device, 0);
}

/* The first half of the data goes into the device's RAM, and comes back into the second. */
static uint64_t round_trip(struct driver *d, uint64_t n)
{
	volatile uint64_t *back = d->words + BYTES / 8;
	uint64_t sum = 0;

	for (unsigned i = 0; i < BYTES / 8; i++) {
		d->words[i] = n * 0x9e3779b97f4a7c15u + i;
		back[i] = 0;
	}
	submit(d, d->data_address, 0, SIO_MEMDEV_TO_RAM);
	submit(d, 0, d->data_address + BYTES, SIO_MEMDEV_FROM_RAM);
	await(d);
	for (unsigned i = 0; i < BYTES / 8; i++) {
		if (back[i] != d->words[i])
			fail(1, "what came back is something else");
		sum += back[i];
	}
	return sum;
}

int main(int argc, char **argv)
{
	struct driver d = {0};
	uint64_t copies, sum = 0;
	sci_desc_t sd = begin();

	if (argc != 4)
		fail(2, "usage: memory_driver DEVICE COPIES poll|interrupt");
	copies = strtoull(argv[2], NULL, 0);
	borrow(&d, sd, argv[1]);
	map_bar(&d);
	make(&d, 1, SCI_MEMACCESS_DEVICE_READ | SCI_MEMACCESS_HOST_WRITE, &d.ring);
	make(&d, 2, SCI_MEMACCESS_DEVICE_WRITE | SCI_MEMACCESS_HOST_READ, &d.done);
	make_data(&d, sd);
	if (!strcmp(argv[3], "interrupt"))
		tie_interrupt(&d, sd);
	start(&d);
	printf("ready\n");
	fflush(stdout);
	for (uint64_t n = 0; n < copies; n++)
		sum += round_trip(&d, n);
	printf("%" PRIu64 " copies, sum %" PRIu64 "\n", copies, sum);
	stop(&d);
	end(sd);
	return 0;
}
