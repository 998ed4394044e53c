/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only WITH Linux-syscall-note */
/*
 * The hardware port: what one host's hardware can do for SmartIO.
 *
 * One request set, four worlds behind it: the machine room of the emulated cluster answers it
 * over a Unix socket (SOCK_SEQPACKET, one request or event per packet, descriptors beside it),
 * smartio.ko by ioctl, smartio-vfio (the kernel's own VFIO) over such a socket, the simulator by
 * calls. smartiod alone opens the port; programs hold only the resource descriptors that were
 * passed to them.
 *
 * Contract
 *  - Each request starts with struct sio_req. @size is the size of the structure for its @op,
 *    @reserved fields are 0, unknown flag bits are refused with -EINVAL.
 *  - Each request is answered by exactly one event with the request's op and cookie; @error is 0
 *    or -errno, and where something ran out @reason says what. A failed request is answered by
 *    struct sio_evt_error, which carries a text, and has changed nothing. An operation that this
 *    world does not serve answers -EOPNOTSUPP. Answers to different requests may come in any order;
 *    the requests of one daemon take effect in the order they were sent, so far as they concern the
 *    same thing (UNGRANT, then FREE).
 *  - Everything belongs to an owner. Owner 0 is the daemon itself and lives as long as the host.
 *    An owner made by OWNER_NEW lives as long as a copy of its descriptor is open; a child owner
 *    as long as its parent. So what a program holds depends on descriptors that the program has,
 *    and outlives the daemon where the world lets a daemon be restarted.
 *  - When an owner ends (OWNER_CLOSE, or the last descriptor closed), what no device can reach is
 *    freed at once; what a device or a peer may still write to goes into quarantine, in place, and
 *    SIO_EV_OWNER_GONE tells how much. Quarantined DMA mappings end by SETTLE or RESET only (or
 *    when the device is gone);
 *    quarantined grants by UNGRANT (the peer's word); maps and memory fall when nothing refers to
 *    them any more. SIO_EV_OWNER_END says that nothing is left. Where an IOMMU holds off a peer
 *    that was lost, the daemon need not keep memory for it, but only the address (UNGRANT).
 *  - Ids are 64-bit, never 0, and never used again while the host is up.
 *
 * Integers are native and of fixed width; no pointers, no enums, no hidden padding.
 */
#ifndef SMARTIO_UAPI_H
#define SMARTIO_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>
#ifndef __KERNEL__
#include <assert.h>
#ifdef __cplusplus
#define SIO_PORT_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type)
#else
#define SIO_PORT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#endif
#endif
#ifndef SIO_PORT_SIZE
#define SIO_PORT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SIO_PORT_VERSION 15
#define SIO_PORT_MAX_PACKET 4096 /* bytes of the largest request or event */
#define SIO_PORT_MAX_FDS 4	 /* descriptors beside one packet */
#define SIO_PORT_TEXT 160	 /* bytes of an error text, NUL included */
#define SIO_PORT_ANY (~0ULL)	 /* "any address" where one may be wanted */

/*
 * All requests, in one list, for whoever makes a table of them: X(NAME, name, number, answer,
 * flags, zero, files). Request SIO_OP_NAME is a struct sio_req_name and, if it succeeds, answered
 * by a struct sio_evt_answer. In h.flags are @flags at most; its field @zero (in most h.reserved,
 * else a further one) is 0; @files descriptors come along at most. Numbers are for ever.
 */
/* clang-format off */
#define SIO_PORT_REQUESTS(X) \
	X(INFO, info, 1, info, 0, h.reserved, 0)                                 \
	X(OWNER_NEW, owner_new, 2, owner_new, SIO_OWNER_CHILD, reserved2, 0)     \
	X(OWNER_CLOSE, owner_close, 3, ok, 0, h.reserved, 0)                     \
	X(LIST, list, 4, list, 0, reserved2, 0)                                  \
	X(ADAPTER, adapter, 5, adapter, 0, reserved2, 0)                         \
	X(ALLOC, alloc, 6, alloc, SIO_ALLOC_PART, h.reserved, 0)                 \
	X(FREE, free, 7, ok, 0, h.reserved, 0)                                   \
	X(IMPORT, import, 8, import, SIO_IMPORT_POOL | SIO_IMPORT_ALL_RAM, h.reserved, 1) \
	X(GRANT, grant, 9, grant, 0, reserved2, 0)                               \
	X(UNGRANT, ungrant, 10, ok, SIO_UNGRANT_KEEP_ADDRESS, h.reserved, 0)     \
	X(MAP, map, 11, map, SIO_MAP_DOORBELLS | SIO_MAP_BAR, h.reserved, 0)     \
	X(UNMAP, unmap, 12, ok, 0, h.reserved, 0)                                \
	X(REQUESTER_ADD, requester_add, 13, requester_add, 0, reserved2, 0)      \
	X(REQUESTER_DEL, requester_del, 14, ok, 0, h.reserved, 0)                \
	X(DEVICE_LIST, device_list, 15, device, 0, h.reserved, 0)                \
	X(DEVICE_OPEN, device_open, 16, device, SIO_DEVICE_FORCE, h.reserved, 0) \
	X(DEVICE_CLOSE, device_close, 17, ok, 0, h.reserved, 0)                  \
	X(RESET, reset, 18, reset, SIO_RESET_KEEP_DOORBELLS, reserved2, 0)       \
	X(CONFIG, config, 19, config, SIO_CONFIG_WRITE, reserved2, 0)            \
	X(BAR, bar, 20, bar, 0, reserved2, 0)                                    \
	X(BAR_CLOSE, bar_close, 21, ok, 0, h.reserved, 0)                        \
	X(WATCH, watch, 22, watch, 0, h.reserved, 1)                             \
	X(DMAMAP, dmamap, 23, dmamap, SIO_DMAMAP_STRICT, h.reserved, 0)          \
	X(DMAUNMAP, dmaunmap, 24, ok, SIO_DMAUNMAP_KEEP_ADDRESS, h.reserved, 0)  \
	X(IOVA_RESERVE, iova_reserve, 25, iova_reserve, 0, h.reserved, 0)        \
	X(IOVA_RELEASE, iova_release, 26, ok, 0, h.reserved, 0)                  \
	X(IRQ_NEW, irq_new, 27, irq_new, SIO_IRQ_EVENTFD, h.reserved, 1)         \
	X(IRQ_FREE, irq_free, 28, ok, 0, h.reserved, 0)                          \
	X(VECTOR, vector, 29, ok, 0, reserved2, 0)                               \
	X(SETTLE, settle, 30, settle, 0, reserved2, 0)                           \
	X(STATUS, status, 31, status, 0, h.reserved, 0)                          \
	X(MCAST, mcast, 32, mcast, 0, reserved2, 0)                              \
	X(DMA, dma, 33, dma, 0, reserved2, 0)                                    \
	X(STATS, stats, 34, stats, 0, reserved2, 0)                              \
	X(SHADOW, shadow, 35, shadow, SIO_SHADOW_PEERS, h.reserved, 0)           \
	X(UNWATCH, unwatch, 36, ok, 0, h.reserved, 0)                            \
	X(IDENTIFY, identify, 37, identify, 0, h.reserved, 1)                    \
	X(REOPEN, reopen, 38, reopen, 0, reserved2, 0)                           \
	X(DMA_FREE, dma_free, 39, ok, 0, h.reserved, 0)                          \
	X(DMA_ATTACH, dma_attach, 40, dma_attach, 0, h.reserved, 0)              \
	X(DMA_DETACH, dma_detach, 41, ok, 0, h.reserved, 0)                      \
	X(GIVE, give, 42, ok, 0, h.reserved, 0)                                  \
	X(RESTORE, restore, 43, restore, 0, reserved2, 0)                        \
	X(APERTURE, aperture, 44, aperture, 0, reserved2, 0)                     \
	X(SHADOW_DEL, shadow_del, 45, ok, SIO_SHADOW_LOST, h.reserved, 0)        \
	X(SHADOW_ANSWER, shadow_answer, 46, ok, 0, h.reserved, 0)                \
	X(SHADOW_PEER, shadow_peer, 47, ok, 0, reserved2, 0)                     \
	X(HOLD, hold, 48, ok, 0, h.reserved, 0)
/* clang-format on */

