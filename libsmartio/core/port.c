/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>

#include "core/port.h"
#include "smartio/uapi.h"

#define FORM(NAME, type, number, result, allowed, none, files)                                     \
	[SIO_OP_##NAME] = {.name = #NAME,                                                          \
			   .size = sizeof(struct sio_req_##type),                                  \
			   .answer = sizeof(struct sio_evt_##result),                              \
			   .flags = (allowed),                                                     \
			   .zero = offsetof(struct sio_req_##type, none),                          \
			   .fds = (files)},

static const struct sio_port_form forms[SIO_OP_COUNT] = {SIO_PORT_REQUESTS(FORM)};

const struct sio_port_form *sio_port_form(uint32_t op)
{
	return op < SIO_OP_COUNT && forms[op].name ? &forms[op] : NULL;
}
