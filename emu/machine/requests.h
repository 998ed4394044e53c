/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about the whole machine room, and the tables of all kinds. */
#ifndef EMU_MACHINE_REQUESTS_H
#define EMU_MACHINE_REQUESTS_H

#include "emu/device/device.h"

struct emu_change;

/* requests.c, kinds.c, models.c */
extern const struct emu_operation emu_operations[SIO_OP_COUNT];
extern const struct emu_kind *const emu_kinds[EMU_LAST_KIND + 1];
extern const struct emu_dev_model *const emu_models[]; /* ends with NULL */

/* reload.c: emu_room_commit() while engines stand still. */
int emu_change_apply(struct emu_room *r, struct sio_topology *own, struct sio_topology *next,
		     struct emu_change *c, struct sio_err *reterr);
/* Frees what is left of removed devices that nothing refers to any more. */
void emu_removed_bury(struct emu_room *r);

#endif
