/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin commands that clients ask for: by rule.h, with a page of data at most. A command is slow if
 * its client lets it take longer than others can wait, or if it must be alone. One slow command at
 * a time is submitted, and its completion is looked for while other requests are served.
 */
#include <errno.h>
#include <string.h>

#include "error.h"
#include "manager.h"
#include "rule.h"
#include "smartio/ext.h"

#define FIRST_PAUSE_MS 1u /* between two polls: the admin queue has no interrupt */
#define LAST_PAUSE_MS 64u

/* Formatting under somebody's queue would give it blocks of another size, and take its data. */
static bool is_alone(struct smartio_nvme_manager *m, struct sio_nvme_rep *rep, const char *why)
{
	char holders[1536];

	if (m->leases.n)
		sio_nvme_manager_end_leases(m);
	if (m->leases.n) {
		const struct sio_nvme_wire_lease *l = &m->leases.list[0].l;

		sio_nvme_refuse(rep, -EBUSY, "%s, and node %u (%s) has the lease %s of %s", why,
				l->node, l->program, l->name, m->d.name);
		return false;
	}
	if (m->ledger.used == 0)
		return true;
	sio_nvme_ledger_holders(&m->ledger, holders, sizeof(holders));
	sio_nvme_refuse(rep, -EBUSY, "%s, and clients have queue pairs of %s: %s", why, m->d.name,
			holders);
	return false;
}

static bool is_allowed(struct smartio_nvme_manager *m, const struct sio_nvme_wire_admin *c,
		       struct sio_nvme_rep *rep, bool *ret_alone)
{
	const char *why = "";
	enum sio_nvme_verdict verdict;

	if (c->opcode > 0xff || !sio_nvme_rule_data(c, &why)) {
		sio_nvme_refuse(rep, -EINVAL, "admin command 0x%02x: %s", c->opcode,
				*why ? why : "an opcode is 0 to 0xff");
		return false;
	}
	verdict = sio_nvme_rule(c, &why);
	*ret_alone = verdict == SIO_NVME_ALONE || verdict == SIO_NVME_VENDOR;
	if (verdict == SIO_NVME_ALLOWED)
		return true;
	if (verdict == SIO_NVME_REFUSED) {
		sio_nvme_refuse(rep, -EPERM, "the manager of %s refuses admin command 0x%02x: %s",
				m->d.name, c->opcode, why);
		return false;
	}
	if (verdict == SIO_NVME_VENDOR && !(m->options.flags & SMARTIO_NVME_ALLOW_VENDOR)) {
		sio_nvme_refuse(
			rep, -EPERM,
			"the manager of %s refuses admin command 0x%02x: %s, which it was not "
			"started to allow",
			m->d.name, c->opcode, why);
		return false;
	}
	if (!(c->flags & SIO_NVME_ADMIN_CONFIRMED)) {
		sio_nvme_refuse(rep, -EACCES, "admin command 0x%02x of %s must be confirmed: %s",
				c->opcode, m->d.name, why);
		return false;
	}
	return verdict == SIO_NVME_CONFIRM || is_alone(m, rep, why);
}

/* Refuses, and names the slow command that is under way. */
static void refuse_beside_slow(const struct smartio_nvme_manager *m, struct sio_nvme_rep *rep,
			       const char *what)
{
	if (m->asker.opcode)
		sio_nvme_refuse(rep, -EBUSY, "%s carries out admin command 0x%02x of node %u: %s",
				m->d.name, m->asker.opcode, m->asker.node, what);
	else
		sio_nvme_refuse(rep, -EBUSY,
				"%s carries out an admin command of its previous manager: %s",
				m->d.name, what);
}

bool sio_nvme_manager_is_occupied(const struct smartio_nvme_manager *m, struct sio_nvme_rep *rep)
{
	if (m->ctrl.slow.state == SIO_NVME_SLOW_FREE || !m->ctrl.slow.alone)
		return false;
	refuse_beside_slow(m, rep, "clients can have queue pairs and leases when it is done");
	return true;
}

static int start_slow(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		      struct sio_nvme_command *c, const void *data, bool alone,
		      struct sio_nvme_rep *rep)
{
	const uint32_t ms = req->admin.timeout_ms ? req->admin.timeout_ms : SIO_NVME_ADMIN_MS;
	int rc = sio_nvme_ctrl_slow_start(&m->ctrl, c, data, sio_nvme_req_data(req), alone);

