/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices: finding, borrowing, returning, and what happens to a borrowed one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sisci/device/device.h"
#include "sisci/segment/segment.h"

static void device_free(struct sio_object *o)
{
	struct sio_device *d = (void *)o;

	if (d->event_fd >= 0)
		o->lib->world->close(o->lib->world, d->event_fd);
	free(d->events);
	free(d);
}

/* Under the lock. Without memory the device counts as lost: an event must not get lost instead. */
static void push_event(struct sio_device *d, enum smartio_device_event_kind kind, uint64_t borrower)
{
	struct sio_world *w = d->o.lib->world;

	if (d->n_events == d->max_events) {
		unsigned max = d->max_events * 2;
		void *p = realloc(d->events, max * sizeof(*d->events));

		if (!p) {
			if (kind != SMARTIO_DEVICE_LOST)
				sio_object_lose(&d->o);
			return;
		}
		d->events = p;
		d->max_events = max;
	}
	d->events[d->n_events++] = (struct smartio_device_event){
		.kind = kind,
		.generation = d->words[SIO_DEVICE_GENERATION],
		.borrower = borrower,
	};
	w->event_write(w, d->event_fd);
	sio_session_wake(d->o.lib->session);
}

/* Under the lock: its segments and their maps are gone with it. */
static void device_lost(struct sio_object *o)
{
	struct sio_device *d = (void *)o;

	if (!d->words)
		return;
	/*
	 * Whoever sees the generation change can tell a loss from a reset: pairs with
	 * smartio_device_generation(), then smartio_device_lost().
	 */
	__atomic_store_n(&d->words[SIO_DEVICE_IS_LOST], 1, __ATOMIC_RELEASE);
	__atomic_store_n(&d->words[SIO_DEVICE_GENERATION], d->words[SIO_DEVICE_GENERATION] + 2,
			 __ATOMIC_RELEASE);
	for (struct sio_object *child = o->first_child; child; child = child->sibling)
		if (child->kind == SIO_REMOTE_SEGMENT)
			sio_object_lose(child);
	push_event(d, SMARTIO_DEVICE_LOST, 0);
}

/* The lender counts 1, 2, 3; programs see even numbers. */
static uint32_t even_generation(sio_le32 generation)
{
	return sio_from_le32(generation) * 2;
}

/* Under the lock. */
static void happened(struct sio_device *d, const struct sio_evm_device *e)
{
	if (d->o.lost)
		return;
	switch (sio_from_le32(e->event)) {
	case SIO_DEVICE_EV_BORROWER_GONE:
		push_event(d, SMARTIO_DEVICE_BORROWER_GONE, sio_from_le64(e->borrower));
		break;
	case SIO_DEVICE_EV_RESET:
		/* pairs with smartio_device_generation() */
		__atomic_store_n(&d->words[SIO_DEVICE_GENERATION], even_generation(e->generation),
				 __ATOMIC_RELEASE);
		push_event(d, SMARTIO_DEVICE_RESET, 0);
		break;
	case SIO_DEVICE_EV_LOST:
		sio_object_lose(&d->o);
		break;
	case SIO_DEVICE_EV_NOTICE:
		/* One that nobody has taken yet says the same. */
		if (!d->n_events || d->events[d->n_events - 1].kind != SMARTIO_DEVICE_NOTICE)
			push_event(d, SMARTIO_DEVICE_NOTICE, 0);
		break;
	default: /* nothing that we know */
		break;
	}
}

static bool take_event(struct sio_library *lib, const struct sio_msg *msg, int *fds, unsigned n_fds)
{
	const struct sio_evm_device *e = (const void *)msg;
	struct sio_object *o;

	(void)fds;
	(void)n_fds;
	if (sio_from_le32(msg->type) != SIO_EVM_DEVICE)
		return false;
	o = sio_object_by_id(lib, SIO_DEVICE, sio_from_le32(e->handle));
	if (o)
		happened((struct sio_device *)o, e);
	return true;
}

const struct sio_kind_ops sio_device_kind = {
	.kind = SIO_DEVICE,
	.name = "borrowed device",
	.leaves = true,
	/* Whoever finds ones in memory that a device wrote to must already see that it is lost. */
	.lost_first = true,
	.free = device_free,
	.lost = device_lost,
	.event = take_event,
};

/* Under the lock, before any event about the device. */
static void borrowed(struct sio_call *call)
{
	const struct sio_rep_dev_borrow *rep = call->rep;
	struct sio_device *d = call->arg;

	sio_object_adopt(call);
	d->borrower = sio_from_le64(rep->borrower);
	d->words[SIO_DEVICE_GENERATION] = even_generation(rep->generation);
}

