/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations on the daemon itself that every room may use. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "smartiod/base/state.h"

void smartiod_log_from(struct smartiod *d, const char *file, int level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	d->ops->log(d->ctx, file, level, fmt, ap);
	va_end(ap);
}

void smartiod_fatal(struct smartiod *d, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (d->failed)
		return;
	d->failed = true;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	d->ops->fatal(d->ctx, text);
}

uint64_t smartiod_uid(struct smartiod *d)
{
	return ++d->next_uid;
}

void smartiod_close_fd(struct smartiod *d, int *fd)
{
	if (*fd >= 0)
		d->ops->close(d->ctx, *fd);
	*fd = -1;
}

void smartiod_arm(struct smartiod *d, uint64_t when)
{
	if (when >= d->timer_at)
		return;
	d->timer_at = when;
	d->ops->timer(d->ctx, when);
}

void smartiod_ask_later(struct smartiod *d)
{
	if (d->later)
		return;
	d->later = true;
	d->ops->later(d->ctx);
}

const char *smartiod_no_descriptor(struct smartiod *d)
{
	snprintf(d->no_descriptor, sizeof(d->no_descriptor),
		 "smartiod of %s has no file descriptor left of %" PRIu64
		 ": raise its hard limit (ulimit -Hn, LimitNOFILE=) and start it anew",
		 d->host->name, d->descriptors);
	return d->no_descriptor;
}
