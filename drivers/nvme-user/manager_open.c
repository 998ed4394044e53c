/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a manager acquires a drive and releases it: borrow, registers, reset, publication. When the
 * borrow is lost with its path to the drive it borrows it again over a path that is left, and goes
 * on by its own record, so that clients notice nothing. Where that is impossible the drive is reset
 * once more, and they are notified of that.
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
#include "standby_look.h"

#define FLAGS (SMARTIO_NVME_ALLOW_VENDOR | SMARTIO_NVME_STANDBY)
#define ADMIN_ENTRIES 32u
#define GENERATION_MS 5000u /* until the lender has told us of our own reset */
#define DYING_MS 2000u	    /* that the registers of a dead manager may take to come free */
#define KNOWN_MS 500u	    /* the same where it seems to live */

/* Say who has the registers. @ret_known: a manager publishes itself. */
static int busy(struct smartio_nvme_manager *m, bool *ret_known)
{
	uint32_t node = sio_nvme_manager_node(m);

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
		if (smartio_device_lost(m->d.handle))
			return sio_nvme_fail(-ENODEV, "%s or its host is gone", m->d.name);
		if (smartio_now_ns() >= deadline)
			return sio_nvme_fail(-ETIMEDOUT, "%s: its lender does not report the reset",
					     m->d.name);
		sio_nvme_pause(&n);
	}
	m->meta.generation = smartio_device_generation(m->d.handle);
	return 0;
}

/*
 * Borrows the drive and takes its registers. The registers of a manager that was just killed become
 * free when its host's daemon has notified the lender; so a refusal counts only after a moment.
 * @beside: not exclusively, even if nobody else has it.
 */
