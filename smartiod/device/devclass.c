/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <stddef.h>

#include "core/types.h"
#include "smartio/acceldev.h"
#include "smartio/memdev.h"
#include "smartiod/device/devclass.h"

#define MSIX_ENTRY 16u
#define NO_END UINT64_MAX
#define PAGE_MASK ((uint64_t)SIO_PAGE_SIZE - 1)
#define CLASS_NVME 0x010802u
#define NVME_CMB_BAR 2u

struct class_run {
	uint32_t class_code, vendor, device, bar; /* vendor 0: any */
	uint64_t offset, end;
	enum smartiod_bar_use use;
};

/*
 * NVM Express Base Specification 1.4, section 3.1: registers from 0, doorbells from 0x1000. One
 * page of doorbells holds 512 queue pairs at the smallest stride.
 *
 * The controller memory buffer (3.1.11) may be in another BAR, of which this is the usual one.
 * Queues of all borrowers may lie there, as their manager, who has the registers, places them.
 *
 * Of the PCI classes that the memory device and the accelerator are of there are others, with other
 * BARs.
 */
#define ACCEL SIO_ACCEL_CLASS, SIO_ACCEL_VENDOR, SIO_ACCEL_DEVICE
#define MEMDEV SIO_MEMDEV_CLASS, SIO_MEMDEV_VENDOR, SIO_MEMDEV_DEVICE
static const struct class_run classes[] = {
	{CLASS_NVME, 0, 0, 0, 0, 0x1000, SMARTIOD_BAR_REGISTERS},
	{CLASS_NVME, 0, 0, 0, 0x1000, 0x2000, SMARTIOD_BAR_DOORBELLS},
	{CLASS_NVME, 0, 0, NVME_CMB_BAR, 0, NO_END, SMARTIOD_BAR_HOLDER},
	{MEMDEV, SIO_MEMDEV_BAR_REGISTERS, 0, 0x1000, SMARTIOD_BAR_REGISTERS},
	{MEMDEV, SIO_MEMDEV_BAR_REGISTERS, 0x1000, 0x2000, SMARTIOD_BAR_DOORBELLS},
	{MEMDEV, SIO_MEMDEV_BAR_RAM, 0, NO_END, SMARTIOD_BAR_MEMORY},
	{ACCEL, SIO_ACCEL_BAR_REGISTERS, 0, 0x1000, SMARTIOD_BAR_REGISTERS},
	{ACCEL, SIO_ACCEL_BAR_REGISTERS, 0x1000, 0x2000, SMARTIOD_BAR_DOORBELLS},
	{ACCEL, SIO_ACCEL_BAR_MEMORY, 0, NO_END, SMARTIOD_BAR_MEMORY},
};

static bool is_of(const struct class_run *c, const struct sio_evt_device *d)
{
	return c->class_code == d->class_code &&
	       (!c->vendor || (c->vendor == d->vendor && c->device == d->device));
}

static unsigned add(struct smartiod_bar_run *ret, unsigned n, uint64_t offset, uint64_t end,
		    enum smartiod_bar_use use)
{
	if (offset >= end || n == SMARTIOD_BAR_RUNS)
		return n;
	ret[n] = (struct smartiod_bar_run){.offset = offset, .length = end - offset, .use = use};
	return n + 1;
}

/* Add [offset, end) without the pages of the interrupt table, [table, table_end). */
static unsigned add_around(struct smartiod_bar_run *ret, unsigned n, const struct class_run *run,
			   uint64_t end, uint64_t table, uint64_t table_end)
{
	if (end > run->end)
		end = run->end;
	if (table >= end || table_end <= run->offset)
		return add(ret, n, run->offset, end, run->use);
	n = add(ret, n, run->offset, table, run->use);
	return add(ret, n, table_end > run->offset ? table_end : run->offset, end, run->use);
}

/* Where the interrupt table is in @bar: whole pages. NO_END: it is not there. */
static void find_table(const struct sio_evt_device *device, unsigned bar, uint64_t *ret,
		       uint64_t *ret_end)
{
	*ret = *ret_end = NO_END;
	if (device->msix_count == 0 || device->msix_bar != bar)
		return;
	*ret = device->msix_offset & ~PAGE_MASK;
	*ret_end = ((uint64_t)device->msix_offset + (uint64_t)device->msix_count * MSIX_ENTRY +
		    PAGE_MASK) &
		   ~PAGE_MASK;
}

bool smartiod_devclass_whole(const struct sio_evt_device *device, unsigned bar,
			     struct smartiod_bar_run *ret)
{
	uint64_t size = device->bar_size[bar] & ~PAGE_MASK, table, table_end;

	find_table(device, bar, &table, &table_end);
	*ret = (struct smartiod_bar_run){.length = table < size ? table : size,
					 .use = SMARTIOD_BAR_REGISTERS};
	return ret->length > 0;
}

bool smartiod_devclass_known(const struct sio_evt_device *device)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (is_of(&classes[i], device))
			return true;
	return false;
}

unsigned smartiod_devclass_runs(const struct sio_evt_device *device, unsigned bar,
				struct smartiod_bar_run ret[SMARTIOD_BAR_RUNS])
{
	const struct class_run all = {.end = NO_END, .use = SMARTIOD_BAR_REGISTERS};
	uint64_t size, table, table_end;
	bool known = false;
	unsigned n = 0;

	if (bar >= SIO_DEVICE_BARS)
		return 0;
	size = device->bar_size[bar] & ~PAGE_MASK;
	find_table(device, bar, &table, &table_end);
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (!is_of(&classes[i], device))
			continue;
		known = true;
		if (classes[i].bar == bar)
			n = add_around(ret, n, &classes[i], size, table, table_end);
	}
	if (!known)
		n = add_around(ret, n, &all, size, table, table_end);
	return n;
}

const char *smartiod_devclass_name(uint32_t class_code)
{
	return class_code == CLASS_NVME ? "nvme" : "device";
}
