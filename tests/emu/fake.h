/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A world for the machine room in one process: three hosts on a switch, memory from the heap,
 * descriptors that are only counted, every event kept, and a device model that does nothing but
 * lend the test its DMA. Each operation that may fail can be made to fail.
 */
#ifndef TESTS_EMU_FAKE_H
#define TESTS_EMU_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emu/machine/requests.h"
#include "emu/machine/room.h"

#define LENDER 0		/* node 4: devices 0 to 2 */
#define CLIENT 1		/* node 8: device 0 */
#define OTHER 2			/* node 12 */
#define FAKE_POOL 0x8000u	/* bytes of a pool at most */
#define MACHINE 3		/* node 16, of fake_new_mixed() */
#define MACHINE_RAM 0x100000u	/* two pages, that it has granted to the lender */
#define MACHINE_MESSAGE 0x4031u /* of an interrupt that it has granted to it */
#define MACHINE_IRQ 0xfee01000u
#define MACHINE_BAR 0xc0000000u
#define NODE(host) (((host) + 1) * 4)
#define DEV(host, index) sio_topology_fdid(NODE(host), (index) + 1)

#define REGISTERS 0 /* offsets in BAR 0 of the model */
#define DOORBELLS 0x1000
#define MSIX 0x2000
#define MEMORY 0x3000
#define REGISTERS_RUN 0
#define DOORBELLS_RUN 1
#define MEMORY_RUN 3

/* The test's device model: what it was told. */
struct fake_model {
	struct emu_dev *dev;
	unsigned resets, power_resets, view_changes, steps;
};

struct fake_event {
	unsigned host;
	size_t len;
	unsigned n_fds;
	union {
		struct sio_evt h;
		struct sio_evt_error refusal;
		struct sio_evt_link link;
		struct sio_evt_fault fault;
		struct sio_evt_owner_gone gone;
		struct sio_evt_device_state device;
		uint64_t words[SIO_PORT_MAX_PACKET / 8];
	} u;
};

struct fake {
	struct sio_topology topo;
	struct sio_topo_host host[4];
	struct sio_topo_device device[4];
	struct sio_topo_chassis chassis[3][4];
	struct sio_topo_switch sw[2];
	struct sio_topo_trunk trunk;
	uint8_t *measured; /* the topology's distances at the start */
	struct emu_room *room;
	struct fake_event event[256];
	unsigned n_events, events_lost;
	unsigned deaf;			 /* bit of the host whose daemon does not read events */
	struct fake_event answer, taken; /* the last of each */
	unsigned ones_freed;		 /* memories that held nothing but ones then */
	unsigned open_fds, open_mems, open_owners, open_watches, signals, seals;
	int signalled; /* the last descriptor that an interrupt went to */
	int with[2];   /* descriptors beside the next request */
	unsigned n_with;
	int next_fd;
	uint64_t cookie, clock, seed;
	uint8_t *pool; /* of the only host that has one, if any; made when the room asks for it */
	/* The machine, if there is one. */
	uint8_t machine_ram[2 * 0x1000];
	uint32_t machine_access; /* what it grants, SIO_ACCESS_* */
	unsigned machine_messages;
	bool machine_is_full;	/* it takes no message, and no store */
	bool machine_has_bar;	/* that it lets the lender store to: a page at MACHINE_BAR */
	uint32_t machine_store; /* the last one, and where in the page */
	uint64_t machine_stored_at;
	unsigned machine_stores;
	uint32_t *stored_again; /* where a program stores the same again during the next */
	struct emu_reach reach; /* the last */
	char log[256];		/* the last line */
	unsigned log_lines;
	unsigned calls, fail_at; /* the fail_at-th operation that may fail does; 0: none */
};

/* Makes the cluster; @iommu: bit n: of host n. Hosts are off. */
struct fake *fake_new(unsigned iommu);
/* The same, with so many requester entries in each adapter instead of 4. */
struct fake *fake_new_of(unsigned iommu, unsigned requesters);
/* The lender's devices 1 and 2 are virtual functions of its device 0. */
struct fake *fake_new_functions(unsigned iommu);
/* A machine is at the switch, too; it is off. */
struct fake *fake_new_mixed(unsigned iommu);
/* Client and other host at a second switch, which a link joins with the lender's, or nothing. */
struct fake *fake_new_cascade(bool joined);
/* Cabled as the latter; every host has @n chassis, within one another as @change makes it. */
struct fake *fake_new_tree(unsigned iommu, unsigned n,
			   void (*change)(struct sio_topology *t, void *arg), void *arg);
/* Also asserts that the room gave everything back. */
void fake_free(struct fake *f);
void fake_up(struct fake *f, unsigned host);
struct fake_model *fake_model(struct fake *f, unsigned host, unsigned device);
struct emu_dev *fake_dev(struct fake *f, unsigned host, unsigned device);

/*
 * Ask; @ret (may be NULL) gets the answer, @evt_size bytes. Return: the answer's error. Asserts
 * that there is just one answer.
 */
int fake_ask(struct fake *f, unsigned host, void *req, size_t size, uint32_t op, void *ret,
	     size_t evt_size);
#define ask(f, host, req, op, ret) fake_ask(f, host, req, sizeof(*(req)), op, ret, sizeof(*(ret)))
#define ask_only(f, host, req, op) fake_ask(f, host, req, sizeof(*(req)), op, NULL, 0)
/* The next request comes with a descriptor (one more each time). */
void fake_with(struct fake *f);
/* The text of the last refusal. */
const char *fake_text(struct fake *f);
/* Of that refusal: SIO_OUT_OF_*. */
uint32_t fake_reason(struct fake *f);
/* The next event @op of @host since the last call of fake_forget(); NULL: none. Taken out. */
struct fake_event *fake_take(struct fake *f, unsigned host, uint32_t op);
void fake_forget(struct fake *f);

/* Shorter ways to what every test needs; each asserts success. */
uint64_t fake_owner(struct fake *f, unsigned host);
uint64_t fake_alloc(struct fake *f, unsigned host, uint64_t owner, uint64_t size);
uint8_t *fake_data(struct fake *f, unsigned host, uint64_t mem);
struct sio_evt_grant fake_grant(struct fake *f, unsigned host, uint64_t owner, uint64_t mem,
				uint64_t length, unsigned peer);
struct sio_req_map fake_map_request(unsigned peer, const struct sio_evt_grant *g);
struct sio_evt_map fake_map(struct fake *f, unsigned host, uint64_t owner, unsigned peer,
			    const struct sio_evt_grant *g);
uint64_t fake_requester(struct fake *f, unsigned host, uint64_t owner, unsigned device);
void fake_open(struct fake *f, unsigned host, unsigned device);
struct sio_evt_dmamap fake_dmamap(struct fake *f, unsigned host, uint64_t owner, unsigned device,
				  uint32_t kind, uint64_t target, uint64_t length, uint32_t access);
/* Ask @op about the object @id, as owner @owner. */
int fake_end(struct fake *f, unsigned host, uint32_t op, uint64_t id, uint64_t owner);
int fake_settle(struct fake *f, unsigned host, unsigned device, uint64_t owner,
		struct sio_evt_settle *ret);
/* How many of one kind there are. */
unsigned fake_count(struct fake *f, unsigned host, uint32_t kind);
uint64_t fake_counter(struct fake *f, unsigned host, uint32_t kind, uint64_t id, const char *name);

#endif
