/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of clients to the manager. Everything in a request is checked: clients may be hostile.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "manager.h"
#include "smartio/ext.h"
#include "smartio/nvme.h"
#include "smartio/uapi.h"

void sio_nvme_refuse(struct sio_nvme_rep *rep, int code, const char *fmt, ...)
{
	va_list ap;

	rep->h.error = (uint32_t)-code;
	memset(rep->text, 0, sizeof(rep->text));
	va_start(ap, fmt);
	vsnprintf(rep->text, sizeof(rep->text), fmt, ap);
	va_end(ap);
}
#define refuse sio_nvme_refuse

static bool queue_is_good(const struct smartio_nvme_manager *m, uint64_t addr, uint32_t entries)
{
	return addr && addr % SIO_NVME_PAGE == 0 && entries >= 2 && entries <= m->ctrl.max_entries;
}

/* The lender does not answer as it must: who has the registers cannot do its work without. */
static int lost_lender(const struct smartio_nvme_manager *m, sci_error_t err)
{
	return sio_nvme_fail_sci(err, "%s: its lender cannot be asked for queue memory", m->d.name);
}

/* For want of something, or while the drive is being reset. */
void sio_nvme_refuse_sci(struct sio_nvme_rep *rep, sci_error_t err, const char *what)
{
	sio_nvme_refuse(rep, err == SCI_ERR_NOSPC ? -ENOMEM : -EIO, "%s: %s (%.100s)", what,
			SCIGetErrorString(err), smartio_last_error());
	rep->h.reason = smartio_last_exhausted();
}

/*
 * The memory of a queue is the client's word, and so is who the client is: have the lender confirm
 * both, and keep it mapped. A drive that cannot fetch a command stops for everyone.
 */
static int hold(struct smartio_nvme_manager *m, uint64_t borrower, uint64_t addr, size_t bytes,
		uint64_t *ret, struct sio_nvme_rep *rep)
{
	char what[64];
	sci_error_t err;

	smartio_device_hold(m->d.handle, borrower, addr, bytes, ret, &err);
	switch (err) {
	case SCI_ERR_OK:
		return 0;
	case SCI_ERR_OUT_OF_RANGE:
	case SCI_ERR_ILLEGAL_PARAMETER:
		refuse(rep, -EFAULT,
		       "queue memory at %#" PRIx64 " is not mapped for borrower %" PRIu64, addr,
		       borrower);
		return 0;
	case SCI_ERR_NO_SUCH_SEGMENT:
		refuse(rep, -ENXIO,
		       "queue memory at %#" PRIx64 " lay in another device, which borrower %" PRIu64
		       " has lost",
		       addr, borrower);
		return 0;
	case SCI_ERR_NOT_SUPPORTED:
		refuse(rep, -ENOTSUP,
		       "queue memory at %#" PRIx64
		       " lies in a BAR of another device that cannot be "
		       "kept for it: queues lie in memory of hosts, and of devices of the drive's "
		       "own host",
		       addr);
		return 0;
	case SCI_ERR_ACCESS:
	case SCI_ERR_NOT_CONNECTED:
	case SCI_ERR_NO_SUCH_FDID:
		return lost_lender(m, err);
	default:
		snprintf(what, sizeof(what), "queue memory at %#" PRIx64 " cannot be held", addr);
		sio_nvme_refuse_sci(rep, err, what);
		return 0;
	}
}

/* What a reset has released already is released. */
static int unhold(struct smartio_nvme_manager *m, uint64_t number)
{
	sci_error_t err;

	SIO_NVME_UNTIL_FREE(err, smartio_device_unhold(m->d.handle, number, &err));
	return err == SCI_ERR_OK || err == SCI_ERR_ILLEGAL_PARAMETER ? 0 : lost_lender(m, err);
}

/* What becomes of the pair is recorded before it happens. */
void sio_nvme_manager_enter(struct smartio_nvme_manager *m, uint32_t qid,
			    enum sio_nvme_pair_state state)
{
	m->ledger.pair[qid].state = state;
	sio_nvme_record_pair(&m->record, qid, &m->ledger.pair[qid]);
}

