/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The controller as its manager sees it: registers, reset, admin queue. One command at a time.
 * Waits by yielding, then by sleeping; every wait has an end. Source: NVM Express Base
 * Specification 1.4, sections 3 and 5.
 */
#ifndef NVME_USER_CONTROLLER_H
#define NVME_USER_CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "device.h"

/*
 * The one command at a time that may take longer than the manager can wait (SIO_NVME_ADMIN_MS), and
 * beside which others are carried out. FREE -> FLYING when it is submitted; -> DONE with its
 * completion; -> FREE when the completion was handled.
 */
enum sio_nvme_slow_state { SIO_NVME_SLOW_FREE, SIO_NVME_SLOW_FLYING, SIO_NVME_SLOW_DONE };

struct sio_nvme_slow {
	enum sio_nvme_slow_state state;
	uint16_t cid;
	bool alone; /* no client may have a queue or a lease meanwhile */
	uint64_t deadline;
	uint32_t status, result; /* when it is DONE */
};

struct sio_nvme_ctrl {
	struct sio_nvme_device *d;
	sci_remote_segment_t bar;
	sci_map_t reg_map, db_map;
	volatile uint8_t *reg, *db;
	const volatile uint32_t *reg_sleeps, *db_sleeps; /* smartio_map_sleep_word() */
	uint64_t cap;
	uint32_t version, stride, max_entries;
	uint32_t timeout_ms; /* to become ready or not ready */
	/* The memory of the admin queue: at the lender, and it outlives this process. */
	struct sio_nvme_mem memory;
	uint32_t memory_id; /* of its segment */
	struct sio_nvme_part {
		volatile uint8_t *at;
		uint64_t ioaddr;
	} sq, cq, data, slow_data; /* parts of that memory; each data part is one page */
	uint32_t entries, tail, head, phase;
	uint16_t cid;
	bool flying; /* a command of ours has not completed */
	bool stray;  /* a command of the previous manager, @stray_cid, has not completed */
	uint16_t stray_cid;
	struct sio_nvme_slow slow;
	/* The record of this state for a successor (sio_nvme_ctrl_record()); NULL: none. */
	volatile uint8_t *word;
	bool enabled;
	uint32_t cmb_pages; /* of the controller memory buffer, once it is used; 0: not yet */
};

/*
 * The address at which the drive itself has its controller memory buffer: no other memory has it.
 */
#define SIO_NVME_CMB_BASE (1ull << 62)

struct sio_nvme_command {
	uint8_t opcode;
	uint32_t nsid, cdw10, cdw11;
	uint64_t prp1;
	/* Only for a command of a client. */
	uint32_t cdw2, cdw3, cdw12, cdw13, cdw14, cdw15;
};

/*
 * Maps the registers. -EBUSY: another borrower owns the registers. @timeout_ms 0: the time-out of
 * CAP.TO.
 */
int sio_nvme_ctrl_open(struct sio_nvme_ctrl *c, struct sio_nvme_device *d, uint32_t timeout_ms);
/*
 * Accepts a half-built controller. @stopped: it is disabled, or gone; otherwise its memory is kept.
 */
void sio_nvme_ctrl_done(struct sio_nvme_ctrl *c, bool stopped);
/* Resets: afterwards the controller has no queue and uses no memory. */
int sio_nvme_ctrl_disable(struct sio_nvme_ctrl *c);
/*
 * Maps the doorbells of the admin queue alone: clients map their own. To be called after the
 * notification of a reset, which cuts earlier mappings.
 */
int sio_nvme_ctrl_doorbells(struct sio_nvme_ctrl *c);
/* Enables the controller with an admin queue of @entries. */
int sio_nvme_ctrl_enable(struct sio_nvme_ctrl *c, uint32_t entries);
/*
 * Replaces reset and enable: continues with the admin queue of a manager that has ended, in segment
 * @id, which the drive has mapped at @ioaddr. @word: that manager's record of its state. 0;
 * -ESTALE: the controller is not in the state that the manager left it in; -errno.
 */
int sio_nvme_ctrl_resume(struct sio_nvme_ctrl *c, uint32_t entries, uint32_t id, uint64_t ioaddr,
			 volatile uint8_t *word);