#define SIO_PORT_NUMBER(NAME, name, number, ...) SIO_OP_##NAME = number,
enum { SIO_PORT_REQUESTS(SIO_PORT_NUMBER) SIO_OP_COUNT };

/* Events that no request asked for. */
#define SIO_EV_LINK 0x10001
#define SIO_EV_FAULT 0x10002
#define SIO_EV_DEVICE_GONE 0x10003
#define SIO_EV_DEVICE_BACK 0x10004
#define SIO_EV_OWNER_GONE 0x10005
#define SIO_EV_OWNER_END 0x10006
#define SIO_EV_OVERFLOW 0x10007
#define SIO_EV_SHADOW_CONFIG 0x10008

/* Access bits, wherever a field is called access. */
#define SIO_ACCESS_READ 1
#define SIO_ACCESS_WRITE 2

/* Caching of CPU mappings. */
#define SIO_CACHE_DEFAULT 0
#define SIO_CACHE_UNCACHED 1
#define SIO_CACHE_WRITE_COMBINED 2

/* Kinds of things that have ids. */
#define SIO_KIND_OWNER 1
#define SIO_KIND_MEM 2
#define SIO_KIND_GRANT 3
#define SIO_KIND_MAP 4
#define SIO_KIND_REQUESTER 5
#define SIO_KIND_DEVICE 6 /* an open device */
#define SIO_KIND_BAR 7
#define SIO_KIND_DMAMAP 8
#define SIO_KIND_IOVA 9
#define SIO_KIND_IRQ 10
#define SIO_KIND_APERTURE 11
#define SIO_KIND_ALL_RAM 12
#define SIO_KIND_ADAPTER 13
#define SIO_KIND_WATCH 14
#define SIO_KIND_DMA 15	      /* a channel of a DMA engine */
#define SIO_KIND_DMA_RANGE 16 /* what a channel may reach */
#define SIO_KIND_VECTOR 17
#define SIO_KIND_SHADOW 18

/*
 * What ran out: in a refusal of the port (-ENOSPC, -ENOMEM, -EMFILE), between daemons, and up to
 * the program (smartio_last_exhausted()). Their names: libsmartio/core/reason.c.
 */
#define SIO_OUT_OF_NOTHING 0
#define SIO_OUT_OF_WINDOW 1 /* look-up entries in a row: the window is fragmented or too small */
#define SIO_OUT_OF_LUT_ENTRIES 2      /* of an adapter's look-up table */
#define SIO_OUT_OF_REQUESTERS 3	      /* entries of an adapter's requester table */
#define SIO_OUT_OF_QUEUE_PAIRS 4      /* of an NVMe drive */
#define SIO_OUT_OF_RAM 5	      /* a host's memory for segments */
#define SIO_OUT_OF_QUARANTINE 6	      /* the same; it would suffice but for what is in quarantine */
#define SIO_OUT_OF_MEMORY 7	      /* of a daemon, a port, a kernel or a program */
#define SIO_OUT_OF_DESCRIPTORS 8      /* of a process (ulimit -n) */
#define SIO_OUT_OF_LOCKED_MEMORY 9    /* of a process (ulimit -l) */
#define SIO_OUT_OF_ADDRESS_SPACE 10   /* of a process */
#define SIO_OUT_OF_IOVA 11	      /* I/O addresses of an IOMMU's domain */
#define SIO_OUT_OF_REACH 12	      /* addresses that the device can send */
#define SIO_OUT_OF_GRANTS 13	      /* that a host has of another */
#define SIO_OUT_OF_HANDLES 14	      /* objects of one program */
#define SIO_OUT_OF_REQUESTS 15	      /* of one program that wait for answers */
#define SIO_OUT_OF_DMA_CHANNELS 16    /* of an adapter's engine */
#define SIO_OUT_OF_DMA_SLOTS 17	      /* of a channel */
#define SIO_OUT_OF_VECTORS 18	      /* interrupt vectors of a device, or of the host for it */
#define SIO_OUT_OF_WATCHES 19	      /* of doorbells */
#define SIO_OUT_OF_SENDERS 20	      /* of an interrupt */
#define SIO_OUT_OF_RINGS 21	      /* of the data interrupts of one program */
#define SIO_OUT_OF_SEGMENT_IDS 22     /* of a host */
#define SIO_OUT_OF_DEVICE_SEGMENTS 23 /* of a borrow */
#define SIO_OUT_OF_HOLDS 24	      /* queues in one mapping */
#define SIO_OUT_OF_CONNECTIONS 25     /* to a segment */
#define SIO_OUT_OF_QUEUE_ENTRIES 26   /* of a DMA queue */
#define SIO_OUT_OF_QUOTA 27	      /* what the cluster's file lets a node or program have */
#define SIO_OUT_OF_COUNT 28

/* First bytes of every request. */
struct sio_req {
	__u32 size;	/* of the whole structure for this op */
	__u32 op;	/* SIO_OP_* */
	__u32 flags;	/* by op; 0 where none are named */
	__u32 reserved; /* 0 */
	__u64 cookie;	/* the caller's; comes back in the event */
	__u64 owner;	/* it owns the new resource; 0: the daemon. Else: who asks */
};
SIO_PORT_SIZE(struct sio_req, 32);

/* First bytes of every event. */
struct sio_evt {
	__u32 size;
	__u32 op;     /* SIO_OP_* of the request, or SIO_EV_* */
	__u32 reason; /* SIO_OUT_OF_*: what ran out, of a refusal for that; else 0 */
	__s32 error;  /* 0 or -errno */
	__u64 cookie; /* the request's; 0 for SIO_EV_* */
	__u64 owner;
};
SIO_PORT_SIZE(struct sio_evt, 32);

/* The answer to a request that failed. */
struct sio_evt_error {
	struct sio_evt h;
	char text[SIO_PORT_TEXT]; /* what was wrong and what would be right; NUL-terminated */
};
SIO_PORT_SIZE(struct sio_evt_error, 192);

/* The answer to a request that has nothing to tell but success. */
struct sio_evt_ok {
	struct sio_evt h;
};

/* INFO: agree on a version; -EPROTO if none is common. */
#define SIO_WORLD_ROOM 1
#define SIO_WORLD_SHIM 2
#define SIO_WORLD_SIM 3
#define SIO_WORLD_VFIO 4
/* A real host's: what the port made outlives the daemon. */
#define SIO_WORLD_IS_REAL(world) ((world) == SIO_WORLD_SHIM || (world) == SIO_WORLD_VFIO)
struct sio_req_info {
	struct sio_req h;
	__u32 version_min, version_max;
};
SIO_PORT_SIZE(struct sio_req_info, 40);
struct sio_evt_info {
	struct sio_evt h;
	__u32 version, world, page_size, adapters;
	__u64 boot_generation; /* counts this host's starts */
	__u8 boot_id[16];
	__u64 served; /* bit n: SIO_OP n is served */
	__u64 ram_total, ram_free;
};
SIO_PORT_SIZE(struct sio_evt_info, 96);

/*
 * OWNER_NEW: descriptor 0 of the answer keeps the owner alive. With SIO_OWNER_CHILD there is none:
 * the new owner ends with the owner in h.owner (0: with the host), or by OWNER_CLOSE.
 */
#define SIO_OWNER_CHILD 1 /* h.flags */
struct sio_req_owner_new {
	struct sio_req h;
	__u64 user_cookie; /* comes back in LIST: for adoption by a new daemon */
	__u32 pid;	   /* for listings; 0: unknown */
	__u32 reserved2;
};
SIO_PORT_SIZE(struct sio_req_owner_new, 48);
struct sio_evt_owner_new {
	struct sio_evt h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_evt_owner_new, 40);

/* OWNER_CLOSE: end the owner named in h.owner, whoever still holds its descriptor. */
struct sio_req_owner_close {
	struct sio_req h;
};

