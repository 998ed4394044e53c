/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio.ko as a world: one host, without a peer, behind a device node, as smartiod drives it. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port.h"
#include "smartiod/port_shim/shim_port.h"

#define PATIENCE_MS 60000 /* the machine may be emulated, and on a loaded one */

struct device {
	char path[64];
	struct shim_port *port;
};

static int device_open(const char *where, void **ret)
{
	struct device *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return -ENOMEM;
	snprintf(d->path, sizeof(d->path), "%s", where);
	rc = shim_port_open(where, &d->port);
	if (rc < 0)
		free(d);
	else
		*ret = d;
	return rc;
}

static int device_send(void *world, unsigned host, const void *req, size_t len, const int *fds,
		       unsigned n_fds)
{
	(void)host;
	return shim_port_send(((struct device *)world)->port, req, len, fds, n_fds);
}

static long device_event(void *world, unsigned host, void *evt, size_t size, int *fds,
			 unsigned *ret_fds)
{
	struct device *d = world;
	struct pollfd pfd = {.fd = shim_port_fd(d->port), .events = POLLIN};
	long n;

	(void)host;
	(void)size; /* always a packet's */
	*ret_fds = 0;
	do { /* what has changed may be no news */
		if (poll(&pfd, 1, PATIENCE_MS) != 1)
			return -ETIMEDOUT;
		n = shim_port_event(d->port, evt, fds, ret_fds);
	} while (n == -EAGAIN);
	return n;
}

/* They lie in the kernel, where /proc cannot tell: kmemleak and the module's use count do. */
static long device_descriptors(void *world)
{
	(void)world;
	return -1;
}

static int device_reopen(void *world, unsigned host)
{
	struct device *d = world;

	(void)host;
	shim_port_close(d->port);
	return shim_port_open(d->path, &d->port);
}

static int device_close(void *world)
{
	struct device *d = world;
	shim_port_close(d->port);
	free(d);
	return 0;
}

const struct port_transport port_device = {
	.one_host = true,
	.open = device_open,
	.send = device_send,
	.event = device_event,
	.descriptors = device_descriptors,
	.reopen = device_reopen,
	.close = device_close,
};
