/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration space of a PCI Express endpoint (PCI Local Bus 3.0, chapter 6; PCI Express
 * Base, chapter 7): header, MSI-X and PCI Express capability; of a physical function, the SR-IOV
 * extended capability.
 */
#ifndef VFIO_CONFIG_H
#define VFIO_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIO_VFIO_CONFIG_BYTES 4096u

/* Virtual functions of a physical one; their BARs are as large as its own. */
struct sio_vfio_config_functions {
	uint32_t total;		 /* 0: no capability */
	uint32_t offset, stride; /* routing ids: to the first one; from each to the next */
	uint32_t device;	 /* their device id */
};

struct sio_vfio_config_identity {
	uint32_t vendor, device, subsys_vendor, subsys_device, class_code;
	uint64_t bar_size[6]; /* powers of 2, or 0; of 64 bits, if the next one is 0 */
	bool prefetchable[6];
	uint32_t msix_count; /* 0: no capability */
	uint32_t msix_bar;
	uint32_t msix_table, msix_pending; /* offsets in it, multiples of 8 */
	struct sio_vfio_config_functions functions;
};

struct sio_vfio_config {
	uint8_t now[SIO_VFIO_CONFIG_BYTES];
	uint8_t writable[SIO_VFIO_CONFIG_BYTES]; /* a mask of each byte */
	uint8_t fresh[SIO_VFIO_CONFIG_BYTES];	 /* after a reset */
	unsigned pcie;				 /* where the capability lies */
	unsigned sriov;				 /* the same; 0: there is none */
	uint64_t function_bar[6];		 /* bytes of one virtual function's */
};

void sio_vfio_config_init(struct sio_vfio_config *c, const struct sio_vfio_config_identity *id);
void sio_vfio_config_reset(struct sio_vfio_config *c);
/* @offset and @len lie within the configuration space. */
void sio_vfio_config_read(const struct sio_vfio_config *c, size_t offset, void *buf, size_t len);
/* Return: true: the write requests a function level reset, which the caller carries out. */
bool sio_vfio_config_write(struct sio_vfio_config *c, size_t offset, const void *buf, size_t len);
/* Does the command register allow the function to send requests (its DMA and its messages)? */
bool sio_vfio_config_is_master(const struct sio_vfio_config *c);
/* Where the function's BAR @index answers. Return: false: nowhere, its memory is not enabled. */
bool sio_vfio_config_bar(const struct sio_vfio_config *c, unsigned index, uint64_t *ret);
/* How many virtual functions are enabled, with their memory. */
unsigned sio_vfio_config_functions(const struct sio_vfio_config *c);

#endif
