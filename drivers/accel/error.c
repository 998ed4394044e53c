/* SPDX-License-Identifier: BSD-2-Clause */
#include "../base/error.h"
#include "inside.h"

static __thread char last[SIO_DRIVER_TEXT];

const char *smartio_accel_error(void)
{
	return last;
}

int sio_accel_fail(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	sio_driver_print(last, fmt, ap);
	va_end(ap);
	return code;
}

int sio_accel_fail_sci(sci_error_t err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	sio_driver_print_sci(last, err, fmt, ap);
	va_end(ap);
	return sio_driver_errno(err);
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
