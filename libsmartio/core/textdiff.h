/* SPDX-License-Identifier: BSD-2-Clause */
/* The differences between two texts, line by line. Pure logic. */
#ifndef CORE_TEXTDIFF_H
#define CORE_TEXTDIFF_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A line that only one of the texts has; @mine: the first. @line: from 1, in that text. No newline.
 */
typedef void sio_textdiff_report(void *ctx, bool mine, unsigned line, const char *text, size_t len);

/*
 * Calls @tell for a minimal set of lines, in their order. Texts whose different parts have more
 * than SIO_TEXTDIFF_LINES lines are reported as a whole from the first difference to the last one.
 * Return: how many lines were reported; -ENOMEM: none.
 */
#define SIO_TEXTDIFF_LINES 2048
int sio_textdiff(const char *mine, size_t mine_len, const char *other, size_t other_len,
		 sio_textdiff_report *tell, void *ctx);

#endif
