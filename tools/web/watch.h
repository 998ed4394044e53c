/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watcher of smartio web: a thread that queries the daemons once a second while a client reads,
 * and keeps the last document. Clients do not wait for it.
 */
#ifndef TOOLS_WEB_WATCH_H
#define TOOLS_WEB_WATCH_H

#include <stdint.h>

#include "core/err.h"

struct tool_web_watch;

/* @dir: of the cluster. -errno: there is no thread. */
int tool_web_watch_start(const char *dir, const char *cluster, struct tool_web_watch **ret,
			 struct sio_err *reterr);
/*
 * The last document (of schema web-live; free()), and its age. The thread takes samples only as
 * long as documents are read: after a pause, and at first, the document says that it is looking.
 * NULL: no memory. Thread-safe.
 */
char *tool_web_watch_read(struct tool_web_watch *w, int64_t *ret_age_ms);
/*
 * Stops the thread. A silent daemon may keep the thread busy for long: then it ends with the
 * process, and nothing is freed.
 */
void tool_web_watch_stop(struct tool_web_watch *w);

#endif
