/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"
#include "smartio/uapi.h"

#define TEXT 2560 /* a manager's, and more */

static __thread char last[TEXT];
static __thread uint32_t last_reason;

const char *smartio_nvme_error(void)
{
	return last;
}

unsigned int smartio_nvme_exhausted(void)
{
	return last_reason;
}

static int remember(int code, uint32_t reason, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

static int remember(int code, uint32_t reason, const char *fmt, va_list ap)
{
	char text[TEXT]; /* an argument may be the last text */

	vsnprintf(text, sizeof(text), fmt, ap);
	memcpy(last, text, sizeof(last));
	last_reason = reason;
	return code;
}

int sio_nvme_fail(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	remember(code, code == -ENOMEM ? SIO_OUT_OF_MEMORY : SIO_OUT_OF_NOTHING, fmt, ap);
	va_end(ap);
	return code;
}

int sio_nvme_fail_exhausted(int code, uint32_t reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	remember(code, reason, fmt, ap);
	va_end(ap);
	return code;
}

static int errno_of(sci_error_t err)
{
	static const struct {
		sci_error_t err;
		int code;
	} table[] = {
		{SCI_ERR_BUSY, -EBUSY},
		{SCI_ERR_NOSPC, -ENOMEM},
		{SCI_ERR_API_NOSPC, -ENOMEM},
		{SCI_ERR_HW_NOSPC, -ENOSPC},
		{SCI_ERR_TIMEOUT, -ETIMEDOUT},
		{SCI_ERR_OUT_OF_RANGE, -ERANGE},
		{SCI_ERR_NO_SUCH_SEGMENT, -ENOENT},
		{SCI_ERR_ILLEGAL_PARAMETER, -EINVAL},
		{SCI_ERR_SEGMENTID_USED, -EEXIST},
		{SCI_ERR_CANCELLED, -ENODEV},
		{SCI_ERR_NOT_CONNECTED, -ENODEV},
		{SCI_ERR_NOT_AVAILABLE, -EBUSY},
		{SCI_ERR_NOT_INITIALIZED, -ENOTCONN},
		{SCI_ERR_ACCESS, -EACCES},
		{SCI_ERR_NOT_SUPPORTED, -EOPNOTSUPP},
		{SCI_ERR_NOT_IMPLEMENTED, -EOPNOTSUPP},
		{SCI_ERR_FLAG_NOT_IMPLEMENTED, -EOPNOTSUPP},
		{SCI_ERR_NO_SUCH_FDID, -ENODEV},
		{SCI_ERR_NO_SUCH_NODEID, -EHOSTUNREACH},
		{SCI_ERR_NODE_NOT_RESPONDING, -ETIMEDOUT},
		{SCI_ERR_NO_REMOTE_LINK_ACCESS, -ENETDOWN},
		{SCI_ERR_NO_LINK_ACCESS, -ENETDOWN},
		{SCI_ERR_NO_REMOTE_LINK_ACCESS, -ENETDOWN},
	};

	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].err == err)
			return table[i].code;
	return -EIO;
}

int sio_nvme_fail_sci(sci_error_t err, const char *fmt, ...)
{
	const char *why = smartio_last_error();
	char text[TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return sio_nvme_fail_exhausted(errno_of(err), smartio_last_exhausted(), "%s: %s%s%s%s",
				       text, SCIGetErrorString(err), *why ? " (" : "", why,
				       *why ? ")" : "");
}
