/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake's API half: borrowed devices. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fake_handle.h"

struct fake_borrower *fake_borrower_of(sci_smartio_device_t device)
{
	for (struct fake_borrower *b = W.borrowers; b; b = b->next)
		if ((void *)b == (void *)device)
			return b;
	assert(!"not a borrowed device");
	return NULL;
}

void smartio_borrow_device_over(sci_desc_t sd, sci_smartio_device_t *device, unsigned int fdid,
				unsigned int adapter, unsigned int flags, sci_error_t *error)
{
	if (adapter >= FAKE_ADAPTERS)
		*error = SCI_ERR_NO_SUCH_ADAPTERNO;
	else if (fake.down & 1u << adapter)
		*error = SCI_ERR_NO_LINK_ACCESS;
	else
		SCIBorrowDevice(sd, device, fdid, flags, error);
}

void SCIBorrowDevice(sci_desc_t sd, sci_smartio_device_t *device, unsigned int fdid,
		     unsigned int flags, sci_error_t *error)
{
	struct fake_borrower *b;
	bool any = false;

	fake_get(sd, SD);
	assert(fdid == FAKE_FDID);
	if (fake_injected(error))
		return;
	fake.borrow_calls++;
	for (b = W.borrowers; b; b = b->next)
		any |= !b->ended;
	if (W.exclusive || (flags & SCI_FLAG_EXCLUSIVE && any)) {
		*error = SCI_ERR_NOT_AVAILABLE;
		return;
	}
	b = calloc(1, sizeof(*b));
	assert(b);
	b->id = ++W.last_borrower;
	b->generation = W.generation;
	b->next = W.borrowers;
	W.borrowers = b;
	if (flags & SCI_FLAG_EXCLUSIVE)
		W.exclusive = b;
	fake.objects++;
	*device = (sci_smartio_device_t)b;
}

static bool is_awaited(unsigned state)
{
	bool any = false;

	for (struct fake_borrower *b = W.borrowers; b; b = b->next)
		any |= !b->ended;
	return state == SMARTIO_AWAIT_EXCLUSIVE ? !any : !W.exclusive;
}

void smartio_await_device(const char *name, unsigned int state, unsigned int timeout_ms,
			  unsigned int *fdid, sci_error_t *error)
{
	uint64_t end = timeout_ms == SCI_INFINITE_TIMEOUT ? UINT64_MAX
							  : fake.now + timeout_ms * 1000000ull;

	assert(strtoul(name, NULL, 0) == FAKE_FDID);
	if (fake_injected(error))
		return;
	fake.await_calls++;
	while (!is_awaited(state) && fake.now < end) {
		fake_step();
		if (!is_awaited(state) && fake.now < end)
			fake.now = fake.event && fake.event_at < end ? fake.event_at : end;
	}
	*fdid = FAKE_FDID;
	*error = is_awaited(state) ? SCI_ERR_OK : SCI_ERR_TIMEOUT;
}

void smartio_device_notify(sci_smartio_device_t device, sci_error_t *error)
{
	const struct fake_borrower *from = fake_borrower_of(device);

	if (fake_injected(error))
		return;
	if (W.holder != from) {
		*error = SCI_ERR_ACCESS;
		return;
	}
	for (struct fake_borrower *b = W.borrowers; b; b = b->next)
		if (b != from && !b->ended)
			fake_event(b, SMARTIO_DEVICE_NOTICE, 0);
	*error = SCI_ERR_OK;
}

void SCIReturnDevice(sci_smartio_device_t device, unsigned int flags, sci_error_t *error)
{
	struct fake_borrower *b = fake_borrower_of(device);

	assert(flags == 0);
	*error = SCI_ERR_OK;
	if (!b->ended) {
		for (struct fake_handle *h = fake_handles; h; h = h->next)
			if ((h->b == b && h->kind == CONNECTION) || h->over[0].b == b ||
			    h->over[1].b == b)
				*error = SCI_ERR_BUSY;
		if (*error != SCI_ERR_OK)
			return;
	}
	for (struct fake_handle *s = fake_segments, *next; s; s = next) {
		next = s->next;
		if (s->b == b && !fake_segment_lasts(s))
			fake_segment_free(s);
	}
	if (!b->ended)
		fake_borrower_end(b);
	b->returned = true;
	fake.objects--;
}

void SCIReleaseExclusiveBorrow(sci_smartio_device_t device, unsigned int flags, sci_error_t *error)
{
	assert(flags == 0);
	if (fake_injected(error))
		return;
	if (W.exclusive != fake_borrower_of(device))
		*error = SCI_ERR_ILLEGAL_OPERATION;
	else
		W.exclusive = NULL;
}

uint64_t smartio_borrower_id(sci_smartio_device_t device)
{
	return fake_borrower_of(device)->id;
}

uint32_t smartio_device_generation(sci_smartio_device_t device)
{
	return fake_borrower_of(device)->generation;
}

const volatile uint32_t *smartio_device_generation_word(sci_smartio_device_t device)
{
	return &fake_borrower_of(device)->generation;
}

const volatile uint32_t *smartio_map_sleep_word(sci_map_t map)
{
	assert(map);
	return fake.sleeps;
}

void smartio_map_wake(sci_map_t map)
{
	assert(map);
	fake_wake();
}

int smartio_device_lost(sci_smartio_device_t device)
{
	const struct fake_borrower *b = fake_borrower_of(device);

	return b->lost || b->id == fake.lost;
}

