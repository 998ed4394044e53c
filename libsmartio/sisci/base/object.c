/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects: handle, parent, smartiod's number, loss, callbacks, end. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/probe.h"
#include "session/quick.h"
#include "sisci/base/library.h"
#include "smartio/uapi.h"

void *sio_object_get(struct sio_library *lib, const void *handle, enum sio_kind kind,
		     struct sio_err *err)
{
	void *o = sio_handle_get(lib->handles, (uintptr_t)handle, kind);

	if (!o)
		sio_fail(err, -EINVAL, "handle %p is not that of a live %s", handle,
			 lib->kind[kind]->name);
	return o;
}

void sio_object_put(struct sio_object *o)
{
	if (o)
		sio_handle_put(o->lib->handles, o->handle);
}

void sio_object_step(struct sio_object *o, enum sio_life_event event)
{
	bool allowed = sio_life_next(o->life, event, &o->life);

	assert(allowed);
	(void)allowed;
}

/*
 * Under the lock: a thread that tries to remove it may find that it cannot. A callback does not
 * wait for that: the other thread may be waiting for the callback. Nor does anybody once it is
 * sure: the callback may wait for whoever is here.
 */
static void settle(struct sio_object *o)
{
	struct sio_session *s = o->lib->session;

	while (o->life == SIO_CLAIMED && !sio_session_on_event_thread(s))
		sio_session_wait(s, NULL, 0, SIO_FOREVER);
}

/* Under the lock: children that are over are free. */
static void settle_children(struct sio_library *lib)
{
	for (struct sio_object *o = lib->n_settling ? lib->objects : NULL; o; o = o->next)
		if (sio_object_ops(o)->settle)
			sio_object_ops(o)->settle(o);
}

void sio_object_free(void *object)
{
	struct sio_object *o = object;

	free(o->post);
	sio_object_ops(o)->free(o);
}

int sio_object_add(struct sio_library *lib, struct sio_object *o, struct sio_object *parent,
		   struct sio_err *err)
{
	bool leaves = lib->kind[o->kind]->leaves;
	int rc = 0;

	o->lib = lib;
	o->post = leaves ? malloc(sizeof(*o->post)) : NULL;
	if (leaves && !o->post) {
		sio_object_free(o);
		return sio_no_memory(err, "the end of an object");
	}
	sio_session_lock(lib->session);
	if (parent)
		settle(parent);
	if (!lib->up)
		rc = sio_fail(err, -ESHUTDOWN, "the library was terminated meanwhile");
	else if (parent && sio_object_is_leaving(parent))
		rc = sio_fail(err, -EINVAL, "what it belongs to is being removed");
	else if (sio_handle_new(lib->handles, o->kind, o, &o->handle) < 0)
		rc = sio_no_memory(err, "a handle");
	if (rc == 0) {
		if (parent) {
			parent->children++;
			sio_handle_ref(lib->handles, parent->handle);
			o->parent = parent;
			o->sibling = parent->first_child;
			o->prev_sibling = &parent->first_child;
			if (o->sibling)
				o->sibling->prev_sibling = &o->sibling;
			parent->first_child = o;
		}
		lib->n_settling += sio_object_ops(o)->settle != NULL;
		o->next = lib->objects;
		o->prev = &lib->objects;
		if (o->next)
			o->next->prev = &o->next;
		lib->objects = o;
		sio_handle_ref(lib->handles, o->handle);
	}
	sio_session_unlock(lib->session);
	if (rc < 0)
		sio_object_free(o);
	return rc;
}

void sio_object_adopt(struct sio_call *call)
{
	const struct sio_rep_dint_create *first = call->rep; /* every such reply begins so */

	sio_object_take_id(call->arg, first->handle);
}

void sio_object_take_id(struct sio_object *o, sio_le32 id)
{
	o->id = sio_from_le32(id);
	if (o->id)
		sio_hash_add(&o->lib->by_id, &o->by_id, o->id);
}

struct sio_object *sio_object_by_id(struct sio_library *lib, enum sio_kind kind, uint32_t id)
{
	struct sio_hash_node *n = sio_hash_find(&lib->by_id, id);

	while (n && SIO_HASH_OF(n, struct sio_object, by_id)->kind != kind)
		n = sio_hash_next(n);
	return SIO_HASH_OF(n, struct sio_object, by_id);
}

