/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The manager: has the drive's registers and its admin queue, gives queue pairs to clients, and
 * takes back those of clients that ended. It is not on the path of I/O: when it dies, clients go
 * on.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "manager.h"
#include "options.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/nvme.h"

#define ADMIN_ENTRIES 32u
#define GENERATION_MS 5000u /* until the lender has told us of our own reset */
#define DYING_MS 2000u	    /* that the registers of a dead manager may take to come free */
#define KNOWN_MS 500u	    /* the same where it seems to live */
#define CHECK_MS 1000u	    /* how often a manager that has nothing to do looks at CSTS */
#define BATCH 4096u	    /* requests taken before somebody else's turn */

/* Say who has the registers. @ret_known: a manager tells of itself. */
static int busy(struct smartio_nvme_manager *m, bool *ret_known)
{
	struct sio_nvme_meta *other = &m->wire; /* ours is written when we have the drive */
	uint32_t raw[offsetof(struct sio_nvme_meta, ns) / 4];
	sci_remote_segment_t segment;
	volatile void *at;
	sci_error_t err;
	sci_map_t map;
	uint32_t node = 0;

	SCIConnectDeviceSegment(m->d.handle, &segment, SIO_NVME_SEGMENT, SCI_MEMTYPE_SHARED, NULL,
				NULL, 0, &err);
	if (err == SCI_ERR_OK) {
		at = SCIMapRemoteSegment(segment, &map, 0, offsetof(struct sio_nvme_meta, ns), NULL,
					 SCI_FLAG_READONLY_MAP, &err);
		if (err == SCI_ERR_OK) {
			sio_copy_from(raw, at, sizeof(raw));
			if (sio_nvme_meta_decode(raw, other) == 0)
				node = other->node;
			SCIUnmapSegment(map, 0, &err);
		}
		SIO_NVME_UNTIL_FREE(err, SCIDisconnectSegment(segment, 0, &err));
	}
	*ret_known = node != 0;
	if (node)
		return sio_nvme_fail(-EBUSY, "another manager (node %u) serves %s", node,
				     m->d.name);
	return sio_nvme_fail(-EBUSY, "another program holds the registers of %s", m->d.name);
}

/* Exclusively; but where clients have outlived their manager, beside them. */
static int borrow(struct smartio_nvme_manager *m, bool *ret_exclusive)
{
	int rc = sio_nvme_device_borrow(&m->d, SCI_FLAG_EXCLUSIVE);

	*ret_exclusive = rc == 0;
	if (rc == -EBUSY)
		rc = sio_nvme_device_borrow(&m->d, 0);
	return rc;
}

/* The controller has no queue any more: whatever ended borrowers had mapped for it may go. */
static int settle_all(struct smartio_nvme_manager *m)
{
	uint32_t before = smartio_device_generation(m->d.handle);
	uint64_t deadline = sio_nvme_deadline(GENERATION_MS);
	unsigned n = 0;
	sci_error_t err;

	smartio_device_settled(m->d.handle, SMARTIO_ALL_BORROWERS, &err);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: cannot settle its borrowers", m->d.name);
	/* A client that knows an older generation would take its new queues for dead. */
	while (smartio_device_generation(m->d.handle) == before) {
		if (smartio_now_ns() >= deadline)
			return sio_nvme_fail(
				-ETIMEDOUT, "%s: its lender does not tell of the reset", m->d.name);
		sio_nvme_pause(&n);
	}
	m->meta.generation = smartio_device_generation(m->d.handle);
	return 0;
}

/*
 * Borrow the drive and get its registers. Those of a manager that was killed just now come free
 * when its host's daemon has told the lender; so a refusal is believed after a moment only.
 */
static int take_drive(struct smartio_nvme_manager *m, const struct smartio_nvme_manager_options *o,
		      bool *ret_exclusive)
{
	uint64_t start = smartio_now_ns();
	unsigned n = 1000; /* sleep from the first time on */
	bool known;
	int rc;

	for (;;) {
		known = false;
		rc = borrow(m, ret_exclusive);
		if (rc == 0) {
			rc = sio_nvme_ctrl_open(&m->ctrl, &m->d, o->enable_timeout_ms);
			if (rc == -EBUSY)
				rc = busy(m, &known);
		}
		if (rc != -EBUSY ||
		    smartio_now_ns() - start >= (known ? KNOWN_MS : DYING_MS) * 1000000ull)
			return rc;
		sio_nvme_device_return(&m->d);
		sio_nvme_pause(&n);
	}
}

