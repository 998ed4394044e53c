/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers that programs and libraries built elsewhere have in them. Most of this file is compiled
 * and does nothing: each number that the API's facts give is asserted, and of those that were
 * chosen here, what programs rely on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sisci_api.h"

#define IS(name, value) _Static_assert((name) == (value), #name " is not " #value)

/* ---- error codes ---- */

/* Name and number without the mask; no two are the same. */
#define KNOWN(X)                                                                                   \
	X(BUSY, 0x900)                                                                             \
	X(FLAG_NOT_IMPLEMENTED, 0x901)                                                             \
	X(ILLEGAL_FLAG, 0x902)                                                                     \
	X(NOSPC, 0x904)                                                                            \
	X(API_NOSPC, 0x905)                                                                        \
	X(HW_NOSPC, 0x906)                                                                         \
	X(NOT_IMPLEMENTED, 0x907)                                                                  \
	X(ILLEGAL_ADAPTERNO, 0x908)                                                                \
	X(NO_SUCH_ADAPTERNO, 0x909)                                                                \
	X(TIMEOUT, 0x90a)                                                                          \
	X(OUT_OF_RANGE, 0x90b)                                                                     \
	X(NO_SUCH_SEGMENT, 0x90c)                                                                  \
	X(ILLEGAL_NODEID, 0x90d)                                                                   \
	X(CONNECTION_REFUSED, 0x90e)                                                               \
	X(SEGMENT_NOT_CONNECTED, 0x90f)                                                            \
	X(SIZE_ALIGNMENT, 0x910)                                                                   \
	X(OFFSET_ALIGNMENT, 0x911)                                                                 \
	X(ILLEGAL_PARAMETER, 0x912)                                                                \
	X(MAX_ENTRIES, 0x913)                                                                      \
	X(SEGMENT_NOT_PREPARED, 0x914)                                                             \
	X(ILLEGAL_ADDRESS, 0x915)                                                                  \
	X(ILLEGAL_OPERATION, 0x916)                                                                \
	X(ILLEGAL_QUERY, 0x917)                                                                    \
	X(SEGMENTID_USED, 0x918)                                                                   \
	X(SYSTEM, 0x919)                                                                           \
	X(CANCELLED, 0x91a)                                                                        \
	X(NOT_CONNECTED, 0x91b)                                                                    \
	X(NOT_AVAILABLE, 0x91c)                                                                    \
	X(INCONSISTENT_VERSIONS, 0x91d)                                                            \
	X(COND_INT_RACE_PROBLEM, 0x91e)                                                            \
	X(OVERFLOW, 0x91f)                                                                         \
	X(NOT_INITIALIZED, 0x920)                                                                  \
	X(ACCESS, 0x921)                                                                           \
	X(NO_SUCH_NODEID, 0xa00)                                                                   \
	X(NODE_NOT_RESPONDING, 0xa02)                                                              \
	X(NO_REMOTE_LINK_ACCESS, 0xa04)                                                            \
	X(NO_LINK_ACCESS, 0xa05)                                                                   \
	X(TRANSFER_FAILED, 0xa06)                                                                  \
	X(REMOTE_BUSY, 0xb00)
/* Nobody tells their numbers. */
#define CHOSEN(X)                                                                                  \
	X(NOT_SUPPORTED)                                                                           \
	X(DEPRECATED)                                                                              \
	X(DMA_NOT_AVAILABLE)                                                                       \
	X(DMA_DISABLED)                                                                            \
	X(SEMAPHORE_COUNT_EXCEEDED)                                                                \
	X(IRQL_ILLEGAL)                                                                            \
	X(LOCAL_BUSY)                                                                              \
	X(ALL_BUSY)                                                                                \
	X(NO_SUCH_FDID)                                                                            \
	X(INTNO_USED)

