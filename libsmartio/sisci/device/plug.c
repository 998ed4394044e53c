/* SPDX-License-Identifier: BSD-2-Clause */
/* Device Lending (smartio/ext.h). smartiod does the work. */
#include <errno.h>

#include "sisci/device/device.h"

_Static_assert(SMARTIO_ALL_MEMORY == SIO_SHADOW_ALL_MEMORY, "one number for the flag");
_Static_assert(SMARTIO_PEERS == SIO_SHADOW_WITH_PEERS, "one number for the flag");

/* Their handles at smartiod; it looks what else there is to see. */
static int name_interrupts(struct sio_device_call *c, const sci_local_interrupt_t *interrupts,
			   unsigned n, struct sio_msg_shadow *ret)
{
	if (n > SMARTIO_PLUG_VECTORS)
		return sio_fail(&c->err, -EINVAL, "%u interrupts, %u at most are right", n,
				SMARTIO_PLUG_VECTORS);
	if (n && sio_check_pointer(interrupts, "interrupts", &c->err))
		return c->err.code;
	ret->n_interrupts = sio_to_le32(n);
	for (unsigned i = 0; i < n; i++) {
		struct sio_object *o =
			sio_object_get(c->lib, interrupts[i], SIO_LOCAL_INT, &c->err);

		if (!o)
			return c->err.code;
		ret->interrupt[i] = sio_to_le32(o->id);
		sio_object_put(o);
	}
	return 0;
}

void smartio_plug_in(sci_smartio_device_t device, const sci_local_interrupt_t *interrupts,
		     unsigned int n, uint64_t window, unsigned int flags, uint32_t *place,
		     sci_error_t *error)
{
	struct sio_msg_shadow req = {.flags = sio_to_le32(flags), .window = sio_to_le64(window)};
	struct sio_rep_shadow rep;
	struct sio_device_call c;

	_Static_assert(sizeof(req.interrupt) / sizeof(req.interrupt[0]) == SMARTIO_PLUG_VECTORS,
		       "there is room for all");
	sio_device_enter(&c, device);
	if (!c.rc)
		c.rc = sio_check_pointer(place, "place", &c.err);
	if (!c.rc)
		c.rc = name_interrupts(&c, interrupts, n, &req);
	sio_device_ask(&c, SIO_MSG_SHADOW, &req, sizeof(req), &req.device, &rep, sizeof(rep));
	if (!c.rc)
		*place = sio_from_le32(rep.bdf);
	sio_device_leave(&c, error);
}

void smartio_unplug(sci_smartio_device_t device, sci_error_t *error)
{
	struct sio_msg_handle req = {.flags = sio_to_le32(0)};
	struct sio_device_call c;
	struct sio_msg rep;

	sio_device_enter(&c, device);
	sio_device_ask(&c, SIO_MSG_SHADOW_DEL, &req, sizeof(req), &req.handle, &rep, sizeof(rep));
	sio_device_leave(&c, error);
}
