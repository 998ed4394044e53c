/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of a live process's world: world_live.c, live_fds.c, live_memory.c. */
#ifndef SESSION_LIVE_H
#define SESSION_LIVE_H

#include "session/world.h"

#define SIO_NS_PER_S 1000000000ull

uint64_t sio_live_now(struct sio_world *w);

/* ---- live_fds.c ---- */

/* To be held while descriptors are made, and around fork(). */
void sio_live_fds_lock(void);
void sio_live_fds_unlock(void);
/*
 * Records @fd as the library's; with the lock, which is taken before the descriptor is made: a fork
 * between the two would leave the child a copy that nobody closes. Return: @fd (for -1 it is
 * -errno), or -ENOMEM with it closed.
 */
int sio_live_own(int fd);
/* With the lock: closes one descriptor, or, in a child, all. */
void sio_live_disown(int fd);
void sio_live_fds_close_all(void);

int sio_live_connect(struct sio_world *w);
bool sio_live_comes_again(struct sio_world *w);
ssize_t sio_live_send(struct sio_world *w, int fd, const void *buf, size_t len, const int *fds,
		      unsigned n_fds);
ssize_t sio_live_try_send(struct sio_world *w, int fd, const void *buf, size_t len);
ssize_t sio_live_recv(struct sio_world *w, int fd, void *buf, size_t len, int *fds,
		      unsigned max_fds, unsigned *ret_fds, uint64_t deadline);
int sio_live_poll(struct sio_world *w, struct sio_poll *p, unsigned n, uint64_t deadline);
void sio_live_close(struct sio_world *w, int fd);
int sio_live_event_new(struct sio_world *w);
int sio_live_event_write(struct sio_world *w, int fd);
int sio_live_event_read(struct sio_world *w, int fd, uint64_t *ret_count);
int sio_live_gate_new(struct sio_world *w, int fd);
void sio_live_gate_set(struct sio_world *w, int gate, int fd, bool open);

/* ---- live_memory.c ---- */

/* In a child: forgets the parent's file of ones, which is closed. */
void sio_live_ones_forget(void);
int sio_live_reserve(struct sio_world *w, void *hint, bool fixed, size_t len, void **ret);
int sio_live_map(struct sio_world *w, void *at, size_t len, int prot, int fd, uint64_t offset);
int sio_live_map_ones(struct sio_world *w, void *at, size_t len);
int sio_live_map_none(struct sio_world *w, void *at, size_t len);
int sio_live_map_aside(struct sio_world *w, void *at, size_t len, void **ret);
int sio_live_map_back(struct sio_world *w, void *aside, void *at, size_t len);
void sio_live_unmap(struct sio_world *w, void *at, size_t len);
unsigned sio_live_wake_ways(struct sio_world *w);
int sio_live_fault_new(struct sio_world *w, void *at, size_t len);

/* ---- live_store.c ---- */

void sio_live_note_store(struct sio_world *w, const void *at, size_t len, uint64_t offset,
			 const char *text);
void sio_live_forget_stores(struct sio_world *w, const void *at, size_t len);
void sio_live_stores_after_fork(void);

/* ---- live_cuda.c ---- */

extern const struct sio_gpu_ops sio_live_cuda;

/* ---- world_live.c ---- */

/* How many threads of the library run, apart from the caller. */
unsigned sio_live_threads(void);

#endif
