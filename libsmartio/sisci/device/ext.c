/* SPDX-License-Identifier: BSD-2-Clause */
/* The extensions of smartio/ext.h about borrowed devices, except those that wait (wait.c). */
#include <errno.h>

#include "sisci/device/device.h"
#include "sisci/interrupt/dataint.h"
#include "sisci/segment/segment.h"

static volatile uint32_t *words(sci_smartio_device_t device)
{
	struct sio_library *lib = sio_library_get();

	return lib ? sio_handle_words(lib->handles, (uintptr_t)device, SIO_DEVICE) : NULL;
}

uint64_t smartio_borrower_id(sci_smartio_device_t device)
{
	struct sio_device_call c;
	uint64_t id;

	sio_device_enter(&c, device);
	id = c.device ? c.device->borrower : 0;
	sio_device_leave(&c, NULL);
	return id;
}

uint32_t smartio_device_generation(sci_smartio_device_t device)
{
	volatile uint32_t *w = words(device);

	/* pairs with the releases in device_lost() and happened() */
	return w ? __atomic_load_n(&w[SIO_DEVICE_GENERATION], __ATOMIC_ACQUIRE) : 0;
}

const volatile uint32_t *smartio_device_generation_word(sci_smartio_device_t device)
{
	volatile uint32_t *w = words(device);

	return w ? &w[SIO_DEVICE_GENERATION] : NULL;
}

int smartio_device_lost(sci_smartio_device_t device)
{
	volatile uint32_t *w = words(device);

	/* pairs with the release in device_lost() */
	return !w || __atomic_load_n(&w[SIO_DEVICE_IS_LOST], __ATOMIC_ACQUIRE);
}

/* Async-signal-safe: two words, no reference that could be the last. */
void smartio_wake(sci_smartio_device_t device)
{
	struct sio_world *world = sio_world_current();
	volatile uint32_t *w = words(device);

	if (!w)
		return;
	/* The word, then the descriptor: pairs with clear_event_fd(), the other way round. */
	__atomic_store_n(&w[SIO_DEVICE_WAKE], 1, __ATOMIC_SEQ_CST);
	world->event_write(world, (int)w[SIO_DEVICE_EVENT_FD]);
}

int smartio_device_event_fd(sci_smartio_device_t device)
{
	volatile uint32_t *w = words(device);

	return w ? (int)w[SIO_DEVICE_EVENT_FD] : -1;
}

int smartio_data_interrupt_fd(sci_local_data_interrupt_t interrupt)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	struct sio_local_dint *d =
		lib ? sio_object_get(lib, interrupt, SIO_LOCAL_DINT, &err) : NULL;
	int fd = d && !d->callback ? d->r.fd : -1;

	if (d)
		sio_object_put(&d->r.o);
	return fd;
}

/* Under the lock: is there a map of its registers that can be written? */
static bool maps_registers(const struct sio_object *device)
{
	for (const struct sio_object *seg = device->first_child; seg; seg = seg->sibling)
		for (const struct sio_object *o = seg->first_child; o; o = o->sibling)
			if (o->kind == SIO_MAPPING && ((const struct sio_mapping *)o)->registers)
				return true;
	return false;
}

int smartio_holds_registers(sci_smartio_device_t device)
{
	struct sio_device_call c;
	int held = 0;

	sio_device_enter(&c, device);
	if (c.device) {
		sio_session_lock(c.lib->session);
		held = !c.device->o.lost && maps_registers(&c.device->o);
		sio_session_unlock(c.lib->session);
	}
	sio_device_leave(&c, NULL);
	return held;
}

void smartio_device_settled(sci_smartio_device_t device, uint64_t borrower, sci_error_t *error)
{
	struct sio_msg_dev_settled req = {.borrower = sio_to_le64(borrower)};
	struct sio_device_call c;
	struct sio_msg rep;

	sio_device_enter(&c, device);
	sio_device_ask(&c, SIO_MSG_DEV_SETTLED, &req, sizeof(req), &req.device, &rep, sizeof(rep));
	sio_device_leave(&c, error);
}

void smartio_device_notify(sci_smartio_device_t device, sci_error_t *error)
{
	struct sio_msg_handle req = {.flags = sio_to_le32(0)};
	struct sio_device_call c;
	struct sio_msg rep;

	sio_device_enter(&c, device);
	sio_device_ask(&c, SIO_MSG_DEV_NOTIFY, &req, sizeof(req), &req.handle, &rep, sizeof(rep));
	sio_device_leave(&c, error);
}

void smartio_device_hold(sci_smartio_device_t device, uint64_t borrower, sci_ioaddr_t ioaddr,
			 size_t bytes, uint64_t *hold, sci_error_t *error)
{
	struct sio_msg_dev_hold req = {.borrower = sio_to_le64(borrower),
				       .ioaddr = sio_to_le64(ioaddr),
				       .bytes = sio_to_le64(bytes)};
	struct sio_rep_dev_hold rep;
	struct sio_device_call c;

	sio_device_enter(&c, device);
	if (!c.rc)
		c.rc = sio_check_pointer(hold, "hold", &c.err);
	sio_device_ask(&c, SIO_MSG_DEV_HOLD, &req, sizeof(req), &req.device, &rep, sizeof(rep));
	if (!c.rc)
		*hold = sio_from_le64(rep.hold);
	sio_device_leave(&c, error);
}

void smartio_device_unhold(sci_smartio_device_t device, uint64_t hold, sci_error_t *error)
{
	struct sio_msg_dev_unhold req = {.hold = sio_to_le64(hold)};
	struct sio_device_call c;
	struct sio_msg rep;

	sio_device_enter(&c, device);
	sio_device_ask(&c, SIO_MSG_DEV_UNHOLD, &req, sizeof(req), &req.device, &rep, sizeof(rep));
	sio_device_leave(&c, error);
}

void smartio_device_assign(sci_smartio_device_t device, uint64_t borrower, unsigned int bar,
			   size_t offset, size_t bytes, sci_error_t *error)
{
	struct sio_msg_dev_assign req = {.borrower = sio_to_le64(borrower),
					 .bar = sio_to_le32(bar),
					 .offset = sio_to_le64(offset),
					 .bytes = sio_to_le64(bytes)};
	struct sio_device_call c;
	struct sio_msg rep;

	sio_device_enter(&c, device);
	sio_device_ask(&c, SIO_MSG_DEV_ASSIGN, &req, sizeof(req), &req.device, &rep, sizeof(rep));
	sio_device_leave(&c, error);
}

void smartio_device_reset(sci_smartio_device_t device, sci_error_t *error)
{
	struct sio_msg_handle req = {.flags = sio_to_le32(0)};
	struct sio_device_call c;
	struct sio_msg rep;

	sio_device_enter(&c, device);
	sio_device_ask(&c, SIO_MSG_DEV_RESET, &req, sizeof(req), &req.handle, &rep, sizeof(rep));
	c.rc = sio_error_as(c.rc, -ETIMEDOUT, SCI_ERR_TIMEOUT);
	sio_device_leave(&c, error);
}