/* LIST: what there is of one kind, in ascending order of id. */
#define SIO_STATE_LIVE 1
#define SIO_STATE_QUARANTINED 2
#define SIO_LIST_MAX 32
#define SIO_LIST_MEMBER 0x10000u /* memory that gets what is written to the group */
#define SIO_LIST_SENDER 0x20000u /* a way to write to it */
#define SIO_LIST_BAR 0x40000u	 /* a map that was made with SIO_MAP_BAR */
#define SIO_LIST_PATH(adapter, peer_adapter) ((__u64)(adapter) << 32 | (peer_adapter))
struct sio_list_entry {
	__u64 id, owner; /* owner: of an owner its parent */
	__u64 cookie;	 /* owner, mem: user_cookie; mem of a group in a BAR: its view's id; bar:
			    SIO_ACCESS_*; map: the peer's bus address; what refers to something: its
			    id */
	__u64 address;	 /* mem: physical; grant, map: bus address; dmamap, DMA range: IOVA; watch:
			    SIO_WATCH_*; vector: of its message */
	__u64 length;	 /* vector: its number; requester: its adapter */
	/* dmamap, bar, requester, watch, vector: device id; DMA: adapter; grant, map:
	   SIO_LIST_PATH(), of a map perhaps with _BAR; mem of a multicast group:
	   SIO_LIST_PATH(its adapter, _MEMBER or _SENDER and the group's number); else 0 */
	__u64 device;
	/* node: peer of a grant or map, the device's of a watch; dmamap: SIO_LIST_CHOSEN, _HELD */
	__u32 kind, state, refs, node;
	__u64 grant; /* map: as MAP had it; else 0 */
};
#define SIO_LIST_CHOSEN 1 /* its address was asked for */
#define SIO_LIST_HELD 2	  /* HOLD */
SIO_PORT_SIZE(struct sio_list_entry, 72);
struct sio_req_list {
	struct sio_req h;
	__u32 kind, reserved2;
	__u64 after; /* ids greater than this */
};
SIO_PORT_SIZE(struct sio_req_list, 48);
struct sio_evt_list {
	struct sio_evt h;
	__u32 count, more; /* more: there are entries behind the last one */
	struct sio_list_entry entry[SIO_LIST_MAX];
};
SIO_PORT_SIZE(struct sio_evt_list, 2344);

/* ADAPTER: one NTB adapter of this host. -ENODEV: no such index. */
#define SIO_PROGRAMMED_BY_EXPORTER 1
#define SIO_PROGRAMMED_BY_IMPORTER 2
/* What goes through it; bits of @capabilities. A bridge of the Linux NTB API lacks READ. */
#define SIO_ADAPTER_PROCESSORS 1 /* loads and stores of this host's processors */
#define SIO_ADAPTER_WRITE 2	 /* writes of this host's devices */
#define SIO_ADAPTER_READ 4	 /* reads of this host's devices: REQUESTER_ADD is served */
#define SIO_ADAPTER_TRIGGER 8	 /* interrupts of peers: MAP of a granted SIO_KIND_IRQ */
#define SIO_ADAPTER_ENTRIES 16	 /* a window is many entries of its own; else it is one range */
struct sio_req_adapter {
	struct sio_req h;
	__u32 index, reserved2;
};
SIO_PORT_SIZE(struct sio_req_adapter, 40);
#define SIO_ABOVE 8
struct sio_evt_adapter {
	struct sio_evt h;
	/* bdf: PCI domain << 16, bus << 8, device << 3, function. */
	__u32 index, node, bdf, link_up;
	__u32 link_width, link_generation;
	__u32 programmed_by, iommu; /* iommu: 1 translates what comes through this adapter */
	__u64 window_base, window_size, entry_size, alignment;
	__u32 entries_total, entries_free;
	__u32 requesters_total, requesters_free;
	__u32 dma_bits, mcast_groups;
	/* SIO_ADAPTER_*; how many ranges can be mapped at once, 0: as many as there are entries. */
	__u32 capabilities, windows;
	__u32 above[SIO_ABOVE]; /* as of a device */
};
SIO_PORT_SIZE(struct sio_evt_adapter, 160);

/*
 * ALLOC: zeroed memory, contiguous for every device. Descriptor 0: to map, from @offset of the
 * answer on; that is 0 without SIO_ALLOC_PART. With it the memory may be a part of a file that has
 * other memory of this host, too: on emulated clusters of a host's pool, as long as that has room
 * (docs/virtual-ntb.md).
 */
#define SIO_ALLOC_PART 1 /* h.flags */
#define SIO_ALLOC_POOL 1 /* kind: where it comes from; 0: any */
#define SIO_ALLOC_HUGE 2
#define SIO_ALLOC_CONTIGUOUS 3
struct sio_req_alloc {
	struct sio_req h;
	__u64 size, align; /* size is rounded up to pages; align 0 or a power of 2 */
	__u64 highest;	   /* highest address wanted; SIO_PORT_ANY */
	__u64 near_device; /* device id or 0 */
	__u32 kind, access;
	__u64 user_cookie; /* comes back in LIST: what it is for, to a new daemon */
};
SIO_PORT_SIZE(struct sio_req_alloc, 80);
struct sio_evt_alloc {
	struct sio_evt h;
	__u64 id, size, address; /* address: physical */
	__u64 offset;		 /* where it begins in its descriptor */
};
SIO_PORT_SIZE(struct sio_evt_alloc, 64);

/* FREE: -EBUSY while a grant or DMA mapping refers to it. */
struct sio_req_free {
	struct sio_req h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_free, 40);

/*
 * GIVE: memory, and those grants of it that its owner has, belong to the daemon (owner 0) from now
 * on: they outlive the owner, and end by FREE and UNGRANT. Nobody who reaches it notices. The same
 * of a view of a BAR (the machine room alone), whose grants stay its owner's and end with that; it
 * ends by BAR_CLOSE. What is mapped of it for devices goes on. -EPERM: the owner has ended.
 */
struct sio_req_give {
	struct sio_req h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_give, 40);

/*
 * HOLD: DMA mapping @id of a BAR view stays when the view's owner ends, as one of memory does,
 * until it is unmapped or its device settled; so does the view, whose pages no program has mapped
 * from then on. Without that the port cuts such a mapping when that owner ends. When the function
 * that the BAR is of is gone it is cut all the same. -EINVAL: it is of something else.
 */
struct sio_req_hold {
	struct sio_req h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_hold, 40);

/*
 * IMPORT: descriptor 0 of the request becomes memory of this host. @offset and @length are whole
 * pages of it; @length 0: to its end. @address is 0. Descriptor 0 of the answer: as of ALLOC.
 * @pieces: runs of physical addresses; a device without an IOMMU can be given memory of one piece
 * only (DMAMAP: -EOPNOTSUPP).
 *
 * MEMFD, HUGETLB: a memfd of that kind; its pages stay in place until FREE, and longer if mapped.
 * The machine room takes MEMFD alone, sealed against shrinking (F_SEAL_SHRINK), and answers with
 * that file itself, where what was imported begins at @offset: for a virtual machine's memory. The
 * port by VFIO takes and answers so, too, and HUGETLB besides.
 *
 * FILE: MEMFD or HUGETLB, whichever it is; or, of the port by VFIO alone, a device of /dev/dax. The
 * machine room takes it as MEMFD.
 *
 * DMABUF: of another driver; pieces and address are 0: each device sees it its own way.
 *
 * USER_PAGES: what SIO_IOC_PIN answered to a program.
 *
 * With SIO_IMPORT_POOL, MEMFD and HUGETLB become room for ALLOC instead; owner 0 alone, no
 * descriptor in the answer.
 *
 * With SIO_IMPORT_ALL_RAM, which goes with kind, offset, length and address 0 and no descriptor
 * either way, it is all bytes of this host from physical address 0 to the end of its RAM: what a
 * borrowed device is given whose own driver runs here (SHADOW). Whoever it is granted to reaches
 * all that this host has.
 */
#define SIO_IMPORT_POOL 1    /* h.flags */
#define SIO_IMPORT_ALL_RAM 2 /* the same */
#define SIO_IMPORT_MEMFD 1
#define SIO_IMPORT_HUGETLB 2
#define SIO_IMPORT_DMABUF 3
#define SIO_IMPORT_USER_PAGES 4
#define SIO_IMPORT_FILE 5
struct sio_req_import {
	struct sio_req h;
	__u32 kind, access;
	__u64 offset, length, address;
};
SIO_PORT_SIZE(struct sio_req_import, 64);
struct sio_evt_import {
	struct sio_evt h;
	__u64 id, size, address, offset; /* as the answer to ALLOC */
	__u32 pieces, reserved2;
};
SIO_PORT_SIZE(struct sio_evt_import, 72);

/*
 * GRANT: the exporter's half of a window: let @peer_node reach a range of ours that comes in
 * through @adapter. What the peer needs for its MAP is in the answer.
 */
