/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/err.h"

int sio_fail(struct sio_err *reterr, int code, const char *fmt, ...)
{
	va_list args;

	if (!reterr)
		return code;
	reterr->code = code;
	va_start(args, fmt);
	vsnprintf(reterr->text, sizeof(reterr->text), fmt, args);
	va_end(args);
	return code;
}

int sio_fail_prefix(struct sio_err *reterr, const char *fmt, ...)
{
	char text[SIO_ERR_TEXT];
	size_t len, room;
	va_list args;

	/* No text, and no code either: any error is better than taking it for success. */
	if (!reterr)
		return -EINVAL;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	len = strlen(text);
	room = sizeof(text) - 1 - len;
	if (room >= 2) {
		memcpy(text + len, ": ", 2);
		len += 2;
		room -= 2;
		reterr->text[room] = '\0';
		memcpy(text + len, reterr->text, strlen(reterr->text) + 1);
	}
	memcpy(reterr->text, text, sizeof(text));
	return reterr->code;
}
