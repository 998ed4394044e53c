/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about the whole machine room, and the tables of all kinds. */
#ifndef EMU_MACHINE_REQUESTS_H
#define EMU_MACHINE_REQUESTS_H

#include "emu/device/device.h"

/* requests.c, kinds.c, models.c */
extern const struct emu_operation emu_operations[SIO_OP_COUNT];
extern const struct emu_kind *const emu_kinds[EMU_LAST_KIND + 1];
extern const struct emu_dev_model *const emu_models[]; /* ends with NULL */

#endif
