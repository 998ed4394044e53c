/* SPDX-License-Identifier: BSD-2-Clause */
/* The form of each request of the hardware port, made from the port's own list. */
#ifndef CORE_PORT_H
#define CORE_PORT_H

#include <stdint.h>

struct sio_port_form {
	const char *name;
	uint32_t size, answer; /* bytes of the request, and of its answer if it succeeds */
	uint32_t flags;	       /* allowed in h.flags */
	uint32_t zero;	       /* offset of a 32-bit field that is 0 */
	uint32_t fds;	       /* most descriptors that come along */
};

/* NULL: no operation has this number. */
const struct sio_port_form *sio_port_form(uint32_t op);

#endif