static int start_controller(struct smartio_nvme_manager *m,
			    const struct smartio_nvme_manager_options *o)
{
	int rc = sio_nvme_ctrl_disable(&m->ctrl);

	if (rc == 0)
		rc = settle_all(m);
	if (rc == 0)
		rc = sio_nvme_ctrl_doorbells(&m->ctrl);
	if (rc == 0)
		rc = sio_nvme_ctrl_enable(&m->ctrl,
					  o->admin_entries ? o->admin_entries : ADMIN_ENTRIES);
	if (rc == 0)
		rc = sio_nvme_manager_describe(m);
	if (rc == 0)
		rc = sio_nvme_ledger_init(&m->ledger, m->meta.queue_pairs);
	return rc;
}

static int start_serving(struct smartio_nvme_manager *m, bool exclusive)
{
	sci_error_t err;
	int rc;

	/* Clients come by whatever adapter of this host: they know a node and a number. */
	SCICreateDataInterrupt(m->d.sd, &m->interrupt, SMARTIO_ALL_ADAPTERS, &m->meta.interrupt,
			       NULL, NULL, 0, &err);
	if (err != SCI_ERR_OK) {
		m->interrupt = NULL;
		return sio_nvme_fail_sci(err, "%s: no data interrupt for requests", m->d.name);
	}
	rc = sio_nvme_manager_publish(m);
	if (rc || !exclusive)
		return rc;
	SCIReleaseExclusiveBorrow(m->d.handle, 0, &err);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: cannot open it to clients", m->d.name);
	return 0;
}

int smartio_nvme_manager_open(const char *device, const struct smartio_nvme_manager_options *o,
			      struct smartio_nvme_manager **ret)
{
	struct smartio_nvme_manager_options options;
	struct smartio_nvme_manager *m;
	bool exclusive = false;
	int rc = sio_nvme_options(&options, sizeof(options), o);

	if (rc)
		return rc;
	if (options.reserved[0] || options.reserved[1])
		return sio_nvme_fail(-EINVAL, "a reserved option of the manager is not 0");
	m = calloc(1, sizeof(*m));
	if (!m)
		return sio_nvme_fail(-ENOMEM, "no memory for a manager");
	rc = sio_nvme_device_find(&m->d, device);
	if (rc == 0)
		rc = take_drive(m, &options, &exclusive);
	if (rc == 0)
		rc = start_controller(m, &options);
	if (rc == 0)
		rc = start_serving(m, exclusive);
	if (rc) {
		m->failed = rc;
		smartio_nvme_manager_close(m);
		return rc;
	}
	*ret = m;
	return 0;
}

/*
 * Leave the drive without queues, so that nothing of ours or of clients is used any more. One that
 * does not answer may still use them: behind a cable that is out, or it hangs. Its lender can reset
 * it. Return: false: nobody could, and it keeps its memory until this program ends.
 */
static bool stop_controller(struct smartio_nvme_manager *m)
{
	sci_error_t err;

	if (!m->ctrl.reg_map || !smartio_holds_registers(m->d.handle))
		return true;
	if (m->ctrl.enabled && !m->failed)
		sio_nvme_ctrl_shutdown(&m->ctrl);
	if (sio_nvme_ctrl_disable(&m->ctrl) == 0) {
		settle_all(m);
		return true;
	}
	if (!m->ctrl.sq.d || smartio_device_lost(m->d.handle))
		return true;
	smartio_device_reset(m->d.handle, &err);
	return err == SCI_ERR_OK || smartio_device_lost(m->d.handle);
}