static int take_drive(struct smartio_nvme_manager *m, bool beside, bool *ret_exclusive)
{
	const uint32_t timeout_ms = m->options.enable_timeout_ms;
	uint64_t start = smartio_now_ns();
	unsigned n = 1000; /* sleep from the first time on */
	bool known;
	int rc;

	for (;;) {
		known = false;
		rc = beside ? sio_nvme_device_borrow(&m->d, 0) : borrow(m, ret_exclusive);
		if (rc == 0) {
			rc = sio_nvme_ctrl_open(&m->ctrl, &m->d, timeout_ms);
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

/* From now on whoever follows us can go on where we were. */
static int begin_record(struct smartio_nvme_manager *m)
{
	const struct sio_nvme_record_head head = {.maker = smartio_borrower_id(m->d.handle),
						  .ioaddr = m->ctrl.memory.ioaddr,
						  .generation = m->meta.generation,
						  .pairs = m->meta.queue_pairs,
						  .entries = m->ctrl.entries,
						  .segment = m->ctrl.memory_id};
	int rc = sio_nvme_record_make(&m->record, &m->d, head.pairs);

	if (rc)
		return rc;
	sio_nvme_ctrl_record(&m->ctrl, sio_nvme_record_word(&m->record));
	sio_nvme_record_begin(&m->record, &head);
	return 0;
}

static int start_controller(struct smartio_nvme_manager *m)
{
	const uint32_t entries = m->options.admin_entries;
	int rc = sio_nvme_ctrl_disable(&m->ctrl);

	if (rc == 0)
		rc = settle_all(m);
	if (rc == 0)
		rc = sio_nvme_ctrl_doorbells(&m->ctrl);
	if (rc == 0)
		rc = sio_nvme_ctrl_enable(&m->ctrl, entries ? entries : ADMIN_ENTRIES);
	if (rc == 0)
		rc = sio_nvme_manager_describe(m, 0);
	if (rc == 0)
		rc = sio_nvme_ledger_init(&m->ledger, m->meta.queue_pairs);
	if (rc == 0)
		rc = begin_record(m);
	return rc;
}

int sio_nvme_manager_be_found(struct smartio_nvme_manager *m)
{
	sci_error_t err;
	int rc;

	/* Clients come by whatever adapter of this host: they know a node and a number. */
	if (!m->interrupt)
		SCICreateDataInterrupt(m->d.sd, &m->interrupt, SMARTIO_ALL_ADAPTERS, &m->number,
				       NULL, NULL, 0, &err);
	if (!m->interrupt)
		return sio_nvme_fail_sci(err, "%s: no data interrupt for requests", m->d.name);
	m->meta.interrupt = m->number;
	rc = sio_nvme_manager_publish(m);
	if (rc)
		return rc;
	/* To who has borrowed the drive and waits for a manager. */
	smartio_device_notify(m->d.handle, &err);
	if (err == SCI_ERR_OK)
		return 0;
	return sio_nvme_fail_sci(err, "%s: cannot send its borrowers a notice", m->d.name);
}

int sio_nvme_manager_start(struct smartio_nvme_manager *m)
{
	int rc = start_controller(m);

	if (rc == 0)
		rc = sio_nvme_manager_be_found(m);
	if (rc == 0)
		m->role = SIO_NVME_SERVING;
	return rc;
}

static int start(struct smartio_nvme_manager *m)
{
	bool exclusive = false;
	sci_error_t err;
	int rc;

	if (m->options.flags & SMARTIO_NVME_STANDBY)
		return sio_nvme_stand(m);
	rc = take_drive(m, false, &exclusive);
	if (rc == 0)
		rc = sio_nvme_manager_start(m);
	if (rc || !exclusive)
		return rc;
	SCIReleaseExclusiveBorrow(m->d.handle, 0, &err);
	if (err != SCI_ERR_OK)
		return sio_nvme_fail_sci(err, "%s: cannot open it to clients", m->d.name);
	return 0;
}

/* A standby looks whether there is a manager, and is one if not. */
static int begin(struct smartio_nvme_manager *m)
{
	int rc = start(m);

	if (rc == 0 && m->role == SIO_NVME_STANDBY)
		rc = sio_nvme_stand_by(m, 0);
	return rc < 0 ? rc : 0;
}

int smartio_nvme_manager_open(const char *device, const struct smartio_nvme_manager_options *o,
			      struct smartio_nvme_manager **ret)
{
	struct smartio_nvme_manager_options options;
	struct smartio_nvme_manager *m;
	int rc = sio_nvme_options(&options, sizeof(options), o);

	if (rc)
		return rc;
	if (options.reserved || options.flags & ~FLAGS)
		return sio_nvme_fail(
			-EINVAL, "an option of the manager is not known: flags %#x, reserved %#x",
			options.flags, options.reserved);
	m = calloc(1, sizeof(*m));
	if (!m)
		return sio_nvme_no_memory("a manager");
	m->process = smartio_process();
	m->options = options;
	rc = sio_nvme_device_find(&m->d, device);
	if (rc == 0)
		rc = begin(m);
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
	if (!m->ctrl.memory.d || smartio_device_lost(m->d.handle))
		return true;
	smartio_device_reset(m->d.handle, &err);
	return err == SCI_ERR_OK || smartio_device_lost(m->d.handle);
}

int smartio_nvme_manager_hand_over(struct smartio_nvme_manager *m)
{
	if (m->failed)
		return sio_nvme_fail(-EIO, "%s cannot be handed over: %s", m->d.name, m->why);
	if (m->role != SIO_NVME_SERVING || !sio_nvme_has_standby(&m->d))
		return sio_nvme_fail(-ENOENT,
				     "%s: this manager does not serve, or there is no standby",
				     m->d.name);
	/* The library ends what is left, all at once, as it does for the dead. */
	sio_nvme_ledger_done(&m->ledger);
	free(m->unsettled);
	free(m);
	return 0;
}

void smartio_nvme_manager_close(struct smartio_nvme_manager *m)
{
	char why[SIO_NVME_TEXT];
	sci_error_t err;
	bool stopped;

	if (!m || m->process != smartio_process())
		return;
	/* What failed before is what the caller wants to read. */
	strncpy(why, smartio_nvme_error(), sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	sio_nvme_hold_end(&m->hold);
	sio_nvme_stand_down(m);
	sio_nvme_manager_withdraw(m);
	stopped = stop_controller(m);
	/* What keeps its memory stays borrowed: not from all others. */
	if (!stopped)
		SCIReleaseExclusiveBorrow(m->d.handle, 0, &err);
	/* Before the registers: whoever gets those makes a record of its own. */
	sio_nvme_record_close(&m->record);
	sio_nvme_ctrl_done(&m->ctrl, stopped);
	if (m->interrupt)
		SCIRemoveDataInterrupt(m->interrupt, 0, &err);
	sio_nvme_device_done(&m->d);
	sio_nvme_ledger_done(&m->ledger);
	free(m->unsettled);
	free(m);
	sio_nvme_fail(0, "%s", why);
}

/* What ended with the borrow. */
static void release_all(struct smartio_nvme_manager *m)
{
	sio_nvme_stand_down(m);
	sio_nvme_manager_withdraw(m);
	sio_nvme_record_close(&m->record);
	sio_nvme_ctrl_done(&m->ctrl, true);
	sio_nvme_device_return(&m->d);
	sio_nvme_ledger_done(&m->ledger);
	memset(&m->meta, 0, sizeof(m->meta));
	m->n_unsettled = 0;
	memset(&m->asker, 0, sizeof(m->asker)); /* it finds another manager */
	m->leases.n = 0;  /* read from the record; or the reset has taken their queues */
	m->waiters.n = 0; /* they find another manager, and ask that one */
}

/*
 * Over another path, where it was: nobody else may, for this program lives, and could ring yet. It
 * does not, since what it had mapped is unmapped. Return: 1: somebody has the registers, or the
 * record is not to be had; 0; -ENODEV: this path is lost, too, and the record waits for the next
 * one; -errno.
 */
static int go_on(struct smartio_nvme_manager *m)
{
	bool exclusive;
	int rc = take_drive(m, true, &exclusive);

	if (rc && rc != -EBUSY)
		return rc;
	if (rc == 0) {
		if (sio_nvme_manager_go_on(m) == 0)
			return 0;
		if (smartio_device_lost(m->d.handle))
			return sio_nvme_fail(-ENODEV, "%s or its host is gone", m->d.name);
	}
	sio_nvme_device_return(&m->d);
	return 1;
}

/*
 * The borrow is lost, but perhaps not the drive. What ours and clients' queues had mapped waits at
 * the lender: for the drive goes on, or for the word that start_controller() gives. Return: 0;
 * -ENODEV: there is no drive, or no way to it; -errno.
 */
int sio_nvme_manager_again(struct smartio_nvme_manager *m)
{
	const uint64_t given = m->ledger.given;
	int rc;

	release_all(m);
	rc = sio_nvme_device_query(&m->d);
	if (rc == 0)
		rc = m->role == SIO_NVME_SERVING ? go_on(m) : 1;
	if (rc == 0)
		m->returns_kept++;
	if (rc > 0) {
		/* It is reset, by the lender if nobody else has borrowed it. */
		sio_nvme_hold_end(&m->hold);
		rc = start(m);
	}
	m->ledger.given += given;
	return rc;
}
