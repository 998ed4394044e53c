/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of a host's daemon: their form, how they are checked, and their handlers. */
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
	struct emu_owner *owner; /* of h->owner; it will own what is made */
	int fd;			 /* that came along, -1: none; who keeps it sets -1 */
	struct sio_err err;
};

/* Return: 0: the handler has answered; -errno, with the reason in rq->err: nothing has changed. */
typedef int emu_handler(struct emu_request *rq, const void *msg);

/* What an operation requires of its h.owner. */
enum emu_owner_rule {
	EMU_OWNER_ASKS,	   /* the daemon (0), or who asks, ended or not */
	EMU_OWNER_HOLDS,   /* the daemon (0) or a live owner: it will own the resource */
	EMU_OWNER_SUBJECT, /* the operation is about it: the handler looks */
};

/* Which worlds support an operation: see emu_outlives(). */
enum emu_world_rule {
	EMU_EVERYWHERE,
	EMU_WITH_ADAPTERS, /* smartio.ko, whose daemons are started again, has no adapters */
	EMU_WITH_RESTART,  /* it is for daemons that are started again */
};

/* The handler of a kind of request. The table of all: machine/requests.c. */
struct emu_operation {
	emu_handler *handler; /* NULL: nobody */
	enum emu_owner_rule owner;
	enum emu_world_rule world;
};

/* Serves one request. @fds were received with it: they are taken or closed. */
void emu_request_serve(struct emu_host *h, const void *req, size_t len, int *fds, unsigned n_fds);
/* Answers with success; @evt starts with struct sio_evt. @fds stay the caller's. */
void emu_answer(struct emu_request *rq, void *evt, size_t size, const int *fds, unsigned n_fds);
void emu_answer_ok(struct emu_request *rq);
/* Answers @req with @error, the exhausted resource, and the text. */
void emu_refuse(struct emu_host *h, const struct sio_req *req, int error, uint32_t reason,
		const char *text);
/* Bit n: operation n is supported. */
uint64_t emu_served(const struct emu_room *r);

/* The handlers, each in the room of its objects; machine/requests.c lists them. */
#define EMU_HANDLER(NAME, name, ...) emu_handler emu_op_##name;
SIO_PORT_REQUESTS(EMU_HANDLER)

#endif
