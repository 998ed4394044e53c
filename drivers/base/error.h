/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the drivers' error texts: the last failure of a call of the API, as -errno and as a
 * text. Each library keeps the text of its own calls, for each thread.
 */
#ifndef DRIVERS_BASE_ERROR_H
#define DRIVERS_BASE_ERROR_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sisci_api.h"
#include "smartio/ext.h"

#define SIO_DRIVER_TEXT 2560 /* the texts of two programs, and more */

/* The -errno of an error of the API; -EIO for errors that have none. */
static inline int sio_driver_errno(sci_error_t err)
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
		{SCI_ERR_ILLEGAL_ADDRESS, -EFAULT},
		{SCI_ERR_NO_SUCH_SEGMENT, -ENOENT},
		{SCI_ERR_SEGMENTID_USED, -EEXIST},
		{SCI_ERR_CANCELLED, -ENODEV},
		{SCI_ERR_NOT_CONNECTED, -ENODEV},
		{SCI_ERR_NO_SUCH_FDID, -ENODEV},
		{SCI_ERR_NO_SUCH_NODEID, -EHOSTUNREACH},
		{SCI_ERR_NO_LINK_ACCESS, -ENETDOWN},
		{SCI_ERR_NO_REMOTE_LINK_ACCESS, -ENETDOWN},
		{SCI_ERR_NOT_INITIALIZED, -ENOTCONN},
		{SCI_ERR_ACCESS, -EACCES},
		{SCI_ERR_NOT_SUPPORTED, -EOPNOTSUPP},
		{SCI_ERR_NOT_IMPLEMENTED, -EOPNOTSUPP},
		{SCI_ERR_FLAG_NOT_IMPLEMENTED, -EOPNOTSUPP},
	};

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].err == err)
			return table[i].code;
	return -EIO;
}

/* Formats the text into @last, of which an argument may be a part. */
__attribute__((format(printf, 2, 0))) static inline void
sio_driver_print(char last[SIO_DRIVER_TEXT], const char *fmt, va_list ap)
{
	char text[SIO_DRIVER_TEXT];

	vsnprintf(text, sizeof(text), fmt, ap);
	memcpy(last, text, sizeof(text));
}

/* The same for a call of the API that has just failed: appends the API's text. */
__attribute__((format(printf, 3, 0))) static inline void
sio_driver_print_sci(char last[SIO_DRIVER_TEXT], sci_error_t err, const char *fmt, va_list ap)
{
	const char *why = smartio_last_error();
	char text[SIO_DRIVER_TEXT];
	size_t n;

	vsnprintf(text, sizeof(text), fmt, ap);
	n = strlen(text);
	snprintf(text + n, sizeof(text) - n, ": %s%s%s%s", SCIGetErrorString(err), *why ? " (" : "",
		 why, *why ? ")" : "");
	memcpy(last, text, sizeof(text));
}

#endif
