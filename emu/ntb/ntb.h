/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Virtual NTBs: the adapters of machines as PCI functions, and what leads from one to the other
 * (docs/virtual-ntb.md; registers: include/smartio/vntb.h). A step machine: messages of vfio-user
 * sessions come in, accesses of the peers' memory and messages to their sessions go out; nothing
 * waits for anybody.
 */
#ifndef EMU_NTB_NTB_H
#define EMU_NTB_NTB_H

#include "core/topology.h"
#include "emu/vfio/session.h"

/*
 * How long a read waits for a peer's bus. Drivers take what comes then, ones, for a device that is
 * gone; so it is long enough for machines with emulated processors on a busy host.
 */
#define EMU_NTB_PATIENCE_NS 2000000000ull
/* Accesses of one adapter that another one's machine has not done yet. */
#define EMU_NTB_UNDER_WAY 32u

struct emu_ntb;
struct emu_ntb_adapter;

struct emu_ntb_ops {
	uint64_t (*now)(void *ctx); /* nanoseconds, monotonic */
	/* Call emu_ntb_expire() at @when, or later. One of them is enough. */
	void (*alarm)(void *ctx, uint64_t when);
	void (*log)(void *ctx, const char *text);
};

/* The file with the RAM of all machines that are mapped, and where we have it. */
struct emu_ntb_pool {
	int fd;
	uint8_t *data;
	uint64_t size;
};

/* Bytes that the file has; 0: no machine is mapped. */
uint64_t emu_ntb_pool_size(const struct sio_topology *topo);
/* Where in it the RAM of a mapped machine begins. */
uint64_t emu_ntb_pool_offset(const struct sio_topology *topo, unsigned machine);

/*
 * All adapters of all machines. @topo, @ops and @ctx outlive it; the pool's file and memory, too.
 * Return: 0; -EINVAL: too many peers for the registers; -ENOMEM.
 */
int emu_ntb_new(const struct sio_topology *topo, const struct emu_ntb_pool *pool,
		const struct emu_ntb_ops *ops, void *ctx, struct emu_ntb **ret,
		struct sio_err *reterr);
/* No adapter has a session any more. NULL is fine. */
void emu_ntb_free(struct emu_ntb *n);

unsigned emu_ntb_count(const struct emu_ntb *n);
struct emu_ntb_adapter *emu_ntb_at(struct emu_ntb *n, unsigned index);
/* "vm.0": the host's name, and which of its adapters. */
const char *emu_ntb_name(const struct emu_ntb_adapter *a);

/* What a session gets: @function is the struct emu_ntb_adapter. */
extern const struct emu_vfio_function_ops emu_ntb_function;
/*
 * Its machine is switched on, or with NULL off: then the session is freed next, which ends what
 * waits for it.
 */
void emu_ntb_attach(struct emu_ntb_adapter *a, struct emu_vfio_session *s);
/* Pull an adapter's cable, or put it back. Return: 0; -ENXIO: no such adapter of a machine. */
int emu_ntb_link(struct emu_ntb *n, uint32_t node, unsigned adapter, bool up);
/*
 * Take a cluster switch's power away, or a link between two switches out, or give it back (@in);
 * numbers of the topology, which has to have them.
 */
void emu_ntb_switch(struct emu_ntb *n, unsigned index, bool in);
void emu_ntb_trunk(struct emu_ntb *n, unsigned index, bool in);
/* Reads that have waited for too long are answered. */
void emu_ntb_expire(struct emu_ntb *n);

#endif
