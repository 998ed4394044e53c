/* SPDX-License-Identifier: BSD-2-Clause */
/* The JSON of VERSION: the limits of each side. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "vfio/message.h"

#define DEFAULT_DATA (1u << 20) /* of the protocol, where it is left out */
#define DEPTH 8

static int take(struct json_object *all, struct sio_vfio_limits *ret, struct sio_err *reterr)
{
	struct json_object *caps, *value;
	int64_t n;

	if (!json_object_is_type(all, json_type_object))
		return sio_fail(reterr, -EINVAL, "VERSION: its JSON is not an object");
	if (!json_object_object_get_ex(all, "capabilities", &caps))
		return 0;
	if (!json_object_is_type(caps, json_type_object))
		return sio_fail(reterr, -EINVAL, "VERSION: its capabilities are not an object");
	if (!json_object_object_get_ex(caps, "max_data_xfer_size", &value))
		return 0;
	n = json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : 0;
	if (n <= 0)
		return sio_fail(reterr, -EINVAL,
				"VERSION: max_data_xfer_size is not a number above 0");
	ret->max_data = (uint64_t)n;
	return 0;
}

int sio_vfio_limits_parse(const uint8_t *text, size_t len, struct sio_vfio_limits *ret,
			  struct sio_err *reterr)
{
	struct json_tokener *tok;
	struct json_object *all;
	int rc;

	ret->max_data = DEFAULT_DATA;
	if (len == 0)
		return 0;
	if (text[len - 1] != '\0' || memchr(text, '\0', len - 1))
		return sio_fail(reterr, -EINVAL, "VERSION: its JSON does not end with the one NUL");
	if (len == 1)
		return 0;
	tok = json_tokener_new_ex(DEPTH);
	if (!tok)
		return sio_fail(reterr, -ENOMEM,
				"VERSION: no memory to read its JSON: " SIO_MORE_MEMORY);
	all = json_tokener_parse_ex(tok, (const char *)text, (int)len);
	if (json_tokener_get_error(tok) == json_tokener_success)
		rc = take(all, ret, reterr);
	else
		rc = sio_fail(reterr, -EINVAL, "VERSION: JSON is right");
	json_object_put(all);
	json_tokener_free(tok);
	return rc;
}

size_t sio_vfio_limits_text(char *text, size_t size)
{
	return (size_t)snprintf(text, size,
				"{\"capabilities\":{\"max_msg_fds\":%u,\"max_data_xfer_size\":%u,"
				"\"max_dma_maps\":%u}}",
				SIO_VFIO_MAX_FDS, SIO_VFIO_MAX_DATA, SIO_VFIO_MAX_MAPS) +
	       1;
}