#define enter sio_nvme_manager_enter

void sio_nvme_manager_release(struct smartio_nvme_manager *m, uint32_t qid)
{
	sio_nvme_ledger_release(&m->ledger, qid);
	enter(m, qid, SIO_NVME_PAIR_FREE);
}

#define release sio_nvme_manager_release

/* Release one hold of a pair; that of its other queue is written down still. */
static int unhold_one(struct smartio_nvme_manager *m, uint32_t qid, uint64_t *number)
{
	int rc = *number ? unhold(m, *number) : 0;

	*number = 0;
	sio_nvme_record_pair(&m->record, qid, &m->ledger.pair[qid]);
	return rc;
}

int sio_nvme_manager_unhold(struct smartio_nvme_manager *m, uint32_t qid)
{
	struct sio_nvme_pair *pair = &m->ledger.pair[qid];
	int rc = unhold_one(m, qid, &pair->sq_hold);

	return rc ? rc : unhold_one(m, qid, &pair->cq_hold);
}

static int hold_pair(struct smartio_nvme_manager *m, const struct sio_nvme_req *req, uint32_t qid,
		     struct sio_nvme_rep *rep)
{
	struct sio_nvme_pair *pair = &m->ledger.pair[qid];
	int rc;

	if (req->create.cmb) /* the drive's own memory needs no hold */
		rc = sio_nvme_manager_place(m, pair, req->create.sq_entries, rep);
	else
		rc = hold(m, pair->borrower, req->create.sq, req->create.sq_entries * (size_t)64,
			  &pair->sq_hold, rep);
	enter(m, qid, SIO_NVME_PAIR_TAKING);
	if (rc || rep->h.error || pair->cq_of)
		return rc;
	rc = hold(m, pair->borrower, req->create.cq, req->create.cq_entries * (size_t)16,
		  &pair->cq_hold, rep);
	enter(m, qid, SIO_NVME_PAIR_TAKING);
	return rc;
}

/* Where the drive has the submission queue. */
static uint64_t sq_address(const struct sio_nvme_req *req, const struct sio_nvme_pair *pair)
{
	return pair->cmb ? SIO_NVME_CMB_BASE + (pair->cmb - 1u) * (uint64_t)SIO_NVME_PAGE
			 : req->create.sq;
}

static int create_cq(struct smartio_nvme_manager *m, const struct sio_nvme_req *req, uint32_t qid,
		     struct sio_nvme_rep *rep)
{
	uint32_t status = 0;
	int rc = sio_nvme_ctrl_create_cq(&m->ctrl, qid, req->create.cq, req->create.cq_entries,
					 req->vector, &status);

	if (rc == 0 && status)
		refuse(rep, -EIO, "the drive refused the completion queue: %s",
		       smartio_nvme_status_string(status));
	return rc;
}

/* A queue that completes in another pair's completion queue has none to delete. */
static int delete_cq(struct smartio_nvme_manager *m, uint32_t qid)
{
	return m->ledger.pair[qid].cq_of ? 0 : sio_nvme_ctrl_delete_cq(&m->ctrl, qid);
}

static int create_queues(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
			 uint32_t qid, struct sio_nvme_rep *rep)
{
	const struct sio_nvme_pair *pair = &m->ledger.pair[qid];
	uint32_t status = 0;
	int rc = pair->cq_of ? 0 : create_cq(m, req, qid, rep);

	if (rc || rep->h.error)
		return rc;
	rc = sio_nvme_ctrl_create_sq(&m->ctrl, qid, sq_address(req, pair), req->create.sq_entries,
				     pair->cq_of ? pair->cq_of : qid, &status);
	if (rc || !status)
		return rc;
	refuse(rep, -EIO, "the drive refused the submission queue: %s",
	       smartio_nvme_status_string(status));
	return delete_cq(m, qid);
}

/*
 * All pairs are in use: the reply names their owners. A client that wants to be notified of the
 * next free one is recorded.
 */
