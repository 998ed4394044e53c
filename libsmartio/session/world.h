/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface between the library and its environment (glossary: world).
 * libsmartio/session/world_live.c fills the table with system calls and threads, the simulator with
 * coroutines and virtual time. Nothing else in session/ and sisci/ makes a system call, reads a
 * clock or starts a thread.
 *
 * Calls that fail return -errno. Deadlines are absolute, in nanoseconds of now(); SIO_FOREVER waits
 * without end, 0 does not wait.
 */
#ifndef SESSION_WORLD_H
#define SESSION_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "session/gpu.h"

#define SIO_FOREVER UINT64_MAX
#define SIO_PROT_READ 1
#define SIO_PROT_WRITE 2
/* Ways to wake a sleeping device; bits 1 << SIO_WATCH_* of smartio/uapi.h. */
#define SIO_WAKE_TIMER (1u << 1)
#define SIO_WAKE_FAULT (1u << 2)
#define SIO_WAKE_EVENT (1u << 3)

struct sio_world_lock; /* a mutex with one condition beside it */
struct sio_world_thread;

struct sio_poll {
	int fd;
	bool readable; /* out: something to read, or the other end is gone */
};

/* The limits of this process; 0: unknown. */
struct sio_limits {
	uint64_t descriptors, most_descriptors; /* ulimit -n, -Hn */
	uint64_t mappings;			/* vm.max_map_count */
};

struct sio_world {
	/*
	 * No other process has this image of memory, so static data belongs to this process alone.
	 * A simulator has many processes. False under valgrind, too: then fast paths are not used.
	 */
	bool alone;
	/* How many nanoseconds a thread that waits for another processor polls before it sleeps. */
	uint64_t look_ns;
	/* Connect to this process's smartiod: -ENOENT none set up, -ECONNREFUSED not running. */
	int (*connect)(struct sio_world *w);
	/*
	 * Where no smartiod listens: was there one that may be starting again? NULL: never (the
	 * emulated cluster, where the end of smartiod is its host's).
	 */
	bool (*comes_again)(struct sio_world *w);
	/*
	 * One packet with descriptors. send never blocks on a peer that reads. -ENOMEM, -ENOBUFS,
	 * -ETOOMANYREFS, -EAGAIN: nothing was sent, and the connection is as good as before.
	 */
	ssize_t (*send)(struct sio_world *w, int fd, const void *buf, size_t len, const int *fds,
			unsigned n_fds);
	/* No descriptors, and no wait for room: -EAGAIN. NULL: send never waits. */
	ssize_t (*try_send)(struct sio_world *w, int fd, const void *buf, size_t len);
	/*
	 * Waits until @deadline: -ETIMEDOUT; 0: the other end is gone. Descriptors: CLOEXEC. When
	 * this process has no room for all that arrived, the last entry of @fds is -EMFILE or
	 * -ENOMEM.
	 */
	ssize_t (*recv)(struct sio_world *w, int fd, void *buf, size_t len, int *fds,
			unsigned max_fds, unsigned *ret_fds, uint64_t deadline);
	/*
	 * Return: how many are readable; 0: deadline. A world that cannot wait pauses, and reports
	 * all as readable, so that the caller checks them.
	 */
	int (*poll)(struct sio_world *w, struct sio_poll *p, unsigned n, uint64_t deadline);
	void (*close)(struct sio_world *w, int fd);
	/* A fresh event descriptor (eventfd semantics), its write and its read (-EAGAIN: none). */
	int (*event_new)(struct sio_world *w);
	int (*event_write)(struct sio_world *w, int fd);
	int (*event_read)(struct sio_world *w, int fd, uint64_t *ret_count);
	/*
	 * A gate of @fd, open at first: a descriptor for poll() that is readable while @fd is, and
	 * never, but for the end of the connection, while it is shut. Who waits at a gate sleeps on
	 * while others, who shut it, read @fd. It is closed before @fd. NULL: there are none.
	 */
	int (*gate_new)(struct sio_world *w, int fd);
	void (*gate_set)(struct sio_world *w, int gate, int fd, bool open);

