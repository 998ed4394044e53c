/* SPDX-License-Identifier: BSD-2-Clause */
/* SCIInitialize and SCITerminate, the frame of every call, and where events go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/types.h"
#include "sisci/copy/sequence.h"
#include "smartio/uapi.h"

static void object_free(void *object)
{
	struct sio_object *o = object;

	free(o->post);
	o->free(o);
}

/* Under the lock: what an event about a segment changes here. */
static void segment_event(struct sio_library *lib, bool local, const struct sio_evm_segment *e)
{
	uint32_t id = sio_from_le32(e->handle), reason = sio_from_le32(e->reason);
	uint32_t n = sio_from_le32(e->count), loss = sio_from_le32(e->loss);
	struct sio_object *o;

	o = sio_object_by_id(lib, local ? SIO_LOCAL_SEGMENT : SIO_REMOTE_SEGMENT, id);
	if (!o)
		return;
	if (loss == SIO_LOSS_LOST) { /* a local one: its maker, or smartiod's memory of it */
		sio_object_lose(o);
		if (!local)
			((struct sio_remote_segment *)o)->told_lost = true;
	} else if (!local && loss == SIO_LOSS_REMOVED) {
		if (((struct sio_remote_segment *)o)->removed)
			return; /* by a smartiod that was started again */
		((struct sio_remote_segment *)o)->removed = true;
	} else if (!local && (reason == SCI_CB_NOT_OPERATIONAL || reason == SCI_CB_OPERATIONAL))
		sio_remote_segment_path(o, reason == SCI_CB_NOT_OPERATIONAL);
	for (uint32_t i = 0; i < (n ? n : 1); i++)
		sio_task_segment(o, reason, sio_from_le32(e->node), sio_from_le32(e->adapter),
				 loss == SIO_LOSS_LOST		    ? SCI_ERR_NOT_CONNECTED
				 : reason == SCI_CB_NOT_OPERATIONAL ? SCI_ERR_NO_LINK_ACCESS
								    : SCI_ERR_OK);
}

/*
 * Under the lock. The receiver's end is gone: what is sent would go nowhere. Or it is that end,
 * which a smartiod that was started again could not take over: nothing comes there any more.
 */
static void dint_lost(struct sio_library *lib, const struct sio_evm_dint_ring *e)
{
	static const enum sio_kind kinds[] = {SIO_REMOTE_DINT, SIO_REMOTE_INT, SIO_LOCAL_DINT,
					      SIO_LOCAL_INT};
	struct sio_object *o = NULL;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !o; i++)
		o = sio_object_by_id(lib, kinds[i], sio_from_le32(e->handle));
	if (o)
		sio_object_lose(o);
}

/* The session has checked it: its size, and how many times it happened. */
static void session_event(void *ctx, const struct sio_msg *msg, int *fds, unsigned n_fds)
{
	struct sio_library *lib = ctx;

	switch (sio_from_le32(msg->type)) {
	case SIO_EVM_SEGMENT_LOCAL:
	case SIO_EVM_SEGMENT_REMOTE:
		segment_event(lib, sio_from_le32(msg->type) == SIO_EVM_SEGMENT_LOCAL,
			      (const void *)msg);
		break;
	case SIO_EVM_DINT_RING:
	case SIO_EVM_DINT_RING_END:
		sio_dint_ring_event(lib, (const void *)msg, fds, n_fds);
		break;
	case SIO_EVM_DINT_LOST:
		dint_lost(lib, (const void *)msg);
		break;
	case SIO_EVM_DEVICE:
		sio_device_event(lib, (const void *)msg);
		break;
	}
}

/*
 * Of a segment that was lost with its device the word may still be on its way, and comes no more.
 * Devices come first: who finds ones in memory that a device wrote to must already see that the
 * device is lost.
 */
static void session_dead(void *ctx)
{
	struct sio_library *lib = ctx;

	for (struct sio_object *o = lib->objects; o; o = o->next)
		if (o->kind == SIO_REMOTE_SEGMENT && lib->up &&
		    !((const struct sio_remote_segment *)o)->told_lost)
			sio_task_segment(o, SCI_CB_LOST, 0, 0, SCI_ERR_NO_LINK_ACCESS);
	for (struct sio_object *o = lib->objects; o; o = o->next)
		if (o->kind == SIO_DEVICE)
			sio_object_lose(o);
	for (struct sio_object *o = lib->objects; o; o = o->next)
		sio_object_lose(o);
}

