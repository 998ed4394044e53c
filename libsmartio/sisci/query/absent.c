/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that are not supported, and functions that have no effect here: those of
 * docs/sisci-limits.md. They exist so that programs link; each reports what is missing.
 */
#include <errno.h>

#include "sisci/base/library.h"

#define CSR "control and status registers of SCI adapters do not exist on PCIe"
#define COND_INT "a store to memory cannot trigger an interrupt on PCIe: use SCITriggerInterrupt()"
#define PHYSICAL_DMA "DMA to and from physical addresses of the caller's choice is not offered"

static void absent(sci_error_t *error, const char *why)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? sio_refuse(&err, SCI_ERR_NOT_SUPPORTED, "%s", why) : err.code;

	sio_api_leave(error, rc, &err);
}

void SCIConnectSCISpace(sci_desc_t sd, unsigned int localAdapterNo, sci_remote_segment_t *segment,
			sci_address_t address, size_t size, unsigned int flags, sci_error_t *error)
{
	(void)sd;
	(void)localAdapterNo;
	(void)segment;
	(void)address;
	(void)size;
	(void)flags;
	absent(error, "PCIe has no global address space: only published segments can be reached");
}

void SCIRegisterInterruptFlag(unsigned int localAdapterNo, sci_local_interrupt_t *interrupt,
			      sci_local_segment_t segment, unsigned int offset,
			      sci_cb_interrupt_t callback, void *callbackArg, unsigned int flags,
			      sci_error_t *error)
{
	(void)localAdapterNo;
	(void)interrupt;
	(void)segment;
	(void)offset;
	(void)callback;
	(void)callbackArg;
	(void)flags;
	absent(error, COND_INT);
}

void SCIEnableConditionalInterrupt(sci_local_interrupt_t interrupt, unsigned int flags,
				   sci_error_t *error)
{
	(void)interrupt;
	(void)flags;
	absent(error, COND_INT);
}

void SCIDisableConditionalInterrupt(sci_local_interrupt_t interrupt, unsigned int flags,
				    sci_error_t *error)
{
	(void)interrupt;
	(void)flags;
	absent(error, COND_INT);
}

void SCIGetConditionalInterruptTrigCounter(sci_local_interrupt_t interrupt,
					   unsigned int *interruptTrigCounter, unsigned int flags,
					   sci_error_t *error)
{
	(void)interrupt;
	(void)interruptTrigCounter;
	(void)flags;
	absent(error, COND_INT);
}

unsigned int SCIGetCSRRegister(sci_desc_t sd, unsigned int localAdapterNo, unsigned int SCINodeId,
			       unsigned int CSROffset, unsigned int flags, sci_error_t *error)
{
	(void)sd;
	(void)localAdapterNo;
	(void)SCINodeId;
	(void)CSROffset;
	(void)flags;
	absent(error, CSR);
	return 0;
}

void SCISetCSRRegister(sci_desc_t sd, unsigned int localAdapterNo, unsigned int SCINodeId,
		       unsigned int CSROffset, unsigned int CSRValue, unsigned int flags,
		       sci_error_t *error)
{
	(void)sd;
	(void)localAdapterNo;
	(void)SCINodeId;
	(void)CSROffset;
	(void)CSRValue;
	(void)flags;
	absent(error, CSR);
}

unsigned int SCIGetLocalCSR(sci_desc_t sd, unsigned int localAdapterNo, unsigned int CSROffset,
			    unsigned int flags, sci_error_t *error)
{
	(void)sd;
	(void)localAdapterNo;
	(void)CSROffset;
	(void)flags;
	absent(error, CSR);
	return 0;
}

void SCISetLocalCSR(sci_desc_t sd, unsigned int localAdapterNo, unsigned int CSROffset,
		    unsigned int CSRValue, unsigned int flags, sci_error_t *error)
{
	(void)sd;
	(void)localAdapterNo;
	(void)CSROffset;
	(void)CSRValue;
	(void)flags;
	absent(error, CSR);
}

void SCIphDmaEnqueue(sci_dma_queue_t dmaqueue, unsigned int size, sci_ioaddr_t localBusAddr,
		     unsigned int remote_nodeid, unsigned int remote_highaddr,
		     unsigned int remote_lowaddr, unsigned int flags, sci_error_t *error)
{
	(void)dmaqueue;
	(void)size;
	(void)localBusAddr;
	(void)remote_nodeid;
	(void)remote_highaddr;
	(void)remote_lowaddr;
	(void)flags;
	absent(error, PHYSICAL_DMA);
}

sci_dma_queue_state_t SCIphDmaStart(sci_dma_queue_t dmaqueue, sci_cb_dma_t callback,
				    void *callbackArg, unsigned int flags, sci_error_t *error)
{
	(void)dmaqueue;
	(void)callback;
	(void)callbackArg;
	(void)flags;
	absent(error, PHYSICAL_DMA);
	return SCI_DMAQUEUE_ERROR;
}

/* Nothing to be done: the daemon of a device's host adds it to the table when it first needs it. */
static void check_requester(sci_desc_t sd, unsigned adapter, unsigned bus, unsigned devfn,
			    unsigned flags, unsigned served, sci_error_t *error)
{
	struct sio_object *desc = NULL;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_flags(flags, served, 0, &err);
	if (!rc)
		rc = sio_check_adapter(lib, adapter, &err);
	if (!rc && (bus > UINT8_MAX || devfn > UINT8_MAX))
		rc = sio_fail(&err, -EINVAL, "bus %#x, device and function %#x: 8 bits each", bus,
			      devfn);
	if (!rc) {
		desc = sio_object_get(lib, sd, SIO_DESC, &err);
		rc = desc ? 0 : err.code;
	}
	sio_object_put(desc);
	sio_api_leave(error, rc, &err);
}

void SCIRegisterPCIeRequester(sci_desc_t sd, unsigned int localAdapterNo, unsigned int bus,
			      unsigned int devfn, unsigned int flags, sci_error_t *error)
{
	check_requester(sd, localAdapterNo, bus, devfn, flags, SCI_FLAG_PCIE_REQUESTER_GLOBAL,
			error);
}

void SCIUnregisterPCIeRequester(sci_desc_t sd, unsigned int localAdapterNo, unsigned int bus,
				unsigned int devfn, unsigned int flags, sci_error_t *error)
{
	check_requester(sd, localAdapterNo, bus, devfn, flags, 0, error);
}
