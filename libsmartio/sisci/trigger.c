/* SPDX-License-Identifier: BSD-2-Clause */
/* Data interrupts, the sender's side: a ring in the receiver's memory and a descriptor to write. */
#include <errno.h>
#include <stdlib.h>

#include "core/types.h"
#include "sisci/library.h"
#include "wire/ring.h"

struct sio_remote_dint {
	struct sio_object o;
	uint32_t node, number;
	void *base; /* NULL: not mapped yet. Under the session's lock */
	size_t bytes;
	int trigger;
	struct sio_world_lock *lock; /* threads take turns at the ring */
	struct sio_ring ring;
};

static void remote_dint_free(struct sio_object *o)
{
	struct sio_remote_dint *d = (void *)o;
	struct sio_world *w = o->lib->world;

	if (d->base)
		w->unmap(w, d->base, d->bytes);
	if (d->trigger >= 0)
		w->close(w, d->trigger);
	if (d->lock)
		w->lock_free(w, d->lock);
	free(d);
}

static void remote_dint_lost(struct sio_object *o)
{
	struct sio_remote_dint *d = (void *)o;
	struct sio_world *w = o->lib->world;

	if (d->base && w->map_ones(w, d->base, d->bytes) < 0)
		w->log(w, "no memory: a lost data interrupt's ring stays mapped");
}

static int map_ring(struct sio_remote_dint *d, const struct sio_rep_dint_connect *rep, int fd,
		    struct sio_err *err)
{
	uint64_t bytes = sio_from_le64(rep->bytes), offset = sio_from_le64(rep->fd_offset);
	struct sio_world *w = d->o.lib->world;
	void *base;
	int rc = 0;

	if (bytes < SIO_RING_TOTAL || bytes % SIO_PAGE_SIZE || offset % SIO_PAGE_SIZE)
		return sio_fail(err, -EPROTO, "smartiod gave a ring of %llu bytes, not %u",
				(unsigned long long)bytes, SIO_RING_TOTAL);
	if (w->reserve(w, NULL, false, bytes, &base) < 0)
		return sio_fail(err, -ENOMEM, "no address space");
	sio_session_lock(d->o.lib->session);
	if (d->o.lost)
		rc = sio_fail(err, -ECONNRESET, "node %u was lost meanwhile", d->node);
	else if (w->map(w, base, bytes, SIO_PROT_READ | SIO_PROT_WRITE, fd, offset) < 0)
		rc = sio_fail(err, -ENOMEM, "the ring cannot be mapped");
	if (rc == 0) {
		d->base = base;
		d->bytes = bytes;
		sio_ring_init(&d->ring, base);
	}
	sio_session_unlock(d->o.lib->session);
	if (rc < 0)
		w->unmap(w, base, bytes);
	return rc;
}

static int ask_connect(struct sio_remote_dint *d, unsigned adapter, struct sio_err *err)
{
	struct sio_msg_dint_connect req = {.node = sio_to_le32(d->node),
					   .adapter = sio_to_le32(adapter),
					   .number = sio_to_le32(d->number)};
	struct sio_world *w = d->o.lib->world;
	struct sio_rep_dint_connect rep;
	int fds[2] = {-1, -1};
	struct sio_call call = {.req = &req.h,
				.req_len = sizeof(req),
				.type = SIO_MSG_DINT_CONNECT,
				.rep = &rep,
				.rep_len = sizeof(rep),
				.fds = fds,
				.max_fds = 2,
				.done = sio_object_adopt,
				.arg = &d->o};
	int rc = sio_session_call(d->o.lib->session, &call, err);

	if (rc < 0)
		return rc;
	d->trigger = fds[1];
	rc = sio_session_check_fds(&call, 2, err);
	if (!rc)
		rc = map_ring(d, &rep, fds[0], err);
	if (fds[0] >= 0)
		w->close(w, fds[0]);
	if (rc < 0)
		sio_object_dismiss(&d->o, SIO_MSG_DINT_DISCONNECT, 0, NULL);
	return rc;
}

