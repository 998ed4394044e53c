/* SPDX-License-Identifier: BSD-2-Clause */
/* What a fuzz target is: one input. It aborts if something is wrong. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
