/* SPDX-License-Identifier: BSD-2-Clause */
/* The accelerator in a topology file. */
#ifndef EMU_ACCEL_KEYS_H
#define EMU_ACCEL_KEYS_H

#include "core/devtype.h"

#define EMU_ACCEL_TYPE "accelerator"
#define EMU_ACCEL_LEAST 4096u
#ifndef EMU_ACCEL_MOST /* the simulator, where memory that nobody touches costs nothing, has more */
#define EMU_ACCEL_MOST (256ull << 20)
#endif
#define EMU_ACCEL_LARGEST (4ull << 30) /* that the model can be */
#define EMU_ACCEL_UNITS 8u
#define EMU_ACCEL_VECTORS 256u /* a table of two pages */

static const struct sio_devkey emu_accel_keys[] = {
	{.name = "size",
	 .kind = SIO_DEVKEY_SIZE,
	 SIO_DEVKEY_AT(size),
	 .min = EMU_ACCEL_LEAST,
	 .max = EMU_ACCEL_MOST,
	 .step = SIO_DEVKEY_POWER,
	 .preset = 16u << 20,
	 .text = "size of its memory, which is a BAR"},
	{.name = "units",
	 .kind = SIO_DEVKEY_NUMBER,
	 SIO_DEVKEY_AT(units),
	 .min = 1,
	 .max = EMU_ACCEL_UNITS,
	 .preset = 4,
	 .text = "compute units"},
	{.name = "vectors",
	 .kind = SIO_DEVKEY_NUMBER,
	 SIO_DEVKEY_AT(vectors),
	 .max = EMU_ACCEL_VECTORS,
	 .preset = 16,
	 .text = "interrupt vectors (0: no interrupts)"},
};

static const struct sio_devtype emu_accel_type = {
	.name = EMU_ACCEL_TYPE,
	.title = "an accelerator",
	.text = "memory, DMA rings and compute units",
	SIO_DEVTYPE_KEYS(emu_accel_keys),
};

#endif