void smartio_nvme_manager_close(struct smartio_nvme_manager *m)
{
	char why[SIO_NVME_TEXT];
	sci_error_t err;
	bool stopped;

	if (!m)
		return;
	/* What failed before is what the caller wants to read. */
	strncpy(why, smartio_nvme_error(), sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	sio_nvme_manager_withdraw(m);
	stopped = stop_controller(m);
	/* What keeps its memory stays borrowed: not from all others. */
	if (!stopped)
		SCIReleaseExclusiveBorrow(m->d.handle, 0, &err);
	sio_nvme_ctrl_done(&m->ctrl, stopped);
	if (m->interrupt)
		SCIRemoveDataInterrupt(m->interrupt, 0, &err);
	sio_nvme_device_done(&m->d);
	sio_nvme_ledger_done(&m->ledger);
	free(m->unsettled);
	free(m);
	sio_nvme_fail(0, "%s", why);
}

/* Take what waits, at most BATCH. Return: how many were served. */
static int take_requests(struct smartio_nvme_manager *m)
{
	int n = 0;

	for (unsigned i = 0; i < BATCH; i++) {
		unsigned len = sizeof(m->message);
		sci_error_t err;
		int rc;

		SCIWaitForDataInterrupt(m->interrupt, m->message, &len, 0, 0, &err);
		if (err == SCI_ERR_TIMEOUT)
			return n;
		if (err != SCI_ERR_OK)
			return sio_nvme_fail_sci(err, "%s: cannot take requests", m->d.name);
		rc = sio_nvme_manager_request(m, len);
		if (rc)
			return rc;
		n++;
	}
	return n;
}

/*
 * Nothing of the drive points to what @borrower had mapped. Return: 0; -EAGAIN: the lender could
 * not take the word (it has no memory, or does not answer): it is to be told again; -errno.
 */
static int settle(struct smartio_nvme_manager *m, uint64_t borrower)
{
	sci_error_t err;

	smartio_device_settled(m->d.handle, borrower, &err);
	if (err == SCI_ERR_OK || err == SCI_ERR_ILLEGAL_PARAMETER) /* nothing was left of it */
		return 0;
	if (err == SCI_ERR_ACCESS || err == SCI_ERR_NOT_CONNECTED)
		return sio_nvme_fail_sci(err, "%s: cannot settle borrower %" PRIu64, m->d.name,
					 borrower);
	m->settle_at = smartio_now_ns() + CHECK_MS * 1000000ull;
	return -EAGAIN;
}

/* Without memory for a longer list what it had mapped stays until the drive is next reset. */
static void settle_later(struct smartio_nvme_manager *m, uint64_t borrower)
{
	for (unsigned i = 0; i < m->n_unsettled; i++)
		if (m->unsettled[i] == borrower)
			return;
	if (m->n_unsettled == m->max_unsettled) {
		unsigned n = m->max_unsettled ? 2 * m->max_unsettled : 16;
		uint64_t *list = realloc(m->unsettled, n * sizeof(*list));

		if (!list)
			return;
		m->unsettled = list;
		m->max_unsettled = n;
	}
	m->unsettled[m->n_unsettled++] = borrower;
}

/* Up to the first that the lender cannot take: one that does not answer takes seconds each time. */
static int settle_again(struct smartio_nvme_manager *m)
{
	int rc = 0;

	if (m->n_unsettled == 0 || smartio_now_ns() < m->settle_at)
		return 0;
	while (m->n_unsettled > 0 && rc == 0) {
		uint64_t last = m->unsettled[m->n_unsettled - 1];

		rc = settle(m, last);
		if (rc != -EAGAIN) {
			m->n_unsettled--;
			continue;
		}
		m->unsettled[m->n_unsettled - 1] = m->unsettled[0]; /* another's turn */
		m->unsettled[0] = last;
	}
	return rc == -EAGAIN ? 0 : rc;
}

/*
 * A borrower ended. What it still asks for in the ring is refused from now on; its queues go, all
 * submission queues first; then its windows and memory may.
 */
static int borrower_gone(struct smartio_nvme_manager *m, uint64_t borrower)
{
	struct sio_nvme_ledger *l = &m->ledger;
	uint32_t qid;
	int rc;

	sio_nvme_ledger_end(l, borrower);
	rc = take_requests(m);
	if (rc < 0)
		return rc;
	for (qid = 0; (qid = sio_nvme_ledger_next(l, borrower, qid));) {
		rc = sio_nvme_ctrl_delete_sq(&m->ctrl, qid);
		if (rc)
			return rc;
	}
	for (qid = 0; (qid = sio_nvme_ledger_next(l, borrower, qid));) {
		rc = sio_nvme_ctrl_delete_cq(&m->ctrl, qid);
		if (rc)
			return rc;
		sio_nvme_ledger_release(l, qid);
	}
	rc = m->n_unsettled ? -EAGAIN : settle(m, borrower);
	if (rc != -EAGAIN)
		return rc;
	settle_later(m, borrower);
	return 0;
}

static int device_event(struct smartio_nvme_manager *m, const struct smartio_device_event *e)
{
	switch (e->kind) {
	case SMARTIO_DEVICE_BORROWER_GONE:
		return borrower_gone(m, e->borrower);
	case SMARTIO_DEVICE_RESET:
		if (e->generation == m->meta.generation)
			return 0; /* our own */
		return sio_nvme_fail(-EIO, "%s was reset by its lender", m->d.name);
	case SMARTIO_DEVICE_LOST:
		return sio_nvme_fail(-ENODEV, "%s or its host is gone", m->d.name);
	default:
		return 0;
	}
}

static int take_events(struct smartio_nvme_manager *m)
{
	int n = 0;

	for (;;) {
		struct smartio_device_event e;
		sci_error_t err;
		int rc;

		smartio_wait_device_event(m->d.handle, &e, 0, &err);
		if (err == SCI_ERR_TIMEOUT)
			return n;
		if (err != SCI_ERR_OK)
			return sio_nvme_fail_sci(err, "%s: cannot take its events", m->d.name);
		rc = device_event(m, &e);
		if (rc)
			return rc;
		n++;
	}
}

/* Deaths first: what the dead asked for is then refused. */
static int serve_once(struct smartio_nvme_manager *m)
{
	int events, requests, rc;

	events = take_events(m);
	if (events < 0)
		return events;
	requests = take_requests(m);
	if (requests < 0)
		return requests;
	rc = settle_again(m);
	if (rc == 0)
		rc = sio_nvme_ctrl_check(&m->ctrl);
	return rc ? rc : events + requests;
}

/* Sleep until there may be something to serve. Return: 0; 1: told to stop; -errno. */
static int wait_for_work(struct smartio_nvme_manager *m, uint64_t deadline)
{
	uint64_t now = smartio_now_ns(), ms = CHECK_MS;
	unsigned ready;
	sci_error_t err;

	if (deadline <= now)
		return 1;
	if ((deadline - now) / 1000000 < ms)
		ms = (deadline - now + 999999) / 1000000;
	ready = smartio_wait_events(m->d.handle, m->interrupt, (unsigned)ms, &err);
	if (err != SCI_ERR_OK && err != SCI_ERR_TIMEOUT)
		return sio_nvme_fail_sci(err, "%s: cannot wait for requests", m->d.name);
	return ready & SMARTIO_READY_WAKE ? 1 : 0;
}

/* The drive is lost to us; the text stays for whoever asks again. */
static int lost(struct smartio_nvme_manager *m, int rc)
{
	m->failed = rc == -ENODEV ? -ENODEV : -EIO;
	strncpy(m->why, smartio_nvme_error(), sizeof(m->why) - 1);
	return m->failed;
}

int smartio_nvme_manager_serve(struct smartio_nvme_manager *m, uint32_t timeout_ms)
{
	uint64_t deadline = timeout_ms == UINT32_MAX ? UINT64_MAX : sio_nvme_deadline(timeout_ms);
	int rc;

	if (m->failed)
		return sio_nvme_fail(m->failed, "%s", m->why);
	for (;;) {
		rc = serve_once(m);
		if (rc < 0)
			return lost(m, rc);
		if (rc > 0)
			return rc;
		if (__atomic_exchange_n(&m->stop, 0, __ATOMIC_ACQUIRE))
			return 0;
		rc = wait_for_work(m, deadline);
		if (rc < 0)
			return lost(m, rc);
		if (rc > 0) {
			__atomic_store_n(&m->stop, 0, __ATOMIC_RELEASE);
			return 0;
		}
	}
}

void smartio_nvme_manager_stop(struct smartio_nvme_manager *m)
{
	__atomic_store_n(&m->stop, 1, __ATOMIC_RELEASE);
	smartio_wake(m->d.handle);
}

uint32_t smartio_nvme_manager_queue_pairs(const struct smartio_nvme_manager *m, uint32_t *ret_all)
{
	if (ret_all)
		*ret_all = m->ledger.pairs;
	return m->ledger.used;
}

uint64_t smartio_nvme_manager_given(const struct smartio_nvme_manager *m)
{
	return m->ledger.given;
}