int sio_object_claim(struct sio_object *o, bool force, struct sio_err *err)
{
	int rc = 0;

	sio_session_lock(o->lib->session);
	settle(o);
	if (o->children)
		settle_children(o->lib);
	if (sio_object_is_leaving(o))
		rc = sio_fail(err, -EINVAL, "another thread %s it",
			      o->life == SIO_ENDED ? "has removed" : "is removing");
	else if (o->children && !force)
		rc = sio_fail(err, -EBUSY, "%u object%s made from it still exist%s", o->children,
			      o->children == 1 ? "" : "s", o->children == 1 ? "s" : "");
	else
		sio_object_step(o, SIO_LIFE_CLAIM);
	sio_session_unlock(o->lib->session);
	return rc;
}

void sio_object_unclaim(struct sio_object *o)
{
	sio_session_lock(o->lib->session);
	/* Otherwise another thread has ended it meanwhile. */
	if (o->life == SIO_CLAIMED)
		sio_object_step(o, SIO_LIFE_UNCLAIM);
	sio_session_wake(o->lib->session);
	sio_session_unlock(o->lib->session);
}

static void unlink_from_parent(struct sio_object *o)
{
	if (!o->parent)
		return;
	*o->prev_sibling = o->sibling;
	if (o->sibling)
		o->sibling->prev_sibling = o->prev_sibling;
	o->parent->children--;
}

void sio_object_orphan(struct sio_object *o)
{
	unlink_from_parent(o);
	o->parent = NULL;
}

static void unlink_object(struct sio_object *o)
{
	*o->prev = o->next;
	if (o->next)
		o->next->prev = o->prev;
	unlink_from_parent(o);
	o->lib->n_settling -= sio_object_ops(o)->settle != NULL;
	if (o->id)
		sio_hash_remove(&o->lib->by_id, &o->by_id);
}

void sio_object_end(struct sio_object *o)
{
	struct sio_library *lib = o->lib;
	struct sio_object *parent = NULL;

	sio_session_lock(lib->session);
	sio_object_step(o, SIO_LIFE_END);
	o->muted = true;
	sio_session_wake(lib->session);
	/*
	 * A callback may use the handle that it got; our caller may free what it uses once we
	 * return.
	 */
	while (o->in_callback && !sio_session_on_event_thread(lib->session))
		sio_session_wait(lib->session, NULL, 0, SIO_FOREVER);
	if (o->life != SIO_ENDED) {
		sio_object_step(o, SIO_LIFE_UNLINK);
		unlink_object(o);
		parent = o->parent;
		sio_quick_clear(lib->world, o->handle);
		sio_handle_remove(lib->handles, o->handle);
	}
	sio_session_wake(lib->session);
	sio_session_unlock(lib->session);
	sio_object_put(o);
	sio_object_put(parent);
}

void sio_object_lose(struct sio_object *o)
{
	if (o->lost)
		return;
	/* pairs with the load in sio_object_is_lost() */
	__atomic_store_n(&o->lost, 1, __ATOMIC_RELEASE);
	SIO_PROBE(smartio, lost, o->kind, o->id);
	if (sio_object_ops(o)->lost)
		sio_object_ops(o)->lost(o);
}

bool sio_object_lose_by_id(struct sio_library *lib, enum sio_kind kind, uint32_t id)
{
	struct sio_object *o = sio_object_by_id(lib, kind, id);

	if (o)
		sio_object_lose(o);
	return o != NULL;
}

void sio_object_cut(struct sio_object *o, void *at, size_t len)
{
	struct sio_world *w = o->lib->world;

	if (w->map_ones(w, at, len) < 0 && w->map_none(w, at, len) < 0)
		w->log(w, "no memory: what is lost stays mapped");
}

int sio_fail_mapping(const struct sio_library *lib, uint64_t bytes, struct sio_err *err)
{
	struct sio_limits l;

	lib->world->limits(lib->world, &l);
	return sio_fail_exhausted(err, -ENOMEM, SIO_OUT_OF_ADDRESS_SPACE,
				  "no address space for %#" PRIx64 " bytes, or no mapping left of "
				  "%" PRIu64 " that a process may have (sysctl vm.max_map_count)",
				  bytes, l.mappings);
}

