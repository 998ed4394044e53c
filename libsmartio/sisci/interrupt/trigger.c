/* SPDX-License-Identifier: BSD-2-Clause */
/* Data interrupts, the sender's side: a ring in the receiver's memory and a descriptor to write. */
#include <errno.h>
#include <stdlib.h>

#include "core/types.h"
#include "sisci/interrupt/receiver.h"
#include "sisci/interrupt/trigger.h"
#include "smartio/uapi.h"

static void remote_dint_free(struct sio_object *o)
{
	struct sio_remote_dint *d = (void *)o;
	struct sio_world *w = o->lib->world;

	for (unsigned i = 0; i < d->n_members; i++)
		sio_object_put(&d->member[i]->o);
	free(d->member);
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

	if (d->base)
		sio_object_cut(o, d->base, d->bytes);
}

static bool take_event(struct sio_library *lib, const struct sio_msg *msg, int *fds, unsigned n_fds)
{
	(void)fds;
	(void)n_fds;
	return sio_interrupt_lost(lib, SIO_REMOTE_DINT, msg);
}

const struct sio_kind_ops sio_remote_dint_kind = {
	.kind = SIO_REMOTE_DINT,
	.name = "remote data interrupt",
	.leaves = true,
	.never_refused = true,
	.free = remote_dint_free,
	.lost = remote_dint_lost,
	.event = take_event,
};

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
		return sio_fail_mapping(d->o.lib, bytes, err);
	sio_session_lock(d->o.lib->session);
	if (d->o.lost)
		rc = sio_fail(err, -ECONNRESET, "node %u was lost meanwhile", d->node);
	else if (w->map(w, base, bytes, SIO_PROT_READ | SIO_PROT_WRITE, fd, offset) < 0)
		rc = sio_fail(err, -ENOMEM, "the ring cannot be mapped: " SIO_MORE_MEMORY);
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

int sio_remote_dint_connect(struct sio_remote_dint *d, unsigned adapter, unsigned flags,
			    struct sio_err *err)
{
	struct sio_msg_dint_connect req = {.node = sio_to_le32(d->node),
					   .adapter = sio_to_le32(adapter),
					   .number = sio_to_le32(d->number),
					   .flags = sio_to_le32(flags)};
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
	d->path = sio_status_place(d->o.lib, sio_from_le32(rep.path), d->node);
	rc = sio_session_check_fds(d->o.lib->session, &call, 2, err);
	if (!rc)
		rc = map_ring(d, &rep, fds[0], err);
	if (fds[0] >= 0)
		w->close(w, fds[0]);
	if (rc < 0)
		sio_object_leave(&d->o, SIO_MSG_DINT_DISCONNECT, NULL);
	return rc;
}

int sio_remote_dint_new(struct sio_library *lib, struct sio_object *parent, uint32_t node,
			uint32_t number, struct sio_remote_dint **ret, struct sio_err *err)
{
	struct sio_remote_dint *d = calloc(1, sizeof(*d));
	int rc;

	if (!d || lib->world->lock_new(lib->world, &d->lock) < 0) {
		free(d);
		return sio_no_memory(err, "a remote data interrupt");
	}
	d->o.kind = SIO_REMOTE_DINT;
	d->node = node;
	d->number = number;
	d->trigger = -1;
	rc = sio_object_add(lib, &d->o, parent, err);
	if (!rc)
		*ret = d;
	return rc;
}

static int connect_dint(struct sio_library *lib, sci_desc_t sd, sci_remote_data_interrupt_t *ret,
			unsigned node, unsigned adapter, unsigned number, struct sio_err *err)
{
	struct sio_object *desc = sio_object_get(lib, sd, SIO_DESC, err);
	struct sio_remote_dint *d = NULL;
	int rc;

	if (!desc)
		return err->code;
	rc = sio_remote_dint_new(lib, desc, node, number, &d, err);
	sio_object_put(desc);
	if (rc)
		return rc;
	rc = sio_remote_dint_connect(d, adapter, 0, err);
	/* Removed, or its host gone, while we connected: there is no such interrupt. */
	rc = sio_error_as(rc, -ECONNRESET, SCI_ERR_NO_SUCH_INTNO);
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
		rc = sio_check_flags(flags, SCI_FLAG_BROADCAST, 0, &err);
	if (!rc)
		rc = sio_check_adapter(lib, localAdapterNo, &err);
	if (!rc && flags & SCI_FLAG_BROADCAST && nodeId != DIS_BROADCAST_NODEID_GROUP_ALL)
		rc = sio_refuse(&err, SCI_ERR_ILLEGAL_NODEID,
				"node %u with SCI_FLAG_BROADCAST; %u, the node id of all, is right",
				nodeId, DIS_BROADCAST_NODEID_GROUP_ALL);
	if (!rc && flags & SCI_FLAG_BROADCAST)
		rc = sio_remote_dint_group(lib, sd, interrupt, localAdapterNo, interruptNo, &err);
	else if (!rc && !(rc = sio_check_node(lib, &nodeId, &err)))
		rc = sio_status_link(lib, localAdapterNo,
				     connect_dint(lib, sd, interrupt, nodeId, localAdapterNo,
						  interruptNo, &err));
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
	rc = sio_object_claim(o, true, err);
	if (!rc)
		sio_remote_dint_group_drop((void *)o);
	rc = sio_object_close(o, rc, SIO_MSG_DINT_DISCONNECT, 0, err);
	if (!rc)
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

	if (!sio_object_is_lost(&d->o)) {
		rc = sio_status_check(d->o.lib, d->path, d->node, err);
		if (rc)
			return rc;
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
			return sio_fail(err, -ERANGE, "a message of %u bytes; at most %u are right",
					len, SIO_RING_MESSAGE);
	}
	return sio_object_fail_lost(&d->o, err);
}

static int trigger(struct sio_library *lib, sci_remote_data_interrupt_t interrupt, const void *data,
		   uint32_t len, unsigned flags, struct sio_err *err)
{
	struct sio_remote_dint *d;
	int rc = len ? sio_check_pointer(data, "data", err) : 0;

	if (!rc)
		rc = sio_check_flags(flags, SCI_FLAG_BROADCAST, 0, err);
	if (rc)
		return rc;
	d = sio_object_get(lib, interrupt, SIO_REMOTE_DINT, err);
	if (!d)
		return err->code;
	if (d->member)
		rc = sio_remote_dint_group_send(d, data, len, err);
	else if (flags & SCI_FLAG_BROADCAST)
		rc = sio_fail(err, -EINVAL, "the connection was made without SCI_FLAG_BROADCAST");
	else
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
