/* SPDX-License-Identifier: BSD-2-Clause */
#include <nvme/types.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "controller.h"
#include "error.h"
#include "protocol.h"
#include "smartio/ext.h"
#include "smartio/io.h"

#define DOORBELLS 0x1000u
#define CC_EN 1u
#define CC_SHN_NORMAL (1u << 14)
#define CC_SHN_MASK (3u << 14)
#define CC_OURS (CC_EN | 6u << 16 | 4u << 20) /* 64-byte and 16-byte entries, 4 KiB pages */
#define CSTS_RDY 1u
#define CSTS_CFS 2u
#define CSTS_SHST_MASK (3u << 2)
#define CSTS_SHST_DONE (2u << 2)
#define GONE 0xffffffffu
#define SHUTDOWN_MS 5000u

static size_t round_up(size_t bytes)
{
	return (bytes + SIO_NVME_PAGE - 1) & ~(size_t)(SIO_NVME_PAGE - 1);
}

static int gone(struct sio_nvme_ctrl *c)
{
	return sio_nvme_fail(-ENODEV, "%s does not answer: its registers read as all ones",
			     c->d->name);
}

static int map_registers(struct sio_nvme_ctrl *c)
{
	struct sio_nvme_device *d = c->d;
	sci_error_t err;

	SCIConnectDeviceSegment(d->handle, &c->bar, 0, SCI_MEMTYPE_BAR, NULL, NULL, 0, &err);
	if (err != SCI_ERR_OK) {
		c->bar = NULL;
		return sio_nvme_fail_sci(err, "%s: cannot connect BAR 0", d->name);
	}
	c->reg = SCIMapRemoteSegment(c->bar, &c->reg_map, 0, DOORBELLS, NULL,
				     SCI_FLAG_IO_MAP_IOSPACE, &err);
	if (err != SCI_ERR_OK) {
		c->reg_map = NULL;
		/* Another borrower holds them: refused, not mapped to be lost. */
		if (err == SCI_ERR_ACCESS)
			return sio_nvme_fail(-EBUSY, "another manager holds the registers of %s",
					     d->name);
		return sio_nvme_fail_sci(err, "%s: cannot map its registers", d->name);
	}
	c->reg_sleeps = smartio_map_sleep_word(c->reg_map);
	if (!smartio_holds_registers(d->handle))
		return sio_nvme_fail(-EBUSY, "another manager holds the registers of %s", d->name);
	return 0;
}

/* What the capabilities say, and whether this driver can work with it. */
static int read_capabilities(struct sio_nvme_ctrl *c, uint32_t timeout_ms)
{
	c->cap = sio_read64(c->reg + NVME_REG_CAP);
	c->version = sio_read32(c->reg + NVME_REG_VS);
	if (c->cap == UINT64_MAX)
		return gone(c);
	c->max_entries = (uint32_t)NVME_CAP_MQES(c->cap) + 1;
	c->stride = 4u << NVME_CAP_DSTRD(c->cap);
	c->timeout_ms = timeout_ms ? timeout_ms : (uint32_t)NVME_CAP_TO(c->cap) * 500 + 500;
	if (!(NVME_CAP_CSS(c->cap) & NVME_CAP_CSS_NVM))
		return sio_nvme_fail(-ENOTSUP, "%s has no NVM command set", c->d->name);
	if (NVME_CAP_MPSMIN(c->cap) != 0)
		return sio_nvme_fail(-ENOTSUP, "%s has no pages of 4 KiB, but of %u KiB at least",
				     c->d->name, 4u << NVME_CAP_MPSMIN(c->cap));
	if (c->max_entries < 2)
		return sio_nvme_fail(-ENOTSUP,
				     "%s supports only queues of one entry; at least 2 are needed",
				     c->d->name);
	return 0;
}

int sio_nvme_ctrl_doorbells(struct sio_nvme_ctrl *c)
{
	size_t size = round_up(2 * c->stride);
	sci_error_t err;

	c->db = SCIMapRemoteSegment(c->bar, &c->db_map, DOORBELLS, size, NULL,
				    SCI_FLAG_IO_MAP_IOSPACE, &err);
	if (err != SCI_ERR_OK) {
		c->db_map = NULL;
		return sio_nvme_fail_sci(err, "%s: cannot map its doorbells", c->d->name);
	}
	c->db_sleeps = smartio_map_sleep_word(c->db_map);
	return 0;
}

