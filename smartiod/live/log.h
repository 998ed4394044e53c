/* SPDX-License-Identifier: BSD-2-Clause */
/* Where smartiod's log lines go, and which lines are written. */
#ifndef SMARTIOD_LIVE_LOG_H
#define SMARTIOD_LIVE_LOG_H

#include <stdarg.h>
#include <stdint.h>

#include "core/err.h"

/* Lines of @room (NULL: of all) go out up to @level, as syslog(3) counts. -EINVAL with a text. */
int live_log_level(const char *room, int level, struct sio_err *reterr);
/* "ROOM.LEVEL", as -D has it; the level by name or number. -EINVAL with a text. */
int live_log_parse(const char *text, struct sio_err *reterr);
/* Lines are of host @node from now on; whether the journal reads standard error is looked up. */
void live_log_start(uint32_t node);
/*
 * A line of the room whose source @file is (__FILE__), if its level says so: to the journal with
 * fields of its own where that reads standard error, else to standard error.
 */
void live_log_write(const char *file, int level, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));
/* The same, as a call. */
void live_log_from(const char *file, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
