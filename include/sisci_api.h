/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * The SISCI shared-memory API 2.x and its SmartIO device extension (generation 4).
 *
 * Conventions
 *  - The last parameter @error is always written: SCI_ERR_OK or what was wrong. It may be NULL.
 *    smartio_last_error() (smartio/ext.h) then explains it with names and numbers. Parameters that
 *    give something back are written on success only.
 *  - Every function may be called from any thread, and from any callback; two threads may use one
 *    handle. What is said under "Errors" is what the function adds to these, which any may give:
 *    SCI_ERR_NOT_INITIALIZED before SCIInitialize(), after SCITerminate(), and in a child after
 *    fork() until it calls SCIInitialize() itself; SCI_ERR_ILLEGAL_PARAMETER for a handle or
 *    pointer
 *    that is NULL, removed or of another kind; SCI_ERR_ILLEGAL_FLAG for a flag that the function
 *    does not know, SCI_ERR_FLAG_NOT_IMPLEMENTED for one that it does not serve;
 *    SCI_ERR_NOSPC when memory or descriptors run out, also for a message to this host's smartiod:
 *    then nothing has changed, and what was to be removed can be removed later;
 *    SCI_ERR_NO_LINK_ACCESS when this host's smartiod is gone (the host crashed).
 *  - A wrong adapter number gives SCI_ERR_ILLEGAL_ADAPTERNO (not below DIS_MAX_NSCIS) or
 *    SCI_ERR_NO_SUCH_ADAPTERNO (this host has no such adapter).
 *  - Timeouts are milliseconds: 0 looks, SCI_INFINITE_TIMEOUT waits for ever. The connect functions
 *    return at once whatever their timeout; who wants to wait calls again.
 *  - Sizes and offsets are bytes.
 *
 * Loss. When another host, a link to it, or the process that exported a segment is gone for good,
 * what was mapped of it is replaced by pages that read as all ones, in place; stores to them go
 * nowhere. The handles stay valid, to be unmapped, disconnected, removed, which always succeeds;
 * using them otherwise gives SCI_ERR_NOT_CONNECTED. When this host's own smartiod is gone, that
 * holds for everything this process has, and calls give SCI_ERR_NO_LINK_ACCESS; no call hangs. So
 * do calls for a local segment or interrupt that this process made, and that a smartiod which was
 * started again could not take over, for want of memory or since another has its number.
 *
 * Sources: the SISCI API documentation, public SISCI programs, and Markussen et al., "SmartIO",
 * ACM TOCS 38 (2021).
 */
#ifndef SISCI_API_H
#define SISCI_API_H

#include <stddef.h>

#include "sisci_types.h"
#include "sisci_error.h"
#include "sisci_api_macros.h"
#include "dis/dis_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Constants. Values without a public source are this implementation's own. ---- */

#define SCI_INFINITE_TIMEOUT 0xffffffffU
/** Stands for the own node wherever a node id is asked for. */
#define SCI_LOCAL_HOST 0xfffffffeU
#define SCI_DMA_CHANNEL_ID_DONTCARE 0xffffffffU

/* Every function that takes a callback. Without it a callback is ignored. */
#define SCI_FLAG_USE_CALLBACK 0x00000001U

/* Segments: create, prepare, attach, remove. */
#define SCI_FLAG_EMPTY 0x00000002U
#define SCI_FLAG_PRIVATE 0x00000004U
#define SCI_FLAG_DMA_SOURCE_ONLY 0x00000008U
#define SCI_FLAG_FORCE_REMOVE 0x00000020U
#define SCI_FLAG_DMA_GLOBAL 0x00000040U
#define SCI_FLAG_SHARE_EXTERNAL 0x00000040U
#define SCI_FLAG_ALLOW_UNICAST 0x00000080U
#define SCI_FLAG_LOCK_USER_MEM 0x00000400U
#define SCI_FLAG_PHYSICAL 0x00001000U
#define SCI_FLAG_CUDA_BUFFER 0x00002000U
#define SCI_FLAG_SCIF_BUFFER 0x00004000U
#define SCI_FLAG_FORCE_DISCONNECT 0x00010000U
#define SCI_FLAG_NOTIFY 0x00020000U
#define SCI_FLAG_BROADCAST 0x00040000U
#define SCI_FLAG_ASYNCHRONOUS_CONNECT 0x00080000U
#define SCI_FLAG_AUTO_ID 0x20000000U

/* SCIOpen. */
#define SCI_FLAG_THREAD_SAFE 0x00000001U

/* Mapping. */
#define SCI_FLAG_FIXED_MAP_ADDR 0x00000001U
#define SCI_FLAG_READONLY_MAP 0x00000002U
#define SCI_FLAG_LOCK_OPERATION 0x00000004U
#define SCI_FLAG_CONDITIONAL_INTERRUPT_MAP 0x00000008U
#define SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP 0x00000010U
#define SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP 0x00000020U
#define SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP 0x00000040U
#define SCI_FLAG_IO_MAP_IOSPACE 0x00000080U
#define SCI_FLAG_DMOVE_MAP 0x00000100U
#define SCI_FLAG_WRITES_DISABLE_GATHER_MAP 0x00000200U
#define SCI_FLAG_DISABLE_128_BYTES_PACKETS 0x00000400U
#define SCI_FLAG_NO_MEMORY_LOOPBACK 0x00000800U
#define SCI_FLAG_NO_MEMORY_LOOPBACK_MAP SCI_FLAG_NO_MEMORY_LOOPBACK
#define SCI_FLAG_SHARED_MAP 0x00002000U
#define SCI_FLAG_WRITE_BACK_CACHE_MAP 0x08000000U

/* Sequences, copies, flushes. */
#define SCI_FLAG_NO_FLUSH 0x00000001U
#define SCI_FLAG_NO_STORE_BARRIER 0x00000002U
#define SCI_FLAG_FAST_BARRIER 0x00000004U
#define SCI_FLAG_ERROR_CHECK 0x00000008U
#define SCI_FLAG_BLOCK_READ 0x00000010U
#define SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY 0x00000020U
#ifndef FLUSH_CPU_BUFFERS_ONLY
#define FLUSH_CPU_BUFFERS_ONLY SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY
#endif
#define SCI_FLAG_CACHE_FLUSH 0x00100000U
#define SCI_FLAG_CACHE_INVALIDATE 0x00200000U

/* Interrupts. */
#define SCI_FLAG_FIXED_INTNO 0x00000002U
#define SCI_FLAG_SHARED_INT 0x00000004U
#define SCI_FLAG_CONDITIONAL_INTERRUPT 0x00000008U
#define SCI_FLAG_COUNTING_INT 0x00000020U

/* DMA. */
#define SCI_FLAG_DMA_CHANNEL_SHARED 0x00000001U
#define SCI_FLAG_DMA_POST 0x00000002U
#define SCI_FLAG_DMA_WAIT 0x00000004U
#define SCI_FLAG_DMA_RESET 0x00000008U
#define SCI_FLAG_DMA_READ 0x00000010U
#define SCI_FLAG_DMA_PHDMA 0x00000020U
#define SCI_FLAG_DMA_SYSDMA 0x00000100U
#define SCI_FLAG_DMA_USER_MEM 0x00000200U
#define SCI_FLAG_DMA_ADAPTER 0x00000800U

/* SmartIO: borrowing, device memory. */
#define SCI_FLAG_PCIE_REQUESTER_GLOBAL 0x00000001U
#define SCI_FLAG_EXCLUSIVE 0x01000000U
#define SCI_FLAG_DEVICE_SIDE_ONLY 0x02001000U
#define SCI_FLAG_LOCAL_ONLY 0x02002000U
#define SCI_FLAG_DEVICE_PREFER_BANDWIDTH 0x04000001U
#define SCI_FLAG_HOST_PREFER_BANDWIDTH 0x04000002U
#define SCI_FLAG_SPECIFY_PATH 0x10000000U
#define SCI_FLAG_SPECIFY_SLOT 0x20000000U
#define SCI_FLAG_BAR 0x00000100U
#define SCI_FLAG_SHARED 0x00000200U

/** What a device segment is: a BAR, memory of this borrow alone, memory of all borrowers. */
#define SCI_MEMTYPE_BAR 1U
#define SCI_MEMTYPE_PRIVATE 2U
#define SCI_MEMTYPE_SHARED 4U

/** Who will read and write a device segment; decides where it is placed. */
#define SCI_MEMACCESS_DEVICE_READ 0x01U
#define SCI_MEMACCESS_DEVICE_WRITE 0x02U
#define SCI_MEMACCESS_HOST_READ 0x04U
#define SCI_MEMACCESS_HOST_WRITE 0x08U
#define SCI_MEMACCESS_MULTIHOST_READ (0x10U | SCI_MEMACCESS_HOST_READ)
#define SCI_MEMACCESS_MULTIHOST_WRITE (0x10U | SCI_MEMACCESS_HOST_WRITE)
#define SCI_MEMACCESS_P2P_READ (0x20U | SCI_MEMACCESS_DEVICE_READ)
#define SCI_MEMACCESS_P2P_WRITE (0x20U | SCI_MEMACCESS_DEVICE_WRITE)

