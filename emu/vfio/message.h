/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the vfio-user protocol (QEMU, docs/interop/vfio-user.rst; structures of region,
 * interrupt and DMA messages after linux/vfio.h), as they are on the socket. Both ends are on one
 * machine: the byte order is its own. Pure: what is foreign is checked here, before anybody acts
 * on it.
 */
#ifndef EMU_VFIO_MESSAGE_H
#define EMU_VFIO_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define EMU_VFIO_MAX_DATA 65536u /* bytes of data in one message, either way; announced */
#define EMU_VFIO_MAX_FDS 16u	 /* descriptors with one message; announced */
#define EMU_VFIO_MAX_MAPS 1024u	 /* ranges of the peer's memory; announced */
#define EMU_VFIO_MAX_MESSAGE (EMU_VFIO_MAX_DATA + 64u)

enum emu_vfio_command {
	EMU_VFIO_VERSION = 1,
	EMU_VFIO_DMA_MAP = 2,
	EMU_VFIO_DMA_UNMAP = 3,
	EMU_VFIO_GET_INFO = 4,
	EMU_VFIO_GET_REGION_INFO = 5,
	EMU_VFIO_GET_REGION_IO_FDS = 6,
	EMU_VFIO_GET_IRQ_INFO = 7,
	EMU_VFIO_SET_IRQS = 8,
	EMU_VFIO_REGION_READ = 9,
	EMU_VFIO_REGION_WRITE = 10,
	EMU_VFIO_DMA_READ = 11,	 /* the server asks */
	EMU_VFIO_DMA_WRITE = 12, /* likewise */
	EMU_VFIO_RESET = 13,
};

#define EMU_VFIO_REPLY 0x01u /* flags; the low 4 bits are the type, 0 is a command */
#define EMU_VFIO_TYPE 0x0fu
#define EMU_VFIO_NO_REPLY 0x10u
#define EMU_VFIO_ERROR 0x20u

struct emu_vfio_header {
	uint16_t id, command;
	uint32_t size; /* of the whole message */
	uint32_t flags, error;
};

struct emu_vfio_version { /* JSON follows, with a NUL at its end */
	uint16_t major, minor;
};

struct emu_vfio_dma_map {
	uint32_t argsz, flags; /* 1: may be read, 2: written */
	uint64_t offset, address, size;
};

struct emu_vfio_dma_unmap {
	uint32_t argsz, flags; /* 2: everything */
	uint64_t address, size;
};

struct emu_vfio_info {
	uint32_t argsz, flags, regions, irqs;
};

struct emu_vfio_region_info {
	uint32_t argsz, flags, index, cap_offset;
	uint64_t size, offset;
};

struct emu_vfio_sparse { /* the capability behind it; areas follow */
	uint16_t id, version;
	uint32_t next, n_areas, reserved;
};

struct emu_vfio_area {
	uint64_t offset, size;
};

struct emu_vfio_irq_info {
	uint32_t argsz, flags, index, count;
};

struct emu_vfio_irq_set { /* booleans of a byte may follow */
	uint32_t argsz, flags, index, start, count;
};

struct emu_vfio_access { /* data follow, of a read's reply and of a write */
	uint64_t offset;
	uint32_t region, count;
};

struct emu_vfio_dma { /* data follow, of a read's reply and of a write */
	uint64_t address, count;
};

#define EMU_VFIO_MAP_READ 1u
#define EMU_VFIO_MAP_WRITE 2u
#define EMU_VFIO_UNMAP_ALL 2u

#define EMU_VFIO_DEVICE_RESET 1u /* info */
#define EMU_VFIO_DEVICE_PCI 2u

#define EMU_VFIO_REGION_READABLE 1u
#define EMU_VFIO_REGION_WRITABLE 2u
#define EMU_VFIO_REGION_MMAP 4u
#define EMU_VFIO_REGION_CAPS 8u
#define EMU_VFIO_REGION_CAP_SPARSE 1u

#define EMU_VFIO_IRQ_EVENTFD 1u
#define EMU_VFIO_SET_NONE 1u
#define EMU_VFIO_SET_BOOL 2u
#define EMU_VFIO_SET_EVENTFD 4u
#define EMU_VFIO_SET_DATA 7u
#define EMU_VFIO_SET_MASK 8u
#define EMU_VFIO_SET_UNMASK 16u
#define EMU_VFIO_SET_TRIGGER 32u
#define EMU_VFIO_SET_ACTION 56u

/* Indices as of vfio-pci. */
enum {
	EMU_VFIO_BARS = 6,
	EMU_VFIO_ROM = 6,
	EMU_VFIO_CONFIG = 7,
	EMU_VFIO_VGA = 8,
	EMU_VFIO_REGIONS
};
enum { EMU_VFIO_INTX, EMU_VFIO_MSI, EMU_VFIO_MSIX, EMU_VFIO_ERR, EMU_VFIO_REQ, EMU_VFIO_IRQS };

/* A message that came, checked: sizes fit, and what is not 0 where it must be was refused. */
struct emu_vfio_message {
	struct emu_vfio_header head;
	union {
		struct emu_vfio_version version;
		struct emu_vfio_dma_map map;
		struct emu_vfio_dma_unmap unmap;
		struct emu_vfio_info info;
		struct emu_vfio_region_info region;
		struct emu_vfio_irq_info irq;
		struct emu_vfio_irq_set set;
		struct emu_vfio_access access;
		struct emu_vfio_dma dma;
	};
	const uint8_t *data; /* behind the structure, in the bytes that were parsed */
	size_t data_len;
};

/*
 * What the head alone says: is a message that begins so possible? Only then its size is believed.
 * Return: 0; -EPROTO: whoever sent it does not speak the protocol.
 */
int emu_vfio_check_head(const struct emu_vfio_header *head, struct sio_err *reterr);
/*
 * A whole message of @len bytes, as head.size says.
 * Return: 0; -EINVAL: the message is wrong; -EOPNOTSUPP: no such command. ret->head is set in any
 * case.
 */
int emu_vfio_parse(const void *message, size_t len, struct emu_vfio_message *ret,
		   struct sio_err *reterr);

/*
 * What the peer can take, of the JSON in its VERSION; what it does not say are the protocol's
 * defaults.
 */
struct emu_vfio_limits {
	uint64_t max_data; /* bytes in one DMA message */
};
/* @text: @len bytes, the last NUL, or none. Return: 0; -EINVAL. */
int emu_vfio_limits_parse(const uint8_t *text, size_t len, struct emu_vfio_limits *ret,
			  struct sio_err *reterr);
/* Our own, with its NUL. Return: bytes. */
size_t emu_vfio_limits_text(char *text, size_t size);

#endif
