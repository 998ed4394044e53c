/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile peer of the vfio-user server: a stream of messages, each led by a byte for how many
 * descriptors come with it, to a session whose function is the NVMe model. What is answered must be
 * whole messages; what was mapped and given must be given back.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "emu/vfio/device.h"
#include "fuzz.h"

#define RAM_BYTES 65536u

struct peer {
	uint8_t ram[RAM_BYTES];
	long n_mapped, n_fds;
};

static int map(void *ctx, int fd, uint64_t offset, const struct sio_vfio_range *range, void **ret)
{
	struct peer *p = ctx;

	(void)fd;
	if (offset > RAM_BYTES || range->size > RAM_BYTES - offset)
		return -EINVAL;
	p->n_mapped++;
	*ret = p->ram + offset;
	return 0;
}

static void unmap(void *ctx, void *data, uint64_t size)
{
	struct peer *p = ctx;

	if ((uint8_t *)data < p->ram || (uint8_t *)data + size > p->ram + RAM_BYTES)
		abort();
	p->n_mapped--;
}

static void take(void *ctx, const void *message, size_t len, int fd)
{
	struct sio_vfio_header head;

	(void)ctx;
	(void)fd;
	if (len < sizeof(head))
		abort();
	memcpy(&head, message, sizeof(head));
	if (head.size != len || sio_vfio_check_head(&head, NULL) < 0 ||
	    (head.error != 0) != ((head.flags & SIO_VFIO_ERROR) != 0))
		abort();
}

static bool is_event(void *ctx, int fd)
{
	(void)ctx;
	return fd % 2;
}

static void signal_event(void *ctx, int fd)
{
	(void)ctx;
	if (fd % 2 == 0)
		abort();
}

static void close_fd(void *ctx, int fd)
{
	(void)fd;
	((struct peer *)ctx)->n_fds--;
}

static void say(void *ctx, const char *text)
{
	(void)ctx;
	if (!*text)
		abort();
}

static uint64_t now(void *ctx)
{
	(void)ctx;
	return 0;
}

static const struct sio_vfio_session_ops session_ops = {.memory = {map, unmap},
							.send = take,
							.is_event = is_event,
							.signal = signal_event,
							.close = close_fd,
							.log = say};
static const struct emu_vfio_device_ops device_ops = {.now = now, .log = say};

/* Return: bytes used; 0: no more. */
static size_t one(struct peer *p, struct sio_vfio_session *s, const uint8_t *data, size_t size)
{
	struct sio_vfio_header head;
	int fds[SIO_VFIO_MAX_FDS];
	unsigned n_fds;
	size_t len;

	if (size < 1 + sizeof(head))
		return 0;
	n_fds = data[0] % (SIO_VFIO_MAX_FDS + 1);
	memcpy(&head, data + 1, sizeof(head));
	if (sio_vfio_check_head(&head, NULL) < 0)
		return 0;
	len = head.size < size - 1 ? head.size : size - 1;
	/*
	 * A size that the stream has not got: as many bytes as there are, and a head that says so.
	 */
	{
		uint8_t *message = malloc(len);

		if (!message)
			abort();
		memcpy(message, data + 1, len);
		head.size = (uint32_t)len;
		memcpy(message, &head, sizeof(head));
		for (unsigned i = 0; i < n_fds; i++)
			fds[i] = data[0] / 17 % 2 ? (int)i * 2 + 1 : (int)i;
		p->n_fds += n_fds;
		if (sio_vfio_session_take(s, message, len, fds, n_fds) < 0)
			len = 0;
		free(message);
	}
	return len ? len + 1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sio_topo_device topo = {.name = "d",
					     .type = "nvme",
					     .serial = "S",
					     .size = 65536,
					     .block_size = 512,
					     .queue_pairs = 2,
					     .queue_entries = 16,
					     .vectors = 3};
	struct peer *p = calloc(1, sizeof(*p));
	struct sio_vfio_session *s;
	struct emu_vfio_device *d;
	size_t n;

	if (!p || emu_vfio_device_new(&emu_nvme_model, &topo, &device_ops, p, &d, NULL) < 0)
		abort();
	s = sio_vfio_session_new(&emu_vfio_device_function, d, &session_ops, p);
	if (!s)
		abort();
	emu_vfio_device_attach(d, s);
	while ((n = one(p, s, data, size)) > 0) {
		data += n;
		size -= n;
		for (unsigned i = 0; i < 4; i++)
			emu_vfio_device_step(d, 16);
	}
	emu_vfio_device_attach(d, NULL);
	sio_vfio_session_free(s);
	emu_vfio_device_free(d);
	if (p->n_mapped || p->n_fds)
		abort();
	free(p);
	return 0;
}
