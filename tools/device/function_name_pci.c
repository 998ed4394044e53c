/* SPDX-License-Identifier: BSD-2-Clause */
#include <pci/pci.h>

#include "device/function_name.h"

void tool_function_name(unsigned vendor, unsigned device, char *ret, size_t size)
{
	struct pci_access *access = pci_alloc();

	ret[0] = '\0';
	pci_init(access);
	pci_lookup_name(access, ret, (int)size, PCI_LOOKUP_VENDOR | PCI_LOOKUP_DEVICE, vendor,
			device);
	pci_cleanup(access);
}
