/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection of a client to the manager: it finds the manager by the device's shared segment,
 * sends requests and waits for replies. It also notices that a manager has ended, and that another
 * one serves.
 */
#include <nvme/types.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "error.h"
#include "hold.h"
#include "shared.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "standby_look.h"

#define REPLY_MS 5000u	  /* that a manager, which answers within milliseconds, may take */
#define SLICE_MS 50u	  /* between two looks whether the manager is still there */
#define CANCEL_MS 100u	  /* to find who is to take a request back, and to send that */
#define TAKEOVER_MS 3000u /* that a standby may take */
#define SUCCESSORS 8u	  /* that are asked one after the other */
#define STARTING_MS 5000u /* that a manager may take between making and writing its segment */

static int gone(const struct smartio_nvme *n)
{
	return sio_nvme_fail(-ENODEV, "%s or its host is gone", n->d.name);
}

/* For whoever may be waited for so long, unless the request has less patience. */
static uint64_t patience(const struct smartio_nvme *n, unsigned ms)
{
	return sio_nvme_deadline(n->patience_ms && n->patience_ms < ms ? n->patience_ms : ms);
}

static int no_manager(struct smartio_nvme *n)
{
	return sio_nvme_fail(-ENOTCONN, "no manager serves %s", n->d.name);
}

/* Head and namespaces of the mapped segment. */
static int read_meta(struct smartio_nvme *n, const volatile uint8_t *at)
{
	const size_t head = offsetof(struct sio_nvme_meta, ns);
	const size_t formats = offsetof(struct sio_nvme_meta, formats);
	struct sio_nvme_meta *meta = &n->scratch;
	uint32_t raw[offsetof(struct sio_nvme_meta, ns) / 4];
	int rc;

	raw[0] = sio_read32(at);
	/* A reader that sees the magic number sees the rest: pairs with write_all(). */
	sio_from_fabric_barrier();
	sio_copy_from(raw + 1, at + 4, head - 4);
	rc = sio_nvme_meta_decode(raw, meta);
	for (uint32_t i = 0; rc == 0 && i < meta->namespaces; i++) {
		struct sio_nvme_wire_ns wire;

		sio_copy_from(&wire, at + head + i * sizeof(wire), sizeof(wire));
		sio_nvme_ns_decode(&wire, &meta->ns[i]);
	}
	/* If it went, some of that was ones. Pairs with sio_nvme_manager_republish(). */
	sio_from_fabric_barrier();
	if (sio_read32(at) != raw[0] || sio_read32(at + formats) != raw[formats / 4])
		return -EAGAIN;
	if (rc == -EPROTONOSUPPORT)
		return sio_nvme_fail(rc, "the manager of %s speaks version %u, this client %u",
				     n->d.name, meta->version, SIO_NVME_VERSION);
	if (rc == -EPROTO)
		return sio_nvme_fail(rc, "the segment of the manager of %s has invalid contents",
				     n->d.name);
	if (rc)
		return rc;
	n->meta = *meta;
	return 0;
}

static int look(struct smartio_nvme *n)
{
	sci_remote_segment_t segment;
	const volatile uint8_t *at;
	sci_error_t err;
	sci_map_t map;
	int rc;

	SCIConnectDeviceSegment(n->d.handle, &segment, SIO_NVME_SEGMENT, SCI_MEMTYPE_SHARED, NULL,
				NULL, 0, &err);
	if (err == SCI_ERR_NO_SUCH_SEGMENT)
		return no_manager(n);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: cannot look for its manager", n->d.name);
	if (SCIGetRemoteSegmentSize(segment) < sizeof(n->meta)) {
		rc = sio_nvme_fail(-EPROTO, "the manager's segment of %s has only %zu bytes",
				   n->d.name, SCIGetRemoteSegmentSize(segment));
		goto disconnect;
	}
	at = SCIMapRemoteSegment(segment, &map, 0, sizeof(n->meta), NULL, SCI_FLAG_READONLY_MAP,
				 &err);
	if (err != SCI_ERR_OK) {
		/* It went since we connected: the next look tells. */
		rc = sio_nvme_fail_sci(err, "%s: cannot read its manager's segment", n->d.name);
		if (err == SCI_ERR_NOT_CONNECTED || err == SCI_ERR_NO_SUCH_SEGMENT)
			rc = -EAGAIN;
		goto disconnect;
	}
	rc = read_meta(n, at);
	SCIUnmapSegment(map, 0, &err);
disconnect:
	SIO_NVME_UNTIL_FREE(err, SCIDisconnectSegment(segment, 0, &err));
	return rc;
}