int sio_nvme_ctrl_open(struct sio_nvme_ctrl *c, struct sio_nvme_device *d, uint32_t timeout_ms)
{
	int rc;

	memset(c, 0, sizeof(*c));
	c->d = d;
	rc = map_registers(c);
	if (rc == 0)
		rc = read_capabilities(c, timeout_ms);
	if (rc)
		sio_nvme_ctrl_done(c, true);
	return rc;
}

void sio_nvme_ctrl_done(struct sio_nvme_ctrl *c, bool stopped)
{
	sci_error_t err;

	if (c->memory.d && stopped)
		sio_nvme_mem_done(&c->memory);
	if (c->db_map)
		SCIUnmapSegment(c->db_map, 0, &err);
	if (c->reg_map)
		SCIUnmapSegment(c->reg_map, 0, &err);
	if (c->bar)
		SCIDisconnectSegment(c->bar, 0, &err);
	memset(c, 0, sizeof(*c));
}

/*
 * Wait until CSTS & @mask is @want. Fatal status ends the wait for readiness, as it will not come;
 * it does not end the wait for a reset, which is what clears it.
 */
static int wait_status(struct sio_nvme_ctrl *c, uint32_t mask, uint32_t want, uint32_t ms,
		       const char *what)
{
	uint64_t deadline = sio_nvme_deadline(ms);
	unsigned n = 0;
	uint32_t csts;

	for (;;) {
		csts = sio_read32(c->reg + NVME_REG_CSTS);
		if (csts == GONE || smartio_device_lost(c->d->handle))
			return gone(c);
		if ((csts & mask) == want)
			return 0;
		if (want && csts & CSTS_CFS)
			return sio_nvme_fail(-EIO, "%s went to fatal status (CSTS %#x): %s",
					     c->d->name, csts, what);
		if (smartio_now_ns() >= deadline)
			return sio_nvme_fail(-ETIMEDOUT, "%s: %s took more than %u ms (CSTS %#x)",
					     c->d->name, what, ms, csts);
		sio_nvme_pause(&n);
	}
}

static void write_cc(struct sio_nvme_ctrl *c, uint32_t cc)
{
	sio_write32(c->reg + NVME_REG_CC, cc);
	sio_nvme_wake(c->reg_map, c->reg_sleeps);
}

int sio_nvme_ctrl_disable(struct sio_nvme_ctrl *c)
{
	uint32_t cc = sio_read32(c->reg + NVME_REG_CC);
	int rc;

	c->enabled = false;
	if (cc == GONE)
		return gone(c);
	/* A controller that becomes ready must not be told to stop halfway (section 3.1.5). */
	if (cc & CC_EN && !(sio_read32(c->reg + NVME_REG_CSTS) & (CSTS_RDY | CSTS_CFS))) {
		rc = wait_status(c, CSTS_RDY, CSTS_RDY, c->timeout_ms, "becoming ready");
		if (rc == -ENODEV)
			return rc;
	}
	write_cc(c, cc & ~(CC_EN | CC_SHN_MASK));
	return wait_status(c, CSTS_RDY, 0, c->timeout_ms, "the reset");
}

/* Submission queue, completion queue, two pages of data: each from the start of a page on. */
static size_t admin_size(const struct sio_nvme_ctrl *c)
{
	return round_up((size_t)c->entries * 64) + round_up((size_t)c->entries * 16) +
	       2 * SIO_NVME_PAGE;
}

static void lay_out(struct sio_nvme_ctrl *c)
{
	const size_t sq = round_up((size_t)c->entries * 64), cq = round_up((size_t)c->entries * 16);

	c->sq = (struct sio_nvme_part){c->memory.at, c->memory.ioaddr};
	c->cq = (struct sio_nvme_part){c->memory.at + sq, c->memory.ioaddr + sq};
	c->data = (struct sio_nvme_part){c->memory.at + sq + cq, c->memory.ioaddr + sq + cq};
	c->slow_data =
		(struct sio_nvme_part){c->data.at + SIO_NVME_PAGE, c->data.ioaddr + SIO_NVME_PAGE};
}

