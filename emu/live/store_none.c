/* SPDX-License-Identifier: BSD-2-Clause */
/* A build without liburing: no drive can have a file. */
#include <errno.h>

#include "emu/live/live.h"

static int refuse(struct emu_store *s, const char *path, uint64_t size, void **ret,
		  struct sio_err *reterr)
{
	(void)s;
	(void)size;
	(void)ret;
	return sio_fail(reterr, -ENOTSUP,
			"file %s: this smartio-emu was built without liburing, and keeps drives in "
			"memory alone; one built with -During=enabled is right",
			path);
}

/* Without an open file nothing else is called. */
static const struct emu_store_ops none_ops = {.open = refuse};
static struct emu_store none = {.ops = &none_ops};

struct emu_store *live_store(void *ctx)
{
	(void)ctx;
	return &none;
}

int live_store_watch(struct live *l, struct sio_err *reterr)
{
	(void)l;
	(void)reterr;
	return 0;
}

void live_store_event(struct live *l)
{
	(void)l;
}

void live_store_close(struct live *l)
{
	(void)l;
}
