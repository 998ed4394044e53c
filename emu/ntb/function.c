/* SPDX-License-Identifier: BSD-2-Clause */
/* A virtual NTB as a PCI function: its regions, and the effect of an access to each. */
#include <string.h>

#include "emu/ntb/inside.h"

static void region(void *function, unsigned index, struct sio_vfio_region *ret)
{
	struct emu_ntb_adapter *a = function;

	if (index == SIO_VNTB_BAR_REGISTERS)
		ret->size = SIO_VNTB_BAR0_SIZE;
	else if (index == SIO_VNTB_BAR_WINDOW)
		ret->size = a->topo->window_size;
	else if (index == SIO_VFIO_CONFIG)
		ret->size = SIO_VFIO_CONFIG_BYTES;
	if (ret->size)
		ret->flags = SIO_VFIO_REGION_READABLE | SIO_VFIO_REGION_WRITABLE;
}

static uint32_t vectors(void *function)
{
	(void)function;
	return SIO_VNTB_VECTORS;
}

static void reset(void *function)
{
	struct emu_ntb_adapter *a = function;

	sio_vfio_config_reset(&a->space);
	memset(a->msix, 0, sizeof(a->msix));
	emu_ntb_restart(a);
}

static bool in_msix(uint64_t offset, size_t len)
{
	return offset >= SIO_VNTB_MSIX_TABLE &&
	       offset + len <= SIO_VNTB_MSIX_TABLE + SIO_VNTB_VECTORS * 16;
}

static int function_read(void *function, unsigned index, uint64_t offset, void *buf, size_t len)
{
	struct emu_ntb_adapter *a = function;

	a->counts.exits += index != SIO_VFIO_CONFIG;
	switch (index) {
	case SIO_VFIO_CONFIG:
		sio_vfio_config_read(&a->space, offset, buf, len);
		return 0;
	case SIO_VNTB_BAR_WINDOW:
		return emu_ntb_window_read(a, offset, buf, len);
	default:
		if (offset < SIO_VNTB_REGISTERS)
			emu_ntb_load(a, offset, buf, len);
		else if (in_msix(offset, len))
			memcpy(buf, a->msix + (offset - SIO_VNTB_MSIX_TABLE), len);
		else
			memset(buf, 0, len);
		return 0;
	}
}

static int function_write(void *function, unsigned index, uint64_t offset, const void *buf,
			  size_t len)
{
	struct emu_ntb_adapter *a = function;

	a->counts.exits += index != SIO_VFIO_CONFIG;
	switch (index) {
	case SIO_VFIO_CONFIG:
		if (sio_vfio_config_write(&a->space, offset, buf, len))
			reset(a);
		break;
	case SIO_VNTB_BAR_WINDOW:
		emu_ntb_window_write(a, offset, buf, len);
		break;
	default:
		if (offset < SIO_VNTB_REGISTERS)
			emu_ntb_store(a, offset, buf, len);
		else if (in_msix(offset, len))
			memcpy(a->msix + (offset - SIO_VNTB_MSIX_TABLE), buf, len);
		break;
	}
	return 0;
}

const struct sio_vfio_function_ops emu_ntb_function = {
	.region = region,
	.vectors = vectors,
	.read = function_read,
	.write = function_write,
	.reset = reset,
};
