/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the two kinds of receivers. */
#include <errno.h>
#include <stdlib.h>

#include "sisci/interrupt/receiver.h"

int sio_receiver_check(struct sio_library *lib, const void *ret, const unsigned *number,
		       unsigned adapter, bool callback, unsigned flags, unsigned served,
		       struct sio_err *err)
{
	int rc = sio_check_pointer(ret, "interrupt", err);

	if (!rc)
		rc = sio_check_pointer(number, "interruptNo", err);
	if (!rc)
		rc = sio_check_flags(flags, served, 0, err);
	if (!rc && flags & SCI_FLAG_USE_CALLBACK && !callback)
		rc = sio_check_pointer(NULL, "callback", err);
	return rc ? rc : sio_check_adapter(lib, adapter, err);
}

static int ask_create(struct sio_receiver *r, unsigned adapter, unsigned number, unsigned sent,
		      int eventfd, struct sio_err *err)
{
	struct sio_msg_dint_create req = {
		.adapter = sio_to_le32(adapter),
		.number = sio_to_le32(sent & SCI_FLAG_FIXED_INTNO ? number : 0),
		.flags = sio_to_le32(sent)};
	struct sio_session *s = r->o.lib->session;
	struct sio_rep_dint_create rep;
	struct sio_call call = {.req = &req.h,
				.req_len = sizeof(req),
				.type = SIO_MSG_DINT_CREATE,
				.req_fds = eventfd < 0 ? NULL : &eventfd,
				.n_req_fds = eventfd >= 0,
				.rep = &rep,
				.rep_len = sizeof(rep),
				.fds = &r->fd,
				.max_fds = 1,
				.done = sio_object_adopt,
				.arg = &r->o};
	int rc = sio_session_call(s, &call, err);

	if (rc < 0)
		return sio_error_as(rc, -EEXIST, SCI_ERR_INTNO_USED);
	r->number = sio_from_le32(rep.number);
	rc = sio_session_check_fds(s, &call, 1, err);
	if (eventfd >= 0 && r->fd >= 0) { /* not ours to read or write */
		r->o.lib->world->close(r->o.lib->world, r->fd);
		r->fd = -1;
	}
	if (!rc && r->calls) {
		sio_session_lock(s);
		rc = sio_session_watch(s, r->fd, r->o.handle);
		sio_session_unlock(s);
		if (rc < 0)
			sio_fail(err, rc, "no memory to wait for an interrupt: " SIO_MORE_MEMORY);
	}
	if (rc < 0)
		sio_object_leave(&r->o, SIO_MSG_DINT_REMOVE, NULL);
	return rc;
}

int sio_receiver_begin(struct sio_library *lib, sci_desc_t sd, struct sio_receiver *r,
		       unsigned adapter, unsigned *number, unsigned sent, int eventfd,
		       struct sio_err *err)
{
	struct sio_object *desc = sio_object_get(lib, sd, SIO_DESC, err);
	int rc;

	if (!desc) {
		free(r);
		return err->code;
	}
	if (!r || lib->world->lock_new(lib->world, &r->lock) < 0) {
		free(r);
		sio_object_put(desc);
		return sio_no_memory(err, "a local interrupt");
	}
	r->fd = -1;
	rc = sio_object_add(lib, &r->o, desc, err);
	sio_object_put(desc);
	if (rc)
		return rc;
	rc = ask_create(r, adapter, *number, sent, eventfd, err);
	if (rc)
		sio_object_end(&r->o);
	else
		*number = r->number;
	return rc;
}

int sio_receiver_remove(struct sio_library *lib, const void *handle, enum sio_kind kind,
			unsigned flags, struct sio_receiver **ret, struct sio_err *err)
{
	struct sio_receiver *r;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	r = sio_object_get(lib, handle, kind, err);
	if (!r)
		return err->code;
	rc = sio_object_claim(&r->o, false, err);
	rc = sio_object_close(&r->o, rc, SIO_MSG_DINT_REMOVE, 0, err);
	if (rc)
		return rc;
	sio_session_lock(lib->session);
	if (r->calls)
		sio_session_unwatch(lib->session, r->o.handle);
	sio_session_unlock(lib->session);
	*ret = r;
	return 0;
}

void sio_receiver_done(struct sio_receiver *r)
{
	struct sio_world *w = r->o.lib->world;

	if (r->fd >= 0)
		w->close(w, r->fd);
	if (r->lock)
		w->lock_free(w, r->lock);
}

bool sio_receiver_is_muted(struct sio_receiver *r, bool lost_mutes)
{
	struct sio_object *o = &r->o;
	bool muted;

	sio_session_lock(o->lib->session);
	muted = o->muted || (lost_mutes && o->lost);
	if (muted)
		sio_session_unwatch(o->lib->session, o->handle);
	sio_session_unlock(o->lib->session);
	return muted;
}

bool sio_receiver_is_own(const struct sio_object *o)
{
	(void)o;
	return true;
}

bool sio_interrupt_lost(struct sio_library *lib, enum sio_kind kind, const struct sio_msg *msg)
{
	const struct sio_evm_dint_ring *e = (const void *)msg;

	return sio_from_le32(msg->type) == SIO_EVM_DINT_LOST &&
	       sio_object_lose_by_id(lib, kind, sio_from_le32(e->handle));
}
