/* SPDX-License-Identifier: BSD-2-Clause */
/* An error number with the text that explains it, filled where the numbers are known. */
#ifndef CORE_ERR_H
#define CORE_ERR_H

#include <stdint.h>

#define SIO_ERR_TEXT 256

struct sio_err {
	int code;	 /* -errno */
	uint32_t reason; /* what ran out: SIO_OUT_OF_* of smartio/uapi.h; 0: nothing did */
	char text[SIO_ERR_TEXT];
};

/*
 * Fill @reterr (may be NULL) and return @code, which is -errno. A long text is cut. What ran out is
 * what @code says by itself.
 */
int sio_fail(struct sio_err *reterr, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As sio_fail(); @reason ran out. */
int sio_fail_exhausted(struct sio_err *reterr, int code, uint32_t reason, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* What ran out where @code (-errno) alone is known; 0: it does not say. */
uint32_t sio_reason_of(int code);
/* What ran out, of a call that returned @code: the text's word for it if @err is about that. */
uint32_t sio_err_reason(const struct sio_err *err, int code);
/* "look-up entries"; "" of SIO_OUT_OF_NOTHING, and of what is none. Static storage. */
const char *sio_reason_name(uint32_t reason);

/* Put "what: " before the text already there; returns its code. */
int sio_fail_prefix(struct sio_err *reterr, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
