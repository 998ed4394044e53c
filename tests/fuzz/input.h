/* SPDX-License-Identifier: BSD-2-Clause */
/* An input that is read as a program, byte by byte. */
#ifndef TESTS_FUZZ_INPUT_H
#define TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct input {
	const uint8_t *at;
	size_t left;
};

/* What the input has not got is zero. */
static inline void take(struct input *in, void *to, size_t len)
{
	size_t n = len < in->left ? len : in->left;

	memset(to, 0, len);
	if (n > 0)
		memcpy(to, in->at, n);
	in->at += n;
	in->left -= n;
}

static inline uint8_t take8(struct input *in)
{
	uint8_t v;

	take(in, &v, sizeof(v));
	return v;
}

#endif
