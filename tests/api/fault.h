/* SPDX-License-Identifier: BSD-2-Clause */
/* What is done again and again while one call after the other fails. */
#ifndef TESTS_API_FAULT_H
#define TESTS_API_FAULT_H

#include <stdbool.h>

#include "../lib/cluster.h"

/* After an error there is a text. */
bool worked(sci_error_t error);
/* fault_segments.c: connects without waiting, callbacks, waits, own memory, several handles. */
void use_more_segments(sci_desc_t sd);
/* fault_kinds.c: shared interrupts, messages to all, gathered DMA, channels, queries. */
void use_more_kinds(sci_desc_t sd);

#endif
