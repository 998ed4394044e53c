/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/err.h"

static void fill(struct sio_err *reterr, int code, uint32_t reason, const char *fmt, va_list args)
	__attribute__((format(printf, 4, 0)));

/* The text that is there may be among the arguments. */
static void fill(struct sio_err *reterr, int code, uint32_t reason, const char *fmt, va_list args)
{
	char text[SIO_ERR_TEXT];

	if (!reterr)
		return;
	vsnprintf(text, sizeof(text), fmt, args);
	reterr->code = code;
	reterr->reason = reason;
	memcpy(reterr->text, text, strlen(text) + 1);
}

int sio_fail(struct sio_err *reterr, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fill(reterr, code, sio_reason_of(code), fmt, args);
	va_end(args);
	return code;
}

int sio_fail_exhausted(struct sio_err *reterr, int code, uint32_t reason, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fill(reterr, code, reason, fmt, args);
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
