/* SPDX-License-Identifier: BSD-2-Clause */
/* What session.c and loop.c share. */
#ifndef SESSION_INTERNAL_H
#define SESSION_INTERNAL_H

#include "session/session.h"

struct sio_session_watch {
	int fd;
	uintptr_t cookie;
};

struct sio_session {
	struct sio_world *world;
	const struct sio_session_ops *ops;
	void *ctx;
	struct sio_world_lock *lock;

	int fd;		 /* -1: not open */
	int wake_fd;	 /* the event thread's */
	int poke_fd;	 /* the poller's: somebody else took what it waits for */
	int dead_fd;	 /* readable once the session is dead */
	bool dead;	 /* no more packets, no more calls */
	bool closing;	 /* the event thread is to end */
	bool close_late; /* and to close the descriptors, as it closed the session itself */
	bool poller;	 /* a thread waits at the socket for all that wait in the condition */
	unsigned users;	 /* threads that use the descriptors */
	uint32_t next_id;
	struct sio_call *calls; /* waiting for replies */
	struct sio_world_thread *thread;

	struct sio_session_watch *watches;
	unsigned n_watches;
	unsigned max_watches;
	/* The event thread's, with room for max_watches and two more. */
	struct sio_poll *polls;
	uintptr_t *cookies;
	/* To change to; NULL: those are big enough. */
	struct sio_poll *bigger_polls;
	uintptr_t *bigger_cookies;

	_Alignas(8) uint8_t packet[SIO_WIRE_MAX];
};

/* Under the lock: take what is there. */
void sio_session_receive(struct sio_session *s);
/* Under the lock: no further packet will come. */
void sio_session_die(struct sio_session *s);
/* Thread body. */
void sio_session_loop(void *arg);

#endif
