/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets with descriptors over a SOCK_SEQPACKET socket: the system calls alone, not the contents
 * of packets. Live code: the pure archives reach it by their tables of operations.
 */
#ifndef PACKET_PACKET_H
#define PACKET_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SIO_PACKET_FDS 253 /* the most that the kernel sends with one packet */

/*
 * Sends @len bytes and copies of @fds, all or nothing. A signal does not interrupt it, and a closed
 * connection raises no SIGPIPE. Return: @len; -EAGAIN: the other end does not read, and @wait is
 * false; -EINVAL: too many descriptors; another -errno.
 */
ssize_t sio_packet_send(int fd, const void *buf, size_t len, const int *fds, unsigned n_fds,
			bool wait);

/*
 * Receives one packet; never waits. *ret_n_fds descriptors, close-on-exec, are the caller's then,
 * also with -EMSGSIZE. *ret_lost: some of the packet's descriptors are missing, because there are
 * more than @max_fds (these are closed), or this process's table of descriptors is full.
 * Return: bytes, 0 at the end; -EAGAIN: there is none; -EMSGSIZE: it was longer than @len, and the
 * rest is lost; another -errno. Without a packet *ret_n_fds is 0.
 */
ssize_t sio_packet_recv(int fd, void *buf, size_t len, int *fds, unsigned max_fds,
			unsigned *ret_n_fds, bool *ret_lost);

#endif
