/* SPDX-License-Identifier: BSD-2-Clause */
/* Translates -errno to the API's codes, with the texts that belong to them. */
#ifndef SISCI_ERROR_ROOM_H
#define SISCI_ERROR_ROOM_H

#include "core/err.h"
#include "sisci_error.h"

/* @rc: 0, -errno, or a code of the API, which is returned unchanged. */
sci_error_t sio_error_code(int rc);
/* For a call in which @from means @to: to be used before sio_api_leave(). */
static inline int sio_error_as(int rc, int from, sci_error_t to)
{
	return rc == from ? (int)to : rc;
}
/* As sio_fail(), with a code of the API. Return: @code. */
#define sio_refuse(err, code, ...) sio_fail((err), (int)(code), __VA_ARGS__)

/* Keeps this thread's last error; NULL: none. */
void sio_error_remember(const struct sio_err *err);
/* The resource that was exhausted in it: SIO_OUT_OF_*. */
uint32_t sio_error_reason(void);
const char *sio_error_recall(void);

#endif
