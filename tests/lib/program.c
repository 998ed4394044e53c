/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs on a test's cluster, live or simulated. */
#include <time.h>

#include "cluster.h"
#include "program.h"

/* There is no event to wait for: links come up as hosts do. */
int program_probe(void *arg)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	const struct program_probe *p = arg;
	sci_desc_t sd = api_begin();
	sci_error_t error;

	for (unsigned i = 1; i <= p->count; i++)
		while (i * 4 != p->own && !SCIProbeNode(sd, 0, i * 4, 0, &error))
			nanosleep(&pause, NULL);
	api_end(sd);
	return 0;
}

/* Only who holds the registers can know. */
static void settle(sci_desc_t sd, unsigned fdid)
{
	sci_smartio_device_t device = NULL;
	sci_remote_segment_t bar = NULL;
	sci_error_t error;
	sci_map_t map;

	SCIBorrowDevice(sd, &device, fdid, 0, &error);
	CHECK_OK(error);
	SCIConnectDeviceSegment(device, &bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(bar, &map, 0, 4096, NULL, SCI_FLAG_IO_MAP_IOSPACE, &error);
	CHECK_OK(error);
	smartio_device_settled(device, SMARTIO_ALL_BORROWERS, &error);
	CHECK_OK(error);
	SCIUnmapSegment(map, 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(bar, 0, &error);
	CHECK_OK(error);
	SCIReturnDevice(device, 0, &error);
	CHECK_OK(error);
}

int program_settle(void *arg)
{
	sci_desc_t sd = api_begin();
	unsigned fdid = 0;
	sci_error_t error;

	(void)arg;
	smartio_find_device(cluster_device(), &fdid, &error);
	CHECK_OK(error);
	settle(sd, fdid);
	api_end(sd);
	return 0;
}

int program_settle_any(void *arg)
{
	sci_desc_t sd = api_begin();
	unsigned fdid = 0;
	sci_error_t error;

	(void)arg;
	smartio_find_device(cluster_device(), &fdid, &error);
	if (error == SCI_ERR_OK)
		settle(sd, fdid);
	api_end(sd);
	return 0;
}

sci_desc_t api_begin(void)
{
	sci_desc_t sd = NULL;
	sci_error_t error;

	SCIInitialize(0, &error);
	CHECK_OK(error);
	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	return sd;
}

void api_end(sci_desc_t sd)
{
	sci_error_t error;

	SCIClose(sd, 0, &error);
	CHECK_OK(error);
	SCITerminate();
}

sci_smartio_device_t api_borrow(sci_desc_t sd, unsigned flags)
{
	sci_smartio_device_t device = NULL;
	unsigned fdid = 0;
	sci_error_t error;

	smartio_find_device(cluster_device(), &fdid, &error);
	CHECK_OK(error);
	SCIBorrowDevice(sd, &device, fdid, flags, &error);
	CHECK_OK(error);
	return device;
}

void api_remove_segment(sci_local_segment_t segment)
{
	sci_error_t error;

	do {
		SCIRemoveSegment(segment, 0, &error);
	} while (error == SCI_ERR_BUSY);
	CHECK_OK(error);
}
