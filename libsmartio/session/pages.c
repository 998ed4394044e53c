/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/freeze.h"
#include "session/live.h"
#include "session/pages.h"

struct pages {
	struct pages *next;
	char *at;
	size_t len;
	unsigned long inode;
	char *copy; /* the contents for a child, during a fork; NULL: there is none */
	int fd;	    /* of the file, while the pages are made private */
};

/* Held during a fork, too, so that a child never inherits a half-done change. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pages *all;

/* ---- what is mapped ---- */

struct area {
	char *begin, *end;
	char perms[5], name[16]; /* the start of its name */
	unsigned long inode;
};

/*
 * Reads /proc/self/maps line by line and without malloc(), because a child of a fork reads it, too.
 */
struct reader {
	int fd;
	int error; /* -errno: it could not be read to its end */
	size_t used;
	char buf[1024];
};

static bool next_area(struct reader *r, struct area *a)
{
	unsigned long begin, end;
	char *newline;
	ssize_t n;

	for (;;) {
		newline = memchr(r->buf, '\n', r->used);
		if (newline)
			break;
		if (r->used == sizeof(r->buf)) /* only the name can be longer than the buffer */
			r->used = sizeof(r->buf) - 1;
		n = read(r->fd, r->buf + r->used, sizeof(r->buf) - r->used);
		if (n < 0)
			r->error = -errno;
		if (n <= 0)
			return false;
		r->used += (size_t)n;
	}
	*newline = '\0';
	a->name[0] = '\0';
	if (sscanf(r->buf, "%lx-%lx %4s %*s %*s %lu %15s", &begin, &end, a->perms, &a->inode,
		   a->name) < 4)
		return false;
	a->begin = (char *)begin;
	a->end = (char *)end;
	r->used -= (size_t)(newline + 1 - r->buf);
	memmove(r->buf, newline + 1, r->used);
	return true;
}

/* Accepts private memory without a file. A stack is refused: it is in use during the exchange. */
static int check_area(void *arg, const struct area *a, char *from, size_t part)
{
	(void)arg;
	(void)from;
	(void)part;
	if (a->perms[0] != 'r' || a->perms[1] != 'w')
		return -EFAULT;
	if (a->perms[3] != 'p' || a->inode != 0)
		return -EOPNOTSUPP;
	if (a->name[0] && strcmp(a->name, "[heap]") != 0 && strncmp(a->name, "[anon", 5) != 0)
		return -EOPNOTSUPP;
	return 0;
}

/*
 * Calls @fn for each area in the range, with the part that lies in the range; holes are an error.
 */
static int each_area(char *at, size_t len,
		     int (*fn)(void *arg, const struct area *a, char *from, size_t part), void *arg)
{
	struct reader r = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
	char *end = at + len;
	struct area a;
	int rc = 0;

	if (r.fd < 0)
		return errno == ENOENT ? -EOPNOTSUPP : -errno;
	while (rc == 0 && at < end && next_area(&r, &a)) {
		if (a.end <= at)
			continue;
		if (a.end > end)
			a.end = end;
		rc = a.begin > at ? -EFAULT : fn(arg, &a, at, (size_t)(a.end - at));
		at = a.end;
	}
	close(r.fd);
	if (rc == 0 && at < end)
		rc = r.error ? r.error : -EFAULT;
	return rc;
}

/*
 * Calls @fn for each part of @p that is still the library's mapping: programs free memory before
 * they remove the segment that it belongs to, or never remove the segment.
 */
static int each_part(struct pages *p, int (*fn)(struct pages *p, char *at, size_t len))
{
	struct reader r = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
	struct area a;
	int rc = 0;

	if (r.fd < 0)
		return -errno;
	while (rc == 0 && next_area(&r, &a)) {
		if (a.inode != p->inode || a.perms[3] != 's')
			continue;
		if (a.begin < p->at)
			a.begin = p->at;
		if (a.end > p->at + p->len)
			a.end = p->at + p->len;
		if (a.begin < a.end)
			rc = fn(p, a.begin, (size_t)(a.end - a.begin));
	}
	close(r.fd);
	return rc ? rc : r.error;
}

/* ---- adopt and release ---- */

