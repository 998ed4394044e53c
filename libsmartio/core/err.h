/* SPDX-License-Identifier: BSD-2-Clause */
/* An error number with the text that explains it, filled where the numbers are known. */
#ifndef CORE_ERR_H
#define CORE_ERR_H

#define SIO_ERR_TEXT 256

struct sio_err {
	int code; /* -errno */
	char text[SIO_ERR_TEXT];
};

/* Fill @reterr (may be NULL) and return @code, which is -errno. A long text is cut. */
int sio_fail(struct sio_err *reterr, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Put "what: " before the text already there; returns its code. */
int sio_fail_prefix(struct sio_err *reterr, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
