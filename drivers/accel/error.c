/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "inside.h"

#define TEXT 1024

static __thread char last[TEXT];

const char *smartio_accel_error(void)
{
	return last;
}

int sio_accel_fail(int code, const char *fmt, ...)
{
	char text[TEXT]; /* an argument may be the last text */
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	memcpy(last, text, sizeof(last));
	return code;
}

static int errno_of(sci_error_t err)
{
	static const struct {
		sci_error_t err;
		int code;
	} table[] = {
		{SCI_ERR_BUSY, -EBUSY},
		{SCI_ERR_NOT_AVAILABLE, -EBUSY},
		{SCI_ERR_NOSPC, -ENOMEM},
		{SCI_ERR_API_NOSPC, -ENOMEM},
		{SCI_ERR_HW_NOSPC, -ENOSPC},
		{SCI_ERR_TIMEOUT, -ETIMEDOUT},
		{SCI_ERR_NODE_NOT_RESPONDING, -ETIMEDOUT},
		{SCI_ERR_OUT_OF_RANGE, -ERANGE},
		{SCI_ERR_ILLEGAL_PARAMETER, -EINVAL},
		{SCI_ERR_CANCELLED, -ENODEV},
		{SCI_ERR_NOT_CONNECTED, -ENODEV},
		{SCI_ERR_NO_SUCH_FDID, -ENODEV},
		{SCI_ERR_NO_SUCH_NODEID, -ENODEV},
		{SCI_ERR_NO_REMOTE_LINK_ACCESS, -ENODEV},
		{SCI_ERR_NO_LINK_ACCESS, -ENODEV},
		{SCI_ERR_NOT_INITIALIZED, -ENOTCONN},
		{SCI_ERR_ACCESS, -EACCES},
		{SCI_ERR_NOT_SUPPORTED, -ENOTSUP},
		{SCI_ERR_NOT_IMPLEMENTED, -ENOTSUP},
	};

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].err == err)
			return table[i].code;
	return -EIO;
}

int sio_accel_fail_sci(sci_error_t err, const char *fmt, ...)
{
	const char *why = smartio_last_error();
	char text[TEXT / 2];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return sio_accel_fail(errno_of(err), "%s: %s%s%s%s", text, SCIGetErrorString(err),
			      *why ? " (" : "", why, *why ? ")" : "");
}

const char *smartio_accel_status_string(uint32_t status)
{
	static const char *const text[] = {
		[SIO_ACCEL_OK] = "done",
		[SIO_ACCEL_INVALID] = "no such operation, flags or arguments",
		[SIO_ACCEL_READ_FAILED] = "a source could not be read",
		[SIO_ACCEL_WRITE_FAILED] = "a target could not be written",
		[SIO_ACCEL_FAILED] = "the kernel gave up",
	};

	return status < sizeof(text) / sizeof(text[0]) ? text[status] : "an unknown status";
}