static int connect_dint(struct sio_library *lib, sci_desc_t sd, sci_remote_data_interrupt_t *ret,
			unsigned node, unsigned adapter, unsigned number, struct sio_err *err)
{
	struct sio_remote_dint *d;
	struct sio_object *desc;
	int rc;

	desc = sio_object_get(lib, sd, SIO_DESC, err);
	if (!desc)
		return err->code;
	d = calloc(1, sizeof(*d));
	if (!d || lib->world->lock_new(lib->world, &d->lock) < 0) {
		free(d);
		sio_object_put(desc);
		return sio_fail(err, -ENOMEM, "no memory");
	}
	d->o.kind = SIO_REMOTE_DINT;
	d->o.free = remote_dint_free;
	d->o.on_lost = remote_dint_lost;
	d->node = node;
	d->number = number;
	d->trigger = -1;
	rc = sio_object_add(lib, &d->o, desc, err);
	sio_object_put(desc);
	if (rc)
		return rc;
	rc = ask_connect(d, adapter, err);
	if (rc) {
		sio_object_end(&d->o);
		return rc;
	}
	*ret = sio_object_handle(&d->o);
	sio_object_put(&d->o);
	return 0;
}

void SCIConnectDataInterrupt(sci_desc_t sd, sci_remote_data_interrupt_t *interrupt,
			     unsigned int nodeId, unsigned int localAdapterNo,
			     unsigned int interruptNo, unsigned int timeout, unsigned int flags,
			     sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	(void)timeout;
	if (lib)
		rc = sio_check_pointer(interrupt, "interrupt", &err);
	if (!rc)
		rc = sio_check_flags(flags, 0, SCI_FLAG_BROADCAST, &err);
	if (!rc)
		rc = sio_check_adapter(lib, localAdapterNo, &err);
	if (!rc)
		rc = sio_check_node(lib, &nodeId, &err);
	if (!rc)
		rc = connect_dint(lib, sd, interrupt, nodeId, localAdapterNo, interruptNo, &err);
	sio_api_leave(error, rc, &err);
}

static int disconnect(struct sio_library *lib, sci_remote_data_interrupt_t interrupt,
		      unsigned flags, struct sio_err *err)
{
	struct sio_object *o;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	o = sio_object_get(lib, interrupt, SIO_REMOTE_DINT, err);
	if (!o)
		return err->code;
	rc = sio_object_claim(o, false, err);
	if (!rc) {
		rc = sio_object_dismiss(o, SIO_MSG_DINT_DISCONNECT, 0, err);
		if (rc)
			sio_object_unclaim(o);
	}
	if (rc)
		sio_object_put(o);
	else
		sio_object_end(o);
	return rc;
}

void SCIDisconnectDataInterrupt(sci_remote_data_interrupt_t interrupt, unsigned int flags,
				sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? disconnect(lib, interrupt, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

static int send_message(struct sio_remote_dint *d, const void *data, uint32_t len,
			struct sio_err *err)
{
	struct sio_world *w = d->o.lib->world;
	int rc;

	if (!__atomic_load_n(&d->o.lost, __ATOMIC_ACQUIRE)) {
		w->lock(w, d->lock);
		rc = sio_ring_push(&d->ring, data, len);
		w->unlock(w, d->lock);
		if (rc == 0)
			rc = w->event_write(w, d->trigger);
		if (rc == 0)
			return 0;
		if (rc == -ENOSPC)
			return sio_refuse(err, SCI_ERR_NOSPC,
					  "the queue to data interrupt %u of node %u is full",
					  d->number, d->node);
		if (rc == -EMSGSIZE)
			return sio_fail(err, -ERANGE, "a message of %u bytes; at most %u", len,
					SIO_RING_MESSAGE);
	}
	return sio_object_fail_lost(&d->o, err);
}

static int trigger(struct sio_library *lib, sci_remote_data_interrupt_t interrupt, const void *data,
		   uint32_t len, unsigned flags, struct sio_err *err)
{
	struct sio_remote_dint *d;
	int rc = len ? sio_check_pointer(data, "data", err) : 0;

	if (!rc)
		rc = sio_check_flags(flags, 0, SCI_FLAG_BROADCAST, err);
	if (rc)
		return rc;
	d = sio_object_get(lib, interrupt, SIO_REMOTE_DINT, err);
	if (!d)
		return err->code;
	rc = send_message(d, data, len, err);
	sio_object_put(&d->o);
	return rc;
}

void SCITriggerDataInterrupt(sci_remote_data_interrupt_t interrupt, void *data, unsigned int length,
			     unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? trigger(lib, interrupt, data, length, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}
