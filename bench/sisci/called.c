/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a call through a shared library costs by itself: this is one, and its functions have the
 * parameters of SCIMemCpy(), but check nothing.
 */
#include <string.h>

#include "called.h"
#include "smartio/io.h"

void called_nothing(void *a, void *memory, void *to, size_t offset, size_t size, unsigned flags,
		    void *error)
{
	(void)a;
	(void)memory;
	(void)to;
	(void)offset;
	(void)size;
	(void)flags;
	(void)error;
	__asm__ volatile("");
}

void called_memcpy(void *a, void *memory, void *to, size_t offset, size_t size, unsigned flags,
		   void *error)
{
	(void)a;
	(void)flags;
	(void)error;
	memcpy((char *)to + offset, memory, size);
	sio_to_fabric_barrier();
}
