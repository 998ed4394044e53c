/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recovery after a restart of smartiod: restore.c follows what programs and daemon send each other,
 * restore_claim.c knows each claim as it is true, and judges those that the daemon accepts.
 */
#ifndef SIM_RESTORE_H
#define SIM_RESTORE_H

#include "base/sim.h"
#include "wire/client.h"

static inline uint32_t restore_type(const struct sio_msg_restore *m)
{
	return sio_from_le32(m->type);
}

/* A program is about to claim @m, and that is true; or would have, and sends something forged. */
void restore_note_claim(uint64_t pid, const struct sio_msg_restore *m);
/* The daemon accepted @m, sent by the connection @client: it fails the run if it must not have. */
void restore_check_accepted(const struct sim_proc *p, uint64_t client,
			    const struct sio_msg_restore *m);

#endif