#define SIO_TOKEN 32
#define SIO_MSI_BYTES 4 /* length of a granted interrupt: one message */
/* Where the message is in the token of a granted interrupt; all the rest of tokens is random. */
#define SIO_TOKEN_MESSAGE (SIO_TOKEN - SIO_MSI_BYTES)
struct sio_req_grant {
	struct sio_req h;
	__u32 source_kind, access;    /* SIO_KIND_MEM, _BAR, _IRQ, _APERTURE, _ALL_RAM */
	__u64 source, offset, length; /* ALL_RAM: source 0 */
	__u32 adapter, peer_node, peer_adapter, reserved2;
};
SIO_PORT_SIZE(struct sio_req_grant, 80);
struct sio_evt_grant {
	struct sio_evt h;
	__u64 id, bus_addr, length, generation;
	__u8 token[SIO_TOKEN];
};
SIO_PORT_SIZE(struct sio_evt_grant, 96);
/*
 * UNGRANT. With SIO_UNGRANT_KEEP_ADDRESS what was granted is released, and whoever still asks for
 * it meets a fault, but nobody is given its bus address: the peer may have look-up entries of it.
 * The grant is the daemon's (owner 0) from then on, in quarantine and in LIST, of nothing (cookie
 * 0); a second UNGRANT, without the flag, ends it. -EOPNOTSUPP: its address is no IOMMU's.
 */
#define SIO_UNGRANT_KEEP_ADDRESS 1 /* h.flags */
struct sio_req_ungrant {
	struct sio_req h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_ungrant, 40);

/*
 * MAP: the importer's half: look-up-table entries of @adapter that translate to the granted range.
 * Descriptor 0: to map at @offset for @length; of an interrupt (SIO_MAP_TRIGGER): to write 8 bytes
 * to. @bus_addr of the answer is the range as this host's own devices address it. @grant is the
 * peer's id of the grant, which this host does not use: it comes back in LIST, where a daemon that
 * is started again knows by it which grant a map is of. Interrupts of one host may all have one
 * address.
 * Errors: -ENOSPC no entries left, -EACCES token, -ESTALE generation, -ENETDOWN link,
 * -EHOSTUNREACH no such peer. smartio.ko, which does not see what other hosts granted, takes any
 * token: the peer's IOMMU, and its bridge where that has a table of what it granted, are what stops
 * an access that was not granted.
 * SIO_MAP_DOORBELLS: the range is doorbells of a device, which programs only store to, 4 aligned
 * bytes at a time; of stores to one place in a row the last one is enough. A port that cannot show
 * the device's registers may give pages from which it carries the stores on; loads of them get
 * ones, and a store of ones is none. Without the flag it refuses such a range with -EOPNOTSUPP.
 */
#define SIO_MAP_DOORBELLS 1 /* h.flags */
#define SIO_MAP_BAR 2	    /* it leads to a BAR: to be remembered, for LIST (SIO_LIST_BAR) */
#define SIO_MAP_TRIGGER 1   /* map_flags of the answer */
#define SIO_MAP_READ_ONLY 2
struct sio_req_map {
	struct sio_req h;
	__u32 adapter, peer_node, peer_adapter, caching;
	__u64 bus_addr, length, generation, grant;
	__u8 token[SIO_TOKEN];
};
SIO_PORT_SIZE(struct sio_req_map, 112);
struct sio_evt_map {
	struct sio_evt h;
	__u64 id, offset, length, bus_addr;
	__u32 map_flags, caching;
};
SIO_PORT_SIZE(struct sio_evt_map, 72);
/* UNMAP: -EBUSY while a DMA mapping of a local device goes through it. */
struct sio_req_unmap {
	struct sio_req h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_unmap, 40);

/* REQUESTER_ADD: let a device send through the adapter's windows. -ENOSPC: table full. */
#define SIO_REQUESTER_OUT 1
#define SIO_REQUESTER_IN 2
struct sio_req_requester_add {
	struct sio_req h;
	__u32 adapter, direction;
	__u64 device; /* device id, or 0: by bdf */
	__u32 bdf, reserved2;
};
SIO_PORT_SIZE(struct sio_req_requester_add, 56);
struct sio_evt_requester_add {
	struct sio_evt h;
	__u64 id;
	__u32 entry, reserved2;
};
SIO_PORT_SIZE(struct sio_evt_requester_add, 48);
struct sio_req_requester_del {
	struct sio_req h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_requester_del, 40);

/* DEVICE_LIST: the first device whose id is greater than @after; -ENOENT: none. */
#define SIO_DEVICE_BARS 6
struct sio_req_device_list {
	struct sio_req h;
	__u64 after;
};
SIO_PORT_SIZE(struct sio_req_device_list, 40);
#define SIO_IOMMU_OFF 0	    /* the device sends physical addresses */
#define SIO_IOMMU_STRICT 1  /* translated; what is unmapped cannot be reached */
#define SIO_IOMMU_LAZY 2    /* translated; the port flushes where it matters */
#define SIO_IOMMU_IOMMUFD 3 /* as strict; by VFIO, had of iommufd and not of its IOMMU group */
#define SIO_RESET_FUNCTION 1
#define SIO_RESET_BUS 2
#define SIO_RESET_DONE 3 /* in requests alone: nothing is reset, somebody has done it */
struct sio_evt_device {
	struct sio_evt h;
	__u64 id, generation, serial;
	__u64 bar_size[SIO_DEVICE_BARS], bar_addr[SIO_DEVICE_BARS];
	__u32 bdf, slot, class_code, vendor;
	__u32 device, subsys_vendor, subsys_device, functions;
	__u32 msix_count, msix_bar, msix_offset, dma_bits;
	__u32 iommu_group, iommu_mode, resets, present; /* iommu_mode: SIO_IOMMU_*; resets: bit
							   SIO_RESET_* */
	char name[64];
	/*
	 * Of a real host: transparent switches between root and device, by the bdf of the port that
	 * leads upwards, nearest to the root first; 0 behind the last. Smartiod's half of the port
	 * fills it, out of sysfs.
	 */
	__u32 above[SIO_ABOVE];
};
SIO_PORT_SIZE(struct sio_evt_device, 312);

/* DEVICE_OPEN: take the device from its other drivers; answered by struct sio_evt_device. */
#define SIO_DEVICE_FORCE 1 /* h.flags: although it is in use */
struct sio_req_device_open {
	struct sio_req h;
	__u64 device;
};
SIO_PORT_SIZE(struct sio_req_device_open, 40);
struct sio_req_device_close {
	struct sio_req h;
	__u64 device;
};
SIO_PORT_SIZE(struct sio_req_device_close, 40);

/*
 * RESET: ends every quarantine on the device; live mappings stay. The device's generation goes up.
 * SIO_RESET_DONE is the word that the device's own registers were used to stop all that it did.
 * Its doorbells are taken from all who have them: views of them lead nowhere from then on, and so
 * do grants of these views, windows to those, and DMA mappings. What is mapped of them reads as
 * ones, and stores to it stay there; -ENODEV to whoever asks for more of them. They are there until
 * they are ended. A port that does not know what pages are for, as smartio.ko, leaves them as they
 * are: the requester closes them (BAR_CLOSE) before it reports that it is done. What a program
 * has mapped of another host's memory or pages leads nowhere either, as soon as this host's port
 * has answered UNMAP of the window: where no IOMMU keeps strangers out, that is what does.
 * -ENOMEM: nothing was done.
 * With SIO_RESET_KEEP_DOORBELLS who has doorbells keeps them, and they lead where they led: for a
 * borrower that is alone, and whose doorbells are mapped by somebody who cannot map them again (a
 * virtual machine). Not with SIO_RESET_DONE. To smartio.ko, which takes none, it makes no
 * difference.
 */
#define SIO_RESET_KEEP_DOORBELLS 1 /* h.flags */
struct sio_req_reset {
	struct sio_req h;
	__u64 device;
	__u32 kind, reserved2;
};
SIO_PORT_SIZE(struct sio_req_reset, 48);
struct sio_evt_reset {
	struct sio_evt h;
	__u64 generation;
	__u64 freed; /* quarantined DMA mappings ended */
};
SIO_PORT_SIZE(struct sio_evt_reset, 48);

