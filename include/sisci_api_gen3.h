/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * SmartIO as it was before the current generation, for programs of that time. Included by
 * sisci_api.h.
 *
 * Two functions had fewer arguments then. The macros below tell by their number which is meant; the
 * names without a call behind them are the current functions. __inline__, for programs of the
 * oldest API are compiled as C90.
 */
#ifndef SISCI_API_GEN3_H
#define SISCI_API_GEN3_H

#include "sisci_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As SCIMapLocalSegmentForDevice(), from @offset to the segment's end. */
static __inline__ void sisci_gen3_map_local(sci_local_segment_t segment,
					    unsigned int localAdapterNo,
					    sci_smartio_device_t device, sci_ioaddr_t *ioaddr,
					    size_t offset, unsigned int flags, sci_error_t *error)
{
	size_t size = SCIGetLocalSegmentSize(segment);

	SCIMapLocalSegmentForDevice(segment, localAdapterNo, device, ioaddr, offset,
				    offset < size ? size - offset : 1, flags, error);
}

/** As SCIMapRemoteSegmentForDevice(), from @offset to the segment's end. */
static __inline__ void sisci_gen3_map_remote(sci_remote_segment_t segment,
					     sci_smartio_device_t device, sci_ioaddr_t *ioaddr,
					     size_t offset, unsigned int flags, sci_error_t *error)
{
	size_t size = SCIGetRemoteSegmentSize(segment);

	SCIMapRemoteSegmentForDevice(segment, device, ioaddr, offset,
				     offset < size ? size - offset : 1, flags, error);
}

/* The ninth, and the eighth, of what follows the arguments. */
#define SISCI_GEN3_9TH(a, b, c, d, e, f, g, h, which, ...) which
#define SISCI_GEN3_8TH(a, b, c, d, e, f, g, which, ...) which
#define SCIMapLocalSegmentForDevice(...)                                                           \
	SISCI_GEN3_9TH(__VA_ARGS__, SCIMapLocalSegmentForDevice, sisci_gen3_map_local,             \
		       no_such_number_of_arguments, ~)                                             \
	(__VA_ARGS__)
#define SCIMapRemoteSegmentForDevice(...)                                                          \
	SISCI_GEN3_8TH(__VA_ARGS__, SCIMapRemoteSegmentForDevice, sisci_gen3_map_remote,           \
		       no_such_number_of_arguments, ~)                                             \
	(__VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
