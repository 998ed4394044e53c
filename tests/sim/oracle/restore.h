/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recovery after a restart of smartiod: restore.c follows the messages of programs and daemon,
 * restore_claim.c knows the true form of each claim, and checks those that the daemon accepts.
 */
#ifndef SIM_RESTORE_H
#define SIM_RESTORE_H

#include "base/sim.h"
#include "wire/client.h"

static inline uint32_t restore_type(const struct sio_msg_restore *m)
{
	return sio_from_le32(m->type);
}

/* A program is about to claim @m, which is true; or would have, and sends a forged one instead. */
void restore_note_claim(uint64_t pid, const struct sio_msg_restore *m);
/* The daemon accepted @m, sent by the connection @client: fails the run if it had to refuse. */
void restore_check_accepted(const struct sim_proc *p, uint64_t client,
			    const struct sio_msg_restore *m);

#endif
