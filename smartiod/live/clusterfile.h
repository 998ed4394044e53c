/* SPDX-License-Identifier: BSD-2-Clause */
/* The cluster's file of this daemon: read at its start, and again at a RELOAD. */
#ifndef LIVE_CLUSTERFILE_H
#define LIVE_CLUSTERFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/topology.h"

#define LIVE_FILE_NEXT ".new" /* behind its name: the one that is to take its place */

struct live_file {
	char *text; /* NULL: there is none */
	size_t len;
};

/*
 * Read it, with this machine's users and groups, as daemons see a cluster; @before: what is in
 * force, as sio_topofile_parse_next() has it; NULL at the start. -errno with a text that names the
 * line: nothing is made. *ret: live_file_done(); *ret_t: sio_topology_free().
 */
int live_file_read(const char *path, const struct sio_topology *before, struct live_file *ret,
		   struct sio_topology **ret_t, struct sio_err *reterr);
void live_file_done(struct live_file *f);

/* What the file does not say of this machine, which is @node in it, and the kernel does. */
void live_file_learn(struct sio_topology *t, uint32_t node);

/* Of struct smartiod_ops. */
int live_op_file_read(void *ctx, uint32_t uid, bool next, struct sio_topology **ret,
		      struct sio_err *reterr);
void live_op_file_keep(void *ctx, const struct sio_topology *t);
const char *live_op_file_text(void *ctx, size_t *ret_len);

#endif
