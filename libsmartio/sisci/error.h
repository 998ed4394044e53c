/* SPDX-License-Identifier: BSD-2-Clause */
/* From -errno to the API's codes, and the text that goes with them. */
#ifndef SISCI_ERROR_ROOM_H
#define SISCI_ERROR_ROOM_H

#include <stdbool.h>

#include "core/err.h"
#include "sisci_error.h"

/* 0, -errno, or a code of the API, which stays as it is. */
sci_error_t sio_error_code(int rc);
/* For a call in which @from means @to: use before sio_api_leave(). */
static inline int sio_error_as(int rc, int from, sci_error_t to)
{
	return rc == from ? (int)to : rc;
}
/* As sio_fail(), with a code of the API. Return: @code. */
#define sio_refuse(err, code, ...) sio_fail((err), (int)(code), __VA_ARGS__)

/* Whether this thread has a text; a word of its own so that to clear it is little work. */
extern __thread bool sio_error_told
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
static inline void sio_error_forget(void)
{
	if (__builtin_expect(sio_error_told, 0)) /* a load is cheaper than a store: copy_middle.c */
		sio_error_told = false;
}
/* This thread's text; NULL clears it. */
void sio_error_remember(const char *text);
const char *sio_error_recall(void);

#endif