static void no_pair(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		    struct sio_nvme_rep *rep)
{
	const struct sio_nvme_waiter waiter = {.borrower = req->borrower,
					       .node = req->reply_node,
					       .interrupt = req->create.notice};
	char holders[1536];

	if (req->create.notify && !sio_nvme_waiters_add(&m->waiters, &waiter)) {
		refuse(rep, -EBUSY,
		       "%u wait for a queue pair of %s: at most %u can, and %u of one client",
		       m->waiters.n, m->d.name, SIO_NVME_WAITERS, SIO_NVME_WAITERS_EACH);
		return;
	}
	sio_nvme_ledger_holders(&m->ledger, holders, sizeof(holders));
	if (m->ledger.used < m->ledger.pairs)
		refuse(rep, -ENOSPC,
		       "no queue pairs left for node %u: programs of hosts that have fewer wait for "
		       "the next one of %s, of which %u are held by %s",
		       req->reply_node, m->d.name, m->ledger.used, holders);
	else
		refuse(rep, -ENOSPC, "no queue pairs left: the %u of %s are held by %s",
		       m->ledger.pairs, m->d.name, holders);
	rep->h.reason = SIO_OUT_OF_QUEUE_PAIRS;
}

void sio_nvme_keep_text(char *to, const char *from, size_t size)
{
	size_t len = 0;

	for (; len + 1 < size && from[len]; len++)
		to[len] = from[len] >= ' ' && from[len] <= '~' ? from[len] : '?';
	to[len] = '\0';
}

static void fill_pair(const struct smartio_nvme_manager *m, uint32_t qid,
		      const struct sio_nvme_req *req, struct sio_nvme_rep *rep)
{
	const struct sio_nvme_pair *pair = &m->ledger.pair[qid];

	rep->create = (struct sio_nvme_rep_pair){
		.qid = qid,
		.place = sio_nvme_ledger_place(pair, req->borrower, req->sequence),
		.key = pair->key,
		.share = pair->share,
		.depth = pair->depth,
		.most = pair->most,
		.cmb = pair->cmb};
}

/* Of the free @qid. */
static int make_pair(struct smartio_nvme_manager *m, const struct sio_nvme_req *req, uint32_t qid,
		     struct sio_nvme_rep *rep)
{
	struct sio_nvme_pair pair = {.state = SIO_NVME_PAIR_TAKING,
				     .borrower = req->borrower,
				     .sequence = req->sequence,
				     .key = smartio_random(),
				     .node = req->reply_node,
				     .share = req->create.share,
				     .depth = req->create.share_depth,
				     .most = req->create.share_most,
				     .over = req->create.share_over,
				     .raises = req->vector != 0,
				     .cq_of = req->create.cq_of};
	int rc;

	sio_nvme_keep_text(pair.program, req->create.program, sizeof(pair.program));
	if (pair.share) {
		pair.sharer[0] = (struct sio_nvme_sharer){.borrower = pair.borrower,
							  .sequence = pair.sequence,
							  .notice = req->create.share_notice};
		memcpy(pair.sharer[0].program, pair.program, sizeof(pair.program));
	}
	sio_nvme_ledger_take(&m->ledger, qid, &pair);
	enter(m, qid, SIO_NVME_PAIR_TAKING);
	rc = hold_pair(m, req, qid, rep);
	if (rc == 0 && !rep->h.error)
		rc = create_queues(m, req, qid, rep);
	if (rc)
		return rc; /* whether the drive has them nobody knows: held until it is reset */
	if (rep->h.error) {
		rc = sio_nvme_manager_unhold(m, qid);
		release(m, qid);
		return rc;
	}
	enter(m, qid, SIO_NVME_PAIR_TAKEN);
	m->ledger.given++;
	if (pair.share)
		m->place_free = true;
	fill_pair(m, qid, req, rep);
	return 0;
}

