/* SPDX-License-Identifier: BSD-2-Clause */
/* The documents that smartio web serves, of the schema web-live. */
#ifndef TOOLS_WEB_LIVE_H
#define TOOLS_WEB_LIVE_H

#include "view/sample.h"

/* The document when nothing is known yet. Texts are for free(). */
char *tool_web_looking(const char *cluster);
/* The document when there is no cluster any more that could be asked. */
char *tool_web_gone(const char *cluster, const struct sio_err *why);
/* The present state, and its rates since @before, which may be NULL. @look: counts the samples. */
char *tool_web_live(const char *cluster, uint64_t look, const struct tool_view *v,
		    const struct tool_sample *before, const struct tool_sample *now);

#endif
