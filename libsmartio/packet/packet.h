/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets with descriptors beside them, over a SOCK_SEQPACKET socket: the kernel's calls, and
 * nothing of what a packet says. Live code: the pure archives reach it by their tables.
 */
#ifndef PACKET_PACKET_H
#define PACKET_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SIO_PACKET_FDS 253 /* the most that the kernel sends with one packet */

/*
 * Send @len bytes and copies of @fds, whole or not at all. A signal does not end it, and a peer
 * that is gone raises none. Return: @len; -EAGAIN: the other end does not read, and @wait is false;
 * -EINVAL: too many descriptors; another -errno.
 */
ssize_t sio_packet_send(int fd, const void *buf, size_t len, const int *fds, unsigned n_fds,
			bool wait);

/*
 * Take one packet; never waits. *ret_n_fds descriptors, close-on-exec, are the caller's then, also
 * with -EMSGSIZE. *ret_lost: some of the packet's are not among them, because there are more than
 * @max_fds (these are closed), or this process's table of descriptors is full.
 * Return: bytes, 0 at the end; -EAGAIN: there is none; -EMSGSIZE: it was longer than @len, and the
 * rest is lost; another -errno. Without a packet *ret_n_fds is 0.
 */
ssize_t sio_packet_recv(int fd, void *buf, size_t len, int *fds, unsigned max_fds,
			unsigned *ret_n_fds, bool *ret_lost);

#endif
