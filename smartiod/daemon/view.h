/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries that change nothing, about any host: a program asks its own daemon, and that the host's,
 * which may be itself. So each command shows the whole cluster, from whichever host it is typed on.
 */
#ifndef SMARTIOD_VIEW_H
#define SMARTIOD_VIEW_H

#include "smartiod/base/op.h"
#include "smartiod/base/peer.h"

/*
 * Answers @s's request @msg with what the daemon of @node (0: this one) answers to @ask, a whole
 * message of a peer.
 */
int smartiod_view(struct smartiod *d, struct smartiod_session *s, const void *msg, uint64_t node,
		  void *ask, size_t len, struct sio_err *reterr);
/*
 * Asks the port for what @from wants to know: @step gets the answer, and ends by one of the two
 * below.
 */
int smartiod_view_port(struct smartiod *d, const struct smartiod_from *from, const void *msg,
		       void *req, size_t len, smartiod_step *step, struct sio_err *reterr);
/* Answer whoever asked, and free @op. */
void smartiod_view_reply(struct smartiod *d, struct smartiod_op *op, void *rep, size_t len);
void smartiod_view_error(struct smartiod *d, struct smartiod_op *op, int error, const char *text);

#endif
