/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fake's two files share. */
#ifndef TESTS_NVME_DRIVER_FAKE_INTERNAL_H
#define TESTS_NVME_DRIVER_FAKE_INTERNAL_H

#include <errno.h>

#include "emu/devices/model.h"
#include "fake.h"
#include "sisci_api.h"
#include "smartio/ext.h"

#define FAKE_VECTORS 4u
#define FAKE_EVENTS 8192u
#define FAKE_FDID 0x401u

struct fake_region {
	uint64_t ioaddr, borrower;
	uint8_t *at;
	size_t size;
	void *owner; /* the segment */
	uint64_t number;
	unsigned holds;
	struct fake_region *next;
};

struct fake_borrower { /* also sci_smartio_device_t */
	uint64_t id;
	uint32_t generation;
	bool ended, lost, woken, returned;
	unsigned n_events;
	struct smartio_device_event events[FAKE_EVENTS];
	struct fake_borrower *next;
};

struct fake_memory {
	void *at;
	size_t size;
	struct fake_memory *next;
};

extern struct fake_world {
	struct emu_dev dev;
	struct emu_dev_config config;
	void *model;
	void *registers;
	uint32_t *mirror;
	void *doorbells;
	size_t doorbells_size;
	uint64_t next_ioaddr, last_borrower, last_region, random;
	uint64_t
		last_before; /* the last borrower when the manager's path was lost; 0: it was not */
	uint32_t generation;
	bool generation_told, in_manager;
	struct fake_region *regions;
	struct fake_memory *memory;
	struct fake_borrower *borrowers, *holder, *exclusive;
} W;

uint64_t fake_region_add(struct fake_borrower *b, void *owner, void *at, size_t size);
void fake_region_drop(uint64_t borrower, void *owner, bool all);
/* A queue of the device lies there: not to be unmapped. */
bool fake_region_held(uint64_t borrower, void *owner);
/* Of @borrower, covering the range; NULL: none. */
struct fake_region *fake_region_find(uint64_t borrower, uint64_t ioaddr, size_t size);
void *fake_memory(size_t size);
struct fake_borrower *fake_borrower(uint64_t id);
void fake_event(struct fake_borrower *b, uint32_t kind, uint64_t borrower);
void fake_generation_up(void);
void fake_tell_generation(void);
void fake_set_holder(struct fake_borrower *b);
void fake_borrower_end(struct fake_borrower *b);
/* The segments and interrupts of a borrower's session end. */
void fake_session_gone(struct fake_borrower *b);
/* A quarantine has ended: what lasted until then goes. */
void fake_segments_settled(void);
void fake_sci_stop(void);
/* It was killed: with it go the connections by which it was about to reply. */
void fake_manager_buried(void);
/* A call that can fail: true: it does, with @error. */
bool fake_injected(sci_error_t *error);
/* fake_interrupt.c */
void fake_raise(struct emu_dev *dev, unsigned vector);
void fake_interrupt_stop(void);
/* A sleeping drive does what there is to do, and sleeps again. */
void fake_wake(void);

#endif
