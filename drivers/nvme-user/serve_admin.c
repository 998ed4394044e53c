/* SPDX-License-Identifier: BSD-2-Clause */
/* Admin commands that clients ask for: by rule.h, one at a time, with a page of data at most. */
#include <errno.h>
#include <string.h>

#include "error.h"
#include "manager.h"
#include "rule.h"

/* Formatting under somebody's queue would give it blocks of another size, and take its data. */
static bool is_alone(struct smartio_nvme_manager *m, struct sio_nvme_rep *rep, const char *why)
{
	char holders[1536];

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
		       struct sio_nvme_rep *rep)
{
	const char *why = "";
	enum sio_nvme_verdict verdict;

	if (c->opcode > 0xff || !sio_nvme_rule_data(c, &why)) {
		sio_nvme_refuse(rep, -EINVAL, "admin command 0x%02x: %s", c->opcode,
				*why ? why : "an opcode is 0 to 0xff");
		return false;
	}
	verdict = sio_nvme_rule(c, &why);
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
		sio_nvme_refuse(rep, -EACCES, "admin command 0x%02x of %s is to be confirmed: %s",
				c->opcode, m->d.name, why);
		return false;
	}
	return verdict == SIO_NVME_CONFIRM || is_alone(m, rep, why);
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
				     .cdw15 = a->cdw[5],
				     .timeout_ms = a->timeout_ms};
	int rc;

	if (!is_allowed(m, a, rep))
		return 0;
	rc = sio_nvme_ctrl_raw(&m->ctrl, &c, data, sio_nvme_req_data(req), rep->admin.data,
			       &rep->admin.status, &rep->admin.result);
	if (rc == 0 && sio_nvme_rule_changes_namespaces(a))
		rc = sio_nvme_manager_republish(m);
	return rc;
}