/* @over: the adapter that it goes over, from 1 on; 0: any. */
static int ask_borrow(struct sio_device *d, unsigned over, unsigned flags, struct sio_err *err)
{
	struct sio_msg_dev_borrow req = {.fdid = sio_to_le32(d->fdid),
					 .flags = sio_to_le32(flags & SCI_FLAG_EXCLUSIVE),
					 .over = sio_to_le32(over)};
	struct sio_rep_dev_borrow rep;
	struct sio_call call = {.req = &req.h,
				.req_len = sizeof(req),
				.type = SIO_MSG_DEV_BORROW,
				.rep = &rep,
				.rep_len = sizeof(rep),
				.done = borrowed,
				.arg = d};
	int rc;

	/* The object is not known to anybody else yet. */
	d->words = sio_handle_words(d->o.lib->handles, d->o.handle, SIO_DEVICE);
	if (!d->words)
		return sio_fail(err, -ESHUTDOWN, "the library was terminated meanwhile");
	d->words[SIO_DEVICE_EVENT_FD] = (uint32_t)d->event_fd;
	rc = sio_session_call(d->o.lib->session, &call, err);
	rc = sio_error_as(rc, -EPERM, SCI_ERR_ACCESS);
	rc = sio_error_as(rc, -EACCES, SCI_ERR_NOT_AVAILABLE);
	return sio_error_as(rc, -EBUSY, SCI_ERR_NOT_AVAILABLE);
}

static struct sio_device *device_new(struct sio_library *lib, uint32_t fdid, struct sio_err *err)
{
	struct sio_device *d = calloc(1, sizeof(*d));

	if (!d) {
		sio_no_memory(err, "a device");
		return NULL;
	}
	d->o.kind = SIO_DEVICE;
	d->fdid = fdid;
	d->max_events = 8;
	d->events = calloc(d->max_events, sizeof(*d->events));
	d->event_fd = lib->world->event_new(lib->world);
	if (!d->events || d->event_fd < 0) {
		sio_fail(err, -ENOMEM, "no memory or descriptors for a device");
		if (d->event_fd >= 0)
			lib->world->close(lib->world, d->event_fd);
		free(d->events);
		free(d);
		return NULL;
	}
	return d;
}

static int borrow(struct sio_library *lib, sci_desc_t sd, sci_smartio_device_t *ret, unsigned fdid,
		  unsigned over, unsigned flags, struct sio_err *err)
{
	struct sio_object *desc;
	struct sio_device *d;
	int rc = sio_check_pointer(ret, "device", err);

	if (!rc)
		rc = sio_check_flags(flags, SCI_FLAG_EXCLUSIVE | SCI_FLAG_PCIE_REQUESTER_GLOBAL, 0,
				     err);
	if (rc)
		return rc;
	desc = sio_object_get(lib, sd, SIO_DESC, err);
	if (!desc)
		return err->code;
	d = device_new(lib, fdid, err);
	rc = d ? sio_object_add(lib, &d->o, desc, err) : err->code;
	sio_object_put(desc);
	if (rc)
		return rc;
	rc = ask_borrow(d, over, flags, err);
	if (rc) {
		sio_object_end(&d->o);
		return rc;
	}
	*ret = sio_object_handle(&d->o);
	sio_object_put(&d->o);
	return 0;
}

