/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupt vectors of borrowed devices (smartio/ext.h). The lender's daemon does the work. */
#include <errno.h>

#include "sisci/device/device.h"

_Static_assert(SMARTIO_ANY_VECTOR == SIO_VECTOR_ANY, "one number for any");

void smartio_connect_device_interrupt(sci_smartio_device_t device, unsigned int *vector,
				      sci_remote_interrupt_t interrupt, sci_error_t *error)
{
	struct sio_msg_dev_vector req = {.reserved = sio_to_le32(0)};
	struct sio_rep_dev_vector rep;
	struct sio_object *link = NULL;
	struct sio_device_call c;

	sio_device_enter(&c, device);
	if (!c.rc)
		c.rc = sio_check_pointer(vector, "vector", &c.err);
	if (!c.rc) {
		link = sio_object_get(c.lib, interrupt, SIO_REMOTE_INT, &c.err);
		c.rc = c.err.code;
	}
	if (link) {
		req.vector = sio_to_le32(*vector);
		req.link = sio_to_le32(link->id);
	}
	sio_device_ask(&c, SIO_MSG_DEV_VECTOR, &req, sizeof(req), &req.device, &rep, sizeof(rep));
	if (!c.rc)
		*vector = sio_from_le32(rep.vector);
	sio_object_put(link);
	c.rc = sio_error_as(c.rc, -ENOENT, SCI_ERR_NO_SUCH_INTNO);
	sio_device_leave(&c, error);
}

void smartio_disconnect_device_interrupt(sci_smartio_device_t device, unsigned int vector,
					 sci_error_t *error)
{
	struct sio_msg_dev_vector req = {.vector = sio_to_le32(vector)};
	struct sio_device_call c;
	struct sio_msg rep;

	sio_device_enter(&c, device);
	sio_device_ask(&c, SIO_MSG_DEV_UNVECTOR, &req, sizeof(req), &req.device, &rep, sizeof(rep));
	sio_device_leave(&c, error);
}