int sio_nvme_find_manager(struct smartio_nvme *n)
{
	uint64_t deadline = patience(n, STARTING_MS);
	unsigned tries = 1000; /* sleep from the first time on */
	int rc;

	/* -EAGAIN: a segment without a word in it: a manager that comes, or goes, or died so. */
	while ((rc = look(n)) == -EAGAIN && smartio_now_ns() < deadline &&
	       !smartio_device_lost(n->d.handle))
		sio_nvme_pause(&tries);
	return rc == -EAGAIN ? no_manager(n) : rc;
}

void sio_nvme_unlink_manager(struct smartio_nvme *n)
{
	sci_error_t err;

	if (n->manager)
		SCIDisconnectDataInterrupt(n->manager, 0, &err);
	n->manager = NULL;
}

/* Wait until the library has heard of the reset that the manager did before it came. */
static int wait_generation(struct smartio_nvme *n)
{
	uint64_t deadline = patience(n, STARTING_MS);
	unsigned tries = 0;

	while ((int32_t)(__atomic_load_n(n->generation, __ATOMIC_RELAXED) - n->meta.generation) <
	       0) {
		if (smartio_device_lost(n->d.handle))
			return gone(n);
		if (smartio_now_ns() >= deadline)
			return sio_nvme_fail(-ETIMEDOUT,
					     "%s: its lender does not report the manager's reset",
					     n->d.name);
		sio_nvme_pause(&tries);
	}
	return 0;
}

int sio_nvme_seek_manager(struct smartio_nvme *n)
{
	uint64_t instance = n->meta.instance;
	int rc = sio_nvme_find_manager(n);

	if (rc) {
		sio_nvme_unlink_manager(n);
		n->meta.instance = 0;
		return rc;
	}
	if (n->manager && n->meta.instance == instance)
		return 0;
	sio_nvme_unlink_manager(n);
	rc = wait_generation(n);
	return rc ? rc : 1;
}

int sio_nvme_connect_manager(struct smartio_nvme *owner, struct smartio_nvme *n,
			     sci_remote_data_interrupt_t *ret)
{
	const unsigned node = n->meta.node, number = n->meta.interrupt;
	sci_error_t err;

	if (owner)
		sio_nvme_unlock(owner);
	err = sio_nvme_connect(&n->d, node, number, ret);
	if (owner)
		sio_nvme_lock(owner);
	if (err == SCI_ERR_OK)
		return 0;
	*ret = NULL;
	if (err == SCI_ERR_NO_SUCH_INTNO)
		return no_manager(n);
	return sio_nvme_fail_sci(err, "%s: cannot reach its manager on node %u", n->d.name, node);
}

/* Connected to the manager that serves now. */
int sio_nvme_link_manager(struct smartio_nvme *n)
{
	int rc = sio_nvme_seek_manager(n);

	return rc > 0 ? sio_nvme_connect_manager(NULL, n, &n->manager) : rc;
}

static int send_request(struct smartio_nvme *n, struct sio_nvme_req *req)
{
	uint64_t deadline = patience(n, REPLY_MS);
	unsigned tries = 0;
	sci_error_t err;
	size_t bytes;

	req->magic = SIO_NVME_REQ_MAGIC;
	req->version = SIO_NVME_VERSION;
	req->reply_node = n->d.node;
	req->reply_interrupt = n->reply_number;
	req->instance = n->meta.instance;
	req->borrower = smartio_borrower_id(n->d.handle);
	sio_nvme_req_encode(req, n->request);
	bytes = sio_nvme_req_data(req);
	if (bytes)
		memcpy(n->request + sizeof(*req), n->request_data, bytes);
	for (;;) {
		SCITriggerDataInterrupt(n->manager, n->request, (unsigned)(sizeof(*req) + bytes), 0,
					&err);
		if (err == SCI_ERR_OK)
			return 0;
		if (smartio_device_lost(n->d.handle))
			return gone(n);
		if (err != SCI_ERR_NOSPC || smartio_now_ns() >= deadline)
			return sio_nvme_fail_sci(err, "%s: cannot send to its manager on node %u",
						 n->d.name, n->meta.node);
		sio_nvme_pause(&tries);
	}
}

/* To the manager that serves now. */
static int say(struct smartio_nvme *n, struct sio_nvme_req *req)
{
	const bool trusts = n->trusts;
	int rc = 0;

	/* One that has ended is noticed here, or when no reply comes. */
	n->trusts = false;
	if (trusts && n->manager && send_request(n, req) == 0)
		return 0;
	rc = sio_nvme_link_manager(n);
	return rc ? rc : send_request(n, req);
}

