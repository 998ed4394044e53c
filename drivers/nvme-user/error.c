/* SPDX-License-Identifier: BSD-2-Clause */
#include "error.h"

#include "../base/error.h"
#include "smartio/nvme.h"
#include "smartio/uapi.h"

static __thread char last[SIO_DRIVER_TEXT];
static __thread uint32_t last_reason;

const char *smartio_nvme_error(void)
{
	return last;
}

unsigned int smartio_nvme_exhausted(void)
{
	return last_reason;
}

int sio_nvme_fail(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	sio_driver_print(last, fmt, ap);
	va_end(ap);
	last_reason = code == -ENOMEM ? SIO_OUT_OF_MEMORY : SIO_OUT_OF_NOTHING;
	return code;
}

int sio_nvme_fail_exhausted(int code, uint32_t reason, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	sio_driver_print(last, fmt, ap);
	va_end(ap);
	last_reason = reason;
	return code;
}

int sio_nvme_fail_sci(sci_error_t err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	sio_driver_print_sci(last, err, fmt, ap);
	va_end(ap);
	last_reason = smartio_last_exhausted();
	return sio_driver_errno(err);
}