static bool may_have_pair(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
			  struct sio_nvme_rep *rep)
{
	if (sio_nvme_manager_is_occupied(m, rep))
		return false;
	if (!sio_nvme_manager_may_complete(m, req, rep))
		return false;
	if (!queue_is_good(m, req->create.cmb ? SIO_NVME_PAGE : req->create.sq,
			   req->create.sq_entries) ||
	    (!req->create.cq_of && !queue_is_good(m, req->create.cq, req->create.cq_entries))) {
		refuse(rep, -EINVAL,
		       "a queue needs 2 to %u entries and memory from the start of a page on",
		       m->ctrl.max_entries);
		return false;
	}
	if (req->create.cmb > 1 || (req->create.cmb && req->create.share)) {
		refuse(rep, -EINVAL, "a queue in the drive's memory (%u) is nobody else's",
		       req->create.cmb);
		return false;
	}
	if (req->vector > UINT16_MAX) {
		refuse(rep, -EINVAL, "interrupt vector %u is not 0 to 65535", req->vector);
		return false;
	}
	if (!sio_nvme_manager_may_share(req, rep))
		return false;
	if (req->borrower == smartio_borrower_id(m->d.handle)) {
		refuse(rep, -EACCES, "the manager's own borrow has no queue pairs");
		return false;
	}
	if (req->create.formats && req->create.formats != m->meta.formats) {
		refuse(rep, -ESTALE,
		       "%s was formatted since this client opened it: the client must open it "
		       "again",
		       m->d.name);
		return false;
	}
	return true;
}

/*
 * Submission queues first, also those of others that complete there: a drive whose completion queue
 * vanishes first stops for everyone. A shared pair that has ended has none any more.
 */
int sio_nvme_manager_delete_pair(struct smartio_nvme_manager *m, uint32_t qid)
{
	int rc = sio_nvme_manager_delete_users(m, qid);

	if (rc)
		return rc;
	if (m->ledger.pair[qid].state == SIO_NVME_PAIR_ENDED) {
		release(m, qid);
		return 0;
	}
	enter(m, qid, SIO_NVME_PAIR_GOING);
	rc = sio_nvme_ctrl_delete_sq(&m->ctrl, qid);
	if (rc == 0)
		rc = delete_cq(m, qid);
	if (rc == 0)
		rc = sio_nvme_manager_unhold(m, qid);
	if (rc == 0)
		release(m, qid);
	return rc;
}

/*
 * The pair that the client had before, of the same borrow or of one that it has lost: nothing in
 * its submission queue is done any more when the new one is reported. One that is not there was
 * deleted with its borrow, or by a reset.
 */
static int end_old(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		   struct sio_nvme_rep *rep)
{
	if (!sio_nvme_ledger_has(&m->ledger, req->create.old_qid, req->create.old_key) ||
	    sio_nvme_manager_is_used(m, req->create.old_qid, rep))
		return 0;
	return sio_nvme_manager_delete_pair(m, req->create.old_qid);
}

/*
 * The free pair @qid, or, while hosts that have no more pairs than the client's wait for one, a
 * place in a pair that its host shares, or nothing if they have fewer. Who had a pair before is not
 * asked to wait: others would have it for that of its own.
 */
static uint32_t choose(struct smartio_nvme_manager *m, const struct sio_nvme_req *req, uint32_t qid,
		       bool *ret_joined)
{
	const struct sio_nvme_ledger *l = &m->ledger;
	const uint32_t node = req->reply_node, free = l->pairs - l->used;
	const uint32_t own = m->waiters.n && qid ? sio_nvme_ledger_of_node(l, node) : 0;
	uint32_t joined = 0;

	*ret_joined = false;
	if (qid && (!m->waiters.n || req->create.old_key ||
		    free > sio_nvme_waiters_before(&m->waiters, node, own, true)))
		return qid;
	if (req->create.share)
		joined = sio_nvme_manager_join(m, req);
	*ret_joined = joined != 0;
	if (joined || !qid)
		return joined;
	return free > sio_nvme_waiters_before(&m->waiters, node, own, false) ? qid : 0;
}

