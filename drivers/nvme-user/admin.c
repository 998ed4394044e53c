/* SPDX-License-Identifier: BSD-2-Clause */
/* The admin queue: commands that only the manager gives. */
#include <nvme/types.h>

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "controller.h"
#include "error.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/nvme.h"

#define ADMIN_MS 10000u
#define STRAY_MS 610000u /* as long as clients may allow a command, and more */
#define FEATURE_QUEUES 0x07u
#define CONTIGUOUS 1u
#define CQ_IEN 2u
#define STATUS(sct, sc) ((uint32_t)(sct) << 8 | (uint32_t)(sc))

/* ---- the word ---- */
#define WORD_PHASE (1ull << 48)
#define WORD_FLYING (1ull << 49)

/*
 * Tail, head, the last command's id, the phase that is expected next, and whether that command may
 * be under way, in one store: who follows us sees all or nothing of a change.
 */
static void write_word(struct sio_nvme_ctrl *c)
{
	uint64_t v = c->tail | (uint64_t)c->head << 16 | (uint64_t)c->cid << 32;

	if (!c->word)
		return;
	v |= (c->phase ? WORD_PHASE : 0) | (c->flying ? WORD_FLYING : 0);
	sio_write64(c->word, htole64(v));
	/* Before the doorbell that follows. */
	sio_to_fabric_barrier();
}

void sio_nvme_ctrl_record(struct sio_nvme_ctrl *c, volatile uint8_t *word)
{
	c->word = word;
	write_word(c);
}

static int read_word(struct sio_nvme_ctrl *c, volatile uint8_t *word)
{
	uint64_t v = le64toh(sio_read64(word));

	c->tail = v & 0xffff;
	c->head = v >> 16 & 0xffff;
	c->cid = (uint16_t)(v >> 32);
	c->phase = (v & WORD_PHASE) != 0;
	c->stray = (v & WORD_FLYING) != 0;
	c->stray_cid = c->cid;
	if (c->tail < c->entries && c->head < c->entries && v < WORD_FLYING << 1)
		return 0;
	return sio_nvme_fail(-ESTALE, "%s: its manager left %#llx of its admin queue", c->d->name,
			     (unsigned long long)v);
}

/* ---- commands ---- */
static void put(struct sio_nvme_ctrl *c, const struct sio_nvme_command *cmd)
{
	uint32_t sqe[16] = {0};

	sqe[0] = htole32(cmd->opcode | (uint32_t)c->cid << 16);
	sqe[1] = htole32(cmd->nsid);
	sqe[2] = htole32(cmd->cdw2);
	sqe[3] = htole32(cmd->cdw3);
	sqe[6] = htole32((uint32_t)cmd->prp1);
	sqe[7] = htole32((uint32_t)(cmd->prp1 >> 32));
	sqe[10] = htole32(cmd->cdw10);
	sqe[11] = htole32(cmd->cdw11);
	sqe[12] = htole32(cmd->cdw12);
	sqe[13] = htole32(cmd->cdw13);
	sqe[14] = htole32(cmd->cdw14);
	sqe[15] = htole32(cmd->cdw15);
	sio_copy_to(c->sq.at + (size_t)c->tail * 64, sqe, sizeof(sqe));
	c->tail = c->tail + 1 == c->entries ? 0 : c->tail + 1;
	c->flying = true;
	/* The entry must be there before the word and the doorbell that announce it. */
	sio_to_fabric_barrier();
	write_word(c);
	sio_write32(c->db, c->tail);
	sio_nvme_wake(c->db_map, c->db_sleeps);
}

/* Take the next completion, if there is one: dword 0 and the high half, status in bits 17 to 31. */
static bool take(struct sio_nvme_ctrl *c, uint32_t *ret_result, uint32_t *ret_dw3)
{
	volatile uint8_t *cqe = c->cq.at + (size_t)c->head * 16;
	uint32_t dw3 = le32toh(sio_read32(cqe + 12));

	if ((dw3 >> 16 & 1) != c->phase)
		return false;
	sio_from_fabric_barrier();
	*ret_result = le32toh(sio_read32(cqe));
	*ret_dw3 = dw3;
	if (++c->head == c->entries) {
		c->head = 0;
		c->phase ^= 1;
	}
	if ((dw3 & 0xffff) == c->cid)
		c->flying = false;
	write_word(c);
	sio_write32(c->db + c->stride, c->head);
	sio_nvme_wake(c->db_map, c->db_sleeps);
	return true;
}

