/* SPDX-License-Identifier: BSD-2-Clause */
/* A conversation with one host's smartiod: a request, its reply, and no event in between. */
#ifndef TOOLS_CLIENT_H
#define TOOLS_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "wire/client.h"

#define TOOL_LIST_MOST (1u << 18) /* rows that another machine is believed */
#define TOOL_REPLY_S 10 /* a daemon that is silent for so long is given up; SMARTIO_TIMEOUT */

struct tool_client {
	int fd;
	uint32_t next_id, node, n_adapters, world; /* world: SIO_WORLD_* */
	/* The host that lists and counters are of, another machine's; 0: the daemon's own. */
	uint32_t of;
	char host[32], cluster[32];
	/* The start of the host, or of its daemon: counters begin again with it. */
	uint8_t boot_id[16];
	uint64_t boot_generation;
};

/*
 * Connects to @node of the cluster in @dir as @kind (SIO_CLIENT_TOOL, SIO_CLIENT_KEEPER); 0: to the
 * daemon of this machine, whichever node it is.
 */
int tool_client_open(struct tool_client *c, const char *dir, uint32_t node, uint32_t kind,
		     struct sio_err *reterr);
/* Closes the connection; a closed client stays closed, fd -1 is fine. */
void tool_client_close(struct tool_client *c);
/*
 * Sends @req (its header is filled here) and waits for the reply, which has @rep_size bytes.
 * Return: 0; the daemon's refusal (-errno, with its text); -ETIMEDOUT; -ENOTCONN: it is gone.
 */
int tool_client_call(struct tool_client *c, uint32_t type, void *req, size_t req_size, void *rep,
		     size_t rep_size, struct sio_err *reterr);
/*
 * The same in two halves, so that several daemons are asked at once: the answer is the next thing
 * that @c is used for, and one @deadline may hold for all.
 */
int64_t tool_client_deadline(void);
int tool_client_ask(struct tool_client *c, uint32_t type, void *req, size_t req_size,
		    struct sio_err *reterr);
int tool_client_answer(struct tool_client *c, uint32_t type, void *rep, size_t rep_size,
		       int64_t deadline, struct sio_err *reterr);
/*
 * Lists all rows of a kind (SIO_LIST_*), ascending by key; free(*ret). -EPROTO: also, that another
 * machine's daemon has sent more than TOOL_LIST_MOST rows.
 */
int tool_client_list(struct tool_client *c, uint32_t kind, struct sio_wire_row **ret, size_t *ret_n,
		     struct sio_err *reterr);

#endif
