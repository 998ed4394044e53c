/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the shim's port. */
#ifndef SMARTIOD_SHIM_PORT_OWN_H
#define SMARTIOD_SHIM_PORT_OWN_H

#include "smartiod/port_shim/shim_port.h"

#define SHIM_DEVICE_OPEN 2 /* the module's "present" of an open device; else 1 */

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
	bool unsettled;		    /* SIO_IOC_SETTLE before it is answered */
};

/* The module's answer. */
void shim_call_module(struct shim_call *c);
/* The size, reserved fields, flags and descriptors are as they must be; else it is refused. */
bool shim_call_formed(struct shim_call *c, unsigned max_fds);
/*
 * Ask the module something for ourselves, on behalf of @c: request @q with its operation's fields.
 */
int shim_call_ask(const struct shim_call *c, struct shim_call *q, uint32_t op, size_t size);
/*
 * What the module tells: an error is its own word, or that it could not say (-ENOMEM): who takes
 * that for "nothing there" acts on what is not so.
 */
/* The object that LIST reports. Return: 0; -ENOENT: none; -errno. */
int shim_call_find(const struct shim_call *c, uint32_t kind, uint64_t id,
		   struct sio_list_entry *ret);
/* Call @each for all of @kind, in the order of ids. Return: 0 or -errno, after some or none. */
int shim_call_for_all(const struct shim_call *c, uint32_t kind,
		      void (*each)(const struct sio_list_entry *e, void *data), void *data);
/* The function that has number @id, as the module reports it. Return: 0; -ENODEV: none; -errno. */
int shim_call_find_device(const struct shim_call *c, uint64_t id, struct sio_evt_device *ret);
/* The same for a request that needs it; false: it was refused, with @who before the words. */
bool shim_call_needs_device(struct shim_call *c, const char *who, uint64_t id,
			    struct sio_evt_device *ret);
/* A refusal. @error: -errno. */
void shim_call_refuse(struct shim_call *c, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Room for a successful answer of @size bytes, zeroed. */
void *shim_call_answer(struct shim_call *c, size_t size);
/* Answer a request of that operation. */
void shim_call_settle(struct shim_call *c);
void shim_call_identify(struct shim_call *c);
void shim_call_list(struct shim_call *c);
/* Answer the request, by the module or without it. */
void shim_call_serve(struct shim_call *c);

/* Fill @evt with what sysfs and configuration space report about the function @evt->name. */
void shim_device_look(struct sio_evt_device *evt);
/* Transparent switches above the function @bdf, as struct sio_evt_device has them. */
void shim_device_above(uint32_t bdf, uint32_t above[SIO_ABOVE]);
/* Pure: the same, from the path of the function in sysfs: "/sys/devices/pci0000:00/...". */
void shim_device_above_of(const char *path, uint32_t above[SIO_ABOVE]);
/* Pure: BARs out of the text of sysfs's file "resource". */
void shim_device_bars(const char *text, struct sio_evt_device *evt);
/* Pure: the device serial number out of @len bytes of configuration space; 0: none. */
uint64_t shim_device_serial(const unsigned char *config, size_t len);
/* Pure: bit SIO_RESET_* out of sysfs's file "reset_method"; @alone: it is, on its bus. */
uint32_t shim_device_resets(const char *methods, bool alone);
/* Configuration space of the function @name: read, after a write of some bits if @m says so. */
void shim_device_config(struct shim_call *c, const char *name, const struct sio_req_config *m);
/* Interrupts of the function @name since it was opened. */
uint64_t shim_device_interrupts(const char *name);

#endif