/* An errno that a manager may send. The two that take_reply() uses itself are not among them. */
static int received_error(uint32_t error)
{
	return error < 4096 && error != EAGAIN && error != EALREADY ? -(int)error : -EPROTO;
}

static int refused(const struct smartio_nvme *n, const struct sio_nvme_rep *rep)
{
	const char *out = smartio_exhausted_name(rep->h.reason);

	return sio_nvme_fail_exhausted(received_error(rep->h.error), *out ? rep->h.reason : 0,
				       "manager of %s on node %u: %s%s%s%s", n->d.name,
				       n->meta.node, *out ? "out of " : "", out, *out ? ": " : "",
				       rep->text);
}

/* -EAGAIN: nothing yet. Replies to requests that were given up are dropped. */
static int take_reply(struct smartio_nvme *n, const struct sio_nvme_req *req,
		      struct sio_nvme_rep *rep)
{
	unsigned len = sizeof(n->message);
	sci_error_t err;

	SCIWaitForDataInterrupt(n->reply, n->message, &len, SLICE_MS, 0, &err);
	if (err == SCI_ERR_TIMEOUT)
		return -EAGAIN;
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: cannot wait for its manager", n->d.name);
	if (sio_nvme_rep_decode(n->message, len, rep) || rep->h.sequence != req->sequence ||
	    rep->h.instance != req->instance || rep->h.op != req->op) {
		rep->h.error = 0; /* the answer to another question */
		return -EALREADY;
	}
	/*
	 * The lender may notify the manager of our end before it, or our own daemon, notifies us.
	 */
	if (rep->h.error && smartio_device_lost(n->d.handle))
		return gone(n);
	return rep->h.error ? refused(n, rep) : 0;
}

/*
 * Whether the manager that was asked still serves. One that says nothing just now may be another's.
 */
static int still_there(struct smartio_nvme *n)
{
	uint64_t instance = n->meta.instance;
	int rc;

	if (smartio_device_lost(n->d.handle))
		return gone(n);
	rc = look(n);
	if (rc)
		return rc == -EAGAIN ? 0 : rc;
	if (n->meta.instance == instance)
		return 0;
	return sio_nvme_fail(-ENOTCONN, "the manager of %s ended before it answered", n->d.name);
}

static int ask_once(struct smartio_nvme *n, struct sio_nvme_req *req, struct sio_nvme_rep *rep,
		    bool *ret_sent)
{
	const unsigned limit_ms = n->patience_ms ? n->patience_ms : REPLY_MS;
	unsigned left_ms = limit_ms, took_ms;
	int rc;

	*ret_sent = false;
	rc = say(n, req);
	if (rc && rc != -ENOSPC && n->manager) {
		/* The way to it may be gone, and another one there. */
		sio_nvme_unlink_manager(n);
		rc = say(n, req);
	}
	if (rc)
		return rc;
	*ret_sent = true;
	for (;;) {
		rc = take_reply(n, req, rep);
		if (rc != -EAGAIN && rc != -EALREADY)
			break;
		took_ms = rc == -EAGAIN ? SLICE_MS : 1;
		/*
		 * While no smartiod is there this waits, like any call, and so does the manager if
		 * it has to make one: only the time in which it could have answered is counted.
		 */
		rc = rc == -EAGAIN ? still_there(n) : 0;
		if (rc)
			break;
		left_ms -= took_ms < left_ms ? took_ms : left_ms;
		if (left_ms == 0) {
			rc = sio_nvme_fail(-ETIMEDOUT,
					   "the manager of %s on node %u has not answered for %u "
					   "s: it hangs or was stopped (SIGSTOP); let it go on, or "
					   "end it and start another. Or the cluster's file does "
					   "not let node %u have interrupts of this host, as the "
					   "log of this host's smartiod says then",
					   n->d.name, n->meta.node, limit_ms / 1000, n->meta.node);
			break;
		}
	}
	if (rc)
		sio_nvme_unlink_manager(n);
	return rc;
}

bool sio_nvme_lender_answers(struct smartio_nvme *leg)
{
	return sio_nvme_shared_exists(&leg->d, SIO_NVME_SEGMENT);
}

bool sio_nvme_manager_answers(struct smartio_nvme *n)
{
	/* There is nothing to take back. */
	struct sio_nvme_req req = {.op = SIO_NVME_OP_CANCEL, .sequence = ++n->sequence};
	const unsigned patience_ms = n->patience_ms;
	struct sio_nvme_rep rep;
	bool sent;
	int rc;

	req.cancel.sequence = req.sequence;
	n->patience_ms = SIO_NVME_MOMENT_MS;
	rc = ask_once(n, &req, &rep, &sent);
	n->patience_ms = patience_ms;
	return rc == 0;
}

