/* SPDX-License-Identifier: BSD-2-Clause */
/* A session, inside: for the files of this folder that make one up. */
#ifndef EMU_VFIO_INSIDE_H
#define EMU_VFIO_INSIDE_H

#include "emu/vfio/session.h"

enum emu_vfio_state {
	EMU_VFIO_HELLO, /* its version is awaited */
	EMU_VFIO_READY,
	EMU_VFIO_STATES
};

struct emu_vfio_vector {
	int fd; /* -1: none */
	bool masked, pending;
};

/* A DMA message that the peer has not answered yet. */
struct emu_vfio_ask {
	bool used;
	uint16_t id;
	uint16_t command;
	uint64_t address;
	size_t len;
	emu_vfio_done *done;
	void *arg;
};

/* An access of the peer's that the function answers later. */
struct emu_vfio_late {
	bool used;
	struct emu_vfio_header head;
	struct emu_vfio_access access;
};

struct emu_vfio_session {
	enum emu_vfio_state state;
	const struct emu_vfio_function_ops *function_ops;
	void *function;
	const struct emu_vfio_session_ops *ops;
	void *ctx;
	struct emu_vfio_limits limits;
	struct emu_vfio_memory memory;
	uint32_t n_vectors;
	struct emu_vfio_vector vector[EMU_VFIO_VECTORS];
	struct emu_vfio_ask ask[EMU_VFIO_ASKED];
	unsigned next_ask, n_asked;
	uint16_t round; /* of ids: the low bits of one are its ask's place */
	struct emu_vfio_late late[EMU_VFIO_LATE];
	const struct emu_vfio_message *serving; /* an access: its read or write is being called */
	uint64_t n_refused;
	uint8_t out[EMU_VFIO_MAX_MESSAGE] __attribute__((aligned(8)));
};

/* irq.c: what is taken of @fds is -1 there. */
int emu_vfio_irqs_set(struct emu_vfio_session *s, const struct emu_vfio_message *m, int *fds,
		      unsigned n_fds, struct sio_err *reterr);
void emu_vfio_irqs_end(struct emu_vfio_session *s);

/* ask.c: -EPROTO: to nothing that was asked. */
int emu_vfio_dma_reply(struct emu_vfio_session *s, const struct emu_vfio_message *m,
		       struct sio_err *reterr);
void emu_vfio_dma_end(struct emu_vfio_session *s);

#endif
