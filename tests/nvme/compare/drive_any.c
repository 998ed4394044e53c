/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "drive.h"

const char drive_usage[] = "model FILE | qemu FILE QEMU";

struct drive *drive_open(const char *kind, const char *more)
{
	if (!strcmp(kind, "model") && !more)
		return drive_model();
	if (!strcmp(kind, "qemu") && more)
		return drive_qemu(more);
	return NULL;
}
