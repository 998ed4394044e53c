/* SPDX-License-Identifier: BSD-2-Clause */
/* The admin queue: commands that only the manager submits. */
#include <nvme/types.h>

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "controller.h"
#include "error.h"
#include "protocol.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/nvme.h"

#define SLOW_MS 610000u /* as long as clients may allow a command, and more */
#define SLOW_ENTRIES 4u /* room for one, for one more, and for what a successor begins with */
#define FEATURE_QUEUES 0x07u
#define CONTIGUOUS 1u
#define CQ_IEN 2u
#define STATUS(sct, sc) ((uint32_t)(sct) << 8 | (uint32_t)(sc))

/* ---- the word ---- */
#define WORD_PLACE 0xfffu /* a queue has 4,096 entries at most */
#define WORD_HEAD_AT 12
#define WORD_CID_AT 24
#define WORD_SLOW_AT 40
#define WORD_PHASE (1ull << 56)
#define WORD_FLYING (1ull << 57)
#define WORD_SLOW (1ull << 58)
#define WORD_ALONE (1ull << 59)

/*
 * Tail, head, the last command's id, the phase that is expected next, whether that command may be
 * under way, and the same of a slow one, in one store: who follows us sees all or nothing of a
 * change.
 */
static void write_word(struct sio_nvme_ctrl *c)
{
	uint64_t v = c->tail | (uint64_t)c->head << WORD_HEAD_AT | (uint64_t)c->cid << WORD_CID_AT |
		     (uint64_t)c->slow.cid << WORD_SLOW_AT;

	if (!c->word)
		return;
	v |= (c->phase ? WORD_PHASE : 0) | (c->flying ? WORD_FLYING : 0);
	v |= (c->slow.state == SIO_NVME_SLOW_FLYING ? WORD_SLOW : 0) |
	     (c->slow.alone ? WORD_ALONE : 0);
	sio_write64(c->word, htole64(v));
	/*
	 * Before the doorbell that follows: pairs with the end of this manager's borrow, behind
	 * which its successor reads the word in read_word().
	 */
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

	c->tail = v & WORD_PLACE;
	c->head = v >> WORD_HEAD_AT & WORD_PLACE;
	c->cid = (uint16_t)(v >> WORD_CID_AT);
	c->phase = (v & WORD_PHASE) != 0;
	c->stray = (v & WORD_FLYING) != 0;
	c->stray_cid = c->cid;
	if (v & WORD_SLOW)
		c->slow = (struct sio_nvme_slow){.state = SIO_NVME_SLOW_FLYING,
						 .cid = (uint16_t)(v >> WORD_SLOW_AT),
						 .alone = (v & WORD_ALONE) != 0,
						 .deadline = sio_nvme_deadline(SLOW_MS)};
	if (c->tail < c->entries && c->head < c->entries && v < WORD_ALONE << 1)
		return 0;
	return sio_nvme_fail(-ESTALE, "%s: its manager left %#llx of its admin queue", c->d->name,
			     (unsigned long long)v);
}

/* ---- commands ---- */
static bool is_slow(const struct sio_nvme_ctrl *c, uint16_t cid)
{
	return c->slow.state == SIO_NVME_SLOW_FLYING && c->slow.cid == cid;
}

/* The id of the next command: no other in flight has it. */
static uint16_t next_id(struct sio_nvme_ctrl *c)
{
	c->cid++;
	if (is_slow(c, c->cid))
		c->cid++;
	return c->cid;
}

/* Submits @cmd with the id c->cid. The caller has noted that it is in flight. */
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
	/*
	 * The entry must be there before the word and the doorbell that announce it: pairs with the
	 * drive's order, in emu with the barrier in emu_nvme_fetch().
	 */
	sio_to_fabric_barrier();
	write_word(c);
	sio_write32(c->db, c->tail);
	sio_nvme_wake(c->db_map, c->db_sleeps);
}

static uint32_t status_of(uint32_t dw3)
{
	return dw3 >> 17 & 0x7ff;
}

static void slow_done(struct sio_nvme_ctrl *c, uint32_t status, uint32_t result)
{
	c->slow.state = SIO_NVME_SLOW_DONE;
	c->slow.status = status;
	c->slow.result = result;
}

/*
 * Take the next completion, if there is one: dword 0 and the high half, status in bits 17 to 31.
 * @ret_slow: it was the slow command's, which is DONE then.
 */