/* Queries. All numbers are own, and no subcommand's number is used twice. */
#define SCI_Q_VENDORID 0x1001U
#define SCI_Q_API 0x1002U
#define SCI_Q_ADAPTER 0x1003U
#define SCI_Q_SYSTEM 0x1004U
#define SCI_Q_LOCAL_SEGMENT 0x1005U
#define SCI_Q_REMOTE_SEGMENT 0x1006U
#define SCI_Q_MAP 0x1007U
#define SCI_Q_DMA 0x1008U
#define SCI_Q_DEVICE 0x1009U
#define SCI_Q_SISCI_DRIVER_VERSION 0x100aU

#define SCI_Q_ADAPTER_NODEID 0x2001U
#define SCI_Q_ADAPTER_SERIAL_NUMBER 0x2002U
#define SCI_Q_ADAPTER_CARD_TYPE 0x2003U
#define SCI_Q_ADAPTER_CONFIGURED 0x2004U
#define SCI_Q_ADAPTER_DMA_MTU 0x2005U
#define SCI_Q_ADAPTER_MCAST_MAX_GROUPS 0x2006U
#define SCI_Q_ADAPTER_BDF 0x2007U
#define SCI_Q_ADAPTER_NUMBER_OF_LINKS 0x2008U
/* 1.x */
#define SCI_Q_ADAPTER_DMA_SIZE_ALIGNMENT 0x2009U
#define SCI_Q_ADAPTER_DMA_OFFSET_ALIGNMENT 0x200aU
#define SCI_Q_ADAPTER_SUGGESTED_MIN_DMA_SIZE 0x200bU
#define SCI_Q_ADAPTER_SUGGESTED_MIN_BLOCK_SIZE 0x200cU
#define SCI_Q_ADAPTER_NUMBER_OF_STREAMS 0x200dU
#define SCI_Q_ADAPTER_STREAM_BUFFER_SIZE 0x200eU
#define SCI_Q_ADAPTER_HW_LINK_STATUS_IS_OK 0x200fU
#define SCI_Q_ADAPTER_NUMBER 0x2010U
#define SCI_Q_ADAPTER_INSTANCE_NUMBER 0x2011U
#define SCI_Q_ADAPTER_FIRMWARE_OK 0x2012U
#define SCI_Q_ADAPTER_CONNECTED_TO_SWITCH 0x2013U
#define SCI_Q_ADAPTER_LOCAL_SWITCH_TYPE 0x2014U
#define SCI_Q_ADAPTER_LOCAL_SWITCH_PORT_NUMBER 0x2015U
#define SCI_Q_ADAPTER_CONNECTED_TO_EXPECTED_SWITCH_PORT 0x2016U
#define SCI_Q_ADAPTER_ATT_PAGE_SIZE 0x2017U
#define SCI_Q_ADAPTER_ATT_NUMBER_OF_ENTRIES 0x2018U
#define SCI_Q_ADAPTER_ATT_AVAILABLE_ENTRIES 0x2019U
#define SCI_Q_ADAPTER_PHYS_MEM_NODEID 0x201aU
#define SCI_Q_ADAPTER_PHYS_MBX_NODEID 0x201bU
#define SCI_Q_ADAPTER_PHYS_LINK_PORT_NODEID 0x201cU
#define SCI_Q_ADAPTER_SCI_LINK_FREQUENCY 0x201dU
#define SCI_Q_ADAPTER_B_LINK_FREQUENCY 0x201eU
#define SCI_Q_ADAPTER_IO_BUS_FREQUENCY 0x201fU
#define SCI_Q_ADAPTER_LINK_OPERATIONAL 0x2101U
#define SCI_Q_ADAPTER_LINK_WIDTH 0x2102U
#define SCI_Q_ADAPTER_LINK_SPEED 0x2103U
#define SCI_Q_ADAPTER_LINK_UPTIME 0x2104U
#define SCI_Q_ADAPTER_LINK_DOWNTIME 0x2105U
#define SCI_Q_ADAPTER_LINK_CABLE_INSERTED 0x2106U
#define SCI_Q_ADAPTER_LINK_ENABLED 0x2107U
#define SCI_Q_ADAPTER_LINK_PARTNER_PORT_NO 0x2108U
#define SCI_Q_SYSTEM_CPU_CACHE_LINE_SIZE 0x3001U
#define SCI_Q_SYSTEM_HOSTBRIDGE 0x3002U
#define SCI_Q_SYSTEM_WRITE_POSTING_ENABLED 0x3003U
#define SCI_Q_SYSTEM_WRITE_COMBINING_ENABLED 0x3004U
#define SCI_Q_LOCAL_SEGMENT_IOADDR 0x4001U
#define SCI_Q_LOCAL_SEGMENT_PHYS_ADDR 0x4002U
#define SCI_Q_LOCAL_SEGMENT_VIRTUAL_KERNEL_ADDR 0x4003U
#define SCI_Q_REMOTE_SEGMENT_IOADDR 0x5001U
#define SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET 0x6001U
#define SCI_Q_MAP_IOADDR 0x6002U
#define SCI_Q_MAP_PHYS_ADDR 0x6003U
#define SCI_Q_MAP_QUERY_REMOTE_MAPPED_TO_LOCAL_TARGET SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET
#define SCI_Q_DMA_AVAILABLE 0x7001U
#define SCI_Q_DMA_CAPABILITIES 0x7002U
#define SCI_Q_DEVICE_INFO 0x8001U

/* ---- The library and virtual devices ---- */

/**
 * Connect this process to its host's smartiod, whose socket the environment variable SMARTIO_SOCKET
 * names (set by `smartio run`). Comes before everything else. Calls are counted: each needs its own
 * SCITerminate().
 * @flags: 0.
 * Errors: SCI_ERR_NOT_INITIALIZED: SMARTIO_SOCKET is not set, or no smartiod answers there;
 * SCI_ERR_INCONSISTENT_VERSIONS: smartiod speaks another version.
 */
void SCIInitialize(unsigned int flags, sci_error_t *error);

/**
 * Undo SCIInitialize(). With the last one everything still open ends, as if the process had called
 * exit(): exporters of what it is connected to get SCI_CB_DISCONNECT (of one that is killed or ends
 * in another way, SCI_CB_LOST); mappings left behind read as all ones. Handles from before are
 * dead. Never fails.
 */
void SCITerminate(void);

/**
 * Make a virtual device: what segments, interrupts and borrowed devices belong to. Cheap, no limit
 * to how many objects it has.
 * @sd: set to the caller's new handle; end it with SCIClose(). @flags: 0 or SCI_FLAG_THREAD_SAFE,
 * which changes nothing.
 */
void SCIOpen(sci_desc_t *sd, unsigned int flags, sci_error_t *error);

/**
 * End a virtual device. Connections to segments that were removed, or lost, do not keep it: they
 * are disconnected; those that are mapped stay, until the program unmaps and disconnects them.
 * @flags: 0. Errors: SCI_ERR_BUSY: something else made through @sd still exists; @sd stays valid.
 */
void SCIClose(sci_desc_t sd, unsigned int flags, sci_error_t *error);

/**
 * Text of a code. Static, never NULL, also for numbers that are no code. Needs no initialisation.
 */
const char *SCIGetErrorString(sci_error_t code);

/* ---- Nodes and adapters ---- */

/**
 * The node id by which others reach this host through adapter @adapterNo.
 * Errors: SCI_ERR_ILLEGAL_ADAPTERNO, SCI_ERR_NO_SUCH_ADAPTERNO. @flags: 0.
 */
void SCIGetLocalNodeId(unsigned int adapterNo, unsigned int *nodeId, unsigned int flags,
		       sci_error_t *error);

/**
 * Whether node @nodeId can be reached through the adapter now. @flags: 0.
 * Return: 1, and SCI_ERR_OK; else 0 and SCI_ERR_NO_SUCH_NODEID (no such node, or no path to it),
 * SCI_ERR_NO_LINK_ACCESS (the link is down at this end), SCI_ERR_NO_REMOTE_LINK_ACCESS (at
 * another), SCI_ERR_NODE_NOT_RESPONDING, SCI_ERR_ILLEGAL_NODEID.
 */
int SCIProbeNode(sci_desc_t sd, unsigned int localAdapterNo, unsigned int nodeId,
		 unsigned int flags, sci_error_t *error);

/**
 * The node that goes by a name: the host's, as in the topology.
 * @nodeId: set to its id and zeros; to zeros alone if there is none, which is no error.
 * @type: set to the kind of its adapter (DIS_ADAPTER_TYPE_*); may be NULL. @flags: 0.
 */
void SCIGetNodeIdByAdapterName(char *adaptername, dis_nodeId_list_t *nodeId,
			       dis_virt_adapter_t *type, unsigned int flags, sci_error_t *error);
/** The same. @adapterNo: DIS_MAX_NSCIS numbers, the first one set to the local adapter to use. */
void SCIGetNodeInfoByAdapterName(char *adaptername, unsigned int *adapterNo,
				 dis_nodeId_list_t *nodeIdlist, dis_adapter_type_t *type,
				 unsigned int flags, sci_error_t *error);
/** Text of an adapter type. Static, never NULL. Needs no initialisation. */
const char *SCIGetAdapterTypeString(unsigned int type);
/** Text of an adapter family; the types are families. Static, never NULL. */
const char *SCIGetAdapterFamilyString(unsigned int family);