static int wait_completion(struct sio_nvme_ctrl *c, const struct sio_nvme_command *cmd,
			   uint32_t *ret_result, uint32_t *ret_dw3)
{
	/* A client may have the drive waited for longer, but not given up sooner, for all. */
	const uint32_t limit_ms = cmd->timeout_ms > ADMIN_MS ? cmd->timeout_ms : ADMIN_MS;
	uint64_t deadline = sio_nvme_deadline(limit_ms);
	unsigned n = 0;
	int rc;

	for (;;) {
		if (take(c, ret_result, ret_dw3)) {
			if ((*ret_dw3 & 0xffff) == c->cid)
				return 0;
			if (c->stray && (*ret_dw3 & 0xffff) == c->stray_cid) {
				c->stray = false;
				continue;
			}
			return sio_nvme_fail(-EIO,
					     "%s completed admin command %u, which is not "
					     "in flight",
					     c->d->name, *ret_dw3 & 0xffff);
		}
		rc = sio_nvme_ctrl_check(c);
		if (rc)
			return rc;
		if (smartio_now_ns() >= deadline)
			return sio_nvme_fail(-ETIMEDOUT,
					     "%s did not answer admin command %#x within %u ms",
					     c->d->name, cmd->opcode, limit_ms);
		sio_nvme_pause(&n);
	}
}

int sio_nvme_ctrl_admin(struct sio_nvme_ctrl *c, const struct sio_nvme_command *cmd,
			uint32_t *ret_status, uint32_t *ret_result)
{
	uint32_t result = 0, dw3 = 0, status;
	int rc;

	c->cid++;
	put(c, cmd);
	rc = wait_completion(c, cmd, &result, &dw3);
	if (rc)
		return rc;
	status = dw3 >> 17 & 0x7ff;
	if (ret_result)
		*ret_result = result;
	if (ret_status)
		*ret_status = status;
	else if (status)
		return sio_nvme_fail(-EIO, "%s refused admin command %#x: %s", c->d->name,
				     cmd->opcode, smartio_nvme_status_string(status));
	return 0;
}

/* @ms: for the one that was under way. */
static int await_stray(struct sio_nvme_ctrl *c, uint32_t ms)
{
	uint64_t deadline = sio_nvme_deadline(ms);
	uint32_t result, dw3;
	unsigned n = 0;
	int rc;

	while (c->stray) {
		if (take(c, &result, &dw3)) {
			c->stray = (dw3 & 0xffff) != c->stray_cid;
			continue;
		}
		rc = sio_nvme_ctrl_check(c);
		if (rc)
			return rc;
		if (smartio_now_ns() >= deadline)
			return sio_nvme_fail(-ESTALE,
					     "%s does not complete what its last manager gave it",
					     c->d->name);
		sio_nvme_pause(&n);
	}
	return 0;
}

/* It is the last entry. Formatting and the like, which clients ask for, takes its time. */
static uint32_t stray_limit(const struct sio_nvme_ctrl *c)
{
	const uint32_t last = (c->tail + c->entries - 1) % c->entries;
	const uint32_t opcode = le32toh(sio_read32(c->sq.at + (size_t)last * 64)) & 0xff;

	return opcode <= nvme_admin_get_features ? ADMIN_MS : STRAY_MS;
}

/*
 * Whether the dead one has rung for its last command nobody knows, and a drive need not take the
 * same tail twice. So another command goes behind it: with that the tail is a new one.
 */
int sio_nvme_ctrl_catch_up(struct sio_nvme_ctrl *c, volatile uint8_t *word)
{
	struct sio_nvme_command probe = {.opcode = nvme_admin_get_features,
					 .cdw10 = FEATURE_QUEUES};
	uint32_t status, limit_ms;
	int rc = read_word(c, word);

	if (rc == 0 && c->entries < 3)
		rc = sio_nvme_fail(-ESTALE, "%s: an admin queue of 2 entries cannot be taken over",
				   c->d->name);
	if (rc)
		return rc;
	c->word = word;
	limit_ms = stray_limit(c);
	rc = sio_nvme_ctrl_admin(c, &probe, &status, NULL);
	return rc ? rc : await_stray(c, limit_ms);
}

