/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory device in a topology file. */
#ifndef EMU_MEMDEV_KEYS_H
#define EMU_MEMDEV_KEYS_H

#include "core/devtype.h"

#define EMU_MEMDEV_TYPE "memory"
#define EMU_MEMDEV_LEAST 4096u
#define EMU_MEMDEV_MOST (SIO_TOPO_BAR_SPACE / 2)
#define EMU_MEMDEV_VECTORS 256u /* a table of two pages */

static const struct sio_devkey emu_memdev_keys[] = {
	{.name = "size",
	 .kind = SIO_DEVKEY_SIZE,
	 SIO_DEVKEY_AT(size),
	 .min = EMU_MEMDEV_LEAST,
	 .max = EMU_MEMDEV_MOST,
	 .step = SIO_DEVKEY_POWER,
	 .preset = 4u << 20,
	 .text = "size of its RAM, which is a BAR"},
	{.name = "vectors",
	 .kind = SIO_DEVKEY_NUMBER,
	 SIO_DEVKEY_AT(vectors),
	 .max = EMU_MEMDEV_VECTORS,
	 .preset = 1,
	 .text = "interrupt vectors (0: no interrupts)"},
};

static const struct sio_devtype emu_memdev_type = {
	.name = EMU_MEMDEV_TYPE,
	.title = "a memory device",
	.text = "RAM in a BAR, with a DMA engine",
	SIO_DEVTYPE_KEYS(emu_memdev_keys),
};

#endif
