/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Virtual NTBs: the adapters of machines as PCI functions, and the paths between them
 * (docs/virtual-ntb.md; registers: include/smartio/vntb.h). A step machine: messages of vfio-user
 * sessions come in, accesses of the peers' memory and messages to their sessions go out; nothing
 * blocks.
 */
#ifndef EMU_NTB_NTB_H
#define EMU_NTB_NTB_H

#include "core/pcie.h"
#include "core/topology.h"
#include "vfio/session.h"

/*
 * How long a read waits for a peer's bus. A driver takes the ones that it gets then for a device
 * that is gone; so the time is long enough for machines with emulated processors on a busy host.
 */
#define EMU_NTB_PATIENCE_NS 2000000000ull
/*
 * The most accesses of one adapter that another one's machine has not done yet. Drivers store a few
 * hundred registers in a row, and no store may be lost; a reader waits, so reads are few.
 */
#define EMU_NTB_READS 32u
#define EMU_NTB_WRITES 1024u

/*
 * The shortest time between two notifications of emulated hosts that an adapter is in another
 * start. Each notification stops all hosts for a moment, and their daemons get an event; a guest
 * may reset its adapter as often as it likes.
 */
#define EMU_NTB_STARTS_NS 100000000ull

struct emu_ntb;
struct emu_ntb_adapter;

/* An access by a machine to an emulated host, which belongs to the machine room. */
struct emu_ntb_outward {
	uint32_t machine, node; /* node ids: who, and of whom */
	unsigned machine_adapter, adapter;
	uint64_t address; /* on the host's bus */
	size_t len;
	const void *data; /* of a write; NULL: a read */
};

struct emu_ntb_ops {
	/*
	 * Looks up what a machine reaches of an emulated host. Return: 0: *ret is its memory, to be
	 * used now; 1: it was a message, and is delivered; -EACCES: nothing is granted there;
	 * -EPERM: it is granted, but not for this kind of access. NULL: the topology connects no
	 * host to a machine.
	 */
	int (*outward)(void *ctx, const struct emu_ntb_outward *x, uint8_t **ret);
	/*
	 * An adapter of a machine is on, in that start of it; 0: it is off, which is reported
	 * between two starts, too. NULL: not needed.
	 */
	void (*power)(void *ctx, uint32_t node, unsigned adapter, uint64_t start);
	uint64_t (*now)(void *ctx); /* nanoseconds, monotonic */
	/* Call emu_ntb_expire() at @when, or later. The earliest such time is enough. */
	void (*alarm)(void *ctx, uint64_t when);
	void (*log)(void *ctx, const char *text);
};

/*
 * The size in bytes of the file with the RAM of all machines that are mapped, as a BAR can have; 0:
 * no machine is mapped.
 */
uint64_t emu_ntb_pool_size(const struct sio_topology *topo);
/* The offset in it of the RAM of a mapped machine. */
uint64_t emu_ntb_pool_offset(const struct sio_topology *topo, unsigned machine);
/*
 * A machine's QEMU describes a range of its bus as bytes of that file, from what it calls @offset
 * on. Return: 0: *offset is where they are; -ERANGE: nobody can tell.
 */
int emu_ntb_pool_place(const struct sio_topology *topo, uint32_t node, uint64_t address,
		       uint64_t size, uint64_t *offset);

/*
 * Makes all adapters of all machines. @topo, @ops and @ctx outlive it.
 * Return: 0; -EINVAL: too many peers for the registers; -ENOMEM.
 */
int emu_ntb_new(const struct sio_topology *topo, const struct emu_ntb_ops *ops, void *ctx,
		struct emu_ntb **ret, struct sio_err *reterr);
/*
 * The key in the headers of the pools of emulated hosts, by which machines find the functions that
 * show them (SIO_VNTB_POOL_KEY); 0: there are none.
 */
void emu_ntb_pool_key(struct emu_ntb *n, uint64_t key);
/* The size in bytes of the file that is the pool of a host, as a BAR can have; 0: it has none. */
uint64_t emu_ntb_pool_file(const struct sio_topo_host *host);
/* Frees it when no adapter has a session any more. NULL is fine. */
void emu_ntb_free(struct emu_ntb *n);

unsigned emu_ntb_adapters(const struct emu_ntb *n);
struct emu_ntb_adapter *emu_ntb_at(struct emu_ntb *n, unsigned index);
uint32_t emu_ntb_node(const struct emu_ntb_adapter *a); /* of its host */
/* The adapter's name, "vm.0": the host's name, and the number of the adapter. */
const char *emu_ntb_name(const struct emu_ntb_adapter *a);

