/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs of the tests with a smartiod that goes: calls that succeed, and what they begin with. */
#ifndef TESTS_SESSION_ALIVE_H
#define TESTS_SESSION_ALIVE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "sisci_api.h"
#include "smartio/ext.h"

static inline void good(const char *call, sci_error_t err)
{
	if (err == SCI_ERR_OK)
		return;
	fprintf(stderr, "%s: error %#x: %s\n", call, err, smartio_last_error());
	abort(); /* not a thread's to tell cmocka */
}

#define CALL(name, ...)                                                                            \
	do {                                                                                       \
		sci_error_t err_ = SCI_ERR_OK;                                                     \
		name(__VA_ARGS__, &err_);                                                          \
		good(#name, err_);                                                                 \
	} while (0)

static inline void initialize(void)
{
	sci_error_t err;

	do /* a server that hangs up at once is met by chance */
		SCIInitialize(0, &err);
	while (err == SCI_ERR_NOT_INITIALIZED);
	assert_int_equal(err, SCI_ERR_OK);
}

/* A new segment, and its memory. */
static inline unsigned *mapped_segment(sci_desc_t sd, sci_local_segment_t *segment, sci_map_t *map)
{
	sci_error_t err;
	unsigned *p;

	CALL(SCICreateSegment, sd, segment, 0, 4096, NULL, NULL, SCI_FLAG_AUTO_ID);
	p = SCIMapLocalSegment(*segment, map, 0, 4096, NULL, 0, &err);
	good("SCIMapLocalSegment", err);
	return p;
}

#endif