/* No pair was found that the client may have, or a place in one. */
static void refuse_pair(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
			struct sio_nvme_rep *rep)
{
	if (sio_nvme_manager_lacks_vector(req) && m->ledger.used < m->ledger.pairs)
		refuse(rep, -EBUSY,
		       "all interrupt vectors of %s are taken, and no program of node %u shares a "
		       "queue pair that has a place",
		       m->d.name, req->reply_node);
	else
		no_pair(m, req, rep);
}

static int op_create(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		     struct sio_nvme_rep *rep)
{
	/* The reply was lost with the manager before us: whatever is asked now, it has the pair. */
	uint32_t qid = sio_nvme_ledger_given(&m->ledger, req->borrower, req->sequence);
	bool joined;
	int rc;

	if (qid) {
		fill_pair(m, qid, req, rep);
		return 0;
	}
	if (!may_have_pair(m, req, rep))
		return 0;
	rc = end_old(m, req, rep);
	if (rc || rep->h.error)
		return rc;
	if (req->create.notify)
		sio_nvme_waiters_asks(&m->waiters, req->borrower, req->create.notice);
	sio_nvme_waiters_look(&m->waiters, &m->ledger, smartio_now_ns());
	if (!sio_nvme_manager_lacks_vector(req))
		qid = sio_nvme_ledger_free_id(&m->ledger);
	qid = choose(m, req, qid, &joined);
	if (qid && !joined)
		return make_pair(m, req, qid, rep);
	if (qid)
		fill_pair(m, qid, req, rep);
	else
		refuse_pair(m, req, rep);
	return 0;
}

/* All submission queues first. What they lay in ends with the word that settles the borrower. */
int sio_nvme_manager_delete_pairs(struct smartio_nvme_manager *m, uint64_t borrower)
{
	struct sio_nvme_ledger *l = &m->ledger;
	uint32_t qid;
	int rc = 0;

	for (qid = 0; rc == 0 && (qid = sio_nvme_ledger_next(l, borrower, qid));) {
		if (l->pair[qid].state == SIO_NVME_PAIR_ENDED)
			continue;
		enter(m, qid, SIO_NVME_PAIR_GOING);
		rc = sio_nvme_ctrl_delete_sq(&m->ctrl, qid);
	}
	for (qid = 0; rc == 0 && (qid = sio_nvme_ledger_next(l, borrower, qid));) {
		if (l->pair[qid].state != SIO_NVME_PAIR_ENDED)
			rc = delete_cq(m, qid);
		if (l->pair[qid].share)
			sio_nvme_ledger_sharer_ended(&l->pair[qid], borrower);
		if (rc == 0 && l->pair[qid].share)
			rc = sio_nvme_manager_shared_ended(m, qid);
		else if (rc == 0)
			release(m, qid);
	}
	return rc;
}

static int op_delete(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		     struct sio_nvme_rep *rep)
{
	const struct sio_nvme_pair *pair;

	if (!sio_nvme_ledger_owns(&m->ledger, req->del.qid, req->borrower, req->del.key)) {
		refuse(rep, -EACCES, "queue pair %u is not this client's", req->del.qid);
		return 0;
	}
	pair = &m->ledger.pair[req->del.qid];
	if (pair->share && (req->del.place >= SIO_NVME_SHARERS ||
			    pair->sharer[req->del.place].borrower != req->borrower ||
			    (uint32_t)pair->sharer[req->del.place].sequence != req->del.sequence)) {
		refuse(rep, -EACCES, "place %u of queue pair %u is not this client's",
		       req->del.place, req->del.qid);
		return 0;
	}
	if (sio_nvme_manager_is_used(m, req->del.qid, rep))
		return 0;
	/* The pair's queues lie in memory that the first sharer has mapped. */
	if (!pair->share || req->del.flags & SIO_NVME_DEL_ENDS || req->del.place == 0)
		return sio_nvme_manager_delete_pair(m, req->del.qid);
	sio_nvme_manager_part(m, req->del.qid, req->del.place);
	return 0;
}

