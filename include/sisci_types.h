/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * Types of the SISCI API: handles, callbacks, enumerations, query structures. No flag is defined
 * here, because programs that load the library at run time define their own.
 *
 * Handles are opaque; they are compared with each other and with NULL, never dereferenced. A handle
 * that was removed, or is of another kind, is refused with SCI_ERR_ILLEGAL_PARAMETER.
 */
#ifndef SISCI_TYPES_H
#define SISCI_TYPES_H

#include "sisci_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Annotations of parameters; empty. */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef IN_OUT
#define IN_OUT
#endif

/** A virtual device: what the other objects belong to. */
typedef struct sci_desc *sci_desc_t;
typedef struct sci_local_segment *sci_local_segment_t;
typedef struct sci_remote_segment *sci_remote_segment_t;
typedef struct sci_map *sci_map_t;
typedef struct sci_sequence *sci_sequence_t;
typedef struct sci_dma_queue *sci_dma_queue_t;
typedef struct sci_dma_channel *sci_dma_channel_t;
typedef struct sci_local_interrupt *sci_local_interrupt_t;
typedef struct sci_remote_interrupt *sci_remote_interrupt_t;
typedef struct sci_local_data_interrupt *sci_local_data_interrupt_t;
typedef struct sci_remote_data_interrupt *sci_remote_data_interrupt_t;
typedef struct sci_block_transfer *sci_block_transfer_t;
/** A borrowed device. */
typedef struct sci_smartio_device *sci_smartio_device_t;

/** An address as a bus or a device uses it. */
typedef unsigned long long sci_ioaddr_t;

typedef struct {
	unsigned short nodeId; /* then bits 47..32 and 31..0 of the offset */
	unsigned short offsHi;
	unsigned int offsLo;
} sci_address_t;

typedef struct {
	unsigned int size;
	unsigned int local_offset;
	unsigned int remote_offset;
	unsigned int flags;
} dis_dma_vec_t;

typedef enum {
	SCI_CB_CONNECT = 1,    /* exporter: a remote connected */
	SCI_CB_DISCONNECT = 2, /* exporter: a remote left; importer: the exporter wants us to */
	SCI_CB_NOT_OPERATIONAL = 3, /* the link is down, may recover */
	SCI_CB_OPERATIONAL = 4,	    /* the link is up again */
	SCI_CB_LOST = 5		    /* the other side is gone for good */
} sci_segment_cb_reason_t;
#define MAX_CB_REASON SCI_CB_LOST

typedef enum {
	SCI_DMAQUEUE_IDLE = 0,
	SCI_DMAQUEUE_GATHER = 1,
	SCI_DMAQUEUE_POSTED = 2,
	SCI_DMAQUEUE_DONE = 3,
	SCI_DMAQUEUE_ABORTED = 4,
	SCI_DMAQUEUE_ERROR = 5
} sci_dma_queue_state_t;

typedef enum {
	SCI_SEQ_OK = 0,
	SCI_SEQ_RETRIABLE = 1,
	SCI_SEQ_NOT_RETRIABLE = 2,
	SCI_SEQ_PENDING = 3
} sci_sequence_status_t;

typedef enum {
	SCI_DMA_TYPE_DONTCARE = 1,
	SCI_DMA_TYPE_ADAPTER = 2,
	SCI_DMA_TYPE_GLOBAL = 3,
	SCI_DMA_TYPE_SYSTEM = 4,
	SCI_DMA_TYPE_TRANSPARENT = 5
} sci_dma_type_t;

/**
 * What a callback returns: CANCEL ends further calls for its resource. Callbacks run one at a time,
 * on a thread of the library, and no lock is held meanwhile: any SISCI call may be made in one,
 * also the removal of the resource that it is about.
 */
typedef enum { SCI_CALLBACK_CANCEL = 1, SCI_CALLBACK_CONTINUE = 2 } sci_callback_action_t;

/** @nodeId and @localAdapterNo: who connected or left, and through which adapter of ours. */
typedef sci_callback_action_t (*sci_cb_local_segment_t)(void *arg, sci_local_segment_t segment,
							sci_segment_cb_reason_t reason,
							unsigned int nodeId,
							unsigned int localAdapterNo,
							sci_error_t error);
typedef sci_callback_action_t (*sci_cb_remote_segment_t)(void *arg, sci_remote_segment_t segment,
							 sci_segment_cb_reason_t reason,
							 sci_error_t status);
