/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts without data, the sender's side: a descriptor to write. */
#include <errno.h>
#include <stdlib.h>

#include "sisci/interrupt/receiver.h"

struct sio_remote_int {
	struct sio_object o;
	uint32_t node, number;
	uint32_t path; /* place in the status page; 0: none */
	int trigger;
};

static void remote_int_free(struct sio_object *o)
{
	struct sio_remote_int *i = (void *)o;

	if (i->trigger >= 0)
		o->lib->world->close(o->lib->world, i->trigger);
	free(i);
}

static bool take_event(struct sio_library *lib, const struct sio_msg *msg, int *fds, unsigned n_fds)
{
	(void)fds;
	(void)n_fds;
	return sio_interrupt_lost(lib, SIO_REMOTE_INT, msg);
}

const struct sio_kind_ops sio_remote_int_kind = {
	.kind = SIO_REMOTE_INT,
	.name = "remote interrupt",
	.leaves = true,
	.never_refused = true,
	.free = remote_int_free,
	.event = take_event,
};

static int ask_connect(struct sio_remote_int *i, unsigned adapter, struct sio_err *err)
{
	struct sio_msg_dint_connect req = {.node = sio_to_le32(i->node),
					   .adapter = sio_to_le32(adapter),
					   .number = sio_to_le32(i->number),
					   .flags = sio_to_le32(SIO_DINT_PLAIN)};
	struct sio_rep_dint_connect rep;
	struct sio_call call = {.req = &req.h,
				.req_len = sizeof(req),
				.type = SIO_MSG_DINT_CONNECT,
				.rep = &rep,
				.rep_len = sizeof(rep),
				.fds = &i->trigger,
				.max_fds = 1,
				.done = sio_object_adopt,
				.arg = &i->o};
	int rc = sio_session_call(i->o.lib->session, &call, err);

	/* Removed, or its host gone, while we connected: there is no such interrupt. */
	if (rc < 0)
		return sio_error_as(rc, -ECONNRESET, SCI_ERR_NO_SUCH_INTNO);
	i->path = sio_status_place(i->o.lib, sio_from_le32(rep.path), i->node);
	rc = sio_session_check_fds(i->o.lib->session, &call, 1, err);
	if (rc < 0)
		sio_object_leave(&i->o, SIO_MSG_DINT_DISCONNECT, NULL);
	return rc;
}

static int connect_int(struct sio_library *lib, sci_desc_t sd, sci_remote_interrupt_t *ret,
		       unsigned node, unsigned adapter, unsigned number, struct sio_err *err)
{
	struct sio_remote_int *i;
	struct sio_object *desc;
	int rc;

	desc = sio_object_get(lib, sd, SIO_DESC, err);
	if (!desc)
		return err->code;
	i = calloc(1, sizeof(*i));
	if (!i) {
		sio_object_put(desc);
		return sio_no_memory(err, "a remote interrupt");
	}
	i->o.kind = SIO_REMOTE_INT;
	i->node = node;
	i->number = number;
	i->trigger = -1;
	rc = sio_object_add(lib, &i->o, desc, err);
	sio_object_put(desc);
	if (rc)
		return rc;
	rc = ask_connect(i, adapter, err);
	if (rc) {
		sio_object_end(&i->o);
		return rc;
	}
	*ret = sio_object_handle(&i->o);
	sio_object_put(&i->o);
	return 0;
}

void SCIConnectInterrupt(sci_desc_t sd, sci_remote_interrupt_t *interrupt, unsigned int nodeId,
			 unsigned int localAdapterNo, unsigned int interruptNo,
			 unsigned int timeout, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = err.code;

	(void)timeout;
	if (lib)
		rc = sio_check_pointer(interrupt, "interrupt", &err);
	if (!rc)
		rc = sio_check_flags(flags, SCI_FLAG_COUNTING_INT, 0, &err);
	if (!rc)
		rc = sio_check_adapter(lib, localAdapterNo, &err);
	if (!rc)
		rc = sio_check_node(lib, &nodeId, &err);
	if (!rc) {
		rc = connect_int(lib, sd, interrupt, nodeId, localAdapterNo, interruptNo, &err);
		rc = sio_status_link(lib, localAdapterNo, rc);
	}
	sio_api_leave(error, rc, &err);
}

static int disconnect(struct sio_library *lib, sci_remote_interrupt_t interrupt, unsigned flags,
		      struct sio_err *err)
{
	struct sio_object *o;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	o = sio_object_get(lib, interrupt, SIO_REMOTE_INT, err);
	if (!o)
		return err->code;
	rc = sio_object_claim(o, false, err);
	rc = sio_object_close(o, rc, SIO_MSG_DINT_DISCONNECT, 0, err);
	if (!rc)
		sio_object_end(o);
	return rc;
}

void SCIDisconnectInterrupt(sci_remote_interrupt_t interrupt, unsigned int flags,
			    sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? disconnect(lib, interrupt, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

static int trigger(struct sio_library *lib, sci_remote_interrupt_t interrupt, unsigned flags,
		   struct sio_err *err)
{
	struct sio_world *w = lib->world;
	struct sio_remote_int *i;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	i = sio_object_get(lib, interrupt, SIO_REMOTE_INT, err);
	if (!i)
		return err->code;
	if (sio_object_is_lost(&i->o)) {
		rc = sio_object_fail_lost(&i->o, err);
	} else {
		rc = sio_status_check(lib, i->path, i->node, err);
		if (!rc && (rc = w->event_write(w, i->trigger)) < 0)
			sio_fail(err, rc, "interrupt %u of node %u: writing its trigger failed",
				 i->number, i->node);
	}
	sio_object_put(&i->o);
	return rc;
}

void SCITriggerInterrupt(sci_remote_interrupt_t interrupt, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? trigger(lib, interrupt, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}