/*
 * CONFIG: configuration space. Reads of what is not there give all ones. A write changes the bits
 * in @mask to those of @value; -EACCES: there are bits among them that may not be changed. The bus
 * master bit is written alone, and of an open device; when it is answered that it was cleared, what
 * the device had sent has arrived.
 */
#define SIO_CONFIG_WRITE 1 /* h.flags */
struct sio_req_config {
	struct sio_req h;
	__u64 device;
	__u32 offset, width, value, mask, timeout_ms, reserved2;
};
SIO_PORT_SIZE(struct sio_req_config, 64);
struct sio_evt_config {
	struct sio_evt h;
	__u32 value, reserved2;
};
SIO_PORT_SIZE(struct sio_evt_config, 40);

/*
 * BAR: a range of pages of a BAR as descriptor 0, at @offset of the answer. The range lies within
 * one purpose (registers, doorbells, interrupt table, memory); -EINVAL if it crosses.
 * Access READ alone gives the read-only mirror of a register page. Of a register page there is one
 * writable view at a time: -EBUSY. The interrupt table is refused with -EACCES. A page of a real
 * device is write-combined for all or for none: -EBUSY while there are views of the other kind.
 */
#define SIO_BAR_POLLED 1    /* the device looks at this page: WATCH wakes it when it sleeps */
#define SIO_BAR_MIRROR 2    /* a read-only copy */
#define SIO_BAR_REGISTERS 4 /* one writable view at a time */
#define SIO_BAR_MEMORY 8    /* plain memory of the device, which a reset leaves where it is */
struct sio_req_bar {
	struct sio_req h;
	__u64 device;
	__u32 bar, access, caching, reserved2;
	__u64 offset, length;
};
SIO_PORT_SIZE(struct sio_req_bar, 72);
struct sio_evt_bar {
	struct sio_evt h;
	__u64 id, offset, length;
	__u32 bar_flags, reserved2;
};
SIO_PORT_SIZE(struct sio_evt_bar, 64);
struct sio_req_bar_close {
	struct sio_req h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_bar_close, 40);

/*
 * WATCH: how the stores of one mapping of polled pages reach a device that sleeps. Target: a
 * writable view of polled pages (SIO_KIND_BAR) that a program of this host has mapped, or the
 * SIO_KIND_MAP of a granted one; @offset and @length are whole pages of it. A device does not
 * sleep, but looks again and again, while there is a TIMER, a writable map of granted polled pages
 * without a watch, or a writable view of polled pages without watch or grant. So who hands one view
 * to several mappings makes a watch for each. It ends with its owner, its target, or by UNWATCH.
 *   TIMER  not at all: the device looks by itself.
 *   FAULT  descriptor 0 of the request is a userfaultfd in which the program has registered its
 *          mapping, at @address, for write protection. The device protects the pages before it
 *          sleeps; a store waits until it is awake. What proves useless later becomes a TIMER.
 *   EVENT  descriptor 0 of the answer is a page, to be mapped read-only, whose 32-bit word at
 *          @flag_offset is not 0 while the device sleeps; the program looks at it after each store
 *          and a full barrier, and then writes 8 bytes to descriptor 1 (eventfd semantics).
 * Errors: -EINVAL, -ENOENT, -EACCES not writable, -ENOSPC too many, -EOPNOTSUPP.
 */
#define SIO_WATCH_TIMER 1
#define SIO_WATCH_FAULT 2
#define SIO_WATCH_EVENT 3
struct sio_req_watch {
	struct sio_req h;
	__u32 target_kind, kind; /* kind: SIO_WATCH_* */
	__u64 target, offset, length;
	__u64 address; /* FAULT: in the program's address space; else 0 */
};
SIO_PORT_SIZE(struct sio_req_watch, 72);
struct sio_evt_watch {
	struct sio_evt h;
	__u64 id;
	__u32 flag_offset, reserved2;
};
SIO_PORT_SIZE(struct sio_evt_watch, 48);
struct sio_req_unwatch {
	struct sio_req h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_unwatch, 40);

/*
 * DMAMAP: make a range reachable for a device; @iova of the answer is the address that the device
 * uses. Target: SIO_KIND_MEM, _MAP (a window to another host), _BAR (another device), _APERTURE.
 * A map needs a requester entry for the device. Errors: -ENOSPC, -EINVAL, -ENOENT, -EACCES: a view
 * that is to be read alone. A view (BAR) ends with its owner, whoever's the mapping is: that leads
 * nowhere from then on, as after DMAUNMAP with SIO_DMAUNMAP_KEEP_ADDRESS.
 * @iova, where an IOMMU translates, may be any whole page that the device can send and nothing is
 * mapped at (-ENOSPC), low ones too: those of a virtual machine's memory. smartio.ko:
 * -EOPNOTSUPP where the device shares its IOMMU group, or interrupts are not remapped.
 */
#define SIO_DMAMAP_STRICT 1 /* h.flags: flush at unmap before the answer */
struct sio_req_dmamap {
	struct sio_req h;
	__u64 device;
	__u32 target_kind, access;
	__u64 target, offset, length;
	__u64 iova;    /* wanted, or SIO_PORT_ANY */
	__u64 highest; /* highest address the device can send, or SIO_PORT_ANY */
};
SIO_PORT_SIZE(struct sio_req_dmamap, 88);
struct sio_evt_dmamap {
	struct sio_evt h;
	__u64 id, iova, length;
};
SIO_PORT_SIZE(struct sio_evt_dmamap, 56);
/*
 * DMAUNMAP: of a live mapping; -EPERM of a quarantined one (SETTLE ends it). smartio.ko, which does
 * not serve SETTLE, takes SIO_DMAUNMAP_SETTLED besides: the word of who settled it.
 * SIO_DMAUNMAP_KEEP_ADDRESS, of a live or a quarantined one: it leads nowhere any more and releases
 * its target, but the device may still send to its address, which nobody else is given until the
 * mapping ends as any other. Without an IOMMU nothing stops a device inside its own host.
 * smartio.ko does it to BARs and maps alone (else -EOPNOTSUPP).
 * When this, SETTLE or RESET is answered, what the device had sent has arrived, or never will: its
 * completions go another way and may be there first, and what is unmapped is freed next. A port to
 * hardware reads through the window, and from the device, so that posted writes are pushed; an
 * IOMMU drains what is under way inside the host.
 */
#define SIO_DMAUNMAP_SETTLED 1 /* h.flags */
#define SIO_DMAUNMAP_KEEP_ADDRESS 2
struct sio_req_dmaunmap {
	struct sio_req h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_dmaunmap, 40);

struct sio_req_iova_reserve {
	struct sio_req h;
	__u64 device, base, length;
};
SIO_PORT_SIZE(struct sio_req_iova_reserve, 56);
struct sio_evt_iova_reserve {
	struct sio_evt h;
	__u64 id, base;
};
SIO_PORT_SIZE(struct sio_evt_iova_reserve, 48);
struct sio_req_iova_release {
	struct sio_req h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_iova_release, 40);

/*
 * IRQ_NEW: an interrupt of this host. Descriptor 0: poll, read and, to put back what was read,
 * write it (eventfd semantics). Descriptor 1: trigger it from this host by writing 8 bytes. Peers:
 * GRANT it and MAP the grant.
 * With SIO_IRQ_EVENTFD descriptor 0 of the request is an eventfd of the program's, or of whom it
 * has it from: triggers add 1 to it, and nothing else reads or writes it. -EINVAL: it is none, or
 * none came.
 */
#define SIO_IRQ_EVENTFD 1 /* h.flags */
struct sio_req_irq_new {
	struct sio_req h;
};
struct sio_evt_irq_new {
	struct sio_evt h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_evt_irq_new, 40);
struct sio_req_irq_free {
	struct sio_req h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_irq_free, 40);

/*
 * VECTOR: what interrupt vector @vector of a device hits; the port alone writes the device's table.
 * @irq: an interrupt of this host (SIO_KIND_IRQ), or a map of one that a peer granted
 * (SIO_KIND_MAP, SIO_MAP_TRIGGER; the device needs a requester entry). @irq 0: the message @data
 * at @address, as the device addresses it: for a borrower's kernel, whose own message a window
 * leads to. @irq 0 and @address 0: the vector is taken away; when the answer comes, nothing of it
 * is on its way any more.
 * @mask 1: what comes is kept, and told once when the same owner sets the vector with @mask 0.
 * A vector that was never set, or was taken away, is masked and keeps nothing. It belongs to its
 * owner and ends with it at once, for a masked device sends no more: there is no quarantine. Only
 * its owner (or the daemon) sets it again, to the same target or another. It is LISTed as
 * SIO_KIND_VECTOR. A reset leaves it as it is, but for what was kept.
 * Errors: -EINVAL, -ENOENT, -EBUSY another owner's, -ENOSPC.
 */
