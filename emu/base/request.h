/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of a host's daemon: what each looks like, how it is checked, who serves it. */
#ifndef EMU_BASE_REQUEST_H
#define EMU_BASE_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "emu/base/object.h"
#include "smartio/uapi.h"

/* One request on its way through its handler. */
struct emu_request {
	struct emu_host *host;
	const struct sio_req *h;
	struct emu_owner *owner; /* of h->owner; what is made hangs on it */
	int fd;			 /* that came along, -1: none; who keeps it sets -1 */
	struct sio_err err;
};

/* 0: it has answered; -errno, and rq->err may say why: nothing has changed. */
typedef int emu_handler(struct emu_request *rq, const void *msg);

/* What an operation wants its h.owner to be. */
enum emu_owner_rule {
	EMU_OWNER_ASKS,	   /* the daemon (0), or who asks, ended or not */
	EMU_OWNER_HOLDS,   /* the daemon (0) or a live owner: the new resource hangs on it */
	EMU_OWNER_SUBJECT, /* the operation is about it: the handler looks */
};

/* Which worlds have it: see emu_outlives(). */
enum emu_world_rule {
	EMU_EVERYWHERE,
	EMU_WITH_ADAPTERS, /* smartio.ko, whose daemons are started again, has no adapters */
	EMU_WITH_RESTART,  /* it is for daemons that are started again */
};

/* Who serves a kind of request. The table of all: machine/requests.c. */
struct emu_operation {
	emu_handler *handler; /* NULL: nobody */
	enum emu_owner_rule owner;
	enum emu_world_rule world;
};

/* @fds were received with it: they are taken or closed. */
void emu_request_serve(struct emu_host *h, const void *req, size_t len, int *fds, unsigned n_fds);
/* Answer with success; @evt starts with struct sio_evt. @fds stay the caller's. */
void emu_answer(struct emu_request *rq, void *evt, size_t size, const int *fds, unsigned n_fds);
void emu_answer_ok(struct emu_request *rq);
/* Answer @req with @error, what ran out, and why. */
void emu_refuse(struct emu_host *h, const struct sio_req *req, int error, uint32_t reason,
		const char *text);
/* Bit n: operation n is served. */
uint64_t emu_served(const struct emu_room *r);

emu_handler emu_op_list, emu_op_owner_new, emu_op_owner_close, emu_op_status;

#endif
