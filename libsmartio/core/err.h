/* SPDX-License-Identifier: BSD-2-Clause */
/* An error number with the text that explains it, filled where the numbers are known. */
#ifndef CORE_ERR_H
#define CORE_ERR_H

#include <stdint.h>

#define SIO_ERR_TEXT 512 /* the keys of a topology file's longest mapping, in one sentence */

struct sio_err {
	int code;	 /* -errno */
	uint32_t reason; /* what ran out: SIO_OUT_OF_* of smartio/uapi.h; 0: nothing did */
	char text[SIO_ERR_TEXT];
};

/*
 * Fills @reterr (may be NULL). Return: @code, which is -errno. A long text is cut. The exhausted
 * resource is the one that @code implies.
 */
int sio_fail(struct sio_err *reterr, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The same; the exhausted resource is @reason. */
int sio_fail_exhausted(struct sio_err *reterr, int code, uint32_t reason, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The exhausted resource that @code (-errno) alone implies; 0: none. */
uint32_t sio_reason_of(int code);
/*
 * The exhausted resource of a call that returned @code: that of @err, if @err is about the same
 * error.
 */
uint32_t sio_err_reason(const struct sio_err *err, int code);
/*
 * The name of a resource: "look-up entries"; "" for SIO_OUT_OF_NOTHING and for unknown numbers.
 * Static storage.
 */
const char *sio_reason_name(uint32_t reason);

/* Puts "what: " before the text that is there already. Return: its code. */
int sio_fail_prefix(struct sio_err *reterr, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* What to do about it, as the end of a text that says for what there was no memory. */
#define SIO_MORE_MEMORY                                                                            \
	"free some on the host, or raise the process's limit (ulimit -v, memory.max)"
/* sio_fail() with -ENOMEM: @fmt names what there was no memory for. */
#define sio_no_memory(reterr, fmt, ...)                                                            \
	sio_fail(reterr, -ENOMEM, "no memory for " fmt ": " SIO_MORE_MEMORY, ##__VA_ARGS__)

#endif