/**
 * Ask for a property. @command says what @data points to. @flags: 0, but for SCI_Q_DMA. No virtual
 * device is needed.
 *
 * SCI_Q_API, SCI_Q_VENDORID, SCI_Q_SISCI_DRIVER_VERSION: sci_query_string_t.
 * SCI_Q_ADAPTER: sci_query_adapter_t; answers are unsigned int, but for SCI_Q_ADAPTER_BDF, which is
 *   unsigned short (bus << 8 | device << 3 | function): one known program passes no more room.
 *   Served: _NODEID, _SERIAL_NUMBER (node id << 8 | adapter: unique in the cluster), _CONFIGURED,
 *   _BDF, _MCAST_MAX_GROUPS, _NUMBER_OF_LINKS (1), _CARD_TYPE (SCIGetAdapterTypeString()), and for
 *   port 0 _LINK_OPERATIONAL, _LINK_WIDTH (lanes), _LINK_SPEED (PCIe generation), _LINK_ENABLED,
 *   _LINK_CABLE_INSERTED (0 when it is out), _LINK_UPTIME and _LINK_DOWNTIME (whole seconds that it
 *   has been in, or out; 0 while it is not: at least so long, as this host's smartiod counts from
 *   when it heard so, or found it so at its start) and _LINK_PARTNER_PORT_NO (of the switch, as the
 *   file numbers them, or in its order; 0: of an adapter); where there is a DMA engine (else
 *   SCI_ERR_DMA_NOT_AVAILABLE) _DMA_MTU (bytes of one transfer at most) and of API 1.x
 *   _SUGGESTED_MIN_DMA_SIZE (smaller, and a transfer costs its caller more time than the copy); of
 *   API 1.x _NUMBER, _INSTANCE_NUMBER, _HW_LINK_STATUS_IS_OK, _CONNECTED_TO_SWITCH, at one
 *   _LOCAL_SWITCH_PORT_NUMBER (as the partner's port), _ATT_PAGE_SIZE,
 *   _ATT_NUMBER_OF_ENTRIES, _ATT_AVAILABLE_ENTRIES (entries of the window's look-up table),
 *   _DMA_SIZE_ALIGNMENT and _DMA_OFFSET_ALIGNMENT (1), _SUGGESTED_MIN_BLOCK_SIZE. The others are
 *   not known here: SCI_ERR_NOT_SUPPORTED.
 * SCI_Q_SYSTEM: sci_query_system_t; _CPU_CACHE_LINE_SIZE.
 * SCI_Q_LOCAL_SEGMENT: sci_query_local_segment_t; _PHYS_ADDR and _IOADDR: where the memory lies in
 *   this host's physical address map.
 * SCI_Q_REMOTE_SEGMENT: sci_query_remote_segment_t; _IOADDR: where its beginning lies in this
 *   host's physical address map while it is mapped (SCI_ERR_ILLEGAL_OPERATION: it is not); of a BAR
 *   always: where it lies in the physical address map of the device's host.
 * SCI_Q_MAP: sci_query_map_t; _MAPPED_TO_LOCAL_TARGET: 1 if the memory is this host's own;
 *   _PHYS_ADDR, _IOADDR: where the map's beginning lies in this host's physical address map: in its
 *   memory or in an adapter's window; not of a BAR.
 * SCI_Q_DMA: sci_query_dma_t; _AVAILABLE: whether the adapter has an engine; _CAPABILITIES:
 *   sci_dma_capabilities_t. @flags: DMA_ADAPTER, DMA_GLOBAL or DMA_SYSDMA: one engine serves all.
 * SCI_Q_DEVICE: sci_smartio_query_device_t with SCI_Q_DEVICE_INFO and a
 *   sci_smartio_device_info_t; the device need not be borrowed.
 *
 * Errors: SCI_ERR_ILLEGAL_QUERY: no such command or subcommand; SCI_ERR_NOT_SUPPORTED: known, but
 * not answered here; SCI_ERR_NO_SUCH_FDID; those of adapter numbers.
 */
void SCIQuery(unsigned int command, void *data, unsigned int flags, sci_error_t *error);

/* ---- Local segments ---- */

/**
 * Allocate memory of this host under an id that is unique on it. The memory is zeroed and at least
 * @size bytes long, rounded up to pages; offsets are checked against the rounded size.
 * @segment: set to the caller's new handle; end it with SCIRemoveSegment().
 * @callback, @callbackArg: with SCI_FLAG_USE_CALLBACK, notified of connections.
 * @flags: USE_CALLBACK; AUTO_ID: take the first free id from @segmentId on, then
 *   from 0 on; PRIVATE: never available to others; EMPTY: without memory, see
 *   SCIRegisterSegmentMemory(); DMA_GLOBAL: accepted. BROADCAST: a member of multicast group
 *   @segmentId, 0 to 7, one on each host; not with AUTO_ID, PRIVATE, EMPTY. The first member's size
 *   is the group's. Whether the members have one memory or each its own is told by the topology
 *   (docs/emulation.md).
 * Connections to the group do not keep SCIRemoveSegment() from removing a member, and are not
 * reported. ALLOW_UNICAST, with BROADCAST: the member can also be connected to alone, as segment
 * @segmentId of its node, which no other segment can be then; such connections are as any other's.
 * Errors: SCI_ERR_SEGMENTID_USED; SCI_ERR_OUT_OF_RANGE: the group was made with less;
 * SCI_ERR_SIZE_ALIGNMENT: size 0; SCI_ERR_NOSPC: more than the host has.
 */
void SCICreateSegment(sci_desc_t sd, sci_local_segment_t *segment, unsigned int segmentId,
		      size_t size, sci_cb_local_segment_t callback, void *callbackArg,
		      unsigned int flags, sci_error_t *error);

/**
 * Id of a local segment, also one that AUTO_ID chose; 0 for a wrong handle. No call to smartiod.
 */
unsigned int SCIGetLocalSegmentId(sci_local_segment_t segment);
/** Its size in bytes, rounded up to pages; 0 for a wrong handle. No call to smartiod. */
size_t SCIGetLocalSegmentSize(sci_local_segment_t segment);

/**
 * Make the segment reachable through an adapter; others cannot connect yet. May be said of several
 * adapters, and again of one. @flags: DMA_SOURCE_ONLY, BROADCAST: accepted.
 * Errors: those of adapter numbers; SCI_ERR_HW_NOSPC.
 */
void SCIPrepareSegment(sci_local_segment_t segment, unsigned int localAdapterNo, unsigned int flags,
		       sci_error_t *error);

/**
 * Let others connect through this adapter; the own host, too. @flags: 0.
 * Errors: SCI_ERR_SEGMENT_NOT_PREPARED; SCI_ERR_ILLEGAL_OPERATION: the segment is private.
 */
void SCISetSegmentAvailable(sci_local_segment_t segment, unsigned int localAdapterNo,
			    unsigned int flags, sci_error_t *error);

/**
 * Let no new connection in. What is connected stays so, unless told otherwise. May be said again of
 * a segment that is not available any more.
 * @flags: NOTIFY: importers get SCI_CB_DISCONNECT; FORCE_DISCONNECT: their connections are cut.
 * Errors: SCI_ERR_ILLEGAL_OPERATION: it was never prepared on that adapter.
 */
void SCISetSegmentUnavailable(sci_local_segment_t segment, unsigned int localAdapterNo,
			      unsigned int flags, sci_error_t *error);

/**
 * End the segment, whatever its state. When it returns, its callback does not run and will not
 * (unless it is called from that callback), and its id is free.
 * A program that is connected gets SCI_CB_DISCONNECT and keeps what it has, of this host or of
 * others: maps lead where they led, and more can be mapped. The memory, and what is granted of it,
 * is freed when the last one has unmapped and disconnected, or ended; also if this program has
 * ended before. Who is connected to a member of a multicast group alone loses it, as by force.
 * @flags: FORCE_REMOVE: whoever is connected loses it, and gets SCI_CB_DISCONNECT; what it has
 * mapped reads as ones. Maps in this process stay until unmapped, maps for devices end first;
 * where that fails, nothing else happens.
 * Errors: SCI_ERR_BUSY: mapped in this process, or for a device by a program of this host (forced:
 * and held by the owner of its queues), or a DMA transfer of this process is under way;
 * SCI_ERR_NODE_NOT_RESPONDING: forced, and a device's lender does not answer.
 * The handle stays valid, try again. SCI_ERR_NOSPC: it is removed, but there is no memory, or no
 * userfaultfd, to make pages that it was given (SCIRegisterSegmentMemory()) private again: they are
 * as before, still in one with what others have mapped or a child of a fork inherits; the handle is
 * good for this call.
 */
void SCIRemoveSegment(sci_local_segment_t segment, unsigned int flags, sci_error_t *error);

/**
 * Give a segment that was made EMPTY whole pages of the program as its memory, before
 * SCIPrepareSegment(). They keep their contents, and the program goes on using them at their
 * address; SCIRemoveSegment() makes them private again, with what is then in them. Meanwhile the
 * memory counts as this host's, as of any segment; a child of fork() gets a private copy, made
 * before the fork.
 * Other threads may go on using it: what they store while it is exchanged, here and in
 * SCIRemoveSegment(), waits for that and is not lost (by a userfaultfd). So does what a system call
 * of theirs stores, if the program may have the kernel wait: with CAP_SYS_PTRACE, with
 * vm.unprivileged_userfaultfd 1, or if it may open /dev/userfaultfd; else that call may fail with
 * EFAULT. A device that is writing there for this program at that moment (direct I/O, RDMA) writes
 * to the pages before the exchange.
 * @address, @size: multiples of a page; memory of malloc() or private anonymous pages.
 * @flags: LOCK_USER_MEM: accepted.
 * Errors: SCI_ERR_SIZE_ALIGNMENT; SCI_ERR_ILLEGAL_ADDRESS: not of a page, or nothing that can be
 * written is there; SCI_ERR_OUT_OF_RANGE: more than the segment was made for;
 * SCI_ERR_NOT_SUPPORTED: pages of a file, shared ones, or of a stack; the program has a userfaultfd
 * of its own there; or it has other threads, and gets no userfaultfd (a container's seccomp
 * profile); SCI_ERR_ILLEGAL_OPERATION: it has memory; SCI_ERR_NOSPC.
 */
