/* SPDX-License-Identifier: BSD-2-Clause */
/* The texts for exhausted resources. */
#include <errno.h>
#include <stddef.h>

#include "core/err.h"
#include "smartio/uapi.h"

/* As they stand behind "out of". */
static const char *const name[SIO_OUT_OF_COUNT] = {
	[SIO_OUT_OF_NOTHING] = "",
	[SIO_OUT_OF_WINDOW] = "window space",
	[SIO_OUT_OF_LUT_ENTRIES] = "look-up entries",
	[SIO_OUT_OF_REQUESTERS] = "requester entries",
	[SIO_OUT_OF_QUEUE_PAIRS] = "queue pairs",
	[SIO_OUT_OF_RAM] = "host memory",
	[SIO_OUT_OF_QUARANTINE] = "host memory that is not in quarantine",
	[SIO_OUT_OF_MEMORY] = "memory",
	[SIO_OUT_OF_DESCRIPTORS] = "file descriptors",
	[SIO_OUT_OF_LOCKED_MEMORY] = "locked memory",
	[SIO_OUT_OF_ADDRESS_SPACE] = "address space",
	[SIO_OUT_OF_IOVA] = "IOMMU addresses",
	[SIO_OUT_OF_REACH] = "addresses that the device can reach",
	[SIO_OUT_OF_GRANTS] = "grants",
	[SIO_OUT_OF_HANDLES] = "handles",
	[SIO_OUT_OF_REQUESTS] = "outstanding requests",
	[SIO_OUT_OF_DMA_CHANNELS] = "DMA channels",
	[SIO_OUT_OF_DMA_SLOTS] = "DMA channel slots",
	[SIO_OUT_OF_VECTORS] = "interrupt vectors",
	[SIO_OUT_OF_WATCHES] = "doorbell watches",
	[SIO_OUT_OF_SENDERS] = "interrupt senders",
	[SIO_OUT_OF_RINGS] = "interrupt rings",
	[SIO_OUT_OF_SEGMENT_IDS] = "segment ids",
	[SIO_OUT_OF_DEVICE_SEGMENTS] = "device segments",
	[SIO_OUT_OF_HOLDS] = "queues in one mapping",
	[SIO_OUT_OF_CONNECTIONS] = "segment connections",
	[SIO_OUT_OF_QUEUE_ENTRIES] = "DMA queue entries",
	[SIO_OUT_OF_QUOTA] = "quota",
};

const char *sio_reason_name(uint32_t reason)
{
	return reason < SIO_OUT_OF_COUNT ? name[reason] : "";
}

uint32_t sio_reason_of(int code)
{
	switch (code) {
	case -ENOMEM:
		return SIO_OUT_OF_MEMORY;
	case -EMFILE:
	case -ENFILE:
		return SIO_OUT_OF_DESCRIPTORS;
	default:
		return SIO_OUT_OF_NOTHING;
	}
}

uint32_t sio_err_reason(const struct sio_err *err, int code)
{
	return err->code == code ? err->reason : sio_reason_of(code);
}
