/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases of blocks, the manager's side. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "manager.h"
#include "smartio/ext.h"

static uint64_t blocks_of(const struct smartio_nvme_manager *m, uint32_t nsid)
{
	for (uint32_t i = 0; i < m->meta.namespaces; i++)
		if (m->meta.ns[i].id == nsid)
			return m->meta.ns[i].blocks;
	return 0;
}

/*
 * The end of a borrow is an event. It goes to nobody when nobody has the registers, and gets lost
 * when a daemon is away, unless the lender keeps something of the borrow: then it is said again. So
 * of one that has no queue here the lender is asked, which has nothing to settle of one that lives.
 * Return: whether the lender knew.
 */
static bool end_if_dead(struct smartio_nvme_manager *m, uint64_t borrower)
{
	sci_error_t err;

	/* By that number the whole drive is settled: a record that is lost has it, no borrow. */
	if (borrower == SMARTIO_ALL_BORROWERS)
		return false;
	if (borrower == m->record.maker || sio_nvme_ledger_next(&m->ledger, borrower, 0))
		return true;
	smartio_device_settled(m->d.handle, borrower, &err);
	if (err != SCI_ERR_OK)
		return err == SCI_ERR_ILLEGAL_PARAMETER;
	sio_nvme_ledger_end(&m->ledger, borrower);
	sio_nvme_leases_end(&m->leases, borrower);
	return true;
}

void sio_nvme_manager_end_leases(struct smartio_nvme_manager *m)
{
	uint64_t b = 0;

	/* One that does not answer takes seconds each time. */
	while ((b = sio_nvme_leases_next(&m->leases, b)) && end_if_dead(m, b))
		;
	sio_nvme_record_leases(&m->record, &m->leases);
}

/* Of whoever has the lease @id alone. */
static void end_lease(struct smartio_nvme_manager *m, uint64_t id)
{
	uint64_t borrower[SIO_NVME_LEASE_BORROWS] = {0};

	for (uint32_t i = 0; i < m->leases.n; i++)
		if (m->leases.list[i].l.id == id)
			memcpy(borrower, m->leases.list[i].borrower, sizeof(borrower));
	for (unsigned i = 0; i < SIO_NVME_LEASE_BORROWS; i++)
		if (borrower[i] && !end_if_dead(m, borrower[i]))
			return;
}

static void refused(const struct smartio_nvme_manager *m, int rc,
		    const struct sio_nvme_wire_lease *want, const struct sio_nvme_wire_lease *other,
		    struct sio_nvme_rep *rep)
{
	if (other)
		sio_nvme_refuse(rep, rc,
				"%s: lease %s of node %u (%s) has blocks %" PRIu64 " + %" PRIu64
				" of namespace %u of %s",
				rc == -EEXIST ? "the name is taken" : "the range is taken",
				other->name, other->node, other->program, other->lba, other->blocks,
				other->nsid, m->d.name);
	else if (rc == -ENOSPC)
		sio_nvme_refuse(rep, rc,
				"namespace %u of %s has no %" PRIu64
				" blocks in a row that nobody has leased (%u leases, %u at most)",
				want->nsid, m->d.name, want->blocks, m->leases.n, SIO_NVME_LEASES);
	else
		sio_nvme_refuse(
			rep, rc,
			"namespace %u of %s has %" PRIu64 " blocks, not %" PRIu64 " + %" PRIu64,
			want->nsid, m->d.name, blocks_of(m, want->nsid), want->lba, want->blocks);
}

/* Nothing is refused for the sake of the dead. @want: its lba is that of the request. */
static int take_blocks(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		       struct sio_nvme_wire_lease *want,
		       const struct sio_nvme_wire_lease **ret_other)
{
	uint32_t before;
	int rc;

	do {
		before = m->leases.n;
		want->lba = req->lease.lba;
		rc = sio_nvme_leases_take(&m->leases, req->borrower, req->sequence, req->lease.key,
					  blocks_of(m, want->nsid), want, ret_other);
		if (rc && *ret_other)
			end_lease(m, (*ret_other)->id);
		else if (rc == -ENOSPC)
			sio_nvme_manager_end_leases(m);
	} while (rc && m->leases.n < before);
	return rc;
}

static void take(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		 struct sio_nvme_rep *rep)
{
	struct sio_nvme_wire_lease want = {
		.blocks = req->lease.blocks, .nsid = req->lease.nsid, .node = req->reply_node};
	const struct sio_nvme_wire_lease *other;
	int rc;

	if (sio_nvme_manager_is_occupied(m, rep))
		return;
	sio_nvme_keep_text(want.name, req->lease.name, sizeof(want.name));
	sio_nvme_keep_text(want.program, req->lease.program, sizeof(want.program));
	if (!*want.name) {
		sio_nvme_refuse(rep, -EINVAL, "a lease needs a name");
		return;
	}
	if (req->lease.formats != m->meta.formats) {
		sio_nvme_refuse(
			rep, -ESTALE,
			"%s was formatted since this client opened it: the client must open it "
			"again",
			m->d.name);
		return;
	}
	rc = take_blocks(m, req, &want, &other);
	if (rc)
		refused(m, rc, &want, other, rep);
	else
		rep->lease = want;
}

static void join(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
		 struct sio_nvme_rep *rep)
{
	int rc = sio_nvme_leases_join(&m->leases, req->borrower, req->join.id, req->join.key);

	if (rc == -ESTALE)
		sio_nvme_refuse(rep, rc,
				"lease %" PRIu64 " of %s has ended, or is another client's",
				req->join.id, m->d.name);
	else if (rc)
		sio_nvme_refuse(rep, rc,
				"lease %" PRIu64 " of %s has %u borrows, as many as can be: some "
				"were lost, and their queues are not deleted yet",
				req->join.id, m->d.name, SIO_NVME_LEASE_BORROWS);
}

static void list(const struct smartio_nvme_manager *m, uint64_t after, struct sio_nvme_rep *rep)
{
	size_t n = 0;

	memset(rep->leases, 0, sizeof(rep->leases));
	for (uint32_t i = 0; i < m->leases.n && n < SIO_NVME_LEASES_A_REPLY; i++)
		if (m->leases.list[i].l.id > after)
			rep->leases[n++] = m->leases.list[i].l;
}

void sio_nvme_manager_lease(struct smartio_nvme_manager *m, const struct sio_nvme_req *req,
			    struct sio_nvme_rep *rep)
{
	if (req->op == SIO_NVME_OP_LEASE)
		take(m, req, rep);
	else if (req->op == SIO_NVME_OP_LEASES)
		list(m, req->leases.after, rep);
	else if (req->op == SIO_NVME_OP_JOIN)
		join(m, req, rep);
	else if (sio_nvme_leases_give(&m->leases, req->borrower, req->unlease.id, req->unlease.key))
		sio_nvme_refuse(rep, -EACCES, "lease %" PRIu64 " is not this client's",
				req->unlease.id);
	sio_nvme_record_leases(&m->record, &m->leases);
}
