/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a topology file (YAML) into a struct sio_topology. Format: docs/topology.md. */
#ifndef TOPOFILE_TOPOFILE_H
#define TOPOFILE_TOPOFILE_H

#include <stddef.h>

#include "core/topology.h"

/*
 * Each error names file, line, column, key, value and what would be right.
 * Return: 0 and a topology to free with sio_topology_free(); -EINVAL; -ENOMEM; -errno of reading.
 */
int sio_topofile_read(const char *path, struct sio_topology **ret, struct sio_err *reterr);
/* The same from memory; @name stands for the file in texts. */
int sio_topofile_parse(const char *name, const char *text, size_t len, struct sio_topology **ret,
		       struct sio_err *reterr);
/*
 * The same for a file that takes the place of @before while the cluster runs: what stays keeps the
 * slots and addresses that neither file gives, as far as the new file leaves them free.
 */
int sio_topofile_read_next(const char *path, const struct sio_topology *before,
			   struct sio_topology **ret, struct sio_err *reterr);
int sio_topofile_parse_next(const char *name, const char *text, size_t len,
			    const struct sio_topology *before, struct sio_topology **ret,
			    struct sio_err *reterr);

#endif