void SCIRegisterSegmentMemory(void *address, size_t size, sci_local_segment_t segment,
			      unsigned int flags, sci_error_t *error);
/**
 * Give an empty segment what lies at a physical address, or a graphics card's memory. No program
 * may do the former here, and no card of an emulated host can share its memory: always an error.
 * @flags: CUDA_BUFFER, SCIF_BUFFER.
 * Errors: SCI_ERR_HW_NOSPC: with CUDA_BUFFER; SCI_ERR_NOT_SUPPORTED: else;
 * SCI_ERR_ILLEGAL_OPERATION: the segment was not made EMPTY, or has memory; SCI_ERR_SIZE_ALIGNMENT.
 */
void SCIAttachPhysicalMemory(sci_ioaddr_t ioaddress, void *address, unsigned int busNo, size_t size,
			     sci_local_segment_t segment, unsigned int flags, sci_error_t *error);

/**
 * Let other processes of this host attach to the segment. @flags: 0. Its memory is freed when the
 * last handle is removed. When the process that made it ends with its handle, it ends for all, with
 * SCI_CB_LOST to the others; when that has removed its handle before, it stays theirs.
 */
void SCIShareSegment(sci_local_segment_t segment, unsigned int flags, sci_error_t *error);
/**
 * Another handle of a shared segment of this host, by its id. Its state is common to all handles,
 * and each is told what happens. SCIRemoveSegment() ends this handle alone, unless it is the last
 * one.
 * @size: set to the segment's size; may be NULL. @flags: USE_CALLBACK.
 * Errors: SCI_ERR_NO_SUCH_SEGMENT; SCI_ERR_ACCESS: it is not shared.
 */
void SCIAttachLocalSegment(sci_desc_t sd, sci_local_segment_t *segment, unsigned int segmentId,
			   size_t *size, sci_cb_local_segment_t callback, void *callbackArg,
			   unsigned int flags, sci_error_t *error);

/**
 * Wait for what happens to a segment that has no callback: the same that a callback would be
 * called for, in order. The last 32 events are kept for who did not wait. @flags: 0.
 * @sourcenodeId, @localAdapterNo: set to who it was, and through which adapter; may be NULL.
 * Return: the reason; 0 on error. Errors: SCI_ERR_TIMEOUT; SCI_ERR_CANCELLED: the segment was
 * removed; SCI_ERR_ILLEGAL_OPERATION: it has a callback; SCI_ERR_OVERFLOW: events were dropped,
 * call again for those that were not.
 */
sci_segment_cb_reason_t SCIWaitForLocalSegmentEvent(sci_local_segment_t segment,
						    unsigned int *sourcenodeId,
						    unsigned int *localAdapterNo,
						    unsigned int timeout, unsigned int flags,
						    sci_error_t *error);

/* ---- Remote segments ---- */

/**
 * Connect to an available segment; the own node is a node like any other. Returns at once; if there
 * is no such segment, call again. The exporter gets SCI_CB_CONNECT.
 * @segment: set to the caller's new handle; end it with SCIDisconnectSegment().
 * @timeout: not looked at.
 * @flags: USE_CALLBACK. BROADCAST: to all members of multicast group @segmentId; @nodeId is
 *   DIS_BROADCAST_NODEID_GROUP_ALL, and SCI_ERR_NO_SUCH_SEGMENT means that no member is available.
 *   What is written goes to all, the own member included; what is read is what they hold, or, of a
 *   cluster whose members have each their own memory, nothing (docs/emulation.md).
 *   ASYNCHRONOUS_CONNECT: do not wait for the exporter's answer; the handle is set
 *   before the call returns, and the first event of the segment tells what became of it:
 *   SCI_CB_OPERATIONAL, or SCI_CB_LOST with one of the errors below as its status. Until then it
 * can only be waited for and disconnected; mapping it gives SCI_ERR_NOT_CONNECTED, its size is 0.
 * Errors: SCI_ERR_NO_SUCH_SEGMENT: no segment with this id is available on that node and path;
 * SCI_ERR_ILLEGAL_NODEID: 0; SCI_ERR_NO_SUCH_NODEID; SCI_ERR_NO_LINK_ACCESS
 * and SCI_ERR_NO_REMOTE_LINK_ACCESS, as of SCIProbeNode(); SCI_ERR_NODE_NOT_RESPONDING;
 * SCI_ERR_CONNECTION_REFUSED: 4096 connections to it are the most; those of adapter numbers.
 */
void SCIConnectSegment(sci_desc_t sd, sci_remote_segment_t *segment, unsigned int nodeId,
		       unsigned int segmentId, unsigned int localAdapterNo,
		       sci_cb_remote_segment_t callback, void *callbackArg, unsigned int timeout,
		       unsigned int flags, sci_error_t *error);

/**
 * Also of device segments. The exporter gets SCI_CB_DISCONNECT. @flags: 0. When it returns, the
 * callback does not run and will not (unless it is called from that callback).
 * Errors: SCI_ERR_BUSY: mapped here or for a device; the handle stays valid.
 */
void SCIDisconnectSegment(sci_remote_segment_t segment, unsigned int flags, sci_error_t *error);

/**
 * As SCIWaitForLocalSegmentEvent(), for a connected segment. @status: set to what a callback is
 * given; may be NULL.
 * Errors: also SCI_ERR_NOT_CONNECTED: it is lost, and that was reported: nothing more will come.
 */
sci_segment_cb_reason_t SCIWaitForRemoteSegmentEvent(sci_remote_segment_t segment,
						     sci_error_t *status, unsigned int timeout,
						     unsigned int flags, sci_error_t *error);

/** Size in bytes of a connected segment or BAR; 0 for a wrong handle. No call to smartiod. */
size_t SCIGetRemoteSegmentSize(sci_remote_segment_t segment);
/** The id it was connected by; 0 for a wrong handle. No call to smartiod. */
unsigned int SCIGetRemoteSegmentId(sci_remote_segment_t segment);
/** Where the memory lies; of a device segment the node chosen for it. 0 for a wrong handle. */
unsigned int SCIGetRemoteSegmentNodeId(sci_remote_segment_t segment);

/* ---- Mapping ---- */

/**
 * Map [@offset, @offset + @size) of a connected segment or BAR; a segment may be mapped many times.
 * Of a BAR, each page is what this borrower may have: doorbells can be written by all, registers by
 * one at a time (SCI_FLAG_READONLY_MAP: never), all else reads as all ones.
 * @map: set to the caller's new handle; end it with SCIUnmapSegment(). @addr: where, with
 *   FIXED_MAP_ADDR; aligned as @offset is.
 * @flags: FIXED_MAP_ADDR, READONLY_MAP, IO_MAP_IOSPACE; BROADCAST: accepted of a connection to a
 *   multicast group, SCI_ERR_ILLEGAL_FLAG of any other; accepted as hints: LOCK_OPERATION,
 *   SHARED_MAP, NO_MEMORY_LOOPBACK, WRITE_BACK_CACHE_MAP and the prefetch and gather hints.
 * Return: the address; NULL on error.
 * A group whose members have each their own memory takes no stores: SCI_ERR_NOT_SUPPORTED but with
 * READONLY_MAP; that map is for SCIMemCpy(), SCIMemWrite(), SCITransferBlock() and sequences, whose
 * copies reach all members, and reads as ones.
 * Errors: SCI_ERR_OUT_OF_RANGE; SCI_ERR_SIZE_ALIGNMENT: size 0; SCI_ERR_ILLEGAL_ADDRESS;
 * SCI_ERR_NOT_CONNECTED: lost; SCI_ERR_NO_LINK_ACCESS: the link is down; SCI_ERR_HW_NOSPC: no
 * window space; SCI_ERR_ACCESS: not READONLY_MAP, and the range holds but registers of a device
 * that another borrower holds (smartio_last_error() says who). With other pages in the range,
 * doorbells say, it is mapped, and of the registers a mirror: a store there ends the program with
 * SIGSEGV, after a line in the log (on standard error) that names device and offset. For that line
 * the first such map sets a handler of SIGSEGV, which passes all faults on to the one before it.
 *
 * While the link is down (SCI_CB_NOT_OPERATIONAL) all of it reads as ones and stores go nowhere;
 * when it is up again (SCI_CB_OPERATIONAL) the map is as it was.
 */
volatile void *SCIMapRemoteSegment(sci_remote_segment_t segment, sci_map_t *map, size_t offset,
				   size_t size, void *addr, unsigned int flags, sci_error_t *error);

/** The same for a local segment, in any state. */
void *SCIMapLocalSegment(sci_local_segment_t segment, sci_map_t *map, size_t offset, size_t size,
			 void *addr, unsigned int flags, sci_error_t *error);

