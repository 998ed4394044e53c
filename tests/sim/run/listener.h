/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Announcements between workloads and oracles about what programs do with devices. The code that
 * learns of something calls sim_note_...(), and each workload and oracle that has a listener is
 * called, in the order of the tables, workloads first. So an oracle knows no workload, and a
 * workload no oracle. The program is sim_self().
 */
#ifndef SIM_LISTENER_H
#define SIM_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "sisci_api.h"

struct sim_proc;
struct sio_msg_restore;
struct smartio_nvme_queue;
struct sim_export;
struct sim_import;

/* All functions may be NULL. */
struct sim_listener {
	void (*borrowed)(uint32_t fdid, bool exclusive, uint64_t since);
	void (*shares)(uint32_t fdid);
	void (*returned)(uint32_t fdid);
	void (*settles)(uint32_t fdid, uint64_t borrower, bool reset);
	void (*settled)(uint32_t fdid, sci_error_t error);
	void (*lender_reset)(uint32_t fdid);
	void (*trial)(uint32_t fdid, bool begins);
	uint64_t (*resets)(uint32_t fdid);
	void (*queue_given)(uint32_t fdid, const struct smartio_nvme_queue *q, uint64_t resets);
	void (*restores)(const struct sim_proc *p, struct sio_msg_restore *m);
	void (*export_waited)(struct sim_export *x, sci_error_t e);
	void (*import_waited)(struct sim_import *m, sci_error_t e);
};

/*
 * The program has borrowed a device, and requested it at @since; it is about to share it; to return
 * it.
 */
void sim_note_borrowed(uint32_t fdid, bool exclusive, uint64_t since);
void sim_note_shares(uint32_t fdid);
void sim_note_returned(uint32_t fdid);

/*
 * The program is about to end the quarantine of @borrower, or of all, perhaps by a @reset; that was
 * answered. With SCI_ERR_ACCESS nothing was done; with another @error nobody knows.
 */
void sim_note_settles(uint32_t fdid, uint64_t borrower, bool reset);
void sim_note_settled(uint32_t fdid, sci_error_t error);
/*
 * The lender resets the device by itself, which ends the quarantine of all borrowers that have
 * died.
 */
void sim_note_lender_reset(uint32_t fdid);

/* A new manager tests its drive, with queues of its own that need no pins; or has finished. */
void sim_note_trial(uint32_t fdid, bool begins);
/* How often the drive lost all its queues; since @resets, the program got @q. */
uint64_t sim_resets_noted(uint32_t fdid);
void sim_note_queue(uint32_t fdid, const struct smartio_nvme_queue *q, uint64_t resets);

/*
 * The claim that a program is about to send to a smartiod that was started again; a listener may
 * change it.
 */
void sim_note_restore(const struct sim_proc *p, struct sio_msg_restore *m);

/*
 * The program waited for events of its segment, or connection, which returned @e: nothing, or no
 * more.
 */
void sim_note_export_waited(struct sim_export *x, sci_error_t e);
void sim_note_import_waited(struct sim_import *m, sci_error_t e);

#endif