/* Moves @from, a whole mapping, to @at in place of what is there, in one step for all readers. */
static int move(char *from, char *at, size_t len)
{
	return mremap(from, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED ? -errno : 0;
}

static int freeze_area(void *arg, const struct area *a, char *from, size_t part)
{
	(void)a;
	return sio_freeze_stores(arg, from, part);
}

/*
 * Copies whole pages, which may contain other objects of the program. The gaps between objects are
 * copied too, which an address sanitizer would take for invalid accesses.
 */
__attribute__((no_sanitize("address", "thread"))) static void copy_pages(char *to, const char *from,
									 size_t len)
{
	const volatile uint64_t *src = (const void *)from;
	uint64_t *dst = (void *)to;

	for (size_t i = 0; i < len / sizeof(*dst); i++)
		dst[i] = src[i];
}

/* Replaces the pages at @at by a mapping of @fd; stores of other threads wait meanwhile. */
static int make_shared(char *at, size_t len, int fd)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct sio_freeze f;
	int rc;

	if (p == MAP_FAILED)
		return -errno;
	rc = sio_freeze_begin(&f, at, len, sio_live_threads());
	if (rc == 0) {
		rc = each_area(at, len, freeze_area, &f);
		if (rc == 0) {
			copy_pages(p, at, len);
			rc = move(p, at, len);
		}
		sio_freeze_end(&f);
	}
	if (rc < 0)
		munmap(p, len);
	return rc;
}

/*
 * The reverse. A mapping of the file may be of a kind that cannot be write-protected. But the
 * file's pages can be mapped a second time, so all accesses wait, at empty pages that take the
 * mapping's place meanwhile.
 */
static int make_private(struct pages *p, char *at, size_t len)
{
	char *old = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, at - p->at);
	char *fresh = mmap(NULL, len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int rc = old == MAP_FAILED || fresh == MAP_FAILED ? -ENOMEM : 0;
	struct sio_freeze f;

	if (rc == 0)
		rc = sio_freeze_begin(&f, at, len, sio_live_threads());
	if (rc == 0) {
		rc = sio_freeze_all(&f);
		if (rc == 0) {
			copy_pages(fresh, old, len);
			rc = move(fresh, at, len);
			if (rc < 0 && move(old, at, len) == 0)
				old = MAP_FAILED;
		}
		sio_freeze_end(&f);
	}
	if (rc < 0 && fresh != MAP_FAILED)
		munmap(fresh, len);
	if (old != MAP_FAILED)
		munmap(old, len);
	return rc;
}

int sio_pages_adopt(struct sio_world *w, void *at, size_t len, int fd)
{
	struct pages *p = malloc(sizeof(*p));
	struct stat st;
	int rc;

	(void)w;
	if (!p)
		return -ENOMEM;
	pthread_mutex_lock(&mutex);
	rc = fstat(fd, &st) < 0 ? -errno : each_area(at, len, check_area, NULL);
	if (rc == 0)
		rc = make_shared(at, len, fd);
	if (rc == 0) {
		*p = (struct pages){.next = all, .at = at, .len = len, .inode = st.st_ino};
		all = p;
	}
	pthread_mutex_unlock(&mutex);
	if (rc < 0)
		free(p);
	return rc;
}

int sio_pages_release(struct sio_world *w, void *at, size_t len, int fd)
{
	struct pages **link = &all, *p;
	int rc = 0;

	(void)w;
	(void)len;
	pthread_mutex_lock(&mutex);
	while (*link && (*link)->at != at)
		link = &(*link)->next;
	p = *link;
	if (p) {
		p->fd = fd;
		rc = each_part(p, make_private);
	}
	if (p && rc == 0) {
		*link = p->next;
		free(p);
	}
	pthread_mutex_unlock(&mutex);
	return rc;
}

/* ---- fork ---- */

static int copy_part(struct pages *p, char *at, size_t len)
{
	copy_pages(p->copy + (at - p->at), at, len);
	return 0;
}

static int take_copy(struct pages *p, char *at, size_t len)
{
	return move(p->copy + (at - p->at), at, len);
}

void sio_pages_before_fork(void)
{
	pthread_mutex_lock(&mutex);
	for (struct pages *p = all; p; p = p->next) {
		p->copy = mmap(NULL, p->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);
		if (p->copy == MAP_FAILED)
			p->copy = NULL; /* the child shares the pages; nothing better is possible */
		else
			each_part(p, copy_part);
	}
}

void sio_pages_after_fork(bool child)
{
	for (struct pages *p = all; p; p = p->next) {
		if (!p->copy)
			continue;
		if (child)
			each_part(p, take_copy);
		munmap(p->copy, p->len); /* what was moved is not here any more */
		p->copy = NULL;
	}
	if (child)
		all = NULL; /* the parent's list; not freed, because malloc() may be locked here */
	pthread_mutex_unlock(&mutex);
}
