/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts of a virtual NTB, and what they announce: doorbells, messages, faults. */
#include <string.h>

#include "emu/ntb/inside.h"
#include "smartio/io.h"

void emu_ntb_raise(struct emu_ntb_adapter *a, unsigned vector)
{
	/* The signal is sent behind all earlier stores: pairs with the wait for its descriptor. */
	sio_to_fabric_barrier();
	if (!a->session || !sio_vfio_config_is_master(&a->space))
		return;
	a->counts.interrupts++;
	sio_vfio_session_interrupt(a->session, vector);
}

static void raise_bells(struct emu_ntb_adapter *a, uint32_t bells)
{
	for (unsigned i = 0; i < SIO_VNTB_DOORBELLS; i++)
		if (bells & 1u << i)
			emu_ntb_raise(a, SIO_VNTB_VECTOR_DOORBELL + i);
}

void emu_ntb_ring(struct emu_ntb_adapter *a, uint32_t bells)
{
	struct emu_ntb_tables *t = &a->tables;
	uint32_t fresh = bells & ~t->bell_status;

	for (uint32_t rest = bells; rest; rest &= rest - 1)
		a->counts.doorbells++;
	t->bell_status |= bells;
	raise_bells(a, fresh & ~t->bell_mask);
}

void emu_ntb_mask_bells(struct emu_ntb_adapter *a, uint32_t mask)
{
	struct emu_ntb_tables *t = &a->tables;
	uint32_t opened = t->bell_mask & ~mask;

	t->bell_mask = mask;
	raise_bells(a, opened & t->bell_status);
}

static void set_message_bit(struct emu_ntb_adapter *a, uint32_t bit)
{
	struct emu_ntb_tables *t = &a->tables;

	if (t->message_status & bit)
		return;
	t->message_status |= bit;
	if (bit & ~t->message_mask)
		emu_ntb_raise(a, SIO_VNTB_VECTOR_MESSAGE);
}

void emu_ntb_message(struct emu_ntb_adapter *a, struct emu_ntb_row *row, unsigned k, uint32_t value)
{
	struct emu_ntb_tables *there = &row->peer->tables;

	if (row->peer->emulated || !(row->state & SIO_VNTB_PEER_UP) ||
	    there->message_status & 1u << k) {
		set_message_bit(a, 0x10000u << k);
		return;
	}
	a->tables.message_status &= ~(0x10000u << k);
	there->message[k] = value;
	there->source[k] = row->self;
	row->peer->counts.mails++;
	set_message_bit(row->peer, 1u << k);
}

void emu_ntb_mask_messages(struct emu_ntb_adapter *a, uint32_t mask)
{
	struct emu_ntb_tables *t = &a->tables;
	uint32_t opened = t->message_mask & ~mask;

	t->message_mask = mask;
	if (opened & t->message_status)
		emu_ntb_raise(a, SIO_VNTB_VECTOR_MESSAGE);
}

void emu_ntb_fault(struct emu_ntb_adapter *a, struct emu_ntb_fault fault)
{
	struct emu_ntb_tables *t = &a->tables;

	a->counts.faults++;
	if (t->n_faults == SIO_VNTB_FAULTS) {
		t->faults_lost++;
		return;
	}
	t->fault[t->n_faults++] = fault;
	/*
	 * A peer whose accesses are refused cannot interrupt more often than the driver reads the
	 * count.
	 */
	if (t->n_faults == 1)
		emu_ntb_raise(a, SIO_VNTB_VECTOR_FAULT);
}

void emu_ntb_next_fault(struct emu_ntb_adapter *a)
{
	struct emu_ntb_tables *t = &a->tables;

	if (t->n_faults == 0)
		return;
	t->n_faults--;
	memmove(&t->fault[0], &t->fault[1], t->n_faults * sizeof(t->fault[0]));
	t->fault[t->n_faults] = (struct emu_ntb_fault){0};
}
