/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual devices: no more than what other objects belong to. */
#include <errno.h>
#include <stdlib.h>

#include "sisci/segment/segment.h"

static void desc_free(struct sio_object *o)
{
	free(o);
}

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
		return sio_fail(err, -ENOMEM, "no memory");
	o->kind = SIO_DESC;
	o->free = desc_free;
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

static int close_desc(struct sio_library *lib, sci_desc_t sd, unsigned flags, struct sio_err *err)
{
	struct sio_object *o;
	int rc = sio_check_flags(flags, 0, 0, err);

	if (rc)
		return rc;
	o = sio_object_get(lib, sd, SIO_DESC, err);
	if (!o)
		return err->code;
	rc = sio_remote_segments_close(o, err);
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