static void session_ready(void *ctx, uintptr_t cookie)
{
	/* Each knows its own handles. */
	sio_dint_ready(ctx, cookie);
	sio_int_ready(ctx, cookie);
	sio_dma_ready(ctx, cookie);
}

static const struct sio_session_ops session_ops = {
	.event = session_event,
	.dead = session_dead,
	.has_work = sio_task_waits,
	.work = sio_task_run,
	.ready = session_ready,
};

static void library_free(struct sio_library *lib)
{
	sio_session_free(lib->session);
	sio_handles_free(lib->handles);
	sio_hash_done(&lib->by_id);
	free(lib);
}

static struct sio_library *library_new(struct sio_world *w)
{
	struct sio_library *lib = calloc(1, sizeof(*lib));

	if (!lib)
		return NULL;
	lib->world = w;
	lib->pid = w->pid(w);
	lib->owner_fd = -1;
	sio_hash_init(&lib->by_id);
	lib->tasks_end = &lib->tasks;
	lib->blocks_end = &lib->blocks;
	lib->blocks_over_end = &lib->blocks_over;
	if (sio_handles_new(object_free, &lib->handles) < 0 ||
	    sio_session_new(w, &session_ops, lib, &lib->session) < 0) {
		library_free(lib);
		return NULL;
	}
	return lib;
}

struct sio_library *sio_library_get(void)
{
	struct sio_world *w = sio_world_current();
	struct sio_library *lib = __atomic_load_n(sio_world_library(w), __ATOMIC_ACQUIRE);

	return lib && lib->pid == w->pid(w) ? lib : NULL;
}

/* Made once per process and kept: a call that races with SCITerminate() still finds its lock. */
static struct sio_library *library_make(void)
{
	struct sio_world *w = sio_world_current();
	struct sio_library *lib = sio_library_get(), *fresh;
	void *old = __atomic_load_n(sio_world_library(w), __ATOMIC_ACQUIRE);

