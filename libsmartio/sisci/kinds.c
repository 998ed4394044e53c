/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kinds of objects, in the order in which the library walks them: segments before what uses
 * them, so that their callbacks come first.
 */
#include "sisci/copy/copy.h"
#include "sisci/copy/sequence.h"
#include "sisci/device/device.h"
#include "sisci/dma/queue.h"
#include "sisci/interrupt/receiver.h"
#include "sisci/segment/segment.h"

static const struct sio_kind_ops *const kinds[] = {
	&sio_desc_kind,		  &sio_local_segment_kind,
	&sio_remote_segment_kind, &sio_mapping_kind,
	&sio_sequence_kind,	  &sio_dma_queue_kind,
	&sio_dma_channel_kind,	  &sio_block_transfer_kind,
	&sio_remote_dint_kind,	  &sio_remote_int_kind,
	&sio_local_dint_kind,	  &sio_local_int_kind,
	&sio_device_kind,	  &sio_device_map_kind,
	&sio_overlay_kind,	  NULL,
};

/* One for each number of enum sio_kind, and the end. */
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == SIO_KINDS, "each kind is in the table");

void SCIInitialize(unsigned int flags, sci_error_t *error)
{
	sio_library_initialize(kinds, flags, error);
}