/* None serves, or the one that does is out of reach, of which its end is not known here yet. */
static bool is_away(int rc)
{
	return rc == -ENOTCONN || rc == -ENETDOWN;
}

/* One stands by; or it is the manager itself that has lost its path, and has another. */
static bool is_successor(struct smartio_nvme *n)
{
	return sio_nvme_has_standby(&n->d) || sio_nvme_hold_is_seen(&n->d);
}

/*
 * No manager serves, but one will in a moment, and sends a notice then. That none will any more has
 * no event. Return: whether one serves. Under the lock.
 */
bool sio_nvme_await_successor(struct smartio_nvme *n)
{
	struct sio_nvme_wait w;
	bool is_one = true;
	int rc;

	sio_nvme_wait_start(&w, TAKEOVER_MS);
	for (;;) {
		rc = look(n);
		if (rc != -EAGAIN && !is_away(rc))
			return rc == 0;
		/* The last one serves by now, or has gone: looked at once more. */
		if (!is_one || smartio_device_lost(n->d.handle))
			return false;
		is_one = is_successor(n);
		if (is_one && !sio_nvme_wait_slice(&w, n->d.handle))
			return false;
	}
}

int sio_nvme_find_serving(struct smartio_nvme *n)
{
	int rc = sio_nvme_find_manager(n);

	return is_away(rc) && sio_nvme_await_successor(n) ? 0 : rc;
}

/*
 * It changes nothing in the drive, so that it may be carried out twice. Of those that may take
 * longer than a manager waits, the first one may still be under way, and there is one at a time.
 */
static bool only_asks(const struct sio_nvme_wire_admin *c)
{
	return c->timeout_ms <= SIO_NVME_ADMIN_MS &&
	       (c->opcode == nvme_admin_identify || c->opcode == nvme_admin_get_log_page ||
		c->opcode == nvme_admin_get_features);
}

/*
 * May it be asked again of the next manager, which knows from the record whether it was done? Admin
 * commands that change something may not, unless they were not @sent. Whoever wants a command
 * aborted has no time to wait for another manager.
 */
static bool is_repeatable(const struct sio_nvme_req *req, bool sent)
{
	if (req->op == SIO_NVME_OP_ADMIN)
		return !sent || only_asks(&req->admin);
	return req->op != SIO_NVME_OP_ABORT;
}

void sio_nvme_say_cancel(struct smartio_nvme *n, uint64_t sequence)
{
	struct sio_nvme_req req = {.op = SIO_NVME_OP_CANCEL,
				   .sequence = ++n->sequence,
				   .cancel = {.sequence = sequence}};
	const unsigned patience_ms = n->patience_ms;
	char why[SIO_NVME_TEXT];

	/* The caller's error is why the answer did not come. */
	snprintf(why, sizeof(why), "%s", smartio_nvme_error());
	n->patience_ms = CANCEL_MS;
	say(n, &req);
	n->patience_ms = patience_ms;
	sio_nvme_fail(0, "%s", why);
}

/* Done once, and asked for again: what was to go is not this client's any more. */
static bool was_done(const struct sio_nvme_req *req, int rc)
{
	return rc == -EACCES && (req->op == SIO_NVME_OP_DELETE || req->op == SIO_NVME_OP_UNLEASE);
}

int sio_nvme_ask(struct smartio_nvme *n, struct sio_nvme_req *req, struct sio_nvme_rep *rep,
		 bool *ret_sent)
{
	const uint32_t generation = n->meta.generation;
	bool sent = false, before = false;
	char why[SIO_NVME_TEXT];
	int rc;

	if (ret_sent)
		*ret_sent = false;
	/* One of two paths, while it is made again. */
	if (!n->d.handle)
		return sio_nvme_fail(-ENODEV, "the path to %s is lost", n->d.name);
	if (n->owed && req->op != SIO_NVME_OP_ABORT) {
		rc = sio_nvme_pay(n);
		if (rc)
			return rc;
	}
	req->sequence = ++n->sequence;
	rc = ask_once(n, req, rep, &sent);
	/* The next one may die as well. */
	for (unsigned i = 0; is_away(rc) && is_repeatable(req, sent) && i < SUCCESSORS; i++) {
		snprintf(why, sizeof(why), "%s", smartio_nvme_error());
		before |= sent;
		if (!sio_nvme_await_successor(n)) {
			rc = sio_nvme_fail(rc, "%s", why);
			break;
		}
		rc = ask_once(n, req, rep, &sent);
	}
	if (before && n->meta.generation == generation && was_done(req, rc))
		rc = 0;
	if (ret_sent)
		*ret_sent = sent || before;
	return rc;
}