	/* Address space. reserve: inaccessible pages; map and map_ones replace pages in place. */
	int (*reserve)(struct sio_world *w, void *hint, bool fixed, size_t len, void **ret);
	int (*map)(struct sio_world *w, void *at, size_t len, int prot, int fd, uint64_t offset);
	/* Pages that read as all ones; a store goes to a private page. */
	int (*map_ones)(struct sio_world *w, void *at, size_t len);
	/*
	 * Makes the range inaccessible, where pages must be unmapped and cannot read as ones: takes
	 * neither memory nor a descriptor. NULL: map_ones never fails.
	 */
	int (*map_none)(struct sio_world *w, void *at, size_t len);
	/*
	 * The same, but what was there, one mapping of a file, is kept elsewhere at *ret; map_back
	 * puts it back in place. If map_back fails the mapping stays at *ret. *ret is NULL where
	 * the kernel makes these pages read as ones by itself while the path is down: they stay.
	 */
	int (*map_aside)(struct sio_world *w, void *at, size_t len, void **ret);
	int (*map_back)(struct sio_world *w, void *aside, void *at, size_t len);
	void (*unmap)(struct sio_world *w, void *at, size_t len);
	/*
	 * Pages of the program become a mapping of @fd, with their contents, and private again
	 * (session/pages.h). -EFAULT, -EOPNOTSUPP, -EPERM, -EBUSY, -ENOMEM, -EMFILE.
	 */
	int (*pages_adopt)(struct sio_world *w, void *at, size_t len, int fd);
	int (*pages_release)(struct sio_world *w, void *at, size_t len, int fd);

	const struct sio_gpu_ops *gpu; /* NULL: there are no cards */

	/* The set of SIO_WAKE_* that the user allows; 0: the user's value is invalid. */
	unsigned (*wake_ways)(struct sio_world *w);
	/*
	 * A userfaultfd in which the shared pages at @at are registered for write protection.
	 * -EOPNOTSUPP: this system or its administrator does not allow it.
	 */
	int (*fault_new)(struct sio_world *w, void *at, size_t len);

	/*
	 * The pages at @at, which are at @offset of what @text names, may only be read, and the
	 * program may not know that: a log line says so before the first store there ends the
	 * program. The second function ends that. NULL: stores there are found in another way.
	 */
	void (*note_store)(struct sio_world *w, const void *at, size_t len, uint64_t offset,
			   const char *text);
	void (*forget_stores)(struct sio_world *w, const void *at, size_t len);

	uint64_t (*now)(struct sio_world *w);
	uint64_t (*random)(struct sio_world *w);
	void (*yield)(struct sio_world *w);
	uint32_t (*pid)(struct sio_world *w);
	/* The limits that error texts name. */
	void (*limits)(struct sio_world *w, struct sio_limits *ret);
	void (*log)(struct sio_world *w, const char *text);

	int (*thread_start)(struct sio_world *w, void (*fn)(void *), void *arg,
			    struct sio_world_thread **ret);
	void (*thread_join)(struct sio_world *w, struct sio_world_thread *t);
	bool (*thread_is_self)(struct sio_world *w, struct sio_world_thread *t);

	int (*lock_new)(struct sio_world *w, struct sio_world_lock **ret);
	void (*lock_free)(struct sio_world *w, struct sio_world_lock *l);
	void (*lock)(struct sio_world *w, struct sio_world_lock *l);
	void (*unlock)(struct sio_world *w, struct sio_world_lock *l);
	/*
	 * With the lock held: releases it, waits for wake_all or @deadline (-ETIMEDOUT), takes it
	 * again.
	 */
	int (*wait)(struct sio_world *w, struct sio_world_lock *l, uint64_t deadline);
	void (*wake_all)(struct sio_world *w, struct sio_world_lock *l);
};

/*
 * The world of the calling process, and one pointer of the library's in it (its global state).
 * Live: one of each, static. Simulator: those of the running coroutine's process.
 */
struct sio_world *sio_world_current(void);
void **sio_world_library(struct sio_world *w);

#endif
