/* SPDX-License-Identifier: BSD-2-Clause */
/* Another layout of a host's addresses, as firmware may choose at the next start. Pure logic. */
#ifndef EMU_MACHINE_LAYOUT_H
#define EMU_MACHINE_LAYOUT_H

#include "core/err.h"
#include "core/topology.h"

/*
 * Moves RAM, windows, BARs and what chassis pass on, all by the same distance, so that none of them
 * lies where it, or another one, lay before. It stays within the addresses that every device of the
 * host can send. -ENOSPC: these leave no room; nothing has changed.
 */
int emu_layout_move(struct sio_topo_host *h, struct sio_err *reterr);

#endif
