/* SPDX-License-Identifier: BSD-2-Clause */
/* SCIInitialize() and SCITerminate(), the frame of every call, and the distribution of events. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/types.h"
#include "sisci/base/library.h"
#include "smartio/uapi.h"

/* The session has checked it: its size, and how many times it happened. */
static void session_event(void *ctx, const struct sio_msg *msg, int *fds, unsigned n_fds)
{
	struct sio_library *lib = ctx;

	for (const struct sio_kind_ops *const *k = lib->kinds; *k; k++)
		if ((*k)->event && (*k)->event(lib, msg, fds, n_fds))
			return;
}

static void session_dead(void *ctx)
{
	struct sio_library *lib = ctx;

	for (struct sio_object *o = lib->up ? lib->objects : NULL; o; o = o->next)
		if (sio_object_ops(o)->orphaned)
			sio_object_ops(o)->orphaned(o);
	for (struct sio_object *o = lib->objects; o; o = o->next)
		if (sio_object_ops(o)->lost_first)
			sio_object_lose(o);
	for (struct sio_object *o = lib->objects; o; o = o->next)
		sio_object_lose(o);
}

static bool session_has_work(void *ctx)
{
	struct sio_library *lib = ctx;

	for (const struct sio_kind_ops *const *k = lib->kinds; *k; k++)
		if ((*k)->waits && (*k)->waits(lib->state[(*k)->kind]))
			return true;
	return false;
}

static void session_work(void *ctx)
{
	struct sio_library *lib = ctx;

	for (const struct sio_kind_ops *const *k = lib->kinds; *k; k++)
		if ((*k)->run)
			(*k)->run(lib);
}

static void session_ready(void *ctx, uintptr_t cookie)
{
	struct sio_library *lib = ctx;
	struct sio_object *o = sio_handle_get(lib->handles, cookie, sio_handle_kind(cookie));

	if (!o)
		return;
	if (sio_object_ops(o)->ready)
		sio_object_ops(o)->ready(o);
	sio_object_put(o);
}

static const struct sio_session_ops session_ops = {
	.event = session_event,
	.dead = session_dead,
	.has_work = session_has_work,
	.work = session_work,
	.ready = session_ready,
};

static void library_free(struct sio_library *lib)
{
	sio_session_free(lib->session);
	sio_handles_free(lib->handles);
	sio_hash_done(&lib->by_id);
	free(lib);
}

#define ALIGNED(bytes) (((bytes) + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1))

/* In one piece with what the kinds keep. */
static struct sio_library *allocate(const struct sio_kind_ops *const *kinds)
{
	size_t bytes = ALIGNED(sizeof(struct sio_library)), at = bytes;
	struct sio_library *lib;

	for (const struct sio_kind_ops *const *k = kinds; *k; k++)
		bytes += ALIGNED((*k)->state_bytes);
	lib = calloc(1, bytes);
	if (!lib)
		return NULL;
	lib->kinds = kinds;
	for (const struct sio_kind_ops *const *k = kinds; *k; k++) {
		lib->kind[(*k)->kind] = *k;
		lib->state[(*k)->kind] = (char *)lib + at;
		at += ALIGNED((*k)->state_bytes);
		if ((*k)->init)
			(*k)->init(lib->state[(*k)->kind]);
	}
	return lib;
}

static struct sio_library *library_new(struct sio_world *w, const struct sio_kind_ops *const *kinds)
{
	struct sio_library *lib = allocate(kinds);

	if (!lib)
		return NULL;
	lib->world = w;
	lib->pid = w->pid(w);
	lib->owner_fd = -1;
	sio_hash_init(&lib->by_id);
	if (sio_handles_new(sio_object_free, &lib->handles) < 0 ||
	    sio_session_new(w, &session_ops, lib, &lib->session) < 0) {
		library_free(lib);
		return NULL;
	}
	return lib;
}

struct sio_library *sio_library_get(void)
{
	struct sio_world *w = sio_world_current();
	/* pairs with the exchange in library_make() */
	struct sio_library *lib = __atomic_load_n(sio_world_library(w), __ATOMIC_ACQUIRE);

	return lib && lib->pid == w->pid(w) ? lib : NULL;
}

