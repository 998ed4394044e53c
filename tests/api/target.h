/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of a borrowed memory device, as other devices and groups reach it. */
#ifndef TESTS_API_TARGET_H
#define TESTS_API_TARGET_H

#include <sched.h>
#include <stddef.h>

#include "../lib/cluster.h"
#include "smartio/memdev.h"

#define PAGE 4096u

/* A borrowed memory device of 64 KiB, four pages of its RAM mapped for the processor. */
struct target {
	sci_smartio_device_t device;
	sci_remote_segment_t bar;
	sci_map_t map;
	volatile uint8_t *ram;
};

/* A device that was put back is known as soon as the daemons have told one another. */
static inline unsigned find_device(const char *name)
{
	unsigned fdid = 0;
	sci_error_t error;

	do
		smartio_find_device(name, &fdid, &error);
	while (error == SCI_ERR_NO_SUCH_FDID && sched_yield() == 0);
	CHECK_OK(error);
	return fdid;
}

static inline sci_remote_segment_t connect_bar(sci_smartio_device_t device, unsigned bar)
{
	sci_remote_segment_t seg = NULL;
	sci_error_t error;

	SCIConnectDeviceSegment(device, &seg, bar, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_OK(error);
	return seg;
}

/* @flags: of SCIBorrowDevice(). @offset: in its RAM, of what is mapped. */
static inline struct target target_take(sci_desc_t sd, const char *name, unsigned flags,
					size_t offset)
{
	struct target t = {.device = NULL};
	sci_error_t error;

	do { /* the one before may be on its way out */
		SCIBorrowDevice(sd, &t.device, find_device(name), flags, &error);
	} while (error == SCI_ERR_NOT_AVAILABLE);
	CHECK_OK(error);
	t.bar = connect_bar(t.device, SIO_MEMDEV_BAR_RAM);
	CHECK(SCIGetRemoteSegmentSize(t.bar) == 16 * PAGE);
	t.ram = SCIMapRemoteSegment(t.bar, &t.map, offset, 4 * PAGE, NULL, 0, &error);
	CHECK_OK(error);
	return t;
}

/* @map: NULL: there is none. */
static inline void drop_bar(sci_remote_segment_t bar, sci_map_t map)
{
	sci_error_t error;

	if (map) {
		SCIUnmapSegment(map, 0, &error);
		CHECK_OK(error);
	}
	SCIDisconnectSegment(bar, 0, &error);
	CHECK_OK(error);
}

static inline void target_return(struct target *t)
{
	sci_error_t error;

	drop_bar(t->bar, t->map);
	SCIReturnDevice(t->device, 0, &error);
	CHECK_OK(error);
}

#endif
