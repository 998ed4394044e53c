/* SPDX-License-Identifier: BSD-2-Clause */
/* How guests use devices of the malicious host, and other devices with its memory. */
#include "work/bait.h"
#include "work/guest.h"
#include "work/life.h"
#include "run/listener.h"

/* The first place is for a device of the malicious host, the other one for any other device. */
void guest_borrow(struct guest *s)
{
	const struct sio_topo_host *liar = &sim_cluster->topology->host[sim_liar()];
	unsigned n = (unsigned)sim_pick(GUEST_PLACES), flags = sim_pick(4) ? 0 : SCI_FLAG_EXCLUSIVE;
	struct guest_place *p = &s->place[n];
	uint64_t since = sim_now();
	sci_error_t e;

	if (p->device || (n == 0 ? !liar->n_devices : !sim_has_drives(0)))
		return;
	*p = (struct guest_place){.vector = SMARTIO_ANY_VECTOR};
	p->fdid = n == 0 ? liar->device[sim_pick(liar->n_devices)].fdid
			 : sim_pick_drive(NULL, NULL)->fdid;
	if (n == 0)
		GUEST_ASK(SCIBorrowDevice, (s->sd, &p->device, p->fdid, flags, &e), &e);
	else
		SIM_CALL(SCIBorrowDevice, (s->sd, &p->device, p->fdid, 0, &e), &e,
			 SCI_ERR_NOT_AVAILABLE, SCI_ERR_NOT_CONNECTED, SCI_ERR_NO_SUCH_FDID);
	if (e != SCI_ERR_OK)
		p->device = NULL;
	else if (n > 0)
		sim_note_borrowed(p->fdid, false, since);
}

void guest_device_segment(struct guest *s)
{
	struct guest_place *p = &s->place[0];
	struct guest_seen *v = guest_pick_seen(s);
	unsigned type = 1u << sim_pick(3), id = type == SCI_MEMTYPE_BAR ? 0 : 1 + sim_pick(2);
	static const unsigned places[] = {0, SCI_FLAG_LOCAL_ONLY, SCI_FLAG_DEVICE_SIDE_ONLY};
	sci_error_t e;

	if (!p->device)
		return;
	if (type != SCI_MEMTYPE_BAR && sim_pick(2)) {
		unsigned flags = places[sim_pick(3)], hints = (unsigned)sim_pick(16);

		GUEST_ASK(SCICreateDeviceSegment,
			  (p->device, id, GUEST_PAGE, type, hints, flags, &e), &e);
		return;
	}
	if (v->segment)
		return;
	*v = (struct guest_seen){.bar = type == SCI_MEMTYPE_BAR,
				 .of_device = type != SCI_MEMTYPE_BAR};
	GUEST_ASK(SCIConnectDeviceSegment, (p->device, &v->segment, id, type, NULL, NULL, 0, &e),
		  &e);
	if (e != SCI_ERR_OK)
		v->segment = NULL;
	else
		guest_map(v, 0, GUEST_PAGE);
}

void guest_make_own(struct guest *s)
{
	const struct sio_topo_host *h = &sim_cluster->topology->host[sim_self()->host];
	sci_error_t e;

	if (s->own)
		return;
	SIM_CALL(SCICreateSegment,
		 (s->sd, &s->own, 400, GUEST_OWN_BYTES, NULL, NULL, SCI_FLAG_AUTO_ID, &e), &e,
		 SCI_ERR_SEGMENTID_USED);
	if (e != SCI_ERR_OK) {
		s->own = NULL;
		return;
	}
	for (unsigned a = 0; e == SCI_ERR_OK && a < h->n_adapters; a++)
		SIM_CALL(SCIPrepareSegment, (s->own, a, 0, &e), &e);
	if (e == SCI_ERR_OK)
		SIM_CALL(SCISetSegmentAvailable, (s->own, 0, 0, &e), &e);
}

void guest_own_for_device(struct guest *s)
{
	struct guest_place *p = guest_pick_place(s);
	sci_ioaddr_t at;
	sci_error_t e;

	guest_make_own(s);
	if (!s->own || !p->device)
		return;
	if (p->own_mapped) {
		GUEST_END(SCIUnmapLocalSegmentForDevice, (s->own, 0, p->device, 0, &e), &e);
		p->own_mapped = e != SCI_ERR_OK;
		return;
	}
	GUEST_ASK(SCIMapLocalSegmentForDevice,
		  (s->own, sim_pick_adapter(sim_liar()), p->device, &at, 0, GUEST_OWN_BYTES, 0, &e),
		  &e);
	p->own_mapped = e == SCI_ERR_OK;
}

/*
 * Connects a device to an interrupt, or disconnects it: the malicious host's device to an interrupt
 * of any host, another device to one of the malicious host.
 */
void guest_tie(struct guest *s)
{
	struct guest_place *p = guest_pick_place(s);
	unsigned host = p == &s->place[0] ? sim_pick_host() : sim_liar();
	unsigned number = 1 + (unsigned)sim_pick(BAIT_NUMBERS);
	sci_error_t e;

	if (!p->device)
		return;
	if (p->vector != SMARTIO_ANY_VECTOR) {
		GUEST_ASK(smartio_disconnect_device_interrupt, (p->device, p->vector, &e), &e);
		if (e == SCI_ERR_OK)
			p->vector = SMARTIO_ANY_VECTOR;
		return;
	}
	if (!p->tied) {
		GUEST_ASK(
			SCIConnectInterrupt,
			(s->sd, &p->tied, sim_node(host), sim_pick_adapter(host), number, 0, 0, &e),
			&e);
		if (e != SCI_ERR_OK)
			p->tied = NULL;
		return;
	}
	GUEST_ASK(smartio_connect_device_interrupt, (p->device, &p->vector, p->tied, &e), &e);
	if (e != SCI_ERR_OK)
		p->vector = SMARTIO_ANY_VECTOR;
}

void guest_hear(struct guest *s)
{
	struct guest_place *p = guest_pick_place(s);
	unsigned timeout = (unsigned)sim_pick(5);
	struct smartio_device_event event;
	sci_error_t e;

	if (!p->device)
		return;
	sim_call("smartio_wait_device_event", timeout + 1000);
	smartio_wait_device_event(p->device, &event, timeout, &e);
	sim_called(e, SCI_ERR_TIMEOUT, SCI_ERR_CANCELLED, SCI_ERR_OK);
	if (p == &s->place[0] && sim_pick(8) == 0)
		GUEST_ASK(smartio_device_reset, (p->device, &e), &e);
	else if (p == &s->place[0] && sim_pick(8) == 0)
		GUEST_ASK(SCIReleaseExclusiveBorrow, (p->device, 0, &e), &e);
}

/* Refused as busy as long as something is mapped for it, which the liar may refuse to unmap. */
void guest_give_back(struct guest *s, struct guest_place *p)
{
	sci_error_t e;

	if (!p->device)
		return;
	for (unsigned i = 0; i < GUEST_SEEN; i++)
		if (s->seen[i].bar || s->seen[i].mapped_for == p->device)
			guest_disconnect(&s->seen[i]);
	if (p->own_mapped)
		guest_own_for_device(s);
	if (p == &s->place[1])
		sim_note_returned(p->fdid);
	SIM_END(SCIReturnDevice, (p->device, 0, &e), &e, SCI_ERR_BUSY);
	if (e != SCI_ERR_OK)
		return;
	p->device = NULL;
	if (p->tied)
		SIM_CALL(SCIDisconnectInterrupt, (p->tied, 0, &e), &e);
	p->tied = NULL;
}