/* Made once per process and kept: a call that races with SCITerminate() still finds its lock. */
static struct sio_library *library_make(const struct sio_kind_ops *const *kinds)
{
	struct sio_world *w = sio_world_current();
	struct sio_library *lib = sio_library_get(), *fresh;
	void *old = __atomic_load_n(sio_world_library(w), __ATOMIC_ACQUIRE);

	if (lib)
		return lib;
	fresh = library_new(w, kinds);
	if (!fresh)
		return NULL;
	fresh->before_fork = old;
	/*
	 * A reader that finds the library finds all of it; pairs with the load in
	 * sio_library_get().
	 */
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
	if (lib && sio_library_is_up(lib))
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

/*
 * Is it one that a reload has added since this program was started? -ENXIO: there is none. No other
 * error says that.
 */
static int has_come(struct sio_library *lib, unsigned adapter, struct sio_err *err)
{
	struct sio_msg_adapter req = {.adapter = sio_to_le32(adapter)};
	struct sio_rep_adapter rep;
	uint32_t n;
	int rc = sio_ask(lib, SIO_MSG_ADAPTER, &req, sizeof(req), &rep, sizeof(rep), err);

	if (rc < 0)
		return rc;
	/* Other threads may find others at the same time. */
	n = __atomic_load_n(&lib->n_adapters, __ATOMIC_RELAXED);
	while (n <= adapter &&
	       !__atomic_compare_exchange_n(&lib->n_adapters, &n, adapter + 1, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return 0;
}

int sio_check_adapter(struct sio_library *lib, unsigned adapter, struct sio_err *err)
{
	int rc;

	if (adapter >= DIS_MAX_NSCIS)
		return sio_refuse(err, SCI_ERR_ILLEGAL_ADAPTERNO,
				  "adapter number %u is not below %u", adapter, DIS_MAX_NSCIS);
	rc = adapter < sio_adapters(lib) ? 0 : has_come(lib, adapter, err);
	if (rc == -ENXIO)
		return sio_refuse(err, SCI_ERR_NO_SUCH_ADAPTERNO,
				  "host %s has no adapter %u; it has %u", lib->host, adapter,
				  sio_adapters(lib));
	return rc;
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
		.version = sio_to_le32(SIO_CLIENT_VERSION),
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
	if (!rc && SIO_WORLD_IS_REAL(sio_from_le32(rep.world)))
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
				"SCIInitialize() cannot be called in the callback that called "
				"SCITerminate()");
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
				      "this host's smartiod is gone; call SCITerminate() first");
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
		/* pairs with the load in sio_library_is_up() */
		__atomic_store_n(&lib->up, 1, __ATOMIC_RELEASE);
	}
	sio_session_wake(lib->session);
	sio_session_unlock(lib->session);
	return rc;
}

void sio_library_initialize(const struct sio_kind_ops *const *kinds, unsigned flags,
			    sci_error_t *error)
{
	struct sio_err err = {.code = 0};
	struct sio_library *lib = NULL;
	int rc = sio_check_flags(flags, 0, 0, &err);

	if (!rc) {
		lib = library_make(kinds);
		rc = lib ? initialize(lib, &err) : sio_no_memory(&err, "the library");
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
		while (o && sio_object_is_leaving(o))
			o = o->next;
		if (o)
			sio_handle_ref(lib->handles, o->handle);
		sio_session_unlock(lib->session);
		if (!o)
			return;
		sio_object_end(o);
	}
}

/* From the list's end: who copies blocks may have work for a DMA queue. */
static void purge(struct sio_library *lib)
{
	const struct sio_kind_ops *const *k = lib->kinds;

	while (*k)
		k++;
	while (k-- > lib->kinds)
		if ((*k)->purge)
			(*k)->purge(lib);
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
	__atomic_store_n(&lib->up, 0, __ATOMIC_RELAXED);
	sio_session_bye(lib->session);
	sio_session_unlock(lib->session);
	sio_session_close(lib->session);
	purge(lib);
	end_objects(lib);
	lib->world->close(lib->world, lib->owner_fd);
	lib->owner_fd = -1;
	sio_session_lock(lib->session);
	lib->changing = false;
	sio_session_wake(lib->session);
	sio_session_unlock(lib->session);
}
