/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of the kinds of objects. The file that makes the objects of a kind defines it. */
#include "emu/machine/requests.h"

const struct emu_kind *const emu_kinds[EMU_LAST_KIND + 1] = {
	[SIO_KIND_OWNER] = &emu_kind_owner,
	[SIO_KIND_MEM] = &emu_kind_mem,
	[SIO_KIND_GRANT] = &emu_kind_grant,
	[SIO_KIND_MAP] = &emu_kind_map,
	[SIO_KIND_REQUESTER] = &emu_kind_requester,
	[SIO_KIND_DEVICE] = &emu_kind_device,
	[SIO_KIND_BAR] = &emu_kind_bar,
	[SIO_KIND_DMAMAP] = &emu_kind_dmamap,
	[SIO_KIND_IRQ] = &emu_kind_irq,
	[SIO_KIND_WATCH] = &emu_kind_watch,
	[SIO_KIND_DMA] = &emu_kind_dma,
	[SIO_KIND_DMA_RANGE] = &emu_kind_dma_range,
	[SIO_KIND_VECTOR] = &emu_kind_vector,
};
