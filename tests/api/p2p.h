/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests from device to device share: a drive in host one, whose manager is in host two,
 * and a memory device in each of three hosts. With IOMMUs, and without.
 */
#ifndef TESTS_API_P2P_H
#define TESTS_API_P2P_H

#include <stdint.h>
#include <string.h>

#include "admin.h"
#include "target.h"

#define BORROWER 8u

#define HOSTS(iommu)                                                                               \
	"cluster: p2p\n"                                                                           \
	"switches: [sw0]\n"                                                                        \
	"hosts:\n"                                                                                 \
	"  one:\n"                                                                                 \
	"    ram: 64M\n"                                                                           \
	"    iommu: " iommu "\n"                                                                   \
	"    devices:\n"                                                                           \
	"      nvme0: {type: nvme, size: 16M, cmb: 64K}\n"                                         \
	"      beside: {type: memory, size: 64K}\n"                                                \
	"  two: {ram: 64M, iommu: " iommu ", devices: {here: {type: memory, size: 64K}}}\n"        \
	"  three: {ram: 64M, iommu: " iommu ", devices: {far: {type: memory, size: 64K}}}\n"

static bool with_iommu; /* the cluster that is up has them */

static char places[][8] = {"beside", "here", "far"}; /* programs' arguments, not const */
#define PLACES 3u

static inline int up(void **state, bool iommu)
{
	with_iommu = iommu;
	*state = cluster_up(iommu ? HOSTS("on") : HOSTS("off"));
	return *state ? 0 : -1;
}

static inline int up_with(void **state)
{
	return up(state, true);
}

static inline int up_without(void **state)
{
	return up(state, false);
}

static inline int down(void **state)
{
	return *state ? cluster_down(*state) : 0;
}

static inline int audit(void **state)
{
	return cluster_audit(*state);
}

static inline sci_ioaddr_t map_for(sci_remote_segment_t bar, sci_smartio_device_t device,
				   size_t offset, size_t bytes)
{
	sci_ioaddr_t at = 0;
	sci_error_t error;

	SCIMapRemoteSegmentForDevice(bar, device, &at, offset, bytes, 0, &error);
	CHECK_OK(error);
	CHECK(at != 0 && at % PAGE == 0);
	return at;
}

static inline void unmap_for(sci_remote_segment_t bar, sci_smartio_device_t device)
{
	sci_error_t error;

	SCIUnmapRemoteSegmentForDevice(bar, device, 0, &error);
	CHECK_OK(error);
}

/* Identify of the controller, to @at. Its answer begins with the vendor, as PCI knows it. */
static inline void identify(struct admin *a, sci_ioaddr_t at)
{
	admin_command(a, 0x06, 0, at, 1);
	admin_await(a);
}

/* The same, where it may fail. */
static inline void identify_anyhow(struct admin *a, sci_ioaddr_t at)
{
	volatile uint32_t *e = a->cq + a->head * 4;

	admin_command(a, 0x06, 0, at, 1);
	while ((sio_read32(e + 3) >> 16 & 1) != a->phase)
		smartio_yield();
	a->head = (a->head + 1) % ADMIN_ENTRIES;
	a->phase ^= a->head == 0;
	sio_write32(a->bells + 4, a->head);
}

static inline bool is_identity(const volatile uint8_t *p)
{
	return get32(p) == 0x1b361b36;
}

static inline uint64_t faults(void)
{
	struct smartio_counter all[64];
	sci_error_t error;
	unsigned n = smartio_device_counters(find_device("nvme0"), all, 64, &error);

	CHECK_OK(error);
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(all[i].name, "faults"))
			return all[i].value;
	CHECK(false);
	return 0;
}

#endif