/* The function for a session: @function is the struct emu_ntb_adapter. */
extern const struct sio_vfio_function_ops emu_ntb_function;
/*
 * The adapter's machine is switched on, or with NULL off: then the session is freed next, which
 * ends what waits for it.
 */
void emu_ntb_attach(struct emu_ntb_adapter *a, struct sio_vfio_session *s);
/*
 * Another function of @machine (a node id) does DMA to an address of the machine's bus: into @buf,
 * or out of @data, if that is not NULL. It must not be translated by an IOMMU on its way.
 * Return: 0: done, posted writes to a peer's device perhaps later; -ENXIO: no window of the machine
 * is there; -EFAULT: refused, as the fault registers say; of a read, nothing waits for a peer's
 * device.
 */
int emu_ntb_reach(struct emu_ntb *n, uint32_t machine, uint64_t address, void *buf,
		  const void *data, size_t len);
/*
 * The other direction: emulated hosts that are connected to machines (host.c). The host with id
 * @node is on, in its start @start; 0: it is off.
 */
void emu_ntb_host_power(struct emu_ntb *n, uint32_t node, uint64_t start);

/* An access by such a host to a machine: @address is on the machine's bus. */
struct emu_ntb_inward {
	uint32_t node, machine;
	unsigned adapter, machine_adapter;
	uint64_t address, len;
};
/*
 * Finds memory that the machine has granted to that adapter. *ret: its first byte, until the
 * machine's next message; @ret_part: how many bytes from there on are in one piece: the rest may
 * lie elsewhere, or be missing. Return: 0; -EACCES: no such range is granted, or the machine is
 * off; -EFAULT: no memory is there.
 */
int emu_ntb_host_memory(struct emu_ntb *n, const struct emu_ntb_inward *x, uint8_t **ret,
			size_t *ret_part, bool *ret_read, bool *ret_write);
/*
 * Sends a message to an interrupt that the machine has granted; without @send only looks it up.
 * Return: the same; -EBUSY: EMU_NTB_WRITES are in flight already, or as many as its session takes;
 * other -errno: as sio_vfio_session_dma_write().
 */
int emu_ntb_host_message(struct emu_ntb *n, const struct emu_ntb_inward *x, uint32_t data,
			 bool send);
/*
 * Sends a store to a device of the machine, in a range that it has granted to be written to; @data
 * NULL: only looks the range up. Return: as emu_ntb_host_message().
 */
int emu_ntb_host_store(struct emu_ntb *n, const struct emu_ntb_inward *x, const uint32_t *data);
/* What an adapter of a machine has counted since it was made; a reset of that changes none. */
struct emu_ntb_counts {
	struct sio_pcie_count pcie; /* through exact windows, out of the machine or into it */
	uint64_t messages;	    /* of the writes, interrupts of the other side */
	uint64_t faults;	    /* accesses that were refused, out or in */
	uint64_t doorbells, mails;  /* that peers have rung; messages by registers that came in */
	uint64_t interrupts;	    /* that the function sent to its driver */
	uint64_t changes;	    /* of its paths to peers: up, down, another start */
	uint64_t group_out;	    /* writes to multicast groups that left the machine */
	uint64_t group_in;	    /* copies of such that came in */
	uint64_t exits;		    /* accesses to its BARs that its session brought */
};
struct emu_ntb_view {
	struct emu_ntb_counts counts;
	bool attached; /* to a machine: QEMU, or another initiator, has its socket */
	bool linked;   /* it is, its cable is in, and what that leads to has power */
	bool ready;    /* its driver is (SIO_VNTB_ENABLE) */
	bool counted;  /* no window is mapped: all that passes is in @counts */
	uint64_t starts;
	unsigned stale_reads;		      /* SIO_VNTB_STALE_READS */
	unsigned entries, ranges, requesters; /* rows in use */
};
void emu_ntb_look(const struct emu_ntb_adapter *a, struct emu_ntb_view *ret);
/* The adapter of a machine; NULL: there is none. */
const struct emu_ntb_adapter *emu_ntb_of(const struct emu_ntb *n, uint32_t node, unsigned adapter);
/*
 * Pulls an adapter's cable, or puts it back. Return: 0; -ENXIO: the adapter is not a machine's, and
 * not connected to one.
 */
int emu_ntb_link(struct emu_ntb *n, uint32_t node, unsigned adapter, bool up);
/*
 * Takes a cluster switch, or a link between two switches, down, or up again (@in); numbers of the
 * topology, which must have them.
 */
void emu_ntb_switch(struct emu_ntb *n, unsigned index, bool in);
void emu_ntb_trunk(struct emu_ntb *n, unsigned index, bool in);
/* Answers reads that have waited for too long, and reports starts that were delayed. */
void emu_ntb_expire(struct emu_ntb *n);

#endif