/** End a map of either kind. Its addresses must not be used any more. @flags: 0. */
void SCIUnmapSegment(sci_map_t map, unsigned int flags, sci_error_t *error);

/** The address that the map call returned; NULL for a wrong handle. No call to smartiod. */
volatile void *SCIGetMapPointer(sci_map_t map);

/**
 * Where a map begins in this host's physical address map, as local devices address it: in its
 * memory or in an adapter's window. 0 for a wrong handle, a lost map, and a BAR. No call to
 * smartiod.
 */
sci_ioaddr_t SCIGetMapPhysAddr(sci_map_t map);

/* ---- Sequences: did the stores through a map arrive? ---- */

/**
 * Make something to check transfers through a map with. It counts as started. It keeps neither the
 * map nor anything else from being ended: afterwards it tells SCI_SEQ_NOT_RETRIABLE.
 * @map: of either kind; through a map of memory of this host nothing is lost on the way.
 * @sequence: set to the caller's new handle; end it with SCIRemoveSequence().
 * @flags: FAST_BARRIER: accepted.
 */
void SCICreateMapSequence(sci_map_t map, sci_sequence_t *sequence, unsigned int flags,
			  sci_error_t *error);
/** @flags: 0. */
void SCIRemoveSequence(sci_sequence_t sequence, unsigned int flags, sci_error_t *error);

/**
 * Begin to watch, or begin again after SCI_SEQ_RETRIABLE. No system call. @flags: 0.
 * Return: SCI_SEQ_OK; SCI_SEQ_PENDING: the path failed, what is lost is not told yet: call again;
 * SCI_SEQ_NOT_RETRIABLE: the link is down (SCI_CB_OPERATIONAL tells when it is back), or the map is
 * lost or unmapped: connect again. @error is SCI_ERR_OK with each of them.
 */
sci_sequence_status_t SCIStartSequence(sci_sequence_t sequence, unsigned int flags,
				       sci_error_t *error);
/**
 * Flush, wait for the stores before, and tell what became of them since the start, which goes on
 * counting. No lock, no system call. Stores to another host's memory are waited for until they have
 * arrived there, by a read through the map, which must not be unmapped meanwhile; those to a
 * device's BAR, where a read may do harm, and to a multicast group, until they have left this CPU.
 * @flags: NO_FLUSH, NO_STORE_BARRIER: leave that out.
 * Return: as SCIStartSequence(); SCI_SEQ_RETRIABLE: transfers were lost, but the path is there:
 * start and transfer again.
 */
sci_sequence_status_t SCICheckSequence(sci_sequence_t sequence, unsigned int flags,
				       sci_error_t *error);

/* ---- Copies by this CPU ---- */

/**
 * Copy @size bytes from @memAddr to @remoteOffset of a map, of any alignment; the map must not be
 * unmapped meanwhile. No system call. Ends with SCIFlush().
 * 1, 2, 4 or 8 bytes at a multiple of their size in the segment are one store (with BLOCK_READ: one
 * load) of that width. Copies of a BAR are such stores and loads alone, of 8 bytes where they are
 * aligned, each byte once and in the order of addresses; of memory, more than 8 bytes are copied as
 * the C library's memcpy() does, in no promised order or width.
 * @sequence: NULL, or one of the map's. @flags: BLOCK_READ: from the map to @memAddr; ERROR_CHECK:
 * tell whether it arrived, and try again if that helps.
 * Errors: SCI_ERR_OUT_OF_RANGE; SCI_ERR_ACCESS: the map or a part of it is read-only;
 * SCI_ERR_NOT_CONNECTED: lost; SCI_ERR_TRANSFER_FAILED: with ERROR_CHECK, it got lost on the way.
 */
void SCIMemCpy(sci_sequence_t sequence, void *memAddr, sci_map_t remoteMap, size_t remoteOffset,
	       size_t size, unsigned int flags, sci_error_t *error);
/**
 * Choose one of a vendor's copy functions by its number: for programs that call it. Changes
 * nothing, for any number: SCIMemCpy() copies as it says. Needs no SCIInitialize(); thread-safe; no
 * errors.
 */
void SetSciMemCopyFunction(int index);
/** The same as it was in API 1.x: without a sequence. */
void SCIMemCopy(void *memAddr, sci_map_t remoteMap, unsigned int remoteOffset, unsigned int size,
		unsigned int flags, sci_error_t *error);
/**
 * Copy to an address of a map, which is not checked; by the same stores as SCIMemCpy(). Ends with
 * SCIFlush(). @flags: 0.
 */
void SCIMemWrite(void *memAddr, volatile void *remoteAddr, size_t size, unsigned int flags,
		 sci_error_t *error);
/**
 * Copy from map to map; the ranges must not overlap. @flags: 0. Errors: as SCIMemCpy();
 * SCI_ERR_TRANSFER_FAILED: a path failed meanwhile.
 */
void SCITransferBlock(sci_map_t sourceMap, size_t sourceOffset, sci_map_t destinationMap,
		      size_t destinationOffset, size_t size, unsigned int flags,
		      sci_error_t *error);
/**
 * The same without waiting, by a thread of the library; transfers of a program are made one after
 * the other, in the order of their start. Until it is over, unmapping either map is SCI_ERR_BUSY.
 * @block: set on success; ends when SCIWaitForBlockTransfer() has returned the result, by
 * SCIAbortBlockTransfer(), or after the callback.
 * @callback: with SCI_FLAG_USE_CALLBACK, called once, on the event thread, with SCI_ERR_OK or
 *   SCI_ERR_TRANSFER_FAILED: a path failed, or a segment was lost. Its result is of no effect.
 * @flags: USE_CALLBACK; BLOCK_READ: accepted, source and destination say it all.
 * Errors: as SCIMemCpy(); SCI_ERR_NOSPC.
 */
void SCITransferBlockAsync(sci_map_t sourceMap, unsigned int sourceOffset, sci_map_t destinationMap,
			   unsigned int destinationOffset, unsigned int size,
			   sci_block_transfer_t *block, sci_cb_block_transfer_t callback,
			   void *callbackArg, unsigned int flags, sci_error_t *error);
/**
 * Wait until a transfer without a callback is over; @block ends, unless it is SCI_ERR_TIMEOUT.
 * @timeout: ms. @flags: 0.
 * Errors: SCI_ERR_TIMEOUT; SCI_ERR_ILLEGAL_OPERATION: it has a callback; SCI_ERR_CANCELLED: it was
 * aborted, or another thread waited, too, and has the result; SCI_ERR_TRANSFER_FAILED.
 */
void SCIWaitForBlockTransfer(sci_block_transfer_t block, unsigned int timeout, unsigned int flags,
			     sci_error_t *error);
/**
 * Give a transfer up: what it did not copy yet, it will not, and no callback comes. @block ends.
 * @flags: 0. Errors: SCI_ERR_ILLEGAL_OPERATION: it is over.
 */
void SCIAbortBlockTransfer(sci_block_transfer_t block, unsigned int flags, sci_error_t *error);

/* ---- Barriers ---- */

/**
 * Push what this CPU wrote to mapped memory out; later stores arrive after it. @sequence: not
 * looked at; NULL is fine. Never fails; no system call. @flags: 0 or FLUSH_CPU_BUFFERS_ONLY.
 */
void SCIFlush(sci_sequence_t sequence, unsigned int flags);
/**
 * As SCIFlush(), and later loads are done after it. Never fails; no system call. @flags: not looked
 * at.
 * @sequence: stores through its map are waited for as by SCICheckSequence(); NULL or another
 * handle: only until they have left this CPU.
 */
void SCIStoreBarrier(sci_sequence_t sequence, unsigned int flags);
/** Later loads from mapped memory are not older than this call. @sequence: not looked at. */
void SCIFlushReadBuffers(sci_sequence_t sequence);
/**
 * Make memory and CPU caches agree; the machines served here are coherent, so it orders only.
 * @map: or NULL. @flags: SCI_FLAG_CACHE_FLUSH, SCI_FLAG_CACHE_INVALIDATE.
 */
void SCICacheSync(sci_map_t map, void *addr, size_t length, unsigned int flags, sci_error_t *error);

/* ---- Interrupts without data ---- */

/**
 * Make an interrupt that others can connect to and trigger, through one adapter. Its numbers have
 * nothing to do with those of data interrupts.
 * @interrupt: set to the caller's new handle; end it with SCIRemoveInterrupt().
 * @interruptNo: set to its number; with FIXED_INTNO it holds the number wanted.
 * @callback: with SCI_FLAG_USE_CALLBACK, called for triggers; the interrupt then cannot be waited
 *   for. Called a last time with SCI_ERR_NO_LINK_ACCESS if the interrupt is lost with its smartiod.
 * @flags: USE_CALLBACK; FIXED_INTNO; COUNTING_INT: every trigger counts, n of them serve n waits or
 *   calls of the callback (the count saturates, far away). Without it an interrupt is latched: any
 *   number of triggers since the last wait or call serve one. SHARED_INT: the number may have
 *   several owners, all with this flag, also in other processes of this host; each trigger reaches
 *   each of them (smartiod hands it on).
 * Errors: SCI_ERR_INTNO_USED: the fixed number is in use, and not by owners who share it; those of
 * adapter numbers.
 */
void SCICreateInterrupt(sci_desc_t sd, sci_local_interrupt_t *interrupt,
			unsigned int localAdapterNo, unsigned int *interruptNo,
			sci_cb_interrupt_t callback, void *callbackArg, unsigned int flags,
			sci_error_t *error);

