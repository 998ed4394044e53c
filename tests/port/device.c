/* SPDX-License-Identifier: BSD-2-Clause */
/* smartio.ko as a world: one host, without a peer, behind a device node. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "port.h"

#define PATIENCE_MS 60000 /* the machine may be emulated, and on a loaded one */

struct device {
	char path[64];
	int fd;
};

static int device_open(const char *where, void **ret)
{
	struct device *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	snprintf(d->path, sizeof(d->path), "%s", where);
	d->fd = open(where, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (d->fd < 0) {
		int error = -errno;

		free(d);
		return error;
	}
	*ret = d;
	return 0;
}

static int device_send(void *world, unsigned host, const void *req, size_t len, const int *fds,
		       unsigned n_fds)
{
	struct sio_ioc_packet p = {.data = (uintptr_t)req, .size = (uint32_t)len, .n_fds = n_fds};

	(void)host;
	for (unsigned i = 0; i < n_fds && i < SIO_PORT_MAX_FDS; i++)
		p.fd[i] = fds[i];
	return ioctl(((struct device *)world)->fd, SIO_IOC_REQUEST, &p) < 0 ? -errno : 0;
}

static long device_event(void *world, unsigned host, void *evt, size_t size, int *fds,
			 unsigned *ret_fds)
{
	struct sio_ioc_packet p = {.data = (uintptr_t)evt, .size = (uint32_t)size};
	struct pollfd pfd = {.fd = ((struct device *)world)->fd, .events = POLLIN};

	(void)host;
	*ret_fds = 0;
	if (poll(&pfd, 1, PATIENCE_MS) != 1)
		return -ETIMEDOUT;
	if (ioctl(pfd.fd, SIO_IOC_EVENT, &p) < 0)
		return -errno;
	*ret_fds = p.n_fds;
	memcpy(fds, p.fd, sizeof(int) * p.n_fds);
	return p.size;
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
	close(d->fd);
	d->fd = open(d->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return d->fd < 0 ? -errno : 0;
}

static int device_close(void *world)
{
	struct device *d = world;
	int rc = close(d->fd);

	free(d);
	return rc;
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