struct sio_req_vector {
	struct sio_req h;
	__u64 device, irq, address;
	__u32 vector, data, mask, reserved2;
};
SIO_PORT_SIZE(struct sio_req_vector, 72);

/*
 * SETTLE: the word that @device no longer uses what the owner in h.owner, which has ended, had
 * mapped for it. All at once: RESET.
 */
struct sio_req_settle {
	struct sio_req h;
	__u64 device;
	__u32 reason, reserved2;
};
SIO_PORT_SIZE(struct sio_req_settle, 48);
struct sio_evt_settle {
	struct sio_evt h;
	__u64 dmamaps, maps, mems, bytes; /* freed */
};
SIO_PORT_SIZE(struct sio_evt_settle, 64);

/*
 * STATUS: descriptor 0 is read-only memory of @size bytes, whole pages, that tells the state of
 * every path. @count paths are in it now; those of hosts that join later are put behind them, and
 * count goes up last. There is never more than @room; a path keeps its place while the host is up.
 */
struct sio_req_status {
	struct sio_req h;
};
#define SIO_LINK_DOWN 0
#define SIO_LINK_UP 1
#define SIO_STATUS_MAGIC 0x53494f53
struct sio_status_path {
	__u32 adapter, peer_node, peer_adapter;
	__u32 state;	  /* SIO_LINK_*; written before generation, and read before it */
	__u32 generation; /* counts every change of state */
	__u32 errors;	  /* transfers lost */
	__u64 peer_boot;  /* SIO_LINK_START() when the path was up last; 0: never */
};
SIO_PORT_SIZE(struct sio_status_path, 32);
struct sio_status_page {
	__u32 magic, version, count, room;
	__u64 reserved2[2];
#ifndef __cplusplus /* it has no such arrays; they begin behind the header */
	struct sio_status_path path[];
#endif
};
SIO_PORT_SIZE(struct sio_status_page, 32);
#define SIO_STATUS_BYTES(room)                                                                     \
	(sizeof(struct sio_status_page) + (room) * sizeof(struct sio_status_path))
struct sio_evt_status {
	struct sio_evt h;
	__u64 size;
};
SIO_PORT_SIZE(struct sio_evt_status, 40);

/*
 * MCAST: reflective memory. What is written to a group reaches all of its members.
 *   JOIN       memory of this host that is a member's; FREE leaves the group.
 *   CONNECT    the way to write to the group, for a member or not: -ENOENT while nobody published
 * it. FREE ends it. PUBLISH, UNPUBLISH  whether CONNECT finds member @target; again is no error.
 * The answer to JOIN and CONNECT names a SIO_KIND_MEM of the asking owner, with its descriptor 0.
 * The first member's size is the group's: a longer one is -ERANGE. If no host has as much RAM it is
 * -ENOSPC.
 * @source_kind of JOIN: 0: memory is made for the member. SIO_KIND_BAR: an overlay: the member is
 * @length bytes at @offset, whole pages, of the memory in a device's BAR that view @source, which
 * can be written, shows: a copy of what is written to the group goes there. It has no descriptor,
 * and nothing is granted of it or mapped for devices but of the view. FREE of the member leaves the
 * group; so does, with the address kept, what takes the view's pages away (it is reached no more,
 * and PUBLISH is -ENODEV). -EACCES: registers, doorbells, a view to be read. EXACT alone.
 * @mode: SIO_MCAST_* wanted, 0: as the cluster has it.
 * FUSED: members and senders have one memory; what one stores, all see, also a member's stores into
 * its own.
 * EXACT: each member has its own. What CONNECT names has no descriptor: it is addresses that
 * devices and DMA engines of this host write to (DMAMAP, DMA_ATTACH with SIO_ACCESS_WRITE alone,
 * else -EINVAL); it reaches the published members of this host, and through @adapter, whose
 * requester table must let a device out, those of peers, each on the adapter that it joined with.
 * An overlay on the writing device itself, or on another function of it, is not reached: a switch
 * sends no write back.
 * Nothing can be read there, and it cannot be granted.
 */
#define SIO_MCAST_JOIN 1
#define SIO_MCAST_CONNECT 2
#define SIO_MCAST_PUBLISH 3
#define SIO_MCAST_UNPUBLISH 4
#define SIO_MCAST_FUSED 1
#define SIO_MCAST_EXACT 2
struct sio_req_mcast {
	struct sio_req h;
	__u32 adapter, group, what, reserved2; /* what: SIO_MCAST_* */
	__u64 target;			       /* PUBLISH, UNPUBLISH: the member */
	__u64 length;			       /* JOIN */
	__u32 source_kind, mode;	       /* JOIN; else 0 */
	__u64 source, offset;		       /* the same; 0 without a source_kind */
};
SIO_PORT_SIZE(struct sio_req_mcast, 88);
struct sio_evt_mcast {
	struct sio_evt h;
	__u64 id, size, address, offset; /* as the answer to ALLOC */
	__u32 mode, members;		 /* mode: SIO_MCAST_FUSED, _EXACT */
};
SIO_PORT_SIZE(struct sio_evt_mcast, 72);

/*
 * DMA: a channel of the engine in @adapter. Descriptor 0 of the answer is its ring (struct
 * sio_dma_ring, @size bytes, to be mapped for reading and writing), 1 the doorbell (write 8 bytes),
 * 2 the completion event (poll and read; eventfd semantics). From then on nobody is asked: a
 * program writes entries and moves the tail; the engine copies and counts what is done.
 *
 * What a channel may reach was attached to it before; entries name it by slot. The engine goes
 * through the host's IOMMU, windows and the peer's IOMMU as any device; its requester id is the
 * adapter's own. (smartio.ko's is a processor, which no IOMMU of this host holds off.) A channel
 * ends with its owner or by DMA_FREE, at any instant: when that is answered, or SIO_EV_OWNER_GONE
 * was reported, no byte moves any more. Errors: -ENODEV, -ENOSPC too many channels.
 */
#define SIO_DMA_ENTRIES 1024 /* of a ring */
#define SIO_DMA_RESULTS 8    /* of a ring: more transfers than this are not looked back at */
#define SIO_DMA_SLOTS 256    /* of a channel */
struct sio_req_dma {
	struct sio_req h;
	__u32 adapter, reserved2;
};
SIO_PORT_SIZE(struct sio_req_dma, 40);
struct sio_evt_dma {
	struct sio_evt h;
	__u64 id, size;
};
SIO_PORT_SIZE(struct sio_evt_dma, 48);
struct sio_req_dma_free {
	struct sio_req h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_dma_free, 40);

/*
 * DMA_ATTACH: a range that @channel may read or write: SIO_KIND_MEM, _MAP of the channel's adapter,
 * or _BAR, where either may be memory of a device. It ends by DMA_DETACH, with its channel, or with
 * its target, whose end it does not hold up: what is copied then, stops. Errors: -EINVAL, -ENOENT,
 * -EACCES the view is not for this @access, -ENODEV its pages are gone, -EOPNOTSUPP registers and
 * doorbells, and another driver's dma-buf where it does not reach that, -ENOSPC no slot left.
 */
struct sio_req_dma_attach {
	struct sio_req h;
	__u64 channel, target, offset, length;
	__u32 target_kind, access;
};
SIO_PORT_SIZE(struct sio_req_dma_attach, 72);
struct sio_evt_dma_attach {
	struct sio_evt h;
	__u64 id;
	__u32 slot, reserved2;
};
SIO_PORT_SIZE(struct sio_evt_dma_attach, 48);
struct sio_req_dma_detach {
	struct sio_req h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_dma_detach, 40);

/*
 * The ring. Numbers count up and wrap. The entries up to one with SIO_DMA_LAST are a transfer;
 * transfers are done one after the other, those of different channels in turns. The first error of
 * a transfer ends it. The engine believes nothing that it reads here.
 */
