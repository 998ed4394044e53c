/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration space of a PCI Express endpoint (PCI Local Bus 3.0, chapter 6; PCI Express
 * Base, chapter 7): header, MSI-X and PCI Express capability.
 */
#ifndef EMU_VFIO_CONFIG_H
#define EMU_VFIO_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EMU_CONFIG_BYTES 4096u

struct emu_config_identity {
	uint32_t vendor, device, subsys_vendor, subsys_device, class_code;
	uint64_t bar_size[6]; /* powers of 2, or 0; of 64 bits, so that the next one is 0 */
	bool prefetchable[6];
	uint32_t msix_count; /* 0: no capability */
	uint32_t msix_bar;
	uint32_t msix_table, msix_pending; /* offsets in it, multiples of 8 */
};

struct emu_config {
	uint8_t now[EMU_CONFIG_BYTES];
	uint8_t writable[EMU_CONFIG_BYTES]; /* a mask of each byte */
	uint8_t fresh[EMU_CONFIG_BYTES];    /* after a reset */
	unsigned pcie;			    /* where the capability lies */
};

void emu_config_init(struct emu_config *c, const struct emu_config_identity *id);
void emu_config_reset(struct emu_config *c);
/* @offset and @len are within. */
void emu_config_read(const struct emu_config *c, size_t offset, void *buf, size_t len);
/* Return: true: a function level reset is asked for; nothing is kept of it. */
bool emu_config_write(struct emu_config *c, size_t offset, const void *buf, size_t len);
/* Command register: may the function send requests (its DMA and its messages)? */
bool emu_config_is_master(const struct emu_config *c);

#endif
