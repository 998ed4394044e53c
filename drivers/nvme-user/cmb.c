/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The controller memory buffer, as the manager sees it: registers, and which pages of it a queue
 * gets. Source: NVM Express Base Specification 1.4, sections 3.1.11 to 3.1.14, and 4.8.
 */
#include <nvme/types.h>

#include <errno.h>
#include <inttypes.h>

#include "error.h"
#include "manager.h"
#include "smartio/ext.h"
#include "smartio/io.h"
#include "smartio/nvme.h"

#define CRE 1u
#define CMSE 2u
#define SIZE_MS 1000u /* that a drive may take to report its buffer */
#define MOST UINT16_MAX

/* Waits for the buffer's size, which a drive reports after CMBMSC.CRE is set. *ret_size: CMBSZ. */
static int wait_size(struct sio_nvme_ctrl *c, uint32_t *ret_size)
{
	uint64_t deadline = sio_nvme_deadline(SIZE_MS);
	unsigned n = 0;
	int rc = 0;

	while (rc == 0 && (*ret_size = sio_read32(c->reg + NVME_REG_CMBSZ)) == 0) {
		rc = sio_nvme_ctrl_check(c);
		if (rc == 0 && smartio_now_ns() >= deadline)
			rc = sio_nvme_fail(-EOPNOTSUPP,
					   "%s has a controller memory buffer, but reports no size",
					   c->d->name);
		sio_nvme_pause(&n);
	}
	return rc;
}

int sio_nvme_ctrl_use_cmb(struct sio_nvme_ctrl *c)
{
	uint64_t pages;
	uint32_t size = 0, where;
	int rc;

	if (c->cmb_pages)
		return 0;
	if (!NVME_CAP_CMBS(c->cap))
		return sio_nvme_fail(-EOPNOTSUPP, "%s has no controller memory buffer", c->d->name);
	/* The lower half enables it, where both say: pairs with take_cmb_control(), emu. */
	sio_write32(c->reg + NVME_REG_CMBMSC + 4, (uint32_t)(SIO_NVME_CMB_BASE >> 32));
	sio_to_fabric_barrier();
	sio_write32(c->reg + NVME_REG_CMBMSC, (uint32_t)SIO_NVME_CMB_BASE | CRE | CMSE);
	sio_nvme_wake(c->reg_map, c->reg_sleeps);
	rc = wait_size(c, &size);
	if (rc)
		return rc;
	where = sio_read32(c->reg + NVME_REG_CMBLOC);
	if (!NVME_CMBSZ_SQS(size) || NVME_CMBLOC_BIR(where) != SIO_NVME_CMB_BAR ||
	    NVME_CMBLOC_OFST(where))
		return sio_nvme_fail(-EOPNOTSUPP,
				     "the controller memory buffer of %s takes no submission "
				     "queues, or does not begin BAR %u (CMBSZ %#x, CMBLOC %#x)",
				     c->d->name, SIO_NVME_CMB_BAR, size, where);
	pages = (uint64_t)NVME_CMBSZ_SZ(size) << 4 * NVME_CMBSZ_SZU(size);
	c->cmb_pages = pages < MOST ? (uint32_t)pages : MOST;
	return 0;
}

/* ---- which pages a queue gets ---- */

/* The first page behind a pair that has one of [@page, @page + @n); 0: none has. */
static uint32_t taken_to(const struct sio_nvme_ledger *l, uint32_t page, uint32_t n)
{
	for (uint32_t qid = 1; qid <= l->pairs; qid++) {
		const struct sio_nvme_pair *p = &l->pair[qid];
		const uint32_t first = p->cmb - 1u;

		if (p->cmb && first < page + n && page < first + p->cmb_pages)
			return first + p->cmb_pages;
	}
	return 0;
}

static uint32_t used(const struct sio_nvme_ledger *l)
{
	uint32_t n = 0;

	for (uint32_t qid = 1; qid <= l->pairs; qid++)
		n += l->pair[qid].cmb_pages;
	return n;
}

/* No room: by whom, as far as the manager knows. */
static void no_room(struct smartio_nvme_manager *m, uint32_t pages, uint32_t busy,
		    struct sio_nvme_rep *rep)
{
	sio_nvme_refuse(
		rep, -ENOSPC,
		"the controller memory buffer of %s has no room for a submission queue of "
		"%u page%s: of its %u pages queues have %u, and %u are still mapped by clients "
		"that had them",
		m->d.name, pages, pages == 1 ? "" : "s", m->ctrl.cmb_pages, used(&m->ledger), busy);
}

/*
 * Lets @borrower map these pages from now on, or refuses. Return: 0; 1: a previous borrower still
 * has them mapped; -errno.
 */
static int assign(struct smartio_nvme_manager *m, uint64_t borrower, uint32_t page, uint32_t pages,
		  struct sio_nvme_rep *rep)
{
	sci_error_t err;

	smartio_device_assign(m->d.handle, borrower, SIO_NVME_CMB_BAR, (size_t)page * SIO_NVME_PAGE,
			      (size_t)pages * SIO_NVME_PAGE, &err);
	switch (err) {
	case SCI_ERR_OK:
		return 0;
	case SCI_ERR_BUSY:
		return 1;
	case SCI_ERR_ACCESS:
	case SCI_ERR_NOT_CONNECTED:
	case SCI_ERR_NO_SUCH_FDID:
		return sio_nvme_fail_sci(err, "%s: its lender cannot be asked for its memory",
					 m->d.name);
	case SCI_ERR_NOT_SUPPORTED:
		sio_nvme_refuse(rep, -ENOTSUP,
				"the controller memory buffer of %s cannot be assigned to clients: "
				"%s",
				m->d.name, smartio_last_error());
		return 0;
	case SCI_ERR_OUT_OF_RANGE:
	case SCI_ERR_ILLEGAL_PARAMETER:
		sio_nvme_refuse(rep, -EFAULT,
				"%s: borrower %" PRIu64 " gets none of its memory: %s", m->d.name,
				borrower, smartio_last_error());
		return 0;
	default:
		sio_nvme_refuse_sci(rep, err, "the drive's own memory cannot be assigned");
		return 0;
	}
}

int sio_nvme_manager_place(struct smartio_nvme_manager *m, struct sio_nvme_pair *pair,
			   uint32_t entries, struct sio_nvme_rep *rep)
{
	const uint32_t pages =
		(uint32_t)(((size_t)entries * 64 + SIO_NVME_PAGE - 1) / SIO_NVME_PAGE);
	uint32_t busy = 0, page = 0, next;
	int rc = sio_nvme_ctrl_use_cmb(&m->ctrl);

	if (rc == -EOPNOTSUPP) {
		sio_nvme_refuse(rep, -ENOTSUP, "%s", smartio_nvme_error());
		return 0;
	}
	while (rc == 0 && page + pages <= m->ctrl.cmb_pages) {
		next = taken_to(&m->ledger, page, pages);
		if (next) {
			page = next;
			continue;
		}
		rc = assign(m, pair->borrower, page, pages, rep);
		if (rc == 0 && !rep->h.error) {
			pair->cmb = (uint16_t)(page + 1);
			pair->cmb_pages = (uint16_t)pages;
		}
		if (rc <= 0)
			return rc;
		rc = 0;
		busy++;
		page++;
	}
	if (rc == 0)
		no_room(m, pages, busy, rep);
	return rc;
}
