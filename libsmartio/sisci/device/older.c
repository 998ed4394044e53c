/* SPDX-License-Identifier: BSD-2-Clause */
/* SmartIO's functions of earlier generations, implemented by today's. */
#include <errno.h>

#include "sisci/base/library.h"

#define ANY_ACCESS                                                                                 \
	(SCI_MEMACCESS_DEVICE_READ | SCI_MEMACCESS_DEVICE_WRITE | SCI_MEMACCESS_HOST_READ |        \
	 SCI_MEMACCESS_HOST_WRITE)

/* Of device memory that is made without a size: programs take 260 KiB of it, and more. */
#define DEFAULT_BYTES (1u << 20)

/* Where the older structures lie over the new ones, programs of both ask the same query. */
_Static_assert(sizeof(sci_query_dev_t) == sizeof(sci_smartio_query_device_t), "query");
_Static_assert(sizeof(sci_dev_info_t) == sizeof(sci_smartio_device_info_t), "answer");
_Static_assert(offsetof(sci_dev_info_t, bdf) == offsetof(sci_smartio_device_info_t, remote_bdf),
	       "bdf");
_Static_assert(offsetof(sci_dev_info_t, user_name) ==
		       offsetof(sci_smartio_device_info_t, user_name),
	       "name");

/* What the flags say it is; 0: they do not. */
static unsigned memory_type(unsigned flags)
{
	switch (flags) {
	case SCI_FLAG_BAR:
		return SCI_MEMTYPE_BAR;
	case SCI_FLAG_PRIVATE:
		return SCI_MEMTYPE_PRIVATE;
	case SCI_FLAG_SHARED:
		return SCI_MEMTYPE_SHARED;
	default:
		return 0;
	}
}

static int check_memory(struct sio_library *lib, sci_desc_t sd, unsigned adapter, unsigned flags,
			struct sio_err *err)
{
	int rc = sio_check_flags(flags, SCI_FLAG_BAR | SCI_FLAG_PRIVATE | SCI_FLAG_SHARED, 0, err);
	struct sio_object *desc;

	if (!rc && !memory_type(flags))
		rc = sio_fail(
			err, -EINVAL,
			"one of SCI_FLAG_BAR, SCI_FLAG_PRIVATE and SCI_FLAG_SHARED is needed");
	if (!rc)
		rc = sio_check_adapter(lib, adapter, err);
	if (rc)
		return rc;
	desc = sio_object_get(lib, sd, SIO_DESC, err);
	if (!desc)
		return err->code;
	sio_object_put(desc);
	return 0;
}

/*
 * Another program may make the memory, or end it, between two calls: whoever finds it gone makes it
 * again, and whoever finds it there connects.
 */
static sci_error_t connect_or_make(sci_device_t device, sci_remote_segment_t *segment, unsigned no,
				   size_t size, unsigned type)
{
	sci_error_t error = SCI_ERR_OK;

	for (;;) {
		SCIConnectDeviceSegment(device, segment, no, type, NULL, NULL, 0, &error);
		if (error != SCI_ERR_NO_SUCH_SEGMENT || type == SCI_MEMTYPE_BAR)
			return error;
		SCICreateDeviceSegment(device, no, size ? size : DEFAULT_BYTES, type, ANY_ACCESS, 0,
				       &error);
		if (error != SCI_ERR_OK && error != SCI_ERR_SEGMENTID_USED)
			return error;
	}
}

void SCIConnectDeviceMemory(sci_desc_t sd, sci_remote_segment_t *segment,
			    unsigned int localAdapterNo, sci_device_t device,
			    unsigned int segmentNo, size_t size, unsigned int flags,
			    sci_error_t *error)
{
	unsigned type = memory_type(flags);
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	sci_error_t code;
	int rc = lib ? check_memory(lib, sd, localAdapterNo, flags, &err) : err.code;

	if (rc) {
		sio_api_leave(error, rc, &err);
		return;
	}
	code = connect_or_make(device, segment, segmentNo, size, type);
	if (error)
		*error = code;
}

void SetSciMemCopyFunction(int index)
{
	(void)index;
}

void SCIMapSegmentForDevice(sci_local_segment_t segment, sci_device_t device,
			    unsigned int localAdapterNo, sci_ioaddr_t *ioaddr, unsigned int flags,
			    sci_error_t *error)
{
	sisci_gen3_map_local(segment, localAdapterNo, device, ioaddr, 0, flags, error);
}

void SCIUnmapSegmentForDevice(sci_local_segment_t segment, sci_device_t device,
			      unsigned int localAdapterNo, unsigned int flags, sci_error_t *error)
{
	SCIUnmapLocalSegmentForDevice(segment, localAdapterNo, device, flags, error);
}
