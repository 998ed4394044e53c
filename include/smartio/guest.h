/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * Passing a borrowed device through to a virtual machine: what a program needs that serves one to
 * a machine's emulator, so that it is on no data path itself (docs/pass-through.md; the paper's
 * section 5). The machine's memory is given to the device at the addresses that the machine's
 * driver knows, its doorbells are mapped by the emulator, its interrupts trigger the emulator's
 * eventfds.
 *
 * All functions may be called from any thread; the last parameter @error is always written, as in
 * SISCI. Handles are those of sisci_api.h. By VFIO all but smartio_device_layout() and
 * smartio_import_segment() is SCI_ERR_NOT_SUPPORTED, or SCI_ERR_ILLEGAL_PARAMETER where the kernel
 * says so.
 */
#ifndef SMARTIO_GUEST_H
#define SMARTIO_GUEST_H

#include <stddef.h>
#include <stdint.h>

#include "sisci_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a device looks like to the system that it is plugged into. */
struct smartio_device_layout {
	unsigned int vendor, device, subsystem_vendor, subsystem_device;
	unsigned int class_code;  /* 24 bits: class, subclass, interface */
	uint64_t bar_size[6];	  /* bytes, powers of 2; 0: there is none */
	unsigned int msix_count;  /* vectors; 0: it has none */
	unsigned int msix_bar;	  /* where their table lies */
	unsigned int msix_offset; /* in bytes */
	unsigned int adapter;	  /* of this host: the way to it */
	unsigned int translated;  /* 1: its host's IOMMU translates what it sends */
	unsigned int resets;	  /* 1: its lender can reset it */
};
/**
 * @fdid: the device; it need not be borrowed. *@layout is filled on success.
 * Errors: SCI_ERR_NO_SUCH_FDID, SCI_ERR_NOT_INITIALIZED, SCI_ERR_ILLEGAL_PARAMETER.
 */
void smartio_device_layout(unsigned int fdid, struct smartio_device_layout *layout,
			   sci_error_t *error);

/**
 * A segment whose memory is @size bytes at @offset of the memfd @fd, which is sealed against
 * shrinking (F_SEAL_SHRINK) and not against writing: a virtual machine's, that its emulator and the
 * program share, or the program's own. Devices reach the file's own pages, nothing is copied. On
 * real hosts it may be of huge pages; by VFIO @fd may also be a device of /dev/dax. It counts as
 * memory of this host, and ends by SCIRemoveSegment() or with the program; the pages live as long
 * as the file has users. @fd stays the caller's.
 * It is private to this program (SCI_FLAG_PRIVATE), may be prepared, and mapped for devices; it
 * cannot be mapped by SCIMapLocalSegment() (map the file), nor shared.
 * @flags: SCI_FLAG_AUTO_ID or 0. @offset and @size: whole pages.
 * Errors: SCI_ERR_ILLEGAL_PARAMETER no such memfd, or not of whole pages, SCI_ERR_SEGMENTID_USED,
 * SCI_ERR_NOSPC more than this host has, SCI_ERR_NOT_SUPPORTED.
 */
void smartio_import_segment(sci_desc_t sd, sci_local_segment_t *segment, unsigned int segmentId,
			    int fd, uint64_t offset, size_t size, unsigned int flags,
			    sci_error_t *error);

/**
 * As SCIMapLocalSegmentForDevice(), at an address that the caller chooses: the device reaches the
 * first byte at @ioaddr. It ends by SCIUnmapLocalSegmentForDevice().
 * @device: borrowed exclusively, so that nobody else has addresses there, and of a host whose IOMMU
 * translates: its domain is this borrow's alone, and what is not mapped cannot be reached.
 * @ioaddr, @offset: multiples of a page. @flags: 0.
 * Errors: those of SCIMapLocalSegmentForDevice(), and SCI_ERR_ACCESS the borrow is not exclusive,
 * SCI_ERR_NOT_SUPPORTED no IOMMU translates, SCI_ERR_HW_NOSPC something is mapped there,
 * SCI_ERR_ILLEGAL_PARAMETER the device cannot send that address.
 */
void smartio_map_segment_at(sci_local_segment_t segment, unsigned int localAdapterNo,
			    sci_smartio_device_t device, sci_ioaddr_t ioaddr, size_t offset,
			    size_t size, unsigned int flags, sci_error_t *error);

/**
 * As SCIMapRemoteSegmentForDevice(), at an address that the caller chooses: for BARs of another
 * device of the same virtual machine (docs/memory-device.md says which pages), and others' memory.
 * It ends by SCIUnmapRemoteSegmentForDevice(). @device, @ioaddr, @offset and @flags: as for
 * smartio_map_segment_at().
 * Errors: those of SCIMapRemoteSegmentForDevice() and of smartio_map_segment_at().
 */
void smartio_map_remote_segment_at(sci_remote_segment_t segment, sci_smartio_device_t device,
				   sci_ioaddr_t ioaddr, size_t offset, size_t size,
				   unsigned int flags, sci_error_t *error);

/**
 * An interrupt without data as SCICreateInterrupt() makes it, but that triggers add 1 to @eventfd,
 * of another process, and tell this one nothing: SCIWaitForInterrupt() of it is
 * SCI_ERR_ILLEGAL_PARAMETER. It ends by SCIRemoveInterrupt(). @eventfd stays the caller's.
 * Only this program may connect to it, and have devices trigger it; for others
 * SCIConnectInterrupt() is SCI_ERR_ACCESS. smartio_listen() does not take it: the eventfd's reader,
 * in whatever process, waits on that itself.
 * @flags: 0 or SCI_FLAG_FIXED_INTNO.
 * Errors: those of SCICreateInterrupt(), and SCI_ERR_ILLEGAL_PARAMETER it is no eventfd,
 * SCI_ERR_NOT_SUPPORTED.
 */
void smartio_import_interrupt(sci_desc_t sd, sci_local_interrupt_t *interrupt,
			      unsigned int localAdapterNo, unsigned int *interruptNo, int eventfd,
			      unsigned int flags, sci_error_t *error);

/**
 * A flag of SCIMapRemoteSegment(), of a BAR: the map keeps the files of its pages, for
 * smartio_map_file().
 */
#define SMARTIO_FLAG_KEEP_FILES 0x00800000U
/**
 * The file that is mapped at @offset of @map, for another process to map it: the pages from
 * *@fileOffset on, *@bytes of them, which may be fewer than the map has. Stores to them reach the
 * device as those of this process; what takes the map's pages away (a reset, a loss) takes them
 * away from the other process, too, but what that finds there then is not defined.
 * Stores of others wake a sleeping device only where it looks by itself: SMARTIO_WAKE=timer.
 * Registers, of which one writable view is made at a time, are not handed on.
 * Return: a descriptor, the library's, valid until SCIUnmapSegment(); -1: nothing is mapped there
 * that can be handed on, or @error tells.
 * Errors: SCI_ERR_ILLEGAL_PARAMETER wrong handle, or made without SMARTIO_FLAG_KEEP_FILES.
 */
int smartio_map_file(sci_map_t map, size_t offset, uint64_t *fileOffset, size_t *bytes,
		     sci_error_t *error);

/**
 * As smartio_device_reset(), but maps of the device's doorbells, by whatever process, go on leading
 * to it. For who borrowed it exclusively and shares it with nobody.
 * Errors: those of smartio_device_reset(), and SCI_ERR_ACCESS the borrow is not exclusive.
 */
void smartio_device_restart(sci_smartio_device_t device, sci_error_t *error);

#ifdef __cplusplus
}
#endif

#endif
