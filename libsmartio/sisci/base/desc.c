/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual devices. They have no function of their own; other objects belong to them. */
#include <errno.h>
#include <stdlib.h>

#include "sisci/base/library.h"

static void desc_free(struct sio_object *o)
{
	free(o);
}

const struct sio_kind_ops sio_desc_kind = {
	.kind = SIO_DESC,
	.name = "virtual device (sci_desc_t)",
	.free = desc_free,
};

static int open_desc(struct sio_library *lib, sci_desc_t *sd, unsigned flags, struct sio_err *err)
{
	struct sio_object *o;
	int rc = sio_check_pointer(sd, "sd", err);

	if (!rc)
		rc = sio_check_flags(flags, SCI_FLAG_THREAD_SAFE, 0, err);
	if (rc)
		return rc;
	o = calloc(1, sizeof(*o));
	if (!o)
		return sio_no_memory(err, "a descriptor");
	o->kind = SIO_DESC;
	rc = sio_object_add(lib, o, NULL, err);
	if (rc)
		return rc;
	*sd = sio_object_handle(o);
	sio_object_put(o);
	return 0;
}

void SCIOpen(sci_desc_t *sd, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? open_desc(lib, sd, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}

/* Under the lock: is all that belongs to @desc stale? */
static bool all_stale(const struct sio_object *desc)
{
	const struct sio_object *o = desc->first_child;

	while (o && sio_object_ops(o)->is_stale && sio_object_ops(o)->is_stale(o))
		o = o->sibling;
	return !o;
}

/*
 * Under the lock: the first one that can be closed, with a reference; NULL: there is none. Those
 * that are mapped outlive @desc, until the program unmaps and disconnects them.
 */
static struct sio_object *next_stale(struct sio_object *desc, unsigned *n_mapped)
{
	struct sio_object *o, *next;

	for (o = desc->first_child; o; o = next) {
		next = o->sibling;
		if (sio_object_is_leaving(o))
			continue;
		if (o->children == 0) {
			sio_handle_ref(o->lib->handles, o->handle);
			return o;
		}
		sio_object_orphan(o);
		++*n_mapped;
	}
	return NULL;
}

/* If all that belongs to @desc is stale it is closed. */
static int close_stale(struct sio_object *desc, struct sio_err *err)
{
	struct sio_session *s = desc->lib->session;
	struct sio_object *o;
	unsigned n_mapped = 0;
	int rc;

	do {
		sio_session_lock(s);
		o = desc->children && all_stale(desc) ? next_stale(desc, &n_mapped) : NULL;
		sio_session_unlock(s);
		rc = o ? sio_object_ops(o)->close(o, sio_object_claim(o, false, err), err) : 0;
	} while (o && (!rc || rc == -EINVAL)); /* EINVAL: another thread was first */
	while (n_mapped-- > 0)
		sio_object_put(desc);
	return rc;
}

static int close_desc(struct sio_library *lib, sci_desc_t sd, unsigned flags, struct sio_err *err)
{
	struct sio_object *o;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	o = sio_object_get(lib, sd, SIO_DESC, err);
	if (!o)
		return err->code;
	rc = close_stale(o, err);
	if (!rc)
		rc = sio_object_claim(o, false, err);
	if (rc) {
		sio_object_put(o);
		return rc;
	}
	sio_object_end(o);
	return 0;
}

void SCIClose(sci_desc_t sd, unsigned int flags, sci_error_t *error)
{
	struct sio_err err;
	struct sio_library *lib = sio_api_enter(&err);
	int rc = lib ? close_desc(lib, sd, flags, &err) : err.code;

	sio_api_leave(error, rc, &err);
}
