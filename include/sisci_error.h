/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * Error codes of the SISCI API.
 *
 * Every code but SCI_ERR_OK has bit 30 set. Codes are enumerators, so they may stand in case labels
 * and static initialisers. SCI_ERR_NO_SUCH_INTNO equals SCI_ERR_NO_SUCH_SEGMENT, and
 * SCI_ERR_EWOULD_BLOCK equals SCI_ERR_REMOTE_BUSY; all other codes differ. Numbers that no public
 * source gives (from SCI_ERR_NOT_SUPPORTED and from SCI_ERR_SEMAPHORE_COUNT_EXCEEDED on) are this
 * implementation's own. SCIGetErrorString() turns a code into text.
 */
#ifndef SISCI_ERROR_H
#define SISCI_ERROR_H

#define SCI_ERR_MASK 0x40000000
#define SISCI_ERR_MASK SCI_ERR_MASK
#define SCI_ERR_REMOTE_MASK 0x01

typedef enum {
	SCI_ERR_OK = 0x000,
	/** The object still has users: mapped, connected, children open. Passes once they leave. */
	SCI_ERR_BUSY = (0x900 | SCI_ERR_MASK),
	/** The flag is legal here, but its feature is missing. */
	SCI_ERR_FLAG_NOT_IMPLEMENTED = (0x901 | SCI_ERR_MASK),
	/** The flag bit is not legal for this call. */
	SCI_ERR_ILLEGAL_FLAG = (0x902 | SCI_ERR_MASK),
	/** Out of memory or descriptors; a data interrupt's queue is full. */
	SCI_ERR_NOSPC = (0x904 | SCI_ERR_MASK),
	/** Out of resources of the library. */
	SCI_ERR_API_NOSPC = (0x905 | SCI_ERR_MASK),
	/** Out of hardware resources: window space, table entries, device memory. */
	SCI_ERR_HW_NOSPC = (0x906 | SCI_ERR_MASK),
	/** The function is not implemented. */
	SCI_ERR_NOT_IMPLEMENTED = (0x907 | SCI_ERR_MASK),
	/** Adapter number outside the legal range. */
	SCI_ERR_ILLEGAL_ADAPTERNO = (0x908 | SCI_ERR_MASK),
	/** Legal adapter number, but this host has no such adapter. */
	SCI_ERR_NO_SUCH_ADAPTERNO = (0x909 | SCI_ERR_MASK),
	/** The time of a wait is over. */
	SCI_ERR_TIMEOUT = (0x90A | SCI_ERR_MASK),
	/** Offset and size go beyond the segment, the map or a limit. */
	SCI_ERR_OUT_OF_RANGE = (0x90B | SCI_ERR_MASK),
	/** No available segment with this id on that node. */
	SCI_ERR_NO_SUCH_SEGMENT = (0x90C | SCI_ERR_MASK),
	/** No interrupt with this number on that node. */
	SCI_ERR_NO_SUCH_INTNO = SCI_ERR_NO_SUCH_SEGMENT,
	/** Not a node id. */
	SCI_ERR_ILLEGAL_NODEID = (0x90D | SCI_ERR_MASK),
	/** The remote side refused. */
	SCI_ERR_CONNECTION_REFUSED = (0x90E | SCI_ERR_MASK),
	/** The remote segment is not connected any more. */
	SCI_ERR_SEGMENT_NOT_CONNECTED = (0x90F | SCI_ERR_MASK),
	/** The size is 0 or not aligned. */
	SCI_ERR_SIZE_ALIGNMENT = (0x910 | SCI_ERR_MASK),
	/** The offset is not aligned. */
	SCI_ERR_OFFSET_ALIGNMENT = (0x911 | SCI_ERR_MASK),
	/** A parameter is wrong; also a handle that is NULL, of another kind, or removed. */
	SCI_ERR_ILLEGAL_PARAMETER = (0x912 | SCI_ERR_MASK),
	/** Queue or table full. */
	SCI_ERR_MAX_ENTRIES = (0x913 | SCI_ERR_MASK),
	/** The local segment is not prepared on this adapter. */
	SCI_ERR_SEGMENT_NOT_PREPARED = (0x914 | SCI_ERR_MASK),
	/** A memory address that cannot be used. */
	SCI_ERR_ILLEGAL_ADDRESS = (0x915 | SCI_ERR_MASK),
	/** Not allowed in this state. */
	SCI_ERR_ILLEGAL_OPERATION = (0x916 | SCI_ERR_MASK),
	/** Unknown query command or subcommand. */
	SCI_ERR_ILLEGAL_QUERY = (0x917 | SCI_ERR_MASK),
	/** The segment id is in use on this node (or for this device). */
	SCI_ERR_SEGMENTID_USED = (0x918 | SCI_ERR_MASK),
	/** The operating system failed. */
	SCI_ERR_SYSTEM = (0x919 | SCI_ERR_MASK),
	/** A wait ended because the resource was removed; its handle is dead. */
	SCI_ERR_CANCELLED = (0x91A | SCI_ERR_MASK),
	/** No connection to the remote host. */
	SCI_ERR_NOT_CONNECTED = (0x91B | SCI_ERR_MASK),
	/** Not available; of a device: somebody holds it exclusively. */
	SCI_ERR_NOT_AVAILABLE = (0x91C | SCI_ERR_MASK),
	/** Library, smartiod or peer are of versions that do not understand each other. */
	SCI_ERR_INCONSISTENT_VERSIONS = (0x91D | SCI_ERR_MASK),
	/** Enabling a conditional interrupt raced with a trigger. */
	SCI_ERR_COND_INT_RACE_PROBLEM = (0x91E | SCI_ERR_MASK),
	/** A counter overflowed. */
	SCI_ERR_OVERFLOW = (0x91F | SCI_ERR_MASK),
	/** SCIInitialize() has not succeeded in this process, or this host has no smartiod. */
	SCI_ERR_NOT_INITIALIZED = (0x920 | SCI_ERR_MASK),
	/** No access. */
	SCI_ERR_ACCESS = (0x921 | SCI_ERR_MASK),
	/** The request is not supported here. */
	SCI_ERR_NOT_SUPPORTED = (0x922 | SCI_ERR_MASK),
	/** The function is deprecated. */
	SCI_ERR_DEPRECATED = (0x923 | SCI_ERR_MASK),
	/** This DMA mode is not available. */
	SCI_ERR_DMA_NOT_AVAILABLE = (0x924 | SCI_ERR_MASK),
	/** This DMA mode is disabled. */
	SCI_ERR_DMA_DISABLED = (0x925 | SCI_ERR_MASK),
	/** No device with this fabric device id. */
	SCI_ERR_NO_SUCH_FDID = (0x926 | SCI_ERR_MASK),
	/** The interrupt number is in use on this node. */
	SCI_ERR_INTNO_USED = (0x927 | SCI_ERR_MASK),
	/** No such node in the cluster, or it does not answer though links look fine. */
	SCI_ERR_NO_SUCH_NODEID = (0xA00 | SCI_ERR_MASK),
	/** The node does not respond. */
	SCI_ERR_NODE_NOT_RESPONDING = (0xA02 | SCI_ERR_MASK),
	/** The remote link or a switch port is down. */
	SCI_ERR_NO_REMOTE_LINK_ACCESS = (0xA04 | SCI_ERR_MASK),
	/** The local link is down, or this host's smartiod is gone. */
	SCI_ERR_NO_LINK_ACCESS = (0xA05 | SCI_ERR_MASK),
	/** A data transfer failed. */
	SCI_ERR_TRANSFER_FAILED = (0xA06 | SCI_ERR_MASK),
	/** The remote host is busy. */
	SCI_ERR_REMOTE_BUSY = (0xB00 | SCI_ERR_MASK),
	SCI_ERR_EWOULD_BLOCK = SCI_ERR_REMOTE_BUSY,
	SCI_ERR_SEMAPHORE_COUNT_EXCEEDED = (0xB01 | SCI_ERR_MASK),
	SCI_ERR_IRQL_ILLEGAL = (0xB02 | SCI_ERR_MASK),
	SCI_ERR_LOCAL_BUSY = (0xB03 | SCI_ERR_MASK),
	SCI_ERR_ALL_BUSY = (0xB04 | SCI_ERR_MASK)
} sci_error_t;

#endif
