/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hardware port of a real host, as smartio/uapi.h describes it. It consists of smartio.ko's
 * device node, and of what root can see and do without a kernel module. The device node answers
 * each request during the call; here answers become asynchronous again. A reset is done by a thread
 * of its own, requests about the same device wait behind it, and all answers are read like events.
 * Not thread-safe.
 */
#ifndef SMARTIOD_SHIM_PORT_H
#define SMARTIOD_SHIM_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "smartio/uapi.h"

struct shim_port;

/* Open the node @path. Return: 0; -errno of open() (-EBUSY: another daemon has it), -ENOMEM. */
int shim_port_open(const char *path, struct shim_port **ret);
/* Waits for resets under way. What nobody read is lost, with its descriptors. */
void shim_port_close(struct shim_port *p);

/* To poll: readable while an event waits. */
int shim_port_fd(const struct shim_port *p);

/*
 * A request, with descriptors, which stay the caller's. Return: 0: there will be one answer;
 * -EMSGSIZE: less than a header or more than any request; -EINVAL: too many descriptors; -EMFILE,
 * -ENOMEM: there will be none.
 */
int shim_port_send(struct shim_port *p, const void *req, size_t len, const int *fds,
		   unsigned n_fds);

/*
 * The next answer, or event that nobody asked for, into @evt of SIO_PORT_MAX_PACKET bytes; its
 * descriptors (@fds has room for SIO_PORT_MAX_FDS) are the caller's. Answers come before other
 * events. Return: its size; -EAGAIN: none waits; -errno of the node.
 */
long shim_port_event(struct shim_port *p, void *evt, int *fds, unsigned *ret_n_fds);

#endif