static bool take(struct sio_nvme_ctrl *c, uint32_t *ret_result, uint32_t *ret_dw3, bool *ret_slow)
{
	volatile uint8_t *cqe = c->cq.at + (size_t)c->head * 16;
	uint32_t dw3 = le32toh(sio_read32(cqe + 12));

	if ((dw3 >> 16 & 1) != c->phase)
		return false;
	sio_from_fabric_barrier(); /* pairs with the order of the drive's writes: emu_dma_write() */
	*ret_result = le32toh(sio_read32(cqe));
	*ret_dw3 = dw3;
	if (++c->head == c->entries) {
		c->head = 0;
		c->phase ^= 1;
	}
	*ret_slow = is_slow(c, (uint16_t)dw3);
	if (*ret_slow)
		slow_done(c, status_of(dw3), *ret_result);
	else if ((dw3 & 0xffff) == c->cid)
		c->flying = false;
	write_word(c);
	sio_write32(c->db + c->stride, c->head);
	sio_nvme_wake(c->db_map, c->db_sleeps);
	return true;
}

static int not_in_flight(const struct sio_nvme_ctrl *c, uint32_t dw3)
{
	return sio_nvme_fail(-EIO, "%s completed admin command %u, which is not in flight",
			     c->d->name, dw3 & 0xffff);
}

/*
 * Whether the drive has not completed a command by its @deadline. A drive may carry out admin
 * commands one after the other, so a command that waits behind a slow one has its 10 s from the
 * slow one's completion on.
 */
static bool is_late(const struct sio_nvme_ctrl *c, uint64_t *deadline)
{
	const uint64_t now = smartio_now_ns();

	if (c->slow.state == SIO_NVME_SLOW_FLYING && now < c->slow.deadline)
		*deadline = sio_nvme_deadline(SIO_NVME_ADMIN_MS);
	return now >= *deadline;
}

static int wait_completion(struct sio_nvme_ctrl *c, const struct sio_nvme_command *cmd,
			   uint32_t *ret_result, uint32_t *ret_dw3)
{
	uint64_t deadline = sio_nvme_deadline(SIO_NVME_ADMIN_MS);
	bool other;
	unsigned n = 0;
	int rc;

	for (;;) {
		if (take(c, ret_result, ret_dw3, &other)) {
			if (other)
				continue;
			if ((*ret_dw3 & 0xffff) == c->cid)
				return 0;
			if (c->stray && (*ret_dw3 & 0xffff) == c->stray_cid) {
				c->stray = false;
				continue;
			}
			return not_in_flight(c, *ret_dw3);
		}
		rc = sio_nvme_ctrl_check(c);
		if (rc)
			return rc;
		if (is_late(c, &deadline))
			return sio_nvme_fail(-ETIMEDOUT,
					     "%s did not answer admin command %#x within %u ms",
					     c->d->name, cmd->opcode, SIO_NVME_ADMIN_MS);
		sio_nvme_pause(&n);
	}
}

int sio_nvme_ctrl_admin(struct sio_nvme_ctrl *c, const struct sio_nvme_command *cmd,
			uint32_t *ret_status, uint32_t *ret_result)
{
	uint32_t result = 0, dw3 = 0, status;
	int rc;

	next_id(c);
	c->flying = true;
	put(c, cmd);
	rc = wait_completion(c, cmd, &result, &dw3);
	if (rc)
		return rc;
	status = status_of(dw3);
	if (ret_result)
		*ret_result = result;
	if (ret_status)
		*ret_status = status;
	else if (status)
		return sio_nvme_fail(-EIO, "%s refused admin command %#x: %s", c->d->name,
				     cmd->opcode, smartio_nvme_status_string(status));
	return 0;
}

/* Waits for the command of the previous manager that was under way. */
static int await_stray(struct sio_nvme_ctrl *c)
{
	uint64_t deadline = sio_nvme_deadline(SIO_NVME_ADMIN_MS);
	uint32_t result, dw3;
	unsigned n = 0;
	bool other;
	int rc;

	while (c->stray) {
		if (take(c, &result, &dw3, &other)) {
			c->stray = other || (dw3 & 0xffff) != c->stray_cid;
			continue;
		}
		rc = sio_nvme_ctrl_check(c);
		if (rc)
			return rc;
		if (is_late(c, &deadline))
			return sio_nvme_fail(
				-ESTALE,
				"%s does not complete the admin commands of its previous manager",
				c->d->name);
		sio_nvme_pause(&n);
	}
	return 0;
}