	if (rc == -EBUSY) {
		refuse_beside_slow(m, rep, "one that may take longer than 10 s is done at a time");
		return 0;
	}
	if (rc) {
		sio_nvme_refuse(rep, rc,
				"the manager of %s was started with an admin queue of %u entries: "
				"commands that may take longer than 10 s need 4",
				m->d.name, m->ctrl.entries);
		return 0;
	}
	m->asker = (struct sio_nvme_asker){.waits = true,
					   .changes = sio_nvme_rule_changes_namespaces(&req->admin),
					   .opcode = c->opcode,
					   .node = req->reply_node,
					   .interrupt = req->reply_interrupt,
					   .pause_ms = FIRST_PAUSE_MS,
					   .sequence = req->sequence,
					   .deadline = sio_nvme_deadline(ms)};
	return SIO_NVME_LATER;
}

/* It is DONE: its data and status go to the client that asked for it, if that still waits. */
static int end_slow(struct smartio_nvme_manager *m)
{
	const struct sio_nvme_asker asker = m->asker;
	struct sio_nvme_rep rep;
	int rc = 0;

	sio_nvme_manager_head(m, SIO_NVME_OP_ADMIN, asker.sequence, &rep);
	rep.admin.status = m->ctrl.slow.status;
	rep.admin.result = m->ctrl.slow.result;
	/* A command of the previous manager may have been any. */
	if (asker.changes || !asker.opcode)
		rc = sio_nvme_manager_republish(m);
	if (rc)
		return rc;
	sio_nvme_ctrl_slow_end(&m->ctrl, rep.admin.data);
	memset(&m->asker, 0, sizeof(m->asker));
	if (asker.waits)
		sio_nvme_manager_send(m, asker.node, asker.interrupt, &rep);
	return 1;
}

/* The drive continues with it; the time of the client that asked for it is over. */
static void give_up(struct smartio_nvme_manager *m)
{
	struct sio_nvme_rep rep;

	sio_nvme_manager_head(m, SIO_NVME_OP_ADMIN, m->asker.sequence, &rep);
	sio_nvme_refuse(
		&rep, -ETIMEDOUT,
		"%s has not completed admin command 0x%02x within its time limit: the drive "
		"continues with it",
		m->d.name, m->asker.opcode);
	m->asker.waits = false;
	sio_nvme_manager_send(m, m->asker.node, m->asker.interrupt, &rep);
}

int sio_nvme_manager_look(struct smartio_nvme_manager *m)
{
	int rc = sio_nvme_ctrl_slow_look(&m->ctrl);

	if (rc == 0 && m->ctrl.slow.state == SIO_NVME_SLOW_DONE)
		return end_slow(m);
	if (rc == 0 && m->asker.waits && smartio_now_ns() >= m->asker.deadline)
		give_up(m);
	return rc;
}

uint32_t sio_nvme_manager_pause(struct smartio_nvme_manager *m)
{
	const uint32_t ms = m->asker.pause_ms ? m->asker.pause_ms : FIRST_PAUSE_MS;

	if (m->ctrl.slow.state == SIO_NVME_SLOW_FREE)
		return UINT32_MAX;
	m->asker.pause_ms = ms < LAST_PAUSE_MS ? 2 * ms : ms;
	return ms;
}

int sio_nvme_manager_admin(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
			   const void *data, struct sio_nvme_rep *rep)
{
	const struct sio_nvme_wire_admin *a = &req->admin;
	struct sio_nvme_command c = {.opcode = (uint8_t)a->opcode,
				     .nsid = a->nsid,
				     .cdw2 = a->cdw2,
				     .cdw3 = a->cdw3,
				     .cdw10 = a->cdw[0],
				     .cdw11 = a->cdw[1],
				     .cdw12 = a->cdw[2],
				     .cdw13 = a->cdw[3],
				     .cdw14 = a->cdw[4],
				     .cdw15 = a->cdw[5]};
	bool alone;
	int rc;

	if (!is_allowed(m, a, rep, &alone))
		return 0;
	/* A short time limit of its client must not make a drive that formats count as lost. */
	if (a->timeout_ms > SIO_NVME_ADMIN_MS || alone)
		return start_slow(m, req, &c, data, alone, rep);
	rc = sio_nvme_ctrl_raw(&m->ctrl, &c, data, sio_nvme_req_data(req), rep->admin.data,
			       &rep->admin.status, &rep->admin.result);
	if (rc == 0 && sio_nvme_rule_changes_namespaces(a))
		rc = sio_nvme_manager_republish(m);
	return rc;
}
