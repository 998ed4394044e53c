/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "drive.h"

const char drive_usage[] = "model FILE | qemu FILE QEMU; -functions behind either: it has some";

struct drive *drive_open(const char *kind, const char *more)
{
	bool functions = strstr(kind, "-functions");

	if (!more && !strcmp(kind, functions ? "model-functions" : "model"))
		return drive_model(functions);
	if (more && !strcmp(kind, functions ? "qemu-functions" : "qemu"))
		return drive_qemu(more, functions);
	return NULL;
}
