/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The API that the driver needs, in one process and one thread, over the drive model: the driver's
 * own objects run unchanged. Whatever waits or yields lets the drive and the manager go on, and
 * time passes by it alone. Strict where the cluster is: a device that reaches memory it was not
 * given, or that was taken away, is counted as a fault; what is not given back is counted too.
 */
#ifndef TESTS_NVME_DRIVER_FAKE_H
#define TESTS_NVME_DRIVER_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "smartio/nvme.h"

#define FAKE_NODE 8u
#define FAKE_ADAPTERS 2u
#define FAKE_BLOCKS 8192u /* of 512 bytes */

struct fake_options {
	uint32_t queue_pairs, queue_entries;
	bool second; /* namespace, of FAKE_BLOCKS / 16 blocks of 4,096 bytes */
};

extern struct fake {
	uint64_t now;
	unsigned faults;		 /* of its DMA, and queues whose memory was taken */
	unsigned objects;		 /* that the driver has not given back */
	unsigned long calls;		 /* that can fail, so far */
	unsigned long fail_at;		 /* the n-th of them fails; 0: none */
	bool stopped;			 /* the drive does nothing */
	bool hangs;			 /* the drive, as soon as it is ready */
	bool unresettable;		 /* the lender cannot reset it */
	bool goes;			 /* lost, while its lender is to reset it */
	bool late_generation;		 /* borrowers hear of a reset one step late */
	bool far;			 /* segments of the device are said to be another host's */
	unsigned losses;		 /* of paths, which are back */
	unsigned sq_reads, cq_writes;	 /* DMA by size: of 64 bytes, of 16 bytes */
	const volatile uint32_t *sleeps; /* says whether the drive sleeps; NULL: stores wake it */
	unsigned wakes;			 /* by the programs */
	unsigned raised;		 /* interrupts that reached a host */
	bool unyielding;		 /* the drive does nothing while somebody yields */
	unsigned goes_on;		 /* steps of the drive while a wait without time looks */
	struct smartio_nvme_manager *manager; /* served whenever somebody waits */
	int served;    /* what its last serve returned, if that was an error */
	unsigned down; /* bits: adapters whose link is */
	uint64_t lost; /* this borrow has lost the device, and nobody else; 0 */
	bool reserved; /* what a lost borrow had is the manager's that is served, if it lasts */
	unsigned hidden_at; /* before the n-th look the manager takes its magic number away; 0 */
	bool unheard;	    /* the manager's host is away: no end of a borrow is said to it */
	uint64_t dies;	    /* this borrower ends before */
	unsigned dies_at;   /* the n-th connection to a segment or a BAR of the device; 0: not */
	/* The n-th segment that is new: another one connects to it, and goes; 0: none. */
	unsigned looked_at;
	unsigned attach_at;    /* the n-th attachment to a segment fails; 0: none */
	unsigned attach_error; /* by this, SCI_ERR_* */
	unsigned unsettled;    /* so many words of what is settled the lender cannot take */
	unsigned away_at;      /* the n-th look for a manager finds no smartiod; 0: none */
	unsigned way;	       /* the adapter, of FAKE_ADAPTERS, by which interrupts are reached */
	bool severed;	       /* what was connected by another one leads nowhere now */
	uint64_t away_ns;      /* for so long, in which the manager waits, too: then it is */
	struct smartio_nvme_manager *back; /* this one */
	unsigned long
		killed_at;  /* the manager is, before its n-th store or call from now on; 0: not */
	uint64_t killed_id; /* its borrow; 0 when it is dead */
	bool spared;	    /* not the manager goes then, but its path to the device: fake_lose() */
	unsigned long then_at; /* and that by which it comes back before its n-th step; 0: not */
	struct smartio_nvme_manager *standby; /* is served then */
	uint64_t event_at;		      /* when, in fake_step() or a wait, ... */
	void (*event)(void);		      /* this is called, once; NULL: nothing */
	/* Called behind each store to @addr in the programs that see stores; NULL: nothing. */
	void (*stored)(volatile void *addr);
	/* The same in front of each read. */
	void (*looked)(const volatile void *addr);
	unsigned borrow_calls; /* how often somebody asked to borrow the drive */
	unsigned lookups;      /* of device segments */
	unsigned await_calls;  /* and to wait until it is free */
} fake;

void fake_start(const struct fake_options *o);
/* Everything of the fake's is freed. */
void fake_stop(void);
/* Let the drive and the manager do what they can do now. */
void fake_step(void);
/* The manager, if it is what runs, stores something, or calls: it may be killed before. */
void fake_manager_step(void);
/* The manager runs, and has lost its path: what it stores until it comes back nobody sees. */
bool fake_is_cut(void);
/* The borrower behind an open client or manager ends as if its process had been killed. */
void fake_kill(uint64_t borrower);
/* What a killed process still had is no longer counted: its end has taken it. */
void fake_bury(uint64_t borrower);
/* The way to the device over which it was borrowed goes: that borrow ends, and is told. */
void fake_lose(uint64_t borrower);
/* Of the last borrow. */
uint64_t fake_last_borrower(void);
/* Memory that ended borrowers had mapped and nobody has settled. */
unsigned fake_quarantined(void);
/* Holds of queue memory, all in all. */
unsigned fake_holds(void);
/* The lender resets the device behind everybody's back. */
void fake_reset_device(void);
/* Put a message into a data interrupt, as a hostile program would. */
bool fake_inject(unsigned number, const void *data, size_t len);
/* The media, to look at. */
uint8_t *fake_media(void);
/* CSTS of the drive. */
uint32_t fake_csts(void);
/* Of the drive's model, by its name. */
uint64_t fake_counter(const char *name);
/* What the drive does wrong (enum emu_dev_fault_kind); @kind 0: nothing any more. */
void fake_fault(unsigned kind, uint32_t opcode, uint32_t count, uint64_t value);
/* The same, of commands of its admin queue. */
void fake_admin_fault(unsigned kind, uint32_t opcode, uint64_t value);
/* The drive's own memory of a mapped address; NULL: none. */
void *fake_dma(uint64_t addr, size_t len);
/* The manager's metadata as it stands in its segment; NULL: none. */
void *fake_shared(void);

#endif
