/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration space, the lender's side (borrower/shadow_config.c: the borrower's). The driver of
 * a shadow needs few registers of the device itself, and may write few bits of them. The important
 * one is the bus master bit: a driver that has cleared it frees memory that the device knows of.
 * These may not be written by a borrower: memory space, because this host's kernel writes the
 * interrupt table and resets the function; BARs; error reporting, since some hosts stop at a
 * reported error; power states; resets.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/pci_regs.h>

#include "smartiod/lender/lend.h"
#include "smartiod/lender/requests.h"

#define STATUS                                                                                     \
	(PCI_STATUS_PARITY | PCI_STATUS_SIG_TARGET_ABORT | PCI_STATUS_REC_TARGET_ABORT |           \
	 PCI_STATUS_REC_MASTER_ABORT | PCI_STATUS_SIG_SYSTEM_ERROR | PCI_STATUS_DETECTED_PARITY)
#define CAPABILITIES 48 /* that a function can have, at most */

/* Bits that may be written: of the lower half, and those of the upper that a 1 clears. */
static const struct {
	uint16_t low, high;
} writable[SIO_SHADOW_REGISTERS] = {
	[SIO_SHADOW_COMMAND] = {PCI_COMMAND_MASTER, STATUS},
	[SIO_SHADOW_CONTROL] = {PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN |
					PCI_EXP_DEVCTL_READRQ,
				PCI_EXP_DEVSTA_CED | PCI_EXP_DEVSTA_NFED | PCI_EXP_DEVSTA_FED |
					PCI_EXP_DEVSTA_URD},
};

struct config_op {
	struct smartiod_lend lend;
	enum { FIRST, NEXT, LOW, HIGH, READ } state;
	uint32_t reg, value, mask;
	uint32_t at;   /* of the register; while it is sought: of a capability */
	unsigned seen; /* capabilities */
};

static void ask(struct smartiod *d, struct config_op *c, uint32_t offset, uint32_t width)
{
	struct sio_req_config req = {
		.h.op = SIO_OP_CONFIG,
		.device = c->lend.loan->device->port.id,
		.offset = offset,
		.width = width,
	};

	smartiod_port_ask(d, &c->lend.op, &req, sizeof(req));
}

static void change(struct smartiod *d, struct config_op *c, uint32_t offset, uint32_t value,
		   uint32_t mask)
{
	struct smartiod_device *dev = c->lend.loan->device;
	struct sio_req_config req = {
		.h = {.op = SIO_OP_CONFIG, .flags = SIO_CONFIG_WRITE},
		.device = dev->port.id,
		.offset = offset,
		.width = 2,
		.value = value & mask,
		.mask = mask,
	};

	if (c->reg == SIO_SHADOW_COMMAND && c->state == LOW)
		dev->lent->stopped = !value;
	smartiod_port_ask(d, &c->lend.op, &req, sizeof(req));
}

/* What is to be written, half by half; then it is read. */
static void go_on(struct smartiod *d, struct config_op *c)
{
	uint32_t low = c->mask & 0xffff, high = c->mask >> 16;

	if (low) {
		c->state = LOW;
		c->mask &= ~low;
		change(d, c, c->at, c->value & low, low);
	} else if (high) {
		c->state = HIGH;
		c->mask = 0;
		change(d, c, c->at + 2, c->value >> 16 & high, high);
	} else {
		c->state = READ;
		ask(d, c, c->at, 4);
	}
}

/* The next capability; the register, if it is that of PCI Express. */
static void look(struct smartiod *d, struct config_op *c, uint32_t value)
{
	if (c->state == NEXT && (value & 0xff) == PCI_CAP_ID_EXP) {
		c->at += PCI_EXP_DEVCTL;
		go_on(d, c);
		return;
	}
	c->at = (c->state == NEXT ? value >> 8 : value) & 0xfc;
	if (c->at < PCI_STD_HEADER_SIZEOF || c->seen++ == CAPABILITIES) {
		smartiod_lend_fail(d, &c->lend, -EOPNOTSUPP, "%s has no PCI Express capability",
				   c->lend.loan->device->topo->name);
		return;
	}
	c->state = NEXT;
	ask(d, c, c->at, 4);
}