IS(SCI_ERR_OK, 0);
IS(SCI_ERR_MASK, 0x40000000);
IS(SISCI_ERR_MASK, 0x40000000);
IS(SCI_ERR_REMOTE_MASK, 1);
IS(SCI_ERR_NO_SUCH_INTNO, SCI_ERR_NO_SUCH_SEGMENT);
IS(SCI_ERR_EWOULD_BLOCK, SCI_ERR_REMOTE_BUSY);
#define X(name, number) IS(SCI_ERR_##name, (number) | SCI_ERR_MASK);
KNOWN(X)
#undef X
#define X(name)                                                                                    \
	_Static_assert((SCI_ERR_##name & ~0xfff) == SCI_ERR_MASK, #name " is no code of SISCI");
CHOSEN(X)
#undef X

/*
 * Two codes of one number would be two labels of one number, which is refused; -Wswitch-enum tells
 * of a code that stands in neither list. NULL: none.
 */
static const char *name_of(sci_error_t code)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch-enum"
	switch (code) {
	case SCI_ERR_OK:
		return "OK";
#define X(name, number)                                                                            \
	case SCI_ERR_##name:                                                                       \
		return #name;
		KNOWN(X)
#undef X
#define X(name)                                                                                    \
	case SCI_ERR_##name:                                                                       \
		return #name;
		CHOSEN(X)
#undef X
	}
#pragma GCC diagnostic pop
	return NULL;
}

/* ---- flags ---- */

IS(SCI_FLAG_USE_CALLBACK, 0x1);
IS(SCI_FLAG_EMPTY, 0x2);
IS(SCI_FLAG_PRIVATE, 0x4);
IS(SCI_FLAG_DMA_SOURCE_ONLY, 0x8);
IS(SCI_FLAG_PHYSICAL, 0x1000);
IS(SCI_FLAG_CUDA_BUFFER, 0x2000);
IS(SCI_FLAG_SCIF_BUFFER, 0x4000);
IS(SCI_FLAG_BROADCAST, 0x40000);
IS(SCI_FLAG_ALLOW_UNICAST, 0x80);
IS(SCI_FLAG_AUTO_ID, 0x20000000);
IS(SCI_FLAG_DMA_GLOBAL, 0x40);
IS(SCI_FLAG_FORCE_REMOVE, 0x20);
IS(SCI_FLAG_LOCK_USER_MEM, 0x400);
IS(SCI_FLAG_SHARE_EXTERNAL, 0x40);
IS(SCI_FLAG_THREAD_SAFE, 0x1);
/* of maps */
IS(SCI_FLAG_FIXED_MAP_ADDR, 0x1);
IS(SCI_FLAG_READONLY_MAP, 0x2);
IS(SCI_FLAG_LOCK_OPERATION, 0x4);
IS(SCI_FLAG_CONDITIONAL_INTERRUPT_MAP, 0x8);
IS(SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP, 0x10);
IS(SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP, 0x20);
IS(SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP, 0x40);
IS(SCI_FLAG_IO_MAP_IOSPACE, 0x80);
IS(SCI_FLAG_DMOVE_MAP, 0x100);
IS(SCI_FLAG_WRITES_DISABLE_GATHER_MAP, 0x200);
IS(SCI_FLAG_DISABLE_128_BYTES_PACKETS, 0x400);
IS(SCI_FLAG_NO_MEMORY_LOOPBACK, 0x800);
IS(SCI_FLAG_NO_MEMORY_LOOPBACK_MAP, 0x800);
IS(SCI_FLAG_SHARED_MAP, 0x2000);
IS(SCI_FLAG_WRITE_BACK_CACHE_MAP, 0x08000000);
/* of sequences and copies */
IS(SCI_FLAG_NO_FLUSH, 1);
IS(SCI_FLAG_NO_STORE_BARRIER, 2);
IS(SCI_FLAG_CACHE_FLUSH, 0x00100000);
IS(SCI_FLAG_CACHE_INVALIDATE, 0x00200000);
IS(FLUSH_CPU_BUFFERS_ONLY, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
/* of interrupts */
IS(SCI_FLAG_FIXED_INTNO, 0x2);
IS(SCI_FLAG_SHARED_INT, 0x4);
IS(SCI_FLAG_CONDITIONAL_INTERRUPT, 0x8);
IS(SCI_FLAG_COUNTING_INT, 0x20);
/* of DMA */
IS(SCI_FLAG_DMA_POST, 0x2);
IS(SCI_FLAG_DMA_WAIT, 0x4);
IS(SCI_FLAG_DMA_RESET, 0x8);
IS(SCI_FLAG_DMA_READ, 0x10);
IS(SCI_FLAG_DMA_PHDMA, 0x20);
IS(SCI_FLAG_DMA_SYSDMA, 0x100);
IS(SCI_FLAG_DMA_USER_MEM, 0x200);
IS(SCI_FLAG_DMA_ADAPTER, 0x800);
IS(SCI_FLAG_DMA_CHANNEL_SHARED, 0x1);
/* of devices */
IS(SCI_FLAG_PCIE_REQUESTER_GLOBAL, 0x1);
IS(SCI_FLAG_EXCLUSIVE, 0x01000000);
IS(SCI_FLAG_DEVICE_SIDE_ONLY, 0x02001000);
IS(SCI_FLAG_LOCAL_ONLY, 0x02002000);
IS(SCI_FLAG_DEVICE_PREFER_BANDWIDTH, 0x04000001);
IS(SCI_FLAG_HOST_PREFER_BANDWIDTH, 0x04000002);
IS(SCI_FLAG_SPECIFY_PATH, 0x10000000);
IS(SCI_FLAG_SPECIFY_SLOT, 0x20000000);
IS(SCI_MEMTYPE_BAR, 1);
IS(SCI_MEMTYPE_PRIVATE, 2);
IS(SCI_MEMTYPE_SHARED, 4);
IS(SCI_MEMACCESS_DEVICE_READ, 1);
IS(SCI_MEMACCESS_DEVICE_WRITE, 2);
IS(SCI_MEMACCESS_HOST_READ, 4);
IS(SCI_MEMACCESS_HOST_WRITE, 8);
IS(SCI_MEMACCESS_MULTIHOST_READ, 0x14);
IS(SCI_MEMACCESS_MULTIHOST_WRITE, 0x18);
IS(SCI_MEMACCESS_P2P_READ, 0x21);
IS(SCI_MEMACCESS_P2P_WRITE, 0x22);

/* Chosen: flags that are given together, or tell one thing from another, have bits of their own. */
#define APART(a, b) _Static_assert(((a) & (b)) == 0 && (a) && (b), #a " and " #b " share a bit")
APART(SCI_FLAG_FORCE_DISCONNECT, SCI_FLAG_NOTIFY);
APART(SCI_FLAG_ERROR_CHECK, SCI_FLAG_BLOCK_READ);
APART(SCI_FLAG_ASYNCHRONOUS_CONNECT, SCI_FLAG_USE_CALLBACK | SCI_FLAG_BROADCAST);
APART(SCI_FLAG_BAR, SCI_FLAG_SHARED | SCI_FLAG_PRIVATE);
APART(SCI_FLAG_SHARED, SCI_FLAG_PRIVATE);
APART(SCI_FLAG_FAST_BARRIER, SCI_FLAG_NO_FLUSH | SCI_FLAG_NO_STORE_BARRIER);

/* ---- other constants and enumerators ---- */

IS(SCI_INFINITE_TIMEOUT, 0xffffffff);
IS(DIS_BROADCAST_NODEID_GROUP_ALL, 252);
IS(SCI_DMA_CHANNEL_ID_DONTCARE, 0xffffffff);
/* No node: those are below 256, programs pack them into 8 bits. */
_Static_assert(SCI_LOCAL_HOST > 255, "SCI_LOCAL_HOST is a node's id");
/* Programs divide sizes by it, and put as many elements on their stack. */
_Static_assert((DIS_DMA_MAX_VECLEN & (DIS_DMA_MAX_VECLEN - 1)) == 0, "not a power of two");
_Static_assert(DIS_DMA_MAX_VECLEN >= 64 && DIS_DMA_MAX_VECLEN <= 4096, "not for a stack");
_Static_assert(DIS_MAX_NSCIS >= 1, "no dimension");
_Static_assert(sizeof(dis_nodeId_list_t) == DIS_MAX_NSCIS * sizeof(unsigned), "list of nodes");

IS(SCI_CALLBACK_CANCEL, 1);
IS(SCI_CALLBACK_CONTINUE, 2);
IS(SCI_CB_CONNECT, 1);
IS(SCI_CB_DISCONNECT, 2);
IS(SCI_CB_NOT_OPERATIONAL, 3);
IS(SCI_CB_OPERATIONAL, 4);
IS(SCI_CB_LOST, 5);
IS(MAX_CB_REASON, 5);
IS(SCI_DMAQUEUE_IDLE, 0);
IS(SCI_DMAQUEUE_GATHER, 1);
IS(SCI_DMAQUEUE_POSTED, 2);
IS(SCI_DMAQUEUE_DONE, 3);
IS(SCI_DMAQUEUE_ABORTED, 4);
IS(SCI_DMAQUEUE_ERROR, 5);
IS(SCI_SEQ_OK, 0);
IS(SCI_SEQ_RETRIABLE, 1);
IS(SCI_SEQ_NOT_RETRIABLE, 2);
IS(SCI_SEQ_PENDING, 3);
IS(SCI_DMA_TYPE_DONTCARE, 1);
IS(SCI_DMA_TYPE_ADAPTER, 2);
IS(SCI_DMA_TYPE_GLOBAL, 3);
IS(SCI_DMA_TYPE_SYSTEM, 4);
IS(SCI_DMA_TYPE_TRANSPARENT, 5);

/* ---- queries: chosen, and each its own ---- */

/* A number that two of them share would be two labels of one number. */
static inline void commands_differ(unsigned command)
{
	switch (command) {
	case SCI_Q_VENDORID:
	case SCI_Q_API:
	case SCI_Q_ADAPTER:
	case SCI_Q_SYSTEM:
	case SCI_Q_LOCAL_SEGMENT:
	case SCI_Q_REMOTE_SEGMENT:
	case SCI_Q_MAP:
	case SCI_Q_DMA:
	case SCI_Q_DEVICE:
	case SCI_Q_SISCI_DRIVER_VERSION:
	case SCI_Q_ADAPTER_NODEID:
	case SCI_Q_ADAPTER_SERIAL_NUMBER:
	case SCI_Q_ADAPTER_CARD_TYPE:
	case SCI_Q_ADAPTER_CONFIGURED:
	case SCI_Q_ADAPTER_DMA_MTU:
	case SCI_Q_ADAPTER_MCAST_MAX_GROUPS:
	case SCI_Q_ADAPTER_BDF:
	case SCI_Q_ADAPTER_NUMBER_OF_LINKS:
	case SCI_Q_ADAPTER_LINK_OPERATIONAL:
	case SCI_Q_ADAPTER_LINK_WIDTH:
	case SCI_Q_ADAPTER_LINK_SPEED:
	case SCI_Q_ADAPTER_LINK_UPTIME:
	case SCI_Q_ADAPTER_LINK_DOWNTIME:
	case SCI_Q_ADAPTER_LINK_CABLE_INSERTED:
	case SCI_Q_ADAPTER_LINK_ENABLED:
	case SCI_Q_ADAPTER_LINK_PARTNER_PORT_NO:
	case SCI_Q_ADAPTER_DMA_SIZE_ALIGNMENT:
	case SCI_Q_ADAPTER_DMA_OFFSET_ALIGNMENT:
	case SCI_Q_ADAPTER_SUGGESTED_MIN_DMA_SIZE:
	case SCI_Q_ADAPTER_SUGGESTED_MIN_BLOCK_SIZE:
	case SCI_Q_ADAPTER_NUMBER_OF_STREAMS:
	case SCI_Q_ADAPTER_STREAM_BUFFER_SIZE:
	case SCI_Q_ADAPTER_HW_LINK_STATUS_IS_OK:
	case SCI_Q_ADAPTER_NUMBER:
	case SCI_Q_ADAPTER_INSTANCE_NUMBER:
	case SCI_Q_ADAPTER_FIRMWARE_OK:
	case SCI_Q_ADAPTER_CONNECTED_TO_SWITCH:
	case SCI_Q_ADAPTER_LOCAL_SWITCH_TYPE:
	case SCI_Q_ADAPTER_LOCAL_SWITCH_PORT_NUMBER:
	case SCI_Q_ADAPTER_CONNECTED_TO_EXPECTED_SWITCH_PORT:
	case SCI_Q_ADAPTER_ATT_PAGE_SIZE:
	case SCI_Q_ADAPTER_ATT_NUMBER_OF_ENTRIES:
	case SCI_Q_ADAPTER_ATT_AVAILABLE_ENTRIES:
	case SCI_Q_ADAPTER_PHYS_MEM_NODEID:
	case SCI_Q_ADAPTER_PHYS_MBX_NODEID:
	case SCI_Q_ADAPTER_PHYS_LINK_PORT_NODEID:
	case SCI_Q_ADAPTER_SCI_LINK_FREQUENCY:
	case SCI_Q_ADAPTER_B_LINK_FREQUENCY:
	case SCI_Q_ADAPTER_IO_BUS_FREQUENCY:
	case SCI_Q_SYSTEM_CPU_CACHE_LINE_SIZE:
	case SCI_Q_SYSTEM_HOSTBRIDGE:
	case SCI_Q_SYSTEM_WRITE_POSTING_ENABLED:
	case SCI_Q_SYSTEM_WRITE_COMBINING_ENABLED:
	case SCI_Q_LOCAL_SEGMENT_IOADDR:
	case SCI_Q_LOCAL_SEGMENT_PHYS_ADDR:
	case SCI_Q_LOCAL_SEGMENT_VIRTUAL_KERNEL_ADDR:
	case SCI_Q_REMOTE_SEGMENT_IOADDR:
	case SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET:
	case SCI_Q_MAP_IOADDR:
	case SCI_Q_MAP_PHYS_ADDR:
	case SCI_Q_DMA_AVAILABLE:
	case SCI_Q_DMA_CAPABILITIES:
	case SCI_Q_DEVICE_INFO:
	case 15: /* a program passes its own index by mistake */
		break;
	}
}
IS(SCI_Q_MAP_QUERY_REMOTE_MAPPED_TO_LOCAL_TARGET, SCI_Q_MAP_MAPPED_TO_LOCAL_TARGET);

/* ---- types ---- */

#define WIDTH(type, member, bytes) IS(sizeof(((type *)0)->member), bytes)
#define FOLLOWS(type, second, first)                                                               \
	_Static_assert(offsetof(type, second) >                                                    \
			       offsetof(type, first) + sizeof(((type *)0)->first) - 1,             \
		       #second " stands before " #first)

IS(sizeof(sci_ioaddr_t), 8);
IS(sizeof(sci_address_t), 8);
IS(offsetof(sci_address_t, offsHi), 2);
IS(offsetof(sci_address_t, offsLo), 4);
IS(sizeof(dis_dma_vec_t), 16);
IS(offsetof(dis_dma_vec_t, local_offset), 4);
IS(offsetof(dis_dma_vec_t, remote_offset), 8);
IS(offsetof(dis_dma_vec_t, flags), 12);
FOLLOWS(sci_query_string_t, length, str);
IS(offsetof(sci_query_adapter_t, portNo), 4);
IS(offsetof(sci_query_adapter_t, subcommand), 8);
FOLLOWS(sci_query_adapter_t, data, subcommand);
FOLLOWS(sci_query_system_t, data, subcommand);
FOLLOWS(sci_query_local_segment_t, subcommand, segment);
FOLLOWS(sci_query_local_segment_t, data.ioaddr, subcommand);
FOLLOWS(sci_query_remote_segment_t, subcommand, segment);
FOLLOWS(sci_query_remote_segment_t, data.ioaddr, subcommand);
FOLLOWS(sci_query_map_t, subcommand, map);
FOLLOWS(sci_query_map_t, data, subcommand);
WIDTH(sci_query_map_t, data, 8);
FOLLOWS(sci_query_dma_t, subcommand, localAdapterNo);
FOLLOWS(sci_query_dma_t, data, subcommand);
IS(sizeof(sci_dma_capabilities_t), 8 * sizeof(unsigned));
IS(offsetof(sci_dma_capabilities_t, max_transfer_size), 4);
IS(offsetof(sci_dma_capabilities_t, max_vector_length), 8);
IS(offsetof(sci_dma_capabilities_t, support_mem2io), 12);
IS(offsetof(sci_dma_capabilities_t, support_io2mem), 16);
IS(offsetof(sci_dma_capabilities_t, support_io2io), 20);
IS(offsetof(sci_dma_capabilities_t, min_align_bytes), 24);
IS(offsetof(sci_dma_capabilities_t, suggested_align_bytes), 28);
FOLLOWS(sci_smartio_query_device_t, subcommand, fdid);
FOLLOWS(sci_smartio_query_device_t, data, subcommand);
WIDTH(sci_smartio_device_info_t, fdid, 8);
WIDTH(sci_smartio_device_info_t, pci_class, 4);
WIDTH(sci_smartio_device_info_t, pci_serial_number, 8);
WIDTH(sci_smartio_device_info_t, user_name, 64);
WIDTH(sci_smartio_device_info_t, uuid, 37);
FOLLOWS(sci_smartio_device_info_t, pci_device_id, fdid);
FOLLOWS(sci_smartio_device_info_t, pci_vendor_id, pci_device_id);
FOLLOWS(sci_smartio_device_info_t, pci_class, pci_vendor_id);
FOLLOWS(sci_smartio_device_info_t, pci_subsystem_device_id, pci_class);
FOLLOWS(sci_smartio_device_info_t, pci_subsystem_vendor_id, pci_subsystem_device_id);
FOLLOWS(sci_smartio_device_info_t, pci_serial_number, pci_subsystem_vendor_id);
FOLLOWS(sci_smartio_device_info_t, remote_bdf, pci_serial_number);
FOLLOWS(sci_smartio_device_info_t, local_bdf, remote_bdf);
FOLLOWS(sci_smartio_device_info_t, adapter, local_bdf);
FOLLOWS(sci_smartio_device_info_t, nodeid, adapter);
FOLLOWS(sci_smartio_device_info_t, physical_slot, nodeid);
FOLLOWS(sci_smartio_device_info_t, user_name, physical_slot);
FOLLOWS(sci_smartio_device_info_t, uuid, user_name);

#define CALLBACK(type, result, ...)                                                                \
	_Static_assert(__builtin_types_compatible_p(type, result(*)(__VA_ARGS__)), #type)

CALLBACK(sci_cb_local_segment_t, sci_callback_action_t, void *, sci_local_segment_t,
	 sci_segment_cb_reason_t, unsigned, unsigned, sci_error_t);
CALLBACK(sci_cb_remote_segment_t, sci_callback_action_t, void *, sci_remote_segment_t,
	 sci_segment_cb_reason_t, sci_error_t);
CALLBACK(sci_cb_dma_t, sci_callback_action_t, void *, sci_dma_queue_t, sci_error_t);
CALLBACK(sci_cb_interrupt_t, sci_callback_action_t, void *, sci_local_interrupt_t, sci_error_t);
CALLBACK(sci_cb_data_interrupt_t, sci_callback_action_t, void *, sci_local_data_interrupt_t, void *,
	 unsigned, sci_error_t);
CALLBACK(sci_cb_block_transfer_t, int, void *, sci_block_transfer_t, sci_error_t);

/* ---- what can only be seen ---- */

static const sci_error_t codes[] = {SCI_ERR_OK,
#define X(name, number) SCI_ERR_##name,
				    KNOWN(X)
#undef X
#define X(name) SCI_ERR_##name,
					    CHOSEN(X)
#undef X
};
#define N_CODES (sizeof(codes) / sizeof(codes[0]))

static void each_code_has_a_text_of_its_own(void **state)
{
	const char *unknown = SCIGetErrorString((sci_error_t)(0xfff | SCI_ERR_MASK));

	(void)state;
	commands_differ(0);
	assert_int_equal(N_CODES, 50); /* 52 names: two are another's */
	assert_string_equal(SCIGetErrorString(SCI_ERR_OK), "OK");
	assert_non_null(unknown);
	for (unsigned i = 0; i < N_CODES; i++) {
		assert_non_null(name_of(codes[i]));
		assert_string_not_equal(SCIGetErrorString(codes[i]), unknown);
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(SCIGetErrorString(codes[i]),
						SCIGetErrorString(codes[k]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_code_has_a_text_of_its_own)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
