/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of requests: the handler of each, and what its h.owner must be. The form of a request,
 * served or not, is defined by the port (SIO_PORT_REQUESTS).
 */
#include "emu/machine/requests.h"

/* clang-format off */
const struct emu_operation emu_operations[SIO_OP_COUNT] = {
	[SIO_OP_INFO] = {emu_op_info, EMU_OWNER_ASKS},
	[SIO_OP_OWNER_NEW] = {emu_op_owner_new, EMU_OWNER_SUBJECT},
	[SIO_OP_OWNER_CLOSE] = {emu_op_owner_close, EMU_OWNER_SUBJECT},
	[SIO_OP_LIST] = {emu_op_list, EMU_OWNER_ASKS},
	[SIO_OP_ADAPTER] = {emu_op_adapter, EMU_OWNER_ASKS, EMU_WITH_ADAPTERS},
	[SIO_OP_ALLOC] = {emu_op_alloc, EMU_OWNER_HOLDS},
	[SIO_OP_IMPORT] = {emu_op_import, EMU_OWNER_HOLDS},
	[SIO_OP_FREE] = {emu_op_free, EMU_OWNER_ASKS},
	[SIO_OP_GIVE] = {emu_op_give, EMU_OWNER_ASKS},
	[SIO_OP_GRANT] = {emu_op_grant, EMU_OWNER_HOLDS, EMU_WITH_ADAPTERS},
	[SIO_OP_UNGRANT] = {emu_op_ungrant, EMU_OWNER_ASKS, EMU_WITH_ADAPTERS},
	[SIO_OP_MAP] = {emu_op_map, EMU_OWNER_HOLDS, EMU_WITH_ADAPTERS},
	[SIO_OP_UNMAP] = {emu_op_unmap, EMU_OWNER_ASKS, EMU_WITH_ADAPTERS},
	[SIO_OP_REQUESTER_ADD] = {emu_op_requester_add, EMU_OWNER_HOLDS, EMU_WITH_ADAPTERS},
	[SIO_OP_REQUESTER_DEL] = {emu_op_requester_del, EMU_OWNER_ASKS, EMU_WITH_ADAPTERS},
	[SIO_OP_DEVICE_LIST] = {emu_op_device_list, EMU_OWNER_ASKS},
	[SIO_OP_DEVICE_OPEN] = {emu_op_device_open, EMU_OWNER_HOLDS},
	[SIO_OP_DEVICE_CLOSE] = {emu_op_device_close, EMU_OWNER_ASKS},
	[SIO_OP_RESET] = {emu_op_reset, EMU_OWNER_ASKS},
	[SIO_OP_CONFIG] = {emu_op_config, EMU_OWNER_ASKS},
	[SIO_OP_BAR] = {emu_op_bar, EMU_OWNER_HOLDS},
	[SIO_OP_BAR_CLOSE] = {emu_op_bar_close, EMU_OWNER_ASKS},
	[SIO_OP_WATCH] = {emu_op_watch, EMU_OWNER_HOLDS, EMU_WITH_ADAPTERS},
	[SIO_OP_UNWATCH] = {emu_op_unwatch, EMU_OWNER_ASKS, EMU_WITH_ADAPTERS},
	[SIO_OP_DMAMAP] = {emu_op_dmamap, EMU_OWNER_HOLDS},
	[SIO_OP_DMAUNMAP] = {emu_op_dmaunmap, EMU_OWNER_ASKS},
	[SIO_OP_IRQ_NEW] = {emu_op_irq_new, EMU_OWNER_HOLDS},
	[SIO_OP_IRQ_FREE] = {emu_op_irq_free, EMU_OWNER_ASKS},
	[SIO_OP_VECTOR] = {emu_op_vector, EMU_OWNER_HOLDS},
	[SIO_OP_SETTLE] = {emu_op_settle, EMU_OWNER_SUBJECT},
	[SIO_OP_STATUS] = {emu_op_status, EMU_OWNER_ASKS},
	[SIO_OP_MCAST] = {emu_op_mcast, EMU_OWNER_HOLDS, EMU_WITH_ADAPTERS},
	[SIO_OP_DMA] = {emu_op_dma, EMU_OWNER_HOLDS, EMU_WITH_ADAPTERS},
	[SIO_OP_DMA_FREE] = {emu_op_dma_free, EMU_OWNER_ASKS, EMU_WITH_ADAPTERS},
	[SIO_OP_DMA_ATTACH] = {emu_op_dma_attach, EMU_OWNER_HOLDS, EMU_WITH_ADAPTERS},
	[SIO_OP_DMA_DETACH] = {emu_op_dma_detach, EMU_OWNER_ASKS, EMU_WITH_ADAPTERS},
	[SIO_OP_STATS] = {emu_op_stats, EMU_OWNER_ASKS},
	[SIO_OP_IDENTIFY] = {emu_op_identify, EMU_OWNER_ASKS, EMU_WITH_RESTART},
	[SIO_OP_REOPEN] = {emu_op_reopen, EMU_OWNER_ASKS, EMU_WITH_RESTART},
};
/* clang-format on */
