/* SPDX-License-Identifier: BSD-2-Clause */
/* One object of each kind, and calls that can be made with any of them; misuse_test.c */
#ifndef TESTS_API_MISUSE_H
#define TESTS_API_MISUSE_H

#include <stdint.h>

#include "topology.h"

enum kind {
	DESC,
	LOCAL_SEGMENT,
	REMOTE_SEGMENT,
	MAP,
	SEQUENCE,
	DMA_QUEUE,
	DMA_CHANNEL,
	LOCAL_INTERRUPT,
	REMOTE_INTERRUPT,
	LOCAL_DATA_INTERRUPT,
	REMOTE_DATA_INTERRUPT,
	BLOCK_TRANSFER,
	DEVICE,
	KINDS
};

#define HANDLES 3
#define POINTERS 4

/* What a call is made with; numbers are chosen so that nothing else is wrong. */
struct misuse {
	void *handle[HANDLES];
	void *pointer[POINTERS];
	unsigned node, flags;
	sci_error_t *error;
	uint64_t result;
};

/* A row of the table that misuse_calls.py makes of the table of functions. */
struct call {
	const char *name;
	void (*make)(struct misuse *m);
	unsigned lawful; /* flags that it takes */
	bool has_flags, has_error, returns;
	bool absent; /* of those that are not supported */
	unsigned n_handles, n_pointers;
	enum kind handle[HANDLES];
	const char *pointer[POINTERS];
};

struct objects {
	void *of[KINDS];
};

/* NULL: this machine has none of that kind. */
static inline void objects_make(struct objects *o, unsigned id)
{
	sci_local_data_interrupt_t ldint = NULL;
	sci_remote_data_interrupt_t rdint = NULL;
	sci_smartio_device_t device = NULL;
	sci_local_interrupt_t lint = NULL;
	sci_remote_interrupt_t rint = NULL;
	sci_remote_segment_t remote = NULL;
	sci_local_segment_t local = NULL;
	unsigned node = cluster_node(4), number = 0;
	sci_sequence_t sequence = NULL;
	sci_desc_t sd = NULL;
	sci_map_t map = NULL;
	sci_error_t error;

	SCIOpen(&sd, 0, &error);
	CHECK_OK(error);
	SCICreateSegment(sd, &local, id, 8192, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIPrepareSegment(local, 0, 0, &error);
	CHECK_OK(error);
	SCISetSegmentAvailable(local, 0, 0, &error);
	CHECK_OK(error);
	SCIConnectSegment(sd, &remote, node, id, 0, NULL, NULL, 0, 0, &error);
	CHECK_OK(error);
	SCIMapRemoteSegment(remote, &map, 0, 4096, NULL, 0, &error);
	CHECK_OK(error);
	SCICreateMapSequence(map, &sequence, 0, &error);
	CHECK_OK(error);
	SCICreateInterrupt(sd, &lint, 0, &number, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIConnectInterrupt(sd, &rint, node, 0, number, 0, 0, &error);
	CHECK_OK(error);
	SCICreateDataInterrupt(sd, &ldint, 0, &number, NULL, NULL, 0, &error);
	CHECK_OK(error);
	SCIConnectDataInterrupt(sd, &rdint, node, 0, number, 0, 0, &error);
	CHECK_OK(error);
	device = api_borrow(sd, 0);
	*o = (struct objects){{[DESC] = sd,
			       [LOCAL_SEGMENT] = local,
			       [REMOTE_SEGMENT] = remote,
			       [MAP] = map,
			       [SEQUENCE] = sequence,
			       [LOCAL_INTERRUPT] = lint,
			       [REMOTE_INTERRUPT] = rint,
			       [LOCAL_DATA_INTERRUPT] = ldint,
			       [REMOTE_DATA_INTERRUPT] = rdint,
			       [DEVICE] = device}};
}

/* What a DMA engine is needed for. */
static inline void objects_make_engine(struct objects *o)
{
	sci_block_transfer_t block = NULL;
	sci_dma_channel_t channel = NULL;
	sci_dma_queue_t queue = NULL;
	sci_error_t error;

	SCICreateDMAQueue(o->of[DESC], &queue, 0, 4, 0, &error);
	CHECK_OK(error);
	SCIRequestDMAChannel(o->of[DESC], &channel, 0, SCI_DMA_TYPE_ADAPTER,
			     SCI_DMA_CHANNEL_ID_DONTCARE, 0, &error);
	CHECK_OK(error);
	SCITransferBlockAsync(o->of[MAP], 0, o->of[MAP], 64, 64, &block, NULL, NULL, 0, &error);
	CHECK_OK(error);
	o->of[DMA_QUEUE] = queue;
	o->of[DMA_CHANNEL] = channel;
	o->of[BLOCK_TRANSFER] = block;
}

/* All are as they were: each can be removed, what is in use not before its user. */
static inline void objects_remove(struct objects *o)
{
	sci_error_t error;

	if (o->of[DMA_QUEUE]) {
		SCIWaitForBlockTransfer(o->of[BLOCK_TRANSFER], SCI_INFINITE_TIMEOUT, 0, &error);
		CHECK_OK(error);
		SCIReturnDMAChannel(o->of[DMA_CHANNEL], &error);
		CHECK_OK(error);
		SCIRemoveDMAQueue(o->of[DMA_QUEUE], 0, &error);
		CHECK_OK(error);
	}
	SCIReturnDevice(o->of[DEVICE], 0, &error);
	CHECK_OK(error);
	SCIDisconnectDataInterrupt(o->of[REMOTE_DATA_INTERRUPT], 0, &error);
	CHECK_OK(error);
	SCIRemoveDataInterrupt(o->of[LOCAL_DATA_INTERRUPT], 0, &error);
	CHECK_OK(error);
	SCIDisconnectInterrupt(o->of[REMOTE_INTERRUPT], 0, &error);
	CHECK_OK(error);
	do {
		SCIRemoveInterrupt(o->of[LOCAL_INTERRUPT], 0, &error);
	} while (error == SCI_ERR_BUSY);
	CHECK_OK(error);
	SCIRemoveSequence(o->of[SEQUENCE], 0, &error);
	CHECK_OK(error);
	SCIUnmapSegment(o->of[MAP], 0, &error);
	CHECK_OK(error);
	SCIDisconnectSegment(o->of[REMOTE_SEGMENT], 0, &error);
	CHECK_OK(error);
	api_remove_segment(o->of[LOCAL_SEGMENT]);
	SCIClose(o->of[DESC], 0, &error);
	CHECK_OK(error);
}

#endif
