/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What wakes a sleeping room: userfaultfds of programs, and event descriptors. Neither is ever
 * read, and all are waited for edge-triggered, because whoever has a copy can change its flags, so
 * that a read would block, or leave something in it that never goes away. A fault is answered by
 * removing the write protection, which lets the waiting stores go on and clears the fault. The
 * descriptors come from programs, so each answer of the kernel is checked; a descriptor that does
 * not work is given back, which frees whoever waits in it, and the room polls instead.
 */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "emu/live/live.h"

/*
 * The kernel's own name for what is behind a descriptor; no file, of whatever file system, can have
 * it. Other calls might wait for the file system's server.
 */
static bool is_userfaultfd(int fd)
{
	char path[32], name[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < 0)
		return false;
	name[n] = '\0';
	return strcmp(name, "anon_inode:[userfaultfd]") == 0;
}

/* 0; -ESRCH: the program is gone; -ENOENT: these pages are not registered (any more). */
static int protect(const struct live_watch *w, bool on)
{
	struct uffdio_writeprotect wp = {.range = {.start = w->address, .len = w->length},
					 .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0};

	return ioctl(w->source.fd, UFFDIO_WRITEPROTECT, &wp) < 0 ? -errno : 0;
}

int live_watch_new(void *ctx, unsigned host, uint64_t watch, uint32_t kind, int fd,
		   uint64_t address, uint64_t length)
{
	struct live *l = ctx;
	struct live_watch *w;
	int rc = 0;

	if (kind == SIO_WATCH_FAULT && !is_userfaultfd(fd))
		return -EBADF;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->source = (struct live_source){.kind = LIVE_WATCH, .host = host, .fd = fd};
	w->key = (struct live_key){.id = watch, .host = host};
	w->kind = kind;
	w->address = address;
	w->length = length;
	if (kind == SIO_WATCH_FAULT)
		rc = protect(w, false);
	if (rc == 0)
		rc = live_watch(l, &w->source, EPOLLIN | EPOLLET);
	if (rc < 0)
		goto free_watch;
	HASH_ADD(hh, l->watches, key, sizeof(w->key), w);
	if (!w->hh.tbl) {
		rc = -ENOMEM;
		goto unwatch;
	}
	l->n_watches++;
	return 0;

unwatch:
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd, NULL);
free_watch:
	free(w);
	return rc;
}

static void forget(struct live *l, struct live_watch *w)
{
	HASH_DEL(l->watches, w);
	l->n_watches--;
	l->n_armed -= w->armed;
	/* The program may hold a copy: closing ours would leave it in the set. */
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->source.fd, NULL);
	close(w->source.fd);
	w->source.fd = -1;
	w->next_dead = l->dead_watches;
	l->dead_watches = w;
}

void live_watch_free(void *ctx, unsigned host, uint64_t watch)
{
	struct live_key key = {.id = watch, .host = host};
	struct live *l = ctx;
	struct live_watch *w;

	HASH_FIND(hh, l->watches, &key, sizeof(key), w);
	if (!w)
		return;
	/* Whoever waits in a fault goes on, also if somebody else holds the descriptor, too. */
	if (w->armed)
		protect(w, false);
	forget(l, w);
}

void live_watches_bury(struct live *l)
{
	while (l->dead_watches) {
		struct live_watch *w = l->dead_watches;

		l->dead_watches = w->next_dead;
		free(w);
	}
}

void live_watches_close(struct live *l)
{
	struct live_watch *w, *tmp;

	HASH_ITER (hh, l->watches, w, tmp)
		forget(l, w);
	live_watches_bury(l);
}

static void broken(struct live *l, struct live_watch *w, int error)
{
	/* ESRCH and ENOENT: the program, or its mapping, is just going. */
	if (error != -ESRCH && error != -ENOENT)
		live_log("watch %#llx of %s: %s: the machine room polls instead",
			 (unsigned long long)w->key.id, l->topo->host[w->source.host].name,
			 strerror(-error));
	emu_room_watch_broken(l->room, w->source.host, w->key.id);
	forget(l, w);
}

static void disarm(struct live *l, struct live_watch *w)
{
	int rc = protect(w, false);

	w->armed = false;
	l->n_armed--;
	if (rc < 0)
		broken(l, w, rc);
}

/* Whoever waits in a fault stores again, and faults again where the protection is still there. */
static void retry(const struct live_watch *w)
{
	struct uffdio_range range = {.start = w->address, .len = w->length};

	ioctl(w->source.fd, UFFDIO_WAKE, &range);
}

void live_watches_retry(struct live *l)
{
	struct live_watch *w, *tmp;

	HASH_ITER (hh, l->watches, w, tmp)
		if (w->kind == SIO_WATCH_FAULT)
			retry(w);
}

void live_watch_event(struct live *l, const struct live_source *s, uint32_t events)
{
	struct live_watch *w = (struct live_watch *)(uintptr_t)s;

	if (events & (EPOLLERR | EPOLLHUP)) {
		broken(l, w, -EBADF);
		return;
	}
	/*
	 * A fault without protection is in another page of the program, or of a store that came
	 * when the protection was just going: the kernel may let that one wait all the same.
	 */
	if (w->kind == SIO_WATCH_FAULT && !w->armed) {
		retry(w);
		return;
	}
	l->woken = true;
	emu_room_watch_fired(l->room, s->host, w->key.id);
	if (w->kind == SIO_WATCH_FAULT)
		disarm(l, w); /* it may be gone now */
}

void live_watches_arm(struct live *l)
{
	struct live_watch *w, *tmp;

	HASH_ITER (hh, l->watches, w, tmp) {
		int rc;

		if (w->kind != SIO_WATCH_FAULT || w->armed)
			continue;
		rc = protect(w, true);
		if (rc < 0) {
			broken(l, w, rc);
			continue;
		}
		w->armed = true;
		l->n_armed++;
	}
}

void live_watches_calm(struct live *l)
{
	struct live_watch *w, *tmp;

	HASH_ITER (hh, l->watches, w, tmp)
		if (w->armed) {
			disarm(l, w);
			return;
		}
}