static int admin_memory(struct sio_nvme_ctrl *c)
{
	const unsigned hints = SCI_MEMACCESS_DEVICE_READ | SCI_MEMACCESS_DEVICE_WRITE |
			       SCI_MEMACCESS_HOST_READ | SCI_MEMACCESS_HOST_WRITE;
	int rc = c->memory.d ? 0 : -EEXIST;

	/* A manager that could not stop the drive may have left the first ones mapped for it. */
	for (unsigned i = 0; rc == -EEXIST && i < SIO_NVME_ADMIN_SEGMENTS; i++) {
		c->memory_id = SIO_NVME_ADMIN_SEGMENT + i;
		rc = sio_nvme_mem_lasting(c->d, c->memory_id, admin_size(c), hints, &c->memory);
	}
	if (rc == 0)
		lay_out(c);
	return rc;
}

static uint32_t aqa_of(uint32_t entries)
{
	return (entries - 1) << 16 | (entries - 1);
}

int sio_nvme_ctrl_enable(struct sio_nvme_ctrl *c, uint32_t entries)
{
	int rc;

	if (entries < 2 || entries > 4096)
		return sio_nvme_fail(-EINVAL, "an admin queue has 2 to 4096 entries, not %u",
				     entries);
	c->entries = entries;
	rc = admin_memory(c);
	if (rc)
		return rc;
	for (size_t i = 0; i < (size_t)entries * 16; i += 8)
		sio_write64(c->cq.at + i, 0);
	c->tail = c->head = 0;
	c->phase = 1;
	memset(&c->slow, 0, sizeof(c->slow));
	sio_write32(c->reg + NVME_REG_AQA, aqa_of(entries));
	sio_write64(c->reg + NVME_REG_ASQ, c->sq.ioaddr);
	sio_write64(c->reg + NVME_REG_ACQ, c->cq.ioaddr);
	/* The controller takes the addresses when it sees EN: pairs with enable() of emu. */
	sio_to_fabric_barrier();
	write_cc(c, CC_OURS);
	c->enabled = true;
	return wait_status(c, CSTS_RDY, CSTS_RDY, c->timeout_ms, "becoming ready");
}

/* Does the controller run with this admin queue, with no stop or reset since? */
static bool is_running(struct sio_nvme_ctrl *c)
{
	const uint32_t csts = sio_read32(c->reg + NVME_REG_CSTS);

	return sio_read32(c->reg + NVME_REG_CC) == CC_OURS && csts != GONE &&
	       (csts & (CSTS_RDY | CSTS_CFS | CSTS_SHST_MASK)) == CSTS_RDY &&
	       sio_read32(c->reg + NVME_REG_AQA) == aqa_of(c->entries) &&
	       sio_read64(c->reg + NVME_REG_ASQ) == c->sq.ioaddr &&
	       sio_read64(c->reg + NVME_REG_ACQ) == c->cq.ioaddr;
}

int sio_nvme_ctrl_resume(struct sio_nvme_ctrl *c, uint32_t entries, uint32_t id, uint64_t ioaddr,
			 volatile uint8_t *word)
{
	int rc;

	c->entries = entries;
	c->memory_id = id;
	rc = sio_nvme_mem_again(c->d, id, admin_size(c), ioaddr, &c->memory);
	if (rc)
		return rc;
	lay_out(c);
	if (!is_running(c))
		return sio_nvme_fail(
			-ESTALE, "%s no longer runs with the admin queue of its previous manager",
			c->d->name);
	rc = sio_nvme_ctrl_doorbells(c);
	if (rc)
		return rc;
	c->enabled = true;
	return sio_nvme_ctrl_catch_up(c, word);
}

void sio_nvme_ctrl_shutdown(struct sio_nvme_ctrl *c)
{
	uint32_t cc = sio_read32(c->reg + NVME_REG_CC);

	if (cc == GONE || !(cc & CC_EN) || sio_nvme_ctrl_check(c))
		return;
	write_cc(c, (cc & ~CC_SHN_MASK) | CC_SHN_NORMAL);
	wait_status(c, CSTS_SHST_MASK, CSTS_SHST_DONE, SHUTDOWN_MS, "the shutdown");
}

int sio_nvme_ctrl_check(struct sio_nvme_ctrl *c)
{
	uint32_t csts = sio_read32(c->reg + NVME_REG_CSTS);

	if (csts == GONE || smartio_device_lost(c->d->handle))
		return gone(c);
	if (csts & CSTS_CFS)
		return sio_nvme_fail(-EIO, "%s went to fatal status (CSTS %#x)", c->d->name, csts);
	if (c->enabled && (!(csts & CSTS_RDY) || !(sio_read32(c->reg + NVME_REG_CC) & CC_EN)))
		return sio_nvme_fail(-EIO, "%s was reset by somebody else", c->d->name);
	return 0;
}
