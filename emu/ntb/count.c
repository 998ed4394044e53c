/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What virtual NTBs count, for views of the cluster: accesses through exact windows by the rules of
 * PCIe, as adapters of emulated hosts count theirs, and what reaches the driver. Nobody sees what
 * passes a mapped window.
 */
#include "emu/ntb/inside.h"

void emu_ntb_count(struct emu_ntb_adapter *a, enum emu_ntb_passing what, uint64_t address,
		   size_t len)
{
	struct sio_pcie_count *sum = &a->counts.pcie, one = {0};
	const struct sio_pcie *rules = &a->ntb->pcie;

	if (a->emulated)
		return; /* the machine room counts for it */
	if (what == EMU_NTB_WRITE || what == EMU_NTB_MESSAGE)
		sio_pcie_write(rules, address, len, &one);
	else
		sio_pcie_read(rules, address, len, &one);
	sum->write_tlps += one.write_tlps;
	sum->write_bytes += one.write_bytes;
	a->counts.messages += what == EMU_NTB_MESSAGE;
	if (what != EMU_NTB_ANSWER && what != EMU_NTB_ERROR)
		sum->read_requests += one.read_requests;
	if (what == EMU_NTB_READ || what == EMU_NTB_ANSWER) {
		sum->completions += one.completions;
		sum->read_bytes += one.read_bytes;
	}
	/* Each request is answered by one completion without data. */
	if (what == EMU_NTB_ERROR)
		sum->completions += one.read_requests;
}

void emu_ntb_count_both(struct emu_ntb_adapter *a, struct emu_ntb_adapter *peer,
			enum emu_ntb_passing what, uint64_t address, size_t len)
{
	emu_ntb_count(a, what, address, len);
	emu_ntb_count(peer, what, address, len);
}

void emu_ntb_count_refused(struct emu_ntb_adapter *a, const struct emu_ntb_row *row, bool read,
			   uint64_t address, size_t len, uint32_t reason)
{
	struct emu_ntb_adapter *passed[2] = {a, row ? row->peer : NULL};

	if (!row || reason == SIO_VNTB_REASON_ENTRY || reason == SIO_VNTB_REASON_LIMIT)
		return; /* it did not leave the machine */
	if (reason == SIO_VNTB_REASON_LINK || reason == SIO_VNTB_REASON_START)
		passed[1] = NULL;
	for (unsigned i = 0; i < 2 && passed[i]; i++) {
		emu_ntb_count(passed[i], read ? EMU_NTB_REQUEST : EMU_NTB_WRITE, address, len);
		if (read)
			emu_ntb_count(passed[i], EMU_NTB_ERROR, address, len);
	}
}

uint64_t emu_ntb_counter(const struct emu_ntb_adapter *a, unsigned which)
{
	const struct emu_ntb_counts *c = &a->counts;
	const uint64_t value[SIO_VNTB_COUNTERS] = {
		[SIO_VNTB_COUNT_READ_REQUESTS] = c->pcie.read_requests,
		[SIO_VNTB_COUNT_COMPLETIONS] = c->pcie.completions,
		[SIO_VNTB_COUNT_READ_BYTES] = c->pcie.read_bytes,
		[SIO_VNTB_COUNT_WRITES] = c->pcie.write_tlps,
		[SIO_VNTB_COUNT_WRITE_BYTES] = c->pcie.write_bytes,
		[SIO_VNTB_COUNT_MESSAGES] = c->messages,
		[SIO_VNTB_COUNT_FAULTS] = c->faults,
		[SIO_VNTB_COUNT_DOORBELLS] = c->doorbells,
		[SIO_VNTB_COUNT_MAILS] = c->mails,
		[SIO_VNTB_COUNT_INTERRUPTS] = c->interrupts,
		[SIO_VNTB_COUNT_CHANGES] = c->changes,
		[SIO_VNTB_COUNT_GROUP_OUT] = c->group_out,
		[SIO_VNTB_COUNT_GROUP_IN] = c->group_in,
	};

	return which < SIO_VNTB_COUNTERS ? value[which] : 0;
}

/* A cable leads to one other adapter, which must be on; a switch is on by itself. */
static bool is_linked(const struct emu_ntb_adapter *a)
{
	if (!a->session || !a->cable || !sio_outage_port_in(a->ntb->outage, a->topo))
		return false;
	for (unsigned i = 0; i < a->n_rows && a->topo->attach == SIO_ATTACH_LINK; i++)
		if (!(a->row[i].state & SIO_VNTB_PEER_UP))
			return false;
	return true;
}

void emu_ntb_look(const struct emu_ntb_adapter *a, struct emu_ntb_view *ret)
{
	const struct emu_ntb_tables *t = &a->tables;

	*ret = (struct emu_ntb_view){.counts = a->counts,
				     .attached = a->session != NULL,
				     .linked = is_linked(a),
				     .ready = a->session && t->enable,
				     .counted = a->n_pieces == 0,
				     .starts = a->start,
				     .stale_reads = a->stale_reads};
	for (unsigned i = 0; i < a->topo->lut_entries; i++)
		ret->entries += (t->entry[i].control & SIO_VNTB_LUT_VALID) != 0;
	for (unsigned i = 0; i < t->n_ranges; i++)
		ret->ranges += (t->range[i].control & SIO_VNTB_RANGE_VALID) != 0;
	for (unsigned i = 0; i < a->topo->requesters; i++)
		ret->requesters += (t->requester[i] & SIO_VNTB_REQUESTER_VALID) != 0;
}