	if (lib)
		return lib;
	fresh = library_new(w);
	if (!fresh)
		return NULL;
	fresh->before_fork = old;
	if (__atomic_compare_exchange_n(sio_world_library(w), &old, fresh, 0, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return fresh;
	library_free(fresh);
	return old;
}

struct sio_library *sio_api_enter(struct sio_err *err)
{
	struct sio_library *lib = sio_library_get();

	err->code = 0;
	err->text[0] = '\0';
	if (lib && __atomic_load_n(&lib->up, __ATOMIC_ACQUIRE))
		return lib;
	sio_refuse(err, SCI_ERR_NOT_INITIALIZED,
		   "SCIInitialize() has not succeeded in this process");
	return NULL;
}

void sio_api_leave(sci_error_t *error, int rc, const struct sio_err *err)
{
	if (error)
		*error = sio_error_code(rc);
	sio_error_remember(rc ? err : NULL);
}

int sio_check_adapter(const struct sio_library *lib, unsigned adapter, struct sio_err *err)
{
	if (adapter >= DIS_MAX_NSCIS)
		return sio_refuse(err, SCI_ERR_ILLEGAL_ADAPTERNO,
				  "adapter number %u is not below %u", adapter, DIS_MAX_NSCIS);
	if (adapter >= lib->n_adapters)
		return sio_refuse(err, SCI_ERR_NO_SUCH_ADAPTERNO,
				  "host %s has no adapter %u; it has %u", lib->host, adapter,
				  lib->n_adapters);
	return 0;
}

int sio_check_node(const struct sio_library *lib, unsigned *node, struct sio_err *err)
{
	if (*node == SCI_LOCAL_HOST)
		*node = lib->node;
	if (*node == 0)
		return sio_refuse(err, SCI_ERR_ILLEGAL_NODEID,
				  "node id 0; ids are 4 and more, or SCI_LOCAL_HOST");
	return 0;
}

int sio_check_pointer(const void *p, const char *name, struct sio_err *err)
{
	return p ? 0 : sio_fail(err, -EINVAL, "%s is NULL", name);
}

int sio_check_flags(unsigned flags, unsigned served, unsigned known, struct sio_err *err)
{
	if (flags & ~(served | known))
		return sio_refuse(err, SCI_ERR_ILLEGAL_FLAG, "flags %#x are not legal here",
				  flags & ~(served | known));
	if (flags & ~served)
		return sio_refuse(err, SCI_ERR_FLAG_NOT_IMPLEMENTED,
				  "flags %#x are not implemented", flags & ~served);
	return 0;
}

int sio_ask(struct sio_library *lib, uint32_t type, void *req, size_t req_len, void *rep,
	    size_t rep_len, struct sio_err *err)
{
	struct sio_call call = {
		.req = req, .req_len = req_len, .type = type, .rep = rep, .rep_len = rep_len};

	return sio_session_call(lib->session, &call, err);
}

int sio_ask_handle(struct sio_library *lib, uint32_t type, uint32_t handle, unsigned flags,
		   struct sio_err *err)
{
	struct sio_msg_handle req = {.handle = sio_to_le32(handle), .flags = sio_to_le32(flags)};
	struct sio_msg rep;

	return sio_ask(lib, type, &req, sizeof(req), &rep, sizeof(rep), err);
}

static int hello(struct sio_library *lib, struct sio_err *err)
{
	struct sio_msg_hello req = {
		.version_min = sio_to_le32(SIO_CLIENT_VERSION),
		.version_max = sio_to_le32(SIO_CLIENT_VERSION),
		.pid = sio_to_le32(lib->pid),
		.kind = sio_to_le32(SIO_CLIENT_LIBRARY),
	};
	struct sio_rep_hello rep;
	int fds[2] = {-1, -1};
	struct sio_call call = {.req = &req.h,
				.req_len = sizeof(req),
				.type = SIO_MSG_HELLO,
				.rep = &rep,
				.rep_len = sizeof(rep),
				.fds = fds,
				.max_fds = 2};
	int rc = sio_session_call(lib->session, &call, err);

	if (rc < 0)
		return rc;
	rc = sio_session_check_fds(lib->session, &call, 2, err);
	if (!rc)
		rc = sio_status_open(lib, fds[1], err);
	if (fds[1] >= 0)
		lib->world->close(lib->world, fds[1]);
	if (!rc && sio_from_le32(rep.version) != SIO_CLIENT_VERSION)
		rc = sio_fail(err, -EPROTO, "smartiod speaks version %u, this library %u",
			      sio_from_le32(rep.version), SIO_CLIENT_VERSION);
	if (!rc && sio_from_le32(rep.n_adapters) > SIO_MAX_ADAPTERS)
		rc = sio_fail(err, -EPROTO, "smartiod gave its host %u adapters, at most %u are",
			      sio_from_le32(rep.n_adapters), SIO_MAX_ADAPTERS);
	/* Elsewhere the end of a smartiod is its host's. */
	if (!rc && sio_from_le32(rep.world) == SIO_WORLD_SHIM)
		rc = sio_session_keep(lib->session, fds[0], err);
	if (rc) {
		if (fds[0] >= 0)
			lib->world->close(lib->world, fds[0]);
		return rc;
	}
	lib->owner_fd = fds[0];
	lib->node = sio_from_le32(rep.node);
	lib->n_adapters = sio_from_le32(rep.n_adapters);
	memcpy(lib->host, rep.host, sizeof(lib->host));
	lib->host[sizeof(lib->host) - 1] = '\0';
	memcpy(lib->cluster, rep.cluster, sizeof(lib->cluster));
	lib->cluster[sizeof(lib->cluster) - 1] = '\0';
	return 0;
}

static int connect_error(const struct sio_library *lib, int rc, struct sio_err *err)
{
	struct sio_world *w = lib->world;

	if (rc == -ECONNREFUSED && w->comes_again && w->comes_again(w))
		return sio_refuse(err, SCI_ERR_NOT_INITIALIZED,
				  "this machine's smartiod has ended, and no other has come in "
				  "%llu s: start smartiod --shim",
				  SIO_SESSION_AWAY_NS / 1000000000);
	switch (rc) {
	case -ENODATA:
		return sio_refuse(
			err, SCI_ERR_NOT_INITIALIZED,
			"SMARTIO_SOCKET is not set, and no smartiod runs for this machine: "
			"start the program with smartio run, or smartiod --shim");
	case -ENAMETOOLONG:
		return sio_refuse(err, SCI_ERR_NOT_INITIALIZED,
				  "the path in SMARTIO_SOCKET is longer than a socket's can be "
				  "(107 bytes)");
	case -ENOENT:
	case -ECONNREFUSED:
		return sio_refuse(err, SCI_ERR_NOT_INITIALIZED,
				  "no smartiod listens at the path in SMARTIO_SOCKET (%s)",
				  rc == -ENOENT ? "there is no such socket" : "it is not running");
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
	case -EAGAIN: /* no thread */
		return sio_fail_exhausted(
			err, (int)SCI_ERR_NOSPC, sio_reason_of(rc == -EAGAIN ? -ENOMEM : rc),
			"no memory, descriptors or thread to connect to smartiod");
	default:
		return sio_refuse(err, SCI_ERR_NOT_INITIALIZED,
				  "smartiod cannot be reached: error %d", -rc);
	}
}

static int library_up(struct sio_library *lib, struct sio_err *err)
{
	uint64_t until = lib->world->now(lib->world) + SIO_SESSION_AWAY_NS;
	int rc;

	do {
		rc = sio_session_open(lib->session, until);
		if (rc == -EALREADY)
			return sio_fail(
				err, -EPERM,
				"SCIInitialize() in the callback that called SCITerminate()");
		if (rc < 0)
			return connect_error(lib, rc, err);
		rc = hello(lib, err);
		if (rc)
			sio_session_close(lib->session);
	} while (rc == -ESHUTDOWN && sio_session_try_later(lib->session, until));
	if (rc == -ESHUTDOWN)
		rc = sio_refuse(err, SCI_ERR_NOT_INITIALIZED,
				"the smartiod at the path in SMARTIO_SOCKET ended the "
				"connection before it answered");
	return rc;
}

static int initialize(struct sio_library *lib, struct sio_err *err)
{
	int rc = 0;

	sio_session_lock(lib->session);
	while (lib->changing)
		sio_session_wait(lib->session, NULL, 0, SIO_FOREVER);
	if (lib->initialized) {
		if (sio_session_is_dead(lib->session))
			rc = sio_fail(err, -ESHUTDOWN,
				      "this host's smartiod is gone; SCITerminate() comes first");
		else
			lib->initialized++;
		sio_session_unlock(lib->session);
		return rc;
	}
	lib->changing = true;
	sio_session_unlock(lib->session);
	rc = library_up(lib, err);
	sio_session_lock(lib->session);
	lib->changing = false;
	if (rc == 0) {
		lib->initialized = 1;
		__atomic_store_n(&lib->up, 1, __ATOMIC_RELEASE);
	}
	sio_session_wake(lib->session);
	sio_session_unlock(lib->session);
	return rc;
}

void SCIInitialize(unsigned int flags, sci_error_t *error)
{
	struct sio_err err = {.code = 0};
	struct sio_library *lib = NULL;
	int rc = sio_check_flags(flags, 0, 0, &err);

	if (!rc) {
		lib = library_make();
		rc = lib ? initialize(lib, &err) : sio_fail(&err, -ENOMEM, "no memory");
	}
	sio_api_leave(error, rc, &err);
}

/* Ends all objects that no thread is just about to end itself. */
static void end_objects(struct sio_library *lib)
{
	for (;;) {
		struct sio_object *o;

		sio_session_lock(lib->session);
		o = lib->objects;
		while (o && o->removing)
			o = o->next;
		if (o)
			sio_handle_ref(lib->handles, o->handle);
		sio_session_unlock(lib->session);
		if (!o)
			return;
		sio_object_end(o);
	}
}

void SCITerminate(void)
{
	struct sio_library *lib = sio_library_get();

	sio_error_remember(NULL);
	if (!lib)
		return;
	sio_session_lock(lib->session);
	while (lib->changing)
		sio_session_wait(lib->session, NULL, 0, SIO_FOREVER);
	if (lib->initialized == 0 || --lib->initialized > 0) {
		sio_session_unlock(lib->session);
		return;
	}
	lib->changing = true;
	__atomic_store_n(&lib->up, 0, __ATOMIC_RELEASE);
	sio_session_bye(lib->session);
	sio_session_unlock(lib->session);
	sio_session_close(lib->session);
	sio_block_end_all(lib);
	sio_task_purge(lib);
	end_objects(lib);
	lib->world->close(lib->world, lib->owner_fd);
	lib->owner_fd = -1;
	sio_session_lock(lib->session);
	lib->changing = false;
	sio_session_wake(lib->session);
	sio_session_unlock(lib->session);
}