/**
 * Remove it; who waits gets SCI_ERR_CANCELLED. When it returns, the callback does not run and will
 * not (unless it is called from that callback). @flags: 0.
 * Errors: SCI_ERR_BUSY: somebody is connected, and nobody shares the number; the handle stays
 * valid, try again.
 */
void SCIRemoveInterrupt(sci_local_interrupt_t interrupt, unsigned int flags, sci_error_t *error);

/**
 * Wait for a trigger; one that came while nobody waited counts. @flags: 0.
 * Errors: SCI_ERR_TIMEOUT; SCI_ERR_CANCELLED; SCI_ERR_ILLEGAL_OPERATION: it has a callback.
 */
void SCIWaitForInterrupt(sci_local_interrupt_t interrupt, unsigned int timeout, unsigned int flags,
			 sci_error_t *error);

/**
 * Connect to an interrupt of a node; returns at once. @timeout: not looked at.
 * @interrupt: set to the caller's new handle; end it with SCIDisconnectInterrupt().
 * @flags: COUNTING_INT: accepted; whether triggers count is the receiver's to say.
 * Errors: SCI_ERR_NO_SUCH_INTNO; else as SCIConnectSegment().
 */
void SCIConnectInterrupt(sci_desc_t sd, sci_remote_interrupt_t *interrupt, unsigned int nodeId,
			 unsigned int localAdapterNo, unsigned int interruptNo,
			 unsigned int timeout, unsigned int flags, sci_error_t *error);

/** What was triggered stays so. @flags: 0. */
void SCIDisconnectInterrupt(sci_remote_interrupt_t interrupt, unsigned int flags,
			    sci_error_t *error);

/**
 * Trigger it: one write to a descriptor, no smartiod. Needs nobody who waits, and never finds
 * anything full. @flags: 0. Errors: SCI_ERR_NOT_CONNECTED: the receiver is gone;
 * SCI_ERR_NO_LINK_ACCESS: the link is down now.
 */
void SCITriggerInterrupt(sci_remote_interrupt_t interrupt, unsigned int flags, sci_error_t *error);

/* ---- DMA queues: copies between segments by an engine, one transfer of a queue at a time ---- */

/**
 * Make a queue of an adapter's DMA engine, state SCI_DMAQUEUE_IDLE. Queues work side by side.
 * @dq: set to the caller's new handle; end it with SCIRemoveDMAQueue().
 * @maxEntries: of the 1.x calls, at least 1; no limit to a vector. @flags: 0; DMA_PHDMA:
 * SCI_ERR_FLAG_NOT_IMPLEMENTED.
 * Errors: those of adapter numbers; SCI_ERR_HW_NOSPC: the engine has no channel left;
 * SCI_ERR_DMA_NOT_AVAILABLE: this host's hardware has no engine.
 */
void SCICreateDMAQueue(sci_desc_t sd, sci_dma_queue_t *dq, unsigned int localAdapterNo,
		       unsigned int maxEntries, unsigned int flags, sci_error_t *error);

/**
 * When it returns, the queue's callback does not run and will not (unless it is called from that
 * callback). @flags: 0. Errors: SCI_ERR_ILLEGAL_OPERATION: the queue is SCI_DMAQUEUE_POSTED.
 */
void SCIRemoveDMAQueue(sci_dma_queue_t dq, unsigned int flags, sci_error_t *error);

/**
 * The state now: no lock while it stays what it was, and no system call. SCI_DMAQUEUE_POSTED is
 * left when what was copied is in place. SCI_DMAQUEUE_ERROR for a wrong handle, too.
 */
sci_dma_queue_state_t SCIDMAQueueState(sci_dma_queue_t dq);

/**
 * Copy @size bytes from a local segment to a remote one; returns at once, the queue is
 * SCI_DMAQUEUE_POSTED. No map is needed, and no alignment. While it is under way, removing or
 * disconnecting the segments is SCI_ERR_BUSY. A queue's first transfer with a segment asks
 * smartiod, those after it nobody.
 * @localSegment: prepared on the queue's adapter. @remoteSegment: connected through it, or of this
 *   node; or a BAR of a borrowed device (docs/memory-device.md): its memory.
 * @callback: with SCI_FLAG_USE_CALLBACK, called once the queue has left POSTED, with SCI_ERR_OK or
 *   SCI_ERR_TRANSFER_FAILED. It may start the queue again. What it returns is of no effect: each
 *   start brings its callback.
 * @flags: USE_CALLBACK; DMA_READ: from remote to local; DMA_WAIT: return when it is over;
 * DMA_GLOBAL, DMA_SYSDMA, DMA_ADAPTER: accepted, there is one kind of engine; BROADCAST: accepted.
 * Errors: SCI_ERR_ILLEGAL_OPERATION: the queue is POSTED, or holds what was enqueued;
 * SCI_ERR_OUT_OF_RANGE; SCI_ERR_SIZE_ALIGNMENT: size 0; SCI_ERR_SEGMENT_NOT_PREPARED;
 * SCI_ERR_SEGMENT_NOT_CONNECTED: lost, or connected through another adapter; SCI_ERR_ACCESS: of a
 * BAR: registers, doorbells, or another borrower's memory; SCI_ERR_NOT_SUPPORTED: to be read from
 * an exact multicast group; SCI_ERR_HW_NOSPC: no window left; with DMA_WAIT also
 * SCI_ERR_TRANSFER_FAILED, and SCI_ERR_CANCELLED: it was aborted.
 */
void SCIStartDmaTransfer(sci_dma_queue_t dq, sci_local_segment_t localSegment,
			 sci_remote_segment_t remoteSegment, size_t localOffset, size_t size,
			 size_t remoteOffset, sci_cb_dma_t callback, void *callbackArg,
			 unsigned int flags, sci_error_t *error);

/**
 * The same with @vecLength (1 to DIS_DMA_MAX_VECLEN) copies between the two segments, done in
 * order, as one transfer: the first that fails ends it. @disDmaVec: not kept; sizes may be 0, the
 * elements' own flags are not looked at. Errors: as SCIStartDmaTransfer(); SCI_ERR_MAX_ENTRIES: the
 * vector is too long; SCI_ERR_ILLEGAL_PARAMETER: it is empty.
 */
void SCIStartDmaTransferVec(sci_dma_queue_t dq, sci_local_segment_t localSegment,
			    sci_remote_segment_t remoteSegment, size_t vecLength,
			    dis_dma_vec_t *disDmaVec, sci_cb_dma_t callback, void *callbackArg,
			    unsigned int flags, sci_error_t *error);

/**
 * The same with @size bytes of the program's memory as the local side, of any kind and alignment.
 * They pass through memory of the queue, as large as its largest such transfer: what is sent is
 * taken at once and may be changed when the call returns; what is read is in place when the queue
 * has left POSTED, and nothing is after an abort.
 * @localAddress: with DMA_READ it must stay writable until the transfer is over.
 * Errors: as SCIStartDmaTransfer(); SCI_ERR_NOSPC: the host has not that much memory left.
 */
void SCIStartDmaTransferMem(sci_dma_queue_t dq, void *localAddress,
			    sci_remote_segment_t remoteSegment, size_t size, size_t remoteOffset,
			    sci_cb_dma_t callback, void *callbackArg, unsigned int flags,
			    sci_error_t *error);

/**
 * Wait until the queue is not POSTED; at once if it is not. @timeout: ms. @flags: those of starts
 * are accepted and not looked at. Return: the state. Errors: SCI_ERR_TIMEOUT;
 * SCI_ERR_ILLEGAL_OPERATION: the transfer under way has a callback.
 */
sci_dma_queue_state_t SCIWaitForDMAQueue(sci_dma_queue_t dq, unsigned int timeout,
					 unsigned int flags, sci_error_t *error);

/**
 * Give up the transfer under way: the queue becomes SCI_DMAQUEUE_ABORTED; what was copied stays
 * copied. What is enqueued is forgotten, with the same state. Else nothing changes. When it
 * returns, no byte moves, no callback of this queue runs and none will before the next start
 * (unless it is called from that callback). @flags: 0.
 */
void SCIAbortDMAQueue(sci_dma_queue_t dq, unsigned int flags, sci_error_t *error);

/* DMA queues as API 1.x has them: enqueue, post, wait, reset. */

/**
 * Add a copy to a queue that is SCI_DMAQUEUE_IDLE or GATHER, which makes it GATHER. Mind the order:
 * both offsets come before the size. The segments, any of them, are SCI_ERR_BUSY until the copy is
 * done or forgotten.
 * @flags: DMA_READ: this copy goes from remote to local; DMA_POST: SCIPostDMAQueue() then; with it
 *   DMA_WAIT: and wait until it is over; with both DMA_RESET: and SCIResetDMAQueue().
 * Return: the state. Errors: as SCIStartDmaTransfer(); SCI_ERR_ILLEGAL_OPERATION: POSTED, or not
 * reset since; SCI_ERR_MAX_ENTRIES: more than the queue was made for, or than 1,024.
 */
sci_dma_queue_state_t SCIEnqueueDMATransfer(sci_dma_queue_t dq, sci_local_segment_t localSegment,
					    sci_remote_segment_t remoteSegment,
					    unsigned int localOffset, unsigned int remoteOffset,
					    unsigned int size, unsigned int flags,
					    sci_error_t *error);

