/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of smartio-vfio in the folder of its notes: "one function's mappings may reach another
 * one's BARs", which smartio device remove heeds, too.
 */
#ifndef CORE_VFIO_REACH_H
#define CORE_VFIO_REACH_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SIO_VFIO_REACHES "-reaches-"
#define SIO_VFIO_REACH ".%s" SIO_VFIO_REACHES "%s"

/* Is @file such a one, of function @to? @ret: the function that reaches it. */
static inline bool sio_vfio_reach_parse(const char *file, const char *to, char *ret, size_t size)
{
	const char *middle = *file == '.' ? strstr(file, SIO_VFIO_REACHES) : NULL;

	if (!middle || strcmp(middle + strlen(SIO_VFIO_REACHES), to) != 0)
		return false;
	snprintf(ret, size, "%.*s", (int)(middle - file) - 1, file + 1);
	return true;
}

#endif