/*
 * Whether the dead manager has rung for its last command is unknown, and a drive need not take the
 * same tail twice. So another command is put behind it: then the tail is a new one. A slow command
 * goes on, and its completion is waited for as if it were ours.
 */
int sio_nvme_ctrl_catch_up(struct sio_nvme_ctrl *c, volatile uint8_t *word)
{
	struct sio_nvme_command probe = {.opcode = nvme_admin_get_features,
					 .cdw10 = FEATURE_QUEUES};
	uint32_t status;
	int rc = read_word(c, word);

	if (rc == 0 && c->entries < 3)
		rc = sio_nvme_fail(-ESTALE, "%s: an admin queue of 2 entries cannot be taken over",
				   c->d->name);
	if (rc)
		return rc;
	c->word = word;
	rc = sio_nvme_ctrl_admin(c, &probe, &status, NULL);
	return rc ? rc : await_stray(c);
}

/* Fills a page of data; what an earlier command left there is not this client's to read. */
static void fill(const struct sio_nvme_part *page, const void *to_drive, size_t bytes)
{
	for (size_t i = 0; i < SIO_NVME_PAGE; i += 8)
		sio_write64(page->at + i, 0);
	sio_copy_to(page->at, to_drive, bytes);
}

int sio_nvme_ctrl_raw(struct sio_nvme_ctrl *c, struct sio_nvme_command *cmd, const void *to_drive,
		      size_t bytes, void *data, uint32_t *ret_status, uint32_t *ret_result)
{
	int rc;

	cmd->prp1 = c->data.ioaddr;
	fill(&c->data, to_drive, bytes);
	rc = sio_nvme_ctrl_admin(c, cmd, ret_status, ret_result);
	if (rc == 0)
		sio_copy_from(data, c->data.at, SIO_NVME_PAGE);
	return rc;
}

int sio_nvme_ctrl_slow_start(struct sio_nvme_ctrl *c, struct sio_nvme_command *cmd,
			     const void *to_drive, size_t bytes, bool alone)
{
	if (c->slow.state != SIO_NVME_SLOW_FREE)
		return -EBUSY;
	if (c->entries < SLOW_ENTRIES)
		return -EOPNOTSUPP;
	cmd->prp1 = c->slow_data.ioaddr;
	fill(&c->slow_data, to_drive, bytes);
	c->slow = (struct sio_nvme_slow){.state = SIO_NVME_SLOW_FLYING,
					 .cid = next_id(c),
					 .alone = alone,
					 .deadline = sio_nvme_deadline(SLOW_MS)};
	put(c, cmd);
	return 0;
}

int sio_nvme_ctrl_slow_look(struct sio_nvme_ctrl *c)
{
	uint32_t result, dw3;
	bool ours;

	while (c->slow.state == SIO_NVME_SLOW_FLYING && take(c, &result, &dw3, &ours))
		if (!ours)
			return not_in_flight(c, dw3);
	if (c->slow.state == SIO_NVME_SLOW_FLYING && smartio_now_ns() >= c->slow.deadline)
		return sio_nvme_fail(-ETIMEDOUT, "%s did not complete an admin command in %u s",
				     c->d->name, SLOW_MS / 1000);
	return 0;
}

void sio_nvme_ctrl_slow_end(struct sio_nvme_ctrl *c, void *data)
{
	/* Completion and data lie with one host: who sees the one sees the other. */
	if (data)
		sio_copy_from(data, c->slow_data.at, SIO_NVME_PAGE);
	memset(&c->slow, 0, sizeof(c->slow));
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
			    uint32_t cq, uint32_t *ret_status)
{
	struct sio_nvme_command cmd = {.opcode = nvme_admin_create_sq,
				       .prp1 = addr,
				       .cdw10 = (entries - 1) << 16 | qid,
				       .cdw11 = cq << 16 | CONTIGUOUS};

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

int sio_nvme_ctrl_abort(struct sio_nvme_ctrl *c, uint32_t qid, uint16_t cid)
{
	struct sio_nvme_command cmd = {.opcode = nvme_admin_abort_cmd,
				       .cdw10 = (uint32_t)cid << 16 | qid};
	uint32_t status;

	return sio_nvme_ctrl_admin(c, &cmd, &status, NULL);
}
