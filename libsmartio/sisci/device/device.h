/* SPDX-License-Identifier: BSD-2-Clause */
/* Borrowed devices: shared by the files of this folder. */
#ifndef SISCI_DEVICE_H
#define SISCI_DEVICE_H

#include "sisci/base/library.h"
#include "smartio/ext.h"

extern const struct sio_kind_ops sio_device_kind, sio_device_map_kind, sio_overlay_kind;

/* Words beside a device's handle, read by programs without a lock. */
enum { SIO_DEVICE_GENERATION, SIO_DEVICE_IS_LOST, SIO_DEVICE_WAKE, SIO_DEVICE_EVENT_FD };

struct sio_device {
	struct sio_object o;
	uint32_t fdid;
	uint64_t borrower;
	int event_fd; /* readable while an event waits or somebody called smartio_wake() */
	volatile uint32_t *words;
	struct smartio_device_event *events; /* under the lock */
	unsigned n_events, max_events;
};

/* A call of the API about one device: enter, check other arguments, send the request, leave. */
struct sio_device_call {
	struct sio_library *lib;
	struct sio_device *device; /* with a reference; NULL: @rc is not 0 */
	struct sio_err err;
	int rc;
};
void sio_device_enter(struct sio_device_call *c, sci_smartio_device_t device);
/*
 * Sends the request to smartiod, unless something failed before; the device's handle is put into
 * @field of the request.
 */
void sio_device_ask(struct sio_device_call *c, uint32_t type, void *req, size_t req_len,
		    sio_le32 *field, void *rep, size_t rep_len);
/* Reports the result to @error (NULL: nowhere), and to smartio_last_error(). */
void sio_device_leave(struct sio_device_call *c, sci_error_t *error);

/* Translates the description of a device into the API's form. */
void sio_device_info(const struct sio_rep_dev_list *rep, sci_smartio_device_info_t *info);
/* The first device whose id is greater than @after; -ENODEV: none. */
int sio_device_next(struct sio_library *lib, uint32_t after, struct sio_rep_dev_list *rep,
		    struct sio_err *err);

#endif
