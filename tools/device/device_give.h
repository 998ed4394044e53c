/* SPDX-License-Identifier: BSD-2-Clause */
/* Giving a PCI function of this machine to borrowers, and taking it back for its own driver. */
#ifndef TOOLS_DEVICE_GIVE_H
#define TOOLS_DEVICE_GIVE_H

#include "device/function.h"

/*
 * @word: as of tool_function_find(); *ret: the driver that it has afterwards. @force: although it
 * is in use; @vfio: to the kernel's VFIO, not to smartio.ko. A function that was given before stays
 * given. Return: 0; -EPERM: not root; -EBUSY: in use; -ENODEV: no such function, or the module is
 * not loaded; -errno.
 */
int tool_device_give(const char *word, bool force, bool vfio, struct tool_function *ret,
		     struct sio_err *reterr);
/*
 * Takes the function back. @force: although programs have borrowed it. -EINVAL: it was not given;
 * otherwise as above.
 */
int tool_device_take(const char *word, bool force, struct tool_function *ret,
		     struct sio_err *reterr);

#endif