/*
 * Whether the drive finds the command is its own matter (section 5.1): nothing is reported of it.
 */
static int op_abort(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		    struct sio_nvme_rep *rep)
{
	if (!sio_nvme_ledger_owns(&m->ledger, req->abort.qid, req->borrower, req->abort.key)) {
		refuse(rep, -EACCES, "queue pair %u is not this client's", req->abort.qid);
		return 0;
	}
	if (req->abort.cid > 0xffff) {
		refuse(rep, -EINVAL, "command id %#x is not 0 to 0xffff", req->abort.cid);
		return 0;
	}
	return sio_nvme_ctrl_abort(&m->ctrl, req->abort.qid, (uint16_t)req->abort.cid);
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

/* Into as many as share a pair. Return: how many. */
static size_t list_owners(const struct sio_nvme_pair *p, uint32_t qid,
			  struct sio_nvme_wire_pair *to)
{
	size_t n = 0;

	if (p->borrower && !p->share) {
		*to = (struct sio_nvme_wire_pair){
			.qid = qid, .node = p->node, .borrower = p->borrower, .cq_of = p->cq_of};
		memcpy(to->program, p->program, sizeof(to->program));
		return 1;
	}
	for (unsigned i = 0; p->share && i < SIO_NVME_SHARERS; i++) {
		if (!p->sharer[i].borrower || p->dead >> i & 1)
			continue;
		to[n] = (struct sio_nvme_wire_pair){
			.qid = qid, .node = p->node, .borrower = p->sharer[i].borrower};
		memcpy(to[n].program, p->sharer[i].program, sizeof(to->program));
		n++;
	}
	return n;
}

/* As many as one reply reports. */
static void op_pairs(const struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		     struct sio_nvme_rep *rep)
{
	const struct sio_nvme_ledger *l = &m->ledger;
	size_t n = 0;

	memset(rep->pairs, 0, sizeof(rep->pairs));
	/* All that share a pair are reported at once. */
	for (uint32_t qid = req->pairs.after + 1; req->pairs.after < l->pairs && qid <= l->pairs &&
						  n + SIO_NVME_SHARERS <= SIO_NVME_PAIRS_A_REPLY;
	     qid++)
		n += list_owners(&l->pair[qid], qid, &rep->pairs[n]);
}

/* Whether it got to where the client can take it. */
bool sio_nvme_manager_send(struct smartio_nvme_manager *m, uint32_t node, uint32_t interrupt,
			   const struct sio_nvme_rep *rep)
{
	sci_remote_data_interrupt_t to;
	sci_error_t err, ignored;

	err = sio_nvme_connect(&m->d, node, interrupt, &to);
	if (err != SCI_ERR_OK)
		return false;
	sio_nvme_rep_encode(rep, m->reply);
	SCITriggerDataInterrupt(to, m->reply, (unsigned)sio_nvme_rep_size(rep->h.op, rep->h.error),
				0, &err);
	SCIDisconnectDataInterrupt(to, 0, &ignored);
	return err == SCI_ERR_OK;
}

static bool send_reply(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		       const struct sio_nvme_rep *rep)
{
	return sio_nvme_manager_send(m, req->reply_node, req->reply_interrupt, rep);
}

void sio_nvme_manager_head(const struct smartio_nvme_manager *m, uint32_t op, uint64_t sequence,
			   struct sio_nvme_rep *rep)
{
	rep->h = (struct sio_nvme_rep_head){.magic = SIO_NVME_REP_MAGIC,
					    .version = SIO_NVME_VERSION,
					    .op = op,
					    .instance = m->meta.instance,
					    .sequence = sequence};
}

/* One that is not reached has ended, or has given up. */
void sio_nvme_manager_notify(struct smartio_nvme_manager *m)
{
	const bool places = m->place_free;
	struct sio_nvme_rep rep;
	uint64_t now;
	int i;

	if ((m->ledger.used == m->ledger.pairs && !places) || !m->waiters.n)
		return;
	m->place_free = false;
	now = smartio_now_ns();
	sio_nvme_manager_head(m, SIO_NVME_OP_FREED, 0, &rep);
	sio_nvme_waiters_look(&m->waiters, &m->ledger, now);
	while ((i = sio_nvme_waiters_turn(&m->waiters, &m->ledger, places,
					  now + SIO_NVME_TURN_NS)) >= 0) {
		const struct sio_nvme_waiter *w = &m->waiters.list[i];

		if (!sio_nvme_manager_send(m, w->node, w->interrupt, &rep))
			sio_nvme_waiters_drop(&m->waiters, i);
	}
}

static int execute(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		   struct sio_nvme_rep *rep)
{
	switch (req->op) {
	case SIO_NVME_OP_CREATE:
		return op_create(m, req, rep);
	case SIO_NVME_OP_DELETE:
		return op_delete(m, req, rep);
	case SIO_NVME_OP_CANCEL:
		return sio_nvme_manager_cancel(m, req);
	case SIO_NVME_OP_ABORT:
		return op_abort(m, req, rep);
	case SIO_NVME_OP_IDENTIFY:
		return op_identify(m, req, rep);
	case SIO_NVME_OP_ADMIN:
		return sio_nvme_manager_admin(m, req, m->message + sizeof(*req), rep);
	case SIO_NVME_OP_LEASE:
	case SIO_NVME_OP_UNLEASE:
	case SIO_NVME_OP_LEASES:
	case SIO_NVME_OP_JOIN:
		sio_nvme_manager_lease(m, req, rep);
		return 0;
	case SIO_NVME_OP_PAIRS:
		op_pairs(m, req, rep);
		return 0;
	default:
		refuse(rep, -EOPNOTSUPP, "this manager does not know request %u", req->op);
		return 0;
	}
}

static bool is_out_of_reach(const struct smartio_nvme_manager *m, int rc)
{
	return rc == -ENODEV || smartio_device_lost(m->d.handle);
}

int sio_nvme_manager_request(struct smartio_nvme_manager *m, size_t len)
{
	struct sio_nvme_rep rep = {.h.error = 0};
	struct sio_nvme_req req;
	int rc = sio_nvme_req_decode(m->message, len, &req);

	if (rc == -EPROTO || sio_nvme_ledger_ended(&m->ledger, req.borrower))
		return 0;
	sio_nvme_manager_head(m, req.op, req.sequence, &rep);
	if (rc) {
		refuse(&rep, rc, "client speaks version %u, manager version %u", req.version,
		       SIO_NVME_VERSION);
		rc = 0;
	} else if (req.instance != m->meta.instance) {
		refuse(&rep, -ENOTCONN, "the request was for an earlier manager of %s", m->d.name);
	} else {
		rc = execute(m, &req, &rep);
		if (rc == 0 && !sio_nvme_record_has_arrived(&m->record))
			rc = sio_nvme_fail(-ENODEV, "the path to %s is lost", m->d.name);
	}
	/*
	 * That its path to the drive is lost is the manager's trouble alone: who hears nothing asks
	 * whoever serves next, or is told by its own borrow that the drive is gone.
	 */
	if (rc == SIO_NVME_LATER || (rc && is_out_of_reach(m, rc)))
		return rc == SIO_NVME_LATER ? 0 : rc;
	if (rc) /* What the drive has done of it nobody knows: the client keeps its memory. */
		refuse(&rep, -ENODEV, "%.180s", smartio_nvme_error());
	if (send_reply(m, &req, &rep) || req.op != SIO_NVME_OP_CREATE || rep.h.error)
		return rc;
	/* A queue pair, or place, that its client will not know of is no use to anybody. */
	if (sio_nvme_ledger_sharers(&m->ledger.pair[rep.create.qid]) < 2)
		return sio_nvme_manager_delete_pair(m, rep.create.qid);
	if (rep.create.place)
		sio_nvme_manager_part(m, rep.create.qid, rep.create.place);
	return 0;
}
