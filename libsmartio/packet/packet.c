/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet/packet.h"

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * SIO_PACKET_FDS)];
};

ssize_t sio_packet_send(int fd, const void *buf, size_t len, const int *fds, unsigned n_fds,
			bool wait)
{
	union control control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (n_fds > SIO_PACKET_FDS)
		return -EINVAL;
	if (n_fds > 0) {
		struct cmsghdr *h;

		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		memset(&control, 0, m.msg_controllen);
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(h), fds, sizeof(int) * n_fds);
	}
	do
		n = sendmsg(fd, &m, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Return: how many there were beyond @max. */
static unsigned take_fds(struct msghdr *m, int *fds, unsigned max, unsigned *ret_n)
{
	unsigned n = 0, closed = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		size_t count;

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(fd));
			if (n < max) {
				fds[n++] = fd;
			} else {
				close(fd);
				closed++;
			}
		}
	}
	*ret_n = n;
	return closed;
}

ssize_t sio_packet_recv(int fd, void *buf, size_t len, int *fds, unsigned max_fds,
			unsigned *ret_n_fds, bool *ret_lost)
{
	union control control;
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	*ret_n_fds = 0;
	*ret_lost = false;
	do {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*ret_lost = take_fds(&m, fds, max_fds, ret_n_fds) > 0 || m.msg_flags & MSG_CTRUNC;
	return m.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
}
