/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients ask of the manager. Everything in a request is checked: clients may be hostile. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "manager.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"

static void refuse(struct sio_nvme_rep *rep, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void refuse(struct sio_nvme_rep *rep, int code, const char *fmt, ...)
{
	va_list ap;

	rep->h.error = (uint32_t)-code;
	memset(rep->text, 0, sizeof(rep->text));
	va_start(ap, fmt);
	vsnprintf(rep->text, sizeof(rep->text), fmt, ap);
	va_end(ap);
}

static bool queue_is_good(const struct smartio_nvme_manager *m, uint64_t addr, uint32_t entries)
{
	return addr && addr % SIO_NVME_PAGE == 0 && entries >= 2 && entries <= m->ctrl.max_entries;
}

static int create_queues(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
			 uint32_t qid, struct sio_nvme_rep *rep)
{
	uint32_t status = 0;
	int rc = sio_nvme_ctrl_create_cq(&m->ctrl, qid, req->create.cq, req->create.cq_entries,
					 &status);

	if (rc)
		return rc;
	if (status) {
		refuse(rep, -EIO, "the drive refused the completion queue: %s",
		       smartio_nvme_status_string(status));
		return 0;
	}
	rc = sio_nvme_ctrl_create_sq(&m->ctrl, qid, req->create.sq, req->create.sq_entries,
				     &status);
	if (rc || !status)
		return rc;
	refuse(rep, -EIO, "the drive refused the submission queue: %s",
	       smartio_nvme_status_string(status));
	return sio_nvme_ctrl_delete_cq(&m->ctrl, qid);
}

static int op_create(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		     struct sio_nvme_rep *rep)
{
	uint32_t qid = sio_nvme_ledger_free_id(&m->ledger);
	int rc;

	if (!queue_is_good(m, req->create.sq, req->create.sq_entries) ||
	    !queue_is_good(m, req->create.cq, req->create.cq_entries)) {
		refuse(rep, -EINVAL,
		       "a queue needs 2 to %u entries and memory from the start of a page on",
		       m->ctrl.max_entries);
		return 0;
	}
	if (qid == 0) {
		refuse(rep, -ENOSPC, "the drive has %u I/O queue pairs, all in use",
		       m->ledger.pairs);
		return 0;
	}
	rc = create_queues(m, req, qid, rep);
	if (rc || rep->h.error)
		return rc;
	rep->create.qid = qid;
	rep->create.reserved = 0;
	rep->create.key = smartio_random();
	sio_nvme_ledger_take(&m->ledger, qid, req->borrower, rep->create.key);
	return 0;
}

/* Submission queue first: a drive whose completion queue vanishes first stops for everyone. */
static int delete_pair(struct smartio_nvme_manager *m, uint32_t qid)
{
	int rc = sio_nvme_ctrl_delete_sq(&m->ctrl, qid);

	if (rc == 0)
		rc = sio_nvme_ctrl_delete_cq(&m->ctrl, qid);
	if (rc == 0)
		sio_nvme_ledger_release(&m->ledger, qid);
	return rc;
}

static int op_delete(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		     struct sio_nvme_rep *rep)
{
	if (!sio_nvme_ledger_owns(&m->ledger, req->del.qid, req->borrower, req->del.key)) {
		refuse(rep, -EACCES, "queue pair %u is not this client's", req->del.qid);
		return 0;
	}
	return delete_pair(m, req->del.qid);
}

static int op_identify(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		       struct sio_nvme_rep *rep)
{
	uint32_t status = 0;
	int rc;

	if (req->identify.cns > 0xff) {
		refuse(rep, -EINVAL, "CNS %#x is not 0 to 255", req->identify.cns);
		return 0;
	}
	rc = sio_nvme_ctrl_identify(&m->ctrl, (uint8_t)req->identify.cns, req->identify.nsid,
				    rep->data, &status);
	if (rc == 0 && status)
		refuse(rep, -EIO, "the drive refused Identify with CNS %u, namespace %u: %s",
		       req->identify.cns, req->identify.nsid, smartio_nvme_status_string(status));
	return rc;
}

/* Whether it got to where the client can take it. */
static bool send_reply(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		       const struct sio_nvme_rep *rep)
{
	sci_remote_data_interrupt_t to;
	sci_error_t err, ignored;

	SCIConnectDataInterrupt(m->d.sd, &to, req->reply_node, m->d.adapter, req->reply_interrupt,
				SCI_INFINITE_TIMEOUT, 0, &err);
	if (err != SCI_ERR_OK)
		return false;
	sio_nvme_rep_encode(rep, m->reply);
	SCITriggerDataInterrupt(to, m->reply, (unsigned)sio_nvme_rep_size(rep->h.op, rep->h.error),
				0, &err);
	SCIDisconnectDataInterrupt(to, 0, &ignored);
	return err == SCI_ERR_OK;
}

static int execute(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		   struct sio_nvme_rep *rep)
{
	switch (req->op) {
	case SIO_NVME_OP_CREATE:
		return op_create(m, req, rep);
	case SIO_NVME_OP_DELETE:
		return op_delete(m, req, rep);
	case SIO_NVME_OP_IDENTIFY:
		return op_identify(m, req, rep);
	default:
		refuse(rep, -EOPNOTSUPP, "this manager does not know request %u", req->op);
		return 0;
	}
}

int sio_nvme_manager_request(struct smartio_nvme_manager *m, size_t len)
{
	struct sio_nvme_rep rep = {.h.error = 0};
	struct sio_nvme_req req;
	int rc = sio_nvme_req_decode(m->message, len, &req);

	if (rc == -EPROTO || sio_nvme_ledger_ended(&m->ledger, req.borrower))
		return 0;
	rep.h.magic = SIO_NVME_REP_MAGIC;
	rep.h.version = SIO_NVME_VERSION;
	rep.h.op = req.op;
	rep.h.instance = m->meta.instance;
	rep.h.sequence = req.sequence;
	if (rc)
		refuse(&rep, rc, "client speaks version %u, manager version %u", req.version,
		       SIO_NVME_VERSION);
	else if (req.instance != m->meta.instance)
		refuse(&rep, -ENOTCONN, "the request was for an earlier manager of %s", m->d.name);
	else
		rc = execute(m, &req, &rep);
	if (rc && !rep.h.error) {
		/* What the drive has done of it nobody knows: the client keeps its memory. */
		refuse(&rep, -ENODEV, "%.180s", smartio_nvme_error());
		m->failed = rc;
	}
	/* A queue pair that its client will not know of is no use to anybody. */
	if (!send_reply(m, &req, &rep) && req.op == SIO_NVME_OP_CREATE && !rep.h.error)
		return delete_pair(m, rep.create.qid);
	return m->failed;
}