#define SIO_DMA_LAST 1
struct sio_dma_entry {
	__u64 source_offset, target_offset, length; /* in the attached ranges */
	__u32 source, target;			    /* slots */
	__u32 flags, reserved;
};
SIO_PORT_SIZE(struct sio_dma_entry, 40);
struct sio_dma_ring {
	/* The program's. */
	__u32 tail;    /* entries that it has written; move it behind the entries, by a barrier */
	__u32 abort;   /* give up the transfers with lower numbers than this; the first is 0 */
	__u32 waiting; /* 1: signal the completion event at the end of each transfer */
	__u32 unused[13];
	/* The engine's: all that is looked at for the end of a transfer is in one cache line, */
	__u32 done;   /* transfers that are over: what they wrote is there */
	__u32 asleep; /* 1: write to the doorbell after moving the tail (and a full barrier) */
	__s32 result[SIO_DMA_RESULTS]; /* of transfer n, at n % SIO_DMA_RESULTS: 0 or -errno:
					  -EINVAL the entry, -EFAULT where it led, -ECANCELED */
	__u32 unused2[6];
	__u32 head; /* entries that it no longer needs: nobody waits for that, so it is apart */
	__u32 unused3[31];
	struct sio_dma_entry entry[SIO_DMA_ENTRIES]; /* number n at n % SIO_DMA_ENTRIES */
};
SIO_PORT_SIZE(struct sio_dma_ring, 256 + 40 * SIO_DMA_ENTRIES);

/*
 * STATS: named counters of this host (kind 0), an adapter (its index) or a device (its id); of what
 * an emulated cluster has beside: the link of a chassis of this host (its index) towards the host,
 * and a link between two switches (its index in the cluster).
 */
#define SIO_STATS_CHASSIS 256
#define SIO_STATS_TRUNK 257
#define SIO_COUNTER_NAME 32
#define SIO_COUNTER_MAX 64
struct sio_req_stats {
	struct sio_req h;
	__u32 kind, reserved2;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_stats, 48);
struct sio_counter {
	char name[SIO_COUNTER_NAME];
	__u64 value;
};
SIO_PORT_SIZE(struct sio_counter, 40);
struct sio_evt_stats {
	struct sio_evt h;
	__u32 count, reserved2;
	struct sio_counter counter[SIO_COUNTER_MAX];
};
SIO_PORT_SIZE(struct sio_evt_stats, 2600);

/*
 * RESTORE: what a window was made of, to a daemon that was started again: LIST names the grants and
 * maps, this tells the rest, as the requests that made them and their answers did. A daemon of a
 * peer that lived on asks nothing again. -ENOENT: it has ended, or is neither.
 */
struct sio_req_restore {
	struct sio_req h;
	__u32 kind, reserved2; /* SIO_KIND_GRANT, _MAP */
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_restore, 48);
struct sio_evt_restore {
	struct sio_evt h;
	__u32 adapter, peer_node, peer_adapter, access; /* access: of a grant */
	__u64 bus_addr, length, generation;
	__u64 source, source_offset;   /* of a grant */
	__u64 file_offset, window_bus; /* of a map: as offset and bus_addr of its answer */
	__u32 source_kind, map_flags, caching, state;
	__u8 token[SIO_TOKEN];
};
SIO_PORT_SIZE(struct sio_evt_restore, 152);

/*
 * APERTURE: memory (SIO_KIND_MEM) that is none yet: a range of this host's bus addresses, @length
 * bytes behind @adapter's IOMMU, in which nothing lies. It is GRANTed through that adapter and
 * FREEd as other memory is, and has no descriptor; a kernel puts what it maps for its borrowed
 * device (SHADOW) there while I/O runs, without asking anybody. What is not filled in faults.
 * -EOPNOTSUPP: there is no IOMMU that translates what comes through @adapter; all RAM is what can
 * be granted.
 */
struct sio_req_aperture {
	struct sio_req h;
	__u32 adapter, reserved2;
	__u64 length, highest; /* highest: as of ALLOC */
};
SIO_PORT_SIZE(struct sio_req_aperture, 56);
struct sio_evt_aperture {
	struct sio_evt h;
	__u64 id, length, bus_addr; /* as of ALLOC */
};
SIO_PORT_SIZE(struct sio_evt_aperture, 56);

/*
 * SHADOW: a borrowed device in the local PCI tree (Device Lending), to which its stock driver
 * binds; answered before one has. Its BARs are maps of what the lender granted, of one adapter
 * (0: it has none); @bar_size may be more than the map's length, as far as the window's entries
 * reach. Its @vectors (0: none), which it shows as MSI-X, are interrupts of this host: whoever asks
 * has GRANTed them to the lender and had them tied to the device's, so that nobody is asked when
 * the driver takes them. The table that the kernel writes is memory in the place of BAR @table_bar,
 * a page at least, which stands for the device's own and is read by nobody. Its driver's DMA
 * addresses are those at which the device reaches this host: physical address n, less than
 * @dma_length, is @dma_base + n for the device (@aperture 0: all RAM), or byte n of @aperture,
 * which is all mapped for it (of that adapter).
 *
 * Configuration space is a copy, but for the registers SIO_SHADOW_*: with a @timeout_ms, they are
 * asked for: SIO_EV_SHADOW_CONFIG: its driver reads or writes; it waits, @timeout_ms at most (then
 * reads are all ones), until SHADOW_ANSWER. It also waits while there is no daemon; the next one
 * gets what is not answered yet by REOPEN. Where it cannot wait, reads are of what was read last
 * and writes follow later. A device whose bus master bit cannot be cleared is lost: it does not
 * reach this host any more when the driver goes on.
 *
 * It is LISTed as SIO_KIND_SHADOW, with its place as address. While it is there its maps cannot be
 * ended. When its owner ends or a way to its BARs goes down, the device is unplugged. SHADOW_DEL
 * does so, too; answered when no driver has it any more. With SIO_SHADOW_LOST nothing is behind it:
 * configuration space reads as ones from then on, so that the driver does not try.
 * With SIO_SHADOW_PEERS its driver may map BARs of others for it: of shadows by SHADOW_PEER, of
 * this host's own devices where there is an @aperture.
 */
#define SIO_BAR_64 1 /* bits of bar_type */
#define SIO_BAR_PREFETCH 2
#define SIO_SHADOW_VECTORS 16
#define SIO_SHADOW_PEERS 1 /* h.flags */
struct sio_req_shadow {
	struct sio_req h;
	__u32 class_revision, vendor, device, subsys_vendor; /* class code << 8 | revision */
	__u32 subsys_device, vectors;
	__u64 bar_map[SIO_DEVICE_BARS], bar_size[SIO_DEVICE_BARS];
	__u32 bar_type[SIO_DEVICE_BARS];
	__u64 dma_base, dma_length, aperture;
	__u32 table_bar, timeout_ms;
	__u64 irq[SIO_SHADOW_VECTORS];
};
SIO_PORT_SIZE(struct sio_req_shadow, 336);
struct sio_evt_shadow {
	struct sio_evt h;
	__u64 id;
	__u32 bdf, reserved2; /* in the local tree, as of ADAPTER */
};
SIO_PORT_SIZE(struct sio_evt_shadow, 48);
#define SIO_SHADOW_LOST 1 /* h.flags */
struct sio_req_shadow_del {
	struct sio_req h;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_shadow_del, 40);
/* Of 32 bits each. */
#define SIO_SHADOW_ID 0	     /* vendor and device: is it there? */
#define SIO_SHADOW_COMMAND 1 /* command and status */
#define SIO_SHADOW_CONTROL 2 /* device control and status, of PCI Express */
#define SIO_SHADOW_REGISTERS 3
struct sio_req_shadow_answer {
	struct sio_req h;
	__u64 id, turn; /* turn: of the event; -ESTALE: nobody waits for it any more */
	__u32 value;
	__s32 error; /* 0, or -errno: reads are all ones */
};
SIO_PORT_SIZE(struct sio_req_shadow_answer, 56);
/*
 * SHADOW_PEER: shadow @id, made with SIO_SHADOW_PEERS, reaches BAR @bar of shadow @target, @length
 * bytes from its beginning, at @address, as its own host has mapped it there: dma_map_resource() of
 * its driver gives that. Until one of the two ends. -EEXIST: it is known already; -ERANGE: in @id's
 * window.
 */