void SCIBorrowDevice(sci_desc_t sd, sci_smartio_device_t *device, unsigned int fdid,
		     unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? borrow(lib, sd, device, fdid, 0, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

void smartio_borrow_device_over(sci_desc_t sd, sci_smartio_device_t *device, unsigned int fdid,
				unsigned int adapter, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	if (lib && adapter >= DIS_MAX_NSCIS)
		rc = sio_fail(&err, -ENXIO, "adapter %u; 0 to %u are right", adapter,
			      DIS_MAX_NSCIS - 1);
	else if (lib)
		rc = borrow(lib, sd, device, fdid, adapter + 1, flags, &err);
	sio_api_leave(error, rc, &err);
}

static int return_device(struct sio_library *lib, sci_smartio_device_t device, unsigned flags,
			 struct sio_err *err)
{
	struct sio_world *w = lib->world;
	struct sio_device *d;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	d = sio_object_get(lib, device, SIO_DEVICE, err);
	if (!d)
		return err->code;
	rc = sio_object_claim(&d->o, false, err);
	rc = sio_object_close(&d->o, rc, SIO_MSG_DEV_RETURN, 0, err);
	if (rc)
		return rc;
	/* Whoever waits for its events finds it gone. */
	w->event_write(w, d->event_fd);
	sio_object_end(&d->o);
	return 0;
}

void SCIReturnDevice(sci_smartio_device_t device, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? return_device(lib, device, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

void sio_device_enter(struct sio_device_call *c, sci_smartio_device_t device)
{
	c->lib = sio_api_enter(&c->err);
	c->device = c->lib ? sio_object_get(c->lib, device, SIO_DEVICE, &c->err) : NULL;
	c->rc = c->err.code;
}

void sio_device_ask(struct sio_device_call *c, uint32_t type, void *req, size_t req_len,
		    sio_le32 *field, void *rep, size_t rep_len)
{
	if (c->rc)
		return;
	*field = sio_to_le32(c->device->o.id);
	c->rc = sio_ask(c->lib, type, req, req_len, rep, rep_len, &c->err);
}

void sio_device_leave(struct sio_device_call *c, sci_error_t *error)
{
	if (c->device)
		sio_object_put(&c->device->o);
	sio_api_leave(error, c->rc, &c->err);
}

void SCIReleaseExclusiveBorrow(sci_smartio_device_t device, unsigned int flags, sci_error_t *error)
{
	struct sio_msg_handle req = {.flags = sio_to_le32(0)};
	struct sio_device_call c;
	struct sio_msg rep;

	sio_device_enter(&c, device);
	if (!c.rc)
		c.rc = sio_check_flags(flags, 0, 0, &c.err);
	sio_device_ask(&c, SIO_MSG_DEV_RELEASE_EXCLUSIVE, &req, sizeof(req), &req.handle, &rep,
		       sizeof(rep));
	sio_device_leave(&c, error);
}

unsigned int SCIGetFabricDeviceId(sci_smartio_device_t device)
{
	struct sio_device_call c;
	unsigned fdid;

	sio_device_enter(&c, device);
	fdid = c.device ? c.device->fdid : 0;
	sio_device_leave(&c, NULL);
	return fdid;
}

int sio_device_next(struct sio_library *lib, uint32_t after, struct sio_rep_dev_list *rep,
		    struct sio_err *err)
{
	struct sio_msg_dev_list req = {.after = sio_to_le32(after)};
	int rc = sio_ask(lib, SIO_MSG_DEV_LIST, &req, sizeof(req), rep, sizeof(*rep), err);

	if (rc == 0 && sio_from_le32(rep->fdid) <= after)
		return sio_fail(err, -EPROTO, "smartiod's list of devices does not ascend at %#x",
				after);
	return rc;
}

void sio_device_info(const struct sio_rep_dev_list *rep, sci_smartio_device_info_t *info)
{
	memset(info, 0, sizeof(*info));
	info->fdid = sio_from_le32(rep->fdid);
	info->pci_device_id = (unsigned short)sio_from_le32(rep->device);
	info->pci_vendor_id = (unsigned short)sio_from_le32(rep->vendor);
	info->pci_class = sio_from_le32(rep->class_code);
	info->pci_subsystem_device_id = (unsigned short)sio_from_le32(rep->subsys_device);
	info->pci_subsystem_vendor_id = (unsigned short)sio_from_le32(rep->subsys_vendor);
	info->pci_serial_number = sio_from_le64(rep->serial);
	info->remote_bdf = (unsigned short)sio_from_le32(rep->bdf);
	info->adapter = sio_from_le32(rep->adapter);
	info->nodeid = sio_from_le32(rep->node);
	info->physical_slot = (int)sio_from_le32(rep->slot);
	memcpy(info->user_name, rep->name, sizeof(info->user_name));
	info->user_name[sizeof(info->user_name) - 1] = '\0';
}

/* Fields of a filter that are zero match anything. */
static bool matches(const sci_smartio_device_info_t *info, const sci_smartio_device_info_t *filter)
{
#define AGREES(field) (!filter->field || filter->field == info->field)
	return AGREES(fdid) && AGREES(pci_device_id) && AGREES(pci_vendor_id) &&
	       AGREES(pci_class) && AGREES(pci_subsystem_device_id) &&
	       AGREES(pci_subsystem_vendor_id) && AGREES(pci_serial_number) && AGREES(remote_bdf) &&
	       AGREES(local_bdf) && AGREES(adapter) && AGREES(nodeid) && AGREES(physical_slot) &&
	       (!filter->user_name[0] ||
		!strncmp(filter->user_name, info->user_name, sizeof(info->user_name))) &&
	       (!filter->uuid[0] || !strncmp(filter->uuid, info->uuid, sizeof(info->uuid)));
#undef AGREES
}

static int list_devices(struct sio_library *lib, sci_desc_t sd, unsigned *fdids, size_t max,
			const sci_smartio_device_info_t *filter, size_t *ret, struct sio_err *err)
{
	struct sio_object *desc = sio_object_get(lib, sd, SIO_DESC, err);
	sci_smartio_device_info_t info;
	struct sio_rep_dev_list rep;
	uint32_t after = 0;
	size_t n = 0;
	int rc = 0;

	if (!desc)
		return err->code;
	if (max)
		rc = sio_check_pointer(fdids, "fdids", err);
	while (!rc && n < max) {
		rc = sio_device_next(lib, after, &rep, err);
		if (rc)
			break;
		after = sio_from_le32(rep.fdid);
		sio_device_info(&rep, &info);
		if (!filter || matches(&info, filter))
			fdids[n++] = after;
	}
	sio_object_put(desc);
	if (rc && rc != -ENODEV)
		return rc;
	*ret = n;
	return 0;
}

size_t SCIGetDeviceList(sci_desc_t sd, unsigned int *fdids, size_t maxCount,
			sci_smartio_device_info_t *filter, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	size_t n = 0;
	int rc = err.code;

	if (lib)
		rc = sio_check_flags(flags, 0, 0, &err);
	if (!rc)
		rc = list_devices(lib, sd, fdids, maxCount, filter, &n, &err);
	sio_api_leave(error, rc, &err);
	return n;
}
