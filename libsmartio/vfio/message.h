/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the vfio-user protocol (QEMU, docs/interop/vfio-user.rst; structures of region,
 * interrupt and DMA messages after linux/vfio.h), as they are on the socket. Both ends are on one
 * machine: the byte order is its own. Pure: what is foreign is checked here, before anybody acts
 * on it.
 */
#ifndef VFIO_MESSAGE_H
#define VFIO_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define SIO_VFIO_MAX_DATA 65536u /* bytes of data in one message, either way; announced */
#define SIO_VFIO_MAX_FDS 16u	 /* descriptors with one message; announced */
#define SIO_VFIO_MAX_MAPS 1024u	 /* ranges of the peer's memory; announced */
#define SIO_VFIO_MAX_MESSAGE (SIO_VFIO_MAX_DATA + 64u)

enum sio_vfio_command {
	SIO_VFIO_VERSION = 1,
	SIO_VFIO_DMA_MAP = 2,
	SIO_VFIO_DMA_UNMAP = 3,
	SIO_VFIO_GET_INFO = 4,
	SIO_VFIO_GET_REGION_INFO = 5,
	SIO_VFIO_GET_REGION_IO_FDS = 6,
	SIO_VFIO_GET_IRQ_INFO = 7,
	SIO_VFIO_SET_IRQS = 8,
	SIO_VFIO_REGION_READ = 9,
	SIO_VFIO_REGION_WRITE = 10,
	SIO_VFIO_DMA_READ = 11,	 /* the server asks */
	SIO_VFIO_DMA_WRITE = 12, /* likewise */
	SIO_VFIO_RESET = 13,
};

#define SIO_VFIO_REPLY 0x01u /* flags; the low 4 bits are the type, 0 is a command */
#define SIO_VFIO_TYPE 0x0fu
#define SIO_VFIO_NO_REPLY 0x10u
#define SIO_VFIO_ERROR 0x20u

struct sio_vfio_header {
	uint16_t id, command;
	uint32_t size; /* of the whole message */
	uint32_t flags, error;
};

struct sio_vfio_version { /* JSON follows, with a NUL at its end */
	uint16_t major, minor;
};

struct sio_vfio_dma_map {
	uint32_t argsz, flags; /* 1: may be read, 2: written */
	uint64_t offset, address, size;
};

struct sio_vfio_dma_unmap {
	uint32_t argsz, flags; /* 2: everything */
	uint64_t address, size;
};

struct sio_vfio_info {
	uint32_t argsz, flags, regions, irqs;
};

struct sio_vfio_region_info {
	uint32_t argsz, flags, index, cap_offset;
	uint64_t size, offset;
};

struct sio_vfio_sparse { /* the capability behind it; areas follow */
	uint16_t id, version;
	uint32_t next, n_areas, reserved;
};

struct sio_vfio_area {
	uint64_t offset, size;
};

struct sio_vfio_irq_info {
	uint32_t argsz, flags, index, count;
};

struct sio_vfio_irq_set { /* booleans of a byte may follow */
	uint32_t argsz, flags, index, start, count;
};

struct sio_vfio_access { /* data follow, of a read's reply and of a write */
	uint64_t offset;
	uint32_t region, count;
};

struct sio_vfio_dma { /* data follow, of a read's reply and of a write */
	uint64_t address, count;
};

#define SIO_VFIO_MAP_READ 1u
#define SIO_VFIO_MAP_WRITE 2u
#define SIO_VFIO_UNMAP_ALL 2u

#define SIO_VFIO_DEVICE_RESET 1u /* info */
#define SIO_VFIO_DEVICE_PCI 2u

#define SIO_VFIO_REGION_READABLE 1u
#define SIO_VFIO_REGION_WRITABLE 2u
#define SIO_VFIO_REGION_MMAP 4u
#define SIO_VFIO_REGION_CAPS 8u
#define SIO_VFIO_REGION_CAP_SPARSE 1u

#define SIO_VFIO_IRQ_EVENTFD 1u
#define SIO_VFIO_SET_NONE 1u
#define SIO_VFIO_SET_BOOL 2u
#define SIO_VFIO_SET_EVENTFD 4u
#define SIO_VFIO_SET_DATA 7u
#define SIO_VFIO_SET_MASK 8u
#define SIO_VFIO_SET_UNMASK 16u
#define SIO_VFIO_SET_TRIGGER 32u
#define SIO_VFIO_SET_ACTION 56u

/* Indices as of vfio-pci. */
enum {
	SIO_VFIO_BARS = 6,
	SIO_VFIO_ROM = 6,
	SIO_VFIO_CONFIG = 7,
	SIO_VFIO_VGA = 8,
	SIO_VFIO_REGIONS
};
enum { SIO_VFIO_INTX, SIO_VFIO_MSI, SIO_VFIO_MSIX, SIO_VFIO_ERR, SIO_VFIO_REQ, SIO_VFIO_IRQS };

/* A message that arrived, checked: its sizes are right, and fields that must be 0 are 0. */
struct sio_vfio_message {
	struct sio_vfio_header head;
	union {
		struct sio_vfio_version version;
		struct sio_vfio_dma_map map;
		struct sio_vfio_dma_unmap unmap;
		struct sio_vfio_info info;
		struct sio_vfio_region_info region;
		struct sio_vfio_irq_info irq;
		struct sio_vfio_irq_set set;
		struct sio_vfio_access access;
		struct sio_vfio_dma dma;
	};
	const uint8_t *data; /* behind the structure, in the bytes that were parsed */
	size_t data_len;
};

/*
 * Checks the head alone: is a message that begins like this possible? Only then its size is
 * trusted.
 * Return: 0; -EPROTO: the sender does not speak the protocol.
 */
int sio_vfio_check_head(const struct sio_vfio_header *head, struct sio_err *reterr);
/*
 * Checks a whole message of @len bytes, as head.size says.
 * Return: 0; -EINVAL: the message is wrong; -EOPNOTSUPP: no such command. ret->head is set in any
 * case.
 */
int sio_vfio_parse(const void *message, size_t len, struct sio_vfio_message *ret,
		   struct sio_err *reterr);

/* The peer's limits, from the JSON in its VERSION; missing ones have the protocol's defaults. */
struct sio_vfio_limits {
	uint64_t max_data; /* bytes in one DMA message */
};
/* @text: @len bytes, the last NUL, or none. Return: 0; -EINVAL. */
int sio_vfio_limits_parse(const uint8_t *text, size_t len, struct sio_vfio_limits *ret,
			  struct sio_err *reterr);
/* Writes our own limits, with the NUL. Return: bytes. */
size_t sio_vfio_limits_text(char *text, size_t size);

#endif