typedef sci_callback_action_t (*sci_cb_dma_t)(void *arg, sci_dma_queue_t queue, sci_error_t status);
typedef sci_callback_action_t (*sci_cb_interrupt_t)(void *arg, sci_local_interrupt_t interrupt,
						    sci_error_t status);
/** @data: @length bytes, valid during the call only. */
typedef sci_callback_action_t (*sci_cb_data_interrupt_t)(void *arg,
							 sci_local_data_interrupt_t interrupt,
							 void *data, unsigned int length,
							 sci_error_t status);
typedef int (*sci_cb_block_transfer_t)(void *arg, sci_block_transfer_t block, sci_error_t status);

/* Structures of SCIQuery(). */
typedef struct {
	char *str;	     /* the caller's buffer; the answer is NUL-terminated, cut if need be */
	unsigned int length; /* bytes of it */
} sci_query_string_t;

typedef struct sci_query_adapter { /* the oldest programs say struct */
	unsigned int localAdapterNo;
	unsigned int portNo; /* link, for SCI_Q_ADAPTER_LINK_*; else not looked at */
	unsigned int subcommand;
	void *data; /* unsigned int, unless told otherwise */
} sci_query_adapter_t;

typedef struct {
	unsigned int subcommand;
	void *data; /* unsigned int */
} sci_query_system_t;

typedef struct {
	sci_local_segment_t segment;
	unsigned int subcommand;
	union {
		sci_ioaddr_t ioaddr;
	} data;
} sci_query_local_segment_t;

typedef struct {
	sci_remote_segment_t segment;
	unsigned int subcommand;
	union {
		sci_ioaddr_t ioaddr;
	} data;
} sci_query_remote_segment_t;

typedef struct {
	sci_map_t map;
	unsigned int subcommand;
	unsigned long long data;
} sci_query_map_t;

typedef struct {
	unsigned int localAdapterNo;
	unsigned int subcommand;
	void *data;
} sci_query_dma_t;

typedef struct {
	unsigned int num_channels;
	unsigned int max_transfer_size;
	unsigned int max_vector_length;
	unsigned int support_mem2io;
	unsigned int support_io2mem;
	unsigned int support_io2io;
	unsigned int min_align_bytes;
	unsigned int suggested_align_bytes;
} sci_dma_capabilities_t;

/** What is known of a device; as a filter of SCIGetDeviceList(), zero fields match anything. */
typedef struct {
	unsigned long long fdid; /* cluster-wide fabric device id */
	unsigned short pci_device_id;
	unsigned short pci_vendor_id;
	unsigned int pci_class; /* 24 bits: class, subclass, programming interface */
	unsigned short pci_subsystem_device_id;
	unsigned short pci_subsystem_vendor_id;
	unsigned long long pci_serial_number;
	unsigned short remote_bdf; /* in the lender's PCI tree: bus << 8 | device << 3 | function */
	unsigned short local_bdf;  /* in this host's PCI tree; 0: not there */
	unsigned int adapter;	   /* of this host: the way to the device */
	unsigned int nodeid;	   /* the lender */
	int physical_slot;
	char user_name[64];
	char uuid[37]; /* "" where the lender gave none */
} sci_smartio_device_info_t;

typedef struct {
	unsigned int fdid;
	unsigned int subcommand;
	void *data; /* sci_smartio_device_info_t for SCI_Q_DEVICE_INFO */
} sci_smartio_query_device_t;

/* The names of the generation before: the same device, query and answer. */
typedef sci_smartio_device_t sci_device_t;

typedef struct {
	unsigned int global_devid;
	unsigned int subcommand;
	void *data; /* sci_dev_info_t for SCI_Q_DEVICE_INFO */
} sci_query_dev_t;

typedef struct {
	unsigned long long global_devid;
	unsigned short pci_device_id;
	unsigned short pci_vendor_id;
	unsigned int pci_class;
	unsigned short pci_subsystem_device_id;
	unsigned short pci_subsystem_vendor_id;
	unsigned long long pci_serial_number;
	unsigned short bdf; /* in the lender's PCI tree */
	unsigned short local_bdf;
	unsigned int adapter;
	unsigned int nodeid;
	int physical_slot;
	char user_name[64];
	char uuid[37];
} sci_dev_info_t;

#ifdef __cplusplus
}
#endif
#endif
