/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices that are borrowed for a virtual machine, each as the PCI function that the machine's
 * emulator sees (vfio/session.h). The relay sets up and tears down: while the machine's driver
 * works, no access passes through here. It uses the installed API alone.
 */
#ifndef TOOLS_GUEST_RELAY_H
#define TOOLS_GUEST_RELAY_H

#include <stdbool.h>

#include "sisci_api.h"
#include "smartio/guest.h"
#include "vfio/config.h"
#include "vfio/session.h"

#define RELAY_BARS 6u
#define RELAY_DEVICES 4u /* of one machine */

/*
 * A BAR: mapped here for accesses that are trapped; a run of its pages is mapped by the emulator,
 * too.
 */
struct relay_bar {
	uint64_t size;
	sci_remote_segment_t segment;
	sci_map_t map;
	volatile uint8_t *at;
	int fd; /* of that run; -1: there is none */
	uint64_t fd_offset, run, run_bytes;
};

struct relay_vector {
	sci_local_interrupt_t interrupt; /* NULL: it is tied to nothing */
	bool again;			 /* it was before, for this machine */
};

/* The machine's states with respect to the device; docs/pass-through.md draws them. */
enum relay_state {
	RELAY_IDLE,    /* no machine: the device is everybody's */
	RELAY_STOPPED, /* borrowed; it reaches no memory, its driver has not made it a bus master */
	RELAY_MASTER,  /* it reaches all of the machine's memory, and nothing else */
	RELAY_LOST,    /* device, lender or way are gone: the machine reads ones */
	RELAY_STATES
};

struct relay;
struct relay_target;
struct sio_eventfd;

/* The devices that one machine has through this process. */
struct relay_machine {
	struct relay *relay[RELAY_DEVICES];
	unsigned n;
	struct sio_eventfd *events; /* adds to the emulator's, which may be full */
};

struct relay {
	const char *name;
	bool unplug; /* a machine is asked to unplug what is lost */
	unsigned fdid, adapter, node;
	struct smartio_device_layout layout;
	sci_desc_t sd;
	enum relay_state state;
	/*
	 * The relay's own resets whose event has not arrived yet. Any other reset took the
	 * doorbells from the emulator, which maps them once.
	 */
	unsigned restarts;
	sci_smartio_device_t device;
	struct sio_vfio_config space;
	struct relay_bar bar[RELAY_BARS];
	struct relay_vector vector[SIO_VFIO_VECTORS];
	struct sio_vfio_session *session;    /* NULL: no machine */
	const struct relay_machine *machine; /* whose others it may reach */
	struct relay_target *targets;	     /* target.c: what it reaches of them */
	unsigned long told;		     /* lines about them, of this machine */
};

/* Tables for a session: the relay is its function and its edge's context. */
extern const struct sio_vfio_function_ops relay_function;

/*
 * Requires an initialised library. Return: 0; -errno, with the reason in @reterr: the device cannot
 * be passed through.
 */
int relay_open(struct relay *r, const char *name, struct sio_err *reterr);
/*
 * A machine has connected: borrows the device for it. Return: 0; -EBUSY: others have borrowed it;
 * -errno.
 */
int relay_borrow(struct relay *r, struct sio_err *reterr);
/*
 * The machine's session is over. @r->session is to be freed between relay_stop() and
 * relay_return().
 */
void relay_stop(struct relay *r);
void relay_return(struct relay *r);
/* To be called when smartio_device_event_fd(r->device) is readable. */
void relay_event(struct relay *r);
/* The device cannot be used any more: every read of the machine returns ones. */
void relay_lose(struct relay *r, const char *why);

/* ---- ram.c: the machine's memory ---- */

/* Operations of a session's edge: a range is mapped and unmapped. @ctx: the relay. */
int relay_ram_map(void *ctx, int fd, uint64_t offset, const struct sio_vfio_range *at, void **ret);
void relay_ram_unmap(void *ctx, void *data, uint64_t size);
/* Maps all of it for the device, as it is now. -errno of the first range that failed. */
int relay_ram_open(struct relay *r, struct sio_err *reterr);
/* Unmaps all of it for the device. */
void relay_ram_close(struct relay *r);

/* ---- target.c: BARs of the machine's other devices ---- */

/*
 * Each device that is a bus master reaches the others' BARs where the machine has them now, and
 * nothing where it had them before.
 */
void relay_targets_follow(const struct relay_machine *m);

/* ---- vector.c: its interrupts ---- */

void relay_vector_set(struct relay *r, unsigned vector, int eventfd);

/* Fills in "what: why", of the library's last failure. Return: @rc. */
int relay_fail(struct sio_err *reterr, int rc, const char *what);

#endif
