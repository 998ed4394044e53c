/* SPDX-License-Identifier: BSD-2-Clause */
/* A session: internal to this folder. */
#ifndef VFIO_INSIDE_H
#define VFIO_INSIDE_H

#include "vfio/session.h"

enum sio_vfio_state {
	SIO_VFIO_HELLO, /* its version is waited for */
	SIO_VFIO_READY,
	SIO_VFIO_STATES
};

struct sio_vfio_vector {
	int fd; /* -1: none */
	bool masked, pending;
};

/* A DMA message that the peer has not answered yet. */
struct sio_vfio_ask {
	bool used;
	uint16_t id;
	uint16_t command;
	uint64_t address;
	size_t len;
	sio_vfio_done *done;
	void *arg;
};

/* An access by the peer that the function answers later. */
struct sio_vfio_late {
	bool used;
	struct sio_vfio_header head;
	struct sio_vfio_access access;
};

struct sio_vfio_session {
	enum sio_vfio_state state;
	const struct sio_vfio_function_ops *function_ops;
	void *function;
	const struct sio_vfio_session_ops *ops;
	void *ctx;
	struct sio_vfio_limits limits;
	struct sio_vfio_memory memory;
	uint32_t n_vectors;
	struct sio_vfio_vector vector[SIO_VFIO_VECTORS];
	struct sio_vfio_vector request;
	struct sio_vfio_ask ask[SIO_VFIO_ASKED];
	unsigned next_ask, n_asked;
	uint16_t round; /* of ids: the low bits of one are its ask's place */
	struct sio_vfio_late late[SIO_VFIO_LATE];
	const struct sio_vfio_message *serving; /* an access: its read or write is being called */
	uint64_t n_refused;
	uint8_t out[SIO_VFIO_MAX_MESSAGE] __attribute__((aligned(8)));
};

/* irq.c: descriptors that it takes from @fds are -1 there afterwards. */
int sio_vfio_irqs_set(struct sio_vfio_session *s, const struct sio_vfio_message *m, int *fds,
		      unsigned n_fds, struct sio_err *reterr);
void sio_vfio_irqs_end(struct sio_vfio_session *s);

/* ask.c: -EPROTO: the reply belongs to no message of ours. */
int sio_vfio_dma_reply(struct sio_vfio_session *s, const struct sio_vfio_message *m,
		       struct sio_err *reterr);
void sio_vfio_dma_end(struct sio_vfio_session *s);

#endif
