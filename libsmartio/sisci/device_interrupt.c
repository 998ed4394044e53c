/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupt vectors of borrowed devices (smartio/ext.h). The lender's daemon does the work. */
#include <errno.h>

#include "sisci/device.h"

_Static_assert(SMARTIO_ANY_VECTOR == SIO_VECTOR_ANY, "one number for any");

static int connect_vector(struct sio_library *lib, sci_smartio_device_t device, unsigned *vector,
			  sci_remote_interrupt_t interrupt, struct sio_err *err)
{
	struct sio_msg_dev_vector req = {.vector = sio_to_le32(*vector)};
	struct sio_rep_dev_vector rep;
	struct sio_object *link;
	struct sio_device *d;
	int rc;

	d = sio_object_get(lib, device, SIO_DEVICE, err);
	if (!d)
		return err->code;
	link = sio_object_get(lib, interrupt, SIO_REMOTE_INT, err);
	rc = err->code;
	if (link) {
		req.device = sio_to_le32(d->o.id);
		req.link = sio_to_le32(link->id);
		rc = sio_ask(lib, SIO_MSG_DEV_VECTOR, &req, sizeof(req), &rep, sizeof(rep), err);
		if (!rc)
			*vector = sio_from_le32(rep.vector);
		sio_object_put(link);
	}
	sio_object_put(&d->o);
	return sio_error_as(rc, -ENOENT, SCI_ERR_NO_SUCH_INTNO);
}

void smartio_connect_device_interrupt(sci_smartio_device_t device, unsigned int *vector,
				      sci_remote_interrupt_t interrupt, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib)
		rc = sio_check_pointer(vector, "vector", &err);
	if (!rc)
		rc = connect_vector(lib, device, vector, interrupt, &err);
	sio_api_leave(error, rc, &err);
}

void smartio_disconnect_device_interrupt(sci_smartio_device_t device, unsigned int vector,
					 sci_error_t *error)
{
	struct sio_msg_dev_vector req = {.vector = sio_to_le32(vector)};
	struct sio_device *d = NULL;
	struct sio_msg rep;
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib) {
		d = sio_object_get(lib, device, SIO_DEVICE, &err);
		rc = err.code;
	}
	if (d) {
		req.device = sio_to_le32(d->o.id);
		rc = sio_ask(lib, SIO_MSG_DEV_UNVECTOR, &req, sizeof(req), &rep, sizeof(rep), &err);
		sio_object_put(&d->o);
	}
	sio_api_leave(error, rc, &err);
}
