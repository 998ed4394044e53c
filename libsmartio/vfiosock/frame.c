/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "packet/packet.h"
#include "vfiosock/frame.h"

/* How many bytes are expected; the head states how many follow it. */
static size_t expected(const struct sio_vfio_frame *f)
{
	struct sio_vfio_header head;

	if (f->got < sizeof(head))
		return sizeof(head) - f->got;
	memcpy(&head, f->in, sizeof(head));
	return head.size - f->got;
}

int sio_vfio_frame_receive(struct sio_vfio_frame *f, int fd, struct sio_err *reterr)
{
	struct sio_vfio_header head;
	unsigned n_fds;
	bool lost;
	/*
	 * No read goes beyond a message, so that descriptors are those of the message they came
	 * with.
	 */
	ssize_t n = sio_packet_recv(fd, f->in + f->got, expected(f), f->fds + f->n_fds,
				    SIO_VFIO_MAX_FDS - f->n_fds, &n_fds, &lost);

	if (n == -EAGAIN)
		return -EAGAIN;
	if (n <= 0)
		return -EPIPE;
	f->n_fds += n_fds;
	f->got += (size_t)n;
	if (lost)
		return sio_fail(reterr, -EPROTO,
				"a message had more descriptors than were announced, or there are "
				"none left");
	if (f->got < sizeof(head))
		return 0;
	memcpy(&head, f->in, sizeof(head));
	if (f->got == sizeof(head) && sio_vfio_check_head(&head, reterr) < 0)
		return -EPROTO;
	return f->got < head.size ? 0 : (int)head.size;
}

unsigned sio_vfio_frame_taken(struct sio_vfio_frame *f)
{
	unsigned n = f->n_fds;

	f->n_fds = 0;
	f->got = 0;
	return n;
}

void sio_vfio_frame_drop(struct sio_vfio_frame *f)
{
	for (unsigned i = 0; i < f->n_fds; i++)
		close(f->fds[i]);
	sio_vfio_frame_taken(f);
}
