/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of what run/tables.c lists. */
#ifndef SIM_TABLES_H
#define SIM_TABLES_H

#include "run/run.h"

extern const struct sim_workload sim_work_perjurer;
extern const struct sim_workload sim_work_segment;
extern const struct sim_workload sim_work_share;
extern const struct sim_workload sim_work_interrupt;
extern const struct sim_workload sim_work_dma;
extern const struct sim_workload sim_work_device;
extern const struct sim_workload sim_work_hostile;
extern const struct sim_workload sim_work_group;
extern const struct sim_workload sim_work_exact;
extern const struct sim_workload sim_work_callback;
extern const struct sim_workload sim_work_manager;
extern const struct sim_workload sim_work_nvme;
extern const struct sim_workload sim_work_gather;
extern const struct sim_workload sim_work_block;
extern const struct sim_workload sim_work_kinds;
extern const struct sim_workload sim_work_wild;
extern const struct sim_workload sim_work_usurper;
extern const struct sim_workload sim_work_raw;
extern const struct sim_workload sim_work_keep;
extern const struct sim_workload sim_work_steward;
extern const struct sim_workload sim_work_asker;
extern const struct sim_workload sim_work_ways;
extern const struct sim_workload sim_work_guest;
extern const struct sim_workload sim_work_hasty;
extern const struct sim_workload sim_work_lured;
extern const struct sim_workload sim_work_query;
extern const struct sim_workload sim_work_tool;
extern const struct sim_workload sim_work_herald;
extern const struct sim_workload sim_work_listen;
extern const struct sim_fault sim_fault_death;
extern const struct sim_fault sim_fault_crash;
extern const struct sim_fault sim_fault_link;
extern const struct sim_fault sim_fault_cut;
extern const struct sim_fault sim_fault_delay;
extern const struct sim_fault sim_fault_clock;
extern const struct sim_fault sim_fault_lack;
extern const struct sim_fault sim_fault_port;
extern const struct sim_fault sim_fault_memory;
extern const struct sim_fault sim_fault_tables;
extern const struct sim_fault sim_fault_restart;
extern const struct sim_fault sim_fault_lost;
extern const struct sim_fault sim_fault_late;
extern const struct sim_fault sim_fault_doubled;
extern const struct sim_fault sim_fault_phase;
extern const struct sim_fault sim_fault_fatal;
extern const struct sim_fault sim_fault_removal;
extern const struct sim_fault sim_fault_forge;
extern const struct sim_fault sim_fault_liar;
extern const struct sim_fault sim_fault_stranger;
extern const struct sim_fault sim_fault_stop;
extern const struct sim_fault sim_fault_stray;
extern const struct sim_fault sim_fault_absent;
extern const struct sim_fault sim_fault_unheard;
extern const struct sim_fault sim_fault_doze;
extern const struct sim_fault sim_fault_flood;
extern const struct sim_fault sim_fault_scarce;
extern const struct sim_fault sim_fault_anew;
extern const struct sim_fault sim_fault_busy;
extern const struct sim_oracle sim_oracle_calls;
extern const struct sim_oracle sim_oracle_hardware;
extern const struct sim_oracle sim_oracle_books;
extern const struct sim_oracle sim_oracle_exclusive;
extern const struct sim_oracle sim_oracle_dma;
extern const struct sim_oracle sim_oracle_reach;
extern const struct sim_oracle sim_oracle_tables;
extern const struct sim_oracle sim_oracle_queues;
extern const struct sim_oracle sim_oracle_reset;
extern const struct sim_oracle sim_oracle_restore;
extern const struct sim_oracle sim_oracle_agree;
extern const struct sim_oracle sim_oracle_told;

/* work/exact.c: groups of this cluster are exact. */
bool sim_exact_groups(unsigned host);
/* work/wild.c: what was tried at addresses that are not theirs, and refused. */
struct sim_wild {
	uint64_t commands, refused, queues, queues_refused;
	uint64_t lies;	  /* work/usurper.c: a manager lies to its clients */
	uint64_t guarded; /* ... one that settles too early alone, with an IOMMU before its drive */
	uint64_t hasty;	  /* work/hasty.c: quarantines that were ended too early */
	uint64_t answers; /* fault/liar_answer.c: of a daemon, that are not the truth */
};
extern struct sim_wild sim_wild;
/* Where nothing is mapped for a drive of @lender: @kind 0 to 4. */
uint64_t sim_wild_address(const struct sio_topo_host *lender, uint64_t kind);

/* fault/stranger.c: is this owner the stranger's? And now it does something. */
bool sim_stranger_has(unsigned host, uint64_t owner);
bool sim_stranger_acts(void);

/* work/keep.c: somebody is about to end the quarantine of @borrower, or of all. */
void sim_keep_settled(uint32_t fdid, uint64_t borrower);
/* That was answered; @refused: nothing of it was done. */
void sim_keep_answered(uint32_t fdid, bool refused);
/* The lender resets the device by itself, which ends the quarantine of all who have died. */
void sim_keep_reset(uint32_t fdid);

/* The device is one of the host that lies. */
bool sim_liars_device(uint32_t fdid);

/* oracle/dma.c: the device of a handle of the running program's; 0: none that it borrowed. */
uint32_t sim_device_fdid(const void *device);

/* ... hosts may lose each other, and what they borrow. */
bool sim_may_lose_borrowers(void);

/* oracle/queues.c: the end of a quarantine is about to be told, or a reset. */
void sim_queues_settled(uint32_t fdid, uint64_t borrower, bool reset);
/* That was answered; @refused: nothing of it was done. */
void sim_queues_answered(uint32_t fdid, bool refused);
/* How often the drive lost all its queues; since @resets, a client was given @q. */
struct smartio_nvme_queue;
uint64_t sim_queues_resets(uint32_t fdid);
void sim_queues_given(uint32_t fdid, const struct smartio_nvme_queue *q, uint64_t resets);

/* work/trial.c: what a new manager does with its drive first, with the fault "flood". */
struct smartio_nvme_manager;
void sim_manager_tries(struct smartio_nvme_manager *m);
/* It does, or died at it: queues of its own, which nobody has to hold. */
bool sim_manager_tried(uint32_t fdid);

/* work/manager.c: for workloads of drives. */
/* Ends a call that gives 0 or -errno, as sim_called(); @also: one that may be, too. */
int sim_nvme_called(int rc, int also);
/* Commands of drives may be lost, or be late. */
bool sim_drives_fail(void);
/* Nothing else goes wrong but what drives do, and programs that end. */
bool sim_drives_alone(void);

/* work/perjurer.c: what a perjurer is about to say, which may become a lie. */
struct sio_msg_restore;
void sim_perjure(struct sio_msg_restore *m);

/* work/asker.c: the client @n, which has the queue pair @q, asks its manager for something. */
struct smartio_nvme;
void sim_ask(struct smartio_nvme *n, const struct smartio_nvme_queue *q);

#endif
