/* SPDX-License-Identifier: BSD-2-Clause */
/* What fails on demand, once its words have been read. Return: 0; -errno: nothing has changed. */
#ifndef EMU_LIVE_FAULT_H
#define EMU_LIVE_FAULT_H

#include <stdint.h>

#include "core/err.h"
#include "core/topology.h"

struct live;
struct emu_dev_fault;

/* Of a machine; NULL: none has that id. */
const struct sio_topo_host *live_machine(const struct sio_topology *t, unsigned node);
int live_fault_link(struct live *l, unsigned node, unsigned adapter, const char *state,
		    struct sio_err *err);
int live_fault_errors(struct live *l, unsigned node, unsigned adapter, unsigned n,
		      struct sio_err *err);
int live_fault_delay(struct live *l, unsigned node, unsigned adapter, uint64_t ns,
		     struct sio_err *err);
int live_fault_host(struct live *l, unsigned node, const char *what, struct sio_err *err);
/* @what: "switch", or "trunk". */
int live_fault_between(struct live *l, const char *what, unsigned index, const char *state,
		       struct sio_err *err);
int live_fault_slot(struct live *l, uint32_t id, const char *state, struct sio_err *err);
int live_fault_functions(struct live *l, uint32_t id, unsigned n, struct sio_err *err);
int live_fault_device(struct live *l, uint32_t id, const struct emu_dev_fault *f,
		      struct sio_err *err);

#endif