/* Is it there? A virtual function has ones in the place of its ids, so the class says it. */
static uint32_t ids(const struct smartiod_device *dev, uint32_t class_and_revision)
{
	return class_and_revision == UINT32_MAX ? UINT32_MAX
						: dev->port.vendor | dev->port.device << 16;
}

static void config_step(struct smartiod *d, struct smartiod_op *op, const struct smartiod_answer *a)
{
	struct config_op *c = (struct config_op *)op;
	struct smartiod_loan *l = c->lend.loan;
	struct sio_prep_config rep = {.borrower = sio_to_le64(l->id),
				      .fdid = sio_to_le32(l->device->fdid)};
	const struct sio_evt_config *evt = a->msg;

	if (a->error) {
		smartiod_lend_fail(d, &c->lend, a->error, "%s: %s", l->device->topo->name, a->text);
		return;
	}
	if (c->state == READ) {
		rep.value = sio_to_le32(c->reg == SIO_SHADOW_ID ? ids(l->device, evt->value)
								: evt->value);
		smartiod_lend_done(d, &c->lend, &rep, sizeof(rep), NULL, 0);
	} else if (smartiod_loan_ended(l)) {
		smartiod_lend_fail(d, &c->lend, -ENOTCONN, "%s: the borrow has ended",
				   l->device->topo->name);
	} else if (c->state == FIRST || c->state == NEXT) {
		look(d, c, evt->value);
	} else {
		go_on(d, c);
	}
}

static int check(const struct smartiod_loan *l, const struct sio_peer_config *m,
		 struct sio_err *reterr)
{
	const struct sio_borrow *b = sio_ledger_find(&l->device->ledger, l->id);
	uint32_t reg = sio_from_le32(m->reg), mask = sio_from_le32(m->mask), may;

	if (reg >= SIO_SHADOW_REGISTERS)
		return sio_fail(reterr, -EINVAL,
				"%s: register %" PRIu32 " of configuration space, less than %d is "
				"right",
				l->device->topo->name, reg, SIO_SHADOW_REGISTERS);
	may = writable[reg].low | (uint32_t)writable[reg].high << 16;
	if (mask & ~may)
		return sio_fail(reterr, -EACCES,
				"%s: bits %#" PRIx32 " of register %" PRIu32
				" of configuration space, a borrower may write %#" PRIx32,
				l->device->topo->name, mask, reg, may);
	if (mask && !(b && b->exclusive))
		return sio_fail(reterr, -EACCES,
				"%s: only an exclusive borrower may write to configuration space",
				l->device->topo->name);
	return 0;
}

int smartiod_lend_config(struct smartiod *d, const struct smartiod_from *from, const void *msg,
			 struct sio_err *reterr)
{
	const struct sio_peer_config *m = msg;
	struct smartiod_loan *l = smartiod_loan_get(d, from, sio_from_le32(m->fdid),
						    sio_from_le64(m->borrower), reterr);
	struct config_op *c;

	if (!l || check(l, m, reterr) < 0)
		return reterr->code;
	c = smartiod_lend_new(d, from, msg, sizeof(*c), l, config_step, reterr);
	if (!c)
		return reterr->code;
	c->reg = sio_from_le32(m->reg);
	c->value = sio_from_le32(m->value);
	c->mask = sio_from_le32(m->mask);
	if (c->reg == SIO_SHADOW_CONTROL) {
		ask(d, c, PCI_CAPABILITY_LIST, 1);
		return 0;
	}
	c->at = c->reg == SIO_SHADOW_COMMAND ? PCI_COMMAND : PCI_CLASS_REVISION;
	go_on(d, c);
	return 0;
}

void smartiod_config_restart(struct smartiod *d, struct smartiod_device *dev)
{
	struct sio_req_config req = {
		.h = {.op = SIO_OP_CONFIG, .flags = SIO_CONFIG_WRITE},
		.device = dev->port.id,
		.offset = PCI_COMMAND,
		.width = 2,
		.value = PCI_COMMAND_MASTER,
		.mask = PCI_COMMAND_MASTER,
	};

	if (!dev->lent->stopped)
		return;
	dev->lent->stopped = false;
	smartiod_port_send(d, &req, sizeof(req));
}
