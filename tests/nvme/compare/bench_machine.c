/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same bench on a real kernel: the drive of this machine, borrowed through smartiod and the
 * kernel module, the driver's own half of memory and devices, and nothing in between. Needs an
 * IOMMU: sequences give the drive addresses where there is no memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "sisci_api.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/nvme.h"

#define DOORBELLS 0x1000u
#define QUEUES (PAGES * PAGE) /* where memory for queues begins, behind the scratch pages */
#define TURN_NS 100000	      /* the drive is another thread of the machine's host */

const char drive_usage[] = "machine FILE DEVICE";
struct bench bench;

static struct machine {
	struct drive d;
	struct sio_nvme_mem memory;
	sci_local_interrupt_t interrupt[DRIVE_VECTORS];
} machine;
static size_t next;

/* ---- memory ---- */

uint64_t bench_page(unsigned number)
{
	return machine.memory.ioaddr + (uint64_t)number * PAGE;
}

uint8_t *bench_at(uint64_t addr)
{
	if (addr < machine.memory.ioaddr || addr - machine.memory.ioaddr >= DRIVE_BYTES)
		return NULL;
	return machine.d.memory + (addr - machine.memory.ioaddr);
}

uint64_t bench_alloc(size_t bytes)
{
	uint64_t at = machine.memory.ioaddr + next;

	next += (bytes + PAGE - 1) / PAGE * PAGE;
	if (next > DRIVE_BYTES) {
		fprintf(stderr, "a sequence needs more memory than there is\n");
		exit(1);
	}
	return at;
}

/* ---- the drive ---- */

static uint32_t machine_read(struct drive *d, uint32_t offset)
{
	(void)d;
	return sio_read32(bench.ctrl.reg + offset);
}

static volatile uint8_t *place(uint32_t offset)
{
	return offset < DOORBELLS ? bench.ctrl.reg + offset : bench.ctrl.db + (offset - DOORBELLS);
}

static void machine_write(struct drive *d, uint32_t offset, uint32_t value)
{
	(void)d;
	sio_write32(place(offset), value);
}

static void machine_write64(struct drive *d, uint32_t offset, uint64_t value)
{
	(void)d;
	sio_write64(place(offset), value);
}

static void machine_turn(struct drive *d)
{
	const struct timespec pause = {.tv_nsec = TURN_NS};

	machine_read(d, 0x1c);
	nanosleep(&pause, NULL);
}

static void machine_reset(struct drive *d)
{
	sci_error_t err;

	(void)d;
	smartio_device_reset(bench.device.handle, &err);
	if (err != SCI_ERR_OK) {
		fprintf(stderr, "the drive cannot be reset: %s\n", smartio_last_error());
		exit(1);
	}
}

static uint32_t machine_interrupts(struct drive *d)
{
	uint32_t raised = 0;
	sci_error_t err;

	(void)d;
	for (unsigned i = 0; i < DRIVE_VECTORS; i++) {
		SCIWaitForInterrupt(machine.interrupt[i], 0, 0, &err);
		if (err == SCI_ERR_OK)
			raised |= 1u << i;
	}
	return raised;
}

static int tie(unsigned vector)
{
	struct sio_nvme_device *d = &bench.device;
	sci_remote_interrupt_t to;
	unsigned number = 0;
	sci_error_t err;

	SCICreateInterrupt(d->sd, &machine.interrupt[vector], d->adapter, &number, NULL, NULL, 0,
			   &err);
	if (err == SCI_ERR_OK)
		SCIConnectInterrupt(d->sd, &to, d->node, d->adapter, number, SCI_INFINITE_TIMEOUT,
				    0, &err);
	if (err != SCI_ERR_OK)
		return -EIO;
	smartio_connect_device_interrupt(d->handle, &vector, to, &err);
	return err == SCI_ERR_OK ? 0 : -EIO;
}

static void machine_close(struct drive *d)
{
	sci_error_t err;

	(void)d;
	for (unsigned i = 0; i < DRIVE_VECTORS; i++) {
		smartio_disconnect_device_interrupt(bench.device.handle, i, &err);
		if (machine.interrupt[i])
			SCIRemoveInterrupt(machine.interrupt[i], 0, &err);
	}
	sio_nvme_mem_done(&machine.memory);
	sio_nvme_device_done(&bench.device);
	SCITerminate();
}

struct drive *drive_open(const char *kind, const char *more)
{
	sci_error_t err;
	int rc;

	if (strcmp(kind, "machine") != 0 || !more)
		return NULL;
	machine.d = (struct drive){
		.read = machine_read,
		.write = machine_write,
		.write64 = machine_write64,
		.turn = machine_turn,
		.function_reset = machine_reset,
		.interrupts = machine_interrupts,
		.close = machine_close,
	};
	SCIInitialize(0, &err);
	rc = err == SCI_ERR_OK ? sio_nvme_device_find(&bench.device, more) : -EIO;
	if (rc == 0)
		rc = sio_nvme_device_borrow(&bench.device, SCI_FLAG_EXCLUSIVE);
	if (rc == 0)
		rc = sio_nvme_mem_local(&bench.device, DRIVE_BYTES, &machine.memory);
	for (unsigned i = 0; rc == 0 && i < DRIVE_VECTORS; i++)
		rc = tie(i);
	if (rc) {
		fprintf(stderr, "%s: %s, %s\n", more, smartio_nvme_error(), smartio_last_error());
		machine_close(&machine.d);
		return NULL;
	}
	if (machine.memory.ioaddr % (2 * PAGE) != 0) { /* sequences say p1 for an odd page */
		fprintf(stderr, "the memory begins at an odd page, %#llx\n",
			(unsigned long long)machine.memory.ioaddr);
		machine_close(&machine.d);
		return NULL;
	}
	machine.d.memory = (uint8_t *)(uintptr_t)machine.memory.at;
	return &machine.d;
}

/* ---- */

int bench_begin(void)
{
	int rc;

	next = QUEUES;
	memset(bench.queue, 0, sizeof(bench.queue));
	memset(machine.d.memory, 0, DRIVE_BYTES);
	bench.cid = 0x1000;
	machine_reset(&machine.d);
	rc = sio_nvme_ctrl_open(&bench.ctrl, &bench.device, 0);
	if (rc == 0)
		rc = sio_nvme_ctrl_disable(&bench.ctrl);
	if (rc == 0)
		rc = sio_nvme_ctrl_doorbells(&bench.ctrl);
	if (rc == 0)
		rc = sio_nvme_ctrl_enable(&bench.ctrl, ADMIN_ENTRIES);
	machine_interrupts(&machine.d);
	bench.open = rc == 0;
	return rc;
}

void bench_end(void)
{
	if (bench.open)
		sio_nvme_ctrl_disable(&bench.ctrl);
	sio_nvme_ctrl_done(&bench.ctrl, true);
	bench.open = false;
}
