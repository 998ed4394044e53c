/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * To be loaded before the C library (LD_PRELOAD): mallinfo2() tells how many bytes the program has
 * asked for and not given back, to the byte. The C library's own counts what it gave, which is a
 * few bytes more or less for the same wish, as its free memory happens to lie, and what lies in its
 * caches.
 */
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The C library's own, under the names that it has for such as us. */
void *__libc_malloc(size_t size);		      /* NOLINT(bugprone-reserved-identifier) */
void *__libc_memalign(size_t alignment, size_t size); /* NOLINT(bugprone-reserved-identifier) */
void __libc_free(void *p);			      /* NOLINT(bugprone-reserved-identifier) */

/* Before each piece of memory. */
struct head {
	void *whole; /* what the C library gave */
	size_t size;
};

static uint64_t in_use;

static struct head *head_of(void *p)
{
	return (struct head *)((char *)p - sizeof(struct head));
}

static void *give(char *whole, size_t offset, size_t size)
{
	struct head *h;

	if (!whole)
		return NULL;
	h = head_of(whole + offset);
	h->whole = whole;
	h->size = size;
	__atomic_fetch_add(&in_use, size, __ATOMIC_RELAXED);
	return whole + offset;
}

void *malloc(size_t size)
{
	size_t sum;

	if (__builtin_add_overflow(size, sizeof(struct head), &sum)) {
		errno = ENOMEM;
		return NULL;
	}
	return give(__libc_malloc(sum), sizeof(struct head), size);
}

void free(void *p)
{
	struct head *h;

	if (!p)
		return;
	h = head_of(p);
	__atomic_fetch_sub(&in_use, h->size, __ATOMIC_RELAXED);
	__libc_free(h->whole);
}

void *calloc(size_t n, size_t size)
{
	size_t product;
	void *p;

	if (__builtin_mul_overflow(n, size, &product)) {
		errno = ENOMEM;
		return NULL;
	}
	p = malloc(product);
	if (p)
		memset(p, 0, product);
	return p;
}

void *realloc(void *old, size_t size)
{
	void *p;

	if (old && size == 0) {
		free(old);
		return NULL;
	}
	p = malloc(size);
	if (p && old) {
		size_t had = head_of(old)->size;

		memcpy(p, old, had < size ? had : size);
		free(old);
	}
	return p;
}

/* @alignment: a power of two. */
void *memalign(size_t alignment, size_t size)
{
	size_t offset = alignment > sizeof(struct head) ? alignment : sizeof(struct head), sum;

	if (__builtin_add_overflow(size, offset, &sum)) {
		errno = ENOMEM;
		return NULL;
	}
	return give(__libc_memalign(alignment, sum), offset, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	void *p = memalign(alignment, size);

	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

void *valloc(size_t size)
{
	return memalign(4096, size);
}

size_t malloc_usable_size(void *p)
{
	return p ? head_of(p)->size : 0;
}

struct mallinfo2 mallinfo2(void)
{
	return (struct mallinfo2){.uordblks = __atomic_load_n(&in_use, __ATOMIC_RELAXED)};
}