int sio_object_fail_lost(struct sio_object *o, struct sio_err *err)
{
	bool dead;

	sio_session_lock(o->lib->session);
	dead = sio_session_is_dead(o->lib->session);
	sio_session_unlock(o->lib->session);
	if (dead)
		return sio_fail(err, -ESHUTDOWN, "this host's smartiod is gone");
	if (sio_object_ops(o)->lost_with_parent)
		o = o->parent;
	if (sio_object_ops(o)->is_own && sio_object_ops(o)->is_own(o))
		return sio_fail(err, -ESHUTDOWN,
				"the %s was lost when this host's smartiod was started again",
				sio_object_ops(o)->name);
	return sio_fail(err, -ECONNRESET, "what it was connected to is gone for good");
}

/* *ret_unsent: smartiod was not asked, for want of memory. */
static int ask_end(struct sio_object *o, uint32_t type, unsigned flags, bool *ret_unsent,
		   struct sio_err *err)
{
	struct sio_msg_handle req = {.handle = sio_to_le32(o->id), .flags = sio_to_le32(flags)};
	struct sio_msg rep;
	struct sio_call call = {.req = &req.h,
				.req_len = sizeof(req),
				.type = type,
				.rep = &rep,
				.rep_len = sizeof(rep)};
	int rc;

	*ret_unsent = false;
	if (o->id == 0)
		return 0;
	rc = sio_session_call(o->lib->session, &call, err);
	*ret_unsent = call.unsent;
	if (rc == -ESHUTDOWN || rc == -EPROTONOSUPPORT || rc == -ECONNRESET || rc == -EBADF)
		return 0;
	return rc;
}

int sio_object_dismiss(struct sio_object *o, uint32_t type, unsigned flags, struct sio_err *err)
{
	bool unsent;

	return ask_end(o, type, flags, &unsent, err);
}

int sio_object_leave(struct sio_object *o, uint32_t type, struct sio_err *err)
{
	struct sio_post *p = o->post;
	bool unsent;
	int rc = ask_end(o, type, 0, &unsent, err);

	if (!unsent || !p)
		return rc;
	o->post = NULL;
	p->msg.handle = (struct sio_msg_handle){.handle = sio_to_le32(o->id)};
	sio_session_lock(o->lib->session);
	sio_session_post(o->lib->session, type, p, sizeof(p->msg.handle));
	sio_session_unlock(o->lib->session);
	return 0;
}

/* smartiod refuses the end neither of these nor of what is lost: it may hear of it later. */
static bool is_never_refused(const struct sio_object *o)
{
	return sio_object_ops(o)->never_refused || sio_object_is_lost(o);
}

int sio_object_close(struct sio_object *o, int claimed, uint32_t type, unsigned flags,
		     struct sio_err *err)
{
	int rc = claimed;

	if (!rc) {
		rc = is_never_refused(o) ? sio_object_leave(o, type, err)
					 : sio_object_dismiss(o, type, flags, err);
		if (rc)
			sio_object_unclaim(o);
	}
	if (rc)
		sio_object_put(o);
	return rc;
}

/* Under the lock: a nameless child, claimed and with a reference; NULL: there is none. */
static struct sio_object *claim_nameless(const struct sio_object *parent)
{
	struct sio_object *o = parent->first_child;

	while (o && (!sio_object_ops(o)->nameless || sio_object_is_leaving(o) || o->id == 0))
		o = o->sibling;
	if (o) {
		sio_object_step(o, SIO_LIFE_CLAIM);
		sio_handle_ref(o->lib->handles, o->handle);
	}
	return o;
}

int sio_object_close_nameless(struct sio_object *parent, struct sio_err *err)
{
	struct sio_session *s = parent->lib->session;
	struct sio_object *o;
	int rc;

	do {
		sio_session_lock(s);
		o = claim_nameless(parent);
		sio_session_unlock(s);
		rc = o ? sio_object_ops(o)->close(o, 0, err) : 0;
	} while (o && !rc);
	return rc;
}

void sio_object_callback(struct sio_object *o,
			 sci_callback_action_t (*run)(struct sio_object *o, void *arg), void *arg)
{
	struct sio_session *s = o->lib->session;
	sci_callback_action_t action;

	sio_session_lock(s);
	if (o->muted || !o->lib->up) {
		sio_session_unlock(s);
		return;
	}
	o->in_callback = true;
	sio_session_unlock(s);
	action = run(o, arg);
	sio_session_lock(s);
	o->in_callback = false;
	if (action == SCI_CALLBACK_CANCEL)
		o->muted = true;
	sio_session_wake(s);
	sio_session_unlock(s);
}
