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

struct sio_nvme_ctrl {
	struct sio_nvme_device *d;
	sci_remote_segment_t bar;
	sci_map_t reg_map, db_map;
	volatile uint8_t *reg, *db;
	const volatile uint32_t *reg_sleeps, *db_sleeps; /* smartio_map_sleep_word() */
	uint64_t cap;
	uint32_t version, stride, max_entries;
	uint32_t timeout_ms; /* to become ready or not ready */
	/* Of the admin queue: with the lender, and it outlives us. */
	struct sio_nvme_mem memory;
	uint32_t memory_id; /* of its segment */
	struct sio_nvme_part {
		volatile uint8_t *at;
		uint64_t ioaddr;
	} sq, cq, data; /* of that; data: one page */
	uint32_t entries, tail, head, phase;
	uint16_t cid;
	bool flying; /* a command of ours has not completed */
	bool stray;  /* one of the manager before us, @stray_cid, has not */
	uint16_t stray_cid;
	volatile uint8_t *word; /* where the above four stand for who follows us; NULL: nowhere */
	bool enabled;
};

struct sio_nvme_command {
	uint8_t opcode;
	uint32_t nsid, cdw10, cdw11;
	uint64_t prp1;
	/* Of a client's command alone. */
	uint32_t cdw2, cdw3, cdw12, cdw13, cdw14, cdw15;
	uint32_t timeout_ms; /* 0: 10 s */
};

/* Map registers. -EBUSY: another has the registers. @timeout_ms 0: as CAP.TO says. */
int sio_nvme_ctrl_open(struct sio_nvme_ctrl *c, struct sio_nvme_device *d, uint32_t timeout_ms);
/* Half-built is fine. @stopped: the controller is disabled, or gone; else it keeps its memory. */
void sio_nvme_ctrl_done(struct sio_nvme_ctrl *c, bool stopped);
/* Reset: afterwards the controller has no queue and uses no memory. */
int sio_nvme_ctrl_disable(struct sio_nvme_ctrl *c);
/*
 * Map the doorbells of the admin queue alone: clients map those of theirs. After the word that the
 * device was reset, which takes away those of before.
 */
int sio_nvme_ctrl_doorbells(struct sio_nvme_ctrl *c);
/* With an admin queue of @entries. */
int sio_nvme_ctrl_enable(struct sio_nvme_ctrl *c, uint32_t entries);
/*
 * Instead of reset and enable: go on with the admin queue of a manager that is gone, in segment
 * @id, which the drive has at @ioaddr. @word: what it left, and where. 0; -ESTALE: the controller
 * is not as that manager had it; -errno.
 */
int sio_nvme_ctrl_resume(struct sio_nvme_ctrl *c, uint32_t entries, uint32_t id, uint64_t ioaddr,
			 volatile uint8_t *word);
/* From now on @word tells of each command before the drive hears of it. */
void sio_nvme_ctrl_record(struct sio_nvme_ctrl *c, volatile uint8_t *word);
/* Normal shutdown, as far as the controller answers. */
void sio_nvme_ctrl_shutdown(struct sio_nvme_ctrl *c);
/* 0; -EIO: fatal status, or reset by somebody else; -ENODEV: gone. */
int sio_nvme_ctrl_check(struct sio_nvme_ctrl *c);

/*
 * Do an admin command. @ret_status: SCT << 8 | SC; @ret_result: dword 0; either may be NULL, then a
 * status that is not success is an error.
 * -EIO, -ETIMEDOUT, -ENODEV: the controller is lost to us.
 */
int sio_nvme_ctrl_admin(struct sio_nvme_ctrl *c, const struct sio_nvme_command *cmd,
			uint32_t *ret_status, uint32_t *ret_result);
/* Identify into c->data; copied to @data (4,096 bytes). */
int sio_nvme_ctrl_identify(struct sio_nvme_ctrl *c, uint8_t cns, uint32_t nsid, void *data,
			   uint32_t *ret_status);
/*
 * What a client asks for: @to_drive of @bytes is in c->data before, @data of 4,096 bytes is what is
 * there afterwards.
 */
int sio_nvme_ctrl_raw(struct sio_nvme_ctrl *c, struct sio_nvme_command *cmd, const void *to_drive,
		      size_t bytes, void *data, uint32_t *ret_status, uint32_t *ret_result);
/*
 * Take the state of the admin queue from @word, and see the command through that was under way: it
 * was made known to the drive, or is now. -ESTALE: @word makes no sense.
 */
int sio_nvme_ctrl_catch_up(struct sio_nvme_ctrl *c, volatile uint8_t *word);
/* Ask for as many I/O queue pairs as there are. */
int sio_nvme_ctrl_queues(struct sio_nvme_ctrl *c, uint32_t *ret_pairs);
/* @vector 0: no interrupts. */
int sio_nvme_ctrl_create_cq(struct sio_nvme_ctrl *c, uint32_t qid, uint64_t addr, uint32_t entries,
			    uint32_t vector, uint32_t *ret_status);
int sio_nvme_ctrl_create_sq(struct sio_nvme_ctrl *c, uint32_t qid, uint64_t addr, uint32_t entries,
			    uint32_t *ret_status);
/* A queue that is not there (any more) is deleted. */
int sio_nvme_ctrl_delete_sq(struct sio_nvme_ctrl *c, uint32_t qid);
int sio_nvme_ctrl_delete_cq(struct sio_nvme_ctrl *c, uint32_t qid);

#endif