int smartio_holds_registers(sci_smartio_device_t device)
{
	return W.holder == fake_borrower_of(device) && !smartio_device_lost(device);
}

static void settle_ended(void)
{
	for (struct fake_borrower *b = W.borrowers; b; b = b->next)
		if (b->ended)
			fake_region_drop(b->id, NULL, true);
	fake_segments_settled();
}

void smartio_device_settled(sci_smartio_device_t device, uint64_t id, sci_error_t *error)
{
	if (fake_injected(error))
		return;
	if (W.holder != fake_borrower_of(device)) {
		*error = SCI_ERR_ACCESS;
		return;
	}
	if (fake.unsettled > 0) {
		fake.unsettled--;
		*error = SCI_ERR_NOSPC;
		return;
	}
	if (id != SMARTIO_ALL_BORROWERS) {
		if (fake_borrower(id))
			*error = SCI_ERR_ILLEGAL_PARAMETER;
		else
			fake_region_drop(id, NULL, true);
		fake_segments_settled();
		return;
	}
	settle_ended();
	fake_generation_up();
}

void smartio_device_reset(sci_smartio_device_t device, sci_error_t *error)
{
	if (fake_injected(error))
		return;
	if (fake.goes)
		fake.lost = fake_borrower_of(device)->id;
	if (fake.unresettable)
		*error = SCI_ERR_TIMEOUT;
	else if (W.holder != fake_borrower_of(device))
		*error = SCI_ERR_ACCESS;
	if (*error != SCI_ERR_OK)
		return;
	fake_reset_device();
	settle_ended();
}

void smartio_device_hold(sci_smartio_device_t device, uint64_t id, sci_ioaddr_t ioaddr,
			 size_t bytes, uint64_t *hold, sci_error_t *error)
{
	struct fake_region *r;

	if (fake_injected(error))
		return;
	r = fake_region_find(id, ioaddr, bytes);
	if (W.holder != fake_borrower_of(device))
		*error = SCI_ERR_ACCESS;
	else if (bytes == 0 || !fake_borrower(id))
		*error = SCI_ERR_ILLEGAL_PARAMETER;
	else if (!r)
		*error = SCI_ERR_OUT_OF_RANGE;
	if (*error != SCI_ERR_OK)
		return;
	r->holds++;
	*hold = r->number;
}

void smartio_device_unhold(sci_smartio_device_t device, uint64_t hold, sci_error_t *error)
{
	struct fake_region *r = W.regions;

	if (fake_injected(error))
		return;
	while (r && r->number != hold)
		r = r->next;
	if (W.holder != fake_borrower_of(device))
		*error = SCI_ERR_ACCESS;
	else if (!r || !r->holds)
		*error = SCI_ERR_ILLEGAL_PARAMETER;
	else
		r->holds--;
}

void smartio_wait_device_event(sci_smartio_device_t device, struct smartio_device_event *event,
			       unsigned int timeout_ms, sci_error_t *error)
{
	struct fake_borrower *b = fake_borrower_of(device);

	assert(timeout_ms == 0);
	*error = b->ended ? SCI_ERR_CANCELLED : b->n_events ? SCI_ERR_OK : SCI_ERR_TIMEOUT;
	if (*error != SCI_ERR_OK)
		return;
	*event = b->events[0];
	b->n_events--;
	memmove(b->events, b->events + 1, b->n_events * sizeof(b->events[0]));
}

static unsigned ready(struct fake_borrower *b, struct fake_handle *dint)
{
	unsigned set = 0;

	if (b && b->n_events)
		set |= SMARTIO_READY_DEVICE;
	if (dint && dint->n_messages)
		set |= SMARTIO_READY_INTERRUPT;
	if (b && b->woken) {
		b->woken = false;
		set |= SMARTIO_READY_WAKE;
	}
	return set;
}

unsigned int smartio_wait_events(sci_smartio_device_t device, sci_local_data_interrupt_t interrupt,
				 unsigned int timeout_ms, sci_error_t *error)
{
	struct fake_borrower *b = device ? fake_borrower_of(device) : NULL;
	struct fake_handle *dint = interrupt ? fake_get(interrupt, DINT) : NULL;
	uint64_t end = fake.now + timeout_ms * 1000000ull;
	unsigned set = ready(b, dint);

	while (!set && fake.now < end) {
		for (unsigned i = 0; !set && i < 20; i++) {
			fake_step();
			set = ready(b, dint);
		}
		/* That is an event, too. */
		if (!set && device && smartio_device_lost(device))
			set = SMARTIO_READY_DEVICE;
		/* Nothing moves any more until the event, or the end. */
		if (!set && fake.now < end)
			fake.now = fake.event && fake.event_at < end ? fake.event_at : end;
	}
	*error = set ? SCI_ERR_OK : SCI_ERR_TIMEOUT;
	return set;
}

void smartio_wake(sci_smartio_device_t device)
{
	fake_borrower_of(device)->woken = true;
}

/* The drive that it plays has no memory of its own. */
void smartio_device_assign(sci_smartio_device_t device, uint64_t borrower, unsigned int bar,
			   size_t offset, size_t bytes, sci_error_t *error)
{
	(void)device;
	(void)borrower;
	(void)bar;
	(void)offset;
	(void)bytes;
	*error = SCI_ERR_OUT_OF_RANGE;
}