/* From now on each command is recorded in @word before it is announced to the drive. */
void sio_nvme_ctrl_record(struct sio_nvme_ctrl *c, volatile uint8_t *word);
/*
 * cmb.c: has the drive use its own memory for submission queues; then c->cmb_pages is set.
 * -EOPNOTSUPP: it has none, or none that can be used; otherwise as sio_nvme_ctrl_check().
 */
int sio_nvme_ctrl_use_cmb(struct sio_nvme_ctrl *c);
/* Normal shutdown, as far as the controller responds. */
void sio_nvme_ctrl_shutdown(struct sio_nvme_ctrl *c);
/*
 * Checks the controller's state. 0; -EIO: fatal status, or reset by somebody else; -ENODEV: gone.
 */
int sio_nvme_ctrl_check(struct sio_nvme_ctrl *c);

/*
 * Executes an admin command. @ret_status: SCT << 8 | SC; @ret_result: dword 0; either may be NULL.
 * Without @ret_status a status that is not success is an error.
 * -EIO, -ETIMEDOUT, -ENODEV: the controller is lost.
 */
int sio_nvme_ctrl_admin(struct sio_nvme_ctrl *c, const struct sio_nvme_command *cmd,
			uint32_t *ret_status, uint32_t *ret_result);
/* Identifies into c->data; the data is copied to @data (4,096 bytes). */
int sio_nvme_ctrl_identify(struct sio_nvme_ctrl *c, uint8_t cns, uint32_t nsid, void *data,
			   uint32_t *ret_status);
/*
 * Executes a command for a client: @to_drive of @bytes is copied to the data page before, and the
 * page's 4,096 bytes to @data afterwards.
 */
int sio_nvme_ctrl_raw(struct sio_nvme_ctrl *c, struct sio_nvme_command *cmd, const void *to_drive,
		      size_t bytes, void *data, uint32_t *ret_status, uint32_t *ret_result);
/*
 * Starts a command that may take minutes, with @to_drive in its data page; c->slow reports its
 * state from now on. 0; -EBUSY: one is running; -EOPNOTSUPP: the admin queue is too short for one
 * beside all others.
 */
int sio_nvme_ctrl_slow_start(struct sio_nvme_ctrl *c, struct sio_nvme_command *cmd,
			     const void *to_drive, size_t bytes, bool alone);
/*
 * Checks whether that command is DONE. 0; errors as of sio_nvme_ctrl_admin(): the drive never
 * completes it.
 */
int sio_nvme_ctrl_slow_look(struct sio_nvme_ctrl *c);
/*
 * Ends a command that is DONE: copies its data page into @data (4,096 bytes), unless that is NULL.
 * Another one may start.
 */
void sio_nvme_ctrl_slow_end(struct sio_nvme_ctrl *c, void *data);
/*
 * Takes the state of the admin queue from @word, and completes the command that was under way: the
 * drive knows of it already, or is notified now. -ESTALE: @word is invalid.
 */
int sio_nvme_ctrl_catch_up(struct sio_nvme_ctrl *c, volatile uint8_t *word);
/* Asks for as many I/O queue pairs as there are. */
int sio_nvme_ctrl_queues(struct sio_nvme_ctrl *c, uint32_t *ret_pairs);
/* @vector 0: no interrupts. */
int sio_nvme_ctrl_create_cq(struct sio_nvme_ctrl *c, uint32_t qid, uint64_t addr, uint32_t entries,
			    uint32_t vector, uint32_t *ret_status);
/* @cq: where its commands complete. */
int sio_nvme_ctrl_create_sq(struct sio_nvme_ctrl *c, uint32_t qid, uint64_t addr, uint32_t entries,
			    uint32_t cq, uint32_t *ret_status);
/* Deletes a queue; one that does not exist (any more) counts as deleted. */
int sio_nvme_ctrl_delete_sq(struct sio_nvme_ctrl *c, uint32_t qid);
int sio_nvme_ctrl_delete_cq(struct sio_nvme_ctrl *c, uint32_t qid);
/* Attempts an Abort. Whether the drive found the command is not reported. */
int sio_nvme_ctrl_abort(struct sio_nvme_ctrl *c, uint32_t qid, uint16_t cid);

#endif
