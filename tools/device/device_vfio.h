/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio device add --vfio, and remove: a function is bound to vfio-pci; a note records that
 * smartio did it.
 */
#ifndef TOOLS_DEVICE_VFIO_H
#define TOOLS_DEVICE_VFIO_H

#include "device/function.h"

#define TOOL_VFIO_DRIVER "vfio-pci"

/*
 * Was the function added by that command? Others that vfio-pci has may belong to a virtual machine.
 */
bool tool_vfio_added(const struct tool_function *f);
/*
 * Was the function removed, and gets its own driver when the others of its IOMMU group are removed,
 * too?
 */
bool tool_vfio_waits(const struct tool_function *f);
/*
 * Checks whether the function can be added: vfio-pci, an IOMMU, and a group that belongs to smartio
 * as a whole.
 */
int tool_vfio_check(const struct tool_function *f, struct sio_err *reterr);
/* Binds it to vfio-pci in place of its driver. Undone on failure. */
int tool_vfio_give(struct tool_function *f, struct sio_err *reterr);
/* Binds it to its driver again. -EBUSY: a program still has it open, and nothing has changed. */
int tool_vfio_take(struct tool_function *f, struct sio_err *reterr);

#endif