/**
 * Start all that is enqueued, as one transfer, in order. On an error it stays enqueued.
 * @callback: with SCI_FLAG_USE_CALLBACK, as in SCIStartDmaTransfer().
 * Errors: SCI_ERR_ILLEGAL_OPERATION: nothing is enqueued; else as SCIStartDmaTransfer().
 */
void SCIPostDMAQueue(sci_dma_queue_t dq, sci_cb_dma_t callback, void *callbackArg,
		     unsigned int flags, sci_error_t *error);

/**
 * Back to SCI_DMAQUEUE_IDLE; what is enqueued is forgotten. @flags: 0.
 * Errors: SCI_ERR_ILLEGAL_OPERATION: POSTED.
 */
void SCIResetDMAQueue(sci_dma_queue_t dq, unsigned int flags, sci_error_t *error);

/* Channels of an engine. Each queue has its own, whatever is said here. */

/**
 * Ask for a channel. There is no end of them: what is checked is that this program does not use a
 * number twice.
 * @channel: set to the caller's new handle; end it with SCIReturnDMAChannel().
 * @type: what kind of engine; all are served by the adapter's, but SCI_DMA_TYPE_TRANSPARENT:
 *   SCI_ERR_DMA_NOT_AVAILABLE. @channelId: a number, or SCI_DMA_CHANNEL_ID_DONTCARE.
 * @flags: DMA_CHANNEL_SHARED: others of this program may have the number, too, if they say the
 * same. Errors: SCI_ERR_BUSY: the number is in use; SCI_ERR_DMA_NOT_AVAILABLE; those of adapter
 * numbers.
 */
void SCIRequestDMAChannel(sci_desc_t sd, sci_dma_channel_t *channel, unsigned int adapterNo,
			  sci_dma_type_t type, unsigned int channelId, unsigned int flags,
			  sci_error_t *error);
/** Mind that there are no flags. */
void SCIReturnDMAChannel(sci_dma_channel_t channel, sci_error_t *error);
/**
 * Let a queue work through a channel: checked, and without effect. @flags: 0.
 * Errors: SCI_ERR_ILLEGAL_PARAMETER: they are of different adapters; SCI_ERR_ILLEGAL_OPERATION: the
 * queue is POSTED.
 */
void SCIAssignDMAChannel(sci_dma_channel_t channel, sci_dma_queue_t queue, unsigned int flags,
			 sci_error_t *error);
/** SCIPrepareSegment() on the channel's adapter. @flags: 0. */
void SCIPrepareLocalSegmentForDMA(sci_dma_channel_t channel, sci_local_segment_t segment,
				  unsigned int flags, sci_error_t *error);
/**
 * Nothing needs to be done for a remote segment, nor to be undone for any; checked. @flags: 0.
 * Errors: SCI_ERR_NOT_CONNECTED: lost.
 */
void SCIPrepareRemoteSegmentForDMA(sci_dma_channel_t channel, sci_remote_segment_t segment,
				   unsigned int flags, sci_error_t *error);
void SCIUnprepareLocalSegmentForDMA(sci_dma_channel_t channel, sci_local_segment_t segment,
				    unsigned int flags, sci_error_t *error);
void SCIUnprepareRemoteSegmentForDMA(sci_dma_channel_t channel, sci_remote_segment_t segment,
				     unsigned int flags, sci_error_t *error);

/* ---- Data interrupts: messages, kept in order per sender, taken one at a time ---- */

/**
 * Make an interrupt that others can connect to and send messages to, through one adapter, or all of
 * them (SMARTIO_ALL_ADAPTERS of smartio/ext.h).
 * @interrupt: set to the caller's new handle; end it with SCIRemoveDataInterrupt().
 * @interruptNo: set to its number; with FIXED_INTNO it holds the number wanted.
 * @callback: with SCI_FLAG_USE_CALLBACK, called once per message; the interrupt then cannot be
 *   waited for. Called a last time with no message and SCI_ERR_NO_LINK_ACCESS if the interrupt is
 *   lost with its smartiod.
 * @flags: USE_CALLBACK; FIXED_INTNO; BROADCAST: messages to all nodes come here, too.
 * Errors: SCI_ERR_INTNO_USED: the fixed number is in use; those of adapter numbers.
 */
void SCICreateDataInterrupt(sci_desc_t sd, sci_local_data_interrupt_t *interrupt,
			    unsigned int localAdapterNo, unsigned int *interruptNo,
			    sci_cb_data_interrupt_t callback, void *callbackArg, unsigned int flags,
			    sci_error_t *error);

/**
 * Remove it; who waits gets SCI_ERR_CANCELLED, messages not taken are lost, senders get
 * SCI_ERR_NOT_CONNECTED from then on.
 * When it returns, the callback does not run and will not (unless it is called from that
 * callback). @flags: 0.
 */
void SCIRemoveDataInterrupt(sci_local_data_interrupt_t interrupt, unsigned int flags,
			    sci_error_t *error);

/**
 * Take the next message, or wait for one. @length: bytes of @data; set to the message's. @flags: 0.
 * Errors: SCI_ERR_TIMEOUT; SCI_ERR_CANCELLED; SCI_ERR_ILLEGAL_OPERATION: it has a callback;
 * SCI_ERR_OUT_OF_RANGE: the message is longer than *@length: it stays, *@length is set to what it
 * needs.
 */
void SCIWaitForDataInterrupt(sci_local_data_interrupt_t interrupt, void *data, unsigned int *length,
			     unsigned int timeout, unsigned int flags, sci_error_t *error);

/**
 * Connect to a data interrupt of a node; returns at once. @timeout: not looked at.
 * @interrupt: set to the caller's new handle; end it with SCIDisconnectDataInterrupt().
 * @flags: BROADCAST: @nodeId is DIS_BROADCAST_NODEID_GROUP_ALL, and the connection is to every node
 *   (this one, too) that now has a data interrupt of this number made with BROADCAST.
 * Errors: SCI_ERR_NO_SUCH_INTNO; else as SCIConnectSegment().
 */
void SCIConnectDataInterrupt(sci_desc_t sd, sci_remote_data_interrupt_t *interrupt,
			     unsigned int nodeId, unsigned int localAdapterNo,
			     unsigned int interruptNo, unsigned int timeout, unsigned int flags,
			     sci_error_t *error);

/** What was sent is still delivered. @flags: 0. */
void SCIDisconnectDataInterrupt(sci_remote_data_interrupt_t interrupt, unsigned int flags,
				sci_error_t *error);

/**
 * Send a message. One write to a descriptor, no smartiod. Threads that use one handle take turns.
 * Needs nobody who waits. @length: up to 8,192 bytes; 0 is a message. To all nodes: each gets it,
 * or none; a write for each. @flags: 0; BROADCAST: accepted for a connection made with it. Errors:
 * SCI_ERR_NOSPC: the receiver's queue of this handle is full (about 64 KiB), nothing was sent;
 * SCI_ERR_OUT_OF_RANGE: too long; SCI_ERR_NOT_CONNECTED: the receiver removed the interrupt or is
 * gone. Messages sent before that was known went nowhere; SCI_ERR_NO_LINK_ACCESS: the link is down
 * now, nothing was sent.
 */
void SCITriggerDataInterrupt(sci_remote_data_interrupt_t interrupt, void *data, unsigned int length,
			     unsigned int flags, sci_error_t *error);

/* ---- SmartIO: devices anywhere in the cluster ---- */

/**
 * Ids of the devices in the cluster, ascending, at most @maxCount of them. @flags: 0.
 * @filter: only devices that agree with its fields that are not zero; NULL: all.
 * Return: how many were written.
 */
size_t SCIGetDeviceList(sci_desc_t sd, unsigned int *fdids, size_t maxCount,
			sci_smartio_device_info_t *filter, unsigned int flags, sci_error_t *error);

/** The id of a borrowed device; 0 for a wrong handle. No call to smartiod. */
unsigned int SCIGetFabricDeviceId(sci_smartio_device_t device);

/**
 * Borrow a device. Many may, on many hosts, unless one holds it exclusively.
 * @device: set to the caller's new handle; end it with SCIReturnDevice(). @flags:
 * SCI_FLAG_EXCLUSIVE; SCI_FLAG_PCIE_REQUESTER_GLOBAL: accepted.
 * Errors: SCI_ERR_NO_SUCH_FDID; SCI_ERR_NOT_AVAILABLE: somebody holds it exclusively, or exclusive
 * was asked for and somebody holds it, or queues of another device lie in its memory
 * (smartio_device_hold()), of a program that has ended; SCI_ERR_ACCESS: the cluster's file does not
 * allow it (docs/policy.md), now or later; SCI_ERR_NO_LINK_ACCESS, SCI_ERR_NODE_NOT_RESPONDING.
 */
void SCIBorrowDevice(sci_desc_t sd, sci_smartio_device_t *device, unsigned int fdid,
		     unsigned int flags, sci_error_t *error);

/** Errors: SCI_ERR_BUSY: segments of it are connected, or segments are mapped for it. @flags: 0. */
void SCIReturnDevice(sci_smartio_device_t device, unsigned int flags, sci_error_t *error);

/**
 * Let others borrow a device that we hold exclusively. We keep its registers. @flags: 0.
 * Errors: SCI_ERR_ILLEGAL_OPERATION: not held exclusively; SCI_ERR_BUSY: memory is mapped for it at
 * addresses of our choice (smartio_map_segment_at()).
 */
