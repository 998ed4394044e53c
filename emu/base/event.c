/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of the log, and events to the daemon of a host. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "emu/base/state.h"

void emu_log(struct emu_room *r, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->ops->log(r->ctx, text);
}

void emu_event(struct emu_host *h, void *evt, size_t size, uint32_t op)
{
	struct emu_room *r = h->room;
	struct sio_evt *e = evt;

	if (!h->up)
		return;
	e->size = (uint32_t)size;
	e->op = op;
	if (h->overflow)
		return;
	h->events++;
	h->overflow = r->ops->send(r->ctx, h->index, evt, size, NULL, 0) == -ENOBUFS;
}
