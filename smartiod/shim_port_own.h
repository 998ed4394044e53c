/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the shim's port share. */
#ifndef SMARTIOD_SHIM_PORT_OWN_H
#define SMARTIOD_SHIM_PORT_OWN_H

#include "smartiod/shim_port.h"

/* A request on its way, and its answer. */
struct shim_call {
	struct shim_call *next;
	int node; /* the device node */
	size_t len;
	int fd[SIO_PORT_MAX_FDS], answer_fd[SIO_PORT_MAX_FDS];
	unsigned n_fds, n_answer_fds;
	union {
		struct sio_req h;
		uint64_t words[SIO_PORT_MAX_PACKET / 8];
	} req;
	union {
		struct sio_evt h;
		struct sio_evt_error error;
		uint64_t words[SIO_PORT_MAX_PACKET / 8];
	} answer;
	uint64_t requests, refused; /* until now, for STATS */
};

/* The module's answer. */
void shim_call_module(struct shim_call *c);
/* A refusal. @error: -errno. */
void shim_call_refuse(struct shim_call *c, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Room for a successful answer of @size bytes, zeroed. */
void *shim_call_answer(struct shim_call *c, size_t size);
/* Answer the request, by the module or without it. */
void shim_call_serve(struct shim_call *c);

/* What sysfs and configuration space tell of the function @evt->name, into the rest of @evt. */
void shim_device_look(struct sio_evt_device *evt);
/* Pure: BARs out of the text of sysfs's file "resource". */
void shim_device_bars(const char *text, struct sio_evt_device *evt);
/* Pure: the device serial number out of @len bytes of configuration space; 0: none. */
uint64_t shim_device_serial(const unsigned char *config, size_t len);
/* Configuration space of the function @name: read, after a write of some bits if @m says so. */
void shim_device_config(struct shim_call *c, const char *name, const struct sio_req_config *m);
/* A number in the file @file of the function @name; 0: there is none. */
uint64_t shim_device_number(const char *name, const char *file);

#endif