int sio_nvme_ctrl_raw(struct sio_nvme_ctrl *c, struct sio_nvme_command *cmd, const void *to_drive,
		      size_t bytes, void *data, uint32_t *ret_status, uint32_t *ret_result)
{
	int rc;

	cmd->prp1 = c->data.ioaddr;
	/* What an earlier command left there is not this client's. */
	for (size_t i = 0; i < SIO_NVME_PAGE; i += 8)
		sio_write64(c->data.at + i, 0);
	sio_copy_to(c->data.at, to_drive, bytes);
	rc = sio_nvme_ctrl_admin(c, cmd, ret_status, ret_result);
	if (rc == 0)
		sio_copy_from(data, c->data.at, SIO_NVME_PAGE);
	return rc;
}

int sio_nvme_ctrl_identify(struct sio_nvme_ctrl *c, uint8_t cns, uint32_t nsid, void *data,
			   uint32_t *ret_status)
{
	struct sio_nvme_command cmd = {
		.opcode = nvme_admin_identify, .nsid = nsid, .cdw10 = cns, .prp1 = c->data.ioaddr};
	int rc = sio_nvme_ctrl_admin(c, &cmd, ret_status, NULL);

	/* Completion and data lie with one host: who sees the one sees the other. */
	if (rc == 0)
		sio_copy_from(data, c->data.at, NVME_IDENTIFY_DATA_SIZE);
	return rc;
}

int sio_nvme_ctrl_queues(struct sio_nvme_ctrl *c, uint32_t *ret_pairs)
{
	struct sio_nvme_command cmd = {.opcode = nvme_admin_set_features,
				       .cdw10 = FEATURE_QUEUES,
				       .cdw11 = 0xfffeu << 16 | 0xfffeu}; /* 0's based; most */
	uint32_t result = 0, sqs, cqs;
	int rc = sio_nvme_ctrl_admin(c, &cmd, NULL, &result);

	if (rc)
		return rc;
	sqs = (result & 0xffff) + 1;
	cqs = (result >> 16) + 1;
	*ret_pairs = sqs < cqs ? sqs : cqs;
	if (*ret_pairs > 0xffff)
		return sio_nvme_fail(-EIO, "%s says that it has %u queue pairs", c->d->name,
				     *ret_pairs);
	return 0;
}

int sio_nvme_ctrl_create_cq(struct sio_nvme_ctrl *c, uint32_t qid, uint64_t addr, uint32_t entries,
			    uint32_t vector, uint32_t *ret_status)
{
	uint32_t interrupts = vector ? vector << 16 | CQ_IEN : 0;
	struct sio_nvme_command cmd = {.opcode = nvme_admin_create_cq,
				       .prp1 = addr,
				       .cdw10 = (entries - 1) << 16 | qid,
				       .cdw11 = CONTIGUOUS | interrupts};

	return sio_nvme_ctrl_admin(c, &cmd, ret_status, NULL);
}

int sio_nvme_ctrl_create_sq(struct sio_nvme_ctrl *c, uint32_t qid, uint64_t addr, uint32_t entries,
			    uint32_t *ret_status)
{
	struct sio_nvme_command cmd = {.opcode = nvme_admin_create_sq,
				       .prp1 = addr,
				       .cdw10 = (entries - 1) << 16 | qid,
				       .cdw11 = qid << 16 | CONTIGUOUS};

	return sio_nvme_ctrl_admin(c, &cmd, ret_status, NULL);
}

static int delete_queue(struct sio_nvme_ctrl *c, uint8_t opcode, uint32_t qid)
{
	struct sio_nvme_command cmd = {.opcode = opcode, .cdw10 = qid};
	uint32_t status = 0;
	int rc = sio_nvme_ctrl_admin(c, &cmd, &status, NULL);

	if (rc)
		return rc;
	if (status && status != STATUS(NVME_SCT_CMD_SPECIFIC, NVME_SC_QID_INVALID))
		return sio_nvme_fail(-EIO, "%s does not delete %s queue %u: %s", c->d->name,
				     opcode == nvme_admin_delete_sq ? "submission" : "completion",
				     qid, smartio_nvme_status_string(status));
	return 0;
}

int sio_nvme_ctrl_delete_sq(struct sio_nvme_ctrl *c, uint32_t qid)
{
	return delete_queue(c, nvme_admin_delete_sq, qid);
}

int sio_nvme_ctrl_delete_cq(struct sio_nvme_ctrl *c, uint32_t qid)
{
	return delete_queue(c, nvme_admin_delete_cq, qid);
}
