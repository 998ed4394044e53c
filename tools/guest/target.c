/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA from one device of a machine to the BARs of another. The emulator announces, among the
 * machine's memory, where others' BARs lie that it maps itself: ranges without a file. Whose they
 * are the other device's configuration space says, to which the machine writes first. What matches
 * both is mapped for the device, at the machine's address, and is unmapped as soon as it does not:
 * when the machine moves or disables the BAR, when either device is reset, lost or returned.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/output.h"
#include "guest/relay.h"
#include "smartio/ext.h"

/* Pages of a BAR, at an address of the machine. */
struct place {
	const struct relay *other;
	unsigned bar;
	uint64_t offset;
};

struct relay_target {
	struct relay_target *next;
	uint64_t address, size;
	struct place place;
	sci_remote_segment_t segment; /* NULL: it was refused, and is not tried again */
};

static bool is_there(const struct relay *r)
{
	return r->session && (r->state == RELAY_STOPPED || r->state == RELAY_MASTER);
}

static bool find_bar(const struct relay *other, const struct sio_vfio_range *at, struct place *ret)
{
	uint64_t base;

	for (unsigned i = 0; i < RELAY_BARS; i++) {
		uint64_t size = other->bar[i].size;

		if (!size || !sio_vfio_config_bar(&other->space, i, &base) || at->address < base ||
		    at->address - base >= size || at->size > size - (at->address - base))
			continue;
		*ret = (struct place){other, i, at->address - base};
		return true;
	}
	return false;
}

/* Whose pages are at @at, as the machine has it now. */
static bool find_place(const struct relay *r, const struct sio_vfio_range *at, struct place *ret)
{
	for (unsigned i = 0; i < r->machine->n; i++) {
		const struct relay *other = r->machine->relay[i];

		if (other != r && is_there(other) && find_bar(other, at, ret))
			return true;
	}
	return false;
}

static bool is_valid(const struct relay *r, const struct relay_target *t)
{
	const struct sio_vfio_range *at;
	struct place now;

	if (r->state != RELAY_MASTER || !r->session)
		return false;
	at = sio_vfio_memory_at(sio_vfio_session_memory(r->session), t->address);
	return at && !at->data && at->address == t->address && at->size == t->size &&
	       find_place(r, at, &now) && now.other == t->place.other && now.bar == t->place.bar &&
	       now.offset == t->place.offset;
}

static void cut(const struct relay *r, struct relay_target *t)
{
	sci_error_t err = SCI_ERR_OK;

	if (t->segment) {
		SCIUnmapRemoteSegmentForDevice(t->segment, r->device, 0, &err);
		SCIDisconnectSegment(t->segment, 0, &err);
		if (err != SCI_ERR_OK)
			tool_note("%s keeps BAR %u of %s: %s", r->name, t->place.bar,
				  t->place.other->name, smartio_last_error());
	}
	free(t);
}

static void cut_old(struct relay *r)
{
	struct relay_target *t;

	for (struct relay_target **at = &r->targets; (t = *at);) {
		if (is_valid(r, t)) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		cut(r, t);
	}
}

/* A machine can turn a BAR off and on for ever: of many lines the 128th, 256th, ... */
static void tell(struct relay *r, const struct relay_target *t, const char *reaches,
		 const char *why)
{
	r->told++;
	if (r->told > 64 && r->told & (r->told - 1))
		return;
	tool_note("%s %s %#llx bytes at %#llx, BAR %u of %s%s", r->name, reaches,
		  (unsigned long long)t->size, (unsigned long long)t->address, t->place.bar,
		  t->place.other->name, why);
}

static void map(struct relay *r, struct relay_target *t)
{
	sci_error_t err, ignored;
	char why[256];

	SCIConnectDeviceSegment(t->place.other->device, &t->segment, t->place.bar, SCI_MEMTYPE_BAR,
				NULL, NULL, 0, &err);
	if (err != SCI_ERR_OK)
		t->segment = NULL;
	else
		smartio_map_remote_segment_at(t->segment, r->device, t->address, t->place.offset,
					      t->size, 0, &err);
	if (err == SCI_ERR_OK) {
		tell(r, t, "reaches", "");
		return;
	}
	snprintf(why, sizeof(why), ": %s", smartio_last_error());
	tell(r, t, "does not reach", why);
	if (t->segment)
		SCIDisconnectSegment(t->segment, 0, &ignored);
	t->segment = NULL;
}

static bool has_target(const struct relay *r, uint64_t address)
{
	const struct relay_target *t = r->targets;

	while (t && t->address != address)
		t = t->next;
	return t;
}

static void map_new(struct relay *r)
{
	const struct sio_vfio_memory *m;

	if (r->state != RELAY_MASTER || !r->session)
		return;
	m = sio_vfio_session_memory(r->session);
	for (unsigned i = 0; i < m->n; i++) {
		const struct sio_vfio_range *at = &m->range[i];
		struct relay_target *t;
		struct place place;

		if (at->data || !at->can_write || has_target(r, at->address) ||
		    !find_place(r, at, &place))
			continue;
		t = calloc(1, sizeof(*t));
		if (!t) {
			tool_note("%s: no memory for another device's BAR: " SIO_MORE_MEMORY,
				  r->name);
			return;
		}
		*t = (struct relay_target){r->targets, at->address, at->size, place, NULL};
		r->targets = t;
		map(r, t);
	}
}

void relay_targets_follow(const struct relay_machine *m)
{
	for (unsigned i = 0; i < m->n; i++)
		cut_old(m->relay[i]);
	for (unsigned i = 0; i < m->n; i++)
		map_new(m->relay[i]);
}
