/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of another shared library, with the parameters of SCIMemCpy(). */
#ifndef BENCH_SISCI_CALLED_H
#define BENCH_SISCI_CALLED_H

#include <stddef.h>

#pragma GCC visibility push(default)
/* Does nothing: the least that a call can take. */
void called_nothing(void *a, void *memory, void *to, size_t offset, size_t size, unsigned flags,
		    void *error);
/* memcpy() and the fence that SCIMemCpy() ends with. */
void called_memcpy(void *a, void *memory, void *to, size_t offset, size_t size, unsigned flags,
		   void *error);
#pragma GCC visibility pop

#endif