struct sio_req_shadow_peer {
	struct sio_req h;
	__u64 id, target, address, length;
	__u32 bar, reserved2;
};
SIO_PORT_SIZE(struct sio_req_shadow_peer, 72);

/*
 * IDENTIFY: what a descriptor is that somebody showed us: descriptor 0 of the request. @owner of
 * the answer's header: whose it is. -EBADF: none of this port's. REOPEN: descriptor 0 (of an IRQ: 0
 * and 1) of a MEM, BAR, IRQ or MAP that lives, as when it was made; of a SHADOW none, but what its
 * driver waits for (SIO_EV_SHADOW_CONFIG) is asked once more. Both for a daemon that was started
 * again.
 */
struct sio_req_identify {
	struct sio_req h;
};
struct sio_evt_identify {
	struct sio_evt h;
	__u64 id, owner, user_cookie; /* user_cookie: of an owner */
	__u32 kind, state;	      /* SIO_KIND_*; SIO_STATE_*, 0: it has ended */
};
SIO_PORT_SIZE(struct sio_evt_identify, 64);
struct sio_req_reopen {
	struct sio_req h;
	__u32 kind, reserved2;
	__u64 id;
};
SIO_PORT_SIZE(struct sio_req_reopen, 48);
struct sio_evt_reopen {
	struct sio_evt h;
	__u64 length; /* bytes to map; 0 of an IRQ */
	__u64 offset; /* in the descriptor, as when it was made */
};
SIO_PORT_SIZE(struct sio_evt_reopen, 48);

/* Events nobody asked for. */
/*
 * A link may come back with other addresses, without a restart of either host: what was granted
 * and mapped for the way that leads over it is dead then, as after the peer's restart. MAP gives
 * -ESTALE for a grant of before, and look-up entries of before lead nowhere.
 * @peer_node this host: the adapter's own link, whoever is behind it, as ADAPTER tells it
 * (@peer_adapter: @adapter, @turn: 0).
 */
struct sio_evt_link {
	struct sio_evt h;
	__u32 adapter, peer_node, peer_adapter, state; /* state: SIO_LINK_* */
	__u64 generation;			       /* the peer's boot_generation; 0 when down */
	__u64 turn; /* counts how often it came back with other addresses; the same at both ends */
	/*
	 * Links on the way there, if it is up; told again when switches take another way. 0: as
	 * many as the cluster's file has it.
	 */
	__u32 hops, reserved2;
};
SIO_PORT_SIZE(struct sio_evt_link, 72);
/* Which start of the peer, and of the way to it: in the status page, and of grants. */
#define SIO_LINK_START(boot, turn) ((boot) + ((__u64)(turn) << 24))
#define SIO_FAULT_READ 1
#define SIO_FAULT_WRITE 2
#define SIO_FAULT_MSI 3
struct sio_evt_fault {
	struct sio_evt h;
	__u64 device, address, length;
	__u64 nearest; /* start of the nearest mapping of that device; SIO_PORT_ANY: it has none */
	__u32 access, node; /* access: SIO_FAULT_*; node: where the transaction ended */
	__u64 mapping;	    /* id of the nearest mapping, whose owner is in h.owner; 0: none */
	char reason[SIO_PORT_TEXT];
};
SIO_PORT_SIZE(struct sio_evt_fault, 240);
/*
 * DEVICE_GONE: pulled out, or taken from the port. Whoever has its BARs mapped reads ones from now
 * on, and stores to nothing; what it had sent has arrived, or never will, it writes to nothing any
 * more, and what waited for that is free. Requests that name it are -ENODEV. What living owners
 * have of it stays, cut off, until they end it; its vectors and DEVICE_OPEN have ended.
 * DEVICE_BACK: it, or another one in its place, with a greater generation.
 */
struct sio_evt_device_state {
	struct sio_evt h;
	__u64 device, generation;
};
SIO_PORT_SIZE(struct sio_evt_device_state, 48);
struct sio_evt_shadow_config {
	struct sio_evt h;
	__u64 id, turn;	  /* of the shadow, whose owner is h.owner; of the question */
	__u32 reg, write; /* SIO_SHADOW_*; write 1: bits @mask become those of @value */
	__u32 value, mask;
};
SIO_PORT_SIZE(struct sio_evt_shadow_config, 64);
/* OWNER_GONE: h.owner ended; what stays in quarantine. */
struct sio_evt_owner_gone {
	struct sio_evt h;
	__u64 dmamaps, grants, maps, mems, bytes;
};
SIO_PORT_SIZE(struct sio_evt_owner_gone, 72);
struct sio_evt_owner_end {
	struct sio_evt h;
};
/*
 * OVERFLOW: events were dropped here. Of owners and devices LIST and DEVICE_LIST tell what they
 * were; for links the port sends LINK again behind this event, of each that has changed since it
 * was told last, first that it was down, if it was. @faults 1: nothing but FAULT was dropped.
 */
struct sio_evt_overflow {
	struct sio_evt h;
	__u32 faults, reserved2;
};
SIO_PORT_SIZE(struct sio_evt_overflow, 40);

/*
 * The device node of smartio.ko, /dev/smartio0. One process has it open at a time (else -EBUSY); it
 * needs CAP_SYS_RAWIO. Thread-safe. smartiod makes the port of it (smartiod/port_shim/shim_port.h):
 * it serves what needs no kernel, and makes the rest asynchronous.
 *
 * SIO_IOC_REQUEST: the request of @size bytes at @data, with @n_fds descriptors, which stay the
 * caller's, is done and answered into the SIO_PORT_MAX_PACKET bytes at @answer; @size becomes the
 * answer's, @n_fds and @fd report new descriptors (close-on-exec). Returns 0 whether it succeeded
 * or was refused. -EMSGSIZE: less than a header or more than any request; -EBADF, -EINVAL (too many
 * descriptors), -ENOMEM: nothing has happened; never -ENOMEM of OWNER_CLOSE, DEVICE_CLOSE and what
 * ends something by its id. -EFAULT: it may have happened, and its descriptors are closed. RESET
 * takes up to seconds; requests about that device are refused meanwhile by -EAGAIN, but those that
 * end something are served. @unsettled is not 0 if not all that was sent before by what the request
 * has ended is known to have arrived: its answer must not be passed on before SIO_IOC_SETTLE has
 * returned.
 *
 * SIO_IOC_SETTLE: waits until all has arrived that was sent by what has ended before, or for as
 * long as an access may take (four seconds); other requests are served meanwhile. What a later
 * access may still reach is listed then: a grant, or a member of a group, in quarantine and owner
 * 0's, until that has come. Returns 0; -EINTR.
 *
 * read(): the next event that nobody asked for (LINK, FAULT, DEVICE_GONE, DEVICE_BACK, OWNER_GONE,
 * OWNER_END, OVERFLOW) since the node was opened; -EAGAIN: none, also without O_NONBLOCK; -EINVAL:
 * less room than for the longest, struct sio_evt_fault. poll(): POLLIN while there is one.
 *
 * Descriptors of resources are files of a file system of type SIO_FS_MAGIC (fstatfs()); st_ino is
 * the resource's id, st_size its length.
 *
 * SIO_IOC_PIN, on the descriptor of an owner, by the program that has the memory, or on the node:
 * pin its pages (counted against RLIMIT_MEMLOCK). Returns a new descriptor that keeps them pinned,
 * for IMPORT; it cannot be mapped. -EINVAL, -EFAULT, -ENOMEM, -EPERM: the owner has ended.
 */
#define SIO_FS_MAGIC 0x736d696f
struct sio_ioc_packet {
	__u64 data, answer; /* addresses */
	__u32 size, n_fds;
	__s32 fd[SIO_PORT_MAX_FDS];
	__u32 unsettled, reserved2; /* of the answer */
};
SIO_PORT_SIZE(struct sio_ioc_packet, 48);
struct sio_ioc_pin {
	__u64 address, length;	/* whole pages */
	__u32 access, reserved; /* SIO_ACCESS_* of devices; reserved 0 */
};
SIO_PORT_SIZE(struct sio_ioc_pin, 24);
#define SIO_IOC_REQUEST _IOWR(0xf7, 3, struct sio_ioc_packet)
#define SIO_IOC_PIN _IOW(0xf7, 2, struct sio_ioc_pin)
#define SIO_IOC_SETTLE _IO(0xf7, 4)

#ifdef __cplusplus
}
#endif
#endif