void SCIReleaseExclusiveBorrow(sci_smartio_device_t device, unsigned int flags, sci_error_t *error);

/**
 * Connect to a segment of a device, to be used like any remote segment.
 * @segmentId: of SCI_MEMTYPE_BAR the BAR's number, else what SCICreateDeviceSegment() was given.
 * @segment: set to the caller's new handle; end it with SCIDisconnectSegment(). @flags:
 * USE_CALLBACK.
 * Errors: SCI_ERR_NO_SUCH_SEGMENT; SCI_ERR_NOT_CONNECTED: the device is lost.
 */
void SCIConnectDeviceSegment(sci_smartio_device_t device, sci_remote_segment_t *segment,
			     unsigned int segmentId, unsigned int memtype,
			     sci_cb_remote_segment_t callback, void *callbackArg,
			     unsigned int flags, sci_error_t *error);

/**
 * Make memory for a device, zeroed, placed with the lender or here as @accessHints ask for
 * (SCI_MEMACCESS_*). Connect to it afterwards. It ends with its last connection, or when its maker
 * returns the device; the last may be another's, who came before you: then make it again.
 * @memtype: SCI_MEMTYPE_PRIVATE: ids of this borrow; SCI_MEMTYPE_SHARED: ids of the device, for
 * every borrower. @flags: DEVICE_SIDE_ONLY, LOCAL_ONLY, DEVICE_PREFER_BANDWIDTH,
 * HOST_PREFER_BANDWIDTH.
 * Errors: SCI_ERR_SEGMENTID_USED; SCI_ERR_SIZE_ALIGNMENT: size 0; SCI_ERR_NOSPC; SCI_ERR_HW_NOSPC.
 */
void SCICreateDeviceSegment(sci_smartio_device_t device, unsigned int segmentId, size_t size,
			    unsigned int memtype, unsigned int accessHints, unsigned int flags,
			    sci_error_t *error);

/**
 * Let a device reach [@offset, @offset + @size) of a segment that is available on the adapter.
 * @ioaddr: set to where the range begins, as the device addresses it; the range is contiguous.
 * A segment may be mapped several times for a device; the unmap call ends all of these. @flags: 0.
 * Errors: SCI_ERR_OUT_OF_RANGE; SCI_ERR_SIZE_ALIGNMENT: size 0; SCI_ERR_SEGMENT_NOT_PREPARED: not
 * prepared or not available on that adapter; SCI_ERR_HW_NOSPC: window or requester table full;
 * SCI_ERR_NOT_CONNECTED: the device is lost.
 */
void SCIMapLocalSegmentForDevice(sci_local_segment_t segment, unsigned int localAdapterNo,
				 sci_smartio_device_t device, sci_ioaddr_t *ioaddr, size_t offset,
				 size_t size, unsigned int flags, sci_error_t *error);
/**
 * Errors: SCI_ERR_ILLEGAL_OPERATION: not mapped for that device through that adapter. @flags: 0.
 */
void SCIUnmapLocalSegmentForDevice(sci_local_segment_t segment, unsigned int localAdapterNo,
				   sci_smartio_device_t device, unsigned int flags,
				   sci_error_t *error);
/**
 * The same for a connected segment: of any host, a device segment, or another borrowed device's BAR
 * (docs/memory-device.md). Of a BAR: one kind of pages, which the caller may write: its registers,
 * doorbells, memory. What is mapped is cut, and the device's accesses fault, when a reset renews
 * the doorbells or the other device is lost: unmap, and map again.
 * Errors, of a BAR: SCI_ERR_ACCESS: registers of another holder, or the interrupt table;
 * SCI_ERR_NOT_SUPPORTED: the device's own; or on a real host, unless both devices are this host's
 * and an IOMMU translates for the one that has the map; SCI_ERR_NOT_CONNECTED: lost.
 */
void SCIMapRemoteSegmentForDevice(sci_remote_segment_t segment, sci_smartio_device_t device,
				  sci_ioaddr_t *ioaddr, size_t offset, size_t size,
				  unsigned int flags, sci_error_t *error);
void SCIUnmapRemoteSegmentForDevice(sci_remote_segment_t segment, sci_smartio_device_t device,
				    unsigned int flags, sci_error_t *error);

/* ---- SmartIO: generations before the current one ---- */

/*
 * In sisci_api_gen3.h: SCIMapLocalSegmentForDevice() with 7 arguments (no size) and
 * SCIMapRemoteSegmentForDevice() with 6. Borrowing, returning and the unmap calls have not changed.
 */

/**
 * Connect to memory of a device, as SCIConnectDeviceSegment() does today.
 * @flags: one of BAR (@segmentNo: its number), PRIVATE and SHARED. @size: bytes of PRIVATE and
 * SHARED memory that does not exist yet and is made; 0: 1 MiB. What exists is as large as it is:
 * SCIGetRemoteSegmentSize(). Errors: those of SCICreateDeviceSegment() but SCI_ERR_SEGMENTID_USED,
 * and of SCIConnectDeviceSegment().
 */
void SCIConnectDeviceMemory(sci_desc_t sd, sci_remote_segment_t *segment,
			    unsigned int localAdapterNo, sci_device_t device,
			    unsigned int segmentNo, size_t size, unsigned int flags,
			    sci_error_t *error);
/** SCIMapLocalSegmentForDevice() of the whole segment. @flags: 0. */
void SCIMapSegmentForDevice(sci_local_segment_t segment, sci_device_t device,
			    unsigned int localAdapterNo, sci_ioaddr_t *ioaddr, unsigned int flags,
			    sci_error_t *error);
/** SCIUnmapLocalSegmentForDevice(). @flags: 0. */
void SCIUnmapSegmentForDevice(sci_local_segment_t segment, sci_device_t device,
			      unsigned int localAdapterNo, unsigned int flags, sci_error_t *error);

/* ---- Not on PCIe, or not here (docs/sisci-limits.md) ---- */

/**
 * These exist so that programs link. Each does nothing and gives SCI_ERR_NOT_SUPPORTED; what they
 * return is 0 (SCIphDmaStart(): SCI_DMAQUEUE_ERROR), what they would set stays as it is.
 *
 * SCI's global address space.
 */
void SCIConnectSCISpace(sci_desc_t sd, unsigned int localAdapterNo, sci_remote_segment_t *segment,
			sci_address_t address, size_t size, unsigned int flags, sci_error_t *error);
/** Interrupts that a store to a segment triggers. */
void SCIRegisterInterruptFlag(unsigned int localAdapterNo, sci_local_interrupt_t *interrupt,
			      sci_local_segment_t segment, unsigned int offset,
			      sci_cb_interrupt_t callback, void *callbackArg, unsigned int flags,
			      sci_error_t *error);
void SCIEnableConditionalInterrupt(sci_local_interrupt_t interrupt, unsigned int flags,
				   sci_error_t *error);
void SCIDisableConditionalInterrupt(sci_local_interrupt_t interrupt, unsigned int flags,
				    sci_error_t *error);
void SCIGetConditionalInterruptTrigCounter(sci_local_interrupt_t interrupt,
					   unsigned int *interruptTrigCounter, unsigned int flags,
					   sci_error_t *error);
/** Control and status registers of SCI adapters. */
unsigned int SCIGetCSRRegister(sci_desc_t sd, unsigned int localAdapterNo, unsigned int SCINodeId,
			       unsigned int CSROffset, unsigned int flags, sci_error_t *error);
void SCISetCSRRegister(sci_desc_t sd, unsigned int localAdapterNo, unsigned int SCINodeId,
		       unsigned int CSROffset, unsigned int CSRValue, unsigned int flags,
		       sci_error_t *error);
unsigned int SCIGetLocalCSR(sci_desc_t sd, unsigned int localAdapterNo, unsigned int CSROffset,
			    unsigned int flags, sci_error_t *error);
void SCISetLocalCSR(sci_desc_t sd, unsigned int localAdapterNo, unsigned int CSROffset,
		    unsigned int CSRValue, unsigned int flags, sci_error_t *error);
/** DMA to and from physical addresses. */
void SCIphDmaEnqueue(sci_dma_queue_t dmaqueue, unsigned int size, sci_ioaddr_t localBusAddr,
		     unsigned int remote_nodeid, unsigned int remote_highaddr,
		     unsigned int remote_lowaddr, unsigned int flags, sci_error_t *error);
sci_dma_queue_state_t SCIphDmaStart(sci_dma_queue_t dmaqueue, sci_cb_dma_t callback,
				    void *callbackArg, unsigned int flags, sci_error_t *error);

/**
 * Let a device of this host send through an adapter's windows. Nothing needs to be done: smartiod
 * adds a device when it first maps something for it. Checked, and otherwise without effect.
 * @bus, @devfn: 8 bits each. @flags: PCIE_REQUESTER_GLOBAL; 0 to unregister. Errors: those of
 * adapter numbers.
 */
void SCIRegisterPCIeRequester(sci_desc_t sd, unsigned int localAdapterNo, unsigned int bus,
			      unsigned int devfn, unsigned int flags, sci_error_t *error);
void SCIUnregisterPCIeRequester(sci_desc_t sd, unsigned int localAdapterNo, unsigned int bus,
				unsigned int devfn, unsigned int flags, sci_error_t *error);

#ifdef __cplusplus
}
#endif

#include "sisci_api_gen3.h"
#endif
